/* Several executables of one program: what is made only once, what each executable has for itself,
 * and what executables with shared memory know about it. */
#include "exec/executable.h"
#include "support/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#define LAYERS 24
#define WIDTH  32

static double milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* x [1, WIDTH] through LAYERS of softmax(x w) + x. w is a param of each layer. The second output is
 * not fed until a test adds a feed. */
static rlxvk_graph *layered(void)
{
    rlxvk_graph *g = NULL;
    char name[8];
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, WIDTH));
    for (int i = 0; i < LAYERS; i++) {
        snprintf(name, sizeof name, "w%d", i);
        rlxvk_tensor w = rlxvk_param(g, name, RLXVK_F32, RLXVK_SHAPE(WIDTH, WIDTH));
        x = rlxvk_add(g, x, rlxvk_softmax(g, rlxvk_matmul(g, x, w), -1));
    }
    rlxvk_graph_output(g, x);
    return g;
}

static void set_params(rlxvk_executable *e)
{
    float w[WIDTH * WIDTH];
    char name[8];
    for (int i = 0; i < LAYERS; i++) {
        for (int k = 0; k < WIDTH * WIDTH; k++)
            w[k] = (float)((k * 7 + i * 13) % 11 - 5) / 16;
        snprintf(name, sizeof name, "w%d", i);
        expect_ok(rlxvk_set_param(e, name, w, WIDTH * WIDTH));
    }
}

static void run_layers(rlxvk_executable *e, const float *x, float *y)
{
    rlxvk_run_input in = {"x", x, WIDTH, RLXVK_F32};
    rlxvk_run_output out = {0, y, WIDTH, RLXVK_F32};
    expect_ok(rlxvk_run(e, &in, x != NULL, &out, 1));
}

/* Each node is lowered only once, even if the plan tries several orders. */
static void test_compile_lowers_once(void **state)
{
    rlxvk_graph *g = layered();
    rlxvk_executable *e = NULL;
    (void)state;
    uint64_t before = schedule_lowered_count();
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    uint64_t lowered = schedule_lowered_count() - before;
    assert_in_range(lowered, 1, e->program->graph->nodes.count);
    rlxvk_executable_destroy(e);
    expect_ok(rlxvk_compile(shared_context, g, &(rlxvk_compile_options){.reorder = RLXVK_OFF}, &e));
    assert_int_equal(schedule_lowered_count() - before, 2 * lowered);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* Returns the number of barriers in a graph of independent branches with `length` elements each. */
static uint32_t barriers_of_branches(int64_t length)
{
    enum { BRANCHES = 8 };
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(BRANCHES, length));
    for (int i = 0; i < BRANCHES; i++) {
        rlxvk_tensor row = rlxvk_softmax(g, rlxvk_narrow(g, x, 0, i, 1), 1);
        rlxvk_graph_output(g,
                           rlxvk_reduce_max(g, rlxvk_softmax(g, row, 1), (int32_t[]){1}, 1, false));
    }
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    uint32_t barriers = e->program->plan.barrier_count;
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return barriers;
}

/* The branches execute level by level, unless that needs over 16 MiB more memory. */
static void test_levels_cost_little(void **state)
{
    (void)state;
    assert_in_range(barriers_of_branches(1000), 1, 4);
    assert_in_range(barriers_of_branches(1 << 20), 8, UINT32_MAX);
}

/* A clone lowers nothing and neither makes nor requests a pipeline, not even for its feeds. */
static void test_clone_compiles_nothing(void **state)
{
    rlxvk_graph *g = layered();
    rlxvk_executable *e = NULL, *copy = NULL;
    device *d = shared_context->device;
    float x[WIDTH] = {1, 2, 3}, y[2][WIDTH];
    (void)state;
    double began = milliseconds();
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    double compiled = milliseconds();
    rlxvk_graph_destroy(g);
    set_params(e);
    expect_ok(rlxvk_register_row_feed(e, "x", 0));
    run_layers(e, x, y[0]);
    uint64_t lowered = schedule_lowered_count();
    size_t made = pipeline_count_made(d), asked = pipeline_count_asked(d);
    double cloning = milliseconds();
    expect_ok(rlxvk_clone(e, &copy));
    double cloned = milliseconds();
    assert_int_equal(schedule_lowered_count() - lowered, 0);
    assert_int_equal(pipeline_count_made(d) - made, 0);
    assert_int_equal(pipeline_count_asked(d) - asked, 0);
    assert_ptr_equal(copy->program, e->program);
    print_message("compile %.2f ms, clone %.2f ms, %zu steps, %zu params\n", compiled - began,
                  cloned - cloning, e->program->schedule.steps.count, e->program->param_count);
    rlxvk_executable_destroy(e); /* the copy holds the program */
    run_layers(copy, NULL, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    rlxvk_executable_destroy(copy);
}

/* An executable does not see changes of its clone's params, handles and random state. */
static void test_clones_are_independent(void **state)
{
    rlxvk_graph *g = layered();
    rlxvk_executable *e = NULL, *copy = NULL;
    float x[WIDTH] = {1}, zeros[WIDTH * WIDTH] = {0}, y[3][WIDTH], read[WIDTH * WIDTH];
    (void)state;
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    rlxvk_graph_destroy(g);
    set_params(e);
    run_layers(e, x, y[0]);
    expect_ok(rlxvk_clone(e, &copy));
    expect_ok(rlxvk_set_param(copy, "w3", zeros, WIDTH * WIDTH));
    expect_ok(rlxvk_bind_handle(copy, "x", zeros, WIDTH));
    expect_ok(rlxvk_set_rng(copy, &(rlxvk_rng_options){.seed = 7}));
    run_layers(copy, NULL, y[1]);
    run_layers(e, NULL, y[2]);
    assert_memory_equal(y[0], y[2], sizeof y[0]);
    assert_memory_not_equal(y[0], y[1], sizeof y[0]);
    assert_false(rlxvk_has_handle(e, "x"));
    assert_int_equal(e->rng.seed, 42);
    expect_ok(rlxvk_read_param(e, "w3", read, WIDTH * WIDTH));
    assert_memory_not_equal(read, zeros, sizeof read);
    rlxvk_executable_destroy(copy);
    rlxvk_executable_destroy(e);
}

/* If an executable shares its params, its clone has its own params with the same content. */
static void test_clone_of_a_sharer(void **state)
{
    rlxvk_graph *g = layered();
    rlxvk_executable *owner = NULL, *sharer = NULL, *copy = NULL;
    float x[WIDTH] = {1}, zeros[WIDTH * WIDTH] = {0}, y[2][WIDTH];
    (void)state;
    expect_ok(rlxvk_compile(shared_context, g, NULL, &owner));
    set_params(owner);
    rlxvk_compile_options o = {.share_with = owner};
    expect_ok(rlxvk_compile(shared_context, g, &o, &sharer));
    rlxvk_graph_destroy(g);
    run_layers(sharer, x, y[0]);
    expect_ok(rlxvk_clone(sharer, &copy));
    rlxvk_memory_report own, none, again;
    rlxvk_executable_memory(owner, &own);
    rlxvk_executable_memory(sharer, &none);
    rlxvk_executable_memory(copy, &again);
    assert_true(none.weight_bytes < own.weight_bytes);
    assert_int_equal(again.weight_bytes, own.weight_bytes);
    expect_ok(rlxvk_set_param(owner, "w3", zeros, WIDTH * WIDTH));
    run_layers(copy, x, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    run_layers(sharer, x, y[1]);
    assert_memory_not_equal(y[0], y[1], sizeof y[0]);
    rlxvk_executable_destroy(owner);
    rlxvk_executable_destroy(sharer);
    run_layers(copy, x, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    rlxvk_executable_destroy(copy);
}

/* Whichever allocation or Vulkan call fails: no clone is made, nothing leaks (balance.c), and the
 * source runs as before. */
static void test_failing_clones(void **state)
{
    rlxvk_graph *g = layered();
    rlxvk_executable *owner = NULL, *e = NULL, *copy = NULL;
    float x[WIDTH] = {1, 2}, y[2][WIDTH];
    uint64_t failed[2];
    (void)state;
    expect_ok(rlxvk_compile(shared_context, g, NULL, &owner));
    set_params(owner);
    expect_ok(rlxvk_compile(shared_context, g, &(rlxvk_compile_options){.share_with = owner}, &e));
    rlxvk_graph_destroy(g);
    expect_ok(rlxvk_bind_handle(e, "x", x, WIDTH));
    expect_ok(rlxvk_register_row_feed(e, "x", 0));
    run_layers(e, NULL, y[0]);
    for (int kind = 0; kind < 2; kind++) {
        rlxvk_status status = RLXVK_E_TIMEOUT;
        for (failed[kind] = (uint64_t)kind; status != RLXVK_OK; failed[kind]++) {
            memory_fail_at(kind ? 0 : failed[kind] + 1);
            vk_hooks.fail_at = kind ? failed[kind] + 1 : 0;
            status = rlxvk_clone(e, &copy);
            memory_fail_at(0);
            vk_hooks.fail_at = 0;
            assert_true(status == RLXVK_OK || status == RLXVK_E_OUT_OF_HOST_MEMORY ||
                        status == RLXVK_E_OUT_OF_DEVICE_MEMORY);
            assert_int_equal(status == RLXVK_OK, copy != NULL);
        }
        run_layers(copy, NULL, y[1]);
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        rlxvk_executable_destroy(copy);
        copy = NULL;
        run_layers(e, NULL, y[1]);
        assert_memory_equal(y[0], y[1], sizeof y[0]);
    }
    print_message("%llu host and %llu Vulkan failures injected\n",
                  (unsigned long long)failed[0] - 1, (unsigned long long)failed[1] - 1);
    assert_true(failed[0] > 10 && failed[1] > 10);
    rlxvk_executable_destroy(e);
    rlxvk_executable_destroy(owner);
}

/* If the second executable cannot be made, nothing is shared. If it is made, a value that one of
 * them sets or writes in shared memory holds for both. That works in both directions and at any
 * time. */
static void test_shared_content(void **state)
{
    rlxvk_graph *g = layered();
    rlxvk_executable *owner = NULL, *sharer = NULL, *third = NULL;
    float x[WIDTH] = {1, 2}, y[2][WIDTH];
    const char *name = "x";
    rlxvk_compile_options o = {.shared_inputs = &name, .shared_input_count = 1};
    (void)state;
    expect_ok(rlxvk_compile(shared_context, g, NULL, &owner));
    o.share_with = owner;
    for (uint64_t nth = 2; !sharer; nth++) { /* call 1 is the wait for the owner */
        assert_false(owner->inputs[0].content->shared || owner->params[0].content->shared);
        vk_hooks.fail_at = nth;
        rlxvk_status status = rlxvk_compile(shared_context, g, &o, &sharer);
        vk_hooks.fail_at = 0;
        assert_int_equal(status == RLXVK_OK, sharer != NULL);
    }
    assert_true(owner->inputs[0].content->shared && owner->params[0].content->shared);
    expect_error(rlxvk_run(owner, NULL, 0, NULL, 0), RLXVK_E_UNSET_PARAM, "'w0'");
    set_params(sharer);
    expect_error(rlxvk_run(owner, NULL, 0, NULL, 0), RLXVK_E_MISSING_INPUT, "'x'");
    run_layers(sharer, x, y[0]);
    run_layers(owner, NULL, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    rlxvk_executable_destroy(owner); /* the memory and its content state stay */
    o.share_with = sharer;
    expect_ok(rlxvk_compile(shared_context, g, &o, &third));
    rlxvk_graph_destroy(g);
    run_layers(third, NULL, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    rlxvk_executable_destroy(sharer);
    run_layers(third, x, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    rlxvk_executable_destroy(third);
}

/* A param that is also an output is placed in state memory, not with the weights. If it is shared,
 * it still outlives its first executable. */
static void test_shared_param_as_output(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *owner = NULL, *sharer = NULL;
    float y[4];
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(2, 2));
    rlxvk_graph_output(g, rlxvk_reshape(g, w, RLXVK_SHAPE(4)));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &owner));
    rlxvk_compile_options o = {.share_with = owner};
    expect_ok(rlxvk_compile(shared_context, g, &o, &sharer));
    rlxvk_graph_destroy(g);
    expect_ok(rlxvk_set_param(owner, "w", (float[]){1, 2, 3, 4}, 4));
    rlxvk_executable_destroy(owner);
    rlxvk_run_output out = {0, y, 4, RLXVK_F32};
    expect_ok(rlxvk_run(sharer, NULL, 0, &out, 1));
    assert_memory_equal(y, ((float[]){1, 2, 3, 4}), sizeof y);
    rlxvk_executable_destroy(sharer);
}

static void expect_negated(rlxvk_executable *e, const float *x, size_t count)
{
    float y[256];
    const rlxvk_run_input in = {.name = "x", .data = x, .length = count};
    const rlxvk_run_output out = {.buffer = y, .length = count};
    expect_ok(rlxvk_run(e, &in, 1, &out, 1));
    for (size_t i = 0; i < count; i++)
        assert_float_equal(y[i], -x[i], 0);
}

/* Changes that a weak fingerprint would not notice: signs of two elements, two blocks in the other
 * order, and zeros of both signs. */
static void test_small_changes_are_uploaded(void **state)
{
    rlxvk_graph *g = NULL;
    rlxvk_context *staging = open_context(&(rlxvk_context_options){.direct_upload = RLXVK_OFF});
    rlxvk_executable *e = NULL;
    float x[256];
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_neg(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(256))));
    expect_ok(rlxvk_compile(staging, g, NULL, &e));
    rlxvk_graph_destroy(g);
    for (int i = 0; i < 256; i++)
        x[i] = (float)(i / 32);
    expect_negated(e, x, 256);
    for (int distance = 1; distance < 128; distance++) {
        x[129 - distance] = -x[129 - distance] - 1;
        x[129] = -x[129] - 1;
        expect_negated(e, x, 256);
    }
    for (int i = 0; i < 16; i++) {
        float kept = x[i];
        x[i] = x[i + 64];
        x[i + 64] = kept;
    }
    expect_negated(e, x, 256);
    memset(x, 0, sizeof x);
    expect_negated(e, x, 256);
    x[1] = x[17] = -0.0f;
    const rlxvk_run_input in = {.name = "x", .data = x, .length = 256};
    float y[256];
    expect_ok(rlxvk_run(e, &in, 1, &(rlxvk_run_output){.buffer = y, .length = 256}, 1));
    assert_false(signbit(y[1]) || signbit(y[17]));
    assert_true(signbit(y[0]));
    rlxvk_executable_destroy(e);
    close_context(staging);
}

/* A shared input is uploaded only if the memory does not hold that value already. It does not
 * matter which executable uploaded or overwrote it last. */
static void test_shared_uploads(void **state)
{
    rlxvk_graph *g = layered();
    rlxvk_context *staging = open_context(&(rlxvk_context_options){.direct_upload = RLXVK_OFF});
    rlxvk_executable *owner = NULL, *sharer = NULL;
    float a[WIDTH] = {1, 2}, b[WIDTH] = {3}, y[3][WIDTH];
    const char *name = "x";
    rlxvk_compile_options o = {.shared_inputs = &name, .shared_input_count = 1};
    (void)state;
    expect_ok(rlxvk_compile(staging, g, NULL, &owner));
    o.share_with = owner;
    expect_ok(rlxvk_compile(staging, g, &o, &sharer));
    rlxvk_graph_destroy(g);
    set_params(owner);
    run_layers(owner, a, y[0]);
    leaf_content *content = owner->inputs[0].content;
    assert_ptr_equal(content, sharer->inputs[0].content);
    uint64_t first = content->fingerprint[0];
    run_layers(sharer, a, y[1]);
    assert_true(content->fingerprint_valid);
    assert_int_equal(content->fingerprint[0], first);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    run_layers(sharer, b, y[1]); /* the owner's next upload of a must not be skipped */
    assert_int_not_equal(content->fingerprint[0], first);
    run_layers(owner, a, y[2]);
    assert_memory_equal(y[0], y[2], sizeof y[0]);
    expect_ok(rlxvk_set_handle_feed(owner, "x", 0)); /* x becomes the output after each run */
    run_layers(owner, a, y[2]);
    assert_false(content->fingerprint_valid);
    run_layers(sharer, a, y[1]);
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    rlxvk_executable_destroy(owner);
    rlxvk_executable_destroy(sharer);
    close_context(staging);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compile_lowers_once),
        cmocka_unit_test(test_levels_cost_little),
        cmocka_unit_test(test_clone_compiles_nothing),
        cmocka_unit_test(test_clones_are_independent),
        cmocka_unit_test(test_clone_of_a_sharer),
        cmocka_unit_test(test_failing_clones),
        cmocka_unit_test(test_shared_content),
        cmocka_unit_test(test_shared_param_as_output),
        cmocka_unit_test(test_small_changes_are_uploaded),
        cmocka_unit_test(test_shared_uploads),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
