/*
 * The runner's side of the case language (cases.h): all case lines, their parsed form, and the
 * contents of leaves. A leaf's contents depend only on seed, row, case number and leaf name. So a
 * case that runs by itself gets the same contents as in a full run.
 */
#ifndef RLXVK_CASE_TABLE_H
#define RLXVK_CASE_TABLE_H

#include "base/base.h"
#include "conform/cases/cases.h"

struct case_list {
    VECTOR(char *) lines;
    bool failed; /* a line did not fit CASE_TEXT, or memory ran out */
};

/* Makes every line of every family, in the order of the families.
 *   E_OUT_OF_HOST_MEMORY
 *   E_LENGTH   a line is too long */
RLXVK_MUST_CHECK rlxvk_status case_list_generate(case_list *out);
void case_list_destroy(case_list *list);

/* The family that builds this op; NULL if none does. */
const case_family *case_find_family(const char *row);
/* The op with the nearest name; NULL if none is near. */
const char *case_nearest_row(const char *row);

/* Parses a line. E_ATTR: the text has the line and the mistake. */
RLXVK_MUST_CHECK rlxvk_status case_parse(const char *line, case_spec *out);
/* Adds "key=value" to the pairs. */
RLXVK_MUST_CHECK rlxvk_status case_parse_pair(case_spec *s, const char *token);

bool case_is_param(const case_input *input); /* otherwise it is an input */
bool case_is_raw(const case_input *input);   /* contents are bytes, otherwise f32 words */
/* The leaf's length in words or bytes: numel, or 2 * numel for C64. */
uint64_t case_length(const case_input *input);

/* Writes case_length words or bytes. E_ATTR: the fill is unknown. */
RLXVK_MUST_CHECK rlxvk_status case_fill(const case_spec *s, size_t input, uint64_t seed,
                                        uint64_t number, void *out);
/* Applies one fill, given by its text, for contents that do not belong to a case. */
RLXVK_MUST_CHECK rlxvk_status fill_words(const char *fill, uint64_t seed, uint64_t count,
                                         float *out);
RLXVK_MUST_CHECK rlxvk_status fill_bytes(const char *fill, uint64_t seed, uint64_t count,
                                         uint8_t *out);

#endif
