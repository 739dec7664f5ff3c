/*
 * Cross entropy of rows with labels (see softmax_held.glsl): the loss or, with LOSS_BACKWARD, the
 * gradient of the logits, which may overwrite them. The loss reads a row only once, even if it is
 * long.
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

vec4 load_quad(row_work w, uvec4 r, bvec4 live)
{
    return read_x(args.x_offset + w.start + r, live, -INFINITY);
}

#ifdef LOSS_BACKWARD
/* The row's label and the gradient of its loss. */
vec2 load_beside(row_work w)
{
    return w.live ? vec2(labels[args.labels_offset + w.o], d_loss[args.d_offset + w.o]) : vec2(0.0);
}

#define row_terms loss_row

loss_row terms_of(float m, float s, vec2 beside)
{
    return loss_row(m, 1.0 / s, beside.y, label_of(beside.x, args.rows.extent));
}

void store_quad(row_work w, loss_row row, uvec4 r, bvec4 live, vec4 e)
{
    write_dx(args.y_offset + w.start + r, live, loss_gradient(row, r, e));
}

#define ROW_VALUES
#else
/* The row's label, and the logit of that class. */
vec2 load_beside(row_work w)
{
    if (!w.live || w.lane != 0u)
        return vec2(0.0);
    float v = labels[args.labels_offset + w.o];
    uint label = label_of(v, args.rows.extent);
    return vec2(v, label < args.rows.extent ? x[args.x_offset + w.start + label] : 0.0);
}

void finish_row(row_work w, float m, float s, vec2 beside)
{
    if (w.live && w.lane == 0u) {
        uint label = label_of(beside.x, args.rows.extent);
        float value = label == LABEL_IGNORED ? 0.0 : NAN_VALUE;
        if (label < args.rows.extent && is_plain(m))
            value = (m - beside.y) + logarithm(s);
        loss[args.y_offset + w.o] = value;
    }
}
#endif
#include "rows/softmax_held.glsl"
