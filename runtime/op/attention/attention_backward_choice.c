/*
 * The classes of attention_backward. Large tiles read less shared memory for each product, but need
 * more registers. Tiles that own keys need the most, because they have two sums. Portable drivers
 * run the invocations of a workgroup one after the other, and compile unrolled code slowly. One
 * pass instead of two makes five products instead of seven, but needs a dq for each part of the
 * keys. The last row has only the baseline's conditions.
 *
 * Measured on an H200, with the forward pass:
 *   1x32x2048x128 causal   4.13 ms with joined_64x128 (4.19 without turns, 5.1 with 64 other rows);
 *                          5.02 with tile_mixed
 *   8x12x1024x64           1.70 ms with joined_64x64 (1.71 with turns, 1.84 with 128 invocations);
 *                          2.14 with tile_64x64
 */
#include "op/attention/attention_backward_choice.h"
#include "op/attention/attention.h"

#define DEPTH       16 /* columns of a slice */
#define QUAD_BYTES  16
#define FLAG_BYTES  64 /* single shared words, rounded up */
#define LOW_ROWS    32 /* tiles this low may be partly filled */
#define LEAST_STEPS 4  /* of a part; with fewer, adding parts costs more than it saves */
/* On a software driver, loops of an invocation end silently after 65,535 rounds. */
#define PORTABLE_STEPS 16384

/* clang-format off */
static const attention_backward_class classes[] = {
    /* {name, settings}, row threads and quads (queries, keys), column threads, least and most
     * width, value rows, unroll, turns, ahead, most parts, resident, apart */
    {{"joined_64x64",  ON_NATIVE}, {16, 16}, {1, 1}, 16,   0,  64, 16, 8, 0, 1, 8, 2},
    {{"joined_64x128", ON_NATIVE}, { 8,  8}, {2, 2}, 32,  65, 128, 16, 8, 1, 1, 8, 1},
    {{"tile_64x64",    ON_NATIVE}, {16, 16}, {1, 1}, 16,   0,  64, 16, 8, 0, 1, 0, 0},
    {{"tile_mixed",    ON_NATIVE}, { 8,  8}, {2, 1}, 16,  65, 128,  8, 4, 0, 1, 0, 0},
    {{"tile_32x64",    ON_ALL},    { 8,  8}, {1, 1}, 16,   0, 256,  8, 4, 0, 1, 0, 0},
    {{"tile_32x128",   ON_NATIVE}, { 8,  8}, {1, 1}, 32,  65, 128,  8, 4, 0, 1, 0, 0},
    {{"tile_16x128",   ON_NATIVE}, { 4,  4}, {1, 1}, 32, 129, 512,  4, 4, 0, 1, 0, 0},
    {{"tile_16x256",   ON_NATIVE}, { 4,  4}, {1, 1}, 64, 129, 512,  4, 4, 0, 0, 0, 0},
    {{"tile_16x256_apart", ON_NATIVE},
                                   { 4,  4}, {1, 1}, 64, 129, 512,  4, 4, 0, 0, 0, 0, true},
    {{"tile_16x64",    ON_ALL},    { 4,  4}, {1, 1}, 16,   0, 512,  4, 4, 0, 1, 0, 0},
};
/* clang-format on */

uint64_t attention_backward_shared_bytes(const attention_backward_plan *p)
{
    uint64_t own_quads = MAX(p->own[0], p->own[1]) / 4, others = p->others;
    uint64_t weights = others * (own_quads + 1), slice = DEPTH * (own_quads + others / 4);
    uint64_t values = (uint64_t)p->value_rows * p->class->column_threads * p->column_quads;
    if (p->class->most_parts) /* weights are also stored by own rows */
        weights = MAX(weights, 4 * own_quads * (others / 4 + 1));
    return QUAD_BYTES * (MAX(weights, slice * (p->class->turns + 1u)) + values) + FLAG_BYTES;
}

/* The fewest parts that keep the device about as busy as possible: more parts must fill it 2 %
 * better. */
static uint32_t choose_key_parts(const attention_backward_plan *p, const attention_shape *s,
                                 const device_profile *profile)
{
    uint64_t blocks = s->batch * s->kv_heads;
    uint64_t places = p->class->resident * (uint64_t)profile->compute_units;
    uint64_t words = s->batch * s->heads * s->queries * s->width;
    uint64_t fit = MIN(profile->max_binding_bytes / sizeof(float), (uint64_t)INT32_MAX);
    uint64_t tiles = divide_up(s->keys, p->own[1]), best = 1;
    uint64_t most = MIN(p->class->most_parts, MAX(tiles / 2, 1)); /* zigzag needs two tiles each */
    double best_share = 0;
    for (uint64_t parts = 1; parts <= MIN(most, fit / MAX(words, 1)); parts++) {
        uint64_t groups = blocks * parts, rounds = divide_up(groups, places);
        double share = (double)groups / (double)MAX(rounds * places, 1);
        if (share > 1.02 * best_share) {
            best = parts;
            best_share = share;
        }
    }
    return (uint32_t)best;
}

static bool make_plan(const attention_backward_class *c, const attention_shape *s,
                      const device_profile *profile, attention_backward_plan *out)
{
    *out = (attention_backward_plan){.class = c,
                                     .others = 4u * c->column_threads,
                                     .value_rows = c->value_rows};
    for (uint32_t i = 0; i < 2; i++) {
        out->threads[i] = (uint32_t)c->row_threads[i] * c->column_threads;
        out->own[i] = 4u * c->row_threads[i] * c->row_quads[i];
    }
    out->column_quads = MAX(1, (uint32_t)divide_up(s->width, out->others));
    while (out->value_rows > 4 &&
           attention_backward_shared_bytes(out) > profile->shared_memory_bytes)
        out->value_rows /= 2;
    /* The loop over a slice of values is unrolled, so the slice must be at least as long. */
    out->unroll = MIN(out->value_rows, c->unroll);
    if (profile->portable)
        out->unroll = out->column_quads > 2 ? 2 : 4;
    out->key_parts = c->most_parts ? choose_key_parts(out, s, profile) : 0;
    return s->width >= c->least_width && s->width <= c->most_width;
}

/* Low tiles always suit. Large ones suit if they are mostly filled and keep nearly every compute
 * unit busy. */
static bool suits(const attention_backward_plan *p, const attention_shape *s,
                  const device_profile *profile)
{
    uint64_t queries = s->batch * s->heads * divide_up(s->queries, p->own[0]);
    uint64_t keys = s->batch * s->kv_heads * divide_up(s->keys, p->own[1]);
    if (p->key_parts)
        queries = keys = s->batch * s->kv_heads * p->key_parts;
    return MAX(p->own[0], p->own[1]) <= LOW_ROWS ||
           (2 * s->queries > p->own[0] && 2 * s->keys > p->own[1] &&
            profile_filled(profile, MIN(queries, keys)));
}

/* What an invocation keeps in the pass that needs the most registers: sums, scores and dp, quads on
 * their way to a slice, and about so many other values, which Mesa's compilers showed. Passes apart
 * keep least, so no other tile is better, whatever they need. */
static uint32_t kept(const attention_backward_plan *p)
{
    enum { OF_QUERIES = 36, OF_KEYS = 48, OF_ALL = 56 };
    const attention_backward_class *c = p->class;
    uint32_t columns = c->column_threads, most = 0;
    if (c->apart)
        return 0;
    for (uint32_t of = 0; of < 2; of++) {
        uint32_t threads = p->threads[of], own = DEPTH * p->own[of] / 4;
        uint32_t slices = (uint32_t)divide_up(own, threads) + DEPTH * columns / threads;
        slices = c->ahead ? slices : 0;
        uint32_t values = (uint32_t)divide_up(p->value_rows * columns * p->column_quads, threads);
        uint32_t others = of == 0 ? OF_QUERIES : c->most_parts ? OF_ALL : OF_KEYS;
        uint32_t rows = 16u * c->row_quads[of], sums = (of + 1) * p->column_quads;
        most = MAX(most, rows * (sums + 2) + 4 * MAX(slices, values) + others);
    }
    return most;
}

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const attention_shape *s = problem;
    attention_backward_plan p;
    if (!make_plan(row, s, profile, &p))
        return (choice_fit){0};
    return (choice_fit){.can = true,
                        .suits = suits(&p, s, profile),
                        .threads = MAX(p.threads[0], p.threads[1]),
                        .shared_bytes = attention_backward_shared_bytes(&p),
                        .groups = s->batch * s->heads * divide_up(s->queries, p.own[0]),
                        .kept = kept(&p)};
}

const choice_table attention_backward_choice = {CHOICE_ROWS(classes), .fit = fit,
                                                .last_takes_all = true};

attention_backward_plan attention_backward_choose(const attention_shape *shape,
                                                  const device_profile *profile, size_t forced)
{
    attention_backward_plan p;
    make_plan(choice_select(&attention_backward_choice, shape, profile, forced), shape, profile,
              &p);
    return p;
}

uint64_t attention_backward_parts(uint64_t blocks, uint64_t steps, uint64_t words,
                                  const device_profile *profile)
{
    uint64_t wanted =
        profile->portable ? 1 : divide_up(2 * (uint64_t)profile->compute_units, MAX(blocks, 1));
    uint64_t most = MIN(profile->max_binding_bytes / sizeof(float), (uint64_t)INT32_MAX);
    uint64_t parts = MIN(wanted, divide_up(steps, LEAST_STEPS));
    if (profile->portable)
        parts = MAX(parts, divide_up(steps, PORTABLE_STEPS));
    return MAX(1, MIN(parts, most / MAX(words, 1)));
}
