/*
 * Lowering of a transform by tiles (glsl/spectral/fft_register.comp): one, two or three passes
 * through scratch. With n0 n1 points, result k0 of column n1 is multiplied by w_N^(k0 n1) = base[b,
 * n1] * step[r, n1]. Here k0 = b + r n0/R, and R is the last radix of the first tile.
 */
#include "args/spectral.h"
#include "constants/spectral.h"
#include "op/spectral/fft.h"

#include <stdlib.h>

/* ---- Between two passes ---- */

static uint32_t last_radix(const fft_tile *t)
{
    return t->radices[t->stages - 1];
}

/* The points of a column that are transformed by the passes after pass i. */
static uint64_t points_after(const fft_plan *plan, uint32_t i)
{
    uint64_t points = 1;
    while (++i < plan->count)
        points *= plan->tiles[i].n;
    return points;
}

uint64_t fft_plan_entries(const fft_plan *plan)
{
    uint64_t entries = 0;
    for (uint32_t i = 0; i + 1 < plan->count; i++) {
        const fft_tile *tile = &plan->tiles[i];
        uint64_t radix = last_radix(tile);
        entries += points_after(plan, i) * (tile->n / radix + radix);
    }
    return entries;
}

void fft_push_plan(fft_table *t, const fft_plan *plan, uint32_t out[][2])
{
    for (uint32_t i = 0; i + 1 < plan->count; i++) {
        const fft_tile *tile = &plan->tiles[i];
        uint64_t depth = points_after(plan, i), radix = last_radix(tile);
        out[i][0] = fft_push_grid(t, tile->n / radix, depth, tile->n * depth);
        out[i][1] = fft_push_grid(t, radix, depth, radix * depth);
    }
}

uint64_t fft_plan_scratch(const fft_plan *plan, uint64_t inner)
{
    uint64_t lines = plan->length / plan->tiles[plan->count - 1].n * inner;
    return plan->count < 2 ? 0 : round_up(lines, plan->block) * plan->tiles[plan->count - 1].n;
}

/* ---- Dispatches ---- */

typedef struct pass {
    struct fft_register_args arguments;
    uint32_t flags;
    operand in, out;
} pass;

static uint32_t divisor_of(const fft_port *p)
{
    return p->pairs ? 2 : 1;
}

/* The address of the part that lies first in memory. If parts are exchanged, this is not the port's
 * offset. */
static uint32_t start_of(const fft_port *p)
{
    int64_t first = (int64_t)p->offset + MIN(p->imaginary, 0);
    return (uint32_t)(first / divisor_of(p));
}

static void load_from(pass *s, const fft_end *e)
{
    const fft_port *p = &e->port;
    struct fft_register_args *a = &s->arguments;
    s->in = p->at;
    a->in_offset = start_of(p);
    a->in_outer = (u32)(p->outer / divisor_of(p));
    a->in_imaginary = (u32)abs(p->imaginary);
    a->load_limit = e->limit;
    a->load_table = e->table;
    s->flags |= (p->pairs ? FFT_IN_PAIRS : 0) | (p->imaginary < 0 ? FFT_IN_SWAP : 0) |
                (e->multiply ? FFT_LOAD_TABLE : 0) | (e->limit < UINT32_MAX ? FFT_LOAD_LIMIT : 0) |
                (e->bins ? FFT_LOAD_BINS : 0);
}

static void store_to(pass *s, const fft_end *e, float scale)
{
    const fft_port *p = &e->port;
    struct fft_register_args *a = &s->arguments;
    s->out = p->at;
    a->out_offset = start_of(p);
    a->out_outer = (u32)(p->outer / divisor_of(p));
    a->out_imaginary = (u32)abs(p->imaginary);
    a->store_limit = e->limit;
    a->store_table = e->table;
    a->scale = scale;
    s->flags |= (p->pairs ? FFT_OUT_PAIRS : 0) | (p->imaginary < 0 ? FFT_OUT_SWAP : 0) |
                (e->multiply ? FFT_STORE_TABLE : 0) |
                (e->limit < UINT32_MAX ? FFT_STORE_LIMIT : 0) | (e->bins ? FFT_STORE_BINS : 0) |
                (scale != 1 ? FFT_SCALE : 0);
}

/* Lines side by side in pass i. Of three passes, the first leaves its results side by side, so the
 * others have more lines. */
static uint64_t inner_of(const fft_transform *t, uint32_t i)
{
    return t->inner * (t->plan.count == 3 && i > 0 ? t->plan.tiles[0].n : 1);
}

static uint64_t span_of(const fft_transform *t, uint32_t i)
{
    return t->plan.length / t->plan.tiles[i].n * t->inner;
}

static rlxvk_status emit(const fft_transform *t, uint32_t index, pass *s)
{
    const fft_tile *tile = &t->plan.tiles[index];
    uint64_t span = span_of(t, index), lines = t->outer * span;
    bool gathers = t->plan.count == 3 && index == 0;
    operand stages;
    rlxvk_status status;
    s->flags |= tile->along ? FFT_ALONG : 0;
    s->in.access = ACCESS_READ;
    s->out.access = ACCESS_WRITE;
    s->arguments.lines = (u32)lines;
    uint32_t block = gathers ? (u32)(tile->n * t->inner) : t->plan.block;
    dispatch d = {.kernel = KERNEL_FFT_REGISTER, .variant = tile->name};
    TRY(fft_stage_table(t->l, tile->n, tile->radices, tile->stages, &stages));
    SET_CONSTANTS(&d, {LOCAL_SIZE, tile->rows * tile->lanes},
                  FFT_TILE_CONSTANTS(FFT_REGISTER, tile), {FFT_REGISTER_SPAN, (u32)span},
                  {FFT_REGISTER_INNER, (u32)inner_of(t, index)}, {FFT_REGISTER_FLAGS, s->flags},
                  {FFT_REGISTER_BLOCK, block});
    lower_groups(t->l, &d, divide_up(lines, tile->rows));
    operand factors = t->factors.size ? t->factors : stages;
    TRY(lower_emit(t->l, &d, &s->arguments, sizeof s->arguments,
                   (operand[]){s->in, stages, factors, s->out}, 4));
error:
    return status;
}

/* Pairs of an outer index in the scratch that pass i writes. */
static uint64_t scratch_step(const fft_transform *t, uint32_t i)
{
    bool last = i + 2 == t->plan.count;
    return last ? fft_plan_scratch(&t->plan, t->inner) : t->plan.length * t->inner;
}

static void store_between(const fft_transform *t, uint32_t i, pass *s)
{
    s->flags |= FFT_TO_SCRATCH;
    s->out = t->scratch[i].at;
    s->arguments.out_outer = (u32)scratch_step(t, i);
    s->arguments.store_table = t->twiddles[i][0];
    s->arguments.step_table = t->twiddles[i][1];
}

static void load_between(const fft_transform *t, uint32_t i, pass *s)
{
    s->flags |= i + 1 == t->plan.count ? FFT_FROM_SCRATCH : FFT_IN_PAIRS;
    s->in = t->scratch[i - 1].at;
    s->arguments.in_outer = (u32)scratch_step(t, i - 1);
}

rlxvk_status fft_register_emit(const fft_transform *t)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < t->plan.count && status == RLXVK_OK; i++) {
        pass s = {.flags = 0};
        if (i == 0)
            load_from(&s, &t->load);
        else
            load_between(t, i, &s);
        if (i + 1 < t->plan.count)
            store_between(t, i, &s);
        else
            store_to(&s, &t->store, t->scale);
        status = emit(t, i, &s);
    }
    return status;
}
