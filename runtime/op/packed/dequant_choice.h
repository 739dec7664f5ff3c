/*
 * How a product with packed weights is computed, and how the kernels divide their work. There are
 * five tables, in order of preference. All of this is pure, so unit tests use made-up profiles.
 */
#ifndef RLXVK_DEQUANT_CHOICE_H
#define RLXVK_DEQUANT_CHOICE_H

#include "op/choice/variant.h"
#include "op/matmul/matmul_choice.h"
#include "op/matmul/teams.h"

typedef enum dequant_form {
    DEQUANT_FORM_FRAGMENT, /* decoded in registers for the matrix units (dequant_fragment.c) */
    DEQUANT_FORM_PANEL,    /* the same; many rows of x share the weights (dequant_panel.c) */
    DEQUANT_FORM_BLOCKS,   /* decoded to a temporary in blocks for the matrix units */
    DEQUANT_FORM_MATRIX,   /* decoded tile by tile for the matrix units (matrix_unit_choice.h) */
    DEQUANT_FORM_UNPACKED, /* all weights decoded to a temporary, then a product of floats */
    DEQUANT_FORM_TILED,    /* decoded tile by tile into shared memory */
    DEQUANT_FORM_VECTOR    /* decoded in registers, once for every few rows of x */
} dequant_form;

typedef struct dequant_class {
    choice_row row;
    uint8_t form; /* enum dequant_form */
    uint32_t least_rows, most_rows;
} dequant_class;

typedef struct dequant_shape {
    uint64_t rows, weights; /* rows of x; packed weights */
    bool elements;          /* no blocks (dequant_scaled.c), so no kernel unpacks them */
    bool units;             /* matrix units, which the precision asks for, can do it */
    bool fragments;         /* they can with weights in registers and few rows of x */
    bool panels;            /* ... and with many rows */
    uint64_t blocks_from;   /* with decoded weights in blocks (matrix_direct.glsl), which pays from
                             * so many rows on; 0: they cannot */
    bool in_lanes;          /* matrices lie in lanes as in matrix_layout.glsl */
    bool kept;              /* decoded only once and kept for all runs (plan/prepare.c) */
} dequant_shape;

/* The name of the first row with this form. */
const char *dequant_name(dequant_form form);
/* The name to show in the plan if the product also has a row of the form's own kernel kind.
 * `within` is the name of that row. It is shown unless the caller named the form and not the
 * row. */
const char *dequant_shown(const variant_set *named, dequant_form form, const char *within);
/* The first row that suits; there always is one. If the row `forced` can do the product, it comes
 * first. VARIANT_NONE forces no row. */
const dequant_class *dequant_choose(const dequant_shape *shape, const device_profile *profile,
                                    size_t forced);

/* ---- dequant_vector: how dequant_matvec divides the outputs ---- */

typedef struct dequant_vector_shape {
    uint64_t m, n, units; /* rows of x; rows of w; units of 32 elements in a row */
    bool experts;         /* each row of x has a matrix of its own */
    bool integers;        /* a kernel multiplies this format in integers, with these rows */
    bool pieces;          /* blocks do not lie at 16 bytes, although rows do */
    bool normalized;      /* x is normalized on the way: PROJECTION_NORM */
} dequant_vector_shape;

#define DEQUANT_SPAN 2 /* units that an invocation holds in integers */

/* Constants of the kernel (glsl/packed/dequant_matvec.glsl), each at its largest. An invocation
 * keeps rows * columns sums, and `team` invocations share a row. */
typedef struct dequant_vector_class {
    choice_row row;
    bool lookup;            /* find codes of tables in shared memory */
    uint8_t integers;       /* workgroups for each compute unit; their teams hold x in integers, and
                               hardware multiplies the bytes (dequant_matvec_integer.comp); or 0 */
    uint16_t threads;       /* of a workgroup */
    uint16_t team, columns; /* powers of two, except for a team with integers */
    uint16_t rows;          /* of x that share one decoding; 1: only for one row */
    uint16_t chunk;         /* units of x in shared memory: a power of two; 0: none */
    team_division teams;    /* with integers */
    const char *variant;    /* the row's name in the table, because it outlives a copy */
} dequant_vector_class;

/* The first row that suits, with its sizes fitted to the shape. There always is one. */
dequant_vector_class dequant_vector_choose(const dequant_vector_shape *shape,
                                           const device_profile *profile, size_t forced);
uint64_t dequant_vector_groups(const dequant_vector_class *c, const dequant_vector_shape *shape);
uint64_t dequant_vector_shared_bytes(const dequant_vector_class *c,
                                     const dequant_vector_shape *shape);

/* ---- dequant_tile: the tiles of the tiled form ---- */

/* Constants of the kernel (glsl/packed/dequant_matmul.glsl). Let a tile have C columns. A workgroup
 * has 2 C invocations or more, or C, or a fraction of C. */
typedef struct dequant_tile_class {
    choice_row row;
    uint16_t rows, columns; /* of a tile; an invocation sums this part: */
    uint8_t register_rows, register_columns;
    uint64_t least_rows, most_rows;
} dequant_tile_class;

/* The first row that suits so many rows of x. With experts, it is the average number of rows of an
 * expert. */
const dequant_tile_class *dequant_tile_choose(uint64_t rows, const device_profile *profile,
                                              size_t forced);
uint32_t dequant_tile_threads(const dequant_tile_class *c);

/* ---- dequant_fragment: how dequant_fragment_f16 divides its work ---- */

typedef struct dequant_fragment_shape {
    uint64_t m, n;
    bool rounds; /* weights of the format are rounded to halves by f16 arithmetic */
} dequant_fragment_shape;

typedef struct dequant_fragment_class {
    choice_row row;
    uint8_t splits; /* subgroups of a workgroup; they share K */
} dequant_fragment_class;

/* Returns NULL if the device has no units for it. */
const dequant_fragment_class *dequant_fragment_choose(const dequant_fragment_shape *shape,
                                                      const device_profile *profile, size_t forced);
uint64_t dequant_fragment_groups(const dequant_fragment_shape *shape,
                                 const device_profile *profile);

/* ---- dequant_panel: the tiles of dequant_panel ---- */

#define DEQUANT_PANEL_PART 32 /* columns of a subgroup */

typedef struct dequant_panel_class {
    choice_row row;
    uint8_t rows, subgroups; /* of x, of a workgroup */
    uint8_t cost;            /* of a tile, relative to others */
} dequant_panel_class;

/* Returns NULL if the device has no units for it. */
const dequant_panel_class *dequant_panel_choose(const matmul_shape *shape,
                                                rlxvk_precision precision,
                                                const device_profile *profile, size_t forced);
uint64_t dequant_panel_columns(const dequant_panel_class *c); /* of a workgroup */
/* How many groups of K a workgroup sums. If it is only a part of K, the partial sums are joined
 * afterwards. */
uint64_t dequant_panel_slice(const dequant_panel_class *c, const matmul_shape *shape,
                             const device_profile *profile);

#endif
