/* Matrix products, for all ops that use them: the problem behind a node, and calls that emit
 * products. */
#ifndef RLXVK_MATMUL_H
#define RLXVK_MATMUL_H

#include "args/projection.h"
#include "op/matmul/matmul_choice.h"
#include "op/op.h"

typedef struct matmul_attributes {
    bool transpose_a, transpose_b;
    rlxvk_activation activation; /* only for MATMUL_BIAS_ACT */
    bool ends_early;             /* runs may need only the first rows (rewrite/pack_rows.c) */
} matmul_attributes;

#define MATMUL_BATCH_AXES 6
#define MATMUL_BAND       8 /* rows of tiles that are computed together, for the cache */

typedef struct matmul_axis {
    uint64_t extent, a_stride, b_stride; /* in elements; a stride is 0 if the operand repeats */
} matmul_axis;

typedef struct matmul_problem {
    matmul_shape shape;
    matmul_axis axes[RLXVK_MAX_RANK]; /* of the batch, innermost first; none has extent 1 */
    uint32_t axis_count;
} matmul_problem;

/* Rows and columns of a matrix operand as the product reads it. `transposed` swaps the last two
 * axes. */
void matmul_dims(const rlxvk_shape *s, bool transposed, int64_t *rows, int64_t *columns);
/* Makes the problem from operand shapes that infer has accepted. It joins adjacent batch axes if
 * both operands allow that. It folds batch axes into m if only a moves along them. */
void matmul_problem_make(const rlxvk_shape *a, const rlxvk_shape *b, bool transpose_a,
                         bool transpose_b, matmul_problem *out);

/* The parts of a projection other than its product, for one row of x (op/packed/projection.c). */
typedef struct projection_parts {
    uint32_t bits; /* PROJECTION_... */
    float epsilon;
    operand gamma, residual; /* if absent, any operand that can be bound */
} projection_parts;

static inline struct projection_args projection_arguments(const projection_parts *parts)
{
    if (!parts)
        return (struct projection_args){0};
    return (struct projection_args){parts->gamma.offset, parts->residual.offset, parts->epsilon};
}

/* Rows [first, first + count) of a b that is [n, k]. Their memory has room for `room` rows. */
typedef struct matmul_rows_of_b {
    uint64_t first, count, room;
    bool in_blocks; /* as matrix_block_pack writes halves; then all rows, and `room` is filled */
} matmul_rows_of_b;

/* One product that is emitted as part of any node's work: y = activation(a b + bias). The bias has
 * one element per column. */
typedef struct matmul_request {
    matmul_problem problem;
    operand a, b, y;
    const operand *bias; /* NULL: none */
    uint64_t y_row;      /* elements from one row of y to the next; 0: n */
    uint32_t ends[2];    /* ends of the column parts of y (lower_ends); 0: y is whole */
    uint32_t activation; /* UNARY_... */
    bool exact;          /* f32, whatever precision was asked for */
    bool ends_early;     /* as in matmul_attributes */
    bool in_blocks;      /* packed weights are decoded as blocks, if matrix_direct takes them */
    /* Set if b is not an operand but packed weights, [n, k] without a batch. It decodes rows of
     * them to `out`. If `out` is not an operand yet, it makes a temporary of words or halves first,
     * as `storage` (MATMUL_...) says. */
    rlxvk_status (*unpack_b)(lowering *l, uint32_t id, uint32_t storage, matmul_rows_of_b rows,
                             operand *out);
} matmul_request;

/* How an operand is stored: MATMUL_WORDS, MATMUL_F16 or MATMUL_BF16. */
static inline uint32_t matmul_storage_code(const lowering *l, const operand *o)
{
    if (o->storage != STORAGE_HALF)
        return MATMUL_WORDS;
    return graph_node(l->graph, o->value)->dtype == RLXVK_F16 ? MATMUL_F16 : MATMUL_BF16;
}
/* The ends of y's column parts for a kernel. `row` is the number of elements in a row of y; if y is
 * whole, both ends are `row`. */
static inline void matmul_set_ends(const matmul_request *r, uint64_t row, uint32_t out[2])
{
    for (int i = 0; i < 2; i++)
        out[i] = r->ends[0] ? r->ends[i] : (uint32_t)row;
}
rlxvk_status matmul_emit(lowering *l, uint32_t id, const matmul_request *r);
/* How many bytes packed weights may take when they are decoded to f32 in parts, for each of two
 * buffers. Process-wide, so that tests can make it small. */
extern uint64_t matmul_unpacked_bytes;
/* Emits r->y = activation(sum of `splits` partial results + bias). The results lie one after the
 * other in `partial`. */
rlxvk_status matmul_emit_sum(lowering *l, uint32_t id, const matmul_request *r, operand partial,
                             uint64_t splits);
/* Emits y = the sum of `parts` vectors of `count` elements. They lie one after the other in
 * `partial` and are added in that order. */
rlxvk_status matmul_emit_plain_sum(lowering *l, uint32_t id, operand partial, uint64_t parts,
                                   uint64_t count, operand y);
/* Can matmul_emit_projection do the shape on this device, and should it? If the caller named a row
 * of matvec (`named`), it should whenever it can. */
bool matmul_projects(const matmul_shape *s, const device_profile *profile, bool named);
/* Emits the product with the parts of a projection, as one dispatch. */
rlxvk_status matmul_emit_projection(lowering *l, uint32_t id, const matmul_request *r,
                                    const projection_parts *parts);

rlxvk_status matmul_host(const host_call *call);
/* How much a precision (see rlxvk_precision) may add to the error of a sum of `terms` products. The
 * operands are at most `a` and `b`, and the magnitudes of the products sum up to `magnitude`. If a
 * 16-bit float cannot hold an operand, the bound is infinite. It is so even for small products,
 * because only the lowering knows whether they stay f32. */
double matmul_precision_bound(rlxvk_precision precision, double terms, double magnitude, double a,
                              double b);

/* Members of the family. */
rlxvk_status matmul_lower(lowering *l, uint32_t id);
uint64_t matmul_bucket(bucket_call *c);
rlxvk_tensor matmul_shorten(shorten_call *s);

#endif
