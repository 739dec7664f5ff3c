/*
 * Analyzes how a schedule can do less work if only the first rows of a bucket are active
 * (rlxvk_set_active_extent). It finds out which nodes keep rows apart, by the rules of their
 * families (op/bucket.h). Then it finds out which dispatches need fewer workgroups for fewer rows.
 * This layer is pure: it uses no device.
 *
 * Invariant: if the extent is supported, active elements of every node depend only on active
 * elements. So inactive elements may hold anything, for example old values or NaN, and no active
 * result changes by a bit. A dispatch that is not scaled computes all rows: the extra work is
 * useless but harmless.
 */
#ifndef RLXVK_EXTENT_H
#define RLXVK_EXTENT_H

#include "op/bucket.h"
#include "plan/schedule.h"

/* How a dispatch launches fewer workgroups. Its workgroups form `cycles` cycles of `cycle`
 * workgroups each; if these are 0, all of them are one cycle. In each cycle, every `run` workgroups
 * make the next rows, so only the first such runs are launched. */
typedef struct extent_groups {
    uint32_t run; /* 0: the dispatch always makes all rows */
    uint32_t cycle, cycles;
} extent_groups;

typedef struct extent {
    uint64_t unit;         /* rows along any bucketed axis are a multiple of it; 0: no such axis */
    uint64_t *spans;       /* per node (op/bucket.h); NULL: not supported */
    extent_groups *groups; /* per dispatch; NULL: not supported */
    uint32_t scaled_count;
    char why[512]; /* a sentence: why it is not supported; "" if it is */
} extent;

rlxvk_status extent_analyze(const schedule *s, const bucket_input *inputs, size_t count,
                            rlxvk_precision precision, const device_profile *profile, extent *out);
void extent_destroy(extent *e);

/* Whether element i of a node's result is active if the first `actual` of `upper` rows are. If
 * `upper` is 0, all rows are. */
static inline bool extent_has(const extent *e, uint32_t node, uint64_t i, uint64_t actual,
                              uint64_t upper)
{
    uint64_t span = e->spans && upper ? e->spans[node] : 0;
    return span == 0 || i % span < span / upper * actual;
}

/* Whether a dispatch launches fewer workgroups for fewer rows. */
static inline bool extent_scales(const extent *e, size_t dispatch)
{
    return e->spans && e->groups[dispatch].run;
}
/* The grid in which a dispatch numbers its workgroups, even if fewer are launched. All zeros if
 * that is the launched grid itself. */
void extent_grid(const extent_groups *g, uint32_t out[3]);
/* The grid that makes the first `actual` of `upper` rows. It may make some more rows. */
void extent_launch(const dispatch *d, const extent_groups *g, const device_profile *profile,
                   uint64_t actual, uint64_t upper, uint32_t out[3]);

#endif
