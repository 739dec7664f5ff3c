/*
 * Shared by the kernels of cofactors: P S Q = L D W with complete pivoting, in place. Nothing is
 * exchanged. Element (row of step q, column of step k) holds L D below the diagonal, D on it, and D
 * W above. For every matrix `order` holds:
 *
 * - [n] the row of each step
 * - [n] the column of each step
 * - [n] the step of each row; UNUSED before it has one
 * - [n] the step of each column
 * - [n] 1 / pivot of each step, as bits of a float; 0 if the pivot counts as 0
 * - [n] the product of the other pivots, times the sign of the permutations, likewise; for an
 *   inverse, 1 / pivot again
 * - [2 n + 1] the exponents of det.glsl, with its flag; for an inverse, also of a pivot that is 0
 * - [1] the exponent of all these products, with that of the scale; 0 for an inverse
 */
#include "matmul/det.glsl"

#define UNUSED 0xffffffffu

layout(push_constant) uniform block { cofactor_args args; };

uint order_base(uint matrix)
{
    return matrix * COFACTOR_WORDS(args.n);
}

/* 1 / pivot. Denormals beside the scale count as 0. */
float inverse_of(float pivot)
{
    return magnitude_bits(pivot) < SMALLEST_BITS ? 0.0 : 1.0 / pivot;
}

/* The larger of two (magnitude bits, element). Ties go to the first element. */
uvec2 better(uvec2 a, uvec2 b)
{
    return b.x > a.x || (b.x == a.x && b.y < a.y) ? b : a;
}

#define NO_ELEMENT uvec2(0u, 0xffffffffu)

shared uvec2 best[gl_WorkGroupSize.x];

/* The best of all lanes' own. All lanes must call it. */
uvec2 best_of_lanes(uvec2 own)
{
    uint lane = gl_LocalInvocationID.x;
    best[lane] = own;
    for (uint width = gl_WorkGroupSize.x / 2u; width > 0u; width /= 2u) {
        barrier();
        if (lane < width)
            best[lane] = better(best[lane], best[lane + width]);
    }
    barrier();
    return best[0];
}
