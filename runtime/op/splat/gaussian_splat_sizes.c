/* The offsets of the sections of prepare's result. */
#include "op/splat/gaussian_splat.h"

splat_sizes gaussian_splat_sizes(const rlxvk_gaussian_splat_options *o, uint64_t count)
{
    uint64_t n = MAX(count, 1);
    splat_sizes s = {.count = count,
                     .tiles_wide = divide_up(o->width, o->tile_size),
                     .tiles_high = divide_up(o->height, o->tile_size),
                     .valid = 4 * n,
                     .local = 5 * n,
                     .inverse = 8 * n,
                     .rotation = 11 * n,
                     .list = SPLAT_WORDS * n};
    s.ranges = s.list + o->max_list_entries;
    s.rays = s.ranges + 2 * s.tiles_wide * s.tiles_high;
    s.parameters = s.rays + 3ull * o->width * o->height;
    s.words = s.parameters + SPLAT_PARAMETERS;
    return s;
}

splat_sizes gaussian_splat_scene_sizes(const rlxvk_graph *g, const node *n)
{
    const splat_attributes *a = n->attributes;
    uint64_t count = shape_numel(input_shape(g, n, SPLAT_POSITIONS)) / 3;
    splat_sizes s = gaussian_splat_sizes(&a->options, count);
    s.coefficients = count ? shape_numel(input_shape(g, n, SPLAT_SH)) / (3 * count) : 0;
    return s;
}
