/*
 * Which way a recurrent net is swept back. One workgroup may go alone while it can read W_hh often
 * enough; beyond, every step is spread over the device, by the largest tiles that fill it: each
 * reads weights for its batch rows once, and rows for its units.
 */
#include "op/sequence/recurrent_backward_select.h"

/* The most weights that one workgroup reads a step, as of the forward net. */
#define MOST_SWEEP_WEIGHTS 65536
#define MOST_SPLITS        16
#define MOST_THREADS       256
/* Loops of an invocation end silently after 65,535 rounds on a software driver. */
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

/* Software drivers run them in turns, and are quicker with few. */
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
    return MAX(preferred_threads(profile), 4u * c->quads * c->bands); /* one a sum */
}

uint64_t recurrent_backward_quads(const recurrent_backward_class *c, const recurrent_sweep *s)
{
    uint64_t quads = divide_up(s->hidden, 4);
    return c->quads ? round_up(quads, c->quads) : quads;
}

/* Several batch rows share what is read of W_hh where there are more than compute units. */
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
recurrent_backward_select(const recurrent_sweep *s, const device_profile *profile, size_t forced)
{
    return choice_select(&recurrent_backward_choice, s, profile, forced);
}
