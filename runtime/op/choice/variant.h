/*
 * Kernel variants by name. A family that has a choice of kernels keeps a table of named rows
 * (choice.h) and chooses by shape and device profile; this is how a caller names a row instead:
 * RLXVK_VARIANT or the compile option `variants`, "matmul=tiled_64x128,conv=direct_block". A named
 * row that cannot do the shape on the device is passed over and the table decides. Pure.
 */
#ifndef RLXVK_VARIANT_H
#define RLXVK_VARIANT_H

#include "op/choice/choice.h"

#define VARIANT_DIMS 4
#define VARIANT_TAG  24

struct lowering;

/* The row that a caller names, a family each: its index and 1, or 0 for none. */
typedef struct variant_set {
    uint8_t rows[CHOICE_COUNT];
} variant_set;

/* Reads "family=row,family=row"; NULL and "" are none. E_ATTR for an unknown family or row; the
 * text lists those there are. `what` names the source. A failed read leaves *out as it was. */
rlxvk_status variant_parse(const char *choices, const char *what, variant_set *out);
/* One more named row; E_ATTR as above. */
rlxvk_status variant_add(const rlxvk_variant *v, const char *what, variant_set *set);
/* The row that is named for a family, or VARIANT_NONE. */
size_t variant_named(const variant_set *set, choice_kind family);
/* Whether this row (by the address of its name) is named for its family. */
bool variant_is_named(const variant_set *set, const char *row);

/* Who chose a row. */
enum variant_source { VARIANT_BY_TABLE, VARIANT_BY_NAME, VARIANT_BY_TUNING };

typedef struct variant_choice {
    const char *row; /* asked for; the family passes over what it cannot do */
    uint8_t source;  /* enum variant_source */
} variant_choice;

/* What a choice depends on, for measured choices (tuning.h). */
typedef struct variant_query {
    const choice_family *family;
    char tag[VARIANT_TAG]; /* what is no size: transposes, precision, format; no spaces */
    uint64_t dims[VARIANT_DIMS];
} variant_query;

/* What a lowering asks before it selects: the row to prefer (named, else measured), or
 * VARIANT_NONE. lower_emit then notes the source on dispatches of that row. `tag` and `dims` as in
 * variant_query; NULL: nothing was measured. */
size_t variant_choose(struct lowering *l, choice_kind family, const char *tag,
                      const uint64_t dims[VARIANT_DIMS]);

#endif
