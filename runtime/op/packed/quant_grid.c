/*
 * Exact decoders of the grid formats (IQ1, IQ2, IQ3), and their tables.
 *
 * A block has eight groups (ib) of 32 elements, and a group has four runs (l) of 8. A code of the
 * grid stands for the levels of 8 elements (2 bits each) or of 4 (3 bits). Signs of 8 elements are
 * a mask. If only seven bits are stored, the eighth makes the number of set bits even. As in
 * quant_format.c, every operation is one f32 operation, in the order written.
 */
#include "op/packed/quant_grid.h"
#include "op/packed/quant_bytes.h"
#include "op/packed/quant_format.h"
#include "op/packed/quant_grid_data.h"

static const int8_t levels_iq2[4] = {8, 25, 43, 0};
static const int8_t levels_iq3_xxs[8] = {4, 12, 20, 28, 36, 44, 52, 62};
static const int8_t levels_iq3_s[8] = {1, 3, 5, 7, 9, 11, 13, 15};
static const int8_t levels_iq1[4] = {-1, 0, 1, 0};

static const struct grid_row {
    uint32_t type;
    const uint16_t *codes;
    uint32_t count;
} grid_rows[] = {
    {QUANT_IQ2_XXS, grid_iq2_xxs, ARRAY_COUNT(grid_iq2_xxs)},
    {QUANT_IQ2_XS, grid_iq2_xs, ARRAY_COUNT(grid_iq2_xs)},
    {QUANT_IQ2_S, grid_iq2_s, ARRAY_COUNT(grid_iq2_s)},
    {QUANT_IQ3_XXS, grid_iq3_xxs, ARRAY_COUNT(grid_iq3_xxs)},
    {QUANT_IQ3_S, grid_iq3_s, ARRAY_COUNT(grid_iq3_s)},
    {QUANT_IQ1_S, grid_iq1, ARRAY_COUNT(grid_iq1)},
    {QUANT_IQ1_M, grid_iq1, ARRAY_COUNT(grid_iq1)},
};

const uint16_t *quant_grid_find(uint32_t type, uint32_t *out_count)
{
    for (size_t i = 0; i < ARRAY_COUNT(grid_rows); i++)
        if (grid_rows[i].type == type) {
            *out_count = grid_rows[i].count;
            return grid_rows[i].codes;
        }
    *out_count = 0;
    return NULL;
}

/* The mask of 8 signs. The eighth makes the number of set bits even. */
static uint32_t even_mask(uint32_t seven)
{
    uint32_t parity = seven ^ seven >> 4;
    parity ^= parity >> 2;
    parity ^= parity >> 1;
    return seven | (parity & 1u) << 7;
}

/* y[j] = scale * level j of the code. It is negated if bit j of the mask is set. */
static void put_signed(float *y, float scale, uint32_t code, uint32_t mask, int count, int bits,
                       const int8_t *levels)
{
    for (int j = 0; j < count; j++) {
        float value = scale * (float)levels[code >> bits * j & ((1u << bits) - 1)];
        y[j] = mask >> j & 1u ? -value : value;
    }
}

/* ---- IQ2: 8 elements a code ---- */

/* 0: d, 2: groups of 8 bytes: four indices, then a word of four 7-bit sign masks and a scale. */
void quant_decode_iq2_xxs(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    (void)min_term;
    for (int run = 0; run < 32; run++) {
        const uint8_t *group = block + 2 + 8 * (run / 4);
        uint32_t word = load_u32(group + 4), mask = even_mask(word >> 7 * (run % 4) & 127u);
        float scale = d * (0.5f + (float)(word >> 28)) * 0.25f;
        put_signed(y + 8 * run, scale, grid_iq2_xxs[group[run % 4]], mask, 8, 2, levels_iq2);
    }
}

/* 0: d, 2: 32 u16 of a 9-bit index and a 7-bit mask, 66: 16 scale nibbles. */
void quant_decode_iq2_xs(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    (void)min_term;
    for (int run = 0; run < 32; run++) {
        uint32_t v = load_u16(block + 2 + 2 * run);
        uint32_t s = nibble(block[66 + run / 4], run % 4 >= 2);
        float scale = d * (0.5f + (float)s) * 0.25f;
        put_signed(y + 8 * run, scale, grid_iq2_xs[v & 511u], even_mask(v >> 9), 8, 2, levels_iq2);
    }
}

/* 0: d, 2: low index bytes[32], 34: masks[32], 66: high index bits[8], 74: 16 scale nibbles. */
void quant_decode_iq2_s(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    (void)min_term;
    for (int run = 0; run < 32; run++) {
        uint32_t high = block[66 + run / 4] >> 2 * (run % 4) & 3u;
        uint32_t s = nibble(block[74 + run / 4], run % 4 >= 2);
        float scale = d * (0.5f + (float)s) * 0.25f;
        put_signed(y + 8 * run, scale, grid_iq2_s[block[2 + run] | high << 8], block[34 + run], 8,
                   2, levels_iq2);
    }
}

/* ---- IQ3: 4 elements a code ---- */

/* 0: d, 2: indices[64], 66: 8 words of four 7-bit sign masks and a scale. */
void quant_decode_iq3_xxs(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    (void)min_term;
    for (int half = 0; half < 64; half++) {
        uint32_t word = load_u32(block + 66 + 4 * (half / 8));
        uint32_t mask = even_mask(word >> 7 * (half % 8 / 2) & 127u) >> 4 * (half % 2);
        float scale = d * (0.5f + (float)(word >> 28)) * 0.5f;
        put_signed(y + 4 * half, scale, grid_iq3_xxs[block[2 + half]], mask, 4, 3, levels_iq3_xxs);
    }
}

/* 0: d, 2: low index bytes[64], 66: ninth index bits[8], 74: masks[32], 106: 8 scale nibbles. */
void quant_decode_iq3_s(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    (void)min_term;
    for (int half = 0; half < 64; half++) {
        int group = half / 8;
        uint32_t index = block[2 + half] | (block[66 + group] >> half % 8 & 1u) << 8;
        uint32_t mask = (uint32_t)block[74 + half / 2] >> 4 * (half % 2);
        uint32_t s = nibble(block[106 + group / 2], group % 2 != 0);
        float scale = d * (1.0f + 2.0f * (float)s);
        put_signed(y + 4 * half, scale, grid_iq3_s[index], mask, 4, 3, levels_iq3_s);
    }
}

/* ---- IQ1: 8 elements a code, and an offset of an eighth ---- */

static void put_offset(float *y, float scale, uint32_t code, bool down)
{
    for (int j = 0; j < 8; j++)
        y[j] = scale * ((float)levels_iq1[code >> 2 * j & 3u] + (down ? -0.125f : 0.125f));
}

/* 0: d, 2: low index bytes[32], 34: 8 u16: four 3-bit high parts, scale, sign of the offset. */
void quant_decode_iq1_s(const uint8_t *block, float *y, float *min_term)
{
    float d = load_half(block);
    (void)min_term;
    for (int run = 0; run < 32; run++) {
        uint32_t high = load_u16(block + 34 + 2 * (run / 4));
        uint32_t index = block[2 + run] | (high >> 3 * (run % 4) & 7u) << 8;
        float scale = d * (float)(2 * (high >> 12 & 7u) + 1);
        put_offset(y + 8 * run, scale, grid_iq1[index], high >> 15 != 0);
    }
}

/* 0: low index bytes[32], 32: a nibble for each run, with 3 high bits and the sign of the offset,
 * 48: 4 u16 with four 3-bit scales each. The top nibbles of these u16 together are d. */
void quant_decode_iq1_m(const uint8_t *block, float *y, float *min_term)
{
    float d = f16_to_f32((uint16_t)load_top_nibbles(block + 48));
    (void)min_term;
    for (int run = 0; run < 32; run++) {
        uint32_t high = nibble(block[32 + run / 2], run % 2 != 0);
        uint32_t s = load_u16(block + 48 + 2 * (run / 8)) >> 3 * (run % 8 / 2) & 7u;
        put_offset(y + 8 * run, d * (float)(2 * s + 1), grid_iq1[block[run] | (high & 7u) << 8],
                   (high & 8u) != 0);
    }
}
