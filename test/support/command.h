/* Runs commands of the program as its main function does. */
#ifndef RLXVK_TEST_COMMAND_H
#define RLXVK_TEST_COMMAND_H

#include <stddef.h>

/* Runs a command (cli/commands.h) with up to 32 words, followed by NULL. Writes its standard output
 * to `text` and returns its exit code. */
int run_command(int (*command)(int, char **), const char *const *words, char *text, size_t size);
/* The number after a name. If there is none, the test fails. */
double number_after(const char *text, const char *name);

#endif
