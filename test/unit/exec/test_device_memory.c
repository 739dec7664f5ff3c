/*
 * The compile options device_memory_bytes and host_weights_bytes. Results have the same bits,
 * wherever weights lie. Those weights move that the header says, and no others. Params on the host
 * are set, read, saved, cloned and shared like all others. Errors say what is needed, free and
 * there, and the remedy.
 */
#include "support/harness.h"
#include "support/rewritten.h"

#include "exec/executable.h"

#include <rlxvk_files.h>
#include <rlxvk_symbols.h>
#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { TABLE = 1000 * 64 * 4, FIRST = 64 * 128 * 4, SECOND = 128 * 256 * 4, MOST_PARAMS = 16 };

/* ---- Graphs and limits ---- */

/* Rows of a table, then two products; by size, the table is first and "second" next. */
static rlxvk_graph *net_of(int64_t rows)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_gather(g, param(g, "table", RLXVK_SHAPE(1000, 64)),
                                  input(g, "rows", RLXVK_SHAPE(rows)), 0);
    x = rlxvk_relu(g, rlxvk_matmul(g, x, param(g, "first", RLXVK_SHAPE(64, 128))));
    x = rlxvk_add(g, x, param(g, "bias", RLXVK_SHAPE(128)));
    x = rlxvk_matmul(g, x, param(g, "second", RLXVK_SHAPE(128, 256)));
    rlxvk_graph_output(g, rlxvk_softmax(g, x, 1));
    return g;
}

static rlxvk_graph *net(void)
{
    return net_of(8);
}

static rlxvk_executable *compiled(rlxvk_context *c, const rlxvk_graph *g,
                                  const rlxvk_compile_options *o)
{
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_graph_status(g));
    expect_ok(rlxvk_compile(c, g, o, &e));
    return e;
}

static rlxvk_memory_report report_of(const rlxvk_executable *e)
{
    rlxvk_memory_report r = RLXVK_SIZED(rlxvk_memory_report, .block_count = 0);
    rlxvk_executable_memory(e, &r);
    return r;
}

static uint64_t device_bytes(const rlxvk_executable *e)
{
    return plan_device_bytes(&e->program->plan);
}

static uint64_t weights_on_device(const rlxvk_executable *e)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < e->program->plan.blocks[CLASS_WEIGHTS].count; i++)
        sum += e->program->plan.blocks[CLASS_WEIGHTS].items[i];
    return sum;
}

/* What the graph needs on the device if all weights lie there. */
static uint64_t needed(rlxvk_context *c, const rlxvk_graph *g)
{
    rlxvk_executable *e = compiled(c, g, NULL);
    uint64_t bytes = device_bytes(e);
    assert_int_equal(report_of(e).host_weight_bytes, 0);
    rlxvk_executable_destroy(e);
    return bytes;
}

static rlxvk_compile_options within(uint64_t device, uint64_t host)
{
    return RLXVK_SIZED(rlxvk_compile_options, .device_memory_bytes = device,
                       .host_weights_bytes = host, .check_plan = RLXVK_ON);
}

/* The names of the params on the host, in the order of the graph. */
static void expect_on_host(const rlxvk_executable *e, const char *wanted)
{
    const char *names[MOST_PARAMS];
    char all[256] = "";
    text t = {all, sizeof all, 0};
    size_t count = 99, again = 99;
    expect_ok(rlxvk_executable_host_params(e, names, MOST_PARAMS, &count));
    assert_in_range(count, 0, MOST_PARAMS);
    expect_ok(rlxvk_executable_host_params(e, NULL, 0, &again));
    assert_int_equal(again, count);
    for (size_t i = 0; i < count; i++)
        text_append(&t, "%s%s", i ? " " : "", names[i]);
    assert_string_equal(all, wanted);
}

/* ---- Placement ---- */

/* With memory that is mapped or not, and in many small blocks. */
static void test_same_bits(void **state)
{
    const rlxvk_context_options contexts[] = {
        {.cache_directory = ""},
        {.cache_directory = "", .direct_upload = RLXVK_OFF},
        {.cache_directory = "", .limit_allocation_bytes = TABLE + 4096},
    };
    const struct {
        uint64_t excess;
        const char *moved;
        uint64_t bytes;
    } rows[] = {
        {0, "", 0},
        {(TABLE + FIRST + SECOND) / 3, "table", TABLE},
        {(TABLE + FIRST + SECOND) / 3 * 2, "table second", TABLE + SECOND},
        {TABLE + SECOND + FIRST + 1, "table first bias second", TABLE + FIRST + SECOND + 512},
    };
    rlxvk_graph *g = net();
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(contexts); k++) {
        rlxvk_context *c = open_context(&contexts[k]);
        rlxvk_executable *whole = compiled(c, g, NULL);
        size_t count, again;
        float *wanted = run_seeded(whole, g, 3, false, &count);
        for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
            rlxvk_compile_options o = within(device_bytes(whole) - rows[i].excess, UINT64_MAX);
            rlxvk_executable *e = compiled(c, g, &o);
            rlxvk_memory_report r = report_of(e);
            expect_on_host(e, rows[i].moved);
            assert_int_equal(r.host_weight_bytes, rows[i].bytes);
            assert_int_equal(weights_on_device(e) + rows[i].bytes, weights_on_device(whole));
            assert_true(device_bytes(e) <= o.device_memory_bytes);
            for (int n = 0; n < 2; n++) {
                float *got = run_seeded(e, g, 3, false, &again);
                assert_int_equal(again, count);
                assert_memory_equal(got, wanted, count * sizeof *got);
                free(got);
            }
            rlxvk_executable_destroy(e);
        }
        free(wanted);
        rlxvk_executable_destroy(whole);
        close_context(c);
    }
    rlxvk_graph_destroy(g);
}

/* Guards around weights on the host, and references that are computed from them. */
static void test_checks(void **state)
{
    static const char *const checks[] = {"canary", "results"};
    rlxvk_graph *g = net();
    rlxvk_executable *plain = compiled(shared_context, g, NULL);
    size_t count, again;
    float *wanted = run_seeded(plain, g, 6, false, &count);
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(checks); i++) {
        setenv("RLXVK_CHECK", checks[i], 1);
        rlxvk_context *c = open_context(&(rlxvk_context_options){.cache_directory = ""});
        unsetenv("RLXVK_CHECK");
        rlxvk_compile_options o = within(needed(c, g) - TABLE - SECOND, UINT64_MAX);
        rlxvk_executable *e = compiled(c, g, &o);
        expect_on_host(e, "table second");
        float *got = run_seeded(e, g, 6, false, &again);
        assert_memory_equal(got, wanted, count * sizeof *got);
        rlxvk_bad_node bad = RLXVK_SIZED(rlxvk_bad_node, .found = true);
        expect_ok(rlxvk_first_bad_node(e, NULL, 0, &bad));
        assert_false(bad.found);
        free(got);
        rlxvk_executable_destroy(e);
        close_context(c);
    }
    free(wanted);
    rlxvk_executable_destroy(plain);
    rlxvk_graph_destroy(g);
}

static void test_host_limit(void **state)
{
    rlxvk_graph *g = net();
    uint64_t whole = needed(shared_context, g);
    rlxvk_compile_options o = within(whole - 1, TABLE - 1);
    rlxvk_executable *e = compiled(shared_context, g, &o);
    (void)state;
    expect_on_host(e, "second");
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* One step of an optimizer for every weight but the table. The written ones stay on the device. */
static void test_written_params_stay(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_gather(g, param(g, "table", RLXVK_SHAPE(1000, 64)),
                                  input(g, "rows", RLXVK_SHAPE(8)), 0);
    rlxvk_tensor w = param(g, "w", RLXVK_SHAPE(64, 256)), slope;
    rlxvk_tensor loss = rlxvk_reduce_sum(g, rlxvk_matmul(g, x, w), (int32_t[]){0, 1}, 2, false);
    rlxvk_executable *all, *some, *none = NULL;
    size_t count, again;
    (void)state;
    rlxvk_grad(g, loss, RLXVK_NONE, &w, 1, &slope);
    rlxvk_graph_output(g, loss);
    rlxvk_graph_output(g, rlxvk_sgd(g, w, slope, param(g, "m", RLXVK_SHAPE(64, 256)), NULL, NULL,
                                    NULL));
    all = compiled(shared_context, g, NULL);
    rlxvk_compile_options o = within(device_bytes(all) - TABLE / 2, UINT64_MAX);
    some = compiled(shared_context, g, &o);
    expect_on_host(some, "table");
    float *wanted = run_seeded(all, g, 5, false, &count);
    float *got = run_seeded(some, g, 5, false, &again);
    assert_int_equal(again, count);
    assert_memory_equal(got, wanted, count * sizeof *got);
    o = within(device_bytes(some) / 2, UINT64_MAX);
    expect_error(rlxvk_compile(shared_context, g, &o, &none), RLXVK_E_OUT_OF_DEVICE_MEMORY,
                 " bytes of weights lie on the host already");
    assert_null(none);
    free(wanted);
    free(got);
    rlxvk_executable_destroy(all);
    rlxvk_executable_destroy(some);
    rlxvk_graph_destroy(g);
}

/* Whether two params lie in one slot. */
static bool share_slot(const rlxvk_executable *e, const char *a, const char *b)
{
    const value *values = e->program->schedule.values.items;
    return values[program_find_param(e->program, a)->node].root ==
           values[program_find_param(e->program, b)->node].root;
}

/* Params that are joined for a product move together. */
static void test_joined_and_prepared(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(4, 64)),
                 image = input(g, "image", RLXVK_SHAPE(1, 16, 8, 8));
    size_t count, again;
    uint32_t joined = 0;
    (void)state;
    rlxvk_matmul_options by_rows = {.transpose_b = true};
    rlxvk_graph_output(g, rlxvk_matmul_with(g, x, param(g, "q", RLXVK_SHAPE(96, 64)), &by_rows));
    rlxvk_graph_output(g, rlxvk_matmul_with(g, x, param(g, "k", RLXVK_SHAPE(96, 64)), &by_rows));
    rlxvk_graph_output(g, rlxvk_conv(g, image, param(g, "conv", RLXVK_SHAPE(16, 16, 3, 3)),
                                     RLXVK_NONE, NULL));
    rlxvk_compile_options plain = RLXVK_SIZED(rlxvk_compile_options, .prepared_bytes = UINT64_MAX);
    rlxvk_executable *all = compiled(shared_context, g, &plain);
    float *wanted = run_seeded(all, g, 9, false, &count);
    for (uint64_t excess = 1; excess < 64 * 192 * 4; excess += 16 * 16 * 9 * 4) {
        rlxvk_compile_options o = within(device_bytes(all) - excess, UINT64_MAX);
        o.prepared_bytes = UINT64_MAX;
        rlxvk_executable *e = compiled(shared_context, g, &o);
        const char *names[MOST_PARAMS];
        expect_ok(rlxvk_executable_host_params(e, names, MOST_PARAMS, &again));
        bool q = false, k = false;
        for (size_t i = 0; i < again; i++) {
            q |= !strcmp(names[i], "q");
            k |= !strcmp(names[i], "k");
        }
        assert_true(!share_slot(e, "q", "k") || q == k);
        joined += share_slot(e, "q", "k") && q;
        float *got = run_seeded(e, g, 9, false, &again);
        assert_int_equal(again, count);
        assert_memory_equal(got, wanted, count * sizeof *got);
        free(got);
        rlxvk_executable_destroy(e);
    }
    assert_true(joined > 0);
    free(wanted);
    rlxvk_executable_destroy(all);
    rlxvk_graph_destroy(g);
}

/* Weights that only prepared steps read go before larger ones that each run reads. */
static void test_prepared_go_first(void **state)
{
    rlxvk_graph *g = new_graph();
    const rlxvk_shape channels = RLXVK_SHAPE(2048);
    rlxvk_tensor x = rlxvk_conv(g, input(g, "x", RLXVK_SHAPE(1, 2, 2, 2)),
                                param(g, "conv", RLXVK_SHAPE(2048, 2, 1, 1)), RLXVK_NONE, NULL);
    rlxvk_tensor gamma = param(g, "gamma", channels), beta = param(g, "beta", channels);
    rlxvk_tensor mean = param(g, "mean", channels), var = param(g, "var", channels);
    rlxvk_tensor y = rlxvk_batch_norm_inference(g, x, gamma, beta, mean, var, 1e-5f, 1);
    (void)state;
    y = rlxvk_matmul(g, rlxvk_reshape(g, rlxvk_relu(g, y), RLXVK_SHAPE(2048, 4)),
                     param(g, "w", RLXVK_SHAPE(4, 4096)));
    rlxvk_graph_output(g, y);
    const rlxvk_compile_options in_order = {.reorder = RLXVK_OFF};
    rlxvk_executable *all = compiled(shared_context, g, &in_order);
    assert_true(all->program->schedule.prepared > 0);
    rlxvk_compile_options o = within(device_bytes(all) - 4 * 4096 - 1, UINT64_MAX);
    o.reorder = RLXVK_OFF;
    rlxvk_executable *e = compiled(shared_context, g, &o);
    expect_on_host(e, "gamma"); /* and a constant; w is not needed */
    rlxvk_executable_destroy(all);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* ---- Params on the host ---- */

/* Compiles the net with everything on the host that may go there. */
static rlxvk_executable *hosted(const rlxvk_graph *g)
{
    rlxvk_compile_options o = within(needed(shared_context, g) - TABLE - SECOND, UINT64_MAX);
    rlxvk_executable *e = compiled(shared_context, g, &o);
    expect_on_host(e, "table second");
    return e;
}

static void fill(float *values, size_t count, float first)
{
    for (size_t i = 0; i < count; i++)
        values[i] = first + (float)i / 1024;
}

static void expect_table(rlxvk_executable *e, const float *wanted)
{
    static float got[TABLE / 4];
    memset(got, 0xff, sizeof got);
    expect_ok(rlxvk_read_param(e, "table", got, TABLE / 4));
    assert_memory_equal(got, wanted, TABLE);
}

static void test_calls(void **state)
{
    static float table[TABLE / 4], zeros[TABLE / 4];
    char folder[] = "/tmp/rlxvk_memory.XXXXXX", path[64];
    rlxvk_graph *g = net();
    rlxvk_executable *e = hosted(g), *other = hosted(g), *plain = compiled(shared_context, g, NULL);
    size_t count;
    (void)state;
    free(run_seeded(e, g, 1, false, &count));
    fill(table, TABLE / 4, 2);
    expect_ok(rlxvk_set_param(e, "table", table, TABLE / 4));
    expect_table(e, table);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/p.safetensors", folder);
    expect_ok(rlxvk_save_params(e, path, NULL));
    expect_ok(rlxvk_load_params(other, path, NULL));
    expect_ok(rlxvk_load_params(plain, path, NULL));
    expect_table(other, table);
    expect_table(plain, table);
    expect_ok(rlxvk_clear_param(other, "table"));
    expect_table(other, zeros);
    assert_int_equal(remove_folder(folder), 0);
    rlxvk_executable_destroy(plain);
    rlxvk_executable_destroy(other);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* A sharer reads the lender's params where they lie, and they do not count for its limit. A clone
 * of the sharer has memory of its own for them, on the host, too. */
static void test_shared_and_cloned(void **state)
{
    static float table[TABLE / 4];
    rlxvk_graph *g = net();
    rlxvk_executable *lender = hosted(g), *copy = NULL, *sharer, *copy_of_sharer = NULL;
    rlxvk_compile_options o = within(32768, 0);
    size_t count, again;
    (void)state;
    float *wanted = run_seeded(lender, g, 4, false, &count);
    o.share_with = lender;
    sharer = compiled(shared_context, g, &o);
    expect_on_host(sharer, "table second");
    assert_int_equal(report_of(sharer).host_weight_bytes, 0);
    expect_ok(rlxvk_clone(lender, &copy));
    expect_ok(rlxvk_clone(sharer, &copy_of_sharer));
    expect_on_host(copy, "table second");
    expect_on_host(copy_of_sharer, "table second");
    assert_int_equal(report_of(copy_of_sharer).host_weight_bytes, TABLE + SECOND);
    assert_int_equal(report_of(copy).host_weight_bytes, TABLE + SECOND);
    fill(table, TABLE / 4, 1);
    expect_ok(rlxvk_set_param(sharer, "table", table, TABLE / 4));
    expect_table(lender, table);
    rlxvk_executable_destroy(lender);
    expect_table(sharer, table);
    rlxvk_executable *all[] = {sharer, copy, copy_of_sharer};
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        float *got = run_seeded(all[i], g, 4, false, &again);
        assert_memory_equal(got, wanted, count * sizeof *got);
        free(got);
        rlxvk_executable_destroy(all[i]);
    }
    free(wanted);
    rlxvk_graph_destroy(g);
}

/* A param that is itself an output is read from the host's memory. */
static void test_param_as_output(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor table = param(g, "table", RLXVK_SHAPE(1000, 64));
    size_t count, again;
    (void)state;
    rlxvk_graph_output(g, rlxvk_gather(g, table, input(g, "rows", RLXVK_SHAPE(2)), 0));
    rlxvk_graph_output(g, rlxvk_reshape(g, table, RLXVK_SHAPE(64000)));
    for (int direct = 0; direct < 2; direct++) {
        rlxvk_context *c =
            open_context(&(rlxvk_context_options){.cache_directory = "",
                                                  .direct_upload = direct ? RLXVK_ON : RLXVK_OFF});
        rlxvk_compile_options o = within(needed(c, g) - 1, UINT64_MAX);
        rlxvk_executable *plain = compiled(c, g, NULL), *e = compiled(c, g, &o);
        expect_on_host(e, "table");
        float *wanted = run_seeded(plain, g, 8, false, &count);
        float *got = run_seeded(e, g, 8, false, &again);
        assert_int_equal(count, 128 + 64000);
        assert_memory_equal(got, wanted, count * sizeof *got);
        free(got);
        free(wanted);
        rlxvk_executable_destroy(e);
        rlxvk_executable_destroy(plain);
        close_context(c);
    }
    rlxvk_graph_destroy(g);
}

/* All bindings share the weights and the limit. If a new one does not fit, old ones make room. */
static void test_symbols(void **state)
{
    rlxvk_graph *g = net_of(rlxvk_symbol(RLXVK_ROWS)), *middle = net_of(8), *largest = net_of(64);
    uint64_t weights = TABLE + FIRST + SECOND + 512;
    uint64_t rest = needed(shared_context, largest) + needed(shared_context, middle) - 2 * weights;
    rlxvk_compile_options o = within(weights - TABLE + rest + 1024, UINT64_MAX);
    rlxvk_executable *e = compiled(shared_context, g, &o);
    rlxvk_cached_bindings_report r;
    (void)state;
    expect_on_host(e, ""); /* nothing is bound */
    for (int64_t rows = 1; rows <= 64; rows *= 8) {
        expect_ok(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_ROWS, rows}, 1));
        expect_on_host(e, "table");
        rlxvk_executable_cached_bindings(e, &r);
        assert_int_equal(r.members, rows == 1 ? 1 : 2);
    }
    expect_error(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_ROWS, 640}, 1),
                 RLXVK_E_OUT_OF_DEVICE_MEMORY, "device_memory_bytes allows");
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(middle);
    rlxvk_graph_destroy(largest);
    rlxvk_graph_destroy(g);
}

/* ---- Errors ---- */

static void test_errors(void **state)
{
    rlxvk_graph *g = net();
    uint64_t whole = needed(shared_context, g);
    rlxvk_compile_options o = within(whole - 1, 0);
    rlxvk_executable *e = NULL;
    char part[128];
    (void)state;
    snprintf(part, sizeof part, "compile: %llu bytes of device memory are needed (weights %d, ",
             (unsigned long long)whole, TABLE + FIRST + SECOND + 512);
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_OUT_OF_DEVICE_MEMORY, part);
    assert_null(e);
    snprintf(part, sizeof part,
             "device_memory_bytes allows %llu; let weights lie on the host "
             "(host_weights_bytes); use smaller weights (weight_storage, ",
             (unsigned long long)whole - 1);
    assert_non_null(strstr(rlxvk_last_error(), part));
    assert_non_null(strstr(rlxvk_last_error(), " bytes are free of "));
    o = within(1, UINT64_MAX);
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_OUT_OF_DEVICE_MEMORY,
                 "device_memory_bytes allows 1; 420352 bytes of weights lie on the host already");
    o.device_memory_bytes = UINT64_MAX;
    e = compiled(shared_context, g, &o);
    expect_on_host(e, "");
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static VKAPI_ATTR VkResult VKAPI_CALL no_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                                                const VkAllocationCallbacks *allocator,
                                                VkDeviceMemory *out)
{
    (void)device, (void)info, (void)allocator, (void)out;
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

/* A planted driver that tells its budget, and a device whose host memory is another heap. */
static uint64_t planted_budget, planted_use;
static uint32_t planted_heap;

static VKAPI_ATTR void VKAPI_CALL planted_room(VkPhysicalDevice device,
                                               VkPhysicalDeviceMemoryProperties2 *out)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget = out->pNext;
    (void)device;
    assert_int_equal(budget->sType, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
    budget->heapBudget[planted_heap] = planted_budget;
    budget->heapUsage[planted_heap] = planted_use;
}

/* Host memory is in the heap of the device's, or in another. The driver is asked for types only, so
 * the snapshot may have other heaps. */
static rlxvk_context *open_planted(bool two_heaps)
{
    rlxvk_context *c = open_context(&(rlxvk_context_options){.cache_directory = ""});
    VkPhysicalDeviceMemoryProperties *memory = &c->device->snapshot.memory;
    device_setup *setup = &c->device->setup;
    c->device->snapshot.memory_budget = true;
    c->device->fn.GetPhysicalDeviceMemoryProperties2 = planted_room;
    planted_heap = memory->memoryTypes[setup->arena_type].heapIndex;
    if (two_heaps) {
        memory->memoryTypes[memory->memoryTypeCount] = memory->memoryTypes[setup->upload_type];
        setup->upload_type = memory->memoryTypeCount;
        planted_heap = memory->memoryHeapCount;
        memory->memoryHeaps[planted_heap] = memory->memoryHeaps[0];
        memory->memoryTypes[setup->arena_type].heapIndex = planted_heap;
    } else {
        memory->memoryTypes[setup->upload_type].heapIndex = planted_heap;
    }
    return c;
}

static void expect_automatic(rlxvk_context *c, const rlxvk_graph *g, uint64_t host,
                             const char *wanted)
{
    rlxvk_compile_options o = within(0, host);
    rlxvk_executable *e = compiled(c, g, &o);
    expect_on_host(e, wanted);
    rlxvk_executable_destroy(e);
}

/* By default, free memory decides what moves, if host memory is another heap. */
static void test_automatic(void **state)
{
    rlxvk_graph *g = net();
    uint64_t whole = needed(shared_context, g);
    rlxvk_context *c = open_planted(true);
    (void)state;
    planted_use = 5000;
    planted_budget = 5000 + 2 * whole;
    expect_automatic(c, g, UINT64_MAX, "");
    planted_budget = 5000 + whole; /* a sixteenth stays free */
    expect_automatic(c, g, UINT64_MAX, "table");
    expect_automatic(c, g, 0, "");
    planted_budget = 4000; /* more is in use than the budget */
    expect_automatic(c, g, UINT64_MAX, "table first bias second");
    c->device->snapshot.memory_budget = false;
    expect_automatic(c, g, UINT64_MAX, "");
    c->device->snapshot.memory.memoryHeaps[planted_heap].size = whole;
    expect_automatic(c, g, UINT64_MAX, "table");
    close_context(c);
    c = open_planted(false);
    planted_budget = 4000;
    expect_automatic(c, g, UINT64_MAX, "");
    close_context(c);
    rlxvk_graph_destroy(g);
}

/* Without the extension, the blocks of the device are what is used. */
static void test_room(void **state)
{
    device *d = shared_context->device;
    bool told = d->snapshot.memory_budget;
    memory_block block;
    (void)state;
    d->snapshot.memory_budget = false;
    memory_room before = memory_room_of(d, MEMORY_ARENA);
    expect_ok(memory_block_create(d, MEMORY_ARENA, 1 << 20, &block));
    memory_room with = memory_room_of(d, MEMORY_ARENA);
    memory_block_destroy(d, &block);
    memory_room after = memory_room_of(d, MEMORY_ARENA);
    d->snapshot.memory_budget = told;
    assert_false(with.told);
    assert_int_equal(with.heap, with.budget);
    assert_in_range(with.used - before.used, 1 << 20, 2 << 20);
    assert_int_equal(after.used, before.used);
    assert_int_equal(memory_room_free(&with), with.heap - with.used);
}

static void test_failed_allocation(void **state)
{
    rlxvk_graph *g = net();
    rlxvk_executable *e = NULL;
    rlxvk_context *c = open_planted(false);
    char part[128];
    (void)state;
    planted_budget = 100000;
    planted_use = 70000;
    PFN_vkAllocateMemory before = c->device->fn.AllocateMemory;
    c->device->fn.AllocateMemory = no_memory;
    expect_error(rlxvk_compile(c, g, NULL, &e), RLXVK_E_OUT_OF_DEVICE_MEMORY,
                 "bytes of device memory are needed (weights ");
    snprintf(part, sizeof part, "device memory: a block needs %d bytes; 30000 bytes are free of ",
             TABLE + FIRST + SECOND + 512);
    assert_non_null(strstr(rlxvk_last_error(), part));
    assert_non_null(strstr(rlxvk_last_error(), ", as the driver says"));
    assert_non_null(strstr(rlxvk_last_error(), "let weights lie on the host"));
    c->device->fn.AllocateMemory = before;
    close_context(c);
    rlxvk_graph_destroy(g);
}

/* ---- Drivers that fail although the memory seems free ---- */

static uint32_t planted_failures; /* so many large allocations fail */
static PFN_vkAllocateMemory real_allocate;

static VKAPI_ATTR VkResult VKAPI_CALL some_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                                                  const VkAllocationCallbacks *allocator,
                                                  VkDeviceMemory *out)
{
    if (info->allocationSize < 20000 || planted_failures == 0)
        return real_allocate(device, info, allocator, out);
    planted_failures--;
    return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static rlxvk_context *open_failing(void)
{
    rlxvk_context *c = open_context(&(rlxvk_context_options){.cache_directory = ""});
    real_allocate = c->device->fn.AllocateMemory;
    c->device->fn.AllocateMemory = some_memory;
    return c;
}

/* After each failure, more weights go to the host: an eighth of what is needed, then a quarter. The
 * results stay the same, and the last error stays as it was. */
static void test_failures_move_weights(void **state)
{
    static const char *const moved[] = {"", "table", "table second", "table first second",
                                        "table first bias second"};
    rlxvk_graph *g = net();
    rlxvk_context *c = open_failing();
    rlxvk_executable *e = compiled(c, g, NULL);
    size_t count, again;
    float *wanted = run_seeded(e, g, 3, false, &count);
    rlxvk_compile_options o = within(0, UINT64_MAX);
    char before[1024];
    (void)state;
    snprintf(before, sizeof before, "%s", rlxvk_last_error());
    rlxvk_executable_destroy(e);
    for (uint32_t i = 0; i < ARRAY_COUNT(moved); i++) {
        planted_failures = i;
        e = compiled(c, g, &o);
        assert_int_equal(planted_failures, 0);
        assert_string_equal(rlxvk_last_error(), before);
        expect_on_host(e, moved[i]);
        float *got = run_seeded(e, g, 3, false, &again);
        assert_int_equal(again, count);
        assert_memory_equal(got, wanted, count * sizeof *got);
        free(got);
        rlxvk_executable_destroy(e);
    }
    planted_failures = UINT32_MAX;
    expect_error(rlxvk_compile(c, g, &o, &e), RLXVK_E_OUT_OF_DEVICE_MEMORY,
                 "420352 bytes of weights lie on the host already");
    assert_non_null(strstr(rlxvk_last_error(), " bytes are free of "));
    o.host_weights_bytes = TABLE; /* no more than that may move */
    planted_failures = 1;
    e = compiled(c, g, &o);
    expect_on_host(e, "table");
    rlxvk_executable_destroy(e);
    planted_failures = 2;
    expect_error(rlxvk_compile(c, g, &o, &e), RLXVK_E_OUT_OF_DEVICE_MEMORY,
                 "256000 bytes of weights lie on the host already");
    planted_failures = 0;
    free(wanted);
    close_context(c);
    rlxvk_graph_destroy(g);
}

/* Products of one row. Their weights are stored by columns, so joining them takes a copy. */
static rlxvk_graph *columns(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(1, 64));
    rlxvk_graph_output(g, rlxvk_matmul(g, x, param(g, "q", RLXVK_SHAPE(64, 96))));
    rlxvk_graph_output(g, rlxvk_matmul(g, x, param(g, "k", RLXVK_SHAPE(64, 96))));
    rlxvk_graph_output(g, rlxvk_matmul(g, x, param(g, "v", RLXVK_SHAPE(64, 96))));
    return g;
}

/* Prepared weights that do not fit, or whose memory cannot be had, are left out. */
static void test_failures_prepare_less(void **state)
{
    rlxvk_graph *g = columns();
    rlxvk_context *c = open_failing();
    rlxvk_compile_options o = RLXVK_SIZED(rlxvk_compile_options, .prepared_bytes = UINT64_MAX);
    rlxvk_executable *plain = compiled(c, g, NULL), *e = compiled(c, g, &o);
    uint64_t all = device_bytes(e), least = device_bytes(plain);
    size_t count, again;
    float *wanted = run_seeded(plain, g, 3, false, &count);
    (void)state;
    assert_true(all > least && report_of(e).prepared_bytes > 0);
    rlxvk_executable_destroy(plain);
    rlxvk_executable_destroy(e);
    for (int i = 0; i < 3; i++) {
        o.device_memory_bytes = i == 0 ? all : i == 1 ? all - 1 : 0;
        planted_failures = i == 2;
        e = compiled(c, g, &o);
        assert_int_equal(planted_failures, 0);
        assert_int_equal(report_of(e).prepared_bytes > 0, i == 0);
        float *got = run_seeded(e, g, 3, false, &again);
        for (size_t k = 0; k < count; k++)
            assert_true(fabsf(got[k] - wanted[k]) < 1e-4F);
        free(got);
        rlxvk_executable_destroy(e);
    }
    free(wanted);
    o.device_memory_bytes = least - 1;
    expect_error(rlxvk_compile(c, g, &o, &e), RLXVK_E_OUT_OF_DEVICE_MEMORY,
                 "; let weights lie on the host (host_weights_bytes); use smaller weights");
    close_context(c);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_host_limit),
        cmocka_unit_test(test_written_params_stay),
        cmocka_unit_test(test_joined_and_prepared),
        cmocka_unit_test(test_prepared_go_first),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_shared_and_cloned),
        cmocka_unit_test(test_param_as_output),
        cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_automatic),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_failed_allocation),
        cmocka_unit_test(test_failures_move_weights),
        cmocka_unit_test(test_failures_prepare_less),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
