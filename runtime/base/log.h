/* Prints the library's log lines to the context's sink. If there is no sink, they go to stderr. */
#ifndef RLXVK_LOG_H
#define RLXVK_LOG_H

#include "base/base.h"

typedef struct log_sink {
    rlxvk_log_function function;
    void *user;
} log_sink;

/* Prints one formatted line; no newline at its end. */
void log_line(const log_sink *sink, rlxvk_log_level level, const char *format, ...) FORMATS(3, 4);

#endif
