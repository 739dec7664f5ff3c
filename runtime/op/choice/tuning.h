/*
 * Measured choices of kernel variants: points of (family, tag, up to four dimensions) and the row
 * that was fastest there, from the profile file of the device (rlxvk bench --tune) and from the
 * tables that come with the library (tuning_data.h). The nearest point decides where every
 * dimension is within a factor of two of it. Pure.
 *
 * The file: a first line, then one point a line; lines that do not read so, or name a family or row
 * that this library does not have, are ignored.
 *   rlxvk tuning 1
 *   matmul nt 1,4096,14336,1 vector 58.1
 * that is family, tag (what else decides: transposes, precision, format), dimensions (0: unused),
 * row ("table": what the family's own table chooses) and its microseconds.
 */
#ifndef RLXVK_TUNING_H
#define RLXVK_TUNING_H

#include "op/choice/variant.h"

#define TUNING_HEADER "rlxvk tuning 1\n"
#define TUNING_TABLE  "table"
#define TUNING_ENDING "tuning" /* of the file's name */

typedef struct tuning_point {
    size_t row; /* VARIANT_NONE: the table's */
    uint32_t dims[VARIANT_DIMS];
    uint8_t family;
    char tag[VARIANT_TAG];
} tuning_point;

typedef struct tuning {
    VECTOR(tuning_point) points;
    size_t from_file; /* the first so many; they go before the others */
} tuning;

/* A point as it stands in tuning_data.h. */
typedef struct tuning_entry {
    const char *family, *tag;
    uint32_t dims[VARIANT_DIMS];
    const char *row;
    float microseconds;
} tuning_entry;

/* The points of a profile file's text, and then those for devices whose name holds `device`. Either
 * may be NULL. */
rlxvk_status tuning_create(const char *text, const char *device, tuning *out);
void tuning_destroy(tuning *t);
/* The row for a query; VARIANT_NONE where no point is near or the table was best. */
size_t tuning_find(const tuning *t, const variant_query *query);
/* The query and its row as a line of the file. */
void tuning_write(const variant_query *query, const char *row, double microseconds, text *out);

#endif
