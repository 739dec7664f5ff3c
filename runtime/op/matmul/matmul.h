/* What matrix products share with what is made of them: the shape of the problem behind a node. */
#ifndef RLXVK_MATMUL_H
#define RLXVK_MATMUL_H

#include "args/projection.h"
#include "op/matmul/matmul_select.h"
#include "op/op.h"

typedef struct matmul_attributes {
    bool transpose_a, transpose_b;
    rlxvk_activation activation; /* MATMUL_BIAS_ACT only */
    bool ends_early;             /* runs may make the first rows only (rewrite/pack_rows.c) */
} matmul_attributes;

#define MATMUL_BATCH_AXES 6
#define MATMUL_BAND       8 /* rows of tiles that are walked together, for the cache */

typedef struct matmul_axis {
    uint64_t extent, a_stride, b_stride; /* elements; 0 where the operand repeats */
} matmul_axis;

typedef struct matmul_problem {
    matmul_shape shape;
    matmul_axis axes[RLXVK_MAX_RANK]; /* of the batch, innermost first; none of extent 1 */
    uint32_t axis_count;
} matmul_problem;

/* Rows and columns of a matrix operand as the product sees it. */
void matmul_dims(const rlxvk_shape *s, bool transposed, int64_t *rows, int64_t *columns);
/* From operand shapes that infer has accepted. Adjacent axes are joined where both operands allow
 * it, and axes along which only a moves are folded into m. */
void matmul_problem_make(const rlxvk_shape *a, const rlxvk_shape *b, bool transpose_a,
                         bool transpose_b, matmul_problem *out);

/* What a projection has beside its product, of one row of x (op/packed/projection.c). */
typedef struct projection_parts {
    uint32_t bits; /* PROJECTION_... */
    float epsilon;
    operand gamma, residual; /* anything that can be bound, where there is none */
} projection_parts;

static inline struct projection_args projection_arguments(const projection_parts *parts)
{
    if (!parts)
        return (struct projection_args){0};
    return (struct projection_args){parts->gamma.offset, parts->residual.offset, parts->epsilon};
}

/* Rows [first, first + count) of a b that is [n, k], in a place for `room` rows. */
typedef struct matmul_rows_of_b {
    uint64_t first, count, room;
} matmul_rows_of_b;

/* One product to be emitted as part of any node's work: y = activation(a b + bias), a bias per
 * column. */
typedef struct matmul_request {
    matmul_problem problem;
    operand a, b, y;
    const operand *bias; /* NULL: none */
    uint64_t y_row;      /* elements from one row of y to the next; 0: n */
    uint32_t ends[2];    /* of the parts of y (lower_ends); 0: it is whole */
    uint32_t activation; /* UNARY_... */
    bool exact;          /* f32 whatever the precision that was asked for */
    bool ends_early;     /* as in matmul_attributes */
    /* Where b is no operand but packed weights, [n, k] and no batch: decodes rows of them to `out`,
     * or, where that is no operand yet, to a temporary of words or halves (MATMUL_...). */
    rlxvk_status (*unpack_b)(lowering *l, uint32_t id, uint32_t storage, matmul_rows_of_b rows,
                             operand *out);
} matmul_request;

/* MATMUL_WORDS, MATMUL_F16 or MATMUL_BF16: how an operand is held. */
static inline uint32_t matmul_storage_code(const lowering *l, const operand *o)
{
    if (o->storage != STORAGE_HALF)
        return MATMUL_WORDS;
    return graph_node(l->graph, o->value)->dtype == RLXVK_F16 ? MATMUL_F16 : MATMUL_BF16;
}
/* The ends of y's parts as kernels are told them, of a y whose rows are `row` elements. */
static inline void matmul_set_ends(const matmul_request *r, uint64_t row, uint32_t out[2])
{
    for (int i = 0; i < 2; i++)
        out[i] = r->ends[0] ? r->ends[i] : (uint32_t)row;
}
rlxvk_status matmul_emit(lowering *l, uint32_t id, const matmul_request *r);
/* Of packed weights in f32, decoded at a time. Process-wide; tests make it small. */
extern uint64_t matmul_unpacked_bytes;
/* r->y = activation(sum of `splits` partial results + bias); `partial` holds them one behind the
 * other. */
rlxvk_status matmul_emit_sum(lowering *l, uint32_t id, const matmul_request *r, operand partial,
                             uint64_t splits);
/* y = the sum of `parts` times `count` elements that follow each other in `partial`, in order. */
rlxvk_status matmul_emit_plain_sum(lowering *l, uint32_t id, operand partial, uint64_t parts,
                                   uint64_t count, operand y);
/* Whether matmul_emit_projection can do the shape on a device, and is to. `named`: the caller named
 * a row of matvec, so that it is wherever it can. */
bool matmul_projects(const matmul_shape *s, const device_profile *profile, bool named);
/* The product with the parts of a projection, in one dispatch. */
rlxvk_status matmul_emit_projection(lowering *l, uint32_t id, const matmul_request *r,
                                    const projection_parts *parts);

rlxvk_status matmul_host(const host_call *call);
/* What a precision (see rlxvk_precision) may add to the error of a sum of `terms` products of
 * operands up to `a` and `b`, whose magnitudes sum up to `magnitude`. Whether a product is small
 * enough to stay f32 is the lowering's affair, so operands that f16 cannot hold may give anything.
 */
double matmul_precision_bound(rlxvk_precision precision, double terms, double magnitude, double a,
                              double b);

/* As the family's members. */
rlxvk_status matmul_lower(lowering *l, uint32_t id);
uint64_t matmul_bucket(bucket_call *c);
rlxvk_tensor matmul_shorten(shorten_call *s);

#endif
