/*
 * Cumulative sums of rows. Rows may be cut into chunks; then the kernel also reads the sum of each
 * chunk. A lane takes SEGMENTS times RUN consecutive elements. A segment is the part of the row
 * that all its lanes take at once. One doubling scan joins the lanes for all segments together, and
 * a compensated carry joins the segments.
 *
 * No sum is computed by subtraction, because an infinity or a NaN must reach only later positions.
 * y may be x. If constant 1 is true, the sums are exclusive. If constant 2 is true, `sums` has the
 * sum of each chunk. If constant 4 is true, the kernel computes cumulative products instead.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const bool EXCLUSIVE = false;
layout(constant_id = 2) const bool HAS_SUMS = false;
layout(constant_id = 3) const uint FORM = ROW_FORM_WORDS;
layout(constant_id = 4) const bool PRODUCT = false;
layout(push_constant) uniform block { cumsum_args args; };
layout(set = 0, binding = 1) readonly buffer parts { float sums[]; };

#include "lib/rows.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, true)
QUAD_OUTPUT(2, y)

const uint RUN = CUMSUM_RUN, SEGMENTS = CUMSUM_SEGMENTS;

const float NOTHING = PRODUCT ? 1.0 : 0.0;

float join(float a, float b)
{
    return PRODUCT ? a * b : a + b;
}
vec4 join(vec4 a, vec4 b)
{
    return PRODUCT ? a * b : a + b;
}
void join_into(inout float high, inout float low, float v)
{
    if (PRODUCT)
        high *= v;
    else
        add_compensated(high, low, v);
}
float value_of(float high, float low)
{
    return PRODUCT ? high : compensated_value(high, low);
}

/*
 * Result of a scan over lanes: the sums of the lanes before this one, and of all lanes of the row.
 */
struct scan {
    vec4 before, all;
};

#ifdef ROW_SUBGROUPS
shared vec4 scratch[ROW_THREADS];

scan scan_lanes(vec4 value, uint lane)
{
    uint own = gl_SubgroupInvocationID, within = min(args.rows.lanes, gl_SubgroupSize);
    uint place = lane & (within - 1u), parts = args.rows.lanes / within;
    vec4 sum = value;
    for (uint reach = 1u; reach < within; reach *= 2u) {
        vec4 left = subgroupShuffle(sum, place >= reach ? own - reach : own);
        if (place >= reach)
            sum = join(left, sum);
    }
    scan result = scan(subgroupShuffle(sum, place > 0u ? own - 1u : own),
                       subgroupShuffle(sum, own | (within - 1u)));
    if (place == 0u)
        result.before = vec4(NOTHING);
    if (parts == 1u)
        return result;
    if (place == 0u)
        scratch[gl_SubgroupID] = result.all;
    barrier();
    uint first = gl_SubgroupID & ~(parts - 1u);
    vec4 earlier = vec4(NOTHING), all = vec4(NOTHING);
    for (uint part = first; part < first + parts; part++) {
        if (part == gl_SubgroupID)
            earlier = all;
        all = join(all, scratch[part]);
    }
    barrier();
    return scan(join(earlier, result.before), all);
}
#else
shared vec4 scratch[2][ROW_THREADS];

scan scan_lanes(vec4 value, uint lane)
{
    uint t = gl_LocalInvocationID.x, stride = args.rows.lane_stride, turn = 0u;
    if (args.rows.lanes == 1u)
        return scan(vec4(NOTHING), value);
    scratch[0][t] = value;
    barrier();
    for (uint reach = 1u; reach < args.rows.lanes; reach *= 2u) {
        vec4 left = vec4(NOTHING);
        if (lane >= reach)
            left = scratch[turn][t - reach * stride];
        scratch[turn ^ 1u][t] = join(left, scratch[turn][t]);
        turn ^= 1u;
        barrier();
    }
    scan result = scan(vec4(NOTHING), scratch[turn][t + (args.rows.lanes - 1u - lane) * stride]);
    if (lane > 0u)
        result.before = scratch[turn][t - stride];
    barrier();
    return result;
}
#endif

ROW_TREE(float, sum_of_lanes, scratch_of_sum, join)

/* The sum of the chunks before this one. */
float sum_before(uint o, uint chunk, uint lane)
{
    float high = NOTHING, low = 0.0;
    for (uint c = lane; c < chunk; c += 4u * args.rows.lanes) {
        float v[4];
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            uint part = c + k * args.rows.lanes;
            v[k] = part < chunk ? sums[o - (chunk - part) * args.rows.inner] : NOTHING;
        }
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            join_into(high, low, v[k]);
    }
    return sum_of_lanes(value_of(high, low), lane);
}

uvec4 place_of(uint r, uint start)
{
    return start + (r + uvec4(0u, 1u, 2u, 3u)) * args.rows.inner;
}

bvec4 is_live(uint r, uint end)
{
    return lessThan(r + uvec4(0u, 1u, 2u, 3u), uvec4(end));
}

void main()
{
    row_work w = row_part();
    float carry = NOTHING, rest = 0.0;
    uint width = args.rows.lanes * RUN;
    for (uint tile = 0u; tile < args.rows.chunk_length; tile += SEGMENTS * width) {
        uint r = w.first + tile + w.lane * RUN;
        vec4 v[SEGMENTS], totals;
        [[unroll]] for (uint k = 0u; k < SEGMENTS; k++)
            v[k] = read_x(args.x_offset + place_of(r + k * width, w.start),
                          is_live(r + k * width, w.end), NOTHING);
        if (HAS_SUMS && tile == 0u) /* while the loads are in flight */
            carry = sum_before(w.o, w.live ? row_chunk(w.o) : 0u, w.lane);
        [[unroll]] for (uint k = 0u; k < SEGMENTS; k++) {
            v[k].y = join(v[k].x, v[k].y);
            v[k].z = join(v[k].y, v[k].z);
            v[k].w = join(v[k].z, v[k].w);
            totals[k] = v[k].w;
        }
        scan lanes = scan_lanes(totals, w.lane);
        [[unroll]] for (uint k = 0u; k < SEGMENTS; k++) {
            float base = join(value_of(carry, rest), lanes.before[k]);
            vec4 sums_here = join(vec4(base), v[k]);
            if (EXCLUSIVE)
                sums_here = vec4(base, sums_here.xyz);
            write_y(args.y_offset + place_of(r + k * width, w.start),
                    is_live(r + k * width, w.end), sums_here);
            join_into(carry, rest, lanes.all[k]);
        }
    }
}
