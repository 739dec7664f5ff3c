/*
 * Cross entropy of rows with labels: the loss, or with LOSS_BACKWARD the gradient of the logits,
 * which may take their place. Rows are read as softmax_rows.glsl does: held in QUADS (constant 1)
 * quads of registers, and where they are LONG (constant 3) what is beyond comes first. The loss
 * reads a row once however long it is.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint QUADS = 1;
layout(constant_id = 2) const uint FORM = ROW_FORM_WORDS;
layout(constant_id = 3) const bool LONG = false;
layout(push_constant) uniform block { softmax_loss_args args; };
layout(set = 0, binding = 1) restrict readonly buffer row_labels { float labels[]; };
#include "lib/rows.glsl"
#include "lib/row_forms.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, true)
#ifdef LOSS_BACKWARD
layout(set = 0, binding = 2) restrict readonly buffer upstream { float d_loss[]; };
QUAD_OUTPUT(3, dx)
#else
layout(set = 0, binding = 2) restrict writeonly buffer target { float loss[]; };
#include "lib/math.glsl"
#endif
#include "rows/softmax.glsl"
#include "rows/softmax_loss.glsl"
ROW_TREE(float, largest_of_lanes, scratch, row_larger)
ROW_TREE(float, sum_of_lanes, scratch_of_sum, row_add)

vec4 load_quad(row_work w, uvec4 r, bvec4 live)
{
    return read_x(args.x_offset + w.start + r, live, -INFINITY);
}

void main()
{
    row_work w = row_formed(row_whole(), args.x_offset);
    uint label = LABEL_IGNORED;
    if (w.live)
        label = label_of(labels[args.labels_offset + w.o], args.rows.extent);

    vec4 v[HELD];
    vec2 rest = vec2(-INFINITY, 0.0);
    if (LONG) {
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

#ifdef LOSS_BACKWARD
    loss_row row = loss_row(m, 1.0 / s, w.live ? d_loss[args.d_offset + w.o] : 0.0, label);
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = row_quad(w, k);
        write_dx(args.y_offset + w.start + r, row_live(r, w.end), loss_gradient(row, r, v[k]));
    }
    if (LONG) {
        for (uint first = QUADS; row_goes_on(w, first); first += QUADS) {
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                v[k] = load_quad(w, r, rest_live(r, w.end));
            }
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                uvec4 r = row_rest(w, first + k);
                write_dx(args.y_offset + w.start + r, rest_live(r, w.end),
                         loss_gradient(row, r, decay(v[k] - m)));
            }
        }
    }
#else
    if (w.live && w.lane == 0u) {
        float value = label == LABEL_IGNORED ? 0.0 : NAN_VALUE;
        if (label < args.rows.extent && is_plain(m))
            value = (m - x[args.x_offset + w.start + label]) + logarithm(s);
        loss[args.y_offset + w.o] = value;
    }
#endif
}
