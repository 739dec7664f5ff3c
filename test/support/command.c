/* See command.h. */
#include "support/command.h"

#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define MOST_WORDS 32

int run_command(int (*command)(int, char **), const char *const *words, char *text, size_t size)
{
    char *arguments[MOST_WORDS + 2] = {"rlxvk"};
    int count = 1;
    FILE *file = tmpfile();
    assert_non_null(file);
    while (*words && count <= MOST_WORDS)
        arguments[count++] = (char *)*words++;
    assert_null(*words);
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    assert_true(kept >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    optind = 0; /* forgets also what an earlier call left within its words */
    int code = command(count, arguments);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = 0;
    fclose(file);
    return code;
}

double number_after(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    if (!at)
        print_error("no %s in: %s\n", name, text);
    assert_non_null(at);
    return strtod(at + strlen(name), NULL);
}
