/* The options of rlxvk conform. */
#ifndef RLXVK_CONFORM_OPTIONS_H
#define RLXVK_CONFORM_OPTIONS_H

#include "base/switches.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct conform_options {
    const char *device, *ops, *golden, *html, *variant, *invocations, *resume, *limits;
    rlxvk_precision precision;
    invocation_choice order; /* if `invocations` is given */
    uint64_t seeds[16], number, jobs, timeout, sparse, phase, pipelines, pipelines_phase;
    size_t seed_count;
    bool one_case, json, force_host, bounds, each_variant, gradients, tuned, canary, folded,
        shifted, sliced, list, help;
} conform_options;

extern const char conform_help[];
/* Parses the command line. If it is wrong, this prints the reason and returns false. */
bool conform_options_parse(conform_options *o, int argc, char **argv);

#endif
