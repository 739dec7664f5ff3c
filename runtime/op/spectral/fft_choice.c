/*
 * Chooses the passes of a transform, and how a workgroup makes one: the radices of its stages, the
 * rows that share it, its threads and its shared memory. Pure.
 *
 * Tiles keep a thread's butterflies in registers: one pass, or two or three through scratch. Groups
 * work in shared memory, and take what no tile takes. If every stage is one butterfly a thread
 * (`single`), one buffer is enough, because all is read before any of it is written. Otherwise
 * there are two.
 */
#include "args/spectral.h"
#include "op/spectral/fft.h"

#include <math.h>
#include <string.h>

/* ---- Tiles ---- */

#define SCRATCH_BLOCK  4    /* rows side by side: threads then write 256 bytes in a row */
#define PORTABLE_LEAST 2048 /* no tiles up to here on software drivers: they compile slowly */

/* In order of preference. A thread holds about `held` points. A workgroup has about `threads`
 * threads, but, across, at least `least_rows` rows, which are neighbours in memory. If a thread has
 * few points, several threads share a short row and access whole sectors. Software drivers, which
 * are portable, compile few points in less than a second. More stages of few points are as good,
 * because more threads hide latency. */
/* clang-format off */
static const fft_class classes[] = {
    /* {name, settings}, along, binary, length up to, least span, held, threads, least rows */
    {{"along_least",     ON_NATIVE},   true,  false,      8,    0,  2,  64, 1},
    {{"along_short",     ON_NATIVE},   true,  false,     31,    0,  4,  64, 1},
    {{"along_middle",    ON_NATIVE},   true,  false,    127,    0,  8,  64, 1},
    {{"along_even",      ON_NATIVE},   true,  true,   4096,    0,  8,  64, 1},
    {{"along_long",      ON_NATIVE},   true,  false,  12288,    0, 16,  64, 1},
    {{"across_short",    ON_NATIVE},   false, false,    31,    0,  4, 128, 4},
    {{"across_middle",   ON_NATIVE},   false, false,   127,    0,  8, 128, 4},
    {{"across_even",     ON_NATIVE},   false, false,   511,    0, 16, 128, 4},
    {{"across_far",      ON_NATIVE},   false, false, 12288, 8192, 16, 256, 8},
    {{"across_long",     ON_NATIVE},   false, false, 12288,    0, 16, 256, 4},
    {{"across_last",     ON_NATIVE},   false, false, 12288,    0, 16, 512, 1},
    {{"along_portable",  ON_PORTABLE}, true,  false,  12288,    0,  8,  64, 1},
    {{"across_portable", ON_PORTABLE}, false, false, 12288,    0,  8, 256, 1},
};
/* clang-format on */

static bool make_tile(const fft_class *c, const fft_tile_problem *problem, const device_profile *p,
                      fft_tile *t)
{
    *t = (fft_tile){.name = c->row.name, .n = (uint32_t)problem->n, .along = problem->along};
    bool meant = !c->binary || (problem->n & (problem->n - 1)) == 0;
    return meant && c->along == t->along && problem->n <= c->longest &&
           problem->span >= c->least_span && fft_tile_shape(c, p, t);
}

/* An invocation keeps its points, and in a butterfly about as many other numbers. */
choice_fit fft_tile_fit(const void *row, const void *problem, const device_profile *profile)
{
    const fft_class *c = row;
    fft_tile t;
    bool can = make_tile(c, problem, profile, &t);
    return (choice_fit){.can = can,
                        .suits = true,
                        .threads = can ? t.rows * t.lanes : 0,
                        .kept = 4 * c->held};
}

bool fft_tile_choose(const choice_table *table, const device_profile *p,
                     const fft_tile_problem *problem, size_t forced, fft_tile *out)
{
    const fft_class *c = choice_select(table, problem, p, forced);
    return c && make_tile(c, problem, p, out);
}

/* A compiler that moves loads ahead needs about so many registers for any tile. With fewer, two
 * passes of shorter rows are better. */
static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    enum { LEAST_REGISTERS = 100 };
    choice_fit f = fft_tile_fit(row, problem, profile);
    if (profile->loads_early && profile_registers(profile, f.threads) < LEAST_REGISTERS)
        f.can = false;
    return f;
}

const choice_table fft_tile_choice = {CHOICE_ROWS(classes), .fit = fit};

static bool choose_tile(const device_profile *p, uint64_t n, bool along, uint64_t span,
                        size_t forced, fft_tile *out)
{
    fft_tile_problem problem = {n, span, along};
    return fft_tile_choose(&fft_tile_choice, p, &problem, forced, out);
}

/* Do neighbouring threads use whole sectors of memory? */
static bool is_full(const fft_plan *plan)
{
    bool full = true;
    for (uint32_t i = 0; i < plan->count; i++)
        full &= plan->tiles[i].rows >= SCRATCH_BLOCK;
    return full;
}

/* Chooses the most equal pair of factors, with full rows of neighbours if possible. */
static bool plan_two(const device_profile *p, uint64_t inner, size_t forced, fft_plan *out)
{
    fft_tile tiles[2];
    for (uint64_t n = (uint64_t)sqrt((double)out->length); n > 1; n--) {
        uint64_t other = out->length / n;
        if (out->length % n || !choose_tile(p, n, false, other * inner, forced, &tiles[0]) ||
            !choose_tile(p, other, false, n * inner, forced, &tiles[1]))
            continue;
        bool full = MIN(tiles[0].rows, tiles[1].rows) >= SCRATCH_BLOCK;
        if (out->count == 0 || full)
            memcpy(out->tiles, tiles, sizeof tiles);
        out->count = 2;
        if (full)
            break;
    }
    return out->count == 2;
}

/* The first pass's tables have an entry for each point of the others. For the others, its points
 * are rows that lie side by side. */
static bool plan_three(const device_profile *p, uint64_t inner, size_t forced, fft_plan *out)
{
    for (uint64_t n = (uint64_t)cbrt((double)out->length) + 1; n > 1; n--) {
        fft_plan rest = {.length = out->length / n, .block = out->block};
        if (out->length % n ||
            !choose_tile(p, n, false, rest.length * inner, forced, &out->tiles[0]) ||
            !plan_two(p, n * inner, forced, &rest) || !is_full(&rest))
            continue;
        memcpy(out->tiles + 1, rest.tiles, 2 * sizeof *rest.tiles);
        out->count = 3;
        return true;
    }
    return false;
}

/* Is the length too short for tiles? Not if a row that takes it is asked for. */
static bool is_too_short(const device_profile *p, uint64_t length, size_t forced, const char *tile)
{
    return p->portable && length <= PORTABLE_LEAST &&
           (!tile || tile != choice_row_name(&choice_kinds[CHOICE_fft_tile], forced));
}

/* If rows of two passes are not full, they read and write parts of sectors. Then three passes are
 * faster. */
bool fft_plan_choose(const device_profile *p, const fft_problem *problem, size_t forced,
                     fft_plan *out)
{
    uint64_t length = problem->length, inner = problem->inner;
    *out = (fft_plan){.length = length, .block = SCRATCH_BLOCK};
    bool smooth = fft_is_smooth(length, FFT_SMOOTH);
    bool one = smooth && choose_tile(p, length, inner == 1, inner, forced, &out->tiles[0]);
    if (!smooth || is_too_short(p, length, forced, out->tiles[0].name))
        return false;
    fft_tile tile = out->tiles[0];
    bool sparse = one && !tile.along && tile.rows < MIN(inner, SCRATCH_BLOCK);
    if ((!one || sparse) && plan_two(p, inner, forced, out)) {
        fft_plan three = {.length = length, .block = SCRATCH_BLOCK};
        if (!one && !is_full(out) && !p->portable && problem->most > 2 &&
            plan_three(p, inner, forced, &three))
            *out = three;
        return true;
    }
    out->tiles[0] = tile;
    out->count = one;
    return one;
}

/* ---- Groups ---- */

#define POINT_BYTES 8

static void push_radix(fft_group *g, uint32_t radix)
{
    g->radices[g->stages++] = (uint8_t)radix;
    g->known |= FFT_RADIX_BIT(radix);
}

/* Splits 2^bits into radices of at most 2^most, as equal as possible. */
static void push_powers(fft_group *g, uint32_t bits, uint32_t most)
{
    uint32_t stages = (uint32_t)divide_up(bits, most);
    for (uint32_t i = 0; i < stages; i++)
        push_radix(g, 1u << (bits / stages + (i < bits % stages)));
}

/* Software drivers do not get radix 16, because it takes long to compile. */
static void choose_radices(const device_profile *p, uint64_t n, fft_group *g)
{
    static const uint32_t odd[] = {13, 11, 7, 5, 3};
    uint32_t bits = 0;
    for (; n % 2 == 0; n /= 2)
        bits++;
    push_powers(g, bits, n > 1 || p->portable ? 3 : 4);
    for (size_t i = 0; i < ARRAY_COUNT(odd); i++)
        for (; n % odd[i] == 0; n /= odd[i])
            push_radix(g, odd[i]);
}

/* The butterflies of the stage that has the most. */
static uint32_t butterflies(const fft_group *g)
{
    uint32_t smallest = g->n;
    for (uint32_t i = 0; i < g->stages; i++)
        smallest = MIN(smallest, g->radices[i]);
    return g->n / smallest;
}

/* Tries `rows` rows. If they fit, pitch and pad are set. */
static bool fits(const device_profile *p, fft_group *g, uint32_t rows, bool single, uint32_t most)
{
    uint32_t threads = rows * butterflies(g), room = p->shared_memory_bytes / POINT_BYTES;
    if (single && threads > most)
        return false;
    g->single = single;
    g->rows = rows;
    g->threads =
        single ? MAX(power_of_two_within(2 * (uint64_t)threads - 1), 64) : p->workgroup_size;
    /* A gap after every 8 points, and between rows, spreads strides over the banks. */
    for (g->pad = p->portable ? 31 : 3;; g->pad = 31) {
        g->pitch = g->n + (g->n >> g->pad) + (g->pad < 31);
        uint32_t points = (single ? 1 : 2) * rows * g->pitch;
        uint32_t least = p->portable ? room : 1024;
        g->points = MIN(MAX(power_of_two_within(2 * (uint64_t)points - 1), least), room);
        if (points <= room)
            return true;
        if (g->pad == 31)
            return false;
    }
}

bool fft_group_choose(const device_profile *p, uint64_t n, uint64_t lines, bool across,
                      fft_group *out)
{
    uint32_t most = power_of_two_within(p->max_workgroup_invocations);
    if (n * POINT_BYTES > p->shared_memory_bytes || !fft_is_smooth(n, FFT_SMOOTH))
        return false;
    *out = (fft_group){.n = (uint32_t)n};
    choose_radices(p, n, out);
    uint32_t rows = MAX(p->workgroup_size / butterflies(out), across ? 8 : 1);
    for (rows = (uint32_t)MIN(rows, MAX(lines, 1)); rows > 0; rows /= 2)
        if ((!p->portable && fits(p, out, rows, true, MIN(most, 512))) ||
            fits(p, out, rows, false, most) || fits(p, out, rows, true, most))
            return true;
    return false;
}

static bool holds(const device_profile *p, uint64_t n)
{
    fft_group g;
    return fft_group_choose(p, n, 1, false, &g);
}

/* Chooses the most equal pair of factors, the smaller first. */
static bool split_in_two(const device_profile *p, uint64_t length, uint64_t *out)
{
    uint64_t least = length * POINT_BYTES / p->shared_memory_bytes;
    for (uint64_t n = (uint64_t)sqrt((double)length); n > least && n > 1; n--)
        if (length % n == 0 && holds(p, n) && holds(p, length / n)) {
            out[0] = n;
            out[1] = length / n;
            return true;
        }
    return false;
}

static bool split_in_three(const device_profile *p, uint64_t length, uint64_t *out)
{
    for (uint64_t n = (uint64_t)cbrt((double)length) + 1; n > 1; n--)
        if (length % n == 0 && holds(p, n) && split_in_two(p, length / n, out + 1)) {
            out[0] = n;
            return true;
        }
    return false;
}

bool fft_split_choose(const device_profile *p, uint64_t length, fft_split *out)
{
    *out = (fft_split){.length = length, .factors = {length}, .count = 1};
    if (!fft_is_smooth(length, FFT_SMOOTH))
        return false;
    if (holds(p, length))
        return true;
    out->count = 2;
    if (split_in_two(p, length, out->factors))
        return true;
    out->count = 3;
    return split_in_three(p, length, out->factors);
}
