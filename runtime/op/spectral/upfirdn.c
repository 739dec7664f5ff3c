/*
 * upfirdn: puts zeros between samples, filters, and keeps every down-th sample. Products with these
 * zeros are skipped. Its adjoint is upfirdn itself with the taps reversed and both rates exchanged.
 * resample is composed of it.
 */
#include "args/spectral.h"
#include "constants/spectral.h"
#include "base/numeric.h"
#include "op/compose/composite.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/spectral/windows.h"

#include <math.h>
#include <rlxvk_ops_array.h>

#define MOST_RATE (1 << 20)
#define HALF_TAPS 10 /* of resample's sinc, in units of the larger rate */
#define BETA      5.0

/* y[n] = sum over k of taps[n down + shift - k up] x[k]. The result has `length` elements. If
 * `length` is below 0, it has all that are not empty sums. */
typedef struct upfirdn_attributes {
    int64_t up, down, shift, length;
} upfirdn_attributes;

rlxvk_tensor rlxvk_upfirdn(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor taps, int64_t up,
                           int64_t down)
{
    upfirdn_attributes a = {up, down, 0, -1};
    return op_build(g, OP_upfirdn, (rlxvk_tensor[]){x, taps}, 2, &a);
}

static rlxvk_status upfirdn_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    upfirdn_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0), *taps = input_shape(g, n, 1);
    char left[SHAPE_TEXT], right[SHAPE_TEXT];
    int64_t whole, reach;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < n->input_count; i++)
        TRY(op_require_dtype(g, n, i, RLXVK_F32, "insert a cast"));
    if (a->up < 1 || a->down < 1)
        return op_fail(n, RLXVK_E_ATTR, "up is %lld, down %lld; both are at least 1",
                       (long long)a->up, (long long)a->down);
    if (x->rank < 1 || x->dims[x->rank - 1] < 1 || taps->rank != 1 || taps->dims[0] < 1)
        return op_fail(n, RLXVK_E_SHAPE, "x %s, taps %s; they are [.., T] and [L], at least 1 each",
                       shape_text(x, left), shape_text(taps, right));
    bool small = MAX(a->up, a->down) <= INT32_MAX && x->dims[x->rank - 1] <= INT32_MAX &&
                 taps->dims[0] <= INT32_MAX;
    whole = small ? (x->dims[x->rank - 1] - 1) * a->up + taps->dims[0] : INT32_MAX;
    if (!small || whole + a->up + a->down > INT32_MAX)
        return op_fail(n, RLXVK_E_TOO_LARGE,
                       "%lld samples, %lld for each, and %lld taps are more than 2^31 - 1",
                       (long long)x->dims[x->rank - 1], (long long)a->up, (long long)taps->dims[0]);
    if (a->length < 0)
        a->length = (whole + a->down - 1) / a->down;
    if (multiply_overflows(a->length, a->down, &reach) || reach > INT32_MAX ||
        a->shift > INT32_MAX - reach)
        return op_fail(n, RLXVK_E_TOO_LARGE, "%lld samples, one of %lld, are more than 2^31 - 1",
                       (long long)a->length, (long long)a->down);
    n->shape = *x;
    n->shape.dims[n->shape.rank - 1] = a->length;
    n->dtype = RLXVK_F32;
error:
    return status;
}

static rlxvk_status upfirdn_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const upfirdn_attributes *a = n->attributes;
    const rlxvk_shape *in = input_shape(l->graph, n, 0);
    operand x = lower_input(l, id, 0), taps = lower_input(l, id, 1), y = lower_write(l, id);
    struct upfirdn_args args = {.outputs = (u32)shape_numel(&n->shape),
                                .samples = (u32)a->length,
                                .extent = (u32)in->dims[in->rank - 1],
                                .tap_count = (u32)input_shape(l->graph, n, 1)->dims[0],
                                .up = (i32)a->up,
                                .down = (i32)a->down,
                                .shift = (i32)a->shift,
                                .x_offset = x.offset,
                                .taps_offset = taps.offset,
                                .y_offset = y.offset};
    dispatch d = {.kernel = KERNEL_UPFIRDN};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, groups_for(args.outputs, l->profile->workgroup_size));
    return lower_emit(l, &d, &args, sizeof args, (operand[]){x, taps, y}, 3);
}

/* Adds what each sample contributes to the results that it reaches. */
static rlxvk_status upfirdn_host(const host_call *c)
{
    const upfirdn_attributes *a = c->node->attributes;
    const rlxvk_shape *in = &c->inputs[0].node->shape;
    uint64_t extent = (uint64_t)in->dims[in->rank - 1], length = (uint64_t)a->length;
    uint64_t rows = shape_numel(in) / extent, count = rows * length;
    int64_t taps = c->inputs[1].node->shape.dims[0];
    double *sizes = memory_zeroed(count + 1, sizeof *sizes); /* of finite terms */
    if (!sizes)
        return status_fail_memory("upfirdn");
    for (uint64_t i = 0; c->bound && i < count; i++)
        c->bound[i] = 1e-36;
    for (uint64_t i = 0; i < rows * extent; i++)
        for (int64_t t = 0; t < taps; t++) {
            int64_t at = t + (int64_t)(i % extent) * a->up - a->shift;
            double term = (double)c->inputs[0].words[i] * c->inputs[1].words[t];
            if (at < 0 || at % a->down || at / a->down >= a->length)
                continue;
            uint64_t to = i / extent * length + (uint64_t)(at / a->down);
            c->out[to] += term;
            sizes[to] += isfinite(term) ? fabs(term) : 0;
            if (c->bound)
                c->bound[to] += 0x1p-24 * ((double)(taps / a->up) + 2) * fabs(term);
        }
    for (uint64_t i = 0; i < count; i++)
        host_judge_range(c, i, sizes[i]);
    memory_free(sizes);
    return RLXVK_OK;
}

/* The gradient of tap m: the sum over n of dy[n] times the sample that the tap met. That is a
 * sample of x with the zeros in between. */
static rlxvk_tensor differentiate_taps(gradient_call *c, const upfirdn_attributes *a)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape x = gradient_shape(c, 0), taps = gradient_shape(c, 1);
    int64_t samples = x.dims[x.rank - 1], count = taps.dims[0], needed;
    int64_t rows = (int64_t)shape_numel(&x) / samples, front = count - 1 - a->shift;
    const int32_t first = 0;
    rlxvk_tensor wide = rlxvk_reshape(g, gradient_operand(c, 0), RLXVK_SHAPE(rows, samples, 1));
    wide = rlxvk_pad(g, wide, (int64_t[]){0}, (int64_t[]){a->up - 1}, 1, NULL);
    wide = rlxvk_reshape(g, wide, RLXVK_SHAPE(rows, samples * a->up));
    needed = (a->length - 1) * a->down + count;
    wide = rlxvk_pad(g, wide, &front, (int64_t[]){needed - front - samples * a->up}, 1, NULL);
    rlxvk_tensor met = rlxvk_frames(g, wide, count, a->down);
    met = rlxvk_reshape(g, met, RLXVK_SHAPE(rows * a->length, count));
    rlxvk_tensor dy = rlxvk_reshape(g, c->dy, RLXVK_SHAPE(1, rows * a->length));
    rlxvk_tensor sums = rlxvk_reshape(g, rlxvk_matmul(g, dy, met), RLXVK_SHAPE(count));
    return rlxvk_reverse(g, sums, &first, 1);
}

static rlxvk_status upfirdn_vjp(gradient_call *c)
{
    const upfirdn_attributes a = *(const upfirdn_attributes *)c->n.attributes;
    rlxvk_graph *g = c->graph;
    rlxvk_shape x = gradient_shape(c, 0), taps = gradient_shape(c, 1);
    const int32_t first = 0;
    if (shape_numel(&c->n.shape) == 0) {
        gradient_give(c, 0, gradient_filled(g, 0, RLXVK_F32, x));
        gradient_give(c, 1, gradient_filled(g, 0, RLXVK_F32, taps));
        return RLXVK_OK;
    }
    if (gradient_wanted(c, 0)) {
        upfirdn_attributes back = {a.down, a.up, taps.dims[0] - 1 - a.shift, x.dims[x.rank - 1]};
        rlxvk_tensor turned = rlxvk_reverse(g, gradient_operand(c, 1), &first, 1);
        gradient_give(c, 0, op_build(g, OP_upfirdn, (rlxvk_tensor[]){c->dy, turned}, 2, &back));
    }
    if (gradient_wanted(c, 1))
        gradient_give(c, 1, differentiate_taps(c, &a));
    return RLXVK_OK;
}

static void upfirdn_describe(const node *n, text *out)
{
    const upfirdn_attributes *a = n->attributes;
    text_append(out, " up=%lld down=%lld shift=%lld length=%lld", (long long)a->up,
                (long long)a->down, (long long)a->shift, (long long)a->length);
}

const op_family upfirdn_family = {
    .name = "upfirdn",
    .attribute_size = sizeof(upfirdn_attributes),
    .infer = upfirdn_infer,
    .execution = {.foldable = true, .lower = upfirdn_lower, .host = upfirdn_host},
    .rows = {.bucket = bucket_vectors},
    .derivative = {.vjp = upfirdn_vjp},
    .describe = upfirdn_describe,
};

/* ---- resample ---- */

/* A low-pass filter with gain `up`. It cuts at half of the lower rate. */
static rlxvk_tensor make_taps(rlxvk_graph *g, int64_t up, int64_t down)
{
    int64_t larger = MAX(up, down), half = HALF_TAPS * larger, count = 2 * half + 1;
    const double pi = acos(-1);
    double *exact = memory_zeroed((size_t)count, sizeof *exact), sum = 0;
    float *words = memory_zeroed((size_t)count, sizeof *words);
    rlxvk_tensor taps = RLXVK_NONE;
    for (int64_t i = 0; exact && words && i < count; i++) {
        double at = (double)(i - half), from = at / (double)half, angle = pi * at / (double)larger;
        exact[i] = (at != 0 ? numeric_sin(angle) / angle : 1) *
                   windows_bessel(BETA * sqrt(1 - from * from));
        sum += exact[i];
    }
    for (int64_t i = 0; exact && words && i < count; i++)
        words[i] = (float)(exact[i] / sum * (double)up);
    if (exact && words)
        taps = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(count), words, (size_t)count * 4);
    else
        graph_fail(g, status_fail_memory("resample"));
    memory_free(exact);
    memory_free(words);
    return taps;
}

rlxvk_tensor rlxvk_resample(rlxvk_graph *g, rlxvk_tensor x, int64_t up, int64_t down)
{
    static const char row[] = "resample";
    if (!composite_begin(g, row, &x, 1))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    int64_t samples = shape.rank ? shape.dims[shape.rank - 1] : 0;
    if (up < 1 || down < 1)
        composite_fail(g, row, RLXVK_E_ATTR, "up is %lld, down %lld; both are at least 1",
                       (long long)up, (long long)down);
    else if (composite_number(g, row, "x", samples) && samples < 1)
        composite_fail(g, row, RLXVK_E_SHAPE, "x has no sample along its last axis");
    if (g->status != RLXVK_OK)
        return composite_end(g, row, start, RLXVK_NONE);
    int64_t divisor = (int64_t)common_divisor((uint64_t)up, (uint64_t)down), length;
    up /= divisor;
    down /= divisor;
    if (up > MOST_RATE || down > MOST_RATE || multiply_overflows(samples, up, &length)) {
        composite_fail(g, row, RLXVK_E_TOO_LARGE, "%lld / %lld of %lld samples; rates end at 2^20",
                       (long long)up, (long long)down, (long long)samples);
        return composite_end(g, row, start, RLXVK_NONE);
    }
    upfirdn_attributes a = {up, down, HALF_TAPS * MAX(up, down),
                            divide_up((uint64_t)length, (uint64_t)down)};
    rlxvk_tensor taps = make_taps(g, up, down);
    return composite_end(g, row, start, op_build(g, OP_upfirdn, (rlxvk_tensor[]){x, taps}, 2, &a));
}
