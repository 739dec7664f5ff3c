/* Graphs and executables of ONNX models: values, named dims, weights, problems and options. */
#include "model/onnx_ops.h"
#include "support/harness.h"
#include "support/onnx_writer.h"

#include <rlxvk_files.h>
#include <rlxvk_inspect.h>
#include <rlxvk_model.h>
#include <rlxvk_symbols.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { FLOAT = 1, INT64 = 7, STRING = 8 };

static rlxvk_model *open_model(onnx_message *graph, onnx_message *bytes)
{
    rlxvk_model *model = NULL;
    *bytes = onnx_write_model(graph, 18);
    expect_ok(rlxvk_model_open_bytes(bytes->bytes, bytes->size, NULL, &model));
    return model;
}

static void close_model(rlxvk_model *model, onnx_message *bytes)
{
    rlxvk_model_destroy(model);
    message_free(bytes);
}

/* y = x w + b, x [N, 3]. */
static onnx_message affine(void)
{
    static const float weight[6] = {1, 2, 3, 4, 5, 6}, bias[2] = {0.5f, -0.5f};
    onnx_message g = {0};
    onnx_write_op(&g, "MatMul", ONNX_NAMES("x", "w"), ONNX_NAMES("product"));
    onnx_write_op(&g, "Add", ONNX_NAMES("product", "b"), ONNX_NAMES("y"));
    onnx_write_floats(&g, "w", (const int64_t[]){3, 2}, 2, weight, 6);
    onnx_write_floats(&g, "b", (const int64_t[]){2}, 1, bias, 2);
    onnx_write_value(&g, 11, "x", FLOAT, "N,3");
    onnx_write_value(&g, 12, "y", FLOAT, "N,2");
    return g;
}

static void run_affine(rlxvk_executable *e, size_t rows, float *y)
{
    static const float x[6] = {1, 0, 0, 0, 1, 0};
    rlxvk_run_input in = {.name = "x", .data = x, .length = 3 * rows};
    rlxvk_run_output out = {.buffer = y, .length = 2 * rows};
    expect_ok(rlxvk_run(e, &in, 1, &out, 1));
}

/* ---- Sizes ---- */

static void test_bound(void **state)
{
    onnx_message g = affine(), bytes;
    rlxvk_model *m = open_model(&g, &bytes);
    rlxvk_model_binding n = {.name = "N", .size = 2};
    rlxvk_model_graph_options o = {.bindings = &n, .binding_count = 1};
    rlxvk_executable *e = NULL;
    float y[4];
    (void)state;
    expect_ok(rlxvk_model_executable(m, shared_context, &o, NULL, &e));
    close_model(m, &bytes); /* the executable does not need it any more */
    run_affine(e, 2, y);
    assert_true(y[0] == 1.5f && y[1] == 1.5f && y[2] == 3.5f && y[3] == 3.5f);
    rlxvk_executable_destroy(e);
}

static void test_named_dims_are_symbols(void **state)
{
    onnx_message g = affine(), bytes;
    rlxvk_model *m = open_model(&g, &bytes);
    rlxvk_executable *e = NULL;
    float y[4];
    (void)state;
    expect_ok(rlxvk_model_executable(m, shared_context, NULL, NULL, &e));
    run_affine(e, 1, y);
    assert_true(y[0] == 1.5f && y[1] == 1.5f);
    run_affine(e, 2, y);
    assert_true(y[2] == 3.5f && y[3] == 3.5f);
    rlxvk_executable_destroy(e);
    close_model(m, &bytes);
}

/* Reshape(x, Concat(Shape(x)[0], 2, -1)): shapes stay on the host, also with symbols. */
static void test_shape_arithmetic(void **state)
{
    onnx_message g = {0}, bytes, node;
    rlxvk_model *m;
    rlxvk_graph *graph = NULL;
    char text[64];
    (void)state;
    onnx_write_op(&g, "Shape", ONNX_NAMES("x"), ONNX_NAMES("shape"));
    onnx_write_row(&g, "zero", (const int64_t[]){0}, 1);
    onnx_write_row(&g, "rest", (const int64_t[]){2, -1}, 2);
    onnx_write_op(&g, "Gather", ONNX_NAMES("shape", "zero"), ONNX_NAMES("rows"));
    node = onnx_write_node("Concat", ONNX_NAMES("rows", "rest"), ONNX_NAMES("sizes"));
    onnx_write_integer(&node, "axis", 0);
    message_inner(&g, 1, &node);
    onnx_write_op(&g, "Reshape", ONNX_NAMES("x", "sizes"), ONNX_NAMES("y"));
    onnx_write_value(&g, 11, "x", FLOAT, "N,6");
    onnx_write_value(&g, 12, "y", FLOAT, "");
    m = open_model(&g, &bytes);
    expect_ok(rlxvk_model_graph(m, NULL, &graph));
    expect_ok(rlxvk_shape_text(graph,
                               rlxvk_tensor_shape(graph, rlxvk_graph_output_tensor(graph, 0)), text,
                               sizeof text));
    assert_string_equal(text, "S16x2x3");
    rlxvk_graph_destroy(graph);
    close_model(m, &bytes);
}

/* The size of a batch of pictures is the largest of each axis, padded to whole blocks: reductions
 * along one axis stay on the host, and so do sums and numbers that are no integers. */
static void test_reduced_sizes(void **state)
{
    static const float sizes[6] = {3, 5.5f, 7, 2, 6.25f, 1}; /* [3, 2] */
    onnx_message g = {0}, bytes, node;
    rlxvk_graph *graph = NULL;
    char text[64];
    (void)state;
    node = onnx_write_node("ReduceMax", ONNX_NAMES("sizes", "first"), ONNX_NAMES("largest"));
    onnx_write_integer(&node, "keepdims", 0);
    message_inner(&g, 1, &node);
    onnx_write_op(&g, "Sum", ONNX_NAMES("largest", "half", "half"), ONNX_NAMES("more"));
    onnx_write_op(&g, "Ceil", ONNX_NAMES("more"), ONNX_NAMES("whole"));
    node = onnx_write_node("Cast", ONNX_NAMES("whole"), ONNX_NAMES("shape"));
    onnx_write_integer(&node, "to", INT64);
    message_inner(&g, 1, &node);
    onnx_write_op(&g, "Expand", ONNX_NAMES("x", "shape"), ONNX_NAMES("y"));
    onnx_write_floats(&g, "sizes", (const int64_t[]){3, 2}, 2, sizes, 6);
    onnx_write_floats(&g, "half", (const int64_t[]){1}, 1, (const float[]){0.5f}, 1);
    onnx_write_row(&g, "first", (const int64_t[]){0}, 1);
    onnx_write_value(&g, 11, "x", FLOAT, "1,1");
    onnx_write_value(&g, 12, "y", FLOAT, "");
    rlxvk_model *m = open_model(&g, &bytes);
    expect_ok(rlxvk_model_graph(m, NULL, &graph));
    rlxvk_tensor y = rlxvk_graph_output_tensor(graph, 0);
    expect_ok(rlxvk_shape_text(graph, rlxvk_tensor_shape(graph, y), text, sizeof text));
    assert_string_equal(text, "8x7");
    rlxvk_graph_destroy(graph);
    close_model(m, &bytes);
}

/* The lengths of a transposed convolution, also if it is cropped or made longer. */
static void test_transposed_lengths(void **state)
{
    static const float weight[16] = {1};
    static const struct {
        int64_t pads[4], more[2];
        const char *shape;
    } rows[] = {{{0, 0, 0, 0}, {0, 0}, "S16x2x(S17*2)x(S18*2)"},
                {{0, 1, 1, 0}, {0, 1}, "S16x2x((S17*2)-1)x(S18*2)"},
                {{0, 0, 1, 1}, {1, 1}, "S16x2x(S17*2)x(S18*2)"}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        onnx_message g = {0}, bytes,
                     node = onnx_write_node("ConvTranspose", ONNX_NAMES("x", "w"), ONNX_NAMES("y"));
        rlxvk_graph *graph = NULL;
        char text[64];
        onnx_write_integers(&node, "strides", (const int64_t[]){2, 2}, 2);
        onnx_write_integers(&node, "pads", rows[i].pads, 4);
        onnx_write_integers(&node, "output_padding", rows[i].more, 2);
        message_inner(&g, 1, &node);
        onnx_write_floats(&g, "w", (const int64_t[]){2, 2, 2, 2}, 4, weight, 16);
        onnx_write_value(&g, 11, "x", FLOAT, "N,2,H,W");
        onnx_write_value(&g, 12, "y", FLOAT, "");
        rlxvk_model *m = open_model(&g, &bytes);
        expect_ok(rlxvk_model_graph(m, NULL, &graph));
        rlxvk_tensor y = rlxvk_graph_output_tensor(graph, 0);
        expect_ok(rlxvk_shape_text(graph, rlxvk_tensor_shape(graph, y), text, sizeof text));
        assert_string_equal(text, rows[i].shape);
        rlxvk_graph_destroy(graph);
        close_model(m, &bytes);
    }
}

/* An input that decides a size: its value is given, and it is no input of the graph. */
static void test_values(void **state)
{
    static const int64_t sizes[] = {3, 2}, wrong[] = {3};
    rlxvk_model_value v = {.name = "sizes", .data = sizes, .length = 2, .dtype = RLXVK_I64};
    rlxvk_model_graph_options o = {.values = &v, .value_count = 1};
    onnx_message g = {0}, bytes;
    rlxvk_model_info infos[2];
    rlxvk_model *m;
    rlxvk_graph *graph = NULL;
    size_t count;
    (void)state;
    onnx_write_op(&g, "Reshape", ONNX_NAMES("x", "sizes"), ONNX_NAMES("y"));
    onnx_write_value(&g, 11, "x", FLOAT, "6");
    onnx_write_value(&g, 11, "sizes", INT64, "2");
    onnx_write_value(&g, 12, "y", FLOAT, "");
    m = open_model(&g, &bytes);
    expect_error(rlxvk_model_graph(m, NULL, &graph), RLXVK_E_UNSUPPORTED, "--bind 'sizes'");
    expect_ok(rlxvk_model_inputs(m, infos, 2, &count));
    assert_true(count == 2 && !infos[0].needs_value && infos[1].needs_value);
    expect_ok(rlxvk_model_graph(m, &o, &graph));
    assert_true(rlxvk_shape_equal(rlxvk_tensor_shape(graph, rlxvk_graph_output_tensor(graph, 0)),
                                  RLXVK_SHAPE(3, 2)));
    rlxvk_graph_destroy(graph);
    v = (rlxvk_model_value){.name = "sizes", .data = wrong, .length = 1, .dtype = RLXVK_I64};
    expect_error(rlxvk_model_graph(m, &o, &graph), RLXVK_E_LENGTH, "2 elements");
    v = (rlxvk_model_value){.name = "w", .data = wrong, .length = 1, .dtype = RLXVK_I64};
    expect_error(rlxvk_model_graph(m, &o, &graph), RLXVK_E_UNKNOWN_NAME, "'w'");
    v = (rlxvk_model_value){.name = "sizes", .data = wrong, .length = 2, .dtype = RLXVK_I8};
    expect_error(rlxvk_model_graph(m, &o, &graph), RLXVK_E_DTYPE, "I8");
    close_model(m, &bytes);
}

static void test_options(void **state)
{
    onnx_message g = affine(), bytes;
    rlxvk_model *m = open_model(&g, &bytes);
    rlxvk_model_binding n = {.name = "M", .size = 2};
    const char *names[] = {"product", "y"};
    rlxvk_model_graph_options o = {.bindings = &n, .binding_count = 1};
    rlxvk_model_info info;
    rlxvk_graph *graph = NULL;
    size_t count;
    (void)state;
    expect_error(rlxvk_model_graph(m, &o, &graph), RLXVK_E_UNKNOWN_NAME, "'M'");
    n = (rlxvk_model_binding){.name = "N", .size = -1};
    expect_error(rlxvk_model_graph(m, &o, &graph), RLXVK_E_RANGE, "'N'");
    o = (rlxvk_model_graph_options){.outputs = names, .output_count = 2};
    expect_ok(rlxvk_model_graph(m, &o, &graph));
    assert_int_equal(rlxvk_graph_output_tensor(graph, 1).graph,
                     rlxvk_graph_output_tensor(graph, 0).graph);
    rlxvk_graph_destroy(graph);
    names[0] = "nothing";
    graph = NULL;
    expect_error(rlxvk_model_graph(m, &o, &graph), RLXVK_E_UNKNOWN_NAME, "'nothing'");
    expect_ok(rlxvk_model_inputs(m, &info, 1, &count));
    assert_true(count == 1 && info.dtype == RLXVK_F32 && info.shape.rank == 2);
    assert_string_equal(info.name, "x");
    assert_string_equal(info.dim_names[0], "N");
    assert_true(info.shape.dims[0] == rlxvk_symbol(RLXVK_USER_SYMBOL) && info.shape.dims[1] == 3);
    close_model(m, &bytes);
}

/* ---- Weights ---- */

/* A second executable of the model uploads nothing, and params are loaded by the file's names. */
static void test_weights(void **state)
{
    onnx_message g = affine(), bytes;
    rlxvk_model *m = open_model(&g, &bytes);
    rlxvk_model_binding n = {.name = "N", .size = 1};
    rlxvk_model_graph_options o = {.bindings = &n, .binding_count = 1};
    rlxvk_executable *first = NULL, *second = NULL;
    const float ones[6] = {1, 1, 1, 1, 1, 1};
    rlxvk_compile_options c = {0};
    char path[64];
    float y[4];
    (void)state;
    snprintf(path, sizeof path, "/tmp/rlxvk-onnx-%ld.npz", (long)getpid());
    expect_ok(rlxvk_model_executable(m, shared_context, &o, NULL, &first));
    expect_ok(rlxvk_save_params(first, path, NULL));
    expect_ok(rlxvk_set_param(first, "w", ones, 6));
    n.size = 2;
    c.share_with = first;
    expect_ok(rlxvk_model_executable(m, shared_context, &o, &c, &second));
    run_affine(second, 2, y);
    assert_true(y[0] == 1.5f && y[1] == 0.5f); /* the first one's weights */
    expect_ok(rlxvk_load_params(second, path, NULL));
    run_affine(second, 2, y);
    assert_true(y[2] == 3.5f && y[3] == 3.5f);
    unlink(path);
    rlxvk_executable_destroy(second);
    rlxvk_executable_destroy(first);
    close_model(m, &bytes);
}

/* ---- Problems ---- */

static void test_all_problems(void **state)
{
    onnx_message g = {0}, bytes, node;
    rlxvk_model_problem problems[8];
    rlxvk_model *m;
    rlxvk_graph *graph = NULL;
    size_t count;
    (void)state;
    onnx_write_op(&g, "Frobnicate", ONNX_NAMES("x"), ONNX_NAMES("a"));
    onnx_write_op(&g, "Neg", ONNX_NAMES("a"), ONNX_NAMES("b")); /* reads a bad node: not told */
    node = onnx_write_node("Relu", ONNX_NAMES("x"), ONNX_NAMES("c"));
    onnx_write_integer(&node, "leak", 1);
    message_inner(&g, 1, &node);
    onnx_write_op(&g, "Expand", ONNX_NAMES("x", "x"), ONNX_NAMES("d"));
    onnx_write_value(&g, 11, "x", FLOAT, "2,3");
    onnx_write_value(&g, 11, "words", STRING, "2");
    onnx_write_value(&g, 12, "b", FLOAT, "");
    m = open_model(&g, &bytes);
    expect_error(rlxvk_model_graph(m, NULL, &graph), RLXVK_E_UNSUPPORTED, "3 more");
    expect_ok(rlxvk_model_problems(m, problems, 8, &count));
    assert_int_equal(count, 4);
    assert_string_equal(problems[0].node, "words");
    assert_string_equal(problems[1].op, "Frobnicate");
    assert_string_equal(problems[1].node, "a");
    assert_string_equal(problems[2].op, "Relu");
    assert_string_equal(problems[2].attribute, "leak");
    assert_string_equal(problems[3].op, "Expand");
    assert_non_null(strstr(problems[3].text, "data of a run"));
    close_model(m, &bytes);
}

static void test_builder_errors(void **state)
{
    onnx_message g = {0}, bytes;
    rlxvk_model_problem problems[4];
    rlxvk_model *m;
    rlxvk_graph *graph = NULL;
    size_t count;
    (void)state;
    onnx_write_op(&g, "Add", ONNX_NAMES("x", "y"), ONNX_NAMES("a"));
    onnx_write_op(&g, "Frobnicate", ONNX_NAMES("x"), ONNX_NAMES("b"));
    onnx_write_value(&g, 11, "x", FLOAT, "2");
    onnx_write_value(&g, 11, "y", FLOAT, "3");
    onnx_write_value(&g, 12, "a", FLOAT, "");
    m = open_model(&g, &bytes);
    expect_error(rlxvk_model_graph(m, NULL, &graph), RLXVK_E_SHAPE, "Add 'a'");
    expect_ok(rlxvk_model_problems(m, problems, 4, &count));
    assert_int_equal(count, 2); /* the unknown op is told, too */
    assert_string_equal(problems[1].op, "Frobnicate");
    close_model(m, &bytes);
}

/* A constant beyond 2^24 is refused, but not where it stays on the host. */
static void test_large_constants(void **state)
{
    static const int64_t large[] = {1 << 25};
    onnx_message g = {0}, bytes;
    rlxvk_model *m;
    rlxvk_graph *graph = NULL;
    (void)state;
    onnx_write_row(&g, "large", large, 1);
    onnx_write_op(&g, "Add", ONNX_NAMES("x", "large"), ONNX_NAMES("y"));
    onnx_write_value(&g, 11, "x", INT64, "1");
    onnx_write_value(&g, 12, "y", INT64, "1");
    m = open_model(&g, &bytes);
    expect_error(rlxvk_model_graph(m, NULL, &graph), RLXVK_E_RANGE, "33554432");
    close_model(m, &bytes);
    onnx_write_row(&g, "large", large, 1);
    onnx_write_op(&g, "Div", ONNX_NAMES("large", "large"), ONNX_NAMES("one"));
    onnx_write_op(&g, "Add", ONNX_NAMES("x", "one"), ONNX_NAMES("y"));
    onnx_write_value(&g, 11, "x", INT64, "1");
    onnx_write_value(&g, 12, "y", INT64, "1");
    m = open_model(&g, &bytes);
    expect_ok(rlxvk_model_graph(m, NULL, &graph));
    rlxvk_graph_destroy(graph);
    close_model(m, &bytes);
}

static void test_newer_opset(void **state)
{
    onnx_message g = affine(), bytes = onnx_write_model(&g, ONNX_NEWEST_OPSET + 1);
    rlxvk_model *m = NULL;
    rlxvk_graph *graph = NULL;
    (void)state;
    expect_ok(rlxvk_model_open_bytes(bytes.bytes, bytes.size, NULL, &m));
    expect_error(rlxvk_model_graph(m, NULL, &graph), RLXVK_E_UNSUPPORTED, "opset");
    close_model(m, &bytes);
}

/* Nodes of the graph are told by those of the file, and results have their names. */
static void test_nodes_have_names(void **state)
{
    onnx_message g = affine(), bytes;
    rlxvk_model *m = open_model(&g, &bytes);
    rlxvk_graph *graph = NULL;
    rlxvk_model_source source = {0};
    uint32_t node;
    (void)state;
    expect_ok(rlxvk_model_graph(m, NULL, &graph));
    expect_ok(rlxvk_tensor_node(graph, rlxvk_graph_tensor_named(graph, "product"), &node));
    expect_ok(rlxvk_model_node(m, node, &source));
    assert_string_equal(source.name, "product");
    assert_string_equal(source.op, "MatMul");
    expect_ok(rlxvk_tensor_node(graph, rlxvk_graph_output_tensor(graph, 0), &node));
    expect_ok(rlxvk_model_node(m, node, &source));
    assert_string_equal(source.op, "Add");
    expect_ok(rlxvk_model_node(m, 0, &source)); /* the input x */
    assert_string_equal(source.op, "");
    rlxvk_graph_destroy(graph);
    close_model(m, &bytes);
}

/* ---- Control flow ---- */

/* A loop of three rounds: state = state + state, of which each is kept. */
static void test_loop(void **state)
{
    onnx_message g = {0}, body = {0}, bytes, node;
    rlxvk_model *m;
    rlxvk_executable *e = NULL;
    const float x[2] = {1, -2};
    float last[2], all[6];
    rlxvk_run_input in = {.name = "x", .data = x, .length = 2};
    rlxvk_run_output out[] = {{.index = 0, .buffer = last, .length = 2},
                              {.index = 1, .buffer = all, .length = 6}};
    (void)state;
    onnx_write_op(&body, "Add", ONNX_NAMES("s", "s"), ONNX_NAMES("t"));
    onnx_write_op(&body, "Identity", ONNX_NAMES("go"), ONNX_NAMES("on"));
    onnx_write_op(&body, "Neg", ONNX_NAMES("t"), ONNX_NAMES("u"));
    onnx_write_value(&body, 11, "i", INT64, "");
    onnx_write_value(&body, 11, "go", 9, "");
    onnx_write_value(&body, 11, "s", FLOAT, "2");
    onnx_write_value(&body, 12, "on", 9, "");
    onnx_write_value(&body, 12, "t", FLOAT, "2");
    onnx_write_value(&body, 12, "u", FLOAT, "2");
    onnx_write_row(&g, "three", (const int64_t[]){3}, 1);
    node = onnx_write_node("Loop", ONNX_NAMES("three", "", "x"), ONNX_NAMES("y", "z"));
    onnx_write_graph(&node, "body", &body);
    message_inner(&g, 1, &node);
    onnx_write_value(&g, 11, "x", FLOAT, "2");
    onnx_write_value(&g, 12, "y", FLOAT, "2");
    onnx_write_value(&g, 12, "z", FLOAT, "3,2");
    m = open_model(&g, &bytes);
    expect_ok(rlxvk_model_executable(m, shared_context, NULL, NULL, &e));
    expect_ok(rlxvk_run(e, &in, 1, out, 2));
    assert_true(last[0] == 8 && last[1] == -16);
    assert_true(all[0] == -2 && all[3] == 8 && all[4] == -8 && all[5] == 16);
    rlxvk_executable_destroy(e);
    close_model(m, &bytes);
}

/* ---- Memory ---- */

/* Each allocation fails once: the calls fail, and nothing leaks or crashes. */
static void test_out_of_memory(void **state)
{
    onnx_message g = affine(), bytes = onnx_write_model(&g, 13);
    rlxvk_status status = RLXVK_E_OUT_OF_HOST_MEMORY;
    uint64_t n = 1;
    (void)state;
    for (; status != RLXVK_OK; n++) {
        int64_t live = memory_live_count();
        rlxvk_model *m = NULL;
        rlxvk_graph *graph = NULL;
        memory_fail_at(n);
        status = rlxvk_model_open_bytes(bytes.bytes, bytes.size, NULL, &m);
        if (status == RLXVK_OK)
            status = rlxvk_model_graph(m, NULL, &graph);
        memory_fail_at(0);
        assert_true(status == RLXVK_OK || status == RLXVK_E_OUT_OF_HOST_MEMORY);
        assert_true((status == RLXVK_OK) == (graph != NULL));
        rlxvk_graph_destroy(graph);
        rlxvk_model_destroy(m);
        assert_int_equal(memory_live_count(), live);
    }
    assert_true(n > 20);
    message_free(&bytes);
}

/* ---- The table ---- */

static void test_table_is_sorted(void **state)
{
    (void)state;
    for (size_t i = 1; onnx_op_at(i); i++) {
        const onnx_op *a = onnx_op_at(i - 1), *b = onnx_op_at(i);
        int order = strcmp(a->domain, b->domain);
        order = order ? order : strcmp(a->name, b->name);
        assert_true(order < 0 || (order == 0 && a->last > 0 && a->last < b->first));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_named_dims_are_symbols),
        cmocka_unit_test(test_transposed_lengths),
        cmocka_unit_test(test_shape_arithmetic),
        cmocka_unit_test(test_reduced_sizes),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_all_problems),
        cmocka_unit_test(test_builder_errors),
        cmocka_unit_test(test_large_constants),
        cmocka_unit_test(test_newer_opset),
        cmocka_unit_test(test_nodes_have_names),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_table_is_sorted),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
