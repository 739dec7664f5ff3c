/* rlxvk train lm, called as the program calls it: that it learns, that the same seed learns the
 * same, going on, a model that rlxvk generate runs, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/commands.h"
#include "support/command.h"

#define TEXT       "build/test/lm.txt"
#define MODEL      "build/test/lm.gguf"
#define CHECKPOINT "build/test/lm.checkpoint"
#define SMALL                                                                                      \
    "--width", "32", "--blocks", "1", "--heads", "2", "--kv-heads", "1", "--context", "24",        \
        "--batch", "8"

static char text[1 << 20];

static int write_text(void **state)
{
    static const char line[] = "one two three four five six seven eight nine ten; ";
    FILE *file = fopen(TEXT, "w");
    (void)state;
    assert_non_null(file);
    for (int i = 0; i < 200; i++)
        assert_true(fputs(line, file) >= 0);
    return fclose(file);
}

static int train(const char *const *words)
{
    return run_command(command_train, words, text, sizeof text);
}

/* Of the results, the last line. */
static double held_loss(void)
{
    const char *last = strstr(text, "{\"steps\":");
    assert_non_null(last);
    return number_after(last, "\"held_loss\":");
}

static void learns_and_is_run(void **state)
{
    static const char *const words[] = {"lm",     "--text", TEXT,    SMALL, "--steps", "150",
                                        "--rate", "0.01",   "--out", MODEL, "--json",  NULL};
    static const char *const prompt[] = {MODEL, "-p", "one two thr", "-n", "8", "--greedy", NULL};
    (void)state;
    assert_int_equal(train(words), EXIT_OK);
    double first = number_after(text, "\"held_loss\":"), last = held_loss();
    assert_true(first > 1.5 && last < 0.7);
    assert_int_equal(run_command(command_generate, prompt, text, sizeof text), EXIT_OK);
    print_message("%.3f, then %.3f nats a byte: %s\n", first, last, text);
    assert_non_null(strstr(text, "ee four"));
}

/* Ten steps at once, and five and five more: the same. So is recomputing. */
static void goes_on(void **state)
{
    static const char *const whole[] = {"lm",      "--text", TEXT,     SMALL,
                                        "--steps", "10",     "--json", NULL};
    static const char *const again[] = {"lm",          "--text", TEXT,     SMALL,
                                        "--steps",     "10",     "--save", CHECKPOINT,
                                        "--recompute", "--json", NULL};
    static const char *const resumed[] = {"lm",       TEXT,     SMALL, "--resume",
                                          CHECKPOINT, "--json", NULL};
    (void)state;
    assert_int_equal(train(whole), EXIT_OK);
    double loss = held_loss();
    assert_int_equal(train(again), EXIT_OK);
    assert_true(held_loss() == loss);
    assert_int_equal(train(resumed), EXIT_OK); /* nothing is left to do */
    assert_true(held_loss() == loss);
}

static void refusals(void **state)
{
    static const char *const usage[][6] = {{"lm", "--width", "0", NULL},
                                           {"lm", "--steps", "x", NULL},
                                           {"poet", NULL}};
    static const char *const failed[][8] = {{"lm", NULL},
                                            {"lm", "--text", "no/such/file", NULL},
                                            {"lm", "--text", TEXT, "--context", "4096", NULL},
                                            {"lm", "--text", TEXT, "--heads", "5", NULL},
                                            {"lm", "--text", TEXT, "--kv-heads", "3", NULL},
                                            {"lm", "--text", TEXT, "--out",
                                             "no/such/folder/model.gguf", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof usage / sizeof *usage; i++)
        assert_int_equal(train(usage[i]), EXIT_USAGE);
    for (size_t i = 0; i < sizeof failed / sizeof *failed; i++)
        assert_int_equal(train(failed[i]), EXIT_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learns_and_is_run),
        cmocka_unit_test(goes_on),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, write_text, NULL);
}
