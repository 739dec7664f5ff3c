/*
 * Projections: the products of a decode step, together with the ops around them.
 *
 *   y = residual + g(w (x / sqrt(mean x^2 + epsilon) * gamma)),  w: n rows of k
 *
 * If there is a gate, g is up * silu(gate) of the two halves of a row. Gate, norm and residual are
 * optional. w is packed, in any format of dequant_matmul, or a matrix of F32, F16 or BF16.
 *
 * With one row of x it is one dispatch. The mean costs little, because each workgroup reads all of
 * x anyway; the sums are multiplied by the root at the end. If there are more rows, or if epsilon
 * is so small that x may be, it becomes simpler ops. Operands: x, w, gamma, residual, the format's
 * grid.
 */
#include "args/elementwise.h"
#include "args/projection.h"
#include "op/activation.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/packed/projection.h"
#include "op/packed/quant_format.h"

#include <math.h>

/* ---- Building ---- */

static uint32_t gate_bits(rlxvk_projection_gate gate)
{
    static const uint32_t bits[] = {0, PROJECTION_GATED, PROJECTION_GATED | PROJECTION_GATE_FIRST};
    return (size_t)gate < ARRAY_COUNT(bits) ? bits[gate] : UINT32_MAX;
}

rlxvk_tensor rlxvk_projection(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor w,
                              const rlxvk_projection_options *options)
{
    rlxvk_projection_options o;
    if (!op_take(g, "projection", SIZED(rlxvk_projection_options), options, &o))
        return RLXVK_NONE;
    projection_attributes a = {.packed = o.packed, .epsilon = o.epsilon};
    a.weights.format = o.packed ? (uint32_t)o.format : QUANT_F32;
    a.parts = gate_bits(o.gate) | (o.gamma.id ? PROJECTION_NORM : 0) |
              (o.residual.id ? PROJECTION_RESIDUAL : 0);
    rlxvk_tensor inputs[] = {x, w, o.gamma, o.residual,
                             o.packed ? dequant_grid(g, a.weights.format) : RLXVK_NONE};
    return op_build(g, OP_projection, inputs, ARRAY_COUNT(inputs), &a);
}

/* ---- Infer ---- */

static uint32_t residual_index(const projection_attributes *a)
{
    return 2 + (a->parts & PROJECTION_NORM ? 1 : 0);
}

/* The number of operands without a grid. */
static uint32_t operand_count(const projection_attributes *a)
{
    return residual_index(a) + (a->parts & PROJECTION_RESIDUAL ? 1 : 0);
}

/* Counts the rows of w. */
static rlxvk_status count_rows(const rlxvk_graph *g, const node *n, projection_attributes *a,
                               uint64_t *out)
{
    const rlxvk_shape *w = input_shape(g, n, 1);
    char text[SHAPE_TEXT];
    rlxvk_status status = RLXVK_OK;
    if (a->packed) {
        TRY(dequant_check_format(n, a->weights.format, operand_count(a)));
        TRY(dequant_check_packed(g, n, 1));
        return dequant_count_rows(g, n, 1, &a->weights, out);
    }
    rlxvk_dtype dtype = input_dtype(g, n, 1);
    if (n->input_count != operand_count(a))
        return op_fail(n, RLXVK_E_ARITY, "%u operands; takes %u", n->input_count, operand_count(a));
    if (dtype != RLXVK_F32 && dtype != RLXVK_F16 && dtype != RLXVK_BF16)
        return op_fail(n, RLXVK_E_DTYPE, "w is %s; takes F32, F16 or BF16, or packed rows",
                       rlxvk_dtype_name(dtype));
    if (w->rank != 2 || w->dims[1] != a->weights.k)
        return op_fail(n, RLXVK_E_SHAPE,
                       "w is %s; rows of x have %lld elements, so takes [n, %lld]",
                       shape_text(w, text), (long long)a->weights.k, (long long)a->weights.k);
    *out = (uint64_t)w->dims[0];
error:
    return status;
}

static rlxvk_status check_gamma(const rlxvk_graph *g, const node *n, const projection_attributes *a)
{
    char text[SHAPE_TEXT];
    rlxvk_status status = RLXVK_OK;
    if (!(a->parts & PROJECTION_NORM))
        return status;
    const rlxvk_shape *gamma = input_shape(g, n, 2);
    TRY(dequant_check_float(g, n, 2));
    if (gamma->rank != 1 || gamma->dims[0] != a->weights.k)
        return op_fail(n, RLXVK_E_SHAPE, "gamma is %s; takes [%lld]", shape_text(gamma, text),
                       (long long)a->weights.k);
    if (!(a->epsilon >= 0 && isfinite(a->epsilon)))
        return op_fail(n, RLXVK_E_ATTR, "epsilon is %g; takes a finite number from 0 on",
                       (double)a->epsilon);
error:
    return status;
}

static rlxvk_status check_residual(const rlxvk_graph *g, const node *n,
                                   const projection_attributes *a)
{
    char text[2][SHAPE_TEXT];
    rlxvk_status status = RLXVK_OK;
    if (!(a->parts & PROJECTION_RESIDUAL))
        return status;
    const rlxvk_shape *residual = input_shape(g, n, residual_index(a));
    TRY(dequant_check_float(g, n, residual_index(a)));
    if (!shape_equal(residual, &n->shape))
        return op_fail(n, RLXVK_E_SHAPE, "the residual is %s, the result %s; they must be equal",
                       shape_text(residual, text[0]), shape_text(&n->shape, text[1]));
error:
    return status;
}

static rlxvk_status projection_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    projection_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    uint64_t rows;
    rlxvk_status status;
    if (a->parts == UINT32_MAX)
        return op_fail(n, RLXVK_E_ATTR, "the gate is none of enum rlxvk_projection_gate");
    if (x->rank == 0)
        return op_fail(n, RLXVK_E_SHAPE, "x is a scalar; it needs a last axis of k");
    a->weights.k = x->dims[x->rank - 1];
    TRY(dequant_check_float(g, n, 0));
    TRY(count_rows(g, n, a, &rows));
    TRY(check_gamma(g, n, a));
    if (a->parts & PROJECTION_GATED && rows % 2)
        return op_fail(n, RLXVK_E_SHAPE, "w has %llu rows; with a gate it takes two halves",
                       (unsigned long long)rows);
    n->shape = *x;
    n->shape.dims[x->rank - 1] = (int64_t)(a->parts & PROJECTION_GATED ? rows / 2 : rows);
    n->dtype = RLXVK_F32;
    TRY(check_residual(g, n, a));
error:
    return status;
}

/* ---- Lower ---- */

static projection_shape shape_of(const node *n, const rlxvk_shape *x)
{
    const projection_attributes *a = n->attributes;
    uint64_t columns = (uint64_t)n->shape.dims[n->shape.rank - 1];
    return (projection_shape){.rows = shape_product(x, 0, x->rank - 1),
                              .n = a->parts & PROJECTION_GATED ? 2 * columns : columns,
                              .k = (uint64_t)a->weights.k,
                              .packed = a->packed,
                              .format = a->weights.format};
}

static matmul_shape product_shape(const projection_shape *s)
{
    return (matmul_shape){s->rows, s->n, s->k, 1, false, true};
}

bool projection_fits(const projection_shape *s, const device_profile *profile, bool named)
{
    matmul_shape product = product_shape(s);
    if (s->rows != 1 || s->n == 0 || s->k == 0)
        return false;
    return s->packed ? quant_format_find(s->format)->distance != 0
                     : matmul_projects(&product, profile, named);
}

bool projection_takes_epsilon(float epsilon)
{
    return epsilon >= 0x1p-99f;
}

bool projection_is_native(const node *n, const rlxvk_shape *x, const device_profile *profile,
                          bool named)
{
    const projection_attributes *a = n->attributes;
    projection_shape s = shape_of(n, x);
    if (shape_numel(&n->shape) == 0)
        return true;
    return projection_fits(&s, profile, named) &&
           (!(a->parts & PROJECTION_NORM) || projection_takes_epsilon(a->epsilon));
}

static rlxvk_status lower_packed(lowering *l, uint32_t id, const projection_parts *parts)
{
    const node *n = graph_node(l->graph, id);
    const projection_attributes *a = n->attributes;
    projection_shape s = shape_of(n, input_shape(l->graph, n, 0));
    operand w = lower_input(l, id, 1);
    operand operands[] = {w, lower_input(l, id, 0), lower_write(l, id), w,
                          dequant_grid_operand(l, id, operand_count(a), &w)};
    struct dequant_product_args args =
        dequant_product_arguments(input_shape(l->graph, n, 0), s.n, &a->weights, operands);
    dispatch d = {.node = id};
    dequant_set_format(&d, a->weights.format, &w);
    return dequant_lower_matvec(l, &d, &args, operands, parts);
}

static rlxvk_status projection_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const projection_attributes *a = n->attributes;
    projection_shape s = shape_of(n, input_shape(l->graph, n, 0));
    bool has_norm = a->parts & PROJECTION_NORM, has_residual = a->parts & PROJECTION_RESIDUAL;
    operand x = lower_input(l, id, 0);
    projection_parts parts = {a->parts, a->epsilon, has_norm ? lower_input(l, id, 2) : x,
                              has_residual ? lower_input(l, id, residual_index(a)) : x};
    matmul_request r = {.a = x,
                        .b = lower_input(l, id, 1),
                        .y = lower_write(l, id),
                        .activation = UNARY_NONE,
                        .problem.shape = product_shape(&s)};
    return a->packed ? lower_packed(l, id, &parts) : matmul_emit_projection(l, id, &r, &parts);
}

/* ---- Host ---- */

/* Loads row `row` of x in double, normalized if the projection has a norm. */
static void load_row(const host_call *c, uint64_t row, double *x)
{
    const projection_attributes *a = c->node->attributes;
    uint64_t k = (uint64_t)a->weights.k;
    const float *source = c->inputs[0].words + row * k;
    double squares = 0;
    for (uint64_t p = 0; p < k; p++)
        squares += (double)source[p] * source[p];
    double mean = squares / (double)MAX(k, 1) + (double)a->epsilon;
    double root = mean == 0 ? 0 : 1 / sqrt(mean);
    for (uint64_t p = 0; p < k; p++)
        x[p] = a->parts & PROJECTION_NORM ? source[p] * root * c->inputs[2].words[p] : source[p];
}

/* Multiplies the row by k weights, which their magnitudes follow. Also computes the bound. */
static double multiply(const host_call *c, const double *x, const float *w, uint64_t k,
                       double *bound)
{
    const projection_attributes *a = c->node->attributes;
    double sum = 0, magnitude = 0, largest_x = 0, largest_w = 0;
    for (uint64_t p = 0; p < k; p++) {
        sum += x[p] * w[p];
        magnitude += fabs(x[p]) * w[k + p];
        largest_x = fmax(largest_x, fabs(x[p]));
        largest_w = fmax(largest_w, fabs(w[p]));
    }
    *bound = 0x1p-24 * (8 + 4 * sqrt((double)k)) * magnitude + 1e-37;
    if (a->packed)
        *bound += dequant_cut_bound(c->precision, 1, k, largest_x, largest_w);
    return sum;
}

/* up * silu(gate), and its bound. On entry *bound is the bound of `up`, `other` that of `gate`. */
static double gated(double up, double gate, double *bound, double other)
{
    double more, s = activation_host(UNARY_SILU, gate);
    double tolerance = activation_tolerance(UNARY_SILU, gate, s, &more) + 1.2 * other;
    *bound = fabs(s) * *bound + fabs(up) * tolerance + *bound * tolerance;
    return up * s;
}

static rlxvk_status decode_weights(const host_call *c, uint64_t row, float *out)
{
    const projection_attributes *a = c->node->attributes;
    uint64_t k = (uint64_t)a->weights.k;
    if (a->packed)
        return dequant_decode_row(a->weights.format,
                                  c->inputs[1].bytes + row * quant_row_bytes(a->weights.format, k),
                                  k, out);
    for (uint64_t p = 0; p < k; p++) {
        out[p] = c->inputs[1].words[row * k + p];
        out[k + p] = fabsf(out[p]);
    }
    return RLXVK_OK;
}

/* Computes output `column` of the row x. If there is a gate, it also needs the weights that lie
 * half the matrix further on. `w` has room for the weights of one row and their magnitudes. */
static rlxvk_status make_output(const host_call *c, const double *x, uint64_t row, uint64_t column,
                                float *w)
{
    const projection_attributes *a = c->node->attributes;
    uint64_t k = (uint64_t)a->weights.k,
             columns = (uint64_t)c->node->shape.dims[c->node->shape.rank - 1];
    uint64_t at = row * columns + column;
    double bound, other;
    rlxvk_status status;
    TRY(decode_weights(c, column, w));
    double y = multiply(c, x, w, k, &bound);
    if (a->parts & PROJECTION_GATED) {
        TRY(decode_weights(c, columns + column, w));
        double second = multiply(c, x, w, k, &other);
        bool gate_first = a->parts & PROJECTION_GATE_FIRST;
        double of_gate = gate_first ? bound : other;
        bound = gate_first ? other : bound;
        y = gate_first ? gated(second, y, &bound, of_gate) : gated(y, second, &bound, of_gate);
    }
    if (a->parts & PROJECTION_RESIDUAL)
        y += c->inputs[residual_index(a)].words[at];
    c->out[at] = y;
    if (c->bound)
        c->bound[at] = bound + 0x1p-22 * fabs(y);
error:
    return status;
}

static rlxvk_status projection_host(const host_call *c)
{
    const projection_attributes *a = c->node->attributes;
    const rlxvk_shape *y = &c->node->shape;
    uint64_t k = (uint64_t)a->weights.k, columns = (uint64_t)y->dims[y->rank - 1];
    uint64_t rows = shape_product(y, 0, y->rank - 1);
    double *x = memory_zeroed(k + 1, sizeof *x);
    float *w = memory_zeroed(2 * k + 1, sizeof *w);
    rlxvk_status status = x && w ? RLXVK_OK : status_fail_memory("rows of a projection");
    for (uint64_t row = 0; row < rows && status == RLXVK_OK; row++) {
        load_row(c, row, x);
        for (uint64_t j = 0; j < columns; j++)
            TRY(make_output(c, x, row, j, w));
    }
error:
    memory_free(x);
    memory_free(w);
    return status;
}

/* ---- The family ---- */

static rlxvk_tensor expand_product(rlxvk_graph *g, const node *n, rlxvk_tensor x)
{
    const projection_attributes *a = n->attributes;
    const rlxvk_matmul_options transposed = {.transpose_b = true};
    rlxvk_tensor w = tensor_of(g, n->inputs[1]);
    rlxvk_shape rows = rlxvk_tensor_shape(g, x);
    if (a->packed)
        return rlxvk_dequant_matmul(g, x, w, (rlxvk_quant_format)a->weights.format);
    if (rows.rank > 1)
        return rlxvk_matmul_with(g, x, w, &transposed);
    x = rlxvk_matmul_with(g, rlxvk_reshape(g, x, RLXVK_SHAPE(1, rows.dims[0])), w, &transposed);
    return rlxvk_reshape(g, x, RLXVK_SHAPE(-1));
}

static uint64_t projection_bucket(bucket_call *c)
{
    const projection_attributes *a = c->node->attributes;
    uint32_t last = input_shape(c->graph, c->node, 0)->rank - 1;
    return bucket_rows(c, 1u << last, a->parts & PROJECTION_RESIDUAL ? 1u << residual_index(a) : 0);
}

rlxvk_tensor projection_expand(rlxvk_graph *g, const node *n)
{
    const projection_attributes *a = n->attributes;
    rlxvk_tensor y = tensor_of(g, n->inputs[0]);
    if (a->parts & PROJECTION_NORM)
        y = rlxvk_rms_norm(g, y, tensor_of(g, n->inputs[2]), RLXVK_NONE, -1, a->epsilon);
    y = expand_product(g, n, y);
    if (a->parts & PROJECTION_GATED)
        y = rlxvk_fused_swiglu(g, y, a->parts & PROJECTION_GATE_FIRST);
    if (a->parts & PROJECTION_RESIDUAL)
        y = rlxvk_add(g, tensor_of(g, n->inputs[residual_index(a)]), y);
    return y;
}

static rlxvk_status projection_check_content(const node *n, uint32_t operand, const void *data,
                                             uint64_t count)
{
    const projection_attributes *a = n->attributes;
    return a->packed && operand == 1 ? quant_check_blocks(a->weights.format, data, count)
                                     : RLXVK_OK;
}

static void projection_describe(const node *n, text *out)
{
    const projection_attributes *a = n->attributes;
    const quant_format *format = quant_format_find(a->weights.format);
    text_append(out, " format=%s k=%lld", a->packed && format ? format->name : "plain",
                (long long)a->weights.k);
    if (a->parts & PROJECTION_NORM)
        text_append(out, " epsilon=%g", (double)a->epsilon);
    if (a->parts & PROJECTION_GATED)
        text_append(out, " gate=%s", a->parts & PROJECTION_GATE_FIRST ? "first" : "second");
    if (a->parts & PROJECTION_RESIDUAL)
        text_append(out, " residual");
}

const op_family projection_family = {
    .name = "projection",
    .attribute_size = sizeof(projection_attributes),
    .infer = projection_infer,
    .storage = {.raw_inputs = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4, .half_inputs = 1u << 1},
    .execution = {.lower = projection_lower, .host = projection_host},
    .rows = {.bucket = projection_bucket},
    .derivative = {.expand = projection_expand},
    .checks = {.check_content = projection_check_content},
    .describe = projection_describe,
};
