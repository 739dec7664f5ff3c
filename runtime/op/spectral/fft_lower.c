/*
 * Lowering of transforms: by tiles (fft_register.c) if there is a plan for them, otherwise by
 * groups (fft_group.c).
 *
 * If the length has a prime factor above FFT_SMOOTH, the transform is a convolution (Bluestein). It
 * uses smooth transforms of M >= 2N - 1 points: X[k] = c[k] IFFT(FFT(x c) B)[k]. Here c[n] =
 * exp(-pi i n^2 / N), and B is the transform of conj c.
 *
 * Spectra of real lines are made from those of their pairs. If the transform is a single pass by
 * tiles, that pass does this too. Otherwise it is a pass of its own.
 *
 * Lines in flight have at most fft_scratch_bytes of scratch. If there are more lines, they are done
 * in turn.
 */
#include "args/spectral.h"
#include "op/spectral/fft.h"

#include <string.h>

uint64_t fft_scratch_bytes = 128u << 20;
bool fft_tiles = true;

enum { MOST_SCRATCH = 3 };

typedef struct job {
    lowering *l;
    const fft_request *request;
    fft_view view;
    bool convolved;
    uint64_t length; /* of the transforms: the view's, or the convolution's */
    fft_plan plan;
    fft_split split;
    uint32_t twiddles[FFT_MOST_PASSES][2], chirp, reversed_chirp, filter;
    operand factors, scratch[MOST_SCRATCH];
    uint64_t outer_step, inner_step; /* lines done at a time */
} job;

static uint32_t pass_count(const job *j)
{
    return j->plan.count ? j->plan.count : j->split.count;
}

/* Are bins made by a pass of their own, from the last scratch? */
static bool bins_apart(const job *j)
{
    return j->request->to_bins && (j->plan.count != 1 || j->convolved);
}

static uint32_t scratch_count(const job *j)
{
    uint32_t passes = pass_count(j), between = passes > 1;
    if (j->convolved || j->plan.count == FFT_MOST_PASSES)
        between = MIN(passes, 2);
    return between + bins_apart(j);
}

/* Bytes of one scratch buffer for one line. With a plan, for all lines of an outer index. */
static uint64_t scratch_bytes(const job *j)
{
    uint64_t inner = j->view.inner;
    if (!j->plan.count)
        return 8 * j->length;
    return 8 * MAX(j->length * inner, fft_plan_scratch(&j->plan, inner));
}

/* ---- Choices ---- */

/* Tiles need pairs, or parts whose points are contiguous. They also take all lines of an outer
 * index at a time. */
static bool choose_passes(job *j, uint64_t length)
{
    const fft_port *in = &j->request->in, *out = &j->request->out;
    const device_profile *p = j->l->profile;
    uint64_t inner = j->view.inner;
    fft_problem problem = {length, inner, j->convolved ? 2 : 3};
    j->length = length;
    if (fft_tiles && (in->pairs || in->axis == 1) && (out->pairs || out->axis == 1) &&
        fft_plan_choose(p, &problem, variant_choose(j->l, CHOICE_fft_tile, NULL, NULL), &j->plan) &&
        (inner == 1 || scratch_count(j) * scratch_bytes(j) <= fft_scratch_bytes))
        return true;
    j->plan.count = 0;
    return fft_split_choose(p, length, &j->split);
}

static rlxvk_status choose_length(job *j)
{
    uint64_t length = j->view.length;
    if (choose_passes(j, length))
        return RLXVK_OK;
    j->convolved = true;
    for (uint64_t m = fft_next_smooth(2 * length - 1); m < 4 * length; m = fft_next_smooth(m + 1))
        if (choose_passes(j, m))
            return RLXVK_OK;
    return status_fail(RLXVK_E_TOO_LARGE,
                       "fft: %llu points need more than %d passes on this device",
                       (unsigned long long)length, FFT_MOST_PASSES);
}

/* Chooses how many lines are done at a time, and allocates their scratch. A convolution gets half
 * as much, because it reads and writes its scratch more often. So more of it stays in caches. */
static rlxvk_status make_scratch(job *j)
{
    uint32_t count = scratch_count(j);
    uint64_t most = fft_scratch_bytes / (j->convolved ? 2 : 1);
    uint64_t inner = j->view.inner, unit = scratch_bytes(j);
    uint64_t units = count ? MAX(most / (unit * count), 1) : UINT64_MAX;
    rlxvk_status status = RLXVK_OK;
    j->inner_step = j->plan.count ? inner : MIN(inner, units);
    j->outer_step = MIN(j->view.outer, j->plan.count ? units : MAX(units / inner, 1));
    unit *= j->outer_step * (j->plan.count ? 1 : j->inner_step);
    for (uint32_t i = 0; i < count; i++)
        TRY(lower_temporary(j->l, unit, &j->scratch[i]));
error:
    return status;
}

/* ---- Tables ---- */

static complex_value chirp(uint64_t n, uint64_t length)
{
    return fft_unit_root(n * n % (2 * length), 2 * length);
}

/* Pushes c, conj c, and the transform of conj c wrapped around M points, divided by M. */
static rlxvk_status push_chirps(job *j, fft_table *t)
{
    uint64_t n = j->view.length, m = j->length;
    complex_value *b = memory_zeroed(m, sizeof *b);
    rlxvk_status status;
    TRY(b ? RLXVK_OK : status_fail_memory("chirp"));
    j->chirp = (uint32_t)t->count;
    j->reversed_chirp = (uint32_t)(t->count + n);
    j->filter = (uint32_t)(t->count + 2 * n);
    for (uint64_t i = 0; i < n; i++)
        fft_table_push(t, chirp(i, n));
    for (uint64_t i = 0; i < n; i++) {
        complex_value c = chirp(i, n);
        b[i] = b[(m - i) % m] = (complex_value){c.re, -c.im};
        fft_table_push(t, b[i]);
    }
    TRY(fft_exact(b, m));
    for (uint64_t i = 0; i < m; i++)
        fft_table_push(t, (complex_value){b[i].re / (double)m, b[i].im / (double)m});
error:
    memory_free(b);
    return status;
}

static uint64_t factor_entries(const job *j)
{
    const fft_request *r = j->request;
    uint64_t entries = r->from_bins || r->to_bins ? j->view.length + 1 : 0;
    entries += j->convolved ? 2 * j->view.length + j->length : 0;
    if (j->plan.count)
        return entries + fft_plan_entries(&j->plan);
    for (uint32_t pass = 0; pass + 1 < j->split.count; pass++)
        entries += fft_split_entries(fft_split_span(&j->split, pass));
    return entries;
}

static rlxvk_status push_factors(job *j, fft_table *t)
{
    const fft_request *r = j->request;
    for (uint64_t k = 0; (r->from_bins || r->to_bins) && k <= j->view.length; k++)
        fft_table_push(t, fft_unit_root(k, 2 * j->view.length));
    if (j->plan.count)
        fft_push_plan(t, &j->plan, j->twiddles);
    for (uint32_t pass = 0; !j->plan.count && pass + 1 < j->split.count; pass++)
        j->twiddles[pass][0] = fft_push_split(t, fft_split_span(&j->split, pass));
    return j->convolved ? push_chirps(j, t) : RLXVK_OK;
}

static rlxvk_status make_factors(job *j)
{
    uint64_t entries = factor_entries(j);
    fft_table t = {0};
    rlxvk_status status = RLXVK_OK;
    if (entries == 0)
        return RLXVK_OK;
    TRY(fft_table_create(entries, &t));
    TRY(push_factors(j, &t));
    TRY(fft_table_finish(j->l, &t, &j->factors));
error:
    memory_free(t.pairs);
    return status;
}

/* ---- Dispatches ---- */

/* The inverse transform is the forward one with real and imaginary parts exchanged at both ends. */
static fft_port exchanged(fft_port p, bool exchange)
{
    if (exchange) {
        p.offset = (uint64_t)((int64_t)p.offset + p.imaginary);
        p.imaginary = -p.imaginary;
    }
    return p;
}

static fft_port scratch_port(const job *j, uint32_t index, uint64_t length)
{
    uint64_t inner = j->inner_step;
    return (fft_port){j->scratch[index], 0, 2 * length * inner, 2, 2 * inner, 1, true};
}

static fft_end load_end(const job *j, fft_port in)
{
    const fft_request *r = j->request;
    return (fft_end){.port = exchanged(in, r->inverse),
                     .limit = r->from_bins ? (uint32_t)j->view.length : r->limit,
                     .bins = r->from_bins};
}

static fft_end store_end(const job *j, fft_port out)
{
    bool apart = bins_apart(j);
    if (apart)
        out = scratch_port(j, scratch_count(j) - 1, j->view.length);
    return (fft_end){.port = exchanged(out, j->request->inverse),
                     .limit = UINT32_MAX,
                     .bins = j->request->to_bins && !apart};
}

static rlxvk_status emit_transform(const fft_transform *t)
{
    return t->plan.count ? fft_register_emit(t) : fft_group_emit(t);
}

/* The second transform returns its parts exchanged. For them, multiplying by conj c is multiplying
 * by c. */
static rlxvk_status emit_convolution(const job *j, fft_transform t)
{
    uint32_t length = (uint32_t)j->view.length, middle = pass_count(j) > 1;
    fft_end last = t.store;
    float scale = t.scale;
    rlxvk_status status;
    t.load.limit = MIN(t.load.limit, length);
    t.load.multiply = true;
    t.load.table = j->chirp;
    t.store = (fft_end){.port = scratch_port(j, middle, j->length),
                        .limit = UINT32_MAX,
                        .multiply = true,
                        .table = j->filter};
    t.scale = 1;
    TRY(emit_transform(&t));
    if (!t.plan.count) /* the first pass of groups can be in place */
        t.scratch[0] = t.store.port;
    t.load = (fft_end){.port = exchanged(t.store.port, true), .limit = UINT32_MAX};
    t.store = last;
    t.store.port = exchanged(last.port, true);
    t.store.limit = length;
    t.store.multiply = true;
    t.store.table = j->reversed_chirp;
    t.scale = scale;
    TRY(emit_transform(&t));
error:
    return status;
}

/* Emits the bins of lines whose transforms lie in the last scratch. */
static rlxvk_status emit_bins(const job *j, const fft_port *out, uint64_t lines)
{
    uint64_t h = j->view.length;
    struct fft_real_args a = {.lines = (u32)lines,
                              .half_length = (u32)h,
                              .y_offset = (u32)out->offset,
                              .scale = j->request->scale};
    dispatch d = {.kernel = KERNEL_FFT_REAL};
    operand z = j->scratch[scratch_count(j) - 1];
    z.access = ACCESS_READ;
    SET_CONSTANTS(&d, {LOCAL_SIZE, j->l->profile->workgroup_size});
    lower_groups(j->l, &d, groups_for(lines * (h + 1), d.constants[LOCAL_SIZE]));
    return lower_emit(j->l, &d, &a, sizeof a, (operand[]){z, j->factors, out->at}, 3);
}

static rlxvk_status emit_lines(const job *j, uint64_t outer, uint64_t inner)
{
    const fft_request *r = j->request;
    fft_port in = r->in, out = r->out;
    fft_transform t = {.l = j->l,
                       .plan = j->plan,
                       .split = j->split,
                       .outer = MIN(j->outer_step, j->view.outer - outer),
                       .inner = MIN(j->inner_step, j->view.inner - inner),
                       .factors = j->factors,
                       .scratch = {scratch_port(j, 0, j->length)},
                       .scale = bins_apart(j) ? 1 : r->scale};
    rlxvk_status status;
    if (j->plan.count == FFT_MOST_PASSES)
        t.scratch[1] = scratch_port(j, 1, j->length);
    memcpy(t.twiddles, j->twiddles, sizeof t.twiddles);
    in.offset += outer * in.outer + inner * in.inner;
    out.offset += outer * out.outer + inner * out.inner;
    t.load = load_end(j, in);
    t.store = store_end(j, out);
    TRY(j->convolved ? emit_convolution(j, t) : emit_transform(&t));
    if (bins_apart(j))
        TRY(emit_bins(j, &out, t.outer));
error:
    return status;
}

rlxvk_status fft_lower_request(lowering *l, const fft_request *r)
{
    job j = {.l = l, .request = r, .view = r->view};
    rlxvk_status status;
    TRY(choose_length(&j));
    TRY(make_scratch(&j));
    TRY(make_factors(&j));
    for (uint64_t outer = 0; outer < j.view.outer; outer += j.outer_step)
        for (uint64_t inner = 0; inner < j.view.inner; inner += j.inner_step)
            TRY(emit_lines(&j, outer, inner));
error:
    return status;
}

static fft_port port_of(const fft_view *v, operand o)
{
    if (v->block)
        return (fft_port){o, o.offset, 2 * v->length, 0, 1, (int32_t)v->length, false};
    return (fft_port){o,   2 * (uint64_t)o.offset, 2 * v->length * v->inner, 2, 2 * v->inner, 1,
                      true};
}

rlxvk_status fft_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    fft_view view = fft_view_of(n);
    fft_request r = {.view = view,
                     .scale = (float)fft_scale(n),
                     .inverse = ((const fft_attributes *)n->attributes)->inverse,
                     .limit = UINT32_MAX,
                     .in = port_of(&view, lower_input(l, id, 0)),
                     .out = port_of(&view, lower_write(l, id))};
    return fft_lower_request(l, &r);
}
