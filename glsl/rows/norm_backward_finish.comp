#version 450
/* Input gradient of the chunks of long rows from what norm_backward_join knows of the rows; a chunk
 * fits the registers of its lanes. The last come first: they are what caches still hold of the
 * reading for the sums. dx may be x or dy. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_backward_args args; };
#include "lib/rows.glsl"
#include "rows/norm_backward.glsl"
layout(set = 0, binding = 3) restrict readonly buffer rows_known { float known[]; };
QUAD_OUTPUT(4, dx)

void main()
{
    row_work w = row_whole();
    if (!w.live)
        return;
    w.o = args.rows.outputs - 1u - w.o;
    w = row_cut(w);
    vec4 v[QUADS], u[QUADS];
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = w.first + row_quad(w, k), at = w.start + r * args.rows.inner;
        bvec4 live = row_live(r, w.end);
        v[k] = read_x(args.x_offset + at, live, 0.0);
        u[k] = weighted(w.o, at, r, live);
    }
    uint row = row_of_chunk(w.o);
    uint from = NORM_CHUNK_SUMS * row;
    float mean = known[from], rest = known[from + 1u], scale = known[from + 2u];
    float shift = known[from + 3u], pull = known[from + 4u], factor = known[from + 5u];
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = w.first + row_quad(w, k);
        if (factor != 1.0)
            v[k] = norm_scaled(v[k], factor);
        vec4 normal = ((v[k] - mean) - rest) * scale;
        vec4 result = ((u[k] - shift) - normal * pull) * (scale * factor);
        write_dx(args.dx_offset + w.start + r * args.rows.inner, row_live(r, w.end), result);
    }
}
