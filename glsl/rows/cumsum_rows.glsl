/*
 * Running sums of rows, or of chunks of rows from the sums of all chunks. A lane takes SEGMENTS
 * times RUN consecutive elements, a segment being what all lanes of the row take at once; a
 * doubling scan joins the lanes for all segments together, a compensated carry the segments. No sum
 * is found by subtraction, so that an infinity or a NaN reaches later positions only. y may be x.
 * Constant 1: exclusive; constant 2: whether `sums` has the sum of each chunk.
 */
#include "lib/common.glsl"
#include "args/rows.h"
#include "lib/rows.glsl"

layout(constant_id = 1) const bool EXCLUSIVE = false;
layout(constant_id = 2) const bool HAS_SUMS = false;
layout(constant_id = 3) const bool VECTORS = false;
layout(push_constant) uniform block { cumsum_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 0) readonly buffer source4 { vec4 x4[]; };
layout(set = 0, binding = 1) readonly buffer parts { float sums[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };
layout(set = 0, binding = 2) writeonly buffer target4 { vec4 y4[]; };

#include "lib/row_quads.glsl"
QUAD_READER(read_x, x, x4, VECTORS)
QUAD_WRITER(write_y, y, y4)

const uint RUN = CUMSUM_RUN, SEGMENTS = CUMSUM_SEGMENTS;

/* What a scan gives: sums of the lanes before this one, and of all the row's lanes. */
struct scan {
    vec4 before, all;
};

#ifdef ROW_SUBGROUPS
shared vec4 scratch[ROW_THREADS];

scan scan_lanes(vec4 value, uint lane)
{
    uint own = gl_SubgroupInvocationID, within = min(args.lanes, gl_SubgroupSize);
    uint place = lane & (within - 1u), parts = args.lanes / within;
    vec4 sum = value;
    for (uint reach = 1u; reach < within; reach *= 2u) {
        vec4 left = subgroupShuffle(sum, place >= reach ? own - reach : own);
        if (place >= reach)
            sum = left + sum;
    }
    scan result = scan(subgroupShuffle(sum, place > 0u ? own - 1u : own),
                       subgroupShuffle(sum, own | (within - 1u)));
    if (place == 0u)
        result.before = vec4(0.0);
    if (parts == 1u)
        return result;
    if (place == 0u)
        scratch[gl_SubgroupID] = result.all;
    barrier();
    uint first = gl_SubgroupID & ~(parts - 1u);
    vec4 earlier = vec4(0.0), all = vec4(0.0);
    for (uint part = first; part < first + parts; part++) {
        if (part == gl_SubgroupID)
            earlier = all;
        all += scratch[part];
    }
    barrier();
    return scan(earlier + result.before, all);
}
#else
shared vec4 scratch[2][ROW_THREADS];

scan scan_lanes(vec4 value, uint lane)
{
    uint t = gl_LocalInvocationID.x, stride = args.lane_stride, turn = 0u;
    if (args.lanes == 1u)
        return scan(vec4(0.0), value);
    scratch[0][t] = value;
    barrier();
    for (uint reach = 1u; reach < args.lanes; reach *= 2u) {
        vec4 left = vec4(0.0);
        if (lane >= reach)
            left = scratch[turn][t - reach * stride];
        scratch[turn ^ 1u][t] = left + scratch[turn][t];
        turn ^= 1u;
        barrier();
    }
    scan result = scan(vec4(0.0), scratch[turn][t + (args.lanes - 1u - lane) * stride]);
    if (lane > 0u)
        result.before = scratch[turn][t - stride];
    barrier();
    return result;
}
#endif

ROW_TREE(float, sum_of_lanes, scratch_of_sum, row_add)

/* The sum of the chunks before this one. */
float sum_before(uint o, uint chunk, uint lane)
{
    float high = 0.0, low = 0.0;
    for (uint c = lane; c < chunk; c += 4u * args.lanes) {
        float v[4];
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            uint part = c + k * args.lanes;
            v[k] = part < chunk ? sums[o - (chunk - part) * args.inner] : 0.0;
        }
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            add_compensated(high, low, v[k]);
    }
    return sum_of_lanes(compensated_value(high, low), lane, args.lanes, args.lane_stride);
}

uvec4 place_of(uint r, uint start)
{
    return start + (r + uvec4(0u, 1u, 2u, 3u)) * args.inner;
}

bvec4 is_live(uint r, uint end)
{
    return lessThan(r + uvec4(0u, 1u, 2u, 3u), uvec4(end));
}

void main()
{
    uint lane = row_lane(args.lanes, args.lane_stride);
    uint o = row_output(args.lanes, args.lane_stride);
    bool live = o < args.outputs;
    uint chunk = row_chunk(o, args.inner, args.chunks), first = chunk * args.chunk_length;
    uint end = live ? min(first + args.chunk_length, args.extent) : 0u;
    uint start = row_start(o, args.inner, args.extent, args.chunks);
    float carry = 0.0, rest = 0.0;
    uint width = args.lanes * RUN;
    for (uint tile = 0u; tile < args.chunk_length; tile += SEGMENTS * width) {
        uint r = first + tile + lane * RUN;
        vec4 v[SEGMENTS], totals;
        [[unroll]] for (uint k = 0u; k < SEGMENTS; k++)
            v[k] = read_x(args.x_offset + place_of(r + k * width, start),
                          is_live(r + k * width, end), 0.0);
        if (HAS_SUMS && tile == 0u) /* with the loads under way */
            carry = sum_before(o, live ? chunk : 0u, lane);
        [[unroll]] for (uint k = 0u; k < SEGMENTS; k++) {
            v[k].y += v[k].x;
            v[k].z += v[k].y;
            v[k].w += v[k].z;
            totals[k] = v[k].w;
        }
        scan lanes = scan_lanes(totals, lane);
        [[unroll]] for (uint k = 0u; k < SEGMENTS; k++) {
            float base = compensated_value(carry, rest) + lanes.before[k];
            vec4 sums_here = base + v[k];
            if (EXCLUSIVE)
                sums_here = vec4(base, sums_here.xyz);
            write_y(args.y_offset + place_of(r + k * width, start), is_live(r + k * width, end),
                    sums_here);
            add_compensated(carry, rest, lanes.all[k]);
        }
    }
}
