/* RLXVK_CHECK=index: every op that reads indices or positions reports the first one out of range.
 */
#include "support/harness.h"

#include <rlxvk_ops.h>
#include <rlxvk_ops_array.h>
#include <rlxvk_ops_domain.h>
#include <rlxvk_train.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static rlxvk_tensor ones(rlxvk_graph *g, rlxvk_shape s)
{
    return rlxvk_expand(g, rlxvk_scalar(g, 1), s);
}

static rlxvk_tensor gather(rlxvk_graph *g, rlxvk_tensor i)
{
    return rlxvk_gather(g, ones(g, RLXVK_SHAPE(4, 3)), i, 0);
}

static rlxvk_tensor take(rlxvk_graph *g, rlxvk_tensor i)
{
    return rlxvk_take_along_axis(g, ones(g, RLXVK_SHAPE(4)), i, 0);
}

static rlxvk_tensor gather_rows(rlxvk_graph *g, rlxvk_tensor i)
{
    return rlxvk_gather_nd(g, ones(g, RLXVK_SHAPE(4, 6, 3)),
                           rlxvk_reshape(g, i, RLXVK_SHAPE(1, 2)));
}

static rlxvk_tensor scatter(rlxvk_graph *g, rlxvk_tensor i)
{
    return rlxvk_scatter(g, ones(g, RLXVK_SHAPE(4)), i, ones(g, RLXVK_SHAPE(2)), 0,
                         RLXVK_SCATTER_ADD);
}

static rlxvk_tensor scatter_rows(rlxvk_graph *g, rlxvk_tensor i)
{
    return rlxvk_scatter_nd(g, ones(g, RLXVK_SHAPE(4, 6, 3)),
                            rlxvk_reshape(g, i, RLXVK_SHAPE(1, 2)), ones(g, RLXVK_SHAPE(1, 3)),
                            RLXVK_SCATTER_ADD);
}

static rlxvk_tensor scatter_add(rlxvk_graph *g, rlxvk_tensor i)
{
    return rlxvk_scatter_add(g, ones(g, RLXVK_SHAPE(2, 3)), i, 4);
}

static rlxvk_tensor loss(rlxvk_graph *g, rlxvk_tensor i)
{
    return rlxvk_softmax_cross_entropy(g, ones(g, RLXVK_SHAPE(2, 4)), i);
}

static rlxvk_tensor experts(rlxvk_graph *g, rlxvk_tensor i)
{
    return rlxvk_grouped_matmul(g, ones(g, RLXVK_SHAPE(2, 3)), ones(g, RLXVK_SHAPE(4, 3, 5)), i,
                                false);
}

/* Writes two rows from the first index on. The second index is not used. */
static rlxvk_tensor write(rlxvk_graph *g, rlxvk_tensor i)
{
    rlxvk_tensor cache = rlxvk_input(g, "cache", RLXVK_F32, RLXVK_SHAPE(1, 5, 4));
    return rlxvk_write_rows(g, cache, ones(g, RLXVK_SHAPE(1, 2, 4)), rlxvk_narrow(g, i, 0, 0, 1));
}

static rlxvk_tensor step_at(rlxvk_graph *g, rlxvk_tensor position, int64_t batch, int64_t n,
                            int64_t entries)
{
    const rlxvk_attention_step_options o = {.heads = 1, .head_dim = 4};
    rlxvk_tensor rows = rlxvk_mul(g, ones(g, RLXVK_SHAPE(batch, n, 4)), rlxvk_scalar(g, 2));
    rlxvk_shape caches = RLXVK_SHAPE(entries, 1, 4, 4);
    return rlxvk_attention_step(g, rows, rlxvk_exp(g, rows), rlxvk_neg(g, rows),
                                rlxvk_input(g, "keys", RLXVK_F32, caches),
                                rlxvk_input(g, "values", RLXVK_F32, caches), position, RLXVK_NONE,
                                RLXVK_NONE, &o);
}

static rlxvk_tensor step(rlxvk_graph *g, rlxvk_tensor i)
{
    return step_at(g, i, 2, 1, 2);
}

/* The second index selects one of six cache entries for the sequence. */
static rlxvk_tensor step_of_entry(rlxvk_graph *g, rlxvk_tensor i)
{
    return step_at(g, rlxvk_reshape(g, i, RLXVK_SHAPE(1, 2)), 1, 1, 6);
}

/* Three rows. The later ones may be padding beyond the end of the cache. */
static rlxvk_tensor step_padded(rlxvk_graph *g, rlxvk_tensor i)
{
    return step_at(g, i, 2, 3, 2);
}

static size_t elements(const rlxvk_shape *s)
{
    size_t count = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        count *= (size_t)s->dims[i];
    return count;
}

/* Two values each in `good` and `bad`. One of the bad ones is out of range. */
static const struct {
    const char *name;
    rlxvk_tensor (*build)(rlxvk_graph *g, rlxvk_tensor index);
    float good[2], bad[2];
    const char *said;
} rows[] = {
    {"gather", gather, {0, 3}, {3, 4}, "outside 0 .. 3; the first is 4 at position 1"},
    {"gather, below", gather, {0, 3}, {-1, 3}, "outside 0 .. 3; the first is -1 at position 0"},
    {"take_along_axis", take, {0, 3}, {4, 0}, "outside 0 .. 3; the first is 4 at position 0"},
    {"gather_nd", gather_rows, {3, 5}, {4, 5}, "outside 0 .. 3; the first is 4 at position 0"},
    {"gather_nd, axis 1", gather_rows, {3, 4}, {3, 6}, "outside 0 .. 5; the first is 6"},
    {"scatter", scatter, {0, 3}, {0, 4}, "outside 0 .. 3; the first is 4 at position 1"},
    {"scatter_nd", scatter_rows, {3, 5}, {4, 5}, "outside 0 .. 3; the first is 4 at position 0"},
    {"scatter_nd, axis 1", scatter_rows, {3, 4}, {3, 6}, "outside 0 .. 5; the first is 6"},
    {"scatter_add", scatter_add, {0, 3}, {0, 4}, "outside 0 .. 3; the first is 4 at position 1"},
    {"labels", loss, {-100, 3}, {0, 4}, "outside 0 .. 3; the first is 4 at position 1"},
    {"experts", experts, {0, 3}, {0, 4}, "outside 0 .. 3; the first is 4 at position 1"},
    {"write_rows", write, {3, 0}, {4, 0}, "outside 0 .. 3; the first is 4 at position 0"},
    {"attention_step", step, {0, 3}, {0, 4}, "outside 0 .. 3; the first is 4 at position 1"},
    {"attention_step, idle", step, {-1, NAN}, {NAN, 9}, "outside 0 .. 3; the first is 9"},
    {"attention_step, int32_t 2", step, {0, 2}, {0, 2.8e-45f}, "at position 1, an int32_t in"},
    {"attention_step, padded", step_padded, {3, -1}, {3, 4}, "outside 0 .. 3; the first is 4"},
    {"entries", step_of_entry, {3, 5}, {3, 6}, "outside 0 .. 5; the first is 6 at position 1"},
};

static void each_op_says_which_index_is_outside(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int checked = 0; checked < 2; checked++) {
            rlxvk_graph *g = NULL;
            rlxvk_executable *e = NULL;
            float caches[6 * 16] = {0};
            expect_ok(rlxvk_graph_create(&g));
            rlxvk_graph_output(g, rows[r].build(g, rlxvk_input(g, "i", RLXVK_F32, RLXVK_SHAPE(2))));
            rlxvk_compile_options o = {.check_index = checked ? RLXVK_ON : RLXVK_OFF};
            expect_ok(rlxvk_compile(shared_context, g, &o, &e));
            for (int bad = 0; bad < 2; bad++) {
                rlxvk_run_input in[4] = {
                    {.name = "i", .data = bad ? rows[r].bad : rows[r].good, .length = 2}};
                size_t count = 1;
                rlxvk_tensor_info infos[4];
                size_t inputs;
                expect_ok(rlxvk_executable_inputs(e, infos, 4, &inputs));
                for (size_t i = 0; i < inputs; i++)
                    if (strcmp(infos[i].name, "i") != 0)
                        in[count++] = (rlxvk_run_input){.name = infos[i].name,
                                                        .data = caches,
                                                        .length = elements(&infos[i].shape)};
                rlxvk_status status = rlxvk_run(e, in, count, NULL, 0);
                if ((status != RLXVK_OK) != (bad && checked))
                    fail_msg("%s: %s", rows[r].name, rlxvk_last_error());
                if (status != RLXVK_OK)
                    expect_error(status, RLXVK_E_INDEX_OOB, rows[r].said);
            }
            rlxvk_executable_destroy(e);
            rlxvk_graph_destroy(g);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_op_says_which_index_is_outside)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
