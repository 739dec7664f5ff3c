/* rlxvk generate, called as the program calls it: the text, and the figures of its last line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/commands.h"
#include "support/command.h"

#define MODEL "test/data/docs-5m-q4_k_m.gguf"

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
    static const char *const words[] = {MODEL, "-p",       "The open", "-n",
                                        "6",   "--greedy", "--json",   NULL};
    char text[4096];
    (void)state;
    assert_int_equal(run_command(command_generate, words, text, sizeof text), EXIT_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_true(number_after(text, names[i]) > 0);
    assert_true(number_after(text, "\"submissions_per_token\":") == 1);
}

static void last_line(void **state)
{
    static const char *const words[] = {MODEL, "-p", "The open", "-n", "6", "--greedy", NULL};
    char text[4096];
    (void)state;
    assert_int_equal(run_command(command_generate, words, text, sizeof text), EXIT_OK);
    assert_true(number_after(text, "\n[load ") >= 0);
    assert_true(number_after(text, " s, compile ") > 0);
    assert_true(number_after(text, " s, first runs ") > 0);
    assert_true(number_after(text, "; prompt 9 tokens, ") > 0);
    assert_true(number_after(text, "; decode 6 tokens, ") > 0);
}

/* One token is the prompt's: there is no step to time. */
static void no_step(void **state)
{
    static const char *const words[] = {MODEL, "-p", "The", "-n", "1", "--json", NULL};
    char text[4096];
    (void)state;
    assert_int_equal(run_command(command_generate, words, text, sizeof text), EXIT_OK);
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
