#version 450
/*
 * Mean and sum of squared deviations of the chunks of rows too long for norm.comp, two words a
 * chunk; a chunk fits the registers of its lanes. Stores the sums on the way where they are
 * wanted.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "rows.glsl"

layout(push_constant) uniform block { norm_partial_args args; };
#include "norm.glsl"
layout(set = 0, binding = 3) writeonly buffer kept { float sums[]; };
layout(set = 0, binding = 4) restrict writeonly buffer target { float statistics[]; };

const uint KEEP = NORM_CHUNK_ELEMENTS;
shared float scratch[ROW_THREADS];
ROW_TREE(float, sum_of_lanes, scratch, row_add)
ROW_FIRST(float, first_of_lanes, scratch)

float take(uint at, uint r)
{
    float v = residual_sum(at);
    if ((FLAGS & NORM_KEEPS_SUM) != 0u)
        sums[args.sum_offset + at] = v;
    return with_bias(v, r);
}

void main()
{
    uint lane = row_lane(args.lanes, args.lane_stride);
    uint o = row_output(args.lanes, args.lane_stride);
    bool live = o < args.outputs;
    uint first = row_chunk(o, args.inner, args.chunks) * args.chunk_length;
    uint end = live ? min(first + args.chunk_length, args.extent) : 0u;
    uint start = row_start(o, args.inner, args.extent, args.chunks);
    float v[KEEP];
    [[unroll]] for (uint k = 0u; k < KEEP; k++) {
        uint r = first + lane + k * args.lanes;
        v[k] = r < end ? take(start + r * args.inner, r) : 0.0;
    }
    float mean = 0.0, sum = 0.0;
    if (!IS_RMS) {
        float pivot = first_of_lanes(v[0], lane, args.lane_stride);
        [[unroll]] for (uint k = 0u; k < KEEP; k++)
            if (first + lane + k * args.lanes < end)
                sum += v[k] - pivot;
        sum = sum_of_lanes(sum, lane, args.lanes, args.lane_stride);
        mean = pivot + sum / float(end - first);
    }
    sum = 0.0;
    [[unroll]] for (uint k = 0u; k < KEEP; k++)
        if (first + lane + k * args.lanes < end)
            sum += (v[k] - mean) * (v[k] - mean);
    sum = sum_of_lanes(sum, lane, args.lanes, args.lane_stride);
    if (live && lane == 0u) {
        statistics[2u * o] = mean;
        statistics[2u * o + 1u] = sum;
    }
}
