#version 450
/*
 * Running sums of rows, or of chunks of rows from the sums of what precedes them. A lane takes RUN
 * consecutive elements, the lanes of a row a segment of lanes * RUN; a doubling scan joins the
 * lanes, a compensated carry the segments. No sum is found by subtraction, so that an infinity or
 * a NaN reaches later positions only. y may be x. Constant 1: exclusive; constant 2: whether
 * `starts` has the sum before each chunk.
 */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"

layout(constant_id = 1) const bool EXCLUSIVE = false;
layout(constant_id = 2) const bool HAS_STARTS = false;
layout(push_constant) uniform block { cumsum_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 1) readonly buffer before { float starts[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };

const uint RUN = 4u;
shared float scratch[2][ROW_THREADS];

/* x: sum of the lanes before this one, y: of all the row's lanes. Uniform control flow only. */
vec2 scan_lanes(float value, uint lane)
{
    uint t = gl_LocalInvocationID.x, stride = args.lane_stride, turn = 0u;
    if (args.lanes == 1u)
        return vec2(0.0, value);
    scratch[0][t] = value;
    barrier();
    for (uint reach = 1u; reach < args.lanes; reach *= 2u) {
        float left = lane >= reach ? scratch[turn][t - reach * stride] : 0.0;
        scratch[turn ^ 1u][t] = left + scratch[turn][t];
        turn ^= 1u;
        barrier();
    }
    float preceding = lane > 0u ? scratch[turn][t - stride] : 0.0;
    float all = scratch[turn][t + (args.lanes - 1u - lane) * stride];
    barrier();
    return vec2(preceding, all);
}

void store(uint at, float inclusive, float exclusive)
{
    y[args.y_offset + at] = EXCLUSIVE ? exclusive : inclusive;
}

void main()
{
    uint lane = row_lane(args.lanes, args.lane_stride);
    uint o = row_output(args.lanes, args.lane_stride);
    bool live = o < args.outputs;
    uint first = row_chunk(o, args.inner, args.chunks) * args.chunk_length;
    uint end = live ? min(first + args.chunk_length, args.extent) : 0u;
    uint start = row_start(o, args.inner, args.extent, args.chunks);
    float carry = HAS_STARTS && live ? starts[o] : 0.0, rest = 0.0;
    for (uint segment = 0u; segment < args.chunk_length; segment += args.lanes * RUN) {
        uint r = first + segment + lane * RUN, at = start + r * args.inner;
        vec4 v = vec4(0.0);
        for (uint k = 0u; k < RUN; k++)
            if (r + k < end)
                v[k] = x[args.x_offset + at + k * args.inner];
        vec4 sums = vec4(v.x, v.x + v.y, v.x + v.y + v.z, v.x + v.y + v.z + v.w);
        vec2 lanes = scan_lanes(sums.w, lane);
        float base = compensated_value(carry, rest) + lanes.x;
        for (uint k = 0u; k < RUN; k++)
            if (r + k < end)
                store(at + k * args.inner, base + sums[k], k > 0u ? base + sums[k - 1u] : base);
        add_compensated(carry, rest, lanes.y);
    }
}
