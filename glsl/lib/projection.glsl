/*
 * The parts of a projection, for kernels of one row of x: they declare PARTS, `gamma`, `gamma4` and
 * `residual` first. A kernel multiplies x by gamma as it brings it, and adds what it brought to
 * `squares`, each element once in the workgroup; the sum of all squares is made beside the other
 * sums, between barriers that those need anyway, and gives the `factor` of all of them. Of a pair
 * of weight rows half the matrix apart one invocation has both sums, where GATED.
 */
#include "args/projection.h"
#include "elementwise/activation.glsl"

const bool NORMALIZED = (PARTS & PROJECTION_NORM) != 0;
const bool GATED = (PARTS & PROJECTION_GATED) != 0;

float squares = 0.0;
float factor = 1.0; /* of all sums */

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

/* The factor from the sum of all squares of k elements: 1 / sqrt(mean x^2 + epsilon). */
void set_factor(float sum, uint k, float epsilon)
{
    float v = sum / float(k) + epsilon;
    factor = v == 0.0 || is_inf(v) ? 0.0 : inversesqrt(v);
}

/* Which weight row is the c-th of `columns` that begin with output first. */
uint weight_row(uint first, uint c, uint columns, uint rows)
{
    return GATED ? first / 2 + c % (columns / 2) + c / (columns / 2) * (rows / 2) : first + c;
}

/* The output `index` of a row from the sum, and from that of the other half where GATED. */
float projected(float sum, float other, uint index)
{
    float value = factor * sum;
    if (GATED) {
        float second = factor * other;
        value = (PARTS & PROJECTION_GATE_FIRST) != 0 ? silu(value) * second : value * silu(second);
    }
    return (PARTS & PROJECTION_RESIDUAL) != 0 ? value + residual[index] : value;
}
