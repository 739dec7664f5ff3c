/*
 * Golden vectors: a folder with cases.txt and .npy arrays, computed by outside frameworks.
 *
 *   name op=OP [key=value ...] in=tensor:file;... out=tensor:file;...
 *
 * Inputs are float32, or uint8 for packed bytes; outputs float64. The op names of the outside world
 * are mapped onto rows here (activation kind=relu is row relu, dequant is dequant_gather of every
 * row, ...), so that the case builders serve golden cases too.
 */
#ifndef RLXVK_GOLDEN_H
#define RLXVK_GOLDEN_H

#include "conform/cases/table.h"
#include "conform/npy.h"

typedef struct golden_case {
    char name[64];
    char *line;     /* as written */
    case_spec spec; /* row, attributes, inputs; row is "" when no op of this build takes the case */
    char files[CASE_MAX_INPUTS][160];   /* of the inputs */
    char outputs[CASE_MAX_INPUTS][160]; /* one after the other, they are the result */
    uint64_t ends[CASE_MAX_INPUTS];     /* elements of the first, of the first two ... */
    size_t output_count;
    npy_array contents[CASE_MAX_INPUTS], expected;
} golden_case;

typedef struct golden_set {
    char *directory;
    VECTOR(golden_case) cases;
} golden_set;

/* Reads cases.txt; the arrays come with golden_load. E_FILE, E_ATTR name the file and the line. */
RLXVK_MUST_CHECK rlxvk_status golden_open(const char *directory, golden_set *out);
void golden_close(golden_set *set);

/* Reads the arrays of one case and completes its spec with their shapes. */
RLXVK_MUST_CHECK rlxvk_status golden_load(const golden_set *set, golden_case *c);
void golden_unload(golden_case *c);

/* Whether a result of so many elements is the first output, or the first few. */
bool golden_has_length(const golden_case *c, uint64_t length);

#endif
