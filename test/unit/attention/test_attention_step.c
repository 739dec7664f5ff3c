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

#define HEADS    4
#define WIDTH    16
#define CAPACITY 3000 /* several chunks on every device */

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

/* Runs one step. The caches get their first contents again before it. */
static void run_at(rlxvk_executable *e, float position, float y[HEADS * WIDTH])
{
    static float cache[CAPACITY * WIDTH];
    for (int i = 0; i < CAPACITY * WIDTH; i++)
        cache[i] = (float)(i % 11) / 8 - 0.5f;
    expect_ok(rlxvk_bind_handle(e, "keys", cache, CAPACITY * WIDTH));
    expect_ok(rlxvk_bind_handle(e, "values", cache, CAPACITY * WIDTH));
    float q[HEADS * WIDTH], table[WIDTH / 2];
    for (int i = 0; i < HEADS * WIDTH; i++)
        q[i] = (float)(i % 7) - 3;
    for (int i = 0; i < WIDTH / 2; i++)
        table[i] = 0.5f;
    rlxvk_run_input inputs[] = {{"q", q, HEADS * WIDTH, RLXVK_F32},
                                {"position", &position, 1, RLXVK_F32},
                                {"table", table, WIDTH / 2, RLXVK_F32}};
    rlxvk_run_output out = {0, y, HEADS * WIDTH, RLXVK_F32};
    expect_ok(rlxvk_run(e, inputs, 3, &out, 1));
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(dispatches), cmocka_unit_test(repeats)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
