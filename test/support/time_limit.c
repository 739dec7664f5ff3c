#include "support/time_limit.h"

#include "base/atomic.h"
#include "system/program.h"

#include <stdlib.h>

static struct {
    system_thread thread;
    double seconds;
    atomic_bool over;
} limit;

static void watch(void *argument)
{
    uint64_t begin = system_nanoseconds();
    (void)argument;
    while (!atomic_load(&limit.over)) {
        if ((double)(system_nanoseconds() - begin) / 1e9 > limit.seconds) {
            fprintf(stderr, "the test took more than %g s\n", limit.seconds);
            abort();
        }
        program_sleep(0.01);
    }
}

void time_limit_begin(double seconds)
{
    limit.seconds = seconds;
    atomic_store(&limit.over, false);
    if (!system_thread_start(&limit.thread, watch, NULL))
        abort();
}

void time_limit_end(void)
{
    atomic_store(&limit.over, true);
    system_thread_join(&limit.thread);
}
