/*
 * Tells which kernels a case dispatches. Lowering is enough: nothing is compiled or run. A dispatch
 * counts for a variant only if it carries the address of that row's name, because rows of other
 * tables may have an equal name. Lowering for a profile with more features tells which features a
 * device lacks.
 */
#include "conform/conform.h"
#include "program/stage.h"

#include <string.h>

/* ---- Lowering ---- */

/* Copies the device, with another profile. The driver is not asked for the layout of matrices
 * (matrix_layout.c), because it may have none. */
static void set_profile(device *d, const device *real, const device_profile *profile)
{
    *d = *real;
    d->setup.profile = *profile;
    d->matrix_layouts[0] = d->matrix_layouts[1] = 2; /* as the lanes hold them */
}

static rlxvk_status lower_graph(const conform_setup *setup, const case_spec *spec,
                                const device_profile *profile, const rlxvk_graph *graph,
                                void (*take)(void *user, const schedule *s), void *user)
{
    rlxvk_compile_options options = {0};
    option_variants variants;
    program *lowered = NULL;
    device other;
    rlxvk_status status;
    TRY(conform_compile_options(spec, setup, &variants, &options));
    TRY(program_create(setup->context, &lowered));
    TRY(options_resolve(setup->context, &options, &lowered->options));
    if (profile) {
        set_profile(&other, lowered->device, profile);
        lowered->device = &other;
    }
    TRY(stage_source(lowered, graph));
    TRY(stage_rewrite(lowered, NULL));
    TRY(stage_lower(lowered));
    take(user, &lowered->schedule);
error:
    if (lowered)
        lowered->device = setup->context->device;
    program_release(lowered);
    return status;
}

rlxvk_status conform_lower(const conform_setup *setup, const conform_case *c,
                           const device_profile *profile,
                           void (*take)(void *user, const schedule *s), void *user)
{
    case_spec spec;
    rlxvk_graph *graph = NULL;
    rlxvk_tensor leaves[CASE_MAX_INPUTS], output;
    rlxvk_status status = RLXVK_OK;
    if (c->golden)
        spec = c->golden->spec;
    else
        TRY(case_parse(c->line, &spec));
    TRY(conform_build(&spec, &graph, leaves, &output));
    rlxvk_graph_output(graph, output);
    TRY(rlxvk_graph_status(graph));
    TRY(lower_graph(setup, &spec, profile, graph, take, user));
error:
    rlxvk_graph_destroy(graph);
    return status;
}

/* ---- Counting ---- */

typedef struct counter {
    const char *row;
    uint16_t kernel;
    conform_use *use;
    uint64_t dispatches;
} counter;

static void count(void *user, const schedule *s)
{
    counter *c = user;
    for (size_t i = 0; i < s->dispatches.count; i++) {
        const dispatch *d = &s->dispatches.items[i];
        if (d->kernel < KERNEL_COUNT)
            c->use->all[d->kernel]++;
        if (c->row ? d->variant != c->row : c->kernel && d->kernel != c->kernel - 1)
            continue;
        c->dispatches++;
        if (d->kernel < KERNEL_COUNT)
            c->use->kernels[d->kernel]++;
    }
}

uint64_t conform_count(const conform_setup *setup, const conform_case *c,
                       const device_profile *profile, conform_use *use)
{
    counter counted = {setup->row, setup->kernel, use, 0};
    if (conform_lower(setup, c, profile, count, &counted) != RLXVK_OK)
        return 0;
    use->cases += counted.dispatches != 0;
    use->dispatches += counted.dispatches;
    return counted.dispatches;
}

bool conform_runs_in(const kernel_kind *kind, rlxvk_precision given, rlxvk_precision precision)
{
    if (kind->precisions == 0 || given)
        return precision == given;
    return kind->precisions >> precision & 1;
}

/* ---- Features that a device lacks ---- */

/* Matrix units have several sizes, and each row suits only some of them. */
static const struct units {
    matrix_shape half, single;
    uint32_t subgroup;
} units[] = {{{16, 16, 16}, {16, 16, 8}, 32}, {{8, 8, 8}, {8, 8, 8}, 8}};

static void give_units(device_profile *p, const struct units *u)
{
    p->matrix_f16 = p->matrix_bf16 = u->half;
}
static void give_single_units(device_profile *p, const struct units *u)
{
    p->matrix_f32 = u->single;
}
static void give_shuffles(device_profile *p, const struct units *u)
{
    (void)u;
    p->subgroup_shuffle = p->subgroup_ballot = true;
    p->max_shuffle_invocations = MAX(p->max_shuffle_invocations, 1024);
}
static void give_subgroups(device_profile *p, const struct units *u)
{
    p->subgroup_size = u->subgroup;
}
static void give_threads(device_profile *p, const struct units *u)
{
    (void)u;
    p->max_workgroup_invocations = MAX(p->max_workgroup_invocations, 1024);
}
static void give_shared(device_profile *p, const struct units *u)
{
    (void)u;
    p->shared_memory_bytes = MAX(p->shared_memory_bytes, 98304);
}
static void give_bytes(device_profile *p, const struct units *u)
{
    (void)u;
    p->byte_products = p->quick_byte_products = true;
}
static void give_rounding(device_profile *p, const struct units *u)
{
    (void)u;
    p->half_subnormals = p->half_rounding = true;
}

static const struct feature {
    const char *name;
    void (*give)(device_profile *p, const struct units *u);
} features[] = {
    {"matrix units of f16 and bf16", give_units},
    {"matrix units of f32", give_single_units},
    {"shuffles in whole subgroups", give_shuffles},
    {"subgroups of another size", give_subgroups},
    {"larger workgroups", give_threads},
    {"more shared memory", give_shared},
    {"products of packed bytes", give_bytes},
    {"half floats that keep subnormals and round to nearest", give_rounding},
};

/* The device's profile with every feature except one. `without` ARRAY_COUNT(features): with all. */
static device_profile widened(const conform_setup *setup, const struct units *u, size_t without)
{
    device_profile p = setup->context->device->setup.profile;
    for (size_t i = 0; i < ARRAY_COUNT(features); i++)
        if (i != without)
            features[i].give(&p, u);
    return p;
}

/* Finds the first case, from *from on, that dispatches the row. Sets *from to its index. */
static bool reaches(const conform_setup *setup, const conform_case *cases, size_t case_count,
                    const device_profile *p, size_t *from)
{
    conform_use use = {0};
    for (size_t i = *from; i < case_count; i++)
        if (conform_count(setup, &cases[i], p, &use)) {
            *from = i;
            return true;
        }
    return false;
}

void conform_find_kernels(const conform_setup *setup, const conform_case *cases, size_t case_count,
                          size_t first[KERNEL_COUNT])
{
    for (size_t k = 0; k < KERNEL_COUNT; k++)
        first[k] = case_count;
    for (size_t u = 0; u < ARRAY_COUNT(units); u++) {
        device_profile p = widened(setup, &units[u], ARRAY_COUNT(features));
        for (size_t i = 0; i < case_count; i++) {
            conform_use use = {0};
            (void)conform_count(setup, &cases[i], &p, &use);
            for (size_t k = 0; k < KERNEL_COUNT; k++)
                if (use.all[k])
                    first[k] = MIN(first[k], i);
        }
    }
}

bool conform_lacks(const conform_setup *setup, const conform_case *cases, size_t case_count,
                   text *out)
{
    for (size_t u = 0; u < ARRAY_COUNT(units); u++) {
        device_profile p = widened(setup, &units[u], ARRAY_COUNT(features));
        size_t named = 0, first = 0;
        if (!reaches(setup, cases, case_count, &p, &first))
            continue;
        for (size_t i = 0; i < ARRAY_COUNT(features); i++) {
            size_t from = first; /* earlier cases do not reach it even with all features */
            p = widened(setup, &units[u], i);
            if (!reaches(setup, cases, case_count, &p, &from))
                text_append(out, "%s%s", named++ ? ", " : "", features[i].name);
        }
        if (!named)
            text_append(out, "one of several features");
        return true;
    }
    return false;
}
