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
 * Conventions
 *   - A call that can fail returns an rlxvk_status; RLXVK_OK is 0. If it fails, it changes nothing,
 *     except that an object it was to make is NULL. It leaves a sentence with the problem and a
 *     remedy in rlxvk_last_error().
 *   - If a pointer is NULL, the call fails with E_NULL, unless its contract says what NULL means.
 *     An array may be NULL if its count is 0. A call that does not return a status then returns a
 *     neutral value (0, false, "", rank 0) and leaves the sentence.
 *   - Objects hold what they need, so you may destroy them in any order, each once. Every destroy
 *     takes NULL. In the child of a fork the parent's objects are useless: calls that need the
 *     device fail with E_DEVICE_LOST, and destroying frees nothing.
 *   - Option structs are read only during the call. NULL or a zeroed struct means all defaults.
 *   - Strings and arrays that you pass in stay yours. The library copies what it needs later.
 *   - The library never aborts, exits or prints by itself.
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

/* Version of these headers. Before 1.0.0 a new minor version may break a program, later only a new
 * major version may. A new patch version never does. */
#define RLXVK_VERSION_MAJOR 0
#define RLXVK_VERSION_MINOR 3
#define RLXVK_VERSION_PATCH 0

/* Version of the library that the program runs with: "major.minor.patch". A static string. */
const char *rlxvk_version(void);

/* ---- Structs that grow ---- */

/*
 * A program built with older headers runs with a later library, and the other way round. For this,
 * the structs that programs allocate have a member struct_size, which never moves. Later versions
 * add members only behind it. It tells a call how much of the struct to read or fill:
 *   0              the members up to struct_size; {0} and initializers without it mean this
 *   RLXVK_SIZE_OF  all members of the headers that the program was built with; RLXVK_SIZED sets it.
 *                  You need it to use a member behind struct_size
 * If the caller lacks a member, it counts as zero, which means the default. If a call reads a
 * struct that has members unknown to the library, they must be zero (E_ATTR). Any other struct_size
 * is E_ATTR, too, and so are items of one array that differ in it. You need not initialize a struct
 * that a call fills: if its struct_size is not an RLXVK_SIZE_OF, it becomes 0. Name the members
 * that you initialize, because compilers may warn otherwise that struct_size is missing.
 *
 * These never grow: rlxvk_tensor, rlxvk_shape, rlxvk_binding, rlxvk_variant, rlxvk_region_step,
 * rlxvk_rng_stream, rlxvk_requantize, rlxvk_custom_view. The structs that callbacks get from the
 * library (rlxvk_custom_call, rlxvk_custom_gradient) may grow at their end.
 */
#define RLXVK_SIZE_OF(type) (sizeof(type) | (size_t)0x524C << (8 * sizeof(size_t) - 16))

/* RLXVK_SIZED(rlxvk_compile_options, .dump = RLXVK_DUMP_PLAN) makes a struct with its struct_size.
 * It takes at least one initializer. */
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

/* The statuses, each as X(name, number, text); rlxvk_status_text returns the text. The numbers are
 * part of the binary interface: a status never changes its number, and the number of a withdrawn
 * status is never used again. This version of the library raises every status of the table. */
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
    /* Results of a run */                                                                         \
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

/* The name of a status ("E_SHAPE", "OK") and its general meaning. For a number that is no status:
 * "?" and "no such status". Static strings, never NULL. */
const char *rlxvk_status_name(rlxvk_status status);
const char *rlxvk_status_text(rlxvk_status status);

/* The sentence of the calling thread's last failed call; "" if none failed. Valid until the next
 * failing call of that thread. */
const char *rlxvk_last_error(void);

/* ---- Element types and shapes ---- */

/* Whatever its type, a tensor is held on the device as f32 words. Two types differ: U8 and I8
 * inputs, params and constants are raw bytes, and C64 has two words an element. F16 and BF16 params
 * may stay packed if every op that reads them can do so; results do not depend on it. F32 params
 * are packed only if the compile option weight_storage asks for it. */
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

/* Whether two shapes have the same rank and dims; false if a rank is above RLXVK_MAX_RANK. */
bool rlxvk_shape_equal(rlxvk_shape a, rlxvk_shape b);

/* The number of elements of a tensor: the product of its dims, 1 for a scalar. Writes nothing if:
 *   E_SHAPE       the rank is above RLXVK_MAX_RANK, or a dim is negative or a symbol
 *   E_TOO_LARGE   the number is above 2^31 - 1, which no tensor may have; or one dim is 0 and the
 *                 product of the others overflows 63 bits */
RLXVK_MUST_CHECK rlxvk_status rlxvk_shape_elements(rlxvk_shape shape, uint64_t *out_count);

/*
 * Symbolic dims. A dim >= 0 is a number. rlxvk_symbol(id) is a symbol, whose size is given later
 * (rlxvk_symbols.h). It may be a dim of inputs and params. It may also be a size that a builder
 * takes (reshape, expand, narrow, random numbers, topk, ...). A symbol has one size everywhere in a
 * graph. Dims that depend on symbols are codes, too, which builders of that graph take as sizes.
 * Your own symbols begin at RLXVK_USER_SYMBOL.
 */
typedef enum rlxvk_symbol_id {
    RLXVK_BATCH = 0,
    RLXVK_SEQ = 1,
    RLXVK_ROWS = 2, /* BATCH * SEQ if those are bound and ROWS is not */
    RLXVK_PAST_SEQ = 3,
    RLXVK_USER_SYMBOL = 16
} rlxvk_symbol_id;
int64_t rlxvk_symbol(uint32_t id);

typedef struct rlxvk_binding {
    uint32_t symbol; /* id */
    int64_t size;    /* >= 0 */
} rlxvk_binding;

/* "F32", "BOOL", ...; "?" if the value is not a dtype. */
const char *rlxvk_dtype_name(rlxvk_dtype dtype);

/* Host bytes of one element (F32 4, F16 2, BOOL 1, C64 8, ...); 0 if the value is not a dtype. */
size_t rlxvk_dtype_size(rlxvk_dtype dtype);

/* ---- Devices ---- */

typedef enum rlxvk_device_kind {
    RLXVK_DEVICE_OTHER = 0,
    RLXVK_DEVICE_INTEGRATED = 1,
    RLXVK_DEVICE_DISCRETE = 2,
    RLXVK_DEVICE_VIRTUAL = 3,
    RLXVK_DEVICE_CPU = 4
} rlxvk_device_kind;

/* A device and how the library uses it. Sizes in bytes. */
typedef struct rlxvk_device_info {
    char name[256];
    char driver[256];
    char uuid[33];  /* deviceUUID, 32 hexadecimal digits */
    uint32_t index; /* in rlxvk_device_list; RLXVK_DEVICE takes it */
    rlxvk_device_kind kind;
    uint32_t api_version; /* as Vulkan packs it */
    bool usable;          /* false: below the baseline; `reason` tells why */
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

/* Lists the devices by index; those below the baseline, or whose driver fails, have usable = false.
 * Writes at most `capacity` (`devices` may be NULL if it is 0); *out_count is how many there are. A
 * loader without a driver has 0 devices. Any thread may call it. E_NO_DEVICE: there is no Vulkan
 * loader, or it is older than 1.2. E_ATTR: RLXVK_LIMITS names no limits. Also E_VULKAN and
 * E_OUT_OF_HOST_MEMORY. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_device_list(rlxvk_device_info *devices, size_t capacity,
                                                size_t *out_count);
/* Finds a device by a text, as RLXVK_DEVICE does. The text is its index, its name or a part of it
 * in any case, its UUID, or its PCI address, as 0000:65:00.0 or 65:00.0. "": the best device. NULL:
 * the device that RLXVK_DEVICE names, else the best. E_NO_DEVICE: no usable device matches, or
 * several do; the sentence lists them. E_ATTR: a bad switch value. Also rlxvk_device_list's errors.
 */
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

/* The value of an option that switches something on or off. RLXVK_DEFAULT means the option's
 * environment variable, if it has one that is set, and else the default in its comment. `true`
 * converts to ON. A bool in a struct is not a switch but a part of a description: an attribute of
 * an op, the state of the random numbers, a reported fact. */
typedef enum rlxvk_toggle { RLXVK_DEFAULT = 0, RLXVK_ON = 1, RLXVK_OFF = 2 } rlxvk_toggle;

typedef struct rlxvk_context_options {
    /* From rlxvk_device_list or rlxvk_device_find; its UUID, name and index count. NULL: the device
     * that RLXVK_DEVICE names, else the best that its driver can open. */
    const rlxvk_device_info *device;
    rlxvk_toggle validation; /* the Khronos validation layer with synchronization validation */
    /* Gets the output of switches. In the first context of a process it also gets a warning if an
     * RLXVK_ variable is not a switch. NULL: both go to stderr. */
    rlxvk_log_function log;
    void *log_user;
    const char *cache_directory; /* pipeline cache; NULL: the user's cache directory; "": none */
    /* Smaller limits than the device's, to emulate a lesser device; 0 keeps the device's. */
    uint64_t limit_allocation_bytes;
    uint64_t limit_binding_bytes;
    uint32_t limit_workgroup_invocations;
    uint32_t limit_group_count;
    /* Choose kernel variants by measurements of this device, if `rlxvk bench --tune` wrote some to
     * the cache directory or the library came with some (on unless RLXVK_NO_TUNING). */
    rlxvk_toggle tuning;
    /* Write device memory in place if it can be mapped (on); off: staging for everything. */
    rlxvk_toggle direct_upload;
    size_t struct_size;
} rlxvk_context_options;

/*
 * Opens a device: the given one, or a discrete before an integrated before a virtual one before a
 * CPU. Any number of threads may use the context at once. If it is destroyed before its last
 * executable, it stays open until then, and the objects that its options point to must live as
 * long. A cache that cannot be read or written is ignored. Contexts without validation share one
 * Vulkan instance until the process ends, because some drivers fail if there were many.
 *   E_NO_DEVICE     there is no suitable device; the sentence tells why
 *   E_ATTR          a bad switch value
 *   E_UNSUPPORTED   validation is on and its layer is not installed
 *   E_FILE          the file of RLXVK_TRACE cannot be written
 *   E_OUT_OF_*_MEMORY, E_VULKAN
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_context_create(const rlxvk_context_options *options,
                                                   rlxvk_context **out_context);
void rlxvk_context_destroy(rlxvk_context *context);

/* The device that a context has opened, with the limits of the context's options. */
void rlxvk_context_device(const rlxvk_context *context, rlxvk_device_info *out_info);

/* ---- Graph: built once, in execution order ---- */

typedef struct rlxvk_graph rlxvk_graph;

/* The result of one node of a graph. In calls on another graph it is E_DANGLING. {0} is "no
 * tensor": pass it for an optional operand that you leave out. */
typedef struct rlxvk_tensor {
    uint32_t id;
    uint32_t graph; /* number of the graph in this process, never 0; it repeats after 2^32 */
} rlxvk_tensor;

#ifdef __cplusplus
#define RLXVK_NONE (rlxvk_tensor{})
#else
#define RLXVK_NONE ((rlxvk_tensor){0})
#endif

/* A graph is used by one thread at a time. The first error of a builder call sticks: later builder
 * calls return RLXVK_NONE, and rlxvk_graph_status and rlxvk_compile return the error. If the graph
 * is NULL, only rlxvk_last_error() has the sentence. rlxvk_graph_verify lists all problems. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_graph_create(rlxvk_graph **out_graph);
void rlxvk_graph_destroy(rlxvk_graph *graph);
rlxvk_status rlxvk_graph_status(const rlxvk_graph *graph);

/* The sentence of the graph's sticky error, or "". Lives as long as the graph;
 * rlxvk_graph_clear_error empties it. */
const char *rlxvk_graph_error(const rlxvk_graph *graph);

/* Returns the sticky error and forgets it, so that builder calls work again, for example in an
 * interactive session. All tensors stay valid. The call that failed has no result; if it had made
 * nodes already, nothing reads them, and compiling drops them. New in 0.3. */
rlxvk_status rlxvk_graph_clear_error(rlxvk_graph *graph);

/* Appends a tensor to the outputs. Runs and feeds name outputs by index, in the order of these
 * calls. Any tensor may be an output, also twice. */
void rlxvk_graph_output(rlxvk_graph *graph, rlxvk_tensor tensor);

/* Sets the limit for loops built from now on (rlxvk_scan, rlxvk_while). If all rounds of a loop
 * have at most `nodes` nodes together, it is unrolled, so that nodes fuse across rounds. The body
 * of a longer loop is recorded once and replayed. 0: the default, 4096. */
void rlxvk_graph_set_unroll_limit(rlxvk_graph *graph, uint64_t nodes);

/* Gives a tensor a name for errors, dumps and traces. The text is copied; NULL removes the name.
 * E_ATTR: the tensor is an input or param, which keep theirs. */
void rlxvk_graph_set_name(rlxvk_graph *graph, rlxvk_tensor tensor, const char *name);

/* Shape and dtype of a tensor; rank 0 and F32 if it is not a tensor of the graph. In a graph with
 * symbols, the shape has their codes and those of dims computed from them, which are recognized by
 * example sizes. If you asked for a shape and a binding contradicts it, that binding is E_SHAPE. */
rlxvk_shape rlxvk_tensor_shape(const rlxvk_graph *graph, rlxvk_tensor tensor);
rlxvk_dtype rlxvk_tensor_dtype(const rlxvk_graph *graph, rlxvk_tensor tensor);

/* ---- Executable: compiled once, replayed ---- */

typedef struct rlxvk_executable rlxvk_executable;

/* Random numbers of a run. The defaults are seed 42, Philox, step 0, and not to advance, so that
 * every run draws the same numbers. */
typedef enum rlxvk_rng_backend {
    RLXVK_RNG_PHILOX = 0,
    /* x -> 16807 x mod 2^31 - 1 from seed + key, with the polar method for normal numbers: to
     * reproduce results made that way. It has no step, so every run draws the same numbers.
     * Sampling still uses Philox. */
    RLXVK_RNG_MINSTD = 1,
    RLXVK_RNG_ZERO = 2 /* uniform and normal give 0; sampling still uses Philox */
} rlxvk_rng_backend;

typedef struct rlxvk_rng_options {
    uint64_t seed; /* used as it is: an explicit 0 is seed 0 */
    rlxvk_rng_backend backend;
    uint64_t step;        /* the run counter, part of the stream's position */
    bool advance_per_run; /* add 1 to step after each run, also after E_SINGULAR or E_INDEX_OOB */
    size_t struct_size;
} rlxvk_rng_options;

/* rlxvk_compile.h has its members. */
typedef struct rlxvk_compile_options rlxvk_compile_options;

/*
 * Verifies, rewrites, schedules, plans and records the graph. The graph stays the caller's and may
 * be destroyed or compiled again. An executable is used by one thread at a time; different ones may
 * run on different threads. Errors are the graph's sticky error, and those of share_with (above)
 * and rlxvk_graph_bind. And:
 *   E_NO_OUTPUTS, E_UNSUPPORTED, E_TOO_LARGE (with the sizes), E_OUT_OF_*_MEMORY, E_VULKAN
 *   E_ATTR      a bad option or switch value
 *   E_NULL      a name in a list is NULL
 *   E_CUSTOM    a custom kernel refuses its shapes
 *   E_DEVICE_LOST; E_TIMEOUT (uploads take longer than timeout_ns)
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_compile(rlxvk_context *context, const rlxvk_graph *graph,
                                            const rlxvk_compile_options *options,
                                            rlxvk_executable **out_executable);

/* Waits for pending work, past any deadline, then frees everything. Safe after any error. */
void rlxvk_executable_destroy(rlxvk_executable *executable);

/* Makes a second executable of the same plan (with symbols: of the present binding). It has its own
 * memory with a copy of the content, and its own handles; pipelines and plan are shared. The two
 * are independent: they may run on different threads, and either may be destroyed first. Waits for
 * the source's tickets. E_OUT_OF_*_MEMORY, E_DEVICE_LOST, E_TIMEOUT. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_clone(rlxvk_executable *executable,
                                          rlxvk_executable **out_executable);

/*
 * Types of data. Every buffer that a call reads or writes has an element type, `dtype`, in its host
 * encoding (BOOL one byte, C64 two floats). If it is not the tensor's own dtype, the call fails
 * with E_DTYPE and says which it is; nothing is converted silently. Without a dtype (a call with
 * float *, or a struct whose field is left out) the data are F32, for tensors declared F32.
 */

/* Set or read a param; the next run sees it. `length` counts values (float *) or bytes (void *).
 * If no output depends on a param, the compiler drops it: data are then checked and discarded.
 *   set_param          F32 values of an F32 param
 *   set_param_typed    values of any `dtype`, converted as for a constant: F16 and BF16 params
 *                      round to nearest even. U8 and I8 params take only U8 and I8. C64 params take
 *                      C64, or F32, two an element
 *   set_param_bytes    the encoding of the param's dtype, only U8, I8, F16, BF16, F32 or C64
 *   read_param         the present content of an F32 param
 *   read_param_typed   `dtype` is the param's own, or F32 for the f32 words on the device (C64: two
 *                      an element; U8 and I8 have none, so that is E_DTYPE)
 *   read_param_bytes   the encoding of the param's own dtype
 * If one of these errors comes, nothing is written:
 *   E_UNKNOWN_NAME   there is no such param; or a dropped one is to be read
 *   E_LENGTH         the length is wrong
 *   E_DTYPE          `dtype` is not a dtype, or the data do not fit the param
 *   E_RANGE          with check_packed, a param of rlxvk_dequant_* ops (read directly or through
 *                    views) has a bad value; the sentence names block and value. Bad are scales,
 *                    minima, zero points, global factors and FP8 codes that are NaN or infinite. So
 *                    is an E8M0 scale of 255, and an E4M3 scale of 0x7f or above
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_param(rlxvk_executable *executable, const char *name,
                                              const float *values, size_t length);
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_param_typed(rlxvk_executable *executable, const char *name,
                                                    const void *bytes, size_t length,
                                                    rlxvk_dtype dtype);
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_param_bytes(rlxvk_executable *executable, const char *name,
                                                    const void *bytes, size_t length);
/* Sets all to zeros, on the device: for example, a cache before its first use. */
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

/* set_param_typed of many at once: all are checked before any is written. Errors are the same. If a
 * name is given twice, the last one wins. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_params(rlxvk_executable *executable,
                                               const rlxvk_param_item *items, size_t count);

/* One input of a run: `length` values of type `dtype`, the input's own. If f32_words is set, the
 * data are f32 words instead, as the device holds all types except U8 and I8 (two words an element
 * for C64). It is meant for programs that handle all types alike. */
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

/* RLXVK_RUN_INPUT("ids", ids) and RLXVK_RUN_OUTPUT(0, best) fill in length and dtype. They need an
 * array, not a pointer, of a C type that has a dtype: bool, float, double, fixed-width integers. */
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

/* Runs the graph once and waits. Inputs that are not listed keep their content. If a name is given
 * twice, the last one wins. Only the listed outputs are read. A run allocates and records nothing,
 * unless sizes are new, `cached` is off, or data are too large to stage. If there are symbols, the
 * sizes of the inputs are bound first, and stay bound even if the call then fails.
 *   E_NULL, E_UNKNOWN_NAME, E_LENGTH, E_INDEX, E_DTYPE, E_UNSET_PARAM   nothing else has changed
 *   E_MISSING_INPUT           an input was never written; nothing else has changed
 *   E_SINGULAR, E_INDEX_OOB   the run is complete and its outputs are read
 *   E_RANGE                   the same, but a kernel wrote outside its operands; comes only with
 *                             RLXVK_CHECK=canary
 *   E_CUSTOM                  a host function failed, and the run ended there
 *   E_DEVICE_LOST             the executable can only be destroyed; names the kernels submitted
 * last E_TIMEOUT                 the deadline passed; treat the executable as lost */
RLXVK_MUST_CHECK rlxvk_status rlxvk_run(rlxvk_executable *executable, const rlxvk_run_input *inputs,
                                        size_t input_count, const rlxvk_run_output *outputs,
                                        size_t output_count);

/* Asynchronous run. rlxvk_submit copies the inputs, submits, and returns a ticket. rlxvk_wait fills
 * the output buffers: they, and the array that lists them, must stay valid until then. Runs execute
 * in the order of submission. Every other call that runs the graph, reads or changes content, or
 * changes feeds first waits for all tickets. But only rlxvk_wait tells how the run of a ticket
 * ended. Once it has, the ticket is used up, whatever the status. Runs that are checked afterwards
 * (dense_solve, check_index) do not overlap, because submit waits for the one before. Errors are
 * those of rlxvk_run; E_SINGULAR, E_INDEX_OOB and E_RANGE come only from the wait. And:
 *   E_BUSY    max_in_flight tickets are outstanding already; nothing else has changed
 *   E_INDEX   wait: there is no such ticket, or it was waited for before */
typedef uint64_t rlxvk_ticket;
RLXVK_MUST_CHECK rlxvk_status rlxvk_submit(rlxvk_executable *executable,
                                           const rlxvk_run_input *inputs, size_t input_count,
                                           const rlxvk_run_output *outputs, size_t output_count,
                                           rlxvk_ticket *out_ticket);
RLXVK_MUST_CHECK rlxvk_status rlxvk_wait(rlxvk_executable *executable, rlxvk_ticket ticket);

/* Sets the random-number options from the next run or submission on (NULL: the defaults), or reads
 * them, with the step of that run. Neither waits. Graphs without random ops ignore them. E_ATTR:
 * there is no such backend. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_set_rng(rlxvk_executable *executable,
                                            const rlxvk_rng_options *options);
void rlxvk_get_rng(const rlxvk_executable *executable, rlxvk_rng_options *out_options);

#ifdef __cplusplus
}
#endif

#include <rlxvk_compile.h>
#include <rlxvk_handles.h>
#include <rlxvk_report.h>

#endif
