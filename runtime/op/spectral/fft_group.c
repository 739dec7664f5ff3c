/*
 * Lowering of a transform by groups (glsl/spectral/fft.comp): one, two or three passes. A length N
 * = n0 L is computed in three steps. First come n0-point transforms of the columns, whose points
 * are L apart. Then twiddles w_N^(k0 m) are multiplied. Then come L-point transforms of the rows,
 * whose result k goes to k0 + n0 k. L may be split once more.
 */
#include "args/spectral.h"
#include "constants/spectral.h"
#include "op/spectral/fft.h"

/* Point j of row (d1, d2) is at j * step[0] + d1 * step[1] + d2 * step[2]. */
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

static void set_source(struct fft_args *a, const fft_port *p, const geometry *g, const fft_end *e)
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
    a->flags |= (p->pairs ? FFT_IN_PAIRS : 0) | (e && e->multiply ? FFT_LOAD_TABLE : 0) |
                (e && e->bins ? FFT_LOAD_BINS : 0);
}

static void set_target(struct fft_args *a, const fft_port *p, const geometry *g, const fft_end *e)
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

static rlxvk_status emit_pass(const fft_transform *t, uint32_t pass)
{
    bool first = pass == 0, last = pass + 1 == t->split.count;
    geometry form = geometry_of(&t->split, pass);
    const fft_port *in = first ? &t->load.port : &t->scratch[0];
    const fft_port *out = last ? &t->store.port : &t->scratch[0];
    uint64_t lines = t->outer * t->inner * form.d1 * form.d2;
    bool load_across = t->inner > 1 || !last, store_across = t->inner > 1 || t->split.count > 1;
    fft_group g;
    operand stages;
    rlxvk_status status;
    if (!fft_group_choose(t->l->profile, form.n, lines, load_across || store_across, &g))
        return status_fail(RLXVK_E_UNSUPPORTED, "fft: %u points do not fit a workgroup", g.n);
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
        a.flags |= FFT_STORE_TWIDDLE | fft_split_bits(form.span) << FFT_SPLIT_SHIFT;
        a.store_table = t->twiddles[pass][0];
    }
    dispatch d = {.kernel = KERNEL_FFT};
    TRY(fft_stage_table(t->l, g.n, g.radices, g.stages, &stages));
    SET_CONSTANTS(&d, {LOCAL_SIZE, g.threads}, {FFT_KNOWN, g.known}, {FFT_POINTS, g.points},
                  {FFT_SINGLE, g.single}, {FFT_PAD, g.pad});
    lower_groups(t->l, &d, divide_up(lines, g.rows));
    operand factors = t->factors.size ? t->factors : stages;
    TRY(lower_emit(t->l, &d, &a, sizeof a,
                   (operand[]){reading(in->at), stages, factors, writing(out->at)}, 4));
error:
    return status;
}

uint64_t fft_split_span(const fft_split *s, uint32_t pass)
{
    return geometry_of(s, pass).span;
}

rlxvk_status fft_group_emit(const fft_transform *t)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t pass = 0; pass < t->split.count && status == RLXVK_OK; pass++)
        status = emit_pass(t, pass);
    return status;
}
