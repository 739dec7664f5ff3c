/*
 * log_mel: logarithms of the mel bands of spectra. A floor keeps values within 8 of the largest of
 * a frame, or of all frames. log_mel_slopes: their derivatives by the sums of the bands. A filter's
 * weights are read only from the first to the last that is not 0. A dispatch of its own finds
 * these.
 */
#include "args/spectral.h"
#include "constants/spectral.h"
#include "op/compose/composite.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/rows/rows.h"

#include <float.h>
#include <math.h>

enum { LOG_MEL_VALUES, LOG_MEL_SLOPES };

#define SMALLEST   1e-10
#define RANGE      8
#define UNCERTAIN  1e-5 /* so close to the floor, either side is accepted */
#define LOG10_OF_E 0.43429448190325176

typedef struct log_mel_attributes {
    rlxvk_log_mel_scope scope;
} log_mel_attributes;

rlxvk_tensor rlxvk_log_mel(rlxvk_graph *g, rlxvk_tensor spectrum, rlxvk_tensor filters,
                           rlxvk_log_mel_scope scope)
{
    log_mel_attributes a = {scope};
    return op_build(g, OP_log_mel, (rlxvk_tensor[]){spectrum, filters}, 2, &a);
}

rlxvk_tensor rlxvk_log_mel_slopes(rlxvk_graph *g, rlxvk_tensor spectrum, rlxvk_tensor filters,
                                  rlxvk_tensor dy, rlxvk_log_mel_scope scope)
{
    log_mel_attributes a = {scope};
    return op_build(g, OP_log_mel_slopes, (rlxvk_tensor[]){spectrum, filters, dy}, 3, &a);
}

static rlxvk_status log_mel_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const log_mel_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0), *filters = input_shape(g, n, 1);
    char left[SHAPE_TEXT], right[SHAPE_TEXT];
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < n->input_count; i++)
        TRY(op_require_dtype(g, n, i, RLXVK_F32, "insert a cast"));
    if ((unsigned)a->scope > RLXVK_LOG_MEL_CLIP)
        return op_fail(n, RLXVK_E_ATTR, "scope %d is not known; it is 0 (frame) or 1 (clip)",
                       (int)a->scope);
    if (x->rank == 0 || filters->rank != 2 || filters->dims[0] < 1)
        return op_fail(n, RLXVK_E_SHAPE,
                       "spectrum %s, filters %s; they are [.., 2 n_fft] and [n_mels, bins]",
                       shape_text(x, left), shape_text(filters, right));
    int64_t width = x->dims[x->rank - 1], bins = filters->dims[1];
    if (width < 2 || width % 2 || (bins != width / 4 + 1 && bins != width / 2))
        return op_fail(
            n, RLXVK_E_SHAPE,
            "spectrum %s, filters %s; of so many bins, a spectrum's last dim has 2 n_fft "
            "numbers with n_fft / 2 + 1 the bins, or twice the bins",
            shape_text(x, left), shape_text(filters, right));
    n->shape = *x;
    n->shape.dims[x->rank - 1] = filters->dims[0];
    n->dtype = RLXVK_F32;
    if (n->input_count > 2 && !shape_equal(&n->shape, input_shape(g, n, 2)))
        return op_fail(n, RLXVK_E_SHAPE, "dy %s; the result of log_mel is %s",
                       shape_text(input_shape(g, n, 2), left), shape_text(&n->shape, right));
error:
    return status;
}

/* Sizes of a node. `together` frames share a floor. */
typedef struct mel_sizes {
    uint64_t frames, mels, bins, width, together;
} mel_sizes;

static mel_sizes sizes_of(const node *n, const rlxvk_shape *x, const rlxvk_shape *filters)
{
    const log_mel_attributes *a = n->attributes;
    uint32_t rank = n->shape.rank;
    bool clip = a->scope == RLXVK_LOG_MEL_CLIP && rank > 1;
    return (mel_sizes){shape_product(&n->shape, 0, rank - 1), (uint64_t)filters->dims[0],
                       (uint64_t)filters->dims[1], (uint64_t)x->dims[rank - 1] / 2,
                       clip ? (uint64_t)n->shape.dims[rank - 2] : 1};
}

static rlxvk_status find_bands(lowering *l, const mel_sizes *s, operand filters, operand *out)
{
    struct log_mel_bands_args args = {(u32)s->mels, (u32)s->bins, filters.offset};
    dispatch d = {.kernel = KERNEL_LOG_MEL_BANDS};
    rlxvk_status status;
    TRY(lower_temporary(l, 8 * s->mels, out));
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, s->mels);
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){filters, *out}, 2));
    out->access = ACCESS_READ;
error:
    return status;
}

static rlxvk_status emit_stage(lowering *l, const mel_sizes *s, uint32_t stage, operand x,
                               operand filters, operand bands, operand y)
{
    bool floors = stage == LOG_MEL_FLOOR;
    struct log_mel_args args = {.frames = (u32)(floors ? s->frames * s->mels : s->frames),
                                .mels = (u32)(floors ? s->together * s->mels : s->mels),
                                .bins = (u32)s->bins,
                                .width = (u32)s->width,
                                .x_offset = x.offset,
                                .filters_offset = filters.offset,
                                .y_offset = y.offset};
    dispatch d = {.kernel = KERNEL_LOG_MEL};
    y.access = ACCESS_READ | ACCESS_WRITE;
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {LOG_MEL_STAGE, stage});
    lower_groups(l, &d, floors ? groups_for(args.frames, l->profile->workgroup_size) : s->frames);
    return lower_emit(l, &d, &args, sizeof args, (operand[]){x, filters, bands, y}, 4);
}

static rlxvk_status lower_values(lowering *l, uint32_t id, const mel_sizes *s)
{
    operand x = lower_input(l, id, 0), filters = lower_input(l, id, 1), y = lower_write(l, id);
    operand bands, largest;
    rlxvk_status status;
    TRY(find_bands(l, s, filters, &bands));
    if (s->together == 1)
        return emit_stage(l, s, LOG_MEL_WHOLE, x, filters, bands, y);
    uint64_t clips = s->frames / s->together;
    TRY(emit_stage(l, s, LOG_MEL_BANDS, x, filters, bands, y));
    TRY(lower_temporary(l, 4 * clips, &largest));
    operand values = y;
    values.access = ACCESS_READ;
    TRY(reduce_rows(l, (axis_view){clips, s->together * s->mels, 1}, REDUCE_MAX, 0, values,
                    largest));
    largest.access = ACCESS_READ;
    TRY(emit_stage(l, s, LOG_MEL_FLOOR, largest, filters, bands, y));
error:
    return status;
}

static rlxvk_status lower_slopes(lowering *l, uint32_t id, const mel_sizes *s)
{
    operand filters = lower_input(l, id, 1), dy = lower_input(l, id, 2), y = lower_write(l, id);
    operand bands, sums;
    rlxvk_status status;
    TRY(find_bands(l, s, filters, &bands));
    TRY(lower_temporary(l, 4 * s->frames * s->mels, &sums));
    TRY(emit_stage(l, s, LOG_MEL_SUMS, lower_input(l, id, 0), filters, bands, sums));
    sums.access = ACCESS_READ;
    struct log_mel_slopes_args args = {(u32)(s->frames / s->together), (u32)(s->together * s->mels),
                                       dy.offset, y.offset};
    dispatch d = {.kernel = KERNEL_LOG_MEL_SLOPES};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, args.rows);
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){sums, dy, y}, 3));
error:
    return status;
}

static rlxvk_status log_mel_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    mel_sizes s = sizes_of(n, input_shape(l->graph, n, 0), input_shape(l->graph, n, 1));
    return (node_code(n) == LOG_MEL_VALUES ? lower_values : lower_slopes)(l, id, &s);
}

/* ---- Host ---- */

/* A band's sum, and the error that a kernel's sum may have. */
typedef struct band_sum {
    double sum, error;
} band_sum;

static band_sum sum_band(const float *x, uint64_t width, const float *weights, uint64_t bins)
{
    band_sum s = {0, 0};
    uint64_t first = 0, end = bins;
    while (first < end && weights[first] == 0)
        first++;
    while (end > first && weights[end - 1] == 0)
        end--;
    for (uint64_t f = first; f < end; f++) {
        double power = (double)x[f] * x[f] + (double)x[width + f] * x[width + f];
        double term = weights[f] * (power > FLT_MAX ? INFINITY : power); /* as in f32 */
        s.sum += term;
        s.error += fabs(term);
    }
    if (fabs(s.sum) > FLT_MAX)
        s.sum *= INFINITY;
    s.error = 0x1p-24 * (double)(8 + end - first) * s.error + 0x1p-100;
    if (isnan(s.error)) /* the sum is NaN and counts as 1e-10 */
        s.error = 0;
    return s;
}

static double value_of(double sum)
{
    return log10(sum > SMALLEST ? sum : SMALLEST);
}

static double value_error(band_sum s)
{
    double v = value_of(s.sum), above = value_of(s.sum + s.error) - v;
    return isfinite(v) ? fmax(above, v - value_of(s.sum - s.error)) : 0;
}

static void host_values(const host_call *c, const band_sum *sums, uint64_t start, uint64_t count)
{
    double largest = -INFINITY, error = 0;
    for (uint64_t i = 0; i < count; i++) {
        largest = fmax(largest, value_of(sums[i].sum));
        error = fmax(error, value_error(sums[i]));
    }
    for (uint64_t i = 0; i < count; i++) {
        double v = value_of(sums[i].sum);
        c->out[start + i] = (fmax(v, largest - RANGE) + 4) / 4;
        if (c->bound)
            c->bound[start + i] = 2e-6 + error / 4;
    }
}

static void host_slopes(const host_call *c, const band_sum *sums, uint64_t start, uint64_t count)
{
    const float *dy = c->inputs[2].words + start;
    double largest = -INFINITY, lost = 0, doubt = 0;
    uint64_t place = 0;
    for (uint64_t i = 0; i < count; i++)
        if (value_of(sums[i].sum) > largest)
            largest = value_of(sums[place = i].sum);
    double top_error = value_error(sums[place]);
    for (uint64_t i = 0; i < count; i++) {
        double v = value_of(sums[i].sum), below = largest - RANGE - v;
        lost += below > 0 ? dy[i] : 0;
        doubt += fabs(dy[i]) * (fabs(below) < UNCERTAIN + top_error + value_error(sums[i]) ? 1
                                : below > 0                                                ? 1e-6
                                                                                           : 0);
    }
    for (uint64_t i = 0; i < count; i++) {
        double sum = sums[i].sum, v = value_of(sum), error = sums[i].error;
        bool near = fabs(v - largest + RANGE) < UNCERTAIN + top_error + value_error(sums[i]);
        bool top = largest - v <= UNCERTAIN + top_error + value_error(sums[i]);
        double g = (v >= largest - RANGE ? dy[i] : 0) + (i == place ? lost : 0);
        double least = fmax(sum - error, SMALLEST), slope = LOG10_OF_E / 4 / least;
        c->out[start + i] = sum > SMALLEST ? g * LOG10_OF_E / 4 / sum : 0;
        if (!c->bound)
            continue;
        double bound = fabs(g) * (2e-6 + error / least) + (near ? fabs(dy[i]) : 0);
        bound += top ? doubt + (top && i != place ? fabs(lost) : 0) : 0;
        /* Another band may be the largest in the kernel. */
        for (uint64_t k = 0; k < count && i == place && lost != 0; k++)
            if (k != i && sums[k].sum + sums[k].error >= sum - error && sums[k].sum < sum)
                bound += fabs(lost);
        if (fabs(sum - SMALLEST) <= error)
            bound += fabs(g);
        c->bound[start + i] = isfinite(sum) ? bound * slope + 1e-36 : 0;
    }
}

static rlxvk_status log_mel_host(const host_call *c)
{
    const float *x = c->inputs[0].words, *filters = c->inputs[1].words;
    mel_sizes s = sizes_of(c->node, &c->inputs[0].node->shape, &c->inputs[1].node->shape);
    uint64_t count = s.frames * s.mels, together = s.together * s.mels;
    band_sum *sums = memory_allocate((size_t)(count + 1) * sizeof *sums);
    if (!sums)
        return status_fail_memory("sums of bands");
    for (uint64_t i = 0; i < count; i++)
        sums[i] =
            sum_band(x + i / s.mels * 2 * s.width, s.width, filters + i % s.mels * s.bins, s.bins);
    for (uint64_t start = 0; start < count; start += together)
        (node_code(c->node) == LOG_MEL_VALUES ? host_values : host_slopes)(c, sums + start, start,
                                                                           together);
    memory_free(sums);
    return RLXVK_OK;
}

/* ---- Rows of a bucket ---- */

/* Each frame has its own floor, or the frames of a clip share one. */
static uint64_t log_mel_bucket(bucket_call *c)
{
    const log_mel_attributes *a = c->node->attributes;
    uint32_t rank = c->node->shape.rank;
    bool clip = a->scope == RLXVK_LOG_MEL_CLIP && rank > 1;
    return bucket_rows(c, 1u << (rank - 1) | (clip ? 1u << (rank - 2) : 0), 1u << 2);
}

/* ---- Gradients ---- */

/* The gradient of a spectrum, from the slopes. */
static rlxvk_tensor spread(rlxvk_graph *g, rlxvk_tensor spectrum, rlxvk_tensor filters,
                           rlxvk_tensor slopes)
{
    rlxvk_shape shape = rlxvk_tensor_shape(g, spectrum), weights = rlxvk_tensor_shape(g, filters);
    int64_t bins = weights.dims[1], width = shape.dims[shape.rank - 1] / 2;
    int64_t frames = (int64_t)shape_product(&shape, 0, shape.rank - 1);
    rlxvk_tensor x = rlxvk_reshape(g, spectrum, RLXVK_SHAPE(frames, 2 * width)), parts[4];
    rlxvk_tensor d = rlxvk_reshape(g, slopes, RLXVK_SHAPE(frames, weights.dims[0]));
    size_t count = 0;
    d = rlxvk_mul(g, rlxvk_matmul(g, d, filters), gradient_scalar(g, 2));
    for (int64_t half = 0; half < 2; half++) {
        parts[count++] = rlxvk_mul(g, d, rlxvk_narrow(g, x, 1, half * width, bins));
        if (width > bins)
            parts[count++] = gradient_filled(g, 0, RLXVK_F32, RLXVK_SHAPE(frames, width - bins));
    }
    return rlxvk_reshape(g, rlxvk_concat(g, parts, count, 1), shape);
}

rlxvk_tensor rlxvk_log_mel_backward(rlxvk_graph *g, rlxvk_tensor spectrum, rlxvk_tensor filters,
                                    rlxvk_tensor dy, rlxvk_log_mel_scope scope)
{
    if (!composite_begin(g, "log_mel_backward", (rlxvk_tensor[]){spectrum, filters, dy}, 3))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    rlxvk_tensor slopes = rlxvk_log_mel_slopes(g, spectrum, filters, dy, scope);
    if (g->status == RLXVK_OK)
        slopes = spread(g, spectrum, filters, slopes);
    return composite_end(g, "log_mel_backward", start, slopes);
}

static rlxvk_status log_mel_vjp(gradient_call *c)
{
    const log_mel_attributes *a = c->n.attributes;
    rlxvk_graph *g = c->graph;
    rlxvk_tensor x = gradient_operand(c, 0), filters = gradient_operand(c, 1);
    rlxvk_tensor slopes = rlxvk_log_mel_slopes(g, x, filters, c->dy, a->scope);
    if (gradient_wanted(c, 0))
        gradient_give(c, 0, spread(g, x, filters, slopes));
    if (gradient_wanted(c, 1)) {
        rlxvk_shape weights = gradient_shape(c, 1), shape = gradient_shape(c, 0);
        int64_t width = shape.dims[shape.rank - 1] / 2;
        int64_t frames = (int64_t)shape_product(&shape, 0, shape.rank - 1);
        x = rlxvk_reshape(g, x, RLXVK_SHAPE(frames, 2 * width));
        rlxvk_tensor re = rlxvk_narrow(g, x, 1, 0, weights.dims[1]);
        rlxvk_tensor im = rlxvk_narrow(g, x, 1, width, weights.dims[1]);
        slopes = rlxvk_reshape(g, slopes, RLXVK_SHAPE(frames, weights.dims[0]));
        slopes = rlxvk_transpose(g, slopes, (int32_t[]){1, 0}, 2);
        rlxvk_tensor power = rlxvk_fma(g, re, re, rlxvk_mul(g, im, im));
        gradient_give(c, 1, rlxvk_matmul(g, slopes, power));
    }
    return RLXVK_OK;
}

static void log_mel_describe(const node *n, text *out)
{
    const log_mel_attributes *a = n->attributes;
    text_append(out, " scope=%s", a->scope == RLXVK_LOG_MEL_CLIP ? "clip" : "frame");
}

const op_family log_mel_family = {
    .name = "log_mel",
    .attribute_size = sizeof(log_mel_attributes),
    .infer = log_mel_infer,
    .execution = {.foldable = true, .lower = log_mel_lower, .host = log_mel_host},
    .rows = {.bucket = log_mel_bucket},
    .derivative = {.vjp = log_mel_vjp},
    .describe = log_mel_describe,
};

const op_family log_mel_slopes_family = {
    .name = "log_mel_slopes",
    .attribute_size = sizeof(log_mel_attributes),
    .infer = log_mel_infer,
    .execution = {.foldable = true, .lower = log_mel_lower, .host = log_mel_host},
    .rows = {.bucket = log_mel_bucket},
    .describe = log_mel_describe,
};
