/*
 * Which kernel makes a matrix product: one table of classes, in order of preference, with
 * conditions on shape and device. Pure; unit-tested on made-up profiles.
 */
#ifndef RLXVK_MATMUL_SELECT_H
#define RLXVK_MATMUL_SELECT_H

#include "op/choice/variant.h"

/* A product after batch axes that only repeat b have been folded into m. */
typedef struct matmul_shape {
    uint64_t m, n, k, batch;
    bool transpose_a, transpose_b;
} matmul_shape;

typedef enum matmul_form {
    MATMUL_FORM_SCALAR,  /* matmul_scalar: registers only */
    MATMUL_FORM_VECTOR,  /* matvec: few rows of a */
    MATMUL_FORM_SWAPPED, /* matvec with a and b changing places: few columns of b */
    MATMUL_FORM_TILED,   /* matmul_tiled: shared memory */
    MATMUL_FORM_ROWS     /* matmul_rows: few rows of a, in registers */
} matmul_form;

#define MATMUL_ROWS_LANES 32u /* form rows: invocations along N, of four columns each */

typedef struct matmul_class {
    choice_row row;
    uint8_t form;                    /* enum matmul_form */
    uint16_t threads;                /* 0: the profile's workgroup size */
    uint16_t tile_m, tile_n;         /* of y, a workgroup (scalar: an invocation) */
    uint16_t register_m, register_n; /* of an invocation; rows: the most, tile_m goes with it */
    /* K elements a step; tiled: bits of TILE_LOOP_..., rows: quads of K that b is read ahead */
    uint8_t step, loop;
    uint8_t rate, rate_along;  /* tiled: full speed, and where b runs along K (matmul_select.c) */
    uint64_t least_m, least_n; /* conditions on the shape */
    uint64_t most_m, most_n, most_k;
    uint32_t least_tiles; /* for each compute unit */
} matmul_class;

extern const matmul_class matmul_classes[];

/* What a choice of class depends on (variant_query): "nn" to "tt", and m, n, k, batch. */
const char *matmul_tag(const matmul_shape *shape);
/* The class for a shape; there always is one. The row `forced` (VARIANT_NONE: none) goes before, if
 * it can do the shape. */
const matmul_class *matmul_select(const matmul_shape *shape, const device_profile *profile,
                                  size_t forced);
uint64_t matmul_shared_bytes(const matmul_class *c, const matmul_shape *s);
/* Rows of y that an invocation of a class of form rows makes. */
uint32_t matmul_rows(const matmul_class *c, uint64_t m);
/* Columns that a matvec workgroup makes of a b that is [N, K], for this many vectors. */
uint32_t matmul_vector_columns(uint64_t vectors);
#define MATMUL_PROJECTION_COLUMNS 4u /* of one vector that is normalized on the way */
/* Workgroups that cover y once. */
uint64_t matmul_groups(const matmul_class *c, const matmul_shape *shape,
                       const device_profile *profile);
/* How much of K one workgroup sums: k itself where the groups fill the device, else a part, to be
 * joined afterwards. */
uint64_t matmul_slice(const matmul_class *c, const matmul_shape *shape,
                      const device_profile *profile);

#endif
