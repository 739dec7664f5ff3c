#version 450
/* sum dy y of the chunks of long rows. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint FORM = ROW_FORM_WORDS;
layout(push_constant) uniform block { softmax_backward_args args; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float sums[]; };

#include "lib/rows.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, y, true)
QUAD_INPUT(1, dy, true)
ROW_TREE(float, sum_of_lanes, scratch, row_add)

vec4 product_of(row_work w, uint k)
{
    uvec4 r = w.first + row_quad(w, k), at = w.start + r * args.rows.inner;
    bvec4 inside = row_live(r, w.end);
    return read_y(args.y_offset + at, inside, 0.0) * read_dy(args.dy_offset + at, inside, 0.0);
}

void main()
{
    row_work w = row_part();
    vec4 even = vec4(0.0), odd = vec4(0.0);
    for (uint k = 0u; w.first + 4u * k * args.rows.lanes < w.end; k += 2u) {
        vec4 a = product_of(w, k), b = product_of(w, k + 1u);
        even += a;
        odd += b;
    }
    even += odd;
    float sum = sum_of_lanes((even.x + even.y) + (even.z + even.w), w.lane);
    if (w.live && w.lane == 0u)
        sums[w.o] = sum;
}
