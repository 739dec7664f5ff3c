/*
 * RLXVK_TRACE: Chrome-trace events, one a line, times in microseconds since the trace began.
 * Disabled tracing costs one branch on a NULL pointer. tid 1: host spans; tid 2: GPU spans.
 */
#ifndef RLXVK_TRACE_H
#define RLXVK_TRACE_H

#include "base/base.h"

typedef struct trace trace;

/* E_FILE when the file cannot be written. */
rlxvk_status trace_open(const char *path, trace **out);
void trace_close(trace *t); /* writes the closing bracket; takes NULL */
double trace_now(void);     /* microseconds, monotonic */
/* Appends "name":"..." to an event's detail, after a comma where something is before it; nothing
 * for NULL. The detail must have room for the closing quote: names are cut to fit. */
void trace_detail_name(text *detail, const char *name);
/* One complete event; `detail` is extra JSON for "args" ("\"node\":3") or NULL. Takes t == NULL. */
void trace_span(trace *t, const char *name, int thread, double start, double duration,
                const char *detail);

#endif
