#ifndef RLXVK_SYMBOLS_H
#define RLXVK_SYMBOLS_H
#include <rlxvk.h>
#ifdef __cplusplus
extern "C" {
#endif
int64_t rlxvk_dim_add(rlxvk_graph *graph, int64_t a, int64_t b);
int64_t rlxvk_dim_sub(rlxvk_graph *graph, int64_t a, int64_t b);
int64_t rlxvk_dim_multiply(rlxvk_graph *graph, int64_t a, int64_t b);
int64_t rlxvk_dim_div(rlxvk_graph *graph, int64_t a, int64_t b);
RLXVK_MUST_CHECK rlxvk_status rlxvk_shape_text(const rlxvk_graph *graph, rlxvk_shape shape,
                                               char *buffer, size_t size);
void rlxvk_set_symbol_example(rlxvk_graph *graph, uint32_t symbol, int64_t size);
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_bind(const rlxvk_graph *graph,
                                               const rlxvk_binding *bindings, size_t count,
                                               rlxvk_graph **out_graph);
rlxvk_tensor rlxvk_graph_tensor(const rlxvk_graph *graph, rlxvk_tensor tensor);
rlxvk_tensor rlxvk_graph_tensor_named(const rlxvk_graph *graph, const char *name);
rlxvk_tensor rlxvk_graph_output_tensor(const rlxvk_graph *graph, size_t index);
typedef struct rlxvk_problem {
    rlxvk_status status;
    rlxvk_tensor tensor;
    uint32_t node;
    char text[512];
    size_t struct_size;
} rlxvk_problem;
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_verify(const rlxvk_graph *graph,
                                                 const rlxvk_binding *bindings,
                                                 size_t binding_count, rlxvk_problem *problems,
                                                 size_t capacity, size_t *out_count);
RLXVK_MUST_CHECK rlxvk_status rlxvk_bind_symbols(rlxvk_executable *executable,
                                                 const rlxvk_binding *bindings, size_t count);
RLXVK_MUST_CHECK rlxvk_status rlxvk_executable_symbols(const rlxvk_executable *executable,
                                                       rlxvk_binding *bindings, size_t capacity,
                                                       size_t *out_count);
typedef struct rlxvk_cached_bindings_report {
    uint32_t members, capacity;
    uint64_t hits, misses, evictions;
    size_t struct_size;
} rlxvk_cached_bindings_report;
void rlxvk_executable_cached_bindings(const rlxvk_executable *executable,
                                      rlxvk_cached_bindings_report *out_report);
typedef rlxvk_cached_bindings_report rlxvk_family_report;
void rlxvk_executable_family(const rlxvk_executable *executable,
                             rlxvk_cached_bindings_report *out_report);
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_active_extent(rlxvk_executable *executable, int64_t actual,
                                                      int64_t upper);
RLXVK_MUST_CHECK rlxvk_status rlxvk_clear_active_extent(rlxvk_executable *executable);
typedef struct rlxvk_extent_report {
    bool supported;
    const char *reason;
    int64_t actual, upper;
    uint32_t scaled_dispatches;
    size_t struct_size;
} rlxvk_extent_report;
bool rlxvk_extent_supported(const rlxvk_executable *executable, rlxvk_extent_report *out_report);
#ifdef __cplusplus
}
#endif
#endif
