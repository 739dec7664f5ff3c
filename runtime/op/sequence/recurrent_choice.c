/*
 * How a recurrent layer goes through its steps. If W_hh is small enough for one workgroup to read
 * it in each step, one workgroup does a whole sequence. Otherwise every step is spread over the
 * device. If there is a batch, it uses tiles, because batch rows then share each weight that is
 * read.
 */
#include "op/sequence/recurrent_choice.h"

/* The most weights that one workgroup reads in each step. With more, it pays to make each step a
 * dispatch over the whole device. */
#define MOST_SEQUENCE_WEIGHTS 65536
/* With fewer steps, a new layout of the weights does not pay. */
#define FEWEST_STEPS 3
#define FEWEST_ROWS  4

/* clang-format off */
static const recurrent_class classes[] = {
    /* {name, settings, conditions}, way, threads, octets, stage, buffers */
    {{"sequences",     ON_ALL,      0},        RECURRENT_SEQUENCES,   0, 0,   0, 0},
    {{"tiles_32_256",  ON_NATIVE,   IF_FILLS}, RECURRENT_TILES,     256, 4,  64, 2},
    {{"tiles_16_256",  ON_NATIVE,   IF_FILLS}, RECURRENT_TILES,     256, 2,  64, 2},
    {{"tiles_8_256",   ON_NATIVE,   0},        RECURRENT_TILES,     256, 1,  64, 2},
    {{"tiles_32_128",  ON_NATIVE,   0},        RECURRENT_TILES,     128, 4,  32, 2},
    {{"steps",         ON_ALL,      0},        RECURRENT_STEPS,       0, 0,   0, 0},
};
/* clang-format on */

uint64_t recurrent_tile_units(const recurrent_geometry *r)
{
    return RECURRENT_TILE_QUADS * (r->gates == 1 ? 4 : 1);
}

uint64_t recurrent_tile_quads(const recurrent_geometry *r)
{
    return r->directions * divide_up(r->hidden, recurrent_tile_units(r)) * RECURRENT_TILE_QUADS *
           r->hidden;
}

static choice_fit fit_tiles(const recurrent_class *c, const recurrent_geometry *r,
                            const device_profile *p)
{
    uint64_t rows = 8ull * c->octets, bands = divide_up(r->batch, rows);
    uint64_t h_bytes = 4 * r->directions * r->hidden * bands * rows;
    return (choice_fit){.can = 16 * recurrent_tile_quads(r) <= p->max_binding_bytes &&
                               h_bytes <= p->max_binding_bytes,
                        .suits = r->batch >= (c->octets == 1 ? FEWEST_ROWS : rows / 2 + 1) &&
                                 r->steps >= FEWEST_STEPS,
                        .threads = c->threads,
                        .shared_bytes = 16ull * RECURRENT_TILE_POOL * c->stage * c->buffers,
                        .groups =
                            r->directions * bands * divide_up(r->hidden, recurrent_tile_units(r))};
}

static choice_fit fit(const void *row, const void *problem, const device_profile *p)
{
    const recurrent_class *c = row;
    const recurrent_geometry *r = problem;
    if (c->way == RECURRENT_TILES)
        return fit_tiles(c, r, p);
    bool sequences = r->rows * r->hidden <= MOST_SEQUENCE_WEIGHTS && r->steps >= FEWEST_STEPS;
    return (choice_fit){.can = c->way == RECURRENT_STEPS || r->hidden <= RECURRENT_MOST_HIDDEN,
                        .suits = c->way == RECURRENT_STEPS || sequences};
}

const choice_table recurrent_choice = {CHOICE_ROWS(classes), .fit = fit, .last_takes_all = true};

const recurrent_class *recurrent_choose(const recurrent_geometry *r, const device_profile *profile,
                                        size_t forced)
{
    return choice_select(&recurrent_choice, r, profile, forced);
}
