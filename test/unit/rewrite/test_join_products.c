/* Products of one input. Tests when their weights are joined in place or as copies, when one
 * product replaces all, and why weights are not joined. */
#include <rlxvk_train.h>
#include "op/value.h"
#include "plan/schedule.h"
#include "support/profiles.h"
#include "support/rewritten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static const device_profile profile = ORDINARY_GPU;

enum { WIDTH = 64 };

typedef struct setting {
    int64_t rows;
    bool stored_by_columns, no_params, written, other_reader, unaligned, bias, x_written;
    rlxvk_dtype dtype; /* F32: 0 */
    int64_t columns[3];
    uint64_t prepared_bytes;
    bool apart; /* not joined in the executable to share with */
    /* Expected: the number of products; of joined weights in place and as copies; and the reason if
     * weights are not joined. */
    uint32_t products, joined, copied;
    const char *reason;
} setting;

/* Writes x - step to x in place. */
static void write(rlxvk_graph *g, rlxvk_tensor x)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    rlxvk_sgd_options o = {.learning_rate = 1};
    rlxvk_graph_output(g, rlxvk_sgd(g, x, input(g, "step", shape), param(g, "average", shape), &o,
                                    NULL, NULL));
}

static rlxvk_tensor product(rlxvk_graph *g, const setting *s, rlxvk_tensor x, int i)
{
    rlxvk_matmul_options o = {.transpose_b = !s->stored_by_columns};
    int64_t n = s->columns[i] ? s->columns[i] : WIDTH;
    rlxvk_shape shape =
        s->stored_by_columns ? RLXVK_SHAPE(WIDTH, n) : RLXVK_SHAPE(n, WIDTH - s->unaligned);
    char name[8];
    snprintf(name, sizeof name, "w%d", i);
    rlxvk_tensor w = s->no_params && i == 1 ? rlxvk_input(g, name, s->dtype, shape)
                                            : rlxvk_param(g, name, s->dtype, shape);
    rlxvk_tensor y = rlxvk_matmul_with(g, x, w, &o);
    if (s->written && i == 1)
        write(g, w);
    if (s->other_reader && i == 1)
        rlxvk_graph_output(g, rlxvk_relu(g, w));
    snprintf(name, sizeof name, "b%d", i);
    return s->bias ? rlxvk_add(g, y, param(g, name, RLXVK_SHAPE(n))) : y;
}

/* Three products of x. Each goes to its own softmax. */
static rlxvk_graph *three(const setting *s)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(s->rows, WIDTH - s->unaligned));
    for (int i = 0; i < 3; i++) {
        rlxvk_graph_output(g, rlxvk_softmax(g, product(g, s, x, i), -1));
        if (s->x_written && i == 0)
            write(g, x);
    }
    return g;
}

static bool lie_apart(const void *sharer, const char *const *names, uint32_t count)
{
    (void)sharer;
    assert_in_range(count, 2, 3);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(names[i][0], 'w');
    return false;
}

static rlxvk_graph *joined(const rlxvk_graph *g, const setting *s)
{
    rewrite_options how = {.fusion = true,
                           .profile = &profile,
                           .prepared_bytes = s->prepared_bytes,
                           .may_join = s->apart ? lie_apart : NULL};
    rlxvk_graph *after = NULL;
    expect_ok(rlxvk_graph_status(g));
    expect_ok(graph_clone(g, &after));
    expect_ok(rewrite_graph(after, &how));
    return after;
}

static uint32_t count_products(const rlxvk_graph *g)
{
    return count_op(g, OP_matmul) + count_op(g, OP_fused_matmul_bias_act) +
           count_op(g, OP_projection);
}

/* Counts the params that are placed inside joined weights without a step. */
static uint32_t count_placed(const rlxvk_graph *g)
{
    value_map map;
    uint32_t placed = 0;
    expect_ok(value_map_create(g, &(value_options){.strided = true}, &map));
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const value *v = &map.items[id];
        if (!node_is_param(graph_node(g, id)) || v->root == id)
            continue;
        assert_true(graph_node(g, v->root)->joins_params);
        assert_int_equal(map.items[v->root].storage, v->storage);
        placed++;
    }
    value_map_destroy(&map);
    return placed;
}

static void note_reason(void *user, uint32_t id, const char *pattern, const char *reason)
{
    (void)id;
    if (strcmp(pattern, "products of one input") == 0)
        snprintf(user, 256, "%s", reason);
}

static void expect_setting(const setting *s, size_t row)
{
    rlxvk_graph *g = three(s), *after = joined(g, s);
    pair_list none = {0};
    char what[64], reason[256] = "";
    uint32_t in_place = 0, copies = 0;
    for (uint32_t id = 0; id < after->nodes.count; id++) {
        const node *n = graph_node(after, id);
        in_place += n->joins_params;
        copies += n->op == OP_concat && n->prepare && !n->joins_params &&
                  n->shape.rank == 2; /* not of biases */
    }
    snprintf(what, sizeof what, "row %zu", row);
    expect_count(what, count_products(after), s->products);
    expect_count(what, in_place, s->joined);
    expect_count(what, copies, s->copied);
    expect_count(what, count_placed(after),
                 in_place ? 3 - s->no_params - s->other_reader - s->written : 0);
    expect_ok(rewrite_find_misses(after, &none, &profile, note_reason, reason));
    if (s->reason ? !strstr(reason, s->reason) : reason[0])
        fail_msg("%s: reason '%s'", what, reason);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
}

static void products_of_one_input(void **state)
{
    static const setting settings[] = {
        {.rows = 1, .products = 1, .joined = 1},
        {.rows = 1, .bias = true, .products = 1, .joined = 1},
        {.rows = 1, .columns = {128, 32, 32}, .products = 1, .joined = 1},
        {.rows = 1, .dtype = RLXVK_F16, .products = 1, .joined = 1},
        {.rows = 1, .dtype = RLXVK_BF16, .products = 1, .joined = 1},
        {.rows = 2, .products = 3, .joined = 1},
        {.rows = 1, .no_params = true, .products = 2, .joined = 1, .reason = "is no param"},
        /* Joined as copies, if there is memory for them. */
        {.rows = 1, .stored_by_columns = true, .products = 3, .reason = "stored as rows"},
        {.rows = 1,
         .stored_by_columns = true,
         .prepared_bytes = 3 * 64 * 64 * 4 - 1,
         .products = 3,
         .reason = "stored as rows"},
        {.rows = 1,
         .stored_by_columns = true,
         .prepared_bytes = 3 * 64 * 64 * 4,
         .products = 1,
         .copied = 1},
        {.rows = 2, .stored_by_columns = true, .prepared_bytes = UINT64_MAX, .products = 3},
        {.rows = 1,
         .stored_by_columns = true,
         .prepared_bytes = UINT64_MAX,
         .dtype = RLXVK_F16,
         .products = 3,
         .reason = "stored as rows"},
        {.rows = 1,
         .unaligned = true,
         .columns = {10, 10, 10},
         .products = 3,
         .reason = "no aligned address"},
        {.rows = 1,
         .unaligned = true,
         .columns = {10, 10, 10},
         .prepared_bytes = UINT64_MAX,
         .products = 1,
         .copied = 1},
        {.rows = 1, .other_reader = true, .products = 2, .joined = 1, .reason = "2 readers"},
        {.rows = 1, .apart = true, .products = 3, .reason = "fusion is off"},
        {.rows = 1, .apart = true, .prepared_bytes = UINT64_MAX, .products = 1, .copied = 1},
        {.rows = 1, .written = true, .products = 2, .joined = 1, .reason = "written in place"},
        {.rows = 1, .x_written = true, .products = 3, .reason = "written in place between"},
        {.rows = 2, .x_written = true, .products = 3, .joined = 1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(settings); i++)
        expect_setting(&settings[i], i);
}

/* ---- Gates ---- */

typedef struct gate_case {
    int64_t rows;
    bool gate_first, swapped, product_read, silu_read, stored_by_columns, other_input;
    uint64_t prepared_bytes;
    uint32_t products, gates;
} gate_case;

static rlxvk_graph *gate(const gate_case *c)
{
    rlxvk_graph *g = new_graph();
    const setting s = {.stored_by_columns = c->stored_by_columns};
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(c->rows, WIDTH)), y[2];
    for (int i = 0; i < 2; i++)
        y[i] = product(g, &s, i && c->other_input ? rlxvk_relu(g, x) : x, i);
    rlxvk_tensor silu = rlxvk_silu(g, y[!c->gate_first]), up = y[c->gate_first];
    rlxvk_graph_output(g, c->swapped ? rlxvk_mul(g, silu, up) : rlxvk_mul(g, up, silu));
    if (c->product_read)
        rlxvk_graph_output(g, rlxvk_neg(g, up));
    if (c->silu_read)
        rlxvk_graph_output(g, rlxvk_neg(g, silu));
    return g;
}

static void gates(void **state)
{
    static const gate_case cases[] = {
        {.rows = 5, .products = 1, .gates = 1},
        {.rows = 5, .gate_first = true, .products = 1, .gates = 1},
        {.rows = 5, .swapped = true, .products = 1, .gates = 1},
        {.rows = 1, .gate_first = true, .swapped = true, .products = 1, .gates = 1},
        {.rows = 5, .product_read = true, .products = 2},
        {.rows = 5, .silu_read = true, .products = 2},
        {.rows = 1, .product_read = true, .products = 1},
        {.rows = 5, .other_input = true, .products = 2},
        {.rows = 5, .stored_by_columns = true, .products = 2},
        {.rows = 5,
         .stored_by_columns = true,
         .prepared_bytes = UINT64_MAX,
         .products = 1,
         .gates = 1},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const gate_case *c = &cases[i];
        rlxvk_graph *g = gate(c);
        rlxvk_graph *after = joined(g, &(setting){.prepared_bytes = c->prepared_bytes});
        char what[32];
        snprintf(what, sizeof what, "gate %zu", i);
        expect_count(what, count_products(after), c->products);
        uint32_t alone = count_op(after, OP_fused_swiglu); /* or part of a projection of one row */
        expect_count(what, alone + count_op(after, OP_projection), c->gates);
        rlxvk_graph_destroy(after);
        rlxvk_graph_destroy(g);
    }
}

/* If memory runs out at any point up to the plan, the call returns an error and leaks nothing. */
static rlxvk_status plan_of(const rlxvk_graph *g)
{
    rewrite_options how = {.fusion = true, .profile = &profile, .prepared_bytes = UINT64_MAX};
    schedule_options lowering = {.profile = &profile,
                                 .prepared_bytes = UINT64_MAX,
                                 .reorder = true};
    rlxvk_graph *after = NULL;
    schedule s = {0};
    rlxvk_status status;
    TRY(graph_clone(g, &after));
    TRY(rewrite_graph(after, &how));
    TRY(schedule_create(after, &lowering, &s));
    assert_int_equal(s.prepared, 3); /* the copy: one dispatch per part */
error:
    schedule_destroy(&s);
    rlxvk_graph_destroy(after);
    return status;
}

static void survives_failing_allocations(void **state)
{
    static const setting s = {.rows = 1, .unaligned = true, .columns = {10, 10, 10}};
    rlxvk_graph *g = three(&s);
    rlxvk_status status = RLXVK_E_OUT_OF_HOST_MEMORY;
    (void)state;
    for (uint64_t nth = 1; status != RLXVK_OK; nth++) {
        assert_int_equal(status, RLXVK_E_OUT_OF_HOST_MEMORY);
        memory_fail_at(nth);
        status = plan_of(g);
        memory_fail_at(0);
        assert_true(nth < 2000);
    }
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_of_one_input),
        cmocka_unit_test(gates),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
