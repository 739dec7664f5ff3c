/*
 * Executables of graphs with symbols: sizes from bindings and from input lengths, programs that are
 * cached and evicted, state that moves from one binding to the next, and errors.
 */
#include "exec/carry.h"
#include "exec/cached_bindings.h"
#include "support/harness.h"
#include "support/rewritten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#define B rlxvk_symbol(RLXVK_BATCH)
#define S rlxvk_symbol(RLXVK_SEQ)

enum { WIDTH = 8, MOST = 4096 };

static float ramp[MOST];

static void fill_ramp(void)
{
    for (int i = 0; i < MOST; i++)
        ramp[i] = (float)(i % 13) / 8 - 0.5f;
}

/* softmax(x w + bias) over the last axis with x [b, s, 8], and its sum over s. */
static rlxvk_graph *model(int64_t b, int64_t s)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(b, s, WIDTH));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F16, RLXVK_SHAPE(WIDTH, WIDTH));
    rlxvk_tensor y = rlxvk_add(g, rlxvk_matmul(g, x, w), param(g, "bias", RLXVK_SHAPE(WIDTH)));
    y = rlxvk_softmax(g, y, -1);
    rlxvk_graph_output(g, y);
    rlxvk_graph_output(g, rlxvk_reduce_sum(g, y, (int32_t[]){1}, 1, false));
    rlxvk_graph_set_name(g, y, "y");
    return g;
}

static rlxvk_executable *compiled(rlxvk_graph *g, const rlxvk_compile_options *options)
{
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_compile(shared_context, g, options, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static void set_params(rlxvk_executable *e)
{
    expect_ok(rlxvk_set_param_typed(e, "w", ramp, 4 * WIDTH * WIDTH, RLXVK_F32));
    expect_ok(rlxvk_set_param(e, "bias", ramp + 5, WIDTH));
}

static rlxvk_status bind(rlxvk_executable *e, int64_t b, int64_t s)
{
    const rlxvk_binding sizes[] = {{RLXVK_BATCH, b}, {RLXVK_SEQ, s}};
    return rlxvk_bind_symbols(e, sizes, 2);
}

/* Runs x with this size and compares with an executable that was compiled for these numbers. */
static void expect_run(rlxvk_executable *e, int64_t b, int64_t s)
{
    static float got[MOST], wanted[MOST];
    size_t length = (size_t)(b * s) * WIDTH;
    rlxvk_executable *plain = compiled(model(b, s), NULL);
    rlxvk_run_input x = {"x", ramp + 3, length, RLXVK_F32};
    rlxvk_run_output out[] = {{0, got, length, RLXVK_F32}, {0, wanted, length, RLXVK_F32}};
    set_params(plain);
    expect_ok(rlxvk_run(plain, &x, 1, &out[1], 1));
    expect_ok(rlxvk_run(e, &x, 1, &out[0], 1));
    assert_memory_equal(got, wanted, length * sizeof *got);
    assert_true(rlxvk_shape_equal(rlxvk_executable_output_shape(e, 0), RLXVK_SHAPE(b, s, WIDTH)));
    rlxvk_executable_destroy(plain);
}

static rlxvk_cached_bindings_report family_of(const rlxvk_executable *e)
{
    rlxvk_cached_bindings_report report;
    rlxvk_executable_cached_bindings(e, &report);
    return report;
}

static void expect_family(const rlxvk_executable *e, uint32_t members, uint64_t hits,
                          uint64_t misses, uint64_t evictions)
{
    rlxvk_cached_bindings_report r = family_of(e);
    assert_int_equal(r.members, members);
    assert_int_equal(r.hits, hits);
    assert_int_equal(r.misses, misses);
    assert_int_equal(r.evictions, evictions);
}

/* ---- Bindings ---- */

static void every_binding_runs(void **state)
{
    rlxvk_executable *e = compiled(model(B, S), NULL);
    rlxvk_plan_report before, after;
    (void)state;
    expect_error(rlxvk_run(e, NULL, 0, NULL, 0), RLXVK_E_UNBOUND_SYMBOL, "BATCH");
    set_params(e);
    expect_ok(bind(e, 2, 5));
    expect_run(e, 2, 5);
    rlxvk_executable_plan(e, &before);
    assert_true(before.dispatches > 0);
    for (int64_t s = 1; s <= 64; s *= 8) {
        expect_ok(bind(e, 3, s));
        expect_run(e, 3, s);
    }
    expect_family(e, 4, 0, 4, 0);
    expect_ok(bind(e, 2, 5));
    expect_run(e, 2, 5); /* uses params set before the first binding */
    rlxvk_executable_plan(e, &after);
    assert_int_equal(after.runs, before.runs + 1); /* reuses the earlier program */
    expect_ok(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_SEQ, 8}, 1)); /* BATCH stays 2 */
    expect_run(e, 2, 8);
    expect_ok(bind(e, 2, 8)); /* no change */
    expect_family(e, 5, 1, 5, 0);
    rlxvk_executable_destroy(e);
}

static void the_oldest_goes_first(void **state)
{
    rlxvk_executable *e = compiled(model(B, S), &(rlxvk_compile_options){.cached_bindings = 2});
    (void)state;
    set_params(e);
    for (int64_t s = 1; s <= 3; s++)
        expect_ok(bind(e, 1, s));
    expect_family(e, 2, 0, 3, 1); /* holds 2 and 3 */
    expect_ok(bind(e, 1, 2));
    expect_family(e, 2, 1, 3, 1);
    expect_ok(bind(e, 1, 4)); /* evicts 3 */
    expect_ok(bind(e, 1, 2));
    expect_family(e, 2, 2, 4, 2);
    expect_run(e, 1, 2); /* its params are in memory that an evicted program allocated */
    expect_ok(bind(e, 1, 3));
    expect_run(e, 1, 3);
    assert_int_equal(family_of(e).capacity, 2);
    rlxvk_executable_destroy(e);
    e = compiled(model(B, S), &(rlxvk_compile_options){.cached_bindings = 1});
    set_params(e);
    for (int64_t s = 1; s <= 3; s++) {
        expect_ok(bind(e, 2, s));
        expect_run(e, 2, s);
    }
    expect_family(e, 1, 0, 3, 2);
    rlxvk_executable_destroy(e);
}

/* ---- Sizes from lengths ---- */

/* Every kind of shape: one symbol, two symbols, a square, ROWS, a sum, no symbol. */
static rlxvk_graph *many_inputs(void)
{
    static const struct {
        const char *name;
        int symbols;
    } rows[] = {{"batch", 0}, {"both", 1}, {"square", 2}, {"rows", 3}, {"sum", 4}, {"none", 5}};
    rlxvk_graph *g = new_graph();
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const rlxvk_shape shapes[] = {RLXVK_SHAPE(B, 4),
                                      RLXVK_SHAPE(B, S),
                                      RLXVK_SHAPE(rlxvk_symbol(20), 2, rlxvk_symbol(20)),
                                      RLXVK_SHAPE(rlxvk_symbol(RLXVK_ROWS), 2),
                                      RLXVK_SHAPE(rlxvk_dim_add(g, S, 3)),
                                      RLXVK_SHAPE(3)};
        rlxvk_graph_output(g, rlxvk_neg(g, input(g, rows[i].name, shapes[rows[i].symbols])));
    }
    return g;
}

static void lengths_tell_sizes(void **state)
{
    static const struct {
        size_t batch, both, square, rows, sum; /* lengths; 0: not passed */
        rlxvk_status status;
        const char *part;
        int64_t sizes[4]; /* BATCH, SEQ, S20, ROWS */
    } rows[] = {
        {8, 10, 18, 0, 0, RLXVK_OK, "", {2, 5, 3, 10}},
        {8, 10, 18, 20, 8, RLXVK_OK, "", {2, 5, 3, 10}},
        {8, 0, 18, 20, 0, RLXVK_E_UNBOUND_SYMBOL, "SEQ", {0}},
        {0, 10, 18, 20, 0, RLXVK_E_BIND_AMBIGUOUS, "'both'", {0}},
        {9, 10, 18, 20, 0, RLXVK_E_LENGTH, "'batch'", {0}},
        {8, 10, 16, 0, 0, RLXVK_E_BIND_AMBIGUOUS, "'square'", {0}},
        {8, 11, 18, 0, 0, RLXVK_E_LENGTH, "'both'", {0}},
        {8, 10, 18, 22, 0, RLXVK_E_BIND_CONFLICT, "ROWS=11", {0}},
        {8, 10, 18, 20, 9, RLXVK_E_BIND_CONFLICT, "'sum'", {0}},
        {8, 0, 18, 0, 8, RLXVK_E_BIND_AMBIGUOUS, "'sum'", {0}},
    };
    static const uint32_t ids[] = {RLXVK_BATCH, RLXVK_SEQ, 20, RLXVK_ROWS};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        rlxvk_executable *e =
            compiled(many_inputs(), &(rlxvk_compile_options){.allow_unset = RLXVK_ON});
        const size_t lengths[] = {rows[i].batch, rows[i].both, rows[i].square, rows[i].rows,
                                  rows[i].sum};
        const char *const names[] = {"batch", "both", "square", "rows", "sum"};
        rlxvk_run_input inputs[6] = {{"none", ramp, 3, RLXVK_F32}};
        rlxvk_binding sizes[4];
        size_t n = 1, count;
        for (size_t k = 5; k-- > 0;) /* the order does not matter */
            if (lengths[k])
                inputs[n++] = (rlxvk_run_input){names[k], ramp, lengths[k], RLXVK_F32};
        if (rows[i].status != RLXVK_OK) {
            expect_error(rlxvk_run(e, inputs, n, NULL, 0), rows[i].status, rows[i].part);
            assert_int_equal(family_of(e).members, 0);
        } else {
            expect_ok(rlxvk_run(e, inputs, n, NULL, 0));
            expect_ok(rlxvk_executable_symbols(e, sizes, 4, &count));
            assert_int_equal(count, 4);
            for (size_t k = 0; k < 4; k++)
                assert_int_equal(symbol_size(sizes, 4, ids[k]), rows[i].sizes[k]);
        }
        rlxvk_executable_destroy(e);
    }
}

static void lengths_change_the_binding(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_C64, RLXVK_SHAPE(S, 3));
    float got[64];
    (void)state;
    rlxvk_graph_output(g, rlxvk_complex_norm_sq(g, x));
    rlxvk_executable *e = compiled(g, NULL);
    rlxvk_run_output out = {0, got, 12, RLXVK_F32};
    rlxvk_run_input in = {"x", ramp, 24, .f32_words = true};
    expect_ok(rlxvk_run(e, &in, 1, &out, 1));
    in = (rlxvk_run_input){"x", ramp, 2 * 3, RLXVK_C64};
    out.length = 6;
    expect_ok(rlxvk_run(e, &in, 1, &out, 1));
    in = (rlxvk_run_input){"x", ramp, 24 + 1, .f32_words = true};
    expect_error(rlxvk_run(e, &in, 1, &out, 1), RLXVK_E_LENGTH, "no whole elements");
    rlxvk_run_input twice[] = {{"x", ramp, 12, RLXVK_C64}, {"x", ramp, 6, RLXVK_C64}};
    expect_error(rlxvk_run(e, twice, 2, &out, 1), RLXVK_E_BIND_CONFLICT, "'x'");
    in = (rlxvk_run_input){"z", ramp, 24, RLXVK_F32};
    expect_error(rlxvk_run(e, &in, 1, &out, 1), RLXVK_E_UNKNOWN_NAME, "'z'");
    expect_family(e, 2, 0, 2, 0);
    expect_ok(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_SEQ, 4}, 1));
    expect_error(rlxvk_run(e, NULL, 0, NULL, 0), RLXVK_E_MISSING_INPUT, "'x'");
    rlxvk_executable_destroy(e);
}

/* ---- State that moves to the next binding ---- */

static void weights_are_uploaded_once(void **state)
{
    rlxvk_executable *e = compiled(model(B, S), NULL);
    rlxvk_memory_report first, second;
    rlxvk_tensor_info params[2];
    size_t count;
    float w[WIDTH * WIDTH], bias[WIDTH];
    (void)state;
    set_params(e);
    expect_ok(bind(e, 1, 4));
    rlxvk_executable_memory(e, &first);
    assert_true(first.weight_bytes >= WIDTH * WIDTH * 2 + WIDTH * 4);
    const leaf_content *contents[] = {e->params[0].content, e->params[1].content};
    expect_ok(bind(e, 2, 9));
    rlxvk_executable_memory(e, &second);
    assert_int_equal(second.weight_bytes, 0);
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(e->params[i].content, contents[i]);
        assert_int_equal(contents[i]->version, 1); /* written once */
    }
    expect_ok(rlxvk_executable_params(e, params, 2, &count));
    assert_true(params[0].shared && params[1].shared && params[0].written);
    expect_ok(rlxvk_read_param_typed(e, "w", w, 4 * WIDTH * WIDTH, RLXVK_F32));
    assert_true(w[3] == ramp[3]);
    expect_ok(rlxvk_set_param(e, "bias", ramp + 9, WIDTH)); /* for all bindings */
    expect_ok(bind(e, 1, 4));
    expect_ok(rlxvk_read_param(e, "bias", bias, WIDTH));
    assert_memory_equal(bias, ramp + 9, sizeof bias);
    rlxvk_executable_destroy(e);
}

/* Two programs hold a param differently. It is copied to a program only if it changed in the other.
 */
static void params_held_apart_are_copied(void **state)
{
    rlxvk_executable *a = compiled(model(2, 3), NULL);
    rlxvk_graph *wide = model(2, 3);
    float w[WIDTH * WIDTH];
    (void)state;
    rlxvk_graph_output(wide, tensor_of(wide, op_find_param(wide, "w"))); /* not packed there */
    rlxvk_executable *b = compiled(wide, NULL);
    assert_int_not_equal(program_held(a->program, a->params[0].leaf->node),
                         program_held(b->program, b->params[0].leaf->node));
    set_params(a);
    expect_ok(carry_check(a, b));
    expect_ok(carry_state(a, b));
    expect_ok(rlxvk_read_param_typed(b, "w", w, 4 * WIDTH * WIDTH, RLXVK_F32));
    assert_memory_equal(w, ramp, sizeof w);
    expect_ok(rlxvk_set_param_typed(b, "w", ramp + 1, 4 * WIDTH * WIDTH, RLXVK_F32));
    expect_ok(carry_state(b, a));
    expect_ok(rlxvk_read_param_typed(a, "w", w, 4 * WIDTH * WIDTH, RLXVK_F32));
    assert_memory_equal(w, ramp + 1, sizeof w);
    a->params[0].content->version = b->params[0].content->version = 7; /* equal versions: no copy */
    expect_ok(rlxvk_set_param_typed(b, "w", ramp, 4 * WIDTH * WIDTH, RLXVK_F32));
    b->params[0].content->version = 7;
    expect_ok(carry_state(b, a));
    expect_ok(rlxvk_read_param_typed(a, "w", w, 4 * WIDTH * WIDTH, RLXVK_F32));
    assert_memory_equal(w, ramp + 1, sizeof w);
    rlxvk_executable_destroy(a);
    rlxvk_executable_destroy(b);
}

/* sum' = sum + column sums of x [s, 4]; last' = x + 2 last. */
static rlxvk_graph *adder(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(S, 4)), sum = input(g, "sum", RLXVK_SHAPE(4));
    rlxvk_tensor last = input(g, "last", RLXVK_SHAPE(S, 4));
    rlxvk_graph_output(g, rlxvk_add(g, sum, rlxvk_reduce_sum(g, x, (int32_t[]){0}, 1, false)));
    rlxvk_graph_output(g,
                       rlxvk_add(g, x, rlxvk_mul(g, last, floats(g, RLXVK_SCALAR, (float[]){2}))));
    return g;
}

static void handles_go_along(void **state)
{
    static const float ones[64] = {[0 ... 63] = 1};
    rlxvk_executable *e = compiled(adder(), NULL);
    rlxvk_run_input in[] = {{"x", ones, 8, RLXVK_F32}, {"last", ones, 8, RLXVK_F32}};
    float sum[4], last[64];
    (void)state;
    expect_error(rlxvk_bind_handle(e, "sum", ones, 4), RLXVK_E_UNBOUND_SYMBOL, "bind_handle");
    assert_false(rlxvk_has_handle(e, "sum"));
    expect_error(rlxvk_set_handle_feed(e, "none", 0), RLXVK_E_UNKNOWN_NAME, "'none'");
    expect_error(rlxvk_set_handle_feed(e, "sum", 2), RLXVK_E_INDEX, "2 of 2");
    expect_ok(rlxvk_set_handle_feed(e, "sum", 0)); /* before the first binding */
    expect_ok(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_SEQ, 2}, 1));
    expect_ok(rlxvk_bind_handle(e, "sum", ones, 4));
    expect_ok(rlxvk_run(e, in, 2, NULL, 0)); /* 1 + 2 */
    for (size_t rows = 3; rows < 6; rows++) {
        in[0].length = in[1].length = 4 * rows;
        expect_ok(rlxvk_run(e, in, 2, NULL, 0)); /* + 3 + 4 + 5 */
    }
    expect_ok(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_SEQ, 2}, 1));
    in[0].length = in[1].length = 8;
    expect_ok(rlxvk_run(e, in, 2, NULL, 0)); /* + 2 */
    expect_ok(rlxvk_read_handle(e, "sum", sum, 4));
    assert_true(sum[0] == 17 && sum[3] == 17);
    expect_ok(rlxvk_clear_handle_feed(e, "sum")); /* for all bindings */
    in[0].length = in[1].length = 12;
    expect_ok(rlxvk_run(e, in, 2, NULL, 0));
    expect_ok(rlxvk_read_handle(e, "sum", sum, 4));
    assert_true(sum[0] == 17);
    assert_true(rlxvk_has_handle(e, "sum"));

    expect_ok(rlxvk_set_handle_feed(e, "last", 1)); /* a handle of [SEQ, 4] */
    expect_ok(rlxvk_bind_handle(e, "last", ones, 12));
    expect_ok(rlxvk_run(e, in, 1, NULL, 0)); /* 3 */
    in[0].length = 8;
    expect_error(rlxvk_run(e, in, 1, NULL, 0), RLXVK_E_HANDLE_SHAPE, "'last' is a handle of 3x4");
    in[0].length = 12;
    expect_ok(rlxvk_run(e, in, 1, NULL, 0)); /* unchanged: 1 + 2 * 3 */
    expect_ok(rlxvk_read_handle(e, "last", last, 12));
    assert_true(last[0] == 7);
    expect_ok(rlxvk_unbind_handle(e, "last"));
    in[0].length = 8;
    expect_error(rlxvk_run(e, in, 1, NULL, 0), RLXVK_E_MISSING_INPUT, "'last'");
    in[1].length = 8;
    expect_ok(rlxvk_run(e, in, 2, NULL, 0));
    assert_true(rlxvk_has_handle(e, "last")); /* fed again, because all bindings have the feed */
    rlxvk_executable_destroy(e);
}

static void row_feeds_go_along(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(S, 4)), rows = input(g, "rows", RLXVK_SHAPE(8, 4));
    float got[32];
    (void)state;
    rlxvk_graph_output(g, rlxvk_neg(g, x));
    rlxvk_graph_output(g, rlxvk_neg(g, rows));
    rlxvk_executable *e = compiled(g, NULL);
    expect_ok(rlxvk_register_row_feed(e, "rows", 0));
    expect_error(rlxvk_feed_rows(e, 0, 0, 4), RLXVK_E_UNBOUND_SYMBOL, "feed_rows");
    for (size_t n = 1; n <= 3; n++) {
        rlxvk_run_input in[] = {{"x", ramp, 4 * n, RLXVK_F32}, {"rows", ramp, 32, RLXVK_F32}};
        expect_ok(rlxvk_run(e, in, n == 1 ? 2 : 1, NULL, 0));
        expect_ok(rlxvk_feed_rows(e, n - 1, 5, 4));
    }
    expect_ok(rlxvk_read_handle(e, "rows", got, 32));
    assert_memory_equal(got, ramp, 20 * sizeof *got);
    for (int i = 0; i < 4; i++)
        assert_true(got[20 + i] == -ramp[8 + i]);
    rlxvk_executable_destroy(e);
}

static void random_state_goes_along(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_rng_options rng = {.seed = 5, .advance_per_run = true};
    (void)state;
    rlxvk_graph_output(g, rlxvk_rng_uniform(g, RLXVK_SHAPE(S), 0, 1, NULL));
    rlxvk_executable *e = compiled(g, NULL);
    expect_ok(rlxvk_set_rng(e, &rng));
    for (int64_t s = 1; s <= 3; s++) {
        expect_ok(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_SEQ, s}, 1));
        expect_ok(rlxvk_run(e, NULL, 0, NULL, 0));
    }
    rlxvk_get_rng(e, &rng);
    assert_int_equal(rng.step, 3);
    assert_int_equal(rng.seed, 5);
    rlxvk_executable_destroy(e);
}

static void tickets_outlive_the_binding(void **state)
{
    rlxvk_executable *e = compiled(adder(), NULL);
    float sums[2][4];
    rlxvk_ticket tickets[2];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const rlxvk_run_input in[] = {{"x", ramp + 4, 4 * (i + 1), RLXVK_F32},
                                      {"last", ramp, 4 * (i + 1), RLXVK_F32},
                                      {"sum", ramp, 4, RLXVK_F32}};
        static rlxvk_run_output outs[2];
        outs[i] = (rlxvk_run_output){0, sums[i], 4, RLXVK_F32};
        expect_ok(rlxvk_submit(e, in, 3, &outs[i], 1, &tickets[i]));
    }
    assert_int_not_equal(tickets[0], tickets[1]);
    expect_ok(rlxvk_wait(e, tickets[1]));
    expect_ok(rlxvk_wait(e, tickets[0]));
    expect_error(rlxvk_wait(e, tickets[0]), RLXVK_E_INDEX, "no run");
    assert_true(sums[0][0] == ramp[0] + ramp[4]);
    assert_true(sums[1][0] == ramp[0] + (ramp[4] + ramp[8]));
    rlxvk_executable_destroy(e);
}

/* ---- Clones, options, reports ---- */

static void clones_go_their_own_way(void **state)
{
    rlxvk_executable *e = compiled(model(B, S), NULL), *early = NULL, *late = NULL;
    float bias[WIDTH];
    (void)state;
    set_params(e);
    expect_ok(rlxvk_clone(e, &early)); /* unbound, but its params are set */
    expect_ok(bind(e, 2, 3));
    expect_ok(bind(e, 2, 4));
    expect_ok(rlxvk_clone(e, &late));
    expect_family(late, 1, 0, 0, 0); /* the binding in force, compiled by the source */
    assert_ptr_equal(late->program, e->program);
    expect_run(late, 2, 4);
    expect_ok(bind(late, 2, 3));
    expect_run(late, 2, 3);
    expect_family(late, 2, 0, 1, 0);
    expect_ok(rlxvk_set_param(late, "bias", ramp + 11, WIDTH));
    expect_ok(rlxvk_read_param(e, "bias", bias, WIDTH));
    assert_memory_equal(bias, ramp + 5, sizeof bias);
    rlxvk_executable_destroy(e);
    expect_ok(bind(early, 1, 6));
    expect_run(early, 1, 6);
    rlxvk_executable_destroy(early);
    rlxvk_executable_destroy(late);
}

static void bindings_may_be_options(void **state)
{
    const rlxvk_binding sizes[] = {{RLXVK_BATCH, 2}, {RLXVK_SEQ, 6}, {77, 1}};
    rlxvk_compile_options all = {.bindings = sizes, .binding_count = 3};
    rlxvk_compile_options one = {.bindings = sizes, .binding_count = 1}, shared = one;
    rlxvk_executable *e = compiled(model(B, S), &all), *some = NULL, *none = NULL;
    rlxvk_graph *g = model(B, S);
    rlxvk_binding left[2];
    size_t count;
    (void)state;
    set_params(e);
    expect_run(e, 2, 6);
    expect_error(bind(e, 2, 6), RLXVK_E_UNSUPPORTED, "compiled for numbers");
    expect_ok(rlxvk_executable_symbols(e, NULL, 0, &count));
    assert_int_equal(count, 0);
    assert_int_equal(family_of(e).capacity, 0);
    some = compiled(model(B, S), &one);
    set_params(some);
    expect_ok(rlxvk_executable_symbols(some, left, 2, &count));
    assert_true(count == 1 && left[0].symbol == RLXVK_SEQ && left[0].size == -1);
    expect_run(some, 2, 7); /* one symbol: its size follows from the length */
    shared.share_with = e;  /* binds the examples first */
    expect_ok(rlxvk_compile(shared_context, g, &shared, &none));
    expect_run(none, 2, 7);
    rlxvk_executable_destroy(none);
    all.share_with = some; /* the member in force */
    expect_ok(rlxvk_compile(shared_context, g, &all, &none));
    expect_run(none, 2, 6);
    rlxvk_executable_destroy(none);
    expect_error(rlxvk_compile(shared_context, g, &(rlxvk_compile_options){.cached_bindings = 2000},
                               &none),
                 RLXVK_E_ATTR, "cached_bindings");
    rlxvk_executable_destroy(some);
    some = compiled(model(B, S), NULL);
    all.share_with = some; /* the same */
    expect_ok(rlxvk_compile(shared_context, g, &all, &none));
    set_params(none);
    expect_run(none, 2, 6);
    expect_ok(bind(some, 3, 5));
    expect_run(some, 3, 5);
    rlxvk_executable_destroy(none);
    rlxvk_executable_destroy(some);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void leaves_are_listed_with_symbols(void **state)
{
    rlxvk_executable *e = compiled(model(B, S), NULL);
    rlxvk_tensor_info infos[2];
    rlxvk_memory_report memory;
    size_t count;
    (void)state;
    for (int pass = 0; pass < 2; pass++) { /* unbound, then bound */
        expect_ok(rlxvk_executable_inputs(e, infos, 2, &count));
        assert_int_equal(count, 1);
        assert_string_equal(infos[0].name, "x");
        assert_string_equal(infos[0].shape_text, "BATCHxSEQx8");
        assert_int_equal(infos[0].shape.dims[1], S);
        expect_ok(rlxvk_executable_params(e, infos, 2, &count));
        assert_int_equal(count, 2);
        assert_string_equal(infos[0].shape_text, "8x8");
        assert_int_equal(infos[0].dtype, RLXVK_F16);
        assert_int_equal(infos[0].written, pass);
        expect_ok(rlxvk_executable_outputs(e, infos, 2, &count));
        assert_int_equal(count, 2);
        assert_string_equal(infos[0].name, "y");
        assert_string_equal(infos[1].shape_text, "BATCHx8");
        assert_int_equal(rlxvk_executable_output_count(e), 2);
        assert_int_equal(rlxvk_executable_output_dtype(e, 1), RLXVK_F32);
        assert_int_equal(rlxvk_executable_output_shape(e, 0).dims[0], pass ? 2 : B);
        rlxvk_executable_memory(e, &memory);
        assert_int_equal(memory.weight_bytes > 0, pass);
        if (pass == 0) {
            set_params(e);
            expect_ok(bind(e, 2, 4));
        }
    }
    rlxvk_executable_destroy(e);
    e = compiled(model(B, S), NULL);
    set_params(e);
    expect_ok(rlxvk_executable_params(e, infos, 2, &count));
    assert_true(infos[0].written && infos[1].written);
    rlxvk_executable_destroy(e);
}

static void params_with_symbols_belong_to_a_binding(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(S, 4)), p = param(g, "p", RLXVK_SHAPE(S, 4));
    float got[12];
    (void)state;
    rlxvk_graph_output(g, rlxvk_add(g, x, p));
    rlxvk_executable *e = compiled(g, NULL);
    rlxvk_run_input in = {"x", ramp, 8, RLXVK_F32};
    expect_error(rlxvk_set_param(e, "p", ramp, 8), RLXVK_E_UNBOUND_SYMBOL, "'p' is SEQx4");
    expect_error(rlxvk_set_param(e, "q", ramp, 8), RLXVK_E_UNKNOWN_NAME, "'q'");
    expect_ok(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_SEQ, 2}, 1));
    expect_ok(rlxvk_set_param(e, "p", ramp, 8));
    expect_ok(rlxvk_run(e, &in, 1, NULL, 0));
    in.length = 12;
    expect_error(rlxvk_run(e, &in, 1, NULL, 0), RLXVK_E_UNSET_PARAM, "'p'");
    expect_ok(rlxvk_set_param(e, "p", ramp + 1, 12));
    expect_ok(rlxvk_run(e, &in, 1, &(rlxvk_run_output){0, got, 12, RLXVK_F32}, 1));
    assert_true(got[2] == ramp[2] + ramp[3]);
    in.length = 8;
    expect_ok(rlxvk_run(e, &in, 1, &(rlxvk_run_output){0, got, 8, RLXVK_F32}, 1));
    assert_true(got[2] == ramp[2] + ramp[2]);
    rlxvk_executable_destroy(e);
}

/* Every call returns properly before there is a binding. */
static void nothing_bound_yet(void **state)
{
    rlxvk_executable *e = compiled(model(B, S), NULL);
    rlxvk_step_time step;
    rlxvk_plan_report plan;
    rlxvk_ticket ticket;
    rlxvk_bad_node bad;
    double time;
    size_t count;
    (void)state;
    expect_error(rlxvk_read_param(e, "w", ramp, 64), RLXVK_E_UNBOUND_SYMBOL, "read_param");
    expect_error(rlxvk_set_param_bytes(e, "w", ramp, 127), RLXVK_E_LENGTH, "128");
    expect_error(rlxvk_unbind_handle(e, "x"), RLXVK_E_UNBOUND_SYMBOL, "unbind");
    expect_error(rlxvk_read_handle(e, "x", ramp, 1), RLXVK_E_UNBOUND_SYMBOL, "read_handle");
    expect_error(rlxvk_read_fed_output(e, "x", ramp, 1), RLXVK_E_UNBOUND_SYMBOL, "read_fed");
    expect_error(rlxvk_read_output_row(e, 0, 0, 1, ramp), RLXVK_E_UNBOUND_SYMBOL, "row");
    expect_error(rlxvk_executable_profile(e, &step, 1, &count), RLXVK_E_UNBOUND_SYMBOL, "profile");
    expect_error(rlxvk_executable_run_time(e, &time), RLXVK_E_UNBOUND_SYMBOL, "run_time");
    expect_error(rlxvk_submit(e, NULL, 0, NULL, 0, &ticket), RLXVK_E_UNBOUND_SYMBOL, "submit");
    expect_error(rlxvk_wait(e, 1), RLXVK_E_INDEX, "no run");
    expect_error(rlxvk_first_bad_node(e, NULL, 0, &bad), RLXVK_E_UNBOUND_SYMBOL, "first_bad");
    expect_error(bind(e, 2, -1), RLXVK_E_RANGE, "SEQ");
    expect_error(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_SEQ, 3}, 1), RLXVK_E_UNBOUND_SYMBOL,
                 "BATCH");
    assert_false(rlxvk_has_handle(e, "x"));
    rlxvk_executable_plan(e, &plan);
    assert_int_equal(plan.dispatches, 0);
    fill_ramp();
    expect_ok(bind(e, 1, 2));
    expect_ok(rlxvk_first_bad_node(e, &(rlxvk_run_input){"x", ramp, 16, RLXVK_F32}, 1, &bad));
    assert_false(bad.found);
    rlxvk_executable_destroy(e);
}

/* ---- Cost, and failures ---- */

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void changing_back_costs_nothing(void **state)
{
    enum { CHANGES = 2000 };
    rlxvk_executable *e = compiled(model(B, S), NULL);
    (void)state;
    set_params(e);
    expect_ok(bind(e, 1, 16));
    expect_ok(bind(e, 1, 32));
    const rlxvk_executable *other = e->bindings->members.items[0].state;
    const program *programs[] = {e->program, other->program};
    uint64_t submissions = e->submissions + other->submissions;
    double start = now();
    for (int i = 0; i < CHANGES; i++)
        expect_ok(bind(e, 1, i % 2 ? 32 : 16));
    printf("a change to a binding kept: %.2f us\n", (now() - start) / CHANGES);
    expect_family(e, 2, CHANGES, 2, 0);
    assert_ptr_equal(e->program, programs[0]); /* neither program was made again */
    assert_ptr_equal(e->bindings->members.items[0].state->program, programs[1]);
    assert_int_equal(e->submissions + e->bindings->members.items[0].state->submissions,
                     submissions);
    assert_int_equal(e->params[0].content->version, 1);
    rlxvk_executable_destroy(e);
}

/* If an allocation fails, the binding stays as it was, and a second try succeeds. */
static void failures_change_nothing(void **state)
{
    rlxvk_executable *e = compiled(model(B, S), NULL);
    rlxvk_binding sizes[2];
    size_t count;
    int failures = 0;
    (void)state;
    set_params(e);
    expect_ok(bind(e, 2, 3));
    for (uint64_t nth = 1; nth < 3000; nth += nth < 60 ? 1 : 37) {
        memory_fail_at(nth);
        rlxvk_status status = bind(e, 2, 4);
        memory_fail_at(0);
        if (status == RLXVK_OK)
            break;
        assert_int_equal(status, RLXVK_E_OUT_OF_HOST_MEMORY);
        expect_ok(rlxvk_executable_symbols(e, sizes, 2, &count));
        assert_int_equal(symbol_size(sizes, 2, RLXVK_SEQ), 3);
        failures++;
    }
    assert_true(failures > 20);
    expect_ok(bind(e, 2, 4));
    expect_run(e, 2, 4);
    expect_ok(bind(e, 2, 3));
    expect_run(e, 2, 3);
    rlxvk_executable_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_binding_runs),
        cmocka_unit_test(the_oldest_goes_first),
        cmocka_unit_test(lengths_tell_sizes),
        cmocka_unit_test(lengths_change_the_binding),
        cmocka_unit_test(weights_are_uploaded_once),
        cmocka_unit_test(params_held_apart_are_copied),
        cmocka_unit_test(handles_go_along),
        cmocka_unit_test(row_feeds_go_along),
        cmocka_unit_test(random_state_goes_along),
        cmocka_unit_test(tickets_outlive_the_binding),
        cmocka_unit_test(clones_go_their_own_way),
        cmocka_unit_test(bindings_may_be_options),
        cmocka_unit_test(leaves_are_listed_with_symbols),
        cmocka_unit_test(params_with_symbols_belong_to_a_binding),
        cmocka_unit_test(nothing_bound_yet),
        cmocka_unit_test(changing_back_costs_nothing),
        cmocka_unit_test(failures_change_nothing),
    };
    fill_ramp();
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
