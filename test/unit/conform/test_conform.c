/*
 * The rules of the conformance runner: the language of cases, fills that repeat, when a result is
 * accepted, and the map from outside names to ops.
 */
#include "conform/conform.h"
#include "conform/conform_options.h"
#include "op/op.h"

#include <float.h>
#include <getopt.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

static case_spec parsed(const char *line)
{
    case_spec s;
    assert_int_equal(case_parse(line, &s), RLXVK_OK);
    return s;
}

static void a_line_gives_row_pairs_and_inputs(void **state)
{
    (void)state;
    case_spec s = parsed("rope axes=0,-1 eps=1e-5 empty= in=x:f32:3x5x7:range:-1:2;s:BF16:scalar");
    int32_t axes[4];
    assert_string_equal(s.row, "rope");
    assert_int_equal(case_integers(&s, "axes", axes, 4), 2);
    assert_int_equal(axes[1], -1);
    assert_true(case_real(&s, "eps", 0) == 1e-5);
    assert_int_equal(case_integers(&s, "empty", axes, 4), 0);
    assert_int_equal(case_integer(&s, "empty", 7), 7);
    assert_string_equal(case_word(&s, "absent", "no"), "no");
    assert_int_equal(s.input_count, 2);
    assert_int_equal(s.inputs[0].shape.dims[2], 7);
    assert_string_equal(s.inputs[0].fill, "range:-1:2");
    assert_int_equal(s.inputs[1].dtype, RLXVK_BF16);
    assert_int_equal(s.inputs[1].shape.rank, 0);
    assert_true(case_is_param(&s.inputs[1]));
}

static void bad_lines_are_refused(void **state)
{
    static const char *const lines[] = {"",
                                        "add in=x",
                                        "add in=x:f32",
                                        "add in=x:f33:2",
                                        "add in=x:f32:2x",
                                        "add in=x:f32:1x1x1x1x1x1x1x1x1",
                                        "add axis in=x:f32:2",
                                        "add in=a-name-that-is-far-too-long:f32:2"};
    case_spec s;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++)
        assert_int_equal(case_parse(lines[i], &s), RLXVK_E_ATTR);
}

static void every_line_parses_and_fills(void **state)
{
    case_list list;
    (void)state;
    assert_int_equal(case_list_generate(&list), RLXVK_OK);
    assert_true(list.lines.count >= 2000);
    for (size_t i = 0; i < list.lines.count; i++) {
        case_spec s = parsed(list.lines.items[i]);
        assert_non_null(case_find_family(s.row));
        for (size_t k = 0; k < s.input_count; k++) {
            uint8_t *content;
            if (case_length(&s.inputs[k]) > 100000)
                continue;
            content = memory_zeroed(case_length(&s.inputs[k]) + 1, sizeof(float));
            assert_int_equal(case_fill(&s, k, 1, i, content), RLXVK_OK);
            memory_free(content);
        }
    }
    case_list_destroy(&list);
}

static void content_depends_on_seed_row_number_and_name_only(void **state)
{
    case_spec s = parsed("add in=a:f32:64;b:f32:64"), t = parsed("sub in=a:f32:64;b:f32:64");
    float first[64], other[64];
    (void)state;
    assert_int_equal(case_fill(&s, 0, 1, 5, first), RLXVK_OK);
    assert_int_equal(case_fill(&s, 0, 1, 5, other), RLXVK_OK);
    assert_memory_equal(first, other, sizeof first);
    const struct {
        const case_spec *spec;
        size_t input;
        uint64_t seed, number;
    } others[] = {{&s, 1, 1, 5}, {&s, 0, 2, 5}, {&s, 0, 1, 6}, {&t, 0, 1, 5}};
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        assert_int_equal(case_fill(others[i].spec, others[i].input, others[i].seed,
                                   others[i].number, other),
                         RLXVK_OK);
        assert_memory_not_equal(first, other, sizeof first);
    }
}

static void fills_stay_in_their_ranges(void **state)
{
    static const struct {
        const char *fill;
        float low, high;
    } rows[] = {{"", -3, 3},        {"unit", -1, 1},      {"range:2:5", 2, 5},
                {"positive", 0, 3}, {"integers", -8, 8},  {"index:7", 0, 6},
                {"bool", 0, 1},     {"constant:4", 4, 4}, {"offset", 9999, 10001},
                {"iota", 0, 999},   {"zero", 0, 0},       {"one", 1, 1}};
    float words[1000];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_int_equal(fill_words(rows[i].fill, 3, ARRAY_COUNT(words), words), RLXVK_OK);
        for (size_t k = 0; k < ARRAY_COUNT(words); k++)
            assert_true(words[k] >= rows[i].low && words[k] <= rows[i].high);
    }
    assert_int_equal(fill_words("nosuch", 3, 1, words), RLXVK_E_ATTR);
    case_spec s = parsed("cast in=x:i32:1000:special");
    assert_int_equal(case_fill(&s, 0, 1, 1, words), RLXVK_OK);
    for (size_t k = 0; k < ARRAY_COUNT(words); k++)
        assert_true(words[k] == truncf(words[k]) && fabsf(words[k]) <= 0x1p31f);
}

/* Bit i is set if a value of kind i occurs. */
static unsigned special_kinds(const float *words, uint64_t count, float smallest, float largest)
{
    unsigned kinds = 0;
    for (uint64_t i = 0; i < count; i++) {
        float x = words[i], size = fabsf(x);
        unsigned negative = signbit(x) ? 1 : 0;
        if (isnan(x))
            kinds |= 1;
        else if (isinf(x))
            kinds |= 2u << negative;
        else if (x == 0)
            kinds |= 8u << negative;
        else if (size == largest)
            kinds |= 32u << negative;
        else if (size <= smallest)
            kinds |= 128u << negative;
    }
    return kinds;
}

static unsigned count_bits(unsigned bits)
{
    unsigned count = 0;
    for (; bits; bits &= bits - 1)
        count++;
    return count;
}

/* Every special kind must occur in each tensor that has room for it. In smaller tensors, half of
 * the elements are special, and the kinds take turns. */
static void special_values_are_in_every_tensor(void **state)
{
    enum { ALL = 511, ELEMENTS = 64 };
    static const uint64_t counts[] = {10, 11, 12, 17, 64};
    float words[ELEMENTS];
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++)
        for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
            assert_int_equal(fill_words("special", seed, counts[i], words), RLXVK_OK);
            assert_int_equal(special_kinds(words, counts[i], FLT_MIN, FLT_MAX), ALL);
        }
    for (uint64_t count = 1; count < 10; count++) {
        unsigned seen = 0;
        for (uint64_t seed = 0; seed < 200; seed++) {
            assert_int_equal(fill_words("special", seed, count, words), RLXVK_OK);
            unsigned kinds = special_kinds(words, count, FLT_MIN, FLT_MAX);
            assert_true(count_bits(kinds) + 1 >= divide_up(count, 2)); /* of three denormals */
            seen |= kinds;
        }
        assert_int_equal(seen, ALL);
    }
}

static void special_values_of_half_types_are_their_own(void **state)
{
    static const struct {
        const char *line;
        float smallest, largest;
    } rows[] = {{"cast in=x:f16:40:special", 0x1p-24f, 65504},
                {"cast in=x:bf16:40:special", 0x1p-126f, 0x1.fep127f}};
    float words[40];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        case_spec s = parsed(rows[i].line);
        assert_int_equal(case_fill(&s, 0, 1, 1, words), RLXVK_OK);
        assert_int_equal(special_kinds(words, 40, rows[i].smallest, rows[i].largest), 511);
    }
}

static void errors_are_in_units_of_the_bound(void **state)
{
    const double beyond = 0x1p128;
    const struct {
        float got;
        double reference, bound, error;
    } rows[] = {
        {1, 1, 0, 0},
        {1.5f, 1, 0.25, 2},
        {1.25f, 1, 0.25, 1},
        {1, 1 + 1e-9, 0, 0}, /* an exact result is rounded once */
        {nextafterf(1, 2), 1, 0, INFINITY},
        {0, -0.0, 0, 0},
        {1e-39f, 0, 0, 0},
        {FLT_MIN, 0, 0, INFINITY},
        {NAN, NAN, 0, 0},
        {NAN, 1, 100, INFINITY},
        {1, NAN, 100, INFINITY},
        {INFINITY, INFINITY, NAN, 0},
        {-INFINITY, INFINITY, 1, INFINITY},
        {INFINITY, beyond, 0, 0},
        {INFINITY, 1e38, 1e30, INFINITY},
        {INFINITY, FLT_MAX, 1e35, 0},
        {FLT_MAX, INFINITY, 1, INFINITY},
        {2, 1, NAN, INFINITY},
        {2, 1, INFINITY, 0}, /* not judged */
        {NAN, 1, INFINITY, 0},
        {NAN, INFINITY, INFINITY, 0}, /* a term flushed to 0 may turn infinity into NaN */
        {1, INFINITY, INFINITY, INFINITY},
        {-INFINITY, -INFINITY, INFINITY, 0},
        {1, NAN, INFINITY, INFINITY},
        {1.5f * FLT_MIN, 0.75 * FLT_MIN, 1.5 * FLT_MIN, 0.5}, /* otherwise 1, from 0 */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        double error = evaluation_error(rows[i].got, rows[i].reference, rows[i].bound);
        if (!(error == rows[i].error))
            fail_msg("row %zu: error %g, want %g", i, error, rows[i].error);
    }
}

/* A moved result must be rounded away from the reference if it is to be wrong, and towards it if it
 * is to be right. */
static void moved_results_keep_to_their_side(void **state)
{
    static const struct {
        double reference, bound, bounds;
        float moved;
    } rows[] = {
        {1, 0.25, 1.5, 1.375f},
        {1, 0.25, -0.5, 0.875f},
        {1, 1e-9, 1.5, 1 + FLT_EPSILON},
        {1, 1e-9, -1.5, 1 - FLT_EPSILON / 2},
        {1, 1e-9, 0.5, 1},
        {-3, 1e-9, 0.5, -3},
        {0, 1e-40, 1.5, NAN},
        {INFINITY, 1, 1.5, NAN},
        {NAN, 1, 0.5, NAN},
        {FLT_MAX, 1e38, 1.5, NAN},
        {1 + 1e-9, 1e-12, 0.5, NAN}, /* no f32 is so near */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        float moved = conform_moved(rows[i].reference, rows[i].bound, rows[i].bounds);
        if (!(moved == rows[i].moved || (isnan(moved) && isnan(rows[i].moved))))
            fail_msg("row %zu: %.9g, want %.9g", i, (double)moved, (double)rows[i].moved);
    }
}

/* For references and bounds of all sizes, the comparison must accept half a bound and refuse one
 * and a half. */
static void bounds_bind(void **state)
{
    static const double moves[] = {1.5, -1.5, 0.5, -0.5};
    (void)state;
    for (int exponent = -140; exponent < 128; exponent += 3)
        for (int below = -30; below < 30; below++)
            for (size_t k = 0; k < ARRAY_COUNT(moves); k++) {
                double reference = ldexp(-1.3, exponent), bound = ldexp(1.7, exponent + below);
                float moved = conform_moved(reference, bound, moves[k]);
                if (!isnan(moved))
                    assert_int_equal(evaluation_error(moved, reference, bound) <= 1,
                                     fabs(moves[k]) < 1);
            }
}

/* An op can fail as a whole because of the share of its failures, but only if all its cases ran. */
static void ops_fail_as_a_whole(void **state)
{
    static const struct {
        conform_row row;
        bool unjudged, loose;
    } rows[] = {
        {{"a", .cases = 4, .all_cases = 4, .elements = 100, .unjudged = 2, .worst = 0.5},
         false,
         false},
        {{"b", .cases = 4, .all_cases = 4, .elements = 100, .unjudged = 3, .worst = 0.5},
         true,
         false},
        {{"c", .cases = 3, .all_cases = 4, .elements = 100, .unjudged = 90, .worst = 1e-2},
         false,
         false},
        {{"d", .cases = 4, .all_cases = 4, .elements = 0, .worst = 1e-4}, false, true},
        {{"e", .cases = 4, .all_cases = 4, .elements = 9, .worst = 0}, false, false},
        {{"f", .cases = 4, .all_cases = 4, .elements = 9, .worst = 0.1, .take_zeros = 3},
         false,
         false},
        {{"g", .cases = 4, .all_cases = 4, .elements = 9, .worst = 0.1, .take_zeros = 4},
         false,
         true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        conform_row row = rows[i].row;
        conform_report report = {.bounds = true, .rows = {.items = &row, .count = 1}};
        assert_int_equal(conform_too_unjudged(&row), rows[i].unjudged);
        assert_int_equal(conform_unjudged_ops(&report), rows[i].unjudged);
        assert_int_equal(conform_loose_ops(&report), rows[i].loose);
        report.bounds = false;
        assert_int_equal(conform_loose_ops(&report), 0);
    }
}

static bool parse_seed(const char *text, conform_options *out)
{
    char *arguments[] = {"conform", "--seed", (char *)(uintptr_t)text, NULL};
    optind = 1;
    return conform_options_parse(out, 3, arguments);
}

static void seeds_are_a_list(void **state)
{
    static const char *const wrong[] = {"", "1,", ",1", "1,x", "1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7"};
    conform_options o;
    (void)state;
    assert_true(parse_seed("7", &o));
    assert_int_equal(o.seed_count, 1);
    assert_int_equal(o.seeds[0], 7);
    assert_true(parse_seed("1,18446744073709551615,3", &o));
    assert_int_equal(o.seed_count, 3);
    assert_int_equal(o.seeds[1], UINT64_MAX);
    assert_int_equal(o.seeds[2], 3);
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++)
        assert_false(parse_seed(wrong[i], &o));
}

static void golden_names_become_rows(void **state)
{
    golden_set set;
    size_t with_row = 0;
    (void)state;
    assert_int_equal(golden_open("test/golden", &set), RLXVK_OK);
    for (size_t i = 0; i < set.cases.count; i++) {
        golden_case *c = &set.cases.items[i];
        assert_int_not_equal(op_find(c->spec.row), OP_COUNT);
        assert_int_equal(golden_load(&set, c), RLXVK_OK);
        assert_true(c->expected.numel > 0);
        with_row++;
    }
    assert_true(with_row >= 90);
    golden_close(&set);
    assert_int_equal(golden_open("test/nosuch", &set), RLXVK_E_FILE);
}

/* ---- Pictures ---- */

static const char *drawn(const conform_picture *p)
{
    static char page[1 << 15];
    FILE *file = fmemopen(page, sizeof page, "w");
    assert_non_null(file);
    conform_picture_write(p, file);
    assert_int_equal(fclose(file), 0);
    return page;
}

static size_t count_in(const char *text, const char *part)
{
    size_t count = 0;
    while ((text = strstr(text, part))) {
        text += strlen(part);
        count++;
    }
    return count;
}

static void expect_drawn(const conform_picture *p, const char *part)
{
    if (!strstr(drawn(p), part))
        fail_msg("'%s' is missing in:\n%s", part, drawn(p));
}

static void few_elements_have_a_bar_each(void **state)
{
    const double errors[] = {0, 0.5, 200, 0.01, 3};
    conform_picture p = {0};
    (void)state;
    assert_string_equal(drawn(&p), "");
    conform_picture_begin(&p, ARRAY_COUNT(errors));
    for (size_t i = 0; i < ARRAY_COUNT(errors); i++)
        conform_picture_take(&p, i, errors[i]);
    assert_int_equal(p.worst, 2);
    expect_drawn(&p, "<svg class=errors ");
    expect_drawn(&p, "worst: element 2, 200</text>");
    expect_drawn(&p, ">1000</text>"); /* the end of the axis */
    expect_drawn(&p, ">0.001</text>");
    expect_drawn(&p, "class=bound");
    expect_drawn(&p, "element, row-major; dashed");
    const char *within = strstr(drawn(&p), "class=within"), *wrong = strstr(within, "class=wrong");
    assert_int_equal(count_in(wrong, "V150"), 2);
    assert_int_equal(count_in(within, "V150"), 4); /* both paths; exact elements have none */
    assert_int_equal(count_in(drawn(&p), "<svg"), count_in(drawn(&p), "</svg>"));
    assert_null(strstr(drawn(&p), "nan"));
    assert_null(strstr(drawn(&p), "inf"));
}

/* Each bar shows the worst element of its part. This must include a single wrong one among a
 * million. */
static void many_elements_share_bars(void **state)
{
    enum { ELEMENTS = 1000000 };
    conform_picture p;
    (void)state;
    for (uint64_t wrong = 0; wrong < ELEMENTS; wrong += 99999) {
        size_t bars = 0;
        conform_picture_begin(&p, ELEMENTS);
        for (uint64_t i = 0; i < ELEMENTS; i++)
            conform_picture_take(&p, i, i == wrong ? INFINITY : i % 7 ? 0.25 : 0);
        for (size_t i = 0; i < ARRAY_COUNT(p.parts); i++)
            bars += p.parts[i] == 0.25f;
        assert_int_equal(bars, ARRAY_COUNT(p.parts) - 1);
        assert_int_equal(p.worst, wrong);
        expect_drawn(&p, "beyond measure");
        expect_drawn(&p, "the worst of about 1.042e+04");
        expect_drawn(&p, ">999999</text>");
    }
    conform_picture_begin(&p, 1); /* and of a single one */
    conform_picture_take(&p, 0, 1.5);
    expect_drawn(&p, "worst: element 0, 1.5");
    conform_picture_begin(&p, (uint64_t)1 << 32);
    conform_picture_take(&p, ((uint64_t)1 << 32) - 1, 2);
    assert_true(p.parts[ARRAY_COUNT(p.parts) - 1] == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_elements_have_a_bar_each),
        cmocka_unit_test(many_elements_share_bars),
        cmocka_unit_test(a_line_gives_row_pairs_and_inputs),
        cmocka_unit_test(bad_lines_are_refused),
        cmocka_unit_test(every_line_parses_and_fills),
        cmocka_unit_test(content_depends_on_seed_row_number_and_name_only),
        cmocka_unit_test(fills_stay_in_their_ranges),
        cmocka_unit_test(special_values_are_in_every_tensor),
        cmocka_unit_test(special_values_of_half_types_are_their_own),
        cmocka_unit_test(errors_are_in_units_of_the_bound),
        cmocka_unit_test(moved_results_keep_to_their_side),
        cmocka_unit_test(bounds_bind),
        cmocka_unit_test(ops_fail_as_a_whole),
        cmocka_unit_test(seeds_are_a_list),
        cmocka_unit_test(golden_names_become_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
