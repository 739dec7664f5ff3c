/*
 * overlap_add: puts frames back to where they were taken from, hop apart, and adds them in the
 * order of frames. With a window, frames are multiplied by it, and the result is divided by the sum
 * of its squares. istft is composed of it.
 */
#include "args/spectral.h"
#include "constants/spectral.h"
#include "op/compose/composite.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#include <math.h>

typedef struct overlap_add_attributes {
    int64_t hop;
} overlap_add_attributes;

rlxvk_tensor rlxvk_overlap_add(rlxvk_graph *g, rlxvk_tensor frames, rlxvk_tensor window,
                               int64_t hop)
{
    overlap_add_attributes a = {hop};
    return op_build(g, OP_overlap_add, (rlxvk_tensor[]){frames, window}, 2, &a);
}

static rlxvk_status overlap_add_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const overlap_add_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    char left[SHAPE_TEXT], right[SHAPE_TEXT];
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < n->input_count; i++)
        TRY(op_require_dtype(g, n, i, RLXVK_F32, "insert a cast"));
    if (a->hop < 1 || a->hop > INT32_MAX)
        return op_fail(n, RLXVK_E_ATTR, "hop is %lld; takes 1 to 2^31 - 1", (long long)a->hop);
    if (x->rank < 2 || x->dims[x->rank - 1] < 1 || x->dims[x->rank - 2] < 1)
        return op_fail(n, RLXVK_E_SHAPE,
                       "frames %s; they are [.., frames, length], at least 1 each",
                       shape_text(x, left));
    int64_t length = x->dims[x->rank - 1], count = x->dims[x->rank - 2];
    if (n->input_count > 1) {
        const rlxvk_shape *window = input_shape(g, n, 1);
        if (window->rank != 1 || window->dims[0] != length)
            return op_fail(n, RLXVK_E_SHAPE, "window %s, frames %s; it is as long as a frame",
                           shape_text(window, left), shape_text(x, right));
    }
    int64_t samples;
    if (multiply_overflows(count - 1, a->hop, &samples) || add_overflows(samples, length, &samples))
        return op_fail(n, RLXVK_E_TOO_LARGE, "frames %s, one every %lld, reach 2^63 samples",
                       shape_text(x, left), (long long)a->hop);
    n->shape = *x;
    n->shape.dims[--n->shape.rank - 1] = samples;
    n->dtype = RLXVK_F32;
error:
    return status;
}

static rlxvk_status overlap_add_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_shape *in = input_shape(l->graph, n, 0);
    bool windowed = n->input_count > 1;
    operand x = lower_input(l, id, 0), y = lower_write(l, id);
    operand window = windowed ? lower_input(l, id, 1) : x;
    struct overlap_add_args args = {.outputs = (u32)shape_numel(&n->shape),
                                    .samples = (u32)n->shape.dims[n->shape.rank - 1],
                                    .frames = (u32)in->dims[in->rank - 2],
                                    .extent = (u32)in->dims[in->rank - 1],
                                    .hop =
                                        (u32)((const overlap_add_attributes *)n->attributes)->hop,
                                    .x_offset = x.offset,
                                    .window_offset = window.offset,
                                    .y_offset = y.offset};
    dispatch d = {.kernel = KERNEL_OVERLAP_ADD};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {OVERLAP_ADD_WINDOWED, windowed});
    lower_groups(l, &d, groups_for(args.outputs, l->profile->workgroup_size));
    return lower_emit(l, &d, &args, sizeof args, (operand[]){x, window, y}, 3);
}

/* Adds frame by frame. */
static void host_row(const host_call *c, const rlxvk_shape *in, uint64_t row, double *squares)
{
    uint64_t frames = (uint64_t)in->dims[in->rank - 2], length = (uint64_t)in->dims[in->rank - 1];
    uint64_t hop = (uint64_t)((const overlap_add_attributes *)c->node->attributes)->hop;
    uint64_t samples = (frames - 1) * hop + length;
    const float *x = c->inputs[0].words + row * frames * length;
    const float *window = c->node->input_count > 1 ? c->inputs[1].words : NULL;
    double *out = c->out + row * samples, *size = squares + samples, terms = 0;
    for (uint64_t t = 0; t < samples; t++)
        squares[t] = size[t] = 0;
    for (uint64_t f = 0; f < frames; f++)
        for (uint64_t j = 0; j < length; j++) {
            double weight = window ? window[j] : 1, term = weight * x[f * length + j];
            out[f * hop + j] += term;
            size[f * hop + j] += fabs(term);
            squares[f * hop + j] += weight * weight;
        }
    terms = (double)MIN(divide_up(length, hop), frames);
    for (uint64_t t = 0; t < samples; t++) {
        bool counts = squares[t] > OVERLAP_ADD_LEAST;
        double divisor = !window ? 1 : counts ? squares[t] : INFINITY;
        out[t] = window && !counts ? 0 : out[t] / divisor;
        if (c->bound)
            c->bound[row * samples + t] =
                0x1p-24 * (2 * terms + (window ? 10 : 1)) * size[t] / divisor + 1e-36;
    }
}

static rlxvk_status overlap_add_host(const host_call *c)
{
    uint64_t samples = (uint64_t)c->node->shape.dims[c->node->shape.rank - 1];
    uint64_t rows = shape_numel(&c->node->shape) / samples;
    double *squares = memory_allocate(2 * samples * sizeof *squares);
    if (!squares)
        return status_fail_memory("sums of squares");
    for (uint64_t row = 0; row < rows; row++)
        host_row(c, &c->inputs[0].node->shape, row, squares);
    memory_free(squares);
    return RLXVK_OK;
}

/* Signals do not depend on each other, but frames of a signal overlap. */
static uint64_t overlap_add_bucket(bucket_call *c)
{
    return bucket_rows(c, 3u << (input_shape(c->graph, c->node, 0)->rank - 2), 0);
}

/* Without a window: each frame's gradient is read from where the frame was added. */
static rlxvk_status overlap_add_vjp(gradient_call *c)
{
    rlxvk_shape x = gradient_shape(c, 0);
    int64_t hop = ((const overlap_add_attributes *)c->n.attributes)->hop;
    gradient_give(c, 0, rlxvk_frames(c->graph, c->dy, x.dims[x.rank - 1], hop));
    return RLXVK_OK;
}

static rlxvk_tensor overlap_add_expand(rlxvk_graph *g, const node *n)
{
    int64_t hop = ((const overlap_add_attributes *)n->attributes)->hop;
    if (n->input_count < 2)
        return RLXVK_NONE;
    rlxvk_tensor x = tensor_of(g, n->inputs[0]), window = tensor_of(g, n->inputs[1]);
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    rlxvk_shape each = RLXVK_SHAPE(shape.dims[shape.rank - 2], shape.dims[shape.rank - 1]);
    rlxvk_tensor squares = rlxvk_expand(g, rlxvk_mul(g, window, window), each);
    squares = rlxvk_overlap_add(g, squares, RLXVK_NONE, hop);
    rlxvk_tensor counts = rlxvk_gt(g, squares, gradient_scalar(g, OVERLAP_ADD_LEAST));
    squares = rlxvk_where(g, counts, squares, gradient_scalar(g, 1));
    rlxvk_tensor sums = rlxvk_overlap_add(g, rlxvk_mul(g, x, window), RLXVK_NONE, hop);
    return rlxvk_where(g, counts, rlxvk_div(g, sums, squares), gradient_scalar(g, 0));
}

static void overlap_add_describe(const node *n, text *out)
{
    text_append(out, " hop=%lld", (long long)((const overlap_add_attributes *)n->attributes)->hop);
}

const op_family overlap_add_family = {
    .name = "overlap_add",
    .attribute_size = sizeof(overlap_add_attributes),
    .infer = overlap_add_infer,
    .execution = {.foldable = true, .lower = overlap_add_lower, .host = overlap_add_host},
    .rows = {.bucket = overlap_add_bucket},
    .derivative = {.vjp = overlap_add_vjp, .expand = overlap_add_expand},
    .describe = overlap_add_describe,
};

/* ---- istft ---- */

static bool istft_fits(rlxvk_graph *g, const rlxvk_istft_options *o, int64_t n)
{
    static const char *const row = "istft";
    if (!composite_number(g, row, "length", o->length) ||
        !composite_number(g, row, "hop", o->hop) || !composite_number(g, row, "n_fft", n) ||
        !composite_number(g, row, "samples", o->samples))
        return false;
    if (o->length >= 1 && o->hop >= 1 && n >= o->length && o->samples >= 0 && n <= INT32_MAX &&
        o->hop <= INT32_MAX && o->samples <= INT32_MAX)
        return true;
    return composite_fail(g, row, RLXVK_E_ATTR,
                          "length %lld, hop %lld, n_fft %lld, samples %lld; takes 1 <= length <= "
                          "n_fft, a hop of at least 1, and no negative number",
                          (long long)o->length, (long long)o->hop, (long long)n,
                          (long long)o->samples);
}

/* Takes the samples that the options ask for, from `start` on. After the last one come zeros. */
static rlxvk_tensor take_samples(rlxvk_graph *g, const rlxvk_istft_options *o, rlxvk_tensor y)
{
    if (g->status != RLXVK_OK)
        return RLXVK_NONE;
    rlxvk_shape shape = rlxvk_tensor_shape(g, y);
    int64_t whole = shape.dims[shape.rank - 1], cut = o->center ? o->length / 2 : 0;
    int64_t left = whole - cut, wanted = o->samples ? o->samples : left - cut;
    if (wanted < 1 || left < 1) {
        composite_fail(g, "istft", RLXVK_E_SHAPE,
                       "%lld samples, of which half a frame of %lld at either end is cut",
                       (long long)whole, (long long)o->length);
        return RLXVK_NONE;
    }
    y = rlxvk_narrow(g, y, -1, cut, MIN(left, wanted));
    return wanted > left ? rlxvk_pad_last(g, y, wanted) : y;
}

rlxvk_tensor rlxvk_istft(rlxvk_graph *g, rlxvk_tensor spectra, rlxvk_tensor window,
                         const rlxvk_istft_options *options)
{
    static const float one = 1;
    rlxvk_istft_options own, *o = &own;
    if (!op_take(g, "istft", SIZED(rlxvk_istft_options), options, o))
        return RLXVK_NONE;
    int64_t n = o->n_fft ? o->n_fft : o->length;
    if (!composite_begin(g, "istft", &spectra, 1) || !istft_fits(g, o, n))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    rlxvk_tensor frames = rlxvk_irfft_block(g, spectra, n, o->norm);
    if (n > o->length)
        frames = rlxvk_narrow(g, frames, -1, 0, o->length);
    if (!window.id) {
        window = rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &one, sizeof one);
        window = rlxvk_expand(g, window, RLXVK_SHAPE(o->length));
    }
    rlxvk_tensor y = rlxvk_overlap_add(g, frames, window, o->hop);
    return composite_end(g, "istft", start, take_samples(g, o, y));
}
