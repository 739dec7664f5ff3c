/*
 * Chooses a variant of scatter_add. All variants add the updates of a row one by one in order,
 * except "parts". That one groups its sums differently, but in the same way in every run. It is
 * used only if it is asked for.
 */
#include "args/movement.h"
#include "op/movement/scatter_add_choice.h"

/* Limits of "direct". Comparing with all indices is cheaper than sorting them up to so many
 * comparisons. There must also be few workgroups, or enough columns for their threads. On a CPU
 * each workgroup is expensive. */
#define MOST_COMPARISONS (1u << 24)
#define MOST_GROUPS      (1u << 16)
#define MOST_CPU_GROUPS  (1u << 10)
#define FEWEST_COLUMNS   64
/* A row is long if it has so many updates on average. Long rows take "runs" up to so many columns.
 * They also do if one invocation for each element would leave the device idle. */
#define LONG_ROW      64
#define LONG_COLUMNS  64
#define BUSY_ELEMENTS 1024 /* of a compute unit */

/* One round of a loop adds so many updates of a run. If a device's loops do not end early, one
 * dispatch adds more, but not so many that it takes seconds. */
#define RUN_OF_ROUND   4
#define LONGEST_ANYHOW (1u << 22)

/* clang-format off */
static const scatter_class classes[] = {
    {{"direct",   ON_ALL, 0}, SCATTER_DIRECT},
    {{"runs",     ON_ALL, 0}, SCATTER_RUNS},
    {{"elements", ON_ALL, 0}, SCATTER_ELEMENTS},
    {{"parts",    ON_ALL, 0}, SCATTER_PARTS},
};
/* clang-format on */

static bool suits_direct(const scatter_shape *s, const device_profile *profile)
{
    uint64_t rows = s->outer * s->rows;
    if (rows * s->updates > MOST_COMPARISONS)
        return false;
    if (profile_is_software(profile))
        return rows <= MOST_CPU_GROUPS;
    return rows <= MOST_GROUPS || s->columns >= FEWEST_COLUMNS;
}

static bool suits_runs(const scatter_shape *s, const device_profile *profile)
{
    uint64_t busy = (uint64_t)profile->compute_units * BUSY_ELEMENTS;
    return s->updates / s->rows >= LONG_ROW &&
           (s->columns <= LONG_COLUMNS || s->outer * s->rows * s->columns <= busy);
}

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const scatter_class *c = row;
    const scatter_shape *s = problem;
    switch (c->way) {
    case SCATTER_DIRECT:
        return (choice_fit){.can = s->updates <= SCATTER_DIRECT_UPDATES && !s->keyed,
                            .suits = s->updates == 0 || suits_direct(s, profile)};
    case SCATTER_RUNS:
        return (choice_fit){.can = s->updates > 0 && (!profile_is_software(profile) ||
                                                      s->outer * s->rows <= MOST_CPU_GROUPS),
                            .suits = suits_runs(s, profile)};
    case SCATTER_PARTS:
        return (choice_fit){.can = s->updates > 0 && s->outer == 1 && !s->clamped && !s->keyed &&
                                   s->rows * s->columns <= SCATTER_PARTS_ELEMENTS};
    default:
        return (choice_fit){.can = s->updates > 0, .suits = true};
    }
}

const choice_table scatter_add_choice = {CHOICE_ROWS(classes), .fit = fit};

const scatter_class *scatter_choose(const scatter_shape *s, const device_profile *profile,
                                    size_t forced)
{
    return choice_select(&scatter_add_choice, s, profile, forced);
}

uint64_t scatter_longest_run(const device_profile *profile)
{
    return profile_is_software(profile) ? SCATTER_MOST_ROUNDS * RUN_OF_ROUND : LONGEST_ANYHOW;
}
