/*
 * Determinants and inverses of square matrices a [.., N, N]:
 *
 *   det        det(a) [..]
 *   slogdet    sign, then ln |det(a)|: [2, ..]; the builder returns two slices
 *   cofactor   the gradient of det: y[i, j] = (-1)^(i + j) times the determinant of a without row i
 *              and column j; [.., N, N]
 *   inverse    [.., N, N]
 *
 * Rows and columns are first scaled by powers of two. The exponents of the scale and of the pivots
 * are added as integers, so no product overflows or underflows on the way.
 *
 * Cofactors: P S Q = L D W for the scaled matrix S, with complete pivoting and ones on the
 * diagonals of L and W. Then cof(S) = det(P) det(Q) P' L'^-1 cof(D) W'^-1 Q'. On the diagonal,
 * cof(D) has the products of the other pivots. So nothing is divided by a pivot that is 0, and a
 * matrix of rank N - 1 keeps its cofactors. If the rank is lower, all cofactors are 0. The inverse
 * is Q W^-1 D^-1 L^-1 P of the same factors, in the scale of the matrix.
 *
 * Reference: Stewart, "On the adjugate matrix", Linear Algebra and its Applications 283, 1998.
 */
#include "op/matmul/det.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#include <string.h>

/* ---- Building ---- */

rlxvk_tensor rlxvk_det(rlxvk_graph *g, rlxvk_tensor a)
{
    return op_build(g, OP_det, &a, 1, NULL);
}

rlxvk_tensor rlxvk_slogdet(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor *out_log_abs)
{
    if (out_log_abs)
        *out_log_abs = RLXVK_NONE;
    rlxvk_tensor both = op_build(g, OP_slogdet, &a, 1, NULL);
    if (!both.id)
        return both;
    rlxvk_shape s = rlxvk_tensor_shape(g, both);
    s.rank--;
    memmove(s.dims, s.dims + 1, s.rank * sizeof *s.dims);
    if (out_log_abs)
        *out_log_abs = rlxvk_reshape(g, rlxvk_narrow(g, both, 0, 1, 1), s);
    return rlxvk_reshape(g, rlxvk_narrow(g, both, 0, 0, 1), s);
}

rlxvk_tensor rlxvk_cofactor(rlxvk_graph *g, rlxvk_tensor a)
{
    return op_build(g, OP_cofactor, &a, 1, NULL);
}

rlxvk_tensor rlxvk_inverse(rlxvk_graph *g, rlxvk_tensor a)
{
    return op_build(g, OP_inverse, &a, 1, NULL);
}

/* ---- Infer ---- */

static rlxvk_status check_square(const rlxvk_graph *g, node *n)
{
    const rlxvk_shape *a = input_shape(g, n, 0);
    char text[SHAPE_TEXT];
    if (a->rank < 2)
        return op_fail(n, RLXVK_E_SHAPE, "a is %s; needs [.., N, N]", shape_text(a, text));
    if (a->dims[a->rank - 2] != a->dims[a->rank - 1])
        return op_fail(n, RLXVK_E_SHAPE, "a %s is not square; its last two dims are equal",
                       shape_text(a, text));
    n->shape = *a;
    n->dtype = RLXVK_F32;
    return RLXVK_OK;
}

static rlxvk_status det_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    (void)attributes;
    rlxvk_status status = check_square(g, n);
    if (status == RLXVK_OK)
        n->shape.rank -= 2;
    return status;
}

static rlxvk_status slogdet_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    (void)attributes;
    rlxvk_status status = check_square(g, n);
    if (status != RLXVK_OK)
        return status;
    n->shape = (rlxvk_shape){.rank = n->shape.rank - 1, .dims = {2}};
    memcpy(n->shape.dims + 1, input_shape(g, n, 0)->dims,
           (n->shape.rank - 1) * sizeof *n->shape.dims);
    return RLXVK_OK;
}

static rlxvk_status square_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    (void)attributes;
    return check_square(g, n);
}

/* Matrices stay apart. Their axes are those of the result, behind `parts` axes. */
static uint64_t bucket_of_matrices(bucket_call *c, int64_t parts)
{
    row_place place = bucket_place(c, 0);
    if (place.axis < 0 || place.axis + 2 >= (int32_t)input_shape(c->graph, c->node, 0)->rank)
        return bucket_refuse(c, "it needs a whole matrix at once");
    return bucket_at(c, place, place.axis + parts);
}

static uint64_t matrices_bucket(bucket_call *c)
{
    return bucket_of_matrices(c, 0);
}

static uint64_t slogdet_bucket(bucket_call *c)
{
    return bucket_of_matrices(c, 1);
}

/* ---- Gradients ---- */

/* One number of each matrix, beside its elements. */
static rlxvk_tensor beside(const gradient_call *c, rlxvk_tensor t)
{
    rlxvk_shape s = gradient_shape(c, 0);
    s.dims[s.rank - 2] = s.dims[s.rank - 1] = 1;
    return rlxvk_reshape(c->graph, t, s);
}

/* Whether there is no element to have a gradient; then gives it. */
static bool gave_nothing(gradient_call *c)
{
    rlxvk_shape a = gradient_shape(c, 0);
    if (shape_numel(&a) > 0)
        return false;
    gradient_give(c, 0, gradient_filled(c->graph, 0, RLXVK_F32, a));
    return true;
}

static rlxvk_status det_vjp(gradient_call *c)
{
    if (!gave_nothing(c))
        gradient_give(c, 0,
                      rlxvk_mul(c->graph, rlxvk_cofactor(c->graph, gradient_operand(c, 0)),
                                beside(c, c->dy)));
    return RLXVK_OK;
}

static rlxvk_tensor turned(rlxvk_graph *g, rlxvk_tensor a)
{
    uint32_t rank = rlxvk_tensor_shape(g, a).rank;
    int32_t perm[RLXVK_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++)
        perm[i] = (int32_t)i;
    perm[rank - 2] = (int32_t)rank - 1;
    perm[rank - 1] = (int32_t)rank - 2;
    return rlxvk_transpose(g, a, perm, rank);
}

/* d ln |det a| = sum(a'^-1 da). The sign is constant. */
static rlxvk_status slogdet_vjp(gradient_call *c)
{
    rlxvk_graph *g = c->graph;
    if (gave_nothing(c))
        return RLXVK_OK;
    rlxvk_tensor inverse = turned(g, rlxvk_inverse(g, gradient_operand(c, 0)));
    rlxvk_tensor dy = beside(c, rlxvk_narrow(g, c->dy, 0, 1, 1));
    gradient_give(c, 0, rlxvk_mul(g, inverse, dy));
    return RLXVK_OK;
}

/* x = a^-1: da = -x' dx x'. */
static rlxvk_status inverse_vjp(gradient_call *c)
{
    static const rlxvk_matmul_options left = {.transpose_a = true}, right = {.transpose_b = true};
    rlxvk_tensor x = gradient_result(c), product;
    if (gave_nothing(c))
        return RLXVK_OK;
    product = rlxvk_matmul_with(c->graph, x, c->dy, &left);
    product = rlxvk_matmul_with(c->graph, product, x, &right);
    gradient_give(c, 0, rlxvk_neg(c->graph, product));
    return RLXVK_OK;
}

/* ---- The families ---- */

const op_family det_family = {
    .name = "det",
    .infer = det_infer,
    .execution = {.lower = det_lower, .host = det_host},
    .rows = {.bucket = matrices_bucket},
    .derivative = {.vjp = det_vjp},
};

const op_family slogdet_family = {
    .name = "slogdet",
    .infer = slogdet_infer,
    .execution = {.lower = det_lower_logarithm, .host = det_host_logarithm},
    .rows = {.bucket = slogdet_bucket},
    .derivative = {.vjp = slogdet_vjp},
};

const op_family inverse_family = {
    .name = "inverse",
    .infer = square_infer,
    .execution = {.lower = det_lower_inverse, .host = det_host_inverse},
    .rows = {.bucket = matrices_bucket},
    .derivative = {.vjp = inverse_vjp},
};

const op_family cofactor_family = {
    .name = "cofactor",
    .infer = square_infer,
    .execution = {.lower = det_lower_cofactors, .host = det_host_cofactors},
    .rows = {.bucket = matrices_bucket},
};
