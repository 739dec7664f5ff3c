/* Writes the trace file as it goes, so that a crash loses at most the last line. */
#include "exec/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct trace {
    FILE *file;
    pthread_mutex_t lock;
    double start;
    bool first;
};

double trace_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

rlxvk_status trace_open(const char *path, trace **out)
{
    trace *t = memory_zeroed(1, sizeof *t);
    if (!t)
        return fail_memory("trace");
    t->file = fopen(path, "w");
    if (!t->file) {
        memory_free(t);
        return fail(RLXVK_E_FILE, "RLXVK_TRACE: cannot write '%s': %s", path, strerror(errno));
    }
    pthread_mutex_init(&t->lock, NULL);
    t->start = trace_now();
    t->first = true;
    fputs("[\n", t->file);
    *out = t;
    return RLXVK_OK;
}

void trace_close(trace *t)
{
    if (!t)
        return;
    fputs("\n]\n", t->file);
    fclose(t->file);
    pthread_mutex_destroy(&t->lock);
    memory_free(t);
}

/* As much of the string as leaves room for what must close it. */
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

void trace_span(trace *t, const char *name, int thread, double start, double duration,
                const char *detail)
{
    char escaped[512] = "";
    if (!t)
        return;
    append_escaped(&(text){.buffer = escaped, .size = sizeof escaped}, name);
    pthread_mutex_lock(&t->lock);
    fprintf(t->file,
            "%s{\"name\":\"%s\",\"cat\":\"rlxvk\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":1,"
            "\"tid\":%d",
            t->first ? "" : ",\n", escaped, start - t->start, duration, thread);
    if (detail)
        fprintf(t->file, ",\"args\":{%s}", detail);
    fputc('}', t->file);
    t->first = false;
    pthread_mutex_unlock(&t->lock);
}
