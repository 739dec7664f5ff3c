/*
 * The case language: conformance cases, one a line.
 *
 *   softmax axis=1 in=x:f32:3x5x7:uniform
 *   layer_norm eps=1e-5 axis=-1 in=x:f32:4x64:offset;gamma:f32:64;beta:f32:64
 *   row [key=value ...] in=name:dtype:dims[:fill];...
 *
 * The dims "scalar" mean rank 0. Each file of a family has the case lines and a builder, which
 * makes a graph from a line. The runner makes the leaves, fills them from the seed, runs the device
 * and the host reference, and compares. Golden cases use the same builders. Leaves of f16, bf16, u8
 * and i8 are params; all others are inputs.
 *
 * Keys for every op:
 *   expect=E_X              the graph must fail with this status, and the text must name the row
 *   run=E_X                 every run must end with this status; outputs are compared nevertheless
 *   within=F                each element may be off by 1e-6 + F max|reference|, for ops built of
 *                           several nodes; an opt-in precision adds to F
 *   scratch=m               computes the inputs of bit mask m by a copy, and copies the result, so
 *                           that it may take their memory
 *   backend=minstd|zero     the generator of the run's random numbers
 *   variant=kind=row      asks for this kernel variant, before those of the command line; if the
 *                           device cannot run it, the library chooses
 *   precision=...           see case_precision
 *
 * Fills:
 *   uniform [-3,3] (default), unit [-1,1], positive [0.1,3], range:a:b
 *   integers        -8..8
 *   special         uniform, with NaN, +-Inf, +-0, denormals and the largest numbers: at least one
 *                   of each; a tensor of fewer than ten elements has some of them, which the seed
 *                   chooses
 *   large           magnitudes 1e30 and 1e-30
 *   outliers        uniform, but one of 40 is 1e4 times as large
 *   offset          1e4 + unit noise
 *   zero, one, constant:v, bool, iota
 *   index:n         0..n-1
 *   badindex:n      also indices outside of that range, NaN, x.4 and x.5
 *   neginf          mostly -Inf
 *   bytes           random bytes
 *   quant:FORMAT    random blocks with finite scales
 *   turned:h:w      points of a grid [.., h, w, 2] over an image, rotated by 15 degrees
 */
#ifndef RLXVK_CASES_H
#define RLXVK_CASES_H

#include "base/compiler.h"

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
    char row[40]; /* an op of the op table */
    case_pair pairs[24];
    size_t pair_count;
    case_input inputs[CASE_MAX_INPUTS];
    size_t input_count;
} case_spec;

/* These read attributes for builders. They return the fallback if the key is absent. */
const char *case_word(const case_spec *s, const char *key, const char *fallback);
/* The activation of this name. NONE if the key is absent; (rlxvk_activation)-1 if the name is
 * unknown. */
rlxvk_activation case_activation(const case_spec *s, const char *key);
int64_t case_integer(const case_spec *s, const char *key, int64_t fallback);
double case_real(const case_spec *s, const char *key, double fallback);
/* Parses "0,2,-1" into values. Returns how many there are, at most `capacity`. */
size_t case_integers(const case_spec *s, const char *key, int32_t *values, size_t capacity);
/* The same for up to three axes. Entries that are not given stay unchanged. */
void case_entries(const case_spec *s, const char *key, int64_t out[3]);
/* Reads the windows of a pool. If the case names no stride, it is 1. */
void case_windows(const case_spec *s, rlxvk_pool_options *out);
/* Reads precision=f32|f16|bf16|split, the precision with which any op is compiled. */
rlxvk_precision case_precision(const case_spec *s, rlxvk_precision fallback);
/* Parses "2x3x4". */
rlxvk_shape case_shape(const case_spec *s, const char *key);
/* The tensor of the input with this name; RLXVK_NONE if the case has none. */
rlxvk_tensor case_tensor(const case_spec *s, const rlxvk_tensor *inputs, const char *name);

/* The constant [n, n] with `value` on the diagonal, else 0. */
rlxvk_tensor case_diagonal(rlxvk_graph *g, int64_t n, float value);
/* Drops the first indices of axis 0 of x by a view. The value of `key` is how many. */
rlxvk_tensor case_shifted(rlxvk_graph *g, const case_spec *s, const char *key, rlxvk_tensor x);
/* The tensor of the input with this name, behind a view (shift=n) and a copy of it (scratch=m). */
rlxvk_tensor case_operand(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs,
                          const char *name);
/* If turned=1, exchanges the two axes before the last one. */
rlxvk_tensor case_turned(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x);
/* If cut=n, drops n columns on either side; then does the same as case_turned. The elements are
 * then not contiguous. */
rlxvk_tensor case_viewed(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x);

typedef struct case_list case_list;
/* Appends one case line, printf-style. */
void case_add(case_list *list, const char *format, ...) FORMATS(2, 3);
/* Appends lines: `head` followed by each of `rests`. */
void case_add_all(case_list *list, const char *head, const char *const *rests, size_t count);

typedef struct case_family {
    const char *const *rows; /* names of ops that this family builds; NULL-terminated */
    /* Adds the nodes to the graph and returns the result. Errors stick to the graph. */
    rlxvk_tensor (*build)(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs);
    void (*generate)(case_list *list);
} case_family;

/* Declares the `const case_family` of each file in this folder. The build makes the list. */
#define CASES(family) extern const case_family family;
#include "case_families.h"
#undef CASES

#endif
