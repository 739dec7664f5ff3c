/*
 * Reports of an executable: its inputs, params and outputs, its memory, the work of one run, times,
 * the first node with a NaN or Inf, and nodes that differ from their host reference. rlxvk.h
 * includes this header.
 */
#ifndef RLXVK_REPORT_H
#define RLXVK_REPORT_H

#include <rlxvk.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One input, param or output. `name` is the name of the input or param, or the debug name of the
 * output ("" if it has none). It lives as long as the executable. */
typedef struct rlxvk_tensor_info {
    const char *name;
    rlxvk_shape shape;
    rlxvk_dtype dtype; /* as declared */
    bool live;    /* false: no output depends on it; values given to it are checked and discarded */
    bool written; /* given, set, bound or fed before; an output: at least one run was made */
    bool in_place;        /* a kernel overwrites it, so it is resident after the first run */
    bool bound;           /* every run restores the value of rlxvk_bind_handle */
    bool resident;        /* the value on the device is the current one: no run restores it */
    bool fed;             /* a feed or row feed fills this input, or copies this output */
    bool shared;          /* its memory is, or was, shared with another executable (share_with) */
    char shape_text[128]; /* "BATCHxSEQx64": an executable with symbols shows them here and in
                             `shape` */
    /* The element type in device memory: F32 (words), U8 or I8 (bytes), C64, or F16 or BF16 for a
     * packed param. It is the declared type if nothing is compiled yet or `live` is false. */
    rlxvk_dtype held;
    size_t struct_size;
} rlxvk_tensor_info;

/* Lists the inputs or params in the order in which the graph was built, or the outputs by index.
 * Writes at most `capacity` items (`infos` may be NULL if it is 0). *out_count is how many there
 * are. These calls do not wait for runs. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_inputs(const rlxvk_executable *executable,
                                                      rlxvk_tensor_info *infos, size_t capacity,
                                                      size_t *out_count);
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_params(const rlxvk_executable *executable,
                                                      rlxvk_tensor_info *infos, size_t capacity,
                                                      size_t *out_count);
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_outputs(const rlxvk_executable *executable,
                                                       rlxvk_tensor_info *infos, size_t capacity,
                                                       size_t *out_count);
size_t rlxvk_executable_output_count(const rlxvk_executable *executable);
/* Shape and declared dtype of output `index`; rank 0 and F32 if there is no such output. Symbols
 * in the shape are replaced by their present sizes, if any are bound. */
rlxvk_shape rlxvk_executable_output_shape(const rlxvk_executable *executable, size_t index);
rlxvk_dtype rlxvk_executable_output_dtype(const rlxvk_executable *executable, size_t index);

/* Lists the names of params that lie in host memory, because the device had no room for them
 * (host_weights_bytes), in the order in which the graph was built. Since 0.3. Writes at most
 * `capacity` names (`names` may be NULL if it is 0), which live as long as the executable.
 * *out_count is how many there are. There are none if nothing is bound yet. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_host_params(const rlxvk_executable *executable,
                                                           const char **names, size_t capacity,
                                                           size_t *out_count);

/* Device memory by use, in bytes:
 *   weight_bytes         params and constants on the device
 *   state_bytes          inputs, and everything else that lasts from run to run
 *   scratch_bytes        values that live only within a run
 *   staging_bytes        buffers for copies between host and device
 *   scratch_lower_bound  the largest set of scratch values that live at one step
 *   scratch_unshared     scratch memory if no two values shared any
 *   recomputed_bytes     values that gradients compute again instead of keeping (rlxvk_checkpoint)
 *
 * If the executable has symbols and nothing is bound yet, all members are 0. The same holds for
 * rlxvk_executable_plan. */
typedef struct rlxvk_memory_report {
    uint64_t weight_bytes, state_bytes, scratch_bytes, staging_bytes;
    uint64_t scratch_lower_bound, scratch_unshared, recomputed_bytes;
    uint64_t prepared_bytes; /* part of weight_bytes: copies of params in the forms of kernels */
    uint32_t block_count;    /* allocations on the device, without staging */
    size_t struct_size;
    uint64_t host_weight_bytes; /* since 0.3: weights in host memory (host_weights_bytes), which are
                                   no part of weight_bytes */
} rlxvk_memory_report;
void rlxvk_executable_memory(const rlxvk_executable *executable, rlxvk_memory_report *out_report);

/* The work of one run. Dispatches run on the device, host steps on the CPU. A segment is one host
 * step, or a series of dispatches that ends at a host step or at the edge of a loop. */
typedef struct rlxvk_plan_report {
    uint32_t dispatches, barriers, host_steps, segments, submissions_per_run;
    uint64_t runs, submissions; /* since compile */
    uint32_t loops;             /* loops that are replayed; `dispatches` counts their bodies once */
    uint64_t executed_dispatches; /* in one run, with each loop body as often as it is replayed; if
                                   * a while may stop early, this is the most */
    /* Dispatches whose results are kept because they depend only on params. They run before the
     * first run after one of those params was set. `dispatches` and `segments` leave them out, but
     * `barriers` counts the barriers between them, too. `preparations` counts, since compile, how
     * often they had to run. */
    uint32_t prepared_dispatches;
    uint64_t preparations;
    size_t struct_size;
    /* Since 0.3. The submissions of the last run, without those that read outputs which are too
     * large to stage. With a bound (max_submission_ms) they may be more than submissions_per_run.
     * The longest submission that was timed for that bound, from submitting to the end of waiting;
     * 0: none was. */
    uint64_t run_submissions;
    double longest_submission_ms;
} rlxvk_plan_report;
void rlxvk_executable_plan(const rlxvk_executable *executable, rlxvk_plan_report *out_report);

/* The time of each step of the last run, if the executable was compiled with `profile`. It counts
 * from the end of the step before, or from the start of the submission, so that the times of a run
 * add up. Host steps have gpu = false and time 0. `name` lives as long as the executable. Writes at
 * most `capacity` steps; *out_count is how many there are. Errors as rlxvk_executable_run_time.
 * Without `profile` it is E_UNSUPPORTED, even with `time_runs`. */
typedef struct rlxvk_step_time {
    const char *name; /* the kernel; for a host step the op */
    const char *node; /* debug name of the node, "" if it has none */
    uint32_t node_id; /* its number in the graph as built; if several were fused, the last one's */
    bool gpu;
    double microseconds;
    uint64_t times; /* how often a run does the step if it is in a replayed loop; the time is that
                     * of one round. 0: done only after params were set; the time is the last one */
    size_t struct_size;
} rlxvk_step_time;
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_profile(const rlxvk_executable *executable,
                                                       rlxvk_step_time *steps, size_t capacity,
                                                       size_t *out_count);

/* GPU time of the last run in microseconds: from the beginning to the end of each series of
 * dispatches and of each replayed loop, added up. In a loop, its host steps and the waits between
 * its submissions count, too. Other host steps, uploads and the work done after params were set do
 * not count. Waits for the run.
 *   E_UNSUPPORTED  compiled with neither `time_runs` nor `profile`; the device has no timestamps;
 *                  or nothing has run yet
 *   E_DEVICE_LOST, E_TIMEOUT */
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_run_time(const rlxvk_executable *executable,
                                                        double *out_microseconds);

/* The first node with a NaN or Inf in its result. `found` is false if there is none. The fields
 * previous_* describe the last node before it whose values are all finite. */
typedef struct rlxvk_bad_node {
    bool found;
    uint32_t node;
    char op[64], name[64];
    uint64_t nan_count, infinity_count, first_index;
    float neighbours[5]; /* elements first_index - 2 .. + 2, 0 outside */
    uint32_t previous_node;
    char previous_op[64];
    rlxvk_shape previous_shape;
    float previous_min, previous_max, previous_max_abs;
    size_t struct_size;
} rlxvk_bad_node;
/* Finds the first node with a NaN or Inf. Runs once, keeps every node's result, and looks at them
 * in order, inputs, params and constants included. Raw bytes and packed halves are passed over, so
 * a NaN in a packed param is reported at the node that reads it. Counts, places and neighbours of
 * C64 tensors are in words, two an element. Compiles the graph a second time for this, so
 * that the content of the executable stays as it is. Inputs and params that were never set count as
 * zeros. Errors as rlxvk_compile and rlxvk_run, except E_SINGULAR. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_first_bad_node(rlxvk_executable *executable,
                                                   const rlxvk_run_input *inputs,
                                                   size_t input_count, rlxvk_bad_node *out_node);

/* A node whose values differ from its host reference by more than its bound. The reference is
 * computed from the operands as the device holds them. So a wrong operand does not make a node
 * wrong. The element is the one with the largest error. */
typedef struct rlxvk_wrong_node {
    bool found;        /* an element is outside its bound */
    uint32_t node;     /* its number in the graph as built; if several were fused, the last one's */
    char op[64];       /* the op that ran: if several were fused, the fused one */
    char name[64];     /* debug name of the node, "" if it has none */
    char kernel[64];   /* of its last dispatch; "": it ran on the host */
    char variant[64];  /* the row of the kernel kind, as for RLXVK_VARIANT; "": no choice */
    char written[64];  /* "": the element is in the result; else the operand that holds it, which
                        * the node writes in place: a state of an optimizer, for example */
    rlxvk_shape shape; /* of the result, or of that operand */
    uint64_t index;    /* of the element, flat; C64 tensors count words, two an element */
    double got, expected;
    double bound;                          /* accepted difference; 0: must be exact */
    double error;                          /* |got - expected| / bound */
    uint64_t wrong_count, judged_count;    /* elements outside their bounds, and compared ones */
    uint64_t round;                        /* of the loop that it is in, from 1 on; 0: in no loop */
    uint64_t computed_nodes, judged_nodes; /* of the whole run: with a kernel or a host step, and
                                            * those of them that were compared */
    size_t struct_size;
} rlxvk_wrong_node;
/* Finds nodes that differ from their host references. The reason may be a wrong kernel or variant,
 * or a driver that compiles a kernel wrongly. Runs a clone once, one step after the other, and
 * compares each step's node. It runs the same kernels in the same memory as rlxvk_run: fused nodes,
 * prepared weights and every round of loops, too. The content of the executable stays as it is.
 *
 * *out_node is the wrong node that ran first. If there is none, `found` is false, and the other
 * fields describe the node that came nearest to its bound. `worst` gets at most `capacity` wrong
 * nodes, the largest error first; it may be NULL if that is 0. *out_count is how many there are.
 *
 * Bounds are those that the headers state. A custom op states none; its kernel may differ from its
 * host function by 1e-6 + 1e-5 |expected|. A recurrent net with large weights amplifies rounding,
 * so it may be blamed although its kernel is right.
 *
 * Not judged:
 *   custom ops without a host function, and host functions that fail
 *   elements for which any value is right, for example sums that may overflow
 *   numbers below the smallest normal one, which count as 0; so are the counters of loops
 *   rows behind the active extent, and then also tensors without rows that a node writes in place
 * Steps run alone, so a missing barrier stays hidden. A kernel that writes into another node's
 * memory spoils an operand, and nobody is blamed: RLXVK_CHECK=canary finds many of those.
 *
 * It takes as long as the whole graph on one core of the host (force_host), and memory for the
 * largest node several times. Errors as rlxvk_clone and rlxvk_run, except E_SINGULAR. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_first_wrong_node(rlxvk_executable *executable,
                                                     const rlxvk_run_input *inputs,
                                                     size_t input_count, rlxvk_wrong_node *out_node,
                                                     rlxvk_wrong_node *worst, size_t capacity,
                                                     size_t *out_count);

#ifdef __cplusplus
}
#endif

#endif
