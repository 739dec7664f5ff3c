/*
 * The classes of matrix products, and how one is chosen. Tiles are only for hardware, because on
 * software and translated drivers barriers and shared memory cost more than they save.
 *
 * The first row that suits is taken. Among tiled rows, an estimate chooses the row, and the number
 * of splits of K, that finish first. The estimate is a time, counted in multiply-adds that one
 * compute unit makes in it. It is the number of workgroups that a unit gets, times the
 * multiply-adds of a tile, divided by the row's rate. The rate is measured: it is a percentage of
 * the unit's peak if enough invocations are resident. If few are resident, it is less. The estimate
 * was checked against timings of 32 shapes on an H200. For most, it is within 10 % of the best
 * choice.
 */
#include "args/matmul.h"
#include "op/matmul/matmul_choice.h"

#include <math.h>

#define ANY           UINT64_MAX
#define LEAST_SLICE   256 /* with fewer elements of K, a split costs more than it gives */
#define SLICE_UNIT    64  /* a multiple of every step */
#define CACHED        (UINT64_C(1) << 23) /* elements of an operand that a cache may hold */
#define MOST_PARTIALS (UINT64_C(1) << 26)
/* A software driver may end the loops of an invocation after 65,535 rounds in total. Therefore
 * longer products are summed in steps, by tiles. */
#define MOST_ROUNDS 65000

/* clang-format off */
#define SCALAR  MATMUL_FORM_SCALAR
#define VECTOR_ MATMUL_FORM_VECTOR
#define SWAPPED MATMUL_FORM_SWAPPED
#define TILES   MATMUL_FORM_TILED
#define ROWS_   MATMUL_FORM_ROWS
#define PEELED  TILE_LOOP_PEELED
#define ZIGZAG  TILE_LOOP_ZIGZAG
#define LIMITS  0, 0, ANY, ANY, ANY, 0
#define FROM(m) m, 0, ANY, ANY, ANY, 0
#define FILLED  0, 0, ANY, ANY, ANY, 1
const matmul_class matmul_classes[] = {
    /* {name, settings}, form, threads, tile, registers, step, loop, rates, least m n, most m n k,
     * least tiles a compute unit */
    {{"scalar_element", ON_NATIVE}, SCALAR,  0,   1,   1, 1, 1, 0, 0, 0, 0, 0, 0,  16,  16, 128, 0},
    {{"vector",         ON_NATIVE}, VECTOR_, 128, 8,   0, 0, 0, 0, 0, 0, 0, 0, 0,   8, ANY, ANY, 0},
    {{"vector_swapped", ON_NATIVE}, SWAPPED, 128, 0,   8, 0, 0, 0, 0, 0, 0, 0, 0, ANY,   8, ANY, 0},
    {{"tiled_128x128",  ON_NATIVE}, TILES, 256, 128, 128, 8, 8, 16, 0, 90, 76, LIMITS},
    {{"tiled_128x128_long", ON_NATIVE},
                                   TILES, 256, 128, 128, 8, 8, 16, PEELED | ZIGZAG, 78, 77, LIMITS},
    {{"tiled_64x128",   ON_NATIVE}, TILES, 128,  64, 128, 8, 8, 16, ZIGZAG, 88, 83, LIMITS},
    {{"tiled_64x128_long", ON_NATIVE},
                                   TILES, 128,  64, 128, 8, 8, 16, PEELED | ZIGZAG, 90, 86, FILLED},
    {{"tiled_128x64",   ON_NATIVE}, TILES, 128, 128,  64, 8, 8, 16, ZIGZAG, 86, 83, LIMITS},
    {{"tiled_64x64",    ON_NATIVE}, TILES, 128,  64,  64, 4, 8, 16, ZIGZAG, 79, 75, LIMITS},
    {{"tiled_32x128",   ON_NATIVE}, TILES, 128,  32, 128, 4, 8, 32, ZIGZAG, 73, 73, LIMITS},
    {{"tiled_32x64",    ON_NATIVE}, TILES, 128,  32,  64, 4, 4, 32, ZIGZAG, 64, 64, LIMITS},
    {{"tiled_32x32",    ON_NATIVE}, TILES,  64,  32,  32, 4, 4, 16, ZIGZAG, 55, 53, LIMITS},
    {{"tiled_32x32_deep", ON_NATIVE},
                                   TILES,  64,  32,  32, 4, 4, 32, ZIGZAG, 59, 57, LIMITS},
    {{"tiled_16x128",   ON_NATIVE}, TILES, 128,  16, 128, 4, 4, 32, ZIGZAG, 60, 60, LIMITS},
    {{"tiled_128x16",   ON_NATIVE}, TILES, 128, 128,  16, 4, 4, 32, ZIGZAG, 57, 57, LIMITS},
    {{"rows_1",         ON_NATIVE}, ROWS_, 128,  32, 128, 32, 4, 32, 1, 212, 154, FROM(17)},
    {{"rows_2",         ON_NATIVE}, ROWS_, 128,  64, 128, 32, 4, 32, 1, 246, 208, FROM(33)},
    {{"tiled_long", ON_SOFTWARE},  TILES,  64,  32,  32, 4, 4, 16, ZIGZAG, 55, 53, LIMITS},
    {{"scalar_block", ON_PORTABLE}, SCALAR, 32, 8, 8, 8, 8, 0, 0, 0, 0, 4, 4, ANY, ANY, ANY, 0},
    {{"scalar_row",   ON_PORTABLE}, SCALAR, 16, 1, 4, 1, 4, 0, 0, 0, 0, 0, 4, ANY, ANY, ANY, 0},
    {{"scalar_column", ON_PORTABLE}, SCALAR, 32, 8, 1, 8, 1, 0, 0, 0, 0, 4, 0, ANY, ANY, ANY, 0},
    {{"scalar_single", ON_PORTABLE}, SCALAR, 32, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, ANY, ANY, ANY, 0},
};
/* clang-format on */

const char *matmul_tag(const matmul_shape *shape)
{
    static const char *const tags[2][2] = {{"nn", "nt"}, {"tn", "tt"}};
    return tags[shape->transpose_a][shape->transpose_b];
}

uint32_t matmul_rows(const matmul_class *c, uint64_t m)
{
    uint64_t tiles = MAX(divide_up(m, c->tile_m), 1u), threads_m = c->tile_m / c->register_m;
    return (uint32_t)MAX(divide_up(m, tiles * threads_m), 1u);
}

/* Rows of y that a workgroup computes. */
static uint64_t tile_rows(const matmul_class *c, const matmul_shape *s)
{
    if (c->form != MATMUL_FORM_ROWS)
        return c->tile_m;
    return (uint64_t)matmul_rows(c, s->m) * (c->tile_m / c->register_m);
}

static bool has_estimate(const matmul_class *c)
{
    return c->form == MATMUL_FORM_TILED || c->form == MATMUL_FORM_ROWS;
}

uint64_t matmul_shared_bytes(const matmul_class *c, const matmul_shape *s)
{
    if (c->form == MATMUL_FORM_ROWS) {
        uint64_t slices = c->threads / (c->tile_m / c->register_m * MATMUL_ROWS_LANES);
        uint64_t quads = (tile_rows(c, s) | 1) + (s->transpose_b ? c->tile_n | 1u : 0u);
        return MAX(c->step / 4 * quads, slices * c->threads) * 4 * sizeof(float);
    }
    if (c->form != MATMUL_FORM_TILED)
        return 0; /* matvec uses the 16 KiB that every device has */
    return ((c->tile_m + c->tile_n) / 4u * c->step + 16) * 4 * sizeof(float);
}

uint32_t matmul_vector_columns(uint64_t vectors)
{
    return vectors > 1 && vectors <= 4 ? 4
                                       : 2; /* measured: few vectors need more columns in flight */
}

/* If b is [K, N], 32 lanes read it, four columns each. */
static uint64_t vector_groups(uint64_t columns, uint64_t vectors, bool along_k)
{
    return divide_up(columns, along_k ? matmul_vector_columns(vectors) : 128);
}

static bool runs_along_k(const matmul_class *c, const matmul_shape *s)
{
    return c->form == MATMUL_FORM_VECTOR ? s->transpose_b : !s->transpose_a;
}

uint64_t matmul_groups(const matmul_class *c, const matmul_shape *s, const device_profile *profile)
{
    bool along_k = runs_along_k(c, s);
    if (c->form == MATMUL_FORM_VECTOR)
        return s->batch * vector_groups(s->n, s->m, along_k);
    if (c->form == MATMUL_FORM_SWAPPED)
        return s->batch * vector_groups(s->m, s->n, along_k);
    uint64_t tiles = s->batch * divide_up(s->m, tile_rows(c, s)) * divide_up(s->n, c->tile_n);
    if (has_estimate(c))
        return tiles;
    return divide_up(tiles, c->threads ? c->threads : profile->workgroup_size);
}

/* ---- Tiled classes: the estimate ---- */

/* Unless a comment says otherwise, the unit is one multiply-add of one compute unit. */
#define LAUNCH_COST    900000.0 /* of the dispatch that joins the splits */
#define PARTIAL_COST   40.0     /* of a word of partial sums, if only one unit writes or reads it */
#define TILE_START     40.0     /* elements of K that starting and ending a tile costs */
#define REGISTERS      65536    /* of a unit; an invocation needs one for each of its sums, plus: */
#define REGISTERS_MORE 64u
#define LOOP_MORE      96u  /* if the loop is not plain, with 8 x 8 sums, up to 128 threads */
#define ROWS_MORE      56u  /* form rows, if b goes through shared memory */
#define HALF_SPEED     1.5  /* groups of 32 invocations with which a unit has half its speed */
#define FULL_SPEED     16   /* and with which it has full speed */
#define LONE_SPEED     0.9  /* of a lone workgroup of 256, because all of it waits at barriers */
#define ROWS_WAIT      10.0 /* workgroups of form rows that a unit could do while one waits */

/* How many workgroups fit on a unit. */
static uint64_t most_resident(const matmul_class *c, uint64_t sums, uint64_t more)
{
    return MAX(REGISTERS / ((sums + more) * c->threads), 1u);
}

/* The part of its full rate that a unit reaches with this many workgroups. */
static double unit_speed(const matmul_class *c, uint64_t groups)
{
    double resident = (double)(groups * c->threads) / 32;
    double speed = resident / (resident + HALF_SPEED) * (FULL_SPEED + HALF_SPEED) / FULL_SPEED;
    return MIN(speed, 1.0);
}

/* How long a unit takes, counted in workgroups that run one after the other at full rate. As many
 * as fit begin together and end together. A unit that is free takes as many again, even if other
 * units then have none. So a round that has begun counts as a whole round, but less so after
 * several. Workgroups of form rows wait for memory most of the time. They wait as long if one is
 * alone on a unit as if as many run as fit. */
static double unit_turns(const matmul_class *c, const matmul_shape *s, double groups)
{
    uint64_t sums = (uint64_t)c->register_m * c->register_n;
    if (c->form == MATMUL_FORM_ROWS) {
        uint64_t more = s->transpose_b ? ROWS_MORE : REGISTERS_MORE;
        double fit = (double)most_resident(c, matmul_rows(c, s->m) * c->register_n, more);
        return ceil(groups) + ROWS_WAIT * ceil(ceil(groups) / fit);
    }
    bool more = c->loop && sums >= 64 && c->threads <= 128;
    uint64_t resident = most_resident(c, sums, more ? LOOP_MORE : REGISTERS_MORE);
    if (groups <= 1 && c->threads >= 256)
        return 1 / (unit_speed(c, 1) * LONE_SPEED);
    if (groups <= (double)resident)
        return ceil(groups) / unit_speed(c, (uint64_t)ceil(groups));
    double rounds = groups / (double)resident;
    double idle = (ceil(rounds) * (double)resident - groups) / floor(rounds);
    return (groups + idle) / unit_speed(c, resident);
}

static uint64_t slice_of(const matmul_shape *s, uint64_t splits)
{
    return splits > 1 ? round_up(divide_up(s->k, splits), SLICE_UNIT) : s->k;
}

static double estimate(const matmul_class *c, const matmul_shape *s, const device_profile *profile,
                       uint64_t splits)
{
    uint64_t units = MAX(profile->compute_units, 1u), slice = slice_of(s, splits);
    splits = s->k ? divide_up(s->k, slice) : 1;
    double groups = (double)(matmul_groups(c, s, profile) * splits) / (double)units;
    /* Is a or b slow to load? */
    bool hard = s->transpose_b || s->k % 4 != 0 || s->n % 4 != 0 || (s->transpose_a && s->m % 4);
    double depth = (double)round_up(slice, c->step) + TILE_START;
    double work = unit_turns(c, s, groups) * (double)tile_rows(c, s) * c->tile_n * depth * 100 /
                  (hard ? c->rate_along : c->rate);
    double words = (double)(s->batch * s->m * s->n) * (double)(2 * splits + 1);
    return splits == 1 ? work : work + LAUNCH_COST + words * PARTIAL_COST / (double)units;
}

/* How many splits the memory, the least slice and the number of units allow. */
static uint64_t most_splits(const matmul_class *c, const matmul_shape *s,
                            const device_profile *profile, uint64_t wanted, uint64_t least)
{
    uint64_t outputs = s->batch * s->m * s->n, groups = matmul_groups(c, s, profile);
    uint64_t partials = MIN(MOST_PARTIALS, profile->max_binding_bytes / sizeof(float));
    if (outputs == 0 || groups * 2 > wanted)
        return 1;
    return MAX(MIN(MIN(wanted / groups, s->k / least), partials / outputs), 1);
}

/* The best number of splits of a class with an estimate, and that estimate. */
static uint64_t best_splits(const matmul_class *c, const matmul_shape *s,
                            const device_profile *profile, double *out_estimate)
{
    uint64_t most = most_splits(c, s, profile, 4 * (uint64_t)profile->compute_units, LEAST_SLICE);
    uint64_t best = 1;
    *out_estimate = estimate(c, s, profile, 1);
    for (uint64_t splits = 2; splits <= most; splits += splits < 8 ? 1 : splits / 8) {
        double time = estimate(c, s, profile, splits);
        if (time < *out_estimate) {
            *out_estimate = time;
            best = splits;
        }
    }
    return best;
}

/* Form rows saves time only if one row of tiles covers m. The peeled loop costs time there: with b
 * transposed, 128x4096x4096 took 126 us with it, and 64x4096x4096 in tiles of 64x128 took 61 us.
 * Low tiles do not suit if there are several rows of them and no cache holds b, because each row of
 * tiles reads b again. */
static bool suits_rows(const matmul_class *c, const matmul_shape *s)
{
    if (c->form == MATMUL_FORM_ROWS)
        return s->m <= c->tile_m && !s->transpose_a;
    if ((c->loop & PEELED) != 0 && s->m <= c->tile_m && (s->m > 64 || c->tile_m == 64))
        return false;
    return c->form != MATMUL_FORM_TILED || c->tile_m > 32 || s->m <= 2u * c->tile_m ||
           s->n * s->k <= CACHED;
}

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const matmul_class *c = row;
    const matmul_shape *s = problem;
    uint64_t groups = matmul_groups(c, s, profile);
    bool long_here = s->k > MOST_ROUNDS && profile_is_software(profile);
    bool in_time = c->row.settings != ON_SOFTWARE || long_here;
    choice_fit f = {.can = !(long_here && c->form == MATMUL_FORM_SCALAR) && s->m <= c->most_m &&
                           s->n <= c->most_n && s->k <= c->most_k,
                    .suits = in_time && s->m >= c->least_m && suits_rows(c, s) &&
                             s->n >= c->least_n &&
                             groups >= (uint64_t)c->least_tiles * profile->compute_units,
                    .threads = c->threads,
                    .shared_bytes = matmul_shared_bytes(c, s),
                    .groups = groups,
                    .kept = c->form == MATMUL_FORM_TILED
                                ? choice_tile_registers(c->register_m, c->register_n)
                                : 0};
    if (has_estimate(c) && f.suits)
        best_splits(c, s, profile, &f.cost);
    return f;
}

const choice_table matmul_choice = {CHOICE_ROWS(matmul_classes), .fit = fit,
                                    .last_takes_all = true};

const matmul_class *matmul_choose(const matmul_shape *shape, const device_profile *profile,
                                  size_t forced)
{
    return choice_select(&matmul_choice, shape, profile, forced);
}

uint64_t matmul_slice(const matmul_class *c, const matmul_shape *s, const device_profile *profile)
{
    uint64_t splits = 1;
    double ignored;
    if (has_estimate(c))
        splits = best_splits(c, s, profile, &ignored);
    else if (c->form != MATMUL_FORM_SCALAR)
        splits = most_splits(c, s, profile, 8 * (uint64_t)profile->compute_units,
                             runs_along_k(c, s) ? 4 * LEAST_SLICE : LEAST_SLICE);
    return slice_of(s, splits);
}
