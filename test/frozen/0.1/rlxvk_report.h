#ifndef RLXVK_REPORT_H
#define RLXVK_REPORT_H
#include <rlxvk.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct rlxvk_tensor_info {
    const char *name;
    rlxvk_shape shape;
    rlxvk_dtype dtype;
    bool live;
    bool written;
    bool in_place;
    bool bound;
    bool resident;
    bool fed;
    bool shared;
    char shape_text[128];
    rlxvk_dtype held;
    size_t struct_size;
} rlxvk_tensor_info;
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
rlxvk_shape rlxvk_executable_output_shape(const rlxvk_executable *executable, size_t index);
rlxvk_dtype rlxvk_executable_output_dtype(const rlxvk_executable *executable, size_t index);
typedef struct rlxvk_memory_report {
    uint64_t weight_bytes, state_bytes, scratch_bytes, staging_bytes;
    uint64_t scratch_lower_bound, scratch_unshared, recomputed_bytes;
    uint64_t prepared_bytes;
    uint32_t block_count;
    size_t struct_size;
} rlxvk_memory_report;
void rlxvk_executable_memory(const rlxvk_executable *executable, rlxvk_memory_report *out_report);
typedef struct rlxvk_plan_report {
    uint32_t dispatches, barriers, host_steps, segments, submissions_per_run;
    uint64_t runs, submissions;
    uint32_t loops;
    uint64_t executed_dispatches;
    uint32_t prepared_dispatches;
    uint64_t preparations;
    size_t struct_size;
} rlxvk_plan_report;
void rlxvk_executable_plan(const rlxvk_executable *executable, rlxvk_plan_report *out_report);
typedef struct rlxvk_step_time {
    const char *name;
    const char *node;
    uint32_t node_id;
    bool gpu;
    double microseconds;
    uint64_t times;
    size_t struct_size;
} rlxvk_step_time;
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_profile(const rlxvk_executable *executable,
                                                       rlxvk_step_time *steps, size_t capacity,
                                                       size_t *out_count);
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_run_time(const rlxvk_executable *executable,
                                                        double *out_microseconds);
typedef struct rlxvk_bad_node {
    bool found;
    uint32_t node;
    char op[64], name[64];
    uint64_t nan_count, infinity_count, first_index;
    float neighbours[5];
    uint32_t previous_node;
    char previous_op[64];
    rlxvk_shape previous_shape;
    float previous_min, previous_max, previous_max_abs;
    size_t struct_size;
} rlxvk_bad_node;
RLXVK_MUST_CHECK rlxvk_status rlxvk_first_bad_node(rlxvk_executable *executable,
                                                   const rlxvk_run_input *inputs,
                                                   size_t input_count, rlxvk_bad_node *out_node);
#ifdef __cplusplus
}
#endif
#endif
