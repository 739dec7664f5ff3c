/*
 * Golden vectors: reference results that other frameworks computed. A folder has cases.txt and .npy
 * arrays. Each line of cases.txt is a case:
 *
 *   name op=OP [key=value ...] in=tensor:file;... out=tensor:file;...
 *
 * Inputs are float32, or uint8 if they are packed bytes; outputs are float64. Other frameworks have
 * other names for ops, which are mapped onto ours here. For example, activation kind=relu becomes
 * relu, and dequant becomes dequant_gather of every row. So the builders of ordinary cases also
 * build golden cases.
 */
#ifndef RLXVK_GOLDEN_H
#define RLXVK_GOLDEN_H

#include "conform/cases/table.h"
#include "conform/npy.h"

typedef struct golden_case {
    char name[64];
    char *line;                         /* as in the file */
    case_spec spec;                     /* row is "" if no op of this build fits the case */
    char files[CASE_MAX_INPUTS][160];   /* of the inputs */
    char outputs[CASE_MAX_INPUTS][160]; /* concatenated, they are the result */
    uint64_t ends[CASE_MAX_INPUTS];     /* total elements of the first output, of the first two,
                                           ... */
    size_t output_count;
    npy_array contents[CASE_MAX_INPUTS], expected;
} golden_case;

typedef struct golden_set {
    char *directory;
    VECTOR(golden_case) cases;
} golden_set;

/* Reads cases.txt. The arrays are read later, by golden_load. E_FILE and E_ATTR name the file and
 * the line. */
RLXVK_MUST_CHECK rlxvk_status golden_open(const char *directory, golden_set *out);
void golden_close(golden_set *set);

/* Reads the arrays of one case and sets the shapes of its spec. */
RLXVK_MUST_CHECK rlxvk_status golden_load(const golden_set *set, golden_case *c);
void golden_unload(golden_case *c);

/* Whether the first output, or the first few together, have `length` elements. */
bool golden_has_length(const golden_case *c, uint64_t length);

#endif
