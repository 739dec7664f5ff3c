#version 450
/*
 * Statistics (maximum, sum of exponentials) of the chunks of long rows, two words a chunk. Each
 * lane takes two quads at a time. It takes their maximum first, so that the running sum is rescaled
 * only once for every two quads.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint FORM = ROW_FORM_WORDS;
layout(push_constant) uniform block { softmax_args args; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float statistics[]; };

#include "lib/rows.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, true)
#include "rows/softmax.glsl"
ROW_TREE(vec2, join_lanes, scratch, join_statistics)

vec4 quad_of(row_work w, uint k)
{
    uvec4 r = w.first + row_quad(w, k);
    return read_x(args.x_offset + w.start + r * args.rows.inner, row_live(r, w.end), -INFINITY);
}

void main()
{
    row_work w = row_part();
    vec2 all = vec2(-INFINITY, 0.0);
    for (uint k = 0u; w.first + 4u * k * args.rows.lanes < w.end; k += 2u)
        all = join_statistics(all, statistics_of(quad_of(w, k), quad_of(w, k + 1u)));
    all = join_lanes(all, w.lane);
    if (w.live && w.lane == 0u) {
        statistics[2u * w.o] = all.x;
        statistics[2u * w.o + 1u] = all.y;
    }
}
