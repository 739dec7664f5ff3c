#version 450
/*
 * Norm of rows whose elements lie apart, `inner` quads: a thread holds HELD (constant 2) elements
 * of four neighbouring rows, as vec4, and `lanes` threads share them; lane_stride such quads of
 * rows a workgroup. One read, one write; no residual and no bias. y may be x.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_args args; };
layout(constant_id = 1) const uint FLAGS = 0;
layout(constant_id = 2) const uint HELD = 1;
layout(set = 0, binding = 0) readonly buffer source { vec4 x4[]; };
layout(set = 0, binding = 1) readonly restrict buffer scales { float gamma[]; };
layout(set = 0, binding = 2) readonly restrict buffer shifts { float beta[]; };
layout(set = 0, binding = 3) writeonly buffer target { vec4 y4[]; };

#include "rows/norm_factor.glsl"

#define THREADS 256
#define PARTS   4u

shared vec4 scratch[THREADS];
shared uint unusual; /* whether a row may need a factor */

/* Whether the mean square + eps of a row may be out of range, of which `part` has a fourth. */
bool is_unusual(vec4 part, float count)
{
    vec4 least = part / count + args.eps;
    return !all(greaterThanEqual(least, vec4(NORM_UNGROW))) || !all(lessThan(part, vec4(1e37)));
}

/* The sum over the lanes of a column: a few of them add up all others' first. `count`: elements of
 * a row, of whose squares it is the sum; 0: it is not. */
vec4 sum_of_lanes(vec4 v, float count)
{
    uint t = gl_LocalInvocationID.x, apart = args.rows.lane_stride, few = PARTS * apart;
    barrier();
    scratch[t] = v;
    barrier();
    if (t < few) {
        for (uint i = t + few; i < gl_WorkGroupSize.x; i += few)
            v += scratch[i];
        scratch[t] = v;
        if (count > 0.0 && is_unusual(v, count))
            atomicOr(unusual, 1u);
    }
    barrier();
    v = vec4(0.0);
    for (uint i = 0u; i < PARTS; i++)
        v += scratch[i * apart + (t & (apart - 1u))];
    return v;
}

vec4 factors_of(vec4 squares, float count, vec4 pivot)
{
    vec4 factor;
    for (uint i = 0u; i < 4u; i++)
        factor[i] = norm_factor(squares[i] / count + args.eps, pivot[i]);
    return factor;
}

vec4 scaled(vec4 v, vec4 factor)
{
    if (factor == vec4(1.0))
        return v;
    return vec4(norm_scaled(v.x, factor.x), norm_scaled(v.y, factor.y), norm_scaled(v.z, factor.z),
                norm_scaled(v.w, factor.w));
}

void main()
{
    uint columns = args.rows.lane_stride, t = gl_LocalInvocationID.x, lane = t / columns;
    uint o = group_index() * columns + (t & (columns - 1u)), outer = o / args.rows.inner;
    uint start = outer * args.rows.extent * args.rows.inner + o - outer * args.rows.inner;
    uint end = o < args.rows.outputs ? args.rows.extent : 0u;
    uint from = (args.x_offset >> 2) + start, to = (args.y_offset >> 2) + start;
    float count = float(args.rows.extent);
    vec4 v[HELD], pivot = vec4(0.0), squares, factor = vec4(1.0);
    if (t == 0u)
        unusual = 0u;
    [[dont_unroll]] for (uint turn = 0u; turn < 2u; turn++) { /* norm_held.glsl */
        [[unroll]] for (uint k = 0u; k < HELD; k++) {
            uint r = lane + k * args.rows.lanes;
            v[k] = vec4(0.0);
            if (r < end)
                v[k] = scaled(x4[from + r * args.rows.inner], factor);
        }
        if ((FLAGS & NORM_IS_RMS) == 0u) {
            vec4 sum = vec4(0.0);
            if (end > 0u)
                pivot = scaled(x4[from], factor);
            [[unroll]] for (uint k = 0u; k < HELD; k++) {
                if (lane + k * args.rows.lanes < end) {
                    v[k] -= pivot;
                    sum += v[k];
                }
            }
            vec4 offset = sum_of_lanes(sum, 0.0) / count;
            [[unroll]] for (uint k = 0u; k < HELD; k++)
                if (lane + k * args.rows.lanes < end)
                    v[k] -= offset;
        }
        squares = vec4(0.0);
        [[unroll]] for (uint k = 0u; k < HELD; k++)
            squares += v[k] * v[k];
        squares = sum_of_lanes(squares, count);
        if (turn != 0u || unusual == 0u)
            break;
        if (end > 0u)
            factor = factors_of(squares, count, pivot);
    }
    vec4 scale;
    for (uint i = 0u; i < 4u; i++)
        scale[i] = norm_scale(squares[i] / count, norm_eps(args.eps, factor[i]));
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uint r = lane + k * args.rows.lanes;
        if (r >= end)
            continue;
        vec4 result = v[k] * scale;
        if ((FLAGS & NORM_HAS_GAMMA) != 0u)
            result *= gamma[args.gamma_offset + r];
        if ((FLAGS & NORM_HAS_BETA) != 0u)
            result += beta[args.beta_offset + r];
        y4[to + r * args.rows.inner] = result;
    }
}
