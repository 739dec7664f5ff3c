/* Every event is one write, and begins with its comma and line break. So a process that is killed
 * at any time leaves whole events, and only the closing bracket is missing. */
#include "base/system.h"
#include "program/trace.h"

#include <string.h>

enum { MOST_NAME = 128, MOST_DETAIL = 512, MOST_EVENT = 2048, MOST_THREADS = 64 };

struct trace {
    system_output file;
    system_lock lock;
    double start;
    int error; /* an errno of the first write that failed; nothing is written after it */
    uintptr_t threads[MOST_THREADS]; /* those with a row, the first that of TRACE_HOST */
    int thread_count;
};

double trace_now(void)
{
    return (double)system_nanoseconds() / 1e3;
}

static void write_all(trace *t, const char *bytes, size_t length)
{
    if (!t->error)
        t->error = system_output_write(&t->file, bytes, length);
}

static void name_row(trace *t, const char *what, int thread, const char *name)
{
    char event[256];
    text e = {event, sizeof event, 0};
    text_append(&e, "%s\n{\"name\":\"%s\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,", thread ? "," : "[",
                what, thread);
    text_append(&e, "\"args\":{\"name\":\"%s\"}}", name);
    write_all(t, event, e.length);
}

rlxvk_status trace_open(const char *path, trace **out)
{
    trace *t = memory_zeroed(1, sizeof *t);
    if (!t)
        return status_fail_memory("trace");
    int error = system_output_open(path, false, &t->file);
    if (error) {
        memory_free(t);
        return status_fail(RLXVK_E_FILE, "RLXVK_TRACE: cannot write '%s': %s", path,
                           strerror(error));
    }
    if (!system_lock_create(&t->lock)) {
        (void)!system_output_close(&t->file);
        memory_free(t);
        return status_fail_memory("trace");
    }
    t->start = trace_now();
    t->threads[t->thread_count++] = system_thread_self();
    name_row(t, "process_name", 0, "rlxvk");
    name_row(t, "thread_name", TRACE_HOST, "host");
    name_row(t, "thread_name", TRACE_GPU, "GPU");
    *out = t;
    return RLXVK_OK;
}

void trace_close(trace *t, const log_sink *log)
{
    if (!t)
        return;
    write_all(t, "\n]\n", 3);
    int error = system_output_close(&t->file);
    if (!t->error)
        t->error = error;
    if (t->error)
        log_line(log, RLXVK_LOG_ERROR, "rlxvk: RLXVK_TRACE: the trace is cut off: %s",
                 strerror(t->error));
    system_lock_destroy(&t->lock);
    memory_free(t);
}

/* Appends as much of the string as fits, and leaves room for its closing quote. */
static void append_escaped(text *t, const char *s)
{
    const size_t longest = sizeof "\\u0000\"";
    for (; *s && t->length + longest < t->size; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            text_append(t, "\\%c", c);
        else
            text_append(t, c < 0x20 ? "\\u%04x" : "%c", c);
    }
}

void trace_detail_name(text *detail, const char *name)
{
    if (!name)
        return;
    text_append(detail, "%s\"name\":\"", detail->length ? "," : "");
    append_escaped(detail, name);
    text_append(detail, "\"");
}

/* The row of the calling thread. The caller must hold the lock. If there are too many threads, the
 * others share the last row. */
static int row_of_thread(trace *t)
{
    uintptr_t self = system_thread_self();
    char name[32];
    text n = {name, sizeof name, 0};
    int i = 0;
    while (i < t->thread_count && t->threads[i] != self)
        i++;
    if (i == MOST_THREADS)
        return TRACE_GPU + MOST_THREADS - 1;
    if (i == t->thread_count) {
        t->threads[t->thread_count++] = self;
        text_append(&n, "host %d", i + 1);
        name_row(t, "thread_name", TRACE_GPU + i, name);
    }
    return i ? TRACE_GPU + i : TRACE_HOST;
}

void trace_span(trace *t, const char *name, int thread, double start, double duration,
                const char *detail)
{
    char event[MOST_EVENT], escaped[MOST_NAME] = "";
    text e = {event, sizeof event, 0}, cut = {escaped, sizeof escaped, 0};
    if (!t)
        return;
    append_escaped(&cut, name);
    system_lock_take(&t->lock);
    if (thread == TRACE_HOST)
        thread = row_of_thread(t);
    text_append(&e, ",\n{\"name\":\"%s", escaped);
    text_append(&e, "\",\"cat\":\"rlxvk\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,", start - t->start,
                duration);
    text_append(&e, "\"pid\":1,\"tid\":%d,\"args\":{%.*s}}", thread, MOST_DETAIL,
                detail ? detail : "");
    write_all(t, event, e.length);
    system_lock_release(&t->lock);
}

double trace_begin(const trace *t)
{
    return t ? trace_now() : 0;
}

void trace_end(trace *t, const char *name, double begin, const char *detail)
{
    if (t)
        trace_span(t, name, TRACE_HOST, begin, trace_now() - begin, detail);
}

void trace_end_named(trace *t, const char *call, double begin, const char *name, const char *what,
                     uint64_t number)
{
    char detail[MOST_DETAIL];
    text d = {detail, sizeof detail, 0};
    if (!t)
        return;
    text_append(&d, "\"%s\":%llu", what, (unsigned long long)number);
    trace_detail_name(&d, name);
    trace_end(t, call, begin, detail);
}
