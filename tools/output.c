/* See output.h. Output is written piece by piece; a failed write shows when the stream is closed.
 */
#include "output.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    if (isfinite(number))
        fprintf(file, "%.9g", number);
    else
        fputs("null", file);
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
    static int terminal = -1;
    if (terminal < 0)
        terminal = isatty(STDERR_FILENO);
    if (!terminal)
        return;
    fprintf(stderr, "\r\033[K%s", line ? line : "");
    fflush(stderr);
}

int parse_number(const char *command, const char *option, const char *argument, uint64_t highest,
                 uint64_t *out)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(argument, &end, 0);
    if (*argument && *argument != '-' && !*end && !errno && value <= highest) {
        *out = value;
        return 1;
    }
    fprintf(stderr, "rlxvk %s: --%s takes a number from 0 to %llu, not '%s'\n", command, option,
            (unsigned long long)highest, argument);
    return 0;
}

int parse_precision(const char *command, const char *argument, rlxvk_precision *out)
{
    const char *name;
    for (unsigned i = 0; (name = rlxvk_precision_name((rlxvk_precision)i)); i++)
        if (strcmp(argument, name) == 0) {
            *out = (rlxvk_precision)i;
            return 1;
        }
    fprintf(stderr, "rlxvk %s: --precision takes f32, f16, bf16 or split, not '%s'\n", command,
            argument);
    return 0;
}
