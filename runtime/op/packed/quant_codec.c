/*
 * Rounding to small floats. A value is counted in units of the last place of its binade, and this
 * count is rounded once. In a code, the exponent and the fraction lie next to each other. So if a
 * count rounds up to the next binade, a plain addition carries into the exponent.
 */
#include "op/packed/quant_codec.h"
#include "graph/half.h"
#include "op/packed/quant_format.h"

#include <math.h>

typedef struct small_float {
    int fraction_bits, bias;
    uint32_t largest; /* the largest code */
} small_float;

static uint8_t round_to(const small_float *f, float value)
{
    float magnitude = fabsf(value);
    uint32_t sign = f32_bits(value) >> 31 << 7;
    if (isnan(value))
        return 0x7f;
    if (isinf(value))
        return (uint8_t)(sign | f->largest);
    int exponent = magnitude > 0 ? MAX(ilogbf(magnitude), 1 - f->bias) : 1 - f->bias;
    exponent = MIN(exponent, 31); /* far above the largest: the product below stays finite */
    float units = rintf(ldexpf(magnitude, f->fraction_bits - exponent));
    float code = (float)((exponent + f->bias - 1) << f->fraction_bits) + units;
    return (uint8_t)(sign | (code < (float)f->largest ? (uint32_t)code : f->largest));
}

uint8_t quant_e4m3_from_f32(float value)
{
    return round_to(&(small_float){3, 7, 0x7e}, value);
}

uint8_t quant_e5m2_from_f32(float value)
{
    return round_to(&(small_float){2, 15, 0x7b}, value);
}

/* E2M1 has two codes in a binade, and its even codes have even fractions. */
uint8_t quant_fp4_from_f32(float value)
{
    if (isnan(value))
        return 0;
    uint32_t code = round_to(&(small_float){1, 1, 7}, value);
    return (uint8_t)((code & 7) | code >> 7 << 3);
}

uint8_t quant_fp4_nearest(float value, float scale)
{
    uint32_t best = 0;
    double least = INFINITY;
    for (uint32_t code = 0; code < 16; code++) {
        double distance = fabs((double)quant_fp4_levels[code] * scale - value);
        if (distance < least) {
            best = code;
            least = distance;
        }
    }
    return (uint8_t)best;
}

uint8_t quant_ue4m3_from_f32(float value)
{
    if (!(value > 0))
        return 0;
    if (value >= 448)
        return 0x7e;
    if (value < 0x1p-6f)
        return (uint8_t)MIN((int)(value * 512.0f + 0.5f), 7);
    uint32_t code = ((f32_bits(value) + 0x80000u) >> 20) - (120u << 3);
    return (uint8_t)MIN(code, 0x7eu);
}

uint8_t quant_e8m0_for_fp4(float largest)
{
    if (!(largest > 0))
        return 0;
    int exponent = ilogbf(largest) - 2 + 127;
    return (uint8_t)MAX(0, MIN(exponent, 254));
}

bool quant_e8m0_valid(uint32_t code)
{
    return code != 255;
}

bool quant_ue4m3_valid(uint32_t code)
{
    return code < 0x7f;
}

int quant_iq4_nearest(float value)
{
    int above = 1; /* the upper of the two levels around the value */
    while (above < 15 && (float)quant_iq4_levels[above] < value)
        above++;
    float up = (float)quant_iq4_levels[above] - value;
    float down = value - (float)quant_iq4_levels[above - 1];
    return down < up ? above - 1 : above;
}
