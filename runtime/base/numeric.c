/*
 * Sine and cosine reduce x to the nearest multiple of pi / 2 by multiplying its bits with those of
 * 2 / pi (Payne and Hanek). Only the bits that can change the remainder are multiplied. The C
 * library then gets no operand beyond pi / 4, for which all of them are accurate.
 */
#include "base/numeric.h"

#include "base/base.h"

/* 2 / pi: the word k has the weight 2^(-32 (k + 1)). */
static const uint32_t two_over_pi[] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599,
                                       0x3c439041, 0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0,
                                       0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5,
                                       0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4,
                                       0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b,
                                       0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
                                       0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1,
                                       0x1f8d5d08, 0x56033046, 0xfc7b6bab};

/* The product x 2 / pi has a word for integers and WORDS - 1 below it. An error in the last one is
 * under 2^-130, and no double is nearer to a multiple of pi / 2 than 2^-61 of it. */
enum { WORDS = 8 };

/* The words of x 2 / pi, without multiples of 2^32; x > 0 is m 2^(32 q), and m is in 3 words. */
static void multiply(const uint32_t m[3], int q, uint32_t out[WORDS])
{
    uint64_t sums[WORDS + 1] = {0}, carry = 0;
    for (int k = 0; k < WORDS; k++) {
        int place = q - 1 + k;
        uint64_t word = place >= 0 ? two_over_pi[place] : 0;
        for (int a = 0; a < 3 && a <= k; a++) {
            uint64_t product = m[a] * word;
            sums[k - a + 1] += (uint32_t)product;
            sums[k - a] += product >> 32;
        }
    }
    for (int k = WORDS - 1; k >= 0; k--) {
        carry += sums[k + 1];
        out[k] = (uint32_t)carry;
        carry >>= 32;
    }
}

/* The remainder of x by pi / 2, from -pi / 4 to pi / 4. `quadrant` gets the multiple, modulo 4. */
static double reduce(double x, unsigned *quadrant)
{
    int exponent;
    uint64_t bits = (uint64_t)ldexp(frexp(fabs(x), &exponent), 53);
    exponent -= 53;
    int q = exponent >= 0 ? exponent / 32 : -((31 - exponent) / 32), shift = exponent - 32 * q;
    uint64_t low = (bits & UINT32_MAX) << shift, high = (bits >> 32 << shift) + (low >> 32);
    uint32_t words[WORDS];
    multiply((uint32_t[]){(uint32_t)low, (uint32_t)high, (uint32_t)(high >> 32)}, q, words);
    bool above = words[1] >> 31; /* over one half, so the next multiple is nearer */
    double fraction = 0;
    for (int k = WORDS - 1; k > 0; k--) /* less than the true one by less than the last word */
        fraction += ldexp(above ? ~words[k] : words[k], -32 * k);
    double angle = (above ? -fraction : fraction) * 1.5707963267948966;
    *quadrant = words[0] + above;
    if (x < 0)
        *quadrant = 0 - *quadrant;
    return x < 0 ? -angle : angle;
}

/* The sine of x plus `quarters` right angles. */
static double sine(double x, unsigned quarters)
{
    unsigned quadrant = 0;
    if (!isfinite(x))
        return NAN;
    if (fabs(x) > 0.785)
        x = reduce(x, &quadrant);
    quadrant += quarters;
    double y = quadrant % 2 ? cos(x) : sin(x);
    return quadrant % 4 < 2 ? y : -y;
}

double numeric_own_sin(double x)
{
    return sine(x, 0);
}

double numeric_own_cos(double x)
{
    return sine(x, 1);
}

void numeric_complex_exp(double x, double y, double out[2])
{
    double size = exp(x);
    if (y == 0) {
        out[0] = size, out[1] = y;
    } else if (isfinite(y)) { /* not 0 times infinity: no double has a sine or cosine of 0 */
        out[0] = size * numeric_cos(y), out[1] = size * numeric_sin(y);
    } else if (x == -INFINITY) {
        out[0] = out[1] = 0;
    } else {
        out[0] = x == INFINITY ? INFINITY : NAN, out[1] = NAN;
    }
}

double numeric_round(double x)
{
    double whole = trunc(x);
    return copysign(whole + (fabs(x - whole) >= 0.5 ? copysign(1, x) : 0), x);
}

float numeric_roundf(float x)
{
    return (float)numeric_round(x);
}
