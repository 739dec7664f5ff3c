/* Params whose weights were joined into one matrix. They are set, read, copied and shared like
 * other params, also with executables that do not join them. */
#include "exec/executable.h"
#include "support/harness.h"
#include "support/rewritten.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

enum { K = 64, PARTS = 3, PART = 64, ROWS = 4 };

typedef struct joined_case {
    int64_t rows;
    uint32_t parts; /* bits: the weights that the graph has */
    bool stored_by_columns, read_twice;
    rlxvk_dtype dtype;
    uint64_t prepared_bytes;
} joined_case;

static const char *const weights[PARTS] = {"q", "k", "v"};

static rlxvk_graph *projections(const joined_case *c)
{
    rlxvk_graph *g = new_graph();
    rlxvk_matmul_options o = {.transpose_b = !c->stored_by_columns};
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(c->rows, K));
    for (int i = 0; i < PARTS; i++) {
        if (!(c->parts >> i & 1))
            continue;
        rlxvk_tensor w = rlxvk_param(g, weights[i], c->dtype, RLXVK_SHAPE(PART, K));
        rlxvk_graph_output(g, rlxvk_matmul_with(g, x, w, &o));
        if (c->read_twice)
            rlxvk_graph_output(g, rlxvk_reduce_sum(g, w, (int32_t[]){0, 1}, 2, false));
    }
    return g;
}

static rlxvk_executable *projecting(const joined_case *c, rlxvk_executable *share_with)
{
    rlxvk_compile_options o = {.prepared_bytes = c->prepared_bytes,
                               .share_with = share_with,
                               .check_plan = RLXVK_ON};
    rlxvk_graph *g = projections(c);
    rlxvk_executable *e = NULL;
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    rlxvk_graph_destroy(g);
    return e;
}

/* Values that are exact as halves. */
static float weight_value(int part, int round, int i)
{
    return (float)((i * 7 + part * 5 + round * 3) % 17 - 8) / 8;
}

static void set_weight(rlxvk_executable *e, int part, int round)
{
    float w[PART * K];
    for (int i = 0; i < PART * K; i++)
        w[i] = weight_value(part, round, i);
    expect_ok(rlxvk_set_param_typed(e, weights[part], w, 4 * PART * K, RLXVK_F32));
}

static void expect_weight(rlxvk_executable *e, int part, int round)
{
    float w[PART * K];
    expect_ok(rlxvk_read_param_typed(e, weights[part], w, 4 * PART * K, RLXVK_F32));
    for (int i = 0; i < PART * K; i++)
        assert_true(w[i] == weight_value(part, round, i));
}

/* Checks all outputs that are products against the values that the weights should hold. */
static void expect_products(rlxvk_executable *e, const joined_case *c, const int rounds[PARTS])
{
    static float y[PARTS][ROWS * PART], x[ROWS * K];
    rlxvk_run_input in = {"x", x, (size_t)c->rows * K, RLXVK_F32};
    rlxvk_run_output out[PARTS];
    size_t count = 0;
    int part_of[PARTS];
    for (int i = 0; i < ROWS * K; i++)
        x[i] = (float)(i % 9 - 4) / 4;
    for (int i = 0; i < PARTS; i++)
        if (c->parts >> i & 1) {
            part_of[count] = i;
            out[count] = (rlxvk_run_output){count * (1 + c->read_twice), y[count],
                                            (size_t)c->rows * PART, RLXVK_F32};
            count++;
        }
    expect_ok(rlxvk_run(e, &in, 1, out, count));
    for (size_t o = 0; o < count; o++)
        for (int64_t i = 0; i < c->rows * PART; i++) {
            int64_t row = i / PART, column = i % PART;
            double sum = 0;
            for (int64_t k = 0; k < K; k++) {
                int64_t at = c->stored_by_columns ? k * PART + column : column * K + k;
                sum += (double)x[row * K + k] *
                       (double)weight_value(part_of[o], rounds[part_of[o]], (int)at);
            }
            assert_true((double)y[o][i] == sum); /* exact: small multiples of 1/32 */
        }
}

static rlxvk_plan_report plan_of(const rlxvk_executable *e)
{
    rlxvk_plan_report r;
    rlxvk_executable_plan(e, &r);
    return r;
}

static uint64_t weight_bytes(const rlxvk_executable *e)
{
    rlxvk_memory_report r;
    rlxvk_executable_memory(e, &r);
    return r.weight_bytes;
}

static void joined_weights_are_params(void **state)
{
    static const joined_case cases[] = {
        {.rows = 1, .parts = 7},
        {.rows = 1, .parts = 7, .dtype = RLXVK_F16},
        {.rows = 1, .parts = 5, .dtype = RLXVK_BF16},
        {.rows = ROWS, .parts = 7},
        {.rows = ROWS, .parts = 7, .dtype = RLXVK_F16},
        {.rows = 1, .parts = 7, .stored_by_columns = true, .prepared_bytes = UINT64_MAX},
        {.rows = 1, .parts = 7, .stored_by_columns = true},
        {.rows = 1, .parts = 7, .read_twice = true, .prepared_bytes = UINT64_MAX},
    };
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(cases); k++) {
        const joined_case *c = &cases[k];
        rlxvk_executable *e = projecting(c, NULL), *clone = NULL;
        int rounds[PARTS] = {0};
        bool apart = c->rows > 1 || (c->stored_by_columns && !c->prepared_bytes);
        bool copies = c->prepared_bytes != 0;
        uint64_t bytes = (uint64_t)(c->parts == 7 ? 3 : 2) * PART * K * 4;
        for (int i = 0; i < PARTS; i++)
            if (c->parts >> i & 1)
                set_weight(e, i, 0);
        expect_products(e, c, rounds);
        if (!c->read_twice)
            assert_int_equal(plan_of(e).dispatches, apart ? 3 : 1);
        assert_int_equal(plan_of(e).prepared_dispatches > 0, copies);
        assert_true(weight_bytes(e) <= bytes * (copies ? 2 : 1) + 4096);
        for (int i = 0; i < PARTS; i++) {
            if (!(c->parts >> i & 1))
                continue;
            set_weight(e, i, rounds[i] = 1 + i);
            expect_products(e, c, rounds);
            expect_weight(e, i, rounds[i]);
        }
        expect_weight(e, 0, rounds[0]);
        expect_ok(rlxvk_clone(e, &clone));
        set_weight(e, 2, 9);
        expect_products(clone, c, rounds);
        expect_weight(clone, 2, rounds[2]);
        rlxvk_executable_destroy(e);
        expect_products(clone, c, rounds);
        rlxvk_executable_destroy(clone);
    }
}

static void expect_shared(const joined_case *a, const joined_case *b, bool all)
{
    rlxvk_executable *first = projecting(a, NULL), *second = projecting(b, first);
    int rounds[PARTS] = {0};
    for (int i = 0; i < PARTS; i++)
        if ((a->parts | b->parts) >> i & 1)
            set_weight(a->parts >> i & 1 ? first : second, i, 0);
    if (all)
        assert_int_equal(weight_bytes(second), 0);
    expect_products(second, b, rounds);
    expect_products(first, a, rounds);
    for (int i = 0; i < PARTS; i++) {
        if (!(a->parts & b->parts & 1u << i))
            continue;
        set_weight(i & 1 ? first : second, i, rounds[i] = 2 + i);
        expect_weight(i & 1 ? second : first, i, rounds[i]);
        expect_products(first, a, rounds);
        expect_products(second, b, rounds);
    }
    rlxvk_executable_destroy(first);
    expect_products(second, b, rounds);
    rlxvk_executable_destroy(second);
}

/* Two executables share the same params, even if each joins them differently. */
static void joined_weights_are_shared(void **state)
{
    static const joined_case one = {.rows = 1, .parts = 7}, many = {.rows = ROWS, .parts = 7};
    static const joined_case k_alone = {.rows = 1, .parts = 2}, pair = {.rows = 1, .parts = 6};
    static const joined_case twice = {.rows = 1, .parts = 7, .read_twice = true};
    static const joined_case halves = {.rows = 1, .parts = 7, .dtype = RLXVK_F16};
    static const joined_case many_halves = {.rows = ROWS, .parts = 7, .dtype = RLXVK_F16};
    (void)state;
    expect_shared(&one, &many, true);
    expect_shared(&many, &one, true);
    expect_shared(&halves, &many_halves, true);
    expect_shared(&one, &k_alone, true);
    expect_shared(&one, &pair, true);
    expect_shared(&one, &twice, false); /* the sums add constants */
    expect_shared(&k_alone, &one, false);
    expect_shared(&pair, &one, false);
    expect_shared(&twice, &one, true);
    expect_shared(&twice, &many, true);
}

/* Different params with the same names: each executable keeps its own. */
static void others_are_not_shared(void **state)
{
    static const joined_case cases[] = {{.rows = 1, .parts = 7},
                                        {.rows = 1, .parts = 7, .dtype = RLXVK_F16}};
    const int rounds[2][PARTS] = {{0, 1, 2}, {3, 4, 5}};
    rlxvk_executable *e[2] = {projecting(&cases[0], NULL)};
    (void)state;
    e[1] = projecting(&cases[1], e[0]);
    for (int i = 0; i < PARTS; i++)
        for (int k = 0; k < 2; k++)
            set_weight(e[k], i, rounds[k][i]);
    for (int k = 0; k < 2; k++) {
        expect_products(e[k], &cases[k], rounds[k]);
        rlxvk_executable_destroy(e[k]);
    }
}

/* rlxvk_first_bad_node compiles a program that joins nothing, with the contents of one that joins.
 */
static void bad_weights_are_found(void **state)
{
    joined_case c = {.rows = 1, .parts = 7};
    float w[PART * K] = {[100] = NAN}, x[K] = {1};
    rlxvk_executable *e = projecting(&c, NULL);
    rlxvk_run_input in = {"x", x, K, RLXVK_F32};
    rlxvk_bad_node bad;
    (void)state;
    for (int i = 0; i < PARTS; i++)
        set_weight(e, i, 0);
    expect_ok(rlxvk_first_bad_node(e, &in, 1, &bad));
    assert_int_equal(bad.found, false);
    expect_ok(rlxvk_set_param_typed(e, "k", w, 4 * PART * K, RLXVK_F32));
    expect_ok(rlxvk_first_bad_node(e, &in, 1, &bad));
    assert_int_equal(bad.found, true);
    assert_string_equal(bad.name, "k");
    rlxvk_executable_destroy(e);
}

static void families_join(void **state)
{
    int rounds[PARTS] = {0};
    joined_case c = {.rows = rlxvk_symbol(RLXVK_BATCH), .parts = 7};
    rlxvk_executable *e = projecting(&c, NULL);
    (void)state;
    for (int i = 0; i < PARTS; i++)
        set_weight(e, i, 0);
    for (int round = 1; round < 4; round++)
        for (int i = 0; i < PARTS; i++) {
            c.rows = (i + round) % ROWS + 1;
            expect_products(e, &c, rounds);
            assert_int_equal(plan_of(e).dispatches, c.rows == 1 ? 1 : 3);
            set_weight(e, i, rounds[i] = round);
            expect_products(e, &c, rounds);
            expect_weight(e, i, round);
        }
    rlxvk_executable_destroy(e);
}

/* ---- Weights of other sizes ---- */

/* One row of x is multiplied by weights of these row counts. Each weight is filled with one number.
 */
static rlxvk_executable *uneven(const int64_t rows[PARTS], rlxvk_executable *share_with)
{
    rlxvk_compile_options o = {.share_with = share_with, .check_plan = RLXVK_ON};
    rlxvk_matmul_options how = {.transpose_b = true};
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(1, K));
    for (int i = 0; i < PARTS; i++)
        rlxvk_graph_output(g, rlxvk_matmul_with(g, x, param(g, weights[i], RLXVK_SHAPE(rows[i], K)),
                                                &how));
    expect_ok(rlxvk_compile(shared_context, g, &o, &e));
    rlxvk_graph_destroy(g);
    return e;
}

static void set_evenly(rlxvk_executable *e, int part, int64_t rows, float value)
{
    static float w[2 * PART * K];
    for (int64_t i = 0; i < rows * K; i++)
        w[i] = value;
    expect_ok(rlxvk_set_param_typed(e, weights[part], w, 4 * (size_t)(rows * K), RLXVK_F32));
}

static void expect_evenly(rlxvk_executable *e, const int64_t rows[PARTS], const float *values)
{
    static float y[2 * PART], x[K];
    for (int i = 0; i < K; i++)
        x[i] = 1;
    for (size_t p = 0; p < PARTS; p++) {
        rlxvk_run_input in = {"x", x, K, RLXVK_F32};
        rlxvk_run_output out = {p, y, (size_t)rows[p], RLXVK_F32};
        expect_ok(rlxvk_run(e, &in, 1, &out, 1));
        for (int64_t i = 0; i < rows[p]; i++)
            assert_true(y[i] == K * values[p]);
    }
}

/* If one of the params differs, no matter which, the joined weights are not shared. */
static void one_that_differs_is_enough(void **state)
{
    static const int64_t same[PARTS] = {PART, PART, PART};
    (void)state;
    for (int other = 0; other < PARTS; other++)
        for (int larger = 0; larger < 2; larger++) {
            int64_t rows[PARTS] = {PART, PART, PART};
            const float mine[PARTS] = {1, 2, 3}, theirs[PARTS] = {4, 5, 6};
            rows[other] = larger ? 2 * PART : PART / 2;
            rlxvk_executable *first = uneven(same, NULL), *second = uneven(rows, first);
            assert_int_equal(plan_of(first).dispatches, 1); /* joined */
            assert_int_equal(plan_of(second).dispatches, 1);
            for (int p = 0; p < PARTS; p++) {
                set_evenly(first, p, same[p], mine[p]);
                set_evenly(second, p, rows[p], theirs[p]);
            }
            expect_evenly(first, same, mine);
            expect_evenly(second, rows, theirs);
            rlxvk_executable_destroy(first);
            expect_evenly(second, rows, theirs);
            rlxvk_executable_destroy(second);
        }
}

/* Two groups of weights need memory for joined copies. As many groups are joined as prepared_bytes
 * allows. */
static void joins_stay_within_their_bytes(void **state)
{
    static const char *const names[] = {"q", "k", "v", "q2", "k2", "v2"};
    const uint64_t group = (uint64_t)PARTS * PART * K * 4;
    const struct {
        uint64_t bytes;
        uint32_t dispatches;
    } limits[] = {{2 * group, 2}, {2 * group - 1, 4}, {group, 4}, {group - 1, 6}, {0, 6}};
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(limits); k++) {
        rlxvk_compile_options o = {.prepared_bytes = limits[k].bytes, .check_plan = RLXVK_ON};
        rlxvk_graph *g = new_graph();
        rlxvk_executable *e = NULL;
        rlxvk_memory_report memory;
        rlxvk_tensor x[] = {input(g, "x", RLXVK_SHAPE(1, K)), input(g, "z", RLXVK_SHAPE(1, K))};
        for (int i = 0; i < 2 * PARTS; i++)
            rlxvk_graph_output(g, rlxvk_matmul(g, x[i / PARTS],
                                               param(g, names[i], RLXVK_SHAPE(K, PART))));
        expect_ok(rlxvk_compile(shared_context, g, &o, &e));
        rlxvk_executable_memory(e, &memory);
        assert_int_equal(plan_of(e).dispatches, limits[k].dispatches);
        assert_true(memory.prepared_bytes <= limits[k].bytes);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(joined_weights_are_params),
        cmocka_unit_test(joined_weights_are_shared),
        cmocka_unit_test(others_are_not_shared),
        cmocka_unit_test(bad_weights_are_found),
        cmocka_unit_test(families_join),
        cmocka_unit_test(one_that_differs_is_enough),
        cmocka_unit_test(joins_stay_within_their_bytes),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
