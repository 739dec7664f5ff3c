/*
 * The packed weight formats of GGUF files, by their GGUF tensor type number. A row of k elements is
 * k / E blocks of E elements, each S bytes, little-endian. Decoding here is exact: it is the
 * reference for every kernel.
 */
#ifndef RLXVK_QUANT_FORMAT_H
#define RLXVK_QUANT_FORMAT_H

#include "base/base.h"

#define QUANT_MAX_BLOCK 256 /* the largest block_elements */
#define QUANT_MAX_BYTES 292 /* the largest block_bytes */

enum quant_type {
#define QUANT_FORMAT(type, NAME, ...) QUANT_##NAME = type,
#include "args/format.def"
    QUANT_TYPES /* types rise from row to row */
};

/* How a scale is stored:
 *   HALF, FLOAT, BRAIN   binary16; binary32; the upper half of a binary32
 *   E8M0                 a byte e for 2^(e - 127)
 *   FOUR_UE4M3           four E4M3 without sign
 *   NIBBLES              a binary16 in the top nibbles of four u16 */
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
 * Decodes one block into two terms: element = scale_term + min_term. Formats that are not affine do
 * not touch min_term; the others write all of both. The terms are kept apart, because the value and
 * its error bound then follow from one formula.
 */
typedef void (*quant_decode_block)(const uint8_t *block, float *scale_term, float *min_term);

typedef struct quant_format {
    const char *name; /* "Q4_K" */
    uint32_t type;
    uint32_t block_elements, block_bytes;
    bool affine;   /* elements have a min term */
    bool weight;   /* may be a weight of a matrix product; the others can only be loaded */
    bool integers; /* there is a product in integers */
    uint8_t group, distance; /* of kernels: DEQUANT_COMMON ..; 0 or between a unit's two runs */
    quant_scale scales[3];   /* ends at QUANT_SCALE_NONE */
    quant_decode_block decode;
} quant_format;

/* Returns NULL if the type number is unknown or withdrawn. */
const quant_format *quant_format_find(uint32_t type);
/* Finds a format by name, ignoring case ("q4_k"). Returns NULL if there is none. */
const quant_format *quant_format_find_name(const char *name);

/* Bytes of a row of k elements. 0 if the type is unknown, if k is not a multiple of its block, or
 * on overflow. */
uint64_t quant_row_bytes(uint32_t type, uint64_t k);

/* Decodes quant_row_bytes(type, k) bytes to k floats. It fails with:
 *   E_UNSUPPORTED   the type has no decoder
 *   E_SHAPE         k is not a whole number of blocks */
RLXVK_MUST_CHECK rlxvk_status quant_decode_row(uint32_t type, const void *bytes, uint64_t k,
                                               float *out);
/* |scale term| + |min term| of each element. Error bounds of products with these weights are
 * relative to this. */
RLXVK_MUST_CHECK rlxvk_status quant_decode_row_magnitude(uint32_t type, const void *bytes,
                                                         uint64_t k, float *out);

/* Packs k floats. If the format has blocks, the values must be finite and their scales must fit. On
 * errors nothing is written. In quant_encode.c. It fails with:
 *   E_UNSUPPORTED   the type has no encoder
 *   E_SHAPE         k is not a whole number of blocks
 *   E_RANGE         a value is not finite, or a scale does not fit */
RLXVK_MUST_CHECK rlxvk_status quant_encode_row(uint32_t type, const float *values, uint64_t k,
                                               void *out);
bool quant_can_encode(uint32_t type);

/* Fails with E_RANGE and names the first block in which a scale is not a finite number. Plain
 * elements pass. In quant_check.c. */
RLXVK_MUST_CHECK rlxvk_status quant_check_blocks(uint32_t type, const uint8_t *bytes,
                                                 uint64_t size);

/* The 16 levels of IQ4_NL and IQ4_XS, and those of the 4-bit float E2M1. */
extern const int8_t quant_iq4_levels[16];
extern const float quant_fp4_levels[16];

/* Values of block-scale codes. E8M0 is 2^(e - 127), NaN for 255. E4M3 has no sign, and its NaN
 * counts as 0. */
float quant_e8m0_to_f32(uint32_t e);
float quant_ue4m3_to_f32(uint32_t code);

#endif
