/*
 * Input gradient of norms whose rows fit the registers of their lanes, QUADS (constant 3) times
 * four elements of x and of dy each: one read of both, one write. With d the deviations from the
 * mean, all sums over d are joined at once. dx may be x or dy: the pivot is known to every lane
 * before any writes.
 *
 * SUMS (constant 4): of chunks of longer rows, in their stead, NORM_CHUNK_SUMS words each: mean, as
 * a sum of two, the sums of d d, of w (0: rms) and of w d, d from the chunk's own mean, and their
 * factor.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_backward_args args; };
#define ROW_VOTES
#include "lib/rows.glsl"
#include "rows/norm_backward.glsl"
layout(constant_id = 4) const bool SUMS = false;
QUAD_OUTPUT(3, dx)

vec3 add_sums(vec3 a, vec3 b)
{
    return a + b;
}
ROW_TREE(float, sum_of_lanes, scratch, row_add)
ROW_TREE(vec3, sums_of_lanes, scratch_of_sums, add_sums)

/* The first element of the row (chunk), or of its quads; `own`: the first this lane holds. */
float first_element(float own, row_work w)
{
#ifdef ROW_SUBGROUPS
    if (args.rows.lanes <= gl_SubgroupSize)
        return subgroupShuffle(own, gl_SubgroupInvocationID & ~(args.rows.lanes - 1u));
#endif
    uint r = w.first + w.head;
    return r < w.end ? x[args.x_offset + w.start + r * args.rows.inner] : 0.0;
}

void main()
{
    row_work w = SUMS ? row_part() : row_formed(row_whole(), args.x_offset);
    float count = float(SUMS ? w.end - w.first : args.rows.extent);
    float pivot = 0.0, offset = 0.0, factor = 1.0;
    vec4 v[HELD], u[HELD];
    vec3 sums; /* of d d, w, w d */
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = w.first + row_quad(w, k), at = w.start + r * args.rows.inner;
        bvec4 live = row_live(r, w.end);
        v[k] = read_x(args.x_offset + at, live, 0.0);
        u[k] = weighted(w.o, at, r, live);
    }
    if (!IS_RMS)
        pivot = first_element(v[0].x, w);
    [[dont_unroll]] for (uint turn = 0u; turn < 2u; turn++) { /* norm_held.glsl */
        if (!IS_RMS) {
            float sum = 0.0;
            [[unroll]] for (uint k = 0u; k < HELD; k++) {
                bvec4 live = row_live(w.first + row_quad(w, k), w.end);
                sum += sum_of_quad(mix(vec4(0.0), v[k] - pivot, live));
            }
            offset = sum_of_lanes(sum, w.lane) / count;
        }
        sums = vec3(0.0);
        [[unroll]] for (uint k = 0u; k < HELD; k++) {
            bvec4 live = row_live(w.first + row_quad(w, k), w.end);
            if (!IS_RMS)
                v[k] = mix(vec4(0.0), (v[k] - pivot) - offset, live);
            sums += vec3(dot(v[k], v[k]), sum_of_quad(u[k]), dot(u[k], v[k]));
        }
        sums = sums_of_lanes(sums, w.lane);
        if (turn != 0u)
            break;
        if (w.live)
            factor = norm_factor(sums.x / count + args.eps, pivot);
        if (!row_vote(factor != 1.0, w))
            break;
        row_barrier();
        pivot = norm_scaled(pivot, factor);
        [[unroll]] for (uint k = 0u; k < HELD; k++) {
            uvec4 r = w.first + row_quad(w, k), at = w.start + r * args.rows.inner;
            v[k] = norm_scaled(read_x(args.x_offset + at, row_live(r, w.end), 0.0), factor);
        }
    }
    if (SUMS) {
        uint to = args.dx_offset + NORM_CHUNK_SUMS * w.o;
        if (w.live && w.lane == 0u) {
            dx[to] = pivot;
            dx[to + 1u] = offset;
            dx[to + 2u] = sums.x;
            dx[to + 3u] = IS_RMS ? 0.0 : sums.y;
            dx[to + 4u] = sums.z;
            dx[to + 5u] = factor;
        }
        return;
    }
    float scale = norm_scale(sums.x / count, norm_eps(args.eps, factor));
    float mean = IS_RMS ? 0.0 : sums.y / count, pull = sums.z / count * scale;
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uvec4 r = row_quad(w, k);
        vec4 result = ((u[k] - mean) - v[k] * scale * pull) * (scale * factor);
        write_dx(args.dx_offset + w.start + r * args.rows.inner, row_live(r, w.end), result);
    }
}
