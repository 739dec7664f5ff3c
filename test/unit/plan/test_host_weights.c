/*
 * Which weights a plan puts on the host, without a device. On random graphs the plan is proven
 * sound, it moves as many bytes as needed, and every moved weight is needed. On a graph made for
 * it, the order of the choice is tested.
 */
#include "support/planned.h"
#include "support/profiles.h"
#include "support/random_graph.h"
#include "support/rewritten.h"

#include <rlxvk_ops.h>
#include <rlxvk_train.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const device_profile profile = ORDINARY_GPU;

static planning within(uint64_t device_bytes, uint64_t host_bytes, bool reorder, bool bump)
{
    return (planning){
        .rewrite = {.fusion = true},
        .schedule = {.profile = &profile, .forbid_host = true, .reorder = reorder, .strided = true},
        .plan = {.max_block_bytes = 1u << 30,
                 .max_binding_bytes = 1u << 30,
                 .alignment = 256,
                 .guard_bytes = bump ? 1024 : 0,
                 .bump = bump,
                 .device_bytes = device_bytes,
                 .host_bytes = host_bytes}};
}

static void plan_random(uint64_t seed, const planning *how, planned *out)
{
    random_source r = {seed};
    *out = (planned){0};
    assert_int_equal(rlxvk_graph_create(&out->source), RLXVK_OK);
    random_graph(out->source, &r, 10 + random_below(&r, 60), seed & 1);
    assert_int_equal(planned_make(out, how), RLXVK_OK);
}

static uint64_t bytes_of(const plan *p, uint8_t class)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->blocks[class].count; i++)
        sum += p->blocks[class].items[i];
    return sum;
}

/* How many values lie on the host, and the bytes of the smallest one. */
static uint32_t count_moved(const plan *p, uint64_t guards, uint64_t *out_smallest)
{
    uint32_t count = 0;
    *out_smallest = UINT64_MAX;
    for (uint32_t v = 0; v < p->value_count; v++)
        if (p->slots[v].class == CLASS_HOST_WEIGHTS) {
            *out_smallest = MIN(*out_smallest, p->slots[v].size + guards);
            count++;
        }
    return count;
}

static void test_random_graphs(void **state)
{
    uint32_t moved = 0;
    uint64_t smallest;
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++)
        for (unsigned mode = 0; mode < 4; mode++) {
            bool bump = mode & 2;
            planning none = within(0, 0, mode & 1, bump);
            planned all, some;
            plan_random(seed, &none, &all);
            uint64_t whole = plan_device_bytes(&all.plan);
            uint64_t weights = bytes_of(&all.plan, CLASS_WEIGHTS);
            assert_int_equal(count_moved(&all.plan, 0, &smallest), 0);
            uint64_t limit = whole - weights * (1 + seed % 3) / 3;
            planning how = within(limit, UINT64_MAX, mode & 1, bump);
            plan_random(seed, &how, &some);
            assert_int_equal(plan_check(&some.schedule, &some.plan, NULL), RLXVK_OK);
            uint64_t left = plan_device_bytes(&some.plan);
            assert_int_equal(left + bytes_of(&some.plan, CLASS_HOST_WEIGHTS), whole);
            assert_int_equal(some.plan.barrier_count, all.plan.barrier_count);
            moved += count_moved(&some.plan, 2 * how.plan.guard_bytes, &smallest);
            if (left <= limit && smallest != UINT64_MAX)
                assert_true(left + smallest > limit);
            planned_release(&some);
            planned_release(&all);
        }
    printf("%u weights moved\n", moved);
    assert_true(moved > 500);
}

/* A table of 128 rows, of which 8 are read; experts, of which 2 of 16 are read; a weight that is
 * read whole, and one that is read in each of 5000 rounds; a param that the run writes. */
static rlxvk_graph *all_kinds(void)
{
    rlxvk_graph *g = new_graph(), *body = new_graph();
    rlxvk_tensor rows = input(g, "rows", RLXVK_SHAPE(8)), x, y;
    x = rlxvk_gather(g, param(g, "table", RLXVK_SHAPE(128, 32)), rows, 0);
    x = rlxvk_matmul(g, x, param(g, "once", RLXVK_SHAPE(32, 32)));
    y = rlxvk_grouped_matmul(g, rlxvk_narrow(g, x, 0, 0, 2),
                             param(g, "experts", RLXVK_SHAPE(16, 32, 32)),
                             input(g, "experts", RLXVK_SHAPE(2)), false);
    rlxvk_graph_output(g, y);
    rlxvk_tensor carried = rlxvk_input(body, "c", RLXVK_F32, RLXVK_SHAPE(8, 32));
    rlxvk_tensor often = rlxvk_input(body, "w", RLXVK_F32, RLXVK_SHAPE(32, 32));
    rlxvk_graph_output(body, rlxvk_sigmoid(body, rlxvk_matmul(body, carried, often)));
    rlxvk_scan_options o = {.length = 5000, .broadcast_count = 1};
    rlxvk_tensor values[] = {x, param(g, "often", RLXVK_SHAPE(32, 32))};
    rlxvk_graph_output(g, rlxvk_scan(g, body, values, 2, &o));
    rlxvk_graph_output(g, rlxvk_sgd(g, param(g, "written", RLXVK_SHAPE(8, 32)), x,
                                    param(g, "momentum", RLXVK_SHAPE(8, 32)), NULL, NULL, NULL));
    rlxvk_graph_destroy(body);
    return g;
}

/* The params on the host, in the order of the graph. */
static void expect_moved(uint64_t excess, uint64_t host_bytes, const char *wanted)
{
    planning none = within(0, 0, true, false);
    planned all = {.source = all_kinds()}, some = {.source = all_kinds()};
    char names[128] = "";
    text t = {names, sizeof names, 0};
    assert_int_equal(rlxvk_graph_status(all.source), RLXVK_OK);
    assert_int_equal(planned_make(&all, &none), RLXVK_OK);
    planning how = within(plan_device_bytes(&all.plan) - excess, host_bytes, true, false);
    assert_int_equal(planned_make(&some, &how), RLXVK_OK);
    assert_int_equal(plan_check(&some.schedule, &some.plan, NULL), RLXVK_OK);
    for (uint32_t id = 0; id < some.graph->nodes.count; id++)
        if (some.plan.slots[id].class == CLASS_HOST_WEIGHTS)
            text_append(&t, "%s%s", t.length ? " " : "", graph_node(some.graph, id)->name);
    assert_string_equal(names, wanted);
    planned_release(&all);
    planned_release(&some);
}

static void test_order(void **state)
{
    enum { SMALL = 32 * 32 * 4, TABLE = 128 * 32 * 4, EXPERTS = 16 * 32 * 32 * 4 };
    const uint64_t any = UINT64_MAX;
    (void)state;
    expect_moved(0, any, "");
    expect_moved(1, any, "table");
    expect_moved(TABLE, any, "table");
    expect_moved(TABLE + 1, any, "experts"); /* which make room enough alone */
    expect_moved(EXPERTS, any, "experts");
    expect_moved(EXPERTS + 1, any, "table experts");
    expect_moved(EXPERTS + TABLE + 1, any, "table once experts");
    expect_moved(EXPERTS + TABLE + SMALL + 1, any, "table once experts often");
    expect_moved(EXPERTS + TABLE + 2 * SMALL + 1, any, "table once experts often");
    expect_moved(1, 0, "");
    expect_moved(1, SMALL, "once");
    expect_moved(1, SMALL - 1, "");
    expect_moved(EXPERTS, TABLE + SMALL, "table once");
}

/* The proof must notice a weight on the host that a step writes. */
static void test_written_is_found(void **state)
{
    planning how = within(0, UINT64_MAX, true, false);
    planned p = {.source = all_kinds()};
    (void)state;
    assert_int_equal(planned_make(&p, &how), RLXVK_OK);
    assert_int_equal(plan_check(&p.schedule, &p.plan, NULL), RLXVK_OK);
    uint32_t id = graph_find(p.graph, OP_param, "written");
    assert_int_equal(p.plan.slots[id].class, CLASS_WEIGHTS);
    p.plan.slots[id].class = CLASS_HOST_WEIGHTS;
    p.plan.slots[id].block += 7; /* a place of its own */
    assert_int_equal(plan_check(&p.schedule, &p.plan, NULL), RLXVK_E_RANGE);
    assert_non_null(strstr(rlxvk_last_error(), "lies on the host and is written"));
    planned_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_written_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
