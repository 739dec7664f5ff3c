/*
 * Ops and their families. An op is a row of op.def. Its family gives it a meaning: one const struct
 * of functions in one file. The file has them in this order: the comment with the formula, the
 * builder calls, infer and the other functions of shapes, views and memory, lower, host, the
 * functions of rows, derivative and checks, describe, the struct. A family's own functions are
 * named <family>_<member>; the member's group is left out.
 *
 * Only runtime/op/ switches over op kinds. plan/ and exec/ name no op: if they need to know
 * something of one, it is a member of the family. Lowering turns a node into dispatches, which are
 * plain data. This header does not know Vulkan.
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

/* What a dispatch may write to the bytes of an operand that it reads, through another binding. */
enum operand_overlap {
    OVERLAP_ANY,   /* anything: it is the lowering's own binding, which knows what shares bytes */
    OVERLAP_NONE,  /* nothing */
    OVERLAP_FIRST, /* the result, in exactly the same place; each element is read before it is
                    * written (the family's in_place) */
    OVERLAP_APART  /* only elements between its own: other parts of the same value */
};

/* One binding of a dispatch: a range of a value's slot. Hazards are found from the same bytes. */
typedef struct operand {
    uint32_t value;       /* the slot's owner: a root node's id, or a temporary (>= node count) */
    uint32_t offset;      /* element offset of the view in the binding: pass it in the arguments */
    uint64_t first, size; /* the bound bytes of the slot; `first` is aligned for descriptors */
    uint8_t access;
    uint8_t storage; /* enum storage: words, pairs, raw bytes, packed halves */
    uint8_t overlap; /* enum operand_overlap */
} operand;

/* The order in which workgroups make the result. If only the first rows of a bucket are active, an
 * extent launches only the first workgroups (plan/extent.c). All zero: there is no such order. */
typedef struct group_order {
    /* Rows along axis 0 (axes of size 1 do not count). Every `run` workgroups make the next rows,
     * the same number of rows each time, except the last. They may divide the rows in another way,
     * too, if any launch of n * run workgroups makes the same rows as n such groups. */
    uint32_t run;
    /* Each group of `run` makes the next `lot` of `parts` equal parts. parts 0: unknown. */
    uint64_t parts, lot;
    /* The same for rows along an inner axis, for example in each matrix of a batch. `span` elements
     * of the result contain every row once. Each of the `cycles` sets of `cycle` workgroups makes
     * the rows of one span, or of several side by side. If `cycle` and `cycles` are 0, all launched
     * workgroups do so. Every rows_run of them make the next rows. */
    uint64_t span;
    uint32_t cycle, cycles, rows_run;
} group_order;

/* When a dispatch runs under an active extent (plan/extent.h). A node may have one kernel for few
 * rows and one for many. Without an extent, the kernel for many rows runs. */
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
    uint32_t node;           /* the node that it computes */
    const char *variant;     /* the row of its kernel kind; NULL if there is no choice */
    uint8_t source;          /* enum variant_source: who chose it */
    bool prepares;           /* a new layout of operands; runs skip it if they are weights */
    uint8_t turn;            /* enum dispatch_turn */
} dispatch;

/* A value that no node owns. Without content it is scratch memory. With content it is a constant,
 * for example a table, that a lowering computed. Constants are weights: they are uploaded once,
 * when the executable is made. */
typedef struct temporary {
    uint64_t bytes;
    void *content; /* owned; NULL for scratch memory */
} temporary;

/* The context of lowering. plan/schedule_lower.c makes it. */
typedef struct lowering {
    const rlxvk_graph *graph;
    const device_profile *profile;
    const struct value_map *values; /* root, offset and storage of every node (op/value.h) */
    rlxvk_precision precision;      /* for matrix products */
    bool matrix_in_lanes;           /* matrices at this precision lie as in matrix_layout.glsl */
    variant_set variants;           /* variants that the caller named */
    const struct tuning *tuning;    /* measured choices (op/choice/tuning.h); may be NULL */
    bool prepares;                  /* copied to each dispatch that is emitted */
    dispatch_turn turn;             /* likewise */
    uint64_t prepared_bytes;        /* how many bytes of weights may still be laid out anew */
    variant_choice choice;          /* the last choice, for this node */
    VECTOR(variant_query) queries;  /* all choices that were asked for */
    VECTOR(dispatch) dispatches;
    arena operands;                /* of all dispatches */
    VECTOR(temporary) temporaries; /* value id = node count + index */
} lowering;

/* The part of a slot that a node has: to read, to write, or both in place. The last is for an
 * operand that the op may overwrite. */
operand lower_read(const lowering *l, uint32_t node_id);
operand lower_write(const lowering *l, uint32_t node_id);
operand lower_update(const lowering *l, uint32_t node_id);
/* Narrows an operand to elements [first, first + count) of its view. o->offset then is the first of
 * them. */
void lower_narrow(const lowering *l, operand *o, uint64_t first, uint64_t count);
/* Strides of a node's elements, counted from its operand's offset. */
void lower_strides(const lowering *l, uint32_t node_id, int64_t out[RLXVK_MAX_RANK]);
/* The ends of the parts of a node's columns (column_ends). If it has no parts, both are the number
 * of columns. */
void lower_ends(const lowering *l, uint32_t node_id, uint32_t out[2]);
/* Operand `index` of node `id`, to read. Its `overlap` follows from the family's in_place. */
operand lower_input(const lowering *l, uint32_t id, uint32_t index);
/* The same bytes for a dispatch that only reads, only writes, or does both. */
static inline operand reading(operand o)
{
    o.access = ACCESS_READ;
    return o;
}
static inline operand writing(operand o)
{
    o.access = ACCESS_WRITE;
    return o;
}
static inline operand updating(operand o)
{
    o.access = ACCESS_READ | ACCESS_WRITE;
    return o;
}
/* Scratch memory. It lives from the first to the last dispatch of this step that uses it. Its
 * access is WRITE; dispatches that read it take reading() or updating() of it. */
rlxvk_status lower_temporary(lowering *l, uint64_t bytes, operand *out);
/* A constant with a copy of these bytes, to read as words. Constants with equal content share one
 * value. */
rlxvk_status lower_constant(lowering *l, const void *bytes, uint64_t size, operand *out);
/* SET_CONSTANTS(&d, {LOCAL_SIZE, 128}, {SOFTMAX_ROWS_QUADS, quads}) sets specialization constants.
 * lower_emit refuses a dispatch if a constant of its kernel is missing, or if it sets one that the
 * kernel does not have. */
typedef struct constant_value {
    uint32_t constant, value;
} constant_value;
void lower_set_constants(dispatch *d, const constant_value *values, size_t count);
#define SET_CONSTANTS(d, ...)                                                                      \
    lower_set_constants(d, (const constant_value[]){__VA_ARGS__},                                  \
                        sizeof((const constant_value[]){__VA_ARGS__}) / sizeof(constant_value))
/* Sets d->groups to at least `count` workgroups. If one dimension is too small, they fold into y
 * and then z. Kernels get the linear index from group_index() of common.glsl; surplus workgroups
 * must return. */
void lower_groups(const lowering *l, dispatch *d, uint64_t count);
/* For kernels whose workgroups make the result in order. The result has `parts` equal parts, and
 * each workgroup makes the next `lot` of them. */
void lower_groups_in_order(const lowering *l, dispatch *d, uint64_t parts, uint64_t lot);
/* `count` workgroups as a grid, folded if one dimension is too small. */
void lower_fold(const device_profile *profile, uint64_t count, uint32_t groups[3]);
/* Appends the dispatch with these arguments and operands. If it has no workgroups, it is dropped.
 *   E_ARITY       the size, the count or the constants are not those of its kernel
 *   E_TOO_LARGE   a dimension has more workgroups than the device allows */
rlxvk_status lower_emit(lowering *l, dispatch *d, const void *arguments, size_t size,
                        const operand *operands, uint32_t count);
/* The number of workgroups that cover the items. */
static inline uint64_t groups_for(uint64_t items, uint32_t per_group)
{
    return divide_up(items, per_group);
}

/* ---- The host side: fallback and reference ---- */

typedef struct host_tensor {
    const node *node;
    uint8_t storage;      /* WORD, PAIR or RAW; packed halves are widened before */
    const float *words;   /* WORD: numel, PAIR: 2 * numel */
    const uint8_t *bytes; /* RAW: numel */
} host_tensor;

typedef struct host_call {
    const node *node;
    const host_tensor *inputs; /* node->input_count of them */
    /* op_host_length() words, zeroed. First the result: numel, or 2 * numel for C64. Then the new
     * contents of the operands that the node writes in place. If the node is a view, the result
     * itself is the new content of operand 0. The caller rounds them to f32. */
    double *out;
    /* The accepted |got - out| of each word of `out`, if the row's atol and rtol do not say it. All
     * are -1 at first, which means "by the row". NULL: nobody asks. */
    double *bound;
    rlxvk_precision precision; /* `bound` allows for it; the result stays exact */
    bool is_step; /* a step of an executable: other steps read the rounded result. If a value is two
                     floats, the second is then what rounding takes from the first. */
} host_call;

/* Accepts any value of an element. The reference must become 0, because an infinite bound does not
 * open an infinite or NaN reference (evaluation.h). */
static inline void host_leave_open(const host_call *c, uint64_t element)
{
    if (c->bound) {
        c->out[element] = 0;
        c->bound[element] = INFINITY;
    }
}

/* A number of an options struct. 0 means the default, because a zeroed struct has it. A number too
 * small for a normal f32 counts as 0. NaN stays. */
static inline float op_number(float given, float otherwise)
{
    return given == 0 ? otherwise : fabsf(given) < 0x1p-126f ? 0 : given;
}

/* For a sum: `sizes` is the sum of the absolute values of its finite terms. If it exceeds the range
 * of f32, some orders of summation overflow and others do not. Then any value is accepted if the
 * reference is finite, and NaN is accepted if it is infinite. If all terms have one sign, every
 * order overflows. */
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

/* The value as a kernel sees it that counts denormals as 0. Kernels may do so. */
static inline double flush_denormal(double v)
{
    return fabs(v) < 0x1p-126 ? 0.0 * v : v;
}

/* ---- Families ---- */

/* An operand that holds indices. Element i is at least 0 and below limits[i % columns]. With
 * RLXVK_CHECK=index, a run with an invalid one fails with E_INDEX_OOB. */
typedef struct index_limits {
    uint32_t operand, columns;
    int64_t limits[RLXVK_MAX_RANK];
    int64_t base; /* the operand holds the indices less this (rewrite/split_experts.c) */
    bool skips;   /* negative indices are valid, too: they skip an element */
    bool idles;   /* NaN is valid, too */
} index_limits;

static inline index_limits index_limits_of(uint32_t operand, int64_t limit)
{
    return (index_limits){.operand = operand, .columns = 1, .limits = {limit}};
}

typedef struct gradient_call gradient_call; /* op/gradient.h */
typedef struct bucket_call bucket_call;     /* op/bucket.h */
typedef struct bucket_input bucket_input;   /* likewise */
typedef struct shorten_call shorten_call;   /* op/shorten.h */

/* The place of a tensor's elements: element c is at first + c . strides. Both count elements. */
typedef struct strided {
    uint64_t first;
    int64_t strides[RLXVK_MAX_RANK];
} strided;

/* The order of a tensor's axes beside that of another tensor with the same elements: axis i of the
 * first is axis place[i] of the other. So the first is the other, transposed by `place`. */
typedef struct axis_order {
    uint32_t rank;
    int32_t place[RLXVK_MAX_RANK];
} axis_order;

/* A result whose columns are stored in two or three parts, each a dense matrix behind the previous
 * one. `at` has the columns at which the first and the second part end. 0: there are no parts. See
 * glsl/lib/parts.glsl. */
typedef struct column_ends {
    uint32_t at[2];
} column_ends;

/* The flags of a node after a run: how many there are, how many are not 0, and the index and value
 * of the first of those. */
typedef struct run_flags {
    uint64_t count, bad, first;
    float value;
} run_flags;

/* A loop: the nodes between one that opens it and one that closes it. The opening node is operand 0
 * of the closing node. */
typedef struct op_loop {
    uint64_t times;
    uint32_t stop; /* operand of the closing node. If its first word is 0, no further step changes
                    * anything. NODE_NONE: there is none */
} op_loop;

#define OP_MOST_SIZES RLXVK_MAX_RANK

/* Members of one concern form a group; a family names only the groups that it takes part in. The
 * members stand in the order in which a family's file has them. */
typedef struct op_family {
    const char *name;
    size_t attribute_size; /* of the family's struct. infer normalizes it: axes are not negative,
                            * defaults are filled in */
    /* Checks a node that has its op, inputs and attributes, and fills in shape and dtype. It may
     * normalize the attributes in place. */
    rlxvk_status (*infer)(const rlxvk_graph *g, node *n, void *attributes);
    /* Points to each size in the attributes as a builder call gave them, and returns their number.
     * Such a size may be symbolic. NULL: there are none. */
    uint32_t (*sizes)(void *attributes, int64_t *out[OP_MOST_SIZES]);
    /* For nodes with symbols: makes a choice that infer made for AUTO permanent, so that no size
     * changes it later. It writes the choice into the attributes as given. It is called for each
     * example; E_ATTR if an earlier example chose otherwise. NULL: there are no such choices. */
    rlxvk_status (*settle)(const node *n, void *given, const void *inferred);

    /* In what form elements are stored, if not as words. */
    struct {
        uint32_t raw_inputs;  /* bit i: operand i may be raw bytes; bit 31: so may all later ones */
        uint32_t half_inputs; /* bit i: operand i may be a packed F16/BF16 leaf */
        bool pairs;           /* C64 operands allowed; else op_check fails with E_DTYPE */
        bool keeps_storage;   /* the result is stored as operand 0 is: raw bytes stay raw bytes */
        bool reinterprets;    /* a view of the same words as another dtype; its operand is not
                               * packed */
    } storage;

    /* Which results and operands may lie in memory of other nodes (op/view.h, op/strided.h). */
    struct {
        /* Whether the node is a view of operand 0, and its element offset there. NULL: never. */
        bool (*view)(const rlxvk_graph *g, const node *n, uint64_t *out_offset);
        /* For nodes that only select or reorder elements of operand 0: where a view of them lies.
         * *at holds the place of the operand's elements and becomes the place of the node's.
         * Returns false if no strides can express it. If the node cannot be a view, the family
         * copies, and it reads the operand at any strides. NULL: the node does more than that. */
        bool (*strided_view)(const rlxvk_graph *g, const node *n, strided *at);
        /* Whether the node can read operand i at these strides, or write its result at them if i is
         * input_count. NULL: it cannot. */
        bool (*accepts_strides)(const rlxvk_graph *g, const node *n, uint32_t i,
                                const int64_t *strides);
        /* Whether the result may be written in parts of its columns (lower_ends). NULL: never. */
        bool (*writes_parts)(const rlxvk_graph *g, const node *n);
        /* Whether the result is the operands one after the other. If so, the producer of an operand
         * can write it there directly. NULL: never. */
        bool (*concatenates)(const node *n);
        /* Whether the node can compute the same from operands whose axes have another order. *order
         * holds that of operand 0 as it is, beside the new one, and becomes that of the result.
         * The other operands have the same order; if the family is elementwise, they may have fewer
         * axes or broadcast. Changes the attributes. NULL: it cannot. */
        bool (*reorder)(const node *n, axis_order *order, void *attributes);
    } views;

    /* Operands that the node overwrites, and the order that follows. */
    struct {
        /* Bit i: operand i is read and written in place. It is a leaf or a carry of a loop. If the
         * node is a view (of operand 0), its result is that operand's new content. NULL: it writes
         * none. */
        uint32_t (*writes)(const node *n);
        /* Bit i: the result may take operand i's slot, if nobody reads that operand later and it
         * has the result's size. NULL: none. */
        uint32_t (*in_place)(const rlxvk_graph *g, const node *n);
        bool replaces; /* if it has two operands: the first becomes a copy of the second */
        bool waits;    /* a view whose readers run after operand 1; it does not read operand 1 */
    } memory;

    /* The nodes from the one that opens a loop up to the one that closes it are the loop. */
    struct {
        bool opens;
        /* Whether the node closes a loop, and how many steps that has. NULL: it closes none. */
        bool (*closes)(const node *n, op_loop *out);
    } loop;

    /* What computes the node: dispatches, or the host. */
    struct {
        bool foldable;      /* pure: computed at compile time if all operands are constants */
        bool elementwise;   /* one dispatch; the writer of an element is its only reader */
        bool matrix_layout; /* at precision F16 or BF16, lowering asks for the matrix layout */
        /* Bit i: of operand i only the rows are read that the indices name (checks.indices). */
        uint32_t indexed_inputs;
        /* Whether this node has a kernel or a host function, if that depends on the node. NULL: it
         * has one if `lower` or `host` is set. */
        bool (*has_kernel)(const node *n);
        bool (*has_host)(const node *n);
        /* Emits the node's dispatches. It is not called for views and empty results, unless the
         * node writes an operand in place. NULL for leaves and for families with only views. */
        rlxvk_status (*lower)(lowering *l, uint32_t id);
        /* Emits the dispatches of `first` and of this node, its reader, as one step. NULL: it
         * cannot. */
        rlxvk_status (*lower_pair)(lowering *l, uint32_t first, uint32_t id);
        rlxvk_status (*host)(const host_call *call);
    } execution;

    /* Operands with rows of a bucket, of which a run may use only the first ones. */
    struct {
        /* The span of the result, if an operand has rows of a bucket (op/bucket.h). In other words,
         * the part of the result that depends only on the first rows. NULL for leaves, which have
         * no operand, and for families that do not support it. */
        uint64_t (*bucket)(bucket_call *call);
        /* Builds a node that ends its rows at the extent, if `bucket` finds that the node computes
         * across rows (op/shorten.h). RLXVK_NONE if that is not possible; the call then has the
         * reason. NULL: never. */
        rlxvk_tensor (*shorten)(shorten_call *call);
    } rows;

    /* If neither member can pass a gradient on, rlxvk_grad fails with E_UNSUPPORTED. */
    struct {
        /* Passes the gradient of the result on to the operands (op/gradient.h). NULL: there is
         * none. */
        rlxvk_status (*vjp)(gradient_call *call);
        /* Appends simpler ops with the same result, through which the gradient then flows.
         * RLXVK_NONE if the node is simple already; then vjp is asked, as if this were NULL. */
        rlxvk_tensor (*expand)(rlxvk_graph *g, const node *n);
        bool straight_through; /* gradients flow through, although the result has integers */
    } derivative;

    /* Faults of contents, which no shape shows. */
    struct {
        /* The indices that an operand may hold, for RLXVK_CHECK=index. NULL: no operand holds
         * indices. */
        index_limits (*indices)(const rlxvk_graph *g, const node *n);
        /* How many elements of the result, from *out_first on, are flags. They are read after each
         * run. If one is not 0, the run fails with flag_error. NULL: there are none. */
        uint64_t (*flags)(const node *n, uint64_t *out_first);
        rlxvk_status (*flag_error)(const node *n, const char *label, const run_flags *found);
        /* Checks `count` elements that are about to be uploaded as operand `operand`. They are
         * bytes if the operand is RAW, else f32 words. E_RANGE if no packer would write them
         * (check_packed). NULL: any content is valid. */
        rlxvk_status (*check_content)(const node *n, uint32_t operand, const void *data,
                                      uint64_t count);
    } checks;

    /* Appends the attributes as " key=value" for dumps. NULL: it has none. */
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
/* Whether the node has no host function. */
static inline bool node_lacks_host(const node *n)
{
    const op_family *family = node_row(n)->family;
    return !family->execution.host ||
           (family->execution.has_host && !family->execution.has_host(n));
}
/* Whether the node is an input that the library itself added and fills: the random state, or the
 * count of active rows. */
bool op_is_own_input(const node *n);
/* The own input of this name and number of words. If it is missing, it is added. NODE_NONE if the
 * graph has failed. */
uint32_t op_own_input(rlxvk_graph *g, const char *name, int64_t words);

/* Leaves: the caller gives an input for each run and sets a param once; a constant is part of the
 * graph. */
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
/* The input or the param of this name; NODE_NONE if there is none. */
static inline uint32_t op_find_input(const rlxvk_graph *g, const char *name)
{
    return graph_find(g, OP_input, name);
}
static inline uint32_t op_find_param(const rlxvk_graph *g, const char *name)
{
    return graph_find(g, OP_param, name);
}
/* Bit i: operand i is read and written in place. */
static inline uint32_t node_writes(const node *n)
{
    const op_family *family = node_row(n)->family;
    return family->memory.writes ? family->memory.writes(n) : 0;
}
/* Whether it writes a leaf in place. Writing the carry of a loop does not count, because only
 * readers in the loop see it. */
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
    return family->loop.closes && family->loop.closes(n, out);
}
/* A value that is set before the first run and stays, unless an op writes it in place. */
static inline bool node_is_weight(const node *n)
{
    return node_is_param(n) || node_is_constant(n);
}
/* OP_COUNT if there is no such row. */
op_kind op_find(const char *name);

/* ---- Building and checking (op/node_check.c, op/build.c) ---- */

/* status_fail() with the op in front: its row and its name. While the node is being built, also the
 * number that it would get and the names of its operands. */
rlxvk_status op_fail(const node *n, rlxvk_status status, const char *format, ...) FORMATS(3, 4);
/* "matmul (node 57)": a builder call, by the number that its node would get. Returns `buffer`. */
#define CALL_LABEL 96
const char *op_call_label(const rlxvk_graph *g, const char *row, char buffer[CALL_LABEL]);
/* Reads a builder's options by their struct_size (base/sized.h). NULL gives all defaults. Returns
 * false if the graph is not ready or the options are invalid; such an error sticks to the graph. */
bool op_take(rlxvk_graph *g, const char *row, const sized *type, const void *given, void *own);
/* Checks the operands (they exist, their count, their storage). Only if they are right, it calls
 * infer, for shape and dtype in *n. Then it checks the shape, so infer need not: E_SHAPE if a dim
 * is negative, E_TOO_LARGE from 2^31 elements on. The node is not appended. */
rlxvk_status op_check(const rlxvk_graph *g, node *n, void *attributes);
/* Appends a node as a builder call gave it; its sizes may be symbolic. It is checked, and its
 * attributes are normalized in place. NODE_NONE on failure, which sticks to the graph. */
uint32_t op_append_given(rlxvk_graph *g, const node *given, void *attributes);
/* The same for a leaf that needs no check, because it comes from another graph or the library adds
 * it. */
uint32_t op_append_leaf(rlxvk_graph *g, const node *leaf);
/* Points to the dims of a shape, for `sizes` of families. */
uint32_t op_shape_sizes(rlxvk_shape *s, int64_t *out[OP_MOST_SIZES]);
/* Called by the public builders. Optional tensors with id 0 are left out, and those behind them
 * move up. If infer cannot tell from the count which are given, the builder notes it in the
 * attributes. These are copied after infer. */
rlxvk_tensor op_build(rlxvk_graph *g, op_kind op, const rlxvk_tensor *inputs, size_t count,
                      void *attributes);
/* The same for rewrites, by node id. NODE_NONE on failure, which sticks to the graph. */
uint32_t op_append(rlxvk_graph *g, op_kind op, const uint32_t *inputs, size_t count,
                   void *attributes, const char *name);
/* Appends a node of another graph again, with these operands. `adapt` may change the copy of the
 * attributes that the new node gets; it may be NULL. */
uint32_t op_append_again(rlxvk_graph *g, const node *n, const uint32_t *inputs,
                         void (*adapt)(const node *n, void *attributes));

/* Checks a whole graph again: ids, order, number of operands, inferred shapes, names, outputs. */
rlxvk_status op_verify(const rlxvk_graph *g);
/* One line: "%12 softmax 'attn.3' f32 2x8x64x64 (%11) axis=3". */
void op_node_describe(const rlxvk_graph *g, uint32_t id, text *out);

/* The number of this node's original in the graph as the caller built it, so that the caller can
 * find it there. */
static inline uint32_t op_node_origin(const rlxvk_graph *g, uint32_t id)
{
    uint32_t origin = graph_node(g, id)->origin;
    return origin ? origin - 1 : id;
}
/* "softmax 'attn.3' (node 12)", for errors and logs. The op and the number are the original's. If a
 * rewrite replaced it, the new op follows: "relu (node 12, in fused_matmul_bias_act)". Returns
 * `buffer`. */
#define NODE_LABEL 384
const char *op_node_label(const rlxvk_graph *g, uint32_t id, char buffer[NODE_LABEL]);

/* Makes a negative axis a + rank. E_AXIS if it is out of range. Rank 0 takes 0 and -1. */
rlxvk_status op_axis(const node *n, int32_t axis, uint32_t rank, int32_t *out);
/* E_DTYPE unless operand `index` has this dtype. `remedy` tells the user how to fix it. */
rlxvk_status op_require_dtype(const rlxvk_graph *g, const node *n, uint32_t index,
                              rlxvk_dtype wanted, const char *remedy);
/* E_SHAPE unless operand i has this shape. `role` names the operand. */
rlxvk_status op_require_shape(const rlxvk_graph *g, const node *n, uint32_t i, const char *role,
                              rlxvk_shape wanted);
/* E_SHAPE unless operand i has `length` elements, and at most one dim that is not 1. `like` names
 * what has the same length, for example "channels". */
rlxvk_status op_require_vector(const rlxvk_graph *g, const node *n, uint32_t i, const char *role,
                               int64_t length, const char *like);
/* E_ATTR unless operand i may be written in place: it is an input or a param, and not also another
 * operand. */
rlxvk_status op_require_writable(const rlxvk_graph *g, const node *n, uint32_t i);
/* For `in_place` of a family: only operand 0. The op must have read all that it needs of an element
 * before it writes there. */
uint32_t op_first_in_place(const rlxvk_graph *g, const node *n);
static inline const rlxvk_shape *input_shape(const rlxvk_graph *g, const node *n, uint32_t i)
{
    return &graph_node(g, n->inputs[i])->shape;
}
static inline rlxvk_dtype input_dtype(const rlxvk_graph *g, const node *n, uint32_t i)
{
    return (rlxvk_dtype)graph_node(g, n->inputs[i])->dtype;
}
/* A shape as [outer, length, inner] around one axis. */
typedef struct axis_view {
    uint64_t outer, length, inner;
} axis_view;
axis_view op_axis_view(const rlxvk_shape *s, int32_t axis);
/* For ops that have only an axis; infer makes it non-negative. */
typedef struct axis_attributes {
    int32_t axis;
} axis_attributes;
/* For `reorder` of such a family, and of a family without attributes of axes. */
bool op_reorder_axis(const node *n, axis_order *order, void *attributes);
bool op_reorder_none(const node *n, axis_order *order, void *attributes);
/* For `describe` of such a family. */
void op_describe_axis(const node *n, text *out);
/* How the plan stores a node: RAW for U8/I8 leaves, their views, and results of ops
 * with keeps_storage; PAIR for C64, else WORD. The plan chooses which leaves are halves. */
storage op_node_storage(const rlxvk_graph *g, uint32_t id);
/* The number of words that the family's host function fills (host_call.out). */
uint64_t op_host_length(const rlxvk_graph *g, const node *n);

#endif
