/*
 * Softmax of rows that fit the registers of their lanes, QUADS (constant 1) times four elements
 * each: one read, one write. y may be x. Longer rows: softmax_partial, softmax_finish.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint QUADS = 1;
layout(constant_id = 2) const bool VECTORS = false;
layout(push_constant) uniform block { softmax_args args; };
#include "lib/rows.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, VECTORS)
QUAD_OUTPUT(1, y)
#include "rows/softmax.glsl"
ROW_TREE(float, largest_of_lanes, scratch, row_larger)
ROW_TREE(float, sum_of_lanes, scratch_of_sum, row_add)

void main()
{
    row_work w = row_whole();

    vec4 v[QUADS];
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = row_quad(w.lane, k);
        v[k] = read_x(args.x_offset + w.start + r * args.rows.inner, row_live(r, w.end), -INFINITY);
    }
    largest most = largest(-INFINITY, 0u);
    [[unroll]] for (uint k = 0u; k < QUADS; k++)
        take_largest(most, v[k]);
    float m = largest_of_lanes(largest_value(most), w.lane);

    float s = 0.0;
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        v[k] = decay(v[k] - m);
        s += sum_of(v[k]);
    }
    s = sum_of_lanes(s, w.lane);
    float share = 1.0 / s;
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = row_quad(w.lane, k);
        write_y(args.y_offset + w.start + r * args.rows.inner, row_live(r, w.end),
                softmax_value(v[k], m, share));
    }
}
