/* Reads and writes fields of packed blocks. They are little-endian and need no alignment. */
#ifndef RLXVK_QUANT_BYTES_H
#define RLXVK_QUANT_BYTES_H

#include "graph/half.h"

#include <stdbool.h>

static inline uint32_t load_u16(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
}

static inline uint32_t load_u32(const uint8_t *bytes)
{
    return load_u16(bytes) | load_u16(bytes + 2) << 16;
}

static inline float load_half(const uint8_t *bytes)
{
    return f16_to_f32((uint16_t)load_u16(bytes));
}

static inline uint32_t nibble(uint32_t byte, bool high)
{
    return high ? byte >> 4 : byte & 15u;
}

/* Joins the top nibbles of four u16 (the scale of IQ1_M). */
static inline uint32_t load_top_nibbles(const uint8_t *bytes)
{
    uint32_t bits = 0;
    for (int i = 0; i < 4; i++)
        bits |= load_u16(bytes + 2 * i) >> 12 << 4 * i;
    return bits;
}

static inline void store_u16(uint8_t *out, uint32_t value)
{
    out[0] = (uint8_t)value;
    out[1] = (uint8_t)(value >> 8);
}

static inline void store_u32(uint8_t *out, uint32_t value)
{
    store_u16(out, value);
    store_u16(out + 2, value >> 16);
}

/* Stores a binary16. Returns it as the decoder will read it. */
static inline float store_half(uint8_t *out, float value)
{
    uint16_t half = f32_to_f16(value);
    store_u16(out, half);
    return f16_to_f32(half);
}

#endif
