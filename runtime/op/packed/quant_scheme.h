/*
 * The side-scale schemes: a packed matrix [k, n] whose scales (and zero points) stand in tensors of
 * their own, one for each block of `block` elements of k and each column. Numbers are those of
 * rlxvk_quant_kind. Decoding here is exact, as in quant_format.h.
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
    const char *name; /* "int8": without the block, which follows as "/32" */
    uint32_t kind;
    uint32_t code_bits;
    uint32_t block;               /* 0: the scheme leaves it open, or has none (SCALE_COLUMN) */
    uint8_t scale;                /* enum quant_scale_form */
    bool zero_point;              /* operand 3 holds zero points, as many as scales */
    bool global;                  /* operand 3 holds one factor for all */
    bool ignores_extra;           /* operand 3 is accepted and not read */
    float (*code)(uint32_t bits); /* what a weight's bits mean */
    float (*scale_code)(uint32_t byte); /* SCALE_BYTE */
    bool (*scale_valid)(uint32_t byte); /* SCALE_BYTE: stands for a number */
} quant_scheme_traits;

/* NULL for a number that is no side-scale scheme. */
const quant_scheme_traits *quant_scheme_find(uint32_t kind);

/* Whether a scheme's numbers go together: kind, block (0 becomes the kind's own), n. False with a
 * sentence in *problem. */
bool quant_scheme_resolve(uint32_t kind, int64_t *block, int64_t n, text *problem);

/* Bytes of k * n codes; false on overflow. */
bool quant_scheme_bytes(const quant_scheme_traits *t, uint64_t k, uint64_t n, uint64_t *out);

/* The operands of one matrix. */
typedef struct quant_matrix {
    const quant_scheme_traits *traits;
    uint64_t k, n, block;
    const uint8_t *codes, *scale_bytes;
    const float *scales, *extra;
    bool one_scale; /* SCALE_COLUMN: of [1] */
} quant_matrix;

/* Column j: k values, and their |scale term| + |zero term|. A code that is NaN or infinite is 0. */
void quant_decode_column(const quant_matrix *m, uint64_t j, float *out, float *magnitude);

/* E_RANGE naming the first element of one of a matrix's tensors that no encoder writes (NaN,
 * infinite), in quant_check.c. `count` bytes or f32 words. */
enum quant_part { QUANT_CODES, QUANT_SCALES, QUANT_EXTRA };
RLXVK_MUST_CHECK rlxvk_status quant_check_part(const quant_scheme_traits *t, enum quant_part part,
                                               const void *data, uint64_t count);

#endif
