/*
 * Which way a product with packed weights goes, and how the ways of few rows and of tiles divide
 * their work: five tables, in order of preference. Pure; unit-tested on made-up profiles.
 */
#ifndef RLXVK_DEQUANT_SELECT_H
#define RLXVK_DEQUANT_SELECT_H

#include "op/choice/variant.h"
#include "op/matmul/matmul_select.h"
#include "op/matmul/teams.h"

typedef enum dequant_form {
    DEQUANT_FORM_FRAGMENT, /* decoded in registers, which matrix units take (dequant_fragment.c) */
    DEQUANT_FORM_PANEL,    /* the same for many rows of x, which share them (dequant_panel.c) */
    DEQUANT_FORM_MATRIX,   /* decoded tile by tile for the matrix units (matrix_select.h) */
    DEQUANT_FORM_UNPACKED, /* all weights decoded to a temporary, then a product of floats */
    DEQUANT_FORM_TILED,    /* decoded tile by tile into shared memory */
    DEQUANT_FORM_VECTOR    /* decoded in registers, once for each few rows of x */
} dequant_form;

typedef struct dequant_class {
    choice_row row;
    uint8_t form; /* enum dequant_form */
    uint32_t least_rows, most_rows;
} dequant_class;

typedef struct dequant_shape {
    uint64_t rows, weights; /* of x; packed */
    bool elements;          /* no blocks (dequant_scaled.c), hence no kernel that unpacks */
    bool units;             /* the precision is that of matrix units, which can do it */
    bool fragments;         /* also with weights in registers, of few rows of x */
    bool panels;            /* ... and of many */
    bool in_lanes;          /* where they are without being brought there */
    bool kept;              /* once decoded they stay, and no run decodes them (plan/prepare.c) */
} dequant_shape;

/* The first row of a form. */
const char *dequant_name(dequant_form form);
/* What the plan shows of a product that is a row of the form's own family, too: `within`, that
 * row's name, unless the caller named the form and not the row. */
const char *dequant_shown(const variant_set *named, dequant_form form, const char *within);
/* The first row that suits; there always is one. The row `forced` (VARIANT_NONE: none) goes before,
 * if it can. */
const dequant_class *dequant_select(const dequant_shape *shape, const device_profile *profile,
                                    size_t forced);

/* ---- dequant_vector: how dequant_matvec divides the outputs ---- */

typedef struct dequant_vector_shape {
    uint64_t m, n, units; /* of x, of w; units of 32 elements in a row */
    bool experts;         /* rows of x have matrices of their own */
    bool integers;        /* a kernel takes x of this format in integers, and these rows */
    bool pieces;          /* whose blocks do not lie at 16 bytes, as rows do */
    bool normalized;      /* x is normalized on the way: PROJECTION_NORM */
} dequant_vector_shape;

#define DEQUANT_SPAN 2 /* units that an invocation holds in integers */

/* Constants of the kernel (glsl/packed/dequant_matvec.glsl), at their most. An invocation keeps
 * rows * columns sums; `team` of them share the row. */
typedef struct dequant_vector_class {
    choice_row row;
    bool lookup;      /* codes of tables from shared memory */
    uint8_t integers; /* workgroups for each compute unit whose teams hold x in integers, whose
                         bytes hardware multiplies (dequant_matvec_integer.comp); or 0 */
    uint16_t threads; /* of a workgroup */
    uint16_t team, columns; /* powers of two, but for a team with integers */
    uint16_t rows;          /* of x that share one decoding; 1: only for one row */
    uint16_t chunk;         /* units of x in shared memory; a power of two, or 0: none */
    team_division teams;    /* with integers */
    const char *variant;    /* the table's own name of the row, which outlives a copy */
} dequant_vector_class;

/* The first row that suits, its sizes fitted to the shape; there always is one. */
dequant_vector_class dequant_vector_select(const dequant_vector_shape *shape,
                                           const device_profile *profile, size_t forced);
uint64_t dequant_vector_groups(const dequant_vector_class *c, const dequant_vector_shape *shape);
uint64_t dequant_vector_shared_bytes(const dequant_vector_class *c,
                                     const dequant_vector_shape *shape);

/* ---- dequant_tile: the tiles of the tiled form ---- */

/* Constants of the kernel (glsl/packed/dequant_matmul.glsl). A workgroup has twice as many
 * invocations as a tile has columns or more, or as many or a fraction of that. */
typedef struct dequant_tile_class {
    choice_row row;
    uint16_t rows, columns; /* of a tile; of which an invocation sums these: */
    uint8_t register_rows, register_columns;
    uint64_t least_rows, most_rows;
} dequant_tile_class;

/* For so many rows of x, or on average of an expert's: the first row that suits. */
const dequant_tile_class *dequant_tile_select(uint64_t rows, const device_profile *profile,
                                              size_t forced);
uint32_t dequant_tile_threads(const dequant_tile_class *c);

/* ---- dequant_fragment: how dequant_fragment_f16 divides its work ---- */

typedef struct dequant_fragment_shape {
    uint64_t m, n;
    bool rounds; /* weights of the format are rounded to halves by f16 arithmetic */
} dequant_fragment_shape;

typedef struct dequant_fragment_class {
    choice_row row;
    uint8_t splits; /* subgroups of a workgroup, which share out K */
} dequant_fragment_class;

/* NULL where the device has no units for it. */
const dequant_fragment_class *dequant_fragment_select(const dequant_fragment_shape *shape,
                                                      const device_profile *profile, size_t forced);
uint64_t dequant_fragment_groups(const dequant_fragment_shape *shape,
                                 const device_profile *profile);

/* ---- dequant_panel: the tiles of dequant_panel ---- */

#define DEQUANT_PANEL_PART 32 /* columns of a subgroup */

typedef struct dequant_panel_class {
    choice_row row;
    uint8_t rows, subgroups; /* of x, of a workgroup */
    uint8_t cost;            /* of a tile beside another's */
} dequant_panel_class;

/* NULL where the device has no units for it. */
const dequant_panel_class *dequant_panel_select(const matmul_shape *shape,
                                                rlxvk_precision precision,
                                                const device_profile *profile, size_t forced);
uint64_t dequant_panel_columns(const dequant_panel_class *c); /* of a workgroup */
/* How much of K a workgroup sums, in groups: all of it, or a part, to be joined afterwards. */
uint64_t dequant_panel_slice(const dequant_panel_class *c, const matmul_shape *shape,
                             const device_profile *profile);

#endif
