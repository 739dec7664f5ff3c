/* Prints one line to the sink, or to stderr if there is none. Lines longer than the buffer are
 * cut. */
#include "base/log.h"

#include <stdio.h>

void log_line(const log_sink *sink, rlxvk_log_level level, const char *format, ...)
{
    char line[4096];
    va_list arguments;
    va_start(arguments, format);
    text_format(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (sink && sink->function)
        sink->function(sink->user, level, line);
    else
        fprintf(stderr, "%s\n", line);
}
