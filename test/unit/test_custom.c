/* Custom ops through the public calls: on the host, as a kernel, both; stated shapes; failures and
 * refusals. */
#include "op/kernel.h"
#include "args.h"
#include "support/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static bool same_shape(const rlxvk_shape *inputs, size_t count, const void *attributes, size_t size,
                       rlxvk_shape *out_shape, rlxvk_dtype *out_dtype)
{
    (void)attributes, (void)size, (void)out_dtype;
    *out_shape = inputs[0];
    return count > 0 && inputs[0].rank > 0;
}

static uint64_t elements(const rlxvk_shape *s)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        n *= (uint64_t)s->dims[i];
    return n;
}

/* x * factor; a factor of 0 fails. */
static int scale(const rlxvk_custom_view *inputs, size_t count, const void *attributes, size_t size,
                 const rlxvk_shape *shape, float *out)
{
    float factor;
    (void)count;
    assert_int_equal(size, sizeof factor);
    memcpy(&factor, attributes, sizeof factor);
    for (uint64_t i = 0; i < elements(shape); i++)
        out[i] = inputs[0].values[i] * factor;
    return factor == 0 ? 17 : 0;
}

/* The embedded unary kernel, whose default function is gelu. */
static bool unary_arguments(const rlxvk_custom_call *call)
{
    struct unary_args args = {(uint32_t)elements(&call->shapes[1]), call->offsets[0],
                              call->offsets[1]};
    memcpy(call->arguments, &args, sizeof args);
    call->groups[0] = (args.numel + call->workgroup_size - 1) / call->workgroup_size;
    call->groups[1] = call->groups[2] = 1;
    return args.numel != 13;
}

static void register_all(void)
{
    const kernel_info *unary = kernel_find(KERNEL_UNARY);
    rlxvk_custom_kernel kernel = {unary->words, unary->word_count, unary->argument_bytes,
                                  unary_arguments};
    expect_ok(rlxvk_register_custom(&(rlxvk_custom_op){"scale", 1, same_shape, scale, NULL}));
    expect_ok(rlxvk_register_custom(&(rlxvk_custom_op){"my_gelu", 1, same_shape, NULL, &kernel}));
}

/* relu(custom(neg x)) so that the op sits between kernels. */
static rlxvk_status run(const char *op, const void *attributes, size_t size, const float *x,
                        int64_t n, float *y, rlxvk_plan_report *plan)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_run_input in = {"x", x, (size_t)n, RLXVK_AS_F32};
    rlxvk_run_output out = {0, y, (size_t)n, RLXVK_AS_F32};
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor t = rlxvk_neg(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(n)));
    t = rlxvk_custom(g, op, &t, 1, attributes, size);
    rlxvk_graph_output(g, rlxvk_relu(g, t));
    rlxvk_status status = rlxvk_compile(shared_context, g, NULL, &e);
    if (status == RLXVK_OK)
        status = rlxvk_run(e, &in, 1, &out, 1);
    if (status == RLXVK_OK)
        rlxvk_plan_info(e, plan);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return status;
}

static void test_host(void **state)
{
    float factor = 3, y[4];
    rlxvk_plan_report plan;
    (void)state;
    register_all();
    expect_ok(run("scale", &factor, 4, (float[]){-1, 2, -3, 0.5f}, 4, y, &plan));
    assert_true(y[0] == 3 && y[1] == 0 && y[2] == 9 && y[3] == 0);
    assert_int_equal(plan.host_steps, 1);
    factor = 0;
    expect_error(run("scale", &factor, 4, (float[]){1, 2, 3, 4}, 4, y, &plan), RLXVK_E_CUSTOM,
                 "'scale' failed with 17");
}

static void test_kernel(void **state)
{
    float y[300], x[300];
    rlxvk_plan_report plan;
    (void)state;
    register_all();
    for (int i = 0; i < 300; i++)
        x[i] = (float)i / 50 - 3;
    expect_ok(run("my_gelu", NULL, 0, x, 300, y, &plan));
    assert_int_equal(plan.host_steps, 0);
    assert_int_equal(plan.dispatches, 3);
    for (int i = 0; i < 300; i++) {
        double v = -x[i], gelu = 0.5 * v * (1 + erf(v / sqrt(2)));
        assert_true(fabs(y[i] - fmax(gelu, 0)) < 2e-6);
    }
    expect_error(run("my_gelu", NULL, 0, x, 13, y, &plan), RLXVK_E_CUSTOM,
                 "refused to be lowered (operands, result: 13, 13)");
}

static void test_stated_shape(void **state)
{
    rlxvk_graph *g = NULL;
    (void)state;
    register_all();
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(6));
    rlxvk_tensor y = rlxvk_custom_packed(g, "scale", &x, 1, NULL, 0, RLXVK_SHAPE(2, 2), RLXVK_I32);
    assert_int_equal(rlxvk_tensor_shape(g, y).rank, 2);
    assert_int_equal(rlxvk_tensor_dtype(g, y), RLXVK_I32);
    rlxvk_graph_destroy(g);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *op, *part;
        size_t operands, size;
        rlxvk_status wanted;
    } rows[] = {{"nothing", "'nothing'", 1, 0, RLXVK_E_UNKNOWN_OP},
                {"scale", "takes 1 operands, given 2", 2, 4, RLXVK_E_ARITY},
                {"scale", "300 attribute bytes", 1, 300, RLXVK_E_ATTR},
                {"scale", "refused its operands (scalar)", 0, 4, RLXVK_E_SHAPE}};
    static const uint8_t bytes[300];
    (void)state;
    register_all();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rlxvk_graph *g = NULL;
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_tensor scalar = rlxvk_input(g, "s", RLXVK_F32, RLXVK_SCALAR);
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(6)), operands[] = {x, x};
        bool bad = rows[i].operands == 0;
        (void)rlxvk_custom(g, rows[i].op, bad ? &scalar : operands, bad ? 1 : rows[i].operands,
                           bytes, rows[i].size);
        assert_int_equal(rlxvk_graph_status(g), rows[i].wanted);
        assert_non_null(strstr(rlxvk_graph_error(g), rows[i].part));
        rlxvk_graph_destroy(g);
    }
    expect_error(rlxvk_register_custom(&(rlxvk_custom_op){.name = ""}), RLXVK_E_ATTR, "names");
    expect_error(rlxvk_register_custom(&(rlxvk_custom_op){.name = "empty"}), RLXVK_E_ATTR,
                 "host function or a kernel");
    expect_error(rlxvk_register_custom(&(rlxvk_custom_op){"wide", 8, same_shape, scale, NULL}),
                 RLXVK_E_ATTR, "8 operands; at most 7");
    rlxvk_custom_kernel no_module = {(uint32_t[5]){1, 2, 3, 4, 5}, 5, 0, unary_arguments};
    expect_error(rlxvk_register_custom(&(rlxvk_custom_op){.name = "k", .kernel = &no_module}),
                 RLXVK_E_ATTR, "no SPIR-V");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_host), cmocka_unit_test(test_kernel),
                                       cmocka_unit_test(test_stated_shape),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
