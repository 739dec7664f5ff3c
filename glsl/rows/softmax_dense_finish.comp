#version 450
/* The gradients of cross entropy with dense targets for the chunks of long rows, from the values
 * that softmax_dense_join writes for each row. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint FORM = ROW_FORM_WORDS;
layout(push_constant) uniform block { softmax_dense_args args; };
layout(set = 0, binding = 2) restrict readonly buffer joined { vec4 joined_rows[]; };

#include "lib/rows.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, true)
QUAD_INPUT(1, t, true)
QUAD_OUTPUT(3, y)
#include "lib/math.glsl"
#include "rows/softmax.glsl"
#include "rows/softmax_dense.glsl"

void main()
{
    row_work w = row_part();
    if (!w.live)
        return;
    vec4 row = joined_rows[w.o / args.rows.chunks];
    for (uint k = 0u; w.first + 4u * k * args.rows.lanes < w.end; k++) {
        uvec4 r = w.first + row_quad(w, k), at = w.start + r;
        bvec4 live = row_live(r, w.end);
        vec4 v = read_x(args.x_offset + at, live, 0.0);
        vec4 target = read_t(args.t_offset + at, live, 0.0);
        write_y(args.y_offset + at, live, logits_gradient(row, decay(v - row.x), target));
        write_y(args.second_offset + at, live, targets_gradient(row, v));
    }
}
