#version 450
/* Sums of w = dy gamma and of w xhat over the chunks of long rows, two words a chunk. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "rows/norm_backward_long.glsl"
layout(set = 0, binding = 4) restrict writeonly buffer target { float sums[]; };

ROW_TREE(vec2, sums_of_lanes, scratch, row_add)

void main()
{
    row_work w = row_part();
    vec3 known = statistics_of(w);
    vec2 sum = vec2(0.0);
    for (uint k = 0u; w.first + 4u * k * args.rows.lanes < w.end; k++) {
        uvec4 r = w.first + row_quad(w, k), at = w.start + r * args.rows.inner;
        bvec4 live = row_live(r, w.end);
        vec4 u = weighted(row_of(w.o), at, r, live);
        sum += vec2(sum_of_quad(u), dot(u, normalized(known, at, live)));
    }
    sum = sums_of_lanes(sum, w.lane);
    if (w.live && w.lane == 0u) {
        sums[2u * w.o] = sum.x;
        sums[2u * w.o + 1u] = sum.y;
    }
}
