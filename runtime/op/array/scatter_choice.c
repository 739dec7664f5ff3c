/*
 * The paths of scatter and scatter_nd. Some paths need lines along the last axis. For another axis
 * they permute the tensors first and permute the result back, so everything is moved twice. This is
 * still faster than tiles of the tensors as they lie. Such tiles read lines of another axis only
 * eight neighbours at a time, and once for each range of rows. Tiles are for lines that are too
 * long for one workgroup.
 */
#include "op/array/scatter_choice.h"
#include "args/array.h"
#include "args/movement.h"

#include "base/base.h"

#define FEWEST_SLOTS   64
#define LEAST_SUBGROUP 4
#define MOST_ROUNDS    60000 /* of an invocation's loops, on software drivers */
/* Tiles suit if their ranges read at most MOST_REREADS times as many indices as the line has
 * elements or updates. They must also keep the device busy, unless the line is short. */
#define MOST_REREADS 8
#define SHORT_LINE   4096

/* clang-format off */
static const scatter_path paths[] = {
    /* {name, settings, conditions}, kind, columns, items, slots */
    {{"direct", ON_ALL,    0},                              SCATTER_BY_DIRECT, 0, 0, 0},
    {{"lines",  ON_ALL,    0},                              SCATTER_BY_LINES,  0, 0, 0},
    {{"tiles",  ON_ALL,    0},                              SCATTER_BY_TILES,  8, 0, 8192},
    {{"owners", ON_NATIVE, NEEDS_SHUFFLES | NEEDS_BALLOTS}, SCATTER_BY_OWNERS, 1, 8, 4096},
    {{"split",  ON_ALL,    0},                              SCATTER_BY_SPLIT,  0, 0, 0},
    {{"marks",  ON_ALL,    0},                              SCATTER_BY_MARKS,  0, 0, 0},
    {{"sort",   ON_ALL,    0},                              SCATTER_BY_SORT,   0, 0, 0},
};
/* clang-format on */

/* The owners are subgroups. In each subgroup, invocation i counts the updates for owner i. So there
 * are at most as many owners as a subgroup has invocations. */
static uint32_t threads_of(const scatter_path *c, const device_profile *p)
{
    uint32_t most = MIN(p->max_workgroup_invocations, RADIX_THREADS);
    return c->kind == SCATTER_BY_OWNERS ? MIN(most, p->subgroup_size * p->subgroup_size) : most;
}

static uint64_t shared_bytes(const scatter_path *c, const scatter_division *d,
                             const device_profile *p)
{
    uint64_t owners = d->threads / MAX(p->subgroup_size, 1);
    bool deals = c->kind == SCATTER_BY_OWNERS;
    return 4 * (d->slots + (deals ? 2ull * c->items * d->threads + owners * owners : 0));
}

scatter_division scatter_divide(const scatter_path *c, const scatter_problem *s,
                                const device_profile *profile)
{
    uint64_t inner = c->columns > 1 ? s->inner : 1, lines = s->lines * s->inner / inner;
    scatter_division d = {.threads = threads_of(c, profile),
                          .columns = power_of_two_from(inner, c->columns),
                          .slots = c->slots};
    while (d.slots > FEWEST_SLOTS && (d.slots / 2 >= s->rows * d.columns ||
                                      shared_bytes(c, &d, profile) > profile->shared_memory_bytes))
        d.slots /= 2;
    d.tiles = divide_up(inner, d.columns);
    d.ranges = divide_up(s->rows, d.slots / d.columns);
    d.groups = lines * d.tiles * d.ranges;
    return d;
}

static choice_fit fit_tiles(const scatter_path *c, const scatter_problem *s,
                            const device_profile *p)
{
    scatter_division d = scatter_divide(c, s, p);
    bool owners = c->kind == SCATTER_BY_OWNERS;
    uint64_t batch = (uint64_t)d.threads * (owners ? c->items : SCATTER_TILE_ITEMS);
    /* If all updates go to one element, owners apply them one by one. */
    uint64_t rounds = s->updates * d.columns / (owners ? 1 : MAX(batch, 1));
    bool busy = s->updates <= SHORT_LINE || profile_filled(p, d.groups);
    return (choice_fit){
        .can = s->ordered == owners && !s->nd && s->updates > 0 &&
               (!owners || p->subgroup_size >= LEAST_SUBGROUP) &&
               (rounds < MOST_ROUNDS / 2 || (owners && !profile_is_software(p))),
        .suits = busy && d.ranges * s->updates <= MOST_REREADS * MAX(s->rows, s->updates),
        .threads = d.threads,
        .shared_bytes = shared_bytes(c, &d, p),
    };
}

static bool can_lines(const scatter_problem *s, const device_profile *p)
{
    uint32_t most = RADIX_ITEMS * MIN(p->max_workgroup_invocations, RADIX_THREADS);
    return !s->ordered && !s->nd && s->updates > 0 && MAX(s->rows, s->updates) <= most;
}

static bool can_split(const scatter_problem *s, const device_profile *p)
{
    return s->ordered && !s->nd && s->updates > 0 &&
           p->max_workgroup_invocations >= RADIX_THREADS &&
           s->updates <= RADIX_ITEMS * RADIX_THREADS && s->rows <= 1u << (31 - SCATTER_ITEM_BITS);
}

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const scatter_path *c = row;
    const scatter_problem *s = problem;
    switch (c->kind) {
    case SCATTER_BY_DIRECT:
        return (choice_fit){.can = s->updates <= SCATTER_DIRECT_MOST, .suits = true};
    case SCATTER_BY_LINES:
        return (choice_fit){.can = can_lines(s, profile), .suits = true};
    case SCATTER_BY_SPLIT:
        return (choice_fit){.can = can_split(s, profile), .suits = true};
    case SCATTER_BY_MARKS:
        return (choice_fit){.can = !s->ordered && s->updates > 0, .suits = true};
    case SCATTER_BY_SORT:
        return (choice_fit){.can = s->ordered && s->updates > 0, .suits = true};
    default:
        return fit_tiles(c, s, profile);
    }
}

const choice_table scatter_choice = {CHOICE_ROWS(paths), .fit = fit};

const scatter_path *scatter_find_path(const scatter_problem *s, const device_profile *profile,
                                      size_t forced)
{
    return choice_select(&scatter_choice, s, profile, forced);
}
