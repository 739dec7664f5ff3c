/*
 * Every public status: its number, which never changes, and a call that returns it. The test fails
 * if no call raises a status, or if this table does not list it.
 */
#include "graph/graph.h"
#include "support/harness.h"
#include "support/rewritten.h"

#include <rlxvk_symbols.h>
#include "vk/vk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- Statuses of building ---- */

/* Returns the sticky status of a graph and destroys the graph. */
static rlxvk_status end(rlxvk_graph *g)
{
    rlxvk_status status = rlxvk_graph_status(g);
    assert_true(status == RLXVK_OK || *rlxvk_graph_error(g));
    rlxvk_graph_destroy(g);
    return status;
}

#define BUILDS(name, expression)                                                                   \
    static rlxvk_status name(void)                                                                 \
    {                                                                                              \
        rlxvk_graph *g = new_graph();                                                              \
        rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 3));                                         \
        (void)x;                                                                                   \
        expression;                                                                                \
        return end(g);                                                                             \
    }
BUILDS(dangling, rlxvk_neg(g, (rlxvk_tensor){.id = 7, .graph = x.graph}))
BUILDS(arity, rlxvk_neg(g, RLXVK_NONE))
BUILDS(shape, rlxvk_add(g, x, input(g, "y", RLXVK_SHAPE(4))))
BUILDS(dtype, rlxvk_neg(g, rlxvk_input(g, "y", RLXVK_U8, RLXVK_SHAPE(4))))
BUILDS(axis, rlxvk_softmax(g, x, 2))
BUILDS(range, rlxvk_narrow(g, x, 0, 1, 2))
BUILDS(attr, input(g, "rlxvk.x", RLXVK_SHAPE(1)))
BUILDS(const_size, rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(2), "1234", 4))
BUILDS(dup_name, input(g, "x", RLXVK_SHAPE(2, 3)))
BUILDS(index_range, rlxvk_scatter_add(g, x, input(g, "i", RLXVK_SHAPE(2)), (1 << 24) + 1))
BUILDS(too_large, input(g, "y", RLXVK_SHAPE(65536, 65536)))
BUILDS(unknown_op, rlxvk_custom(g, "no such op", &x, 1, NULL, 0))

static rlxvk_status param_conflict(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(2));
    rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(3));
    return end(g);
}

/* ---- Statuses of compiling ---- */

/* Compiles a graph and destroys the graph and the executable. */
static rlxvk_status compile_all(rlxvk_graph *g, const rlxvk_compile_options *options)
{
    rlxvk_executable *e = NULL;
    rlxvk_status status = rlxvk_compile(shared_context, g, options, &e);
    assert_true((status == RLXVK_OK) == (e != NULL));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return status;
}

static rlxvk_graph *negation(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_graph_output(g, rlxvk_neg(g, input(g, "x", RLXVK_SHAPE(4))));
    return g;
}

static rlxvk_status no_outputs(void)
{
    return compile_all(new_graph(), NULL);
}

/* Builder calls cannot make such a graph, and rewrites must not make it either. */
static rlxvk_status order(void)
{
    rlxvk_graph *g = negation();
    ((uint32_t *)g->nodes.items[1].inputs)[0] = 1;
    return compile_all(g, NULL);
}

static rlxvk_status unsupported(void)
{
    return compile_all(negation(),
                       &(rlxvk_compile_options){.forbid_host = RLXVK_ON, .force_host = RLXVK_ON});
}

static rlxvk_status out_of_host_memory(void)
{
    rlxvk_graph *g = NULL;
    memory_fail_at(1);
    rlxvk_status status = rlxvk_graph_create(&g);
    memory_fail_at(0);
    assert_null(g);
    return status;
}

static rlxvk_status out_of_device_memory(void)
{
    rlxvk_graph *g = negation();
    vk_hooks.fail_at = 1;
    rlxvk_status status = compile_all(g, NULL);
    vk_hooks.fail_at = 0;
    return status;
}

static rlxvk_status no_device(void)
{
    rlxvk_device_info info;
    return rlxvk_device_find("no device is named so", &info);
}

static rlxvk_status file(void)
{
    rlxvk_context *context = NULL;
    setenv("RLXVK_TRACE", "/no such folder/trace.json", 1);
    rlxvk_status status = rlxvk_context_create(NULL, &context);
    unsetenv("RLXVK_TRACE");
    assert_null(context);
    return status;
}

/* ---- Statuses of calls on an executable ---- */

static float four[4] = {1, 2, 3, 4};
static const rlxvk_run_input x_in = {.name = "x", .data = four, .length = 4};

/* y = x + w, with w set. */
static rlxvk_executable *sum(rlxvk_context *context, const rlxvk_compile_options *options)
{
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(4));
    rlxvk_graph_output(g, rlxvk_add(g, input(g, "x", RLXVK_SHAPE(4)), w));
    expect_ok(rlxvk_compile(context, g, options, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static rlxvk_status null(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_status status = rlxvk_compile(NULL, g, NULL, NULL);
    rlxvk_graph_destroy(g);
    return status;
}

#define CALLS(name, call)                                                                          \
    static rlxvk_status name(void)                                                                 \
    {                                                                                              \
        rlxvk_executable *e = sum(shared_context, NULL);                                           \
        rlxvk_status status = call;                                                                \
        rlxvk_executable_destroy(e);                                                               \
        return status;                                                                             \
    }
CALLS(unknown_name, rlxvk_set_param(e, "nobody", four, 4))
CALLS(length, rlxvk_set_param(e, "w", four, 3))
CALLS(output_index, rlxvk_read_output_row(e, 9, 0, 4, four))
CALLS(unset_param, rlxvk_run(e, &x_in, 1, NULL, 0))
CALLS(unbound_handle, rlxvk_read_handle(e, "x", four, 4))

static rlxvk_status missing_input(void)
{
    rlxvk_executable *e = sum(shared_context, NULL);
    expect_ok(rlxvk_set_param(e, "w", four, 4));
    rlxvk_status status = rlxvk_run(e, NULL, 0, NULL, 0);
    rlxvk_executable_destroy(e);
    return status;
}

static rlxvk_status busy(void)
{
    rlxvk_ticket ticket, second;
    rlxvk_executable *e = sum(shared_context, &(rlxvk_compile_options){.max_in_flight = 1});
    expect_ok(rlxvk_set_param(e, "w", four, 4));
    expect_ok(rlxvk_submit(e, &x_in, 1, NULL, 0, &ticket));
    rlxvk_status status = rlxvk_submit(e, &x_in, 1, NULL, 0, &second);
    expect_ok(rlxvk_wait(e, ticket));
    rlxvk_executable_destroy(e);
    return status;
}

static rlxvk_status active_extent(void)
{
    rlxvk_executable *e = sum(shared_context, NULL);
    rlxvk_status status = rlxvk_set_active_extent(e, 2, 1);
    rlxvk_executable_destroy(e);
    return status;
}

/* ---- Statuses of runs ---- */

static rlxvk_status run_once(rlxvk_graph *g, rlxvk_tensor output,
                             const rlxvk_compile_options *options)
{
    rlxvk_executable *e = NULL;
    rlxvk_graph_output(g, output);
    expect_ok(rlxvk_compile(shared_context, g, options, &e));
    rlxvk_status status = rlxvk_run(e, &x_in, 1, NULL, 0);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return status;
}

static bool same_shape(const rlxvk_shape *inputs, size_t count, const void *attributes, size_t size,
                       rlxvk_shape *out_shape, rlxvk_dtype *out_dtype)
{
    (void)count, (void)attributes, (void)size, (void)out_dtype;
    *out_shape = inputs[0];
    return true;
}

static int give_up(const rlxvk_custom_view *inputs, size_t count, const void *attributes,
                   size_t size, const rlxvk_shape *result, float *out)
{
    (void)inputs, (void)count, (void)attributes, (void)size, (void)result, (void)out;
    return 3;
}

static rlxvk_status custom(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(4));
    expect_ok(rlxvk_custom_register(&(rlxvk_custom_op){
        .name = "test.gives_up", .input_count = 1, .infer = same_shape, .host = give_up}));
    return run_once(g, rlxvk_custom(g, "test.gives_up", &x, 1, NULL, 0), NULL);
}

static rlxvk_status singular(void)
{
    static const float zeros[4];
    rlxvk_graph *g = new_graph();
    rlxvk_tensor a = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(2, 2), zeros, sizeof zeros);
    rlxvk_tensor b = rlxvk_reshape(g, input(g, "x", RLXVK_SHAPE(4)), RLXVK_SHAPE(2, 2));
    return run_once(g, rlxvk_dense_solve(g, a, b), NULL);
}

/* The last of the indices 1 2 3 4 is out of range. */
static rlxvk_status index_oob(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor table = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(4), four, sizeof four);
    return run_once(g, rlxvk_gather(g, table, input(g, "x", RLXVK_SHAPE(4)), 0),
                    &(rlxvk_compile_options){.check_index = RLXVK_ON});
}

/* The run's first Vulkan call fails with this result. The context is separate, because it is
 * unusable after a loss. */
static rlxvk_status run_into(VkResult result)
{
    rlxvk_context *context = open_context(NULL);
    rlxvk_executable *e = sum(context, NULL);
    expect_ok(rlxvk_set_param(e, "w", four, 4));
    vk_hooks.fail_result = result;
    vk_hooks.fail_at = 1;
    rlxvk_status status = rlxvk_run(e, &x_in, 1, NULL, 0);
    vk_hooks.fail_at = 0;
    vk_hooks.fail_result = VK_SUCCESS;
    rlxvk_executable_destroy(e);
    rlxvk_context_destroy(context);
    return status;
}

static rlxvk_status device_lost(void)
{
    return run_into(VK_ERROR_DEVICE_LOST);
}

static rlxvk_status timeout(void)
{
    return run_into(VK_TIMEOUT);
}

static rlxvk_status vulkan(void)
{
    return run_into(VK_ERROR_UNKNOWN);
}

static rlxvk_status unbound_symbol(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(4));
    return run_once(g,
                    rlxvk_expand(g, rlxvk_reshape(g, x, RLXVK_SHAPE(4, 1)),
                                 RLXVK_SHAPE(4, rlxvk_symbol(RLXVK_SEQ))),
                    NULL);
}

static rlxvk_status bind_ambiguous(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_shape two = RLXVK_SHAPE(rlxvk_symbol(RLXVK_BATCH), rlxvk_symbol(RLXVK_SEQ));
    return run_once(g, input(g, "x", two), NULL);
}

/* A handle has 4 elements, but the run's input would give it 2. */
static rlxvk_status handle_shape(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_shape shape = RLXVK_SHAPE(rlxvk_symbol(RLXVK_SEQ));
    rlxvk_graph_output(g, rlxvk_add(g, input(g, "x", shape), input(g, "h", shape)));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    expect_ok(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_SEQ, 4}, 1));
    expect_ok(rlxvk_bind_handle(e, "h", four, 4));
    rlxvk_status status = rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_SEQ, 2}, 1);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return status;
}

static rlxvk_status bind_conflict(void)
{
    const rlxvk_binding two[] = {{RLXVK_SEQ, 3}, {RLXVK_SEQ, 4}};
    rlxvk_graph *g = new_graph(), *bound = NULL;
    rlxvk_status status = rlxvk_graph_bind(g, two, 2, &bound);
    rlxvk_graph_destroy(g);
    return status;
}

/* ---- The table ---- */

static const struct {
    rlxvk_status status;
    int number;
    const char *name;
    rlxvk_status (*provoke)(void);
} statuses[] = {
    {RLXVK_E_DANGLING, 1, "E_DANGLING", dangling},
    {RLXVK_E_ORDER, 2, "E_ORDER", order},
    {RLXVK_E_ARITY, 3, "E_ARITY", arity},
    {RLXVK_E_SHAPE, 4, "E_SHAPE", shape},
    {RLXVK_E_DTYPE, 5, "E_DTYPE", dtype},
    {RLXVK_E_AXIS, 6, "E_AXIS", axis},
    {RLXVK_E_RANGE, 7, "E_RANGE", range},
    {RLXVK_E_ATTR, 8, "E_ATTR", attr},
    {RLXVK_E_CONST_SIZE, 9, "E_CONST_SIZE", const_size},
    {RLXVK_E_DUP_NAME, 10, "E_DUP_NAME", dup_name},
    {RLXVK_E_PARAM_CONFLICT, 11, "E_PARAM_CONFLICT", param_conflict},
    {RLXVK_E_NO_OUTPUTS, 12, "E_NO_OUTPUTS", no_outputs},
    {RLXVK_E_INDEX_RANGE, 13, "E_INDEX_RANGE", index_range},
    {RLXVK_E_TOO_LARGE, 14, "E_TOO_LARGE", too_large},
    {RLXVK_E_UNSUPPORTED, 15, "E_UNSUPPORTED", unsupported},
    {RLXVK_E_UNKNOWN_OP, 16, "E_UNKNOWN_OP", unknown_op},
    {RLXVK_E_NULL, 20, "E_NULL", null},
    {RLXVK_E_UNKNOWN_NAME, 21, "E_UNKNOWN_NAME", unknown_name},
    {RLXVK_E_LENGTH, 22, "E_LENGTH", length},
    {RLXVK_E_INDEX, 23, "E_INDEX", output_index},
    {RLXVK_E_MISSING_INPUT, 24, "E_MISSING_INPUT", missing_input},
    {RLXVK_E_UNSET_PARAM, 25, "E_UNSET_PARAM", unset_param},
    {RLXVK_E_UNBOUND_HANDLE, 26, "E_UNBOUND_HANDLE", unbound_handle},
    {RLXVK_E_BUSY, 27, "E_BUSY", busy},
    {RLXVK_E_EXTENT, 28, "E_EXTENT", active_extent},
    {RLXVK_E_CUSTOM, 30, "E_CUSTOM", custom},
    {RLXVK_E_SINGULAR, 31, "E_SINGULAR", singular},
    {RLXVK_E_INDEX_OOB, 32, "E_INDEX_OOB", index_oob},
    {RLXVK_E_NO_DEVICE, 40, "E_NO_DEVICE", no_device},
    {RLXVK_E_OUT_OF_HOST_MEMORY, 41, "E_OUT_OF_HOST_MEMORY", out_of_host_memory},
    {RLXVK_E_OUT_OF_DEVICE_MEMORY, 42, "E_OUT_OF_DEVICE_MEMORY", out_of_device_memory},
    {RLXVK_E_DEVICE_LOST, 43, "E_DEVICE_LOST", device_lost},
    {RLXVK_E_TIMEOUT, 44, "E_TIMEOUT", timeout},
    {RLXVK_E_VULKAN, 45, "E_VULKAN", vulkan},
    {RLXVK_E_FILE, 46, "E_FILE", file},
    {RLXVK_E_UNBOUND_SYMBOL, 50, "E_UNBOUND_SYMBOL", unbound_symbol},
    {RLXVK_E_BIND_CONFLICT, 51, "E_BIND_CONFLICT", bind_conflict},
    {RLXVK_E_BIND_AMBIGUOUS, 52, "E_BIND_AMBIGUOUS", bind_ambiguous},
    {RLXVK_E_HANDLE_SHAPE, 53, "E_HANDLE_SHAPE", handle_shape},
};

#define ONE(name, number, text) +1
_Static_assert(ARRAY_COUNT(statuses) == 0 RLXVK_STATUS_TABLE(ONE),
               "a status of rlxvk.h is missing here");

static void numbers_and_names_stay(void **state)
{
    (void)state;
    assert_int_equal(RLXVK_OK, 0);
    for (size_t i = 0; i < ARRAY_COUNT(statuses); i++) {
        assert_int_equal(statuses[i].status, statuses[i].number);
        assert_string_equal(rlxvk_status_name(statuses[i].status), statuses[i].name);
        assert_true(i == 0 || statuses[i - 1].number < statuses[i].number);
    }
}

static void every_status_is_raised(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(statuses); i++) {
        rlxvk_status got = statuses[i].provoke();
        if (got != statuses[i].status || !*rlxvk_last_error())
            fail_msg("%s is not raised: %s, '%s'", statuses[i].name, rlxvk_status_name(got),
                     rlxvk_last_error());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_names_stay),
        cmocka_unit_test(every_status_is_raised),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
