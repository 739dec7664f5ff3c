/*
 * Batch regions: which concats become one, which must not, and what is reported about them. Host
 * and device must give the same bits as without them, for any number of inputs of a dispatch.
 *
 * The kernels have conformance cases (conform/cases/region.c); `rlxvk conform --gradients` checks
 * their gradients.
 */
#include "program/context.h"
#include "op/elementwise/region.h"
#include "op/evaluation.h"
#include "support/planned.h"
#include "support/profiles.h"
#include "support/rewritten.h"
#include "vk/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const device_profile minimal = {.storage_buffers_per_stage = 8};

enum { MOST_INPUTS = 130 };

typedef enum kind {
    ACTIVATIONS,
    REGIONS,
    RESIZED,
    CASTS,
    MANY, /* more than the bindings of a dispatch */
    OTHER_AXIS,
    OUTPUT,
    OTHER_READER,
    READ_TWICE,
    OTHER_PROGRAM,
    OTHER_SHAPE,
    OTHER_LEAF,
    TWO_INPUTS,
    BYTES,
    WRITE_BETWEEN,
    ON_HOST,
    LARGE,
    NO_KERNEL,
    KINDS
} kind;

static const struct {
    const char *what, *miss; /* NULL: nothing is reported */
    uint32_t batches;
} expected[KINDS] = {
    [ACTIVATIONS] = {"activations", NULL, 1},
    [REGIONS] = {"regions", NULL, 1},
    [RESIZED] = {"resized images", NULL, 1},
    [CASTS] = {"casts", NULL, 1},
    [MANY] = {"many", NULL, 1},
    [OTHER_AXIS] = {"axis 1", NULL, 0},
    [OUTPUT] = {"output", "is a graph output", 0},
    [OTHER_READER] = {"other reader", "has 2 readers", 0},
    [READ_TWICE] = {"read twice", "has 2 readers", 0},
    [OTHER_PROGRAM] = {"other program", "are different programs", 0},
    [OTHER_SHAPE] = {"other shape", "differ in shape", 0},
    [OTHER_LEAF] = {"a leaf", "are different programs", 0},
    [TWO_INPUTS] = {"two inputs", NULL, 0},
    [BYTES] = {"bytes", "is no words", 0},
    [WRITE_BETWEEN] = {"write between", "is written in place after", 0},
    [ON_HOST] = {"on host", NULL, 0},
    [LARGE] = {"large", "is better written early", 0},
    [NO_KERNEL] = {"no kernel", "has no kernel", 0},
};

static rlxvk_tensor leaf(rlxvk_graph *g, uint32_t i, rlxvk_shape shape)
{
    char name[] = {(char)('a' + i), 0};
    return input(g, name, shape);
}

static rlxvk_shape leaf_shape(kind k, uint32_t i)
{
    if (k == RESIZED)
        return RLXVK_SHAPE(1, 2, 3, 4);
    if (k == LARGE)
        return RLXVK_SHAPE(1 << 20, 2);
    return RLXVK_SHAPE(k == OTHER_SHAPE && i == 2 ? 3 : 2, 4);
}

/* More steps than a software driver can compile quickly. */
static rlxvk_tensor long_region(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_region_step steps[9] = {{.op = RLXVK_ACTIVATION_TANH - 1}};
    rlxvk_region r = {.shape = rlxvk_tensor_shape(g, x), .steps = steps, .step_count = 9};
    for (uint32_t i = 1; i < r.step_count; i++) {
        steps[i] = steps[0];
        steps[i].first = RLXVK_REGION_STEP(i - 1);
    }
    return rlxvk_elementwise_region(g, &x, 1, &r);
}

static rlxvk_tensor part(rlxvk_graph *g, kind k, uint32_t i)
{
    rlxvk_tensor x = k == BYTES
                         ? rlxvk_param(g, i ? i == 1 ? "u" : "v" : "t", RLXVK_U8, RLXVK_SHAPE(2, 4))
                         : leaf(g, i, leaf_shape(k, i));
    if (k == OTHER_LEAF && i == 2)
        return x;
    if (k == RESIZED)
        x = rlxvk_resize_nearest2x(g, x);
    if (k == REGIONS)
        return rlxvk_tanh(g, rlxvk_mul(g, rlxvk_neg(g, x), x));
    if (k == TWO_INPUTS)
        return rlxvk_tanh(g, rlxvk_add(g, x, leaf(g, i + 3, RLXVK_SHAPE(2, 4))));
    if (k == CASTS)
        return rlxvk_cast(g, x, RLXVK_I32);
    if (k == BYTES)
        return rlxvk_cast(g, x, RLXVK_F32);
    if (k == NO_KERNEL)
        return long_region(g, x);
    return k == OTHER_PROGRAM && i == 1 ? rlxvk_abs(g, x) : rlxvk_relu(g, x);
}

static rlxvk_graph *build(kind k)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor parts[9];
    uint32_t count = k == MANY ? 9 : 3;
    for (uint32_t i = 0; i < count; i++) {
        parts[i] = part(g, k, i);
        if (k == WRITE_BETWEEN && i == 1)
            rlxvk_write_rows(g, input(g, "cache", RLXVK_SHAPE(1, 4, 4)),
                             input(g, "rows", RLXVK_SHAPE(1, 1, 4)),
                             input(g, "at", RLXVK_SHAPE(1)));
    }
    if (k == READ_TWICE)
        parts[2] = parts[0];
    if (k == OUTPUT)
        rlxvk_graph_output(g, parts[1]);
    if (k == OTHER_READER)
        rlxvk_graph_output(g, rlxvk_transpose(g, parts[1], (const int32_t[]){1, 0}, 2));
    rlxvk_tensor whole = rlxvk_concat(g, parts, count, k == OTHER_AXIS);
    rlxvk_graph_set_name(g, whole, "whole");
    rlxvk_graph_output(g, whole);
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static void note_reason(void *user, uint32_t id, const char *pattern, const char *reason)
{
    (void)id;
    if (strcmp(pattern, "concat of regions") == 0)
        snprintf(user, 256, "%s", reason);
}

static void expect_same_values(const rlxvk_graph *g, const rlxvk_graph *after, const char *what)
{
    size_t count, n;
    float *wanted = evaluate_seeded(g, 3, true, &count), *got = evaluate_seeded(after, 3, true, &n);
    assert_int_equal(count, n);
    if (memcmp(wanted, got, n * sizeof *got) != 0)
        fail_msg("%s: other values", what);
    free(wanted);
    free(got);
}

static void expect_kind(kind k)
{
    static const bool on_host[OP_COUNT] = {[OP_relu] = true};
    device_profile profile = minimal;
    profile.portable = k == NO_KERNEL;
    rewrite_options options = {true, true, &profile, k == ON_HOST ? on_host : NULL};
    rlxvk_graph *g = build(k), *after = NULL;
    pair_list none = {0};
    char reason[256] = "";
    expect_ok(graph_clone(g, &after));
    expect_ok(rewrite_graph(after, &options));
    expect_count(expected[k].what, count_op(after, OP_batch_elementwise_region),
                 expected[k].batches);
    const node *last = graph_node(after, after->outputs.items[after->outputs.count - 1]);
    assert_string_equal(last->name, "whole");
    if (k != BYTES && k != LARGE) /* no host reference; too slow */
        expect_same_values(g, after, expected[k].what);
    expect_ok(rewrite_find_misses(after, &none, &profile, note_reason, reason));
    if (k != ON_HOST && (expected[k].miss ? !strstr(reason, expected[k].miss) : reason[0] != 0))
        fail_msg("%s: reason '%s'", expected[k].what, reason);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

static void joins_and_guards(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++)
        expect_kind((kind)k);
}

/* ---- On the device ---- */

static float *run(const rlxvk_graph *g, rlxvk_toggle regions, uint32_t *dispatches, size_t *count)
{
    rlxvk_executable *e = NULL;
    rlxvk_compile_options o = {.regions = regions, .forbid_host = RLXVK_ON, .check_plan = RLXVK_ON};
    rlxvk_plan_report report;
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    rlxvk_executable_plan(e, &report);
    *dispatches = report.dispatches;
    float *values = run_seeded(e, g, 3, true, count);
    rlxvk_executable_destroy(e);
    return values;
}

static void computes_the_same_in_fewer_dispatches(void **state)
{
    static const kind kinds[] = {ACTIVATIONS, REGIONS, RESIZED, CASTS, MANY};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        rlxvk_graph *g = build(kinds[i]);
        uint32_t many, few;
        size_t count;
        float *wanted = run(g, RLXVK_OFF, &many, &count), *got = run(g, RLXVK_ON, &few, &count);
        assert_memory_equal(wanted, got, count * sizeof *got);
        assert_true(many >= 3);
        assert_true(few <= (kinds[i] == MANY ? 2 : 1));
        free(wanted);
        free(got);
        rlxvk_graph_destroy(g);
    }
}

/* ---- How many inputs a dispatch can have ---- */

/* A graph of `count` inputs that batch. Without rewriting, it has a node for each. */
static rlxvk_graph *many_inputs(uint32_t count, rlxvk_shape shape)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor parts[MOST_INPUTS];
    for (uint32_t i = 0; i < count; i++) {
        char name[8];
        snprintf(name, sizeof name, "x%u", i);
        parts[i] = rlxvk_silu(g, input(g, name, shape));
    }
    rlxvk_graph_output(g, rlxvk_concat(g, parts, count, 0));
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static uint32_t dispatches_of(uint32_t inputs, uint32_t buffers)
{
    device_profile profile = ORDINARY_GPU;
    profile.storage_buffers_per_stage = buffers;
    const planning how = {.rewrite = {true, true, &profile, NULL},
                          .schedule = {.profile = &profile, .forbid_host = true},
                          .plan = {.max_block_bytes = 1 << 30,
                                   .max_binding_bytes = 1 << 27,
                                   .alignment = 256}};
    planned p = {.source = many_inputs(inputs, RLXVK_SHAPE(2, 3))};
    expect_ok(planned_make(&p, &how));
    uint32_t count = (uint32_t)p.schedule.dispatches.count, bound = 0;
    for (uint32_t i = 0; i < count; i++) {
        const dispatch *d = &p.schedule.dispatches.items[i];
        assert_true(d->operand_count <= buffers);
        bound += d->operand_count - 1u;
    }
    assert_int_equal(bound, inputs);
    planned_release(&p);
    return count;
}

static void binds_as_many_inputs_as_a_stage_takes(void **state)
{
    (void)state;
    assert_int_equal(dispatches_of(64, 1 << 20), 1);
    assert_int_equal(dispatches_of(64, 65), 1);
    assert_int_equal(dispatches_of(64, 64), 2);
    assert_int_equal(dispatches_of(65, 1 << 20), 2);
    assert_int_equal(dispatches_of(31, 32), 1);
    assert_int_equal(dispatches_of(32, 32), 2);
    assert_int_equal(dispatches_of(64, 8), 10);
    assert_int_equal(dispatches_of(3, 4), 1);
    assert_int_equal(dispatches_of(MOST_INPUTS, 65), 3);
}

/* Runs on a device with at most `buffers` storage buffers and with small blocks, which hold few
 * inputs. */
static float *run_with(uint32_t buffers, const rlxvk_graph *g, uint32_t inputs, size_t *count)
{
    const rlxvk_context_options small = {.limit_allocation_bytes = 1 << 16};
    rlxvk_context *c = open_context(&small);
    uint32_t *limit = &c->device->setup.profile.storage_buffers_per_stage;
    rlxvk_executable *e = NULL;
    rlxvk_compile_options o = {.forbid_host = RLXVK_ON, .check_plan = RLXVK_ON};
    rlxvk_plan_report report;
    *limit = MIN(*limit, buffers);
    expect_ok(rlxvk_compile(c, g, &o, &e));
    rlxvk_executable_plan(e, &report);
    assert_int_equal(report.dispatches, divide_up(inputs, MIN(*limit - 1, 64)));
    float *values = run_seeded(e, g, 3, true, count);
    rlxvk_executable_destroy(e);
    close_context(c);
    return values;
}

static void computes_the_same_however_many_are_bound(void **state)
{
    static const uint32_t buffers[] = {2, 4, 8, 17, 32, 33, 64, 65};
    const rlxvk_shape shapes[] = {RLXVK_SHAPE(2, 3), RLXVK_SHAPE(4, 60)};
    (void)state;
    for (size_t s = 0; s < ARRAY_COUNT(shapes); s++) {
        rlxvk_graph *g = many_inputs(64, shapes[s]);
        size_t count, n;
        uint32_t nodes;
        float *wanted = run(g, RLXVK_OFF, &nodes, &count);
        assert_true(nodes >= 64);
        for (size_t i = 0; i < ARRAY_COUNT(buffers); i++) {
            float *got = run_with(buffers[i], g, 64, &n);
            assert_int_equal(count, n);
            assert_memory_equal(wanted, got, n * sizeof *got);
            free(got);
        }
        free(wanted);
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joins_and_guards),
        cmocka_unit_test(computes_the_same_in_fewer_dispatches),
        cmocka_unit_test(binds_as_many_inputs_as_a_stage_takes),
        cmocka_unit_test(computes_the_same_however_many_are_bound),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
