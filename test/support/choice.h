/* What fuzzed sequences of calls choose by the bytes of their input: numbers, names, data. */
#ifndef RLXVK_TEST_CHOICE_H
#define RLXVK_TEST_CHOICE_H

#include "support/fuzz_input.h"
#include "support/model.h"

extern struct choices {
    fuzz_input in;
    bool calm; /* nothing wrong is chosen, and no values that a run fails on */
} choices;

uint32_t choose(uint32_t n);
/* Once in `n`, and never past the end of the input. */
bool seldom(uint32_t n);

/* Blocks of exactly that size, so that a sanitizer sees every overrun. */
void *block(size_t size);
/* Data for a leaf in that encoding: host bytes of `dtype`, or f32 values. */
void *fill(const model_node *n, rlxvk_dtype dtype, bool bytes, size_t *length);
/* The type of a buffer: the tensor's own, f32 words, or seldom what is refused. */
void choose_type(const model_node *n, rlxvk_dtype *dtype, bool *f32_words);
/* The tensor's own; seldom, or without a node, F32. */
rlxvk_dtype node_dtype(const model_node *n);
const char *type_name(rlxvk_dtype dtype, bool f32_words);
/* The pointer, or seldom NULL, which is refused where there is anything to read. */
void *seldom_null(void *data);
/* The statuses of a call that is given NULL where it would write. */
status_set also_null(status_set allowed);

/* A name of an input or param, seldom a wrong one, and its node. */
const char *choose_name(const model_executable *m, model_op op);
const model_node *node_named(const model_executable *m, model_op op, const char *name);
/* An output's index, seldom none. */
size_t choose_output(const model_executable *m);
/* Whether the input may be fed by the output, or is refused: not where values would grow wild. */
bool may_feed(const model_executable *m, const char *name, size_t index);
rlxvk_rng_options choose_rng(void);
/* "NULL" for NULL. */
const char *text_of(const char *name);

/* Options of a compile; `rng` is filled, and seldom what they point to. */
rlxvk_compile_options choose_options(const model_graph *g, rlxvk_rng_options *rng);

#endif
