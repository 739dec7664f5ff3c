/* Where the library's lines go: the context's sink, or stderr for what a switch asked to print. */
#ifndef RLXVK_LOG_H
#define RLXVK_LOG_H

#include "base/base.h"

typedef struct log_sink {
    rlxvk_log_function function;
    void *user;
} log_sink;

/* One line, formatted, without newline. */
void log_line(const log_sink *sink, rlxvk_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
