/* The environment switches, read once when a context is created. Options of a call override them.
 */
#ifndef RLXVK_SWITCHES_H
#define RLXVK_SWITCHES_H

#include "base/log.h"

enum check_kind { CHECK_PLAN = 1, CHECK_INDEX = 2, CHECK_PACKED = 4, CHECK_CANARY = 8 };

enum invocation_order { INVOCATIONS_IN_ORDER, INVOCATIONS_REVERSED, INVOCATIONS_PERMUTED };

typedef struct invocation_choice {
    unsigned order; /* enum invocation_order */
    uint32_t seed;  /* of a permutation */
} invocation_choice;

typedef struct switches {
    bool no_cache, full_barrier, no_barrier, debug, bump_plan, force_input_upload, validation;
    bool no_fusion, no_regions, no_packed_attn, no_tuning, nan_trace, dump_nodes;
    bool dispatch_only, no_specialization;
    unsigned dump;  /* bits of rlxvk_dump */
    unsigned check; /* bits of enum check_kind */
    invocation_choice invocations;
    rlxvk_precision precision;
    uint64_t prepared_bytes;
    uint64_t dump_nodes_limit; /* 40 */
    int64_t dump_nodes_flat;   /* -1: none */
    char device[256], force_host[1024], trace[4096], variant[1024];
} switches;

/* E_ATTR names the variable and the value it cannot take. */
rlxvk_status switches_read(switches *out);
/* A line to `log` for each RLXVK_ variable of the environment that is no switch, with the switch it
 * may stand for. Names beginning with RLXVK_TEST_ are the tests' own. */
void switches_warn_unknown(const log_sink *log);
/* What RLXVK_INVOCATIONS, or `what` stands for it, may be; E_ATTR names `what`. */
rlxvk_status switches_parse_invocations(const char *value, const char *what,
                                        invocation_choice *out);
/* Switch `index` and what it does, or NULL behind the last. */
const char *switches_name(size_t index);
const char *switches_effect(size_t index);

/* A toggle of an options struct over a switch. */
static inline bool toggle(rlxvk_toggle option, bool otherwise)
{
    return option == RLXVK_DEFAULT ? otherwise : option == RLXVK_ON;
}

#endif
