/*
 * Batch norm in training (Ioffe and Szegedy 2015) of x [N, C, ...], over all axes except C:
 *
 *   statistics  [3, C]: mean, the rest of the mean after rounding, and s = 1 / sqrt(var + eps).
 *     It also updates the running averages.
 *   training    y = xhat gamma + beta, with xhat = (x - mean) s
 *   parameters  [2, C]: the sums of dy xhat and of dy
 *   input       dx = s gamma (dy - mean(dy) - xhat mean(dy xhat))
 *
 * The statistics are an operand of all other ops, so they are computed from x only once. The
 * gradient of training by x is complete: it includes the path through the statistics. So the
 * statistics get no gradient from it.
 */
#include "op/train/batch_norm_training.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_train.h>

#include <math.h>

/* ---- Building ---- */

rlxvk_tensor rlxvk_batch_norm_statistics(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor running_mean,
                                         rlxvk_tensor running_variance,
                                         const rlxvk_batch_norm_options *options)
{
    rlxvk_tensor operands[] = {x, running_mean, running_variance};
    rlxvk_batch_norm_options o;
    if (!op_take(g, "batch_norm_statistics", SIZED(rlxvk_batch_norm_options), options, &o))
        return RLXVK_NONE;
    batch_norm_training_attributes a = {.eps = op_number(o.eps, 1e-5f),
                                        .momentum = op_number(o.momentum, 0.1f),
                                        .running = running_mean.id || running_variance.id};
    return op_build(g, OP_batch_norm_statistics, operands, ARRAY_COUNT(operands), &a);
}

/* Checks the tensors here, because otherwise the errors would name batch_norm_statistics. */
static bool tensors_given(rlxvk_graph *g, const rlxvk_tensor tensors[3])
{
    static const char *const roles[] = {"x", "running_mean", "running_variance"};
    if (!graph_ready(g, "batch_norm_training"))
        return false;
    for (size_t i = 0; i < 3; i++)
        if ((i == 0 || tensors[i].id) &&
            graph_fail(g, graph_take(g, tensors[i], "batch_norm_training", roles[i], 0)) !=
                RLXVK_OK)
            return false;
    return true;
}

rlxvk_tensor rlxvk_batch_norm_training(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                       rlxvk_tensor beta, rlxvk_tensor running_mean,
                                       rlxvk_tensor running_variance,
                                       const rlxvk_batch_norm_options *options)
{
    if (!tensors_given(g, (rlxvk_tensor[]){x, running_mean, running_variance}))
        return RLXVK_NONE;
    rlxvk_tensor statistics =
        rlxvk_batch_norm_statistics(g, x, running_mean, running_variance, options);
    rlxvk_tensor operands[] = {x, statistics, gamma, beta};
    batch_norm_training_attributes a = {.has_gamma = gamma.id != 0, .has_beta = beta.id != 0};
    if (!statistics.id)
        return RLXVK_NONE;
    return op_build(g, OP_batch_norm_training, operands, ARRAY_COUNT(operands), &a);
}

rlxvk_tensor rlxvk_batch_norm_backward_parameters(rlxvk_graph *g, rlxvk_tensor x,
                                                  rlxvk_tensor statistics, rlxvk_tensor dy)
{
    rlxvk_tensor operands[] = {x, statistics, dy};
    batch_norm_training_attributes a = {0};
    return op_build(g, OP_batch_norm_backward_parameters, operands, ARRAY_COUNT(operands), &a);
}

rlxvk_tensor rlxvk_batch_norm_backward_input(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor gamma,
                                             rlxvk_tensor statistics, rlxvk_tensor parameters,
                                             rlxvk_tensor dy)
{
    rlxvk_tensor operands[] = {x, statistics, dy, parameters, gamma};
    batch_norm_training_attributes a = {.has_gamma = gamma.id != 0};
    return op_build(g, OP_batch_norm_backward_input, operands, ARRAY_COUNT(operands), &a);
}

/* ---- Infer ---- */

static uint32_t operand_count(const node *n, const batch_norm_training_attributes *a)
{
    switch (node_code(n)) {
    case BATCH_NORM_STATISTICS:
        return a->running ? 3 : 1;
    case BATCH_NORM_BACKWARD_PARAMETERS:
        return 3;
    default:
        return batch_norm_gamma(n) + a->has_gamma + a->has_beta;
    }
}

static rlxvk_status infer_statistics(const rlxvk_graph *g, node *n,
                                     const batch_norm_training_attributes *a)
{
    static const char *const names[] = {"", "running_mean", "running_variance"};
    const rlxvk_shape *x = input_shape(g, n, 0);
    axis_view v = batch_norm_channels(x);
    rlxvk_status status;
    char shape[SHAPE_TEXT];
    if (v.length > 0 && v.outer * v.inner < 2)
        return op_fail(n, RLXVK_E_SHAPE,
                       "x is %s, %llu elements a channel; a batch has statistics from 2 on",
                       shape_text(x, shape), (unsigned long long)(v.outer * v.inner));
    if (!(a->eps >= 0) || isinf(a->eps))
        return op_fail(n, RLXVK_E_ATTR, "eps is %g; needs a finite value >= 0", (double)a->eps);
    if (!(a->momentum >= 0 && a->momentum <= 1))
        return op_fail(n, RLXVK_E_ATTR, "momentum is %g; takes 0 to 1", (double)a->momentum);
    for (uint32_t i = 1; i < n->input_count; i++) {
        TRY(op_require_dtype(g, n, i, RLXVK_F32, "averages are F32"));
        TRY(op_require_vector(g, n, i, names[i], x->dims[1], "channels"));
        TRY(op_require_writable(g, n, i));
    }
    n->shape = RLXVK_SHAPE(3, x->dims[1]);
    return RLXVK_OK;
error:
    return status;
}

/* Infers the shape, and checks the operands after x. */
static rlxvk_status infer_elements(const rlxvk_graph *g, node *n,
                                   const batch_norm_training_attributes *a)
{
    static const char *const vectors[] = {"gamma", "beta"};
    rlxvk_shape x = *input_shape(g, n, 0);
    uint32_t code = node_code(n);
    rlxvk_status status;
    TRY(op_require_shape(g, n, BATCH_NORM_KNOWN, "statistics", RLXVK_SHAPE(3, x.dims[1])));
    if (code != BATCH_NORM_TRAINING)
        TRY(op_require_shape(g, n, BATCH_NORM_DY, "dy", x));
    if (code == BATCH_NORM_BACKWARD_INPUT)
        TRY(op_require_shape(g, n, BATCH_NORM_SUMS, "parameters", RLXVK_SHAPE(2, x.dims[1])));
    if (code != BATCH_NORM_BACKWARD_PARAMETERS)
        for (uint32_t i = batch_norm_gamma(n); i < n->input_count; i++)
            TRY(op_require_vector(g, n, i, vectors[i > batch_norm_gamma(n) || !a->has_gamma],
                                  x.dims[1], "channels"));
    n->shape = code == BATCH_NORM_BACKWARD_PARAMETERS ? RLXVK_SHAPE(2, x.dims[1]) : x;
error:
    return status;
}

static rlxvk_status batch_norm_training_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const batch_norm_training_attributes *a = attributes;
    char shape[SHAPE_TEXT];
    rlxvk_status status;
    if (n->input_count != operand_count(n, a))
        return op_fail(n, RLXVK_E_ARITY, "%u operands; takes %u with what is given", n->input_count,
                       operand_count(n, a));
    if (input_shape(g, n, 0)->rank < 2)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; must be [N, C, ...]",
                       shape_text(input_shape(g, n, 0), shape));
    TRY(op_require_dtype(g, n, 0, RLXVK_F32, "insert a cast"));
    n->dtype = RLXVK_F32;
    status = (node_code(n) == BATCH_NORM_STATISTICS ? infer_statistics : infer_elements)(g, n, a);
error:
    return status;
}

static uint32_t batch_norm_training_writes(const node *n)
{
    const batch_norm_training_attributes *a = n->attributes;
    return a->running ? 1 << 1 | 1 << 2 : 0;
}

/* Bit i: the result may overwrite operand i. That is x, and in the gradient by x also dy. */
static uint32_t batch_norm_training_in_place(const rlxvk_graph *g, const node *n)
{
    (void)g;
    if (node_code(n) == BATCH_NORM_TRAINING)
        return 1;
    return node_code(n) == BATCH_NORM_BACKWARD_INPUT ? 1 | 1 << BATCH_NORM_DY : 0;
}

/* ---- Rows of a bucket ---- */

static uint64_t batch_norm_training_bucket(bucket_call *c)
{
    return bucket_refuse(c, "its statistics are of all rows");
}

/* ---- Gradients ---- */

/* Row i of a tensor of vectors, shaped [1, C, 1, ..]. */
static rlxvk_tensor row_along(rlxvk_graph *g, rlxvk_tensor rows, int64_t i, rlxvk_shape x)
{
    for (uint32_t k = 0; k < x.rank; k++)
        x.dims[k] = k == 1 ? x.dims[k] : 1;
    return rlxvk_reshape(g, rlxvk_narrow(g, rows, 0, i, 1), x);
}

static rlxvk_tensor deviation_of(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor statistics)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    rlxvk_tensor near = rlxvk_sub(g, x, row_along(g, statistics, 0, shape));
    return rlxvk_sub(g, near, row_along(g, statistics, 1, shape));
}

/* Sums t over all axes except the channels, to [1, C]. */
static rlxvk_tensor sums_of(rlxvk_graph *g, rlxvk_tensor t)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, t);
    int32_t axes[RLXVK_MAX_RANK] = {0};
    for (uint32_t k = 2; k < shape.rank; k++)
        axes[k - 1] = (int32_t)k;
    t = rlxvk_reduce_sum(g, t, axes, shape.rank - 1, false);
    return rlxvk_reshape(g, t, RLXVK_SHAPE(1, shape.dims[1]));
}

static rlxvk_tensor count_of(rlxvk_graph *g, rlxvk_shape x)
{
    axis_view v = batch_norm_channels(&x);
    return gradient_scalar(g, (double)(v.outer * v.inner));
}

/* The backward ops as simple ops of their operands. Their gradients follow from these, including
 * those of statistics and parameters that are operands. */
static rlxvk_tensor batch_norm_training_expand(rlxvk_graph *g, const node *n)
{
    const batch_norm_training_attributes *a = n->attributes;
    uint32_t code = node_code(n);
    if (code < BATCH_NORM_BACKWARD_PARAMETERS)
        return RLXVK_NONE;
    rlxvk_tensor x = tensor_of(g, n->inputs[0]), dy = tensor_of(g, n->inputs[BATCH_NORM_DY]);
    rlxvk_tensor known = tensor_of(g, n->inputs[BATCH_NORM_KNOWN]);
    rlxvk_tensor sums =
        code == BATCH_NORM_BACKWARD_INPUT ? tensor_of(g, n->inputs[BATCH_NORM_SUMS]) : RLXVK_NONE;
    rlxvk_tensor gamma = a->has_gamma ? tensor_of(g, n->inputs[4]) : RLXVK_NONE;
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    rlxvk_tensor scale = row_along(g, known, 2, shape);
    rlxvk_tensor normal = rlxvk_mul(g, deviation_of(g, x, known), scale);
    if (code == BATCH_NORM_BACKWARD_PARAMETERS) {
        rlxvk_tensor both[] = {sums_of(g, rlxvk_mul(g, dy, normal)), sums_of(g, dy)};
        return rlxvk_concat(g, both, 2, 0);
    }
    rlxvk_tensor means = rlxvk_div(g, sums, count_of(g, shape));
    rlxvk_tensor rest = rlxvk_sub(g, dy, row_along(g, means, 1, shape));
    rest = rlxvk_sub(g, rest, rlxvk_mul(g, normal, row_along(g, means, 0, shape)));
    if (a->has_gamma)
        scale = rlxvk_mul(g, scale,
                          row_along(g, rlxvk_reshape(g, gamma, RLXVK_SHAPE(1, shape.dims[1])), 0,
                                    shape));
    return rlxvk_mul(g, rest, scale);
}

/* The derivative of the mean by each element is 1 / n, and that of s is -s^3 (x - mean) / n. The
 * rest of the mean has none, because it is 0 except for rounding. */
static void give_statistics(gradient_call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape shape = gradient_shape(c, 0);
    rlxvk_tensor x = gradient_operand(c, 0), count = count_of(g, shape), y = gradient_result(c);
    rlxvk_tensor scale = row_along(g, y, 2, shape);
    rlxvk_tensor pull = rlxvk_mul(g, rlxvk_mul(g, scale, scale), scale);
    pull = rlxvk_mul(g, pull, row_along(g, c->dy, 2, shape));
    rlxvk_tensor change = rlxvk_mul(g, deviation_of(g, x, y), pull);
    change = rlxvk_sub(g, row_along(g, c->dy, 0, shape), change);
    gradient_give(c, 0, rlxvk_div(g, change, count));
}

static rlxvk_status batch_norm_training_vjp(gradient_call *c)
{
    const batch_norm_training_attributes *a = c->n.attributes;
    rlxvk_graph *g = c->graph;
    if (node_code(&c->n) == BATCH_NORM_STATISTICS) {
        give_statistics(c);
        return RLXVK_OK;
    }
    rlxvk_tensor x = gradient_operand(c, 0), known = gradient_operand(c, BATCH_NORM_KNOWN);
    rlxvk_tensor sums = rlxvk_batch_norm_backward_parameters(g, x, known, c->dy);
    for (uint32_t i = 2; i < c->n.input_count; i++)
        gradient_give(c, i,
                      rlxvk_reshape(g, rlxvk_narrow(g, sums, 0, i == 3 || !a->has_gamma, 1),
                                    gradient_shape(c, i)));
    if (gradient_wanted(c, 0)) {
        rlxvk_tensor gamma = a->has_gamma ? gradient_operand(c, 2) : RLXVK_NONE;
        gradient_give(c, 0, rlxvk_batch_norm_backward_input(g, x, gamma, known, sums, c->dy));
    }
    return RLXVK_OK;
}

static void batch_norm_training_describe(const node *n, text *out)
{
    const batch_norm_training_attributes *a = n->attributes;
    if (node_code(n) == BATCH_NORM_STATISTICS)
        text_append(out, " eps=%g", (double)a->eps);
    if (a->running)
        text_append(out, " momentum=%g", (double)a->momentum);
    text_append(out, "%s%s", a->has_gamma ? " gamma" : "", a->has_beta ? " beta" : "");
}

const op_family batch_norm_training_family = {
    .name = "batch_norm_training",
    .attribute_size = sizeof(batch_norm_training_attributes),
    .infer = batch_norm_training_infer,
    .memory = {.writes = batch_norm_training_writes, .in_place = batch_norm_training_in_place},
    .execution = {.lower = batch_norm_training_lower, .host = batch_norm_training_host},
    .rows = {.bucket = batch_norm_training_bucket},
    .derivative = {.vjp = batch_norm_training_vjp, .expand = batch_norm_training_expand},
    .describe = batch_norm_training_describe,
};
