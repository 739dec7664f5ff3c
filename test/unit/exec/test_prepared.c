/*
 * Preparation: results that depend only on params are computed after a param was set, and runs skip
 * them. No run may see a prepared result of older params. The smallest example is a batch norm
 * after a convolution.
 */
#include <rlxvk_train.h>
#include "exec/executable.h"
#include "support/harness.h"
#include "support/rewritten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { CHANNELS = 3, WEIGHTS = CHANNELS * 2 * 9, IMAGE = 2 * 16, RESULT = CHANNELS * 16 };

/* w, gamma, beta, mean, var. */
enum { W, GAMMA, BETA, MEAN, VAR, PARAMS };
static const char *const names[PARAMS] = {"w", "gamma", "beta", "mean", "var"};

typedef struct content {
    float values[PARAMS][WEIGHTS];
} content;

static size_t length_of(int p)
{
    return p == W ? WEIGHTS : CHANNELS;
}

static void fill(content *c)
{
    for (int p = 0; p < PARAMS; p++)
        for (int i = 0; i < WEIGHTS; i++)
            c->values[p][i] = (float)((7 * i + 3 * p) % 11 + 1) / (p == W ? 16 : 4);
}

static void set(rlxvk_executable *e, const content *c, int p)
{
    expect_ok(rlxvk_set_param(e, names[p], c->values[p], length_of(p)));
}

static void set_all(rlxvk_executable *e, const content *c)
{
    for (int p = 0; p < PARAMS; p++)
        set(e, c, p);
}

/* Changes one param; also in the executable, if it is not NULL. */
static void change(rlxvk_executable *e, content *c, int p)
{
    for (int i = 0; i < WEIGHTS; i++)
        c->values[p][i] = 1.5f * c->values[p][i] + 0.25f;
    if (e)
        set(e, c, p);
}

/* relu(batch_norm(conv(x, w))). gamma is a param; it is also returned, so that the caller can add a
 * write to it. */
static rlxvk_tensor norm_of(rlxvk_graph *g, int64_t batch, rlxvk_tensor *out_gamma)
{
    rlxvk_conv_options around = {.padding = {1, 1}};
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(batch, 2, 4, 4)), p[PARAMS];
    p[W] = param(g, "w", RLXVK_SHAPE(CHANNELS, 2, 3, 3));
    for (int i = GAMMA; i < PARAMS; i++)
        p[i] = param(g, names[i], RLXVK_SHAPE(CHANNELS));
    *out_gamma = p[GAMMA];
    rlxvk_tensor y = rlxvk_conv(g, x, p[W], RLXVK_NONE, &around);
    return rlxvk_relu(g, rlxvk_batch_norm_inference(g, y, p[GAMMA], p[BETA], p[MEAN], p[VAR], 1e-5f,
                                                    1));
}

static rlxvk_graph *network(int64_t batch)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor gamma;
    rlxvk_graph_output(g, norm_of(g, batch, &gamma));
    return g;
}

static rlxvk_executable *compiled(rlxvk_graph *g, const rlxvk_compile_options *options)
{
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_compile(shared_context, g, options, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static const float *image(void)
{
    static float x[4 * IMAGE];
    for (int i = 0; i < 4 * IMAGE; i++)
        x[i] = (float)(i % 13 - 5) / 8;
    return x;
}

/* The expected result for these params, in double precision. */
static void reference(const content *c, int64_t batch, double *y)
{
    const float *x = image();
    for (int64_t n = 0; n < batch * RESULT; n++) {
        int64_t b = n / RESULT, k = n / 16 % CHANNELS, row = n / 4 % 4, column = n % 4;
        double sum = 0;
        for (int t = 0; t < 18; t++) {
            int64_t i = row + t / 3 % 3 - 1, j = column + t % 3 - 1;
            if (i >= 0 && i < 4 && j >= 0 && j < 4)
                sum += (double)c->values[W][k * 18 + t] *
                       (double)x[b * IMAGE + t / 9 * 16 + i * 4 + j];
        }
        sum = (sum - (double)c->values[MEAN][k]) / sqrt((double)c->values[VAR][k] + 1e-5);
        y[n] = fmax(0, sum * (double)c->values[GAMMA][k] + (double)c->values[BETA][k]);
    }
}

static void expect_values(const content *c, int64_t batch, const float *got)
{
    double wanted[4 * RESULT], most = 0;
    reference(c, batch, wanted);
    for (int64_t i = 0; i < batch * RESULT; i++) {
        most = fmax(most, wanted[i]);
        if (!(fabs((double)got[i] - wanted[i]) <= 1e-5 * (1 + wanted[i])))
            fail_msg("element %d is %g, not %g", (int)i, (double)got[i], wanted[i]);
    }
    assert_true(most > 0.5);
}

static void expect_result(rlxvk_executable *e, const content *c, int64_t batch)
{
    float y[4 * RESULT] = {0};
    rlxvk_run_input in = {"x", image(), (size_t)batch * IMAGE, RLXVK_F32};
    rlxvk_run_output out = {0, y, (size_t)batch * RESULT, RLXVK_F32};
    expect_ok(rlxvk_run(e, &in, 1, &out, 1));
    expect_values(c, batch, y);
}

static uint64_t preparations(const rlxvk_executable *e)
{
    rlxvk_plan_report r;
    rlxvk_executable_plan(e, &r);
    return r.preparations;
}

static uint32_t prepared_dispatches(const rlxvk_executable *e)
{
    rlxvk_plan_report r;
    rlxvk_executable_plan(e, &r);
    return r.prepared_dispatches;
}

/* ---- One executable ---- */

static void runs_leave_it_out(void **state)
{
    content c;
    rlxvk_executable *e = compiled(network(1), NULL);
    rlxvk_plan_report first, plan;
    rlxvk_memory_report memory;
    (void)state;
    fill(&c);
    set_all(e, &c);
    rlxvk_executable_plan(e, &first);
    for (int i = 0; i < 3; i++)
        expect_result(e, &c, 1);
    rlxvk_executable_plan(e, &plan);
    rlxvk_executable_memory(e, &memory);
    assert_int_equal(plan.dispatches, 1);
    assert_int_equal(plan.executed_dispatches, plan.dispatches);
    assert_int_equal(plan.prepared_dispatches, e->program->schedule.steps.count - 1);
    assert_in_range(plan.prepared_dispatches, 1, 3);
    assert_int_equal(plan.segments, 1);
    assert_int_equal(plan.submissions_per_run, 1);
    assert_int_equal(plan.submissions - first.submissions, 3);
    assert_int_equal(plan.preparations, 1);
    assert_in_range(memory.prepared_bytes, 2 * CHANNELS * 4, 256);
    rlxvk_executable_destroy(e);
}

static void a_set_is_seen(void **state)
{
    static const rlxvk_compile_options ways[] = {
        {.max_in_flight = 0},    {.cached = RLXVK_OFF},       {.reorder = RLXVK_OFF},
        {.regions = RLXVK_OFF},  {.reuse_memory = RLXVK_OFF}, {.profile = RLXVK_ON},
        {.time_runs = RLXVK_ON}, {.check_plan = RLXVK_ON}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        content c;
        rlxvk_executable *e = compiled(network(1), &ways[i]);
        uint64_t times = 1;
        fill(&c);
        set_all(e, &c);
        expect_result(e, &c, 1);
        assert_true(prepared_dispatches(e) > 0);
        for (int p = 0; p < PARAMS; p++) {
            change(e, &c, p);
            expect_result(e, &c, 1);
            assert_int_equal(preparations(e), times += p != W); /* nothing is prepared from w */
        }
        rlxvk_executable_destroy(e);
    }
}

/* If a param is set while a run is in flight, that run still uses the old value. */
static void tickets_keep_what_they_began_with(void **state)
{
    content before, after;
    float y[2][RESULT];
    rlxvk_ticket tickets[2];
    rlxvk_executable *e = compiled(network(1), NULL);
    rlxvk_run_input in = {"x", image(), IMAGE, RLXVK_F32};
    const rlxvk_run_output out[] = {{0, y[0], RESULT, RLXVK_F32}, {0, y[1], RESULT, RLXVK_F32}};
    (void)state;
    fill(&before);
    set_all(e, &before);
    after = before;
    for (int i = 0; i < 2; i++) {
        if (i)
            change(e, &after, GAMMA);
        expect_ok(rlxvk_submit(e, &in, 1, &out[i], 1, &tickets[i]));
    }
    for (int i = 2; i-- > 0;)
        expect_ok(rlxvk_wait(e, tickets[i]));
    expect_values(&before, 1, y[0]);
    expect_values(&after, 1, y[1]);
    rlxvk_executable_destroy(e);
}

/* If a run cannot be submitted, its preparation does not count as done. */
static void failed_runs_prepare_nothing(void **state)
{
    uint32_t failed = 0;
    (void)state;
    for (uint64_t nth = 1; nth < 6; nth++) {
        content c;
        float y[RESULT];
        rlxvk_executable *e = compiled(network(1), NULL);
        rlxvk_run_input in = {"x", image(), IMAGE, RLXVK_F32};
        rlxvk_run_output out = {0, y, RESULT, RLXVK_F32};
        fill(&c);
        set_all(e, &c);
        expect_result(e, &c, 1);
        change(e, &c, GAMMA);
        vk_hooks.fail_at = nth;
        bool fails = rlxvk_run(e, &in, 1, &out, 1) != RLXVK_OK;
        vk_hooks.fail_at = 0;
        if (!e->lost) {
            expect_result(e, &c, 1);
            failed += fails;
        }
        rlxvk_executable_destroy(e);
    }
    assert_true(failed > 0);
}

static void times_are_those_of_runs(void **state)
{
    content c;
    rlxvk_step_time steps[8];
    size_t count;
    double microseconds;
    rlxvk_executable *e = compiled(network(1), &(rlxvk_compile_options){.profile = RLXVK_ON});
    rlxvk_executable *clone = NULL;
    (void)state;
    fill(&c);
    set_all(e, &c);
    expect_result(e, &c, 1);
    expect_ok(rlxvk_clone(e, &clone)); /* the clone never prepares */
    expect_result(clone, &c, 1);
    rlxvk_executable *both[] = {e, clone};
    for (int i = 0; i < 2; i++) {
        if (!both[i]->queries)
            continue;
        expect_ok(rlxvk_executable_profile(both[i], steps, ARRAY_COUNT(steps), &count));
        assert_int_equal(count, 1 + prepared_dispatches(e));
        expect_ok(rlxvk_executable_run_time(both[i], &microseconds));
        for (size_t k = 0; k < count; k++) {
            assert_int_equal(steps[k].times, k + 1 == count);
            microseconds -= (double)steps[k].times * steps[k].microseconds;
        }
        assert_true(fabs(microseconds) < 1e-3);
    }
    rlxvk_executable_destroy(e);
    rlxvk_executable_destroy(clone);
}

/* ---- Several executables ---- */

static void a_clone_has_its_own(void **state)
{
    content c, other;
    rlxvk_executable *e = compiled(network(1), NULL), *clone = NULL;
    (void)state;
    fill(&c);
    set_all(e, &c);
    expect_ok(rlxvk_clone(e, &clone)); /* before anything was prepared */
    expect_result(clone, &c, 1);
    assert_int_equal(preparations(clone), 1);
    rlxvk_executable_destroy(clone);
    expect_result(e, &c, 1);
    expect_ok(rlxvk_clone(e, &clone));
    expect_result(clone, &c, 1);
    assert_int_equal(preparations(clone), 0);
    other = c;
    change(clone, &other, BETA);
    expect_result(clone, &other, 1);
    expect_result(e, &c, 1);
    change(e, &c, VAR);
    expect_result(e, &c, 1);
    rlxvk_executable_destroy(clone);
    expect_ok(rlxvk_set_param(e, "mean", c.values[GAMMA], CHANNELS));
    expect_ok(rlxvk_clone(e, &clone)); /* both still have to prepare */
    memcpy(c.values[MEAN], c.values[GAMMA], sizeof c.values[MEAN]);
    expect_result(clone, &c, 1);
    expect_result(e, &c, 1);
    rlxvk_executable_destroy(e);
    rlxvk_executable_destroy(clone);
}

static void sharers_see_each_others_sets(void **state)
{
    content c;
    rlxvk_executable *first = compiled(network(1), NULL);
    rlxvk_executable *second = compiled(network(2), &(rlxvk_compile_options){.share_with = first});
    (void)state;
    fill(&c);
    set_all(second, &c);
    expect_result(first, &c, 1);
    expect_result(second, &c, 2);
    for (int i = 0; i < 4; i++) {
        change(i & 1 ? first : second, &c, GAMMA + i);
        expect_result(i & 2 ? first : second, &c, i & 2 ? 1 : 2);
        expect_result(i & 2 ? second : first, &c, i & 2 ? 2 : 1);
    }
    assert_int_equal(preparations(first), 5);
    rlxvk_executable_destroy(first);
    change(second, &c, MEAN);
    expect_result(second, &c, 2);
    rlxvk_executable_destroy(second);
}

/* gamma -= gradient / 4, in place. */
static rlxvk_tensor train(rlxvk_graph *g, rlxvk_tensor gamma)
{
    rlxvk_sgd_options o = {.learning_rate = 0.25f};
    rlxvk_tensor gradient = input(g, "gradient", RLXVK_SHAPE(CHANNELS));
    rlxvk_tensor average = param(g, "average", RLXVK_SHAPE(CHANNELS));
    return rlxvk_sgd(g, gamma, gradient, average, &o, NULL, NULL);
}

static const float gradient[CHANNELS] = {-1, -2, -3};

static void descend(content *c)
{
    for (int i = 0; i < CHANNELS; i++)
        c->values[GAMMA][i] -= 0.25f * gradient[i];
}

/* An executable that writes its own params prepares nothing from them. */
static void trained_params_are_not_prepared(void **state)
{
    content c;
    rlxvk_graph *g = new_graph();
    rlxvk_tensor gamma, y = norm_of(g, 1, &gamma);
    float got[RESULT];
    rlxvk_run_input in[] = {{"x", image(), IMAGE, RLXVK_F32},
                            {"gradient", gradient, CHANNELS, RLXVK_F32}};
    rlxvk_run_output out = {0, got, RESULT, RLXVK_F32};
    (void)state;
    rlxvk_graph_output(g, y);
    rlxvk_graph_output(g, train(g, gamma));
    rlxvk_executable *e = compiled(g, &(rlxvk_compile_options){.allow_unset = RLXVK_ON});
    fill(&c);
    set_all(e, &c);
    for (int i = 0; i < 3; i++) {
        expect_ok(rlxvk_run(e, in, 2, &out, 1));
        expect_values(&c, 1, got);
        descend(&c);
    }
    assert_int_equal(prepared_dispatches(e), 0);
    rlxvk_executable_destroy(e);
}

/* If another executable writes a shared param in place, the change is seen and prepared again. */
static void steps_of_a_trainer_are_seen(void **state)
{
    content c;
    rlxvk_graph *g = new_graph();
    rlxvk_run_input in = {"gradient", gradient, CHANNELS, RLXVK_F32};
    rlxvk_executable *e = compiled(network(1), NULL);
    (void)state;
    rlxvk_graph_output(g, train(g, param(g, "gamma", RLXVK_SHAPE(CHANNELS))));
    rlxvk_compile_options sharing = {.share_with = e, .allow_unset = RLXVK_ON};
    rlxvk_executable *trainer = compiled(g, &sharing);
    fill(&c);
    set_all(e, &c);
    expect_result(e, &c, 1);
    for (int i = 0; i < 3; i++) {
        rlxvk_ticket ticket;
        expect_ok(rlxvk_submit(trainer, &in, 1, NULL, 0, &ticket));
        expect_ok(rlxvk_wait(trainer, ticket));
        descend(&c);
        expect_result(e, &c, 1);
    }
    assert_int_equal(preparations(e), 4);
    rlxvk_executable_destroy(e);
    rlxvk_executable_destroy(trainer);
}

/* Members of a family share params. Each member prepares its own results from them. */
static void members_follow_their_family(void **state)
{
    content c;
    rlxvk_executable *e = compiled(network(rlxvk_symbol(RLXVK_BATCH)), NULL);
    (void)state;
    fill(&c);
    set_all(e, &c); /* before the first binding */
    for (int64_t batch = 1; batch <= 3; batch++)
        expect_result(e, &c, batch);
    for (int p = GAMMA; p < PARAMS; p++) {
        change(e, &c, p);
        for (int64_t batch = 3; batch > 0; batch--)
            expect_result(e, &c, (batch + p) % 3 + 1);
    }
    rlxvk_executable_destroy(e);
}

/* ---- Limit of prepared bytes ---- */

enum { ROUNDS = 20 };

typedef enum packing { PRODUCT, PACKED_PRODUCT, CONVOLUTION, LOOP, RECURRENT, PACKINGS } packing;

static rlxvk_graph *convolution(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_conv_options around = {.padding = {1, 1}};
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(1, 64, 8, 8));
    rlxvk_tensor w = param(g, "w", RLXVK_SHAPE(64, 64, 3, 3));
    rlxvk_graph_output(g, rlxvk_tanh(g, rlxvk_conv(g, x, w, RLXVK_NONE, &around)));
    return g;
}

static rlxvk_graph *recurrent(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_recurrent_options o = {.hidden_size = 40};
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(8, 5, 16));
    rlxvk_tensor from_x = param(g, "from_x", RLXVK_SHAPE(4 * 40, 16));
    rlxvk_tensor from_h = param(g, "w", RLXVK_SHAPE(4 * 40, 40));
    rlxvk_tensor bias = param(g, "bias", RLXVK_SHAPE(4 * 40));
    rlxvk_graph_output(g, rlxvk_lstm(g, x, from_x, from_h, bias, RLXVK_NONE, RLXVK_NONE, &o, NULL,
                                     NULL));
    return g;
}

static rlxvk_graph *packed_product(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(320, 64));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_U8, RLXVK_SHAPE(64, 2 * 34));
    rlxvk_graph_output(g, rlxvk_dequant_matmul(g, x, w, RLXVK_Q8_0));
    return g;
}

/* Graphs that pack their weights:
 *   PRODUCT          a product on matrix units
 *   PACKED_PRODUCT   its weights are packed, and it has more rows than its kernel unpacks inside
 *   CONVOLUTION      alone, or inside a loop (LOOP)
 *   RECURRENT        a recurrent layer */
static rlxvk_graph *packing_weights(packing what)
{
    if (what == CONVOLUTION || what == RECURRENT)
        return what == RECURRENT ? recurrent() : convolution();
    if (what == PACKED_PRODUCT)
        return packed_product();
    rlxvk_graph *g = new_graph();
    if (what == PRODUCT) {
        rlxvk_graph_output(g, rlxvk_matmul(g, input(g, "x", RLXVK_SHAPE(64, 64)),
                                           param(g, "w", RLXVK_SHAPE(64, 64))));
        return g;
    }
    rlxvk_graph *body = convolution();
    rlxvk_scan_options o = {.length = ROUNDS};
    rlxvk_graph_set_unroll_limit(g, 1);
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(1, 64, 8, 8));
    rlxvk_graph_output(g, rlxvk_scan(g, body, &x, 1, &o));
    rlxvk_graph_destroy(body);
    return g;
}

static void expect_packing(packing what, rlxvk_precision precision)
{
    rlxvk_plan_report plan[3];
    rlxvk_memory_report memory;
    uint64_t hash[3];
    for (int i = 0; i < 3; i++) {
        rlxvk_graph *g = packing_weights(what);
        const rlxvk_variant packing[] = {{"conv", "packed_64x128"}, {"recurrent", "tiles_32_128"}};
        rlxvk_compile_options o = {.variants = packing,
                                   .variant_count = 2,
                                   .precision = precision,
                                   .prepared_bytes = (const uint64_t[]){0, 64, UINT64_MAX}[i],
                                   .check_plan = RLXVK_ON};
        rlxvk_executable *e = NULL;
        size_t count;
        expect_ok(rlxvk_compile(shared_context, g, &o, &e));
        for (int seed = 0; seed < 2; seed++) {
            float *y = run_seeded(e, g, (uint64_t)seed, false, &count);
            hash[i] = hash_floats(y, count);
            free(y);
        }
        rlxvk_executable_plan(e, &plan[i]);
        rlxvk_executable_memory(e, &memory);
        assert_true(memory.prepared_bytes <= o.prepared_bytes);
        assert_int_equal(hash[i], hash[0]);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
    uint32_t packs = plan[2].prepared_dispatches;
    print_message("case %d, precision %d: %u of %u dispatches prepared\n", what, precision, packs,
                  plan[0].dispatches);
    assert_true(packs || what <= PACKED_PRODUCT); /* not every device has matrix units */
    assert_int_equal(plan[0].prepared_dispatches, 0);
    assert_int_equal(plan[1].prepared_dispatches, 0);
    assert_int_equal(plan[2].dispatches, plan[0].dispatches - packs);
    assert_int_equal(plan[2].executed_dispatches,
                     plan[0].executed_dispatches - packs * (what == LOOP ? ROUNDS : 1));
    assert_int_equal(plan[2].preparations, packs ? 2 : 0);
}

static void packed_weights_are_kept(void **state)
{
    (void)state;
    for (int precision = RLXVK_PRECISION_F32; precision <= RLXVK_PRECISION_SPLIT; precision++)
        for (int what = 0; what < PACKINGS; what++)
            expect_packing((packing)what, (rlxvk_precision)precision);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_leave_it_out),
        cmocka_unit_test(a_set_is_seen),
        cmocka_unit_test(tickets_keep_what_they_began_with),
        cmocka_unit_test(failed_runs_prepare_nothing),
        cmocka_unit_test(times_are_those_of_runs),
        cmocka_unit_test(a_clone_has_its_own),
        cmocka_unit_test(sharers_see_each_others_sets),
        cmocka_unit_test(trained_params_are_not_prepared),
        cmocka_unit_test(steps_of_a_trainer_are_seen),
        cmocka_unit_test(members_follow_their_family),
        cmocka_unit_test(packed_weights_are_kept),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
