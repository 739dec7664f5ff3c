/*
 * The rows of one-row products with weights that are not quantized. Workgroups that hold x and
 * stream the weights past it start only once, because there are as many as the device runs at once.
 * If x is long, a workgroup has twice the invocations, so that each holds as little. If the weights
 * are not whole vectors of 16 bytes, many small workgroups each read x again.
 */
#include "op/matmul/matvec_choice.h"

#include "base/base.h"

#define HELD_ELEMENTS 8 /* 16-bit elements in 16 bytes */

/* clang-format off */
static const matvec_class classes[] = {
    /* {name, settings, conditions}, threads, columns, most held, workgroups a unit */
    {{"held",      ON_NATIVE, NEEDS_SHUFFLES}, 256, 2, 4, 2},
    {{"held_long", ON_NATIVE, NEEDS_SHUFFLES}, 512, 2, 8, 1},
    {{"quads",     ON_ALL,    0},              128, 4, 0, 0},
};
/* clang-format on */

uint32_t matvec_held(const matvec_class *c, const matvec_shape *s)
{
    uint32_t held = MIN(4u, c->most_held);
    while (held < c->most_held && divide_up(s->k, HELD_ELEMENTS * (uint64_t)held) > c->threads)
        held *= 2;
    return held;
}

team_division matvec_divide(const matvec_class *c, const matvec_shape *s,
                            const device_profile *profile)
{
    uint64_t lanes = divide_up(s->k, HELD_ELEMENTS * (uint64_t)matvec_held(c, s));
    return matmul_divide_teams(&(team_request){lanes, s->n, c->columns, c->threads, c->per_unit},
                               profile);
}

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const matvec_class *c = row;
    const matvec_shape *s = problem;
    if (c->most_held == 0)
        return (choice_fit){.can = true, .suits = true};
    team_division d = matvec_divide(c, s, profile);
    return (choice_fit){.can = s->aligned && profile->subgroup_size >= c->columns &&
                               d.team <= c->threads,
                        .suits = true,
                        .threads = (uint32_t)d.threads,
                        .shared_bytes = matmul_team_bytes(&d, c->columns),
                        .groups = d.groups};
}

const choice_table matvec_choice = {CHOICE_ROWS(classes), .fit = fit, .last_takes_all = true};

const matvec_class *matvec_choose(const matvec_shape *shape, const device_profile *profile,
                                  size_t forced)
{
    return choice_select(&matvec_choice, shape, profile, forced);
}
