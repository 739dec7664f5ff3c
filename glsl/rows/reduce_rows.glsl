/*
 * y[o] = reduction of a row, or of one chunk of a row. Each lane reduces every lanes-th element
 * with four loads in flight. With VECTORS it reduces every lanes-th quad, with eight in flight.
 * Then a tree joins the lanes.
 *
 * Sums add blocks of 32 elements in four chains. The blocks are added with compensation, so that
 * the error does not grow with the row's length or depend on the order of lanes. Specialization
 * constant 1 is the REDUCE_ code.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint CODE = REDUCE_SUM;
layout(constant_id = 2) const bool VECTORS = false;
layout(push_constant) uniform block { reduce_args args; };
#define ROW_VOTES
#include "lib/rows.glsl"
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 0) restrict readonly buffer source4 { vec4 x4[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float y[]; };

const uint FLIGHT = 8u; /* vec4 loads in flight */
#include "rows/reduce.glsl"

ROW_TREE(float, join_lanes, scratch, combine)

void absorb(inout float high, inout float low, float v)
{
    if (ADDS)
        add_compensated(high, low, v);
    else
        high = combine(high, v);
}

/* Elements r, r + lanes, ... below `end` of the row whose element 0 is x[base]. */
float fold(uint base, uint r, uint end)
{
    float high = identity(), low = 0.0;
    uint reach = 3u * args.rows.lanes, stride = args.rows.lanes * args.rows.inner;
    while (r + reach < end) {
        float a = identity(), b = a, c = a, d = a;
        for (uint k = 0u; k < 8u && r + reach < end; k++) {
            uint at = base + r * args.rows.inner;
            float xa = taken(x[at]), xb = taken(x[at + stride]);
            float xc = taken(x[at + 2u * stride]), xd = taken(x[at + 3u * stride]);
            a = combine(a, xa);
            b = combine(b, xb);
            c = combine(c, xc);
            d = combine(d, xd);
            r += 4u * args.rows.lanes;
        }
        absorb(high, low, combine(combine(a, b), combine(c, d)));
    }
    for (; r < end; r += args.rows.lanes)
        absorb(high, low, taken(x[base + r * args.rows.inner]));
    return ADDS ? compensated_value(high, low) : high;
}

/* Like fold, for rows that consist of whole quads and have inner = 1. */
float fold_quads(uint base, uint r, uint end)
{
    float high = identity(), low = 0.0;
    for (; r < end; r += 4u * FLIGHT * args.rows.lanes) {
        vec4 v[FLIGHT];
        [[unroll]] for (uint k = 0u; k < FLIGHT; k++) {
            uint at = r + 4u * k * args.rows.lanes;
            v[k] = vec4(identity());
            if (at < end)
                v[k] = taken(x4[(base + at) >> 2]);
        }
        [[unroll]] for (uint k = 1u; k < FLIGHT; k++)
            v[0] = combine(v[0], v[k]);
        absorb(high, low, combine(combine(v[0].x, v[0].y), combine(v[0].z, v[0].w)));
    }
    return ADDS ? compensated_value(high, low) : high;
}

/* Sum of elements r, r + lanes, ... times `shrink`. */
float fold_shrunk(uint base, uint r, uint end)
{
    float high = 0.0, low = 0.0;
    for (; r < end; r += args.rows.lanes) {
        uint at = base + r * args.rows.inner;
        float v = x[at];
        bool spare = args.x_spare != 0u && !is_finite(v);
        add_compensated(high, low, spare ? x[at + args.x_spare] : v * args.shrink);
    }
    return compensated_value(high, low);
}

void main()
{
    row_work w = row_part();
    uint base = args.x_offset + w.start;
    float value;
    if (VECTORS)
        value = fold_quads(base, w.first + 4u * w.lane, w.end);
    else
        value = fold(base, w.first + w.lane, w.end);
    value = join_lanes(value, w.lane);
    float spare = 0.0;
    if (IS_MEAN && row_vote(!is_finite(value))) {
        row_barrier();
        spare = join_lanes(fold_shrunk(base, w.first + w.lane, w.end), w.lane);
    }
    if (!w.live || w.lane != 0u)
        return;
    if (CODE == REDUCE_MEAN)
        value = mean_of(value, spare);
    y[args.y_offset + w.o] = value;
    if (CODE == REDUCE_PART && !is_finite(value))
        y[args.y_offset + args.y_spare + w.o] = spare;
}
