#ifndef RLXVK_H
#define RLXVK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#define RLXVK_MUST_CHECK __attribute__((warn_unused_result))
#else
#define RLXVK_MUST_CHECK
#endif
#define RLXVK_VERSION_MAJOR 0
#define RLXVK_VERSION_MINOR 2
#define RLXVK_VERSION_PATCH 0
const char *rlxvk_version(void);
#define RLXVK_SIZE_OF(type) (sizeof(type) | (size_t)0x524C << (8 * sizeof(size_t) - 16))
#ifdef __cplusplus
}
template <typename T> static inline T rlxvk_struct_sized(T value)
{
    value.struct_size = RLXVK_SIZE_OF(T);
    return value;
}
#define RLXVK_SIZED(type, ...) rlxvk_struct_sized(type{__VA_ARGS__})
extern "C" {
#else
#define RLXVK_SIZED(type, ...) ((type){__VA_ARGS__, .struct_size = RLXVK_SIZE_OF(type)})
#endif
#define RLXVK_STATUS_TABLE(X)                                                                      \
                                                                                                   \
    X(E_DANGLING, 1, "an operand or output names no node")                                         \
    X(E_ORDER, 2, "an operand is built after its reader")                                          \
    X(E_ARITY, 3, "wrong number of operands")                                                      \
    X(E_SHAPE, 4, "shapes do not agree")                                                           \
    X(E_DTYPE, 5, "element type not allowed here")                                                 \
    X(E_AXIS, 6, "axis outside the rank")                                                          \
    X(E_RANGE, 7, "index or slice outside its bounds")                                             \
    X(E_ATTR, 8, "attribute outside its domain")                                                   \
    X(E_CONST_SIZE, 9, "constant data has the wrong length")                                       \
    X(E_DUP_NAME, 10, "name already taken")                                                        \
    X(E_PARAM_CONFLICT, 11, "one param name with two shapes")                                      \
    X(E_NO_OUTPUTS, 12, "graph has no output")                                                     \
    X(E_INDEX_RANGE, 13, "axis too long for indices held as f32")                                  \
    X(E_TOO_LARGE, 14, "too large for the device or for 31-bit element counts")                    \
    X(E_UNSUPPORTED, 15, "not supported on this device or by this build")                          \
    X(E_UNKNOWN_OP, 16, "no such op")                                                              \
                                                                                                   \
    X(E_NULL, 20, "a required pointer is NULL")                                                    \
    X(E_UNKNOWN_NAME, 21, "no such name in the graph")                                             \
    X(E_LENGTH, 22, "wrong length")                                                                \
    X(E_INDEX, 23, "no such output index")                                                         \
    X(E_MISSING_INPUT, 24, "input never written")                                                  \
    X(E_UNSET_PARAM, 25, "param never set")                                                        \
    X(E_UNBOUND_HANDLE, 26, "handle is not bound")                                                 \
    X(E_BUSY, 27, "too many runs in flight")                                                       \
    X(E_EXTENT, 28, "active rows do not fit the bucket")                                           \
                                                                                                   \
    X(E_CUSTOM, 30, "custom op failed")                                                            \
    X(E_SINGULAR, 31, "singular matrix")                                                           \
    X(E_INDEX_OOB, 32, "index value out of bounds")                                                \
                                                                                                   \
    X(E_NO_DEVICE, 40, "no suitable Vulkan device")                                                \
    X(E_OUT_OF_HOST_MEMORY, 41, "out of host memory")                                              \
    X(E_OUT_OF_DEVICE_MEMORY, 42, "out of device memory")                                          \
    X(E_DEVICE_LOST, 43, "device lost")                                                            \
    X(E_TIMEOUT, 44, "deadline passed")                                                            \
    X(E_VULKAN, 45, "Vulkan call failed")                                                          \
    X(E_FILE, 46, "file cannot be read or written")                                                \
                                                                                                   \
    X(E_UNBOUND_SYMBOL, 50, "a symbol has no size yet")                                            \
    X(E_BIND_CONFLICT, 51, "two sizes for one symbol")                                             \
    X(E_BIND_AMBIGUOUS, 52, "lengths do not tell the sizes of symbols")                            \
    X(E_HANDLE_SHAPE, 53, "a handle does not fit the binding")
typedef enum rlxvk_status {
    RLXVK_OK = 0,
#define RLXVK_STATUS_ENUMERATOR(name, number, text) RLXVK_##name = number,
    RLXVK_STATUS_TABLE(RLXVK_STATUS_ENUMERATOR)
#undef RLXVK_STATUS_ENUMERATOR
} rlxvk_status;
const char *rlxvk_status_name(rlxvk_status status);
const char *rlxvk_status_text(rlxvk_status status);
const char *rlxvk_last_error(void);
typedef enum rlxvk_dtype {
    RLXVK_F32 = 0,
    RLXVK_F16 = 1,
    RLXVK_BF16 = 2,
    RLXVK_F64 = 3,
    RLXVK_I8 = 4,
    RLXVK_I16 = 5,
    RLXVK_I32 = 6,
    RLXVK_I64 = 7,
    RLXVK_U8 = 8,
    RLXVK_U32 = 9,
    RLXVK_BOOL = 10,
    RLXVK_C64 = 11,
    RLXVK_DTYPE_COUNT
} rlxvk_dtype;
#define RLXVK_MAX_RANK 8
typedef struct rlxvk_shape {
    uint32_t rank;
    int64_t dims[RLXVK_MAX_RANK];
} rlxvk_shape;
#ifdef __cplusplus
}
template <typename... Dims> static inline rlxvk_shape rlxvk_shape_make(Dims... dims)
{
    static_assert(sizeof...(Dims) <= RLXVK_MAX_RANK, "rank above RLXVK_MAX_RANK");
    return rlxvk_shape{static_cast<uint32_t>(sizeof...(Dims)), {static_cast<int64_t>(dims)...}};
}
#define RLXVK_SHAPE(...) rlxvk_shape_make(__VA_ARGS__)
#define RLXVK_SCALAR     rlxvk_shape_make()
extern "C" {
#else
#define RLXVK_SHAPE(...)                                                                           \
    ((rlxvk_shape){.rank = (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),         \
                   .dims = {__VA_ARGS__}})
#define RLXVK_SCALAR ((rlxvk_shape){.rank = 0})
#endif
bool rlxvk_shape_equal(rlxvk_shape a, rlxvk_shape b);
RLXVK_MUST_CHECK rlxvk_status rlxvk_shape_elements(rlxvk_shape shape, uint64_t *out_count);
typedef enum rlxvk_symbol_id {
    RLXVK_BATCH = 0,
    RLXVK_SEQ = 1,
    RLXVK_ROWS = 2,
    RLXVK_PAST_SEQ = 3,
    RLXVK_USER_SYMBOL = 16
} rlxvk_symbol_id;
int64_t rlxvk_symbol(uint32_t id);
typedef struct rlxvk_binding {
    uint32_t symbol;
    int64_t size;
} rlxvk_binding;
const char *rlxvk_dtype_name(rlxvk_dtype dtype);
size_t rlxvk_dtype_size(rlxvk_dtype dtype);
typedef enum rlxvk_device_kind {
    RLXVK_DEVICE_OTHER = 0,
    RLXVK_DEVICE_INTEGRATED = 1,
    RLXVK_DEVICE_DISCRETE = 2,
    RLXVK_DEVICE_VIRTUAL = 3,
    RLXVK_DEVICE_CPU = 4
} rlxvk_device_kind;
typedef struct rlxvk_device_info {
    char name[256];
    char driver[256];
    char uuid[33];
    uint32_t index;
    rlxvk_device_kind kind;
    uint32_t api_version;
    bool usable;
    char reason[160];
    uint32_t subgroup_size, max_workgroup_invocations, max_group_count[3];
    uint32_t shared_memory_bytes, push_constant_bytes, storage_buffers_per_stage;
    uint64_t max_allocation_bytes, max_binding_bytes, device_memory_bytes, slot_alignment;
    bool direct_upload;
    bool cached_readback;
    bool storage_16bit, storage_8bit, shader_float16, shader_int8, subgroup_arithmetic;
    bool cooperative_matrix, timestamps;
    float timestamp_period_ns;
    size_t struct_size;
} rlxvk_device_info;
RLXVK_MUST_CHECK rlxvk_status rlxvk_device_list(rlxvk_device_info *devices, size_t capacity,
                                                size_t *out_count);
RLXVK_MUST_CHECK rlxvk_status rlxvk_device_find(const char *text, rlxvk_device_info *out_info);
typedef struct rlxvk_context rlxvk_context;
typedef enum rlxvk_log_level {
    RLXVK_LOG_ERROR = 0,
    RLXVK_LOG_WARNING = 1,
    RLXVK_LOG_INFO = 2
} rlxvk_log_level;
typedef void (*rlxvk_log_function)(void *user, rlxvk_log_level level, const char *line);
typedef enum rlxvk_toggle { RLXVK_DEFAULT = 0, RLXVK_ON = 1, RLXVK_OFF = 2 } rlxvk_toggle;
typedef struct rlxvk_context_options {
    const rlxvk_device_info *device;
    rlxvk_toggle validation;
    rlxvk_log_function log;
    void *log_user;
    const char *cache_directory;
    uint64_t limit_allocation_bytes;
    uint64_t limit_binding_bytes;
    uint32_t limit_workgroup_invocations;
    uint32_t limit_group_count;
    rlxvk_toggle tuning;
    rlxvk_toggle direct_upload;
    size_t struct_size;
} rlxvk_context_options;
RLXVK_MUST_CHECK rlxvk_status rlxvk_context_create(const rlxvk_context_options *options,
                                                   rlxvk_context **out_context);
void rlxvk_context_destroy(rlxvk_context *context);
void rlxvk_context_device(const rlxvk_context *context, rlxvk_device_info *out_info);
typedef struct rlxvk_graph rlxvk_graph;
typedef struct rlxvk_tensor {
    uint32_t id;
    uint32_t graph;
} rlxvk_tensor;
#ifdef __cplusplus
#define RLXVK_NONE (rlxvk_tensor{})
#else
#define RLXVK_NONE ((rlxvk_tensor){0})
#endif
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_create(rlxvk_graph **out_graph);
void rlxvk_graph_destroy(rlxvk_graph *graph);
rlxvk_status rlxvk_graph_status(const rlxvk_graph *graph);
const char *rlxvk_graph_error(const rlxvk_graph *graph);
void rlxvk_graph_output(rlxvk_graph *graph, rlxvk_tensor tensor);
void rlxvk_graph_set_unroll_limit(rlxvk_graph *graph, uint64_t nodes);
void rlxvk_graph_set_name(rlxvk_graph *graph, rlxvk_tensor tensor, const char *name);
rlxvk_shape rlxvk_tensor_shape(const rlxvk_graph *graph, rlxvk_tensor tensor);
rlxvk_dtype rlxvk_tensor_dtype(const rlxvk_graph *graph, rlxvk_tensor tensor);
typedef struct rlxvk_executable rlxvk_executable;
typedef enum rlxvk_rng_backend {
    RLXVK_RNG_PHILOX = 0,
    RLXVK_RNG_MINSTD = 1,
    RLXVK_RNG_ZERO = 2
} rlxvk_rng_backend;
typedef struct rlxvk_rng_options {
    uint64_t seed;
    rlxvk_rng_backend backend;
    uint64_t step;
    bool advance_per_run;
    size_t struct_size;
} rlxvk_rng_options;
typedef enum rlxvk_precision {
    RLXVK_PRECISION_F32 = 0,
    RLXVK_PRECISION_F16 = 1,
    RLXVK_PRECISION_BF16 = 2,
    RLXVK_PRECISION_SPLIT = 3
} rlxvk_precision;
const char *rlxvk_precision_name(rlxvk_precision precision);
typedef enum rlxvk_weight_storage {
    RLXVK_WEIGHTS_AS_DECLARED = 0,
    RLXVK_WEIGHTS_F16 = 1,
    RLXVK_WEIGHTS_BF16 = 2
} rlxvk_weight_storage;
typedef enum rlxvk_dump {
    RLXVK_DUMP_GRAPH = 1,
    RLXVK_DUMP_REWRITE = 2,
    RLXVK_DUMP_PLAN = 4,
    RLXVK_DUMP_BARRIERS = 8,
    RLXVK_DUMP_NONE = 16
} rlxvk_dump;
typedef struct rlxvk_variant {
    const char *kind, *row;
} rlxvk_variant;
typedef struct rlxvk_bucket_axis {
    const char *input;
    int32_t axis;
    bool indices;
    size_t struct_size;
} rlxvk_bucket_axis;
typedef enum rlxvk_extent_promise {
    RLXVK_EXTENT_PREFIX = 0,
    RLXVK_EXTENT_SHORTER = 1
} rlxvk_extent_promise;
typedef struct rlxvk_compile_options {
    rlxvk_toggle forbid_host;
    rlxvk_toggle allow_unset;
    rlxvk_toggle force_host;
    rlxvk_toggle fusion;
    rlxvk_toggle regions;
    rlxvk_toggle reorder;
    rlxvk_toggle cached;
    rlxvk_toggle full_barrier;
    rlxvk_toggle reuse_memory;
    rlxvk_toggle profile;
    rlxvk_toggle time_runs;
    rlxvk_toggle check_plan, check_index, check_packed;
    rlxvk_toggle keep_all;
    uint64_t prepared_bytes;
    uint32_t max_in_flight;
    uint64_t timeout_ns;
    uint32_t dump;
    rlxvk_precision precision;
    const rlxvk_variant *variants;
    size_t variant_count;
    const char *const *host_ops;
    size_t host_op_count;
    const rlxvk_rng_options *rng;
    rlxvk_executable *share_with;
    const char *const *shared_inputs;
    size_t shared_input_count;
    const rlxvk_binding *bindings;
    size_t binding_count;
    uint32_t cached_bindings;
    const rlxvk_bucket_axis *bucket_axes;
    size_t bucket_axis_count;
    rlxvk_toggle bucket_symbols;
    rlxvk_extent_promise extent_promise;
    rlxvk_weight_storage weight_storage;
    size_t struct_size;
} rlxvk_compile_options;
RLXVK_MUST_CHECK rlxvk_status rlxvk_compile(rlxvk_context *context, const rlxvk_graph *graph,
                                            const rlxvk_compile_options *options,
                                            rlxvk_executable **out_executable);
void rlxvk_executable_destroy(rlxvk_executable *executable);
RLXVK_MUST_CHECK rlxvk_status rlxvk_clone(rlxvk_executable *executable,
                                          rlxvk_executable **out_executable);
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_param(rlxvk_executable *executable, const char *name,
                                              const float *values, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_param_typed(rlxvk_executable *executable, const char *name,
                                                    const void *bytes, size_t length,
                                                    rlxvk_dtype dtype);
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_param_bytes(rlxvk_executable *executable, const char *name,
                                                    const void *bytes, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_clear_param(rlxvk_executable *executable, const char *name);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_param(rlxvk_executable *executable, const char *name,
                                               float *values, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_param_typed(rlxvk_executable *executable, const char *name,
                                                     void *bytes, size_t length, rlxvk_dtype dtype);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_param_bytes(rlxvk_executable *executable, const char *name,
                                                     void *bytes, size_t length);
typedef struct rlxvk_param_item {
    const char *name;
    const void *bytes;
    size_t length;
    rlxvk_dtype dtype;
    size_t struct_size;
} rlxvk_param_item;
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_params(rlxvk_executable *executable,
                                               const rlxvk_param_item *items, size_t count);
typedef struct rlxvk_run_input {
    const char *name;
    const void *data;
    size_t length;
    rlxvk_dtype dtype;
    bool f32_words;
    size_t struct_size;
} rlxvk_run_input;
typedef struct rlxvk_run_output {
    size_t index;
    void *buffer;
    size_t length;
    rlxvk_dtype dtype;
    bool f32_words;
    size_t struct_size;
} rlxvk_run_output;
#ifdef __cplusplus
}
template <typename T> struct rlxvk_dtype_of;
#define RLXVK_DTYPE_OF(type, of)                                                                   \
    template <> struct rlxvk_dtype_of<type> {                                                      \
        static const rlxvk_dtype value = of;                                                       \
    };
RLXVK_DTYPE_OF(float, RLXVK_F32)
RLXVK_DTYPE_OF(double, RLXVK_F64)
RLXVK_DTYPE_OF(int8_t, RLXVK_I8)
RLXVK_DTYPE_OF(int16_t, RLXVK_I16)
RLXVK_DTYPE_OF(int32_t, RLXVK_I32)
RLXVK_DTYPE_OF(int64_t, RLXVK_I64)
RLXVK_DTYPE_OF(uint8_t, RLXVK_U8)
RLXVK_DTYPE_OF(uint32_t, RLXVK_U32)
RLXVK_DTYPE_OF(bool, RLXVK_BOOL)
#undef RLXVK_DTYPE_OF
template <typename T, size_t count>
static inline rlxvk_run_input RLXVK_RUN_INPUT(const char *name, const T (&array)[count])
{
    return rlxvk_run_input{name, array, count, rlxvk_dtype_of<T>::value, false, 0};
}
template <typename T, size_t count>
static inline rlxvk_run_output RLXVK_RUN_OUTPUT(size_t index, T (&array)[count])
{
    return rlxvk_run_output{index, array, count, rlxvk_dtype_of<T>::value, false, 0};
}
extern "C" {
#else
#define RLXVK_DTYPE_OF(value)                                                                      \
    _Generic((value), float                                                                        \
             : RLXVK_F32, double                                                                   \
             : RLXVK_F64, int8_t                                                                   \
             : RLXVK_I8, int16_t                                                                   \
             : RLXVK_I16, int32_t                                                                  \
             : RLXVK_I32, int64_t                                                                  \
             : RLXVK_I64, uint8_t                                                                  \
             : RLXVK_U8, uint32_t                                                                  \
             : RLXVK_U32, bool                                                                     \
             : RLXVK_BOOL)
#define RLXVK_RUN_INPUT(name, array)                                                               \
    ((rlxvk_run_input){name, array, sizeof(array) / sizeof *(array), RLXVK_DTYPE_OF(*(array)),     \
                       false, 0})
#define RLXVK_RUN_OUTPUT(index, array)                                                             \
    ((rlxvk_run_output){index, array, sizeof(array) / sizeof *(array), RLXVK_DTYPE_OF(*(array)),   \
                        false, 0})
#endif
RLXVK_MUST_CHECK rlxvk_status rlxvk_run(rlxvk_executable *executable, const rlxvk_run_input *inputs,
                                        size_t input_count, const rlxvk_run_output *outputs,
                                        size_t output_count);
typedef uint64_t rlxvk_ticket;
RLXVK_MUST_CHECK rlxvk_status rlxvk_submit(rlxvk_executable *executable,
                                           const rlxvk_run_input *inputs, size_t input_count,
                                           const rlxvk_run_output *outputs, size_t output_count,
                                           rlxvk_ticket *out_ticket);
RLXVK_MUST_CHECK rlxvk_status rlxvk_wait(rlxvk_executable *executable, rlxvk_ticket ticket);
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_rng(rlxvk_executable *executable,
                                            const rlxvk_rng_options *options);
void rlxvk_get_rng(const rlxvk_executable *executable, rlxvk_rng_options *out_options);
#ifdef __cplusplus
}
#endif
#include <rlxvk_handles.h>
#include <rlxvk_report.h>
#endif
