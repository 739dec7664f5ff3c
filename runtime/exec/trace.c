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

static void write_escaped(FILE *file, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(file, "\\%c", c);
        else if (c < 0x20)
            fprintf(file, "\\u%04x", c);
        else
            fputc(c, file);
    }
}

void trace_span(trace *t, const char *name, int thread, double start, double duration,
                const char *detail)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    fputs(t->first ? "{\"name\":\"" : ",\n{\"name\":\"", t->file);
    write_escaped(t->file, name);
    fprintf(t->file,
            "\",\"cat\":\"rlxvk\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":1,\"tid\":%d",
            start - t->start, duration, thread);
    if (detail)
        fprintf(t->file, ",\"args\":{%s}", detail);
    fputc('}', t->file);
    t->first = false;
    pthread_mutex_unlock(&t->lock);
}
