/*
 * Chooses a variant of the radix sort. Larger blocks write longer runs and have fewer counts to
 * sum. Ballots rank eight bits at once; counters need two passes of four bits.
 */
#include "op/movement/radix_select.h"
#include "args/movement.h"

#include "base/base.h"

#define START_WORDS 576 /* shared, of radix_move.glsl, besides the pool */

/* clang-format off */
static const radix_class classes[] = {
    /* {name, settings, conditions}, threads, ranking */
    {{"ballots_512",  ON_NATIVE, NEEDS_BALLOTS | IF_FILLS}, 512, RADIX_BY_BALLOTS},
    {{"ballots_256",  ON_NATIVE, NEEDS_BALLOTS | IF_FILLS}, 256, RADIX_BY_BALLOTS},
    {{"ballots_128",  ON_NATIVE, NEEDS_BALLOTS},            128, RADIX_BY_BALLOTS},
    {{"counters_256", ON_ALL,    0},                        256, RADIX_BY_COUNTERS},
    {{"counters_128", ON_ALL,    0},                        128, RADIX_BY_COUNTERS},
};
/* clang-format on */

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const radix_class *c = row;
    const radix_shape *s = problem;
    uint64_t block = (uint64_t)c->threads * RADIX_ITEMS;
    uint64_t counters = RADIX_DIGITS * (uint64_t)c->threads / MAX(profile->subgroup_size, 1);
    uint64_t pool = c->ranking != RADIX_BY_COUNTERS ? MAX(block, counters) : block;
    return (choice_fit){.can = true,
                        .suits = true,
                        .threads = c->threads,
                        .shared_bytes = 4 * (pool + START_WORDS),
                        .groups = s->rows * divide_up(s->extent, block)};
}

const choice_table radix_choice = {CHOICE_ROWS(classes), .fit = fit, .last_takes_all = true};

const radix_class *radix_select(const radix_shape *s, const device_profile *profile, size_t forced)
{
    return choice_select(&radix_choice, s, profile, forced);
}
