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

float m[4][4];
int rows[4], columns[4];

/* Loads and scales a matrix. Returns whether it is finite. */
bool load(uint base)
{
    bool finite = true;
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        int largest = NO_EXPONENT;
        [[unroll]] for (uint j = 0u; j < 4u; j++) {
            m[i][j] = i == j ? 1.0 : 0.0;
            if (i < N && j < N) {
                m[i][j] = a[base + i * N + j];
                finite = finite && magnitude_bits(m[i][j]) < INFINITY_BITS;
                largest = max(largest, exponent_of(m[i][j]));
            }
        }
        rows[i] = i < N ? scale_exponent(largest) : 0;
    }
    [[unroll]] for (uint j = 0u; j < 4u; j++) {
        int largest = NO_EXPONENT;
        [[unroll]] for (uint i = 0u; i < 4u; i++)
            if (magnitude_bits(m[i][j]) != 0u)
                largest = max(largest, exponent_of(m[i][j]) - rows[i]);
        columns[j] = j < N ? scale_exponent(largest) : 0;
        [[unroll]] for (uint i = 0u; i < 4u; i++)
            m[i][j] = scaled(m[i][j], -rows[i] - columns[j]);
    }
    return finite;
}

/* The determinant of columns p and q in rows `row` and row + 1. It is exactly 0 if the rows are
 * equal. */
float minor_at(uint row, uint p, uint q)
{
    precise float left = m[row][p] * m[row + 1u][q], right = m[row][q] * m[row + 1u][p];
    return left - right;
}

/* The cofactor of row i, column j: the row beside i, expanded with minors of the other two rows. */
float cofactor(uint i, uint j)
{
    uint beside = i ^ 1u, others = (i & 2u) ^ 2u;
    uint p = j == 0u ? 1u : 0u, q = j <= 1u ? 2u : 1u, r = j <= 2u ? 3u : 2u;
    precise float first = m[beside][p] * minor_at(others, q, r);
    precise float second = m[beside][q] * minor_at(others, p, r);
    precise float third = m[beside][r] * minor_at(others, p, q);
    precise float sum = first - second + third;
    return ((i + j) & 1u) != 0u ? -sum : sum;
}

void main()
{
    uint matrix = global_index();
    if (matrix >= args.batch)
        return;
    uint base = args.a_offset + matrix * N * N, at = args.y_offset + matrix;
    bool finite = load(base);
    int exponent = 0;
    [[unroll]] for (uint i = 0u; i < N; i++)
        exponent += rows[i] + columns[i];
    if (MODE == DET_COFACTORS) {
        uint first = args.y_offset + matrix * N * N;
        [[unroll]] for (uint i = 0u; i < N; i++)
            [[unroll]] for (uint j = 0u; j < N; j++)
                y[first + i * N + j] =
                    finite || N == 1u ? scaled(cofactor(i, j), exponent - rows[i] - columns[j])
                                      : NAN_VALUE;
        return;
    }
    precise float sum = 0.0;
    [[unroll]] for (uint j = 0u; j < 4u; j++)
        sum += m[0][j] * cofactor(0u, j);
    if (!finite) {
        sum = N == 1u ? a[base] : NAN_VALUE;
        exponent = 0;
    }
    if (MODE == DET_LOGARITHM) {
        vec2 both = sign_and_logarithm(sum, exponent);
        y[at] = both.x;
        y[at + args.batch] = both.y;
    } else {
        y[at] = finite ? scaled(sum, exponent) : sum;
    }
}
