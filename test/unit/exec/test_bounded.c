/*
 * Submissions bounded by time. Work is cut into ranges of workgroups and groups of rounds, and no
 * result may change by a bit. Times depend on the machine, so the tests only print them. They check
 * what follows from the times: which submissions there are, and that they do all work exactly once.
 */
#include "exec/bounded.h"
#include "program/bound.h"
#include "program/trace.h"
#include "support/extent_check.h"
#include "support/harness.h"
#include "support/row_graph.h"

#include <rlxvk_ops_domain.h>
#include <rlxvk_symbols.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* ---- Cutting ---- */

static uint32_t roll(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* Counts the workgroups [first, end) by the boxes that launch them. */
static void count_boxes(const uint32_t grid[3], uint64_t first, uint64_t end, uint8_t *counts)
{
    uint32_t boxes = 0;
    while (first < end) {
        slice_box b;
        uint64_t taken = slice_box_at(grid, first, end, &b);
        assert_int_equal(taken, (uint64_t)b.count[0] * b.count[1] * b.count[2]);
        assert_true(taken > 0);
        for (uint32_t z = b.base[2]; z < b.base[2] + b.count[2]; z++)
            for (uint32_t y = b.base[1]; y < b.base[1] + b.count[1]; y++)
                for (uint32_t x = b.base[0]; x < b.base[0] + b.count[0]; x++) {
                    uint64_t number = x + grid[0] * (y + (uint64_t)grid[1] * z);
                    assert_true(x < grid[0] && y < grid[1] && z < grid[2]);
                    assert_true(number >= first && number < end);
                    counts[number]++;
                }
        first += taken;
        boxes++;
    }
    assert_true(boxes <= 5);
}

static void boxes_cover_a_range_once(void **state)
{
    static const uint32_t grids[][3] = {{1, 1, 1}, {7, 1, 1}, {1, 9, 1}, {1, 1, 5},
                                        {3, 4, 5}, {5, 1, 3}, {1, 6, 2}, {64, 3, 2}};
    uint32_t seed = 1;
    uint8_t counts[512];
    (void)state;
    for (int round = 0; round < 400; round++) {
        const uint32_t *grid = grids[round % (int)ARRAY_COUNT(grids)];
        uint64_t all = (uint64_t)grid[0] * grid[1] * grid[2];
        memset(counts, 0, sizeof counts);
        for (uint64_t first = 0; first < all;) {
            uint64_t end = first + 1 + roll(&seed, (uint32_t)(all - first));
            count_boxes(grid, first, end, counts);
            first = end;
        }
        for (uint64_t i = 0; i < all; i++)
            assert_int_equal(counts[i], 1);
    }
}

static void ranges_grow_by_measured_times(void **state)
{
    (void)state;
    assert_int_equal(slice_next(10, 1000, 500), 5);
    assert_int_equal(slice_next(10, 1000, 2000), 20);
    assert_int_equal(slice_next(10, 1000, 1000000), 40);
    assert_int_equal(slice_next(10, 0, 1000000), 40);
    assert_int_equal(slice_next(1, 1000, 10), 1);
}

/* Steps 0 and 3 are pieces of whole steps. Step 1 has 1000 workgroups in several pieces, and step 2
 * a single one. */
static void parts_hold_every_workgroup_once(void **state)
{
    static const uint64_t aims[] = {0, 1, 3, 10, 64, 1000, 100000};
    uint32_t seed = 3;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(aims); i++) {
        piece_list measured = {0}, packed = {0};
        slice_part_list parts = {0};
        uint64_t first = 0, ns = 0, next = 0, sum = 0;
        uint32_t at = 0;
        assert_true(VECTOR_PUSH(&measured, ((piece){.step = 0, .steps = 1, .ns = 5})));
        while (first < 1000) {
            uint64_t roll_of = 1 + roll(&seed, 300), count = MIN(roll_of, 1000 - first);
            assert_true(VECTOR_PUSH(&measured, ((piece){1, 1, first, count, count / 2})));
            first += count;
        }
        assert_true(VECTOR_PUSH(&measured, ((piece){2, 1, 0, 1, 50})));
        assert_true(VECTOR_PUSH(&measured, ((piece){.step = 3, .steps = 2, .ns = 7})));
        for (size_t k = 0; k < measured.count; k++)
            ns += measured.items[k].ns;
        expect_ok(slice_pack(&measured, aims[i], &packed, &parts));
        for (size_t k = 0; k < packed.count; k++) {
            const piece *p = &packed.items[k];
            if (p->step == 1) {
                assert_int_equal(p->first, next);
                next += p->count;
            }
            sum += p->ns;
        }
        assert_int_equal(next, 1000);
        assert_int_equal(sum, ns);
        for (size_t k = 0; k < parts.count; k++) {
            const slice_part *part = &parts.items[k];
            const piece *p = &packed.items[part->first];
            assert_int_equal(part->first, at);
            assert_true(part->count > 0);
            assert_true(aims[i] == 0 || part->ns <= aims[i] || (part->count == 1 && p->count <= 1));
            at += part->count;
        }
        assert_int_equal(at, packed.count);
        assert_int_equal(parts.count, aims[i] == 100000 ? 1 : aims[i] ? parts.count : packed.count);
        VECTOR_FREE(&measured);
        VECTOR_FREE(&packed);
        VECTOR_FREE(&parts);
    }
}

/* ---- Compiling in two ways ---- */

/* Compiles with every dispatch cut. */
static rlxvk_executable *compile_sliced(const rlxvk_graph *g, const rlxvk_compile_options *o)
{
    rlxvk_executable *e = NULL;
    shared_context->switches.sliced = true;
    rlxvk_status status = rlxvk_compile(shared_context, g, o, &e);
    shared_context->switches.sliced = false;
    expect_ok(status);
    assert_non_null(e->bounded);
    return e;
}

static rlxvk_executable *compile_plain(const rlxvk_graph *g, const rlxvk_compile_options *o)
{
    rlxvk_compile_options unbounded = o ? *o : (rlxvk_compile_options){0};
    rlxvk_executable *e = NULL;
    unbounded.struct_size = RLXVK_SIZE_OF(rlxvk_compile_options);
    unbounded.max_submission_ms = RLXVK_NO_SUBMISSION_BOUND;
    expect_ok(rlxvk_compile(shared_context, g, &unbounded, &e));
    assert_null(e->bounded);
    return e;
}

static rlxvk_plan_report report_of(const rlxvk_executable *e)
{
    rlxvk_plan_report report = RLXVK_SIZED(rlxvk_plan_report, .runs = 0);
    rlxvk_executable_plan(e, &report);
    return report;
}

/* The submissions that the dispatches of one run make if each is cut. */
static uint64_t slices_of(const rlxvk_executable *e)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < e->program->schedule.dispatches.count; i++) {
        uint64_t groups = bound_groups(&e->program->schedule.dispatches.items[i]);
        sum += divide_up(groups, divide_up(groups, 64));
    }
    return sum;
}

/* Runs both on the same leaves several times. The bits must be equal. */
static void expect_equal_runs(rlxvk_executable *a, rlxvk_executable *b, const rlxvk_graph *g,
                              int runs)
{
    for (int run = 0; run < runs; run++) {
        size_t counts[2];
        float *x = run_seeded(a, g, (uint64_t)run, false, &counts[0]);
        float *y = run_seeded(b, g, (uint64_t)run, false, &counts[1]);
        assert_int_equal(counts[0], counts[1]);
        assert_memory_equal(x, y, counts[0] * sizeof *x);
        free(x);
        free(y);
    }
}

static rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

/* ---- Long work ---- */

enum { BOUND_MS = 30 };

static double run_ms(rlxvk_executable *e, const rlxvk_graph *g, float **out, size_t *count)
{
    double begin = trace_now();
    *out = run_seeded(e, g, 7, false, count);
    return (trace_now() - begin) / 1e3;
}

/* The parts of the only segment do all workgroups once. */
static void expect_whole(const rlxvk_executable *e)
{
    const bounded_segment *s = &e->bounded->segments[program_first_segment(e->program)];
    uint64_t bound = e->program->options.submission_ns, next = 0;
    assert_true(s->measured);
    for (size_t i = 0; i < s->packed.count; i++) {
        const piece *p = &s->packed.items[i];
        uint32_t at = e->program->schedule.steps.items[p->step].dispatch;
        assert_true(p->first == 0 || p->first == next);
        next = p->first + p->count;
        if (i + 1 == s->packed.count || s->packed.items[i + 1].step != p->step)
            assert_true(!p->count ||
                        next == bound_groups(&e->program->schedule.dispatches.items[at]));
    }
    for (size_t i = 0; i < s->parts.count; i++)
        assert_true(s->parts.items[i].ns <= bound ||
                    s->packed.items[s->parts.items[i].first].count <= 1);
}

static void expect_bounded(rlxvk_graph *g, const char *what)
{
    rlxvk_compile_options o = RLXVK_SIZED(rlxvk_compile_options, .max_submission_ms = BOUND_MS);
    rlxvk_executable *plain = compile_plain(g, NULL), *e = NULL;
    float *x, *y;
    size_t count;
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    assert_non_null(e->bounded);
    double whole = run_ms(plain, g, &x, &count);
    for (int run = 0; run < 2; run++) {
        double ms = run_ms(e, g, &y, &count);
        rlxvk_plan_report r = report_of(e);
        printf("%s, run %d: %.0f ms (in one submission %.0f), %llu submissions, longest %.1f ms\n",
               what, run, ms, whole, (unsigned long long)r.run_submissions,
               r.longest_submission_ms);
        assert_memory_equal(x, y, count * sizeof *x);
        free(y);
        const bounded_segment *s = &e->bounded->segments[program_first_segment(e->program)];
        uint64_t bound = e->program->options.submission_ns;
        /* Two short parts may go together. */
        assert_true(2 * r.run_submissions >= (run ? s->parts.count : 2 * s->pieces.count));
        assert_true(e->bounded->longest_ns > bound || !run || r.run_submissions >= s->ns / bound);
        assert_true(r.longest_submission_ms > 0);
        if (run)
            assert_true(s->ns <= bound || r.run_submissions > 1);
    }
    expect_whole(e);
    free(x);
    rlxvk_executable_destroy(plain);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void long_product(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor a = rlxvk_input(g, "a", RLXVK_F32, RLXVK_SHAPE(2048, 2048));
    rlxvk_tensor b = rlxvk_input(g, "b", RLXVK_F32, RLXVK_SHAPE(2048, 2048));
    (void)state;
    rlxvk_graph_output(g, rlxvk_matmul(g, a, b));
    expect_bounded(g, "product 2048 x 2048 x 2048");
}

static void long_convolution(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(1, 64, 192, 192));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(96, 64, 3, 3));
    (void)state;
    rlxvk_conv_options around = {.padding = {1, 1}};
    rlxvk_graph_output(g, rlxvk_relu(g, rlxvk_conv(g, x, w, RLXVK_NONE, &around)));
    expect_bounded(g, "convolution 64 to 96 of 192 x 192");
}

/* Short work has no state of measuring, and a run submits what it did before. */
static void short_work_is_not_measured(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(16));
    rlxvk_compile_options o = RLXVK_SIZED(rlxvk_compile_options, .max_submission_ms = 500);
    rlxvk_executable *e = NULL;
    size_t count;
    (void)state;
    rlxvk_graph_output(g, rlxvk_softmax(g, x, 0));
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    assert_null(e->bounded);
    assert_null(e->program->ranges);
    free(run_seeded(e, g, 1, false, &count));
    assert_int_equal(report_of(e).run_submissions, 1);
    assert_true(report_of(e).longest_submission_ms == 0);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void bounds_by_option(void **state)
{
    static const struct {
        uint64_t given, ns;
    } rows[] = {{1, 1000000},
                {500, 500000000},
                {RLXVK_NO_SUBMISSION_BOUND, 0},
                {UINT64_MAX / 1000, 0}};
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_graph_output(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4)));
    for (size_t i = 0; i <= ARRAY_COUNT(rows); i++) {
        uint64_t given = i < ARRAY_COUNT(rows) ? rows[i].given : 0;
        rlxvk_compile_options o = RLXVK_SIZED(rlxvk_compile_options, .max_submission_ms = given);
        bool *may_display = &shared_context->device->setup.may_display, was = *may_display;
        for (int displays = 0; displays < 2; displays++) {
            program_options out;
            *may_display = displays;
            rlxvk_status status = options_resolve(shared_context, &o, &out);
            *may_display = was;
            expect_ok(status);
            assert_int_equal(out.submission_ns, given ? rows[i].ns : displays ? 500000000 : 0);
        }
    }
    rlxvk_graph_destroy(g);
}

/* ---- Everything is cut ---- */

/* Kernels that number their workgroups by the grid, in one and in three dimensions. */
static void numbers_of_workgroups(void **state)
{
    device_profile *profile = &shared_context->device->setup.profile;
    uint32_t most = profile->max_group_count[0];
    (void)state;
    for (int folded = 0; folded < 2; folded++) {
        rlxvk_graph *g = new_graph();
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(40, 300));
        rlxvk_tensor y = rlxvk_softmax(g, rlxvk_cumsum(g, rlxvk_sin(g, x), 1, false), -1);
        rlxvk_graph_output(g, rlxvk_matmul(g, y, rlxvk_transpose(g, y, (int32_t[]){1, 0}, 2)));
        rlxvk_graph_output(g, rlxvk_add(g, y, x));
        profile->max_group_count[0] = folded ? 3 : most;
        rlxvk_executable *plain = compile_plain(g, NULL), *e = compile_sliced(g, NULL);
        profile->max_group_count[0] = most;
        uint32_t cut = 0;
        for (size_t i = 0; i < e->program->schedule.dispatches.count; i++)
            cut += e->program->ranges && e->program->ranges[i] != NULL;
        assert_true(cut >= 3);
        expect_equal_runs(plain, e, g, 2);
        assert_true(report_of(e).run_submissions >= slices_of(e));
        rlxvk_executable_destroy(plain);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

/* A permuted order computes with the number of workgroups of the whole grid. */
static void permuted_invocations(void **state)
{
    static const unsigned orders[] = {INVOCATIONS_REVERSED, INVOCATIONS_PERMUTED};
    device *d = shared_context->device;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(orders); i++) {
        rlxvk_context *c = open_context(NULL);
        rlxvk_graph *g = new_graph();
        rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(40, 300));
        rlxvk_executable *plain, *e = NULL;
        rlxvk_graph_output(g, rlxvk_cumsum(g, rlxvk_sin(g, x), 1, false));
        plain = compile_plain(g, NULL);
        c->device->invocations = (invocation_choice){orders[i], 7};
        c->switches.sliced = true;
        expect_ok(rlxvk_compile(c, g, NULL, &e));
        assert_true(pipeline_count_permuted(c->device) > 0);
        expect_equal_runs(plain, e, g, 2);
        rlxvk_executable_destroy(plain);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
        close_context(c);
    }
    assert_int_equal(d->invocations.order, INVOCATIONS_IN_ORDER);
}

/* ---- Loops ---- */

enum { SIDE = 96 };

/* y = softmax(y w), in a loop of its own if `inner`. */
static rlxvk_graph *round_of(uint32_t inner)
{
    rlxvk_graph *g = new_graph();
    rlxvk_graph_set_unroll_limit(g, 1);
    rlxvk_tensor y = rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(SIDE, SIDE));
    rlxvk_tensor w = rlxvk_input(g, "w", RLXVK_F32, RLXVK_SHAPE(SIDE, SIDE));
    if (inner) {
        rlxvk_graph *body = round_of(0);
        y = rlxvk_scan(g, body, (rlxvk_tensor[]){rlxvk_sin(g, y), w}, 2,
                       &(rlxvk_scan_options){.length = inner, .broadcast_count = 1});
        rlxvk_graph_destroy(body);
    }
    rlxvk_graph_output(g, rlxvk_softmax(g, rlxvk_matmul(g, y, w), -1));
    return g;
}

static rlxvk_graph *scan_graph(uint32_t rounds, uint32_t inner)
{
    rlxvk_graph *g = new_graph(), *body = round_of(inner);
    rlxvk_graph_set_unroll_limit(g, 1);
    rlxvk_tensor y = rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(SIDE, SIDE));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(SIDE, SIDE));
    rlxvk_graph_output(g,
                       rlxvk_scan(g, body, (rlxvk_tensor[]){y, w}, 2,
                                  &(rlxvk_scan_options){.length = rounds, .broadcast_count = 1}));
    rlxvk_graph_destroy(body);
    return g;
}

/* Doubles y while its sum is below 2^20, at most `rounds` times. */
static rlxvk_graph *while_graph(uint32_t rounds)
{
    rlxvk_graph *g = new_graph(), *body = new_graph(), *condition = new_graph();
    float two = 2, most = 1 << 20;
    rlxvk_graph_set_unroll_limit(g, 1);
    rlxvk_tensor y = rlxvk_input(body, "y", RLXVK_F32, RLXVK_SHAPE(600));
    rlxvk_graph_output(body,
                       rlxvk_mul(body, y, rlxvk_constant(body, RLXVK_F32, RLXVK_SCALAR, &two, 4)));
    y = rlxvk_abs(condition, rlxvk_input(condition, "y", RLXVK_F32, RLXVK_SHAPE(600)));
    rlxvk_tensor limit = rlxvk_constant(condition, RLXVK_F32, RLXVK_SCALAR, &most, 4);
    rlxvk_graph_output(condition,
                       rlxvk_lt(condition, rlxvk_reduce_sum(condition, y, (int32_t[]){0}, 1, false),
                                limit));
    y = rlxvk_input(g, "y", RLXVK_F32, RLXVK_SHAPE(600));
    rlxvk_while(g, condition, body, rounds, &y, 1, &y);
    rlxvk_graph_output(g, y);
    rlxvk_graph_destroy(condition);
    rlxvk_graph_destroy(body);
    return g;
}

static void loops_that_are_cut(void **state)
{
    (void)state;
    for (int k = 0; k < 5; k++) {
        rlxvk_graph *g = k == 4 ? while_graph(50) : scan_graph(k == 3 ? 3 : 11, k == 3 ? 4 : 0);
        rlxvk_compile_options o = {.cached = k == 1 ? RLXVK_OFF : RLXVK_DEFAULT};
        host_rows room;
        force_host(&o, k == 2 ? "softmax" : NULL, &room);
        rlxvk_executable *plain = compile_plain(g, &o), *e = compile_sliced(g, &o);
        assert_true(e->program->plan.loops.count > 0);
        expect_equal_runs(plain, e, g, 3);
        assert_true(report_of(e).run_submissions > report_of(plain).run_submissions);
        rlxvk_executable_destroy(plain);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

/* A loop in groups of rounds. If a group takes longer than the bound, it gets fewer rounds. */
static void rounds_that_are_bounded(void **state)
{
    rlxvk_graph *g = scan_graph(203, 0);
    rlxvk_compile_options o = RLXVK_SIZED(rlxvk_compile_options, .max_submission_ms = 10);
    rlxvk_executable *plain = compile_plain(g, NULL), *e = NULL;
    (void)state;
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    assert_non_null(e->bounded);
    expect_equal_runs(plain, e, g, 3);
    uint32_t loop = e->program->plan.loops.items[0].first;
    bounded_segment *s = &e->bounded->segments[loop];
    uint32_t planned = e->program->plan.segments.items[loop].rounds;
    assert_true(planned > 100);
    rlxvk_plan_report r = report_of(e);
    printf("loop: %.2f ms a round, %u of %u rounds a submission, %llu submissions, longest %.1f "
           "ms\n",
           (double)s->ns * 1e-6, s->rounds, planned, (unsigned long long)r.run_submissions,
           r.longest_submission_ms);
    assert_true(s->measured);
    assert_true(s->rounds == 1 || s->ns * s->rounds <= 10000000);
    if (s->ns * planned > 10000000) {
        assert_true(s->rounds < planned);
        assert_true(r.run_submissions >= 203 / s->rounds / 2);
    }
    /* The same with times that this machine may not have: the rounds of a group become 1 to 40. */
    for (uint64_t ms = 1; ms < 10; ms += 4) {
        rlxvk_executable *copy = NULL;
        s->pieces.items[0].ns = ms * 175000;
        for (size_t i = 1; i < s->pieces.count; i++)
            s->pieces.items[i].ns = 0;
        expect_ok(rlxvk_clone(e, &copy));
        assert_int_equal(copy->bounded->segments[loop].rounds, 40 / ms);
        expect_equal_runs(plain, copy, g, 2);
        rlxvk_executable_destroy(copy);
    }
    rlxvk_executable_destroy(plain);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* ---- What an executable can do ---- */

/* y = softmax(x w) + x; the input x has a handle that y feeds. */
static rlxvk_graph *fed_graph(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(SIDE, SIDE));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(SIDE, SIDE));
    rlxvk_graph_output(g, rlxvk_add(g, rlxvk_softmax(g, rlxvk_matmul(g, x, w), -1), x));
    return g;
}

static void fill(float *values, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)roll(&seed, 2001) / 1000 - 1;
}

static void feeds_and_clones(void **state)
{
    static float x[SIDE * SIDE], w[SIDE * SIDE], y[2][SIDE * SIDE];
    rlxvk_graph *g = fed_graph();
    rlxvk_executable *e[2] = {compile_plain(g, NULL), compile_sliced(g, NULL)}, *copy = NULL;
    (void)state;
    fill(x, ARRAY_COUNT(x), 1);
    fill(w, ARRAY_COUNT(w), 2);
    for (int k = 0; k < 2; k++) {
        expect_ok(rlxvk_set_param(e[k], "w", w, ARRAY_COUNT(w)));
        expect_ok(rlxvk_bind_handle(e[k], "x", x, ARRAY_COUNT(x)));
        expect_ok(rlxvk_set_handle_feed(e[k], "x", 0));
    }
    for (int run = 0; run < 6; run++) {
        for (int k = 0; k < 2; k++) {
            rlxvk_run_output out = {0, y[k], ARRAY_COUNT(y[k]), RLXVK_F32};
            expect_ok(rlxvk_run(e[k], NULL, 0, &out, 1));
        }
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        if (run != 2)
            continue;
        expect_ok(rlxvk_clone(e[1], &copy)); /* it takes over times, and measures none */
        assert_true(copy->bounded->segments[0].measured);
        assert_int_equal(copy->bounded->segments[0].parts.count,
                         e[1]->bounded->segments[0].parts.count);
        rlxvk_executable_destroy(e[1]);
        e[1] = copy;
    }
    rlxvk_executable_destroy(e[0]);
    rlxvk_executable_destroy(e[1]);
    rlxvk_graph_destroy(g);
}

/* Runs in flight have inputs of their own. The first of them measures. */
static void tickets_in_flight(void **state)
{
    enum { FLIGHTS = 4 };
    static float x[FLIGHTS][SIDE * SIDE], w[SIDE * SIDE], y[2][FLIGHTS][SIDE * SIDE];
    rlxvk_graph *g = fed_graph();
    rlxvk_compile_options o = {.max_in_flight = FLIGHTS};
    rlxvk_executable *e[2] = {compile_plain(g, &o), compile_sliced(g, &o)};
    (void)state;
    fill(w, ARRAY_COUNT(w), 2);
    for (int k = 0; k < 2; k++)
        expect_ok(rlxvk_set_param(e[k], "w", w, ARRAY_COUNT(w)));
    for (uint32_t round = 0; round < 3; round++) {
        for (int k = 0; k < 2; k++) {
            rlxvk_ticket tickets[FLIGHTS];
            rlxvk_run_output outs[FLIGHTS]; /* needed until the wait */
            for (uint32_t i = 0; i < FLIGHTS; i++) {
                rlxvk_run_input in = {"x", x[i], SIDE * SIDE, RLXVK_F32};
                outs[i] = (rlxvk_run_output){0, y[k][i], SIDE * SIDE, RLXVK_F32};
                fill(x[i], SIDE * SIDE, round * FLIGHTS + i);
                expect_ok(rlxvk_submit(e[k], &in, 1, &outs[i], 1, &tickets[i]));
            }
            for (uint32_t i = 0; i < FLIGHTS; i++)
                expect_ok(rlxvk_wait(e[k], tickets[i]));
        }
        assert_memory_equal(y[0], y[1], sizeof y[0]);
    }
    rlxvk_executable_destroy(e[0]);
    rlxvk_executable_destroy(e[1]);
    rlxvk_graph_destroy(g);
}

/* Weights that are laid out anew once are part of the measured work. */
static void prepared_weights(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_compile_options o = {.prepared_bytes = UINT64_MAX};
    rlxvk_conv_options around = {.padding = {1, 1}};
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(2, 32, 20, 20));
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32, RLXVK_SHAPE(32, 32, 3, 3)), p[4];
    static const char *const names[] = {"gamma", "beta", "mean", "var"};
    (void)state;
    for (int i = 0; i < 4; i++)
        p[i] = rlxvk_param(g, names[i], RLXVK_F32, RLXVK_SHAPE(32));
    rlxvk_tensor y = rlxvk_conv(g, x, w, RLXVK_NONE, &around);
    rlxvk_graph_output(g, rlxvk_batch_norm_inference(g, y, p[0], p[1], p[2], p[3], 2, 1));
    rlxvk_executable *plain = compile_plain(g, &o), *e = compile_sliced(g, &o);
    assert_true(e->program->schedule.prepared > 0);
    expect_equal_runs(plain, e, g, 3);
    assert_true(e->bounded->segments[0].measured);
    rlxvk_executable_destroy(plain);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* The timestamps of cut steps are written by the submissions that begin and end them. */
static void timestamps(void **state)
{
    rlxvk_graph *g = fed_graph();
    (void)state;
    for (int profiled = 0; profiled < 2; profiled++) {
        rlxvk_compile_options o = {.profile = profiled ? RLXVK_ON : RLXVK_OFF,
                                   .time_runs = RLXVK_ON};
        rlxvk_executable *e = compile_sliced(g, &o);
        rlxvk_step_time times[8];
        size_t count;
        for (int run = 0; run < 3 && e->queries; run++) {
            double whole, sum = 0;
            free(run_seeded(e, g, 1, false, &count));
            expect_ok(rlxvk_executable_run_time(e, &whole));
            assert_true(whole > 0);
            if (!profiled)
                continue;
            expect_ok(rlxvk_executable_profile(e, times, ARRAY_COUNT(times), &count));
            for (size_t i = 0; i < count; i++) {
                assert_true(times[i].microseconds > 0);
                sum += times[i].microseconds;
            }
            assert_true(fabs(sum - whole) <= 1e-6 * whole);
        }
        rlxvk_executable_destroy(e);
    }
    rlxvk_graph_destroy(g);
}

/* Under an extent, dispatches that launch fewer workgroups are whole. The first run after each
 * change that asks for it measures again. */
static void active_extents(void **state)
{
    enum { ROWS = 512 };
    static const rlxvk_bucket_axis axes[] = {{"x", 0, false}};
    static const int64_t actual[] = {0, 64, 70, 300, 256, 0, 512};
    rlxvk_compile_options o = {.bucket_axes = axes, .bucket_axis_count = 1};
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(ROWS, ROW_GRAPH_WIDTH));
    (void)state;
    for (uint32_t k = 0; k < 2; k++)
        x = row_graph_rule(g, 7, row_graph_rule(g, 4, x, x, x), x, x); /* norm, mlp */
    rlxvk_graph_output(g, x);
    rlxvk_executable *plain = compile_plain(g, &o), *e = compile_sliced(g, &o);
    assert_true(e->program->extent.scaled_count > 0);
    extent_set_params(plain);
    extent_set_params(e);
    for (size_t i = 0; i < ARRAY_COUNT(actual); i++) {
        static const bool anew[] = {true, true, false, true, false, true, true};
        size_t active = (size_t)(actual[i] ? actual[i] : ROWS) * ROW_GRAPH_WIDTH;
        float *y[2][1];
        for (int k = 0; k < 2; k++) {
            rlxvk_executable *at = k ? e : plain;
            if (actual[i])
                expect_ok(rlxvk_set_active_extent(at, actual[i], ROWS));
            else
                expect_ok(rlxvk_clear_active_extent(at));
        }
        for (int run = 0; run < 2; run++) {
            assert_int_equal(e->bounded->segments[0].measured, run || !anew[i]);
            extent_run(plain, i, 0, y[0]);
            extent_run(e, i, 0, y[1]);
            assert_memory_equal(y[0][0], y[1][0], active * 4);
            free(y[0][0]);
            free(y[1][0]);
        }
        for (size_t k = 0; k < e->bounded->segments[0].pieces.count; k++)
            assert_true(actual[i] == 0 || !e->bounded->segments[0].pieces.items[k].count ||
                        e->program->extent.scaled_count < e->program->schedule.dispatches.count);
    }
    rlxvk_executable_destroy(plain);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* The cycle of the only dispatch; 0: it is not launched in cycles. */
static uint32_t cycle_of(const rlxvk_executable *e)
{
    assert_int_equal(e->program->schedule.dispatches.count, 1);
    return e->program->extent.groups[0].cycle;
}

/* Without an active extent, a dispatch that launches fewer workgroups under one is cut, too. Its
 * workgroups are then numbered in the grid of the whole dispatch, not in that of the extent. */
static void ranges_of_folded_extents(void **state)
{
    static const rlxvk_bucket_axis axes[] = {{"x", 1, false}};
    rlxvk_compile_options o = {.bucket_axes = axes, .bucket_axis_count = 1};
    uint32_t *most = &shared_context->device->setup.profile.max_group_count[0], before = *most;
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_graph_output(g, rlxvk_softmax(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(5, 256, 40)),
                                        -1));
    rlxvk_executable *plain = compile_plain(g, &o);
    uint32_t cycle = cycle_of(plain), row = 5 * cycle / 2;
    assert_true(cycle > 0);
    *most = row; /* the whole grid has two rows, which are longer than a cycle */
    rlxvk_executable *e = compile_sliced(g, &o);
    *most = before;
    assert_int_equal(cycle_of(e), cycle);
    assert_int_equal(e->program->schedule.dispatches.items[0].groups[0], row);
    assert_non_null(e->program->ranges[0]);
    expect_equal_runs(plain, e, g, 2);
    rlxvk_executable_destroy(plain);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* Steps that were measured together and were too long are measured one by one in the next run. The
 * bound is what the estimate of two steps says, and a submission alone may take longer. */
static void doubts_of_the_estimate(void **state)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4, 16));
    size_t count;
    bool doubted = false;
    (void)state;
    for (int i = 0; i < 4; i++)
        x = rlxvk_softmax(g, x, i % 2);
    rlxvk_graph_output(g, x);
    rlxvk_executable *e = compile_sliced(g, NULL);
    bounded_segment *s = &e->bounded->segments[0];
    program_options *o = &e->program->options;
    size_t dispatches = e->program->schedule.dispatches.count;
    assert_true(dispatches >= 4);
    o->sliced = false;
    o->submission_ns = bound_estimate(e->program, 0) + bound_estimate(e->program, 1);
    for (int run = 0; run < 2; run++) {
        free(run_seeded(e, g, 1, false, &count));
        if (run == 0)
            doubted = e->bounded->longest_ns > o->submission_ns;
        assert_true(s->measured == (run || !doubted));
        if (run && doubted) {
            assert_true(s->apart);
            assert_int_equal(s->pieces.count, dispatches);
        }
    }
    printf("the estimate was %s\n", doubted ? "doubted" : "right");
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_cover_a_range_once),
        cmocka_unit_test(ranges_grow_by_measured_times),
        cmocka_unit_test(parts_hold_every_workgroup_once),
        cmocka_unit_test(short_work_is_not_measured),
        cmocka_unit_test(bounds_by_option),
        cmocka_unit_test(numbers_of_workgroups),
        cmocka_unit_test(permuted_invocations),
        cmocka_unit_test(loops_that_are_cut),
        cmocka_unit_test(rounds_that_are_bounded),
        cmocka_unit_test(feeds_and_clones),
        cmocka_unit_test(tickets_in_flight),
        cmocka_unit_test(prepared_weights),
        cmocka_unit_test(timestamps),
        cmocka_unit_test(active_extents),
        cmocka_unit_test(ranges_of_folded_extents),
        cmocka_unit_test(doubts_of_the_estimate),
        cmocka_unit_test(long_product),
        cmocka_unit_test(long_convolution),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
