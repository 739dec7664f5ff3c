/*
 * Kernel variants by name. A kernel kind has a table of variants (choice.h) and chooses by shape
 * and device profile. A caller can name a variant instead, by RLXVK_VARIANT or the compile option
 * `variants`: "matmul=tiled_64x128,conv=direct_block". If the named variant cannot compute the
 * shape on the device, it is ignored and the table decides. Pure.
 */
#ifndef RLXVK_VARIANT_H
#define RLXVK_VARIANT_H

#include "op/choice/choice.h"

#define VARIANT_DIMS 4
#define VARIANT_TAG  24

struct lowering;

/* The row that a caller named for each kind: its index and 1, or 0 for none. */
typedef struct variant_set {
    uint8_t rows[CHOICE_COUNT];
} variant_set;

/* Reads "kind=row,kind=row". NULL and "" name none. E_ATTR for an unknown kind or row; the
 * error lists the known ones. `what` names the source in errors. *out changes only on success. */
rlxvk_status variant_parse(const char *choices, const char *what, variant_set *out);
/* Adds one named row. E_ATTR as above. */
rlxvk_status variant_add(const rlxvk_variant *v, const char *what, variant_set *set);
/* The row that is named for a kind, or VARIANT_NONE. */
size_t variant_named(const variant_set *set, choice_kind kind);
/* Whether this row, found by the address of its name, is named for its kind. */
bool variant_is_named(const variant_set *set, const char *row);

/* Who chose a row. */
enum variant_source { VARIANT_BY_TABLE, VARIANT_BY_NAME, VARIANT_BY_TUNING };

typedef struct variant_choice {
    const char *row; /* the preferred row, even if the kind cannot use it */
    uint8_t source;  /* enum variant_source */
} variant_choice;

/* The problem that a choice depends on, for measured choices (tuning.h). */
typedef struct variant_query {
    const kernel_kind *kind;
    char tag[VARIANT_TAG]; /* all but sizes: transposes, precision, format; no spaces */
    uint64_t dims[VARIANT_DIMS];
} variant_query;

/* Lowerings call this before they select. It returns the row to prefer (named, else measured) or
 * VARIANT_NONE. lower_emit later notes the source on dispatches of that row. `tag` and `dims` are
 * as in variant_query. A NULL tag means that the choice is never measured. */
size_t variant_choose(struct lowering *l, choice_kind kind, const char *tag,
                      const uint64_t dims[VARIANT_DIMS]);

#endif
