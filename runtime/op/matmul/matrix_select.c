/*
 * The tiles of the matrix-unit product. Every row asks that its parts are whole units, that its
 * threads carry whole octets, and that both fit the device; the smaller rows are for small results
 * and for software drivers, whose units and subgroups are smaller.
 */
#include "op/matmul/matrix_select.h"

/* Only where its tiles keep (nearly) every compute unit busy; where each has two to turn to; where
 * the last round of tiles and their edges waste less than a sixteenth. */
enum condition { FILLS = 1, CROWDS = 2, EVEN = 4 };

/* clang-format off */
const matrix_class matrix_classes[] = {
    /* name, tile m n k, part m n, stages, least m n, conditions */
    {"tall",        192, 128, 64, 48, 64, 1, 65,  65, EVEN},
    {"square_64",   128, 128, 64, 64, 32, 1, 65,  65, FILLS},
    {"square_32",   128, 128, 32, 64, 32, 1, 65,  65, FILLS},
    {"medium",       64,  64, 32, 32, 32, 1, 17,  17, CROWDS},
    {"two_stages",   64,  64, 32, 32, 32, 2, 17,  17, CROWDS},
    {"small",        32,  32, 64, 16, 16, 1,  0,   0, 0},
};
/* clang-format on */
const size_t matrix_class_count = ARRAY_COUNT(matrix_classes);

const char *rlxvk_precision_name(rlxvk_precision precision)
{
    static const char *const names[] = {"f32", "f16", "bf16", "split"};
    return (unsigned)precision < ARRAY_COUNT(names) ? names[precision] : NULL;
}

matrix_shape matrix_unit(rlxvk_precision precision, const device_profile *profile)
{
    static const matrix_shape none;
    if (precision == RLXVK_PRECISION_F32)
        return none;
    return precision == RLXVK_PRECISION_BF16 ? profile->matrix_bf16 : profile->matrix_f16;
}

uint32_t matrix_threads(const matrix_class *c, const device_profile *profile)
{
    return c->tile_m / c->part_m * (c->tile_n / c->part_n) * profile->subgroup_size;
}

uint64_t matrix_shared_bytes(const matrix_class *c, uint32_t planes)
{
    return 16 * (c->tile_m + c->tile_n) * (c->tile_k / 8u + 1) * planes * c->stages;
}

/* Whether it can; whether it should is for suits. */
static bool is_able(const matrix_class *c, const matrix_shape *unit, uint32_t planes,
                    const device_profile *profile)
{
    uint32_t threads = matrix_threads(c, profile);
    if (threads > profile->max_workgroup_invocations ||
        matrix_shared_bytes(c, planes) > profile->shared_memory_bytes)
        return false;
    /* The sums leave through tile a, a unit for each part. */
    if (threads / profile->subgroup_size * unit->m * unit->n > c->tile_m * (c->tile_k / 2u + 4))
        return false;
    if (c->part_m % unit->m || c->part_n % unit->n || c->tile_k % unit->k)
        return false;
    return c->tile_m * c->tile_k / 8 % threads == 0 && c->tile_n * c->tile_k / 8 % threads == 0;
}

static bool suits(const matrix_class *c, const matmul_shape *s, const device_profile *profile)
{
    uint64_t tiles = s->batch * divide_up(s->m, c->tile_m) * divide_up(s->n, c->tile_n);
    if (s->m < c->least_m || s->n < c->least_n)
        return false;
    uint64_t rounds = divide_up(tiles, profile->compute_units);
    double used = (double)s->batch * (double)s->m * (double)s->n;
    double offered = (double)(rounds * profile->compute_units) * c->tile_m * c->tile_n;
    return (!(c->conditions & EVEN) || used * 16 > offered * 15) &&
           (!(c->conditions & FILLS) || profile_filled(profile, tiles)) &&
           (!(c->conditions & CROWDS) || tiles >= 2 * (uint64_t)profile->compute_units);
}

const matrix_class *matrix_select(const matmul_shape *shape, rlxvk_precision precision,
                                  const device_profile *profile, size_t forced)
{
    matrix_shape unit = matrix_unit(precision, profile);
    uint32_t planes = matrix_planes(precision);
    if (unit.m == 0)
        return NULL;
    if (forced < matrix_class_count && is_able(&matrix_classes[forced], &unit, planes, profile))
        return &matrix_classes[forced];
    const matrix_class *able = NULL; /* the last */
    for (size_t i = 0; i < matrix_class_count; i++) {
        if (!is_able(&matrix_classes[i], &unit, planes, profile))
            continue;
        able = &matrix_classes[i];
        if (suits(able, shape, profile))
            break;
    }
    return able;
}
