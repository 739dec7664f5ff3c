/*
 * What an executable consists of and how long it took: inputs, params and outputs, memory, plan,
 * times, and where NaN first appears. rlxvk.h includes this header.
 */
#ifndef RLXVK_REPORT_H
#define RLXVK_REPORT_H

#include <rlxvk.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One input, param or output. `name` is that of the leaf, or the debug name of an output ("" when
 * it has none), and lives as long as the executable. */
typedef struct rlxvk_tensor_info {
    const char *name;
    rlxvk_shape shape;
    rlxvk_dtype dtype; /* as declared */
    bool live;     /* false: no output depends on it; what it is given is checked and discarded */
    bool written;  /* has content: given, set, bound or fed before; an output: there was a run */
    bool in_place; /* a kernel overwrites it, so that it is resident after the first run */
    bool bound;    /* every run restores what rlxvk_bind_handle gave */
    bool resident; /* the device's content is the authority */
    bool fed;      /* a feed or row feed ends in this input, or begins in this output */
    bool shared;   /* its memory is, or was, another executable's too */
    char shape_text[128]; /* "BATCHxSEQx64": `shape` is symbolic where the graph is */
    /* The element type in the device's memory: F32 (words), U8 or I8 (bytes), C64, and F16 or BF16
     * of params that are packed. If nothing is compiled yet, or it is not live: as declared. */
    rlxvk_dtype held;
    size_t struct_size;
} rlxvk_tensor_info;

/* Lists them in the order in which the graph was built; outputs by index. Writes at most `capacity`
 * (`infos` may be NULL for none); *out_count is how many there are. Do not wait for runs. */
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
/* Shape and declared dtype of output `index`; rank 0 and F32 when there is no such output. With
 * symbols: as they are bound. */
rlxvk_shape rlxvk_executable_output_shape(const rlxvk_executable *executable, size_t index);
rlxvk_dtype rlxvk_executable_output_dtype(const rlxvk_executable *executable, size_t index);

/* Bytes by class: params and constants; inputs and what else lasts from run to run; what lives
 * within a run; what data pass through between host and device. And how well scratch was packed:
 * between the largest set live at one step and what no two tensors sharing memory would take. And
 * what gradients compute again instead of keeping it (rlxvk_checkpoint). */
typedef struct rlxvk_memory_report {
    uint64_t weight_bytes, state_bytes, scratch_bytes, staging_bytes;
    uint64_t scratch_lower_bound, scratch_unshared, recomputed_bytes;
    uint64_t prepared_bytes; /* of weight_bytes: what is kept beside the params, made of them */
    uint32_t block_count;    /* allocations on the device, without staging */
    size_t struct_size;
} rlxvk_memory_report;
void rlxvk_executable_memory(const rlxvk_executable *executable, rlxvk_memory_report *out_report);

/* What a run consists of: dispatches on the device and steps on the host, and the segments of
 * either kind between which it changes from one to the other. */
typedef struct rlxvk_plan_report {
    uint32_t dispatches, barriers, host_steps, segments, submissions_per_run;
    uint64_t runs, submissions;   /* counted since compile */
    uint32_t loops;               /* that replay: their dispatches are counted once above */
    uint64_t executed_dispatches; /* of a run, each as often as it is replayed; of a while that
                                   * stops early, at most */
    /* Dispatches before those of a run, in the first run after a param that they read was set:
     * what they make of params is kept. And how often they were due since compile. */
    uint32_t prepared_dispatches;
    uint64_t preparations;
    size_t struct_size;
} rlxvk_plan_report;
void rlxvk_executable_plan(const rlxvk_executable *executable, rlxvk_plan_report *out_report);

/* One step of the last run of an executable compiled with `profile`. `name` lives as long as the
 * executable. A step's time runs from the end of the step before it, or the begin of what was
 * submitted with it, so that a run's times add up; host steps have gpu = false and the time 0.
 * Writes at most `capacity` steps; *out_count is how many there are. E_UNSUPPORTED as run_time's.
 */
typedef struct rlxvk_step_time {
    const char *name; /* kernel, or row name of a host step */
    const char *node; /* debug name of the node, "" when it has none */
    uint32_t node_id; /* its number in the graph as built; of nodes that were fused, the last's */
    bool gpu;
    double microseconds;
    uint64_t times; /* that a run does the step, in a loop that replays; the time is of one round.
                     * 0: done when params are set; the time is of the last time */
    size_t struct_size;
} rlxvk_step_time;
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_profile(const rlxvk_executable *executable,
                                                       rlxvk_step_time *steps, size_t capacity,
                                                       size_t *out_count);

/* Microseconds of the last run on the GPU, from the begin to the end of what was submitted, without
 * host steps, uploads and what is done when params were set. E_UNSUPPORTED unless compiled with
 * `time_runs` or `profile`, on a device with timestamps, and run. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_run_time(const rlxvk_executable *executable,
                                                        double *out_microseconds);

/* Where NaN or Inf first appears. `found` is false for a clean run. */
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
/* Runs once with every node kept, on a compile of its own with the executable's content, which
 * stays as it is, and scans the nodes in order, leaves included. Errors as rlxvk_compile and
 * rlxvk_run; inputs and params never set count as zeros. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_first_bad_node(rlxvk_executable *executable,
                                                   const rlxvk_run_input *inputs,
                                                   size_t input_count, rlxvk_bad_node *out_node);

#ifdef __cplusplus
}
#endif

#endif
