/* rlxvk train digits, called as the program calls it: what it learns, that the same seed learns the
 * same, checkpoints, the curve, and what it refuses. */
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

#define CHECKPOINT "build/test/digits.checkpoint"
#define CURVE      "build/test/digits.svg"

/* Runs "train digits" with up to ten words more, standard output in `text`; the exit code. */
static int train(const char *const *words, char *text, size_t size)
{
    char *arguments[13] = {"rlxvk train", "digits"};
    int count = 2;
    FILE *file = tmpfile();
    assert_non_null(file);
    while (*words && count < 12)
        arguments[count++] = (char *)*words++;
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    assert_true(kept >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    optind = 1;
    int code = command_train(count, arguments);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
    return code;
}

static double number_after(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    if (!at)
        print_error("no %s in: %s\n", name, text);
    assert_non_null(at);
    return strtod(at + strlen(name), NULL);
}

/* The last line but one of a JSON run: that of the last step. */
static double last_loss(const char *text)
{
    const char *found = NULL;
    for (const char *at = text; (at = strstr(at, "\"loss\":")) != NULL; at++)
        found = at;
    assert_non_null(found);
    return strtod(found + strlen("\"loss\":"), NULL);
}

static void two_epochs_tell_most_digits(void **state)
{
    static const char *const words[] = {"--epochs", "2",      "--json",   "--curve",
                                        CURVE,      "--save", CHECKPOINT, NULL};
    static char first[65536], second[65536];
    char begin[64] = "";
    (void)state;
    assert_int_equal(train(words, first, sizeof first), EXIT_OK);
    assert_true(number_after(first, "\"accuracy\":") > 0.9);
    assert_int_equal((int)number_after(first, "\"held\":"), 360);
    assert_int_equal(train(words, second, sizeof second), EXIT_OK);
    assert_true(last_loss(first) == last_loss(second));
    FILE *curve = fopen(CURVE, "r");
    assert_non_null(curve);
    assert_non_null(fgets(begin, sizeof begin, curve));
    assert_non_null(strstr(begin, "<svg"));
    fclose(curve);
}

/* Nothing is left to do: the net tells as many as before. */
static void checkpoints_go_on(void **state)
{
    static const char *const words[] = {"--epochs", "2", "--json", "--resume", CHECKPOINT, NULL};
    static const char *const other[] = {"--resume", "test/data/digits.y.npy", NULL};
    static char text[65536];
    (void)state;
    assert_int_equal(train(words, text, sizeof text), EXIT_OK);
    assert_true(number_after(text, "\"accuracy\":") > 0.9);
    assert_int_equal((int)number_after(text, "\"steps\":"), 44);
    assert_int_equal(train(other, text, sizeof text), EXIT_FAILED);
}

static void refusals(void **state)
{
    static const char *const lines[][4] = {{"--epochs", "0", NULL},
                                           {"--batch", "many", NULL},
                                           {"left", "over", NULL},
                                           {"--rate", "-1", NULL}};
    static const char *const nowhere[] = {"--data", "no/such/folder", NULL};
    static char text[4096];
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(train(lines[i], text, sizeof text), EXIT_USAGE);
    assert_int_equal(train(nowhere, text, sizeof text), EXIT_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_epochs_tell_most_digits),
        cmocka_unit_test(checkpoints_go_on),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
