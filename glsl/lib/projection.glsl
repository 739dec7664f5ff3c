/*
 * The parts of a projection, for kernels of one row of x: they declare PARTS, `gamma`, `gamma4` and
 * `residual` first. A kernel multiplies x by gamma as it brings it, and adds what it brought to
 * `squares`, each element once in the workgroup; the sum of all squares is made beside the other
 * sums, between barriers that those need anyway, and gives the `factor` of all of them. Where it
 * does not fit f32, the squares of x times a power of two are added up again, by each invocation.
 * Of a pair of weight rows half the matrix apart one invocation has both sums, where GATED.
 */
#include "args/projection.h"
#include "elementwise/activation.glsl"
#include "rows/norm_factor.glsl"

const bool NORMALIZED = (PARTS & PROJECTION_NORM) != 0;
const bool GATED = (PARTS & PROJECTION_GATED) != 0;

float squares = 0.0;
float factor = 1.0;  /* of all sums */
float shrink = 1.0;  /* a power of two before that */

void add_squares(vec4 v)
{
    squares += dot(v, v);
}

vec4 load_gamma(uint element, bool aligned)
{
    if (aligned)
        return gamma4[element >> 2];
    return vec4(gamma[element], gamma[element + 1], gamma[element + 2], gamma[element + 3]);
}

/* By the includer: four elements of x that are not multiplied by gamma yet, from a multiple of four
 * on; k is one. */
vec4 projected_x(uint element);

/* Of a row whose squares do not fit f32. */
void set_factor_of_scaled(float v, uint k, float epsilon)
{
    float sum = 0.0;
    shrink = norm_factor(v, 0.0);
    for (uint i = 0u; i < k; i += 4u) {
        vec4 a = norm_scaled(projected_x(i), shrink);
        sum += dot(a, a);
    }
    factor = norm_scale(sum / float(k), norm_eps(epsilon, shrink));
}

/* The factor from the sum of all squares of k elements: 1 / sqrt(mean x^2 + epsilon). */
void set_factor(float sum, uint k, float epsilon)
{
    float v = sum / float(k) + epsilon;
    if (norm_factor(v, 0.0) != 1.0)
        set_factor_of_scaled(v, k, epsilon);
    else
        factor = inversesqrt(v);
}

/* Which weight row is the c-th of `columns` that begin with output first. */
uint weight_row(uint first, uint c, uint columns, uint rows)
{
    return GATED ? first / 2 + c % (columns / 2) + c / (columns / 2) * (rows / 2) : first + c;
}

/* The output `index` of a row from the sum, and from that of the other half where GATED. */
float projected(float sum, float other, uint index)
{
    float value = factor * (shrink * sum);
    if (GATED) {
        float second = factor * (shrink * other);
        value = (PARTS & PROJECTION_GATE_FIRST) != 0 ? silu(value) * second : value * silu(second);
    }
    return (PARTS & PROJECTION_RESIDUAL) != 0 ? value + residual[index] : value;
}
