/* rlxvk_graph_verify lists every error of a graph: as built, damaged, or at given sizes. */
#include "support/rewritten.h"

#include <rlxvk_symbols.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { ROOM = 8 };

typedef struct expected {
    uint32_t node;
    rlxvk_status status;
    const char *part;
} expected;

static void expect_listed(const rlxvk_graph *g, const rlxvk_problem *found, size_t count,
                          const expected *wanted)
{
    for (size_t i = 0; i < count; i++) {
        if (found[i].status != wanted[i].status || !strstr(found[i].text, wanted[i].part))
            print_error("problem %zu is %s '%s'\n", i, rlxvk_status_name(found[i].status),
                        found[i].text);
        assert_int_equal(found[i].status, wanted[i].status);
        assert_non_null(strstr(found[i].text, wanted[i].part));
        assert_int_equal(found[i].node, wanted[i].node);
        assert_int_equal(found[i].tensor.id, wanted[i].node == NODE_NONE ? 0 : found[i].node + 1);
        assert_int_equal(found[i].tensor.graph, wanted[i].node == NODE_NONE ? 0 : g->serial);
    }
}

/* Calls with every capacity from 0 to more than enough. Problems that do not fit are still counted.
 */
static void expect_problems(const rlxvk_graph *g, const rlxvk_binding *sizes, size_t size_count,
                            const expected *wanted, size_t count)
{
    for (size_t capacity = 0; capacity <= count + 1; capacity++) {
        rlxvk_problem found[ROOM];
        size_t number = 77;
        memset(found, 0x5a, sizeof found);
        status_fail(RLXVK_E_FILE, "an error of before");
        expect_ok(
            rlxvk_graph_verify(g, sizes, size_count, capacity ? found : NULL, capacity, &number));
        assert_int_equal(number, count);
        expect_listed(g, found, MIN(capacity, count), wanted);
        for (size_t i = MIN(capacity, count) * sizeof *found; i < sizeof found; i++)
            assert_int_equal(((const unsigned char *)found)[i], 0x5a);
        assert_string_equal(rlxvk_last_error(), "an error of before"); /* problems do not set it */
    }
}

static void sound_graphs_have_none(void **state)
{
    rlxvk_graph *g = new_graph();
    (void)state;
    rlxvk_graph_output(g, rlxvk_softmax(g, input(g, "x", RLXVK_SHAPE(2, 3)), -1));
    expect_problems(g, NULL, 0, NULL, 0);
    expect_problems(g, &(rlxvk_binding){RLXVK_SEQ, 3}, 1, NULL, 0); /* not a symbol of this graph */
    rlxvk_graph_destroy(g);
}

static void empty_graphs_have_no_output(void **state)
{
    const expected none = {NODE_NONE, RLXVK_E_NO_OUTPUTS, "rlxvk_graph_output"};
    rlxvk_graph *g = new_graph();
    (void)state;
    expect_problems(g, NULL, 0, &none, 1);
    input(g, "x", RLXVK_SHAPE(2));
    expect_problems(g, NULL, 0, &none, 1);
    rlxvk_graph_destroy(g);
}

/* If a builder call fails, later calls add nothing. So its error is the only problem. */
static void failed_builders_are_listed(void **state)
{
    const expected first = {NODE_NONE, RLXVK_E_AXIS, "axis 2"};
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, 3));
    (void)state;
    rlxvk_graph_output(g, rlxvk_softmax(g, x, 2));
    rlxvk_graph_output(g, rlxvk_softmax(g, x, 3));
    expect_problems(g, NULL, 0, &first, 1);
    rlxvk_graph_destroy(g);
}

/* Three branches from one input, which are joined again. */
static rlxvk_graph *branches(void)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(4, 4)); /* node 0 */
    rlxvk_tensor a = rlxvk_exp(g, x), b = rlxvk_neg(g, x), c = rlxvk_softmax(g, x, 0);
    rlxvk_graph_output(g, rlxvk_add(g, rlxvk_mul(g, a, b), c)); /* nodes 4 and 5 */
    rlxvk_graph_output(g, rlxvk_transpose(g, x, (int32_t[]){1, 0}, 2));
    return g;
}

/* Nodes 4 and 5 are not listed, because they read damaged nodes. Node 6 reads only valid nodes. */
static void damage_is_listed_by_cause(void **state)
{
    const expected wanted[] = {
        {NODE_NONE, RLXVK_E_DANGLING, "output 1 is node 9 of 7"},
        {1, RLXVK_E_SHAPE, "node 1 is declared F32 5x4 but computes F32 4x4"},
        {2, RLXVK_E_ORDER, "node 2 reads node 5"},
        {3, RLXVK_E_ARITY, "softmax: 0 operands"},
        {6, RLXVK_E_UNKNOWN_OP, "node 6 is op 65535"},
    };
    rlxvk_graph *g = branches();
    (void)state;
    g->outputs.items[1] = 9;
    g->nodes.items[1].shape.dims[0] = 5;
    ((uint32_t *)g->nodes.items[2].inputs)[0] = 5;
    g->nodes.items[3].input_count = 0;
    g->nodes.items[6].op = UINT16_MAX;
    expect_problems(g, NULL, 0, wanted, ARRAY_COUNT(wanted));
    expect_error(op_verify(g), RLXVK_E_DANGLING,
                 "output 1 is node 9 of 7 (and 4 more: rlxvk_graph_verify lists them)");
    rlxvk_graph_destroy(g);
}

/* If a node reads a damaged node, neither it nor its readers are listed. */
static void readers_of_damage_are_passed_over(void **state)
{
    const expected wanted = {1, RLXVK_E_SHAPE, "node 1 is declared F32 5x4"};
    rlxvk_graph *g = new_graph();
    rlxvk_tensor a = rlxvk_exp(g, input(g, "x", RLXVK_SHAPE(4, 4)));
    (void)state;
    rlxvk_graph_output(g, rlxvk_neg(g, rlxvk_exp(g, a)));
    g->nodes.items[1].shape.dims[0] = 5;
    expect_problems(g, NULL, 0, &wanted, 1);
    rlxvk_graph_destroy(g);
}

/* The length must be 48 for one node, a multiple of 24 for another and at least 46 for a third.
 * Other nodes read these three. */
static rlxvk_graph *meetings(void)
{
    const int64_t seq = rlxvk_symbol(RLXVK_SEQ);
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(2, seq)); /* node 0 */
    rlxvk_tensor a = rlxvk_matmul(g, x, param(g, "v", RLXVK_SHAPE(48, 6)));
    rlxvk_tensor b = rlxvk_reshape(g, x, RLXVK_SHAPE(2, -1, 24)); /* node 3 */
    rlxvk_tensor c = rlxvk_narrow(g, x, 1, 40, 6);
    rlxvk_graph_output(g, rlxvk_add(g, a, rlxvk_exp(g, c)));
    rlxvk_graph_output(g, rlxvk_exp(g, b));
    rlxvk_graph_output(g, rlxvk_neg(g, x));
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static void sizes_are_listed_by_node(void **state)
{
    const expected all[] = {{2, RLXVK_E_SHAPE, "matmul"},
                            {3, RLXVK_E_SHAPE, "reshape"},
                            {4, RLXVK_E_RANGE, "narrow"}};
    const expected outer[] = {all[0], all[2]};
    rlxvk_graph *g = meetings(), *bound = NULL;
    (void)state;
    expect_problems(g, NULL, 0, NULL, 0);
    expect_problems(g, &(rlxvk_binding){RLXVK_SEQ, 7}, 1, all, 3);
    expect_problems(g, &(rlxvk_binding){RLXVK_SEQ, 48}, 1, NULL, 0);
    expect_problems(g, &(rlxvk_binding){RLXVK_SEQ, 72}, 1, &all[0], 1);
    expect_problems(g, &(rlxvk_binding){RLXVK_SEQ, 24}, 1, outer, 2);
    expect_error(rlxvk_graph_bind(g, &(rlxvk_binding){RLXVK_SEQ, 7}, 1, &bound), RLXVK_E_SHAPE, "");
    g->nodes.items[2].op = UINT16_MAX; /* damaged as built, so sizes are not tried for it */
    const expected mixed[] = {{2, RLXVK_E_UNKNOWN_OP, ""}, all[1], all[2]};
    expect_problems(g, &(rlxvk_binding){RLXVK_SEQ, 7}, 1, mixed, 3);
    rlxvk_graph_destroy(g);
}

/* The examples gave a shape to the caller, but at this size the shape is another. */
static void told_shapes_are_listed(void **state)
{
    const rlxvk_pool_options far = {.kernel = {1}, .stride = {1000}};
    const expected told = {1, RLXVK_E_SHAPE, "was taken for 1x1x1"};
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(1, 1, rlxvk_symbol(RLXVK_SEQ)));
    rlxvk_tensor y = rlxvk_pool_max(g, x, &far);
    (void)state;
    rlxvk_graph_output(g, y);
    assert_int_equal(rlxvk_tensor_shape(g, y).dims[2], 1);
    expect_problems(g, &(rlxvk_binding){RLXVK_SEQ, 1001}, 1, &told, 1);
    expect_problems(g, &(rlxvk_binding){RLXVK_SEQ, 1000}, 1, NULL, 0);
    rlxvk_graph_destroy(g);
}

/* If the arguments are wrong, the call itself fails and leaves the count unchanged. */
static void misuses_are_told(void **state)
{
    const rlxvk_binding two[] = {{RLXVK_SEQ, 3}, {RLXVK_SEQ, 4}};
    rlxvk_graph *g = meetings();
    rlxvk_problem p;
    size_t count = 77;
    (void)state;
    expect_error(rlxvk_graph_verify(NULL, NULL, 0, &p, 1, &count), RLXVK_E_NULL, "graph is NULL");
    expect_error(rlxvk_graph_verify(g, NULL, 1, &p, 1, &count), RLXVK_E_NULL, "bindings");
    expect_error(rlxvk_graph_verify(g, NULL, 0, NULL, 1, &count), RLXVK_E_NULL, "problems");
    expect_error(rlxvk_graph_verify(g, NULL, 0, &p, 1, NULL), RLXVK_E_NULL, "out_count");
    expect_error(rlxvk_graph_verify(g, two, 2, &p, 1, &count), RLXVK_E_BIND_CONFLICT,
                 "graph_verify: SEQ");
    expect_error(rlxvk_graph_verify(g, &(rlxvk_binding){RLXVK_SEQ, -1}, 1, &p, 1, &count),
                 RLXVK_E_RANGE, "-1");
    expect_error(rlxvk_graph_verify(g, &(rlxvk_binding){RLXVK_BATCH, 4}, 1, &p, 1, &count),
                 RLXVK_E_UNBOUND_SYMBOL, "name all");
    assert_int_equal(count, 77);
    rlxvk_graph_destroy(g);
}

static void running_out_of_memory_is_no_problem(void **state)
{
    rlxvk_graph *g = meetings();
    int64_t live = memory_live_count();
    rlxvk_status status = RLXVK_E_OUT_OF_HOST_MEMORY;
    uint64_t nth = 1;
    (void)state;
    for (; status == RLXVK_E_OUT_OF_HOST_MEMORY; nth++) {
        rlxvk_problem found[ROOM];
        size_t count = 77;
        memory_fail_at(nth);
        status = rlxvk_graph_verify(g, &(rlxvk_binding){RLXVK_SEQ, 7}, 1, found, ROOM, &count);
        memory_fail_at(0);
        assert_int_equal(count, status == RLXVK_OK ? 3 : 77);
        assert_int_equal(memory_live_count(), live);
    }
    expect_ok(status);
    assert_true(nth > 4);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_graphs_have_none),
        cmocka_unit_test(empty_graphs_have_no_output),
        cmocka_unit_test(failed_builders_are_listed),
        cmocka_unit_test(damage_is_listed_by_cause),
        cmocka_unit_test(readers_of_damage_are_passed_over),
        cmocka_unit_test(sizes_are_listed_by_node),
        cmocka_unit_test(told_shapes_are_listed),
        cmocka_unit_test(misuses_are_told),
        cmocka_unit_test(running_out_of_memory_is_no_problem),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
