/*
 * The tiles of the products on matrix units. A row can be used if its parts are whole units, its
 * threads carry whole octets, and both fit the device. The smaller rows are for small results. They
 * are also for software drivers, because their units and subgroups are smaller. If the weights are
 * packed, the threads carry whole units of weights.
 */
#include "op/matmul/matrix_unit_choice.h"

enum {
    IF_CROWDS = CHOICE_OWN,   /* only if every compute unit has two tiles to turn to */
    IF_BUSY = CHOICE_OWN << 1 /* only if four of five compute units have a tile */
};

/*
 * The cost of a round of tiles, one for each compute unit, as measured on an H200. Among rows with
 * a cost, the one is taken whose rounds and edges waste least. With large tiles in shared memory,
 * the GPU is busy loading operands, which takes time in proportion to a tile's sides. The direct
 * rows need no shared memory, and two workgroups (of half the size, four) share a compute unit.
 * Their cost is that of a round of these.
 */
/* clang-format off */
const matrix_class matrix_classes[] = {
    /* {name, settings, conditions}, tile m n k, part m n, stages, least m n, cost, ahead, splits,
     * depth, crowd */
    {{"direct",     ON_ALL, IF_FILLS},  128, 128, 64, 64, 64, 0, 65,  65, 167, false, 0, 2, 2},
    {{"direct_low", ON_ALL, IF_FILLS},   64, 128, 64, 64, 64, 0, 33,  65, 170, false, 0, 2, 4},
    {{"direct_deep", ON_ALL, IF_FILLS}, 128,  64, 64, 64, 32, 0, 65,  33,  93, false, 0, 4, 2},
    {{"direct_small", ON_ALL, IF_FILLS}, 32,  64, 64, 32, 16, 0, 17,  33,  66, false, 0, 4, 4},
    {{"tall",       ON_ALL, IF_BUSY},   192, 128, 64, 48, 64, 1, 65,  65, 136},
    {{"wide",       ON_ALL, IF_BUSY},   128, 192, 64, 32, 48, 1, 65,  65, 136},
    {{"square_64",  ON_ALL, IF_BUSY},   128, 128, 64, 64, 32, 1, 65,  65, 100},
    {{"square_32",  ON_ALL, IF_FILLS},  128, 128, 32, 64, 32, 1, 65,  65,   0},
    {{"medium",     ON_ALL, IF_CROWDS},  64,  64, 32, 32, 32, 1, 17,  17,   0},
    {{"two_stages", ON_ALL, IF_CROWDS},  64,  64, 32, 32, 32, 2, 17,  17,   0},
    {{"small",      ON_ALL, 0},          32,  32, 64, 16, 16, 1,  0,   0,   0},
};
static const matrix_class packed_classes[] = {
    /* as above, then: ahead, splits */
    {{"square",       ON_ALL, 0}, 128, 128, 64, 64, 32, 1, 65, 0, 0, true,  1},
    {{"rows_32",      ON_ALL, 0},  32,  64, 64, 32, 16, 1, 17, 0, 0, true,  4},
    {{"rows_16",      ON_ALL, 0},  16,  64, 64, 16, 16, 1,  0, 0, 0, true,  8},
    {{"rows_16_late", ON_ALL, 0},  16,  64, 64, 16, 16, 1,  0, 0, 0, false, 8},
    {{"short",        ON_ALL, 0},  32,  64, 32, 32, 16, 1,  0, 0, 0, true,  4},
    {{"short_late",   ON_ALL, 0},  32,  64, 32, 32, 16, 1,  0, 0, 0, false, 4},
};
/* clang-format on */

#define LEAST_STEPS 4 /* of a split */

matrix_shape matrix_unit(rlxvk_precision precision, const device_profile *profile)
{
    if (precision == RLXVK_PRECISION_F32)
        return profile->matrix_f32;
    return precision == RLXVK_PRECISION_BF16 ? profile->matrix_bf16 : profile->matrix_f16;
}

uint32_t matrix_unit_threads(const matrix_class *c, const device_profile *profile)
{
    return c->tile_m / c->part_m * (c->tile_n / c->part_n) * profile->subgroup_size;
}

uint64_t matrix_unit_shared_bytes(const matrix_class *c, uint32_t planes)
{
    return 16 * (c->tile_m + c->tile_n) * (c->tile_k / 8u + 1) * planes * c->stages;
}

typedef struct matrix_unit_problem {
    const matmul_shape *shape;
    matrix_shape unit;
    uint32_t planes;
    bool whole_halves; /* an operand is one plane of 16 bits, as blocks need it */
    bool in_lanes;
} matrix_unit_problem;

/* Are parts whole units, and do threads carry whole octets? The sums leave through shared memory of
 * a tile of `tile` rows, which must have room for one unit of each part. */
static bool divides(const matrix_class *c, const matrix_shape *unit, uint32_t tile,
                    const device_profile *profile)
{
    uint32_t threads = matrix_unit_threads(c, profile), parts = threads / profile->subgroup_size;
    return parts * unit->m * unit->n <= tile * (c->tile_k / 2u + 4) && c->part_m % unit->m == 0 &&
           c->part_n % unit->n == 0 && c->tile_k % unit->k == 0 &&
           c->tile_m * c->tile_k / 8 % threads == 0 && c->tile_n * c->tile_k / 8 % threads == 0;
}

static bool suits(const matrix_class *c, const matmul_shape *s, uint64_t tiles, uint32_t units)
{
    return s->m >= c->least_m && s->n >= c->least_n &&
           (!(c->row.conditions & IF_CROWDS) || tiles >= 2 * (uint64_t)units) &&
           (!(c->row.conditions & IF_BUSY) || 5 * tiles >= 4 * (uint64_t)units);
}

/* Words of a subgroup's part of the operands of one step, for each lane. */
static uint32_t step_words(const matrix_class *c, const matrix_shape *unit, uint32_t lanes)
{
    return (uint32_t)(c->part_m + c->part_n) * unit->k / 2 / lanes;
}

#define DIRECT_PRODUCTS 64 /* of the units, in the unrolled code of a turn */
#define BAND_PADDING    4  /* words of a row, if sums leave through shared memory */

/* Whole turns of blocks must make a step of tile_k, and a part whole blocks. */
static choice_fit fit_direct(const matrix_class *c, const matrix_unit_problem *p,
                             const device_profile *profile)
{
    const matrix_shape *unit = &p->unit;
    uint32_t threads = matrix_unit_threads(c, profile), lanes = profile->subgroup_size;
    return (choice_fit){.can = p->whole_halves && c->part_m % unit->m == 0 &&
                               c->part_n % unit->n == 0 && unit->k % 8 == 0 && unit->k <= 32 &&
                               c->tile_k / unit->k % c->depth == 0 &&
                               (uint32_t)c->part_m / unit->m * (c->part_n / unit->n) * c->depth <=
                                   DIRECT_PRODUCTS,
                        .suits = p->in_lanes,
                        .threads = threads,
                        .shared_bytes = 4u * threads / lanes * unit->m * (c->part_n + BAND_PADDING),
                        .kept = (uint32_t)c->part_m * c->part_n / lanes,
                        .loaded = c->depth * step_words(c, unit, lanes)};
}

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const matrix_class *c = row;
    const matrix_unit_problem *p = problem;
    const matmul_shape *s = p->shape;
    choice_fit f = {.can = divides(c, &p->unit, c->tile_m, profile),
                    .suits = true,
                    .threads = matrix_unit_threads(c, profile),
                    .shared_bytes = matrix_unit_shared_bytes(c, p->planes)};
    if (c->depth)
        f = fit_direct(c, p, profile);
    f.groups = s->batch * divide_up(s->m, c->tile_m) * divide_up(s->n, c->tile_n);
    f.suits = f.suits && suits(c, s, f.groups, profile->compute_units);
    f.cost = c->cost * (double)divide_up(f.groups, profile->compute_units * MAX(c->crowd, 1u));
    return f;
}

const choice_table matrix_choice = {CHOICE_ROWS(matrix_classes), .fit = fit};

const matrix_class *matrix_unit_choose(const matmul_shape *shape, rlxvk_precision precision,
                                       const device_profile *profile, bool in_lanes, size_t forced)
{
    matrix_unit_problem p = {.shape = shape,
                             .unit = matrix_unit(precision, profile),
                             .planes = matrix_unit_planes(precision),
                             .whole_halves = precision == RLXVK_PRECISION_F16 ||
                                             precision == RLXVK_PRECISION_BF16,
                             .in_lanes = in_lanes};
    return p.unit.m ? choice_select(&matrix_choice, &p, profile, forced) : NULL;
}

/* ---- Packed weights ---- */

/* Can the kernel keep its data in registers? Its code is unrolled, so the limits are fixed. A table
 * is filled by one thread for each level. */
static bool unrolled(const matrix_class *c, const matrix_shape *unit, uint32_t threads)
{
    uint32_t units = c->tile_n * c->tile_k / MATRIX_PACKED_UNIT;
    return threads >= MATRIX_PACKED_LEVELS && units % threads == 0 &&
           units / threads <= MATRIX_PACKED_UNITS &&
           c->tile_m * c->tile_k / 8u / threads <= MATRIX_PACKED_OCTETS &&
           c->part_m / unit->m <= MATRIX_PACKED_SUMS && c->part_n / unit->n <= MATRIX_PACKED_SUMS &&
           c->tile_k / unit->k <= MATRIX_PACKED_STEPS;
}

static choice_fit packed_fit(const void *row, const void *problem, const device_profile *profile)
{
    const matrix_class *c = row;
    const matrix_unit_problem *p = problem;
    choice_fit f = fit(row, problem, profile);
    f.can = divides(c, &p->unit, c->tile_n, profile) && unrolled(c, &p->unit, f.threads);
    f.shared_bytes += MATRIX_PACKED_LEVELS * sizeof(float);
    return f;
}

const choice_table matrix_packed_choice = {CHOICE_ROWS(packed_classes), .fit = packed_fit};

const matrix_class *matrix_unit_packed_choose(const matmul_shape *shape, rlxvk_precision precision,
                                              const device_profile *profile, size_t forced)
{
    bool has_kernel = precision == RLXVK_PRECISION_F16 || precision == RLXVK_PRECISION_BF16;
    matrix_unit_problem p = {.shape = shape, .unit = matrix_unit(precision, profile), .planes = 1};
    return has_kernel && p.unit.m ? choice_select(&matrix_packed_choice, &p, profile, forced)
                                  : NULL;
}

uint64_t matrix_slice(const matrix_class *c, const matmul_shape *s, const device_profile *profile)
{
    uint64_t tiles = divide_up(s->m, c->tile_m) * divide_up(s->n, c->tile_n);
    uint64_t steps = divide_up(s->k, c->tile_k);
    uint64_t wanted = divide_up(c->splits * (uint64_t)profile->compute_units, tiles);
    uint64_t splits = c->splits ? MAX(MIN(wanted, steps / LEAST_STEPS), 1u) : 1;
    return divide_up(steps, splits) * c->tile_k;
}
