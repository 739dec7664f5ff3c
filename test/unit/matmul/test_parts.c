/*
 * Products that are written in parts of their columns. Every variant of every kernel that the
 * device can run must give the same bits as a whole product that is then copied, but without the
 * copies. This also holds for fewer rows than the product was compiled for.
 */
#include "op/choice/choice.h"
#include "exec/executable.h"
#include "support/harness.h"
#include "vk/vk.h"

#include <rlxvk_quant.h>
#include <rlxvk_symbols.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static rlxvk_context *whole_context; /* makes nothing in parts */

typedef struct product_case {
    int64_t rows, depth, widths[3]; /* if the last is 0, there are two parts */
    bool transposed, fused;
    int format;       /* of packed weights; -1: f32 */
    uint32_t outputs; /* bit i: part i is an output; bit i + 3: it is also read */
} product_case;

static product_case make_case(random_source *r, bool packed)
{
    static const rlxvk_quant_format formats[] = {RLXVK_Q4_K, RLXVK_Q8_0,  RLXVK_Q4_0,
                                                 RLXVK_Q6_K, RLXVK_IQ3_S, RLXVK_Q2_K};
    static const int64_t rows[] = {2, 3, 7, 17, 40, 70, 130};
    product_case c = {.rows = rows[random_below(r, ARRAY_COUNT(rows))],
                      .depth = packed ? 256 * (1 + random_below(r, 2)) : 1 + random_below(r, 600),
                      .transposed = random_below(r, 2),
                      .fused = random_below(r, 2),
                      .format = packed ? (int)formats[random_below(r, ARRAY_COUNT(formats))] : -1};
    int64_t unit = random_below(r, 2) ? 8 : 1; /* parts begin at multiples of 4, or not */
    for (int i = 0; i < 3; i++)
        c.widths[i] = unit * (1 + random_below(r, 9));
    if (random_below(r, 3) == 0)
        c.widths[2] = 0;
    c.outputs = random_below(r, 64);
    return c;
}

static rlxvk_tensor multiply(rlxvk_graph *g, const product_case *c, rlxvk_tensor x, int64_t columns)
{
    if (c->format >= 0) {
        rlxvk_quant_format format = (rlxvk_quant_format)c->format;
        int64_t bytes = (int64_t)rlxvk_quant_row_bytes(format, (uint64_t)c->depth);
        rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_U8, RLXVK_SHAPE(columns, bytes));
        return rlxvk_dequant_matmul(g, x, w, format);
    }
    rlxvk_tensor w = rlxvk_param(g, "w", RLXVK_F32,
                                 c->transposed ? RLXVK_SHAPE(columns, c->depth)
                                               : RLXVK_SHAPE(c->depth, columns));
    if (c->fused)
        return rlxvk_fused_matmul_bias_act(g, x, w,
                                           rlxvk_param(g, "b", RLXVK_F32, RLXVK_SHAPE(columns)),
                                           RLXVK_ACTIVATION_RELU, c->transposed);
    return rlxvk_matmul_with(g, x, w, &(rlxvk_matmul_options){.transpose_b = c->transposed});
}

static rlxvk_graph *build(const product_case *c)
{
    rlxvk_graph *g = NULL;
    int64_t at = 0;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(c->rows, c->depth));
    rlxvk_tensor y = multiply(g, c, x, c->widths[0] + c->widths[1] + c->widths[2]);
    for (int i = 0; i < 3 && c->widths[i]; at += c->widths[i++]) {
        rlxvk_tensor part = rlxvk_narrow(g, y, 1, at, c->widths[i]);
        bool is_output = c->outputs >> i & 1;
        if (is_output)
            rlxvk_graph_output(g, part);
        if (!is_output || c->outputs >> (i + 3) & 1)
            rlxvk_graph_output(g, rlxvk_softmax(g, part, 1));
    }
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static float *run_case(rlxvk_context *context, const rlxvk_graph *g,
                       const rlxvk_compile_options *options, uint64_t seed, uint64_t *dispatches,
                       size_t *count)
{
    rlxvk_executable *e = NULL;
    rlxvk_plan_report report;
    expect_ok(rlxvk_compile(context, g, options, &e));
    rlxvk_executable_plan(e, &report);
    *dispatches = report.dispatches;
    float *values = run_seeded(e, g, seed, false, count);
    rlxvk_executable_destroy(e);
    return values;
}

static void compare(const product_case *c, const rlxvk_compile_options *options, uint64_t seed)
{
    rlxvk_graph *g = build(c);
    uint64_t with, without;
    size_t count;
    float *parts = run_case(shared_context, g, options, seed, &with, &count);
    float *whole = run_case(whole_context, g, options, seed, &without, &count);
    const rlxvk_variant *v = options->variants;
    if (memcmp(parts, whole, count * sizeof *parts) != 0)
        fail_msg("%s=%s, %s: %lldx%lld by columns %lld, %lld, %lld: other bits in parts", v->kind,
                 v->row, rlxvk_precision_name(options->precision), (long long)c->rows,
                 (long long)c->depth, (long long)c->widths[0], (long long)c->widths[1],
                 (long long)c->widths[2]);
    assert_int_equal(without - with, c->widths[2] ? 3 : 2);
    free(parts);
    free(whole);
    rlxvk_graph_destroy(g);
}

/* Whether the device has units for the precision. f32 needs none. */
static bool has_precision(rlxvk_precision precision)
{
    const device_profile *p = &shared_context->device->setup.profile;
    return precision == RLXVK_PRECISION_F32 ||
           (precision == RLXVK_PRECISION_BF16 ? p->matrix_bf16.m : p->matrix_f16.m) != 0;
}

static void every_variant(void **state)
{
    static const struct {
        choice_kind kind;
        bool packed;
    } products[] = {{CHOICE_matmul, false},        {CHOICE_matrix, false},
                    {CHOICE_dequant, true},        {CHOICE_matrix_packed, true},
                    {CHOICE_dequant_vector, true}, {CHOICE_dequant_tile, true},
                    {CHOICE_dequant_panel, true},  {CHOICE_dequant_fragment, true}};
    random_source r = {5};
    (void)state;
    for (size_t f = 0; f < ARRAY_COUNT(products); f++) {
        const kernel_kind *kind = &choice_kinds[products[f].kind];
        unsigned precisions = kind->precisions ? kind->precisions : 1;
        for (size_t i = 0; i < kind->table->count; i++)
            for (int p = 0; p < 4; p++) {
                const rlxvk_variant variant = {kind->name, choice_row_name(kind, i)};
                const rlxvk_compile_options options = {.variants = &variant,
                                                       .variant_count = 1,
                                                       .precision = (rlxvk_precision)p,
                                                       .check_plan = RLXVK_ON,
                                                       .forbid_host = RLXVK_ON};
                product_case c = make_case(&r, products[f].packed);
                if (precisions >> p & 1 && has_precision(options.precision))
                    compare(&c, &options, 10 * i + (uint64_t)p);
            }
    }
}

/* If only some rows are active, they must be the same as in a run of all rows. */
static void fewer_rows(void **state)
{
    static const rlxvk_bucket_axis axes[] = {{"x", 0}};
    const product_case c = {.rows = 70, .depth = 64, .widths = {24, 8, 16}, .format = -1};
    const rlxvk_compile_options options = {.bucket_axes = axes, .bucket_axis_count = 1};
    static float x[70 * 64], all[3][70 * 24], some[3][70 * 24];
    rlxvk_run_input in = {"x", x, ARRAY_COUNT(x), RLXVK_F32};
    rlxvk_run_output out[2][3];
    rlxvk_graph *g = build(&c);
    rlxvk_executable *e = NULL;
    random_source r = {3};
    float w[64 * 48];
    (void)state;
    random_fill(&r, false, x, ARRAY_COUNT(x));
    random_fill(&r, false, w, ARRAY_COUNT(w));
    for (uint32_t i = 0; i < 3; i++) {
        out[0][i] = (rlxvk_run_output){i, all[i], 70 * (size_t)c.widths[i], RLXVK_F32};
        out[1][i] = (rlxvk_run_output){i, some[i], 70 * (size_t)c.widths[i], RLXVK_F32};
    }
    expect_ok(rlxvk_compile(shared_context, g, &options, &e));
    assert_true(rlxvk_extent_supported(e, NULL));
    expect_ok(rlxvk_set_param(e, "w", w, ARRAY_COUNT(w)));
    expect_ok(rlxvk_run(e, &in, 1, out[0], 3));
    for (int64_t rows = 1; rows < 70; rows += 17) {
        expect_ok(rlxvk_set_active_extent(e, rows, 70));
        expect_ok(rlxvk_run(e, &in, 1, out[1], 3));
        for (int i = 0; i < 3; i++)
            assert_memory_equal(some[i], all[i], (size_t)(rows * c.widths[i]) * sizeof(float));
    }
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

static int open_both(void **state)
{
    setenv("RLXVK_NO_STRIDED_ACCESS", "1", 1);
    whole_context = open_context(NULL);
    unsetenv("RLXVK_NO_STRIDED_ACCESS");
    return open_shared_context(state);
}

static int close_both(void **state)
{
    close_context(whole_context);
    return close_shared_context(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_variant),
                                       cmocka_unit_test(fewer_rows)};
    return cmocka_run_group_tests(tests, open_both, close_both);
}
