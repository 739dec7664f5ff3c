/* Numbers that a call gives as float, for tensors of other dtypes: they are converted as by cast,
 * so that later ops see what a reader sees. */
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_ops_array.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

typedef rlxvk_tensor filler(rlxvk_graph *, rlxvk_tensor x, float value);

/* Both put the value at place 1 of a vector of one element. */
static rlxvk_tensor by_pad(rlxvk_graph *g, rlxvk_tensor x, float value)
{
    return rlxvk_pad(g, x, (int64_t[]){0}, (int64_t[]){1}, 1, &(rlxvk_pad_options){.value = value});
}
static rlxvk_tensor by_keep_first(rlxvk_graph *g, rlxvk_tensor x, float value)
{
    rlxvk_tensor both[] = {x, x};
    return rlxvk_keep_first(g, rlxvk_concat(g, both, 2, 0), rlxvk_scalar(g, 1), 0, value);
}

/* What later ops see: the value times 10, in F32. */
static float seen(filler *fill, rlxvk_dtype dtype, float value)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    float x = 2, y[2];
    const rlxvk_run_input in = {.name = "x", .data = &x, .length = 1};
    const rlxvk_run_output out = {.buffer = y, .length = 2};
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor t = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1));
    t = fill(g, rlxvk_cast(g, t, dtype), value);
    assert_int_equal(rlxvk_tensor_dtype(g, t), dtype);
    rlxvk_graph_output(g, rlxvk_mul(g, t, rlxvk_scalar(g, 10)));
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    expect_ok(rlxvk_run(e, &in, 1, &out, 1));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return y[1];
}

static void values_are_cast(void **state)
{
    static filler *const fillers[] = {by_pad, by_keep_first};
    static const struct {
        rlxvk_dtype dtype;
        float value, expected;
    } rows[] = {
        {RLXVK_F32, 1.7f, 17},      {RLXVK_I32, 1.7f, 10},   {RLXVK_I32, -1.7f, -10},
        {RLXVK_I16, 40000, 327670}, {RLXVK_U32, -3, 0},      {RLXVK_BOOL, 0.25f, 10},
        {RLXVK_F16, 2049, 20480},   {RLXVK_BF16, 257, 2560},
    };
    (void)state;
    for (size_t f = 0; f < sizeof fillers / sizeof *fillers; f++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            assert_float_equal(seen(fillers[f], rows[i].dtype, rows[i].value), rows[i].expected, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_are_cast)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
