/*
 * rlxvk generate, called in the same way as by the program: its text, and the figures in its last
 * line.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/commands.h"
#include "support/command.h"

#define PROMPT "build/test/prompt.txt"
#define MODEL  "test/data/docs-5m-q4_k_m.gguf"

/* Work that is done only once (load, compile, first runs) has its own figures. It is not part of
 * the speeds. */
static void json_figures(void **state)
{
    static const char *const names[] = {
        "\"load_seconds\":",
        "\"compile_seconds\":",
        "\"first_run_seconds\":",
        "\"first_token_seconds\":",
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
    assert_true(number_after(text, " s, first token ") > 0);
    assert_true(number_after(text, " s, first runs ") >= 0);
    assert_non_null(strstr(text, "(without loading, compiling, first runs)"));
    assert_true(number_after(text, "; prompt 9 tokens, ") > 0);
    assert_true(number_after(text, "; decode 6 tokens, ") > 0);
}

/* If one token is asked for, the prompt gives it, so there is no decode step to time. */
static void no_step(void **state)
{
    static const char *const words[] = {MODEL, "-p", "The", "-n", "1", "--json", NULL};
    char text[4096];
    (void)state;
    assert_int_equal(run_command(command_generate, words, text, sizeof text), EXIT_OK);
    assert_true(number_after(text, "\"prompt_tokens_per_second\":") > 0);
    assert_true(number_after(text, "\"decode_tokens_per_second\":") == 0);
}

static void write_prompt(const char *content)
{
    FILE *file = fopen(PROMPT, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Returns the text before the line of figures. */
static const char *continue_text(const char *how, const char *value)
{
    static char text[4096];
    const char *const words[] = {MODEL, how, value, "-n", "12", "--greedy", NULL};
    assert_int_equal(run_command(command_generate, words, text, sizeof text), EXIT_OK);
    char *figures = strstr(text, "\n[load ");
    assert_non_null(figures);
    *figures = 0;
    return text;
}

static void prompts_from_files(void **state)
{
    char expected[4096];
    (void)state;
    snprintf(expected, sizeof expected, "%s", continue_text("-p", "The open"));
    write_prompt("The open\n");
    assert_string_equal(continue_text("--file", PROMPT), expected);
    assert_non_null(freopen(PROMPT, "r", stdin));
    assert_string_equal(continue_text("--file", "-"), expected);
}

/* Each answer is the continuation of the whole conversation so far. */
static void turns_share_a_context(void **state)
{
    static const char *const words[] = {MODEL, "--interactive", "-n", "12", "--greedy", NULL};
    char text[4096], said[1024] = "The open", expected[4096] = "";
    (void)state;
    for (int turn = 0; turn < 3; turn++) {
        const char *answer = continue_text("-p", said);
        strcat(strcat(expected, answer), "\n");
        strcat(strcat(said, answer), "\nand the file");
    }
    write_prompt("The open\n\nand the file\nand the file");
    assert_non_null(freopen(PROMPT, "r", stdin));
    assert_int_equal(run_command(command_generate, words, text, sizeof text), EXIT_OK);
    char *figures = strstr(text, "\n[load ");
    assert_non_null(figures);
    *figures = 0;
    assert_string_equal(text, expected);
}

/* If the context has no room for a line, the conversation ends with an error. */
static void a_full_context(void **state)
{
    static const char *const words[] = {MODEL, "--interactive", "--ctx", "24", "-n", "64", NULL};
    char text[4096];
    (void)state;
    write_prompt("The open\nand");
    assert_non_null(freopen(PROMPT, "r", stdin));
    assert_int_equal(run_command(command_generate, words, text, sizeof text), EXIT_FAILED);
}

/* Answers come in the order of the prompts. Each is the same as for its prompt alone, whatever runs
 * beside it. */
static void batches(void **state)
{
    static const char *const prompts[] = {"The open", "Files are", "Once", "The system call is",
                                          "A"};
    static const char *const parallel[] = {"1", "2", "8"};
    char expected[4096] = "", text[8192];
    (void)state;
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++) {
        const char *answer = continue_text("-p", prompts[i]);
        assert_null(strpbrk(answer, "\n\\"));
        strcat(strcat(expected, answer), "\n");
    }
    write_prompt("The open\n\nFiles are\nOnce\nThe system call is\nA");
    for (size_t i = 0; i < sizeof parallel / sizeof *parallel; i++) {
        const char *const words[] = {MODEL,        "--batch",   PROMPT,     "-n", "12",
                                     "--parallel", parallel[i], "--greedy", NULL};
        assert_int_equal(run_command(command_generate, words, text, sizeof text), EXIT_OK);
        assert_true(number_after(text, "; prompt 45 tokens, ") > 0);
        assert_true(number_after(text, "; decode 60 tokens, ") > 0);
        *strstr(text, "\n[load ") = 0;
        assert_string_equal(text, expected);
    }
}

static void batch_json(void **state)
{
    static const char *const words[] = {MODEL, "--batch",  PROMPT,   "-n",
                                        "1",   "--greedy", "--json", NULL};
    char text[4096];
    (void)state;
    write_prompt("The open\nThe\n");
    assert_int_equal(run_command(command_generate, words, text, sizeof text), EXIT_OK);
    const char *second = strstr(text, "},{\"prompt_ids\":[1,87,107,104],\"ids\":[");
    assert_non_null(second);
    assert_non_null(strstr(text, "\"answers\":[{\"prompt_ids\":[1,87,"));
    assert_true(number_after(text, "\"first_token_seconds\":") > 0);
}

static void precisions(void **state)
{
    static const char *const given[][2] = {{"--precision", "f16"},
                                           {"--precision", "bf16"},
                                           {"--precision", "split"},
                                           {"--cache", "f32"},
                                           {"--cache", "f16"}};
    char text[4096];
    (void)state;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        const char *const words[] = {MODEL,      "-p",        "The open",  "-n", "12",
                                     "--greedy", given[i][0], given[i][1], NULL};
        assert_int_equal(run_command(command_generate, words, text, sizeof text), EXIT_OK);
        assert_true(number_after(text, "; decode 12 tokens, ") > 0);
    }
}

static void refusals(void **state)
{
    static const struct {
        const char *words[8];
        int code;
    } cases[] = {{{MODEL, "-p", "a", "--file", PROMPT}, EXIT_USAGE},
                 {{MODEL, "-p", "a", "--batch", PROMPT}, EXIT_USAGE},
                 {{MODEL, "--batch", PROMPT, "--interactive"}, EXIT_USAGE},
                 {{MODEL, "--batch", PROMPT, "--logits", "x.npy"}, EXIT_USAGE},
                 {{MODEL, "--batch", PROMPT, "--parallel", "0"}, EXIT_USAGE},
                 {{MODEL, "--batch", PROMPT}, EXIT_FAILED},
                 {{MODEL, "--interactive", "--json"}, EXIT_USAGE},
                 {{MODEL, "--interactive", "--file", "-"}, EXIT_USAGE},
                 {{MODEL, "--interactive", "--logits", "x.npy"}, EXIT_USAGE},
                 {{MODEL, "-p", "a", "--precision", "f8"}, EXIT_USAGE},
                 {{MODEL, "-p", "a", "--cache", "bf16"}, EXIT_USAGE},
                 {{MODEL, "-p", "a", "--ctx", "0"}, EXIT_USAGE},
                 {{MODEL, "-p", "The open", "--ctx", "12", "-n", "4"}, EXIT_FAILED},
                 {{MODEL, "-p", "a", "--ctx", "1000000"}, EXIT_FAILED},
                 {{MODEL, "--file", "no/such/file"}, EXIT_FAILED}};
    char text[256];
    (void)state;
    write_prompt("\n\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(run_command(command_generate, cases[i].words, text, sizeof text),
                         cases[i].code);
}

/* Captures the standard error of a call. */
static void run_for_errors(const char *const *words, char *errors, size_t size)
{
    char text[4096];
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stderr);
    int kept = dup(STDERR_FILENO);
    assert_true(kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    int code = run_command(command_generate, words, text, sizeof text);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    rewind(file);
    errors[fread(errors, 1, size - 1, file)] = 0;
    fclose(file);
    assert_int_equal(code, EXIT_OK);
}

/* The model adds <s> to each prompt. If a prompt has it too, there is one warning for each call. */
static void two_bos(void **state)
{
    static const char *const prompts[] = {"<s>The open", "The <s>open", "The open"};
    static const char *const batch[] = {MODEL, "--batch", PROMPT, "-n", "1", "--json", NULL};
    static const char warning[] = "warning: the prompt begins with the token";
    char errors[4096];
    (void)state;
    for (int i = 0; i < 3; i++) {
        const char *const words[] = {MODEL, "-p", prompts[i], "-n", "1", "--json", NULL};
        run_for_errors(words, errors, sizeof errors);
        assert_int_equal(strstr(errors, warning) != NULL, i == 0);
    }
    write_prompt("The\n<s>The open\n<s>A\n");
    run_for_errors(batch, errors, sizeof errors);
    char *first = strstr(errors, warning);
    assert_non_null(first);
    assert_null(strstr(first + 1, warning));
}

#define LONG_MODEL "test/data/models/phi3-long.gguf" /* original context 32, context 64 */

/* The rope divisors of a text must not depend on the room (--ctx) or on the number of tokens asked
 * for. */
static void long_context(void **state)
{
    static const char *const asked[][2] = {
        {"32", "1"}, {"64", "1"}, {"32", "24"}, {"64", "24"}, {"64", "50"}};
    char texts[5][512];
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        const char *const words[] = {LONG_MODEL, "-p",    "abc",       "-n", asked[i][1],
                                     "--greedy", "--ctx", asked[i][0], NULL};
        assert_int_equal(run_command(command_generate, words, texts[i], sizeof texts[i]), EXIT_OK);
        char *figures = strstr(texts[i], "\n[load ");
        assert_non_null(figures);
        *figures = 0;
    }
    assert_string_equal(texts[0], texts[1]);
    assert_string_equal(texts[2], texts[3]);
    assert_memory_equal(texts[0], texts[2], strlen(texts[0]));
    assert_memory_equal(texts[2], texts[4], strlen(texts[2]));
    assert_true(strlen(texts[4]) > strlen(texts[2]));
}

/* All indices must pass the check for being in range. First a prompt's padding goes beyond the
 * cache, so that its last rows have no positions. Then a batch has sequences that have ended, which
 * are at no position. Last comes a stretched text. */
static void every_index_is_in_order(void **state)
{
    static const char *const calls[][10] = {
        {MODEL, "-p", "The open", "-n", "3", "--greedy", "--ctx", "12"},
        {MODEL, "--batch", PROMPT, "-n", "4", "--greedy", "--parallel", "2"},
        {LONG_MODEL, "-p", "abc", "-n", "40", "--greedy", "--ctx", "64"},
        {LONG_MODEL, "--batch", PROMPT, "-n", "4", "--greedy"},
    };
    char text[2][8192], *figures;
    (void)state;
    write_prompt("The open\nThe\nA\n");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        for (int checked = 0; checked < 2; checked++) {
            if (checked)
                setenv("RLXVK_CHECK", "index", 1);
            assert_int_equal(run_command(command_generate, calls[i], text[checked], sizeof *text),
                             EXIT_OK);
            unsetenv("RLXVK_CHECK");
            figures = strstr(text[checked], "\n[load ");
            assert_non_null(figures);
            *figures = 0;
        }
        assert_string_equal(text[0], text[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_figures),
        cmocka_unit_test(last_line),
        cmocka_unit_test(no_step),
        cmocka_unit_test(prompts_from_files),
        cmocka_unit_test(turns_share_a_context),
        cmocka_unit_test(a_full_context),
        cmocka_unit_test(batches),
        cmocka_unit_test(batch_json),
        cmocka_unit_test(precisions),
        cmocka_unit_test(refusals),
        cmocka_unit_test(two_bos),
        cmocka_unit_test(long_context),
        cmocka_unit_test(every_index_is_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
