/* What the subcommands print with: JSON strings and numbers, HTML text, a progress line. */
#ifndef RLXVK_OUTPUT_H
#define RLXVK_OUTPUT_H

#include <rlxvk.h>

#include <stdint.h>
#include <stdio.h>

/* A quoted JSON string; control characters, quotes and backslashes escaped. */
void print_json_string(FILE *file, const char *string);
/* A JSON number; null for NaN and infinities. */
void print_json_number(FILE *file, double number);
void print_html(FILE *file, const char *string);

/* Replaces the progress line on standard error, when that is a terminal; NULL clears it. */
void print_progress(const char *line);

/* Parses a whole argument as a number from 0 to highest; prints what is wrong and returns 0
 * otherwise. */
int parse_number(const char *command, const char *option, const char *argument, uint64_t highest,
                 uint64_t *out);
/* f32, f16, bf16 or split, in the same way. */
int parse_precision(const char *command, const char *argument, rlxvk_precision *out);

#endif
