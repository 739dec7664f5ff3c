/* Spreads work over threads that live only during the call. Used to make pipelines and to copy
 * large buffers. */
#include "base/system.h"
#include "base/atomic.h"

#include <string.h>

enum { THREAD_LIMIT = 8 };

typedef struct spread {
    spread_work *work;
    void *argument;
    size_t count;
    _Atomic size_t next;
} spread;

static void take_parts(void *argument)
{
    spread *s = argument;
    for (;;) {
        size_t part = atomic_add_alone(&s->next, 1);
        if (part >= s->count)
            return;
        s->work(s->argument, part);
    }
}

void spread_over_threads(size_t count, size_t most, spread_work *work, void *argument)
{
    spread s = {work, argument, count, 0};
    system_thread threads[THREAD_LIMIT];
    size_t cores = system_processor_count(), started = 0;
    size_t wanted = MIN(MIN(cores, MIN(most, (size_t)THREAD_LIMIT)), count);
    /* This thread works, too. If no other can be started, it does everything. */
    while (started + 1 < wanted && system_thread_start(&threads[started], take_parts, &s))
        started++;
    take_parts(&s);
    for (size_t i = 0; i < started; i++)
        system_thread_join(&threads[i]);
}

/* ---- Copies ---- */

typedef struct copying {
    uint8_t *to;
    const uint8_t *from;
    size_t size;
} copying;

static void copy_part(void *argument, size_t part)
{
    const copying *c = argument;
    size_t at = part * SPREAD_BYTES;
    memcpy(c->to + at, c->from + at, MIN(c->size - at, SPREAD_BYTES));
}

void spread_copy(void *to, const void *from, size_t size)
{
    copying c = {to, from, size};
    if (size <= SPREAD_BYTES) {
        memcpy(to, from, size);
        return;
    }
    spread_over_threads((size_t)divide_up(size, SPREAD_BYTES), SIZE_MAX, copy_part, &c);
}
