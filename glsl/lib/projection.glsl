/*
 * The prologue and epilogue of a projection, for kernels of one row of x. They declare PARTS,
 * `gamma`, `gamma4` and `residual` before they include this.
 *
 * If NORMALIZED, a kernel multiplies x by gamma when it loads x. It also adds the squares of x to
 * `squares`, each element once in the workgroup. The sum of all squares is reduced together with
 * the other sums, between the same barriers. It gives the `factor` of all outputs. If the sum does
 * not fit f32, each invocation computes it again from x times a power of two.
 *
 * If GATED, one invocation has the sums of two weight rows that are half the matrix apart.
 */
#include "args/projection.h"
#include "elementwise/activation.glsl"
#include "rows/norm_factor.glsl"

const bool NORMALIZED = (PARTS & PROJECTION_NORM) != 0;
const bool GATED = (PARTS & PROJECTION_GATED) != 0;

float squares = 0.0;
float factor = 1.0;  /* the factor of all sums */
float shrink = 1.0;  /* a power of two applied before it */

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

/* Defined by the includer: four elements of x, not yet multiplied by gamma. `element` and k are
 * multiples of four. */
vec4 projected_x(uint element);

/* For a row whose sum of squares does not fit f32. */
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

/* Computes the factor from the sum of the squares of k elements: 1 / sqrt(mean x^2 + epsilon). */
void set_factor(float sum, uint k, float epsilon)
{
    float v = sum / float(k) + epsilon;
    if (norm_factor(v, 0.0) != 1.0)
        set_factor_of_scaled(v, k, epsilon);
    else
        factor = inversesqrt(v);
}

/* The weight row that is number c of the `columns` rows that begin with output `first`. */
uint weight_row(uint first, uint c, uint columns, uint rows)
{
    return GATED ? first / 2 + c % (columns / 2) + c / (columns / 2) * (rows / 2) : first + c;
}

/* Output `index` of a row, from its sum. If GATED, `other` is the sum of the other half. */
float projected(float sum, float other, uint index)
{
    float value = factor * (shrink * sum);
    if (GATED) {
        float second = factor * (shrink * other);
        value = (PARTS & PROJECTION_GATE_FIRST) != 0 ? silu(value) * second : value * silu(second);
    }
    return (PARTS & PROJECTION_RESIDUAL) != 0 ? value + residual[index] : value;
}
