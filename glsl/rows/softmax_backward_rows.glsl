/*
 * y (dy - sum dy y) of rows that fit the registers of their lanes: QUADS (constant 1) quads of each
 * operand. Both are read once, and dx is written once. If rows are LONG (constant 3), the elements
 * that do not fit are read again. dx may be y or dy. A few rows that are longer than that use
 * softmax_backward_partial and softmax_backward_finish instead.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint QUADS = 1;
layout(constant_id = 2) const uint FORM = ROW_FORM_WORDS;
layout(constant_id = 3) const bool LONG = false;
layout(push_constant) uniform block { softmax_backward_args args; };
#include "lib/rows.glsl"
#include "lib/row_forms.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, y, true)
QUAD_INPUT(1, dy, true)
QUAD_OUTPUT(2, dx)
ROW_TREE(float, sum_of_lanes, scratch, row_add)

vec4 y_of(row_work w, uvec4 r, bvec4 live)
{
    return read_y(args.y_offset + w.start + r * args.rows.inner, live, 0.0);
}
vec4 dy_of(row_work w, uvec4 r, bvec4 live)
{
    return read_dy(args.dy_offset + w.start + r * args.rows.inner, live, 0.0);
}
void store_quad(row_work w, uvec4 r, bvec4 live, vec4 v)
{
    write_dx(args.dx_offset + w.start + r * args.rows.inner, live, v);
}

void main()
{
    row_work w = row_formed(row_whole(), args.y_offset);
    vec4 y4s[HELD], dy4s[HELD], products = vec4(0.0);
    if (LONG) { /* elements that are not held come first, while all registers are free */
        for (uint first = QUADS; row_goes_on(w, first); first += QUADS) {
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                y4s[k] = y_of(w, r, rest_live(r, w.end));
                dy4s[k] = dy_of(w, r, rest_live(r, w.end));
            }
            [[unroll]] for (uint k = 0u; k < QUADS; k++)
                products += y4s[k] * dy4s[k];
        }
    }
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = row_quad(w, k);
        y4s[k] = y_of(w, r, row_live(r, w.end));
        dy4s[k] = dy_of(w, r, row_live(r, w.end));
    }
    [[unroll]] for (uint k = 0u; k < HELD; k++)
        products += y4s[k] * dy4s[k];
    float sum = sum_of_lanes((products.x + products.y) + (products.z + products.w), w.lane);

    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = row_quad(w, k);
        store_quad(w, r, row_live(r, w.end), y4s[k] * (dy4s[k] - sum));
    }
    if (LONG) {
        for (uint first = QUADS; row_goes_on(w, first); first += QUADS) {
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                y4s[k] = y_of(w, r, rest_live(r, w.end));
                dy4s[k] = dy_of(w, r, rest_live(r, w.end));
            }
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                store_quad(w, r, rest_live(r, w.end), y4s[k] * (dy4s[k] - sum));
            }
        }
    }
}
