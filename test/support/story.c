/* See story.h. */
#include "support/story.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    char text[1 << 16];
    size_t told;
    bool aloud;
    uint64_t calls, accepted;
} story;

void story_begin(void)
{
    story.told = 0;
    story.aloud = getenv("RLXVK_TEST_FUZZ_ALOUD") != NULL;
}

void story_report(void)
{
    printf("%llu calls compared, %llu accepted\n", (unsigned long long)story.calls,
           (unsigned long long)story.accepted);
}

void tell(const char *format, ...)
{
    va_list arguments;
    size_t room = sizeof story.text - story.told;
    va_start(arguments, format);
    int n = vsnprintf(story.text + story.told, room, format, arguments);
    va_end(arguments);
    if (story.aloud)
        fputs(story.text + story.told, stderr);
    if (n > 0)
        story.told += (size_t)n < room ? (size_t)n : room - 1;
}

static void tell_statuses(status_set set)
{
    for (int s = 0; s < STATUS_LIMIT; s++)
        if (set & STATUS(s))
            tell(" %s", rlxvk_status_name((rlxvk_status)s));
}

_Noreturn void differ(void)
{
    if (!story.aloud)
        fputs(story.text, stderr);
    fputc('\n', stderr);
    abort();
}

bool expect(rlxvk_status got, status_set allowed)
{
    story.calls++;
    story.accepted += got == RLXVK_OK;
    if (!(allowed & STATUS(got))) {
        tell(" = %s (%s)\nDIFFERS: the model allows", rlxvk_status_name(got),
             got ? rlxvk_last_error() : "");
        tell_statuses(allowed);
        differ();
    }
    tell(got ? " = %s\n" : "\n", rlxvk_status_name(got));
    return got == RLXVK_OK;
}

void tell_bytes(const char *what, bool words, const void *data, size_t size)
{
    tell(" %s", what);
    for (size_t i = 0; data && i < size / (words ? 4 : 1); i++)
        if (words)
            tell(" %g", (double)((const float *)data)[i]);
        else
            tell(" %02x", ((const uint8_t *)data)[i]);
}

void expect_bytes(const char *what, size_t index, bool words, const void *got,
                  const model_bytes *wanted)
{
    bool same = true;
    for (size_t i = 0; words && i < wanted->size / 4; i++) {
        const float *a = (const float *)got + i, *b = (const float *)wanted->bytes + i;
        same = same && (memcmp(a, b, 4) == 0 || (isnan(*a) && isnan(*b)));
    }
    if (words ? same : memcmp(got, wanted->bytes, wanted->size) == 0)
        return;
    tell("DIFFERS: %s %zu is", what, index);
    tell_bytes("", words, got, wanted->size);
    tell(", the model has");
    tell_bytes("", words, wanted->bytes, wanted->size);
    differ();
}

void tell_options(const rlxvk_compile_options *o)
{
    tell(" cached %d full_barrier %d reuse_memory %d reorder %d check_index %d fusion %d profile "
         "%d%s%s, %u in flight, %zu host_ops:",
         o->cached, o->full_barrier, o->reuse_memory, o->reorder, o->check_index, o->fusion,
         o->profile, o->allow_unset == RLXVK_ON ? " allow_unset" : "",
         o->keep_all == RLXVK_ON ? " keep_all" : "", o->max_in_flight, o->host_op_count);
    for (size_t i = 0; i < o->host_op_count; i++)
        tell(" %s", o->host_ops[i]);
    if (o->rng)
        tell(", seed %llu backend %d step %llu%s", (unsigned long long)o->rng->seed,
             (int)o->rng->backend, (unsigned long long)o->rng->step,
             o->rng->advance_per_run ? " advancing" : "");
}
