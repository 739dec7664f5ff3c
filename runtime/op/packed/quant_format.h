/*
 * The packed weight formats that GGUF files use, by their GGUF tensor type number. A row of k
 * elements is k / E blocks of E elements, each S bytes, little-endian. Decoding here is exact: it
 * defines what every kernel is compared with.
 */
#ifndef RLXVK_QUANT_FORMAT_H
#define RLXVK_QUANT_FORMAT_H

#include "base/base.h"

#define QUANT_MAX_BLOCK 256 /* the largest block_elements */
#define QUANT_MAX_BYTES 292 /* the largest block_bytes */

enum quant_type {
#define QUANT_FORMAT(type, NAME, ...) QUANT_##NAME = type,
#include "args/format.def"
    QUANT_TYPES /* rows go by rising type */
};

/* How a scale is written: binary16, binary32 or its upper half; a byte e for 2^(e - 127); four E4M3
 * without sign; a binary16 in the top nibbles of four u16. */
enum quant_scale_kind {
    QUANT_SCALE_NONE,
    QUANT_SCALE_HALF,
    QUANT_SCALE_FLOAT,
    QUANT_SCALE_BRAIN,
    QUANT_SCALE_E8M0,
    QUANT_SCALE_FOUR_UE4M3,
    QUANT_SCALE_NIBBLES
};

typedef struct quant_scale {
    uint8_t kind, offset; /* enum quant_scale_kind; byte of the block */
    const char *name;
} quant_scale;

/*
 * Decodes one block into its two terms: element = scale_term + min_term. Formats that are not
 * affine leave min_term alone; those that are write all of both. Keeping the terms apart gives the
 * value and its error bound from one formula.
 */
typedef void (*quant_decode_block)(const uint8_t *block, float *scale_term, float *min_term);

typedef struct quant_format {
    const char *name; /* "Q4_K" */
    uint32_t type;
    uint32_t block_elements, block_bytes;
    bool affine;   /* elements have a min term */
    bool weight;   /* may be a weight of a matrix product; the others can only be loaded */
    bool integers; /* there is a product by integers */
    uint8_t group, distance; /* of kernels: DEQUANT_COMMON ..; 0 or between a unit's two runs */
    quant_scale scales[3];   /* up to QUANT_SCALE_NONE */
    quant_decode_block decode;
} quant_format;

/* NULL for a type number that is unknown or withdrawn. */
const quant_format *quant_format_find(uint32_t type);
/* By name, in any case of letters ("q4_k"); NULL when there is none. */
const quant_format *quant_format_find_name(const char *name);

/* Bytes of a row of k elements. 0 when the type is unknown, k is no multiple of its block, or on
 * overflow. */
uint64_t quant_row_bytes(uint32_t type, uint64_t k);

/* Decodes quant_row_bytes(type, k) bytes to k floats. E_UNSUPPORTED: no such decoder; E_SHAPE: k is
 * not whole blocks. */
RLXVK_MUST_CHECK rlxvk_status quant_decode_row(uint32_t type, const void *bytes, uint64_t k,
                                               float *out);
/* |scale term| + |min term| of each element: what error bounds of a factored product are relative
 * to. */
RLXVK_MUST_CHECK rlxvk_status quant_decode_row_magnitude(uint32_t type, const void *bytes,
                                                         uint64_t k, float *out);

/* Packs k floats; of formats with blocks they must be finite and their scales fit (E_RANGE).
 * Nothing is written on errors: E_UNSUPPORTED (no encoder), E_SHAPE. In quant_encode.c. */
RLXVK_MUST_CHECK rlxvk_status quant_encode_row(uint32_t type, const float *values, uint64_t k,
                                               void *out);
bool quant_can_encode(uint32_t type);

/* E_RANGE naming the first block with a scale that is no finite number, in quant_check.c. Plain
 * elements pass. */
RLXVK_MUST_CHECK rlxvk_status quant_check_blocks(uint32_t type, const uint8_t *bytes,
                                                 uint64_t size);

/* The 16 levels of IQ4_NL and IQ4_XS, and those of the 4-bit float E2M1. */
extern const int8_t quant_iq4_levels[16];
extern const float quant_fp4_levels[16];

/* Codes of block scales: 2^(e - 127), NaN at 255; E4M3 without sign, whose NaN counts as 0. */
float quant_e8m0_to_f32(uint32_t e);
float quant_ue4m3_to_f32(uint32_t code);

#endif
