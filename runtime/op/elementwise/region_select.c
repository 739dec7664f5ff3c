/*
 * Which kernel runs a region: the first with room for its steps and inputs that knows its ops. What
 * a driver reads before it drops what the constants rule out grows with all three, tenfold from the
 * first row to the last.
 */
#include "args/elementwise.h"
#include "op/elementwise/region.h"
#include "op/activation.h"

const region_class region_classes[] = {
    {"light_short", KERNEL_REGION_LIGHT_SHORT, REGION_LIGHT, 8, 7, true},
    {"light_long", KERNEL_REGION_LIGHT_LONG, REGION_LIGHT, 32, 7, true},
    {"common_short", KERNEL_REGION_COMMON_SHORT, REGION_COMMON, 8, 7, true},
    {"common_long", KERNEL_REGION_COMMON_LONG, REGION_COMMON, 32, 7, false},
    {"common_wide", KERNEL_REGION_COMMON_WIDE, REGION_COMMON, REGION_STEPS, REGION_INPUTS, false},
    {"all_short", KERNEL_REGION_ALL_SHORT, REGION_ALL, 8, 7, true},
    {"all_long", KERNEL_REGION_ALL_LONG, REGION_ALL, REGION_STEPS, REGION_INPUTS, false},
};
const size_t region_class_count = ARRAY_COUNT(region_classes);

static const uint8_t activation_kinds[] = {
#define ACTIVATION(code, NAME, row, atol, rtol, more, host, kernel, kind) [code] = kind,
#include "args/activation.def"
};

static const uint8_t kind_levels[] = {[REGION_CAST] = REGION_COMMON,
                                      [REGION_CURVE] = REGION_COMMON,
                                      [REGION_ROOT] = REGION_COMMON,
                                      [REGION_ANGLE] = REGION_ALL};

/* Kind and op as the kernels number them. */
static uint32_t kernel_kind(const region_step *s, uint32_t *op)
{
    *op = s->op;
    if (s->kind == REGION_ACTIVATION)
        return activation_kinds[s->op];
    if (s->kind == REGION_CAST && (s->op == DTYPE_F32 || s->op == DTYPE_F64)) {
        *op = UNARY_NONE & 31u;
        return REGION_ACTIVATION;
    }
    if (s->kind != REGION_BINARY || (s->op != BINARY_DIV && s->op != BINARY_POW))
        return s->kind;
    *op = REGION_OP_BINARY;
    return s->op == BINARY_DIV ? REGION_ROOT : REGION_ANGLE;
}

uint32_t region_step_constant(const region_step *s)
{
    uint32_t op, kind = kernel_kind(s, &op);
    return kind | op << REGION_OP_SHIFT | (uint32_t)s->operand[0] << REGION_FIRST_SHIFT |
           (uint32_t)s->operand[1] << REGION_SECOND_SHIFT |
           (uint32_t)s->operand[2] << REGION_THIRD_SHIFT;
}

region_size region_size_of(const region_step *steps, uint32_t count, uint32_t inputs)
{
    region_size size = {.steps = count, .inputs = inputs};
    for (uint32_t i = 0, op; i < count; i++)
        size.level = MAX(size.level, kind_levels[kernel_kind(&steps[i], &op)]);
    return size;
}

static bool can_run(const region_class *c, region_size size, const device_profile *profile)
{
    return c->level >= size.level && c->steps >= size.steps && c->inputs >= size.inputs &&
           c->inputs < profile->storage_buffers_per_stage;
}

const region_class *region_select(region_size size, const device_profile *profile, size_t forced)
{
    if (forced < region_class_count && can_run(&region_classes[forced], size, profile))
        return &region_classes[forced];
    for (size_t i = 0; i < region_class_count; i++)
        if (can_run(&region_classes[i], size, profile))
            return &region_classes[i];
    return NULL;
}

bool region_fits(region_size size, const device_profile *profile)
{
    const region_class *c = region_select(size, profile, VARIANT_NONE);
    return c && (c->portable || !profile->portable);
}
