/*
 * welch_power: the power of spectra of real signals, averaged over runs of n_segments rows.
 * welch_peaks is composed of it. If a run has many rows, they are summed in pieces, and a reduction
 * adds the sums.
 */
#include "args/spectral.h"
#include "op/compose/composite.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/rows/rows.h"

#include <math.h>

#define LONGEST_PIECE 64
#define MOST_BINS     (1 << 24)

rlxvk_tensor rlxvk_welch_power(rlxvk_graph *g, rlxvk_tensor spectrum,
                               const rlxvk_welch_options *options)
{
    rlxvk_welch_options a;
    if (!op_take(g, "welch_power", SIZED(rlxvk_welch_options), options, &a))
        return RLXVK_NONE;
    return op_build(g, OP_welch_power, &spectrum, 1, &a);
}

static int64_t bins_of(const rlxvk_welch_options *a)
{
    return a->n_fft / 2 + 1;
}

static rlxvk_status welch_power_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_welch_options *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    char buffer[SHAPE_TEXT];
    rlxvk_status status;
    TRY(op_require_dtype(g, n, 0, RLXVK_F32, "insert a cast"));
    if (x->rank == 0)
        return op_fail(n, RLXVK_E_SHAPE, "a scalar is no spectrum; it has an axis at least");
    int64_t width = x->dims[x->rank - 1], rows = x->rank > 1 ? x->dims[x->rank - 2] : 1;
    if (a->n_segments < 0 || a->n_fft < 0)
        return op_fail(n, RLXVK_E_ATTR, "n_segments is %lld, n_fft %lld; neither is negative",
                       (long long)a->n_segments, (long long)a->n_fft);
    a->n_segments = MAX(a->n_segments, 1);
    a->n_fft = a->n_fft ? a->n_fft : width / 2;
    if (width < 2 || width % 2 || (width / 2 != a->n_fft && width / 2 != bins_of(a)))
        return op_fail(n, RLXVK_E_SHAPE,
                       "last dim of %s; n_fft %lld has %llu numbers, or %llu in its lower half",
                       shape_text(x, buffer), (long long)a->n_fft, 2 * (unsigned long long)a->n_fft,
                       2 * (unsigned long long)bins_of(a));
    if (rows % a->n_segments)
        return op_fail(n, RLXVK_E_SHAPE, "%lld rows of %s are no whole number of %lld segments",
                       (long long)rows, shape_text(x, buffer), (long long)a->n_segments);
    n->shape = *x;
    n->shape.dims[x->rank - 1] = bins_of(a);
    if (x->rank > 1)
        n->shape.dims[x->rank - 2] = rows / a->n_segments;
    n->dtype = RLXVK_F32;
error:
    return status;
}

/* The bin besides 0 that counts once. If there is none, an index above all bins. */
static uint64_t single_bin(const rlxvk_welch_options *a)
{
    return a->n_fft % 2 ? UINT32_MAX : (uint64_t)a->n_fft / 2;
}

static rlxvk_status welch_power_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_welch_options *a = n->attributes;
    const rlxvk_shape *in = input_shape(l->graph, n, 0);
    operand x = lower_input(l, id, 0), y = lower_write(l, id), parts = y;
    uint64_t bins = (uint64_t)bins_of(a), segments = (uint64_t)a->n_segments;
    uint64_t rows = shape_numel(&n->shape) / bins;
    uint64_t pieces = divide_up(segments, LONGEST_PIECE);
    rlxvk_status status;
    if (pieces > 1)
        TRY(lower_temporary(l, 4 * rows * pieces * bins, &parts));
    struct welch_power_args args = {.outputs = (u32)(rows * pieces * bins),
                                    .bins = (u32)bins,
                                    .width = (u32)(in->dims[in->rank - 1] / 2),
                                    .single = (u32)single_bin(a),
                                    .segments = (u32)segments,
                                    .pieces = (u32)pieces,
                                    .piece = LONGEST_PIECE,
                                    .x_offset = x.offset,
                                    .y_offset = parts.offset,
                                    .scale = 1 / (float)segments,
                                    .fold = a->unfolded ? 1 : 2};
    dispatch d = {.kernel = KERNEL_WELCH_POWER};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, groups_for(args.outputs, l->profile->workgroup_size));
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){x, parts}, 2));
    if (pieces > 1) {
        parts.access = ACCESS_READ;
        TRY(reduce_rows(l, (axis_view){rows, pieces, bins}, REDUCE_SUM, 0, parts, y));
    }
error:
    return status;
}

static rlxvk_status welch_power_host(const host_call *c)
{
    const rlxvk_welch_options *a = c->node->attributes;
    const rlxvk_shape *in = &c->inputs[0].node->shape;
    uint64_t width = (uint64_t)in->dims[in->rank - 1] / 2, bins = (uint64_t)bins_of(a);
    uint64_t numel = shape_numel(&c->node->shape), segments = (uint64_t)a->n_segments;
    for (uint64_t i = 0; i < numel; i++) {
        const float *x = c->inputs[0].words + i / bins * segments * 2 * width + i % bins;
        double sum = 0, fold = a->unfolded || i % bins == 0 || i % bins == single_bin(a) ? 1 : 2;
        for (uint64_t s = 0; s < segments; s++, x += 2 * width)
            sum += (double)x[0] * x[0] + (double)x[width] * x[width];
        c->out[i] = fold * sum / (double)segments;
        if (c->bound) /* kernels may flush denormal squares to 0 */
            c->bound[i] = 0x1p-24 * (6 + 2 * sqrt((double)segments)) * c->out[i] + 0x1p-123;
    }
    return RLXVK_OK;
}

/* The gradient of re is 2 fold re / n_segments times dy, and likewise for im. */
static rlxvk_status welch_power_vjp(gradient_call *c)
{
    const rlxvk_welch_options *a = c->n.attributes;
    rlxvk_graph *g = c->graph;
    rlxvk_shape in = gradient_shape(c, 0);
    int64_t bins = bins_of(a), width = in.dims[in.rank - 1] / 2;
    int64_t rows = (int64_t)(shape_numel(&c->n.shape) / (uint64_t)bins);
    rlxvk_shape all = RLXVK_SHAPE(rows, a->n_segments, bins);
    double once = 2 / (double)a->n_segments;
    rlxvk_tensor x =
        rlxvk_reshape(g, gradient_operand(c, 0), RLXVK_SHAPE(rows, a->n_segments, 2 * width));
    rlxvk_tensor dy = rlxvk_reshape(g, c->dy, RLXVK_SHAPE(rows, 1, bins));
    if (!a->unfolded) {
        int64_t folded = (a->n_fft % 2 ? bins : bins - 1) - 1;
        rlxvk_tensor parts[3] = {rlxvk_narrow(g, dy, 2, 0, 1)};
        size_t count = 1;
        if (folded > 0)
            parts[count++] = rlxvk_mul(g, rlxvk_narrow(g, dy, 2, 1, folded), gradient_scalar(g, 2));
        if (folded + 1 < bins)
            parts[count++] = rlxvk_narrow(g, dy, 2, folded + 1, 1);
        dy = rlxvk_concat(g, parts, count, 2);
    }
    dy = rlxvk_expand(g, rlxvk_mul(g, dy, gradient_scalar(g, once)), all);
    rlxvk_tensor parts[4];
    size_t count = 0;
    for (int64_t half = 0; half < 2; half++) {
        parts[count++] = rlxvk_mul(g, dy, rlxvk_narrow(g, x, 2, half * width, bins));
        if (width > bins)
            parts[count++] =
                gradient_filled(g, 0, RLXVK_F32, RLXVK_SHAPE(rows, a->n_segments, width - bins));
    }
    gradient_give(c, 0, rlxvk_reshape(g, rlxvk_concat(g, parts, count, 2), in));
    return RLXVK_OK;
}

static void welch_power_describe(const node *n, text *out)
{
    const rlxvk_welch_options *a = n->attributes;
    text_append(out, " n_segments=%lld n_fft=%lld unfolded=%d", (long long)a->n_segments,
                (long long)a->n_fft, a->unfolded);
}

const op_family welch_power_family = {
    .name = "welch_power",
    .attribute_size = sizeof(rlxvk_welch_options),
    .infer = welch_power_infer,
    .execution = {.foldable = true, .lower = welch_power_lower, .host = welch_power_host},
    .rows = {.bucket = bucket_vectors},
    .derivative = {.vjp = welch_power_vjp},
    .describe = welch_power_describe,
};

/* ---- Peaks ---- */

static bool peaks_checked(rlxvk_graph *g, rlxvk_tensor spectrum, int64_t k, int64_t n_segments)
{
    char buffer[SHAPE_TEXT];
    if (!composite_begin(g, "welch_peaks", &spectrum, 1))
        return false;
    rlxvk_shape s = rlxvk_tensor_shape(g, spectrum);
    if (!composite_number(g, "welch_peaks", "k", k) ||
        !composite_number(g, "welch_peaks", "n_segments", n_segments))
        return false;
    if (s.rank != 2)
        return composite_fail(g, "welch_peaks", RLXVK_E_SHAPE,
                              "spectrum %s; it is [batch * n_segments, 2 n_fft]",
                              shape_text(&s, buffer));
    if (!composite_number(g, "welch_peaks", "the first dim", s.dims[0]) ||
        !composite_number(g, "welch_peaks", "the last dim", s.dims[1]))
        return false;
    if (k < 1 || n_segments < 1)
        return composite_fail(g, "welch_peaks", RLXVK_E_ATTR,
                              "k is %lld, n_segments %lld; both are at least 1", (long long)k,
                              (long long)n_segments);
    if (k > INT32_MAX / 2)
        return composite_fail(g, "welch_peaks", RLXVK_E_TOO_LARGE,
                              "k is %lld; pairs are below 2^30", (long long)k);
    if (s.dims[1] / 4 + 1 > MOST_BINS)
        return composite_fail(g, "welch_peaks", RLXVK_E_INDEX_RANGE,
                              "%lld bins; indices end at 2^24", (long long)(s.dims[1] / 4 + 1));
    return true;
}

rlxvk_tensor rlxvk_welch_peaks(rlxvk_graph *g, rlxvk_tensor spectrum, int64_t k, int64_t n_segments)
{
    static const float lowest = -1, missing[] = {-1, 0};
    if (!peaks_checked(g, spectrum, k, n_segments))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    rlxvk_tensor power =
        rlxvk_welch_power(g, spectrum, &(rlxvk_welch_options){.n_segments = n_segments});
    if (g->status != RLXVK_OK)
        return composite_end(g, "welch_peaks", start, RLXVK_NONE);
    rlxvk_shape s = rlxvk_tensor_shape(g, power);
    int64_t found = MIN(k, s.dims[1]);
    rlxvk_tensor none = rlxvk_constant(g, RLXVK_F32, RLXVK_SCALAR, &lowest, sizeof lowest);
    rlxvk_tensor order = rlxvk_where(g, rlxvk_eq(g, power, power), power, none);
    rlxvk_tensor bins = rlxvk_topk(g, order, found);
    rlxvk_tensor parts[] = {rlxvk_cast(g, bins, RLXVK_F32),
                            rlxvk_take_along_axis(g, power, bins, 1)};
    for (size_t i = 0; i < 2; i++)
        parts[i] = rlxvk_reshape(g, parts[i], RLXVK_SHAPE(s.dims[0], found, 1));
    rlxvk_tensor pairs[] = {rlxvk_concat(g, parts, 2, 2), RLXVK_NONE};
    if (found < k) {
        pairs[1] = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(2), missing, sizeof missing);
        pairs[1] = rlxvk_expand(g, pairs[1], RLXVK_SHAPE(s.dims[0], k - found, 2));
        pairs[0] = rlxvk_concat(g, pairs, 2, 1);
    }
    return composite_end(g, "welch_peaks", start,
                         rlxvk_reshape(g, pairs[0], RLXVK_SHAPE(s.dims[0], 2 * k)));
}

double rlxvk_signal_welch_scale(const float *window, size_t n, double rate, bool density)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; window && i < n; i++) {
        sum += window[i];
        squares += (double)window[i] * window[i];
    }
    return 1 / (density ? rate * squares : sum * sum);
}
