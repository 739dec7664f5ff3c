/*
 * Lowering of fft. A length that fits a workgroup is one pass. A longer one, N = n0 L, is n0-point
 * transforms of the columns (points L apart), twiddles w_N^(k0 m), then L-point transforms of the
 * rows, whose result k goes to k0 + n0 k; L may split once more. A length with a prime above
 * FFT_SMOOTH is a convolution by smooth transforms of M >= 2N - 1 points (Bluestein): c[n] =
 * exp(-pi i n^2 / N), X[k] = c[k] IFFT(FFT(x c) B)[k], B the transform of conj c.
 *
 * Scratch of lines in flight is at most fft_scratch_bytes; more lines are done in turn.
 */
#include "op/fft.h"

#include <math.h>
#include <string.h>

uint64_t fft_scratch_bytes = 64u << 20;

/* ---- Tables ---- */

typedef struct table {
    float *pairs;
    uint64_t count, capacity;
} table;

static rlxvk_status table_create(uint64_t capacity, table *out)
{
    *out = (table){memory_allocate(capacity * 2 * sizeof(float)), 0, capacity};
    return out->pairs ? RLXVK_OK : fail_memory("twiddles");
}

static void table_push(table *t, complex_value v)
{
    t->pairs[2 * t->count] = (float)v.re;
    t->pairs[2 * t->count++ + 1] = (float)v.im;
}

static rlxvk_status table_finish(lowering *l, table *t, operand *out)
{
    return lower_constant(l, t->pairs, t->count * 2 * sizeof(float), out);
}

/* Twiddle (r, low) of the stage that has ns points done: at r * ns + low. */
static rlxvk_status stage_table(lowering *l, const fft_group *g, operand *out)
{
    table t = {0};
    uint64_t ns = 1;
    rlxvk_status status;
    TRY(table_create(g->n, &t));
    table_push(&t, (complex_value){1, 0});
    for (uint32_t i = 0; i < g->stages; ns *= g->radices[i++])
        for (uint64_t at = ns; at < ns * g->radices[i]; at++)
            table_push(&t, unit_root(at / ns * (at % ns), ns * g->radices[i]));
    TRY(table_finish(l, &t, out));
error:
    memory_free(t.pairs);
    return status;
}

/* w^e, e < span, as low[e mod 2^bits] * high[e div 2^bits]: bits for two tables of like size. */
static uint32_t split_bits(uint64_t span)
{
    uint32_t bits = 0;
    while (1ull << (2 * bits) < span)
        bits++;
    return bits;
}

static uint64_t split_entries(uint64_t span)
{
    return (1ull << split_bits(span)) + (span >> split_bits(span)) + 1;
}

static uint32_t push_split(table *t, uint64_t span)
{
    uint32_t first = (uint32_t)t->count, bits = split_bits(span);
    for (uint64_t i = 0; i < 1ull << bits; i++)
        table_push(t, unit_root(i, span));
    for (uint64_t i = 0; i <= span >> bits; i++)
        table_push(t, unit_root(i << bits, span));
    return first;
}

/* ---- One transform of all lines ---- */

/* Where lines lie: word addresses of the pairs' real parts. */
typedef struct port {
    operand at;
    uint64_t offset, outer, inner, axis;
    int32_t imaginary;
    bool pairs; /* parts are neighbours and aligned */
} port;

/* Ends of a transform: a port, and a table to multiply by. */
typedef struct end {
    port port;
    uint32_t limit; /* positions from here on are zeros, or dropped */
    bool multiply;
    uint32_t table;
} end;

typedef struct transform {
    lowering *l;
    fft_split split;
    uint64_t outer, inner;
    operand factors;
    uint32_t twiddles[FFT_MOST_PASSES]; /* of pass i, in `factors` */
    end load, store;
    port scratch; /* between passes */
    float scale;
} transform;

/* Point j of row (d1, d2) stands at j * step[0] + d1 * step[1] + d2 * step[2]. */
typedef struct geometry {
    uint64_t n, d1, d2, in[3], out[3];
    uint64_t span; /* of the twiddles that follow; 0: none */
} geometry;

static geometry geometry_of(const fft_split *s, uint32_t pass)
{
    uint64_t a = s->factors[0], b = s->factors[1], c = s->factors[2], rest = s->length / a;
    if (s->count == 1)
        return (geometry){a, 1, 1, {1, 0, 0}, {1, 0, 0}, 0};
    if (pass == 0)
        return (geometry){a, rest, 1, {rest, 1, 0}, {rest, 1, 0}, s->length};
    if (s->count == 2)
        return (geometry){b, a, 1, {1, b, 0}, {a, 1, 0}, 0};
    if (pass == 1)
        return (geometry){b, c, a, {c, 1, rest}, {c, 1, rest}, rest};
    return (geometry){c, a, b, {1, rest, c}, {a * b, 1, a}, 0};
}

static uint32_t pack_radices(const fft_group *g, uint32_t first)
{
    uint32_t packed = 0;
    for (uint32_t i = first; i < g->stages && i < first + 8; i++)
        packed |= (g->radices[i] & 15u) << 4 * (i - first);
    return packed;
}

static void set_source(struct fft_args *a, const port *p, const geometry *g, const end *e)
{
    a->in_offset = (u32)p->offset;
    a->in_imaginary = p->imaginary;
    a->in_outer = (u32)p->outer;
    a->in_inner = (u32)p->inner;
    a->in_axis = (u32)p->axis;
    a->in_step = (u32)g->in[0];
    a->in_step1 = (u32)g->in[1];
    a->in_step2 = (u32)g->in[2];
    a->load_limit = e ? e->limit : UINT32_MAX;
    a->load_table = e ? e->table : 0;
    a->flags |= (p->pairs ? FFT_IN_PAIRS : 0) | (e && e->multiply ? FFT_LOAD_TABLE : 0);
}

static void set_target(struct fft_args *a, const port *p, const geometry *g, const end *e)
{
    a->out_offset = (u32)p->offset;
    a->out_imaginary = p->imaginary;
    a->out_outer = (u32)p->outer;
    a->out_inner = (u32)p->inner;
    a->out_axis = (u32)p->axis;
    a->out_step = (u32)g->out[0];
    a->out_step1 = (u32)g->out[1];
    a->out_step2 = (u32)g->out[2];
    a->store_limit = e ? e->limit : UINT32_MAX;
    a->store_table = e ? e->table : 0;
    a->flags |= (p->pairs ? FFT_OUT_PAIRS : 0) | (e && e->multiply ? FFT_STORE_TABLE : 0);
}

static operand reading(operand o)
{
    o.access = ACCESS_READ;
    return o;
}

static operand writing(operand o)
{
    o.access = ACCESS_WRITE;
    return o;
}

static rlxvk_status emit_pass(const transform *t, uint32_t pass)
{
    bool first = pass == 0, last = pass + 1 == t->split.count;
    geometry form = geometry_of(&t->split, pass);
    const port *in = first ? &t->load.port : &t->scratch;
    const port *out = last ? &t->store.port : &t->scratch;
    uint64_t lines = t->outer * t->inner * form.d1 * form.d2;
    bool load_across = t->inner > 1 || !last, store_across = t->inner > 1 || t->split.count > 1;
    fft_group g;
    operand stages;
    rlxvk_status status;
    if (!fft_group_choose(t->l->profile, form.n, lines, load_across || store_across, &g))
        return fail(RLXVK_E_UNSUPPORTED, "fft: %u points do not fit a workgroup", g.n);
    struct fft_args a = {.lines = (u32)lines,
                         .rows = g.rows,
                         .n = g.n,
                         .stages = g.stages,
                         .radices = pack_radices(&g, 0),
                         .more_radices = pack_radices(&g, 8),
                         .pitch = g.pitch,
                         .inner = (u32)t->inner,
                         .d1 = (u32)form.d1,
                         .d2 = (u32)form.d2,
                         .scale = last ? t->scale : 1};
    a.flags = (load_across ? FFT_LOAD_ACROSS : 0) | (store_across ? FFT_STORE_ACROSS : 0);
    set_source(&a, in, &form, first ? &t->load : NULL);
    set_target(&a, out, &form, last ? &t->store : NULL);
    if (!last) {
        a.flags |= FFT_STORE_TWIDDLE | split_bits(form.span) << FFT_SPLIT_SHIFT;
        a.store_table = t->twiddles[pass];
    }
    dispatch d = {.kernel = KERNEL_FFT,
                  .constants = {g.threads, g.level, g.points, g.single, g.pad}};
    TRY(stage_table(t->l, &g, &stages));
    lower_groups(t->l, &d, divide_up(lines, g.rows));
    operand factors = t->factors.size ? t->factors : stages;
    TRY(lower_emit(t->l, &d, &a, sizeof a,
                   (operand[]){reading(in->at), stages, factors, writing(out->at)}, 4));
error:
    return status;
}

static rlxvk_status emit_transform(const transform *t)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t pass = 0; pass < t->split.count && status == RLXVK_OK; pass++)
        status = emit_pass(t, pass);
    return status;
}

/* ---- A whole node ---- */

typedef struct job {
    lowering *l;
    fft_view view;
    bool inverse, convolved;
    float scale;
    fft_split split; /* of the length, or of the convolution's */
    uint32_t twiddles[FFT_MOST_PASSES], chirp, reversed_chirp, filter;
    operand factors, scratch[2];
    port in, out;
    uint64_t outer_step, inner_step; /* lines done at a time */
} job;

/* Exchanging the parts at both ends makes the inverse transform. */
static port exchanged(port p, bool exchange)
{
    if (exchange) {
        p.offset = (uint64_t)((int64_t)p.offset + p.imaginary);
        p.imaginary = -p.imaginary;
    }
    return p;
}

static port port_of(const fft_view *v, operand o)
{
    if (v->block)
        return (port){o, o.offset, 2 * v->length, 0, 1, (int32_t)v->length, false};
    return (port){o, 2 * (uint64_t)o.offset, 2 * v->length * v->inner, 2, 2 * v->inner, 1, true};
}

static port scratch_port(const job *j, uint32_t index)
{
    uint64_t inner = j->inner_step;
    return (port){j->scratch[index], 0, 2 * j->split.length * inner, 2, 2 * inner, 1, true};
}

static complex_value chirp(uint64_t n, uint64_t length)
{
    return unit_root(n * n % (2 * length), 2 * length);
}

/* c, conj c, and the transform of conj c wrapped around M points, divided by M. */
static rlxvk_status push_chirps(job *j, table *t)
{
    uint64_t n = j->view.length, m = j->split.length;
    complex_value *b = memory_zeroed(m, sizeof *b);
    rlxvk_status status;
    TRY(b ? RLXVK_OK : fail_memory("chirp"));
    j->chirp = (uint32_t)t->count;
    j->reversed_chirp = (uint32_t)(t->count + n);
    j->filter = (uint32_t)(t->count + 2 * n);
    for (uint64_t i = 0; i < n; i++)
        table_push(t, chirp(i, n));
    for (uint64_t i = 0; i < n; i++) {
        complex_value c = chirp(i, n);
        b[i] = b[(m - i) % m] = (complex_value){c.re, -c.im};
        table_push(t, b[i]);
    }
    TRY(fft_exact(b, m));
    for (uint64_t i = 0; i < m; i++)
        table_push(t, (complex_value){b[i].re / (double)m, b[i].im / (double)m});
error:
    memory_free(b);
    return status;
}

static rlxvk_status make_factors(job *j)
{
    table t = {0};
    uint64_t capacity = j->convolved ? 2 * j->view.length + j->split.length : 0;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t pass = 0; pass + 1 < j->split.count; pass++)
        capacity += split_entries(geometry_of(&j->split, pass).span);
    if (!capacity)
        return RLXVK_OK;
    TRY(table_create(capacity, &t));
    for (uint32_t pass = 0; pass + 1 < j->split.count; pass++)
        j->twiddles[pass] = push_split(&t, geometry_of(&j->split, pass).span);
    if (j->convolved)
        TRY(push_chirps(j, &t));
    TRY(table_finish(j->l, &t, &j->factors));
error:
    memory_free(t.pairs);
    return status;
}

static rlxvk_status choose_split(job *j)
{
    uint64_t length = j->view.length;
    if (fft_split_choose(j->l->profile, length, &j->split))
        return RLXVK_OK;
    j->convolved = true;
    for (uint64_t m = next_smooth(2 * length - 1); m < 4 * length; m = next_smooth(m + 1))
        if (fft_split_choose(j->l->profile, m, &j->split))
            return RLXVK_OK;
    return fail(RLXVK_E_TOO_LARGE, "fft: %llu points need more than %d passes on this device",
                (unsigned long long)length, FFT_MOST_PASSES);
}

/* How many lines at a time, and the scratch for them. */
static rlxvk_status make_scratch(job *j)
{
    uint32_t count = j->convolved ? MIN(j->split.count, 2) : j->split.count > 1;
    uint64_t line = 8 * j->split.length * MAX(count, 1);
    uint64_t lines = count ? MAX(fft_scratch_bytes / line, 1) : UINT64_MAX;
    rlxvk_status status = RLXVK_OK;
    j->inner_step = MIN(j->view.inner, lines);
    j->outer_step = MIN(j->view.outer, MAX(lines / j->view.inner, 1));
    for (uint32_t i = 0; i < count; i++)
        TRY(lower_temporary(j->l, 8 * j->split.length * j->inner_step * j->outer_step,
                            &j->scratch[i]));
error:
    return status;
}

static transform transform_of(const job *j, uint64_t outer, uint64_t inner)
{
    transform t = {.l = j->l,
                   .split = j->split,
                   .outer = outer,
                   .inner = inner,
                   .factors = j->factors,
                   .scratch = scratch_port(j, 0),
                   .scale = 1};
    memcpy(t.twiddles, j->twiddles, sizeof t.twiddles);
    return t;
}

/* The result of the second transform comes with its parts exchanged, where multiplying by conj c
 * is multiplying by c. */
static rlxvk_status emit_convolution(const job *j, port in, port out, transform t)
{
    uint32_t length = (uint32_t)j->view.length, middle = j->split.count > 1;
    rlxvk_status status;
    t.load = (end){exchanged(in, j->inverse), length, true, j->chirp};
    t.store = (end){scratch_port(j, middle), UINT32_MAX, true, j->filter};
    TRY(emit_transform(&t));
    t.scratch = t.store.port;
    t.load = (end){exchanged(t.store.port, true), UINT32_MAX, false, 0};
    t.store = (end){exchanged(out, !j->inverse), length, true, j->reversed_chirp};
    t.scale = j->scale;
    TRY(emit_transform(&t));
error:
    return status;
}

static rlxvk_status emit_lines(const job *j, uint64_t outer, uint64_t inner)
{
    transform t = transform_of(j, MIN(j->outer_step, j->view.outer - outer),
                               MIN(j->inner_step, j->view.inner - inner));
    port in = j->in, out = j->out;
    in.offset += outer * in.outer + inner * in.inner;
    out.offset += outer * out.outer + inner * out.inner;
    if (j->convolved)
        return emit_convolution(j, in, out, t);
    t.load = (end){exchanged(in, j->inverse), UINT32_MAX, false, 0};
    t.store = (end){exchanged(out, j->inverse), UINT32_MAX, false, 0};
    t.scale = j->scale;
    return emit_transform(&t);
}

rlxvk_status fft_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    job j = {.l = l,
             .view = fft_view_of(n),
             .scale = (float)fft_scale(n),
             .inverse = ((const fft_attributes *)n->attributes)->inverse};
    rlxvk_status status;
    j.in = port_of(&j.view, lower_input(l, id, 0));
    j.out = port_of(&j.view, lower_write(l, id));
    TRY(choose_split(&j));
    TRY(make_scratch(&j));
    TRY(make_factors(&j));
    for (uint64_t outer = 0; outer < j.view.outer; outer += j.outer_step)
        for (uint64_t inner = 0; inner < j.view.inner; inner += j.inner_step)
            TRY(emit_lines(&j, outer, inner));
error:
    return status;
}
