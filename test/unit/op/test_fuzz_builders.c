/*
 * The table of builders for fuzzing. It must contain every public builder, and its call of each
 * must succeed.
 */
#include "plan/schedule.h"
#include "support/fuzz_graph.h"
#include "support/profiles.h"
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

/* A prototype begins its line with type and name. */
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
        "include/rlxvk_ops_splat.h", "include/rlxvk_ops_neighbours.h", "include/rlxvk_ops_region.h",
        "include/rlxvk_train.h",
    };
    size_t count = 0;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        count += check_header(headers[i]);
    assert_int_equal(count, fuzz_builder_count);
}

/* The first builder none of whose calls succeeded so far. NULL: there is none. */
static const fuzz_builder *without_success(void)
{
    for (size_t i = 0; i < fuzz_builder_count; i++)
        if (fuzz_counts[i].results == 0)
            return &fuzz_builders[i];
    return NULL;
}

/* Builders that take only some types succeed seldom, so luck decides when all have. */
static void every_builder_succeeds(void **state)
{
    random_source r = {1};
    (void)state;
    fuzz_register();
    for (int i = 0; i < 4000 || (i < 40000 && without_success()); i++) {
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
    if (without_success())
        fail_msg("%s: no call succeeded", without_success()->name);
}

/* ---- Numbers at the ends of their types ---- */

enum { STREAMS = 20, MOST_NUMBERS = 48, MOST_VALUES = 1 << 16 };

/* Elements of the largest tensor. */
static uint64_t largest_of(const rlxvk_graph *g)
{
    uint64_t largest = 0;
    for (uint32_t id = 0; id < g->nodes.count; id++)
        largest = MAX(largest, shape_numel(&graph_node(g, id)->shape));
    return largest;
}

/* If a call was accepted, its graph must also lower. */
static void lower_accepted(rlxvk_graph *g, rlxvk_tensor t)
{
    static const device_profile profile = ORDINARY_GPU;
    schedule_options how = {.profile = &profile, .strided = true};
    schedule s;
    if (!t.id || rlxvk_graph_status(g) != RLXVK_OK || largest_of(g) > MOST_VALUES)
        return;
    rlxvk_graph_output(g, t);
    if (rlxvk_graph_status(g) == RLXVK_OK && schedule_create(g, &how, &s) == RLXVK_OK)
        schedule_destroy(&s);
}

/* Makes one call from these bytes. Its number `at` is `extreme`, and its number `zero` is 0.
 * Returns how many numbers the call asked for. */
static uint32_t call_with(const fuzz_builder *b, const uint8_t *bytes, size_t size, uint32_t at,
                          uint32_t zero, int64_t extreme)
{
    fuzz_input in = {bytes, size};
    fuzz_maker m = {.in = &in, .extreme_at = at, .zero_at = zero, .extreme = extreme};
    assert_int_equal(rlxvk_graph_create(&m.g), RLXVK_OK);
    rlxvk_tensor t = fuzz_call(&m, b);
    rlxvk_status status = rlxvk_graph_status(m.g);
    if ((status == RLXVK_OK) != (t.id != 0 || m.g->outputs.count > 0) &&
        strcmp(b->name, "grad") != 0 && status != RLXVK_OK)
        fail_msg("%s: number %u as %lld: %s, and a tensor", b->name, at, (long long)extreme,
                 rlxvk_status_name(status));
    if (status != RLXVK_OK && !*rlxvk_graph_error(m.g))
        fail_msg("%s: number %u as %lld: no sentence", b->name, at, (long long)extreme);
    lower_accepted(m.g, t);
    rlxvk_graph_destroy(m.g);
    return m.numbers;
}

/* Calls every builder with each of its numbers at the ends of the type. UBSan reports arithmetic on
 * a number that was not checked before. */
static void extremes_are_checked(void **state)
{
    static const int64_t extremes[] = {INT64_MAX, INT64_MIN,     INT64_MAX - 1,    INT32_MIN,
                                       INT32_MAX, INT64_MIN + 1, INT64_C(1) << 62, UINT32_MAX};
    random_source r = {7};
    uint64_t calls = 0;
    (void)state;
    fuzz_register();
    for (size_t i = 0; i < fuzz_builder_count; i++)
        for (int stream = 0; stream < STREAMS; stream++) {
            uint8_t bytes[200];
            for (size_t k = 0; k < sizeof bytes; k++)
                bytes[k] = (uint8_t)(random_next(&r) % 250); /* only one number is extreme */
            uint32_t numbers = call_with(&fuzz_builders[i], bytes, sizeof bytes, 0, 0, 0);
            for (uint32_t at = 1; at <= MIN(numbers, MOST_NUMBERS); at++)
                for (size_t e = 0; e < sizeof extremes / sizeof *extremes; e++)
                    for (uint32_t z = 0; z < 3; z++, calls++) /* also next to an empty dim */
                        call_with(&fuzz_builders[i], bytes, sizeof bytes, at,
                                  z ? at + 2 * z - 3 : 0, extremes[e]);
        }
    print_message("%llu calls\n", (unsigned long long)calls);
    assert_true(calls > 50000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_builder_is_listed),
        cmocka_unit_test(every_builder_succeeds),
        cmocka_unit_test(extremes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
