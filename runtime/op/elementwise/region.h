/*
 * Elementwise regions: several elementwise ops as one node, a straight-line program evaluated once
 * per output element. Made by rewriting (rewrite/region.c) or by hand.
 */
#ifndef RLXVK_REGION_H
#define RLXVK_REGION_H

#include "args/elementwise.h"
#include "op/op.h"
#include "op/choice/variant.h"

enum { REGION_NO_OPERAND = 0xff };

/* Operands as the kernel names them: inputs from 0 on, steps from REGION_VALUES_OF_STEPS on. */
typedef struct region_step {
    uint8_t kind, op;   /* REGION_..; the row's code, or the dtype of a cast */
    uint8_t operand[3]; /* where: condition, x, y */
} region_step;

typedef struct region_attributes {
    rlxvk_shape shape;
    uint32_t step_count;
    region_step steps[REGION_STEPS];
    uint32_t scalar_mask, modulus[REGION_INPUTS];
    uint32_t prologue, prologue_input;
} region_attributes;

/* Operands a step of this kind has; 0 when there is no such kind. */
uint32_t region_arity(uint32_t kind);
/* Its ops are those below this; 0 likewise. */
uint32_t region_op_count(uint32_t kind);
/* The row a step does the work of. */
op_kind region_step_row(const region_step *step);
/* The step that does the work of node n, operands left open; false when there is none (fma makes
 * two). */
bool region_step_of(const node *n, region_step *out);

/* Appends the nodes that the steps of region n stand for, reading `inputs`; the id of the last,
 * which has its shape and name. NODE_NONE after a failure. */
uint32_t region_emit_steps(rlxvk_graph *g, const node *n, const uint32_t *inputs);

/* Whether a tensor of shape `from`, read at every element of `to` under numpy broadcasting, is
 * read one to one (*modulus 0), or repeats as a whole every *modulus elements. */
bool region_modulus(const rlxvk_shape *from, const rlxvk_shape *to, uint32_t *modulus);

static inline bool region_is_prologue(const region_attributes *a, uint32_t input)
{
    return a->prologue != RLXVK_REGION_PROLOGUE_NONE && a->prologue_input == input;
}

/* Whether the input is read as one element. */
static inline bool region_is_single(const region_attributes *a, uint32_t input)
{
    return (a->scalar_mask >> input & 1) || a->modulus[input] == 1;
}

/* Members of the family that batches (batch_region.c) share. */
rlxvk_tensor region_build(rlxvk_graph *g, op_kind row, const rlxvk_tensor *inputs, size_t count,
                          const rlxvk_region *region);
rlxvk_status region_infer(const rlxvk_graph *g, node *n, void *attributes);
uint32_t region_sizes(void *attributes, int64_t *out[OP_MOST_SIZES]);
rlxvk_status region_host(const host_call *call);
void region_describe(const node *n, text *out);

/* ---- Kernels (region_select.c) ---- */

/* What decides the kernel: steps, inputs, and the costliest op (REGION_LIGHT ..). */
typedef struct region_size {
    uint32_t level, steps, inputs;
    bool batch; /* each input makes a slice of its own */
} region_size;

typedef struct region_class {
    choice_row row;
    uint32_t kernel, level, steps, inputs; /* at most */
    bool portable; /* a software driver compiles it within a second or two, whatever the program */
    bool batch;    /* of as many inputs as are bound, up to `inputs` */
} region_class;

/* A step as the kernels take it. */
uint32_t region_step_constant(const region_step *step);
region_size region_size_of(const region_step *steps, uint32_t count, uint32_t inputs);
region_size region_batch_size_of(const region_step *steps, uint32_t count);
/* The row `forced` where it can do it, else the first that can; NULL when the device has too few
 * storage buffers for any. */
const region_class *region_select(region_size size, const device_profile *profile, size_t forced);
/* Whether rewriting should make such a region: there is a kernel, and the device compiles it fast
 * enough. */
bool region_fits(region_size size, const device_profile *profile);

/* ---- Lowering ---- */

/* The constants from REGION_STEPS_STEP_0 on. */
void region_set_steps(const region_attributes *a, dispatch *d);
/* Whether four elements in a row of the result, from a multiple of four on, lie in four aligned
 * words of an input that begins at `offset`, or are not read so. */
bool region_reads_wide(const region_attributes *a, uint32_t input, uint32_t offset);
/* E_UNSUPPORTED: no row has room for so many inputs. */
rlxvk_status region_fail_kernel(const lowering *l, const node *n, uint32_t inputs);

#endif
