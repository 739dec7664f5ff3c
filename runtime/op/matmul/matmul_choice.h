/*
 * Which kernel computes a matrix product. There is one table of classes in order of preference,
 * with conditions on shape and device. All of this is pure, so unit tests use made-up profiles.
 */
#ifndef RLXVK_MATMUL_CHOICE_H
#define RLXVK_MATMUL_CHOICE_H

#include "args/matmul.h"
#include "op/choice/variant.h"

/* A product, after batch axes along which b only repeats have been folded into m. */
typedef struct matmul_shape {
    uint64_t m, n, k, batch;
    bool transpose_a, transpose_b;
} matmul_shape;

typedef enum matmul_form {
    MATMUL_FORM_SCALAR,  /* matmul_scalar: registers only */
    MATMUL_FORM_VECTOR,  /* matvec: few rows of a */
    MATMUL_FORM_SWAPPED, /* matvec with a and b swapped: few columns of b */
    MATMUL_FORM_TILED,   /* matmul_tiled: shared memory */
    MATMUL_FORM_ROWS     /* matmul_rows: few rows of a, in registers */
} matmul_form;

#define MATMUL_ROWS_LANES 32u /* form rows: invocations along N, with four columns each */

typedef struct matmul_class {
    choice_row row;
    uint8_t form;                    /* enum matmul_form */
    uint16_t threads;                /* 0: the profile's workgroup size */
    uint16_t tile_m, tile_n;         /* of y, for a workgroup (scalar: an invocation) */
    uint16_t register_m, register_n; /* of an invocation; rows: at most, as tile_m is */
    /* step: elements of K in a step. loop: tiled: bits of TILE_LOOP_...; rows: how many quads of K
     * the kernel reads b ahead. */
    uint8_t step, loop;
    uint8_t rate, rate_along;  /* tiled: % of peak; rate_along: if a or b is slow to load */
    uint64_t least_m, least_n; /* conditions on the shape */
    uint64_t most_m, most_n, most_k;
    uint32_t least_tiles; /* that each compute unit needs */
} matmul_class;

extern const matmul_class matmul_classes[];

/* The tag by which measured choices tell kinds of products apart (variant_query): "nn" to "tt". The
 * choices also depend on m, n, k and batch. */
const char *matmul_tag(const matmul_shape *shape);
/* The class for a shape; there always is one. If the row `forced` can do the shape, it is taken.
 * VARIANT_NONE forces no row. */
const matmul_class *matmul_choose(const matmul_shape *shape, const device_profile *profile,
                                  size_t forced);
uint64_t matmul_shared_bytes(const matmul_class *c, const matmul_shape *s);
/* How many rows of y an invocation computes, for a class of form rows. */
uint32_t matmul_rows(const matmul_class *c, uint64_t m);
/* How many columns a matvec workgroup computes if b is [N, K], for this many vectors. */
uint32_t matmul_vector_columns(uint64_t vectors);
#define MATMUL_PROJECTION_COLUMNS 4u /* the same for the one vector of a projection */
/* How many workgroups cover y once. */
uint64_t matmul_groups(const matmul_class *c, const matmul_shape *shape,
                       const device_profile *profile);
/* How many elements of K one workgroup sums. If the workgroups fill the device, this is k.
 * Otherwise it is a part of k, and the partial sums are joined afterwards. */
uint64_t matmul_slice(const matmul_class *c, const matmul_shape *shape,
                      const device_profile *profile);

/* The bits of LOOP of tile.glsl. Unrolled steps compile slowly where loads are moved far ahead, and
 * on portable drivers. */
static inline uint32_t matmul_tile_loop(uint32_t loop, const device_profile *profile)
{
    return loop | (profile->loads_early || profile->portable ? TILE_LOOP_ROLLED : 0);
}

#endif
