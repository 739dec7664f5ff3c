/*
 * How a recurrent net is swept back. If W_hh is small enough for one workgroup to read it in each
 * step, a workgroup does all steps. Otherwise every step is spread over the device, in the largest
 * tiles that fill it. A large tile is better, because it reads weights once for all its batch rows,
 * and batch rows once for all its units.
 */
#include "op/sequence/recurrent_backward_choice.h"

/* The most weights that one workgroup reads in each step, as in the forward net. */
#define MOST_SWEEP_WEIGHTS 65536
#define MOST_SPLITS        16
#define MOST_THREADS       256
/* On a software driver, an invocation's loops end without an error after 65,535 rounds. */
#define PORTABLE_STEPS 65535

/* clang-format off */
static const recurrent_backward_class classes[] = {
    /* {name, settings, conditions}, quads, bands, rows */
    {{"sequences_4", ON_ALL,      0},        0, 0, 4},
    {{"sequences",   ON_ALL,      0},        0, 0, 1},
    {{"tiles_32x32", ON_HARDWARE, IF_FILLS}, 8, 8, 4},
    {{"tiles_16x16", ON_ALL,      IF_FILLS}, 4, 4, 4},
    {{"tiles_8x8",   ON_ALL,      IF_FILLS}, 2, 2, 4},
    {{"tiles_8x4",   ON_ALL,      IF_FILLS}, 2, 1, 4},
    {{"tiles_4x4",   ON_ALL,      0},        1, 1, 4},
    {{"tiles_4x1",   ON_ALL,      0},        1, 1, 1},
};
/* clang-format on */

/* How many threads a workgroup has. Software drivers run threads in turn, so few are faster. */
static uint32_t preferred_threads(const device_profile *profile)
{
    uint32_t most =
        profile_is_software(profile) ? profile->workgroup_size : profile->max_workgroup_invocations;
    return most >= MOST_THREADS ? MOST_THREADS : 128;
}

uint32_t recurrent_backward_lanes(const recurrent_sweep *s)
{
    return sequence_lanes(divide_up(s->hidden, 4), 1, RECURRENT_MOST_HIDDEN / 4);
}

uint32_t recurrent_backward_splits(const recurrent_sweep *s, const device_profile *profile)
{
    return MIN(preferred_threads(profile) / recurrent_backward_lanes(s), MOST_SPLITS);
}

uint32_t recurrent_backward_threads(const recurrent_backward_class *c, const recurrent_sweep *s,
                                    const device_profile *profile)
{
    if (!c->quads)
        return recurrent_backward_lanes(s) * recurrent_backward_splits(s, profile);
    return MAX(preferred_threads(profile), 4u * c->quads * c->bands); /* one for each sum */
}

uint64_t recurrent_backward_quads(const recurrent_backward_class *c, const recurrent_sweep *s)
{
    uint64_t quads = divide_up(s->hidden, 4);
    return c->quads ? round_up(quads, c->quads) : quads;
}

/* If there are more batch rows than compute units, several rows share each weight that is read. */
static choice_fit fit_alone(const recurrent_backward_class *c, const recurrent_sweep *s,
                            const device_profile *p)
{
    uint32_t threads = recurrent_backward_threads(c, s, p);
    uint64_t weights = s->rows * s->hidden;
    return (
        choice_fit){.can = s->hidden <= RECURRENT_MOST_HIDDEN && s->rows <= RECURRENT_MOST_ROWS &&
                           (!p->portable || s->steps <= PORTABLE_STEPS),
                    .suits = weights <= MOST_SWEEP_WEIGHTS &&
                             (c->rows == 1 || (s->batch >= c->rows && s->batch > p->compute_units)),
                    .threads = threads,
                    .shared_bytes = (16ull * threads + 4ull * RECURRENT_MOST_ROWS) * c->rows};
}

static choice_fit fit(const void *row, const void *problem, const device_profile *p)
{
    const recurrent_backward_class *c = row;
    const recurrent_sweep *s = problem;
    if (!c->quads)
        return fit_alone(c, s, p);
    uint32_t threads = recurrent_backward_threads(c, s, p), lanes = (uint32_t)c->quads * c->bands;
    uint64_t rows = (uint64_t)c->bands * c->rows, part = MIN(threads / (4 * lanes), c->rows);
    uint64_t bands = divide_up(s->batch, rows), quads = recurrent_backward_quads(c, s);
    return (choice_fit){.can = 16 * quads * s->rows <= p->max_binding_bytes &&
                               4 * bands * rows * s->rows <= p->max_binding_bytes,
                        .suits = 2 * s->batch >= rows,
                        .threads = threads,
                        .shared_bytes = 16ull * threads * part,
                        .groups = quads / c->quads * bands};
}

const choice_table recurrent_backward_choice = {CHOICE_ROWS(classes), .fit = fit,
                                                .last_takes_all = true};

const recurrent_backward_class *
recurrent_backward_choose(const recurrent_sweep *s, const device_profile *profile, size_t forced)
{
    return choice_select(&recurrent_backward_choice, s, profile, forced);
}
