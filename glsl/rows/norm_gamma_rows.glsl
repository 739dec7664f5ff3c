/*
 * Sums of dy xhat by column over `each` rows after one another, those of the rows side by side in a
 * workgroup added up. Rows lie whole in memory and fit the registers of their lanes, QUADS
 * (constant 3) times four elements of x, of dy and of the sums: one read of x and dy, statistics on
 * the way. Lanes keep to their columns. AHEAD (constant 4): x of the next row comes in meanwhile.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint FLAGS = 0;
layout(constant_id = 2) const uint FORM = ROW_FORM_WORDS;
layout(constant_id = 3) const uint QUADS = 1;
layout(constant_id = 4) const bool AHEAD = false;
layout(push_constant) uniform block { norm_gamma_args args; };
#define ROW_VOTES
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

shared vec4 columns[ROW_THREADS];

/* For the first row's lanes, the sum over the rows that the workgroup has side by side. */
vec4 sum_of_rows(vec4 v)
{
    uint t = row_thread();
    if (args.rows.lanes == gl_WorkGroupSize.x)
        return v;
    barrier();
    columns[t] = v;
    barrier();
    for (uint other = t + args.rows.lanes; other < gl_WorkGroupSize.x; other += args.rows.lanes)
        v += columns[other];
    return v;
}

/* Row i of those that are the thread's, none where there are no more. */
row_work row_of_set(row_work set, uint i)
{
    row_work w = set;
    w.o = set.o * args.each + i;
    w.start = w.o * args.rows.extent;
    w.end = set.live && i < args.each && w.o < args.count ? args.rows.extent : 0u;
    return w;
}

float pivot_of(row_work w)
{
    return !IS_RMS && w.end > 0u ? x[args.x_offset + w.start] : 0.0;
}

vec4 x_of(row_work w, uint k)
{
    uvec4 r = row_quad(w, k);
    return read_x(args.x_offset + w.start + r, row_live(r, w.end), 0.0);
}

vec4 dy_of(row_work w, uint k)
{
    uvec4 r = row_quad(w, k);
    return read_dy(args.dy_offset + w.start + r, row_live(r, w.end), 0.0);
}

void main()
{
    row_work set = row_whole(), w = row_of_set(set, 0u);
    float count = float(args.rows.extent), pivot = pivot_of(w);
    vec4 v[QUADS], u[QUADS], total[QUADS], shift[QUADS], next[QUADS];
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        total[k] = shift[k] = vec4(0.0);
        v[k] = x_of(w, k);
    }
    for (uint i = 1u; i <= args.each; i++) {
        row_work after = row_of_set(set, i);
        float next_pivot = pivot_of(after), squares = 0.0, factor = 1.0;
        [[unroll]] for (uint k = 0u; k < QUADS; k++)
            u[k] = dy_of(w, k);
        if (AHEAD) {
            [[unroll]] for (uint k = 0u; k < QUADS; k++)
                next[k] = x_of(after, k);
        }
        [[dont_unroll]] for (uint turn = 0u; turn < 2u; turn++) { /* norm_held.glsl */
            float offset = 0.0, sum = 0.0;
            if (!IS_RMS) {
                [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                    v[k] = mix(vec4(0.0), v[k] - pivot, row_live(row_quad(w, k), w.end));
                    sum += sum_of_quad(v[k]);
                }
                offset = sum_of_lanes(sum, w.lane) / count;
            }
            squares = 0.0;
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                if (!IS_RMS)
                    v[k] = mix(vec4(0.0), v[k] - offset, row_live(row_quad(w, k), w.end));
                squares += dot(v[k], v[k]);
            }
            squares = squares_of_lanes(squares, w.lane);
            if (turn != 0u)
                break;
            if (w.end > 0u)
                factor = norm_factor(squares / count + args.eps, pivot);
            if (!row_vote(factor != 1.0, set))
                break;
            row_barrier();
            pivot = norm_scaled(pivot, factor);
            [[unroll]] for (uint k = 0u; k < QUADS; k++)
                v[k] = norm_scaled(x_of(w, k), factor);
        }
        float scale = norm_scale(squares / count, norm_eps(args.eps, factor));
        if (IS_RMS) /* the scratch is free again, as it is behind another tree */
            barrier();
        [[unroll]] for (uint k = 0u; k < QUADS; k++) {
            total[k] += u[k] * (v[k] * scale);
            if (BOTH)
                shift[k] += u[k];
            v[k] = AHEAD ? next[k] : x_of(after, k);
        }
        w = after;
        pivot = next_pivot;
    }
    uint to = args.sums_offset + group_index() * args.rows.extent * (BOTH ? 2u : 1u);
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = row_quad(set, k);
        bvec4 live = row_live(r, row_thread() < args.rows.lanes ? set.end : 0u);
        write_sums(to + r, live, sum_of_rows(total[k]));
        if (BOTH)
            write_sums(to + args.rows.extent + r, live, sum_of_rows(shift[k]));
    }
}
