/*
 * The classes of matrix product. A setting is what the device and the caller ask for: NATIVE
 * (default on hardware), PORTABLE (software and translated drivers, where barriers and shared
 * memory cost more than they save, and RLXVK_MATMUL=scalar), TILED (RLXVK_MATMUL=tiled). The last
 * row of each setting has no conditions but the baseline's.
 */
#include "op/matmul_select.h"

enum setting { NATIVE = 1, PORTABLE = 2, TILED = 4 };
enum condition {
    FILLS = 1, /* only where its tiles keep (nearly) every compute unit busy */
    MIXED = 2  /* only where just one operand is transposed; elsewhere smaller tiles were faster */
};

#define ANY           UINT64_MAX
#define TILE_STEP     16  /* K elements a step of matmul_tiled */
#define LEAST_SLICE   256 /* K elements below which a split costs more than it gives */
#define MOST_PARTIALS (UINT64_C(1) << 26)

/* clang-format off */
#define SCALAR  MATMUL_FORM_SCALAR
#define VECTOR_ MATMUL_FORM_VECTOR
#define SWAPPED MATMUL_FORM_SWAPPED
#define TILES   MATMUL_FORM_TILED
#define BOTH    (NATIVE | TILED)
const matmul_class matmul_classes[] = {
    /* name, form, settings, threads, tile, registers, least m n, most m n k, conditions */
    {"scalar_element", SCALAR,  NATIVE,    0,   1,   1, 1, 1,  0,  0,  16,  16, 128, 0},
    {"vector",         VECTOR_, NATIVE,  128,   8,   0, 0, 0,  0,  0,   8, ANY, ANY, 0},
    {"vector_swapped", SWAPPED, NATIVE,  128,   0,   8, 0, 0,  0,  0, ANY,   8, ANY, 0},
    {"tiled_large",    TILES,   BOTH,    256, 128, 128, 8, 8,  0,  0, ANY, ANY, ANY, MIXED | FILLS},
    {"tiled_wide",     TILES,   BOTH,    256, 128,  64, 8, 4,  0,  0, ANY, ANY, ANY, FILLS},
    {"tiled_medium",   TILES,   BOTH,    128,  64,  64, 8, 4, 33, 33, ANY, ANY, ANY, 0},
    {"tiled_small",    TILES,   BOTH,     64,  32,  32, 4, 4,  0,  0, ANY, ANY, ANY, 0},
    {"scalar_block",   SCALAR,  PORTABLE, 32,   8,   8, 8, 8,  4,  4, ANY, ANY, ANY, 0},
    {"scalar_row",     SCALAR,  PORTABLE, 16,   1,   4, 1, 4,  0,  4, ANY, ANY, ANY, 0},
    {"scalar_column",  SCALAR,  PORTABLE, 32,   8,   1, 8, 1,  4,  0, ANY, ANY, ANY, 0},
    {"scalar_single",  SCALAR,  PORTABLE, 32,   1,   1, 1, 1,  0,  0, ANY, ANY, ANY, 0},
};
/* clang-format on */
const size_t matmul_class_count = ARRAY_COUNT(matmul_classes);

const char *matmul_tag(const matmul_shape *shape)
{
    static const char *const tags[2][2] = {{"nn", "nt"}, {"tn", "tt"}};
    return tags[shape->transpose_a][shape->transpose_b];
}

uint64_t matmul_shared_bytes(const matmul_class *c)
{
    if (c->form != MATMUL_FORM_TILED)
        return 0; /* matvec's 16 KiB are the baseline */
    return (c->tile_m + c->tile_n + 8u) * TILE_STEP * sizeof(float);
}

uint32_t matmul_vector_columns(uint64_t vectors)
{
    return vectors > 1 && vectors <= 4 ? 4
                                       : 2; /* measured: few vectors want more columns in flight */
}

/* A b of [K, N] is read by 32 lanes of four columns. */
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
    uint64_t tiles = s->batch * divide_up(s->m, c->tile_m) * divide_up(s->n, c->tile_n);
    if (c->form == MATMUL_FORM_TILED)
        return tiles;
    return divide_up(tiles, c->threads ? c->threads : profile->workgroup_size);
}

/* Whether it can; whether it should is for suits. */
static bool is_able(const matmul_class *c, const matmul_shape *s, const device_profile *profile)
{
    return c->threads <= profile->max_workgroup_invocations &&
           matmul_shared_bytes(c) <= profile->shared_memory_bytes && s->m <= c->most_m &&
           s->n <= c->most_n && s->k <= c->most_k;
}

static bool suits(const matmul_class *c, const matmul_shape *s, const device_profile *profile)
{
    if (!is_able(c, s, profile) || s->m < c->least_m || s->n < c->least_n)
        return false;
    if ((c->conditions & MIXED) && s->transpose_a == s->transpose_b)
        return false;
    /* A wave that leaves an eighth of the units idle is still better than twice as many smaller
     * tiles. */
    return !(c->conditions & FILLS) ||
           matmul_groups(c, s, profile) * 8 >= profile->compute_units * 7u;
}

const matmul_class *matmul_select(const matmul_shape *shape, const device_profile *profile,
                                  unsigned choice, size_t forced)
{
    if (forced < matmul_class_count && is_able(&matmul_classes[forced], shape, profile))
        return &matmul_classes[forced];
    bool portable = profile->portable || profile->kind == RLXVK_DEVICE_CPU;
    unsigned setting = choice == MATMUL_TILED                ? TILED
                       : choice == MATMUL_SCALAR || portable ? PORTABLE
                                                             : NATIVE;
    size_t i = 0;
    while (i + 1 < matmul_class_count &&
           (!(matmul_classes[i].settings & setting) || !suits(&matmul_classes[i], shape, profile)))
        i++;
    return &matmul_classes[i];
}

uint64_t matmul_slice(const matmul_class *c, const matmul_shape *s, const device_profile *profile)
{
    bool vector = c->form == MATMUL_FORM_VECTOR || c->form == MATMUL_FORM_SWAPPED;
    uint64_t outputs = s->batch * s->m * s->n, groups = matmul_groups(c, s, profile);
    uint64_t wanted = (vector ? 8u : 2u) * (uint64_t)profile->compute_units;
    uint64_t least = vector && runs_along_k(c, s) ? 4 * LEAST_SLICE : LEAST_SLICE;
    if (c->form == MATMUL_FORM_SCALAR || outputs == 0 || groups * 2 > wanted)
        return s->k;
    uint64_t most_partials = MIN(MOST_PARTIALS, profile->max_binding_bytes / sizeof(float));
    uint64_t splits = MIN(MIN(wanted / groups, s->k / least), most_partials / outputs);
    return splits > 1 ? round_up(divide_up(s->k, splits), 4 * TILE_STEP) : s->k;
}
