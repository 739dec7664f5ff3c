/*
 * The pure layers on random graphs, without a device. Every plan is proven sound by brute force.
 * Each barrier is removed once, and then the proof must fail. If blocks are small, no slot may
 * cross a block's end. Scratch memory must stay near its lower bound.
 */
#include "support/planned.h"
#include "support/profiles.h"
#include "support/random_graph.h"

#include <rlxvk_ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const device_profile profile = ORDINARY_GPU;

static rlxvk_status plan_random(uint64_t seed, uint64_t block_bytes, bool reorder, bool bump,
                                bool full_barrier, planned *out)
{
    random_source r = {seed};
    const planning how = {
        .rewrite = {.fusion = true},
        .schedule = {.profile = &profile, .forbid_host = true, .reorder = reorder, .strided = true},
        .plan = {.max_block_bytes = block_bytes,
                 .max_binding_bytes = block_bytes,
                 .alignment = 256,
                 .bump = bump,
                 .full_barrier = full_barrier}};
    rlxvk_status status;
    *out = (planned){0};
    TRY(rlxvk_graph_create(&out->source));
    random_graph(out->source, &r, 10 + random_below(&r, 60), seed & 1);
    TRY(planned_make(out, &how));
error:
    if (status != RLXVK_OK)
        fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, rlxvk_last_error());
    return status;
}

static void test_plans_are_sound(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 300; seed++)
        for (unsigned mode = 0; mode < 4; mode++) {
            planned p;
            uint32_t needless = 0;
            assert_int_equal(plan_random(seed, 1u << 30, mode & 1, mode & 2, false, &p), RLXVK_OK);
            assert_int_equal(plan_check(&p.schedule, &p.plan, &needless), RLXVK_OK);
            assert_int_equal(needless, 0);
            planned_release(&p);
        }
}

static void test_every_barrier_is_missed(void **state)
{
    uint32_t removed = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        planned p;
        assert_int_equal(plan_random(seed, 1u << 30, seed & 2, false, false, &p), RLXVK_OK);
        for (size_t i = 0; i < p.schedule.steps.count; i++) {
            barrier kept = p.plan.barriers[i];
            if (kept.kind == HAZARD_NONE)
                continue;
            p.plan.barriers[i].kind = HAZARD_NONE;
            assert_int_not_equal(plan_check(&p.schedule, &p.plan, NULL), RLXVK_OK);
            p.plan.barriers[i] = kept;
            removed++;
        }
        planned_release(&p);
    }
    printf("%u barriers removed, each missed\n", removed);
    assert_true(removed > 1000);
}

static void test_full_barriers(void **state)
{
    planned p;
    (void)state;
    assert_int_equal(plan_random(7, 1u << 30, false, false, true, &p), RLXVK_OK);
    assert_int_equal(p.plan.barrier_count, p.schedule.steps.count - 1);
    planned_release(&p);
}

/* If a slot is moved onto another that is live at the same time, the proof must fail. */
static void test_overlap_is_found(void **state)
{
    uint32_t found = 0, tried = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        planned p;
        assert_int_equal(plan_random(seed, 1u << 30, true, true, false, &p), RLXVK_OK);
        uint32_t last = UINT32_MAX;
        for (uint32_t v = 0; v < p.plan.value_count; v++) {
            slot *s = &p.plan.slots[v];
            if (s->class != CLASS_SCRATCH || s->block == SLOT_NONE)
                continue;
            if (last != UINT32_MAX && p.plan.slots[last].first < s->first &&
                s->first < p.plan.slots[last].last) {
                uint64_t kept = s->offset;
                s->offset = p.plan.slots[last].offset;
                tried++;
                found += plan_check(&p.schedule, &p.plan, NULL) != RLXVK_OK;
                s->offset = kept;
            }
            last = v;
        }
        planned_release(&p);
    }
    printf("%u of %u overlaps found\n", found, tried);
    assert_true(tried > 100);
    assert_int_equal(found, tried);
}

static void test_small_blocks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        planned p;
        uint64_t block = 96 * 1024;
        assert_int_equal(plan_random(seed, block, true, false, false, &p), RLXVK_OK);
        for (uint32_t v = 0; v < p.plan.value_count; v++)
            if (p.plan.slots[v].block != SLOT_NONE)
                assert_true(p.plan.slots[v].offset + p.plan.slots[v].size <= block);
        for (int c = 0; c < CLASS_COUNT; c++)
            for (size_t b = 0; b < p.plan.blocks[c].count; b++)
                assert_true(p.plan.blocks[c].items[b] <= block);
        assert_int_equal(plan_check(&p.schedule, &p.plan, NULL), RLXVK_OK);
        planned_release(&p);
    }
}

static void test_too_large(void **state)
{
    planned p;
    bool refused = false;
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        refused |= plan_random(seed, 1024, true, false, false, &p) == RLXVK_E_TOO_LARGE;
        planned_release(&p);
    }
    assert_true(refused);
}

/* Eight chains of 16 steps. In level order they need only one barrier per level. */
static void test_levels_share_barriers(void **state)
{
    (void)state;
    enum { CHAINS = 8, LENGTH = 16 };
    static const int32_t axis = 1;
    planned p = {0};
    assert_int_equal(rlxvk_graph_create(&p.graph), RLXVK_OK);
    rlxvk_tensor x = rlxvk_input(p.graph, "x", RLXVK_F32, RLXVK_SHAPE(CHAINS, 64));
    for (int i = 0; i < CHAINS; i++) {
        rlxvk_tensor y = rlxvk_narrow(p.graph, x, 0, i, 1);
        for (int k = 0; k < LENGTH; k++)
            y = rlxvk_reverse(p.graph, y, &axis, 1);
        rlxvk_graph_output(p.graph, y);
    }
    schedule_options how = {.profile = &profile, .forbid_host = true, .reorder = true};
    plan_options layout = {.max_block_bytes = 1u << 20,
                           .max_binding_bytes = 1u << 20,
                           .alignment = 256};
    assert_int_equal(schedule_create(p.graph, &how, &p.schedule), RLXVK_OK);
    assert_int_equal(plan_create(&p.schedule, &layout, &p.plan), RLXVK_OK);
    assert_int_equal(p.plan.barrier_count, LENGTH - 1);
    assert_int_equal(plan_check(&p.schedule, &p.plan, NULL), RLXVK_OK);
    uint64_t shared = p.plan.scratch_peak;
    plan_destroy(&p.plan);
    layout.reuse_in_level = true;
    assert_int_equal(plan_create(&p.schedule, &layout, &p.plan), RLXVK_OK);
    assert_true(p.plan.barrier_count > LENGTH - 1);
    assert_true(p.plan.scratch_peak < shared);
    planned_release(&p);
}

/* Plans p->graph in program order and proves the plan. */
static void expect_sound(planned *p, const bool *on_host)
{
    const planning how = {.schedule = {.profile = &profile, .on_host = on_host},
                          .plan = {.max_block_bytes = 1u << 20,
                                   .max_binding_bytes = 1u << 20,
                                   .alignment = 256}};
    assert_int_equal(planned_make(p, &how), RLXVK_OK);
    assert_int_equal(plan_check(&p->schedule, &p->plan, NULL), RLXVK_OK);
}

/* Appends `steps` ops to x. Later values may take the slots of their results. */
static rlxvk_tensor used_slots(rlxvk_graph *g, rlxvk_tensor x, int steps)
{
    static const int32_t axis = 0;
    while (steps--)
        x = rlxvk_reverse(g, x, &axis, 1);
    return x;
}

/* If a step waits for others, it comes last, although level order would have it first. That also
 * holds through views, and if it waits for a view. */
static void test_waiting(void **state)
{
    enum { STEPS = 5 };
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        planned p = {0};
        assert_int_equal(rlxvk_graph_create(&p.graph), RLXVK_OK);
        rlxvk_tensor x = rlxvk_input(p.graph, "x", RLXVK_F32, RLXVK_SHAPE(8, 8)), y = x;
        rlxvk_tensor made = rlxvk_narrow(p.graph, used_slots(p.graph, x, STEPS), 0, 2, 3);
        if (waits)
            y = rlxvk_reshape(p.graph, rlxvk_after(p.graph, x, made), RLXVK_SHAPE(64));
        y = used_slots(p.graph, y, 1);
        rlxvk_graph_output(p.graph, y);
        rlxvk_graph_output(p.graph, made);
        schedule_options how = {.profile = &profile, .forbid_host = true, .reorder = true};
        assert_int_equal(rlxvk_graph_status(p.graph), RLXVK_OK);
        assert_int_equal(schedule_create(p.graph, &how, &p.schedule), RLXVK_OK);
        assert_int_equal(p.schedule.steps.count, STEPS + 1);
        for (uint32_t i = 0; i < p.schedule.steps.count; i++)
            if (p.schedule.steps.items[i].node == y.id - 1)
                assert_int_equal(i, waits ? STEPS : 1); /* level 0 has two steps */
        planned_release(&p);
    }
}

/* A kernel uses its own working memory, so it declares reads of memory that no step wrote. The
 * proof must accept that. */
static void test_working_memory(void **state)
{
    planned p = {0};
    (void)state;
    assert_int_equal(rlxvk_graph_create(&p.graph), RLXVK_OK);
    rlxvk_tensor a = rlxvk_input(p.graph, "a", RLXVK_F32, RLXVK_SHAPE(4, 4));
    rlxvk_tensor b = rlxvk_input(p.graph, "b", RLXVK_F32, RLXVK_SHAPE(4, 2));
    rlxvk_tensor x = rlxvk_dense_solve(p.graph, used_slots(p.graph, a, 4), b);
    rlxvk_graph_output(p.graph, rlxvk_neg(p.graph, x));
    expect_sound(&p, NULL);
    planned_release(&p);
}

/* No step writes an empty tensor, but a step reads it, on the host or on the device. An empty view
 * lies between bytes that it does not touch. */
static void test_empty_operands(void **state)
{
    static const int32_t axis = 0;
    for (int hosted = 0; hosted < 2; hosted++) {
        planned p = {0};
        bool on_host[OP_COUNT] = {[OP_reduce_sum] = hosted};
        (void)state;
        assert_int_equal(rlxvk_graph_create(&p.graph), RLXVK_OK);
        rlxvk_tensor x = rlxvk_input(p.graph, "x", RLXVK_F32, RLXVK_SHAPE(256));
        rlxvk_tensor empty = rlxvk_input(p.graph, "empty", RLXVK_F32, RLXVK_SHAPE(0));
        x = used_slots(p.graph, x, 4);
        rlxvk_tensor none = rlxvk_narrow(p.graph, x, 0, 64, 0);
        rlxvk_graph_output(p.graph, rlxvk_reduce_sum(p.graph, none, &axis, 1, true));
        x = rlxvk_add(p.graph, x,
                      rlxvk_reduce_sum(p.graph, rlxvk_neg(p.graph, empty), &axis, 1, true));
        rlxvk_graph_output(p.graph, x);
        expect_sound(&p, on_host);
        planned_release(&p);
    }
}

/* A step reads a value that no earlier step wrote. */
static void test_unwritten_is_found(void **state)
{
    planned p = {0};
    (void)state;
    assert_int_equal(rlxvk_graph_create(&p.graph), RLXVK_OK);
    rlxvk_tensor x = rlxvk_input(p.graph, "x", RLXVK_F32, RLXVK_SHAPE(4));
    rlxvk_graph_output(p.graph, used_slots(p.graph, x, 3));
    expect_sound(&p, NULL);
    step first = p.schedule.steps.items[0];
    p.schedule.steps.items[0] = p.schedule.steps.items[1];
    p.schedule.steps.items[1] = first;
    assert_int_equal(plan_check(&p.schedule, &p.plan, NULL), RLXVK_E_RANGE);
    assert_non_null(strstr(rlxvk_last_error(), "before any step wrote it"));
    planned_release(&p);
}

/* Prepares everything that can be prepared: all steps that read only weights. */
static rlxvk_status prepare_all(planned *p, bool reorder, bool bump)
{
    plan_options layout = {.max_block_bytes = 1u << 30,
                           .max_binding_bytes = 1u << 30,
                           .alignment = 256,
                           .bump = bump};
    rlxvk_status status = RLXVK_OK;
    plan_destroy(&p->plan);
    for (size_t i = 0; i < p->schedule.dispatches.count; i++)
        p->schedule.dispatches.items[i].prepares = true;
    TRY(prepare_schedule(&p->schedule, UINT64_MAX));
    if (reorder)
        TRY(reorder_schedule(&p->schedule));
    TRY(plan_create(&p->schedule, &layout, &p->plan));
error:
    return status;
}

/* Puts a kept value into memory that other values take. The proof must find its reader. */
static uint32_t unpin_kept(planned *p)
{
    uint32_t found = 0;
    for (uint32_t v = 0; v < p->plan.value_count; v++) {
        slot *s = &p->plan.slots[v];
        bool leaf = v < p->graph->nodes.count && graph_node(p->graph, v)->input_count == 0;
        if (leaf || s->class != CLASS_WEIGHTS || s->first >= p->schedule.prepared ||
            s->last < p->schedule.prepared)
            continue;
        s->class = CLASS_SCRATCH;
        s->block = 7;
        assert_int_equal(plan_check(&p->schedule, &p->plan, NULL), RLXVK_E_RANGE);
        assert_non_null(strstr(rlxvk_last_error(), "what prepared step"));
        s->class = CLASS_WEIGHTS;
        s->block = 0;
        found++;
    }
    return found;
}

static void test_prepared_steps(void **state)
{
    uint32_t prepared = 0, kept = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 60; seed++) {
        planned p;
        assert_int_equal(plan_random(seed, 1u << 30, false, false, false, &p), RLXVK_OK);
        size_t steps = p.schedule.steps.count;
        assert_int_equal(prepare_all(&p, seed & 2, seed % 5 == 0), RLXVK_OK);
        assert_int_equal(p.schedule.steps.count, steps);
        assert_int_equal(plan_check(&p.schedule, &p.plan, NULL), RLXVK_OK);
        if (p.schedule.prepared)
            assert_int_equal(p.plan.segments.items[0].count, p.schedule.prepared);
        prepared += p.schedule.prepared;
        kept += unpin_kept(&p);
        planned_release(&p);
    }
    print_message("%u steps prepared, %u values kept\n", prepared, kept);
    assert_true(prepared > 60 && kept > 20);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void test_scratch_ratio(void **state)
{
    enum { GRAPHS = 300 };
    static double ratios[GRAPHS];
    size_t count = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        planned p;
        assert_int_equal(plan_random(seed, 1u << 30, true, false, false, &p), RLXVK_OK);
        if (p.plan.scratch_lower_bound)
            ratios[count++] = (double)p.plan.scratch_peak / (double)p.plan.scratch_lower_bound;
        planned_release(&p);
    }
    qsort(ratios, count, sizeof *ratios, by_value);
    printf("scratch peak over lower bound: p50 %.3f p95 %.3f max %.3f over %zu graphs\n",
           ratios[count / 2], ratios[count * 95 / 100], ratios[count - 1], count);
    assert_true(ratios[count * 95 / 100] <= 1.10);
}

/* A replayed scan with a broadcast value in scratch memory. The first dispatch of each iteration
 * reads that value. */
static void make_loop(planned *p)
{
    static const int32_t axis = 0;
    rlxvk_graph *body = NULL;
    *p = (planned){0};
    assert_int_equal(rlxvk_graph_create(&p->graph), RLXVK_OK);
    assert_int_equal(rlxvk_graph_create(&body), RLXVK_OK);
    rlxvk_tensor c = rlxvk_input(body, "c", RLXVK_F32, RLXVK_SHAPE(64));
    rlxvk_tensor b = rlxvk_input(body, "b", RLXVK_F32, RLXVK_SHAPE(64));
    rlxvk_tensor y = rlxvk_reverse(body, rlxvk_add(body, c, b), &axis, 1);
    y = rlxvk_cumsum(body, rlxvk_sin(body, y), 0, false);
    rlxvk_graph_output(body, rlxvk_reverse(body, y, &axis, 1));
    rlxvk_tensor x = rlxvk_input(p->graph, "x", RLXVK_F32, RLXVK_SHAPE(64));
    rlxvk_tensor values[] = {x, rlxvk_reverse(p->graph, x, &axis, 1)};
    rlxvk_graph_set_unroll_limit(p->graph, 1);
    y = rlxvk_scan(p->graph, body, values, 2,
                   &(rlxvk_scan_options){.length = 5,
                                         .broadcast_count = 1,
                                         .save_trajectory = true});
    rlxvk_graph_output(p->graph, rlxvk_reverse(p->graph, y, &axis, 1));
    rlxvk_graph_destroy(body);
}

/* The proof covers two iterations of a loop. The barrier between them is needed like any other. An
 * iteration must not overwrite a value that a later iteration reads. */
static void test_loops(void **state)
{
    planned p;
    uint32_t moved = 0, needless;
    (void)state;
    make_loop(&p);
    expect_sound(&p, NULL);
    assert_int_equal(p.schedule.loops.count, 1);
    assert_int_equal(p.plan.loops.count, 1);
    const schedule_loop *l = &p.schedule.loops.items[0];
    assert_int_equal(plan_check(&p.schedule, &p.plan, &needless), RLXVK_OK);
    assert_int_equal(needless, 0);
    for (uint32_t i = l->first; i < l->first + l->count; i++) {
        barrier kept = p.plan.barriers[i];
        p.plan.barriers[i].kind = HAZARD_NONE;
        assert_true(kept.kind == HAZARD_NONE || plan_check(&p.schedule, &p.plan, NULL) != RLXVK_OK);
        p.plan.barriers[i] = kept;
    }
    /* a lives through the whole loop. b begins inside the loop, after the last reader of a. */
    for (uint32_t v = 0; v < p.plan.value_count; v++)
        for (uint32_t w = 0; w < p.plan.value_count; w++) {
            slot *a = &p.plan.slots[v], *b = &p.plan.slots[w], kept = *b;
            if (a->class != CLASS_SCRATCH || b->class != CLASS_SCRATCH || a->block == SLOT_NONE ||
                b->block == SLOT_NONE || a->first >= l->first || b->first <= l->first ||
                a->last < l->first || b->last >= l->first + l->count)
                continue;
            b->block = a->block;
            b->offset = a->offset;
            assert_int_not_equal(plan_check(&p.schedule, &p.plan, NULL), RLXVK_OK);
            *b = kept;
            moved++;
        }
    assert_true(moved > 3);
    planned_release(&p);
}

/* ---- Operands of one dispatch ---- */

typedef struct pair_case {
    const char *name;
    rlxvk_tensor (*norm)(rlxvk_graph *g, rlxvk_tensor sum, rlxvk_tensor gamma, rlxvk_tensor beta,
                         int32_t axis, float eps);
    int gamma, beta; /* 0: none, 1, 2: the first or the second summand, 3: another */
    int free;        /* the summand that the sum may overwrite */
} pair_case;

static void plan_source(planned *p, bool bump)
{
    const planning how = {.rewrite = {.fusion = true},
                          .schedule = {.profile = &profile, .forbid_host = true, .strided = true},
                          .plan = {.max_block_bytes = 1u << 30,
                                   .max_binding_bytes = 1u << 30,
                                   .alignment = 256,
                                   .bump = bump}};
    assert_int_equal(planned_make(p, &how), RLXVK_OK);
}

static void plan_pair(const pair_case *c, planned *p)
{
    *p = (planned){0};
    assert_int_equal(rlxvk_graph_create(&p->source), RLXVK_OK);
    rlxvk_tensor x = rlxvk_input(p->source, "x", RLXVK_F32, RLXVK_SHAPE(64));
    rlxvk_tensor of[] = {RLXVK_NONE, rlxvk_softmax(p->source, x, -1),
                         rlxvk_cumsum(p->source, x, -1, false), x};
    rlxvk_tensor sum = rlxvk_add(p->source, of[1], of[2]);
    rlxvk_graph_output(p->source, c->norm(p->source, sum, of[c->gamma], of[c->beta], -1, 0.1f));
    rlxvk_graph_output(p->source, rlxvk_sort(p->source, sum, 0, false));
    plan_source(p, false);
    assert_int_equal(p->pairs.count, 1);
    assert_int_equal(plan_check(&p->schedule, &p->plan, NULL), RLXVK_OK);
}

/* A pair may store the sum over a summand, but only if it does not also read that summand as gamma
 * or beta. If the sum lies over gamma or beta, the proof must fail. */
static void test_pairs_in_place(void **state)
{
    static const pair_case cases[] = {
        {"no gamma", rlxvk_layer_norm, 0, 0, 1}, {"another", rlxvk_rms_norm, 3, 3, 1},
        {"gamma 1", rlxvk_layer_norm, 1, 0, 2},  {"gamma 2", rlxvk_layer_norm, 2, 0, 1},
        {"beta 1", rlxvk_rms_norm, 0, 1, 2},     {"beta 2", rlxvk_rms_norm, 3, 2, 1},
        {"both 1", rlxvk_layer_norm, 1, 1, 2},   {"both 2", rlxvk_rms_norm, 2, 2, 1},
        {"1 and 2", rlxvk_layer_norm, 1, 2, 0},  {"2 and 1", rlxvk_rms_norm, 2, 1, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        planned p;
        plan_pair(&cases[i], &p);
        const node *sum = graph_node(p.graph, p.pairs.items[0].first);
        slot *at = &p.plan.slots[p.pairs.items[0].first];
        for (int k = 1; k <= 2; k++) {
            const slot *summand = &p.plan.slots[sum->inputs[k - 1]];
            bool over = at->block == summand->block && at->offset == summand->offset;
            if (over != (k == cases[i].free))
                print_error("%s: summand %d\n", cases[i].name, k);
            assert_int_equal(over, k == cases[i].free);
        }
        slot kept = *at;
        for (int k = 1; k <= 2; k++) {
            bool read = cases[i].gamma == k || cases[i].beta == k;
            at->offset = p.plan.slots[sum->inputs[k - 1]].offset;
            assert_int_equal(plan_check(&p.schedule, &p.plan, NULL),
                             read ? RLXVK_E_RANGE : RLXVK_OK);
            assert_true(!read || strstr(rlxvk_last_error(), "as another operand"));
            *at = kept;
        }
        planned_release(&p);
    }
}

/* A norm of one row, whole and in chunks. Its operands are the same value in all combinations. If
 * it has several dispatches, those before the last read only x, and the last also reads gamma. y
 * may overwrite x only if x is neither gamma nor beta. */
static void test_repeated_operands(void **state)
{
    static const int64_t lengths[] = {64, 70000};
    (void)state;
    for (int i = 0; i < 2 * 16; i++) {
        planned p = {0};
        rlxvk_shape shape = RLXVK_SHAPE(lengths[i / 16]);
        assert_int_equal(rlxvk_graph_create(&p.source), RLXVK_OK);
        rlxvk_tensor a = rlxvk_input(p.source, "a", RLXVK_F32, shape), of[4];
        rlxvk_tensor x = rlxvk_cumsum(p.source, a, 0, false);
        for (int k = 0; k < 4; k++)
            of[k] = i >> k & 1 ? x : a;
        rlxvk_tensor y =
            rlxvk_fused_residual_ln(p.source, of[0], of[1], RLXVK_NONE, of[2], of[3], 0.1f);
        rlxvk_graph_output(p.source, rlxvk_reverse(p.source, y, &(int32_t){0}, 1));
        plan_source(&p, false);
        if (plan_check(&p.schedule, &p.plan, NULL) != RLXVK_OK)
            fail_msg("operands %d of length %lld: %s", i % 16, (long long)shape.dims[0],
                     rlxvk_last_error());
        const slot *y_slot =
            &p.plan.slots[graph_node(p.graph, p.graph->outputs.items[0])->inputs[0]];
        const slot *x_slot = &p.plan.slots[1];
        bool over = i % 16 && x_slot->block == y_slot->block && x_slot->offset == y_slot->offset &&
                    x_slot->class == y_slot->class;
        assert_int_equal(over, i % 16 == 1 || i % 16 == 2 || i % 16 == 3);
        planned_release(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_plans_are_sound),
        cmocka_unit_test(test_every_barrier_is_missed),
        cmocka_unit_test(test_full_barriers),
        cmocka_unit_test(test_overlap_is_found),
        cmocka_unit_test(test_small_blocks),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_scratch_ratio),
        cmocka_unit_test(test_levels_share_barriers),
        cmocka_unit_test(test_working_memory),
        cmocka_unit_test(test_empty_operands),
        cmocka_unit_test(test_unwritten_is_found),
        cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_prepared_steps),
        cmocka_unit_test(test_pairs_in_place),
        cmocka_unit_test(test_repeated_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
