/*
 * Softmax of rows that fit the registers of their lanes, QUADS (constant 1) times four elements
 * each: one read, one write. Where rows are LONG (constant 3) what is beyond that is read again to
 * be written. y may be x. Few rows longer than that: softmax_partial, softmax_finish.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint QUADS = 1;
layout(constant_id = 2) const uint FORM = ROW_FORM_WORDS;
layout(constant_id = 3) const bool LONG = false;
layout(push_constant) uniform block { softmax_args args; };
#include "lib/rows.glsl"
#include "lib/row_forms.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, true)
QUAD_OUTPUT(1, y)
SPAN_LOAD(x)
SPAN_STORE(y)
#include "rows/softmax.glsl"
ROW_TREE(float, largest_of_lanes, scratch, row_larger)
ROW_TREE(float, sum_of_lanes, scratch_of_sum, row_add)

vec4 load_quad(row_work w, uvec4 r, bvec4 live)
{
    uvec4 at = w.start + r * args.rows.inner;
    if (SPAN)
        return span_read(at, live, -INFINITY);
    return read_x(args.x_offset + at, live, -INFINITY);
}

void store_quad(row_work w, uvec4 r, bvec4 live, vec4 v)
{
    uvec4 at = w.start + r * args.rows.inner;
    if (SPAN)
        span_write(at, live, v);
    else
        write_y(args.y_offset + at, live, v);
}

void main()
{
    row_work w = row_formed(row_whole(), args.x_offset);
    if (SPAN)
        span_load();

    vec4 v[HELD];
    vec2 rest = vec2(-INFINITY, 0.0);
    if (LONG) { /* what is not held comes first, so that all registers are free for it */
        for (uint first = QUADS; row_goes_on(w, first); first += QUADS) {
            largest most = largest(-INFINITY, 0u);
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                v[k] = load_quad(w, r, rest_live(r, w.end));
            }
            [[unroll]] for (uint k = 0u; k < QUADS; k++)
                take_largest(most, v[k]);
            vec2 block = vec2(largest_value(most), 0.0);
            if (is_plain(block.x)) {
                [[unroll]] for (uint k = 0u; k < QUADS; k++)
                    block.y += sum_of(decay(v[k] - block.x));
            }
            rest = join_statistics(rest, block);
        }
    }
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = row_quad(w, k);
        v[k] = load_quad(w, r, row_live(r, w.end));
    }
    largest most = largest(-INFINITY, 0u);
    [[unroll]] for (uint k = 0u; k < HELD; k++)
        take_largest(most, v[k]);
    float m = largest_of_lanes(row_larger(largest_value(most), rest.x), w.lane);

    float s = LONG ? rest.y * decay(rest.x - m) : 0.0;
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        v[k] = decay(v[k] - m);
        s += sum_of(v[k]);
    }
    s = sum_of_lanes(s, w.lane);
    float share = 1.0 / s;
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = row_quad(w, k);
        store_quad(w, r, row_live(r, w.end), softmax_value(v[k], m, share));
    }
    if (LONG) {
        for (uint first = QUADS; row_goes_on(w, first); first += QUADS) {
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                v[k] = load_quad(w, r, rest_live(r, w.end));
            }
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                store_quad(w, r, rest_live(r, w.end), softmax_value(decay(v[k] - m), m, share));
            }
        }
    }
    if (SPAN)
        span_store();
}
