/* See rewritten.h. */
#include "support/rewritten.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

rlxvk_graph *new_graph(void)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    return g;
}

rlxvk_tensor input(rlxvk_graph *g, const char *name, rlxvk_shape shape)
{
    return rlxvk_input(g, name, RLXVK_F32, shape);
}

rlxvk_tensor param(rlxvk_graph *g, const char *name, rlxvk_shape shape)
{
    return rlxvk_param(g, name, RLXVK_F32, shape);
}

uint32_t count_op(const rlxvk_graph *g, op_kind op)
{
    uint32_t count = 0;
    for (uint32_t id = 0; id < g->nodes.count; id++)
        count += graph_node(g, id)->op == op;
    return count;
}

rlxvk_graph *rewritten(const rlxvk_graph *g, bool fusion)
{
    rlxvk_graph *copy = NULL;
    expect_ok(rlxvk_graph_status(g));
    expect_ok(graph_clone(g, &copy));
    expect_ok(rewrite_graph(copy, &(rewrite_options){.fusion = fusion}));
    expect_ok(op_verify(copy));
    return copy;
}

/* ---- What holds for every rewritten graph ---- */

static char *listing(const rlxvk_graph *g)
{
    size_t size = 256 * (g->nodes.count + g->outputs.count + 1);
    text t = {calloc(size, 1), size, 0};
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        op_node_describe(g, id, &t);
        text_append(&t, "\n");
    }
    for (size_t i = 0; i < g->outputs.count; i++)
        text_append(&t, "output %%%u\n", g->outputs.items[i]);
    return t.buffer;
}

static void check_stable(const rlxvk_graph *once, bool fusion)
{
    rlxvk_graph *twice = rewritten(once, fusion);
    char *a = listing(once), *b = listing(twice);
    assert_string_equal(a, b);
    free(a);
    free(b);
    rlxvk_graph_destroy(twice);
}

static void check_outputs(const rlxvk_graph *g, const rlxvk_graph *after)
{
    assert_int_equal(g->outputs.count, after->outputs.count);
    for (size_t i = 0; i < g->outputs.count; i++) {
        const node *a = graph_node(g, g->outputs.items[i]);
        const node *b = graph_node(after, after->outputs.items[i]);
        assert_true(shape_equal(&a->shape, &b->shape));
        assert_int_equal(a->dtype, b->dtype);
        assert_int_equal(a->name != NULL, b->name != NULL);
        if (a->name)
            assert_string_equal(a->name, b->name);
    }
}

static void check_values(const rlxvk_graph *g, const rlxvk_graph *after, bool exact)
{
    for (uint64_t seed = 1; seed <= 2; seed++) {
        size_t count, n;
        float *wanted = evaluate_seeded(g, seed, exact, &count);
        float *got = evaluate_seeded(after, seed, exact, &n);
        assert_int_equal(count, n);
        for (size_t i = 0; i < count; i++) {
            double w = (double)wanted[i], error = fabs((double)got[i] - w);
            if (isnan(w) ? isnan(got[i]) : (got[i] == wanted[i] || error <= 2e-4 * (1 + w * w)))
                continue;
            print_error("element %zu is %g, wanted %g\n", i, (double)got[i], w);
            assert_true(false);
        }
        free(wanted);
        free(got);
    }
}

rlxvk_graph *checked(const rlxvk_graph *g, bool exact)
{
    rlxvk_graph *plain = rewritten(g, false), *after = rewritten(g, true);
    check_outputs(g, plain);
    check_outputs(g, after);
    check_values(g, plain, exact);
    check_values(g, after, exact);
    check_stable(plain, false);
    check_stable(after, true);
    rlxvk_graph_destroy(plain);
    return after;
}

uint32_t count_after(rlxvk_graph *g, op_kind op)
{
    rlxvk_graph *after = checked(g, false);
    uint32_t count = count_op(after, op);
    rlxvk_graph_destroy(after);
    rlxvk_graph_destroy(g);
    return count;
}

void expect_count(const char *what, uint32_t got, uint32_t wanted)
{
    if (got != wanted)
        print_error("%s: %u, wanted %u\n", what, got, wanted);
    assert_int_equal(got, wanted);
}

static void list_miss(void *user, uint32_t id, const char *pattern, const char *reason)
{
    text_append(user, "%%%u %s: %s\n", id, pattern, reason);
}

void expect_miss(const char *what, const rlxvk_graph *after, const char *reason)
{
    char buffer[2048] = "";
    text list = {buffer, sizeof buffer, 0};
    pair_list pairs = {0};
    expect_ok(rewrite_find_norm_pairs(after, &pairs));
    expect_ok(rewrite_find_misses(after, &pairs, NULL, list_miss, &list));
    VECTOR_FREE(&pairs);
    bool right = reason ? strstr(buffer, reason) != NULL : list.length == 0;
    if (!right)
        print_error("%s: missed '%s', wanted '%s'\n", what, buffer, reason ? reason : "");
    assert_true(right);
}

rlxvk_tensor floats(rlxvk_graph *g, rlxvk_shape shape, const float *values)
{
    return rlxvk_constant(g, RLXVK_F32, shape, values, shape_numel(&shape) * 4);
}

rlxvk_tensor build_norm(rlxvk_graph *g, bool rms, rlxvk_tensor s, int32_t axis)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, s);
    uint32_t at = (uint32_t)(axis < 0 ? axis + (int32_t)shape.rank : axis);
    rlxvk_tensor gamma = param(g, "gamma", RLXVK_SHAPE(shape.dims[at]));
    rlxvk_tensor beta = param(g, "beta", RLXVK_SHAPE(shape.dims[at]));
    return (rms ? rlxvk_rms_norm : rlxvk_layer_norm)(g, s, gamma, beta, axis, 1e-3f);
}
