/* Text built piece by piece. Invariant: buffer[length] is the terminator, and length < size. Text
 * that does not fit is cut. Numbers are written and read in the C locale, independent of the locale
 * of the host program. */
#include "base/system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int text_format(char *buffer, size_t size, const char *format, va_list arguments)
{
    system_locale l = system_c_locale_enter();
    int length = vsnprintf(buffer, size, format, arguments);
    system_c_locale_leave(l);
    return length;
}

double text_to_real(const char *string, char **out_end)
{
    system_locale l = system_c_locale_enter();
    double value = strtod(string, out_end);
    system_c_locale_leave(l);
    return value;
}

bool text_ascii_equal(const char *a, const char *b, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (ascii_lower(a[i]) != ascii_lower(b[i]))
            return false;
        if (a[i] == 0)
            return true;
    }
    return true;
}

void text_append(text *t, const char *format, ...)
{
    if (t->length + 1 >= t->size)
        return;
    va_list arguments;
    va_start(arguments, format);
    int wanted = text_format(t->buffer + t->length, t->size - t->length, format, arguments);
    va_end(arguments);
    if (wanted > 0)
        t->length = MIN(t->length + (size_t)wanted, t->size - 1);
}

text_output text_output_begin(char *buffer, size_t size)
{
    if (size)
        buffer[0] = 0;
    return (text_output){.buffer = buffer, .size = size};
}

void text_output_bytes(text_output *t, const char *bytes, size_t count)
{
    if (t->length + 1 < t->size) {
        size_t fits = MIN(count, t->size - 1 - (size_t)t->length);
        memcpy(t->buffer + t->length, bytes, fits);
        t->buffer[t->length + fits] = 0;
    }
    t->length += count;
}

void text_output_format(text_output *t, const char *format, ...)
{
    char piece[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = text_format(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (length > 0)
        text_output_bytes(t, piece, MIN((size_t)length, sizeof piece - 1));
}
