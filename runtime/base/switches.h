/* The environment switches. They are read once, when a context is created. Options of a call
 * override them. */
#ifndef RLXVK_SWITCHES_H
#define RLXVK_SWITCHES_H

#include "base/log.h"

enum check_kind {
    CHECK_PLAN = 1,
    CHECK_INDEX = 2,
    CHECK_PACKED = 4,
    CHECK_CANARY = 8,
    CHECK_RESULTS = 16,
    CHECK_LOSS = 32
};

enum invocation_order { INVOCATIONS_IN_ORDER, INVOCATIONS_REVERSED, INVOCATIONS_PERMUTED };

typedef struct invocation_choice {
    unsigned order; /* enum invocation_order */
    uint32_t seed;  /* for INVOCATIONS_PERMUTED */
} invocation_choice;

typedef struct switches {
    bool no_cache, full_barrier, no_barrier, debug, bump_plan, force_input_upload, validation;
    bool no_fusion, no_regions, no_strided_access, no_tuning, nan_trace, dump_nodes;
    bool dispatch_only, no_specialization;
    bool statistics; /* pipelines keep statistics; no variable sets it (context_create) */
    bool sliced;     /* no variable sets it: only rlxvk conform --sliced and tests do */
    unsigned dump;   /* bits of rlxvk_dump */
    unsigned check;  /* bits of enum check_kind */
    invocation_choice invocations;
    rlxvk_precision precision;
    uint64_t prepared_bytes;
    uint64_t dump_nodes_limit; /* 40 unless set */
    int64_t dump_nodes_flat;   /* -1: none */
    char device[256], limits[64], force_host[1024], trace[4096], variant[1024];
} switches;

/* E_ATTR names the variable and the value that it does not take. */
rlxvk_status switches_read(switches *out);
/* Reads only RLXVK_LIMITS, for calls that list devices whatever the other switches say. All other
 * members become zeros. */
rlxvk_status switches_read_limits(switches *out);
/* Logs a warning for each RLXVK_ variable of the environment that is not a switch, with the switch
 * it may stand for. It skips names that begin with RLXVK_TEST_, because tests use them. */
void switches_warn_unknown(const log_sink *log);
/* Parses a value of RLXVK_INVOCATIONS or of an option with the same meaning. If the value is bad,
 * E_ATTR names `what`. */
rlxvk_status switches_parse_invocations(const char *value, const char *what,
                                        invocation_choice *out);
/* The name of switch `index` and its effect; NULL behind the last one. */
const char *switches_name(size_t index);
const char *switches_effect(size_t index);

/* An option overrides a switch, unless it is RLXVK_DEFAULT. */
static inline bool toggle(rlxvk_toggle option, bool otherwise)
{
    return option == RLXVK_DEFAULT ? otherwise : option == RLXVK_ON;
}

#endif
