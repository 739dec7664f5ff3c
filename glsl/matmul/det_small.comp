#version 450
/*
 * Determinants or cofactors of matrices up to 4 x 4, one matrix per invocation, by products of 2 x
 * 2 minors. Small integers give exact results. Smaller matrices are filled up with ones on the
 * diagonal.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"

layout(constant_id = 1) const uint N = 1u;
layout(constant_id = 2) const uint MODE = 0u;

#include "matmul/det.glsl"

layout(push_constant) uniform block { det_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float a[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float y[]; };

/* mantissa 2^exponent. No product or sum of these leaves the range. The mantissa of 0 is 0. */
struct wide {
    float mantissa;
    int exponent;
};

wide m[4][4];

wide wide_of(float v)
{
    int exponent;
    if (magnitude_bits(v) == 0u)
        return wide(0.0, NO_EXPONENT);
    float mantissa = split_magnitude(v, exponent);
    return wide(with_sign(floatBitsToUint(mantissa), floatBitsToUint(v)), exponent);
}

wide times(wide a, wide b)
{
    precise float product = a.mantissa * b.mantissa;
    return wide(product, max(a.exponent + b.exponent, NO_EXPONENT));
}

/* a + sign b. A term below 2^-200 of the other one is lost. */
wide plus(wide a, float sign, wide b)
{
    int exponent = max(a.exponent, b.exponent);
    precise float sum = scaled(a.mantissa, a.exponent - exponent) +
                        sign * scaled(b.mantissa, b.exponent - exponent);
    return magnitude_bits(sum) == 0u ? wide(0.0, NO_EXPONENT) : wide(sum, exponent);
}

/* Loads a matrix. Returns whether it is finite. */
bool load(uint base)
{
    bool finite = true;
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        [[unroll]] for (uint j = 0u; j < 4u; j++) {
            m[i][j] = i == j ? wide(1.0, 0) : wide(0.0, NO_EXPONENT);
            if (i < N && j < N) {
                float v = a[base + i * N + j];
                finite = finite && magnitude_bits(v) < INFINITY_BITS;
                m[i][j] = wide_of(v);
            }
        }
    return finite;
}

/* The minors of rows 0 and 1, and of rows 2 and 3. */
wide minors[2][6];

/* The place of columns p < q. */
uint pair_of(uint p, uint q)
{
    return p == 0u ? q - 1u : p + q;
}

/* A minor is exactly 0 if its rows are equal. */
void find_minors()
{
    [[unroll]] for (uint row = 0u; row < 4u; row += 2u)
        [[unroll]] for (uint p = 0u; p < 3u; p++)
            [[unroll]] for (uint q = p + 1u; q < 4u; q++)
                minors[row / 2u][pair_of(p, q)] =
                    plus(times(m[row][p], m[row + 1u][q]), -1.0,
                         times(m[row][q], m[row + 1u][p]));
}

/* The cofactor of row i, column j: the row beside i, expanded with minors of the other two rows. */
wide cofactor(uint i, uint j)
{
    uint beside = i ^ 1u, others = 1u - i / 2u;
    uint p = j == 0u ? 1u : 0u, q = j <= 1u ? 2u : 1u, r = j <= 2u ? 3u : 2u;
    wide first = times(m[beside][p], minors[others][pair_of(q, r)]);
    wide second = times(m[beside][q], minors[others][pair_of(p, r)]);
    wide third = times(m[beside][r], minors[others][pair_of(p, q)]);
    wide sum = plus(plus(first, -1.0, second), 1.0, third);
    return wide(((i + j) & 1u) != 0u ? -sum.mantissa : sum.mantissa, sum.exponent);
}

void main()
{
    uint matrix = global_index();
    if (matrix >= args.batch)
        return;
    uint base = args.a_offset + matrix * N * N, at = args.y_offset + matrix;
    bool finite = load(base);
    find_minors();
    if (MODE == DET_COFACTORS) {
        uint first = args.y_offset + matrix * N * N;
        [[unroll]] for (uint i = 0u; i < N; i++)
            [[unroll]] for (uint j = 0u; j < N; j++) {
                wide c = cofactor(i, j);
                y[first + i * N + j] =
                    finite || N == 1u ? scaled(c.mantissa, c.exponent) : NAN_VALUE;
            }
        return;
    }
    wide sum = wide(0.0, NO_EXPONENT);
    [[unroll]] for (uint j = 0u; j < 4u; j++)
        sum = plus(sum, 1.0, times(m[0][j], cofactor(0u, j)));
    if (!finite)
        sum = wide(N == 1u ? a[base] : NAN_VALUE, 0);
    if (MODE == DET_LOGARITHM) {
        vec2 both = sign_and_logarithm(sum.mantissa, sum.exponent);
        y[at] = both.x;
        y[at + args.batch] = both.y;
    } else {
        y[at] = finite ? scaled(sum.mantissa, sum.exponent) : sum.mantissa;
    }
}
