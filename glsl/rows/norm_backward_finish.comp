#version 450
/*
 * Input gradient of the chunks of long rows, from the rows' statistics (norm_backward_join). A
 * chunk fits the registers of its lanes. The chunks are taken in reverse order, because the caches
 * still hold those that the kernel for the sums read last. dx may be x or dy.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_backward_args args; };
#include "lib/rows.glsl"
#include "rows/norm_backward.glsl"
layout(set = 0, binding = 3) restrict readonly buffer rows_known { float known[]; };
QUAD_OUTPUT(4, dx)

/* Rows with a factor are read again, one element at a time. */
void finish_scaled(row_work w, uint from)
{
    float factor = known[from + 5u], scale = known[from + 2u];
    [[dont_unroll]] for (uint i = 0u; i < 4u * QUADS; i++) {
        uint r = w.first + row_element(w, i), at = w.start + r * args.rows.inner;
        if (r < w.end) {
            float v = norm_scaled(x[args.x_offset + at], factor);
            float normal = ((v - known[from]) - known[from + 1u]) * scale;
            float pulled =
                (weighted_element(w.o, at, r) - known[from + 3u]) - normal * known[from + 4u];
            dx[args.dx_offset + at] = pulled * (scale * factor);
        }
    }
}

void main()
{
    row_work w = row_whole();
    if (!w.live)
        return;
    w.o = args.rows.outputs - 1u - w.o;
    w = row_cut(w);
    uint from = NORM_CHUNK_SUMS * row_of_chunk(w.o);
    vec4 v[QUADS], u[QUADS];
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = w.first + row_quad(w, k), at = w.start + r * args.rows.inner;
        bvec4 live = row_live(r, w.end);
        v[k] = read_x(args.x_offset + at, live, 0.0);
        u[k] = weighted(w.o, at, r, live);
    }
    float mean = known[from], rest = known[from + 1u], scale = known[from + 2u];
    float shift = known[from + 3u], pull = known[from + 4u], factor = known[from + 5u];
    uint end = factor == 1.0 ? w.end : 0u;
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = w.first + row_quad(w, k);
        vec4 normal = ((v[k] - mean) - rest) * scale;
        vec4 result = ((u[k] - shift) - normal * pull) * scale;
        write_dx(args.dx_offset + w.start + r * args.rows.inner, row_live(r, end), result);
    }
    if (factor != 1.0)
        finish_scaled(w, from);
}
