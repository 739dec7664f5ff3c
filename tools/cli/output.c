/* See output.h. Prints do not check for errors. print_completed checks once, at the end, whether
 * everything was written. */
#include "cli/output.h"
#include "base/base.h"
#include "cli/commands.h"
#include "system/program.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const char *program_name = "rlxvk";

void report_errors_as(const char *program)
{
    program_name = program;
}

void report_error(const char *format, ...)
{
    char sentence[2048];
    va_list arguments;
    va_start(arguments, format);
    text_format(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    print_progress(NULL);
    fprintf(stderr, "%s: %s\n", program_name, sentence);
}

void report_status(rlxvk_status status)
{
    report_error("%s: %s", rlxvk_status_name(status), rlxvk_last_error());
}

int print_help(const char *help)
{
    fputs(help, stdout);
    return EXIT_OK;
}

const char *write_error_text(int error)
{
    return error ? strerror(error) : "an earlier write failed; is the device full?";
}

bool print_completed(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    report_error("standard output: not all could be written: %s", write_error_text(errno));
    return false;
}

void print_json_string(FILE *file, const char *string)
{
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)string; *c; c++) {
        if (*c == '"' || *c == '\\')
            fputc('\\', file);
        if (*c < 0x20)
            fprintf(file, "\\u%04x", *c);
        else
            fputc(*c, file);
    }
    fputc('"', file);
}

void print_json_number(FILE *file, double number)
{
    char digits[32] = "null";
    if (isfinite(number))
        text_append(&(text){digits, sizeof digits, 0}, "%.9g", number);
    fputs(digits, file);
}

void print_json_figures(FILE *file, const json_figure *figures, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fprintf(file, ", \"%s\": ", figures[i].key);
        print_json_number(file, figures[i].value);
    }
}

void print_html(FILE *file, const char *string)
{
    static const char *const entities[256] = {
        ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;"};
    for (const unsigned char *c = (const unsigned char *)string; *c; c++)
        if (entities[*c])
            fputs(entities[*c], file);
        else
            fputc(*c, file);
}

void print_progress(const char *line)
{
    static int columns = -1;
    if (columns != 0) /* it may become wider or narrower */
        columns = program_terminal_columns();
    if (columns == 0)
        return;
    /* A longer line would wrap, and its first part would stay. */
    fprintf(stderr, "\r\033[K%.*s", columns - 1, line ? line : "");
    fflush(stderr);
}

bool parse_end(int argc, char **argv, int at)
{
    if (at >= argc)
        return true;
    report_error("unexpected argument '%s'; --help lists what it takes", argv[at]);
    return false;
}

/* Whether the argument has only these letters. strtoull and strtod also accept signs, spaces, 0x
 * and inf, which options do not. */
static bool is_written_with(const char *argument, const char *letters)
{
    return *argument && strspn(argument, letters) == strlen(argument);
}

/* Reads the first `length` letters as a decimal number. False if they are none, or too many. */
static bool read_digits(const char *argument, size_t length, uint64_t *out)
{
    bool good = length > 0 && strspn(argument, "0123456789") >= length;
    *out = 0;
    for (const char *c = argument; good && c < argument + length; c++)
        good = size_multiply(*out, 10, out) && size_add(*out, (uint64_t)(*c - '0'), out);
    return good;
}

bool parse_bytes(const char *option, const char *argument, uint64_t *out)
{
    static const char units[] = "KMG";
    size_t length = strlen(argument);
    const char *unit = length ? strchr(units, argument[length - 1]) : NULL;
    uint64_t value, factor = unit ? (uint64_t)1024 << 10 * (unit - units) : 1;
    if (read_digits(argument, length - (unit != NULL), &value) &&
        size_multiply(value, factor, &value) && value > 0) {
        *out = value;
        return true;
    }
    report_error("--%s takes a number of bytes from 1 on, perhaps with K, M or G, not '%s'", option,
                 argument);
    return false;
}

bool parse_number(const char *option, const char *argument, uint64_t lowest, uint64_t highest,
                  uint64_t *out)
{
    uint64_t value;
    bool good = read_digits(argument, strlen(argument), &value);
    if (good && value >= lowest && value <= highest) {
        *out = value;
        return true;
    }
    report_error("--%s takes a decimal number from %llu to %llu, not '%s'", option,
                 (unsigned long long)lowest, (unsigned long long)highest, argument);
    return false;
}

bool parse_real(const char *option, const char *argument, float lowest, float highest, float *out)
{
    char *end = NULL;
    double value = text_to_real(argument, &end);
    if (is_written_with(argument, "0123456789.eE+-") && !*end && value >= (double)lowest &&
        value <= (double)highest) {
        *out = (float)value;
        return true;
    }
    report_error("--%s takes a number from %g to %g, not '%s'", option, (double)lowest,
                 (double)highest, argument);
    return false;
}

bool parse_precision(const char *argument, rlxvk_precision *out)
{
    const char *name;
    for (unsigned i = 0; (name = rlxvk_precision_name((rlxvk_precision)i)); i++)
        if (strcmp(argument, name) == 0) {
            *out = (rlxvk_precision)i;
            return true;
        }
    report_error("--precision takes f32, f16, bf16 or split, not '%s'", argument);
    return false;
}
