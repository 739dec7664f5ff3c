#version 450
/* Statistics of the chunks of long rows and their targets, four words a chunk. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint FORM = ROW_FORM_WORDS;
layout(push_constant) uniform block { softmax_dense_args args; };
layout(set = 0, binding = 2) restrict writeonly buffer statistics { vec4 partial[]; };

#include "lib/rows.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, true)
QUAD_INPUT(1, t, true)
#include "lib/math.glsl"
#include "rows/softmax.glsl"
#include "rows/softmax_dense.glsl"
ROW_TREE(vec4, join_lanes, scratch, join_dense)

vec4 quad_statistics(row_work w, uint k)
{
    uvec4 r = w.first + row_quad(w, k);
    bvec4 live = row_live(r, w.end);
    vec4 v = read_x(args.x_offset + w.start + r, live, -INFINITY);
    vec4 target = read_t(args.t_offset + w.start + r, live, 0.0);
    largest most = largest(-INFINITY, 0u);
    take_largest(most, v);
    float m = largest_value(most), s = is_plain(m) ? sum_of(decay(v - m)) : 0.0;
    return vec4(m, s, weighted_distance(v, target, live, plain_or_0(m)), sum_of(target));
}

void main()
{
    row_work w = row_part();
    vec4 all = vec4(-INFINITY, 0.0, 0.0, 0.0);
    for (uint k = 0u; w.first + 4u * k * args.rows.lanes < w.end; k++)
        all = join_dense(all, quad_statistics(w, k));
    all = join_lanes(all, w.lane);
    if (w.live && w.lane == 0u)
        partial[w.o] = all;
}
