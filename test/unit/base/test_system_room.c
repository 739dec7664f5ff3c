/* The operating system's services, alike on all of them: clocks, threads, locks, the environment,
 * texts in a foreign locale, and files whose names are in any script. */
#include "base/input.h"
#include "base/new_file.h"
#include "base/system.h"
#include "system/program.h"

#include <errno.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { THREADS = 4, TURNS = 20000 };

#define STRANGE "Gr\xc3\xbc\xc3\x9f \xe4\xb8\x96\xe7\x95\x8c" /* Latin and Chinese letters */

static char folder[1024];

/* A path in the folder of this test. */
static const char *in(const char *name)
{
    static char paths[4][1200];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void put(const char *path, const char *content)
{
    FILE *file = system_stream_open(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content, 1, strlen(content), file), strlen(content));
    assert_int_equal(fclose(file), 0);
}

static void assert_content(const char *path, const char *wanted)
{
    char content[256] = "";
    input_file *file;
    assert_int_equal(input_open(path, &file), RLXVK_OK);
    assert_int_equal(file->length, strlen(wanted));
    assert_int_equal(input_read(file, 0, file->length, content), RLXVK_OK);
    input_close(file);
    assert_string_equal(content, wanted);
}

/* ---- Time ---- */

static void clocks_go_on(void **state)
{
    uint64_t before = system_nanoseconds();
    double thread = system_thread_seconds(), process = system_process_seconds();
    volatile double work = 1;
    (void)state;
    program_sleep(0.05);
    uint64_t slept = system_nanoseconds() - before;
    assert_in_range(slept, 45000000, 5000000000u);
    assert_true(system_thread_seconds() - thread < 0.045); /* sleep is no processor time */
    while (system_nanoseconds() - before < 200000000)
        work = work * 1.000001;
    assert_true(system_thread_seconds() - thread > 0.01);
    assert_true(system_process_seconds() - process > 0.01);
    assert_true(system_process_seconds() + 0.02 >= system_thread_seconds());
}

static void today_is_a_day(void **state)
{
    system_day day;
    (void)state;
    assert_true(system_today(&day));
    assert_in_range(day.year, 2024, 2200);
    assert_in_range(day.month, 1, 12);
    assert_in_range(day.day, 1, 31);
}

/* ---- Threads ---- */

static system_lock still = SYSTEM_LOCK_INITIALIZER;

typedef struct counting {
    system_lock *lock;
    volatile unsigned count;
    uintptr_t ids[THREADS];
    atomic_uint started;
} counting;

static void count(void *argument)
{
    counting *c = argument;
    c->ids[c->started++] = system_thread_self();
    while (c->started < THREADS)
        continue; /* all run at once, so their numbers must differ */
    for (int i = 0; i < TURNS; i++) {
        system_lock_take(c->lock);
        unsigned before = c->count;
        c->count = before + 1;
        system_lock_release(c->lock);
    }
}

static void locks_keep_others_out(void **state)
{
    system_lock made;
    (void)state;
    assert_true(system_lock_create(&made));
    for (int turn = 0; turn < 2; turn++) {
        counting c = {.lock = turn ? &made : &still};
        system_thread threads[THREADS];
        for (size_t i = 0; i < THREADS; i++)
            assert_true(system_thread_start(&threads[i], count, &c));
        for (size_t i = 0; i < THREADS; i++)
            system_thread_join(&threads[i]);
        assert_int_equal(c.count, THREADS * TURNS);
        for (size_t i = 0; i < THREADS; i++) {
            assert_int_not_equal(c.ids[i], system_thread_self());
            for (size_t k = 0; k < i; k++)
                assert_int_not_equal(c.ids[i], c.ids[k]);
        }
    }
    system_lock_destroy(&made);
    assert_true(system_processor_count() >= 1);
}

/* ---- Environment ---- */

static void variables_are_set_and_listed(void **state)
{
    const char *entry, *value;
    bool listed = false;
    (void)state;
    assert_true(system_environment_set("RLXVK_TEST_ROOM", "one"));
    value = system_environment("RLXVK_TEST_ROOM");
    assert_string_equal(value, "one");
    assert_true(system_environment_set("RLXVK_TEST_ROOM", STRANGE));
    assert_string_equal(system_environment("RLXVK_TEST_ROOM"), STRANGE);
    assert_null(system_environment("RLXVK_TEST_NO_SUCH"));
    for (size_t i = 0; (entry = system_environment_entry(i)); i++)
        listed = listed || strcmp(entry, "RLXVK_TEST_ROOM=" STRANGE) == 0;
    assert_true(listed);
}

/* ---- Libraries ---- */

static void the_loader_is_found(void **state)
{
    void *library = NULL;
    (void)state;
    assert_null(system_library_open("no-such-library-of-rlxvk"));
    for (size_t i = 0; system_vulkan_names[i] && !library; i++)
        library = system_library_open(system_vulkan_names[i]);
    if (!library)
        skip();
    assert_non_null(system_library_function(library, "vkGetInstanceProcAddr"));
    assert_null(system_library_function(library, "vkNoSuchFunction"));
    system_library_close(library);
}

/* ---- Texts ---- */

static void numbers_have_a_point_in_any_locale(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE", "de-DE", "German_Germany.1252"};
    char buffer[64] = "";
    text t = {buffer, sizeof buffer, 0};
    bool set = false;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(names) && !set; i++)
        set = setlocale(LC_ALL, names[i]) && *localeconv()->decimal_point == ',';
    text_append(&t, "%.2f %zu %llu", 1234.5, (size_t)-1, 1ull << 40);
    double read = text_to_real("1.25e2", NULL);
    bool stays = !set || *localeconv()->decimal_point == ',';
    setlocale(LC_ALL, "C");
    char wanted[64];
    snprintf(wanted, sizeof wanted, "1234.50 %llu 1099511627776", (unsigned long long)SIZE_MAX);
    assert_string_equal(buffer, wanted);
    assert_true(read == 125.0);
    assert_true(stays);
}

/* ---- Files ---- */

static void names_are_of_any_script(void **state)
{
    system_entry entry;
    char nested[64];
    new_file file;
    (void)state;
    snprintf(nested, sizeof nested, "%s/a/b/file", STRANGE);
    assert_int_equal(system_look(in(STRANGE), &entry), ENOENT);
    system_make_folders(in(nested));
    assert_int_equal(system_look(in(STRANGE), &entry), 0);
    assert_int_equal(entry.kind, SYSTEM_FOLDER);
    assert_int_equal(new_file_open(in(nested), &file), RLXVK_OK);
    fputs("a\nb", file.stream);
    assert_int_equal(new_file_close(&file), RLXVK_OK);
    assert_content(in(nested), "a\nb"); /* lines end as they were written */
    assert_int_equal(system_look(in(nested), &entry), 0);
    assert_int_equal(entry.kind, SYSTEM_FILE);
    assert_int_equal(system_may_read(in(nested)), 0);
    assert_int_equal(system_may_write(in(nested)), 0);
    assert_int_equal(system_may_read(in("none")), ENOENT);
    assert_int_equal(system_may_write(in("none")), ENOENT);
}

static void files_are_read_by_offsets(void **state)
{
    system_file file;
    uint64_t length;
    char part[4] = "";
    size_t got;
    (void)state;
    put(in("offsets"), "0123456789");
    assert_int_equal(system_file_open(in("offsets"), &file, &length), 0);
    assert_int_equal(length, 10);
    assert_int_equal(system_file_read(&file, 7, part, 3, &got), 0);
    assert_int_equal(got, 3);
    assert_string_equal(part, "789");
    assert_int_equal(system_file_read(&file, 2, part, 3, &got), 0);
    assert_string_equal(part, "234");
    assert_int_equal(system_file_read(&file, 9, part, 3, &got), 0);
    assert_int_equal(got, 1);
    assert_int_equal(system_file_read(&file, 10, part, 3, &got), 0);
    assert_int_equal(got, 0);
    system_file_close(&file);
    assert_int_equal(system_file_open(folder, &file, &length), SYSTEM_NOT_REGULAR);
    assert_int_equal(system_file_open(in("none"), &file, &length), ENOENT);
}

static void outputs_append_and_are_cut(void **state)
{
    system_output one, other;
    (void)state;
    put(in("lines"), "old");
    assert_int_equal(system_output_open(in("lines"), false, &one), 0);
    assert_int_equal(system_output_write(&one, "first\n", 6), 0);
    assert_int_equal(system_output_close(&one), 0);
    assert_content(in("lines"), "first\n");
    assert_int_equal(system_output_open(in("lines"), true, &one), 0);
    assert_int_equal(system_output_lock(&one), 0);
    assert_int_equal(system_output_open(in("lines"), true, &other), 0);
    assert_int_equal(system_output_lock(&other), EBUSY);
    assert_int_equal(system_output_write(&one, "A\n", 2), 0);
    assert_int_equal(system_output_write(&other, "B\n", 2), 0);
    assert_int_equal(system_output_write(&one, "C\n", 2), 0);
    assert_content(in("lines"), "first\nA\nB\nC\n");
    assert_int_equal(system_output_cut(&one, 8), 0);
    assert_int_equal(system_output_write(&one, "D\n", 2), 0);
    assert_int_equal(system_output_keep(&one), 0);
    assert_int_equal(system_output_close(&one), 0);
    assert_int_equal(system_output_lock(&other), 0);
    assert_int_equal(system_output_close(&other), 0);
    assert_content(in("lines"), "first\nA\nD\n");
    assert_int_equal(system_output_open(in("none/lines"), false, &one), ENOENT);
}

static void files_are_replaced_by_one_writer(void **state)
{
    system_replacement r, second;
    (void)state;
    put(in("replaced"), "old");
    put(in("replaced.rlxvk-new"), "of a killed process");
    assert_int_equal(system_replacement_begin(in("replaced"), SYSTEM_FOR_ALL, &r), 0);
    assert_int_equal(system_replacement_begin(in("replaced"), SYSTEM_FOR_ALL, &second), EBUSY);
    fputs("new\n", r.stream);
    assert_content(in("replaced"), "old");
    assert_int_equal(system_replacement_finish(&r), 0);
    assert_content(in("replaced"), "new\n");
    assert_int_equal(system_may_read(in("replaced.rlxvk-new")), ENOENT);
    assert_int_equal(system_replacement_begin(in("replaced"), SYSTEM_FOR_USER, &r), 0);
    fputs("never", r.stream);
    system_replacement_discard(&r);
    assert_content(in("replaced"), "new\n");
    assert_int_equal(system_may_read(in("replaced.rlxvk-new")), ENOENT);
    assert_int_equal(system_replacement_begin(in("none/file"), SYSTEM_FOR_ALL, &r), ENOENT);
}

static void files_beside_stay_in_their_folder(void **state)
{
    input_file *file;
    char *resolved;
    (void)state;
    system_make_folders(in("model/weights/x"));
    put(in("model/weights/x"), "inside");
    put(in("outside"), "outside");
    assert_int_equal(input_open_beside(in("model"), "weights/x", &file), RLXVK_OK);
    input_close(file);
    assert_int_equal(input_open_beside(in("model"), "../outside", &file), RLXVK_E_FILE);
    assert_int_equal(input_open_beside(in("model"), "weights/../../outside", &file), RLXVK_E_FILE);
    assert_int_equal(input_open_beside(in("model"), "..\\outside", &file), RLXVK_E_FILE);
    assert_int_equal(input_open_beside(in("model"), in("outside"), &file), RLXVK_E_FILE);
    assert_int_equal(system_path_resolve(in("model/weights/../weights/x"), &resolved), 0);
    assert_null(strstr(resolved, ".."));
    assert_string_equal(resolved + strlen(resolved) - 15, "model/weights/x");
    memory_free(resolved);
    assert_int_equal(system_path_resolve(in("none"), &resolved), ENOENT);
    assert_null(resolved);
}

static void caches_have_a_folder(void **state)
{
    char found[1200], small[4];
    (void)state;
    assert_true(system_environment_set("XDG_CACHE_HOME", folder));
    assert_true(system_environment_set("LOCALAPPDATA", folder));
    assert_true(system_cache_folder(found, sizeof found));
    assert_string_equal(found, folder);
    assert_false(system_cache_folder(small, sizeof small));
    assert_true(system_environment_set("XDG_CACHE_HOME", "relative"));
    assert_true(system_environment_set("HOME", in("no-such-home")));
    assert_true(system_environment_set("LOCALAPPDATA", ""));
    assert_false(system_cache_folder(found, sizeof found));
}

static int begin(void **state)
{
    (void)state;
    return program_make_temporary(folder, sizeof folder) ? 0 : -1;
}

static int end(void **state)
{
    system_entry entry;
    (void)state;
    program_remove_folder(folder);
    return system_look(folder, &entry) == ENOENT ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_go_on),
        cmocka_unit_test(today_is_a_day),
        cmocka_unit_test(locks_keep_others_out),
        cmocka_unit_test(variables_are_set_and_listed),
        cmocka_unit_test(the_loader_is_found),
        cmocka_unit_test(numbers_have_a_point_in_any_locale),
        cmocka_unit_test(names_are_of_any_script),
        cmocka_unit_test(files_are_read_by_offsets),
        cmocka_unit_test(outputs_append_and_are_cut),
        cmocka_unit_test(files_are_replaced_by_one_writer),
        cmocka_unit_test(files_beside_stay_in_their_folder),
        cmocka_unit_test(caches_have_a_folder),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
