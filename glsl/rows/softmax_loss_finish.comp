#version 450
/* The gradient of cross entropy for the chunks of long rows, from the values that softmax_loss_join
 * writes for each row. y may be x. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint FORM = ROW_FORM_WORDS;
layout(push_constant) uniform block { softmax_args args; };
layout(set = 0, binding = 1) restrict readonly buffer joined { uvec4 joined_rows[]; };

#include "lib/rows.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, true)
QUAD_OUTPUT(2, y)
#include "rows/softmax.glsl"
#include "rows/softmax_loss.glsl"

void main()
{
    row_work w = row_part();
    if (!w.live)
        return;
    uvec4 bits = joined_rows[w.o / args.rows.chunks];
    vec3 known = uintBitsToFloat(bits.xyz);
    loss_row row = loss_row(known.x, known.y, known.z, bits.w);
    for (uint k = 0u; w.first + 4u * k * args.rows.lanes < w.end; k++) {
        uvec4 r = w.first + row_quad(w, k), at = w.start + r;
        bvec4 inside = row_live(r, w.end);
        vec4 v = read_x(args.x_offset + at, inside, 0.0);
        write_y(args.y_offset + at, inside, loss_gradient(row, r, decay(v - row.m)));
    }
}
