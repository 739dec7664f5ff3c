/*
 * The choice of kernels. A kernel kind has a table of named variants, in order of preference.
 * Each row begins with a choice_row, which has the conditions that all kinds share. The kind's
 * `fit` has the others. choice_select searches any such table. To add a variant, add a row; to add
 * a kind, add a table and its line in choice.def. Pure.
 */
#ifndef RLXVK_CHOICE_H
#define RLXVK_CHOICE_H

#include "base/profile.h"

/* The kind of a device, as a bit. A row has the set of kinds on which it may be chosen. */
enum choice_setting {
    ON_NATIVE = 1,     /* hardware with a driver of its own */
    ON_TRANSLATED = 2, /* hardware through a driver for another API */
    ON_SOFTWARE = 4,   /* no hardware: the invocations of a workgroup run in turns */
    ON_HARDWARE = ON_NATIVE | ON_TRANSLATED,
    ON_PORTABLE = ON_TRANSLATED | ON_SOFTWARE, /* plain kernels, because barriers, shared memory and
                                                * unrolled code cost more than they save */
    ON_ALL = ON_HARDWARE | ON_SOFTWARE
};

/* NEEDS: otherwise the row cannot run. IF: otherwise it is chosen only if it is preferred. */
enum choice_condition {
    NEEDS_SHUFFLES = 1, /* in whole subgroups */
    NEEDS_BYTE_PRODUCTS = 2,
    IF_QUICK_BYTES = 4, /* only if the hardware has an instruction for byte products */
    IF_FILLS = 8,       /* only if its workgroups keep (nearly) every compute unit busy */
    NEEDS_BALLOTS = 16, /* in whole subgroups, with or without shuffles */
    CHOICE_OWN = 32     /* the first of the kind's own conditions, which its `fit` reads */
};

/* The name is an array in the row, so its address is unique. Two tables may have rows of the same
 * name, and pointers to equal literals could be equal. */
typedef struct choice_row {
    char name[24];
    uint8_t settings;   /* of enum choice_setting */
    uint8_t conditions; /* of enum choice_condition */
} choice_row;

/* A row for one problem on one device. */
typedef struct choice_fit {
    bool can, suits;  /* by the kind's conditions: whether it can run, whether it should */
    uint32_t threads; /* of a workgroup, as are shared_bytes; 0: within every device's limits */
    uint64_t shared_bytes;
    uint64_t groups; /* number of workgroups, for IF_FILLS */
    /* Values that a thread keeps, and those that unrolled code loads for its next products. A row
     * that needs more registers than a thread has is only chosen if it is preferred. 0: few. */
    uint32_t kept, loaded;
    double cost; /* estimate by which rows are compared; 0: none */
} choice_fit;

/* Registers of an invocation that computes a tile of rows x columns: its sums, and two columns of
 * a and two rows of b at a time. */
static inline uint32_t choice_tile_registers(uint32_t rows, uint32_t columns)
{
    return rows * columns + 4 * (rows + columns);
}

typedef struct choice_table {
    const void *rows; /* each begins with a choice_row */
    size_t row_bytes, count;
    choice_fit (*fit)(const void *row, const void *problem, const device_profile *profile);
    bool last_takes_all; /* if no other row fits, the last one is chosen, whatever its conditions */
} choice_table;

#define CHOICE_ROWS(array)                                                                         \
    .rows = (array), .row_bytes = sizeof *(array), .count = ARRAY_COUNT(array)

/* The kernel kinds of choice.def: CHOICE_matmul ... */
typedef enum choice_kind {
#define KIND(name, ops, precisions) CHOICE_##name,
#include "op/choice/choice.def"
    CHOICE_COUNT
} choice_kind;

typedef struct kernel_kind {
    const char *name, *ops;
    const choice_table *table;
    unsigned precisions;
} kernel_kind;

extern const kernel_kind choice_kinds[CHOICE_COUNT];

#define KIND(name, ops, precisions) extern const choice_table name##_choice;
#include "op/choice/choice.def"

/* No row. */
#define VARIANT_NONE SIZE_MAX

enum choice_setting choice_setting_of(const device_profile *profile);
/* Chooses a row:
 *   - the row `preferred` (VARIANT_NONE: none), if it can run
 *   - else the first row that can and should run on this device; if it has a cost, the one of the
 *     least cost among those rows
 *   - else the last row that can run, or NULL; with last_takes_all the last row of the table */
const void *choice_select(const choice_table *table, const void *problem,
                          const device_profile *profile, size_t preferred);
const void *choice_row_at(const choice_table *table, size_t index);
/* NULL if the index is past the last row. */
const char *choice_row_name(const kernel_kind *kind, size_t index);
/* The kind or the row whose name is these `length` characters; NULL or VARIANT_NONE if there is
 * none. */
const kernel_kind *choice_find_kind(const char *name, size_t length);
size_t choice_find_row(const kernel_kind *kind, const char *name, size_t length);
/* Whether an op is in the kind's list. */
bool choice_reaches(const kernel_kind *kind, const char *op);

#endif
