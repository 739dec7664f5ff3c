/* Text built piece by piece. Invariant: buffer[length] is the terminator and length < size; what
 * does not fit is cut. */
#include "base/base.h"

#include <stdio.h>

void text_append(text *t, const char *format, ...)
{
    if (t->length + 1 >= t->size)
        return;
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(t->buffer + t->length, t->size - t->length, format, arguments);
    va_end(arguments);
    if (wanted > 0)
        t->length = MIN(t->length + (size_t)wanted, t->size - 1);
}
