/*
 * The fuzz targets' table of builders: it has every public one, and calls each so that it succeeds.
 */
#include "support/fuzz_graph.h"
#include "support/random_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static bool is_listed(const char *name)
{
    for (size_t i = 0; i < fuzz_builder_count; i++)
        if (strcmp(fuzz_builders[i].name, name) == 0)
            return true;
    return false;
}

/* Prototypes begin a line with their type and name. */
static size_t check_header(const char *path)
{
    static const char *const forms[] = {"rlxvk_tensor rlxvk_%63[a-z0-9_](rlxvk_graph *",
                                        "void rlxvk_%63[a-z0-9_](rlxvk_graph *"};
    char line[256], name[64];
    size_t count = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        for (size_t i = 0; i < 2; i++) {
            if (sscanf(line, forms[i], name) != 1)
                continue;
            count++;
            if (!is_listed(name))
                fail_msg("%s: rlxvk_%s is in no row of fuzz_builders", path, name);
        }
    fclose(file);
    return count;
}

static void every_builder_is_listed(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "include/rlxvk_ops.h",       "include/rlxvk_ops_array.h",      "include/rlxvk_ops_domain.h",
        "include/rlxvk_ops_math.h",  "include/rlxvk_ops_vision.h",     "include/rlxvk_ops_signal.h",
        "include/rlxvk_ops_splat.h", "include/rlxvk_ops_neighbours.h", "include/rlxvk_train.h",
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        count += check_header(headers[i]);
    assert_int_equal(count, fuzz_builder_count);
}

static void every_builder_succeeds(void **state)
{
    random_source r = {1};
    (void)state;
    fuzz_register();
    for (int i = 0; i < 4000; i++) {
        uint8_t bytes[240];
        fuzz_input in = {bytes, sizeof bytes};
        fuzz_maker m = {.in = &in};
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)random_next(&r);
        assert_int_equal(rlxvk_graph_create(&m.g), RLXVK_OK);
        fuzz_build(&m, 24);
        fuzz_finish(&m, random_next(&r));
        rlxvk_graph_destroy(m.g);
    }
    for (size_t i = 0; i < fuzz_builder_count; i++)
        if (fuzz_counts[i].results == 0)
            fail_msg("%s: %llu calls, none succeeded", fuzz_builders[i].name,
                     (unsigned long long)fuzz_counts[i].calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_builder_is_listed),
        cmocka_unit_test(every_builder_succeeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
