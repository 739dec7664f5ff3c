/*
 * The kernel variants of convolutions. Tiled variants are for hardware, because barriers and shared
 * memory cost more than they save on software and translated drivers. Those drivers use tiles only
 * if K is too long for one invocation, because only tiles can split it.
 *
 * Among the large tiles, the one whose busiest compute unit finishes first wins. Their rates were
 * measured on an H200, relative to each other. The last variant for each kind of device has no
 * conditions except that of the baseline.
 */
#include "args/matmul.h"
#include "op/conv/conv_choice.h"

enum {
    IF_WHOLE = CHOICE_OWN,    /* only if the last tile of channels is more than half full */
    IF_LONG = CHOICE_OWN << 1 /* only if there is more than half a tile of positions */
};

#define ANY         UINT64_MAX
#define SLICE_UNIT  32  /* a multiple of every step */
#define LEAST_SLICE 256 /* shorter slices of K cost more than a split saves */
/* Most elements of K that an invocation sums, because some software drivers stop its loops after
 * 65,535 rounds. */
#define LONGEST_SLICE 32768
/* The same limit on hardware, for the gradient of w. It has few sums, so one long sum would run
 * long after the others are done. */
#define MOST_SERIAL   1024
#define MOST_PARTIALS (UINT64_C(1) << 26)
/* Limits of conv_strips. An invocation has a bit for each cell of a row that it reads, and code for
 * each tap along the row. */
#define MOST_ACROSS 16
#define MOST_STRIDE 4
#define MOST_DOWN   1024
/* conv_depthwise_weights: most taps that an invocation sums, and how many workgroups fill a compute
 * unit. */
#define MOST_TAPS   25
#define TAPS_GROUPS 16
/* A convolution must be at least this large before a dispatch that permutes w pays. */
#define LEAST_PACKED_POSITIONS 2048
#define LEAST_PACKED_PRODUCT   1e9
#define USUAL_WEIGHTS          1024 /* quads; with more, few workgroups are resident */

/* clang-format off */
#define DIRECT CONV_FORM_DIRECT
#define TILES  CONV_FORM_TILED
#define STRIPS CONV_FORM_STRIPS
#define TAPS   CONV_FORM_TAPS
#define ZIGZAG TILE_LOOP_ZIGZAG
const conv_class conv_classes[] = {
    /* {name, settings, conditions}, form, threads, tile, registers, step, loop, rate, least and
     * most m */
    {{"strips",        ON_NATIVE, 0},        STRIPS, 128, 1,   4,   1, 4, 0,  0,      0,  0,  ANY},
    {{"depthwise_weights", ON_NATIVE, 0},    TAPS, 128,   1,   1,   1, 1, 0,  0,      0,  0,  ANY},
    {{"direct_depthwise", ON_NATIVE, 0},     DIRECT, 0,   1,   2,   1, 2, 0,  0,      0,  0,  1},
    {{"direct_few",    ON_NATIVE, 0},        DIRECT, 0,   8,   2,   8, 2, 0,  0,      0,  0,  8},
    {{"tiled_32x128",  ON_ALL, IF_FILLS},    TILES, 128,  32,  128, 4, 8, 16, ZIGZAG, 0,  0,  32},
    {{"packed_128x128", ON_NATIVE, IF_FILLS | IF_WHOLE},
                                             TILES, 256,  128, 128, 8, 8, 16, ZIGZAG, 100, 65, ANY,
                                             true},
    {{"packed_64x128", ON_NATIVE, IF_FILLS}, TILES, 128,  64,  128, 8, 8, 16, ZIGZAG, 98, 33, ANY,
                                             true},
    {{"tiled_128x128", ON_ALL, IF_FILLS | IF_WHOLE},
                                             TILES, 256,  128, 128, 8, 8, 16, ZIGZAG, 90, 65, ANY},
    {{"tiled_64x128",  ON_ALL, IF_FILLS},    TILES, 128,  64,  128, 8, 8, 16, ZIGZAG, 84, 33, ANY},
    {{"tiled_64x64",   ON_ALL, IF_LONG},     TILES, 128,  64,  64,  8, 4, 16, ZIGZAG, 72, 33, ANY},
    {{"tiled_64x64_short", ON_NATIVE, IF_LONG},
                                             TILES, 128,  64,  64,  8, 4, 8,  ZIGZAG, 70, 33, ANY},
    {{"tiled_32x32",   ON_ALL, 0},           TILES, 64,   32,  32,  4, 4, 32, ZIGZAG, 0,  0,  ANY},
    {{"tiled_32x32_short", ON_NATIVE, 0},    TILES, 64,   32,  32,  4, 4, 16, ZIGZAG, 0,  0,  ANY},
    {{"direct_block",  ON_PORTABLE, 0},      DIRECT, 32,  8,   4,   8, 4, 0,  0,      0,  4,  ANY},
    {{"direct_single", ON_PORTABLE, 0},      DIRECT, 32,  1,   4,   1, 4, 0,  0,      0,  0,  ANY},
};
/* clang-format on */

/* ---- Planes ---- */

static bool fits_strips(const conv_shape *s)
{
    const conv_planes *p = &s->planes;
    return p->across > 0 && p->across <= MOST_ACROSS && p->down <= MOST_DOWN &&
           p->stride <= MOST_STRIDE && p->count > 0 && p->rows > 0 && p->columns > 0;
}

static uint64_t strips_of_plane(const conv_planes *p)
{
    return p->rows * divide_up(p->columns, 4);
}

uint64_t conv_strip_weights(const conv_class *c, const conv_shape *s)
{
    const conv_planes *p = &s->planes;
    uint64_t met = (c->threads - 2) / strips_of_plane(p) + 2;
    return MIN(met, p->count) * p->down * divide_up(p->across, 4);
}

/* ---- The choice ---- */

static uint64_t shared_bytes(const conv_class *c, const conv_shape *s)
{
    if (c->form == CONV_FORM_STRIPS)
        return fits_strips(s) ? conv_strip_weights(c, s) * 16 : 0;
    if (c->form == CONV_FORM_TAPS)
        return s->taps * c->threads * sizeof(float);
    if (c->form != CONV_FORM_TILED)
        return 0;
    /* Two tiles with eight quads of padding each, five words for each row of a step, and a flag. */
    return ((c->tile_m + c->tile_n + 5u) * c->step + 64 + 1) * sizeof(float);
}

uint64_t conv_groups(const conv_class *c, const conv_shape *s, const device_profile *profile)
{
    if (c->form == CONV_FORM_STRIPS)
        return divide_up(s->planes.count * strips_of_plane(&s->planes), c->threads);
    if (c->form == CONV_FORM_TAPS)
        return s->groups * s->m;
    uint64_t tiles = s->groups * divide_up(s->m, c->tile_m) * divide_up(s->n, c->tile_n);
    if (c->form == CONV_FORM_TILED)
        return tiles;
    return divide_up(tiles, c->threads ? c->threads : profile->workgroup_size);
}

static uint64_t splits_of(const conv_class *c, const conv_shape *s, const device_profile *profile)
{
    uint64_t slice = s->long_k ? conv_slice(c, s, profile) : s->k;
    return slice < s->k ? divide_up(s->k, slice) : 1;
}

/* Permuting w needs whole steps of channels. It has no effect if a window has only one cell. */
static bool fits_packing(const conv_class *c, const conv_shape *s)
{
    return s->channels > 0 && s->channels % c->step == 0 && s->k > s->channels;
}

static bool pays_packing(const conv_shape *s)
{
    double product = (double)s->m * (double)s->n * (double)s->k * (double)s->groups;
    return s->n >= LEAST_PACKED_POSITIONS && product >= LEAST_PACKED_PRODUCT;
}

static bool suits(const conv_class *c, const conv_shape *s, const device_profile *profile)
{
    uint64_t rest = s->m % c->tile_m;
    bool portable = choice_setting_of(profile) & ON_PORTABLE;
    if (c->form == CONV_FORM_STRIPS)
        return s->planes.columns > 2 && fits_strips(s) && conv_strip_weights(c, s) <= USUAL_WEIGHTS;
    if (c->form == CONV_FORM_DIRECT && s->long_k && !portable && s->k > MOST_SERIAL)
        return false;
    return s->m >= c->least_m && (!c->packed || pays_packing(s)) &&
           (!portable || c->form != CONV_FORM_TILED || s->k > LONGEST_SLICE) &&
           (!(c->row.conditions & IF_WHOLE) || rest == 0 || rest * 2 > c->tile_m) &&
           (!(c->row.conditions & IF_LONG) || s->n * 2 > c->tile_n);
}

/* The time of the busiest compute unit, for each element of K: its multiply-adds divided by the
 * variant's rate. */
static double cost(const conv_class *c, const conv_shape *s, const device_profile *profile)
{
    uint64_t units = MAX(profile->compute_units, 1u);
    uint64_t splits = splits_of(c, s, profile);
    uint64_t most = divide_up(conv_groups(c, s, profile) * splits, units);
    return c->rate ? (double)most * c->tile_m * c->tile_n / c->rate / (double)splits : 0;
}

/* What an invocation loads for the next step: its elements of w and of x, the place of each of the
 * latter, and what places are found from. */
static uint32_t loaded(const conv_class *c)
{
    enum { FOR_PLACES = 8 };
    uint32_t words = c->packed ? 1 : 4;
    if (c->form != CONV_FORM_TILED)
        return 0;
    return (c->tile_m + words * c->tile_n) * c->step / c->threads + FOR_PLACES;
}

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const conv_class *c = row;
    const conv_shape *s = problem;
    bool can = c->form == CONV_FORM_TILED || s->k <= LONGEST_SLICE;
    if (c->form == CONV_FORM_STRIPS)
        can = fits_strips(s);
    if (c->form == CONV_FORM_TAPS)
        can = s->taps > 0 && s->taps <= MOST_TAPS;
    if (c->packed)
        can = fits_packing(c, s);
    return (choice_fit){.can = can && s->m <= c->most_m,
                        .suits = suits(c, s, profile),
                        .threads = c->threads,
                        .shared_bytes = shared_bytes(c, s),
                        .groups = conv_groups(c, s, profile) * splits_of(c, s, profile),
                        .cost = cost(c, s, profile),
                        .kept = c->form == CONV_FORM_TILED
                                    ? choice_tile_registers(c->register_m, c->register_n)
                                    : 0,
                        .loaded = loaded(c)};
}

const choice_table conv_choice = {CHOICE_ROWS(conv_classes), .fit = fit, .last_takes_all = true};

const conv_class *conv_choose(const conv_shape *shape, const device_profile *profile, size_t forced)
{
    return choice_select(&conv_choice, shape, profile, forced);
}

uint64_t conv_slice(const conv_class *c, const conv_shape *s, const device_profile *profile)
{
    uint64_t outputs = s->groups * s->m * s->n, tiles = conv_groups(c, s, profile);
    bool taps = c->form == CONV_FORM_TAPS, too_long = s->k > LONGEST_SLICE;
    uint64_t wanted = (taps ? TAPS_GROUPS : 2) * (uint64_t)profile->compute_units;
    if ((c->form != CONV_FORM_TILED && !taps) || outputs == 0 || (tiles * 2 > wanted && !too_long))
        return s->k;
    uint64_t most_partials = MIN(MOST_PARTIALS, profile->max_binding_bytes / sizeof(float));
    uint64_t useful = MAX(wanted / tiles, divide_up(s->k, LONGEST_SLICE));
    uint64_t least = taps ? (uint64_t)LEAST_SLICE * TAPS_GROUPS : LEAST_SLICE;
    uint64_t splits = MIN(MIN(useful, s->k / least), most_partials / outputs);
    return splits > 1 ? round_up(divide_up(s->k, splits), SLICE_UNIT) : s->k;
}
