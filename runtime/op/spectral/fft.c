/*
 * fft: X[k] = S sum over n of x[n] exp(-+2 pi i n k / N) along one axis. Complex tensors (C64) may
 * use any axis. A real tensor whose last axis is 2N long holds N real parts, then N imaginary
 * parts. fft_lower.c has the lowering. fft_view.c has what fft and the transforms of real lines
 * share.
 */
#include "op/bucket.h"
#include "op/spectral/fft.h"
#include "op/families.h"
#include "op/gradient.h"

#include <math.h>

rlxvk_tensor rlxvk_fft_axis(rlxvk_graph *g, rlxvk_tensor x, int32_t axis, bool inverse,
                            rlxvk_fft_norm norm)
{
    fft_attributes a = {axis, inverse, norm};
    return op_build(g, OP_fft, &x, 1, &a);
}

rlxvk_tensor rlxvk_fft(rlxvk_graph *g, rlxvk_tensor x, bool inverse, rlxvk_fft_norm norm)
{
    return rlxvk_fft_axis(g, x, -1, inverse, norm);
}

static rlxvk_status check_block(const node *n, int32_t axis)
{
    if (n->dtype != RLXVK_F32 && n->dtype != RLXVK_F64)
        return op_fail(n, RLXVK_E_DTYPE, "operand is %s; takes C64, or F32 and F64 blocks",
                       rlxvk_dtype_name((rlxvk_dtype)n->dtype));
    if (axis + 1 != (int32_t)n->shape.rank)
        return op_fail(n, RLXVK_E_DTYPE,
                       "axis %d of a block of real and imaginary parts; only the last axis can be "
                       "transformed, or make it C64",
                       axis);
    if (n->shape.dims[axis] % 2)
        return op_fail(n, RLXVK_E_SHAPE, "last dim %lld is odd; N real and N imaginary parts",
                       (long long)n->shape.dims[axis]);
    return RLXVK_OK;
}

rlxvk_status fft_check_norm(const node *n, rlxvk_fft_norm norm)
{
    if ((unsigned)norm <= RLXVK_FFT_ORTHO)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_ATTR,
                   "norm %d is not known; it is 0 (inverse), 1 (none) or 2 (ortho)", (int)norm);
}

static rlxvk_status fft_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    fft_attributes *a = attributes;
    rlxvk_status status;
    n->shape = *input_shape(g, n, 0);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    TRY(fft_check_norm(n, a->norm));
    if (n->shape.rank == 0)
        return op_fail(n, RLXVK_E_SHAPE, "a scalar has no axis to transform; reshape it to [1]");
    TRY(op_axis(n, a->axis, n->shape.rank, &a->axis));
    if (n->dtype != RLXVK_C64)
        TRY(check_block(n, a->axis));
    if (n->shape.dims[a->axis] == 0)
        return op_fail(n, RLXVK_E_SHAPE, "axis %d is empty; a transform has a point at least",
                       a->axis);
error:
    return status;
}

typedef struct line {
    uint64_t start, stride, imaginary; /* in words */
} line;

static line line_of(const fft_view *v, uint64_t outer, uint64_t inner)
{
    if (v->block)
        return (line){outer * 2 * v->length, 1, v->length};
    return (line){2 * (outer * v->length * v->inner + inner), 2 * v->inner, 1};
}

/* The inverse is the conjugate of the forward transform of the conjugate. */
static rlxvk_status host_line(const host_call *c, const fft_view *v, line at, complex_value *row)
{
    bool inverse = ((const fft_attributes *)c->node->attributes)->inverse;
    double sign = inverse ? -1 : 1, scale = fft_scale(c->node), power = 0;
    const float *x = c->inputs[0].words + at.start;
    double *out = c->out + at.start;
    for (uint64_t i = 0; i < v->length; i++)
        row[i] = (complex_value){x[i * at.stride], sign * x[i * at.stride + at.imaginary]};
    rlxvk_status status = fft_exact(row, v->length);
    for (uint64_t i = 0; i < v->length && status == RLXVK_OK; i++) {
        out[i * at.stride] = scale * row[i].re;
        out[i * at.stride + at.imaginary] = sign * scale * row[i].im;
        power += scale * scale * (row[i].re * row[i].re + row[i].im * row[i].im);
    }
    double bound = fft_relative_bound(v->length) * sqrt(power / (double)v->length);
    for (uint64_t i = 0; i < v->length && c->bound; i++)
        c->bound[at.start + i * at.stride] = c->bound[at.start + i * at.stride + at.imaginary] =
            bound;
    return status;
}

static rlxvk_status fft_host(const host_call *c)
{
    fft_view v = fft_view_of(c->node);
    complex_value *row = memory_allocate(v.length * sizeof *row);
    rlxvk_status status = row ? RLXVK_OK : status_fail_memory("transform");
    for (uint64_t o = 0; o < v.outer; o++)
        for (uint64_t i = 0; i < v.inner && status == RLXVK_OK; i++)
            status = host_line(c, &v, line_of(&v, o, i), row);
    memory_free(row);
    return status;
}

static uint64_t fft_bucket(bucket_call *c)
{
    const fft_attributes *a = c->node->attributes;
    return bucket_rows(c, 1u << a->axis, 0);
}

/* The adjoint of the transform is the other direction, with the factor of this one. */
static rlxvk_status fft_vjp(gradient_call *c)
{
    const fft_attributes *a = c->n.attributes;
    rlxvk_fft_norm norm = a->norm == RLXVK_FFT_ORTHO ? RLXVK_FFT_ORTHO : RLXVK_FFT_NONE;
    rlxvk_tensor dx = rlxvk_fft_axis(c->graph, c->dy, a->axis, !a->inverse, norm);
    int64_t points = c->n.shape.dims[a->axis] / (c->n.dtype == RLXVK_C64 ? 1 : 2);
    if (a->inverse && a->norm == RLXVK_FFT_INVERSE)
        dx = rlxvk_mul(c->graph, dx, gradient_scalar(c->graph, 1.0 / (double)points));
    gradient_give(c, 0, dx);
    return RLXVK_OK;
}

static void fft_describe(const node *n, text *out)
{
    const fft_attributes *a = n->attributes;
    text_append(out, " axis=%d inverse=%d norm=%s", a->axis, a->inverse, fft_norm_name(a->norm));
}

const op_family fft_family = {
    .name = "fft",
    .attribute_size = sizeof(fft_attributes),
    .infer = fft_infer,
    .storage = {.pairs = true},
    .execution = {.foldable = true, .lower = fft_lower, .host = fft_host},
    .rows = {.bucket = fft_bucket},
    .derivative = {.vjp = fft_vjp},
    .describe = fft_describe,
};
