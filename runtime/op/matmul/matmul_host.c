/*
 * The matrix products on the host, in double: y = f(z), z = sum_k a b + bias. Also how far f32 may
 * stray from it.
 *
 * Let eps = 2^-23, u = 2^-24 and S = sum |a b| (+ |bias|). The bound of a plain product is the
 * larger of eps (8 + 2 sqrt K) S and 1e-7 + u (8 + 4 sqrt K) S. A fused product has t = 1e-7 + u (8
 * + 4 sqrt K) S before the activation. After it, the bound is how far f strays for z +- t, but at
 * least t, plus the activation's own tolerance.
 */
#include "args/elementwise.h"
#include "op/matmul/matmul.h"
#include "op/activation.h"

#include <math.h>

/* ---- products ---- */

typedef struct matrix {
    const float *words;
    uint64_t row, column; /* strides */
} matrix;

static matrix matrix_at(const host_tensor *t, uint64_t batch, bool transposed)
{
    const rlxvk_shape *s = &t->node->shape;
    uint64_t width = (uint64_t)s->dims[s->rank - 1];
    uint64_t size = shape_product(s, s->rank > 1 ? s->rank - 2 : 0, s->rank);
    const float *first = t->words + batch * size;
    return transposed ? (matrix){first, 1, width} : (matrix){first, width, 1};
}

/* Which matrix of `t` belongs to matrix `batch` of the result, if leading axes broadcast as in
 * numpy. */
static uint64_t batch_of(const rlxvk_shape *t, const rlxvk_shape *result, uint64_t batch)
{
    uint64_t index = 0, step = 1;
    for (uint32_t i = 2; i < result->rank; i++) {
        uint64_t extent = (uint64_t)result->dims[result->rank - 1 - i];
        uint64_t coordinate = batch % extent;
        batch /= extent;
        if (i >= t->rank)
            break;
        uint64_t own = (uint64_t)t->dims[t->rank - 1 - i];
        index += own == 1 ? 0 : coordinate * step;
        step *= own;
    }
    return index;
}

static double plain_bound(double terms, double magnitude)
{
    double product = 0x1p-23 * (8 + 2 * sqrt(terms)) * magnitude;
    return fmax(product, 1e-7 + 0x1p-24 * (8 + 4 * sqrt(terms)) * magnitude);
}

double matmul_precision_bound(rlxvk_precision precision, double terms, double magnitude, double a,
                              double b)
{
    static const double relative[] = {[RLXVK_PRECISION_F16] = 0x1p-10,
                                      [RLXVK_PRECISION_BF16] = 0x1p-7,
                                      [RLXVK_PRECISION_SPLIT] = 0x1p-20};
    if (precision == RLXVK_PRECISION_F32)
        return 0;
    double bound = relative[precision] * magnitude, largest = fmax(a, b);
    if (precision == RLXVK_PRECISION_SPLIT)
        return isfinite(largest) ? bound + 0x1p-38 * terms * a * b : INFINITY;
    /* The least magnitude that rounds to infinity. */
    double limit = precision == RLXVK_PRECISION_F16 ? 65520 : 0x1.ffp127;
    return largest >= limit ? INFINITY : bound;
}

/* One element: row i of a times column j of b. */
static void element(const host_call *c, const matrix *a, const matrix *b, uint64_t k, uint64_t i,
                    uint64_t j, double *out, double *bound)
{
    const matmul_attributes *attributes = c->node->attributes;
    bool fused = c->node->input_count == 3;
    double sum = 0, magnitude = 0, in_range = 0, largest_a = 0, largest_b = 0, extra;
    for (uint64_t t = 0; t < k; t++) {
        double x = a->words[i * a->row + t * a->column], w = b->words[t * b->row + j * b->column];
        sum += x * w;
        magnitude += fabs(x * w);
        in_range += isfinite(x * w) ? fabs(x * w) : 0;
        largest_a = fmax(largest_a, fabs(x));
        largest_b = fmax(largest_b, fabs(w));
    }
    extra = matmul_precision_bound(c->precision, (double)k, magnitude, largest_a, largest_b);
    *out = sum;
    *bound = plain_bound((double)k, magnitude) + extra;
    if (!fused) {
        host_judge_range(c, (uint64_t)(out - c->out), in_range);
        return;
    }
    if (in_range > FLT_MAX && c->bound) {
        host_leave_open(c, (uint64_t)(out - c->out)); /* whatever the activation gives */
        return;
    }
    *out += c->inputs[2].words[j];
    magnitude += fabs((double)c->inputs[2].words[j]);
    *bound = 1e-7 + 0x1p-24 * (8 + 4 * sqrt((double)k)) * magnitude + extra;
    if (attributes->activation == RLXVK_ACTIVATION_NONE)
        return;
    *out = activation_carry(activation_code(attributes->activation), *out, *bound, bound);
    if (isinf(*bound))
        host_leave_open(c, (uint64_t)(out - c->out));
}

rlxvk_status matmul_host(const host_call *c)
{
    const matmul_attributes *attributes = c->node->attributes;
    const rlxvk_shape *y = &c->node->shape, *a_shape = &c->inputs[0].node->shape;
    /* In a fused product b is one matrix, and each leading axis is a batch axis. Rank 1 is one
     * row. */
    uint64_t m = y->rank > 1 ? (uint64_t)y->dims[y->rank - 2] : 1;
    uint64_t n = (uint64_t)y->dims[y->rank - 1];
    uint64_t k = (uint64_t)a_shape->dims[a_shape->rank - (attributes->transpose_a ? 2 : 1)];
    uint64_t numel = shape_numel(y);
    for (uint64_t e = 0; e < numel; e++) {
        uint64_t batch = e / (m * n);
        matrix a = matrix_at(&c->inputs[0], batch_of(a_shape, y, batch), attributes->transpose_a);
        matrix b = matrix_at(&c->inputs[1], batch_of(&c->inputs[1].node->shape, y, batch),
                             attributes->transpose_b);
        double bound;
        element(c, &a, &b, k, e / n % m, e % n, &c->out[e], c->bound ? &c->bound[e] : &bound);
    }
    return RLXVK_OK;
}
