#version 450
/*
 * The determinant from the factors P A = L U of the scaled matrix: the product of the pivots. Their
 * mantissas are multiplied and their exponents added. One workgroup takes one matrix. `pivots` is
 * that of lu.glsl.
 *
 * The first pivot that is not an ordinary number decides. If it is 0 or a denormal, so is the
 * determinant beside the scale. If it is not finite, growth has overflowed: NaN.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "matmul/det.glsl"

layout(constant_id = 1) const uint MODE = 0u;

layout(push_constant) uniform block { det_args args; };
layout(set = 0, binding = 0) restrict readonly buffer factor_view { float factors[]; };
layout(set = 0, binding = 1) restrict readonly buffer pivot_view { uint pivots[]; };
layout(set = 0, binding = 2) restrict readonly buffer exponent_view { int exponents[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float y[]; };

const uint LANES = gl_WorkGroupSize.x;
const uint GOOD = 0xffffffffu;
shared float products[LANES];
shared int sums[LANES];
shared uint bad[LANES]; /* twice the first such pivot's number, + 1 if it is not finite */

void take_own(uint matrix)
{
    uint lane = gl_LocalInvocationID.x, base = exponent_base(args.n, matrix), first = GOOD;
    float product = 1.0;
    int sum = 0, exponent;
    for (uint k = lane; k < args.n; k += LANES) {
        float pivot = factors[(matrix * args.n + k) * args.n + k];
        uint bits = magnitude_bits(pivot), sign = floatBitsToUint(pivot);
        sum += exponents[base + k] + exponents[base + args.n + k];
        if (bits < SMALLEST_BITS || bits >= INFINITY_BITS) {
            first = min(first, 2u * k + (bits >= INFINITY_BITS ? 1u : 0u));
            continue;
        }
        if (pivots[base + k] != k) /* as many words as exponents */
            sign ^= SIGN_BIT;
        float mantissa = split_magnitude(pivot, exponent);
        product *= with_sign(floatBitsToUint(mantissa), sign);
        sum += exponent;
        if (abs(product) >= 2.0) {
            product *= 0.5;
            sum++;
        }
    }
    products[lane] = product;
    sums[lane] = sum;
    bad[lane] = first;
}

void main()
{
    uint matrix = group_index(), lane = gl_LocalInvocationID.x;
    if (matrix >= args.batch)
        return;
    take_own(matrix);
    for (uint width = LANES / 2u; width > 0u; width /= 2u) {
        barrier();
        if (lane < width) {
            products[lane] *= products[lane + width]; /* below 2^64: at most 64 lanes */
            sums[lane] += sums[lane + width];
            bad[lane] = min(bad[lane], bad[lane + width]);
        }
    }
    if (lane != 0u)
        return;
    float v = products[0];
    bool finite = exponents[exponent_base(args.n, matrix) + 2u * args.n] == 0;
    if (bad[0] != GOOD)
        v = (bad[0] & 1u) != 0u ? NAN_VALUE : 0.0;
    if (!finite)
        v = NAN_VALUE;
    if (MODE == DET_LOGARITHM) {
        vec2 both = sign_and_logarithm(v, sums[0]);
        y[args.y_offset + matrix] = both.x;
        y[args.y_offset + args.batch + matrix] = both.y;
    } else {
        y[args.y_offset + matrix] = is_nan(v) ? v : scaled(v, sums[0]);
    }
}
