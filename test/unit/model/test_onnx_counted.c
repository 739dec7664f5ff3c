/* ONNX models with sizes that the data of a run decides: slots, counts, and ops that take them. */
#include "support/harness.h"
#include "support/onnx_writer.h"

#include <rlxvk_model.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { FLOAT = 1, INT64 = 7 };

static rlxvk_model *open_model(onnx_message *graph, onnx_message *bytes)
{
    rlxvk_model *m = NULL;
    *bytes = onnx_write_model(graph, 13);
    expect_ok(rlxvk_model_open_bytes(bytes->bytes, bytes->size, NULL, &m));
    return m;
}

static void close_model(rlxvk_model *m, onnx_message *bytes)
{
    rlxvk_model_destroy(m);
    message_free(bytes);
}

/* at = NonZero(x), rows = its transpose, y = 2 x[rows], which is [6] at most. */
static onnx_message chosen_elements(void)
{
    static const float two = 2;
    onnx_message g = {0};
    onnx_write_op(&g, "NonZero", ONNX_NAMES("x"), ONNX_NAMES("at"));
    onnx_write_op(&g, "Transpose", ONNX_NAMES("at"), ONNX_NAMES("rows"));
    onnx_write_op(&g, "GatherND", ONNX_NAMES("x", "rows"), ONNX_NAMES("chosen"));
    onnx_write_op(&g, "Mul", ONNX_NAMES("chosen", "two"), ONNX_NAMES("y"));
    onnx_write_floats(&g, "two", NULL, 0, &two, 1);
    onnx_write_value(&g, 11, "x", FLOAT, "2,3");
    return g;
}

static void test_slots_and_counts(void **state)
{
    static const float x[][6] = {{0, 5, 0, 7, -1, 0}, {0, 0, 0, 0, 0, 0}, {1, 2, 3, 4, 5, 6}};
    static const int64_t counts[] = {3, 0, 6};
    onnx_message g = chosen_elements(), bytes;
    rlxvk_model_info infos[2];
    rlxvk_executable *e = NULL;
    rlxvk_model *m;
    size_t count;
    (void)state;
    onnx_write_value(&g, 12, "y", FLOAT, "K");
    onnx_write_value(&g, 12, "at", INT64, "2,K");
    m = open_model(&g, &bytes);
    expect_ok(rlxvk_model_executable(m, shared_context, NULL, NULL, &e));
    expect_ok(rlxvk_model_outputs(m, infos, 2, &count));
    assert_int_equal(infos[0].count_output, 2);
    assert_int_equal(infos[0].count_axis, 0);
    assert_int_equal(infos[1].count_output, 2);
    assert_int_equal(infos[1].count_axis, 1);
    assert_int_equal(rlxvk_executable_output_count(e), 3);
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        float y[6];
        int64_t at[12], n, k = 0;
        rlxvk_run_input in = {.name = "x", .data = x[i], .length = 6};
        rlxvk_run_output out[] = {{.index = 0, .buffer = y, .length = 6},
                                  {.index = 1, .buffer = at, .length = 12, .dtype = RLXVK_I64},
                                  {.index = 2, .buffer = &n, .length = 1, .dtype = RLXVK_I64}};
        expect_ok(rlxvk_run(e, &in, 1, out, 3));
        assert_int_equal(n, counts[i]);
        for (int64_t p = 0; p < 6; p++)
            if (x[i][p] != 0) {
                assert_true(y[k] == 2 * x[i][p]);
                assert_int_equal(at[k], p / 3);
                assert_int_equal(at[6 + k], p % 3);
                k++;
            }
        assert_int_equal(k, n);
    }
    rlxvk_executable_destroy(e);
    close_model(m, &bytes);
}

/* Ops that mix the elements are refused by name, and ask for no input, because x has two axes. */
static void test_mixing_is_refused(void **state)
{
    static const char *const ops[] = {"ReduceSum", "Shape", "Softmax"};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        onnx_message g = chosen_elements(), bytes;
        rlxvk_graph *graph = NULL;
        rlxvk_model *m;
        onnx_write_op(&g, ops[i], ONNX_NAMES("y"), ONNX_NAMES("z"));
        onnx_write_value(&g, 12, "z", FLOAT, "K");
        m = open_model(&g, &bytes);
        expect_error(rlxvk_model_graph(m, NULL, &graph), RLXVK_E_UNSUPPORTED, ops[i]);
        close_model(m, &bytes);
    }
}

/* A row with a count that decides a size is asked for. */
static void test_values_are_asked_for(void **state)
{
    static const int64_t condition[] = {1, 0, 1};
    const rlxvk_model_value value = {.name = "condition",
                                     .data = condition,
                                     .length = 3,
                                     .dtype = RLXVK_I64};
    const rlxvk_model_graph_options options = {.values = &value, .value_count = 1};
    onnx_message g = {0}, bytes;
    rlxvk_model_info infos[2];
    rlxvk_graph *graph = NULL;
    rlxvk_model *m;
    size_t count;
    (void)state;
    onnx_write_op(&g, "Compress", ONNX_NAMES("w", "condition"), ONNX_NAMES("y"));
    onnx_write_op(&g, "Shape", ONNX_NAMES("y"), ONNX_NAMES("z"));
    onnx_write_row(&g, "w", (const int64_t[]){4, 5, 6}, 3);
    onnx_write_value(&g, 11, "condition", 9, "3");
    onnx_write_value(&g, 12, "z", INT64, "1");
    m = open_model(&g, &bytes);
    expect_error(rlxvk_model_graph(m, NULL, &graph), RLXVK_E_UNSUPPORTED, "--bind 'condition'");
    expect_ok(rlxvk_model_inputs(m, infos, 2, &count));
    assert_true(infos[0].needs_value);
    expect_ok(rlxvk_model_graph(m, &options, &graph));
    rlxvk_graph_destroy(graph);
    close_model(m, &bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_and_counts),
        cmocka_unit_test(test_mixing_is_refused),
        cmocka_unit_test(test_values_are_asked_for),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
