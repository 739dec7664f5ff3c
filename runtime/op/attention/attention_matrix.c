/* Chooses the largest workgroup that fits, if its blocks keep (nearly) every compute unit busy.
 * Otherwise the smallest that fits. */
#include "args/matmul.h"
#include "op/attention/attention_matrix.h"

#define MOST_WIDTH  128
#define MOST_PARTS  8
#define AHEAD_SHARE 8 /* an eighth of the registers is for keys and values loaded ahead */

uint64_t attention_matrix_shared_bytes(const attention_matrix_plan *p, uint64_t width)
{
    uint64_t values = 2 * p->tile_keys * (width / 4 + 2) * 2;
    uint64_t unit = (uint64_t)p->unit.m * p->unit.n, query = (uint64_t)p->unit.m * p->unit.k / 2;
    return sizeof(uint32_t) * (values + p->parts * (p->direct ? query : unit));
}

static bool fits(const attention_matrix_plan *p, const attention_shape *s,
                 const device_profile *profile)
{
    const matrix_shape *u = &p->unit;
    uint64_t quads = p->tile_keys * (s->width / 4);
    /* Each invocation loads its part of the next keys and values, two registers a quad. */
    uint64_t ahead = 2 * 2 * quads / p->threads;
    return p->threads <= profile->max_workgroup_invocations && quads % p->threads == 0 &&
           p->rows * profile->subgroup_size == MATRIX_LANES * u->m &&
           u->n % (2 * MATRIX_LANES) == 0 && (u->k == u->n || u->k == 2 * u->n) &&
           p->tile_keys % u->k == 0 &&
           ahead <= profile_registers(profile, p->threads) / AHEAD_SHARE &&
           attention_matrix_shared_bytes(p, s->width) <= profile->shared_memory_bytes;
}

/* A necessary condition on the width. All matrix units that fits() accepts have this number of
 * columns or a multiple. */
bool attention_matrix_takes_width(uint64_t width)
{
    return width > 0 && width <= MOST_WIDTH && width % (2 * MATRIX_LANES) == 0;
}

/* Chooses the longest tiles that fit. Software drivers get short ones, because their compile time
 * grows with the unrolled code. */
static bool choose_tile(attention_matrix_plan *p, const attention_shape *s,
                        const device_profile *profile)
{
    uint32_t longest = profile_is_software(profile) ? 16 : 64;
    for (p->tile_keys = longest; p->tile_keys >= 16; p->tile_keys /= 2)
        if (fits(p, s, profile))
            return true;
    return false;
}

attention_matrix_plan attention_matrix_make_plan(const attention_shape *s,
                                                 const device_profile *profile, bool in_lanes)
{
    attention_matrix_plan best = {0};
    matrix_shape unit = profile->matrix_f16;
    if (unit.m == 0 || !profile->subgroup_shuffle || s->queries < unit.m || s->keys == 0 ||
        !attention_matrix_takes_width(s->width) || s->width % unit.n || s->width % unit.k)
        return best;
    for (uint32_t parts = 1; parts <= MOST_PARTS; parts *= 2) {
        attention_matrix_plan p = {.unit = unit,
                                   .parts = parts,
                                   .rows = MATRIX_LANES * unit.m / profile->subgroup_size,
                                   .direct = in_lanes,
                                   .threads = parts * profile->subgroup_size};
        p.blocks = s->batch * s->heads * divide_up(s->queries, (uint64_t)parts * unit.m);
        if (choose_tile(&p, s, profile) && (best.parts == 0 || profile_filled(profile, p.blocks)))
            best = p;
    }
    return best;
}
