/*
 * The files in the cache directory. If something else is in their place, a context must still open.
 * Files of killed processes must not pile up, and several writers must leave one whole file.
 */
#define _DEFAULT_SOURCE
#include "op/choice/tuning.h"
#include "support/harness.h"
#include "vk/vk.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char directory[64], folder[80];

static int make_directory(void **state)
{
    (void)state;
    strcpy(directory, "/tmp/rlxvk-cache-XXXXXX");
    if (!mkdtemp(directory))
        return -1;
    snprintf(folder, sizeof folder, "%s/rlxvk", directory);
    alarm(300); /* if a pipe blocks, the test fails instead of hanging */
    return 0;
}

/* Returns how many files have this ending. `out` becomes the path of one, or "". */
static size_t list(const char *ending, char *out, size_t size)
{
    size_t count = 0;
    DIR *d = opendir(folder);
    out[0] = 0;
    for (struct dirent *entry; d && (entry = readdir(d));) {
        size_t length = strlen(entry->d_name);
        if (entry->d_name[0] == '.')
            continue;
        count++;
        if (length > strlen(ending) && !strcmp(entry->d_name + length - strlen(ending), ending))
            snprintf(out, size, "%s/%s", folder, entry->d_name);
    }
    if (d)
        closedir(d);
    return count;
}

static int remove_directory(void **state)
{
    (void)state;
    alarm(0);
    return remove_folder(directory);
}

/* Opens a context, makes about `ops` pipelines, and closes it, which saves the cache. */
static void use_cache(int ops)
{
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_context *c =
        open_context(&(rlxvk_context_options){.cache_directory = directory, .tuning = RLXVK_ON});
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4, 4));
    if (ops > 0)
        x = rlxvk_softmax(g, x, 1);
    if (ops > 1)
        x = rlxvk_cumsum(g, x, 0, false);
    rlxvk_graph_output(g, x);
    expect_ok(rlxvk_compile(c, g, NULL, &e));
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

/* The cache must have exactly one file. */
static struct stat only_file(char *path, size_t size)
{
    struct stat about;
    assert_int_equal(list(".bin", path, size), 1);
    assert_int_equal(stat(path, &about), 0);
    assert_true(S_ISREG(about.st_mode));
    return about;
}

static void put(const char *path, const char *content)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void test_saved_and_loaded(void **state)
{
    char path[512];
    (void)state;
    use_cache(1);
    struct stat first = only_file(path, sizeof path);
    use_cache(1); /* nothing new, so it is not written again */
    assert_int_equal(only_file(path, sizeof path).st_ino, first.st_ino);
}

/* Something else is in the place of a file. Opening must not wait for it, and saving must replace
 * it. */
static void test_no_regular_file(void **state)
{
    char path[512], tuning[512];
    (void)state;
    use_cache(1);
    (void)only_file(path, sizeof path);
    snprintf(tuning, sizeof tuning, "%.*s" TUNING_ENDING, (int)strlen(path) - 3, path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(mkfifo(tuning, 0600), 0);
    use_cache(1);
    assert_int_equal(unlink(tuning), 0);
    (void)only_file(path, sizeof path);
}

static void test_damaged(void **state)
{
    char path[512];
    (void)state;
    use_cache(1);
    (void)only_file(path, sizeof path);
    off_t sizes[] = {0, 1, 24, 40};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(truncate(path, sizes[i]), 0);
        use_cache(1);
        assert_true(only_file(path, sizeof path).st_size > 40);
    }
}

/* If a process is killed while it saves, its temporary file remains. The next process takes it
 * over. */
static void test_leftover_temporary(void **state)
{
    char path[512], temporary[528];
    (void)state;
    use_cache(1);
    (void)only_file(path, sizeof path);
    snprintf(temporary, sizeof temporary, "%s.rlxvk-new", path);
    for (int i = 0; i < 3; i++) {
        put(temporary, "half a file, and longer than what is written over it by far, far, far");
        assert_int_equal(unlink(path), 0);
        use_cache(1);
        struct stat first = only_file(path, sizeof path);
        use_cache(1);
        assert_int_equal(only_file(path, sizeof path).st_ino, first.st_ino); /* whole: loaded */
    }
}

/* While another writer holds the temporary file, nothing is written and the file is left alone. */
static void test_other_writer(void **state)
{
    char path[512], temporary[528], none[512];
    struct stat about;
    (void)state;
    use_cache(1);
    (void)only_file(path, sizeof path);
    snprintf(temporary, sizeof temporary, "%s.rlxvk-new", path);
    assert_int_equal(unlink(path), 0);
    put(temporary, "theirs");
    int theirs = open(temporary, O_RDWR);
    assert_int_equal(flock(theirs, LOCK_EX), 0);
    use_cache(1);
    assert_int_equal(list(".bin", none, sizeof none), 1);
    assert_string_equal(none, "");
    assert_int_equal(stat(temporary, &about), 0);
    assert_int_equal(about.st_size, 6);
    close(theirs);
    use_cache(1);
    (void)only_file(path, sizeof path);
}

static void *save_often(void *argument)
{
    for (int i = 0; i < 4; i++)
        use_cache((int)(intptr_t)argument);
    return NULL;
}

static void test_writers_at_once(void **state)
{
    pthread_t threads[3];
    char path[512];
    (void)state;
    for (intptr_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, save_often, (void *)i), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    use_cache(2);
    struct stat first = only_file(path, sizeof path);
    use_cache(2);
    assert_int_equal(only_file(path, sizeof path).st_ino, first.st_ino);
}

/* Folders from the environment. If the home folder does not exist, it is not made. A relative cache
 * folder is not made either. */
static void test_home_is_not_made(void **state)
{
    char home[128], cache[160];
    (void)state;
    snprintf(home, sizeof home, "%s/none", directory);
    snprintf(cache, sizeof cache, "%s/.cache/rlxvk", home);
    assert_int_equal(setenv("HOME", home, 1), 0);
    for (int made = 0; made < 2; made++) {
        assert_int_equal(setenv("XDG_CACHE_HOME", made ? "" : "none/relative", 1), 0);
        if (made)
            assert_int_equal(mkdir(home, 0700), 0);
        rlxvk_context *c = open_context(&(rlxvk_context_options){.tuning = RLXVK_OFF});
        rlxvk_graph *g;
        rlxvk_executable *e;
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_graph_output(g, rlxvk_neg(g, rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(4))));
        expect_ok(rlxvk_compile(c, g, NULL, &e));
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
        close_context(c);
        assert_int_equal(access(home, F_OK), made ? 0 : -1);
        assert_int_equal(access(cache, F_OK), made ? 0 : -1);
        assert_int_equal(access("none", F_OK), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_saved_and_loaded, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_no_regular_file, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_damaged, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_leftover_temporary, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_other_writer, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_writers_at_once, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(test_home_is_not_made, make_directory, remove_directory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
