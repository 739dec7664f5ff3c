/*
 * rlxvk: machine-learning graphs on any Vulkan 1.2 device, replayed from recorded command buffers.
 *
 *   #include <rlxvk.h>
 *   #include <rlxvk_ops.h>
 *   #include <stdio.h>
 *
 *   int main(void)
 *   {
 *       rlxvk_context *context = NULL;
 *       rlxvk_graph *graph = NULL;
 *       rlxvk_executable *executable = NULL;
 *       int failed = 1;
 *       float x[4] = {1, 2, 3, 4}, w[8] = {1, 0, 0, 1, 1, 0, 0, 1}, y[2];
 *       if (rlxvk_context_create(NULL, &context) || rlxvk_graph_create(&graph)) goto error;
 *       rlxvk_tensor input = rlxvk_input(graph, "x", RLXVK_F32, RLXVK_SHAPE(1, 4));
 *       rlxvk_tensor weight = rlxvk_param(graph, "w", RLXVK_F32, RLXVK_SHAPE(4, 2));
 *       rlxvk_graph_output(graph, rlxvk_softmax(graph, rlxvk_matmul(graph, input, weight), -1));
 *       if (rlxvk_compile(context, graph, NULL, &executable)) goto error;
 *       if (rlxvk_set_param(executable, "w", w, 8)) goto error;
 *       rlxvk_run_input in = {.name = "x", .data = x, .length = 4};
 *       rlxvk_run_output out = {.index = 0, .buffer = y, .length = 2};
 *       if (rlxvk_run(executable, &in, 1, &out, 1)) goto error;
 *       printf("%f %f\n", y[0], y[1]);
 *       failed = 0;
 *   error:
 *       if (failed) fprintf(stderr, "%s\n", rlxvk_last_error());
 *       rlxvk_executable_destroy(executable);
 *       rlxvk_graph_destroy(graph);
 *       rlxvk_context_destroy(context);
 *       return failed;
 *   }
 *
 * Conventions. Every fallible call returns an rlxvk_status; RLXVK_OK is 0. A call that fails
 * changes nothing, but for the object that it was to make, which is NULL, and leaves a sentence
 * (what, where, values, remedy) in rlxvk_last_error(). Objects hold what they need: they may be
 * destroyed in any order, each once. In the child of a fork the parent's objects are of no use:
 * calls that need the device are E_DEVICE_LOST, and destroying them frees nothing.
 * Structs of options are read during the call only; a zeroed struct, or NULL, means all defaults.
 * Strings and arrays passed in stay the caller's and are copied where they must outlive the call.
 * Any other pointer that is NULL is E_NULL, unless its contract says what NULL means; an array may
 * be NULL where its count is 0. Calls that return a value or nothing answer NULL with a neutral one
 * (0, false, "", rank 0) and leave the sentence. Every destroy takes NULL. The library never
 * aborts, exits or prints by itself.
 */
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

/* ---- Version ---- */

/* Of these headers. Before 1.0.0 a new minor version may break a program, from then on only a new
 * major one; a new patch version never does. */
#define RLXVK_VERSION_MAJOR 0
#define RLXVK_VERSION_MINOR 1
#define RLXVK_VERSION_PATCH 0

/* Of the library that the program runs with: "major.minor.patch". A static string. */
const char *rlxvk_version(void);

/* ---- Structs that grow ---- */

/*
 * Structs that a program allocates may get members in later versions, always behind struct_size,
 * which never moves. So a program built with older headers runs with a later library, and the other
 * way round. How much of a struct a call reads or fills depends on its struct_size:
 *   0              the members up to struct_size: what {0} and initializers without it mean
 *   RLXVK_SIZE_OF  all members of the headers that the program was built with; RLXVK_SIZED sets it.
 *                  You need it to use a member behind struct_size
 * Members that the caller lacks count as zeros, which mean defaults. Of structs that a call reads,
 * members that the library lacks must be zeros, else it is E_ATTR. So is any other struct_size, and
 * items of one array that differ in it. A struct that a call fills need not be initialized: if its
 * struct_size is no RLXVK_SIZE_OF, it becomes 0. Name the members that you initialize: of others,
 * compilers may warn that struct_size is missing.
 *
 * These never grow: rlxvk_tensor, rlxvk_shape, rlxvk_binding, rlxvk_variant, rlxvk_region_step,
 * rlxvk_rng_stream, rlxvk_requantize, rlxvk_custom_view. What the library gives to callbacks
 * (rlxvk_custom_call, rlxvk_custom_gradient) may grow at its end.
 */
#define RLXVK_SIZE_OF(type) (sizeof(type) | (size_t)0x524C << (8 * sizeof(size_t) - 16))

/* RLXVK_SIZED(rlxvk_compile_options, .dump = RLXVK_DUMP_PLAN): a struct that says its size. Takes
 * at least one initializer. */
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

/* ---- Status ---- */

/* One row a status: X(name, number, text). The texts are what rlxvk_status_text returns. The
 * numbers are part of the binary interface: a status keeps its own for good, and one that is
 * withdrawn is never given to another. Every status here is raised by this version of the library.
 */
#define RLXVK_STATUS_TABLE(X)                                                                      \
    /* Building and compiling a graph */                                                           \
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
    /* Calls */                                                                                    \
    X(E_NULL, 20, "a required pointer is NULL")                                                    \
    X(E_UNKNOWN_NAME, 21, "no such name in the graph")                                             \
    X(E_LENGTH, 22, "wrong length")                                                                \
    X(E_INDEX, 23, "no such output index")                                                         \
    X(E_MISSING_INPUT, 24, "input never written")                                                  \
    X(E_UNSET_PARAM, 25, "param never set")                                                        \
    X(E_UNBOUND_HANDLE, 26, "handle is not bound")                                                 \
    X(E_BUSY, 27, "too many runs in flight")                                                       \
    X(E_EXTENT, 28, "active rows do not fit the bucket")                                           \
    /* What a run ends with */                                                                     \
    X(E_CUSTOM, 30, "custom op failed")                                                            \
    X(E_SINGULAR, 31, "singular matrix")                                                           \
    X(E_INDEX_OOB, 32, "index value out of bounds")                                                \
    /* The machine */                                                                              \
    X(E_NO_DEVICE, 40, "no suitable Vulkan device")                                                \
    X(E_OUT_OF_HOST_MEMORY, 41, "out of host memory")                                              \
    X(E_OUT_OF_DEVICE_MEMORY, 42, "out of device memory")                                          \
    X(E_DEVICE_LOST, 43, "device lost")                                                            \
    X(E_TIMEOUT, 44, "deadline passed")                                                            \
    X(E_VULKAN, 45, "Vulkan call failed")                                                          \
    X(E_FILE, 46, "file cannot be read or written")                                                \
    /* Symbolic dims */                                                                            \
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

/* The name of a status ("E_SHAPE", "OK") and its general meaning. Static strings, never NULL. */
const char *rlxvk_status_name(rlxvk_status status);
const char *rlxvk_status_text(rlxvk_status status);

/* The sentence left by the calling thread's last failed call; "" when none failed. Valid until that
 * thread's next failing call. */
const char *rlxvk_last_error(void);

/* ---- Element types and shapes ---- */

/* Tensors are held as f32 words on the device whatever their type, except U8/I8 inputs, params and
 * constants (raw bytes) and C64 (two words an element). F16/BF16 params may stay packed where every
 * consumer can read them so; results do not depend on it. F32 params are packed only if the compile
 * option weight_storage asks for it. */
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

/* Row-major dims, outermost first. Rank 0 is a scalar of one element; dims of 0 are legal. */
typedef struct rlxvk_shape {
    uint32_t rank;
    int64_t dims[RLXVK_MAX_RANK];
} rlxvk_shape;

/* RLXVK_SHAPE(2, 3, 4) makes a shape in an expression; RLXVK_SCALAR is rank 0. */
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

/* Whether two shapes have the same rank and dims; false where a rank is above RLXVK_MAX_RANK. */
bool rlxvk_shape_equal(rlxvk_shape a, rlxvk_shape b);

/* How many elements a tensor of this shape has: the product of its dims, 1 for a scalar. E_SHAPE: a
 * rank above RLXVK_MAX_RANK or a negative dim; E_TOO_LARGE: above 2^31 - 1, which no tensor may
 * have, or with a dim of 0 among others whose product overflows. Nothing is written then. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_shape_elements(rlxvk_shape shape, uint64_t *out_count);

/*
 * Symbolic dims. A dim >= 0 is a number. rlxvk_symbol(id) stands for a size that is given later
 * (rlxvk_symbols.h): it may be a dim of inputs and params and a size that a builder takes (reshape,
 * expand, narrow, random numbers, topk, ...). What has no number follows from it: a tensor's shape
 * says so in codes, which are sizes of its graph as well. One symbol is one size everywhere in a
 * graph. Users' own symbols begin at RLXVK_USER_SYMBOL.
 */
typedef enum rlxvk_symbol_id {
    RLXVK_BATCH = 0,
    RLXVK_SEQ = 1,
    RLXVK_ROWS = 2, /* BATCH * SEQ where those are bound and it is not */
    RLXVK_PAST_SEQ = 3,
    RLXVK_USER_SYMBOL = 16
} rlxvk_symbol_id;
int64_t rlxvk_symbol(uint32_t id);

typedef struct rlxvk_binding {
    uint32_t symbol; /* id */
    int64_t size;    /* >= 0 */
} rlxvk_binding;

/* "F32", "BOOL", ...; "?" for a value that is no dtype. */
const char *rlxvk_dtype_name(rlxvk_dtype dtype);

/* Host bytes of one element (F32 4, F16 2, BOOL 1, C64 8, ...). 0 for a value that is no dtype. */
size_t rlxvk_dtype_size(rlxvk_dtype dtype);

/* ---- Devices ---- */

typedef enum rlxvk_device_kind {
    RLXVK_DEVICE_OTHER = 0,
    RLXVK_DEVICE_INTEGRATED = 1,
    RLXVK_DEVICE_DISCRETE = 2,
    RLXVK_DEVICE_VIRTUAL = 3,
    RLXVK_DEVICE_CPU = 4
} rlxvk_device_kind;

/* What one device is and what the runtime made of it. Sizes in bytes. */
typedef struct rlxvk_device_info {
    char name[256];
    char driver[256];
    char uuid[33];  /* deviceUUID, 32 hexadecimal digits */
    uint32_t index; /* in the list, which RLXVK_DEVICE takes */
    rlxvk_device_kind kind;
    uint32_t api_version; /* as Vulkan packs it */
    bool usable;          /* false: below the baseline; `reason` says why */
    char reason[160];
    uint32_t subgroup_size, max_workgroup_invocations, max_group_count[3];
    uint32_t shared_memory_bytes, push_constant_bytes, storage_buffers_per_stage;
    uint64_t max_allocation_bytes, max_binding_bytes, device_memory_bytes, slot_alignment;
    bool direct_upload;   /* device memory is mapped and written in place */
    bool cached_readback; /* device memory is host-cached and read in place */
    bool storage_16bit, storage_8bit, shader_float16, shader_int8, subgroup_arithmetic;
    bool cooperative_matrix, timestamps;
    float timestamp_period_ns;
    size_t struct_size;
} rlxvk_device_info;

/* Lists the devices in the order of their index. Writes at most `capacity` of them (`devices` may
 * be NULL for none); *out_count is how many there are. Devices below the baseline are listed with
 * usable = false. A loader without any driver has 0 devices; E_NO_DEVICE: no loader, or one older
 * than Vulkan 1.2. Also E_OUT_OF_HOST_MEMORY, E_VULKAN. Callable from any thread. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_device_list(rlxvk_device_info *devices, size_t capacity,
                                                size_t *out_count);
/* The device that a text names as RLXVK_DEVICE does: its index, part of its name in any case, where
 * the best that has it is taken, or its UUID. NULL: what a context without options opens; "": the
 * best. Errors: E_NO_DEVICE, listing the devices there are, E_ATTR (bad switch value), and as
 * rlxvk_device_list. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_device_find(const char *text, rlxvk_device_info *out_info);

/* ---- Context: one device ---- */

typedef struct rlxvk_context rlxvk_context;

typedef enum rlxvk_log_level {
    RLXVK_LOG_ERROR = 0,
    RLXVK_LOG_WARNING = 1,
    RLXVK_LOG_INFO = 2
} rlxvk_log_level;

/* Receives one line without its newline. May be called from any thread that uses the context. */
typedef void (*rlxvk_log_function)(void *user, rlxvk_log_level level, const char *line);

/* Whatever an option switches on or off: on (as `true` converts to), off, or left to its
 * environment variable, where it has one, and else to the default that its comment names. A bool in
 * a struct is no switch but part of what the struct describes: an attribute of an op, the state of
 * the random numbers, a fact reported. */
typedef enum rlxvk_toggle { RLXVK_DEFAULT = 0, RLXVK_ON = 1, RLXVK_OFF = 2 } rlxvk_toggle;

typedef struct rlxvk_context_options {
    /* One of rlxvk_device_list or rlxvk_device_find, read by its UUID, name and index; NULL: the
     * one that RLXVK_DEVICE names, else the best. */
    const rlxvk_device_info *device;
    rlxvk_toggle validation; /* the Khronos validation layer with synchronization validation */
    /* NULL: what a switch prints goes to stderr, and so does the warning of an RLXVK_ variable that
     * is no switch, which the first context of a process gives. */
    rlxvk_log_function log;
    void *log_user;
    const char *cache_directory; /* pipeline cache; NULL: the user's cache directory; "": none */
    /* Smaller limits than the device's, to emulate a lesser device; 0 keeps the device's. */
    uint64_t limit_allocation_bytes;
    uint64_t limit_binding_bytes;
    uint32_t limit_workgroup_invocations;
    uint32_t limit_group_count;
    /* Choose kernel variants by what was measured on this device, where `rlxvk bench --tune` wrote
     * that to the cache directory or it came with the library (on unless RLXVK_NO_TUNING). */
    rlxvk_toggle tuning;
    /* Write device memory in place where it can be mapped (on); off: staging for everything. */
    rlxvk_toggle direct_upload;
    size_t struct_size;
} rlxvk_context_options;

/*
 * Opens a device: the given one, or discrete before integrated before virtual before CPU.
 * Errors: E_NO_DEVICE (the text says why), E_ATTR (bad switch value), E_UNSUPPORTED (no validation
 * layer is installed), E_FILE (RLXVK_TRACE cannot be written), E_OUT_OF_*_MEMORY, E_VULKAN. A cache
 * that cannot be read or written is none. The context may be used from several threads at once.
 * Destroyed first, it stays open until its last executable is gone, and so must what its options
 * point to. Contexts without validation share one Vulkan instance until the process ends.
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_context_create(const rlxvk_context_options *options,
                                                   rlxvk_context **out_context);
void rlxvk_context_destroy(rlxvk_context *context);

/* The device that a context has opened, as the context's options limit it. */
void rlxvk_context_device(const rlxvk_context *context, rlxvk_device_info *out_info);

/* ---- Graph: built once, in execution order ---- */

typedef struct rlxvk_graph rlxvk_graph;

/* Names one node's result in its graph; passed to calls on another graph it is E_DANGLING. {0} is
 * "no tensor": pass it for an optional operand left out. */
typedef struct rlxvk_tensor {
    uint32_t id;
    uint32_t graph; /* which graph of this process: never 0, never given twice */
} rlxvk_tensor;

#ifdef __cplusplus
#define RLXVK_NONE (rlxvk_tensor{})
#else
#define RLXVK_NONE ((rlxvk_tensor){0})
#endif

/* A graph is used by one thread at a time. The first error of a builder call sticks: later calls on
 * the graph return RLXVK_NONE and rlxvk_graph_status, like rlxvk_compile, returns that error. A
 * builder call whose graph is NULL returns RLXVK_NONE and leaves its sentence in
 * rlxvk_last_error() alone. rlxvk_graph_verify (rlxvk_symbols.h) lists all that is wrong. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_create(rlxvk_graph **out_graph);
void rlxvk_graph_destroy(rlxvk_graph *graph);
rlxvk_status rlxvk_graph_status(const rlxvk_graph *graph);

/* The sentence of the graph's sticky error, or "". Lives as long as the graph. */
const char *rlxvk_graph_error(const rlxvk_graph *graph);

/* Appends a tensor to the outputs; the order of calls is the index space of reads and feeds. Any
 * tensor may be an output, also twice. */
void rlxvk_graph_output(rlxvk_graph *graph, rlxvk_tensor tensor);

/* Loops built from now on (rlxvk_scan, rlxvk_while) whose rounds come to no more than `nodes` nodes
 * in all are unrolled: their nodes fuse across rounds. Longer ones have their body recorded once
 * and replayed. 0: the default, 4096. */
void rlxvk_graph_set_unroll_limit(rlxvk_graph *graph, uint64_t nodes);

/* Gives a tensor a name for errors, dumps and traces. The text is copied; NULL takes the name away.
 * Inputs and params keep theirs (E_ATTR). */
void rlxvk_graph_set_name(rlxvk_graph *graph, rlxvk_tensor tensor, const char *name);

/* Shape and dtype of a tensor; rank 0 and F32 for what is no tensor of the graph. In a graph with
 * symbols the shape has their codes and those of dims made of them. These are recognized at
 * examples; a shape that was asked for and does not hold at a binding makes that binding E_SHAPE.
 */
rlxvk_shape rlxvk_tensor_shape(const rlxvk_graph *graph, rlxvk_tensor tensor);
rlxvk_dtype rlxvk_tensor_dtype(const rlxvk_graph *graph, rlxvk_tensor tensor);

/* ---- Executable: compiled once, replayed ---- */

typedef struct rlxvk_executable rlxvk_executable;

/* Random numbers of a run. Without options: seed 42, Philox, step 0, not advancing, so that every
 * run draws the same numbers. */
typedef enum rlxvk_rng_backend {
    RLXVK_RNG_PHILOX = 0,
    /* x -> 16807 x mod 2^31 - 1 from seed + key, normal numbers by the polar method: for parity
     * with what was made so. Knows no step: every run draws the same. Sampling still uses Philox.
     */
    RLXVK_RNG_MINSTD = 1,
    RLXVK_RNG_ZERO = 2 /* uniform and normal give 0; sampling still uses Philox */
} rlxvk_rng_backend;

typedef struct rlxvk_rng_options {
    uint64_t seed; /* taken as it stands: an explicit 0 is seed 0 */
    rlxvk_rng_backend backend;
    uint64_t step;        /* the run counter, part of the stream's position */
    bool advance_per_run; /* add 1 to step after each run, a singular one or bad index included */
    size_t struct_size;
} rlxvk_rng_options;

/*
 * Arithmetic of matrix products of 16 rows and columns or more (matmul, dequant_matmul and what is
 * made of them; F16 by packed weights: of two rows or more) on devices with matrix units
 * (VK_KHR_cooperative_matrix); sums are always f32, and all else stays f32. Where a device has no
 * such units the f32 kernels run, and the plan dump says so. With S the sum of the products'
 * magnitudes and e the f32 bound of an element:
 *   F32   operands as they are: by units only where they take f32 operands, and one matrix by one
 *   F16   operands rounded to f16: error <= e + 2^-10 S; operands beyond 65504 become infinite,
 *         and a row of x with infinities may give NaN in products with packed weights.
 *         Attention of a unit's queries or more under a band mask, of widths up to 128 that are
 *         whole units, runs on them too: scores within 2^-10 of sum |scale q k|, weights and
 *         values rounded; a NaN or Inf in a row of v reaches all queries of its tile
 *   BF16  operands rounded to bfloat16: error <= e + 2^-7 S
 *         In both, one row of x by packed weights (dequant_matmul, projection), where a device
 *         multiplies bytes quickly: x within 2^-22 of the largest of 32 neighbours, which adds
 *         2^-22 K max|x| max|w|
 *   SPLIT operands as two f16 each, scaled by row: error <= e + 2^-20 S + 2^-38 K max|a| max|b|
 *         over the element's row of a and column of b; infinite operands give NaN
 */
typedef enum rlxvk_precision {
    RLXVK_PRECISION_F32 = 0,
    RLXVK_PRECISION_F16 = 1,
    RLXVK_PRECISION_BF16 = 2,
    RLXVK_PRECISION_SPLIT = 3
} rlxvk_precision;

/* "f32", "f16", "bf16", "split"; NULL for a value that is none of them. */
const char *rlxvk_precision_name(rlxvk_precision precision);

/*
 * How params declared F32 are held on the device. As F16 or BF16 a param takes half the memory, and
 * kernels read half the bytes. Arithmetic stays as it is: what a kernel reads becomes f32 again.
 *
 * A param is held so if ops only read it, and each reader takes packed weights: matmul and what is
 * made of it, projection, grouped_matmul, and gather of its data, also through reshapes. All other
 * params stay F32, bit for bit: weights of convolutions and norms, biases, outputs, and what
 * optimizers and other ops write. So do constants. Which params are packed is told by `held` of
 * rlxvk_executable_params, and how many bytes all take by weight_bytes of rlxvk_executable_memory.
 * Params declared F16 or BF16 stay as they are declared.
 *
 * For the program such a param is still F32: calls take, give, save and load F32. Its value is
 * rounded when it is set, to nearest, ties to even, and read_param gives the rounded value. Results
 * are those of the graph with the rounded values, within the bounds of its ops. Rounding moves a
 * value v by at most
 *   F16   2^-11 |v|, or 2^-25 if |v| is below 2^-14; from 65520 on v becomes infinite
 *   BF16  2^-8 |v|, or 2^-134 if |v| is below 2^-126; infinite only next to the range of f32, from
 *         (2 - 2^-8) 2^127 on
 * so a product of a row x and a column w moves by at most 2^-11 or 2^-8 times sum |x w|, if the
 * weights are in the normal range.
 */
typedef enum rlxvk_weight_storage {
    RLXVK_WEIGHTS_AS_DECLARED = 0,
    RLXVK_WEIGHTS_F16 = 1,
    RLXVK_WEIGHTS_BF16 = 2
} rlxvk_weight_storage;

/* The stages of a compile that can be printed to the log. */
typedef enum rlxvk_dump {
    RLXVK_DUMP_GRAPH = 1,    /* nodes as built */
    RLXVK_DUMP_REWRITE = 2,  /* nodes as rewritten, and what was not fused and why */
    RLXVK_DUMP_PLAN = 4,     /* steps, and where each tensor lies */
    RLXVK_DUMP_BARRIERS = 8, /* each barrier, and what it keeps apart */
    RLXVK_DUMP_NONE = 16     /* nothing, whatever RLXVK_DUMP says */
} rlxvk_dump;

/* A kernel variant: a row of a family's table. `rlxvk info` lists both names. */
typedef struct rlxvk_variant {
    const char *family, *row; /* "matmul", "tiled_64x128" */
} rlxvk_variant;

/* An axis of an input along which the rows of a bucket lie; negative: from the last. With
 * `indices`, `axis` left 0: the caller's word that what runs give this input are numbers of rows
 * that matter, so that a gather may take these from among the others (the last token's, say). */
typedef struct rlxvk_bucket_axis {
    const char *input;
    int32_t axis;
    bool indices;
    size_t struct_size;
} rlxvk_bucket_axis;

/* What runs under an active extent give (rlxvk_symbols.h). */
typedef enum rlxvk_extent_promise {
    RLXVK_EXTENT_PREFIX = 0,
    RLXVK_EXTENT_SHORTER = 1
} rlxvk_extent_promise;

typedef struct rlxvk_compile_options {
    rlxvk_toggle forbid_host;  /* an op that would run on the host is E_UNSUPPORTED (off) */
    rlxvk_toggle allow_unset;  /* unset params and inputs are zeros instead of an error (off) */
    rlxvk_toggle force_host;   /* every op runs on the host (off); OFF: only those of host_ops */
    rlxvk_toggle fusion;       /* pattern fusions (on unless RLXVK_NO_FUSION); and parts and
                                  transposes read where they lie, and products written in the
                                  parts of columns that are read (unless RLXVK_NO_PACKED_ATTN) */
    rlxvk_toggle regions;      /* join elementwise ops (with fusion, unless RLXVK_NO_REGIONS) */
    rlxvk_toggle reorder;      /* reorder independent dispatches to share barriers (on) */
    rlxvk_toggle cached;       /* replay recorded command buffers (on unless RLXVK_NOCACHE) */
    rlxvk_toggle full_barrier; /* a barrier between every two dispatches (off unless
                                  RLXVK_FULLBARRIER); comes with profile, and with cached off */
    rlxvk_toggle reuse_memory; /* liveness plan (on unless RLXVK_PLAN=bump) */
    rlxvk_toggle profile;      /* time every step with timestamps: rlxvk_executable_profile (off
                                  unless RLXVK_TRACE) */
    rlxvk_toggle time_runs;    /* only begin and end: rlxvk_executable_run_time; nearly free */
    /* Prove the plan sound by brute force; let out-of-range indices fail the run; look for bad
     * scales in packed params (each off unless RLXVK_CHECK names plan, index, packed). */
    rlxvk_toggle check_plan, check_index, check_packed;
    /* Every node keeps memory of its own, to be looked at (off unless RLXVK_NAN_TRACE or
     * RLXVK_DUMP_NODES); nothing is fused, reordered or put in reused memory then. */
    rlxvk_toggle keep_all;
    /* Most device memory beside the params for the forms that kernels want them in (halves for
     * matrix units, also of packed weights where a product has more than 256 rows and would unpack
     * them by way of shared memory, floats of packed weights in products of f32, weights of
     * convolutions and recurrent layers laid out anew, weights joined for products of one input).
     * Such a form is made once when its params are set instead of in every run; what exceeds the
     * limit is made in every run (halves of packed weights: within the product, but in split mode),
     * or not joined. 0, the default: as RLXVK_PREPARED_BYTES says, and
     * where that says nothing no memory but for a few values a channel; UINT64_MAX: whatever it
     * takes. Each executable has its own forms, also where it shares params. */
    uint64_t prepared_bytes;
    uint32_t max_in_flight;    /* tickets outstanding at once; 0 means 2; at most 1024 (E_ATTR) */
    uint64_t timeout_ns;       /* deadline of every wait; 0 means 60 s */
    uint32_t dump;             /* stages to print, bits of rlxvk_dump; 0: RLXVK_DUMP */
    rlxvk_precision precision; /* of matrix products; F32, the default: as RLXVK_PRECISION says, and
                                  F32 where that says nothing */
    /* Kernel variants to use where they can do the shape, else the table decides; an unknown one is
     * E_ATTR. NULL: RLXVK_VARIANT; an array of none: no variant, whatever RLXVK_VARIANT says. */
    const rlxvk_variant *variants;
    size_t variant_count;
    /* Ops to run on the host, by the names of their rows ("softmax"); an unknown one is E_ATTR.
     * NULL, with force_host left to its default: RLXVK_FORCE_HOST; an array of none: no op,
     * whatever that says. */
    const char *const *host_ops;
    size_t host_op_count;
    const rlxvk_rng_options *rng; /* NULL: the defaults */
    /* Params that have the same name, shape and dtype in this executable use its memory instead of
     * their own, and so do the inputs listed here. A listed name that is no input of both is
     * E_UNKNOWN_NAME, inputs that differ are E_DTYPE or E_SHAPE. The executable must be on the same
     * context, and names need one (E_ATTR); it may be destroyed first. What one sets or writes
     * there counts for all. Executables that share memory must not be used at the same time. Either
     * may have symbols; if none is bound yet, all are bound to their examples first. */
    rlxvk_executable *share_with;
    const char *const *shared_inputs;
    size_t shared_input_count;
    /* Sizes of symbols. With all of them the executable is one of numbers, as rlxvk_graph_bind and
     * a compile would make it; of those that are left out rlxvk_bind_symbols and runs decide
     * (rlxvk_symbols.h). */
    const rlxvk_binding *bindings;
    size_t binding_count;
    uint32_t cached_bindings; /* programs kept for a graph with symbols; 0 means 8; at most 1024 */
    /* Inputs of which runs may use the first rows alone (rlxvk_set_active_extent, rlxvk_symbols.h),
     * along which axis; E_UNKNOWN_NAME, E_AXIS. bucket_symbols: also every axis of an input that is
     * symbol SEQ, ROWS or PAST_SEQ (off). */
    const rlxvk_bucket_axis *bucket_axes;
    size_t bucket_axis_count;
    rlxvk_toggle bucket_symbols;
    rlxvk_extent_promise extent_promise;
    /* How params declared F32 are held (as declared). A param that share_with has, too, is held as
     * it is there, whatever this says. If an op here cannot read it so, it is not shared: `shared`
     * of rlxvk_executable_params is false, and it must be set here. */
    rlxvk_weight_storage weight_storage;
    size_t struct_size;
} rlxvk_compile_options;

/*
 * Verifies, rewrites, schedules, plans and records the graph. The graph stays the caller's and may
 * be destroyed or compiled again. Errors: the graph's sticky error, E_NO_OUTPUTS, E_UNSUPPORTED,
 * E_TOO_LARGE (with the sizes), E_OUT_OF_*_MEMORY, E_ATTR (bad option or switch value), E_NULL (a
 * name in a list), E_CUSTOM (a custom kernel refuses its shapes), those of share_with above,
 * those of rlxvk_graph_bind, E_DEVICE_LOST, E_TIMEOUT (timeout_ns is of its uploads, too),
 * E_VULKAN.
 *
 * An executable is used by one thread at a time; different ones may run on different threads.
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_compile(rlxvk_context *context, const rlxvk_graph *graph,
                                            const rlxvk_compile_options *options,
                                            rlxvk_executable **out_executable);

/* Waits for pending work, past any deadline, then frees everything; safe after any error. */
void rlxvk_executable_destroy(rlxvk_executable *executable);

/* A second executable of the same plan (of symbols: of the binding in force): own memory with a
 * copy of the content, own handle table, shared pipelines and plan. Independent of the source
 * afterwards: it may run on another thread, and either may be destroyed first. Waits for the
 * source's tickets. E_OUT_OF_*_MEMORY, E_DEVICE_LOST, E_TIMEOUT. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_clone(rlxvk_executable *executable,
                                          rlxvk_executable **out_executable);

/*
 * The type of data. Every buffer that a call reads or writes has an element type: `dtype`, in its
 * host encoding (BOOL one byte, C64 two floats). It must be the tensor's own dtype, or the call is
 * E_DTYPE and says which it is; nothing is converted in silence. What has no dtype, a call with
 * float * or a struct whose field is left out, is F32, and only tensors declared F32 are taken.
 */

/* Params. `length` counts values, or bytes where the data are `bytes`. A wrong length is E_LENGTH
 * and nothing is written; an unknown name is E_UNKNOWN_NAME; a dtype that is none, or data that do
 * not fit the param's, is E_DTYPE; a param that the compiler dropped as dead is accepted and
 * discarded. Visible to the next run.
 *   set_param         f32 values, one an element, of an F32 param
 *   set_param_typed   values of any `dtype`, converted as a constant would be: F16/BF16 params
 *                     round to nearest even; U8/I8 params take U8 and I8 alone, C64 ones C64, or
 *                     F32, two an element
 *   set_param_bytes   the encoding of the param's dtype: U8, I8, F16, BF16, F32, C64 alone
 *   read_param        the present content of an F32 param
 *   read_param_typed  values of `dtype`: the param's own, or F32 (of C64 two an element, of U8 and
 *                     I8 E_DTYPE); of a dropped param E_UNKNOWN_NAME, as read_param
 *   read_param_bytes  in the encoding of the param's own dtype
 * Under check_packed, setting a param that rlxvk_dequant_* ops read is E_RANGE, naming block and
 * value, and nothing is written, where a scale (of a GGUF block or a tensor of its own), minimum,
 * zero point or global factor is NaN or infinite, an E8M0 scale is 255, an E4M3 scale 0x7f or
 * above, or an FP8 code NaN or infinite. Params reach their reader directly or through views. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_param(rlxvk_executable *executable, const char *name,
                                              const float *values, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_param_typed(rlxvk_executable *executable, const char *name,
                                                    const void *bytes, size_t length,
                                                    rlxvk_dtype dtype);
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_param_bytes(rlxvk_executable *executable, const char *name,
                                                    const void *bytes, size_t length);
/* All zeros, which the device fills in: what caches begin with. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_clear_param(rlxvk_executable *executable, const char *name);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_param(rlxvk_executable *executable, const char *name,
                                               float *values, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_param_typed(rlxvk_executable *executable, const char *name,
                                                     void *bytes, size_t length, rlxvk_dtype dtype);
RLXVK_MUST_CHECK rlxvk_status rlxvk_read_param_bytes(rlxvk_executable *executable, const char *name,
                                                     void *bytes, size_t length);

typedef struct rlxvk_param_item {
    const char *name;
    const void *bytes; /* host encoding of `dtype` */
    size_t length;     /* bytes */
    rlxvk_dtype dtype;
    size_t struct_size;
} rlxvk_param_item;

/* set_param_typed of many at once: all are checked before any is written; errors as there. Of a
 * name given twice the last counts. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_params(rlxvk_executable *executable,
                                               const rlxvk_param_item *items, size_t count);

/* One input of a run: `length` values of type `dtype`, the input's own. With f32_words the data are
 * f32 words instead, as the device holds tensors whatever their dtype but U8 and I8 (two words an
 * element of C64): for programs that handle all types alike. */
typedef struct rlxvk_run_input {
    const char *name;
    const void *data;
    size_t length;
    rlxvk_dtype dtype;
    bool f32_words;
    size_t struct_size;
} rlxvk_run_input;

/* One output to read: written to `buffer`, which must hold exactly `length` values. */
typedef struct rlxvk_run_output {
    size_t index;
    void *buffer;
    size_t length;
    rlxvk_dtype dtype;
    bool f32_words;
    size_t struct_size;
} rlxvk_run_output;

/* RLXVK_RUN_INPUT("ids", ids) and RLXVK_RUN_OUTPUT(0, best) fill in length and dtype from an array
 * of a C type that one dtype has (bool, float, double, fixed-width integers); not from a pointer.
 */
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

/*
 * Runs the graph once and waits. Inputs left out keep their content (E_MISSING_INPUT if never
 * written); a name given twice: the last wins. Only the outputs listed are read; with none listed
 * nothing is. E_NULL (a name, data or a buffer), E_UNKNOWN_NAME, E_LENGTH, E_INDEX, E_DTYPE,
 * E_UNSET_PARAM, E_MISSING_INPUT: nothing has run and nothing changed. E_SINGULAR, E_INDEX_OOB: the
 * run is complete and its outputs are read. E_CUSTOM: a host function ended the run where it stood.
 * E_RANGE: under RLXVK_CHECK=canary alone; a kernel wrote outside its operands, though the run is
 * complete and its outputs are read. E_DEVICE_LOST: the executable can only be destroyed.
 * E_TIMEOUT: the deadline passed; treat as lost. Allocates nothing, records nothing.
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_run(rlxvk_executable *executable, const rlxvk_run_input *inputs,
                                        size_t input_count, const rlxvk_run_output *outputs,
                                        size_t output_count);

/* Asynchronous run: copies the inputs, submits, returns a ticket. The output buffers (the array and
 * what it points to) must stay valid until rlxvk_wait on that ticket, which fills them. Runs
 * execute in submission order. One more than max_in_flight is E_BUSY and changes nothing. Every
 * other call that runs, reads or changes the executable's content or feeds first waits for all its
 * tickets; how a run ended is told by the wait on its ticket alone. Runs that are looked at
 * afterwards (dense_solve, check_index) do not overlap: submit waits for the one before. Errors:
 * from submit as rlxvk_run's but for E_SINGULAR, E_INDEX_OOB and E_RANGE, which the wait tells;
 * E_INDEX: no such ticket, or one already waited for. A ticket whose wait reported is done with,
 * whatever the status. */
typedef uint64_t rlxvk_ticket;
RLXVK_MUST_CHECK rlxvk_status rlxvk_submit(rlxvk_executable *executable,
                                           const rlxvk_run_input *inputs, size_t input_count,
                                           const rlxvk_run_output *outputs, size_t output_count,
                                           rlxvk_ticket *out_ticket);
RLXVK_MUST_CHECK rlxvk_status rlxvk_wait(rlxvk_executable *executable, rlxvk_ticket ticket);

/* Replaces the random-number options from the next run or submission on (NULL: the defaults); reads
 * them (step as it will be then). Neither waits. E_ATTR: no such backend. Graphs without random ops
 * ignore them. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_rng(rlxvk_executable *executable,
                                            const rlxvk_rng_options *options);
void rlxvk_get_rng(const rlxvk_executable *executable, rlxvk_rng_options *out_options);

#ifdef __cplusplus
}
#endif

#include <rlxvk_handles.h>
#include <rlxvk_report.h>

#endif
