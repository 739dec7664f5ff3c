/* The code that timing nets at inference and in training share: see bench_nets.h. */
#include "bench/bench_nets.h"
#include "bench/pattern.h"
#include "cli/clock.h"
#include "cli/output.h"
#include "exec/executable.h"

#include <stdio.h>

rlxvk_status bench_each_net(const bench_net_setup *setup, const bench_net_kind *kind)
{
    rlxvk_status status = RLXVK_OK;
    bool first = true;
    if (setup->json)
        printf("[");
    else if (setup->share > 1)
        printf("sizes divided by %lld\n", (long long)setup->share);
    for (size_t i = 0; i < kind->count && status == RLXVK_OK; i++) {
        const char *name = kind->name(i);
        if (setup->filter && !pattern_matches(setup->filter, name))
            continue;
        print_progress(name);
        status = kind->time(setup, i, first);
        first = false;
        fflush(stdout);
    }
    if (setup->json)
        printf("\n]\n");
    return status;
}

rlxvk_status bench_median_times(bench_net_run *run, void *user, size_t warm, size_t count,
                                bench_net_times *out)
{
    double device[BENCH_MOST_RUNS], clock[BENCH_MOST_RUNS];
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < warm + count; i++) {
        double start = clock_seconds();
        size_t at = i < warm ? 0 : i - warm;
        TRY(run(user));
        device[at] = clock[at] = clock_seconds() - start;
        if (out->stamps) {
            double microseconds;
            TRY(rlxvk_executable_run_time(out->stamps, &microseconds));
            device[at] = 1e-6 * microseconds;
        }
    }
    out->device = bench_median(device, count);
    out->clock = bench_median(clock, count);
error:
    return status;
}

void bench_begin_object(const char *net, const char *items, const rlxvk_executable *e, bool first)
{
    printf("%s\n  {\"net\": ", first ? "" : ",");
    print_json_string(stdout, net);
    printf(", \"items\": \"%s\", \"precision\": \"%s\"", items,
           rlxvk_precision_name(e->program->options.precision));
}
