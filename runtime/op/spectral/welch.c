/*
 * welch: Welch's method, the mean power of the spectra of frames, which may overlap. If a workgroup
 * holds a transform, its rows sum frames as they read them (glsl/spectral/welch.comp), and a
 * reduction adds the rows of a signal. Other lengths are composed of stft and welch_power, and so
 * are gradients.
 */
#include "args/spectral.h"
#include "constants/spectral.h"
#include "op/compose/composite.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/rows/rows.h"
#include "op/spectral/fft.h"

#include <float.h>
#include <math.h>
#include <rlxvk_symbols.h>
#include <string.h>

typedef struct welch_attributes {
    int64_t length, hop, n_fft;
    float scale;
    bool unfolded;
} welch_attributes;

/* ---- Tiles ---- */

/* Large radices need the fewest exchanges. Shared memory limits these rows, because points come
 * from caches and there is little latency to hide. The last class fits the baseline for the longest
 * lengths. */
/* clang-format off */
static const fft_class classes[] = {
    /* {name, settings}, along, binary, length up to, span, held, threads, least rows, dense */
    {{"short",    ON_NATIVE},   true, false,   31, 0,  4,  64, 1, false},
    {{"middle",   ON_NATIVE},   true, false,  127, 0,  8,  64, 1, false},
    {{"long",     ON_NATIVE},   true, false, 4096, 0, 16,  64, 1, false},
    {{"even",     ON_NATIVE},   true, true,  4096, 0,  8,  64, 1, false},
    {{"few",      ON_NATIVE},   true, false, 4096, 0,  8,  64, 1, false},
    {{"portable", ON_PORTABLE}, true, false, 4096, 0,  8,  64, 1, false},
    {{"dense",    ON_ALL},      true, false, 4096, 0, 32,  64, 1, true},
};
/* clang-format on */

/* For each point but the first, a compiler that moves loads ahead keeps a factor, elements of the
 * frames and of the window, and their places. */
static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    enum { LOADED = 9 };
    choice_fit f = fft_tile_fit(row, problem, profile);
    f.loaded = LOADED * (((const fft_class *)row)->held - 1);
    return f;
}

const choice_table welch_choice = {CHOICE_ROWS(classes), .fit = fit};

static bool choose_tile(const device_profile *p, int64_t n, size_t forced, fft_tile *out)
{
    fft_tile_problem problem = {(uint64_t)n, 1, true};
    return fft_tile_choose(&welch_choice, p, &problem, forced, out);
}

/* Does every device have a tile for this length? */
static bool has_tile(int64_t n)
{
    static const device_profile baseline = {.max_workgroup_invocations = 128,
                                            .shared_memory_bytes = 16384};
    fft_tile tile;
    return choose_tile(&baseline, n, VARIANT_NONE, &tile);
}

/* ---- Building ---- */

/* stft's result has one axis more, so a tensor of the largest rank merges its first two. */
static rlxvk_tensor leave_axis(rlxvk_graph *g, rlxvk_tensor x, rlxvk_shape shape)
{
    if (shape.rank < RLXVK_MAX_RANK)
        return x;
    shape.dims[1] = rlxvk_dim_multiply(g, shape.dims[0], shape.dims[1]);
    memmove(shape.dims, shape.dims + 1, --shape.rank * sizeof *shape.dims);
    return rlxvk_reshape(g, x, shape);
}

static rlxvk_tensor compose(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor window,
                            const welch_attributes *a)
{
    rlxvk_stft_options frames = {.length = a->length, .hop = a->hop, .n_fft = a->n_fft};
    rlxvk_shape shape = rlxvk_tensor_shape(g, x);
    if (window.id && rlxvk_tensor_shape(g, window).rank != 1)
        composite_fail(g, "welch", RLXVK_E_SHAPE, "a window has one axis, as long as a frame");
    rlxvk_tensor spectra = rlxvk_stft(g, leave_axis(g, x, shape), window, &frames);
    if (g->status != RLXVK_OK)
        return RLXVK_NONE;
    rlxvk_shape all = rlxvk_tensor_shape(g, spectra);
    rlxvk_welch_options welch = {all.dims[all.rank - 2], a->n_fft, a->unfolded};
    rlxvk_tensor power = rlxvk_welch_power(g, spectra, &welch);
    shape.dims[shape.rank - 1] = a->n_fft / 2 + 1;
    return rlxvk_mul(g, rlxvk_reshape(g, power, shape), gradient_scalar(g, a->scale));
}

static bool options_fit(rlxvk_graph *g, const rlxvk_welch_frame_options *f, int64_t n)
{
    static const char *const row = "welch";
    if (!composite_number(g, row, "length", f->length) ||
        !composite_number(g, row, "hop", f->hop) || !composite_number(g, row, "n_fft", n))
        return false;
    if (f->length >= 1 && f->hop >= 1 && f->hop <= INT32_MAX && n >= f->length && n <= INT32_MAX &&
        fabs(f->scale) <= FLT_MAX)
        return true;
    return composite_fail(g, row, RLXVK_E_ATTR,
                          "length %lld, hop %lld, n_fft %lld, scale %g; takes 1 <= length <= "
                          "n_fft, a hop of at least 1, and a finite scale",
                          (long long)f->length, (long long)f->hop, (long long)n, f->scale);
}

rlxvk_tensor rlxvk_welch(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor window,
                         const rlxvk_welch_frame_options *options)
{
    rlxvk_welch_frame_options own, *f = &own;
    if (!op_take(g, "welch", SIZED(rlxvk_welch_frame_options), options, f))
        return RLXVK_NONE;
    int64_t n = f->n_fft ? f->n_fft : f->length;
    if (!composite_begin(g, "welch", &x, 1) || !options_fit(g, f, n))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    float scale = f->scale != 0 ? (float)f->scale : 1;
    welch_attributes a = {f->length, f->hop, n, scale, f->unfolded};
    if (has_tile(n))
        return op_build(g, OP_welch, (rlxvk_tensor[]){x, window}, 2, &a);
    return composite_end(g, "welch", start, compose(g, x, window, &a));
}

static rlxvk_status welch_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const welch_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    char buffer[SHAPE_TEXT];
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < n->input_count; i++)
        TRY(op_require_dtype(g, n, i, RLXVK_F32, "insert a cast"));
    if (x->rank == 0 || x->dims[x->rank - 1] < a->length)
        return op_fail(n, RLXVK_E_SHAPE, "x %s; its last axis has a frame of %lld at least",
                       shape_text(x, buffer), (long long)a->length);
    if (n->input_count > 1) {
        const rlxvk_shape *window = input_shape(g, n, 1);
        if (window->rank != 1 || window->dims[0] != a->length)
            return op_fail(n, RLXVK_E_SHAPE, "window %s, frames of %lld; it is as long as a frame",
                           shape_text(window, buffer), (long long)a->length);
    }
    n->shape = *x;
    n->shape.dims[x->rank - 1] = a->n_fft / 2 + 1;
    n->dtype = RLXVK_F32;
error:
    return status;
}

typedef struct welch_sizes {
    uint64_t signals, samples, frames, bins;
} welch_sizes;

static welch_sizes sizes_of(const welch_attributes *a, const rlxvk_shape *x)
{
    uint64_t samples = (uint64_t)x->dims[x->rank - 1], length = (uint64_t)a->length;
    return (welch_sizes){shape_product(x, 0, x->rank - 1), samples,
                         1 + (samples - length) / (uint64_t)a->hop, (uint64_t)a->n_fft / 2 + 1};
}

/* ---- Lower ---- */

#define THREADS_A_UNIT 1024 /* threads that keep a compute unit busy */
#define FEW_PAIRS      64
#define MOST_PAIRS     16384

/* The pairs of frames that a row sums. If the same number is added again and again, the error is up
 * to a quarter of as many ulps. It must stay below the sqrt(frames) that the bound allows. */
static uint64_t pairs_of_row(const device_profile *p, const fft_tile *t, const welch_sizes *s)
{
    uint64_t threads = profile_is_software(p) ? t->rows * t->lanes : THREADS_A_UNIT;
    uint64_t rows = divide_up(threads * p->compute_units, t->lanes);
    uint64_t most = (uint64_t)(4 * sqrt((double)s->frames));
    uint64_t each = s->signals * divide_up(s->frames, 2) / MAX(rows, 1);
    return MIN(MAX(each, 1), MIN(MAX(most, FEW_PAIRS), MOST_PAIRS));
}

static rlxvk_status emit_rows(lowering *l, uint32_t id, const fft_tile *tile,
                              const struct welch_args *args, operand y)
{
    const welch_attributes *a = graph_node(l->graph, id)->attributes;
    bool windowed = graph_node(l->graph, id)->input_count > 1;
    operand x = lower_input(l, id, 0), stages;
    operand window = windowed ? lower_input(l, id, 1) : x;
    dispatch d = {.kernel = KERNEL_WELCH, .variant = tile->name};
    rlxvk_status status;
    struct welch_args all = *args;
    all.x_offset = x.offset;
    all.window_offset = window.offset;
    all.y_offset = y.offset;
    TRY(fft_stage_table(l, tile->n, tile->radices, tile->stages, &stages));
    SET_CONSTANTS(&d, {LOCAL_SIZE, tile->rows * tile->lanes}, FFT_TILE_CONSTANTS(WELCH, tile),
                  {WELCH_WINDOWED, windowed}, {WELCH_PADDED, a->length < a->n_fft});
    lower_groups(l, &d, divide_up(args->lines, tile->rows));
    TRY(lower_emit(l, &d, &all, sizeof all, (operand[]){x, window, stages, y}, 4));
error:
    return status;
}

static rlxvk_status welch_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const welch_attributes *a = n->attributes;
    welch_sizes s = sizes_of(a, input_shape(l->graph, n, 0));
    operand y = lower_write(l, id), sums = y;
    fft_tile tile;
    rlxvk_status status;
    if (!choose_tile(l->profile, a->n_fft, variant_choose(l, CHOICE_welch, NULL, NULL), &tile))
        return op_fail(n, RLXVK_E_UNSUPPORTED, "%lld points do not fit a workgroup",
                       (long long)a->n_fft);
    uint64_t pairs = pairs_of_row(l->profile, &tile, &s);
    uint64_t pieces = divide_up(s.frames, 2 * pairs);
    if (pieces > 1)
        TRY(lower_temporary(l, 4 * s.signals * pieces * s.bins, &sums));
    struct welch_args args = {.lines = (u32)(s.signals * pieces),
                              .pieces = (u32)pieces,
                              .pairs = (u32)pairs,
                              .frames = (u32)s.frames,
                              .samples = (u32)s.samples,
                              .extent = (u32)a->length,
                              .hop = (u32)a->hop,
                              .scale = (float)(a->scale / (2 * (double)s.frames)),
                              .fold = a->unfolded ? 1 : 2};
    TRY(emit_rows(l, id, &tile, &args, sums));
    if (pieces > 1)
        TRY(reduce_rows(l, (axis_view){s.signals, pieces, s.bins}, REDUCE_SUM, 0, sums, y));
error:
    return status;
}

/* ---- Host ---- */

/* For one signal: sums over its frames of the power of each bin, and of the mean power of all n. */
static rlxvk_status sum_frames(const host_call *c, const welch_sizes *s, uint64_t signal,
                               complex_value *row, double *out_mean)
{
    const welch_attributes *a = c->node->attributes;
    const float *window = c->node->input_count > 1 ? c->inputs[1].words : NULL;
    uint64_t length = (uint64_t)a->length, n = (uint64_t)a->n_fft;
    rlxvk_status status = RLXVK_OK;
    *out_mean = 0;
    for (uint64_t f = 0; f < s->frames && status == RLXVK_OK; f++) {
        const float *x = c->inputs[0].words + signal * s->samples + f * (uint64_t)a->hop;
        for (uint64_t i = 0; i < n; i++)
            row[i] = (complex_value){i < length ? x[i] * (window ? (double)window[i] : 1) : 0, 0};
        status = fft_exact(row, n);
        for (uint64_t k = 0; k < n; k++) {
            double power = row[k].re * row[k].re + row[k].im * row[k].im;
            *out_mean += power / (double)n;
            if (k < s->bins)
                c->out[signal * s->bins + k] += power;
        }
    }
    return status;
}

/* The error of a spectrum is its root mean square times the error that a transform may have. The
 * error of its power is 2 |X| times that. Over all frames it is at most the product of both roots
 * (Cauchy-Schwarz). */
static double error_of(const welch_attributes *a, uint64_t frames, double power, double mean)
{
    const double u = 0x1p-24, each = fft_relative_bound((uint64_t)a->n_fft) + 2 * u;
    double spectra = 2 * each * sqrt(power * mean) + each * each * mean;
    return spectra + u * (8 + 2 * sqrt((double)frames)) * power;
}

static void finish(const host_call *c, const welch_sizes *s, uint64_t signal, double mean)
{
    const welch_attributes *a = c->node->attributes;
    double *out = c->out + signal * s->bins, once = a->scale / (double)s->frames;
    for (uint64_t k = 0; k < s->bins; k++) {
        bool alone = k == 0 || 2 * k == (uint64_t)a->n_fft;
        double factor = a->unfolded || alone ? once : 2 * once;
        double bound = fabs(factor) * error_of(a, s->frames, out[k], mean);
        if (c->bound) /* kernels may flush denormal squares to 0 */
            c->bound[signal * s->bins + k] = isfinite(bound) ? bound + 0x1p-123 : 0;
        out[k] *= factor;
    }
}

static rlxvk_status welch_host(const host_call *c)
{
    const welch_attributes *a = c->node->attributes;
    welch_sizes s = sizes_of(a, &c->inputs[0].node->shape);
    complex_value *row = memory_allocate((uint64_t)a->n_fft * sizeof *row);
    rlxvk_status status = row ? RLXVK_OK : status_fail_memory("spectrum");
    for (uint64_t signal = 0; signal < s.signals && status == RLXVK_OK; signal++) {
        double mean;
        status = sum_frames(c, &s, signal, row, &mean);
        finish(c, &s, signal, mean);
    }
    memory_free(row);
    return status;
}

static rlxvk_tensor welch_expand(rlxvk_graph *g, const node *n)
{
    rlxvk_tensor window = n->input_count > 1 ? tensor_of(g, n->inputs[1]) : RLXVK_NONE;
    return compose(g, tensor_of(g, n->inputs[0]), window, n->attributes);
}

static void welch_describe(const node *n, text *out)
{
    const welch_attributes *a = n->attributes;
    text_append(out, " length=%lld hop=%lld n_fft=%lld scale=%g unfolded=%d", (long long)a->length,
                (long long)a->hop, (long long)a->n_fft, a->scale, a->unfolded);
}

const op_family welch_family = {
    .name = "welch",
    .attribute_size = sizeof(welch_attributes),
    .infer = welch_infer,
    .execution = {.foldable = true, .lower = welch_lower, .host = welch_host},
    .rows = {.bucket = bucket_vectors},
    .derivative = {.expand = welch_expand},
    .describe = welch_describe,
};
