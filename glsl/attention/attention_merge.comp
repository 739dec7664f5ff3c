#version 450
/*
 * Joins the chunks of attention_decode or attention_prefill, in the layout of attention.glsl. A
 * workgroup joins one row; the heads of a query come one after another. LANES invocations hold a
 * quad of columns each (or every LANES-th quad). The groups of LANES take the chunks in turn, eight
 * at a time.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/attention.h"

layout(constant_id = 1) const uint LANES = 16;
layout(constant_id = 2) const uint GROUPS = 8; /* a power of two: the local size / LANES */
layout(constant_id = 3) const bool NATURAL = false; /* unit of maxima: attention_softmax.glsl */
layout(push_constant) uniform block { attention_merge_args args; };
layout(set = 0, binding = 0) readonly restrict buffer source { float statistics[]; };
layout(set = 0, binding = 0) readonly restrict buffer source_quads { vec4 partial[]; };
layout(set = 0, binding = 1) writeonly restrict buffer target { float y[]; };

#include "attention/attention_softmax.glsl"

const uint THREADS = LANES * GROUPS;
const uint STEP = 8;

shared float maxima[THREADS], sums[GROUPS];
shared vec4 outputs[THREADS];

uint lane, row, first_statistic, quads;

float chunk_maximum(uint c)
{
    return statistics[first_statistic + 2u * c];
}
float chunk_sum(uint c)
{
    return statistics[first_statistic + 2u * c + 1u];
}

float find_maximum()
{
    float m = NEGATIVE_INFINITY;
    for (uint c = lane; c < args.chunks; c += THREADS)
        m = larger(m, chunk_maximum(c));
    maxima[lane] = m;
    for (uint step = THREADS / 2u; step > 0u; step /= 2u) {
        barrier();
        if (lane < step)
            maxima[lane] = larger(maxima[lane], maxima[lane + step]);
    }
    barrier();
    return maxima[0];
}

/* Sums l and o over this group's chunks, relative to the common maximum m. o is column quad
 * `column`. */
void add_chunks(uint column, float m, out float l, out vec4 o)
{
    l = 0.0;
    o = vec4(0.0);
    for (uint first = lane / LANES; first < args.chunks; first += STEP * GROUPS) {
        float part_l[STEP], part_m[STEP];
        vec4 part[STEP];
        [[unroll]] for (uint x = 0; x < STEP; x++) {
            uint c = min(first + x * GROUPS, args.chunks - 1u);
            part_l[x] = chunk_sum(c);
            part_m[x] = chunk_maximum(c);
            part[x] = partial[(row * args.chunks + c) * quads + column];
        }
        [[unroll]] for (uint x = 0; x < STEP; x++)
            if (first + x * GROUPS < args.chunks && floatBitsToUint(part_l[x]) != 0u) {
                float scale = weight_of(part_m[x], m);
                l += part_l[x] * scale;
                o += part[x] * scale;
            }
    }
}

/* Sums over the groups. Every invocation gets the result. */
vec4 add_groups(float l, vec4 o, out float total)
{
    barrier();
    outputs[lane] = o;
    if (lane % LANES == 0u)
        sums[lane / LANES] = l;
    barrier();
    o = vec4(0.0);
    total = 0.0;
    for (uint g = 0; g < GROUPS; g++) {
        o += outputs[g * LANES + lane % LANES];
        total += sums[g];
    }
    return o;
}

void main()
{
    uint h = group_index() % args.heads, query = group_index() / args.heads;
    uint i = query % args.queries, b = query / args.queries;
    row = (b * args.heads + h) * args.queries + i;
    if (row >= args.rows)
        return;
    lane = gl_LocalInvocationID.x;
    quads = (args.width + 3u) / 4u;
    first_statistic = (args.rows * quads * 4u + row * 2u) * args.chunks;
    float m = find_maximum(), l;
    uint at = args.y_offset + b * args.y_batch + h * args.y_head + i * args.y_seq;
    for (uint first = 0; first < quads; first += LANES) {
        uint column = first + lane % LANES;
        vec4 o;
        add_chunks(min(column, quads - 1u), m, l, o);
        o = add_groups(l, o, l);
        for (uint e = 0; e < 4u; e++)
            if (lane < LANES && column * 4u + e < args.width)
                y[at + column * 4u + e] = normalized(o[e], l);
    }
    if (lane == 0u && args.lse_offset != ATTENTION_NO_LSE)
        y[args.lse_offset + row] = log_sum(m, l);
}
