/*
 * RLXVK_TRACE: Chrome-trace events, one a line, times in microseconds since the trace began. The
 * file is a JSON array, complete once the context is destroyed. Before that, and for good when the
 * process is killed, the closing bracket is missing, which the format allows: chrome://tracing
 * loads an array cut between two events, Perfetto one cut anywhere. Disabled tracing costs one
 * branch on a NULL pointer.
 */
#ifndef RLXVK_TRACE_H
#define RLXVK_TRACE_H

#include "base/log.h"

/* The rows of the picture: of the thread that opened the trace, and of the GPU; every other thread
 * with a span gets one of its own, numbered and named as it comes. */
enum trace_thread { TRACE_HOST = 1, TRACE_GPU = 2 };

typedef struct trace trace;

/* E_FILE when the file cannot be written. */
rlxvk_status trace_open(const char *path, trace **out);
/* Writes the closing bracket; a line to `log` when not all could be written. Takes NULL. */
void trace_close(trace *t, const log_sink *log);
double trace_now(void); /* microseconds, monotonic */
/* Appends "name":"..." to an event's detail, after a comma where something is before it; nothing
 * for NULL. The detail must have room for the closing quote: names are cut to fit. */
void trace_detail_name(text *detail, const char *name);
/* One complete event; `detail` is extra JSON for "args" ("\"node\":3") or NULL. TRACE_HOST: in the
 * row of the calling thread. Takes t == NULL. */
void trace_span(trace *t, const char *name, int thread, double start, double duration,
                const char *detail);

/* A span of the calling thread from trace_begin to trace_end. Both take t == NULL. */
double trace_begin(const trace *t);
void trace_end(trace *t, const char *name, double begin, const char *detail);
/* trace_end whose detail is what it was done with: a name, and a number that `what` names. */
void trace_end_named(trace *t, const char *call, double begin, const char *name, const char *what,
                     uint64_t number);

/* TRY that is a span, whether it succeeds or not. */
#define TRACE_TRY(t, name, expression)                                                             \
    do {                                                                                           \
        double trace_begun_ = trace_begin(t);                                                      \
        status = (expression);                                                                     \
        trace_end(t, name, trace_begun_, NULL);                                                    \
        if (status)                                                                                \
            goto error;                                                                            \
    } while (0)

#endif
