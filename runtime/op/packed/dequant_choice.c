/*
 * How packed products are computed, and how kernels for few rows and for tiles divide their work.
 * Software drivers have rows of their own, because shared memory is slow on them. The last row of
 * each setting has no conditions.
 */
#include "op/packed/dequant_choice.h"

#include "args/matmul.h"
#include "args/packed.h"
#include "op/matmul/matrix_unit_choice.h"

enum {
    IF_CROWDS = CHOICE_OWN,   /* only with LEAST_THREADS for (nearly) each compute unit */
    IF_FULL = CHOICE_OWN << 1 /* only with two workgroups for each compute unit */
};
#define LEAST_THREADS 512

#define UNIT_BYTES     128 /* of x */
#define LEAST_SUBGROUP 4   /* integers: lanes that load 32 elements of x together */
#define LEAST_CHUNK    8
#define MOST_STAGED    256 /* units, of all rows */
#define MOST_LEVELS    16
#define TILE_STEP      32                  /* along K, a unit */
#define TILE_PADDING   16                  /* vectors (glsl/lib/tile.glsl) */
#define MOST_UNPACKED  (UINT64_C(1) << 29) /* bytes of decoded weights; f32 weights go in parts */

/* The matrix form also suits more rows than its most, unless the weights are decoded once for all
 * runs. Its kernel decodes them again for each row of tiles. That takes as long as to decode them
 * in a pass before the product. Blocks are decoded in a pass, too, but products of them are
 * faster. */
/* clang-format off */
static const dequant_class classes[] = {
    /* {name, settings}, form, least and most rows */
    {{"fragment", ON_HARDWARE}, DEQUANT_FORM_FRAGMENT,  2, 64},
    {{"blocks",   ON_HARDWARE}, DEQUANT_FORM_BLOCKS,    1, UINT32_MAX},
    {{"panel",    ON_HARDWARE}, DEQUANT_FORM_PANEL,    65, UINT32_MAX},
    {{"matrix",   ON_HARDWARE}, DEQUANT_FORM_MATRIX,    8, 256},
    {{"unpacked", ON_HARDWARE}, DEQUANT_FORM_UNPACKED, 33, UINT32_MAX},
    {{"tiled",    ON_HARDWARE}, DEQUANT_FORM_TILED,    33, UINT32_MAX},
    {{"vector",   ON_ALL},      DEQUANT_FORM_VECTOR,    1, UINT32_MAX},
};
/* clang-format on */

const char *dequant_name(dequant_form form)
{
    size_t i = 0;
    while (i + 1 < ARRAY_COUNT(classes) && classes[i].form != form)
        i++;
    return classes[i].row.name;
}

const char *dequant_shown(const variant_set *named, dequant_form form, const char *within)
{
    const char *name = dequant_name(form);
    return variant_is_named(named, name) && !variant_is_named(named, within) ? name : within;
}

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const dequant_class *c = row;
    const dequant_shape *s = problem;
    uint64_t bytes = s->weights * sizeof(float);
    bool room = !s->elements && bytes <= MIN(MOST_UNPACKED, profile->max_binding_bytes);
    bool decoded = c->form == DEQUANT_FORM_UNPACKED || c->form == DEQUANT_FORM_BLOCKS;
    bool by_lanes = c->form <= DEQUANT_FORM_BLOCKS;
    uint64_t least = c->form == DEQUANT_FORM_BLOCKS ? s->blocks_from : c->least_rows;
    bool any_more = c->form == DEQUANT_FORM_MATRIX && !(s->kept && room);
    return (choice_fit){.can = (c->form != DEQUANT_FORM_FRAGMENT || s->fragments) &&
                               (c->form != DEQUANT_FORM_PANEL || s->panels) &&
                               (c->form != DEQUANT_FORM_MATRIX || s->units) &&
                               (c->form != DEQUANT_FORM_BLOCKS || s->blocks_from) &&
                               (!decoded || room),
                        .suits = s->rows >= least && (s->rows <= c->most_rows || any_more) &&
                                 (!by_lanes || s->in_lanes)};
}

const choice_table dequant_choice = {CHOICE_ROWS(classes), .fit = fit, .last_takes_all = true};

const dequant_class *dequant_choose(const dequant_shape *shape, const device_profile *profile,
                                    size_t forced)
{
    return choice_select(&dequant_choice, shape, profile, forced);
}

/* ---- dequant_vector ---- */

/*
 * A CPU runs the invocations of a workgroup as vector lanes. Barriers and the loads of every lane
 * are expensive. So it gets teams of one, with several columns for each load of x. More columns
 * would double the time to compile the kernel.
 *
 * On a GPU, neighbours should read neighbouring bytes, and many reads should be in flight. x should
 * come from shared memory, for as many outputs as a workgroup can compute. If there are enough
 * outputs, teams should be small, because each team ends with a sum over its members.
 *
 * Integers take 0.6 to 0.85 of the time. With them, x is held in registers, because loading it
 * takes long (teams.h). Several rows of x share as much as they can in shared memory, if there are
 * enough columns for large workgroups: each workgroup loads all of x. The last row of each setting
 * has no conditions.
 */
/* clang-format off */
#define BY_BYTES (NEEDS_SHUFFLES | NEEDS_BYTE_PRODUCTS | IF_QUICK_BYTES)
static const dequant_vector_class vector_classes[] = {
    /* {name, settings, conditions}, lookup, integers, threads, team, columns, rows, chunk */
    {{"alone",       ON_SOFTWARE, 0},                    false, 0,      16,  1, 4, 4,   0},
    {{"integer_512", ON_HARDWARE, BY_BYTES},             false, 1,     512,  0, 2, 1, 256},
    {{"integer_256", ON_HARDWARE, BY_BYTES},             false, 2,     256,  0, 2, 1, 256},
    {{"staged_8",    ON_HARDWARE, IF_FILLS | IF_CROWDS}, true,  0,     256,  8, 4, 1, 128},
    {{"staged_16",   ON_HARDWARE, IF_FILLS | IF_CROWDS}, true,  0,     256, 16, 4, 1, 128},
    {{"staged_32",   ON_HARDWARE, IF_FILLS | IF_CROWDS}, true,  0,     256, 32, 4, 1, 128},
    {{"staged_512",  ON_HARDWARE, IF_FILLS},             true,  0,     512, 64, 4, 1, 256},
    {{"staged_256",  ON_HARDWARE, IF_FILLS},             true,  0,     256, 64, 4, 1, 128},
    {{"staged_128",  ON_HARDWARE, 0},                    true,  0,     128, 32, 2, 1,  64},
    {{"shared_512",  ON_HARDWARE, IF_FILLS},             true,  0,     512, 32, 2, 8, 256},
    {{"shared_four", ON_HARDWARE, IF_FILLS},             true,  0,     256, 32, 4, 8, 256},
    {{"direct_four", ON_HARDWARE, 0},                    true,  0,     128, 32, 4, 8,   0},
    {{"direct_two",  ON_HARDWARE, 0},                    true,  0,     128, 32, 2, 8,   0},
};
/* clang-format on */

uint64_t dequant_vector_groups(const dequant_vector_class *c, const dequant_vector_shape *s)
{
    if (c->integers)
        return c->teams.groups * s->m;
    uint64_t columns = (uint64_t)c->threads / c->team * c->columns;
    return divide_up(s->n, columns) * divide_up(s->m, c->rows);
}

/* Shared memory of the integer kernel. It has runs of x as digits, or five vectors of packed bytes
 * for each invocation. It also has the scales and sums of groups of x, and partial sums. */
static uint64_t integer_shared_bytes(const dequant_vector_class *c, const dequant_vector_shape *s)
{
    uint64_t spans = c->chunk / 2u, stage = 256 * (spans + 1);
    uint64_t pieces = s->pieces ? 80 * (uint64_t)c->threads : 0;
    return MAX(stage, pieces) + 16 * spans + matmul_team_bytes(&c->teams, c->columns);
}

uint64_t dequant_vector_shared_bytes(const dequant_vector_class *c, const dequant_vector_shape *s)
{
    if (c->integers)
        return integer_shared_bytes(c, s);
    uint64_t places = UNIT_BYTES / 16 + 2, step = c->chunk + 2u; /* of a row: vectors and sums */
    uint64_t squares = sizeof(float) * (s->normalized ? c->threads : 1);
    uint64_t stage = c->chunk ? 16 * c->rows * places * step : 16;
    uint64_t sums = c->team > 1 ? sizeof(float) * c->rows * c->columns * c->threads : 0;
    return MAX(stage, sums) + sizeof(float) * MOST_LEVELS + squares;
}

/* Registers of an invocation: two sums for each output, the codes of each column, and addresses. If
 * several rows are shared, the next words, too (AHEAD), and elements of x. With integers, x is
 * held. */
static uint32_t vector_kept(const dequant_vector_class *c)
{
    if (c->integers)
        return 136;
    if (c->rows > 1 && c->chunk)
        return 2u * c->rows * c->columns + 16u * c->columns + 152;
    return 2u * c->rows * c->columns + 4u * c->columns + 80;
}

/* The elements of x that one unit needs, and addresses. A compiler takes few of them early from
 * shared memory. */
static uint32_t vector_loaded(const dequant_vector_class *c)
{
    if (c->integers)
        return 0;
    return (c->chunk ? 8u : 96u) * c->rows;
}

/* A team has the whole row, 64 elements for each invocation. */
static dequant_vector_class integer_sized(dequant_vector_class c, const dequant_vector_shape *s,
                                          const device_profile *profile)
{
    c.teams = matmul_divide_teams(&(team_request){divide_up(s->units, DEQUANT_SPAN), s->n,
                                                  c.columns, c.threads, c.integers},
                                  profile);
    c.team = (uint16_t)MIN(c.teams.team, UINT16_MAX);
    c.threads = (uint16_t)MIN(c.teams.threads, UINT16_MAX);
    while (c.chunk > LEAST_CHUNK && c.chunk / 2u >= s->units)
        c.chunk /= 2;
    return c;
}

/* Reduces invocations, rows and shared memory to as much as the shape can use. */
static dequant_vector_class sized(dequant_vector_class c, const dequant_vector_shape *s,
                                  const device_profile *profile)
{
    bool single = s->experts || s->m <= 1;
    if (c.integers)
        return integer_sized(c, s, profile);
    c.rows = single ? 1 : (uint16_t)divide_up(s->m, divide_up(s->m, c.rows));
    while (profile->loads_early && c.rows > 1 &&
           vector_kept(&c) + vector_loaded(&c) > profile_registers(profile, c.threads))
        c.rows = (uint16_t)divide_up(s->m, divide_up(s->m, c.rows - 1u));
    while (c.chunk > LEAST_CHUNK && c.rows * c.chunk > MOST_STAGED)
        c.chunk /= 2;
    while (c.team > 1 && c.team / 2u >= s->units)
        c.team /= 2;
    while (c.chunk > LEAST_CHUNK && c.chunk / 2u >= MAX(s->units, c.team))
        c.chunk /= 2;
    return c;
}

/* A table row for one row of x suits only one row, and the others suit only several. On software,
 * the only table row suits both. */
static bool vector_suits(const dequant_vector_class *c, const dequant_vector_shape *s,
                         uint64_t groups, const device_profile *profile)
{
    bool single = s->m <= 1 || s->experts;
    uint32_t conditions = c->row.conditions;
    return (profile_is_software(profile) || single == (c->rows == 1)) &&
           (!(conditions & IF_CROWDS) ||
            profile_filled(profile, groups * c->threads / LEAST_THREADS));
}

static choice_fit vector_fit(const void *row, const void *problem, const device_profile *profile)
{
    const dequant_vector_class *c = row;
    const dequant_vector_shape *s = problem;
    dequant_vector_class fitted = sized(*c, s, profile);
    uint64_t groups = dequant_vector_groups(&fitted, s);
    bool integers = s->integers && s->units > 0 && s->units % DEQUANT_SPAN == 0 &&
                    fitted.threads <= c->threads && profile->subgroup_size >= LEAST_SUBGROUP;
    return (choice_fit){.can = !c->integers || integers,
                        .suits = vector_suits(c, s, groups, profile),
                        .threads = fitted.threads,
                        .shared_bytes = dequant_vector_shared_bytes(&fitted, s),
                        .groups = groups,
                        .kept = vector_kept(&fitted),
                        .loaded = vector_loaded(&fitted)};
}

const choice_table dequant_vector_choice = {CHOICE_ROWS(vector_classes), .fit = vector_fit,
                                            .last_takes_all = true};

dequant_vector_class dequant_vector_choose(const dequant_vector_shape *shape,
                                           const device_profile *profile, size_t forced)
{
    const dequant_vector_class *c = choice_select(&dequant_vector_choice, shape, profile, forced);
    dequant_vector_class fitted = sized(*c, shape, profile);
    fitted.variant = c->row.name;
    return fitted;
}

/* ---- dequant_tile ---- */

/*
 * If an expert's rows spill into a second tile, that costs nearly as much as a whole tile. So a
 * tile has room for the average expert's rows plus twice their square root, if possible. Whole
 * patches without rows are skipped. The last row has no conditions.
 */
/* clang-format off */
static const dequant_tile_class tile_classes[] = {
    /* {name, settings}, rows, columns, registers, least and most rows of x */
    {{"tiled_16x64",   ON_NATIVE},  16,  64, 4,  4,   0,  10},
    {{"tiled_64x64",   ON_NATIVE},  64,  64, 4,  8,  24,  53},
    {{"tiled_160x128", ON_NATIVE}, 160, 128, 4, 16, 113, 142},
    {{"tiled_128x128", ON_NATIVE}, 128, 128, 8,  8,  54, UINT64_MAX},
    {{"tiled_32x64",   ON_ALL},     32,  64, 4,  4,   0, UINT64_MAX},
};
/* clang-format on */

uint32_t dequant_tile_threads(const dequant_tile_class *c)
{
    return (uint32_t)c->rows / c->register_rows * (c->columns / c->register_columns);
}

static choice_fit tile_fit(const void *row, const void *problem, const device_profile *profile)
{
    const dequant_tile_class *c = row;
    uint64_t rows = *(const uint64_t *)problem;
    uint64_t vectors = (c->rows + c->columns) / 4u * TILE_STEP + TILE_PADDING;
    (void)profile;
    return (choice_fit){.can = true,
                        .suits = rows >= c->least_rows && rows <= c->most_rows,
                        .threads = dequant_tile_threads(c),
                        .shared_bytes = 16 * vectors};
}

const choice_table dequant_tile_choice = {CHOICE_ROWS(tile_classes), .fit = tile_fit,
                                          .last_takes_all = true};

const dequant_tile_class *dequant_tile_choose(uint64_t rows, const device_profile *profile,
                                              size_t forced)
{
    return choice_select(&dequant_tile_choice, &rows, profile, forced);
}

/* ---- dequant_fragment ---- */

/* clang-format off */
static const dequant_fragment_class fragment_classes[] = {
    /* {name, settings, conditions}, splits */
    {{"four_parts",  ON_ALL, IF_FULL}, 4},
    {{"eight_parts", ON_ALL, 0},       8},
};
/* clang-format on */

uint64_t dequant_fragment_groups(const dequant_fragment_shape *s, const device_profile *profile)
{
    return divide_up(s->m, FRAGMENT_ROWS) * divide_up(s->n, profile->matrix_f16.m);
}

/* Can lanes hold such matrices in registers for the units? */
static bool gives(const matrix_shape *u, uint32_t lanes)
{
    return u->m && u->m == u->n && u->k % (2 * MATRIX_LANES) == 0 &&
           MATRIX_LANES * u->m % lanes == 0;
}

/* The same for dequant_fragment: the kernel's sizes must be whole units, and each lane must hold
 * four words of a matrix. */
static bool divides(const matrix_shape *u, uint32_t lanes)
{
    return gives(u, lanes) && FRAGMENT_ROWS % u->n == 0 && FRAGMENT_SUMS % u->k == 0 &&
           (uint64_t)u->m * u->k == 8 * (uint64_t)lanes;
}

static choice_fit fragment_fit(const void *row, const void *problem, const device_profile *profile)
{
    const dequant_fragment_class *c = row;
    const dequant_fragment_shape *s = problem;
    const matrix_shape *u = &profile->matrix_f16;
    uint64_t sums = (uint64_t)FRAGMENT_ROWS * u->m, operand = (uint64_t)u->m * u->k;
    uint64_t groups = u->m ? dequant_fragment_groups(s, profile) : 0;
    return (choice_fit){.can = divides(u, profile->subgroup_size) &&
                               (profile->half_rounding || !s->rounds),
                        .suits = !(c->row.conditions & IF_FULL) ||
                                 groups >= 2 * (uint64_t)profile->compute_units,
                        .threads = c->splits * profile->subgroup_size,
                        .shared_bytes = c->splits * (4 * sums + 2 * operand)};
}

const choice_table dequant_fragment_choice = {CHOICE_ROWS(fragment_classes), .fit = fragment_fit};

const dequant_fragment_class *dequant_fragment_choose(const dequant_fragment_shape *shape,
                                                      const device_profile *profile, size_t forced)
{
    return choice_select(&dequant_fragment_choice, shape, profile, forced);
}

/* ---- dequant_panel ---- */

#define LEAST_SLICE 4 /* groups of a split */

/* If a panel has more rows, each weight is decoded less often, and there may be a round of
 * workgroups less. The costs are those of an H200. */
/* clang-format off */
static const dequant_panel_class panel_classes[] = {
    /* {name, settings}, rows, subgroups, cost */
    {{"rows_128", ON_ALL}, 128, 8, 100},
    {{"rows_64",  ON_ALL},  64, 8,  61},
};
/* clang-format on */

uint64_t dequant_panel_columns(const dequant_panel_class *c)
{
    return (uint64_t)c->subgroups * DEQUANT_PANEL_PART;
}

static uint64_t panel_tiles(const dequant_panel_class *c, const matmul_shape *s)
{
    return divide_up(s->m, c->rows) * divide_up(s->n, dequant_panel_columns(c));
}

/* K is split if otherwise half of the compute units, or more, would have no work. */
uint64_t dequant_panel_slice(const dequant_panel_class *c, const matmul_shape *s,
                             const device_profile *profile)
{
    uint64_t groups = divide_up(s->k, PANEL_GROUP);
    uint64_t splits = MAX(profile->compute_units / MAX(panel_tiles(c, s), 1), 1);
    return divide_up(groups, MAX(MIN(splits, groups / LEAST_SLICE), 1));
}

/* Are parts whole units, and do threads carry whole octets? */
static bool panel_divides(const dequant_panel_class *c, const matrix_shape *u, uint32_t lanes)
{
    return gives(u, lanes) && DEQUANT_PANEL_PART % u->m == 0 && c->rows % u->n == 0 &&
           PANEL_STEP % u->k == 0 && c->rows * PANEL_STEP / 8u % (c->subgroups * lanes) == 0;
}

typedef struct panel_problem {
    const matmul_shape *shape;
    matrix_shape unit;
} panel_problem;

static choice_fit panel_fit(const void *row, const void *problem, const device_profile *profile)
{
    const dequant_panel_class *c = row;
    const panel_problem *p = problem;
    const matmul_shape *s = p->shape;
    const matrix_shape *u = &p->unit;
    uint64_t groups = divide_up(s->k, PANEL_GROUP), slice = dequant_panel_slice(c, s, profile);
    uint64_t tiles = panel_tiles(c, s) * divide_up(groups, slice);
    uint64_t stages = 2 * 16 * c->rows * (PANEL_STEP / 8 + 1);
    uint64_t rounds = divide_up(tiles, MAX(profile->compute_units, 1));
    return (choice_fit){.can = panel_divides(c, u, profile->subgroup_size),
                        .suits = true,
                        .threads = c->subgroups * profile->subgroup_size,
                        .shared_bytes = stages + 2 * c->subgroups * (uint64_t)u->m * u->k,
                        .groups = tiles,
                        .cost = (double)c->cost * (double)(rounds * slice)};
}

const choice_table dequant_panel_choice = {CHOICE_ROWS(panel_classes), .fit = panel_fit};

/* The bf16 kernels use f16 arithmetic, too. A device that has matrix units for f16 has it. */
const dequant_panel_class *dequant_panel_choose(const matmul_shape *shape,
                                                rlxvk_precision precision,
                                                const device_profile *profile, size_t forced)
{
    panel_problem p = {shape, matrix_unit(precision, profile)};
    bool halves = precision == RLXVK_PRECISION_F16 || precision == RLXVK_PRECISION_BF16;
    return halves && profile->matrix_f16.m
               ? choice_select(&dequant_panel_choice, &p, profile, forced)
               : NULL;
}
