#version 450
/*
 * For each step: the inverse of its pivot, and the product of the other pivots. The products share
 * an exponent, that of the largest one. The sign of the permutations is that of the number of pairs
 * in the wrong order. Exponents are copied, so that the next kernel has only four buffers. One
 * workgroup takes one matrix. For an inverse, there are only the inverses of the pivots.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "matmul/cofactor.glsl"

layout(set = 0, binding = 0) restrict readonly buffer factor_view { float factors[]; };
layout(set = 0, binding = 1) coherent buffer order_view { uint order[]; };
layout(set = 0, binding = 2) restrict readonly buffer exponent_view { int exponents[]; };

const uint LANES = gl_WorkGroupSize.x;
shared int sums[LANES], largest[LANES];
shared uint wrong[LANES];

float pivot_at(uint matrix, uint step)
{
    uint base = order_base(matrix);
    uint row = order[base + step], column = order[base + args.n + step];
    return factors[(matrix * args.n + row) * args.n + column];
}

/* The product of all pivots but this one, as mantissa and exponent; 0 if one counts as 0. */
float product_without(uint matrix, uint step, out int exponent)
{
    float product = 1.0;
    exponent = 0;
    for (uint k = 0u; k < args.n; k++) {
        float pivot = pivot_at(matrix, k);
        int own;
        if (k == step)
            continue;
        if (magnitude_bits(pivot) < SMALLEST_BITS)
            return 0.0;
        float mantissa = split_magnitude(pivot, own);
        product *= with_sign(floatBitsToUint(mantissa), floatBitsToUint(pivot));
        exponent += own;
        if (abs(product) >= 2.0) {
            product *= 0.5;
            exponent++;
        }
    }
    return product;
}

/* Pairs (step, later step) whose rows or columns are in the wrong order. */
uint wrong_pairs(uint base, uint step)
{
    uint count = 0u, row = order[base + step], column = order[base + args.n + step];
    for (uint k = step + 1u; k < args.n; k++) {
        count += order[base + k] < row ? 1u : 0u;
        count += order[base + args.n + k] < column ? 1u : 0u;
    }
    return count;
}

/* The sums of sums[] and wrong[], and the largest of largest[]. All lanes must call it. */
void join_lanes()
{
    uint lane = gl_LocalInvocationID.x;
    for (uint width = LANES / 2u; width > 0u; width /= 2u) {
        barrier();
        if (lane < width) {
            sums[lane] += sums[lane + width];
            wrong[lane] += wrong[lane + width];
            largest[lane] = max(largest[lane], largest[lane + width]);
        }
    }
    barrier();
}

/* Notes the inverses of the pivots, and counts pivots that are 0. */
void invert_pivots(uint matrix)
{
    uint base = order_base(matrix), n = args.n;
    for (uint k = gl_LocalInvocationID.x; k < n; k += LANES) {
        float inverse = inverse_of(pivot_at(matrix, k));
        wrong[gl_LocalInvocationID.x] += inverse == 0.0 ? 1u : 0u;
        order[base + 4u * n + k] = floatBitsToUint(inverse);
        order[base + 5u * n + k] = floatBitsToUint(inverse);
    }
    join_lanes();
}

void multiply_others(uint matrix)
{
    uint lane = gl_LocalInvocationID.x, n = args.n;
    uint base = order_base(matrix), scale = exponent_base(n, matrix);
    int exponent;
    for (uint k = lane; k < n; k += LANES) {
        float product = product_without(matrix, k, exponent);
        sums[lane] += exponents[scale + k] + exponents[scale + n + k];
        wrong[lane] += wrong_pairs(base, k);
        largest[lane] = max(largest[lane], product == 0.0 ? NO_EXPONENT : exponent);
        order[base + 4u * n + k] = floatBitsToUint(inverse_of(pivot_at(matrix, k)));
        order[base + 5u * n + k] = floatBitsToUint(product);
    }
    join_lanes();
    /* The products are made again, because a lane may have many. */
    for (uint k = lane; k < n; k += LANES) {
        float product = product_without(matrix, k, exponent);
        if (wrong[0] % 2u != 0u)
            product = -product;
        order[base + 5u * n + k] = floatBitsToUint(scaled(product, exponent - largest[0]));
    }
}

void main()
{
    uint matrix = group_index(), lane = gl_LocalInvocationID.x, n = args.n;
    if (matrix >= args.batch)
        return;
    uint base = order_base(matrix), scale = exponent_base(n, matrix);
    bool inverse = args.inverse != 0u;
    sums[lane] = 0;
    wrong[lane] = 0u;
    largest[lane] = NO_EXPONENT;
    if (inverse)
        invert_pivots(matrix);
    else
        multiply_others(matrix);
    for (uint k = lane; k < 2u * n; k += LANES)
        order[base + 6u * n + k] = uint(exponents[scale + k]);
    if (lane != 0u)
        return;
    uint flag = uint(exponents[scale + 2u * n]);
    order[base + 8u * n] = inverse && wrong[0] != 0u ? 1u : flag;
    order[base + 8u * n + 1u] = inverse ? 0u : uint(largest[0] + sums[0]);
}
