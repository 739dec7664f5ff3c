/*
 * The tiles of convolutions on matrix units. The row of least cost wins. A cost is time, in units
 * of 0.1 ns on an NVIDIA H200, where 16 convolutions and gradients were timed with each row; the
 * rows that win there are at most 7 % behind the best. It is the time of the busiest compute unit,
 * with that of packing and of summing the parts of K. If x is not packed, the compute units load
 * twice as many bytes, and round them. That pays for windows of one cell, and for small
 * convolutions. With few channels, K is a list of single elements, because octets would be padded.
 *
 * Rows with steps of 32 are for devices with 32 KiB of shared memory. The small tiles are also for
 * software drivers, because their units and subgroups are small. The code for single elements is
 * long, so these drivers take shorter steps, for which units of 16x16 have no room.
 */
#include "args/conv_matrix.h"
#include "op/conv/conv_matrix_choice.h"

#define LEAST_STEPS   8 /* of a split */
#define MOST_PARTIALS (UINT64_C(1) << 26)
/* Of an element of a tile that leaves the units; of packing a tensor, and an element of it; of
 * summing the parts, and an element of one. The row of a class has that of an element of K. */
#define LEAVING_ELEMENT 4.5
#define PACKING         30000.0
#define PACKING_ELEMENT 0.026
#define SUMMING         30000.0
#define SUMMING_ELEMENT 0.01

/* clang-format off */
#define PACKED    CONV_MATRIX_PACKED
#define WORDS     CONV_MATRIX_WORDS
#define SCATTERED CONV_MATRIX_SCATTERED
const conv_matrix_class conv_matrix_classes[] = {
    /* {name, settings, conditions}, tile m n k, part m n, stages, least m n, cost, form,
     * weight_cost */
    {{{"square_64",    ON_HARDWARE, 0}, 128, 128, 64, 32, 64, 1, 0, 0, 215}, PACKED, 290},
    {{{"square_32",    ON_HARDWARE, 0}, 128, 128, 32, 32, 64, 1, 0, 0, 293}, PACKED, 380},
    {{{"wide_32",      ON_HARDWARE, 0}, 128, 256, 32, 64, 64, 1, 0, 0, 402}, PACKED, 490},
    {{{"flat_64",      ON_HARDWARE, 0},  64, 128, 64, 32, 32, 1, 0, 0, 148}, PACKED, 205},
    {{{"flat_32",      ON_HARDWARE, 0},  64, 128, 32, 32, 32, 1, 0, 0, 141}, PACKED, 156},
    {{{"medium",       ON_HARDWARE, 0},  64,  64, 64, 32, 32, 1, 0, 0,  72}, PACKED,  80},
    {{{"small",        ON_ALL,      0},  32,  32, 64, 16, 16, 1, 0, 0,  28}, PACKED,  50},
    {{{"words_square", ON_HARDWARE, 0}, 128, 128, 32, 32, 64, 1, 0, 0, 295}, WORDS, 0},
    {{{"words_flat",   ON_HARDWARE, 0},  64, 128, 32, 32, 32, 1, 0, 0, 142}, WORDS, 0},
    {{{"words_medium", ON_HARDWARE, 0},  64,  64, 32, 32, 32, 1, 0, 0,  79}, WORDS, 0},
    {{{"words_small",  ON_ALL,      0},  32,  32, 64, 16, 16, 1, 0, 0,  33}, WORDS, 0},
    {{{"scattered_square", ON_HARDWARE, 0}, 128, 128, 32, 32, 64, 1, 0, 0, 550}, SCATTERED, 0},
    {{{"scattered_flat",   ON_HARDWARE, 0},  64, 128, 32, 32, 32, 1, 0, 0, 275}, SCATTERED, 0},
    {{{"scattered_small",  ON_HARDWARE, 0},  32,  32, 64, 16, 16, 1, 0, 0,  59}, SCATTERED, 0},
    {{{"scattered_little", ON_ALL,      0},  32,  32, 32, 16, 16, 1, 0, 0,  64}, SCATTERED, 0},
};
/* clang-format on */

typedef struct conv_matrix_problem {
    const conv_matrix_shape *shape;
    matrix_shape unit;
} conv_matrix_problem;

/* Limits of matrix_sums.glsl and MULTIPLY_STEP: matrices of sums of a subgroup along m and n, and
 * products of the units along K in a step. */
#define MOST_SUMS  4
#define MOST_STEPS 8

/* Is a part whole units, and are there variables for its sums? */
static bool is_whole(uint32_t part, uint32_t unit, uint32_t most)
{
    return part % unit == 0 && part / unit <= most;
}

/* Do invocations carry whole octets, each of them the same octet of every row? */
static bool carries(uint32_t rows, uint32_t octets, uint32_t threads)
{
    return octets > 0 && threads % octets == 0 && rows * octets % threads == 0;
}

/* The sums leave through shared memory of the tile of x. It must have room for one unit of
 * each part, and a lane must stay in its column. */
static bool leaves(const matrix_class *c, const matrix_shape *unit, bool weight,
                   const device_profile *profile)
{
    uint32_t parts = matrix_unit_threads(c, profile) / profile->subgroup_size;
    uint32_t words = weight ? c->tile_k * (c->tile_n / 2u + 4) : c->tile_n * (c->tile_k / 2u + 4);
    return parts * unit->m * unit->n <= words && profile->subgroup_size % unit->n == 0 &&
           unit->m % 8 == 0 && unit->n % 8 == 0;
}

/* With words, an invocation carries octets of one row. */
static bool carries_words(const matrix_class *c, uint32_t threads)
{
    return threads % c->tile_n == 0 && c->tile_n * c->tile_k / 8u % threads == 0;
}

static bool divides(const matrix_class *c, const matrix_shape *unit, bool weight,
                    const device_profile *profile)
{
    uint32_t threads = matrix_unit_threads(c, profile);
    bool whole = is_whole(c->part_m, unit->m, MOST_SUMS) &&
                 is_whole(c->part_n, unit->n, MOST_SUMS) &&
                 is_whole(c->tile_k, unit->k, MOST_STEPS);
    bool carried = weight ? carries(c->tile_k, c->tile_m / 8u, threads) &&
                                carries(c->tile_k, c->tile_n / 8u, threads)
                          : carries(c->tile_m, c->tile_k / 8u, threads) &&
                                carries(c->tile_n, c->tile_k / 8u, threads);
    return whole && carried && leaves(c, unit, weight, profile);
}

static uint64_t shared_bytes(const matrix_class *c, bool weight)
{
    return weight ? UINT64_C(16) * c->tile_k * ((c->tile_m + c->tile_n) / 8u + 2) * c->stages
                  : matrix_unit_shared_bytes(c, 1);
}

uint64_t conv_matrix_tiles(const conv_matrix_class *c, const conv_matrix_shape *s)
{
    return s->groups * divide_up(s->m, c->tiles.tile_m) * divide_up(s->n, c->tiles.tile_n);
}

uint64_t conv_matrix_k(const conv_matrix_class *c, const conv_matrix_shape *s)
{
    return c->form == CONV_MATRIX_SCATTERED ? s->k_elements : s->k;
}

uint64_t conv_matrix_slice(const conv_matrix_class *c, const conv_matrix_shape *s,
                           const device_profile *profile)
{
    uint64_t tiles = conv_matrix_tiles(c, s),
             steps = divide_up(conv_matrix_k(c, s), c->tiles.tile_k);
    uint64_t wanted = 2 * (uint64_t)profile->compute_units, outputs = s->groups * s->m * s->n;
    uint64_t most = MIN(MOST_PARTIALS, profile->max_binding_bytes / sizeof(float));
    uint64_t splits = 1;
    if (outputs > 0 && tiles * 2 <= wanted)
        splits = MIN(MIN(wanted / tiles, steps / LEAST_STEPS), most / outputs);
    return divide_up(steps, MAX(splits, 1u)) * c->tiles.tile_k;
}

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const conv_matrix_class *c = row;
    const conv_matrix_problem *p = problem;
    const conv_matrix_shape *s = p->shape;
    uint32_t threads = matrix_unit_threads(&c->tiles, profile);
    uint64_t k = conv_matrix_k(c, s), slice = MIN(conv_matrix_slice(c, s, profile), MAX(k, 1u));
    uint64_t groups = conv_matrix_tiles(c, s) * divide_up(k, slice);
    uint64_t rounds = divide_up(groups, MAX(profile->compute_units, 1u));
    bool packed = c->form == CONV_MATRIX_PACKED;
    bool words = !s->weight && (s->octets || c->form == CONV_MATRIX_SCATTERED) &&
                 carries_words(&c->tiles, threads);
    uint64_t tile = (uint64_t)c->tiles.tile_m * c->tiles.tile_n, parts = divide_up(k, slice);
    double step = s->weight ? c->weight_cost : c->tiles.cost;
    double cost = (double)rounds * (step * (double)slice + LEAVING_ELEMENT * (double)tile);
    if (packed)
        cost += PACKING * (s->weight ? 2 : 1) + PACKING_ELEMENT * (double)s->to_pack;
    if (parts > 1)
        cost += SUMMING + SUMMING_ELEMENT * (double)(parts * s->groups * s->m * s->n);
    return (choice_fit){.can =
                            (packed || words) && divides(&c->tiles, &p->unit, s->weight, profile),
                        .suits = true,
                        .threads = threads,
                        .shared_bytes = shared_bytes(&c->tiles, s->weight),
                        .groups = groups,
                        .cost = cost};
}

const choice_table conv_matrix_choice = {CHOICE_ROWS(conv_matrix_classes), .fit = fit};

const conv_matrix_class *conv_matrix_choose(const conv_matrix_shape *shape,
                                            rlxvk_precision precision,
                                            const device_profile *profile, size_t forced)
{
    bool has_kernel = precision == RLXVK_PRECISION_F16 || precision == RLXVK_PRECISION_BF16;
    conv_matrix_problem p = {shape, matrix_unit(precision, profile)};
    return has_kernel && p.unit.m ? choice_select(&conv_matrix_choice, &p, profile, forced) : NULL;
}
