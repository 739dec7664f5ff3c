/*
 * Sums of dy xhat by column over `each` rows after one another, for each of rows.outputs sets of
 * rows. Rows lie whole in memory and fit the registers of their lanes, QUADS (constant 3) times
 * four elements of x, of dy and of the sums: one read of x and dy, statistics on the way. Lanes
 * keep to their columns.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint FLAGS = 0;
layout(constant_id = 2) const uint FORM = ROW_FORM_WORDS;
layout(constant_id = 3) const uint QUADS = 1;
layout(push_constant) uniform block { norm_gamma_args args; };
#include "lib/rows.glsl"
#include "lib/row_quads.glsl"
#include "rows/norm_moments.glsl"
QUAD_INPUT(0, x, true)
QUAD_INPUT(1, dy, true)
QUAD_OUTPUT(2, sums)

/* dy is summed as well, behind the sums of dy xhat. */
const bool BOTH = (FLAGS & NORM_HAS_BETA) != 0u;
const bool IS_RMS = (FLAGS & NORM_IS_RMS) != 0u;

ROW_TREE(float, sum_of_lanes, scratch, row_add)
ROW_TREE(float, squares_of_lanes, scratch_of_squares, row_add)

void main()
{
    row_work w = row_whole();
    float count = float(args.rows.extent);
    vec4 v[QUADS], u[QUADS], total[QUADS], shift[QUADS];
    [[unroll]] for (uint k = 0u; k < QUADS; k++)
        total[k] = shift[k] = vec4(0.0);
    for (uint i = 0u; i < args.each; i++) {
        uint row = w.o * args.each + i, start = row * args.rows.extent;
        uint end = w.live && row < args.count ? args.rows.extent : 0u;
        float pivot = 0.0, offset = 0.0, sum = 0.0, squares = 0.0;
        [[unroll]] for (uint k = 0u; k < QUADS; k++) {
            uvec4 r = row_quad(w, k);
            bvec4 live = row_live(r, end);
            v[k] = read_x(args.x_offset + start + r, live, 0.0);
            u[k] = read_dy(args.dy_offset + start + r, live, 0.0);
        }
        if (!IS_RMS) {
            pivot = end > 0u ? x[args.x_offset + start] : 0.0;
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                v[k] = mix(vec4(0.0), v[k] - pivot, row_live(row_quad(w, k), end));
                sum += (v[k].x + v[k].y) + (v[k].z + v[k].w);
            }
            offset = sum_of_lanes(sum, w.lane) / count;
        }
        [[unroll]] for (uint k = 0u; k < QUADS; k++) {
            if (!IS_RMS)
                v[k] = mix(vec4(0.0), v[k] - offset, row_live(row_quad(w, k), end));
            squares += dot(v[k], v[k]);
        }
        squares = squares_of_lanes(squares, w.lane);
        float scale = norm_scale(squares / count, args.eps);
        if (IS_RMS) /* the scratch is free again, as it is behind another tree */
            barrier();
        [[unroll]] for (uint k = 0u; k < QUADS; k++) {
            total[k] += u[k] * (v[k] * scale);
            if (BOTH)
                shift[k] += u[k];
        }
    }
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = row_quad(w, k);
        uint to = args.sums_offset + w.o * args.rows.extent * (BOTH ? 2u : 1u);
        write_sums(to + r, row_live(r, w.end), total[k]);
        if (BOTH)
            write_sums(to + args.rows.extent + r, row_live(r, w.end), shift[k]);
    }
}
