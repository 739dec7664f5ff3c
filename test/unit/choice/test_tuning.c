/*
 * Measured choices: how profile files are read, also damaged ones, and which measured point
 * decides.
 */
#include "op/op.h"
#include "op/choice/tuning.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char good[] = TUNING_HEADER "matmul nt 1,4096,4096,1 vector 58.1\n"
                                         "matmul nn 512,512,512,1 scalar_single 3.250\n"
                                         "matmul nn 1024,1024,1024,1 table 9.000\n"
                                         "conv forward 64,3136,576,1 direct_block 12.000\n"
                                         "dequant Q4_K 16,4096,4096,0 tiled 12.000\n";

static variant_query query(const char *kind, const char *tag, uint64_t m, uint64_t n, uint64_t k,
                           uint64_t batch)
{
    variant_query q = {.dims = {m, n, k, batch}};
    q.kind = choice_find_kind(kind, strlen(kind));
    strcpy(q.tag, tag);
    return q;
}

static const char *row_of(const tuning *t, variant_query q)
{
    size_t row = tuning_find(t, &q);
    return row == VARIANT_NONE ? "none" : choice_row_name(q.kind, row);
}

static tuning read_points(const char *text)
{
    tuning t;
    assert_int_equal(tuning_create(text, NULL, &t), RLXVK_OK);
    return t;
}

static void nearest_point_decides(void **state)
{
    (void)state;
    tuning t = read_points(good);
    assert_int_equal(t.points.count, 5);
    assert_string_equal(row_of(&t, query("matmul", "nt", 1, 4096, 4096, 1)), "vector");
    assert_string_equal(row_of(&t, query("matmul", "nt", 2, 8192, 2048, 1)), "vector");
    assert_string_equal(row_of(&t, query("matmul", "nn", 600, 600, 600, 1)), "scalar_single");
    assert_string_equal(row_of(&t, query("matmul", "nn", 800, 800, 800, 1)), "none");
    assert_string_equal(row_of(&t, query("dequant", "Q4_K", 16, 4096, 4096, 0)), "tiled");
    tuning_destroy(&t);
}

static void far_points_do_not(void **state)
{
    (void)state;
    tuning t = read_points(good);
    assert_string_equal(row_of(&t, query("matmul", "nt", 3, 4096, 4096, 1)), "none");
    assert_string_equal(row_of(&t, query("matmul", "nt", 1, 4096, 9000, 1)), "none");
    assert_string_equal(row_of(&t, query("matmul", "nt", 1, 4096, 4096, 0)), "none");
    assert_string_equal(row_of(&t, query("matmul", "tn", 1, 4096, 4096, 1)), "none");
    assert_string_equal(row_of(&t, query("conv", "nt", 1, 4096, 4096, 1)), "none");
    assert_string_equal(row_of(&t, query("dequant", "Q4_K", 16, 4096, 4096, 1)), "none");
    tuning_destroy(&t);
}

static void damaged_lines_are_ignored(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "\n",
        "matmul\n",
        "matmul nt 1,2,3 vector 1\n",
        "matmul nt 1,2,3,4 no_such_row 1.0\n",
        "no_such_family nt 1,2,3,4 vector 1\n",
        "matmul nt a,2,3,4 vector 1\n",
        "matmul a_tag_that_is_longer_than_any 1,2,3,4 vector 1\n",
        "matmul nt 1,2,3,4 vector 1 2\n",
        "matmul nt 1,2,3,99999999999 vector 1\n",
        "matmul nt 1,2,3,-4 vector 1\n",
        "\x01\xff\n",
    };
    char text[2048] = TUNING_HEADER;
    for (size_t i = 0; i < ARRAY_COUNT(lines); i++)
        strcat(text, lines[i]);
    memset(text + strlen(text), 'x', 400);
    strcat(text, "\nmatmul nt 1,2,3,4 vector 1.5");
    tuning t = read_points(text);
    assert_int_equal(t.points.count, 1);
    assert_string_equal(row_of(&t, query("matmul", "nt", 1, 2, 3, 4)), "vector");
    tuning_destroy(&t);
    for (size_t cut = 0; cut < sizeof good; cut++) {
        snprintf(text, cut + 1, "%s", good);
        t = read_points(text);
        tuning_destroy(&t);
    }
    t = read_points("rlxvk tuning 2\nmatmul nt 1,2,3,4 vector 1\n");
    assert_int_equal(t.points.count, 0);
    tuning_destroy(&t);
}

static void every_entry_of_the_library_reads(void **state)
{
    (void)state;
    tuning t;
    variant_query q = query("matmul", "nt", 1, 4096, 4096, 1);
    char line[256] = "";
    assert_int_equal(tuning_create(good, "NVIDIA H200", &t), RLXVK_OK);
    assert_int_equal(t.from_file, 5);
    assert_string_equal(row_of(&t, q), "vector"); /* the file wins over the library */
    tuning_destroy(&t);
    assert_int_equal(tuning_create(NULL, "llvmpipe (LLVM 15)", &t), RLXVK_OK);
    assert_int_equal(t.from_file, 0);
    assert_string_equal(row_of(&t, query("dequant", "Q8_0", 64, 512, 4096, 0)), "unpacked");
    tuning_destroy(&t);
    tuning_write(&q, "vector", 58.1, &(text){line, sizeof line, 0});
    assert_string_equal(line, "matmul nt 1,4096,4096,1 vector 58.100\n");
}

static void names_go_before_measurements(void **state)
{
    (void)state;
    static const uint64_t dims[VARIANT_DIMS] = {1, 4096, 4096, 1};
    tuning t = read_points(good);
    lowering l = {.tuning = &t};
    size_t vector = variant_choose(&l, CHOICE_matmul, "nt", dims);
    assert_string_equal(l.choice.row, "vector");
    assert_int_equal(l.choice.source, VARIANT_BY_TUNING);
    assert_int_equal(variant_parse("matmul=scalar_block", "test", &l.variants), RLXVK_OK);
    assert_int_not_equal(variant_choose(&l, CHOICE_matmul, "nt", dims), vector);
    assert_int_equal(l.choice.source, VARIANT_BY_NAME);
    l.variants = (variant_set){{0}};
    l.tuning = NULL;
    assert_int_equal(variant_choose(&l, CHOICE_matmul, "nt", dims), VARIANT_NONE);
    assert_int_equal(l.choice.source, VARIANT_BY_TABLE);
    assert_int_equal(l.queries.count, 3);
    VECTOR_FREE(&l.queries);
    tuning_destroy(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_point_decides),
        cmocka_unit_test(far_points_do_not),
        cmocka_unit_test(damaged_lines_are_ignored),
        cmocka_unit_test(every_entry_of_the_library_reads),
        cmocka_unit_test(names_go_before_measurements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
