/*
 * Binary and compare ops on one pair of elements. `code` is BINARY_.. or COMPARE_... Pass a
 * specialization constant as the code, so that only one branch remains. Sums and products are
 * `precise`, because they must round the same if they are fused with a neighbour in a region.
 */
#ifndef RLXVK_ARITHMETIC_GLSL
#define RLXVK_ARITHMETIC_GLSL
#include "args/elementwise.h"
#include "lib/math.glsl"

/* An integer key ordered like the numbers. Both zeros are equal, denormals are distinct. Not for
 * NaN. */
int order_key(float v)
{
    uint bits = floatBitsToUint(v);
    int magnitude = int(bits & MAGNITUDE_BITS);
    return bits >= SIGN_BIT ? -magnitude : magnitude;
}

float extreme(float p, float q, bool largest)
{
    if (is_nan(p) || is_nan(q))
        return NAN_VALUE;
    return (order_key(p) > order_key(q)) == largest ? p : q;
}

/* Whether p counts as 0. Denormals do, because drivers may flush them. */
bool vanishes(float p)
{
    return (floatBitsToUint(p) & MAGNITUDE_BITS) < 0x00800000u;
}

/* p q, or 0 if p vanishes and q is infinite or NaN. */
float gradient_product(float p, float q)
{
    precise float v = p * q;
    bool open = (floatBitsToUint(q) & MAGNITUDE_BITS) >= 0x7f800000u;
    return open && vanishes(p) ? 0.0 : v;
}

/* p / q, or 0 if p vanishes and q is 0 or NaN. */
float gradient_quotient(float p, float q)
{
    return vanishes(p) && (vanishes(q) || is_nan(q)) ? 0.0 : divide(p, q);
}

/* Like combine(), but without division and powers. Pass a constant code, as for activation(). */
float light_combine(uint code, float p, float q)
{
    precise float v;
    if (code == BINARY_ADD)
        v = p + q;
    else if (code == BINARY_SUB)
        v = p - q;
    else if (code == BINARY_MUL)
        v = p * q;
    else if (code == BINARY_PRODUCT)
        v = gradient_product(p, q);
    else
        v = extreme(p, q, code == BINARY_MAX);
    return v;
}

float combine(uint code, float p, float q)
{
    if (code == BINARY_DIV)
        return divide(p, q);
    if (code == BINARY_QUOTIENT)
        return gradient_quotient(p, q);
    return code == BINARY_POW ? power(p, q) : light_combine(code, p, q);
}

/* Compares the operands' bits, so that NaN and denormals compare as IEEE says on any driver. */
bool holds(uint code, float p, float q)
{
    int u = order_key(p), v = order_key(q);
    if (is_nan(p) || is_nan(q))
        return code == COMPARE_NE;
    if (code == COMPARE_EQ)
        return u == v;
    if (code == COMPARE_NE)
        return u != v;
    if (code == COMPARE_LT)
        return u < v;
    if (code == COMPARE_LE)
        return u <= v;
    return code == COMPARE_GT ? u > v : u >= v;
}

#endif
