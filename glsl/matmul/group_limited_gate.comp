#version 450
/*
 * Group-limited routing of tokens to experts, one workgroup per token. A group's score is the sum
 * of its two largest routes, or its only route. The best topk_group groups stay. From their experts
 * the top_k best are taken, one per round. Larger values come first; ties go to the lower index;
 * NaN comes last. Sums are formed from values times 1/2 or 2^-16, so that they cannot overflow.
 *
 * y[t] = ids, then weights sig[id] / (their sum + 1e-20) * scaling. If top_k is 1, the weight is
 * not divided.
 *
 * Values are compared by integer keys, so that the order is exact on every device. Shared memory: 9
 * KiB for 1024 groups and 128 invocations.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/matmul.h"

layout(push_constant) uniform block { group_limited_gate_args args; };
layout(set = 0, binding = 0) readonly restrict buffer signal_view { float signal[]; };
layout(set = 0, binding = 1) readonly restrict buffer route_view { float route[]; };
layout(set = 0, binding = 2) restrict buffer target { float y[]; };

#define NO_INDEX 0xffffffffu
#define PART     1.52587890625e-5 /* 2^-16, for up to 65,536 weights */

shared uint score[GATE_MAX_GROUPS];
shared bool chosen[GATE_MAX_GROUPS];
shared uvec2 best[gl_WorkGroupSize.x];

/* Key that grows with the value. It is 0 for NaN, and equal for both zeros. */
uint sort_key(float v)
{
    uint bits = floatBitsToUint(v);
    if (is_nan(v))
        return 0;
    if (bits == 0x80000000u)
        bits = 0;
    return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

/* The better of two (key, index). */
uvec2 earlier(uvec2 a, uvec2 b)
{
    return b.x > a.x || (b.x == a.x && b.y < a.y) ? b : a;
}

uint group_score(uint first)
{
    uint size = args.experts / args.groups, k0 = 0, k1 = 0;
    float v0 = NAN_VALUE, v1 = NAN_VALUE;
    for (uint i = 0; i < size; i++) {
        float v = route[first + i];
        uint key = sort_key(v);
        if (key > k0) {
            v1 = v0;
            k1 = k0;
            v0 = v;
            k0 = key;
        } else if (key > k1) {
            v1 = v;
            k1 = key;
        }
    }
    precise float halves = 0.5 * v0 + 0.5 * v1; /* ordered like the sums */
    return size == 1 ? k0 : sort_key(halves);
}

bool group_stays(uint g)
{
    uint before = 0;
    for (uint other = 0; other < args.groups; other++)
        before += score[other] > score[g] || (score[other] == score[g] && other < g) ? 1 : 0;
    return before < args.topk_group;
}

/* The best expert of the chosen groups that comes after `last`. */
uvec2 next_expert(uint row, uvec2 last)
{
    uint lane = gl_LocalInvocationID.x, size = args.experts / args.groups;
    uvec2 own = uvec2(0, NO_INDEX);
    for (uint e = lane; e < args.experts; e += gl_WorkGroupSize.x) {
        uvec2 candidate = uvec2(sort_key(route[row + e]), e);
        bool later = last.y == NO_INDEX || (candidate != last && earlier(last, candidate) == last);
        if (later && chosen[e / size])
            own = earlier(own, candidate);
    }
    best[lane] = own;
    for (uint width = gl_WorkGroupSize.x / 2; width > 0; width /= 2) {
        barrier();
        if (lane < width)
            best[lane] = earlier(best[lane], best[lane + width]);
    }
    barrier();
    uvec2 result = best[0];
    barrier();
    return result;
}

void main()
{
    uint token = group_index(), lane = gl_LocalInvocationID.x;
    if (token >= args.tokens)
        return;
    uint row = args.route_offset + token * args.experts;
    for (uint g = lane; g < args.groups; g += gl_WorkGroupSize.x)
        score[g] = group_score(row + g * (args.experts / args.groups));
    barrier();
    for (uint g = lane; g < args.groups; g += gl_WorkGroupSize.x)
        chosen[g] = group_stays(g);
    barrier();

    uint from = args.signal_offset + token * args.experts;
    uint ids = args.y_offset + token * 2 * args.top_k, weights = ids + args.top_k;
    uvec2 last = uvec2(0, NO_INDEX);
    float sum = 0;
    for (uint i = 0; i < args.top_k; i++) {
        last = next_expert(row, last);
        float weight = signal[from + min(last.y, args.experts - 1)];
        precise float more = sum + weight * PART;
        sum = more;
        if (lane == 0) {
            y[ids + i] = float(last.y);
            y[weights + i] = weight;
        }
    }
    if (lane != 0)
        return;
    for (uint i = 0; i < args.top_k; i++)
        y[weights + i] = (args.top_k > 1 ? y[weights + i] * PART / (sum + 1e-20 * PART)
                                         : y[weights + i]) *
                         args.scaling;
}
