/*
 * What of a schedule the active rows of a bucket need (rlxvk_set_active_extent): which nodes keep
 * rows apart, by the rules of their families (op/bucket.h), and which dispatches need fewer
 * workgroups for fewer rows. Pure.
 *
 * Invariant: where it is supported, the active elements of every node depend on active elements
 * alone, so that whatever the others hold, stale or not a number, no active result changes by a
 * bit. A dispatch that is not scaled works on all rows, in vain but soundly.
 */
#ifndef RLXVK_EXTENT_H
#define RLXVK_EXTENT_H

#include "op/bucket.h"
#include "plan/schedule.h"

/* How a dispatch does less: of each of `cycles` times `cycle` workgroups, or of all where these are
 * 0, the first lots of `run` each. */
typedef struct extent_groups {
    uint32_t run; /* 0: it makes all rows */
    uint32_t cycle, cycles;
} extent_groups;

typedef struct extent {
    uint64_t unit;         /* rows along any bucketed axis are a multiple of it; 0: there is none */
    uint64_t *spans;       /* per node (op/bucket.h); NULL: not supported */
    bool *indices;         /* per node, while it is analyzed: bucket_input */
    extent_groups *groups; /* per dispatch, likewise */
    uint32_t scaled_count;
    char why[512]; /* a sentence: what is not supported; "" where all is */
} extent;

rlxvk_status extent_analyze(const schedule *s, const bucket_input *inputs, size_t count,
                            rlxvk_precision precision, const device_profile *profile, extent *out);
void extent_destroy(extent *e);

/* Whether element i of a node's result matters where the first actual of `upper` rows do; upper 0:
 * all rows. */
static inline bool extent_has(const extent *e, uint32_t node, uint64_t i, uint64_t actual,
                              uint64_t upper)
{
    uint64_t span = e->spans && upper ? e->spans[node] : 0;
    return span == 0 || i % span < span / upper * actual;
}

/* Whether a dispatch makes fewer rows where fewer matter. */
static inline bool extent_scales(const extent *e, size_t dispatch)
{
    return e->spans && e->groups[dispatch].run;
}
/* The grid by which a dispatch counts its workgroups, however many are launched; zeros: the one
 * that is launched. */
void extent_grid(const extent_groups *g, uint32_t out[3]);
/* The workgroups that make the first actual of `upper` rows, or some more. */
void extent_launch(const dispatch *d, const extent_groups *g, const device_profile *profile,
                   uint64_t actual, uint64_t upper, uint32_t out[3]);

#endif
