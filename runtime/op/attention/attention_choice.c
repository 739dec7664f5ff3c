/*
 * The classes of attention kernels. Portable drivers run the invocations of a workgroup one after
 * the other, and compile unrolled code slowly. The last row has only the baseline's conditions. On
 * an H200, 1x32x2048x128 causal takes 0.95 ms with tile_128x128 and 1.30 with tile_32x64.
 *
 * Keys are split if the workgroups would not fill the device and the partial results fit.
 */
#include "op/attention/attention_choice.h"
#include "args/attention.h"
#include "op/op.h"
#include "op/attention/attention.h"

#define ANY          UINT64_MAX
#define DEPTH        16 /* columns of a slice of q and k, in attention_prefill */
#define QUAD_BYTES   16
#define FLAG_BYTES   64 /* single shared words, rounded up */
#define LEAST_CHUNK  32
#define MOST_COLUMNS 16  /* column threads, unless registers are few */
#define LOW_ROWS     32  /* tiles this low may be partly filled */
#define MOST_LOADS   8   /* quads of v that an invocation carries */
#define LEAST_TILES  4   /* of a chunk; with fewer, a merge costs more than it saves */
#define MOST_JOINED  512 /* partial results; with more, the last workgroup would join too long */
/* On a software driver, loops of an invocation end silently after 65,535 rounds. */
#define PORTABLE_CHUNK 16384

/* clang-format off */
#define R ATTENTION_FORM_ROWS
#define T ATTENTION_FORM_TILE
const attention_class attention_classes[] = {
    /* {name, settings}, form, threads, most queries, least and most width, tiles: column threads,
     * row quads, key quads, unroll, split; rows: quads ahead, least rows, scratch, scores, most
     * keys */
    {{"rows_deep",    ON_NATIVE},   R, 128,   8,  1, 256,   0, 0, 0, 0, false, 4, 5, 4096, 1024},
    {{"rows_short",   ON_NATIVE},   R, 256,   8,  1, 256,   0, 0, 0, 0, false, 8, 1, 4096, 2048,
     8192},
    {{"rows_wide",    ON_NATIVE},   R, 256,   8,  1, 256,   0, 0, 0, 0, false, 8, 1, 2048, 2048},
    {{"rows",         ON_NATIVE},   R, 128,   8,  1, 256,   0, 0, 0, 0, false, 4, 1, 2048, 1024},
    {{"rows_small",   ON_PORTABLE}, R,   0,   8,  1, 256,   0, 0, 0, 0, false, 2, 1, 2048, 1024},
    {{"tile_split",   ON_ALL},      T, 128, ANY,  1, 256,  16, 1, 1, 4, true,  0, 0, 0, 0},
    {{"tile_16x64_split", ON_ALL}, T, 64, ANY, 257, 512,  16, 1, 1, 4, true,  0, 0, 0, 0},
    {{"tile_128x128", ON_NATIVE},   T, 256, ANY, 65, 128,  16, 2, 2, 16, false, 0, 0, 0, 0},
    {{"tile_64x64",   ON_NATIVE},   T, 128, ANY,  1,  96,   8, 1, 2, 8, false, 0, 0, 0, 0},
    {{"tile_32x64",   ON_ALL},      T, 128, ANY,  0, 256,  16, 1, 1, 4, false, 0, 0, 0, 0},
    {{"tile_16x128",  ON_NATIVE},   T, 128, ANY, 65, 512,  32, 1, 1, 4, false, 0, 0, 0, 0},
    {{"tile_16x256",  ON_NATIVE},   T, 256, ANY, 129, 512, 64, 1, 1, 4, false, 0, 0, 0, 0},
    {{"tile_16x64",   ON_ALL},      T,  64, ANY,  0, 512,  16, 1, 1, 4, false, 0, 0, 0, 0},
};
/* clang-format on */

/* ---- Tiles ---- */

static uint64_t tile_shared_bytes(const attention_plan *p)
{
    const attention_class *c = p->class;
    uint64_t weights = 4 * (uint64_t)c->column_threads * (p->rows / 4 + 1);
    uint64_t score_slice = DEPTH * (uint64_t)(p->rows + p->tile_keys) / 4;
    uint64_t value_slice = (uint64_t)p->value_keys * c->column_threads * p->column_quads;
    uint64_t reduction = (uint64_t)p->rows * c->column_threads / 4;
    uint64_t statistics = 2 * (uint64_t)p->rows;
    return QUAD_BYTES * (MAX(weights, score_slice) + MAX(value_slice, reduction)) +
           sizeof(float) * statistics + FLAG_BYTES;
}

/* Splits keys so that there are twice as many workgroups as compute units. Each takes at least 4
 * tiles. */
static void split_tiles(attention_plan *p, const attention_shape *s, const device_profile *profile)
{
    uint64_t splits = divide_up(2 * (uint64_t)profile->compute_units, MAX(p->blocks, 1));
    uint64_t chunk = MAX(divide_up(s->keys, splits), LEAST_TILES * (uint64_t)p->tile_keys);
    if (profile->portable)
        chunk = MIN(chunk, PORTABLE_CHUNK);
    chunk = round_up(chunk, p->tile_keys);
    p->chunks = MAX(1, divide_up(s->keys, chunk));
    p->chunk = p->chunks > 1 ? (uint32_t)chunk : 0;
}

/* Do value_keys keys of v at a time fit in shared memory and registers? */
static bool values_fit(const attention_plan *p, const device_profile *profile)
{
    uint64_t quads = (uint64_t)p->value_keys * p->class->column_threads * p->column_quads;
    return tile_shared_bytes(p) <= profile->shared_memory_bytes &&
           quads <= MOST_LOADS * (uint64_t)p->threads;
}

static void plan_tiles(attention_plan *p, const attention_shape *s, const device_profile *profile)
{
    const attention_class *c = p->class;
    uint32_t row_threads = c->threads / c->column_threads;
    p->threads = c->threads;
    p->rows = 4 * row_threads * c->row_quads;
    p->tile_keys = 4u * c->column_threads * c->key_quads;
    p->column_quads = MAX(1, (uint32_t)divide_up(s->width, 4u * c->column_threads));
    /* The loop over a slice of v is unrolled, and long ones compile slowly on software drivers. */
    p->value_keys = profile->portable ? MAX(8 / p->column_quads, 4) : 16;
    while (p->value_keys > 4 && !values_fit(p, profile))
        p->value_keys /= 2;
    p->unroll = MIN(p->value_keys, c->unroll);
    if (p->column_quads > (profile->portable ? 2 : 4) &&
        (profile->portable || profile->loads_early))
        p->unroll = 2;
    p->blocks = s->batch * s->heads * divide_up(s->queries, p->rows);
    p->chunks = 1;
    if (c->split)
        split_tiles(p, s, profile);
}

/* ---- Rows ---- */

/* Before Metal 3.2, what a workgroup writes need not be visible to another one. */
bool attention_may_join(const device_profile *profile)
{
    return choice_setting_of(profile) != ON_TRANSLATED;
}

/* Software drivers run invocations one after the other. So they get small workgroups, and chunks
 * are not made smaller to fill the device. */
static void split_rows(attention_plan *p, const attention_shape *s, const device_profile *profile)
{
    uint64_t wanted = profile->portable ? 1 : 3 * (uint64_t)profile->compute_units;
    uint32_t pass = p->threads / p->lanes * p->keys;
    uint32_t chunk = p->class->scores / p->rows;
    while (chunk > MAX(LEAST_CHUNK, pass) && p->blocks * divide_up(s->keys, chunk) < wanted)
        chunk /= 2;
    p->tile_keys = chunk;
    p->chunks = MAX(1, divide_up(s->keys, chunk));
    p->chunk = p->chunks > 1 ? chunk : 0;
    p->joins = p->chunk && p->rows * p->chunks <= MOST_JOINED && attention_may_join(profile);
}

static void plan_rows(attention_plan *p, const attention_shape *s, const device_profile *profile)
{
    uint64_t kv_rows = s->heads / s->kv_heads * s->queries;
    uint32_t quads = (uint32_t)divide_up(s->width, 4);
    p->lanes = quads <= 8 ? 8 : quads <= (p->class->most_keys ? 16 : 32) ? 16 : 32;
    p->lane_quads = (uint32_t)divide_up(quads, p->lanes);
    p->threads = p->class->threads ? p->class->threads : 4 * p->lanes;
    /* Each row costs registers, and long unrolled code compiles slowly on software drivers. */
    uint32_t most_rows = profile->portable ? 4 : 8;
    p->rows = 1;
    while (p->rows < most_rows && p->rows < kv_rows)
        p->rows *= 2;
    p->keys = MAX(1, MIN(p->class->quads_ahead / p->lane_quads,
                         p->class->scratch / (p->threads * p->rows)));
    p->blocks = s->batch * s->kv_heads * divide_up(kv_rows, p->rows);
    p->new_rows = (uint32_t)s->new_rows;
    split_rows(p, s, profile);
}

static uint64_t rows_shared_bytes(const attention_plan *p)
{
    uint64_t scratch = p->threads * MAX(p->keys * p->rows, 4u);
    uint64_t statistics = p->new_rows || p->joins ? 2u * ATTENTION_PAIRS : 0;
    uint64_t step_rows = p->new_rows ? p->rows + 2 * (uint64_t)p->new_rows : 0;
    return sizeof(float) * (scratch + statistics + p->rows * p->tile_keys + 6u * p->rows) +
           QUAD_BYTES * step_rows * p->lanes * p->lane_quads + FLAG_BYTES;
}

/* ---- Choice ---- */

uint64_t attention_shared_bytes(const attention_plan *p)
{
    return p->class->form == ATTENTION_FORM_TILE ? tile_shared_bytes(p) : rows_shared_bytes(p);
}

uint64_t attention_partial_words(const attention_plan *p, const attention_shape *s)
{
    if (p->chunk == 0)
        return 0;
    return s->batch * s->heads * s->queries * p->chunks * (round_up(s->width, 4) + 2);
}

/* Returns true if the partial results can be addressed and bound. Otherwise keys are not split:
 * tiles of queries then take all keys, and other forms do not fit. */
static bool fit_partials(attention_plan *p, const attention_shape *s, const device_profile *profile)
{
    uint64_t most = MIN(profile->max_binding_bytes / sizeof(float), (uint64_t)INT32_MAX);
    if (attention_partial_words(p, s) <= most)
        return true;
    p->chunk = 0;
    p->chunks = 1;
    return p->class->form == ATTENTION_FORM_TILE;
}

static bool make_plan(const attention_class *c, const attention_shape *s,
                      const device_profile *profile, attention_plan *out)
{
    *out = (attention_plan){.class = c};
    if (s->queries > c->most_queries || s->width < c->least_width || s->width > c->most_width)
        return false;
    if (c->form == ATTENTION_FORM_TILE)
        plan_tiles(out, s, profile);
    else
        plan_rows(out, s, profile);
    return fit_partials(out, s, profile);
}

/* Low tiles always suit. Large ones suit if they are mostly filled and keep nearly every compute
 * unit busy. Split keys suit if tiles would leave the device partly idle, or if a software driver
 * would need too many rounds. */
static bool suits(const attention_plan *p, const attention_shape *s, const device_profile *profile)
{
    bool portable = choice_setting_of(profile) & ON_PORTABLE;
    if (p->class->form == ATTENTION_FORM_ROWS)
        return s->heads / s->kv_heads * s->queries >= p->class->least_rows &&
               (p->class->most_keys == 0 || s->keys <= p->class->most_keys);
    if (p->class->split)
        return p->chunk != 0 &&
               (portable ? s->keys > PORTABLE_CHUNK : p->blocks <= profile->compute_units);
    return p->rows <= LOW_ROWS ||
           (s->queries * 2 > p->rows && (p->rows <= 64 || profile_filled(profile, p->blocks)));
}

/* Sums and scores of an invocation of a tile, the quads of v that it carries and multiplies, and
 * about so many other values. */
static uint32_t kept(const attention_plan *p)
{
    enum { OTHERS = 48 };
    const attention_class *c = p->class;
    if (c->form == ATTENTION_FORM_ROWS)
        return 0;
    uint32_t carried = p->value_keys * c->column_threads * p->column_quads;
    return 16 * c->row_quads * (p->column_quads + c->key_quads) +
           4 * (uint32_t)divide_up(carried, c->threads) + 4 * p->column_quads + OTHERS;
}

/* More invocations for a row read more shared memory for each product. So they only suit if fewer
 * would need too many registers. */
static bool needs_wide_rows(const attention_shape *s, const device_profile *profile)
{
    enum { LAST = ARRAY_COUNT(attention_classes) - 1 };
    attention_plan narrow;
    make_plan(&attention_classes[LAST], s, profile, &narrow);
    return kept(&narrow) > profile_registers(profile, narrow.threads);
}

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const attention_class *c = row;
    attention_plan p;
    if (!make_plan(c, problem, profile, &p))
        return (choice_fit){0};
    return (choice_fit){.can = true,
                        .suits =
                            suits(&p, problem, profile) && (c->column_threads <= MOST_COLUMNS ||
                                                            needs_wide_rows(problem, profile)),
                        .threads = c->threads,
                        .shared_bytes = attention_shared_bytes(&p),
                        .groups = p.blocks * p.chunks,
                        .kept = kept(&p)};
}

const choice_table attention_choice = {CHOICE_ROWS(attention_classes), .fit = fit,
                                       .last_takes_all = true};

attention_plan attention_choose(const attention_shape *shape, const device_profile *profile,
                                size_t forced)
{
    attention_plan p;
    make_plan(choice_select(&attention_choice, shape, profile, forced), shape, profile, &p);
    return p;
}
