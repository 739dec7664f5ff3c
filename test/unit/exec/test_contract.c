/* Errors that callers get: for tensors of another graph, reserved names, options out of bounds,
 * data that are missing or have the wrong length, and lack of host memory. Also the meaning of NULL
 * arguments. */
#include "op/op.h"
#include "support/harness.h"

#include <rlxvk_symbols.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

static rlxvk_tensor input(rlxvk_graph *g, const char *name, rlxvk_shape shape)
{
    return rlxvk_input(g, name, RLXVK_F32, shape);
}

static void expect_sticky(rlxvk_graph *g, rlxvk_status wanted, const char *part)
{
    if (!strstr(rlxvk_graph_error(g), part))
        print_error("got '%s', wanted '%s'\n", rlxvk_graph_error(g), part);
    assert_int_equal(rlxvk_graph_status(g), wanted);
    assert_non_null(strstr(rlxvk_graph_error(g), part));
    rlxvk_graph_destroy(g);
}

static rlxvk_executable *compile(rlxvk_graph *g, const rlxvk_compile_options *options)
{
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_compile(shared_context, g, options, &e));
    rlxvk_graph_destroy(g);
    return e;
}

/* ---- Tensors of another graph ---- */

/* Each graph has its own tensors. That holds even if a new graph gets the address of a destroyed
 * one. */
static void tensors_belong_to_one_graph(void **state)
{
    rlxvk_graph *g = new_graph(), *other = new_graph();
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2)), theirs = input(other, "x", RLXVK_SHAPE(2));
    assert_int_equal(x.id, theirs.id);
    assert_int_not_equal(x.graph, theirs.graph);
    assert_int_equal(RLXVK_NONE.graph, 0);
    assert_int_equal(rlxvk_tensor_shape(g, theirs).rank, 0);
    rlxvk_graph_destroy(other);
    other = new_graph();
    assert_int_not_equal(input(other, "x", RLXVK_SHAPE(2)).graph, theirs.graph);
    rlxvk_graph_destroy(other);
    rlxvk_add(g, x, theirs);
    expect_sticky(g, RLXVK_E_DANGLING, "add (node 1): operand 1 is a tensor of another graph; ");
}

/* Operands in lists and in structs are checked, too, although no parameter shows them. */
static void listed_tensors_belong_to_it(void **state)
{
    rlxvk_graph *other = new_graph(), *g, *body = new_graph();
    rlxvk_tensor t = input(other, "t", RLXVK_SHAPE(4, 4)), out;
    (void)state;
    rlxvk_graph_output(body, rlxvk_neg(body, input(body, "c", RLXVK_SHAPE(4, 4))));
    static const char foreign[] = " is a tensor of another graph";
    g = new_graph();
    rlxvk_concat(g, (rlxvk_tensor[]){input(g, "x", RLXVK_SHAPE(4, 4)), t}, 2, 0);
    expect_sticky(g, RLXVK_E_DANGLING, foreign);
    g = new_graph();
    rlxvk_call(g, body, &t, 1, &out, 1);
    expect_sticky(g, RLXVK_E_DANGLING, "call (node 0): value 0 is a tensor of another graph");
    g = new_graph();
    (void)input(g, "x", RLXVK_SHAPE(4, 4));
    rlxvk_scan(g, body, &t, 1, &(rlxvk_scan_options){.length = 1});
    expect_sticky(g, RLXVK_E_DANGLING, "scan (node 1): value 0 is a tensor of another graph");
    g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(4, 4)), w = input(g, "w", RLXVK_SHAPE(4, 12));
    rlxvk_attention_block block = {.hidden = rlxvk_reshape(g, x, RLXVK_SHAPE(1, 4, 4)),
                                   .qkv_w = w,
                                   .out_w = t,
                                   .mask = input(g, "m", RLXVK_SHAPE(4)),
                                   .num_heads = 1,
                                   .head_dim = 4};
    rlxvk_fused_attention_block(g, &block);
    expect_sticky(g, RLXVK_E_DANGLING, "fused_attention_block (node 4): operand 2 is a tensor of");
    g = new_graph();
    rlxvk_graph_output(body, t);
    expect_sticky(body, RLXVK_E_DANGLING, "graph_output: output 1 is a tensor of another graph");
    rlxvk_graph_destroy(g);
    rlxvk_graph_destroy(other);
}

/* ---- Names in error messages ---- */

static void errors_name_the_node(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(1, 64)), h = x;
    for (int i = 0; i < 50; i++)
        h = rlxvk_neg(g, h);
    rlxvk_graph_set_name(g, h, "h.31");
    rlxvk_tensor w = rlxvk_param(g, "w.31", RLXVK_F32, RLXVK_SHAPE(32, 64));
    rlxvk_matmul(g, h, w);
    expect_sticky(g, RLXVK_E_SHAPE,
                  "matmul (node 52 of 'h.31' and 'w.31'): K is 64 in 1x64 and 32");
}

/* If a tensor is too large for the device, the error has its name and shape. */
static void sizes_name_the_tensor(void **state)
{
    rlxvk_context *small = open_context(&(rlxvk_context_options){.limit_binding_bytes = 1 << 16});
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    (void)state;
    rlxvk_graph_output(g, rlxvk_neg(g, input(g, "big", RLXVK_SHAPE(200, 128))));
    expect_error(rlxvk_compile(small, g, NULL, &e), RLXVK_E_TOO_LARGE,
                 "input 'big' (node 0) of shape 200x128 needs 102400 bytes");
    rlxvk_graph_destroy(g);
    close_context(small);
}

/* The trace of a run has the names from rlxvk_graph_set_name, as JSON strings. */
static void traces_name_the_node(void **state)
{
    char path[] = "/tmp/rlxvk-trace-XXXXXX", line[1024], longest[2000];
    int file = mkstemp(path), seen = 0, cut = 0;
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    float x[4] = {1, 2, 3, 4};
    (void)state;
    assert_true(file >= 0);
    memset(longest, '\n', sizeof longest);
    longest[sizeof longest - 1] = 0;
    setenv("RLXVK_TRACE", path, 1);
    rlxvk_context *c = open_context(NULL);
    unsetenv("RLXVK_TRACE");
    rlxvk_tensor t = rlxvk_softmax(g, input(g, "x", RLXVK_SHAPE(4)), 0);
    rlxvk_graph_set_name(g, t, "attn.3 \"q\\k\"");
    rlxvk_tensor u = rlxvk_cumsum(g, t, 0, false);
    rlxvk_graph_set_name(g, u, longest);
    rlxvk_graph_output(g, u);
    rlxvk_compile_options options = {.host_ops = (const char *[]){"cumsum"}, .host_op_count = 1};
    expect_ok(rlxvk_compile(c, g, &options, &e));
    rlxvk_run_input in = {.name = "x", .data = x, .length = 4};
    expect_ok(rlxvk_run(e, &in, 1, NULL, 0));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
    FILE *stream = fdopen(file, "r");
    while (fgets(line, sizeof line, stream)) {
        seen += strstr(line, "\"name\":\"attn.3 \\\"q\\\\k\\\"\"}}") != NULL;
        cut += strstr(line, "\\u000a\\u000a\"}}") != NULL;
    }
    fclose(stream);
    unlink(path);
    assert_int_equal(seen, 1);
    assert_int_equal(cut, 1);
}

/* ---- Meaning of NULL ---- */

static void null_options_are_defaults(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_stft(g, input(g, "x", RLXVK_SHAPE(8)), RLXVK_NONE, NULL);
    expect_sticky(g, RLXVK_E_ATTR, "stft (node 1): length is 0");
    g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(8)), im;
    rlxvk_tensor re = rlxvk_rfft(g, x, 0, RLXVK_FFT_INVERSE, NULL);
    rlxvk_tensor same = rlxvk_rfft(g, x, 0, RLXVK_FFT_INVERSE, &im);
    assert_int_equal(rlxvk_tensor_shape(g, re).dims[0], rlxvk_tensor_shape(g, same).dims[0]);
    rlxvk_tensor q = input(g, "q", RLXVK_SHAPE(1, 2, 3, 4)), lse;
    rlxvk_tensor a = rlxvk_attention_with_lse(g, q, q, q, RLXVK_NONE, NULL, NULL);
    rlxvk_tensor b = rlxvk_attention_with_lse(g, q, q, q, RLXVK_NONE, NULL, &lse);
    rlxvk_shape s = rlxvk_tensor_shape(g, a), t = rlxvk_tensor_shape(g, b);
    assert_true(shape_equal(&s, &t) && s.rank == 4);
    expect_ok(rlxvk_graph_status(g));
    rlxvk_graph_destroy(g);
}

/* If a call has no status to return and its object is NULL, it returns an empty value and sets the
 * last error. */
static void null_objects_answer_neutrally(void **state)
{
    rlxvk_memory_report memory = {.block_count = 7};
    rlxvk_plan_report plan = {.runs = 7};
    rlxvk_device_info device = {.usable = true};
    rlxvk_rng_options rng = {.seed = 7};
    (void)state;
    assert_string_equal(rlxvk_graph_error(NULL), "");
    assert_int_equal(rlxvk_graph_status(NULL), RLXVK_E_NULL);
    assert_int_equal(rlxvk_tensor_shape(NULL, RLXVK_NONE).rank, 0);
    assert_int_equal(rlxvk_tensor_dtype(NULL, RLXVK_NONE), RLXVK_F32);
    assert_int_equal(rlxvk_executable_output_count(NULL), 0);
    assert_int_equal(rlxvk_executable_output_shape(NULL, 0).rank, 0);
    assert_int_equal(rlxvk_executable_output_dtype(NULL, 0), RLXVK_F32);
    assert_false(rlxvk_has_handle(NULL, "x"));
    rlxvk_executable_memory(NULL, &memory);
    assert_int_equal(memory.block_count, 0);
    rlxvk_executable_plan(NULL, &plan);
    assert_int_equal(plan.runs, 0);
    rlxvk_context_device(NULL, &device);
    assert_false(device.usable);
    rlxvk_get_rng(NULL, &rng);
    assert_int_equal(rng.seed, 0);
    assert_string_equal(rlxvk_last_error(),
                        "get_rng: executable is NULL; this call cannot do without it");
    assert_int_equal(rlxvk_neg(NULL, RLXVK_NONE).id, 0);
    assert_non_null(strstr(rlxvk_last_error(), "neg: graph is NULL"));
    assert_int_equal(rlxvk_signal_prime_factors(12, NULL, 3), 3);
}

static void null_rng_options_are_the_defaults(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_rng_options rng = {.seed = 7, .advance_per_run = true}, now;
    (void)state;
    rlxvk_graph_output(g, rlxvk_rng_uniform(g, RLXVK_SHAPE(2), 0, 1, NULL));
    rlxvk_executable *e = compile(g, &(rlxvk_compile_options){.rng = &rng});
    rlxvk_get_rng(e, &now);
    assert_int_equal(now.seed, 7);
    expect_ok(rlxvk_set_rng(e, NULL));
    rlxvk_get_rng(e, &now);
    assert_true(now.seed == 42 && now.step == 0 && !now.advance_per_run);
    rlxvk_executable_destroy(e);
}

/* ---- Names ---- */

/* Callers cannot use the name of the library's own state input, not even in bodies. */
static void only_the_library_names_its_state(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_rng_uniform(g, RLXVK_SHAPE(2), 0, 1, NULL);
    expect_ok(rlxvk_graph_status(g));
    (void)input(g, "rlxvk.rng", RLXVK_SHAPE(100000));
    expect_sticky(g, RLXVK_E_ATTR, "input 'rlxvk.rng': names that begin with 'rlxvk.'");
    g = new_graph();
    (void)input(g, "rlxvk.rng", RLXVK_SHAPE(100000));
    rlxvk_rng_uniform(g, RLXVK_SHAPE(2), 0, 1, NULL);
    expect_sticky(g, RLXVK_E_ATTR, "choose another");
    g = new_graph();
    rlxvk_graph_output(g, rlxvk_neg(g, input(g, "rlxvk", RLXVK_SHAPE(1))));
    expect_ok(rlxvk_graph_status(g));
    rlxvk_graph_destroy(g);
}

/* ---- Options of a compile ---- */

static void options_have_bounds(void **state)
{
    rlxvk_context *other = open_context(NULL);
    rlxvk_graph *g = new_graph();
    rlxvk_executable *theirs = NULL, *e = NULL;
    (void)state;
    rlxvk_graph_output(g, rlxvk_neg(g, rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(4))));
    rlxvk_compile_options o = {.max_in_flight = UINT32_MAX};
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_ATTR,
                 "max_in_flight is 4294967295; at most 1024");
    o.max_in_flight = 1025;
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_ATTR, "is 1025");
    o.max_in_flight = 1024;
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    rlxvk_executable_destroy(e);
    expect_ok(rlxvk_compile(other, g, NULL, &theirs));
    o = (rlxvk_compile_options){.share_with = theirs};
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_ATTR, "another context");
    o = (rlxvk_compile_options){.shared_input_count = 2};
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_NULL,
                 "shared_inputs is NULL with a count of 2");
    o.shared_inputs = (const char *[2]){"a", NULL};
    expect_error(rlxvk_compile(shared_context, g, &o, &e), RLXVK_E_NULL, "a name in shared_inputs");
    rlxvk_executable_destroy(theirs);
    rlxvk_graph_destroy(g);
    close_context(other);
}

/* ---- Data ---- */

static rlxvk_executable *product(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(1, 3));
    rlxvk_graph_output(g, rlxvk_matmul(g, x, rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(3, 4))));
    return compile(g, NULL);
}

static void missing_data_are_told_from_short_ones(void **state)
{
    rlxvk_executable *e = product();
    float w[12] = {0};
    (void)state;
    expect_error(rlxvk_set_param(e, "w", NULL, 12), RLXVK_E_NULL,
                 "set_param: param 'w' needs 12 values, given NULL");
    expect_error(rlxvk_set_param(e, "w", w, 11), RLXVK_E_LENGTH, "needs 12 values, given 11");
    expect_error(rlxvk_set_param_bytes(e, "w", NULL, 48), RLXVK_E_NULL, "48 bytes, given NULL");
    expect_error(rlxvk_read_param(e, "w", NULL, 12), RLXVK_E_NULL,
                 "read_param: param 'w' has 12 values, given NULL");
    expect_error(rlxvk_set_param(e, NULL, w, 12), RLXVK_E_NULL, "set_param: name is NULL");
    expect_error(rlxvk_bind_handle(e, "x", w, 2), RLXVK_E_LENGTH,
                 "bind_handle: input 'x' needs 3 values, given 2");
    expect_error(rlxvk_bind_handle_as(e, "x", w, 2, RLXVK_F32), RLXVK_E_LENGTH,
                 "needs 3 values, given 2");
    expect_error(rlxvk_bind_handle(e, "x", NULL, 3), RLXVK_E_NULL, "3 values, given NULL");
    expect_ok(rlxvk_set_param(e, "w", w, 12));
    rlxvk_run_input in = {.name = "x", .length = 3}, nameless = {.data = w, .length = 3};
    rlxvk_run_output out = {.length = 4};
    expect_error(rlxvk_run(e, &in, 1, NULL, 0), RLXVK_E_NULL,
                 "run: input 'x' needs 3 values, given NULL");
    expect_error(rlxvk_run(e, &nameless, 1, NULL, 0), RLXVK_E_NULL, "run: name is NULL");
    in.data = w;
    expect_error(rlxvk_run(e, &in, 1, &out, 1), RLXVK_E_NULL,
                 "run: output 0 has 4 values, given NULL");
    expect_error(rlxvk_run(e, NULL, 1, NULL, 0), RLXVK_E_NULL, "run: inputs is NULL");
    expect_error(rlxvk_set_param(e, "v", w, 12), RLXVK_E_UNKNOWN_NAME,
                 "set_param: the graph has no param named 'v'; there are 'w'");
    expect_error(rlxvk_unbind_handle(e, "w"), RLXVK_E_UNKNOWN_NAME,
                 "unbind_handle: 'w' is a param, not an input; set it with rlxvk_set_param");
    in.dtype = (rlxvk_dtype)77;
    expect_error(rlxvk_run(e, &in, 1, NULL, 0), RLXVK_E_DTYPE, "input 'x': dtype 77 of the buffer");
    in.dtype = RLXVK_F32;
    out.buffer = w;
    expect_ok(rlxvk_run(e, &in, 1, &out, 1));
    rlxvk_executable_destroy(e);
}

/* A cleared param becomes zeros and counts as set. It does not matter if it had a value before, or
 * if a program exists yet. Other params keep their values. */
static void cleared_params_are_zeros(void **state)
{
    enum { ODD = 7 }; /* an odd number of halves does not fill whole words */
    (void)state;
    for (int family = 0; family < 2; family++) {
        rlxvk_graph *g = new_graph();
        int64_t rows = family ? rlxvk_symbol(RLXVK_BATCH) : 1;
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(rows, ODD));
        x = rlxvk_add(g, x,
                      rlxvk_cast(g, rlxvk_param(g, "h", RLXVK_F16, RLXVK_SHAPE(ODD)), RLXVK_F32));
        rlxvk_graph_output(g, rlxvk_mul(g, x, rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(ODD))));
        rlxvk_executable *e = compile(g, NULL);
        float values[ODD] = {1, 2, 3, 4, 5, 6, 7}, y[ODD], back[ODD];
        rlxvk_run_input in = {"x", values, ODD, RLXVK_F32};
        rlxvk_run_output out = {0, y, ODD, RLXVK_F32};
        expect_error(rlxvk_clear_param(e, "x"), RLXVK_E_UNKNOWN_NAME, "clear_param");
        expect_ok(rlxvk_set_param(e, "w", values, ODD));
        for (int round = 0; round < 2; round++) {
            expect_ok(rlxvk_clear_param(e, "h"));
            expect_ok(rlxvk_run(e, &in, 1, &out, 1));
            expect_ok(rlxvk_read_param_typed(e, "h", back, 4 * ODD, RLXVK_F32));
            for (int i = 0; i < ODD; i++)
                assert_true(back[i] == 0 && y[i] == values[i] * values[i]);
            expect_ok(rlxvk_set_param_typed(e, "h", values, 4 * ODD, RLXVK_F32));
            expect_ok(rlxvk_run(e, &in, 1, &out, 1));
            assert_true(y[6] == 14 * 7);
        }
        rlxvk_executable_destroy(e);
    }
}

static void many_params_are_checked_first(void **state)
{
    rlxvk_executable *e = product();
    float w[12] = {0};
    rlxvk_param_item items[] = {{"w", w, 48, RLXVK_F32}, {"w", w, 48, (rlxvk_dtype)99}};
    (void)state;
    expect_error(rlxvk_set_params(e, items, 2), RLXVK_E_DTYPE,
                 "set_params: param 'w': 99 is none of rlxvk_dtype");
    items[1].dtype = (rlxvk_dtype)-1;
    expect_error(rlxvk_set_params(e, items, 2), RLXVK_E_DTYPE, "-1 is none");
    expect_error(rlxvk_set_param_typed(e, "w", w, 48, RLXVK_DTYPE_COUNT), RLXVK_E_DTYPE, "12");
    expect_error(rlxvk_set_params(e, NULL, 2), RLXVK_E_NULL, "items is NULL with a count of 2");
    expect_ok(rlxvk_set_params(e, NULL, 0));
    expect_error(rlxvk_run(e, NULL, 0, NULL, 0), RLXVK_E_UNSET_PARAM, "'w'");
    rlxvk_executable_destroy(e);
}

/* ---- Host steps ---- */

/* Callers may free or change the names in their options as soon as the call returns. A clone still
 * has them. */
static void options_outlive_the_callers_names(void **state)
{
    char op[] = "neg", kind[] = "matmul", row[] = "tiled_64x64";
    const char *ops[] = {op};
    rlxvk_variant variant = {kind, row};
    rlxvk_compile_options options = {.host_ops = ops,
                                     .host_op_count = 1,
                                     .variants = &variant,
                                     .variant_count = 1};
    rlxvk_graph *g = new_graph();
    rlxvk_executable *copy = NULL;
    rlxvk_plan_report plan;
    (void)state;
    rlxvk_graph_output(g, rlxvk_neg(g, input(g, "x", RLXVK_SHAPE(4))));
    rlxvk_executable *e = compile(g, &options);
    memset(op, '?', sizeof op - 1);
    memset(kind, '?', sizeof kind - 1);
    memset(row, '?', sizeof row - 1);
    ops[0] = NULL;
    variant = (rlxvk_variant){0};
    expect_ok(rlxvk_clone(e, &copy));
    rlxvk_executable_plan(copy, &plan);
    assert_int_equal(plan.host_steps, 1);
    rlxvk_executable_destroy(copy);
    rlxvk_executable_destroy(e);
}

/* An empty array is not the same as NULL: it also overrides the environment's switches. */
static void lists_go_before_switches(void **state)
{
    static const char *const neg[] = {"neg"};
    static const struct {
        rlxvk_compile_options options;
        uint32_t host_steps;
    } cases[] = {{{0}, 1},
                 {{.force_host = RLXVK_OFF}, 0},
                 {{.host_ops = neg}, 0},
                 {{.host_ops = neg, .host_op_count = 1}, 1},
                 {{.force_host = RLXVK_ON}, 2}};
    rlxvk_context *kept = shared_context;
    (void)state;
    setenv("RLXVK_FORCE_HOST", "exp", 1);
    shared_context = open_context(NULL);
    unsetenv("RLXVK_FORCE_HOST");
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        rlxvk_graph *g = new_graph();
        rlxvk_plan_report plan;
        rlxvk_compile_options options = cases[i].options;
        options.regions = RLXVK_OFF;
        rlxvk_graph_output(g, rlxvk_exp(g, rlxvk_neg(g, input(g, "x", RLXVK_SHAPE(4)))));
        rlxvk_executable *e = compile(g, &options);
        rlxvk_executable_plan(e, &plan);
        assert_int_equal(plan.host_steps, cases[i].host_steps);
        rlxvk_executable_destroy(e);
    }
    close_context(shared_context);
    shared_context = kept;
}

static void host_steps_out_of_memory_say_so(void **state)
{
    rlxvk_compile_options options = {.host_ops = (const char *[]){"dense_solve"},
                                     .host_op_count = 1};
    rlxvk_graph *g = new_graph();
    float a[4] = {2, 0, 0, 4}, y[2] = {0}, b[2] = {2, 12};
    uint64_t failures = 0;
    rlxvk_run_input in = {.name = "a", .data = a, .length = 4};
    rlxvk_run_output out = {.buffer = y, .length = 2};
    rlxvk_status status;
    (void)state;
    rlxvk_tensor right = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(2), b, sizeof b);
    rlxvk_graph_output(g, rlxvk_dense_solve(g, input(g, "a", RLXVK_SHAPE(2, 2)), right));
    rlxvk_executable *e = compile(g, &options);
    do {
        memory_fail_at(failures + 1);
        status = rlxvk_run(e, &in, 1, &out, 1);
        memory_fail_at(0);
        failures += status != RLXVK_OK;
        if (status != RLXVK_OK)
            expect_error(status, RLXVK_E_OUT_OF_HOST_MEMORY, "out of host memory");
    } while (status != RLXVK_OK);
    assert_true(failures > 0 && y[0] == 1 && y[1] == 3);
    rlxvk_executable_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_belong_to_one_graph),
        cmocka_unit_test(listed_tensors_belong_to_it),
        cmocka_unit_test(errors_name_the_node),
        cmocka_unit_test(sizes_name_the_tensor),
        cmocka_unit_test(traces_name_the_node),
        cmocka_unit_test(null_options_are_defaults),
        cmocka_unit_test(null_objects_answer_neutrally),
        cmocka_unit_test(null_rng_options_are_the_defaults),
        cmocka_unit_test(only_the_library_names_its_state),
        cmocka_unit_test(options_have_bounds),
        cmocka_unit_test(missing_data_are_told_from_short_ones),
        cmocka_unit_test(cleared_params_are_zeros),
        cmocka_unit_test(many_params_are_checked_first),
        cmocka_unit_test(options_outlive_the_callers_names),
        cmocka_unit_test(lists_go_before_switches),
        cmocka_unit_test(host_steps_out_of_memory_say_so),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
