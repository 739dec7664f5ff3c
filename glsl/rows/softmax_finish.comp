#version 450
/* Softmax or log softmax of the chunks of long rows, from the statistics of all chunks of the row.
 * y may be x. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint FORM = ROW_FORM_WORDS;
layout(constant_id = 2) const bool LOG = false;
layout(push_constant) uniform block { softmax_args args; };
layout(set = 0, binding = 1) restrict readonly buffer partial { float statistics[]; };

#include "lib/rows.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, true)
QUAD_OUTPUT(2, y)
#include "rows/softmax.glsl"
ROW_TREE(vec2, join_lanes, scratch, join_statistics)

vec2 statistics_of_row(row_work w)
{
    uint row = row_first_chunk(w.o);
    vec2 all = vec2(-INFINITY, 0.0);
    for (uint c = w.lane; c < args.rows.chunks; c += args.rows.lanes) {
        uint at = 2u * (row + c * args.rows.inner);
        all = join_statistics(all, vec2(statistics[at], statistics[at + 1u]));
    }
    return all;
}

void main()
{
    row_work w = row_part();
    vec2 all = w.live ? statistics_of_row(w) : vec2(0.0);
    all = join_lanes(all, w.lane);
    float share = LOG ? log(all.y) : 1.0 / all.y;
    for (uint k = 0u; w.first + 4u * k * args.rows.lanes < w.end; k++) {
        uvec4 r = w.first + row_quad(w, k), at = w.start + r * args.rows.inner;
        bvec4 inside = row_live(r, w.end);
        vec4 v = read_x(args.x_offset + at, inside, 0.0);
        write_y(args.y_offset + at, inside,
                LOG ? log_softmax_value(v, all.x, share)
                    : softmax_value(decay(v - all.x), all.x, share));
    }
}
