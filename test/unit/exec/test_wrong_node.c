/*
 * rlxvk_first_wrong_node and RLXVK_CHECK=results. Wrong kernels are planted: an instruction of an
 * embedded kernel becomes another one. Only the node that runs it may be blamed. test_right_nodes.c
 * has the graphs in which none may be.
 */
#include "args/elementwise.h"
#include "exec/allocate.h"
#include "exec/judge.h"
#include "kernel/words.h"
#include "support/harness.h"
#include "support/judged.h"
#include "support/rewritten.h"

#include <rlxvk_inspect.h>
#include <rlxvk_ops_array.h>
#include <rlxvk_ops_domain.h>
#include <rlxvk_symbols.h>
#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

/* ---- Planting ---- */

/* An embedded kernel in whose module all instructions `from` are `to`. */
typedef struct plant {
    uint16_t kernel;
    uint32_t from, to;
    kernel_info before;
} plant;

/* Writes a row of the table of kernels, which is constant. */
static void write_row(uint16_t kernel, const kernel_info *row)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)&kernel_table[kernel];
    void *first = (void *)(at / page * page);
    size_t size = at + sizeof *row - (uintptr_t)first;
    assert_int_equal(mprotect(first, size, PROT_READ | PROT_WRITE), 0);
    memcpy((void *)at, row, sizeof *row);
}

static void plant_begin(plant *p, uint16_t kernel, uint32_t from, uint32_t to)
{
    *p = (plant){kernel, from, to, kernel_table[kernel]};
    kernel_info row = p->before;
    uint32_t *words = kernel_words(&p->before), changed = 0;
    for (uint32_t i = SPIRV_HEADER_WORDS; i < row.word_count; i += length_of(words[i]))
        if (opcode_of(words[i]) == from) {
            words[i] = words[i] - from + to;
            changed++;
        }
    assert_true(changed > 0);
    row.words = words;
    write_row(kernel, &row);
}

static void plant_end(plant *p)
{
    memory_free((void *)kernel_table[p->kernel].words);
    write_row(p->kernel, &p->before);
}

/* The kernels that these tests make wrong, whatever the device would choose. */
static const rlxvk_variant planted_variants[] = {{"rows", "shared_words"},
                                                 {"matmul", "scalar_single"},
                                                 {"region", "common_short"}};
static const rlxvk_compile_options planted_options = {.variants = planted_variants,
                                                      .variant_count =
                                                          ARRAY_COUNT(planted_variants)};

/* Compiles with a wrong kernel, in a context of its own: others have the right one. */
static rlxvk_executable *compile_planted(rlxvk_context *c, const rlxvk_graph *g,
                                         const rlxvk_compile_options *options, uint16_t kernel,
                                         uint32_t from, uint32_t to)
{
    rlxvk_executable *e = NULL;
    plant p;
    plant_begin(&p, kernel, from, to);
    rlxvk_status status = rlxvk_compile(c, g, options ? options : &planted_options, &e);
    plant_end(&p);
    expect_ok(status);
    return e;
}

/* ---- Asking ---- */

/* Expects that only the node of this op and name is blamed. */
static judged_answer expect_blamed(rlxvk_executable *e, const char *op, const char *name)
{
    judged_answer a = judged_ask(e);
    for (size_t i = 1; i < a.count && i < JUDGED_MOST; i++)
        judged_print(&a.worst[i]);
    assert_int_equal(a.count, 1);
    assert_true(a.first.found);
    assert_string_equal(a.first.op, op);
    assert_string_equal(a.first.name, name);
    assert_true(a.first.error > 1 && a.first.wrong_count > 0);
    assert_true(!(fabs(a.first.got - a.first.expected) <= a.first.bound));
    assert_int_equal(a.worst[0].node, a.first.node);
    assert_true(a.worst[0].error >= a.first.error);
    assert_int_equal(a.first.computed_nodes, a.first.judged_nodes);
    return a;
}

/* ---- Wrong kernels ---- */

static rlxvk_tensor named(rlxvk_graph *g, const char *name, rlxvk_tensor t)
{
    rlxvk_graph_set_name(g, t, name);
    return t;
}

static uint32_t number_of(const rlxvk_graph *g, rlxvk_tensor t)
{
    uint32_t node = UINT32_MAX;
    expect_ok(rlxvk_tensor_node(g, t, &node));
    return node;
}

/* The sum of a softmax becomes a difference. The two nodes behind it are right, given that. */
static void a_plain_node(void **state)
{
    rlxvk_context *c = open_context(NULL);
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(6, 40));
    rlxvk_tensor y =
        named(g, "chances", rlxvk_softmax(g, named(g, "h", rlxvk_cumsum(g, x, 0, false)), 1));
    rlxvk_graph_output(g,
                       rlxvk_cumsum(g,
                                    rlxvk_matmul(g, y, rlxvk_transpose(g, y, (int32_t[]){1, 0}, 2)),
                                    1, false));
    rlxvk_executable *e = compile_planted(c, g, NULL, KERNEL_SOFTMAX, SpvOpFAdd, SpvOpFSub);
    judged_run(e, g, 3);
    judged_answer a = expect_blamed(e, "softmax", "chances");
    assert_int_equal(a.first.node, number_of(g, y));
    assert_string_equal(a.first.kernel, "softmax");
    assert_string_equal(a.first.written, "");
    assert_int_equal(a.first.round, 0);
    assert_int_equal(a.first.judged_count, 240);
    assert_true(a.first.index < 240 && rlxvk_shape_equal(a.first.shape, RLXVK_SHAPE(6, 40)));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

/* Two fused nodes: a product with bias and activation, and a region. */
static void a_fused_node(void **state)
{
    static const struct {
        uint16_t kernel;
        uint32_t from, to;
        const char *op, *name, *written_by;
    } rows[] = {
        {KERNEL_MATMUL_SCALAR, SpvOpFAdd, SpvOpFSub, "fused_matmul_bias_act", "hidden",
         "matmul_scalar"},
        {KERNEL_REGION_COMMON_SHORT, SpvOpFMul, SpvOpFAdd, "elementwise_region", "mixed",
         "region_common_short"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        rlxvk_context *c = open_context(NULL);
        rlxvk_graph *g = new_graph();
        rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(6, 40));
        rlxvk_tensor w = param(g, "w", RLXVK_SHAPE(40, 24)), b = param(g, "b", RLXVK_SHAPE(24));
        rlxvk_tensor h = rlxvk_relu(g, rlxvk_add(g, rlxvk_matmul(g, x, w), b));
        named(g, "hidden", h);
        rlxvk_tensor y = rlxvk_softmax(g, h, 1);
        y = named(g, "mixed", rlxvk_mul(g, rlxvk_exp(g, y), rlxvk_tanh(g, rlxvk_add(g, y, y))));
        rlxvk_graph_output(g, rlxvk_softmax(g, y, 1));
        rlxvk_executable *e = compile_planted(c, g, NULL, rows[i].kernel, rows[i].from, rows[i].to);
        judged_run(e, g, 4);
        judged_answer a = expect_blamed(e, rows[i].op, rows[i].name);
        assert_int_equal(a.first.node, number_of(g, i ? y : h));
        assert_string_equal(a.first.kernel, rows[i].written_by);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
        close_context(c);
    }
}

/* Only one variant of a product is wrong. */
static void one_variant(void **state)
{
    static const char *const variants[] = {"scalar_single", "tiled_32x32"};
    rlxvk_context *c = open_context(NULL);
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(32, 32));
    rlxvk_graph_output(g, named(g, "xw", rlxvk_matmul(g, x, param(g, "w", RLXVK_SHAPE(32, 32)))));
    for (int i = 0; i < 2; i++) {
        const rlxvk_variant v = {"matmul", variants[i]};
        const rlxvk_compile_options o = {.variants = &v, .variant_count = 1};
        rlxvk_executable *e = compile_planted(c, g, &o, KERNEL_MATMUL_TILED, SpvOpIMul, SpvOpIAdd);
        judged_run(e, g, 5);
        if (i) {
            judged_answer a = expect_blamed(e, "matmul", "xw");
            assert_string_equal(a.first.kernel, "matmul_tiled");
            assert_string_equal(a.first.variant, variants[i]);
        } else {
            judged_expect_clean(variants[i], e);
        }
        rlxvk_executable_destroy(e);
    }
    rlxvk_graph_destroy(g);
    close_context(c);
}

/* ---- One element, in place, in loops ---- */

static bool same_shape(const rlxvk_shape *inputs, size_t count, const void *attributes, size_t size,
                       rlxvk_shape *out_shape, rlxvk_dtype *out_dtype)
{
    (void)attributes, (void)size, (void)out_dtype;
    *out_shape = inputs[0];
    return count == 1;
}

static int gelu_host(const rlxvk_custom_view *inputs, size_t count, const void *attributes,
                     size_t size, const rlxvk_shape *shape, float *out)
{
    uint64_t numel = shape_numel(shape);
    (void)count, (void)attributes, (void)size;
    for (uint64_t i = 0; i < numel; i++) {
        double x = inputs[0].values[i];
        out[i] = (float)(x * 0.5 * (1 + erf(x * sqrt(0.5))));
    }
    return 0;
}

/* The embedded kernel of gelu, over as many elements fewer as the attribute says. */
static bool short_arguments(const rlxvk_custom_call *call)
{
    uint32_t missing;
    memcpy(&missing, call->attributes, sizeof missing);
    struct unary_args args = {(uint32_t)shape_numel(&call->shapes[1]) - missing, call->offsets[0],
                              call->offsets[1]};
    memcpy(call->arguments, &args, sizeof args);
    call->groups[0] = (args.numel + call->workgroup_size - 1) / call->workgroup_size;
    call->groups[1] = call->groups[2] = 1;
    return true;
}

static void register_short(void)
{
    const kernel_info *unary = kernel_find(KERNEL_UNARY);
    uint32_t *words = kernel_words(unary);
    rlxvk_custom_kernel kernel = {words, unary->word_count, unary->argument_bytes, short_arguments};
    expect_ok(rlxvk_custom_register(
        &(rlxvk_custom_op){"short", 1, same_shape, gelu_host, &kernel, NULL}));
    memory_free(words);
}

static void one_element(void **state)
{
    (void)state;
    register_short();
    for (uint32_t missing = 0; missing < 2; missing++) {
        rlxvk_graph *g = new_graph();
        rlxvk_executable *e = NULL;
        rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(3, 7, 11));
        rlxvk_tensor y = rlxvk_custom(g, "short", &x, 1, &missing, sizeof missing);
        rlxvk_graph_output(g, rlxvk_cumsum(g, named(g, "most", y), 2, false));
        expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
        judged_run(e, g, 6);
        if (missing) {
            judged_answer a = expect_blamed(e, "custom", "most");
            assert_int_equal(a.first.wrong_count, 1);
            assert_int_equal(a.first.judged_count, 3 * 7 * 11);
            assert_int_equal(a.first.index, 3 * 7 * 11 - 1);
        } else {
            judged_expect_clean("gelu", e);
        }
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

/* A wrong optimizer: the nodes blamed are its steps, in what they write. Gradients are right. */
static void what_is_written_in_place(void **state)
{
    rlxvk_context *c = open_context(NULL);
    rlxvk_graph *g = judged_training();
    (void)state;
    rlxvk_executable *e = compile_planted(c, g, NULL, KERNEL_OPTIMIZER, SpvOpFMul, SpvOpFAdd);
    judged_run(e, g, 7);
    judged_answer a = judged_ask(e);
    assert_in_range(a.count, 1, 2);
    for (size_t i = 0; i < a.count; i++) {
        assert_string_equal(a.worst[i].kernel, "optimizer");
        assert_string_equal(a.worst[i].op, "adamw");
        assert_int_equal(a.worst[i].judged_count, a.worst[i].shape.rank == 2 ? 3 * 120 : 3 * 10);
    }
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

/* Each round is judged. One entry stands for all of them. */
static void rounds_of_a_loop(void **state)
{
    rlxvk_context *c = open_context(NULL);
    rlxvk_graph *g = judged_loop();
    (void)state;
    rlxvk_executable *e = compile_planted(c, g, NULL, KERNEL_SOFTMAX, SpvOpFAdd, SpvOpFSub);
    assert_true(e->program->plan.loops.count == 1);
    judged_run(e, g, 8);
    judged_answer a = expect_blamed(e, "softmax", "");
    assert_int_equal(a.first.round, 1);
    assert_in_range(a.worst[0].round, 2, 9);
    assert_true(a.worst[0].error > a.first.error);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

/* ---- Symbols and extents ---- */

static rlxvk_graph *symbols(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(rlxvk_symbol(RLXVK_BATCH), 12));
    rlxvk_graph_output(g,
                       rlxvk_softmax(g, rlxvk_matmul(g, x, param(g, "w", RLXVK_SHAPE(12, 8))), 1));
    return g;
}

/* An executable with symbols is judged at the sizes that are bound. */
static void bound_symbols(void **state)
{
    rlxvk_context *c = open_context(NULL);
    rlxvk_graph *g = symbols();
    float x[60], w[96];
    judged_answer a;
    (void)state;
    for (int i = 0; i < 96; i++)
        w[i] = x[i % 60] = (float)(i % 11) / 8 - 0.5f;
    for (int wrong = 0; wrong < 2; wrong++) {
        rlxvk_executable *e = NULL;
        plant p;
        expect_ok(rlxvk_compile(c, g, &planted_options, &e));
        expect_ok(rlxvk_set_param(e, "w", w, 96));
        for (size_t rows = 2; rows < 6; rows += 3) {
            const rlxvk_run_input in = {"x", x, 12 * rows, RLXVK_F32};
            if (wrong)
                plant_begin(&p, KERNEL_MATMUL_SCALAR, SpvOpIMul, SpvOpIAdd);
            rlxvk_status status =
                rlxvk_first_wrong_node(e, &in, 1, &a.first, a.worst, JUDGED_MOST, &a.count);
            if (wrong)
                plant_end(&p);
            expect_ok(status);
            assert_int_equal(a.count, wrong);
            assert_int_equal(a.first.judged_count ? a.first.shape.dims[0] : 0, rows);
        }
        rlxvk_executable_destroy(e);
        rlxvk_context_destroy(c);
        c = open_context(NULL);
    }
    rlxvk_graph_destroy(g);
    close_context(c);
}

/* Rows behind the active extent hold anything, so they are not judged. */
static void inactive_rows(void **state)
{
    const rlxvk_bucket_axis axis = {"x", 0};
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(64, 40));
    rlxvk_graph_output(g,
                       rlxvk_softmax(g, rlxvk_matmul(g, x, param(g, "w", RLXVK_SHAPE(40, 24))), 1));
    exec_scratch_fill = 0x7fc00001u;
    expect_ok(rlxvk_compile(shared_context, g,
                            &(rlxvk_compile_options){.bucket_axes = &axis, .bucket_axis_count = 1},
                            &e));
    exec_scratch_fill = 0;
    expect_ok(rlxvk_set_active_extent(e, 3, 64));
    judged_run(e, g, 9);
    judged_answer a = judged_ask(e);
    judged_expect_clean("inactive rows", e);
    assert_true(a.first.judged_count == 3 * 40 || a.first.judged_count == 3 * 24);
    expect_ok(rlxvk_set_active_extent(e, 64, 64));
    judged_run(e, g, 9);
    assert_true(judged_ask(e).first.judged_count >= 64 * 24);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* Nor are the rows that a step with inactive rows would write into a cache. */
static void inactive_rows_of_a_cache(void **state)
{
    const rlxvk_bucket_axis axis = {"x", 1};
    const rlxvk_attention_step_options o = {.heads = 1, .head_dim = 4};
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(1, 512, 4));
    rlxvk_tensor keys = param(g, "keys", RLXVK_SHAPE(1, 1, 512, 4));
    rlxvk_tensor values = param(g, "values", RLXVK_SHAPE(1, 1, 512, 4));
    rlxvk_graph_output(g, rlxvk_attention_step(g, x, rlxvk_exp(g, x), rlxvk_neg(g, x), keys, values,
                                               rlxvk_scalar(g, 0), RLXVK_NONE, RLXVK_NONE, &o));
    expect_ok(rlxvk_compile(shared_context, g,
                            &(rlxvk_compile_options){.bucket_axes = &axis, .bucket_axis_count = 1},
                            &e));
    expect_ok(rlxvk_set_active_extent(e, 4, 512));
    judged_run(e, g, 10);
    judged_expect_clean("cache", e);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static uint64_t nodes_with_steps(const rlxvk_executable *e)
{
    const schedule *s = &e->program->schedule;
    uint64_t count = 0;
    for (uint32_t id = 0; id < s->graph->nodes.count; id++) {
        bool any = false;
        for (size_t i = 0; i < s->steps.count; i++)
            any = any || s->steps.items[i].node == id;
        count += any;
    }
    return count;
}

/* All nodes are judged: both of a pair, and those whose results are kept because they depend only
 * on params. */
static void all_nodes_are_judged(void **state)
{
    rlxvk_graph *g = judged_norm_pairs();
    rlxvk_executable *e = NULL;
    (void)state;
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    judged_run(e, g, 18);
    assert_true(e->program->pairs.count > 0);
    assert_int_equal(judged_ask(e).first.computed_nodes,
                     nodes_with_steps(e) + e->program->pairs.count);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);

    g = new_graph(); /* the weights are multiplied once, not in each run */
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 3, 9, 9)), v[4];
    for (int i = 0; i < 4; i++)
        v[i] = param(g, (const char *[]){"gamma", "beta", "mean", "var"}[i], RLXVK_SHAPE(4));
    rlxvk_tensor y = rlxvk_conv(g, x, param(g, "w", RLXVK_SHAPE(4, 3, 3, 3)), RLXVK_NONE, NULL);
    y = rlxvk_batch_norm_inference(g, y, v[0], v[1], v[2], v[3], 1e-5f, 1);
    rlxvk_graph_output(g, y);
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    judged_run(e, g, 19);
    rlxvk_plan_report plan;
    rlxvk_executable_plan(e, &plan);
    assert_true(plan.prepared_dispatches > 0 && plan.preparations == 1);
    assert_int_equal(judged_ask(e).first.computed_nodes, nodes_with_steps(e));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* ---- The call ---- */

/* Asking changes neither params nor random numbers nor prepared weights. */
static void the_executable_stays_as_it_is(void **state)
{
    rlxvk_graph *g = judged_training();
    rlxvk_executable *e[2] = {NULL, NULL};
    float w[2][120];
    (void)state;
    for (int i = 0; i < 2; i++) {
        expect_ok(rlxvk_compile(shared_context, g, NULL, &e[i]));
        judged_run(e[i], g, 11);
        for (int times = 0; times < 3; times++) {
            if (i)
                judged_expect_clean("training", e[i]);
            expect_ok(rlxvk_run(e[i], NULL, 0, NULL, 0));
        }
        expect_ok(rlxvk_read_param(e[i], "w", w[i], 120));
    }
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    for (int i = 0; i < 2; i++)
        rlxvk_executable_destroy(e[i]);
    rlxvk_graph_destroy(g);
}

/* Wrong nodes are sorted by their errors, as many as there is room for. */
static void the_worst_come_first(void **state)
{
    rlxvk_context *c = open_context(NULL);
    rlxvk_graph *g = new_graph();
    judged_answer a;
    rlxvk_wrong_node one;
    size_t count = 0;
    (void)state;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(6, 40));
    for (int i = 0; i < 4; i++) {
        x = rlxvk_softmax(g, x, 1);
        x = rlxvk_mul(g, x, rlxvk_scalar(g, 3 + 40.0f * (float)(i == 1)));
    }
    rlxvk_graph_output(g, x);
    rlxvk_executable *e = compile_planted(c, g, NULL, KERNEL_SOFTMAX, SpvOpFAdd, SpvOpFSub);
    judged_run(e, g, 12);
    a = judged_ask(e);
    assert_int_equal(a.count, 4);
    for (size_t i = 1; i < 4; i++)
        assert_true(a.worst[i].error <= a.worst[i - 1].error);
    for (size_t i = 0; i < 4; i++)
        assert_true(a.first.node <= a.worst[i].node && a.worst[i].found);
    expect_ok(rlxvk_first_wrong_node(e, NULL, 0, &one, NULL, 0, &count));
    assert_int_equal(count, 4);
    assert_int_equal(one.node, a.first.node);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

static void errors_are_those_of_a_run(void **state)
{
    rlxvk_graph *g = judged_graphs[0].build();
    rlxvk_executable *e = NULL;
    rlxvk_wrong_node one;
    size_t count = 0;
    float x[165] = {0};
    const rlxvk_run_input in = {"x", x, 165, RLXVK_F32}, unknown = {"z", x, 165, RLXVK_F32};
    (void)state;
    expect_ok(rlxvk_compile(shared_context, g, NULL, &e));
    expect_error(rlxvk_first_wrong_node(NULL, NULL, 0, &one, NULL, 0, &count), RLXVK_E_NULL,
                 "first_wrong_node: executable");
    expect_error(rlxvk_first_wrong_node(e, NULL, 0, NULL, NULL, 0, &count), RLXVK_E_NULL,
                 "first_wrong_node: out_node");
    expect_error(rlxvk_first_wrong_node(e, NULL, 0, &one, NULL, 2, &count), RLXVK_E_NULL,
                 "first_wrong_node: worst");
    expect_error(rlxvk_first_wrong_node(e, NULL, 0, &one, NULL, 0, NULL), RLXVK_E_NULL,
                 "first_wrong_node: out_count");
    expect_error(rlxvk_first_wrong_node(e, &in, 1, &one, NULL, 0, &count), RLXVK_E_MISSING_INPUT,
                 "input 'y' was never given");
    expect_error(rlxvk_first_wrong_node(e, &unknown, 1, &one, NULL, 0, &count),
                 RLXVK_E_UNKNOWN_NAME, "'z'");
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* ---- RLXVK_CHECK=results ---- */

static char said[16384];

static void keep_line(void *user, rlxvk_log_level level, const char *line)
{
    size_t length = strlen(said);
    (void)user;
    snprintf(said + length, sizeof said - length, "%c%s\n", level == RLXVK_LOG_INFO ? 'I' : 'W',
             line);
}

static size_t count_of(const char *part)
{
    size_t count = 0;
    for (const char *at = said; (at = strstr(at, part)); at += strlen(part))
        count++;
    return count;
}

static rlxvk_context *checking(void)
{
    rlxvk_context *c = open_context(NULL);
    c->log = (log_sink){keep_line, NULL};
    c->switches.check = CHECK_RESULTS;
    said[0] = 0;
    return c;
}

static void each_run_is_logged(void **state)
{
    rlxvk_context *c = checking();
    rlxvk_graph *g = judged_training();
    rlxvk_executable *e = NULL;
    rlxvk_step_time steps[2];
    size_t count;
    (void)state;
    expect_ok(rlxvk_compile(c, g, &(rlxvk_compile_options){.profile = RLXVK_ON}, &e));
    judged_run(e, g, 13);
    judged_run(e, g, 14);
    assert_int_equal(count_of("\n"), 2);
    assert_int_equal(count_of("Iresults: "), 2);
    assert_int_equal(count_of(" judged, all within their bounds; 0."), 2);
    assert_int_equal(count_of(" of its bound at "), 2);
    judged_expect_clean("training", e); /* logs nothing of its own */
    assert_int_equal(count_of("\n"), 2);
    expect_error(rlxvk_executable_profile(e, steps, 2, &count), RLXVK_E_UNSUPPORTED,
                 "RLXVK_CHECK=results");
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

static void wrong_nodes_are_logged(void **state)
{
    rlxvk_context *c = checking();
    rlxvk_graph *g = judged_loop();
    (void)state;
    rlxvk_executable *e = compile_planted(c, g, NULL, KERNEL_SOFTMAX, SpvOpFAdd, SpvOpFSub);
    judged_run(e, g, 15);
    assert_int_equal(count_of("\n"), 2);
    assert_int_equal(count_of("Wresults: "), 1);
    assert_int_equal(count_of(" judged, 1 outside their bounds\nW  the first, softmax"), 1);
    assert_int_equal(count_of(": kernel 'softmax', variant 'shared_words', round 1; "), 1);
    assert_int_equal(count_of(" of 12 elements; element "), 1);
    assert_int_equal(count_of(" = ["), 1);
    assert_int_equal(count_of(", expected "), 1);
    if (getenv("RLXVK_TEST_SHOW"))
        print_message("%s", said);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_node),
        cmocka_unit_test(a_fused_node),
        cmocka_unit_test(one_variant),
        cmocka_unit_test(one_element),
        cmocka_unit_test(what_is_written_in_place),
        cmocka_unit_test(rounds_of_a_loop),
        cmocka_unit_test(bound_symbols),
        cmocka_unit_test(inactive_rows),
        cmocka_unit_test(inactive_rows_of_a_cache),
        cmocka_unit_test(all_nodes_are_judged),
        cmocka_unit_test(the_executable_stays_as_it_is),
        cmocka_unit_test(the_worst_come_first),
        cmocka_unit_test(errors_are_those_of_a_run),
        cmocka_unit_test(each_run_is_logged),
        cmocka_unit_test(wrong_nodes_are_logged),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
