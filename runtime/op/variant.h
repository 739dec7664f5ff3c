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

typedef struct variant_family {
    const char *name;
    const char *(*row)(size_t index); /* NULL past the last */
} variant_family;

extern const variant_family variant_families[];
extern const size_t variant_family_count;

/* The row that `choices` (NULL: none) names for a family, or VARIANT_NONE. Choices must have passed
 * variant_check. */
size_t variant_forced(const char *choices, const char *family);
/* E_ATTR for an unknown family or row; the text lists those there are. `what` names the source. */
rlxvk_status variant_check(const char *choices, const char *what);

#endif
