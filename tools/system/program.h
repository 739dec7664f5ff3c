/*
 * What only the rlxvk program asks of the operating system: its arguments, the terminal, Ctrl-C,
 * and folders that it makes for a while. See base/system.h for the rest.
 */
#ifndef RLXVK_PROGRAM_SYSTEM_H
#define RLXVK_PROGRAM_SYSTEM_H

#include "base/system.h"

/* Call this first in main. Makes the arguments UTF-8, and lets standard input and output pass bytes
 * as they are. */
void program_begin(int *argc, char ***argv);

/* The path of the running program; false if it is not known. */
bool program_path(char *out, size_t size);

bool program_has_terminal_input(void);
/* The columns of the terminal at standard error; 0 if there is none. */
int program_terminal_columns(void);

/* Waits so long. */
void program_sleep(double seconds);

/* From this call on, the first Ctrl-C is only noted, also in workers that are started later. A
 * second one ends the process. */
void program_watch_interrupt(void);
bool program_interrupted(void);
/* From this call on, Ctrl-C ends the process again. program_interrupted() keeps its answer. */
void program_end_interrupt(void);

/* Makes an empty folder for this user alone, and writes its path. */
bool program_make_temporary(char *out, size_t size);
/* Removes a folder with all that is in it. */
void program_remove_folder(const char *path);

#endif
