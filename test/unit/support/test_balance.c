/*
 * The checks at the end of every test program (support/balance.c), tested with leaks made on
 * purpose. Each leak is made in a process of its own, whose exit status and last words are read.
 */
#include "support/harness.h"
#include "vk/vk.h"
#include "program/context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void
    *volatile left; /* until this is overwritten, no leak checker reports its memory as a leak */

static void leave_nothing(void)
{
    rlxvk_context *c = open_context(NULL);
    memory_free(memory_allocate(8));
    close_context(c);
}

static void leave_allocations(void)
{
    for (int i = 0; i < 3; i++)
        left = memory_resize(NULL, 8);
}

static void leave_kept(void)
{
    left = memory_allocate(8);
    memory_keep(left);
}

static void leave_buffer(void)
{
    rlxvk_context *c = open_context(NULL);
    memory_block block;
    expect_ok(memory_block_create(c->device, MEMORY_UPLOAD, 64, &block));
    close_context(c);
}

static void leave_device(void)
{
    (void)open_context(NULL);
}

static void free_too_much(void)
{
    memory_keep(""); /* counts as memory_free does */
}

static void leave_foreign(void)
{
    left = malloc(8);
    left = NULL;
}

static void leave_foreign_beside_driver(void)
{
    leave_nothing();
    leave_foreign();
}

/* Runs `make` and exits, in a child process. Returns whether that succeeded, and the printed
 * text. */
static bool ends_well(void (*make)(void), char *text, size_t size)
{
    int channel[2], status;
    size_t length = 0;
    fflush(NULL);
    assert_int_equal(pipe(channel), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(channel[1], STDERR_FILENO);
        close(channel[0]);
        close(channel[1]);
        make();
        exit(EXIT_SUCCESS);
    }
    close(channel[1]);
    for (ssize_t got = 1; got > 0; length += (size_t)got)
        if ((got = read(channel[0], text + length, size - 1 - length)) < 0)
            got = 0;
    text[length] = 0;
    close(channel[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS;
}

static void expect_end(void (*make)(void), const char *words)
{
    char text[16384];
    bool well = ends_well(make, text, sizeof text);
    if (well != !words || (words && !strstr(text, words)))
        print_error("ended %s with '%s'; wanted '%s'\n", well ? "well" : "badly", text,
                    words ? words : "");
    assert_int_equal(well, !words);
    if (words)
        assert_non_null(strstr(text, words));
}

static void balanced_programs_pass(void **state)
{
    (void)state;
    expect_end(leave_nothing, NULL);
    expect_end(leave_kept, NULL);
}

static void what_is_left_fails(void **state)
{
    (void)state;
    expect_end(leave_allocations, "left behind: 3 host allocations\n");
    expect_end(leave_buffer, "left behind: 1 VkBuffer, 1 VkDeviceMemory\n");
    expect_end(leave_device, " VkPipelineCache");
    expect_end(leave_device, "1 VkDevice\n");
    expect_end(free_too_much, "left behind: -1 host allocations\n");
}

/* If the library did not allocate the memory, only the leak checker can find it. This needs a build
 * that has the checker, and a process without a driver. */
static void leak_checker_without_driver(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    expect_end(leave_foreign, "LeakSanitizer: detected memory leaks");
#else
    expect_end(leave_foreign, NULL);
#endif
    expect_end(leave_foreign_beside_driver, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(balanced_programs_pass),
        cmocka_unit_test(what_is_left_fails),
        cmocka_unit_test(leak_checker_without_driver),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
