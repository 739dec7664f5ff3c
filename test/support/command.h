/* Commands of the program, called as it calls them. */
#ifndef RLXVK_TEST_COMMAND_H
#define RLXVK_TEST_COMMAND_H

#include <stddef.h>

/* Runs a command (cli/commands.h) with up to 32 words, NULL behind the last, standard output in
 * `text`; its exit code. */
int run_command(int (*command)(int, char **), const char *const *words, char *text, size_t size);
/* The number after a name; fails the test where there is none. */
double number_after(const char *text, const char *name);

#endif
