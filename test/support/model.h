/*
 * A model of the executable's contract in plain C, against which the library is tested. It
 * evaluates small graphs with exact values by its own formulas. It also tells what every call on an
 * executable does to params, inputs, handles and feeds. It uses only the public headers and does
 * not know how the library works.
 *
 * Each call returns the set of statuses that the library's call may return. If the set is {OK}, the
 * model has done the call; otherwise nothing has changed. If several errors apply, the set has all
 * of them, because the contract does not fix their order.
 */
#ifndef RLXVK_MODEL_H
#define RLXVK_MODEL_H

#include <rlxvk_ops.h>

#define MODEL_MAX_NODES   12
#define MODEL_MAX_WORDS   16
#define MODEL_MAX_OUTPUTS 4

typedef uint64_t status_set;
#define STATUS_LIMIT 64
#define STATUS(s)    (UINT64_C(1) << (s))
#define ACCEPTED     STATUS(RLXVK_OK)

/* ---- Graphs (model_graph.c) ---- */

typedef enum model_op {
    MODEL_INPUT,
    MODEL_PARAM,
    MODEL_CONSTANT, /* number, number + 1, .. */
    MODEL_RESHAPE,
    MODEL_NARROW, /* rows from row `number` on */
    MODEL_COPY,
    MODEL_CAST,
    MODEL_ADD,
    MODEL_MULTIPLY,
    MODEL_ADD_ONE,
    MODEL_CLAMP, /* min(x, 100): keeps values exact if they are fed back */
    MODEL_CUMSUM,
    MODEL_MATMUL,
    MODEL_CONCAT, /* along the rows */
    MODEL_GATHER,
    MODEL_SCATTER_ADD,
    MODEL_WRITE_ROWS,
    MODEL_UNIFORM, /* random numbers in [0, 1) with key `number` */
    MODEL_SOLVE,
    MODEL_CONJUGATE,
    MODEL_NORM_SQUARED,
    MODEL_CUSTOM /* the custom op model_custom: a copy, made on the host */
} model_op;

/* Which values a leaf may have. */
typedef enum model_kind {
    MODEL_NUMBERS,
    MODEL_MATRIX, /* 2 x 2, singular or with an exact solution; not fed from outputs */
    MODEL_INDICES,
    MODEL_SOLUTION /* of a node: may not be finite, so it is never fed back */
} model_kind;

typedef struct model_node {
    model_op op;
    rlxvk_dtype dtype;
    rlxvk_shape shape;
    uint8_t inputs[3];
    uint8_t kind;
    const char *name; /* of leaves */
    int number;
} model_node;

typedef struct model_graph {
    const char *name;
    const model_node nodes[MODEL_MAX_NODES];
    uint8_t node_count;
    uint8_t outputs[MODEL_MAX_OUTPUTS], output_count;
    const char *on_host[2]; /* names of its ops that the option host_ops may list */
} model_graph;

static inline size_t model_host_ops(const model_graph *g)
{
    return (size_t)(g->on_host[0] != NULL) + (g->on_host[1] != NULL);
}

extern const model_graph model_graphs[];
extern const size_t model_graph_count;

/* How a tensor of this dtype is held: one word an element, two words, or one raw byte. */
typedef enum model_storage { MODEL_WORD, MODEL_PAIR, MODEL_RAW } model_storage;
model_storage model_storage_of(rlxvk_dtype dtype);
size_t model_numel(const rlxvk_shape *shape);
/* The number of values: one for each element, two for a complex element. */
size_t model_words(const model_node *n);
/* The root of a view, and the offset at which the view begins in it. */
uint8_t model_root(const model_graph *g, uint8_t id, size_t *out_offset);

rlxvk_status model_build(const model_graph *g, rlxvk_graph **out);

/* A custom op for graphs that use one. It fails if its first value is 8. */
extern const rlxvk_custom_op model_custom;

/* Events of a run that are reported only at its end. */
typedef struct model_events {
    bool singular, index_outside, custom_failed;
} model_events;

/* Computes node `id` from the values of its operands. For MODEL_WRITE_ROWS, `out` is the cache. */
void model_evaluate(const model_graph *g, uint8_t id, const float *const operands[3],
                    const rlxvk_rng_options *rng, float *out, model_events *events);

/* ---- Executables (model.c) ---- */

typedef struct model_cell {
    float words[MODEL_MAX_WORDS]; /* raw bytes as numbers */
    bool written;                 /* by any executable that shares it */
    unsigned writes;              /* all writes, also by runs that restore a handle */
    unsigned changes;             /* without those restores, and in-place writes to params */
    unsigned references;
} model_cell;

typedef struct model_leaf {
    bool live; /* false if the compiler dropped it as dead */
    bool in_place;
    bool bound, resident;
    unsigned seen; /* the cell's `changes` when this executable last changed it */
    float mirror[MODEL_MAX_WORDS];
    int feed, row_feed; /* index of the output, or -1 if there is none */
    bool feed_prefix;
} model_leaf;

typedef struct model_executable {
    const model_graph *graph;
    bool allow_unset, check_index, keep_all;
    unsigned max_in_flight, in_flight;
    model_cell *cells[MODEL_MAX_NODES]; /* of roots */
    model_leaf leaves[MODEL_MAX_NODES]; /* of inputs and params */
    rlxvk_rng_options rng;
    int64_t extent_actual, extent_upper; /* 0 and 0: none */
    bool ran;
    /* Outputs of the last run, before its feeds, and how often each output's memory was written by
     * then. */
    float outputs[MODEL_MAX_OUTPUTS][MODEL_MAX_WORDS];
    unsigned writes[MODEL_MAX_OUTPUTS];
} model_executable;

/* The type of a caller's buffer. */
typedef struct model_type {
    rlxvk_dtype dtype;
    bool f32_words;
} model_type;

/* What a caller's buffer holds after a call. */
typedef struct model_bytes {
    uint8_t bytes[8 * MODEL_MAX_WORDS];
    size_t size;
} model_bytes;

/* ACCEPTED, or the errors if inputs cannot be shared with `other` as the options ask. */
status_set model_sharing_allows(const model_graph *g, const rlxvk_compile_options *options,
                                const model_executable *other);
/* Does what rlxvk_compile does with these options. `other` is their share_with. */
model_executable *model_compile(const model_graph *g, const rlxvk_compile_options *options,
                                const model_executable *other);
model_executable *model_clone(const model_executable *e);
void model_destroy(model_executable *e);
/* Whether both executables share some memory. */
bool model_shares(const model_executable *a, const model_executable *b);

status_set model_set_params(model_executable *e, const rlxvk_param_item *items, size_t count);
/* The data of set_param or set_param_bytes, converted to an item of rlxvk_set_params. */
rlxvk_param_item model_item_of_values(const model_executable *e, const char *name,
                                      const float *values, size_t length, status_set *refused);
rlxvk_param_item model_item_of_bytes(const model_executable *e, const char *name, const void *bytes,
                                     size_t length, status_set *refused);
status_set model_read_param(const model_executable *e, const char *name, model_type type,
                            size_t length, model_bytes *out);

/* The errors of a run before it begins; empty if there are none. If ACCEPTED is among them, the
 * library may run or refuse. */
status_set model_refusals(const model_executable *e, const rlxvk_run_input *inputs, size_t n,
                          const rlxvk_run_output *outputs, size_t m);
/* Runs. Returns how the run ends, and its outputs. After E_CUSTOM the run has ended half way:
 * the model is unchanged, but the executable agrees with it only after a run that is given every
 * input. */
status_set model_run(model_executable *e, const rlxvk_run_input *inputs, size_t n,
                     const rlxvk_run_output *outputs, size_t m, model_bytes *results);

status_set model_bind(model_executable *e, const char *name, const void *data, size_t length,
                      model_type type);
status_set model_unbind(model_executable *e, const char *name);
bool model_has_handle(const model_executable *e, const char *name);
status_set model_read_handle(const model_executable *e, const char *name, model_type type,
                             size_t length, model_bytes *out);
status_set model_read_fed_output(const model_executable *e, const char *name, model_type type,
                                 size_t length, model_bytes *out);
status_set model_set_feed(model_executable *e, const char *name, size_t index, bool prefix);
status_set model_clear_feed(model_executable *e, const char *name);
/* If both are 0, clears the extent. */
status_set model_set_extent(model_executable *e, int64_t actual, int64_t upper);
status_set model_register_row_feed(model_executable *e, const char *name, size_t index);
status_set model_feed_rows(model_executable *e, size_t source_row, size_t target_row,
                           size_t row_elements);
status_set model_read_output_row(const model_executable *e, size_t index, size_t row,
                                 size_t row_elements, rlxvk_dtype dtype, model_bytes *out);

/* Whether an output holds the result of the last run. The contract promises nothing before the
 * first run, and after another call has written an input of which the output is a view. */
bool model_is_settled(const model_executable *e, size_t index);

/* The node of that input or param, or -1 if there is none. */
int model_find(const model_executable *e, model_op op, const char *name);

#endif
