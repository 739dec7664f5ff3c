/*
 * elementwise_region runs a straight-line program of activations, casts, arithmetic, comparisons
 * and selections once for each element of the declared shape. The result is that of the last step.
 * Arithmetic is f32, and every step rounds as if it were an op of its own. An input is read in one
 * of these ways:
 *   one to one
 *   single      one element for all
 *   suffix      a suffix of the shape, which repeats every `modulus` elements
 *   prologue    as an image of half the height and width
 *
 * The kernels (glsl/elementwise/region.glsl) take the program as specialization constants. They
 * differ in how many steps and inputs they have room for. If a region has fewer inputs, its first
 * input is bound to the other bindings. The reference is in region_host.c.
 */
#include "args/elementwise.h"
#include "constants/elementwise.h"
#include "op/bucket.h"
#include "op/elementwise/region.h"
#include "op/activation.h"
#include "op/elementwise/elementwise.h"
#include "op/families.h"
#include "op/gradient.h"

#include <string.h>

_Static_assert(REGION_ALL_LONG_STEP_31 == REGION_STEPS_STEP_0 + REGION_STEPS - 1, "steps in a row");
_Static_assert(REGION_ACTIVATION == (int)RLXVK_REGION_ACTIVATION &&
                   REGION_CAST == (int)RLXVK_REGION_CAST &&
                   REGION_BINARY == (int)RLXVK_REGION_BINARY &&
                   REGION_COMPARE == (int)RLXVK_REGION_COMPARE &&
                   REGION_WHERE == (int)RLXVK_REGION_WHERE && BINARY_ADD == (int)RLXVK_BINARY_ADD &&
                   BINARY_SUB == (int)RLXVK_BINARY_SUB && BINARY_MUL == (int)RLXVK_BINARY_MUL &&
                   BINARY_DIV == (int)RLXVK_BINARY_DIV && BINARY_MAX == (int)RLXVK_BINARY_MAX &&
                   BINARY_MIN == (int)RLXVK_BINARY_MIN && BINARY_POW == (int)RLXVK_BINARY_POW &&
                   BINARY_PRODUCT == (int)RLXVK_BINARY_GRADIENT_PRODUCT &&
                   BINARY_QUOTIENT == (int)RLXVK_BINARY_GRADIENT_QUOTIENT &&
                   COMPARE_EQ == (int)RLXVK_COMPARE_EQ && COMPARE_NE == (int)RLXVK_COMPARE_NE &&
                   COMPARE_LT == (int)RLXVK_COMPARE_LT && COMPARE_LE == (int)RLXVK_COMPARE_LE &&
                   COMPARE_GT == (int)RLXVK_COMPARE_GT && COMPARE_GE == (int)RLXVK_COMPARE_GE &&
                   RLXVK_REGION_MAX_STEPS == REGION_STEPS &&
                   RLXVK_REGION_MAX_INPUTS == REGION_INPUTS,
               "rlxvk_ops.h numbers what regions are made of as args/elementwise.h does");

/* ---- Building ---- */

static uint8_t pack_operand(uint32_t word)
{
    uint32_t index = word & 0x7fffffffu;
    bool step = word != index;
    if (index >= (step ? REGION_STEPS : REGION_INPUTS))
        return REGION_NO_OPERAND;
    return (uint8_t)(index + (step ? REGION_VALUES_OF_STEPS : 0));
}

static region_step pack_step(const rlxvk_region_step *s)
{
    region_step out = {(uint8_t)MIN(s->kind, 255),
                       (uint8_t)MIN(s->op, 255),
                       {pack_operand(s->first), pack_operand(s->second)}};
    if (s->kind == RLXVK_REGION_WHERE)
        out = (region_step){REGION_WHERE,
                            0,
                            {pack_operand(s->op), pack_operand(s->first), pack_operand(s->second)}};
    return out;
}

rlxvk_tensor region_build(rlxvk_graph *g, op_kind row, const rlxvk_tensor *inputs, size_t count,
                          const rlxvk_region *region)
{
    const char *name = op_table[row].name;
    rlxvk_region r;
    if (!graph_ready(g, name) ||
        graph_fail(g, status_require(region, name, "region")) != RLXVK_OK ||
        !op_take(g, name, SIZED(rlxvk_region), region, &r) ||
        graph_fail(g, status_require_items(r.steps, r.step_count, name, "region.steps")) !=
            RLXVK_OK)
        return RLXVK_NONE;
    region_attributes a = {.shape = r.shape,
                           .step_count = (uint32_t)MIN(r.step_count, UINT32_MAX),
                           .scalar_mask = r.scalar_mask,
                           .prologue = (uint32_t)r.prologue,
                           .prologue_input = r.prologue_input};
    for (uint32_t i = 0; i < MIN(a.step_count, REGION_STEPS); i++)
        a.steps[i] = pack_step(&r.steps[i]);
    memcpy(a.modulus, r.modulus, sizeof a.modulus);
    return op_build(g, row, inputs, count, &a);
}

rlxvk_tensor rlxvk_elementwise_region(rlxvk_graph *g, const rlxvk_tensor *inputs, size_t count,
                                      const rlxvk_region *region)
{
    return region_build(g, OP_elementwise_region, inputs, count, region);
}

/* ---- Infer ---- */

static rlxvk_status check_step(const node *n, const region_attributes *a, uint32_t index)
{
    const region_step *s = &a->steps[index];
    if (s->op >= region_op_count(s->kind))
        return op_fail(n, RLXVK_E_ATTR, "step %u: there is no op %u of kind %u", index, s->op,
                       s->kind);
    for (uint32_t i = 0; i < region_arity(s->kind); i++) {
        uint32_t v = s->operand[i];
        bool known =
            v < REGION_VALUES_OF_STEPS ? v < n->input_count : v - REGION_VALUES_OF_STEPS < index;
        if (!known)
            return op_fail(n, RLXVK_E_ATTR,
                           "step %u: operand %u is neither one of %u inputs nor an earlier step",
                           index, i, n->input_count);
    }
    return RLXVK_OK;
}

bool region_modulus(const rlxvk_shape *from, const rlxvk_shape *to, uint32_t *modulus)
{
    uint32_t axis = 0, rank = from->rank;
    uint64_t numel = shape_numel(from);
    while (axis < rank && from->dims[axis] == 1) /* skip axes that repeat, and axes of size 1 */
        axis++;
    if (rank > to->rank && numel != 1)
        return false;
    for (uint32_t i = axis; i < rank; i++)
        if (from->dims[i] != to->dims[to->rank - rank + i])
            return false;
    *modulus = numel == shape_numel(to) ? 0 : (uint32_t)numel;
    return true;
}

static bool is_halved(const rlxvk_shape *from, const rlxvk_shape *to)
{
    return from->rank == 4 && to->rank == 4 && from->dims[0] == to->dims[0] &&
           from->dims[1] == to->dims[1] && 2 * from->dims[2] == to->dims[2] &&
           2 * from->dims[3] == to->dims[3];
}

static rlxvk_status check_input(const rlxvk_graph *g, const node *n, const region_attributes *a,
                                uint32_t i)
{
    const rlxvk_shape *from = input_shape(g, n, i);
    char mine[SHAPE_TEXT], whole[SHAPE_TEXT];
    uint32_t modulus = 0;
    bool scalar = a->scalar_mask >> i & 1, right;
    if (region_is_prologue(a, i))
        right = !scalar && !a->modulus[i] && is_halved(from, &a->shape);
    else if (scalar)
        right = shape_numel(from) == 1 && a->modulus[i] <= 1;
    else
        right = region_modulus(from, &a->shape, &modulus) && modulus == a->modulus[i];
    if (!right)
        return op_fail(n, RLXVK_E_ATTR,
                       "input %u of shape %s cannot be read as %s (modulus %u) for a result of "
                       "shape %s; modulus is 0 for the same dims, the number of elements for a "
                       "suffix",
                       i, shape_text(from, mine),
                       region_is_prologue(a, i) ? "half an image"
                       : scalar                 ? "a single element"
                                                : "a tensor",
                       a->modulus[i], shape_text(&a->shape, whole));
    return RLXVK_OK;
}

static rlxvk_status check_prologue(const node *n, const region_attributes *a)
{
    const rlxvk_shape *s = &a->shape;
    char shape[SHAPE_TEXT];
    if (a->prologue == RLXVK_REGION_PROLOGUE_NONE)
        return RLXVK_OK;
    if (a->prologue != RLXVK_REGION_PROLOGUE_NEAREST_2X || a->prologue_input >= n->input_count)
        return op_fail(n, RLXVK_E_ATTR, "prologue %u of input %u; there are 0 and 1, and %u inputs",
                       a->prologue, a->prologue_input, n->input_count);
    if (s->rank != 4 || s->dims[2] % 2 || s->dims[3] % 2)
        return op_fail(n, RLXVK_E_ATTR,
                       "a prologue for a result of shape %s; it takes [N, C, H, W] with even H, W",
                       shape_text(s, shape));
    return RLXVK_OK;
}

/* The dtype that the op of this step would give its result. */
static rlxvk_dtype step_dtype(const region_step *s, const rlxvk_dtype *dtypes)
{
    if (s->kind == REGION_CAST)
        return (rlxvk_dtype)s->op;
    if (s->kind == REGION_COMPARE)
        return RLXVK_BOOL;
    if (s->kind == REGION_ACTIVATION)
        return dtypes[s->operand[0]];
    bool where = s->kind == REGION_WHERE;
    return dtype_promote(dtypes[s->operand[where]], dtypes[s->operand[where + 1]]);
}

rlxvk_status region_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const region_attributes *a = attributes;
    rlxvk_dtype dtypes[REGION_VALUES_OF_STEPS + REGION_STEPS];
    rlxvk_status status;
    if (a->step_count < 1 || a->step_count > REGION_STEPS || n->input_count > REGION_INPUTS)
        return op_fail(n, RLXVK_E_ATTR, "%u steps on %u inputs; takes 1 to %d on 1 to %d",
                       a->step_count, n->input_count, REGION_STEPS, REGION_INPUTS);
    if (a->shape.rank > RLXVK_MAX_RANK)
        return op_fail(n, RLXVK_E_SHAPE, "rank %u; at most %d", a->shape.rank, RLXVK_MAX_RANK);
    TRY(check_prologue(n, a));
    for (uint32_t i = 0; i < n->input_count; i++) {
        TRY(check_input(g, n, a, i));
        dtypes[i] = input_dtype(g, n, i);
    }
    for (uint32_t i = 0; i < a->step_count; i++) {
        TRY(check_step(n, a, i));
        dtypes[REGION_VALUES_OF_STEPS + i] = step_dtype(&a->steps[i], dtypes);
    }
    n->shape = a->shape;
    n->dtype = (uint8_t)dtypes[REGION_VALUES_OF_STEPS + a->step_count - 1];
error:
    return status;
}

uint32_t region_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    return op_shape_sizes(&((region_attributes *)attributes)->shape, out);
}

static uint32_t bit_of(bool set, uint32_t bit)
{
    return set ? 1u << bit : 0;
}

static uint32_t region_in_place(const rlxvk_graph *g, const node *n)
{
    const region_attributes *a = n->attributes;
    uint32_t mask = 0;
    for (uint32_t i = 0; i < n->input_count; i++)
        mask |= bit_of(!region_is_prologue(a, i) &&
                           shape_numel(input_shape(g, n, i)) == shape_numel(&n->shape),
                       i);
    return mask;
}

/* ---- Lower ---- */

/* Bit i: some step reads input i. */
static uint32_t inputs_read(const region_attributes *a)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < a->step_count; i++)
        for (uint32_t k = 0; k < region_arity(a->steps[i].kind); k++)
            mask |= bit_of(a->steps[i].operand[k] < REGION_VALUES_OF_STEPS, a->steps[i].operand[k]);
    return mask;
}

/* Bit i: input i is one element. Bit i + 16: it repeats. */
static uint32_t inputs_repeated(const region_attributes *a, uint32_t count)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool single = region_is_single(a, i);
        mask |= bit_of(single, i) | bit_of(!single && a->modulus[i], 16 + i);
    }
    return mask;
}

/* Bit i: some step reads input i. Bit i + 16: it has half the resolution. */
static uint32_t inputs_present(const region_attributes *a, uint32_t count)
{
    uint32_t read = inputs_read(a), mask = 0;
    for (uint32_t i = 0; i < count; i++)
        mask |= bit_of(read >> i & 1, i) | bit_of(region_is_prologue(a, i), 16 + i);
    return mask;
}

void region_set_steps(const region_attributes *a, dispatch *d)
{
    uint32_t steps = kernel_table[d->kernel].constant_count - REGION_STEPS_STEP_0;
    for (uint32_t i = 0; i < steps; i++)
        SET_CONSTANTS(d, {REGION_STEPS_STEP_0 + i,
                          i < a->step_count ? region_step_constant(&a->steps[i]) : 0});
}

bool region_reads_wide(const region_attributes *a, uint32_t input, uint32_t offset)
{
    return region_is_prologue(a, input) || region_is_single(a, input) ||
           (offset % 4 == 0 && a->modulus[input] % 4 == 0);
}

rlxvk_status region_fail_kernel(const lowering *l, const node *n, uint32_t inputs)
{
    return op_fail(n, RLXVK_E_UNSUPPORTED,
                   "%u inputs and a result; this device has %u storage buffers a stage", inputs,
                   l->profile->storage_buffers_per_stage);
}

static rlxvk_status region_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const region_attributes *a = n->attributes;
    uint32_t count = n->input_count;
    uint64_t numel = shape_numel(&n->shape);
    const region_class *c = region_choose(region_size_of(a->steps, a->step_count, count),
                                          l->profile, variant_choose(l, CHOICE_region, NULL, NULL));
    operand operands[REGION_INPUTS + 1], target = lower_write(l, id);
    if (!c)
        return region_fail_kernel(l, n, count);
    struct region_args args = {.numel = (u32)numel, .target_offset = target.offset};
    dispatch d = {.kernel = (uint16_t)c->kernel, .variant = c->row.name};
    bool wide = numel % 4 == 0 && target.offset % 4 == 0;
    for (uint32_t i = 0; i < c->inputs; i++) {
        operands[i] = i < count ? lower_input(l, id, i) : operands[0];
        args.offsets[i / 2] |= operands[i].offset << i % 2 * 16;
        args.modulus[i] = a->modulus[i];
        wide = wide && (i >= count || region_reads_wide(a, i, operands[i].offset));
    }
    args.columns = (u32)(a->shape.rank == 4 ? a->shape.dims[3] : 0);
    operands[c->inputs] = target;
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size},
                  {REGION_STEPS_FORM, a->step_count | (wide ? REGION_WIDE : 0)},
                  {REGION_REPEATED, inputs_repeated(a, count)},
                  {REGION_PRESENT, inputs_present(a, count)});
    region_set_steps(a, &d);
    lower_groups_in_order(l, &d, numel, elementwise_lot(d.constants[LOCAL_SIZE]));
    return lower_emit(l, &d, &args, sizeof args, operands, c->inputs + 1);
}

/* ---- The family ---- */

static rlxvk_tensor region_expand(rlxvk_graph *g, const node *n)
{
    for (uint32_t i = 0; i < n->input_count; i++)
        gradient_leave_out(g, n, i); /* if no step reads it */
    return tensor_of(g, region_emit_steps(g, n, n->inputs));
}

/* For example " steps: s0=mul(i0,i1) s1=relu(s0)". */
void region_describe(const node *n, text *out)
{
    const region_attributes *a = n->attributes;
    text_append(out, " steps:");
    for (uint32_t i = 0; i < a->step_count; i++) {
        const region_step *s = &a->steps[i];
        text_append(out, " s%u=%s", i, op_table[region_step_row(s)].name);
        if (s->kind == REGION_CAST)
            text_append(out, "<%s>", rlxvk_dtype_name((rlxvk_dtype)s->op));
        for (uint32_t k = 0; k < region_arity(s->kind); k++) {
            bool step = s->operand[k] >= REGION_VALUES_OF_STEPS;
            text_append(out, "%s%c%u", k ? "," : "(", step ? 's' : 'i',
                        s->operand[k] - (step ? REGION_VALUES_OF_STEPS : 0));
        }
        text_append(out, ")");
    }
    if (a->prologue)
        text_append(out, " nearest2x=i%u", a->prologue_input);
}

const op_family region_family = {
    .name = "region",
    .attribute_size = sizeof(region_attributes),
    .infer = region_infer,
    .sizes = region_sizes,
    .memory = {.in_place = region_in_place},
    .execution = {.elementwise = true, .lower = region_lower, .host = region_host},
    .rows = {.bucket = bucket_broadcast},
    .derivative = {.expand = region_expand},
    .describe = region_describe,
};
