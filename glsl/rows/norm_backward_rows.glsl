/*
 * Input gradient of norms whose rows fit the registers of their lanes. A lane holds QUADS (constant
 * 3) times four elements of x and of dy. It reads both once and writes once. With d as the
 * deviations from the mean, one tree joins all sums over d. dx may be x or dy, because every lane
 * has read the pivot before any lane writes.
 *
 * If SUMS (constant 4) is true, the kernel writes sums of the chunks of longer rows instead. A
 * chunk has NORM_CHUNK_SUMS words: the mean (as a sum of two), the sums of d d, of w (0 for RMS
 * norm) and of w d, and the factor. Here d is the deviation from the chunk's own mean.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_backward_args args; };
#define ROW_TURNS
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

/* The first element of the row or chunk, or the first element of its aligned quads. `own` is the
 * first element that this lane holds. */
float first_element(float own, row_work w)
{
#ifdef ROW_SUBGROUPS
    if (args.rows.lanes <= gl_SubgroupSize)
        return subgroupShuffle(own, gl_SubgroupInvocationID & ~(args.rows.lanes - 1u));
#endif
    uint r = w.first + w.head;
    return r < w.end ? x[args.x_offset + w.start + r * args.rows.inner] : 0.0;
}

bool norm_strange(vec3 part, float count)
{
    return norm_strange(part.x, count, args.eps);
}
ROW_VOTE(vec3, norm_vote, scratch_of_sums, norm_strange)

void store_sums(row_work w, float pivot, float offset, vec3 sums, float factor)
{
    uint to = args.dx_offset + NORM_CHUNK_SUMS * w.o;
    if (w.live && w.lane == 0u) {
        dx[to] = pivot;
        dx[to + 1u] = offset;
        dx[to + 2u] = sums.x;
        dx[to + 3u] = IS_RMS ? 0.0 : sums.y;
        dx[to + 4u] = sums.z;
        dx[to + 5u] = factor;
    }
}

/*
 * The first turn is for ordinary rows, the second for rows whose squares do not fit f32 (see
 * norm_factor.glsl). If an ordinary row takes part in the second turn, nothing is written, because
 * its result was written in the first.
 */
void main()
{
    row_work w = SUMS ? row_part() : row_formed(row_whole(), args.x_offset);
    float count = float(SUMS ? w.end - w.first : args.rows.extent), pivot = 0.0, factor = 1.0;
    bool wanted = true;
    [[dont_unroll]] for (uint turn = 0u; turn < 2u; turn++) {
        float sum = 0.0, offset = 0.0;
        vec4 v[HELD], u[HELD];
        vec3 sums = vec3(0.0); /* of d d, w, w d */
        [[unroll]] for (uint k = 0u; k < HELD; k++) {
            uvec4 r = w.first + row_quad(w, k), at = w.start + r * args.rows.inner;
            bvec4 live = row_live(r, w.end);
            v[k] = read_x(args.x_offset + at, live, 0.0);
            u[k] = weighted(w.o, at, r, live);
        }
        if (turn > 0u) {
            [[unroll]] for (uint k = 0u; k < HELD; k++)
                v[k] = norm_scaled(v[k], factor);
        }
        if (!IS_RMS) {
            pivot = turn > 0u ? norm_scaled(pivot, factor) : first_element(v[0].x, w);
            [[unroll]] for (uint k = 0u; k < HELD; k++) {
                bvec4 live = row_live(w.first + row_quad(w, k), w.end);
                sum += sum_of_quad(mix(vec4(0.0), v[k] - pivot, live));
            }
            offset = sum_of_lanes(sum, w.lane) / count;
        }
        [[unroll]] for (uint k = 0u; k < HELD; k++) {
            bvec4 live = row_live(w.first + row_quad(w, k), w.end);
            if (!IS_RMS)
                v[k] = mix(vec4(0.0), (v[k] - pivot) - offset, live);
            sums += vec3(dot(v[k], v[k]), sum_of_quad(u[k]), dot(u[k], v[k]));
        }
        sums = sums_of_lanes(sums, w.lane);
        bool strange = norm_strange(sums, float(args.rows.chunk_length));
        if (SUMS) {
            if (wanted)
                store_sums(w, pivot, offset, sums, factor);
        } else {
            uint end = wanted && (turn > 0u || !strange) ? w.end : 0u;
            float scale = norm_scale(sums.x / count, norm_eps(args.eps, factor));
            float mean = IS_RMS ? 0.0 : sums.y / count, pull = sums.z / count * scale;
            [[unroll]] for (uint k = 0u; k < HELD; k++) {
                uvec4 r = row_quad(w, k);
                vec4 result = ((u[k] - mean) - v[k] * scale * pull) * (scale * factor);
                write_dx(args.dx_offset + w.start + r * args.rows.inner, row_live(r, end), result);
            }
        }
        if (turn > 0u)
            return;
        if (!norm_turns_again(norm_vote(sums, float(args.rows.chunk_length))))
            return;
        wanted = strange;
        factor = w.live ? norm_factor(sums.x / count + args.eps, pivot) : 1.0;
        row_barrier();
    }
}
