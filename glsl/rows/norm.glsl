/*
 * Shared by the norm kernels: the value to normalize (x, plus the residual, plus the bias, in this
 * order) and the rule. FLAGS (specialization constant 1) is a set of NORM_ bits.
 *
 * Layer norm takes the mean, then the squares of the deviations from it. The mean is kept as two
 * numbers that are never added: a pivot and an offset from it. If they were added, a deviation
 * smaller than the sum's last place would be lost. The pivot is an element of the row, so that in a
 * constant row every deviation is exactly zero. RMS norm uses a mean of zero.
 */
layout(constant_id = 1) const uint FLAGS = 0;
layout(constant_id = 2) const uint FORM = ROW_FORM_WORDS;

#include "args/rows.h"
#ifdef NORM_HOLDS
layout(constant_id = 3) const uint QUADS = 1;
layout(constant_id = 4) const bool LONG = false;
#include "lib/row_forms.glsl"
#else
const uint QUADS = NORM_CHUNK_ELEMENTS / 4u, HELD = QUADS;
const bool LONG = false;
#endif
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, true)
QUAD_INPUT(1, residual, true)
QUAD_INPUT(2, bias, !RAGGED)

#include "rows/norm_moments.glsl"

const bool IS_RMS = (FLAGS & NORM_IS_RMS) != 0u;

/* Elements r of a vector that is as long as a row. */
#ifdef NORM_HOLDS
SHIFTED_INPUT(bias)
#define NORM_VECTOR(name, r, live)                                                                 \
    (RAGGED ? shifted_##name((r), live, args.name##_offset, args.rows.extent)                      \
            : read_##name(args.name##_offset + (r), live, 0.0))
#else
#define NORM_VECTOR(name, r, live) read_##name(args.name##_offset + (r), live, 0.0)
#endif

/* x + residual, read at index `at` of both. The bias is added later because the kept sum does not
 * include it. */
vec4 residual_sum(uvec4 at, bvec4 live)
{
#ifdef NORM_HOLDS
    if (SPAN)
        return span_read(at, live, 0.0);
#endif
    vec4 v = read_x(args.x_offset + at, live, 0.0);
    if ((FLAGS & NORM_HAS_RESIDUAL) != 0u)
        v += read_residual(args.residual_offset + at, live, 0.0);
    return v;
}

vec4 with_bias(vec4 v, uvec4 r, bvec4 live)
{
    if ((FLAGS & NORM_HAS_BIAS) != 0u)
        v += NORM_VECTOR(bias, r, live);
    return v;
}

/* Elements r of the row of x + residual + bias. */
vec4 normed_quad(row_work w, uvec4 r, bvec4 live)
{
    return with_bias(residual_sum(w.start + r * args.rows.inner, live), r, live);
}

/* Adds four elements to the moments (count, mean, sum of squared deviations from the mean). */
void join_quad(inout vec3 all, vec4 v)
{
    float mean = 0.25 * ((v.x + v.y) + (v.z + v.w)), apart = mean - all.y, count = all.x + 4.0;
    float share = 4.0 / count;
    vec4 deviation = v - mean;
    all.z += dot(deviation, deviation) + apart * apart * (all.x * share);
    all.y += apart * share;
    all.x = count;
}
