/*
 * Weights that are larger than what the device binds. The products read them in parts; the params
 * stay whole for whoever sets and reads them. What cannot be read in parts is still an error that
 * names the tensor.
 */
#include "exec/executable.h"
#include "op/matmul/matmul.h"
#include "support/rewritten.h"

#include <rlxvk_quant.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

enum { BINDING = 1 << 16 };

static rlxvk_context *small;

static int open_small(void **state)
{
    (void)state;
    small = open_context(&(rlxvk_context_options){.limit_binding_bytes = BINDING});
    small->switches.check |= CHECK_PLAN;
    return 0;
}

static int close_small(void **state)
{
    (void)state;
    close_context(small);
    return 0;
}

typedef struct product {
    int64_t rows, columns, x_rows;
    bool fused;
    uint32_t parts;
    bool inner; /* the weight's rows are the inner axis */
} product;

static rlxvk_graph *build(const product *c)
{
    rlxvk_graph *g = new_graph();
    rlxvk_matmul_options options = {false, !c->inner};
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(c->x_rows, c->inner ? c->rows : c->columns));
    rlxvk_tensor w = param(g, "w", RLXVK_SHAPE(c->rows, c->columns));
    rlxvk_tensor y = rlxvk_matmul_with(g, x, w, &options);
    if (c->fused)
        y = rlxvk_relu(g, rlxvk_add(g, y,
                                    param(g, "b", RLXVK_SHAPE(c->inner ? c->columns : c->rows))));
    rlxvk_graph_set_name(g, y, "y");
    rlxvk_graph_output(g, y);
    return g;
}

/* The number of products. No operand is above the limit, and each begins at an aligned address. */
static uint32_t count_parts(const rlxvk_executable *e)
{
    const schedule *s = &e->program->schedule;
    for (size_t i = 0; i < s->dispatches.count; i++)
        for (uint32_t k = 0; k < s->dispatches.items[i].operand_count; k++) {
            const operand *o = &s->dispatches.items[i].operands[k];
            assert_true(o->size <= BINDING);
            assert_int_equal(o->first % small->device->setup.profile.slot_alignment, 0);
        }
    return count_op(e->program->graph, OP_matmul) +
           count_op(e->program->graph, OP_fused_matmul_bias_act);
}

static void expect_parts(const product *c, const rlxvk_compile_options *options)
{
    rlxvk_graph *g = build(c);
    rlxvk_executable *e = NULL;
    size_t count = 0, wanted = 0;
    expect_ok(rlxvk_compile(small, g, options, &e));
    assert_int_equal(count_parts(e), c->parts);
    float *got = run_seeded(e, g, 1, true, &count);
    float *reference = evaluate_seeded(g, 1, true, &wanted);
    assert_int_equal(count, wanted);
    assert_memory_equal(got, reference, count * sizeof *got);
    free(got);
    free(reference);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static void products_read_parts(void **state)
{
    static const product cases[] = {
        {256, 64, 3, false, 1},  /* just small enough */
        {257, 64, 3, false, 2},  /* just too large */
        {1024, 64, 1, false, 4}, /* one row */
        {1000, 64, 3, false, 4}, /* the last part is smaller */
        {1000, 48, 3, false, 3}, /* rows that begin at no aligned address */
        {1000, 64, 3, true, 4},  /* with bias and activation */
        {256, 64, 3, false, 1, true}, {1000, 64, 3, false, 4, true}, {1000, 64, 1, true, 4, true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        expect_parts(&cases[i], NULL);
        /* Small integers are also exact as halves. */
        expect_parts(&cases[i], &(rlxvk_compile_options){.weight_storage = RLXVK_WEIGHTS_F16});
    }
}

enum { ROWS = 1000, COLUMNS = 64, INDICES = 16 };

static rlxvk_executable *compile_gather(const rlxvk_compile_options *options)
{
    static float table[ROWS * COLUMNS];
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_tensor w = param(g, "w", RLXVK_SHAPE(ROWS, COLUMNS));
    rlxvk_tensor y = rlxvk_gather(g, w, input(g, "i", RLXVK_SHAPE(2, INDICES / 2)), 0);
    rlxvk_graph_set_name(g, y, "y");
    rlxvk_graph_output(g, y);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        table[i] = (float)(i / COLUMNS * 2 + i % 2);
    expect_ok(rlxvk_compile(small, g, options, &e));
    expect_ok(rlxvk_set_param_typed(e, "w", table, sizeof table, RLXVK_F32));
    rlxvk_graph_destroy(g);
    return e;
}

static rlxvk_status run_gather(rlxvk_executable *e, const float *indices, float *got)
{
    rlxvk_run_input in = {"i", indices, INDICES, .f32_words = true};
    rlxvk_run_output out = {.index = 0,
                            .buffer = got,
                            .length = INDICES * COLUMNS,
                            .f32_words = true};
    return rlxvk_run(e, &in, 1, &out, 1);
}

/* Indices at the borders of parts, between rows, and outside, as one gather reads them. */
static void gathers_read_parts(void **state)
{
    static const float indices[INDICES] = {0,   1,      255, 255.4f, 255.5f, 256,  257, 511.5f,
                                           512, 767.6f, 768, 999,    1000,   2e7f, -5,  NAN};
    static float got[INDICES * COLUMNS];
    const rlxvk_compile_options halves = {.weight_storage = RLXVK_WEIGHTS_F16};
    (void)state;
    for (int half = 0; half < 2; half++) {
        rlxvk_executable *e = compile_gather(half ? &halves : NULL);
        assert_int_equal(count_op(e->program->graph, OP_gather), 4);
        (void)count_parts(e);
        expect_ok(run_gather(e, indices, got));
        for (int i = 0; i < INDICES; i++) {
            double row = floor((double)indices[i] + 0.5);
            row = row > 0 ? fmin(row, ROWS - 1) : 0;
            for (int k = 0; k < COLUMNS; k++)
                assert_true(got[i * COLUMNS + k] == (float)(row * 2 + k % 2));
        }
        rlxvk_executable_destroy(e);
    }
}

/* Indices that are clamped into a part are not outside; those outside the whole weight are. */
static void indices_outside_are_found(void **state)
{
    static float got[INDICES * COLUMNS], indices[INDICES] = {0, 255, 256, 511, 512, 767, 768, 999};
    const rlxvk_compile_options checked = {.check_index = RLXVK_ON};
    rlxvk_executable *e = compile_gather(&checked);
    (void)state;
    expect_ok(run_gather(e, indices, got));
    indices[3] = 1000;
    assert_int_not_equal(run_gather(e, indices, got), RLXVK_OK);
    indices[3] = -1;
    assert_int_not_equal(run_gather(e, indices, got), RLXVK_OK);
    rlxvk_executable_destroy(e);
}

/* ---- Packed weights: parts of 240 rows, because rows of 272 bytes begin at multiples of 256 only
 * every 16 rows ---- */

enum { PACKED_K = 256, PACKED_BYTES = 272 };

static rlxvk_graph *build_packed(bool gather)
{
    rlxvk_graph *g = new_graph();
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_U8, RLXVK_SHAPE(ROWS, PACKED_BYTES));
    rlxvk_tensor x = input(g, "x", gather ? RLXVK_SHAPE(2, INDICES / 2) : RLXVK_SHAPE(3, PACKED_K));
    rlxvk_tensor y = gather ? rlxvk_dequant_gather(g, w, x, RLXVK_Q8_0, PACKED_K)
                            : rlxvk_dequant_matmul(g, x, w, RLXVK_Q8_0);
    rlxvk_graph_set_name(g, y, "y");
    rlxvk_graph_output(g, y);
    return g;
}

static float *run_packed(rlxvk_context *c, bool gather, const float *x, size_t count, size_t length)
{
    static uint8_t packed[ROWS * PACKED_BYTES];
    float row[PACKED_K], *y = malloc(length * sizeof *y);
    rlxvk_graph *g = build_packed(gather);
    rlxvk_executable *e = NULL;
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < PACKED_K; k++)
            row[k] = (float)((i * 7 + k * 13) % 101 - 50) / 8;
        expect_ok(rlxvk_quant_encode_row(RLXVK_Q8_0, row, PACKED_K, packed + i * PACKED_BYTES));
    }
    expect_ok(rlxvk_compile(c, g, NULL, &e));
    if (c == small) {
        (void)count_parts(e);
        assert_int_equal(count_op(e->program->graph,
                                  gather ? OP_dequant_gather : OP_dequant_matmul),
                         5);
    }
    expect_ok(rlxvk_set_param_bytes(e, "w", packed, sizeof packed));
    rlxvk_run_input in = {"x", x, count, .f32_words = true};
    rlxvk_run_output out = {.index = 0, .buffer = y, .length = length, .f32_words = true};
    expect_ok(rlxvk_run(e, &in, 1, &out, 1));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return y;
}

/* The same as on a device that binds the whole weight: rows exactly, products within rounding. */
static void packed_weights_are_read_in_parts(void **state)
{
    static const float indices[INDICES] = {0,   1,   239, 239.4f, 239.5f, 240,  479, 480,
                                           719, 720, 959, 960,    999,    1000, -1,  NAN};
    static float x[3 * PACKED_K];
    rlxvk_context *whole = open_context(NULL);
    (void)state;
    for (int i = 0; i < 3 * PACKED_K; i++)
        x[i] = (float)(i % 37 - 18) / 16;
    for (int gather = 0; gather < 2; gather++) {
        size_t length = gather ? INDICES * PACKED_K : 3 * ROWS;
        const float *in = gather ? indices : x;
        size_t count = gather ? INDICES : 3 * PACKED_K;
        float *got = run_packed(small, gather, in, count, length);
        float *wanted = run_packed(whole, gather, in, count, length);
        for (size_t i = 0; i < length; i++)
            assert_true(fabsf(got[i] - wanted[i]) <= (gather ? 0 : 1e-3F));
        free(got);
        free(wanted);
    }
    close_context(whole);
}

/* ---- Weights of experts. Each is the whole weight's result to the bit, also for rows that name no
 * expert or numbers between two. ---- */

typedef struct expert_case {
    rlxvk_quant_format format;
    bool plain, transposed; /* plain: no format, but floats */
    int64_t experts, n, k, rows;
    uint32_t parts;
} expert_case;

static const expert_case expert_cases[] = {
    /* 8 experts of 17,408 bytes: three a part */
    {RLXVK_Q8_0, false, false, 8, 64, 256, 5, 3},
    {RLXVK_Q8_0, false, false, 8, 128, 128, 70, 3}, /* sorted */
    {RLXVK_Q4_K, false, false, 20, 32, 512, 30, 3},
    {RLXVK_IQ2_XXS, false, false, 40, 64, 256, 40, 3}, /* with a grid */
    /* experts of 69,632 bytes: 240 of 256 rows, then 16 */
    {RLXVK_Q8_0, false, false, 2, 256, 256, 20, 4},
    {RLXVK_Q8_0, false, false, 1, 300, 256, 20, 2},
    {0, true, false, 9, 32, 64, 24, 2},
    {0, true, true, 9, 32, 64, 24, 2},
    {0, true, true, 2, 300, 64, 24, 4},
};

static uint64_t bytes_of_row(const expert_case *t)
{
    return t->plain ? 4 * (uint64_t)t->k : rlxvk_quant_row_bytes(t->format, (uint64_t)t->k);
}

static rlxvk_executable *compile_experts(rlxvk_context *c, const expert_case *t, bool checked)
{
    const rlxvk_compile_options options = {.check_index = checked ? RLXVK_ON : RLXVK_DEFAULT};
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    rlxvk_tensor x = input(g, "x", RLXVK_SHAPE(t->rows, t->k));
    rlxvk_tensor i = input(g, "i", RLXVK_SHAPE(t->rows)), y;
    if (t->plain) {
        int64_t a = t->transposed ? t->n : t->k, b = t->transposed ? t->k : t->n;
        y = rlxvk_grouped_matmul(g, x, param(g, "w", RLXVK_SHAPE(t->experts, a, b)), i,
                                 t->transposed);
    } else {
        rlxvk_shape shape = {2, {t->experts, t->n * (int64_t)bytes_of_row(t)}};
        rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_U8, shape);
        y = rlxvk_dequant_grouped_matmul(g, x, w, i, t->format, t->n);
    }
    rlxvk_graph_set_name(g, y, "y");
    rlxvk_graph_output(g, y);
    expect_ok(rlxvk_compile(c, g, &options, &e));
    rlxvk_graph_destroy(g);
    return e;
}

/* Formats with a grid have no encoder, so their bytes are any that make finite scales. */
static void encode(const expert_case *t, const float *row, uint64_t bytes, uint8_t *out)
{
    if (t->plain)
        memcpy(out, row, bytes);
    else if (t->format == RLXVK_IQ2_XXS)
        for (uint64_t i = 0; i < bytes; i++)
            out[i] = (uint8_t)((int)row[i % (uint64_t)t->k] + (int)(i * 37)) % 60;
    else
        expect_ok(rlxvk_quant_encode_row(t->format, row, (uint64_t)t->k, out));
}

static void set_experts(rlxvk_executable *e, const expert_case *t)
{
    size_t rows = (size_t)(t->experts * t->n), k = (size_t)t->k;
    uint64_t bytes = bytes_of_row(t);
    uint8_t *w = malloc(rows * bytes);
    float *row = malloc(k * sizeof *row);
    for (size_t r = 0; r < rows; r++) {
        for (size_t p = 0; p < k; p++)
            row[p] = (float)((r * 7 + p * 13) % 101) / 8 - 6;
        encode(t, row, bytes, w + r * bytes);
    }
    expect_ok(t->plain ? rlxvk_set_param_typed(e, "w", w, rows * bytes, RLXVK_F32)
                       : rlxvk_set_param_bytes(e, "w", w, rows * bytes));
    free(w);
    free(row);
}

/* Rows name the experts in turn; some name none. */
static rlxvk_status run_experts(rlxvk_executable *e, const expert_case *t, const float *odd,
                                size_t odd_count, float *y)
{
    size_t rows = (size_t)t->rows, k = (size_t)t->k;
    float *x = malloc(rows * k * sizeof *x), *index = malloc(rows * sizeof *index);
    for (size_t i = 0; i < rows * k; i++)
        x[i] = (float)(i % 37) / 16 - 1;
    for (size_t i = 0; i < rows; i++)
        index[i] = i < odd_count ? odd[i] : (float)(i * 5 % (size_t)t->experts);
    rlxvk_run_input in[] = {{"x", x, rows * k, .f32_words = true},
                            {"i", index, rows, .f32_words = true}};
    rlxvk_run_output out = {.index = 0,
                            .buffer = y,
                            .length = rows * (size_t)t->n,
                            .f32_words = true};
    rlxvk_status status = rlxvk_run(e, in, 2, &out, 1);
    free(x);
    free(index);
    return status;
}

static void experts_are_read_in_parts(void **state)
{
    static const float odd[] = {-1, 2.5f, NAN, 2.4999998f, 1e9f};
    rlxvk_context *whole = open_context(NULL);
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(expert_cases); i++) {
        const expert_case *t = &expert_cases[i];
        rlxvk_context *contexts[] = {small, whole};
        float *y[2];
        size_t count = (size_t)(t->rows * t->n);
        for (int c = 0; c < 2; c++) {
            rlxvk_executable *e = compile_experts(contexts[c], t, false);
            uint32_t parts = count_op(e->program->graph, OP_grouped_matmul) +
                             count_op(e->program->graph, OP_dequant_grouped_matmul);
            assert_int_equal(parts, c ? 1 : t->parts);
            if (c == 0)
                (void)count_parts(e);
            set_experts(e, t);
            y[c] = malloc(count * sizeof *y[c]);
            expect_ok(run_experts(e, t, odd, ARRAY_COUNT(odd), y[c]));
            rlxvk_executable_destroy(e);
        }
        assert_memory_equal(y[0], y[1], count * sizeof *y[0]);
        free(y[0]);
        free(y[1]);
    }
    close_context(whole);
}

/* Indices of other parts are not outside. The message has the index that was given. */
static void experts_outside_are_found(void **state)
{
    static const float above[] = {8}, below[] = {-1};
    static float y[5 * 64];
    const expert_case *t = &expert_cases[0];
    rlxvk_executable *e = compile_experts(small, t, true);
    (void)state;
    set_experts(e, t);
    expect_ok(run_experts(e, t, NULL, 0, y));
    expect_error(run_experts(e, t, above, 1, y), RLXVK_E_INDEX_OOB,
                 "1 indices are outside 0 .. 7; the first is 8 at position 0");
    expect_error(run_experts(e, t, below, 1, y), RLXVK_E_INDEX_OOB, "the first is -1");
    rlxvk_executable_destroy(e);
}

static void others_are_refused(void **state)
{
    static const rlxvk_matmul_options transposed = {.transpose_a = true};
    rlxvk_graph *g = new_graph();
    rlxvk_executable *e = NULL;
    (void)state;
    rlxvk_tensor w = param(g, "w", RLXVK_SHAPE(1024, 64));
    rlxvk_graph_output(g,
                       rlxvk_matmul_with(g, w, input(g, "x", RLXVK_SHAPE(1024, 3)), &transposed));
    expect_error(rlxvk_compile(small, g, NULL, &e), RLXVK_E_TOO_LARGE,
                 "param 'w' (node 0) of shape 1024x64 needs 262144 bytes");
    assert_null(e);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_read_parts),
        cmocka_unit_test(gathers_read_parts),
        cmocka_unit_test(indices_outside_are_found),
        cmocka_unit_test(packed_weights_are_read_in_parts),
        cmocka_unit_test(experts_are_read_in_parts),
        cmocka_unit_test(experts_outside_are_found),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, open_small, close_small);
}
