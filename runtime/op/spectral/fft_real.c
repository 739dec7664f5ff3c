/*
 * rfft_block: bins 0 .. h of the transform of real lines of n = 2h points, [.., 2 (h + 1)]: real
 * parts, then imaginary parts. irfft_block: the lines that have these bins. It ignores the
 * imaginary parts of bins 0 and h.
 *
 * Both transform the h pairs of a line (glsl/spectral/fft_real.glsl), so n and the length of lines
 * are even. rfft_block cuts lines that are longer than n, and pads shorter ones with zeros.
 */
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/spectral/fft.h"

#include <math.h>

static bool is_inverse(const node *n)
{
    return node_code(n) == FFT_REAL_INVERSE;
}

static rlxvk_status check_length(const node *n, int64_t length)
{
    const fft_real_attributes *a = n->attributes;
    if (is_inverse(n) && length != a->length + 2)
        return op_fail(n, RLXVK_E_SHAPE, "last dim %lld; %lld points have bins of %lld numbers",
                       (long long)length, (long long)a->length, (long long)a->length + 2);
    if (!is_inverse(n) && length != a->length && length % 2)
        return op_fail(n, RLXVK_E_SHAPE, "last dim %lld is odd; cut or pad it to %lld first",
                       (long long)length, (long long)a->length);
    return RLXVK_OK;
}

static rlxvk_status fft_real_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const fft_real_attributes *a = attributes;
    rlxvk_status status;
    n->shape = *input_shape(g, n, 0);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    TRY(fft_check_norm(n, a->norm));
    if (a->length < 2 || a->length % 2 || a->length > INT32_MAX - 2)
        return op_fail(n, RLXVK_E_ATTR, "n is %lld; takes even numbers from 2 to 2^31 - 4",
                       (long long)a->length);
    if (n->dtype != RLXVK_F32 && n->dtype != RLXVK_F64)
        return op_fail(n, RLXVK_E_DTYPE, "operand is %s; takes F32 and F64",
                       rlxvk_dtype_name((rlxvk_dtype)n->dtype));
    if (n->shape.rank == 0)
        return op_fail(n, RLXVK_E_SHAPE, "a scalar has no axis to transform; reshape it to [1]");
    int64_t *last = &n->shape.dims[n->shape.rank - 1];
    TRY(check_length(n, *last));
    *last = is_inverse(n) ? a->length : a->length + 2;
error:
    return status;
}

static double scale_of(const node *n)
{
    const fft_real_attributes *a = n->attributes;
    if (a->norm == RLXVK_FFT_ORTHO)
        return 1 / sqrt((double)a->length);
    return a->norm == RLXVK_FFT_INVERSE && is_inverse(n) ? 1 / (double)a->length : 1;
}

static fft_port port_of_line(operand o, uint64_t length)
{
    return (fft_port){o, o.offset, length, 0, 2, 1, o.offset % 2 == 0 && length % 2 == 0};
}

static fft_port port_of_bins(operand o, uint64_t length)
{
    return (fft_port){o, o.offset, length + 2, 0, 1, (int32_t)(length / 2 + 1), false};
}

static rlxvk_status fft_real_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const fft_real_attributes *a = n->attributes;
    uint64_t points = (uint64_t)a->length, numel = shape_numel(&n->shape);
    operand x = lower_input(l, id, 0), y = lower_write(l, id);
    fft_request r = {.limit = UINT32_MAX, .scale = (float)scale_of(n), .inverse = is_inverse(n)};
    r.view = (fft_view){numel / (uint64_t)n->shape.dims[n->shape.rank - 1], points / 2, 1, false};
    if (is_inverse(n)) {
        r.in = port_of_bins(x, points);
        r.out = port_of_line(y, points);
        r.from_bins = true;
    } else {
        uint64_t given = (uint64_t)input_shape(l->graph, n, 0)->dims[n->shape.rank - 1];
        r.in = port_of_line(x, given);
        r.out = port_of_bins(y, points);
        r.to_bins = true;
        if (given < points)
            r.limit = (uint32_t)(given / 2);
    }
    return fft_lower_request(l, &r);
}

static void host_bound(const host_call *c, uint64_t start, uint64_t count, double power)
{
    uint64_t points = (uint64_t)((const fft_real_attributes *)c->node->attributes)->length;
    double bound = fft_relative_bound(points) * sqrt(power / (double)points);
    for (uint64_t i = 0; i < count && c->bound; i++)
        c->bound[start + i] = bound;
}

static rlxvk_status host_forward(const host_call *c, uint64_t line, complex_value *row)
{
    const rlxvk_shape *in = &c->inputs[0].node->shape;
    uint64_t n = (uint64_t)((const fft_real_attributes *)c->node->attributes)->length;
    uint64_t given = (uint64_t)in->dims[in->rank - 1], bins = n / 2 + 1;
    double scale = scale_of(c->node), power = 0, *out = c->out + line * 2 * bins;
    for (uint64_t i = 0; i < n; i++)
        row[i] = (complex_value){i < given ? c->inputs[0].words[line * given + i] : 0, 0};
    rlxvk_status status = fft_exact(row, n);
    for (uint64_t k = 0; k < n && status == RLXVK_OK; k++)
        power += scale * scale * (row[k].re * row[k].re + row[k].im * row[k].im);
    for (uint64_t k = 0; k < bins && status == RLXVK_OK; k++) {
        out[k] = scale * row[k].re;
        out[bins + k] = scale * row[k].im;
    }
    host_bound(c, line * 2 * bins, 2 * bins, power);
    return status;
}

/* The inverse is the conjugate of the forward transform of the conjugate. Here it is real. */
static rlxvk_status host_inverse(const host_call *c, uint64_t line, complex_value *row)
{
    uint64_t n = (uint64_t)((const fft_real_attributes *)c->node->attributes)->length;
    uint64_t bins = n / 2 + 1;
    const float *re = c->inputs[0].words + line * 2 * bins, *im = re + bins;
    double scale = scale_of(c->node), power = 0;
    for (uint64_t k = 0; k < bins; k++) {
        double imaginary = k == 0 || k == n / 2 ? 0 : im[k];
        row[k] = (complex_value){re[k], -imaginary};
        row[(n - k) % n] = (complex_value){re[k], imaginary};
    }
    rlxvk_status status = fft_exact(row, n);
    for (uint64_t i = 0; i < n && status == RLXVK_OK; i++) {
        c->out[line * n + i] = scale * row[i].re;
        power += scale * scale * row[i].re * row[i].re;
    }
    host_bound(c, line * n, n, power);
    return status;
}

static rlxvk_status fft_real_host(const host_call *c)
{
    uint64_t n = (uint64_t)((const fft_real_attributes *)c->node->attributes)->length;
    uint64_t lines =
        shape_numel(&c->node->shape) / (uint64_t)c->node->shape.dims[c->node->shape.rank - 1];
    complex_value *row = memory_allocate(n * sizeof *row);
    rlxvk_status status = row ? RLXVK_OK : status_fail_memory("transform");
    for (uint64_t line = 0; line < lines && status == RLXVK_OK; line++)
        status = (is_inverse(c->node) ? host_inverse : host_forward)(c, line, row);
    memory_free(row);
    return status;
}

/* Weights of bins: `factor`, times `twice` for bins that also stand for their mirror image. */
static rlxvk_tensor bin_weights(rlxvk_graph *g, int64_t length, double twice, double factor)
{
    int64_t bins = length / 2 + 1;
    float *weights = memory_allocate((size_t)(2 * bins) * sizeof *weights);
    if (!weights) {
        graph_fail(g, status_fail_memory("weights of bins"));
        return RLXVK_NONE;
    }
    for (int64_t i = 0; i < 2 * bins; i++)
        weights[i] = (float)(i % bins == 0 || i % bins == bins - 1 ? factor : twice * factor);
    rlxvk_tensor t = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(2 * bins), weights,
                                    (size_t)(2 * bins) * sizeof *weights);
    memory_free(weights);
    return t;
}

/* x, padded with zeros or cut on its last axis. */
static rlxvk_tensor resized(rlxvk_graph *g, rlxvk_tensor x, int64_t length)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    int32_t axis = (int32_t)shape.rank - 1;
    int64_t missing = length - shape.dims[axis];
    if (missing <= 0)
        return missing ? rlxvk_narrow(g, x, axis, 0, length) : x;
    shape.dims[axis] = missing;
    return rlxvk_concat(g, (rlxvk_tensor[]){x, gradient_filled(g, 0, RLXVK_F32, shape)}, 2, axis);
}

/* Each op is the other's adjoint, except for the bins that one of them counts twice. */
static rlxvk_status fft_real_vjp(gradient_call *c)
{
    const fft_real_attributes *a = c->n.attributes;
    rlxvk_graph *g = c->graph;
    double scale = scale_of(&c->n);
    if (is_inverse(&c->n)) {
        rlxvk_tensor bins = rlxvk_rfft_block(g, c->dy, a->length, RLXVK_FFT_NONE);
        gradient_give(c, 0, rlxvk_mul(g, bins, bin_weights(g, a->length, 2, scale)));
        return RLXVK_OK;
    }
    rlxvk_shape x = gradient_shape(c, 0);
    rlxvk_tensor halves = rlxvk_mul(g, c->dy, bin_weights(g, a->length, 0.5, scale));
    rlxvk_tensor lines = rlxvk_irfft_block(g, halves, a->length, RLXVK_FFT_NONE);
    gradient_give(c, 0, resized(g, lines, x.dims[x.rank - 1]));
    return RLXVK_OK;
}

static void fft_real_describe(const node *n, text *out)
{
    const fft_real_attributes *a = n->attributes;
    text_append(out, " n=%lld norm=%s", (long long)a->length, fft_norm_name(a->norm));
}

const op_family fft_real_family = {
    .name = "fft_real",
    .attribute_size = sizeof(fft_real_attributes),
    .infer = fft_real_infer,
    .execution = {.foldable = true, .lower = fft_real_lower, .host = fft_real_host},
    .rows = {.bucket = bucket_vectors},
    .derivative = {.vjp = fft_real_vjp},
    .describe = fft_real_describe,
};
