/*
 * Conformance cases in one small language, one case a line:
 *
 *   softmax axis=1 in=x:f32:3x5x7:uniform
 *   layer_norm eps=1e-5 axis=-1 in=x:f32:4x64:offset;gamma:f32:64;beta:f32:64
 *   row [key=value ...] in=name:dtype:dims[:fill];...
 *
 * dims "scalar" is rank 0. A family file gives a builder (text -> graph) and the lines; the runner
 * makes the leaves, fills them from the seed, runs the device and the host reference and compares.
 * Golden cases use the same builders. Leaves are Inputs, except f16, bf16, u8 and i8, which are
 * Params.
 *
 * expect=E_X: the graph must fail so, naming the row; run=E_X: every run must end so, and its
 * outputs are compared all the same. within=F: every element may be off by 1e-6 + F max|reference|,
 * for ops built of several nodes; an opt-in precision adds to F. backend=minstd|zero: of the run's
 * random numbers.
 *
 * variant=family=row: kernels by name, before what the command line says; where the device cannot,
 * its own choice runs.
 *
 * Fills: uniform [-3,3] (default), unit [-1,1], range:a:b, positive [0.1,3], integers -8..8,
 * special (NaN, +-Inf, +-0, denormals and the largest numbers among uniform: one of each at least,
 * or a choice by the seed if the tensor has fewer than ten elements), large (magnitudes 1e30 and
 * 1e-30), outliers (uniform, one of 40 1e4 times as large), offset (1e4 + unit noise), zero, one,
 * constant:v, bool, index:n (0..n-1), badindex:n (also outside, NaN, x.4, x.5), bytes, quant:FORMAT
 * (random blocks with finite scales), neginf (mostly -Inf), iota, turned:h:w (points of a grid [..,
 * h, w, 2] over an image, turned by 15 degrees).
 */
#ifndef RLXVK_CASES_H
#define RLXVK_CASES_H

#include <rlxvk_ops.h>
#include <rlxvk_ops_domain.h>
#include <rlxvk_train.h>

#define CASE_MAX_INPUTS 16
#define CASE_TEXT       512

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct case_input {
    char name[24], fill[40];
    rlxvk_dtype dtype;
    rlxvk_shape shape;
} case_input;

typedef struct case_pair {
    char key[24], value[72];
} case_pair;

typedef struct case_spec {
    char row[40]; /* row of the op table */
    case_pair pairs[24];
    size_t pair_count;
    case_input inputs[CASE_MAX_INPUTS];
    size_t input_count;
} case_spec;

/* Attribute access for builders; the fallback is returned when the key is absent. */
const char *case_word(const case_spec *s, const char *key, const char *fallback);
/* The activation of this name; NONE without the key, (rlxvk_activation)-1 of another name. */
rlxvk_activation case_activation(const case_spec *s, const char *key);
int64_t case_integer(const case_spec *s, const char *key, int64_t fallback);
double case_real(const case_spec *s, const char *key, double fallback);
/* "0,2,-1" -> values; returns how many (at most `capacity`). */
size_t case_integers(const case_spec *s, const char *key, int32_t *values, size_t capacity);
/* The same for axes; those that are not there stay as they are. */
void case_entries(const case_spec *s, const char *key, int64_t out[3]);
/* kernel, stride and padding of a pool; the stride of a case is 1 where it names none. */
void case_windows(const case_spec *s, rlxvk_pool_options *out);
/* precision=f32|f16|bf16|split: of the compile, for any op. */
rlxvk_precision case_precision(const case_spec *s, rlxvk_precision fallback);
/* "2x3x4" */
rlxvk_shape case_shape(const case_spec *s, const char *key);
/* The tensor of the input with this name; RLXVK_NONE when the case has none. */
rlxvk_tensor case_tensor(const case_spec *s, const rlxvk_tensor *inputs, const char *name);

/* x without as many first indices of axis 0 as `key` says, by a view. */
rlxvk_tensor case_shifted(rlxvk_graph *g, const case_spec *s, const char *key, rlxvk_tensor x);
/* turned=1: x with the two axes before its last exchanged. */
rlxvk_tensor case_turned(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x);
/* The same without cut=n columns on either side: no run of x's memory. */
rlxvk_tensor case_viewed(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x);

typedef struct case_list case_list;
/* Appends one case line, printf-style. */
void case_add(case_list *list, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends `head` and each of `rests` as a line. */
void case_add_all(case_list *list, const char *head, const char *const *rests, size_t count);

typedef struct case_family {
    const char *const *rows; /* row names this family builds; NULL-terminated */
    /* Adds the nodes to the graph and returns the result. Errors stick to the graph. */
    rlxvk_tensor (*build)(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs);
    void (*generate)(case_list *list);
} case_family;

/* Every `const case_family` of the files here, from the build. */
#define CASES(family) extern const case_family family;
#include "case_families.h"
#undef CASES

#endif
