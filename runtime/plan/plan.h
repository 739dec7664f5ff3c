/*
 * The plan of a schedule: a slot of memory for every value, a barrier flag for every step, and the
 * segments between host steps. Pure; knows sizes and limits, no Vulkan.
 *
 * Invariant: two values whose slots overlap are never live at the same step (except an in-place
 * pair at the one step that turns the first into the second), and every pair of conflicting
 * dispatches of a segment has a barrier between them.
 */
#ifndef RLXVK_PLAN_H
#define RLXVK_PLAN_H

#include "plan/marks.h"
#include "plan/schedule.h"

enum memory_class { CLASS_WEIGHTS, CLASS_STATE, CLASS_SCRATCH, CLASS_COUNT };

#define SLOT_NONE UINT32_MAX
#define SLOT_SHARED                                                                                \
    0x800000u /* block numbers from here on: memory that comes from elsewhere, one block a value   \
               */

/* Where a value lives. Block numbers count within the class. Non-roots and unused values have block
 * SLOT_NONE. */
typedef struct slot {
    uint32_t block;
    uint8_t class;
    uint64_t offset, size; /* size as aligned */
    uint64_t bytes;        /* as used */
    uint32_t first, last;  /* live steps, closed; scratch only */
} slot;

/* HAZARD_LOOP: between the rounds of a loop, before its first step. */
enum hazard_kind { HAZARD_NONE, HAZARD_RAW, HAZARD_WAW, HAZARD_WAR, HAZARD_FORCED, HAZARD_LOOP };

typedef struct barrier {
    uint8_t kind;     /* enum hazard_kind; HAZARD_NONE: no barrier before this step */
    uint32_t value;   /* whose bytes conflict */
    uint32_t earlier; /* the earlier step, the last of several */
} barrier;

/* A maximal run of dispatches inside or outside of loops, or one host step. */
typedef struct segment {
    uint32_t first, count; /* steps */
    bool host;
    uint32_t hosts_before; /* segments of one host step each before it */
    uint32_t opens;        /* the outermost loop that begins with it, + 1; 0: none */
    uint32_t rounds, rest; /* more than 1: it is a whole loop, recorded so many times over; and the
                            * rounds that are left of such groups */
} segment;

/* Segments that are done again and again. */
typedef struct plan_loop {
    uint32_t first, count; /* segments */
    uint64_t times;
    uint32_t stop;  /* as the schedule's */
    uint32_t inner; /* the next loop inside that begins with the same segment, + 1; 0: none */
} plan_loop;

/* A loop of dispatches alone is recorded in groups of so many rounds, and of no more dispatches. */
#define PLAN_GROUP_ROUNDS     256
#define PLAN_GROUP_DISPATCHES 1024

typedef struct plan_options {
    uint64_t max_block_bytes, max_binding_bytes, alignment;
    uint64_t guard_bytes; /* before and behind each slot, aligned: nobody's; only with `bump` */
    bool bump;            /* no reuse */
    bool keep_all;        /* every value pinned */
    bool full_barrier, no_barrier;
    bool reuse_in_level; /* level order: a slot's memory may be taken in the level that frees it */
    const bool *shared;  /* per node: memory comes from elsewhere, no slot is made; may be NULL */
    const bool
        *pinned; /* per node: state although the plan would reuse it (feed sources); may be NULL */
} plan_options;

typedef struct plan {
    slot *slots; /* per value */
    uint32_t value_count;
    barrier *barriers; /* per step */
    VECTOR(segment) segments;
    VECTOR(plan_loop) loops;              /* as the schedule's */
    VECTOR(uint64_t) blocks[CLASS_COUNT]; /* bytes of each block */
    uint64_t class_bytes[CLASS_COUNT];
    uint64_t prepared_bytes; /* of the weights: what prepared steps leave */
    uint64_t scratch_peak, scratch_lower_bound, scratch_unshared;
    uint32_t barrier_count;
    uint64_t visits; /* tree nodes looked at: what planning cost, whatever the machine */
} plan;

rlxvk_status plan_create(const schedule *s, const plan_options *options, plan *out);
void plan_destroy(plan *p);

/* Layout only (plan/layout.c), barriers only (plan/hazard.c). */
rlxvk_status plan_layout(const schedule *s, const plan_options *options, plan *p);
rlxvk_status plan_barriers(const schedule *s, const plan_options *options, plan *p);

/* The brute-force proof (plan/check.c): E_RANGE with a sentence naming the two steps or values that
 * are not kept apart. *out_needless counts barriers that could be dropped one at a time. */
rlxvk_status plan_check(const schedule *s, const plan *p, uint32_t *out_needless);

#endif
