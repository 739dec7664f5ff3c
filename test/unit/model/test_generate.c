/* rlxvk generate, called as the program calls it: the text, and the figures of its last line. */
#include "cli/commands.h"

#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define MODEL "test/data/docs-5m-q4_k_m.gguf"

/* Runs it with standard output in `text`; the exit code. */
static int generate(char *const *arguments, int count, char *text, size_t size)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    assert_true(kept >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    optind = 1;
    int code = command_generate(count, (char **)arguments);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
    return code;
}

/* The number after a name; fails the test where there is none. */
static double number_after(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    if (!at)
        print_error("no %s in: %s\n", name, text);
    assert_non_null(at);
    return strtod(at + strlen(name), NULL);
}

/* What is done once (load, compile, first runs) stands beside the speeds and not in them. */
static void json_figures(void **state)
{
    static const char *const names[] = {
        "\"load_seconds\":",
        "\"compile_seconds\":",
        "\"first_run_seconds\":",
        "\"decode_tokens_per_second\":",
        "\"prompt_tokens_per_second\":",
    };
    char *arguments[] = {"generate", MODEL, "-p", "The open", "-n", "6", "--greedy", "--json"};
    char text[4096];
    (void)state;
    assert_int_equal(generate(arguments, 8, text, sizeof text), EXIT_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(number_after(text, names[i]) > 0);
    assert_true(number_after(text, "\"submissions_per_token\":") == 1);
}

static void last_line(void **state)
{
    char *arguments[] = {"generate", MODEL, "-p", "The open", "-n", "6", "--greedy"};
    char text[4096];
    (void)state;
    assert_int_equal(generate(arguments, 7, text, sizeof text), EXIT_OK);
    assert_true(number_after(text, "\n[load ") >= 0);
    assert_true(number_after(text, " s, compile ") > 0);
    assert_true(number_after(text, " s, first runs ") > 0);
    assert_true(number_after(text, "; prompt 9 tokens, ") > 0);
    assert_true(number_after(text, "; decode 6 tokens, ") > 0);
}

/* One token is the prompt's: there is no step to time. */
static void no_step(void **state)
{
    char *arguments[] = {"generate", MODEL, "-p", "The", "-n", "1", "--json"};
    char text[4096];
    (void)state;
    assert_int_equal(generate(arguments, 7, text, sizeof text), EXIT_OK);
    assert_true(number_after(text, "\"prompt_tokens_per_second\":") > 0);
    assert_true(number_after(text, "\"decode_tokens_per_second\":") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_figures),
        cmocka_unit_test(last_line),
        cmocka_unit_test(no_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
