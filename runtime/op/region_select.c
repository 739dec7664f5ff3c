/*
 * Which kernel runs a region: the first with room for its steps and inputs that knows its ops. What
 * a driver reads before it drops what the constants rule out grows with all three, tenfold from the
 * first row to the last.
 */
#include "op/region.h"

const region_class region_classes[] = {
    {"light_short", KERNEL_REGION_LIGHT_SHORT, REGION_LIGHT, 8, 7, true},
    {"light_long", KERNEL_REGION_LIGHT_LONG, REGION_LIGHT, 32, 7, true},
    {"common_short", KERNEL_REGION_COMMON_SHORT, REGION_COMMON, 8, 7, true},
    {"common_long", KERNEL_REGION_COMMON_LONG, REGION_COMMON, 32, 7, true},
    {"common_wide", KERNEL_REGION_COMMON_WIDE, REGION_COMMON, REGION_STEPS, REGION_INPUTS, true},
    {"all_short", KERNEL_REGION_ALL_SHORT, REGION_ALL, 8, 7, true},
    {"all_long", KERNEL_REGION_ALL_LONG, REGION_ALL, REGION_STEPS, REGION_INPUTS, false},
};
const size_t region_class_count = ARRAY_COUNT(region_classes);

static const uint8_t activation_levels[UNARY_COUNT] = {
    [UNARY_GELU] = REGION_COMMON,  [UNARY_GELU_APPROX] = REGION_COMMON,
    [UNARY_SILU] = REGION_COMMON,  [UNARY_SIGMOID] = REGION_COMMON,
    [UNARY_TANH] = REGION_COMMON,  [UNARY_EXP] = REGION_COMMON,
    [UNARY_LOG] = REGION_COMMON,   [UNARY_SQRT] = REGION_COMMON,
    [UNARY_RSQRT] = REGION_COMMON, [UNARY_ROUND] = REGION_COMMON,
    [UNARY_SIN] = REGION_ALL,      [UNARY_COS] = REGION_ALL,
    [UNARY_TAN] = REGION_ALL,      [UNARY_ATAN] = REGION_ALL,
};

static uint32_t step_level(const region_step *s)
{
    if (s->kind == REGION_ACTIVATION)
        return activation_levels[s->op];
    if (s->kind == REGION_CAST)
        return s->op == DTYPE_F32 || s->op == DTYPE_F64 ? REGION_LIGHT : REGION_COMMON;
    if (s->kind == REGION_BINARY && s->op == BINARY_POW)
        return REGION_ALL;
    return s->kind == REGION_BINARY && s->op == BINARY_DIV ? REGION_COMMON : REGION_LIGHT;
}

region_size region_size_of(const region_step *steps, uint32_t count, uint32_t inputs)
{
    region_size size = {.steps = count, .inputs = inputs};
    for (uint32_t i = 0; i < count; i++)
        size.level = MAX(size.level, step_level(&steps[i]));
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
