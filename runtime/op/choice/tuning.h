/*
 * Measured choices of kernel variants. A point is a kernel kind, a tag, up to four dimensions and
 * the variant that was fastest there. Points come from the device's tuning file (rlxvk bench
 * --tune) and from tables in the library (tuning_data.h). The nearest point decides, if every
 * dimension is within a factor of two of it. Pure.
 *
 * The file has a first line, and then one point on each line:
 *   rlxvk tuning 1
 *   matmul nt 1,4096,14336,1 vector 58.1
 * The words of a point are:
 *   kind
 *   tag            the other things that decide: transposes, precision, format
 *   dimensions     0: unused
 *   row            the variant; "table" means the choice of the kind's own table
 *   microseconds
 * Other lines are ignored. So are points with a kind or row that this library does not have.
 */
#ifndef RLXVK_TUNING_H
#define RLXVK_TUNING_H

#include "op/choice/variant.h"

#define TUNING_HEADER "rlxvk tuning 1\n"
#define TUNING_TABLE  "table"
#define TUNING_ENDING "tuning" /* the end of the file's name */

typedef struct tuning_point {
    size_t row; /* VARIANT_NONE: the choice of the kind's table */
    uint32_t dims[VARIANT_DIMS];
    uint8_t kind;
    char tag[VARIANT_TAG];
} tuning_point;

typedef struct tuning {
    VECTOR(tuning_point) points;
    size_t from_file; /* the first points, which win over the others */
} tuning;

/* A point in tuning_data.h. */
typedef struct tuning_entry {
    const char *kind, *tag;
    uint32_t dims[VARIANT_DIMS];
    const char *row;
    float microseconds;
} tuning_entry;

/* The points of a tuning file's text, then those in the library for this device: the table's name
 * must be part of `device`. Either may be NULL. */
rlxvk_status tuning_create(const char *text, const char *device, tuning *out);
void tuning_destroy(tuning *t);
/* The row for a query. VARIANT_NONE if no point is near, or if the kind's own table was best. */
size_t tuning_find(const tuning *t, const variant_query *query);
/* Writes the query and its row as a line of the file. */
void tuning_write(const variant_query *query, const char *row, double microseconds, text *out);

#endif
