/*
 * Lowering of a transform by tiles (glsl/spectral/fft_register.comp): one pass, or two by way of
 * scratch. Of n0 n1 points, result k0 of column n1 is multiplied by w_N^(k0 n1) = base[b, n1] *
 * step[r, n1], where k0 = b + r n0/R and R is the last radix of the first tile.
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

uint64_t fft_plan_entries(const fft_plan *plan)
{
    const fft_tile *first = &plan->tiles[0];
    uint64_t radix = last_radix(first);
    return plan->count < 2 ? 0 : plan->tiles[1].n * (first->n / radix + radix);
}

void fft_push_plan(fft_table *t, const fft_plan *plan, uint32_t out[2])
{
    const fft_tile *first = &plan->tiles[0];
    uint64_t depth = plan->tiles[1].n, radix = last_radix(first);
    if (plan->count < 2)
        return;
    out[0] = fft_push_grid(t, first->n / radix, depth, plan->length);
    out[1] = fft_push_grid(t, radix, depth, radix * depth);
}

uint64_t fft_plan_scratch(const fft_plan *plan, uint64_t inner)
{
    if (plan->count < 2)
        return 0;
    return round_up(plan->tiles[0].n * inner, plan->block) * plan->tiles[1].n;
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

/* Exchanged parts lie the other way round: what comes first is the address. */
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

static uint32_t pack_radices(const fft_tile *t)
{
    uint32_t packed = 0;
    for (uint32_t i = 0; i < t->stages; i++)
        packed |= (t->radices[i] - 1u) << 5 * i;
    return packed;
}

static rlxvk_status emit(const fft_transform *t, uint32_t index, pass *s)
{
    const fft_tile *tile = &t->plan.tiles[index];
    uint64_t span = t->inner * (t->plan.count == 2 ? t->plan.tiles[!index].n : 1);
    uint64_t lines = t->outer * span;
    operand stages;
    rlxvk_status status;
    s->flags |= tile->along ? FFT_ALONG : 0;
    s->in.access = ACCESS_READ;
    s->out.access = ACCESS_WRITE;
    s->arguments.lines = (u32)lines;
    dispatch d = {.kernel = KERNEL_FFT_REGISTER, .variant = tile->name};
    TRY(fft_stage_table(t->l, tile->n, tile->radices, tile->stages, &stages));
    SET_CONSTANTS(&d, {LOCAL_SIZE, tile->rows * tile->lanes}, {FFT_REGISTER_N, tile->n},
                  {FFT_REGISTER_ROWS, tile->rows}, {FFT_REGISTER_LANES, tile->lanes},
                  {FFT_REGISTER_RADICES, pack_radices(tile)}, {FFT_REGISTER_SPAN, (u32)span},
                  {FFT_REGISTER_INNER, (u32)t->inner}, {FFT_REGISTER_FLAGS, s->flags},
                  {FFT_REGISTER_PAD, tile->pad}, {FFT_REGISTER_PLACES, tile->places},
                  {FFT_REGISTER_BLOCK, t->plan.block});
    lower_groups(t->l, &d, divide_up(lines, tile->rows));
    operand factors = t->factors.size ? t->factors : stages;
    TRY(lower_emit(t->l, &d, &s->arguments, sizeof s->arguments,
                   (operand[]){s->in, stages, factors, s->out}, 4));
error:
    return status;
}

static rlxvk_status emit_first_of_two(const fft_transform *t)
{
    pass s = {.flags = FFT_TO_SCRATCH, .out = t->scratch.at};
    load_from(&s, &t->load);
    s.arguments.out_outer = (u32)fft_plan_scratch(&t->plan, t->inner);
    s.arguments.store_table = t->twiddles[0];
    s.arguments.step_table = t->twiddles[1];
    return emit(t, 0, &s);
}

rlxvk_status fft_register_emit(const fft_transform *t)
{
    pass s = {.flags = 0};
    rlxvk_status status;
    if (t->plan.count == 2) {
        TRY(emit_first_of_two(t));
        s.flags = FFT_FROM_SCRATCH;
        s.in = t->scratch.at;
        s.arguments.in_outer = (u32)fft_plan_scratch(&t->plan, t->inner);
    } else {
        load_from(&s, &t->load);
    }
    store_to(&s, &t->store, t->scale);
    TRY(emit(t, t->plan.count - 1, &s));
error:
    return status;
}
