/*
 * The choice of kernels. A family that has one keeps a table of named rows, in order of preference;
 * each begins with a choice_row, which says what is asked alike in all families, and the family's
 * `fit` says the rest. choice_select walks any table. A further variant is a further row; a further
 * family is a table and its line in choice.def. Pure.
 */
#ifndef RLXVK_CHOICE_H
#define RLXVK_CHOICE_H

#include "base/profile.h"

/* What a device is, as a bit; where a row may be taken, as a set. */
enum choice_setting {
    ON_NATIVE = 1,     /* hardware, with a driver of its own */
    ON_TRANSLATED = 2, /* hardware through a driver for something else */
    ON_SOFTWARE = 4,   /* no hardware: the invocations of a workgroup run in turns */
    ON_HARDWARE = ON_NATIVE | ON_TRANSLATED,
    ON_PORTABLE = ON_TRANSLATED | ON_SOFTWARE, /* plain kernels: barriers, shared memory and
                                                  unrolled code cost more than they save */
    ON_ALL = ON_HARDWARE | ON_SOFTWARE
};

/* NEEDS: a row cannot be taken otherwise. IF: it is not, unless it is preferred. */
enum choice_condition {
    NEEDS_SHUFFLES = 1, /* in whole subgroups */
    NEEDS_BYTE_PRODUCTS = 2,
    IF_QUICK_BYTES = 4, /* only where hardware has an instruction for byte products */
    IF_FILLS = 8,       /* only where its workgroups keep (nearly) every compute unit busy */
    NEEDS_BALLOTS = 16, /* in whole subgroups, with or without shuffles */
    CHOICE_OWN = 32     /* the first of the family's own, which its `fit` reads */
};

/* The name is part of the row: its address tells the row from those of other tables with the same
 * name, as a pointer to a literal would not. */
typedef struct choice_row {
    char name[24];
    uint8_t settings;   /* of enum choice_setting */
    uint8_t conditions; /* of enum choice_condition */
} choice_row;

/* What a row makes of a problem on a device. */
typedef struct choice_fit {
    bool can, suits;  /* by the family's own terms: what it cannot do, what it should not */
    uint32_t threads; /* of a workgroup, and its shared memory; 0: no more than the baseline */
    uint64_t shared_bytes;
    uint64_t groups; /* workgroups, for IF_FILLS */
    double cost;     /* rows that have an estimate are compared by it; 0: none */
} choice_fit;

typedef struct choice_table {
    const void *rows; /* each begins with a choice_row */
    size_t row_bytes, count;
    choice_fit (*fit)(const void *row, const void *problem, const device_profile *profile);
    bool last_takes_all; /* the last row is taken where no other is, whatever its terms */
} choice_table;

#define CHOICE_ROWS(array)                                                                         \
    .rows = (array), .row_bytes = sizeof *(array), .count = ARRAY_COUNT(array)

/* The families of choice.def: CHOICE_matmul ... */
typedef enum choice_kind {
#define FAMILY(name, ops, precisions) CHOICE_##name,
#include "op/choice/choice.def"
    CHOICE_COUNT
} choice_kind;

typedef struct choice_family {
    const char *name, *ops;
    const choice_table *table;
    unsigned precisions;
} choice_family;

extern const choice_family choice_families[CHOICE_COUNT];

#define FAMILY(name, ops, precisions) extern const choice_table name##_choice;
#include "op/choice/choice.def"

/* No row. */
#define VARIANT_NONE SIZE_MAX

enum choice_setting choice_setting_of(const device_profile *profile);
/* The row `preferred` (VARIANT_NONE: none) where it can do the problem. Else, of the rows for the
 * device's setting that can, the first that suits; or, where that has a cost, the one of the least
 * among those that suit. Else the last that can, or NULL; or last_takes_all's. */
const void *choice_select(const choice_table *table, const void *problem,
                          const device_profile *profile, size_t preferred);
const void *choice_row_at(const choice_table *table, size_t index);
/* NULL past the last. */
const char *choice_row_name(const choice_family *family, size_t index);
/* Of the names of these lengths; NULL and VARIANT_NONE where there is none. */
const choice_family *choice_find_family(const char *name, size_t length);
size_t choice_find_row(const choice_family *family, const char *name, size_t length);
/* Whether an op stands in the family's list. */
bool choice_reaches(const choice_family *family, const char *op);

#endif
