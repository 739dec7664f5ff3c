/*
 * What an op is: a row of op.def, and the family that gives the row its meaning. A family is one
 * const struct of functions in one file, in this order: what it computes (the file's comment), the
 * builder calls, infer and what goes with shapes, lower, host, describe, the struct. Its own
 * functions are <family>_<member>. Nothing outside runtime/op/ switches over op kinds, and plan/
 * and exec/ name none: what they need to know is a member of the family.
 *
 * lower turns a node into plain-data dispatches; nothing here knows Vulkan.
 */
#ifndef RLXVK_OP_H
#define RLXVK_OP_H

#include <float.h>
#include <math.h>
#include <rlxvk_ops.h>
#include "base/profile.h"
#include "base/sized.h"
#include "graph/graph.h"
#include "kernel/kernel.h"
#include "op/choice/variant.h"

typedef enum op_kind {
#define OP(row, ...) OP_##row,
#include "op/op.def"
#undef OP
    OP_COUNT
} op_kind;

enum leaf_code { LEAF_INPUT, LEAF_PARAM, LEAF_CONSTANT };
enum matmul_code { MATMUL_PLAIN, MATMUL_BIAS_ACT };
enum rope_code { ROPE_TURN, ROPE_TURN_BACK };
enum conv_code { CONV_FORWARD, CONV_TRANSPOSE, CONV_FUSED };
enum solve_code { SOLVE_ONE, SOLVE_BATCH };
enum softmax_code { SOFTMAX_VALUES, SOFTMAX_LOGARITHMS };
enum cumsum_code { RUNNING_SUM, RUNNING_PRODUCT };
enum softmax_loss_code { SOFTMAX_LOSS_FORWARD, SOFTMAX_LOSS_BACKWARD };
enum softmax_dense_code { SOFTMAX_DENSE_FORWARD, SOFTMAX_DENSE_BACKWARD };
enum pad_code { PAD_AMOUNTS, PAD_ROLL, PAD_TILE };
enum sort_code { SORT_VALUES, SORT_INDICES };
enum resize_code { RESIZE_FORWARD, RESIZE_BACKWARD };
enum histogram_code { HISTOGRAM_RANGE, HISTOGRAM_INDEX };
enum fft_real_code { FFT_REAL_FORWARD, FFT_REAL_INVERSE };

/* ---- Lowering: node -> dispatches ---- */

enum operand_access { ACCESS_READ = 1, ACCESS_WRITE = 2 };

/* An operand that the graph gives: what of its bytes the same dispatch may write. */
enum operand_overlap {
    OVERLAP_ANY,   /* not given, but the lowering's own: it knows which of its bindings meet */
    OVERLAP_NONE,  /* nothing of it */
    OVERLAP_FIRST, /* each element, from its place on in the result, once it has been read: the
                    * family's in_place */
    OVERLAP_APART  /* elements in between its own */
};

/* One binding of a dispatch: a range of the slot of a value. Hazards are judged by these same
 * bytes. */
typedef struct operand {
    uint32_t value;  /* slot owner: a root node's id, or a temporary (>= node count) */
    uint32_t offset; /* element offset of the view inside the binding: pass it in the arguments */
    uint64_t first, size; /* bytes of the slot that are bound; `first` is aligned for descriptors */
    uint8_t access;
    uint8_t storage; /* enum storage: words, pairs, raw bytes, packed halves */
    uint8_t overlap; /* enum operand_overlap */
} operand;

/* How workgroups go through the node's result, so that fewer make its first rows. All zero: in no
 * such order. */
typedef struct group_order {
    /* Every `run` of them, one lot after the other, make the next rows of the result (axis 0, those
     * of size 1 left out), as many each, but the last; or all that are launched share the rows of
     * as many lots. */
    uint32_t run;
    /* Each lot makes the next `lot` of `parts` equal parts of the result; parts 0: not known. */
    uint64_t parts, lot;
    /* The same for rows that lie within, as those of each matrix of a batch: where `span` elements
     * of the result have all rows once, each of `cycles` times `cycle` workgroups, or all that are
     * launched where these are 0, go through rows of one span, or of several side by side. Every
     * rows_run of them make the next rows. */
    uint64_t span;
    uint32_t cycle, cycles, rows_run;
} group_order;

/* When a dispatch runs, under an active extent (plan/extent.h). Kernels that are best for few rows
 * and for many may stand side by side; without an extent, those for many run. */
typedef enum dispatch_turn { TURN_ALWAYS, TURN_FEW_ROWS, TURN_MANY_ROWS } dispatch_turn;

typedef struct dispatch {
    uint16_t kernel;
    uint8_t operand_count;                    /* = kernel_bindings(), in binding order */
    uint32_t constants[KERNEL_MAX_CONSTANTS]; /* by the names in constants/; see SET_CONSTANTS */
    uint64_t constants_set;                   /* bit i: constant i has been set */
    uint32_t groups[3];
    group_order order;
    uint32_t argument_bytes;
    uint8_t arguments[KERNEL_MAX_ARGUMENT_BYTES];
    const operand *operands; /* operand_count of them; lower_emit keeps them in the lowering */
    uint32_t node;           /* whose work it is */
    const char *variant;     /* which row of its family's table; NULL where there is no choice */
    uint8_t source;          /* enum variant_source: who chose it */
    bool prepares;           /* lays operands out anew, which of weights need not be in every run */
    uint8_t turn;            /* enum dispatch_turn */
} dispatch;

/* A value that no node owns: scratch, or, with content, a constant that a lowering computed (a
 * table). Constants are weights: uploaded once, when the executable is made. */
typedef struct temporary {
    uint64_t bytes;
    void *content; /* owned; NULL: scratch */
} temporary;

/* The context of lowering; made by plan/schedule.c. */
typedef struct lowering {
    const rlxvk_graph *graph;
    const device_profile *profile;
    const struct value_map *values; /* root, offset and storage of every node (op/value.h) */
    rlxvk_precision precision;      /* of matrix products */
    bool matrix_in_lanes;           /* the precision's matrices lie as in matrix_layout.glsl */
    variant_set variants;           /* rows that the caller names */
    const struct tuning *tuning;    /* measured choices (op/choice/tuning.h); may be NULL */
    bool prepares;                  /* what is emitted now, too: see dispatch */
    dispatch_turn turn;             /* likewise */
    uint64_t prepared_bytes;        /* that what is laid out of weights may still take */
    variant_choice choice;          /* the last that was asked for, within this node */
    VECTOR(variant_query) queries;  /* all that were asked for */
    VECTOR(dispatch) dispatches;
    arena operands;                /* those of the dispatches */
    VECTOR(temporary) temporaries; /* value id = node count + index */
} lowering;

/* The slot view of a node, for reading, writing, or both in place (an operand its op may
 * overwrite). */
operand lower_read(const lowering *l, uint32_t node_id);
operand lower_write(const lowering *l, uint32_t node_id);
operand lower_update(const lowering *l, uint32_t node_id);
/* Narrows an operand to elements [first, first + count) of its view; o->offset then names the first
 * of them. */
void lower_narrow(const lowering *l, operand *o, uint64_t first, uint64_t count);
/* Strides of a node's elements, from its operand's offset on. */
void lower_strides(const lowering *l, uint32_t node_id, int64_t out[RLXVK_MAX_RANK]);
/* Where the parts of a node's columns end (column_ends); the number of columns where it is whole.
 */
void lower_ends(const lowering *l, uint32_t node_id, uint32_t out[2]);
/* Operand `index` of node `id`, for reading; what may be written over it, as the family's in_place
 * says. */
operand lower_input(const lowering *l, uint32_t id, uint32_t index);
/* Scratch that lives from this step's first dispatch that uses it to its last. access is WRITE; set
 * READ yourself. */
rlxvk_status lower_temporary(lowering *l, uint64_t bytes, operand *out);
/* A lowering constant with a copy of these bytes, for reading as words; equal contents share one
 * value. */
rlxvk_status lower_constant(lowering *l, const void *bytes, uint64_t size, operand *out);
/* SET_CONSTANTS(&d, {LOCAL_SIZE, 128}, {SOFTMAX_ROWS_QUADS, quads}): lower_emit refuses a dispatch
 * with a constant of its kernel left out, or one set that the kernel has not. */
typedef struct constant_value {
    uint32_t constant, value;
} constant_value;
void lower_set_constants(dispatch *d, const constant_value *values, size_t count);
#define SET_CONSTANTS(d, ...)                                                                      \
    lower_set_constants(d, (const constant_value[]){__VA_ARGS__},                                  \
                        sizeof((const constant_value[]){__VA_ARGS__}) / sizeof(constant_value))
/* Sets d->groups to at least `count` workgroups, folded into y (and z) where one dimension does not
 * suffice. The kernel's linear group is group_index() of common.glsl; surplus groups must return.
 */
void lower_groups(const lowering *l, dispatch *d, uint64_t count);
/* For a kernel whose workgroups go through the result in its order: it has so many equal parts, of
 * which each workgroup makes the next `lot`. */
void lower_groups_in_order(const lowering *l, dispatch *d, uint64_t parts, uint64_t lot);
/* `count` workgroups as a grid, folded where one dimension does not suffice. */
void lower_fold(const device_profile *profile, uint64_t count, uint32_t groups[3]);
/* Appends the dispatch with these arguments and operands. A dispatch of zero groups is dropped. */
rlxvk_status lower_emit(lowering *l, dispatch *d, const void *arguments, size_t size,
                        const operand *operands, uint32_t count);
/* How many workgroups cover so many items. */
static inline uint64_t groups_for(uint64_t items, uint32_t per_group)
{
    return divide_up(items, per_group);
}

/* ---- The host side: fallback and oracle ---- */

typedef struct host_tensor {
    const node *node;
    uint8_t storage;      /* WORD, PAIR or RAW; packed halves come widened */
    const float *words;   /* WORD: numel, PAIR: 2 * numel */
    const uint8_t *bytes; /* RAW: numel */
} host_tensor;

typedef struct host_call {
    const node *node;
    const host_tensor *inputs; /* node->input_count of them */
    /* op_host_length() words, zeroed: numel (2 * numel for C64) of the result, then the new
     * contents of the operands that the node writes in place. Rounded to f32 by the caller. */
    double *out;
    /* NULL, or as many as out: the largest |got - out| to accept, where the row's atol and rtol do
     * not say it. Given filled with -1, which means "by the row". */
    double *bound;
    rlxvk_precision precision; /* that `bound` is to allow for; the result stays exact */
} host_call;

/* Any value of the element is right. The value must go, too: an infinite bound of an infinite or
 * NaN value leaves nothing open (conform.h). */
static inline void host_leave_open(const host_call *c, uint64_t element)
{
    if (c->bound) {
        c->out[element] = 0;
        c->bound[element] = INFINITY;
    }
}

/* A number of an options struct: 0, as in a zeroed struct, is the default, and what is too small
 * for a normal f32 is 0. NaN stays. */
static inline float op_number(float given, float otherwise)
{
    return given == 0 ? otherwise : fabsf(given) < 0x1p-126f ? 0 : given;
}

/* For a sum whose finite terms have sizes that add up to `sizes`: in some order they pass the range
 * of f32, if not in all. What is finite by the reference may then be anything, what is infinite
 * may be NaN, too. */
static inline void host_judge_range(const host_call *c, uint64_t element, double sizes)
{
    double value = c->out[element];
    if (!c->bound || !(sizes > FLT_MAX) || fabs(value) == sizes)
        return;
    if (isfinite(value))
        host_leave_open(c, element);
    else if (isinf(value))
        c->bound[element] = INFINITY;
}

/* A value as kernels that count denormals as 0, which they may, see it. */
static inline double flush_denormal(double v)
{
    return fabs(v) < 0x1p-126 ? 0.0 * v : v;
}

/* ---- Families ---- */

/* Element i of an operand is an index from 0 to below limits[i % columns]. */
typedef struct index_limits {
    uint32_t operand, columns;
    int64_t limits[RLXVK_MAX_RANK];
    bool skips; /* one below 0 is in order: it leaves something out */
    bool idles; /* so is NaN */
} index_limits;

static inline index_limits index_limits_of(uint32_t operand, int64_t limit)
{
    return (index_limits){.operand = operand, .columns = 1, .limits = {limit}};
}

typedef struct gradient_call gradient_call; /* op/gradient.h */
typedef struct bucket_call bucket_call;     /* op/bucket.h */
typedef struct bucket_input bucket_input;   /* likewise */
typedef struct shorten_call shorten_call;   /* op/shorten.h */

/* Where a tensor's elements lie: element c at first + c . strides, counted in elements. */
typedef struct strided {
    uint64_t first;
    int64_t strides[RLXVK_MAX_RANK];
} strided;

/* A result whose columns lie in two or three parts, each a matrix of its own behind the one before:
 * behind which columns the first and the second end. 0: it is whole. glsl/lib/parts.glsl. */
typedef struct column_ends {
    uint32_t at[2];
} column_ends;

/* Of a node's flags: how many there are and are not 0, the first of these and its value. */
typedef struct run_flags {
    uint64_t count, bad, first;
    float value;
} run_flags;

/* How often a loop is gone through: what stands between the node that opens it and the one that
 * closes it, which has the first as operand 0. */
typedef struct op_loop {
    uint64_t times;
    uint32_t stop; /* operand of the closing node whose first word, once 0, says that no further
                    * step changes anything; NODE_NONE: none does */
} op_loop;

#define OP_MOST_SIZES RLXVK_MAX_RANK

/* In the order in which a family's file has them. */
typedef struct op_family {
    const char *name;
    size_t attribute_size; /* of the family's struct, normalized by infer: axes not negative,
                            * defaults filled */
    uint32_t raw_inputs;   /* bit i: operand i may be raw bytes; bit 31: all from there on */
    uint32_t half_inputs;  /* bit i: operand i may be a packed F16/BF16 leaf */
    bool pairs;            /* C64 operands allowed */
    bool foldable;         /* pure: computed at compile when every operand is a constant */
    bool matrix_layout;    /* lowering at precision F16 or BF16 asks how matrices lie in lanes */
    bool keeps_storage;    /* the result is held as operand 0 is: raw bytes stay raw bytes */
    bool straight_through; /* gradients flow through the result although it is of integers */
    bool reinterprets; /* as a view, gives the same words another dtype: none of a packed leaf */
    bool waits;        /* as a view: who reads it comes after operand 1, which is not read itself */
    bool elementwise;  /* one dispatch, in which only who writes an element reads what was there */
    bool replaces;     /* with two operands: the first becomes a copy of the second */
    bool opens_loop;   /* the nodes from behind this one to the one that closes it are a loop */

    /* Checks the candidate (op, inputs, attributes set) and fills shape and dtype; may normalize
     * the attributes in place. */
    rlxvk_status (*infer)(const rlxvk_graph *g, node *n, void *attributes);
    /* Sizes among the attributes as a builder call gives them, which may be symbolic: points to
     * each, returns how many. NULL: none are. */
    uint32_t (*sizes)(void *attributes, int64_t *out[OP_MOST_SIZES]);
    /* Of a node with symbols: writes the choices that infer made for AUTO at one example into the
     * attributes as given, so that no size changes them later; called with each example. E_ATTR if
     * an earlier one chose otherwise. NULL: there are none. */
    rlxvk_status (*settle)(const node *n, void *given, const void *inferred);
    /* Whether the node is a view of operand 0, and at which element offset. NULL: never. */
    bool (*view)(const rlxvk_graph *g, const node *n, uint64_t *out_offset);
    /* From where the elements of operand 0 lie to where those of the node do, which are some of
     * them. False where no strides say it. Who has this copies where the node is no view, from any
     * strides of the operand. NULL: the node is more than that. */
    bool (*look)(const rlxvk_graph *g, const node *n, strided *at);
    /* Whether operand i is read, or the result (i = input_count) written, where it lies at these
     * strides (op/strided.h). NULL: none is. */
    bool (*takes)(const rlxvk_graph *g, const node *n, uint32_t i, const int64_t *strides);
    /* Whether the result may be written in parts of its columns (lower_ends). NULL: never. */
    bool (*divides)(const rlxvk_graph *g, const node *n);
    /* Whether the result is the operands one after the other, so that what produces one may write
     * it there straight away. NULL: never. */
    bool (*joins)(const node *n);
    /* Bit i: operand i, a leaf or what a loop carries, is read and written in place. Where the node
     * is a view (of operand 0), the result is that operand's new content. NULL: writes none. */
    uint32_t (*writes)(const node *n);
    /* Whether the node closes a loop, and how often that is gone through. NULL: closes none. */
    bool (*closes_loop)(const node *n, op_loop *out);
    /* Bit i: the output may take operand i's slot when that operand dies here and has the output's
     * size. NULL: none. */
    uint32_t (*in_place)(const rlxvk_graph *g, const node *n);
    /* Whether this node has a kernel, or a host function, where that differs from node to node.
     * NULL: by the pointers. */
    bool (*has_kernel)(const node *n);
    bool (*has_host)(const node *n);
    /* Emits the node's dispatches. NULL for leaves and pure views. Not called for views or empty
     * results. */
    rlxvk_status (*lower)(lowering *l, uint32_t id);
    /* Emits the dispatches of `first` and of this node, its reader, as one step. NULL: cannot. */
    rlxvk_status (*lower_pair)(lowering *l, uint32_t first, uint32_t id);
    rlxvk_status (*host)(const host_call *call);
    /* What of the result the first rows of a bucket decide, where an operand depends on them
     * (op/bucket.h). NULL: only of leaves, which have no operand. */
    uint64_t (*bucket)(bucket_call *call);
    /* What the node is of rows that end at the extent, where `bucket` finds that it computes across
     * them; RLXVK_NONE: it does not end there, for the reason that the call has then
     * (op/shorten.h). NULL: never. */
    rlxvk_tensor (*shorten)(shorten_call *call);
    /* Hands on the gradient of the result to the operands (op/gradient.h). NULL: has none. */
    rlxvk_status (*vjp)(gradient_call *call);
    /* Appends simpler ops that give the node's result, whose gradients stand for its own. NULL, or
     * RLXVK_NONE for a node that is simple already: vjp is asked. */
    rlxvk_tensor (*expand)(rlxvk_graph *g, const node *n);
    /* What indices an operand may hold: for RLXVK_CHECK=index. NULL: none holds indices. */
    index_limits (*indices)(const rlxvk_graph *g, const node *n);
    /* How many elements of the result, from *out_first on, are flags, which are looked at after
     * each run: one that is not 0 makes it fail, as flag_error says. NULL: none are. */
    uint64_t (*flags)(const node *n, uint64_t *out_first);
    rlxvk_status (*flag_error)(const node *n, const char *label, const run_flags *found);
    /* Looks for what no packer writes (check_packed) in `count` elements about to be uploaded as
     * operand `operand`: bytes where it is RAW, else f32 words. E_RANGE. NULL: takes anything. */
    rlxvk_status (*check_content)(const node *n, uint32_t operand, const void *data,
                                  uint64_t count);
    /* Appends the attributes as " key=value" for dumps. NULL: none. */
    void (*describe)(const node *n, text *out);
} op_family;

typedef struct op_row {
    const char *name;
    const op_family *family;
    uint32_t code, fewest_inputs, most_inputs;
    double atol, rtol;
} op_row;

extern const op_row op_table[OP_COUNT];

static inline const op_row *node_row(const node *n)
{
    return &op_table[n->op];
}
static inline uint32_t node_code(const node *n)
{
    return op_table[n->op].code;
}
/* An input of the library's own, which runs write: the random state, or the count of active rows.
 */
bool op_is_own_input(const node *n);
/* The one of this name and so many words, added where it is not there yet; NODE_NONE: the graph has
 * failed. */
uint32_t op_own_input(rlxvk_graph *g, const char *name, int64_t words);

/* Leaves: what the caller gives each run, what it sets once, what the graph brings along. */
static inline bool node_is_input(const node *n)
{
    return n->op == OP_input;
}
static inline bool node_is_param(const node *n)
{
    return n->op == OP_param;
}
static inline bool node_is_constant(const node *n)
{
    return n->op == OP_constant;
}
/* The input or the param of this name; NODE_NONE when there is none. */
static inline uint32_t op_find_input(const rlxvk_graph *g, const char *name)
{
    return graph_find(g, OP_input, name);
}
static inline uint32_t op_find_param(const rlxvk_graph *g, const char *name)
{
    return graph_find(g, OP_param, name);
}
/* Operands read and written in place, as bits. */
static inline uint32_t node_writes(const node *n)
{
    const op_family *family = node_row(n)->family;
    return family->writes ? family->writes(n) : 0;
}
/* Whether it writes a leaf in place: what a loop carries is seen by the loop's readers alone. */
static inline bool node_has_effect(const rlxvk_graph *g, const node *n)
{
    uint32_t writes = node_writes(n);
    bool leaf = false;
    for (uint32_t i = 0; i < n->input_count && writes >> i && !leaf; i++)
        leaf = (writes >> i & 1) && graph_node(g, n->inputs[i])->input_count == 0;
    return leaf;
}
static inline bool node_closes_loop(const node *n, op_loop *out)
{
    const op_family *family = node_row(n)->family;
    return family->closes_loop && family->closes_loop(n, out);
}
/* What is set before the first run and stays, but for ops that write in place. */
static inline bool node_is_weight(const node *n)
{
    return node_is_param(n) || node_is_constant(n);
}
/* OP_COUNT when there is no such row. */
op_kind op_find(const char *name);

/* ---- Building and checking (op/build.c, op/append.c) ---- */

/* status_fail() with the op in front: its row, its name, and while it is being built the number it
 * would get and the names of its operands. */
rlxvk_status op_fail(const node *n, rlxvk_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* "matmul (node 57)": a call before its node is there, by the number it would get. Returns
 * `buffer`.
 */
#define CALL_LABEL 96
const char *op_call_label(const rlxvk_graph *g, const char *row, char buffer[CALL_LABEL]);
/* A builder's options, read by their struct_size (base/sized.h); NULL: all defaults. False: the
 * graph is not ready, or the options are not sound, which sticks to it. */
bool op_take(rlxvk_graph *g, const char *row, const sized *type, const void *given, void *own);
/* Checks operands (exist, count, storage) and infers shape and dtype into *n; the node is not
 * appended. */
rlxvk_status op_check(const rlxvk_graph *g, node *n, void *attributes);
/* Appends a node as a builder call gives it: checked, its sizes perhaps symbolic (attributes are
 * normalized in place). NODE_NONE on failure, which sticks. */
uint32_t op_append_given(rlxvk_graph *g, const node *given, void *attributes);
/* The same for a leaf that needs no check: one of another graph, or the library's own. */
uint32_t op_append_leaf(rlxvk_graph *g, const node *leaf);
/* Points to the dims of a shape, for `sizes` of families. */
uint32_t op_shape_sizes(rlxvk_shape *s, int64_t *out[OP_MOST_SIZES]);
/* What the public builders call: tensors (optional ones with id 0 are left out), attributes copied
 * after infer. */
rlxvk_tensor op_build(rlxvk_graph *g, op_kind op, const rlxvk_tensor *inputs, size_t count,
                      void *attributes);
/* The same for rewrites, by node id; NODE_NONE on failure (the graph's sticky error). */
uint32_t op_append(rlxvk_graph *g, op_kind op, const uint32_t *inputs, size_t count,
                   void *attributes, const char *name);

/* Checks a whole graph again (ids, order, arity, inferred shapes, names, outputs). */
rlxvk_status op_verify(const rlxvk_graph *g);
/* One line: "%12 softmax 'attn.3' f32 2x8x64x64 (%11) axis=3". */
void op_node_describe(const rlxvk_graph *g, uint32_t id, text *out);

/* The number of the node that this one stands for in the graph as it was built, where those who
 * built it can look it up. */
static inline uint32_t op_node_origin(const rlxvk_graph *g, uint32_t id)
{
    uint32_t origin = graph_node(g, id)->origin;
    return origin ? origin - 1 : id;
}
/* "softmax 'attn.3' (node 12)", for errors and logs: the op and number are the origin's, and what a
 * rewrite made of it follows: "relu (node 12, in fused_matmul_bias_act)". Returns `buffer`. */
#define NODE_LABEL 384
const char *op_node_label(const rlxvk_graph *g, uint32_t id, char buffer[NODE_LABEL]);

/* a + rank for a negative axis; E_AXIS outside. Rank 0 takes 0 and -1. */
rlxvk_status op_axis(const node *n, int32_t axis, uint32_t rank, int32_t *out);
/* E_DTYPE unless operand `index` has this dtype; `remedy`: what to do about it. */
rlxvk_status op_require_dtype(const rlxvk_graph *g, const node *n, uint32_t index,
                              rlxvk_dtype wanted, const char *remedy);
/* E_ATTR unless operand i may be written in place: a leaf that is no other operand. */
rlxvk_status op_require_writable(const rlxvk_graph *g, const node *n, uint32_t i);
/* As `in_place` of a family: operand 0 alone; whoever writes an element has read all it needs. */
uint32_t op_first_in_place(const rlxvk_graph *g, const node *n);
/* Shape of operand i. */
static inline const rlxvk_shape *input_shape(const rlxvk_graph *g, const node *n, uint32_t i)
{
    return &graph_node(g, n->inputs[i])->shape;
}
static inline rlxvk_dtype input_dtype(const rlxvk_graph *g, const node *n, uint32_t i)
{
    return (rlxvk_dtype)graph_node(g, n->inputs[i])->dtype;
}
/* [outer, n, inner] view of a shape around one axis. */
typedef struct axis_view {
    uint64_t outer, length, inner;
} axis_view;
axis_view op_axis_view(const rlxvk_shape *s, int32_t axis);
/* Of ops with nothing but an axis, made not negative by infer. */
typedef struct axis_attributes {
    int32_t axis;
} axis_attributes;
/* How the plan holds a node: RAW for U8/I8 leaves and their views, PAIR for C64, else WORD (halves
 * are the plan's choice). */
storage op_node_storage(const rlxvk_graph *g, uint32_t id);
/* Words that the family's host function fills (host_call.out). */
uint64_t op_host_length(const rlxvk_graph *g, const node *n);

#endif
