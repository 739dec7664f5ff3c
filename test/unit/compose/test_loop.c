/*
 * Long loops replay a recorded body. On random bodies and in all modes of execution they must give
 * the same bits as unrolled loops. Memory and the number of commands must not depend on the length.
 */
#include "op/op.h"
#include "support/harness.h"

#include <rlxvk_ops_domain.h>
#include <rlxvk_symbols.h>
#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define UNROLLED UINT64_MAX
#define REPLAYED 1

static rlxvk_graph *new_graph(uint64_t limit)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_set_unroll_limit(g, limit);
    return g;
}

static rlxvk_tensor scalar(rlxvk_graph *g, float v)
{
    return rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &v, sizeof v);
}

static uint32_t loops_of(const rlxvk_graph *g)
{
    uint32_t count = 0;
    for (uint32_t id = 0; id < g->nodes.count; id++)
        count += graph_node(g, id)->op == OP_loop_end;
    return count;
}

/* ---- Random bodies ---- */

#define ROWS    3
#define COLUMNS 4

static int64_t row_dim = ROWS; /* a symbol, if the graph is to be bound */

typedef struct dice {
    uint64_t state;
} dice;

static uint32_t roll(dice *d, uint32_t below)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(d->state >> 33) % below;
}

static rlxvk_tensor param(rlxvk_graph *g, const char *name)
{
    uint32_t id = op_find_param(g, name);
    return id != NODE_NONE ? tensor_of(g, id)
                           : rlxvk_param(g, name, RLXVK_F32, RLXVK_SHAPE(COLUMNS, COLUMNS));
}

/* A random op on the values so far. All values are 3x4, and about as large as the inputs. */
static rlxvk_tensor random_node(rlxvk_graph *g, dice *d, const rlxvk_tensor *values, size_t count)
{
    rlxvk_tensor a = values[roll(d, (uint32_t)count)], b = values[roll(d, (uint32_t)count)];
    int32_t axis = (int32_t)roll(d, 2);
    switch (roll(d, 12)) {
    case 0:
        return rlxvk_sin(g, rlxvk_add(g, a, b));
    case 1:
        return rlxvk_tanh(g, rlxvk_mul(g, a, b));
    case 2:
        return rlxvk_sub(g, a, rlxvk_reduce_mean(g, b, &axis, 1, true));
    case 3:
        return rlxvk_softmax(g, a, axis);
    case 4:
        return rlxvk_where(g, rlxvk_lt(g, a, b), a, rlxvk_neg(g, b));
    case 5:
        return rlxvk_tanh(g, rlxvk_matmul(g, a, param(g, roll(d, 2) ? "w" : "v")));
    case 6:
        return rlxvk_reverse(g, a, &axis, 1);
    case 7:
        return rlxvk_narrow(g, rlxvk_concat(g, (rlxvk_tensor[]){a, b}, 2, 0), 0, roll(d, ROWS + 1),
                            row_dim);
    case 8:
        return rlxvk_cumsum(g, rlxvk_mul(g, a, scalar(g, 0.5f)), axis, false);
    case 9:
        return rlxvk_add(g, a, rlxvk_rng_uniform_like(g, b, -1, 1, NULL));
    case 10:
        return rlxvk_reshape(g, rlxvk_reshape(g, a, RLXVK_SHAPE(2, -1)),
                             RLXVK_SHAPE(row_dim, COLUMNS));
    default:
        return rlxvk_sin(g, rlxvk_fma(g, a, b, rlxvk_add(g, a, scalar(g, 0.25f))));
    }
}

static rlxvk_tensor matrix(rlxvk_graph *g, const char *name)
{
    return rlxvk_input(g, name, RLXVK_F32, RLXVK_SHAPE(row_dim, COLUMNS));
}

typedef struct scheme {
    uint64_t seed;
    size_t broadcasts, sequences, carries;
    int64_t length, checkpoints;
    bool save, is_while, nested, random;
} scheme;

static rlxvk_tensor build_scan(rlxvk_graph *g, const scheme *s, const rlxvk_tensor *given,
                               uint64_t limit, bool inner);

/* The body does not depend on `limit`, which only decides whether loops are unrolled. */
static rlxvk_graph *make_body(const scheme *s, size_t inputs, size_t outputs, uint64_t limit,
                              bool nest)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    dice d = {s->seed * 2 + nest};
    rlxvk_graph *g = new_graph(limit);
    rlxvk_tensor values[32];
    size_t count = 0, nodes = 2 + roll(&d, 7);
    while (count < inputs) {
        values[count] = matrix(g, names[count]);
        count++;
    }
    for (size_t i = 0; i < nodes; i++, count++)
        values[count] = random_node(g, &d, values, count);
    if (nest) {
        values[count] = build_scan(g, s, values, limit, true);
        count++;
    }
    for (size_t i = 0; i < outputs; i++) /* may also be an input, or another carry */
        rlxvk_graph_output(g, values[i == 0 ? count - 1 : roll(&d, (uint32_t)count)]);
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static rlxvk_tensor build_scan(rlxvk_graph *g, const scheme *s, const rlxvk_tensor *given,
                               uint64_t limit, bool inner)
{
    rlxvk_scan_options o = {.length = s->length,
                            .broadcast_count = s->broadcasts,
                            .save_trajectory = s->save,
                            .checkpoints = s->checkpoints};
    size_t count = 1 + s->broadcasts + (inner ? 0 : s->sequences);
    if (inner)
        o = (rlxvk_scan_options){.length = 3, .broadcast_count = s->broadcasts};
    rlxvk_graph *body = make_body(s, count, 1, limit, s->nested && !inner);
    rlxvk_tensor y = rlxvk_scan(g, body, given, count, &o);
    rlxvk_graph_destroy(body);
    return y;
}

static void build_while(rlxvk_graph *g, const scheme *s, rlxvk_tensor *values, uint64_t limit)
{
    rlxvk_graph *condition = new_graph(limit);
    rlxvk_graph *body = make_body(s, s->carries, s->carries - 1, limit, s->nested);
    rlxvk_tensor i = rlxvk_input(condition, "i", RLXVK_F32, RLXVK_SCALAR);
    for (size_t k = 1; k < s->carries; k++)
        (void)matrix(condition, k == 1 ? "p" : k == 2 ? "q" : "r");
    rlxvk_graph_output(condition, rlxvk_lt(condition, i, scalar(condition, (float)s->checkpoints)));
    rlxvk_graph *counted = new_graph(limit); /* the body, with a counter as the first value */
    rlxvk_tensor in[8], out[8];
    in[0] = rlxvk_input(counted, "i", RLXVK_F32, RLXVK_SCALAR);
    for (size_t k = 1; k < s->carries; k++)
        in[k] = matrix(counted, k == 1 ? "p" : k == 2 ? "q" : "r");
    in[s->carries] = rlxvk_sin(counted, in[1]);
    rlxvk_call(counted, body, in + 1, s->carries, out, s->carries - 1);
    rlxvk_graph_output(counted, rlxvk_add(counted, in[0], scalar(counted, 1)));
    for (size_t k = 1; k < s->carries; k++)
        rlxvk_graph_output(counted, out[k - 1]);
    rlxvk_while(g, condition, counted, (uint32_t)s->length, values, s->carries, values);
    rlxvk_graph_destroy(condition);
    rlxvk_graph_destroy(counted);
    rlxvk_graph_destroy(body);
}

static rlxvk_graph *build(const scheme *s, uint64_t limit)
{
    static const char *const names[] = {"x0", "x1", "x2", "x3", "x4", "x5"};
    rlxvk_graph *g = new_graph(limit);
    rlxvk_tensor v[6];
    size_t fixed = 1 + s->broadcasts, count = fixed + s->sequences;
    for (size_t i = 0; i < 6; i++)
        v[i] = i >= fixed && i < count && !s->is_while
                   ? rlxvk_input(g, names[i], RLXVK_F32, RLXVK_SHAPE(s->length, row_dim, COLUMNS))
                   : rlxvk_mul(g, matrix(g, names[i]), scalar(g, 0.5f));
    if (s->is_while) {
        v[0] = scalar(g, 0);
        build_while(g, s, v, limit);
        for (size_t k = 0; k < s->carries; k++)
            rlxvk_graph_output(g, k % 2 ? rlxvk_add(g, v[k], v[1]) : v[k]);
    } else {
        rlxvk_tensor y = build_scan(g, s, v, limit, false);
        rlxvk_graph_output(g, rlxvk_mul(g, y, scalar(g, 2)));
        if (roll(&(dice){s->seed}, 2))
            rlxvk_graph_output(g, y);
    }
    /* A random op after the loop must get the same key as it does if the loop is unrolled. */
    rlxvk_graph_output(g, rlxvk_rng_uniform(g, RLXVK_SHAPE(2), 0, 1, NULL));
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static scheme random_scheme(uint64_t seed)
{
    static const int64_t lengths[] = {0, 1, 2, 3, 5, 8, 17};
    dice d = {seed ^ 0x9E3779B97F4A7C15u};
    scheme s = {.seed = seed, .is_while = roll(&d, 3) == 0, .nested = roll(&d, 4) == 0};
    s.broadcasts = roll(&d, 3);
    s.sequences = roll(&d, 3);
    s.carries = 2 + roll(&d, 3);
    s.length = lengths[roll(&d, 7)];
    s.save = roll(&d, 2);
    /* For a while, `checkpoints` is the round in which the condition fails. */
    s.checkpoints = s.is_while           ? roll(&d, 20)
                    : s.save && s.length ? roll(&d, (uint32_t)s.length + 1)
                                         : 0;
    return s;
}

static float *run_graph(const rlxvk_graph *g, const rlxvk_compile_options *o, uint64_t seed,
                        size_t *count)
{
    rlxvk_executable *e = NULL, *twin = NULL;
    expect_ok(rlxvk_compile(shared_context, g, o, &e));
    float *first = run_seeded(e, g, seed, false, count);
    expect_ok(rlxvk_clone(e, &twin));
    size_t again;
    float *second = run_seeded(twin, g, seed, false, &again);
    assert_int_equal(again, *count);
    assert_memory_equal(first, second, again * sizeof *first);
    free(second);
    rlxvk_executable_destroy(twin);
    rlxvk_executable_destroy(e);
    return first;
}

static void compare(const scheme *s, const char *mode, const float *want, const float *got,
                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&want[i], &got[i], sizeof *want) != 0)
            fail_msg("seed %llu, %s of length %lld: element %zu of %zu is %g, unrolled %g (%s)",
                     (unsigned long long)s->seed, s->is_while ? "while" : "scan",
                     (long long)s->length, i, count, (double)got[i], (double)want[i], mode);
}

static void check_mode(const scheme *s, const rlxvk_graph *unrolled, const rlxvk_graph *replayed,
                       const rlxvk_compile_options *o, const char *mode)
{
    size_t wanted, count;
    float *want = run_graph(unrolled, o, s->seed, &wanted);
    float *got = run_graph(replayed, o, s->seed, &count);
    assert_int_equal(count, wanted);
    compare(s, mode, want, got, count);
    free(want);
    free(got);
}

static void test_random_bodies(void **state)
{
    static const char *const rows[] = {"sin", "softmax", "matmul", "loop_update"};
    static const struct {
        const char *name;
        rlxvk_compile_options options;
    } modes[] = {
        {"default", {.check_plan = RLXVK_ON}},
        {"uncached", {.check_plan = RLXVK_ON, .cached = RLXVK_OFF}},
        {"full barriers", {.check_plan = RLXVK_ON, .full_barrier = RLXVK_ON}},
        {"no reuse", {.check_plan = RLXVK_ON, .reuse_memory = RLXVK_OFF}},
        {"program order", {.check_plan = RLXVK_ON, .reorder = RLXVK_OFF}},
        {"keep all", {.check_plan = RLXVK_ON, .keep_all = RLXVK_ON}},
        {"profiled", {.check_plan = RLXVK_ON, .profile = RLXVK_ON}},
        {"host", {.check_plan = RLXVK_ON, .force_host = RLXVK_ON}},
        {"some on the host",
         {.check_plan = RLXVK_ON, .regions = RLXVK_OFF, .host_ops = rows, .host_op_count = 4}},
    };
    uint64_t most = harness_rounds(120);
    size_t replays = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= most; seed++) {
        scheme s = random_scheme(seed);
        rlxvk_graph *unrolled = build(&s, UNROLLED), *replayed = build(&s, REPLAYED);
        assert_int_equal(loops_of(unrolled), 0);
        replays += loops_of(replayed);
        size_t mode = seed % 2 ? 0 : seed / 2 % (sizeof modes / sizeof *modes);
        check_mode(&s, unrolled, replayed, &modes[mode].options, modes[mode].name);
        rlxvk_graph_destroy(unrolled);
        rlxvk_graph_destroy(replayed);
    }
    print_message("%zu loops\n", replays);
    assert_true(replays * 2 > most);
}

/* A graph that is built with a symbol and then bound must be like a graph built with the number. */
static void test_random_bodies_with_symbols(void **state)
{
    uint64_t most = harness_rounds(30);
    size_t replays = 0;
    (void)state;
    for (uint64_t seed = 201; seed <= 200 + most; seed++) {
        scheme s = random_scheme(seed);
        rlxvk_graph *unrolled = build(&s, UNROLLED), *bound = NULL;
        row_dim = rlxvk_symbol(RLXVK_SEQ);
        rlxvk_graph *symbolic = build(&s, REPLAYED);
        row_dim = ROWS;
        expect_ok(rlxvk_graph_bind(symbolic, &(rlxvk_binding){RLXVK_SEQ, ROWS}, 1, &bound));
        assert_int_equal(loops_of(symbolic), loops_of(bound));
        replays += loops_of(bound);
        check_mode(&s, unrolled, bound, &(rlxvk_compile_options){.check_plan = RLXVK_ON}, "bound");
        rlxvk_graph_destroy(unrolled);
        rlxvk_graph_destroy(symbolic);
        rlxvk_graph_destroy(bound);
    }
    assert_true(replays * 3 > most);
}

/* ---- Any length ---- */

/* A scan that computes c + 1, which is exact in f32. */
static rlxvk_graph *counting_of(int64_t size, int64_t steps, rlxvk_scan_options o)
{
    rlxvk_graph *g = new_graph(0), *body = new_graph(0);
    rlxvk_tensor c = rlxvk_input(body, "c", RLXVK_F32, RLXVK_SHAPE(size));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(size));
    rlxvk_graph_output(body, rlxvk_add(body, c, scalar(body, 1)));
    o.length = steps;
    rlxvk_graph_output(g, rlxvk_scan(g, body, &x, 1, &o));
    rlxvk_graph_destroy(body);
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static rlxvk_graph *counting(int64_t steps, rlxvk_scan_options o)
{
    return counting_of(2, steps, o);
}

static rlxvk_executable *compile(const rlxvk_graph *g)
{
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_compile(shared_context, g,
                            &(rlxvk_compile_options){.check_plan = RLXVK_ON,
                                                     .time_runs = RLXVK_ON,
                                                     .forbid_host = RLXVK_ON},
                            &e));
    return e;
}

static void run_counting(rlxvk_executable *e, float *out, size_t count)
{
    const float x[2] = {0, 5};
    expect_ok(rlxvk_run(e, &(rlxvk_run_input){"x", x, 2, RLXVK_F32}, 1,
                        &(rlxvk_run_output){0, out, count, RLXVK_F32}, 1));
}

static rlxvk_plan_report plan_of(const rlxvk_executable *e)
{
    rlxvk_plan_report r;
    rlxvk_executable_plan(e, &r);
    return r;
}

/* Set RLXVK_TEST_LOOP_STEPS for a longer run; 1000000 takes about half a minute on a software
 * driver. */
static void test_long_loops_take_no_more(void **state)
{
    const char *given = getenv("RLXVK_TEST_LOOP_STEPS");
    int64_t steps = given ? strtoll(given, NULL, 10) : 20000;
    rlxvk_memory_report few_bytes = {.struct_size = sizeof few_bytes}, many_bytes = few_bytes;
    rlxvk_graph *few = counting(1000, (rlxvk_scan_options){0});
    rlxvk_graph *many = counting(1000000, (rlxvk_scan_options){0});
    rlxvk_graph *run = counting(steps, (rlxvk_scan_options){0});
    rlxvk_executable *a = compile(few), *b = compile(many), *c = compile(run);
    (void)state;
    rlxvk_plan_report x = plan_of(a), y = plan_of(b);
    rlxvk_executable_memory(a, &few_bytes);
    rlxvk_executable_memory(b, &many_bytes);
    assert_int_equal(few->nodes.count, many->nodes.count);
    assert_int_equal(x.dispatches, y.dispatches);
    assert_int_equal(x.segments, y.segments);
    assert_memory_equal(&few_bytes, &many_bytes, sizeof few_bytes);
    assert_int_equal(x.loops, 1);
    assert_int_equal(y.loops, 1);
    /* Three dispatches: the copy of the carry, the start of the loop's clock, and one step, which
     * does not need the clock. */
    assert_int_equal(x.dispatches, 3);
    assert_int_equal(x.executed_dispatches, 2 + 1000);
    assert_int_equal(y.executed_dispatches, 2 + 1000000);
    float out[2];
    double microseconds;
    uint64_t before = plan_of(c).submissions;
    run_counting(c, out, 2);
    assert_true(out[0] == (float)steps && out[1] == (float)(steps + 5));
    rlxvk_plan_report z = plan_of(c);
    assert_true(z.submissions > before + (steps >= 20000));
    assert_true(z.submissions <= before + z.submissions_per_run);
    expect_ok(rlxvk_executable_run_time(c, &microseconds));
    assert_true(microseconds > (double)steps * 0.01);
    rlxvk_executable_destroy(a);
    rlxvk_executable_destroy(b);
    rlxvk_executable_destroy(c);
    rlxvk_graph_destroy(few);
    rlxvk_graph_destroy(many);
    rlxvk_graph_destroy(run);
}

/* The steps are submitted in groups of rounds; the last group may be smaller. Of L steps and K
 * checkpoints, row k is that of step ceil((k + 1) L / K) - 1. */
static void test_checkpoints(void **state)
{
    static const struct {
        int64_t steps, rows;
    } cases[] = {{1024, 3}, {600, 1}, {1025, 1024}, {1000, 7}, {600, 0}, {600, 600}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t steps = cases[i].steps, rows = cases[i].rows ? cases[i].rows : steps;
        rlxvk_graph *g = counting(steps, (rlxvk_scan_options){.save_trajectory = true,
                                                              .checkpoints = cases[i].rows});
        rlxvk_executable *e = compile(g);
        float *out = malloc(2 * (size_t)rows * sizeof *out);
        assert_int_equal(plan_of(e).loops, 1);
        run_counting(e, out, 2 * (size_t)rows);
        for (int64_t k = 0; k < rows; k++) {
            int64_t t = ((k + 1) * steps + rows - 1) / rows - 1;
            assert_true(out[2 * k] == (float)(t + 1) && out[2 * k + 1] == (float)(t + 6));
        }
        free(out);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

/* ---- Whiles ---- */

/* Adds 1 to x while x < limit. If x < limit, the value of the condition is `scale`, otherwise 0. */
static rlxvk_graph *counting_while(float limit, float scale, uint32_t most)
{
    rlxvk_graph *g = new_graph(REPLAYED), *body = new_graph(0), *condition = new_graph(0);
    rlxvk_tensor c = rlxvk_input(body, "c", RLXVK_F32, RLXVK_SHAPE(2));
    rlxvk_tensor t = rlxvk_input(condition, "c", RLXVK_F32, RLXVK_SHAPE(2));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2));
    rlxvk_graph_output(body, rlxvk_add(body, c, scalar(body, 1)));
    rlxvk_tensor holds = rlxvk_lt(condition, t, scalar(condition, limit));
    rlxvk_graph_output(condition, rlxvk_where(condition, holds, scalar(condition, scale),
                                              scalar(condition, 0)));
    rlxvk_while(g, condition, body, most, &x, 1, &x);
    rlxvk_graph_output(g, x);
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(condition);
    expect_ok(rlxvk_graph_status(g));
    assert_int_equal(loops_of(g), most > 1);
    return g;
}

static void test_while_stops(void **state)
{
    /* The second element is 5 ahead of the first, so it ends the loop. */
    static const struct {
        float limit, scale;
        uint32_t most, rounds;
    } cases[] = {
        {5, 1, 5000, 0},
        {6, 1, 5000, 1},
        {5 + 100, 1, 5000, 100},
        {5 + 255, 1, 5000, 255},
        {5 + 256, 1, 5000, 256},
        {5 + 257, 1, 5000, 257},
        {5 + 3000, 1, 5000, 3000},
        {1e9f, 1, 5000, 5000},
        {1e9f, 1, 1000, 1000},
        {1e9f, 1, 256, 256},
        {1e9f, 1, 2, 2},
        {1e9f, 1, 1, 1},
        {1e9f, 1, 0, 0},
        {5 + 700, NAN, 5000, 700},
        {5 + 700, -INFINITY, 5000, 700},
        {5 + 700, 1e-45f, 5000, 0},
        {5 + 700, 0.5f, 5000, 700},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rlxvk_graph *g = counting_while(cases[i].limit, cases[i].scale, cases[i].most);
        rlxvk_executable *e = compile(g);
        float out[2];
        if (cases[i].scale > 0 && cases[i].scale < 1e-38f) /* a device may flush a denormal to 0 */
            goto next;
        for (int again = 0; again < 2; again++) {
            run_counting(e, out, 2);
            if (out[0] != (float)cases[i].rounds || out[1] != (float)(cases[i].rounds + 5))
                fail_msg("while %zu stopped after %g rounds", i, (double)out[0]);
        }
        /* After the condition has failed, the remaining rounds must not be submitted. */
        if (cases[i].most == 5000 && cases[i].rounds <= 1)
            assert_true(plan_of(e).submissions < 2 * 5);
    next:
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

/* A while must stop near its last round. If it ran on to its limit, this test would not end. */
static void test_while_of_a_billion(void **state)
{
    rlxvk_graph *g = counting_while(5 + 2000, 1, 1u << 30);
    rlxvk_executable *e = compile(g);
    float out[2];
    (void)state;
    run_counting(e, out, 2);
    assert_true(out[0] == 2000);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* A graph with a symbol in its shapes, at two sizes: the plan does not depend on the number of
 * steps. */
static void test_long_loops_of_symbols(void **state)
{
    float x[] = {0, 5, 7}, y[3];
    (void)state;
    for (int64_t steps = 1000; steps <= 1000000; steps *= 1000) {
        rlxvk_graph *g = counting_of(rlxvk_symbol(RLXVK_SEQ), steps, (rlxvk_scan_options){0});
        rlxvk_executable *e = compile(g);
        for (int64_t size = 2; size <= 3; size++) {
            expect_ok(rlxvk_bind_symbols(e, &(rlxvk_binding){RLXVK_SEQ, size}, 1));
            rlxvk_plan_report r = plan_of(e);
            assert_int_equal(r.loops, 1);
            assert_int_equal(r.dispatches, 3);
            assert_int_equal(r.executed_dispatches, 2 + steps);
            if (steps > 1000 && !getenv("RLXVK_TEST_LOOP_STEPS"))
                continue;
            expect_ok(rlxvk_run(e, &(rlxvk_run_input){"x", x, (size_t)size, RLXVK_F32}, 1,
                                &(rlxvk_run_output){0, y, (size_t)size, RLXVK_F32}, 1));
            for (int64_t i = 0; i < size; i++)
                assert_true(y[i] == x[i] + (float)steps);
        }
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

/* ---- Unrolled loops ---- */

static void test_limit(void **state)
{
    static const struct {
        uint64_t limit;
        int64_t steps;
        uint32_t loops;
    } cases[] = {{1, 0, 0},     {1, 1, 0},   {1, 2, 1},   {700, 100, 0},
                 {699, 100, 1}, {0, 585, 0}, {0, 586, 1}, {UINT64_MAX, 5000, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rlxvk_graph *g = new_graph(cases[i].limit), *body = new_graph(0);
        rlxvk_tensor c = rlxvk_input(body, "c", RLXVK_F32, RLXVK_SHAPE(2));
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2));
        rlxvk_graph_output(body, rlxvk_add(body, c, scalar(body, 1))); /* 3 nodes, 7 a step */
        (void)rlxvk_scan(g, body, &x, 1, &(rlxvk_scan_options){.length = cases[i].steps});
        expect_ok(rlxvk_graph_status(g));
        assert_int_equal(loops_of(g), cases[i].loops);
        rlxvk_graph_destroy(body);
        rlxvk_graph_destroy(g);
    }
}

/* Bodies that cannot be replayed: one writes a leaf, the other needs a check after each step. */
static void test_what_cannot_replay(void **state)
{
    rlxvk_graph *g = new_graph(REPLAYED), *body = new_graph(0), *solve = new_graph(0);
    (void)state;
    rlxvk_tensor cache = rlxvk_param(body, "cache", RLXVK_F32, RLXVK_SHAPE(1, 8, 2));
    rlxvk_tensor c = rlxvk_input(body, "c", RLXVK_F32, RLXVK_SHAPE(1, 1, 2));
    rlxvk_tensor whole = rlxvk_write_rows(body, cache, c, scalar(body, 3));
    rlxvk_graph_output(body, rlxvk_narrow(body, whole, 1, 3, 1));
    rlxvk_tensor m = rlxvk_input(solve, "m", RLXVK_F32, RLXVK_SHAPE(2, 2));
    rlxvk_graph_output(solve, rlxvk_dense_solve(solve, m, rlxvk_sin(solve, m)));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 1, 2));
    rlxvk_tensor y = rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(2, 2));
    (void)rlxvk_scan(g, body, &x, 1, &(rlxvk_scan_options){.length = 10});
    (void)rlxvk_scan(g, solve, &y, 1, &(rlxvk_scan_options){.length = 10});
    expect_ok(rlxvk_graph_status(g));
    assert_int_equal(loops_of(g), 0);
    (void)rlxvk_scan(g, body, &x, 1, &(rlxvk_scan_options){.length = 1000000});
    assert_int_equal(rlxvk_graph_status(g), RLXVK_E_TOO_LARGE);
    assert_non_null(strstr(rlxvk_graph_error(g), "write_rows"));
    rlxvk_graph_destroy(g);
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(solve);
}

/* ---- Gradients ---- */

static rlxvk_graph *gradient_graph(uint64_t limit, int64_t steps)
{
    rlxvk_graph *g = new_graph(limit), *body = new_graph(limit);
    rlxvk_tensor h = matrix(body, "h"), b = matrix(body, "b"), x = matrix(body, "x");
    rlxvk_tensor noise = rlxvk_rng_uniform_like(body, h, 0, 1, NULL);
    h = rlxvk_tanh(body, rlxvk_add(body, rlxvk_matmul(body, h, param(body, "w")),
                                   rlxvk_mul(body, x, rlxvk_mul(body, b, noise))));
    rlxvk_graph_output(body, h);
    rlxvk_tensor v[] = {matrix(g, "h"), matrix(g, "b"),
                        rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(steps, ROWS, COLUMNS))};
    rlxvk_tensor y = rlxvk_scan(g, body, v, 3,
                                &(rlxvk_scan_options){.length = steps,
                                                      .broadcast_count = 1,
                                                      .save_trajectory = true,
                                                      .checkpoints = 3});
    static const int32_t axes[] = {0, 1, 2};
    rlxvk_tensor wrt[] = {v[0], v[1], v[2], param(g, "w")}, d[4];
    rlxvk_grad(g, rlxvk_reduce_sum(g, rlxvk_mul(g, y, y), axes, 3, false), RLXVK_NONE, wrt, 4, d);
    for (size_t i = 0; i < 4 && rlxvk_graph_status(g) == RLXVK_OK; i++)
        rlxvk_graph_output(g, d[i]);
    rlxvk_graph_destroy(body);
    return g;
}

static void test_gradients(void **state)
{
    scheme s = {.seed = 7, .length = 9};
    rlxvk_graph *unrolled = gradient_graph(UNROLLED, 9), *replayed = gradient_graph(REPLAYED, 9);
    (void)state;
    expect_ok(rlxvk_graph_status(replayed));
    assert_int_equal(loops_of(replayed), 1);
    check_mode(&s, unrolled, replayed, NULL, "gradients");
    rlxvk_graph_destroy(unrolled);
    rlxvk_graph_destroy(replayed);
    rlxvk_graph *beyond = gradient_graph(REPLAYED, 200000);
    assert_int_equal(rlxvk_graph_status(beyond), RLXVK_E_UNSUPPORTED);
    assert_non_null(strstr(rlxvk_graph_error(beyond), "rlxvk_checkpoint"));
    rlxvk_graph_destroy(beyond);
}

/* ---- Runs in flight, profiles ---- */

static void test_tickets(void **state)
{
    rlxvk_graph *g = counting(3000, (rlxvk_scan_options){0});
    rlxvk_executable *e = compile(g);
    float x[2][2] = {{0, 5}, {100, 7}}, y[2][2];
    rlxvk_run_output out[2] = {{0, y[0], 2, RLXVK_F32}, {0, y[1], 2, RLXVK_F32}};
    rlxvk_ticket tickets[2];
    (void)state;
    for (int i = 0; i < 2; i++)
        expect_ok(rlxvk_submit(e, &(rlxvk_run_input){"x", x[i], 2, RLXVK_F32}, 1, &out[i], 1,
                               &tickets[i]));
    for (int i = 2; i-- > 0;)
        expect_ok(rlxvk_wait(e, tickets[i]));
    assert_true(y[0][0] == 3000 && y[0][1] == 3005 && y[1][0] == 3100 && y[1][1] == 3007);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void test_profile(void **state)
{
    rlxvk_graph *g = counting(3000, (rlxvk_scan_options){0});
    rlxvk_executable *e = NULL;
    rlxvk_step_time steps[8];
    size_t count;
    float out[2];
    (void)state;
    expect_ok(rlxvk_compile(shared_context, g, &(rlxvk_compile_options){.profile = RLXVK_ON}, &e));
    run_counting(e, out, 2);
    expect_ok(rlxvk_executable_profile(e, steps, 8, &count));
    assert_int_equal(count, 3);
    assert_int_equal(steps[0].times, 1);
    assert_int_equal(steps[2].times, 3000);
    assert_true(steps[2].microseconds > 0 && steps[2].microseconds < 1e6);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_bodies),
        cmocka_unit_test(test_random_bodies_with_symbols),
        cmocka_unit_test(test_long_loops_take_no_more),
        cmocka_unit_test(test_long_loops_of_symbols),
        cmocka_unit_test(test_checkpoints),
        cmocka_unit_test(test_while_stops),
        cmocka_unit_test(test_while_of_a_billion),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_what_cannot_replay),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_tickets),
        cmocka_unit_test(test_profile),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
