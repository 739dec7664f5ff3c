/* Random choices for fuzzed sequences of calls: numbers, names and data, all from the bytes of the
 * fuzz input. */
#ifndef RLXVK_TEST_CHOICE_H
#define RLXVK_TEST_CHOICE_H

#include "support/fuzz_input.h"
#include "support/model.h"

extern struct choices {
    fuzz_input in;
    bool calm; /* choose nothing wrong, and no values that make a run fail */
} choices;

uint32_t choose(uint32_t n);
/* True once in `n` times. False if the input is used up, unless n is 1. */
bool seldom(uint32_t n);

/* A block of exactly that size, so that a sanitizer sees every overrun. */
void *block(size_t size);
/* Random data for a leaf. If `bytes` is set, host bytes of `dtype`; otherwise f32 words. */
void *fill(const model_node *n, rlxvk_dtype dtype, bool bytes, size_t *length);
/* Chooses the type of a caller's buffer: the tensor's own dtype, f32 words, or seldom a type that
 * the call refuses. */
void choose_type(const model_node *n, rlxvk_dtype *dtype, bool *f32_words);
/* The tensor's own dtype. F32 if there is no node, and seldom otherwise. */
rlxvk_dtype node_dtype(const model_node *n);
const char *type_name(rlxvk_dtype dtype, bool f32_words);
/* Returns `data`. Seldom frees it and returns NULL, which is an error if there is anything to
 * read. */
void *seldom_null(void *data);
/* The statuses of a call that gets NULL for something that it would write. */
status_set also_null(status_set allowed);

/* The name of an input or param, seldom a wrong name or NULL. */
const char *choose_name(const model_executable *m, model_op op);
const model_node *node_named(const model_executable *m, model_op op, const char *name);
/* The index of an output, seldom one out of range. */
size_t choose_output(const model_executable *m);
/* Whether a test may try to feed the input from the output: the call is refused, or values stay
 * small. */
bool may_feed(const model_executable *m, const char *name, size_t index);
rlxvk_rng_options choose_rng(void);
/* The name; "NULL" if it is NULL. */
const char *text_of(const char *name);

/* Options of a compile. `rng` is always filled, but the options seldom point to it. */
rlxvk_compile_options choose_options(const model_graph *g, rlxvk_rng_options *rng);

#endif
