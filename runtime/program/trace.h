/*
 * RLXVK_TRACE writes Chrome-trace events, one a line, with times in microseconds since the trace
 * began. The file is a JSON array, which is complete after the context is destroyed. Before that
 * the closing bracket is missing, and it stays so if the process is killed. The format allows this.
 * chrome://tracing loads an array that is cut between two events, and Perfetto one that is cut
 * anywhere. If tracing is off, it costs one branch on a NULL pointer.
 */
#ifndef RLXVK_TRACE_H
#define RLXVK_TRACE_H

#include "base/log.h"

/* The rows of the picture: one for the thread that opened the trace, and one for the GPU. Every
 * other thread gets a row at its first span, named by a number. */
enum trace_thread { TRACE_HOST = 1, TRACE_GPU = 2 };

typedef struct trace trace;

/* E_FILE if the file cannot be written. */
rlxvk_status trace_open(const char *path, trace **out);
/* Writes the closing bracket. Writes a line to `log` if not everything could be written. Takes
 * NULL. */
void trace_close(trace *t, const log_sink *log);
double trace_now(void); /* microseconds, monotonic */
/* Appends "name":"..." to an event's detail, with a comma if the detail is not empty. Does nothing
 * if `name` is NULL. Names are cut to fit, but there must be room for the closing quote. */
void trace_detail_name(text *detail, const char *name);
/* Writes one complete event. `detail` is extra JSON for "args" ("\"node\":3") or NULL. TRACE_HOST
 * means the row of the calling thread. `t` may be NULL. */
void trace_span(trace *t, const char *name, int thread, double start, double duration,
                const char *detail);

/* A span of the calling thread from trace_begin to trace_end. For both, `t` may be NULL. */
double trace_begin(const trace *t);
void trace_end(trace *t, const char *name, double begin, const char *detail);
/* trace_end with a detail that has a name, and a number whose key is `what`. */
void trace_end_named(trace *t, const char *call, double begin, const char *name, const char *what,
                     uint64_t number);

/* Like TRY, and writes a span whether it succeeds or not. */
#define TRACE_TRY(t, name, expression)                                                             \
    do {                                                                                           \
        double trace_begun_ = trace_begin(t);                                                      \
        status = (expression);                                                                     \
        trace_end(t, name, trace_begun_, NULL);                                                    \
        if (status)                                                                                \
            goto error;                                                                            \
    } while (0)

#endif
