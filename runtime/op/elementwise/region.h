/* Elementwise regions: several elementwise ops as one node, a straight-line program that runs once
 * for each output element. Rewriting makes them (rewrite/region.c), or a builder call. */
#ifndef RLXVK_REGION_H
#define RLXVK_REGION_H

#include "args/elementwise.h"
#include "op/op.h"
#include "op/choice/variant.h"

enum { REGION_NO_OPERAND = 0xff };

/* Operands are numbered as in the kernel: inputs from 0 on, steps from REGION_VALUES_OF_STEPS
 * on. */
typedef struct region_step {
    uint8_t kind, op;   /* REGION_..; the op's code, or the dtype of a cast */
    uint8_t operand[3]; /* of where: condition, x, y */
} region_step;

typedef struct region_attributes {
    rlxvk_shape shape;
    uint32_t step_count;
    region_step steps[REGION_STEPS];
    uint32_t scalar_mask, modulus[REGION_INPUTS];
    uint32_t prologue, prologue_input;
} region_attributes;

/* How many operands a step of this kind has; 0 if there is no such kind. */
uint32_t region_arity(uint32_t kind);
/* How many ops this kind has; 0 if there is no such kind. */
uint32_t region_op_count(uint32_t kind);
/* The op that the step computes. */
op_kind region_step_row(const region_step *step);
/* Gives the step that computes node n, without its operands. Returns false if there is none. For
 * example, fma has none, because it takes two steps. */
bool region_step_of(const node *n, region_step *out);

/* Appends nodes that compute the steps of region n from `inputs`. Returns the id of the last node,
 * which has the shape and name of n, or NODE_NONE after a failure. */
uint32_t region_emit_steps(rlxvk_graph *g, const node *n, const uint32_t *inputs);

/* How a tensor of shape `from` is read if it broadcasts (as in numpy) to shape `to`. If it is read
 * one to one, *modulus is 0. If all of it repeats every n elements, *modulus is n. Returns false if
 * neither is the case. */
bool region_modulus(const rlxvk_shape *from, const rlxvk_shape *to, uint32_t *modulus);

static inline bool region_is_prologue(const region_attributes *a, uint32_t input)
{
    return a->prologue != RLXVK_REGION_PROLOGUE_NONE && a->prologue_input == input;
}

/* Whether every element of the result reads the same element of the input. */
static inline bool region_is_single(const region_attributes *a, uint32_t input)
{
    return (a->scalar_mask >> input & 1) || a->modulus[input] == 1;
}

/* Shared with the family of batches (batch_region.c). */
rlxvk_tensor region_build(rlxvk_graph *g, op_kind row, const rlxvk_tensor *inputs, size_t count,
                          const rlxvk_region *region);
rlxvk_status region_infer(const rlxvk_graph *g, node *n, void *attributes);
uint32_t region_sizes(void *attributes, int64_t *out[OP_MOST_SIZES]);
rlxvk_status region_host(const host_call *call);
void region_describe(const node *n, text *out);

/* ---- Kernels (region_choice.c) ---- */

/* The properties of a region on which the kernel depends: steps, inputs, and the level of the
 * costliest op (REGION_LIGHT ..). */
typedef struct region_size {
    uint32_t level, steps, inputs;
    bool batch;      /* each input makes its own slice */
    uint32_t angles; /* steps of REGION_ANGLE */
} region_size;

typedef struct region_class {
    choice_row row;
    uint32_t kernel, level, steps, inputs; /* most level, steps and inputs that it takes */
    bool portable; /* software drivers compile any program for it within two seconds */
    bool batch;    /* takes batches, with up to `inputs` inputs */
} region_class;

/* A step as a specialization constant. */
uint32_t region_step_constant(const region_step *step);
region_size region_size_of(const region_step *steps, uint32_t count, uint32_t inputs);
region_size region_batch_size_of(const region_step *steps, uint32_t count);
/* The variant `forced` if it can run the region, else the first one that can. NULL if the device
 * has too few storage buffers for all of them, or would compile them for seconds. */
const region_class *region_choose(region_size size, const device_profile *profile, size_t forced);
/* Whether rewriting should make such a region: a kernel can run it, and the device compiles that
 * kernel fast enough. */
bool region_fits(region_size size, const device_profile *profile);

/* ---- Lowering ---- */

/* Sets the specialization constants of the steps, from REGION_STEPS_STEP_0 on. */
void region_set_steps(const region_attributes *a, dispatch *d);
/* Whether the input allows a kernel to compute four elements at a time, from a multiple of four on.
 * It does if they lie in four aligned words of the input, which begins at `offset`. It also does if
 * the input is a single element or the prologue's. */
bool region_reads_wide(const region_attributes *a, uint32_t input, uint32_t offset);
/* E_UNSUPPORTED, because no kernel has room for so many inputs on this device. */
rlxvk_status region_fail_kernel(const lowering *l, const node *n, uint32_t inputs);

#endif
