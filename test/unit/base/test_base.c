/* The folder base: status texts, last error, counted and failing allocations, arena, vectors,
 * sizes, text and switches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/log.h"
#include "base/nearest.h"
#include "base/switches.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Version ---- */

static void the_version_is_the_headers(void **state)
{
    char wanted[32];
    (void)state;
    snprintf(wanted, sizeof wanted, "%d.%d.%d", RLXVK_VERSION_MAJOR, RLXVK_VERSION_MINOR,
             RLXVK_VERSION_PATCH);
    assert_string_equal(rlxvk_version(), wanted);
}

/* ---- Status and last error ---- */

static void status_names(void **state)
{
    (void)state;
    assert_string_equal(rlxvk_status_name(RLXVK_OK), "OK");
    assert_string_equal(rlxvk_status_name(RLXVK_E_SHAPE), "E_SHAPE");
    assert_string_equal(rlxvk_status_name(RLXVK_E_FILE), "E_FILE");
    assert_string_equal(rlxvk_status_name((rlxvk_status)17), "?");
    assert_string_equal(rlxvk_status_name((rlxvk_status)1000), "?");
    assert_string_equal(rlxvk_status_name((rlxvk_status)-1), "?");
    assert_string_equal(rlxvk_status_text(RLXVK_E_BUSY), "too many runs in flight");
    for (int i = 0; i <= 64; i++)
        assert_true(*rlxvk_status_text((rlxvk_status)i) && *rlxvk_status_name((rlxvk_status)i));
}

static void last_error_sentences(void **state)
{
    (void)state;
    assert_int_equal(status_fail(RLXVK_E_AXIS, "axis %d outside rank %d", 4, 3), RLXVK_E_AXIS);
    assert_string_equal(rlxvk_last_error(), "axis 4 outside rank 3");
    assert_int_equal(status_fail_within(RLXVK_E_AXIS, "softmax '%s'", "attn"), RLXVK_E_AXIS);
    assert_string_equal(rlxvk_last_error(), "softmax 'attn': axis 4 outside rank 3");
    status_fail(RLXVK_E_AXIS, "%s!", rlxvk_last_error()); /* the old message is an argument */
    assert_string_equal(rlxvk_last_error(), "softmax 'attn': axis 4 outside rank 3!");
    assert_int_equal(status_fail_memory("plan"), RLXVK_E_OUT_OF_HOST_MEMORY);
    assert_non_null(strstr(rlxvk_last_error(), "plan"));
}

static void last_error_is_bounded(void **state)
{
    (void)state;
    char huge[5000];
    memset(huge, 'x', sizeof(huge) - 1);
    huge[sizeof(huge) - 1] = 0;
    status_fail(RLXVK_E_FILE, "%s", huge);
    assert_int_equal(strlen(rlxvk_last_error()), 1023);
    status_fail_within(RLXVK_E_FILE, "%s", "prefix");
    assert_int_equal(strlen(rlxvk_last_error()), 1023);
    assert_memory_equal(rlxvk_last_error(), "prefix: xxx", 11);
    status_fail_within(RLXVK_E_FILE, "%s", huge);
    assert_int_equal(strlen(rlxvk_last_error()), 1023);
}

static void *other_thread(void *argument)
{
    bool *clean = argument;
    *clean = !*rlxvk_last_error();
    status_fail(RLXVK_E_BUSY, "of the other thread");
    return NULL;
}

static void last_error_is_per_thread(void **state)
{
    (void)state;
    pthread_t thread;
    bool clean = false;
    status_fail(RLXVK_E_BUSY, "of this thread");
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &clean), 0);
    pthread_join(thread, NULL);
    assert_true(clean);
    assert_string_equal(rlxvk_last_error(), "of this thread");
}

/* ---- Memory ---- */

static void allocations_are_counted(void **state)
{
    (void)state;
    uint64_t before = memory_allocation_count();
    char *copy = memory_copy_string("text");
    void *empty = memory_allocate(0), *zeroed = memory_zeroed(0, 8);
    assert_string_equal(copy, "text");
    assert_non_null(empty);
    assert_non_null(zeroed);
    copy = memory_resize(copy, 100);
    assert_string_equal(copy, "text");
    assert_int_equal(memory_allocation_count() - before, 4);
    assert_null(memory_copy_string(NULL));
    assert_null(memory_zeroed(SIZE_MAX / 2, 3));
    memory_free(copy);
    memory_free(empty);
    memory_free(zeroed);
    memory_free(NULL);
}

static void nth_allocation_fails_once(void **state)
{
    (void)state;
    memory_fail_at(3);
    void *first = memory_allocate(8), *second = memory_zeroed(1, 8);
    assert_non_null(first);
    assert_non_null(second);
    assert_null(memory_resize(second, 16)); /* and the old block remains valid */
    second = memory_resize(second, 16);
    assert_non_null(second);
    memory_free(first);
    memory_free(second);
    memory_fail_at(1);
    memory_fail_at(0);
    first = memory_allocate(1);
    assert_non_null(first);
    memory_free(first);
}

static void sizes_are_checked(void **state)
{
    (void)state;
    uint64_t out = 7;
    assert_false(size_add(UINT64_MAX, 1, &out));
    assert_false(size_multiply(UINT64_MAX / 2, 3, &out));
    assert_true(size_add(UINT64_MAX - 1, 1, &out) && out == UINT64_MAX);
    assert_true(size_multiply(1ull << 32, 1ull << 31, &out) && out == 1ull << 63);
    assert_int_equal(round_up(0, 256), 0);
    assert_int_equal(round_up(257, 256), 512);
    assert_int_equal(divide_up(0, 5), 0);
    assert_int_equal(divide_up(11, 5), 3);
    assert_true(divide_up(UINT64_MAX, 2) == 1ull << 63);
}

static void arena_blocks(void **state)
{
    (void)state;
    arena a = {0};
    uint8_t *blocks[400];
    for (size_t i = 0; i < ARRAY_COUNT(blocks); i++) {
        size_t size = i % 37 == 36 ? 10000 : i % 61;
        blocks[i] = arena_allocate(&a, size);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t j = 0; j < size; j++)
            assert_int_equal(blocks[i][j], 0);
        memset(blocks[i], (int)i, size);
    }
    for (size_t i = 0; i < ARRAY_COUNT(blocks); i++)
        for (size_t j = 0; j < (i % 37 == 36 ? 10000 : i % 61); j++)
            assert_int_equal(blocks[i][j], i & 0xff);
    assert_string_equal(arena_copy_string(&a, "name"), "name");
    assert_null(arena_copy_string(&a, NULL));
    assert_memory_equal(arena_copy(&a, "ab", 2), "ab", 2);
    assert_null(arena_allocate(&a, SIZE_MAX));
    arena_destroy(&a);
    arena_destroy(&a);
    arena_destroy(NULL);
}

static void arena_survives_failure(void **state)
{
    (void)state;
    arena a = {0};
    memory_fail_at(1);
    assert_null(arena_allocate(&a, 8));
    int *value = arena_allocate(&a, sizeof(int));
    assert_non_null(value);
    *value = 42;
    memory_fail_at(1);
    assert_null(arena_allocate(&a, 1 << 20));
    assert_int_equal(*value, 42);
    arena_destroy(&a);
}

static void vectors_grow(void **state)
{
    (void)state;
    VECTOR(int) v = {0};
    for (int i = 0; i < 1000; i++)
        assert_true(VECTOR_PUSH(&v, i * 3));
    assert_int_equal(v.count, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(v.items[i], i * 3);
    size_t capacity = v.capacity;
    memory_fail_at(1);
    assert_false(VECTOR_RESERVE(&v, capacity));
    assert_int_equal(v.capacity, capacity);
    assert_int_equal(v.items[999], 2997);
    assert_false(VECTOR_RESERVE(&v, SIZE_MAX / 2));
    VECTOR_FREE(&v);
    assert_null(v.items);
}

static void text_is_cut(void **state)
{
    (void)state;
    char buffer[8];
    text t = {.buffer = buffer, .size = sizeof(buffer)};
    text_append(&t, "%d", 123);
    text_append(&t, "%s", "abc");
    assert_string_equal(buffer, "123abc");
    text_append(&t, "%s", "defgh");
    assert_string_equal(buffer, "123abcd");
    text_append(&t, "more");
    assert_int_equal(t.length, 7);
}

static void collect(void *user, rlxvk_log_level level, const char *line)
{
    assert_int_equal(level, RLXVK_LOG_WARNING);
    strcpy(user, line);
}

static void log_goes_to_the_sink(void **state)
{
    (void)state;
    char line[64] = "";
    log_sink sink = {collect, line};
    log_line(&sink, RLXVK_LOG_WARNING, "%d steps", 3);
    assert_string_equal(line, "3 steps");
}

/* ---- Switches ---- */

static const char *const names[] = {
    "RLXVK_NO_CACHE",
    "RLXVK_FULL_BARRIER",
    "RLXVK_NO_BARRIER",
    "RLXVK_DEBUG",
    "RLXVK_DUMP",
    "RLXVK_CHECK",
    "RLXVK_DEVICE",
    "RLXVK_FORCE_HOST",
    "RLXVK_PRECISION",
    "RLXVK_PLAN",
    "RLXVK_VALIDATION",
    "RLXVK_FORCE_INPUT_UPLOAD",
    "RLXVK_NO_FUSION",
    "RLXVK_NO_REGIONS",
    "RLXVK_NO_STRIDED_ACCESS",
    "RLXVK_NAN_TRACE",
    "RLXVK_DUMP_NODES",
    "RLXVK_TRACE",
    "RLXVK_DUMP_NODES_FLAT",
    "RLXVK_DISPATCH_ONLY",
    "RLXVK_DUMP_NODES_LIMIT",
    "RLXVK_PREPARED_BYTES",
    "RLXVK_INVOCATIONS",
    "RLXVK_LIMITS",
    "RLXVK_VARIANT",
    "RLXVK_NO_TUNING",
    "RLXVK_NO_SPECIALIZATION",
};

static int clear_switches(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        unsetenv(names[i]);
    return 0;
}

static switches read_with(const char *name, const char *value)
{
    switches s;
    setenv(name, value, 1);
    assert_int_equal(switches_read(&s), RLXVK_OK);
    return s;
}

static void refused(const char *name, const char *value, rlxvk_status expected)
{
    switches s = {.dump = 77};
    setenv(name, value, 1);
    assert_int_equal(switches_read(&s), expected);
    assert_non_null(strstr(rlxvk_last_error(), name));
    assert_int_equal(s.dump, 77);
    unsetenv(name);
}

static void switch_defaults(void **state)
{
    (void)state;
    switches s, expected = {.dump_nodes_limit = 40, .dump_nodes_flat = -1};
    memset(&s, 0xff, sizeof(s));
    assert_int_equal(switches_read(&s), RLXVK_OK);
    assert_false(s.no_cache || s.validation || s.bump_plan || s.dispatch_only || s.dump_nodes);
    assert_int_equal(s.dump | s.check | s.precision | s.invocations.order, 0);
    assert_int_equal(s.dump_nodes_limit, expected.dump_nodes_limit);
    assert_true(s.dump_nodes_flat == -1);
    assert_true(!*s.device && !*s.force_host && !*s.trace);
}

static void switch_truth(void **state)
{
    (void)state;
    static const char *const off[] = {"", "0", "false", "OFF", "No", "FALSE"};
    static const char *const on[] = {"1", "true", "yes", "2", "anything", "00"};
    for (size_t i = 0; i < ARRAY_COUNT(off); i++)
        assert_false(read_with("RLXVK_NO_CACHE", off[i]).no_cache);
    for (size_t i = 0; i < ARRAY_COUNT(on); i++)
        assert_true(read_with("RLXVK_NO_CACHE", on[i]).no_cache);
    assert_true(read_with("RLXVK_VALIDATION", "on").validation);
}

static void collect_all(void *user, rlxvk_log_level level, const char *line)
{
    text_append(user, "%d %s\n", level, line);
}

/* A switch of 0.1 still works if its present name is not set, and nothing warns of it. */
static void former_names(void **state)
{
    char lines[256] = "";
    text t = {lines, sizeof lines, 0};
    (void)state;
    assert_true(read_with("RLXVK_NOCACHE", "1").no_cache);
    assert_true(read_with("RLXVK_FULLBARRIER", "1").full_barrier);
    assert_true(read_with("RLXVK_NOBARRIER", "1").no_barrier);
    assert_true(read_with("RLXVK_NO_PACKED_ATTN", "1").no_strided_access);
    setenv("RLXVK_NO_CACHE", "0", 1);
    assert_false(read_with("RLXVK_NOCACHE", "1").no_cache);
    unsetenv("RLXVK_NO_CACHE");
    setenv("RLXVK_NOCACHE", "1", 1);
    switches_warn_unknown(&(log_sink){collect_all, &t});
    unsetenv("RLXVK_NOCACHE");
    assert_string_equal(lines, "");
}

static void switch_words(void **state)
{
    (void)state;
    assert_int_equal(read_with("RLXVK_DUMP", "graph,plan").dump,
                     RLXVK_DUMP_GRAPH | RLXVK_DUMP_PLAN);
    assert_int_equal(read_with("RLXVK_DUMP", "Barriers,,rewrite,").dump,
                     RLXVK_DUMP_BARRIERS | RLXVK_DUMP_REWRITE);
    assert_int_equal(read_with("RLXVK_DUMP", "off").dump, 0);
    assert_int_equal(read_with("RLXVK_CHECK", "index,plan").check, CHECK_INDEX | CHECK_PLAN);
    assert_int_equal(read_with("RLXVK_PRECISION", "split").precision, RLXVK_PRECISION_SPLIT);
    assert_int_equal(read_with("RLXVK_PRECISION", "BF16").precision, RLXVK_PRECISION_BF16);
    assert_int_equal(read_with("RLXVK_PRECISION", "f32").precision, RLXVK_PRECISION_F32);
    assert_int_equal(read_with("RLXVK_PRECISION", "off").precision, RLXVK_PRECISION_F32);
    assert_true(read_with("RLXVK_PLAN", "bump").bump_plan);
    assert_int_equal(read_with("RLXVK_DUMP_NODES_LIMIT", "7").dump_nodes_limit, 7);
    assert_int_equal(read_with("RLXVK_DUMP_NODES_FLAT", "123456789012").dump_nodes_flat,
                     123456789012);
    assert_string_equal(read_with("RLXVK_DEVICE", "llvm").device, "llvm");
    assert_string_equal(read_with("RLXVK_TRACE", "/tmp/x.json").trace, "/tmp/x.json");
}

static void unknown_switches_are_named(void **state)
{
    char lines[2048] = "";
    text t = {lines, sizeof lines, 0};
    (void)state;
    setenv("RLXVK_NOCAHCE", "1", 1);
    setenv("RLXVK_SOMETHING_ELSE_ALTOGETHER", "1", 1);
    setenv("RLXVK_NO_FUSION", "1", 1);
    setenv("RLXVK_TEST_ANYTHING", "1", 1);
    switches_warn_unknown(&(log_sink){collect_all, &t});
    unsetenv("RLXVK_NOCAHCE");
    unsetenv("RLXVK_SOMETHING_ELSE_ALTOGETHER");
    unsetenv("RLXVK_TEST_ANYTHING");
    assert_non_null(strstr(lines,
                           "1 rlxvk: the environment variable RLXVK_NOCAHCE is no switch and "
                           "does nothing; did you mean RLXVK_NO_CACHE? `rlxvk info`"));
    assert_non_null(strstr(lines, "RLXVK_SOMETHING_ELSE_ALTOGETHER is no switch and does nothing; "
                                  "`rlxvk info`"));
    assert_null(strstr(lines, "FUSION"));
    assert_null(strstr(lines, "RLXVK_TEST_ANYTHING"));
}

static void the_switch_table_is_complete(void **state)
{
    size_t count = 0;
    (void)state;
    for (; switches_name(count); count++)
        assert_true(strlen(switches_effect(count)) > 5);
    assert_null(switches_effect(count));
    assert_int_equal(count, ARRAY_COUNT(names));
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        size_t k = 0;
        while (switches_name(k) && strcmp(switches_name(k), names[i]) != 0)
            k++;
        assert_non_null(switches_name(k));
    }
}

static void the_nearest_word_is_found(void **state)
{
    static const struct {
        const char *wanted, *found;
    } rows[] = {{"sofmtax", "softmax"},    {"SOFTMAX", "softmax"}, {"ads", "add"},
                {"softmax_of", "softmax"}, {"zzz", NULL},          {"", NULL}};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        nearest n = nearest_to(rows[i].wanted);
        nearest_consider(&n, "softmax");
        nearest_consider(&n, "add");
        if (rows[i].found)
            assert_string_equal(n.word, rows[i].found);
        else
            assert_null(n.word);
    }
}

static void switch_errors(void **state)
{
    (void)state;
    char longer[300];
    memset(longer, 'd', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = 0;
    refused("RLXVK_DUMP", "graph,plam", RLXVK_E_ATTR);
    assert_int_equal(read_with("RLXVK_CHECK", "packed").check, CHECK_PACKED);
    assert_int_equal(read_with("RLXVK_CHECK", "canary,plan").check, CHECK_CANARY | CHECK_PLAN);
    assert_int_equal(read_with("RLXVK_CHECK", "results").check, CHECK_RESULTS);
    assert_int_equal(read_with("RLXVK_CHECK", "loss").check, CHECK_LOSS);
    refused("RLXVK_CHECK", "1", RLXVK_E_ATTR);
    assert_int_equal(read_with("RLXVK_INVOCATIONS", "off").invocations.order, INVOCATIONS_IN_ORDER);
    assert_int_equal(read_with("RLXVK_INVOCATIONS", "Reversed").invocations.order,
                     INVOCATIONS_REVERSED);
    invocation_choice drawn = read_with("RLXVK_INVOCATIONS", "permuted:77").invocations;
    assert_int_equal(drawn.order, INVOCATIONS_PERMUTED);
    assert_int_equal(drawn.seed, 77);
    assert_int_equal(read_with("RLXVK_INVOCATIONS", "permuted").invocations.order,
                     INVOCATIONS_PERMUTED);
    static const char *const bad[] = {
        "sorted", "permuted:", "permuted:x", "permuted:-1", "reversed:1", "reversed,permuted", "1"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        refused("RLXVK_INVOCATIONS", bad[i], RLXVK_E_ATTR);
    refused("RLXVK_PRECISION", "half", RLXVK_E_ATTR);
    refused("RLXVK_PRECISION", "f16,split", RLXVK_E_ATTR);
    refused("RLXVK_PLAN", "best", RLXVK_E_ATTR);
    refused("RLXVK_DUMP_NODES_LIMIT", "-1", RLXVK_E_ATTR);
    refused("RLXVK_DUMP_NODES_LIMIT", "12x", RLXVK_E_ATTR);
    refused("RLXVK_DUMP_NODES_FLAT", "99999999999999999999", RLXVK_E_ATTR);
    refused("RLXVK_DEVICE", longer, RLXVK_E_ATTR);
    refused("RLXVK_DUMP", "plan,bad", RLXVK_E_ATTR);
    assert_non_null(strstr(rlxvk_last_error(), "'bad'"));
}

static void toggles(void **state)
{
    (void)state;
    assert_true(toggle(RLXVK_DEFAULT, true) && toggle(RLXVK_ON, false));
    assert_false(toggle(RLXVK_DEFAULT, false) || toggle(RLXVK_OFF, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_version_is_the_headers),
        cmocka_unit_test(status_names),
        cmocka_unit_test(last_error_sentences),
        cmocka_unit_test(last_error_is_bounded),
        cmocka_unit_test(last_error_is_per_thread),
        cmocka_unit_test(allocations_are_counted),
        cmocka_unit_test(nth_allocation_fails_once),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(arena_blocks),
        cmocka_unit_test(arena_survives_failure),
        cmocka_unit_test(vectors_grow),
        cmocka_unit_test(text_is_cut),
        cmocka_unit_test(log_goes_to_the_sink),
        cmocka_unit_test_setup_teardown(switch_defaults, clear_switches, clear_switches),
        cmocka_unit_test_setup_teardown(switch_truth, clear_switches, clear_switches),
        cmocka_unit_test_setup_teardown(switch_words, clear_switches, clear_switches),
        cmocka_unit_test_setup_teardown(former_names, clear_switches, clear_switches),
        cmocka_unit_test_setup_teardown(switch_errors, clear_switches, clear_switches),
        cmocka_unit_test_setup_teardown(unknown_switches_are_named, clear_switches, clear_switches),
        cmocka_unit_test_setup_teardown(the_switch_table_is_complete, clear_switches,
                                        clear_switches),
        cmocka_unit_test_setup_teardown(the_nearest_word_is_found, clear_switches, clear_switches),
        cmocka_unit_test(toggles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
