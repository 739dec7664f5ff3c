/*
 * Chooses the kernel of a region: the first one that has room for its steps and inputs and contains
 * its ops. Smaller kernels come first because they compile faster. A driver reads all code of a
 * kernel before it removes the code that the constants exclude. That code grows with steps, inputs
 * and ops, tenfold from the first row to the last.
 */
#include "args/elementwise.h"
#include "op/elementwise/region.h"
#include "op/activation.h"

/* Compilers that move loads ahead take a time that grows with the square of such steps: Apple's
 * took 3 s for 12 of them. */
#define MOST_ANGLES 4

static const region_class classes[] = {
    {{"light_short", ON_ALL}, KERNEL_REGION_LIGHT_SHORT, REGION_LIGHT, 8, 7, true},
    {{"light_long", ON_ALL}, KERNEL_REGION_LIGHT_LONG, REGION_LIGHT, 32, 7, true},
    {{"common_short", ON_ALL}, KERNEL_REGION_COMMON_SHORT, REGION_COMMON, 8, 7, true},
    {{"common_long", ON_ALL}, KERNEL_REGION_COMMON_LONG, REGION_COMMON, 32, 7, false},
    {{"common_wide", ON_ALL},
     KERNEL_REGION_COMMON_WIDE,
     REGION_COMMON,
     REGION_STEPS,
     REGION_INPUTS,
     false},
    {{"all_short", ON_ALL}, KERNEL_REGION_ALL_SHORT, REGION_ALL, 8, 7, true},
    {{"all_long", ON_ALL}, KERNEL_REGION_ALL_LONG, REGION_ALL, REGION_STEPS, REGION_INPUTS, false},
    {{"batch_short", ON_ALL},
     KERNEL_REGION_BATCH_SHORT,
     REGION_ALL,
     8,
     REGION_BATCH_INPUTS,
     true,
     true},
    {{"batch_light", ON_ALL},
     KERNEL_REGION_BATCH_LIGHT,
     REGION_LIGHT,
     REGION_STEPS,
     REGION_BATCH_INPUTS,
     true,
     true},
    {{"batch_long", ON_ALL},
     KERNEL_REGION_BATCH_LONG,
     REGION_ALL,
     REGION_STEPS,
     REGION_BATCH_INPUTS,
     false,
     true},
};

static const uint8_t activation_kinds[] = {
#define ACTIVATION(code, NAME, row, atol, rtol, more, host, kernel, slope, slope_kernel, kind)     \
    [code] = kind,
#include "args/activation.def"
};

static const uint8_t kind_levels[] = {[REGION_CAST] = REGION_COMMON,
                                      [REGION_CURVE] = REGION_COMMON,
                                      [REGION_ROOT] = REGION_COMMON,
                                      [REGION_ANGLE] = REGION_ALL};

/* The numbers of kind and op in the kernels. */
static uint32_t number_of_kind(const region_step *s, uint32_t *op)
{
    *op = s->op;
    if (s->kind == REGION_ACTIVATION)
        return activation_kinds[s->op];
    if (s->kind == REGION_CAST && (s->op == DTYPE_F32 || s->op == DTYPE_F64)) {
        *op = UNARY_NONE & REGION_OP_MASK;
        return REGION_ACTIVATION;
    }
    if (s->kind != REGION_BINARY ||
        (s->op != BINARY_DIV && s->op != BINARY_POW && s->op != BINARY_QUOTIENT))
        return s->kind;
    *op = s->op == BINARY_QUOTIENT ? REGION_OP_QUOTIENT : REGION_OP_BINARY;
    return s->op == BINARY_POW ? REGION_ANGLE : REGION_ROOT;
}

uint32_t region_step_constant(const region_step *s)
{
    uint32_t op, kind = number_of_kind(s, &op);
    return kind | op << REGION_OP_SHIFT | (uint32_t)s->operand[0] << REGION_FIRST_SHIFT |
           (uint32_t)s->operand[1] << REGION_SECOND_SHIFT |
           (uint32_t)s->operand[2] << REGION_THIRD_SHIFT;
}

region_size region_size_of(const region_step *steps, uint32_t count, uint32_t inputs)
{
    region_size size = {.steps = count, .inputs = inputs};
    for (uint32_t i = 0, op; i < count; i++) {
        uint32_t kind = number_of_kind(&steps[i], &op);
        size.level = MAX(size.level, kind_levels[kind]);
        size.angles += kind == REGION_ANGLE;
    }
    return size;
}

region_size region_batch_size_of(const region_step *steps, uint32_t count)
{
    region_size size = region_size_of(steps, count, 1);
    size.batch = true;
    return size;
}

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const region_class *c = row;
    const region_size *size = problem;
    uint32_t bound = c->batch ? size->inputs : c->inputs; /* without the result */
    bool can = c->batch == size->batch && c->level >= size->level && c->steps >= size->steps &&
               c->inputs >= size->inputs && bound < profile->storage_buffers_per_stage &&
               (!profile->loads_early || size->angles <= MOST_ANGLES);
    return (choice_fit){.can = can, .suits = true};
}

const choice_table region_choice = {CHOICE_ROWS(classes), .fit = fit};

const region_class *region_choose(region_size size, const device_profile *profile, size_t forced)
{
    return choice_select(&region_choice, &size, profile, forced);
}

bool region_fits(region_size size, const device_profile *profile)
{
    const region_class *c = region_choose(size, profile, VARIANT_NONE);
    return c && (c->portable || !profile->portable);
}
