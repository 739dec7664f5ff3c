/*
 * The classes of convolution. NATIVE: hardware; PORTABLE: software and translated drivers, where
 * barriers and shared memory cost more than they save (and RLXVK_MATMUL=scalar); TILED:
 * RLXVK_MATMUL=tiled. The last row of each setting has no conditions but the baseline's.
 */
#include "args/matmul.h"
#include "op/conv/conv_select.h"

enum setting { NATIVE = 1, PORTABLE = 2, TILED = 4 };
enum condition {
    FILLS = 1, /* only where its tiles keep (nearly) every compute unit busy */
    WHOLE = 2, /* only where its last tile of channels is more than half full */
    LONG = 4   /* only for more than half a tile of positions */
};

#define ANY         UINT64_MAX
#define SLICE_UNIT  32  /* a multiple of every step */
#define LEAST_SLICE 256 /* K elements below which a split costs more than it gives */
/* K elements an invocation sums at most: some software drivers end its loops at 65,535 rounds. */
#define LONGEST_SLICE 32768
#define MOST_PARTIALS (UINT64_C(1) << 26)

/* clang-format off */
#define DIRECT CONV_FORM_DIRECT
#define TILES  CONV_FORM_TILED
#define BOTH   (NATIVE | TILED)
#define ZIGZAG TILE_LOOP_ZIGZAG
const conv_class conv_classes[] = {
    /* name, form, settings, threads, tile, registers, step, loop, least and most m, conditions */
    {"direct_depthwise", DIRECT, BOTH,       0,   1,   2,  1, 2,  0, 0,  0,   1, 0},
    {"direct_few",       DIRECT, NATIVE,     0,   8,   2,  8, 2,  0, 0,  0,   8, 0},
    {"tiled_32x128",     TILES,  BOTH,     128,  32, 128,  4, 8, 16, ZIGZAG,  0,  32, FILLS},
    {"tiled_128x128",    TILES,  BOTH,    256, 128, 128,  8, 8, 16, ZIGZAG, 65, ANY, WHOLE | FILLS},
    {"tiled_64x128",     TILES,  BOTH,     128,  64, 128,  8, 8, 16, ZIGZAG, 33, ANY, FILLS},
    {"tiled_64x64",      TILES,  BOTH,     128,  64,  64,  8, 4, 16, ZIGZAG, 33, ANY, LONG},
    {"tiled_32x32",      TILES,  BOTH,      64,  32,  32,  4, 4, 32, ZIGZAG,  0, ANY, 0},
    {"direct_block",     DIRECT, PORTABLE,  32,   8,   4,  8, 4,  0, 0,  4, ANY, 0},
    {"direct_single",    DIRECT, PORTABLE,  32,   1,   4,  1, 4,  0, 0,  0, ANY, 0},
};
/* clang-format on */
const size_t conv_class_count = ARRAY_COUNT(conv_classes);

static uint64_t shared_bytes(const conv_class *c)
{
    if (c->form != CONV_FORM_TILED)
        return 0;
    /* Two tiles with eight quads of padding each, what a step's rows mean, a flag. */
    return ((c->tile_m + c->tile_n + 5u) * c->step + 64 + 1) * sizeof(float);
}

uint64_t conv_groups(const conv_class *c, const conv_shape *s, const device_profile *profile)
{
    uint64_t tiles = s->groups * divide_up(s->m, c->tile_m) * divide_up(s->n, c->tile_n);
    if (c->form == CONV_FORM_TILED)
        return tiles;
    return divide_up(tiles, c->threads ? c->threads : profile->workgroup_size);
}

/* Whether it can; whether it should is for suits. */
static bool is_able(const conv_class *c, const conv_shape *s, const device_profile *profile)
{
    if (c->form != CONV_FORM_TILED && s->k > LONGEST_SLICE)
        return false; /* only tiles can be split */
    return c->threads <= profile->max_workgroup_invocations &&
           shared_bytes(c) <= profile->shared_memory_bytes && s->m <= c->most_m;
}

static bool suits(const conv_class *c, const conv_shape *s, const device_profile *profile)
{
    uint64_t rest = s->m % c->tile_m;
    if (!is_able(c, s, profile) || s->m < c->least_m)
        return false;
    if ((c->conditions & WHOLE) && rest && rest * 2 <= c->tile_m)
        return false;
    if ((c->conditions & LONG) && s->n * 2 <= c->tile_n)
        return false;
    return !(c->conditions & FILLS) || profile_filled(profile, conv_groups(c, s, profile));
}

const conv_class *conv_select(const conv_shape *shape, const device_profile *profile,
                              unsigned choice, size_t forced)
{
    if (forced < conv_class_count && is_able(&conv_classes[forced], shape, profile))
        return &conv_classes[forced];
    bool portable = profile->portable || profile->kind == RLXVK_DEVICE_CPU;
    unsigned setting = choice == MATMUL_TILED                ? TILED
                       : choice == MATMUL_SCALAR || portable ? PORTABLE
                                                             : NATIVE;
    size_t i = 0;
    if (setting == PORTABLE && shape->k > LONGEST_SLICE)
        setting = TILED;
    while (i + 1 < conv_class_count &&
           (!(conv_classes[i].settings & setting) || !suits(&conv_classes[i], shape, profile)))
        i++;
    return &conv_classes[i];
}

uint64_t conv_slice(const conv_class *c, const conv_shape *s, const device_profile *profile)
{
    uint64_t outputs = s->groups * s->m * s->n, tiles = conv_groups(c, s, profile);
    uint64_t wanted = 2 * (uint64_t)profile->compute_units;
    bool too_long = s->k > LONGEST_SLICE;
    if (c->form != CONV_FORM_TILED || outputs == 0 || (tiles * 2 > wanted && !too_long))
        return s->k;
    uint64_t most_partials = MIN(MOST_PARTIALS, profile->max_binding_bytes / sizeof(float));
    uint64_t useful = MAX(wanted / tiles, divide_up(s->k, LONGEST_SLICE));
    uint64_t splits = MIN(MIN(useful, s->k / LEAST_SLICE), most_partials / outputs);
    return splits > 1 ? round_up(divide_up(s->k, splits), SLICE_UNIT) : s->k;
}
