/* Services of the operating system. A set-user-ID program must ignore its environment, because its
 * caller controls it. A file is replaced as a whole and durably, even if killed processes left
 * files behind. */
#include "base/switches.h"
#include "base/system.h"
#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define PRIVILEGED "--privileged"
enum { NOTHING_TAKEN = 0, SOMETHING_TAKEN = 1, NOT_PRIVILEGED = 77 };

static char folder[] = "/tmp/rlxvk-system-XXXXXX", path[64], temporary[80];
static const char *self;

/* ---- Records the disk operations of finish() in order: d syncs a file's content, r renames, f
 * syncs a folder's entries. These functions replace those of the C library. ---- */

static char asked[16];
static int fail_sync;

int fsync(int descriptor)
{
    struct stat info;
    size_t length = strlen(asked);
    if (fstat(descriptor, &info) == 0 && length + 1 < sizeof asked)
        memcpy(asked + length, S_ISDIR(info.st_mode) ? "f" : "d", 2);
    if (fail_sync) {
        errno = fail_sync;
        return -1;
    }
    return (int)syscall(SYS_fsync, descriptor);
}

int rename(const char *from, const char *to)
{
    size_t length = strlen(asked);
    if (length + 1 < sizeof asked)
        memcpy(asked + length, "r", 2);
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* ---- Environment ---- */

static void set_environment(void)
{
    for (size_t i = 0; switches_name(i); i++)
        setenv(switches_name(i), "1", 1);
    setenv("RLXVK_TRACE", path, 1);
    setenv("XDG_CACHE_HOME", folder, 1);
}

/* Runs in the set-user-ID copy of this program. Checks that it ignores every switch and folder. */
static int run_privileged(void)
{
    switches s;
    if (!getauxval(AT_SECURE))
        return NOT_PRIVILEGED;
    for (size_t i = 0; switches_name(i); i++)
        if (!getenv(switches_name(i)) || system_environment(switches_name(i)))
            return SOMETHING_TAKEN;
    bool folders = system_environment("HOME") || system_environment("XDG_CACHE_HOME");
    if (folders || system_environment_entry(0) || switches_read(&s) != RLXVK_OK || *s.trace)
        return SOMETHING_TAKEN;
    return NOTHING_TAKEN;
}

static int copy_file(const char *from, const char *to)
{
    char command[1024];
    snprintf(command, sizeof command, "cp '%s' '%s' && chmod 4755 '%s'", from, to, to);
    return system(command);
}

static void set_user_id_programs_take_nothing(void **state)
{
    char copy[64];
    int result;
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can make such a program for another user */
    snprintf(copy, sizeof copy, "%s/copy", folder);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(copy_file(self, copy), 0);
    pid_t child = fork();
    if (child == 0) {
        set_environment();
        if (setgid(65534) == 0 && setuid(65534) == 0)
            execl(copy, copy, PRIVILEGED, (char *)NULL);
        _exit(NOT_PRIVILEGED);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(unlink(copy), 0);
    if (WIFEXITED(result) && WEXITSTATUS(result) == NOT_PRIVILEGED)
        skip(); /* the file system is mounted nosuid */
    assert_int_equal(result, NOTHING_TAKEN);
}

static void other_programs_take_it(void **state)
{
    (void)state;
    setenv("RLXVK_TEST_SYSTEM", "value", 1);
    assert_string_equal(system_environment("RLXVK_TEST_SYSTEM"), "value");
    assert_null(system_environment("RLXVK_TEST_NO_SUCH"));
    assert_non_null(system_environment_entry(0));
}

/* ---- Replacements ---- */

static void put(const char *name, const char *content)
{
    FILE *file = fopen(name, "wb");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void assert_content(const char *name, const char *wanted)
{
    char content[64] = "";
    FILE *file = fopen(name, "rb");
    assert_non_null(file);
    content[fread(content, 1, sizeof content - 1, file)] = 0;
    fclose(file);
    assert_string_equal(content, wanted);
}

static int replace(const char *content)
{
    system_replacement r;
    int error = system_replacement_begin(path, SYSTEM_FOR_ALL, &r);
    if (error)
        return error;
    fputs(content, r.stream);
    return system_replacement_finish(&r);
}

static void content_is_kept_before_the_name(void **state)
{
    (void)state;
    asked[0] = 0;
    assert_int_equal(replace("one"), 0);
    assert_string_equal(asked, "drf");
    assert_content(path, "one");
    assert_int_equal(access(temporary, F_OK), -1);
}

static void failures_keep_the_old_file(void **state)
{
    system_replacement r;
    (void)state;
    put(path, "old");
    fail_sync = EIO;
    assert_int_equal(replace("new"), EIO);
    fail_sync = 0;
    assert_content(path, "old");
    assert_int_equal(system_replacement_begin(path, SYSTEM_FOR_ALL, &r), 0);
    fputs("new", r.stream);
    system_replacement_discard(&r);
    assert_content(path, "old");
    assert_int_equal(access(temporary, F_OK), -1);
    fail_sync = EINVAL; /* the file system does not support it */
    assert_int_equal(replace("new"), 0);
    fail_sync = 0;
    assert_content(path, "new");
    assert_int_equal(system_replacement_begin("/no/such/folder/file", SYSTEM_FOR_ALL, &r), ENOENT);
}

/* If a killed process left its temporary file, that file is removed and never written to. Its
 * permissions and hard links do not matter. */
static void leftovers_do_not_block(void **state)
{
    struct stat info;
    char other[64];
    (void)state;
    snprintf(other, sizeof other, "%s/other", folder);
    put(temporary, "half");
    assert_int_equal(chmod(temporary, 0666), 0);
    assert_int_equal(link(temporary, other), 0);
    assert_int_equal(replace("whole"), 0);
    assert_content(path, "whole");
    assert_content(other, "half");
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 022, 0);
    assert_int_equal(unlink(other), 0);
}

/* If a killed process left its temporary file, saving still works. The ids of the processes do not
 * matter, because they may repeat in containers. */
static void saving_goes_on_after_a_killed_process(void **state)
{
    new_file file;
    (void)state;
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (new_file_open(path, &file) == RLXVK_OK && fputs("half", file.stream) >= 0)
                fflush(file.stream);
            raise(9);
        }
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    assert_int_equal(access(temporary, F_OK), 0);
    assert_int_equal(new_file_open(path, &file), RLXVK_OK);
    fputs("after", file.stream);
    assert_int_equal(new_file_close(&file), RLXVK_OK);
    assert_content(path, "after");
}

static void one_writer_at_a_time(void **state)
{
    system_replacement first;
    new_file second;
    (void)state;
    assert_int_equal(system_replacement_begin(path, SYSTEM_FOR_ALL, &first), 0);
    assert_int_equal(replace("second"), EBUSY);
    assert_int_equal(new_file_open(path, &second), RLXVK_E_FILE);
    assert_non_null(strstr(rlxvk_last_error(), "another process is writing it"));
    assert_null(strstr(rlxvk_last_error(), "rlxvk-new"));
    fputs("first", first.stream);
    assert_int_equal(system_replacement_finish(&first), 0);
    assert_content(path, "first");
}

static void strange_files_in_its_place(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(temporary, 0600), 0);
    assert_int_equal(replace("x"), EEXIST);
    assert_int_equal(unlink(temporary), 0);
    put(path, "victim");
    assert_int_equal(symlink(path, temporary), 0);
    assert_int_equal(replace("x"), ELOOP);
    assert_content(path, "victim");
    assert_int_equal(unlink(temporary), 0);
}

static int begin(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(temporary, sizeof temporary, "%s.rlxvk-new", path);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    unlink(temporary);
    return rmdir(folder);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_user_id_programs_take_nothing),
        cmocka_unit_test(other_programs_take_it),
        cmocka_unit_test(content_is_kept_before_the_name),
        cmocka_unit_test(failures_keep_the_old_file),
        cmocka_unit_test(leftovers_do_not_block),
        cmocka_unit_test(saving_goes_on_after_a_killed_process),
        cmocka_unit_test(one_writer_at_a_time),
        cmocka_unit_test(strange_files_in_its_place),
    };
    if (argc > 1 && strcmp(argv[1], PRIVILEGED) == 0)
        return run_privileged();
    self = argv[0];
    return cmocka_run_group_tests(tests, begin, end);
}
