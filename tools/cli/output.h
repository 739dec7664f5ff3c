/* What the subcommands print with: errors, JSON strings and numbers, HTML text, a progress line;
 * and how they read the numbers of their options. */
#ifndef RLXVK_OUTPUT_H
#define RLXVK_OUTPUT_H

#include <rlxvk.h>

#include <stdint.h>
#include <stdio.h>

/* The program's name in every error line: "rlxvk conform". Outlives the call. */
void report_errors_as(const char *program);
/* Prints a command's help and gives the exit code of that. */
int print_help(const char *help);
/* One line on standard error: "rlxvk conform: sentence". Clears the progress line first. */
void report_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* report_error with the name of `status` and the thread's last error. */
void report_status(rlxvk_status status);
/* False, with a printed error, when not all of what went to standard output was written. */
bool print_completed(void);

/* Why a stream's output was lost: errno's text, or for 0 that an earlier write failed. */
const char *write_error_text(int error);

/* A quoted JSON string; control characters, quotes and backslashes escaped. */
void print_json_string(FILE *file, const char *string);
/* A JSON number of nine digits; null for NaN and infinities. */
void print_json_number(FILE *file, double number);
typedef struct json_figure {
    const char *key;
    double value;
} json_figure;
/* Members of an object that has others before them: `, "key": number` each. */
void print_json_figures(FILE *file, const json_figure *figures, size_t count);
void print_html(FILE *file, const char *string);

/* Replaces the progress line on standard error, when that is a terminal; NULL clears it. */
void print_progress(const char *line);

/* False, with a printed error, when arguments are left at `at`. */
bool parse_end(int argc, char **argv, int at);

/* A whole argument as a decimal number within limits; otherwise prints the option, what it was
 * given and the limits, and returns false. */
bool parse_number(const char *option, const char *argument, uint64_t lowest, uint64_t highest,
                  uint64_t *out);
bool parse_real(const char *option, const char *argument, float lowest, float highest, float *out);
/* f32, f16, bf16 or split, in the same way. */
bool parse_precision(const char *argument, rlxvk_precision *out);

#endif
