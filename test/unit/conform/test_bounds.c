/*
 * The error bounds of the references are tested. For every case of optimizers and splats, a result
 * that is off by 1.5 bounds must fail. Bounds must also not be wider than rounding needs: their sum
 * over the sum of the results may not exceed today's value by more than a margin.
 *
 * Also tests the addition that the golden reader makes to a bound if f32 rounds an attribute.
 */
#include "conform/conform.h"
#include "op/op.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

typedef struct reference {
    case_spec spec;
    rlxvk_graph *graph;
    rlxvk_tensor leaves[CASE_MAX_INPUTS], result;
    void *contents[CASE_MAX_INPUTS];
    evaluation v;
    const double *exact, *bounds;
    uint64_t count;
} reference;

/* Returns false if the case expects an error. */
static bool open_reference(reference *r, const char *line)
{
    const conform_case given = {.line = line};
    uint64_t offset;
    memset(r, 0, sizeof *r);
    assert_int_equal(case_parse(line, &r->spec), RLXVK_OK);
    if (case_word(&r->spec, "expect", NULL))
        return false;
    assert_int_equal(conform_build(&r->spec, &r->graph, r->leaves, &r->result), RLXVK_OK);
    assert_int_equal(conform_fill(&r->spec, &given, 1, r->contents), RLXVK_OK);
    assert_int_equal(evaluation_create(r->graph, &r->v), RLXVK_OK);
    for (size_t i = 0; i < r->spec.input_count; i++)
        assert_int_equal(evaluation_set(&r->v, r->leaves[i].id - 1, r->contents[i]), RLXVK_OK);
    assert_int_equal(evaluation_run(&r->v), RLXVK_OK);
    uint32_t node = conform_source(r->graph, r->result.id - 1, &offset);
    rlxvk_shape shape = rlxvk_tensor_shape(r->graph, r->result);
    r->exact = r->v.exact[node] + offset;
    r->bounds = r->v.bounds[node] + offset;
    r->count = shape_numel(&shape);
    return true;
}

static void close_reference(reference *r)
{
    for (size_t i = 0; i < CASE_MAX_INPUTS; i++)
        memory_free(r->contents[i]);
    if (r->v.graph)
        evaluation_destroy(&r->v);
    rlxvk_graph_destroy(r->graph);
}

typedef struct tally {
    double bounds, values;
    uint64_t judged, all;
} tally;

/* Moves the result by 1.5 bounds, away from 0, and rounds it to f32. The comparison must refuse
 * it. */
static void check_moved(const char *line, double exact, double bound)
{
    float step = bound > 0 ? 0 : nextafterf((float)exact, INFINITY) - (float)exact;
    double moved = exact + (exact < 0 ? -1 : 1) * (1.5 * bound + 1.5 * (double)step);
    if (fabs(moved) < 1.2e-38 || fabs(moved) > 3e38) /* 0 or infinity in f32 */
        return;
    double error = evaluation_error((float)moved, exact, bound);
    double lost = fabs((double)(float)moved - moved); /* the bound may be below f32's own */
    if (!(error > 1) && lost < 0.4 * bound)
        fail_msg("%s: %.9g passes for %.9g with a bound of %.3g", line, moved, exact, bound);
}

static void take_case(tally *t, const char *line)
{
    reference r;
    bool plain = !strstr(line, "special") && !strstr(line, "large") && !strstr(line, "e38") &&
                 !strstr(line, "nan") && !strstr(line, "inf");
    if (open_reference(&r, line))
        for (uint64_t i = 0; i < r.count; i++) {
            t->all++;
            t->judged += !isinf(r.bounds[i]);
            assert_false(isnan(r.bounds[i]));
            if (!isfinite(r.exact[i]) || isinf(r.bounds[i]))
                continue;
            check_moved(line, r.exact[i], r.bounds[i]);
            if (plain && r.bounds[i] > 0) {
                t->bounds += r.bounds[i];
                t->values += fabs(r.exact[i]);
            }
        }
    close_reference(&r);
}

static void moved_results_fail(void **state)
{
    static const struct {
        const char *op;
        double most; /* bounds over results */
    } ops[] = {{"adamw", 7e-7},
               {"sgd", 1e-6},
               {"lion", 5e-5},
               {"accumulate", 4e-7},
               {"gaussian_splat_prepare", 1e-5},
               {"gaussian_splat_rasterize", 8e-5},
               {"gaussian_splat_render", 8e-5},
               {"gaussian_splat_render_backward", 0.05}};
    case_list list;
    (void)state;
    assert_int_equal(case_list_generate(&list), RLXVK_OK);
    for (size_t k = 0; k < ARRAY_COUNT(ops); k++) {
        tally t = {0};
        size_t length = strlen(ops[k].op);
        for (size_t i = 0; i < list.lines.count; i++)
            if (strncmp(list.lines.items[i], ops[k].op, length) == 0 &&
                list.lines.items[i][length] == ' ')
                take_case(&t, list.lines.items[i]);
        assert_true(t.values > 0);
        if (t.bounds > ops[k].most * t.values)
            fail_msg("%s: bounds are %.3g of the results", ops[k].op, t.bounds / t.values);
        if ((double)t.judged < 0.98 * (double)t.all)
            fail_msg("%s: %llu of %llu elements have no bound", ops[k].op,
                     (unsigned long long)(t.all - t.judged), (unsigned long long)t.all);
    }
    case_list_destroy(&list);
}

/* lion takes the step of the direction's sign. If f32 gives the direction exactly, only that sign
 * is right, and 0 gives no step. If another direction is near 0, either sign is right. */
static void exact_directions_have_one_sign(void **state)
{
    static const struct {
        const char *line;
        bool sure;
    } lines[] = {{"lion lr=0.5 in=p:f32:9;g:f32:9:zero;m:f32:9:zero", true},
                 {"lion lr=0.5 beta1=0.5 in=p:f32:9;g:f32:9:constant:1.5;m:f32:9:constant:-1.5",
                  true},
                 {"lion lr=0.5 beta1=0 in=p:f32:9;g:f32:9:zero;m:f32:9", true},
                 {"lion lr=0.5 in=p:f32:9;g:f32:9:zero;m:f32:9:one", true},
                 {"lion lr=0.5 in=p:f32:9;g:f32:9:constant:-0.9;m:f32:9:constant:0.1", false}};
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(lines); k++) {
        reference r;
        assert_true(open_reference(&r, lines[k].line));
        for (uint64_t i = 0; i < r.count; i++)
            if ((r.bounds[i] < 1e-5) != lines[k].sure)
                fail_msg("%s: the bound is %g", lines[k].line, r.bounds[i]);
        close_reference(&r);
    }
}

/* p' = p - lr g is off by g times the rounding error of lr in f32. 0.5 is exact. */
static void rounded_attributes_count(void **state)
{
    static const double rates[] = {0.1, 0.5, 0.003};
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(rates); k++) {
        char line[CASE_TEXT];
        reference r;
        double *slack = NULL, lost = fabs((double)(float)rates[k] - rates[k]);
        snprintf(line, sizeof line, "sgd lr=%g momentum=0 in=p:f32:99;g:f32:99;m:f32:99:zero",
                 rates[k]);
        assert_true(open_reference(&r, line));
        const golden_reference at = {r.contents, RLXVK_PRECISION_F32, r.exact, r.count};
        assert_int_equal(golden_rounding(&r.spec, &at, &slack), RLXVK_OK);
        for (uint64_t i = 0; i < r.count; i++) {
            double wanted = lost * fabs((double)((const float *)r.contents[1])[i]);
            if (!(slack[i] >= wanted * (1 - 1e-6) && slack[i] <= 1.1 * wanted + 1e-30))
                fail_msg("%s: element %llu may be off by %g, not %g", line, (unsigned long long)i,
                         slack[i], wanted);
        }
        memory_free(slack);
        close_reference(&r);
    }
}

/* If the sum of a product overflows f32 in some order, any result of it is accepted. The error that
 * a precision adds to later nodes must still follow from its value. */
static void precisions_are_followed_past_what_is_open(void **state)
{
    static const float terms[] = {3e38f, 2e38f, -3e38f, -1e38f}, ones[] = {1, 1, 1, 1};
    static const float small = 1e-38f;
    rlxvk_graph *g = NULL;
    evaluation v;
    double error;
    (void)state;
    assert_int_equal(rlxvk_graph_create(&g), RLXVK_OK);
    rlxvk_tensor a = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1, 4), terms, sizeof terms);
    rlxvk_tensor b = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(4, 1), ones, sizeof ones);
    rlxvk_tensor open = rlxvk_matmul(g, a, b),
                 four = rlxvk_matmul(g, rlxvk_reshape(g, b, RLXVK_SHAPE(1, 4)), b);
    rlxvk_tensor y =
        rlxvk_mul(g,
                  rlxvk_mul(g, open,
                            rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &small, sizeof small)),
                  four);
    assert_int_equal(rlxvk_graph_status(g), RLXVK_OK);
    assert_int_equal(evaluation_create(g, &v), RLXVK_OK);
    assert_int_equal(conform_precision_errors(&v, RLXVK_PRECISION_BF16,
                                              &(conform_word){y.id - 1, 0}, 1, &error),
                     RLXVK_OK);
    assert_true(error > 0.9 * 4 * 0x1p-7 && error < 1.1 * 4 * 0x1p-7);
    evaluation_destroy(&v);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(precisions_are_followed_past_what_is_open),
        cmocka_unit_test(moved_results_fail),
        cmocka_unit_test(exact_directions_have_one_sign),
        cmocka_unit_test(rounded_attributes_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
