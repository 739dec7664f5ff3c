#version 450
/* y (dy - sum dy y) for the chunks of long rows, from the sums of all chunks of the row. dx may be
 * y or dy. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint FORM = ROW_FORM_WORDS;
layout(push_constant) uniform block { softmax_backward_args args; };
layout(set = 0, binding = 2) restrict readonly buffer partial { float sums[]; };

#include "lib/rows.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, y, true)
QUAD_INPUT(1, dy, true)
QUAD_OUTPUT(3, dx)
ROW_TREE(float, sum_of_lanes, scratch, row_add)

float sum_of_chunks(row_work w)
{
    uint first = row_first_chunk(w.o);
    float sum = 0.0;
    for (uint c = w.lane; c < args.rows.chunks; c += args.rows.lanes)
        sum += sums[first + c * args.rows.inner];
    return sum;
}

void main()
{
    row_work w = row_part();
    float sum = sum_of_lanes(w.live ? sum_of_chunks(w) : 0.0, w.lane);
    for (uint k = 0u; w.first + 4u * k * args.rows.lanes < w.end; k++) {
        uvec4 r = w.first + row_quad(w, k), at = w.start + r * args.rows.inner;
        bvec4 inside = row_live(r, w.end);
        vec4 v = read_y(args.y_offset + at, inside, 0.0);
        vec4 d = read_dy(args.dy_offset + at, inside, 0.0);
        write_dx(args.dx_offset + at, inside, v * (d - sum));
    }
}
