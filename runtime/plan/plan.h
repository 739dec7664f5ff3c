/*
 * The plan of a schedule: a slot of memory for every value, an optional barrier before every step,
 * and the segments between host steps. This layer is pure: it knows sizes and limits, but not
 * Vulkan.
 *
 * Invariant 1: two values whose slots overlap are never live at the same step. The exception is an
 * in-place pair, at the one step that turns the first value into the second.
 * Invariant 2: two conflicting dispatches of a segment have a barrier between them.
 */
#ifndef RLXVK_PLAN_H
#define RLXVK_PLAN_H

#include "plan/marks.h"
#include "plan/schedule.h"

enum memory_class {
    CLASS_WEIGHTS,
    CLASS_HOST_WEIGHTS, /* weights that did not fit; the device reads them in host memory */
    CLASS_STATE,
    CLASS_SCRATCH,
    CLASS_COUNT
};

#define SLOT_NONE   UINT32_MAX
#define SLOT_SHARED 0x800000u

/* Where a value lies in memory. Block numbers count within the class. Values that are unused or not
 * a root have block SLOT_NONE. If the memory of value v comes from elsewhere (plan_options.shared),
 * its block is SLOT_SHARED + v, which is none of the plan's own blocks. */
typedef struct slot {
    uint32_t block;
    uint8_t class;
    uint64_t offset, size; /* size: aligned, without guard bytes */
    uint64_t bytes;        /* the size before alignment */
    uint32_t first, last;  /* first and last live step, both included; scratch only */
} slot;

/* Why a barrier is needed. HAZARD_LOOP is the barrier between the rounds of a loop, before its
 * first step. */
enum hazard_kind { HAZARD_NONE, HAZARD_RAW, HAZARD_WAW, HAZARD_WAR, HAZARD_FORCED, HAZARD_LOOP };

typedef struct barrier {
    uint8_t kind;     /* enum hazard_kind; HAZARD_NONE: no barrier before this step */
    uint32_t value;   /* of the step's operands, the first whose bytes conflict; 0 if the kind is
                       * FORCED or LOOP */
    uint32_t earlier; /* the last step that wrote these bytes since the last barrier; if none did,
                       * the last that read them. FORCED: the step before. LOOP: the loop's last */
} barrier;

/* One host step, or a longest run of dispatches that crosses neither the edge of a loop nor the end
 * of the prepared steps. */
typedef struct segment {
    uint32_t first, count; /* steps */
    bool host;
    uint32_t hosts_before; /* how many of the segments before it are host steps */
    uint32_t opens;        /* 1 + the index of the outermost loop whose first segment it is; 0: no
                            * loop begins with it */
    uint32_t rounds, rest; /* rounds > 1: the segment is a whole loop, of which so many rounds
                            * are recorded as a group; rest: rounds left after the last full
                            * group. Else 1 and 0: for example, one round exceeds a group */
} segment;

/* A loop: a range of segments that is repeated. */
typedef struct plan_loop {
    uint32_t first, count; /* segments */
    uint64_t times;
    uint32_t stop;  /* see schedule_loop */
    uint32_t inner; /* 1 + the next inner loop that begins with the same segment; 0: none */
} plan_loop;

/* A loop that consists only of dispatches is recorded in groups of rounds. These are the limits of
 * a group. */
#define PLAN_GROUP_ROUNDS     256
#define PLAN_GROUP_DISPATCHES 1024

typedef struct plan_options {
    uint64_t max_block_bytes, max_binding_bytes, alignment;
    uint64_t guard_bytes; /* unused bytes before and after each slot, aligned; only with `bump` */
    bool bump;            /* no two values share memory */
    bool keep_all;        /* every node's value keeps its memory */
    /* full_barrier: a barrier before every step but the first of its segment, HAZARD_FORCED if the
     * step has no hazard. no_barrier: no barriers at all. */
    bool full_barrier, no_barrier;
    bool reuse_in_level; /* in level order: memory may be reused within the level that frees it */
    /* If the plan needs more device memory, weights move to host memory (plan/host_weights.c), up
     * to so many bytes. */
    uint64_t device_bytes, host_bytes;
    const bool *shared; /* per node: its memory comes from elsewhere (SLOT_SHARED); may be NULL */
    const bool
        *pinned; /* per node: keep its memory for the whole run (sources of feeds); may be NULL */
} plan_options;

typedef struct plan {
    slot *slots; /* per value */
    uint32_t value_count;
    barrier *barriers; /* per step */
    VECTOR(segment) segments;
    VECTOR(plan_loop) loops;              /* in the order of the schedule's loops */
    VECTOR(uint64_t) blocks[CLASS_COUNT]; /* bytes of each block */
    uint64_t class_bytes[CLASS_COUNT];
    uint64_t prepared_bytes; /* part of the weights: values that prepared steps make */
    uint64_t scratch_peak, scratch_lower_bound, scratch_unshared;
    uint32_t barrier_count;
    uint64_t visits; /* tree nodes visited: the cost of planning, independent of the machine */
} plan;

/* Makes a plan. If it fails, it leaves *out as it is, and there is nothing to destroy.
 *   E_TOO_LARGE   an operand is larger than max_binding_bytes, or a value than a block (less its
 *                 guards)
 *   E_OUT_OF_HOST_MEMORY */
rlxvk_status plan_create(const schedule *s, const plan_options *options, plan *out);
void plan_destroy(plan *p);
/* Bytes of all blocks on the device. */
uint64_t plan_device_bytes(const plan *p);

/* Moves weights to CLASS_HOST_WEIGHTS until `excess` bytes less are on the device, but at most
 * host_bytes. Those are moved that a run reads least, in parts of their size, and of these the
 * largest ones. They are whole values that no step writes. Call it when classes are known, and
 * weights have no addresses yet. */
rlxvk_status plan_move_weights(const schedule *s, const plan_options *options, uint64_t excess,
                               plan *p);

/* The two stages of plan_create: layout (plan/layout.c) and barriers (plan/hazard.c). Barriers come
 * second, because reused memory causes conflicts that the values themselves do not have. */
rlxvk_status plan_layout(const schedule *s, const plan_options *options, plan *p);
rlxvk_status plan_barriers(const schedule *s, const plan_options *options, plan *p);

/* Proves by brute force that a plan is sound (plan/check.c), without code of the planner. If it is
 * not, the error is E_RANGE, with a sentence that names the steps and values concerned. The number
 * of needless barriers is stored in *out_needless: without any one of them the plan would still be
 * sound. */
rlxvk_status plan_check(const schedule *s, const plan *p, uint32_t *out_needless);

#endif
