/*
 * Schemes with side scales: a packed matrix [k, n] whose scales (and zero points) are separate
 * tensors. There is one scale for each block of `block` elements of k and each column. Numbers of
 * schemes are those of rlxvk_quant_kind. Decoding here is exact, as in quant_format.h.
 */
#ifndef RLXVK_QUANT_SCHEME_H
#define RLXVK_QUANT_SCHEME_H

#include "base/base.h"

enum quant_scale_form {
    SCALE_BLOCK,  /* f32 [blocks, n] */
    SCALE_COLUMN, /* f32 [n] or [1] */
    SCALE_BYTE,   /* raw bytes [blocks, n] */
};

typedef struct quant_scheme_traits {
    const char *name; /* "int8"; the block follows it as "/32" */
    uint32_t kind;
    uint32_t code_bits;
    uint32_t block;               /* 0: the scheme leaves it open, or has none (SCALE_COLUMN) */
    uint8_t scale;                /* enum quant_scale_form */
    bool zero_point;              /* operand 3 holds zero points, as many as scales */
    bool global;                  /* operand 3 holds one factor for all */
    bool ignores_extra;           /* operand 3 is accepted but not read */
    float (*code)(uint32_t bits); /* value of a weight's bits */
    float (*scale_code)(uint32_t byte); /* SCALE_BYTE */
    bool (*scale_valid)(uint32_t byte); /* SCALE_BYTE: is it a number? */
} quant_scheme_traits;

/* Returns NULL if the number is not a scheme with side scales. */
const quant_scheme_traits *quant_scheme_find(uint32_t kind);

/* Do a scheme's numbers fit together: kind, block and n? If *block is 0, it becomes the kind's own
 * block. If they do not fit, the call returns false and a sentence in *problem. */
bool quant_scheme_resolve(uint32_t kind, int64_t *block, int64_t n, text *problem);

/* Bytes of k * n codes. Returns false on overflow. */
bool quant_scheme_bytes(const quant_scheme_traits *t, uint64_t k, uint64_t n, uint64_t *out);

/* The operands of one matrix. */
typedef struct quant_matrix {
    const quant_scheme_traits *traits;
    uint64_t k, n, block;
    const uint8_t *codes, *scale_bytes;
    const float *scales, *extra;
    bool one_scale; /* SCALE_COLUMN: of shape [1] */
} quant_matrix;

/* Decodes column j: k values, and their |scale term| + |zero term|. If a code is NaN or infinite,
 * its value is 0. */
void quant_decode_column(const quant_matrix *m, uint64_t j, float *out, float *magnitude);

/* Fails with E_RANGE and names the first element that no encoder writes (NaN, infinite), in one of
 * a matrix's tensors. It has `count` bytes or f32 words. In quant_check.c. */
enum quant_part { QUANT_CODES, QUANT_SCALES, QUANT_EXTRA };
RLXVK_MUST_CHECK rlxvk_status quant_check_part(const quant_scheme_traits *t, enum quant_part part,
                                               const void *data, uint64_t count);

#endif
