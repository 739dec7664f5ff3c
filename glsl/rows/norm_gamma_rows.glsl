/*
 * Column sums of dy xhat over `each` consecutive rows. The sums of rows that are side by side in a
 * workgroup are added up. Rows are contiguous in memory and fit the registers of their lanes: QUADS
 * (constant 3) times four elements of x, of dy and of the sums. The kernel reads x and dy once and
 * computes the statistics on the way. A lane keeps its columns for all rows. If AHEAD (constant 4)
 * is true, it loads x of the next row meanwhile.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint FLAGS = 0;
layout(constant_id = 2) const uint FORM = ROW_FORM_WORDS;
layout(constant_id = 3) const uint QUADS = 1;
layout(constant_id = 4) const bool AHEAD = false;
layout(push_constant) uniform block { norm_gamma_args args; };
#include "lib/rows.glsl"
#include "lib/row_quads.glsl"
#include "rows/norm_moments.glsl"
QUAD_INPUT(0, x, true)
QUAD_INPUT(1, dy, true)
QUAD_KEPT(2, sums)

/* Also sum dy, and store these sums behind those of dy xhat. */
const bool BOTH = (FLAGS & NORM_HAS_BETA) != 0u;
const bool IS_RMS = (FLAGS & NORM_IS_RMS) != 0u;

ROW_TREE(float, sum_of_lanes, scratch, row_add)
ROW_TREE(float, squares_of_lanes, scratch_of_squares, row_add)

shared vec4 columns[ROW_THREADS];

/*
 * The sum over the rows that are side by side in the workgroup. Only the first row's lanes get it.
 */
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

/* Whether v is true for any of the rows that are side by side in the workgroup. */
bool any_of_rows(bool v)
{
    if (args.rows.lanes == gl_WorkGroupSize.x)
        return v;
    columns[row_thread()].x = v ? 1.0 : 0.0;
    barrier();
    float any = 0.0;
    for (uint first = 0u; first < gl_WorkGroupSize.x; first += args.rows.lanes)
        any += columns[first].x;
    return any > 0.0;
}

/* Row i of this thread's rows. The row is empty if there are no more. */
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

/* Quad k of a row times factor, as deviations from pivot + offset. Missing elements give 0. */
vec4 again_deviation(row_work w, uint k, float factor, float pivot, float offset)
{
    vec4 v = norm_scaled(x_of(w, k), factor);
    return IS_RMS ? v : mix(vec4(0.0), (v - pivot) - offset, row_live(row_quad(w, k), w.end));
}

/* The sum of squares of a row times factor, and the offset of its mean from the pivot. */
float squares_again(row_work w, float factor, float pivot, out float offset)
{
    float sum = 0.0, squares = 0.0;
    offset = 0.0;
    row_barrier();
    if (!IS_RMS) {
        [[dont_unroll]] for (uint k = 0u; k < QUADS; k++)
            sum += sum_of_quad(again_deviation(w, k, factor, pivot, 0.0));
        offset = sum_of_lanes(sum, w.lane) / float(args.rows.extent);
    }
    [[dont_unroll]] for (uint k = 0u; k < QUADS; k++) {
        vec4 d = again_deviation(w, k, factor, pivot, offset);
        squares += dot(d, d);
    }
    return squares_of_lanes(squares, w.lane);
}

/* Writes the sums. If `more`, it adds to the sums already written. */
void add_sums(uvec4 at, bvec4 live, vec4 v, bool more)
{
    v = sum_of_rows(v);
    if (more)
        v += read_sums(at, live, 0.0);
    write_sums(at, live, v);
}

/* Recomputes all sums of the workgroup, if squares of a row do not fit f32 (see norm_factor.glsl).
 * The rows are read again, and the sums are accumulated in memory. */
void sum_again(row_work set, uint to)
{
    float count = float(args.rows.extent);
    [[dont_unroll]] for (uint i = 0u; i < args.each; i++) {
        row_work w = row_of_set(set, i);
        float pivot = pivot_of(w), factor = 1.0, offset;
        float squares = squares_again(w, factor, pivot, offset);
        if (w.end > 0u)
            factor = norm_factor(squares / count + args.eps, pivot);
        pivot = norm_scaled(pivot, factor);
        squares = squares_again(w, factor, pivot, offset);
        float scale = norm_scale(squares / count, norm_eps(args.eps, factor));
        [[dont_unroll]] for (uint k = 0u; k < QUADS; k++) {
            uvec4 r = row_quad(set, k);
            bvec4 live = row_live(r, row_thread() < args.rows.lanes ? set.end : 0u);
            vec4 u = dy_of(w, k), d = again_deviation(w, k, factor, pivot, offset);
            add_sums(to + r, live, u * (d * scale), i > 0u);
            if (BOTH)
                add_sums(to + args.rows.extent + r, live, u, i > 0u);
        }
    }
}

void main()
{
    row_work set = row_whole(), w = row_of_set(set, 0u);
    float count = float(args.rows.extent), pivot = pivot_of(w);
    bool strange = false; /* whether a row may need a factor */
    vec4 v[QUADS], u[QUADS], total[QUADS], shift[QUADS], next[QUADS];
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        total[k] = shift[k] = vec4(0.0);
        v[k] = x_of(w, k);
    }
    for (uint i = 1u; i <= args.each; i++) {
        row_work after = row_of_set(set, i);
        float next_pivot = pivot_of(after), offset = 0.0, sum = 0.0, squares = 0.0;
        [[unroll]] for (uint k = 0u; k < QUADS; k++)
            u[k] = dy_of(w, k);
        if (AHEAD) {
            [[unroll]] for (uint k = 0u; k < QUADS; k++)
                next[k] = x_of(after, k);
        }
        if (!IS_RMS) {
            [[unroll]] for (uint k = 0u; k < QUADS; k++) {
                v[k] = mix(vec4(0.0), v[k] - pivot, row_live(row_quad(w, k), w.end));
                sum += sum_of_quad(v[k]);
            }
            offset = sum_of_lanes(sum, w.lane) / count;
        }
        [[unroll]] for (uint k = 0u; k < QUADS; k++) {
            if (!IS_RMS)
                v[k] = mix(vec4(0.0), v[k] - offset, row_live(row_quad(w, k), w.end));
            squares += dot(v[k], v[k]);
        }
        squares = squares_of_lanes(squares, w.lane);
        strange = strange || (w.end > 0u && norm_strange(squares, count, args.eps));
        float scale = norm_scale(squares / count, args.eps);
        if (IS_RMS) /* RMS norm has no second tree that would make this one's scratch free again */
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
    if (any_of_rows(strange)) {
        sum_again(set, to);
        return;
    }
    [[unroll]] for (uint k = 0u; k < QUADS; k++) {
        uvec4 r = row_quad(set, k);
        bvec4 live = row_live(r, row_thread() < args.rows.lanes ? set.end : 0u);
        write_sums(to + r, live, sum_of_rows(total[k]));
        if (BOTH)
            write_sums(to + args.rows.extent + r, live, sum_of_rows(shift[k]));
    }
}
