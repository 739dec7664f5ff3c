/* Shared by the encoders of packed blocks. It also declares the encoders of the 256-element
 * formats, for the table of quant_encode.c. Each takes a block's values, which must be finite, and
 * writes all bytes of the block. */
#ifndef RLXVK_QUANT_ENCODE_H
#define RLXVK_QUANT_ENCODE_H

#include "op/packed/quant_bytes.h"
#include "op/packed/quant_format.h"

#include <math.h>

typedef void (*quant_encode_block)(const float *x, uint8_t *block);

void quant_encode_q2_k(const float *x, uint8_t *block);
void quant_encode_q3_k(const float *x, uint8_t *block);
void quant_encode_q4_k(const float *x, uint8_t *block);
void quant_encode_q5_k(const float *x, uint8_t *block);
void quant_encode_q6_k(const float *x, uint8_t *block);
void quant_encode_q8_k(const float *x, uint8_t *block);
void quant_encode_iq4_xs(const float *x, uint8_t *block);
void quant_encode_tq1_0(const float *x, uint8_t *block);
void quant_encode_tq2_0(const float *x, uint8_t *block);

static inline float inverse(float scale)
{
    return scale != 0 ? 1.0f / scale : 0.0f;
}

/* Truncates. NaN gives `low`; it arises if a scale overflowed or vanished. */
static inline int saturate(float value, int low, int high)
{
    return !(value > (float)low) ? low : value >= (float)high ? high : (int)value;
}

/* The value of largest magnitude, with its sign. On ties it is the first one. */
static inline float extreme(const float *x, int count)
{
    float found = 0;
    for (int i = 0; i < count; i++)
        if (fabsf(x[i]) > fabsf(found))
            found = x[i];
    return found;
}

/* Extends low .. high to enclose the values. It uses comparisons, so that the sign of a zero does
 * not depend on the compiler. */
static inline void widen_range(const float *x, int count, float *low, float *high)
{
    for (int i = 0; i < count; i++) {
        *low = x[i] < *low ? x[i] : *low;
        *high = x[i] > *high ? x[i] : *high;
    }
}

/* Elements i and i + 16 of 32 share byte i; the first is the low nibble. */
static inline void put_nibble(uint8_t *qs, int i, int code)
{
    qs[i % 16] |= (uint8_t)(code << (i >= 16 ? 4 : 0));
}

#endif
