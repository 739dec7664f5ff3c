/*
 * Matrix products: y[.., i, j] = sum_k a[.., i, k] b[.., k, j], and the same with a bias per column
 * and an activation.
 *
 * Leading axes broadcast as in numpy: each batch axis has one stride per operand, which is 0 if the
 * operand repeats. After axes are joined, at most six remain (rank 8 without the matrix). If
 * transpose_a or transpose_b is set, the operand is stored with its last two axes swapped. It is
 * read that way and never copied. Either operand may be a packed F16/BF16 leaf.
 */
#include "op/compose/composite.h"
#include "op/gradient.h"
#include "op/activation.h"
#include "op/families.h"
#include "op/matmul/matmul.h"

#include <string.h>

/* ---- Building ---- */

/* A vector becomes a matrix of one row, or, if it is b, of one column. The result loses that
 * axis. */
static rlxvk_tensor multiply_vectors(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b,
                                     matmul_attributes *attributes)
{
    static const char row[] = "matmul";
    rlxvk_shape of_a = rlxvk_tensor_shape(g, a), of_b = rlxvk_tensor_shape(g, b), of_y;
    size_t start = g->nodes.count;
    if (!composite_begin(g, row, (rlxvk_tensor[]){a, b}, 2))
        return RLXVK_NONE;
    if (of_a.rank == 1) {
        attributes->transpose_a = false;
        a = rlxvk_reshape(g, a, RLXVK_SHAPE(1, of_a.dims[0]));
    }
    if (of_b.rank == 1) {
        attributes->transpose_b = true;
        b = rlxvk_reshape(g, b, RLXVK_SHAPE(1, of_b.dims[0]));
    }
    rlxvk_tensor y = op_build(g, OP_matmul, (rlxvk_tensor[]){a, b}, 2, attributes);
    of_y = rlxvk_tensor_shape(g, y);
    if (of_a.rank == 1 && of_y.rank >= 2) {
        of_y.dims[of_y.rank - 2] = of_y.dims[of_y.rank - 1];
        of_y.rank--;
    }
    of_y.rank -= of_b.rank == 1 && of_y.rank >= 1;
    return composite_end(g, row, start, rlxvk_reshape(g, y, of_y));
}

rlxvk_tensor rlxvk_matmul_with(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b,
                               const rlxvk_matmul_options *options)
{
    matmul_attributes attributes;
    rlxvk_matmul_options o;
    if (!op_take(g, "matmul", SIZED(rlxvk_matmul_options), options, &o))
        return RLXVK_NONE;
    memset(&attributes, 0, sizeof attributes);
    attributes.transpose_a = o.transpose_a;
    attributes.transpose_b = o.transpose_b;
    uint32_t rank_a = rlxvk_tensor_shape(g, a).rank, rank_b = rlxvk_tensor_shape(g, b).rank;
    if (rank_a == 1 || rank_b == 1)
        return multiply_vectors(g, a, b, &attributes);
    return op_build(g, OP_matmul, (rlxvk_tensor[]){a, b}, 2, &attributes);
}

rlxvk_tensor rlxvk_matmul(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b)
{
    return rlxvk_matmul_with(g, a, b, NULL);
}

rlxvk_tensor rlxvk_fused_matmul_bias_act(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                                         rlxvk_tensor bias, rlxvk_activation activation,
                                         bool transpose_w)
{
    matmul_attributes attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.transpose_b = transpose_w;
    attributes.activation = activation;
    return op_build(g, OP_fused_matmul_bias_act, (rlxvk_tensor[]){x, w, bias}, 3, &attributes);
}

/* ---- Infer ---- */

static rlxvk_status check_inner(const node *n, const rlxvk_shape *a, const rlxvk_shape *b,
                                const matmul_attributes *attributes)
{
    int64_t m, k, b_k, columns, turned_k, turned_columns;
    char a_text[SHAPE_TEXT], b_text[SHAPE_TEXT];
    matmul_dims(a, attributes->transpose_a, &m, &k);
    matmul_dims(b, attributes->transpose_b, &b_k, &columns);
    if (k == b_k)
        return RLXVK_OK;
    matmul_dims(b, !attributes->transpose_b, &turned_k, &turned_columns);
    return op_fail(n, RLXVK_E_SHAPE, "K is %lld in %s%s and %lld in %s%s; they must be equal%s",
                   (long long)k, shape_text(a, a_text),
                   attributes->transpose_a ? " (transposed)" : "", (long long)b_k,
                   shape_text(b, b_text), attributes->transpose_b ? " (transposed)" : "",
                   turned_k != k             ? ""
                   : attributes->transpose_b ? "; without transpose_b they are"
                                             : "; with transpose_b, for weights stored [N, K] as "
                                               "PyTorch has them, they are");
}

static rlxvk_status infer_plain(const rlxvk_graph *g, node *n, const matmul_attributes *attributes)
{
    const rlxvk_shape *a = input_shape(g, n, 0), *b = input_shape(g, n, 1);
    char a_text[SHAPE_TEXT], b_text[SHAPE_TEXT];
    int64_t inner;
    rlxvk_status status;
    if (a->rank < 2 || b->rank < 2)
        return op_fail(n, RLXVK_E_SHAPE, "operands %s and %s; both need rank 2 or more (reshape)",
                       shape_text(a, a_text), shape_text(b, b_text));
    TRY(check_inner(n, a, b, attributes));
    rlxvk_shape a_batch = *a, b_batch = *b;
    a_batch.rank -= 2;
    b_batch.rank -= 2;
    if (!shape_broadcast(&a_batch, &b_batch, &n->shape))
        return op_fail(n, RLXVK_E_SHAPE,
                       "leading dims of %s and %s do not broadcast; they are equal or 1",
                       shape_text(a, a_text), shape_text(b, b_text));
    n->shape.rank += 2;
    matmul_dims(a, attributes->transpose_a, &n->shape.dims[n->shape.rank - 2], &inner);
    matmul_dims(b, attributes->transpose_b, &inner, &n->shape.dims[n->shape.rank - 1]);
    n->dtype = (uint8_t)dtype_promote(input_dtype(g, n, 0), input_dtype(g, n, 1));
error:
    return status;
}

static rlxvk_status infer_bias_act(const rlxvk_graph *g, node *n,
                                   const matmul_attributes *attributes)
{
    const rlxvk_shape *x = input_shape(g, n, 0), *w = input_shape(g, n, 1);
    const rlxvk_shape *bias = input_shape(g, n, 2);
    char buffer[SHAPE_TEXT];
    int64_t inner, columns;
    rlxvk_status status;
    if ((unsigned)attributes->activation > UNARY_COUNT)
        return op_fail(n, RLXVK_E_ATTR, "activation %d is none of 0 .. %d",
                       (int)attributes->activation, UNARY_COUNT);
    if (x->rank < 1)
        return op_fail(n, RLXVK_E_SHAPE, "x is a scalar; it needs rank 1 or more");
    if (w->rank != 2)
        return op_fail(n, RLXVK_E_SHAPE, "w is %s; it must have rank 2", shape_text(w, buffer));
    TRY(check_inner(n, x, w, attributes));
    matmul_dims(w, attributes->transpose_b, &inner, &columns);
    if (bias->rank != 1 || bias->dims[0] != columns)
        return op_fail(n, RLXVK_E_SHAPE, "bias is %s; w has %lld columns, so it must be [%lld]",
                       shape_text(bias, buffer), (long long)columns, (long long)columns);
    n->shape = *x;
    n->shape.dims[x->rank - 1] = columns;
    n->dtype = (uint8_t)dtype_promote(dtype_promote(input_dtype(g, n, 0), input_dtype(g, n, 1)),
                                      input_dtype(g, n, 2));
error:
    return status;
}

static rlxvk_status matmul_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    return node_code(n) == MATMUL_PLAIN ? infer_plain(g, n, attributes)
                                        : infer_bias_act(g, n, attributes);
}

/* Can y be written in column parts (lower_ends)? If there is one matrix, all kernels can. */
static bool matmul_writes_parts(const rlxvk_graph *g, const node *n)
{
    const matmul_attributes *a = n->attributes;
    matmul_problem p;
    matmul_problem_make(input_shape(g, n, 0), input_shape(g, n, 1), a->transpose_a, a->transpose_b,
                        &p);
    return p.shape.batch == 1;
}

/* ---- The family ---- */

/* Gives the gradient of an operand that may have been broadcast over the batch. */
static void give_product(gradient_call *c, uint32_t i, rlxvk_tensor a, rlxvk_tensor b,
                         bool transpose_a, bool transpose_b)
{
    rlxvk_matmul_options options = {transpose_a, transpose_b};
    if (gradient_wanted(c, i))
        gradient_give_broadcast(c, i, rlxvk_matmul_with(c->graph, a, b, &options));
}

/* If w is one matrix and x is many, dw sums over all rows at once, as one product. */
static bool give_joined_weight(gradient_call *c, const matmul_attributes *m, rlxvk_tensor dy)
{
    rlxvk_shape x = gradient_shape(c, 0), w = gradient_shape(c, 1),
                y = rlxvk_tensor_shape(c->graph, dy);
    if (w.rank != 2 || x.rank < 3 || m->transpose_a)
        return false;
    rlxvk_tensor rows =
        rlxvk_reshape(c->graph, gradient_operand(c, 0), RLXVK_SHAPE(-1, x.dims[x.rank - 1]));
    rlxvk_tensor flat = rlxvk_reshape(c->graph, dy, RLXVK_SHAPE(-1, y.dims[y.rank - 1]));
    if (m->transpose_b)
        give_product(c, 1, flat, rows, true, false);
    else
        give_product(c, 1, rows, flat, true, false);
    return true;
}

/* z = a b gives da = dz b' and db = a' dz. If an operand is stored transposed, so is its
 * gradient. */
static rlxvk_status matmul_vjp(gradient_call *c)
{
    const matmul_attributes *m = c->n.attributes;
    bool ta = m->transpose_a, tb = m->transpose_b;
    rlxvk_tensor a = gradient_operand(c, 0), b = gradient_operand(c, 1);
    rlxvk_shape y = c->n.shape;
    if (shape_numel(&y) == 0) {
        for (uint32_t i = 0; i < 2; i++)
            gradient_give(c, i, gradient_filled(c->graph, 0, RLXVK_F32, gradient_shape(c, i)));
        return RLXVK_OK;
    }
    if (ta)
        give_product(c, 0, b, c->dy, tb, true);
    else
        give_product(c, 0, c->dy, b, false, !tb);
    if (!gradient_wanted(c, 1) || give_joined_weight(c, m, c->dy))
        return RLXVK_OK;
    if (tb)
        give_product(c, 1, c->dy, a, true, ta);
    else
        give_product(c, 1, a, c->dy, !ta, false);
    return RLXVK_OK;
}

static rlxvk_tensor matmul_expand(rlxvk_graph *g, const node *n)
{
    if (node_code(n) == MATMUL_PLAIN)
        return RLXVK_NONE;
    const matmul_attributes *m = n->attributes;
    rlxvk_matmul_options options = {m->transpose_a, m->transpose_b};
    rlxvk_tensor x = tensor_of(g, n->inputs[0]);
    rlxvk_shape rows = rlxvk_tensor_shape(g, x);
    if (rows.rank == 1)
        x = rlxvk_reshape(g, x, RLXVK_SHAPE(1, rows.dims[0]));
    rlxvk_tensor z = rlxvk_matmul_with(g, x, tensor_of(g, n->inputs[1]), &options);
    z = rlxvk_add(g, rlxvk_reshape(g, z, n->shape), tensor_of(g, n->inputs[2]));
    return m->activation == RLXVK_ACTIVATION_NONE
               ? z
               : op_build(g, activation_op(activation_code(m->activation)), &z, 1, NULL);
}

static void matmul_describe(const node *n, text *out)
{
    const matmul_attributes *a = n->attributes;
    if (a->transpose_a)
        text_append(out, " transpose_a");
    if (a->transpose_b)
        text_append(out, " transpose_b");
    if (a->activation != RLXVK_ACTIVATION_NONE)
        text_append(out, " activation=%s", activation_name(a->activation));
}

const op_family matmul_family = {
    .name = "matmul",
    .attribute_size = sizeof(matmul_attributes),
    .infer = matmul_infer,
    .storage = {.half_inputs = 3},
    .views = {.writes_parts = matmul_writes_parts},
    .execution = {.matrix_layout = true, .lower = matmul_lower, .host = matmul_host},
    .rows = {.bucket = matmul_bucket, .shorten = matmul_shorten},
    .derivative = {.vjp = matmul_vjp, .expand = matmul_expand},
    .describe = matmul_describe,
};
