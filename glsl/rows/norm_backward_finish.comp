#version 450
/* Input gradient of the chunks of long rows from the sums (norm_backward_partial) of all the row's
 * chunks. dx may be x or dy. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "rows/norm_backward_long.glsl"
layout(set = 0, binding = 4) restrict readonly buffer partial { float sums[]; };
QUAD_OUTPUT(5, dx)

ROW_TREE(vec2, sums_of_lanes, scratch, row_add)

void main()
{
    row_work w = row_part();
    vec3 known = statistics_of(w);
    vec2 sum = vec2(0.0);
    for (uint c = w.lane; w.live && c < args.rows.chunks; c += args.rows.lanes) {
        uint at = 2u * (row_first_chunk(w.o) + c * args.rows.inner);
        sum += vec2(sums[at], sums[at + 1u]);
    }
    sum = sums_of_lanes(sum, w.lane) / float(args.rows.extent);
    if (IS_RMS)
        sum.x = 0.0;
    for (uint k = 0u; w.first + 4u * k * args.rows.lanes < w.end; k++) {
        uvec4 r = w.first + row_quad(w, k), at = w.start + r * args.rows.inner;
        bvec4 live = row_live(r, w.end);
        vec4 u = weighted(row_of(w.o), at, r, live);
        vec4 result = ((u - sum.x) - normalized(known, at, live) * sum.y) * known.z;
        write_dx(args.dx_offset + at, live, result);
    }
}
