/* See extent_check.h. */
#include "support/extent_check.h"
#include "exec/allocate.h"
#include "exec/executable.h"
#include "support/harness.h"
#include "support/random_graph.h"

#include <rlxvk_symbols.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- Content ---- */

float *extent_values(const node *n, uint64_t seed)
{
    uint64_t count = shape_numel(&n->shape);
    float *values = malloc((count + 1) * sizeof *values);
    random_source r = {seed};
    for (const char *c = n->name; *c; c++)
        r.state = r.state * 31 + (uint8_t)*c;
    random_fill(&r, false, values, count);
    for (uint64_t i = 0; i < count; i++) {
        if (strcmp(n->name, "i") == 0)
            values[i] = floorf((values[i] + 1) * 25);
        if (n->dtype == RLXVK_U8) /* the scale is 2^-7 */
            values[i] = i % 34 == 0 ? 0 : i % 34 == 1 ? 0x20 : floorf((values[i] + 1) * 120);
    }
    return values;
}

void extent_set_params(rlxvk_executable *e)
{
    const rlxvk_graph *g = e->program->source;
    for (size_t i = 0; i < e->program->param_count; i++) {
        const node *n = graph_node(g, e->program->params[i].source);
        uint64_t count = shape_numel(&n->shape);
        float *values = extent_values(n, 7);
        uint8_t *bytes = malloc(count + 1);
        for (uint64_t k = 0; k < count; k++)
            bytes[k] = (uint8_t)values[k];
        expect_ok(n->dtype == RLXVK_U8 ? rlxvk_set_param_bytes(e, n->name, bytes, count)
                                       : rlxvk_set_param(e, n->name, values, count));
        free(values);
        free(bytes);
    }
}

/* Whether element i of a node is active. If a leaf has no reader (NODE_NONE), all its elements
 * are. */
static bool matters(const rlxvk_executable *e, uint32_t node, uint64_t i)
{
    return node == NODE_NONE || extent_has(&e->program->extent, node, i, (uint64_t)e->extent_actual,
                                           (uint64_t)e->extent_upper);
}

void extent_run(rlxvk_executable *e, uint64_t seed, float other, float **outputs)
{
    const program *p = e->program;
    rlxvk_run_input inputs[16] = {0};
    rlxvk_run_output reads[16] = {0};
    size_t given = 0;
    for (size_t i = 0; i < p->input_count; i++) {
        const node *n = graph_node(p->source, p->inputs[i].source);
        uint64_t count = shape_numel(&n->shape);
        if (&e->inputs[i] == e->rng_input)
            continue;
        float *values = extent_values(n, seed);
        for (uint64_t k = 0; k < count; k++)
            if (!matters(e, p->inputs[i].node, k))
                values[k] = other;
        assert_true(given < ARRAY_COUNT(inputs));
        inputs[given++] = (rlxvk_run_input){n->name, values, count, RLXVK_F32};
    }
    for (size_t i = 0; i < p->result_count; i++) {
        size_t count = shape_numel(&p->results[i].shape);
        outputs[i] = malloc((count + 1) * sizeof **outputs);
        reads[i] = (rlxvk_run_output){i, outputs[i], count, RLXVK_F32};
    }
    expect_ok(rlxvk_run(e, inputs, given, reads, p->result_count));
    while (given)
        free((void *)inputs[--given].data);
}

/* Checks that active elements are equal to those of the full run. */
static void compare(const rlxvk_executable *e, float *const *got, float *const *wanted,
                    const char *what, uint64_t seed)
{
    for (size_t o = 0; o < e->program->result_count; o++) {
        const program_result *r = &e->program->results[o];
        for (uint64_t k = 0; k < shape_numel(&r->shape); k++)
            if (matters(e, r->node, k) && memcmp(&got[o][k], &wanted[o][k], 4) != 0)
                fail_msg("%s, seed %llu, %lld of %lld rows: output %zu element %llu is %g, full "
                         "run %g",
                         what, (unsigned long long)seed, (long long)e->extent_actual,
                         (long long)e->extent_upper, o, (unsigned long long)k, (double)got[o][k],
                         (double)wanted[o][k]);
    }
}

void extent_free(const rlxvk_executable *e, float **outputs)
{
    for (size_t o = 0; o < e->program->result_count; o++)
        free(outputs[o]);
}

/* ---- Every extent against the full run ---- */

bool extent_check(rlxvk_context *c, const rlxvk_graph *g, rlxvk_compile_options o,
                  const rlxvk_bucket_axis *axes, size_t count, const char *what, uint64_t seed)
{
    rlxvk_executable *plain = NULL, *e = NULL;
    random_source r = {seed};
    float *wanted[16], *got[16];
    rlxvk_extent_report report;
    exec_scratch_fill = 0x7fc00000u;
    expect_ok(rlxvk_compile(c, g, &o, &plain));
    o.bucket_axes = axes;
    o.bucket_axis_count = count;
    expect_ok(rlxvk_compile(c, g, &o, &e));
    exec_scratch_fill = 0;
    extent_set_params(plain);
    extent_set_params(e);
    extent_run(plain, seed, 0, wanted);
    int64_t upper = (int64_t)e->program->extent.unit;
    for (int k = 0; k < 5 && upper; k++) { /* upper is 0 if no output depends on the axes */
        int64_t actual = k == 0   ? 0
                         : k == 1 ? 1
                         : k == 4 ? upper
                                  : random_below(&r, (uint32_t)upper + 1);
        expect_ok(rlxvk_clear_active_extent(e));
        extent_run(e, seed + 1, 0, got); /* leaves stale rows */
        extent_free(e, got);
        expect_ok(rlxvk_set_active_extent(e, actual, upper));
        extent_run(e, seed, k == 2 ? 3e38f : NAN, got);
        compare(e, got, wanted, what, seed);
        extent_free(e, got);
    }
    extent_free(e, wanted);
    bool supported = rlxvk_extent_supported(e, &report);
    rlxvk_executable_destroy(plain);
    rlxvk_executable_destroy(e);
    return supported;
}
