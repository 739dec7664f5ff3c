/*
 * The runner's side of the case language (cases.h): every case line there is, its parsed form, and
 * the content of its leaves. A leaf's content depends only on seed, row, case number and leaf name,
 * so that one case alone reruns as it ran among all.
 */
#ifndef RLXVK_CASE_TABLE_H
#define RLXVK_CASE_TABLE_H

#include "base/base.h"
#include "conform/cases/cases.h"

struct case_list {
    VECTOR(char *) lines;
    bool failed; /* a line did not fit CASE_TEXT, or memory ran out */
};

/* Every line of every family, in the order of the families. E_OUT_OF_HOST_MEMORY, E_LENGTH. */
RLXVK_MUST_CHECK rlxvk_status case_list_generate(case_list *out);
void case_list_destroy(case_list *list);

/* The family that builds a row; NULL when none does. */
const case_family *case_find_family(const char *row);
/* The row whose name is nearest; NULL when none is near. */
const char *case_nearest_row(const char *row);

/* E_ATTR names the line and what is wrong with it. */
RLXVK_MUST_CHECK rlxvk_status case_parse(const char *line, case_spec *out);
/* Adds "key=value" to the pairs. */
RLXVK_MUST_CHECK rlxvk_status case_parse_pair(case_spec *s, const char *token);

bool case_is_param(const case_input *input); /* else an Input */
bool case_is_raw(const case_input *input);   /* content is bytes, else f32 words */
/* Words or bytes of the leaf: numel, 2 * numel for C64. */
uint64_t case_length(const case_input *input);

/* Writes case_length words or bytes. E_ATTR: unknown fill. */
RLXVK_MUST_CHECK rlxvk_status case_fill(const case_spec *s, size_t input, uint64_t seed,
                                        uint64_t number, void *out);
/* One fill by its text, for contents outside a case. */
RLXVK_MUST_CHECK rlxvk_status fill_words(const char *fill, uint64_t seed, uint64_t count,
                                         float *out);
RLXVK_MUST_CHECK rlxvk_status fill_bytes(const char *fill, uint64_t seed, uint64_t count,
                                         uint8_t *out);

#endif
