/*
 * rlxvk train digits, called in the same way as by the program: that it learns, and that the same
 * seed gives the same result. Also tests checkpoints, the curve, and refusals.
 */
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

#define CHECKPOINT "build/test/digits.checkpoint"
#define CURVE      "build/test/digits.svg"

/* The loss of the last step. It is in the last line but one of the JSON output. */
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
    static const char *const words[] = {"digits", "--epochs", "2",        "--json", "--curve",
                                        CURVE,    "--save",   CHECKPOINT, NULL};
    static char first[65536], second[65536];
    char begin[64] = "";
    (void)state;
    assert_int_equal(run_command(command_train, words, first, sizeof first), EXIT_OK);
    assert_true(number_after(first, "\"accuracy\":") > 0.9);
    assert_int_equal((int)number_after(first, "\"held\":"), 360);
    assert_int_equal(run_command(command_train, words, second, sizeof second), EXIT_OK);
    assert_true(last_loss(first) == last_loss(second));
    FILE *curve = fopen(CURVE, "r");
    assert_non_null(curve);
    assert_non_null(fgets(begin, sizeof begin, curve));
    assert_non_null(strstr(begin, "<svg"));
    fclose(curve);
}

/* If no steps are left, the net must recognize as many digits as before. */
static void checkpoints_go_on(void **state)
{
    static const char *const words[] = {"digits",   "--epochs", "2", "--json",
                                        "--resume", CHECKPOINT, NULL};
    static const char *const other[] = {"digits", "--resume", "test/data/digits.y.npy", NULL};
    static char text[65536];
    (void)state;
    assert_int_equal(run_command(command_train, words, text, sizeof text), EXIT_OK);
    assert_true(number_after(text, "\"accuracy\":") > 0.9);
    assert_int_equal((int)number_after(text, "\"steps\":"), 44);
    assert_int_equal(run_command(command_train, other, text, sizeof text), EXIT_FAILED);
}

static void refusals(void **state)
{
    static const char *const lines[][4] = {{"digits", "--epochs", "0", NULL},
                                           {"digits", "--batch", "many", NULL},
                                           {"digits", "over", NULL},
                                           {"digits", "--rate", "-1", NULL}};
    static const char *const nowhere[] = {"digits", "--data", "no/such/folder", NULL};
    static char text[4096];
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(run_command(command_train, lines[i], text, sizeof text), EXIT_USAGE);
    assert_int_equal(run_command(command_train, nowhere, text, sizeof text), EXIT_FAILED);
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
