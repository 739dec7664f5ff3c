/*
 * Kernel variants by name. A family that has a choice of kernels keeps one table of named rows
 * (<family>_select.c) and chooses by shape and device profile; this is how a caller names a row
 * instead: RLXVK_VARIANT or the compile option `variant`, "matmul=tiled_64x128,conv=direct_block".
 * A named row that cannot do the shape on the device is passed over and the table decides. Pure.
 */
#ifndef RLXVK_VARIANT_H
#define RLXVK_VARIANT_H

#include "base/base.h"

#define VARIANT_NONE SIZE_MAX
#define VARIANT_DIMS 4
#define VARIANT_TAG  24

struct lowering;

typedef struct variant_family {
    const char *name;
    const char *(*row)(size_t index); /* NULL past the last */
    const char *ops; /* whose cases reach the rows, separated by commas; NULL: any may */
    unsigned
        precisions; /* the products that have the rows: bits 1 << RLXVK_PRECISION_...; 0: f32 */
} variant_family;

/* Who chose a row. */
enum variant_source { VARIANT_BY_TABLE, VARIANT_BY_NAME, VARIANT_BY_TUNING };

typedef struct variant_choice {
    const char *row; /* asked for; the family passes over what it cannot do */
    uint8_t source;  /* enum variant_source */
} variant_choice;

extern const variant_family variant_families[];
extern const size_t variant_family_count;

/* The row that `choices` (NULL: none) names for a family, or VARIANT_NONE. Choices must have passed
 * variant_check. */
size_t variant_forced(const char *choices, const char *family);
/* What a choice depends on, for measured choices (op/tuning.h). */
typedef struct variant_query {
    const variant_family *family;
    char tag[VARIANT_TAG]; /* what is no size: transposes, precision, format; no spaces */
    uint64_t dims[VARIANT_DIMS];
} variant_query;

/* What a lowering asks before it selects: the row to prefer (named, else measured), or
 * VARIANT_NONE. lower_emit then notes the source on dispatches of that row. `tag` and `dims` as in
 * variant_query; NULL: nothing was measured. */
size_t variant_choose(struct lowering *l, const char *family, const char *tag,
                      const uint64_t dims[VARIANT_DIMS]);
/* Whether the choices name this row (by the address of its name) for its family. */
bool variant_is_named(const char *choices, const char *row);
/* Whether an op stands in the family's list. */
bool variant_reaches(const variant_family *family, const char *op);
/* E_ATTR for an unknown family or row; the text lists those there are. `what` names the source. */
rlxvk_status variant_check(const char *choices, const char *what);

#endif
