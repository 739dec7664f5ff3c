/*
 * attention_step: how many dispatches it takes on different devices. If the keys are split into
 * chunks, counters on the device say when to join them. Each run must leave the counters as they
 * were, also in clones. The results themselves are checked by rlxvk conform.
 */
#include "plan/schedule.h"
#include "support/harness.h"
#include "support/profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define HEADS     4
#define WIDTH     16
#define CAPACITY  3000 /* several chunks on every device */
#define MOST_ROWS 60

static rlxvk_graph *step_graph(int64_t rows)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_attention_step_options options = {.heads = HEADS,
                                            .kv_heads = 1,
                                            .head_dim = WIDTH,
                                            .n_rot = WIDTH};
    rlxvk_tensor q = rlxvk_input(g, "q", RLXVK_F32, RLXVK_SHAPE(1, rows, HEADS * WIDTH));
    rlxvk_tensor k = rlxvk_narrow(g, q, -1, 0, WIDTH), v = rlxvk_narrow(g, q, -1, WIDTH, WIDTH);
    rlxvk_tensor keys = rlxvk_input(g, "keys", RLXVK_F32, RLXVK_SHAPE(1, CAPACITY, WIDTH));
    rlxvk_tensor values = rlxvk_input(g, "values", RLXVK_F32, RLXVK_SHAPE(1, CAPACITY, WIDTH));
    rlxvk_tensor position = rlxvk_input(g, "position", RLXVK_F32, RLXVK_SHAPE(1));
    rlxvk_tensor table = rlxvk_input(g, "table", RLXVK_F32, RLXVK_SHAPE(rows, WIDTH / 2));
    rlxvk_graph_output(g, rlxvk_attention_step(g, q, k, v, keys, values, position, table, table,
                                               &options));
    expect_ok(rlxvk_graph_status(g));
    return g;
}

/* Compares the names of the kernels that the attention_step node is lowered to. */
static void expect_kernels(int64_t rows, uint32_t bindings, const char *names)
{
    device_profile profile = ORDINARY_GPU;
    profile.storage_buffers_per_stage = bindings;
    rlxvk_graph *g = step_graph(rows);
    const schedule_options options = {.profile = &profile, .forbid_host = true};
    schedule s = {0};
    char buffer[256] = "";
    text got = {buffer, sizeof buffer, 0};
    expect_ok(schedule_create(g, &options, &s));
    for (size_t i = 0; i < s.dispatches.count; i++) {
        const dispatch *d = &s.dispatches.items[i];
        if (graph_node(g, d->node)->op == OP_attention_step)
            text_append(&got, "%s ", kernel_find(d->kernel)->name);
    }
    assert_string_equal(buffer, names);
    schedule_destroy(&s);
    rlxvk_graph_destroy(g);
}

static void dispatches(void **state)
{
    (void)state;
    expect_kernels(1, 11, "attention_step ");
    expect_kernels(8, 11, "attention_step ");
    expect_kernels(1, 8, "attention_append rope attention_decode ");
    expect_kernels(60, 11, "attention_append rope attention_prefill attention_merge ");
}

/* Runs a step of so many rows. The caches get their first contents again before it. */
static void run_rows(rlxvk_executable *e, uint64_t rows, float position, float *y)
{
    static float cache[CAPACITY * WIDTH], q[MOST_ROWS * HEADS * WIDTH],
        table[MOST_ROWS * WIDTH / 2];
    uint64_t words = rows * HEADS * WIDTH, angles = rows * WIDTH / 2;
    for (int i = 0; i < CAPACITY * WIDTH; i++)
        cache[i] = (float)(i % 11) / 8 - 0.5f;
    expect_ok(rlxvk_bind_handle(e, "keys", cache, CAPACITY * WIDTH));
    expect_ok(rlxvk_bind_handle(e, "values", cache, CAPACITY * WIDTH));
    for (uint64_t i = 0; i < words; i++)
        q[i] = (float)(i % 7) - 3;
    for (uint64_t i = 0; i < angles; i++)
        table[i] = 0.5f;
    rlxvk_run_input inputs[] = {{"q", q, words, RLXVK_F32},
                                {"position", &position, 1, RLXVK_F32},
                                {"table", table, angles, RLXVK_F32}};
    rlxvk_run_output out = {0, y, words, RLXVK_F32};
    expect_ok(rlxvk_run(e, inputs, 3, &out, 1));
}

static void run_at(rlxvk_executable *e, float position, float y[HEADS * WIDTH])
{
    run_rows(e, 1, position, y);
}

/* A position is rounded to the nearest integer, halves upwards. The largest f32 below 0.5 is 0,
 * although its sum with 0.5 is 1 in f32. */
static void positions_are_rounded(void **state)
{
    static const float given[] = {0.49999997f, 0.5f}, meant[] = {0, 1};
    static const uint64_t rows[] = {1, MOST_ROWS};
    static float want[MOST_ROWS * HEADS * WIDTH], got[MOST_ROWS * HEADS * WIDTH];
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(rows); k++) {
        rlxvk_graph *g = step_graph((int64_t)rows[k]);
        rlxvk_executable *e = NULL;
        expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
        for (size_t i = 0; i < ARRAY_COUNT(given); i++) {
            run_rows(e, rows[k], meant[i], want);
            run_rows(e, rows[k], given[i], got);
            assert_memory_equal(want, got, rows[k] * HEADS * WIDTH * sizeof *got);
        }
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

static void repeats(void **state)
{
    static const float positions[] = {CAPACITY - 1, 5, 2000, -1, CAPACITY - 1};
    rlxvk_graph *g = step_graph(1);
    rlxvk_executable *e = NULL, *copy = NULL;
    float first[HEADS * WIDTH], again[HEADS * WIDTH];
    (void)state;
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    run_at(e, CAPACITY - 1, first);
    expect_ok(rlxvk_clone(e, &copy));
    for (size_t i = 0; i < ARRAY_COUNT(positions); i++) {
        run_at(e, positions[i], again);
        assert_int_equal(memcmp(first, again, sizeof first) == 0, positions[i] == CAPACITY - 1);
        run_at(copy, CAPACITY - 1, again);
        assert_memory_equal(first, again, sizeof first);
    }
    rlxvk_executable_destroy(copy);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dispatches), cmocka_unit_test(repeats),
                                       cmocka_unit_test(positions_are_rounded)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
