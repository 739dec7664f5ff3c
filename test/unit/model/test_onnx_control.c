/* ONNX models with loops whose number of rounds data decides, and with sequences and optionals. */
#include "support/harness.h"
#include "support/onnx_writer.h"

#include <rlxvk_inspect.h>
#include <rlxvk_model.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

enum { FLOAT = 1, INT64 = 7, BOOL = 9 };

static void expect_refused(onnx_message *graph, const char *what)
{
    onnx_message bytes = onnx_write_model(graph, 17);
    rlxvk_model *m = NULL;
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_model_open_bytes(bytes.bytes, bytes.size, NULL, &m));
    expect_error(rlxvk_model_graph(m, NULL, &g), RLXVK_E_UNSUPPORTED, what);
    rlxvk_model_destroy(m);
    message_free(&bytes);
}

/* ---- Branches ---- */

/* One branch fits operands of 3 columns, the other those of 2. Which is taken depends on `rate`. */
static onnx_message branches(const char *shape)
{
    static const float three[6] = {1, 2, 3, 4, 5, 6}, two[4] = {1, 2, 3, 4};
    onnx_message g = {0}, wide = {0}, narrow = {0}, node;
    onnx_write_op(&wide, "MatMul", ONNX_NAMES("x", "three"), ONNX_NAMES("a"));
    onnx_write_value(&wide, 12, "a", FLOAT, "");
    onnx_write_op(&narrow, "MatMul", ONNX_NAMES("x", "two"), ONNX_NAMES("b"));
    onnx_write_value(&narrow, 12, "b", FLOAT, "");
    onnx_write_op(&g, "Equal", ONNX_NAMES("rate", "eight"), ONNX_NAMES("yes"));
    node = onnx_write_node("If", ONNX_NAMES("yes"), ONNX_NAMES("y"));
    onnx_write_graph(&node, "then_branch", &wide);
    onnx_write_graph(&node, "else_branch", &narrow);
    message_inner(&g, 1, &node);
    onnx_write_row(&g, "eight", (const int64_t[]){8}, 1);
    onnx_write_floats(&g, "three", (const int64_t[]){3, 2}, 2, three, 6);
    onnx_write_floats(&g, "two", (const int64_t[]){2, 2}, 2, two, 4);
    onnx_write_value(&g, 11, "x", FLOAT, "1,2");
    onnx_write_value(&g, 11, "rate", INT64, shape);
    onnx_write_value(&g, 12, "y", FLOAT, "1,2");
    return g;
}

/* If both branches cannot be built, the input that decides is asked for. Its value settles it. */
static void test_one_branch_fits(void **state)
{
    onnx_message g = branches("1"), bytes = onnx_write_model(&g, 17);
    int64_t rate = 16;
    const rlxvk_model_value value = {.name = "rate",
                                     .data = &rate,
                                     .length = 1,
                                     .dtype = RLXVK_I64};
    const rlxvk_model_graph_options options = {.values = &value, .value_count = 1};
    rlxvk_model_problem problems[4];
    rlxvk_model_info inputs[2];
    rlxvk_model *m = NULL;
    rlxvk_graph *made = NULL;
    size_t count;
    (void)state;
    expect_ok(rlxvk_model_open_bytes(bytes.bytes, bytes.size, NULL, &m));
    expect_error(rlxvk_model_graph(m, NULL, &made), RLXVK_E_SHAPE, "matmul");
    expect_ok(rlxvk_model_problems(m, problems, 4, &count));
    assert_int_equal(count, 2);
    assert_string_equal(problems[1].op, "If");
    assert_non_null(strstr(problems[1].text, "--bind 'rate'=VALUE"));
    expect_ok(rlxvk_model_inputs(m, inputs, 2, &count));
    assert_true(inputs[1].needs_value && !inputs[0].needs_value);
    expect_ok(rlxvk_model_graph(m, &options, &made));
    rlxvk_graph_destroy(made);
    rate = 8; /* the other branch does not fit */
    expect_error(rlxvk_model_graph(m, &options, &made), RLXVK_E_SHAPE, "matmul");
    rlxvk_model_destroy(m);
    message_free(&bytes);
}

/* A matrix is data, so its value is not asked for. */
static void test_no_branch_by_data(void **state)
{
    onnx_message g = branches("1,1"), bytes = onnx_write_model(&g, 17);
    rlxvk_model_problem problems[4];
    rlxvk_model *m = NULL;
    rlxvk_graph *made = NULL;
    size_t count;
    (void)state;
    expect_ok(rlxvk_model_open_bytes(bytes.bytes, bytes.size, NULL, &m));
    expect_error(rlxvk_model_graph(m, NULL, &made), RLXVK_E_SHAPE, "matmul");
    expect_ok(rlxvk_model_problems(m, problems, 4, &count));
    assert_int_equal(count, 1);
    rlxvk_model_destroy(m);
    message_free(&bytes);
}

/* ---- Loops ---- */

/* s = s factor, while s < limit: two results, the last s [2] and all of them. `factor` and `limit`
 * belong to the outer graph. The limit is that of the largest element. */
static onnx_message doubling_body(void)
{
    onnx_message body = {0}, node;
    onnx_write_op(&body, "Mul", ONNX_NAMES("s", "factor"), ONNX_NAMES("t"));
    node = onnx_write_node("ReduceMax", ONNX_NAMES("t"), ONNX_NAMES("largest"));
    onnx_write_integer(&node, "keepdims", 0);
    message_inner(&body, 1, &node);
    onnx_write_op(&body, "Less", ONNX_NAMES("largest", "limit"), ONNX_NAMES("on"));
    onnx_write_op(&body, "Neg", ONNX_NAMES("t"), ONNX_NAMES("u"));
    onnx_write_value(&body, 11, "i", INT64, "");
    onnx_write_value(&body, 11, "go", BOOL, "");
    onnx_write_value(&body, 11, "s", FLOAT, "2");
    onnx_write_value(&body, 12, "on", BOOL, "");
    onnx_write_value(&body, 12, "t", FLOAT, "2");
    onnx_write_value(&body, 12, "u", FLOAT, "2");
    return body;
}

static onnx_message doubling(const char *rounds, bool collects)
{
    static const float factor[2] = {2, 3};
    onnx_message g = {0}, body = doubling_body(), node;
    if (collects)
        node = onnx_write_node("Loop", ONNX_NAMES(rounds, "", "x"), ONNX_NAMES("y", "z"));
    else
        node = onnx_write_node("Loop", ONNX_NAMES(rounds, "", "x"), ONNX_NAMES("y", ""));
    onnx_write_graph(&node, "body", &body);
    message_inner(&g, 1, &node);
    onnx_write_row(&g, "five", (const int64_t[]){5}, 1);
    onnx_write_floats(&g, "factor", (const int64_t[]){2}, 1, factor, 2);
    onnx_write_value(&g, 11, "x", FLOAT, "2");
    onnx_write_value(&g, 11, "limit", FLOAT, "");
    onnx_write_value(&g, 12, "y", FLOAT, "2");
    if (collects)
        onnx_write_value(&g, 12, "z", FLOAT, "K,2");
    return g;
}

/* The rounds that the data of each run decides, up to five. The first round is unrolled, because
 * only its results decide whether there is a second one. */
static void test_rounds_by_data(void **state)
{
    static const float limits[] = {0, 10, 100, 1e9f};
    static const int64_t rounds[] = {1, 3, 5, 5};
    onnx_message g = doubling("five", true);
    rlxvk_executable *e = onnx_make_executable(&g, 17);
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(limits); k++) {
        const float x[2] = {1, 0.5f};
        float y[2], z[10], s[2] = {1, 0.5f};
        int64_t n;
        rlxvk_run_input in[] = {{.name = "x", .data = x, .length = 2},
                                {.name = "limit", .data = &limits[k], .length = 1}};
        rlxvk_run_output out[] = {{.index = 0, .buffer = y, .length = 2},
                                  {.index = 1, .buffer = z, .length = 10},
                                  {.index = 2, .buffer = &n, .length = 1, .dtype = RLXVK_I64}};
        expect_ok(rlxvk_run(e, in, 2, out, 3));
        assert_int_equal(n, rounds[k]);
        for (int64_t i = 0; i < n; i++) {
            s[0] *= 2;
            s[1] *= 3;
            assert_true(z[2 * i] == -s[0] && z[2 * i + 1] == -s[1]);
        }
        assert_true(y[0] == s[0] && y[1] == s[1]);
    }
    rlxvk_executable_destroy(e);
}

/* A loop that leaves out a value that it carries is refused, however many rounds it has. */
static void test_a_carried_value_is_missing(void **state)
{
    static const int64_t counts[] = {3, 5000};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        onnx_message g = {0}, body = doubling_body();
        onnx_message node = onnx_write_node("Loop", ONNX_NAMES("n", "", ""), ONNX_NAMES("y", "z"));
        onnx_write_graph(&node, "body", &body);
        message_inner(&g, 1, &node);
        onnx_write_row(&g, "n", &counts[i], 1);
        onnx_write_value(&g, 11, "factor", FLOAT, "2");
        onnx_write_value(&g, 11, "limit", FLOAT, "");
        onnx_write_value(&g, 12, "y", FLOAT, "2");
        expect_refused(&g, "operand 2 is missing");
    }
}

/* The limit of rounds is data, too, so the loop has no first rounds. */
static void test_most_rounds_are_data(void **state)
{
    onnx_message g = doubling("most", false);
    rlxvk_executable *e;
    (void)state;
    onnx_write_value(&g, 11, "most", INT64, "");
    e = onnx_make_executable(&g, 17);
    for (int64_t most = 0; most < 4; most++) {
        const float x[2] = {1, 1}, limit = 1e9f;
        float y[2];
        rlxvk_run_input in[] = {{.name = "x", .data = x, .length = 2},
                                {.name = "limit", .data = &limit, .length = 1},
                                {.name = "most", .data = &most, .length = 1, .dtype = RLXVK_I64}};
        rlxvk_run_output out = {.buffer = y, .length = 2};
        expect_ok(rlxvk_run(e, in, 3, &out, 1));
        assert_true(y[0] == (float)(1 << most));
    }
    rlxvk_executable_destroy(e);
}

/* Results of an unknown number of rounds have no slot. */
static void test_no_largest_number(void **state)
{
    onnx_message g = doubling("most", true);
    (void)state;
    onnx_write_value(&g, 11, "most", INT64, "");
    expect_refused(&g, "no largest one");
}

/* ---- Long loops of a known number of rounds ---- */

/* s = s 0.999 + x, and what each round gives: s - i. `x` belongs to the outer graph. If `by_round`,
 * the body takes the number of the round as a size, which only an unrolled loop knows. */
static onnx_message long_loop(int64_t rounds, bool by_round)
{
    static const float decay = 0.999f;
    onnx_message g = {0}, body = {0}, node;
    onnx_write_op(&body, "Mul", ONNX_NAMES("s", "decay"), ONNX_NAMES("m"));
    onnx_write_op(&body, "Add", ONNX_NAMES("m", "x"), ONNX_NAMES("t"));
    node = onnx_write_node("Cast", ONNX_NAMES("i"), ONNX_NAMES("n"));
    onnx_write_integer(&node, "to", FLOAT);
    message_inner(&body, 1, &node);
    onnx_write_op(&body, "Sub", ONNX_NAMES("t", "n"), ONNX_NAMES(by_round ? "v" : "u"));
    if (by_round) { /* the largest of 1 to 3 equal numbers */
        node = onnx_write_node("ReduceMax", ONNX_NAMES("v"), ONNX_NAMES("largest"));
        onnx_write_integer(&node, "keepdims", 0);
        message_inner(&body, 1, &node);
        onnx_write_op(&body, "Mod", ONNX_NAMES("i", "three"), ONNX_NAMES("rest"));
        onnx_write_op(&body, "Add", ONNX_NAMES("rest", "one"), ONNX_NAMES("count"));
        onnx_write_op(&body, "Expand", ONNX_NAMES("largest", "count"), ONNX_NAMES("many"));
        node = onnx_write_node("ReduceMax", ONNX_NAMES("many"), ONNX_NAMES("same"));
        onnx_write_integer(&node, "keepdims", 0);
        message_inner(&body, 1, &node);
        onnx_write_op(&body, "Sub", ONNX_NAMES("largest", "same"), ONNX_NAMES("nothing"));
        onnx_write_op(&body, "Add", ONNX_NAMES("v", "nothing"), ONNX_NAMES("u"));
    }
    onnx_write_op(&body, "Identity", ONNX_NAMES("go"), ONNX_NAMES("on"));
    onnx_write_value(&body, 11, "i", INT64, "");
    onnx_write_value(&body, 11, "go", BOOL, "");
    onnx_write_value(&body, 11, "s", FLOAT, "2");
    onnx_write_value(&body, 12, "on", BOOL, "");
    onnx_write_value(&body, 12, "t", FLOAT, "2");
    onnx_write_value(&body, 12, "u", FLOAT, "2");
    node = onnx_write_node("Loop", ONNX_NAMES("rounds", "", "x"), ONNX_NAMES("y", "z"));
    onnx_write_graph(&node, "body", &body);
    message_inner(&g, 1, &node);
    onnx_write_row(&g, "rounds", &rounds, 1);
    onnx_write_row(&g, "one", (const int64_t[]){1}, 1);
    onnx_write_row(&g, "three", (const int64_t[]){3}, 1);
    onnx_write_floats(&g, "decay", NULL, 0, &decay, 1);
    onnx_write_value(&g, 11, "x", FLOAT, "2");
    onnx_write_value(&g, 12, "y", FLOAT, "2");
    onnx_write_value(&g, 12, "z", FLOAT, "K,2");
    return g;
}

static size_t count_nodes(onnx_message *graph)
{
    onnx_message bytes = onnx_write_model(graph, 17);
    rlxvk_model *m = NULL;
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_model_open_bytes(bytes.bytes, bytes.size, NULL, &m));
    expect_ok(rlxvk_model_graph(m, NULL, &g));
    size_t count = rlxvk_graph_node_count(g);
    rlxvk_graph_destroy(g);
    rlxvk_model_destroy(m);
    message_free(&bytes);
    return count;
}

static void run_long_loop(int64_t rounds, bool by_round)
{
    const float x[2] = {0.5f, -2};
    onnx_message g = long_loop(rounds, by_round);
    rlxvk_executable *e = onnx_make_executable(&g, 17);
    float y[2], s[2] = {x[0], x[1]}, *z = memory_zeroed((size_t)rounds * 2, sizeof *z);
    rlxvk_run_input in = {.name = "x", .data = x, .length = 2};
    rlxvk_run_output out[] = {{.index = 0, .buffer = y, .length = 2},
                              {.index = 1, .buffer = z, .length = (size_t)rounds * 2}};
    expect_ok(rlxvk_run(e, &in, 1, out, 2));
    for (int64_t i = 0; i < rounds; i++)
        for (int k = 0; k < 2; k++) {
            s[k] = s[k] * 0.999f;
            s[k] += x[k];
            assert_float_equal(z[2 * i + k], s[k] - (float)i, 1e-4 * (double)(i + 1));
        }
    assert_float_equal(y[0], s[0], 0.1);
    assert_float_equal(y[1], s[1], 0.1);
    memory_free(z);
    rlxvk_executable_destroy(e);
}

/* A long loop is one body, however many rounds it has. */
static void test_long_loop(void **state)
{
    onnx_message few = long_loop(3, false), many = long_loop(3000, false);
    onnx_message more = long_loop(9000, false);
    (void)state;
    size_t unrolled = count_nodes(&few), long_nodes = count_nodes(&many);
    assert_int_equal(count_nodes(&more), long_nodes);
    if (long_nodes > 600 * unrolled)
        fail_msg("%zu nodes; 3 rounds are %zu", long_nodes, unrolled);
    run_long_loop(3, false);
    run_long_loop(3000, false);
}

/* If a size depends on the round, the rounds are unrolled, as those of a short loop are. */
static void test_long_loop_with_sizes(void **state)
{
    onnx_message g = long_loop(400, true);
    (void)state;
    assert_true(count_nodes(&g) > 400);
    run_long_loop(400, true);
}

/* s = s / 2 + x, over the columns of x from the last to the first. Column t of z is s after it. */
static void test_long_scan(void **state)
{
    enum { COLUMNS = 1500 };
    static const float half = 0.5f;
    static float x[2 * COLUMNS], z[2 * COLUMNS];
    onnx_message g = {0}, body = {0}, node;
    rlxvk_run_input in[] = {{.name = "x", .data = x, .length = 2 * COLUMNS},
                            {.name = "s0", .data = x, .length = 2}};
    float y[2], s[2];
    rlxvk_run_output out[] = {{.buffer = y, .length = 2},
                              {.index = 1, .buffer = z, .length = 2 * COLUMNS}};
    (void)state;
    onnx_write_op(&body, "Mul", ONNX_NAMES("s", "half"), ONNX_NAMES("m"));
    onnx_write_op(&body, "Add", ONNX_NAMES("m", "column"), ONNX_NAMES("t"));
    onnx_write_op(&body, "Identity", ONNX_NAMES("t"), ONNX_NAMES("u"));
    onnx_write_op(&body, "Identity", ONNX_NAMES("u"), ONNX_NAMES("v"));
    onnx_write_value(&body, 11, "s", FLOAT, "2");
    onnx_write_value(&body, 11, "column", FLOAT, "2");
    onnx_write_value(&body, 12, "t", FLOAT, "2");
    onnx_write_value(&body, 12, "v", FLOAT, "2");
    node = onnx_write_node("Scan", ONNX_NAMES("s0", "x"), ONNX_NAMES("y", "z"));
    onnx_write_integer(&node, "num_scan_inputs", 1);
    onnx_write_integers(&node, "scan_input_axes", (const int64_t[]){1}, 1);
    onnx_write_integers(&node, "scan_output_axes", (const int64_t[]){-1}, 1);
    onnx_write_integers(&node, "scan_input_directions", (const int64_t[]){1}, 1);
    onnx_write_integers(&node, "scan_output_directions", (const int64_t[]){1}, 1);
    onnx_write_graph(&node, "body", &body);
    message_inner(&g, 1, &node);
    onnx_write_floats(&g, "half", NULL, 0, &half, 1);
    onnx_write_value(&g, 11, "s0", FLOAT, "2");
    onnx_write_value(&g, 11, "x", FLOAT, "2,1500");
    onnx_write_value(&g, 12, "y", FLOAT, "2");
    onnx_write_value(&g, 12, "z", FLOAT, "2,1500");
    for (int i = 0; i < 2 * COLUMNS; i++)
        x[i] = (float)(i % 7 - 3);
    rlxvk_executable *e = onnx_make_executable(&g, 17);
    expect_ok(rlxvk_run(e, in, 2, out, 2));
    memcpy(s, x, sizeof s);
    for (int t = COLUMNS - 1; t >= 0; t--)
        for (int k = 0; k < 2; k++) {
            s[k] = s[k] * half + x[k * COLUMNS + t];
            assert_float_equal(z[k * COLUMNS + t], s[k], 1e-5);
        }
    assert_true(y[0] == z[0] && y[1] == z[COLUMNS]);
    rlxvk_executable_destroy(e);
}

/* ---- Sequences ---- */

/* Rows of x, the first one replaced by the last, joined: y = [x2, x1, x2]. */
static void test_sequence(void **state)
{
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    static const float expected[6] = {5, 6, 3, 4, 5, 6};
    onnx_message g = {0}, node;
    rlxvk_executable *e;
    float y[6];
    int64_t n;
    rlxvk_run_input in = {.name = "x", .data = x, .length = 6};
    rlxvk_run_output out[] = {{.buffer = y, .length = 6},
                              {.index = 1, .buffer = &n, .length = 1, .dtype = RLXVK_I64}};
    (void)state;
    onnx_write_op(&g, "SplitToSequence", ONNX_NAMES("x"), ONNX_NAMES("rows"));
    onnx_write_op(&g, "SequenceAt", ONNX_NAMES("rows", "last"), ONNX_NAMES("row"));
    onnx_write_op(&g, "SequenceErase", ONNX_NAMES("rows", "zero"), ONNX_NAMES("fewer"));
    onnx_write_op(&g, "SequenceInsert", ONNX_NAMES("fewer", "row", "zero"), ONNX_NAMES("new"));
    onnx_write_op(&g, "SequenceLength", ONNX_NAMES("new"), ONNX_NAMES("n"));
    node = onnx_write_node("ConcatFromSequence", ONNX_NAMES("new"), ONNX_NAMES("y"));
    onnx_write_integer(&node, "axis", 0);
    message_inner(&g, 1, &node);
    onnx_write_row(&g, "zero", (const int64_t[]){0}, 1);
    onnx_write_row(&g, "last", (const int64_t[]){-1}, 1);
    onnx_write_value(&g, 11, "x", FLOAT, "3,2");
    onnx_write_value(&g, 12, "y", FLOAT, "3,2");
    onnx_write_value(&g, 12, "n", INT64, "");
    e = onnx_make_executable(&g, 17);
    expect_ok(rlxvk_run(e, &in, 1, out, 2));
    assert_memory_equal(y, expected, sizeof y);
    assert_int_equal(n, 3);
    rlxvk_executable_destroy(e);
}

static void test_sequences_are_no_tensors(void **state)
{
    onnx_message g = {0};
    (void)state;
    onnx_write_op(&g, "SplitToSequence", ONNX_NAMES("x"), ONNX_NAMES("rows"));
    onnx_write_op(&g, "Neg", ONNX_NAMES("rows"), ONNX_NAMES("y"));
    onnx_write_value(&g, 11, "x", FLOAT, "3,2");
    onnx_write_value(&g, 12, "y", FLOAT, "3,2");
    expect_refused(&g, "a sequence is no tensor");
}

static void test_place_outside(void **state)
{
    onnx_message g = {0};
    (void)state;
    onnx_write_op(&g, "SplitToSequence", ONNX_NAMES("x"), ONNX_NAMES("rows"));
    onnx_write_op(&g, "SequenceAt", ONNX_NAMES("rows", "three"), ONNX_NAMES("y"));
    onnx_write_row(&g, "three", (const int64_t[]){3}, 1);
    onnx_write_value(&g, 11, "x", FLOAT, "3,2");
    onnx_write_value(&g, 12, "y", FLOAT, "1,2");
    expect_refused(&g, "outside of a sequence of 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_branch_fits),
        cmocka_unit_test(test_no_branch_by_data),
        cmocka_unit_test(test_rounds_by_data),
        cmocka_unit_test(test_a_carried_value_is_missing),
        cmocka_unit_test(test_most_rounds_are_data),
        cmocka_unit_test(test_no_largest_number),
        cmocka_unit_test(test_long_loop),
        cmocka_unit_test(test_long_loop_with_sizes),
        cmocka_unit_test(test_long_scan),
        cmocka_unit_test(test_sequence),
        cmocka_unit_test(test_sequences_are_no_tensors),
        cmocka_unit_test(test_place_outside),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
