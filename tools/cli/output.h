/* Output of the subcommands: errors, JSON, HTML text, a progress line, and parsing of numbers in
 * options. */
#ifndef RLXVK_OUTPUT_H
#define RLXVK_OUTPUT_H

#include "base/compiler.h"

#include <rlxvk.h>

#include <stdint.h>
#include <stdio.h>

/* Sets the program's name in error lines, for example "rlxvk conform". The string must stay valid.
 */
void report_errors_as(const char *program);
/* Prints a command's help and returns the exit code for that. */
int print_help(const char *help);
/* Prints one line on standard error: "rlxvk conform: sentence". Clears the progress line first. */
void report_error(const char *format, ...) FORMATS(1, 2);
/* Reports the name of `status` and the thread's last error. */
void report_status(rlxvk_status status);
/* Whether everything for standard output was written. If not, prints an error. */
bool print_completed(void);

/* Why output to a stream was lost: errno's text. If `error` is 0, it says that an earlier write
 * failed. */
const char *write_error_text(int error);

/* Prints a JSON string with quotes. Control characters, quotes and backslashes are escaped. */
void print_json_string(FILE *file, const char *string);
/* Prints a JSON number with nine digits, or null for NaN and infinities. */
void print_json_number(FILE *file, double number);
typedef struct json_figure {
    const char *key;
    double value;
} json_figure;
/* Prints further members of an object, each as `, "key": number`. */
void print_json_figures(FILE *file, const json_figure *figures, size_t count);
void print_html(FILE *file, const char *string);

/* Replaces the progress line on standard error, if that is a terminal. NULL clears it. */
void print_progress(const char *line);

/* Whether no argument is left at `at`. If one is, prints an error. */
bool parse_end(int argc, char **argv, int at);

/* Parses a decimal number within limits; it must be the whole argument. If it is wrong, prints the
 * option, the argument and the limits, and returns false. */
bool parse_number(const char *option, const char *argument, uint64_t lowest, uint64_t highest,
                  uint64_t *out);
/* Parses a number of bytes, at least 1: a decimal number, perhaps with K, M or G behind it, which
 * stand for KiB, MiB and GiB. */
bool parse_bytes(const char *option, const char *argument, uint64_t *out);
bool parse_real(const char *option, const char *argument, float lowest, float highest, float *out);
/* Parses f32, f16, bf16 or split, in the same way. */
bool parse_precision(const char *argument, rlxvk_precision *out);

#endif
