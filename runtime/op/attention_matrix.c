/* The largest workgroup whose blocks keep (nearly) every compute unit busy, and fits; else the
 * smallest that fits. */
#include "op/attention_matrix.h"

#define MOST_WIDTH 128
#define TILE_KEYS  32

uint64_t attention_matrix_shared_bytes(const attention_matrix_plan *p, uint64_t width)
{
    uint64_t values = 2 * p->tile_keys * (width / 8 + 1);
    uint64_t work = (uint64_t)p->parts * p->unit.m * (p->tile_keys / 4 + 1);
    return 16 * (values + work);
}

static bool fits(const attention_matrix_plan *p, const attention_shape *s,
                 const device_profile *profile)
{
    const matrix_shape *u = &p->unit;
    uint64_t quads = p->tile_keys * (s->width / 4);
    return p->threads <= profile->max_workgroup_invocations && quads % p->threads == 0 &&
           p->lanes * u->m == profile->subgroup_size && u->k == 8 * p->lanes &&
           u->n % (4 * p->lanes) == 0 && p->tile_keys % (8 * p->lanes) == 0 &&
           p->tile_keys >= 2 * u->n && p->tile_keys % u->k == 0 &&
           attention_matrix_shared_bytes(p, s->width) <= profile->shared_memory_bytes;
}

attention_matrix_plan attention_matrix_make_plan(const attention_shape *s,
                                                 const device_profile *profile)
{
    attention_matrix_plan best = {0};
    matrix_shape unit = profile->matrix_f16;
    if (unit.m == 0 || s->queries < unit.m || s->keys == 0 || s->width == 0 ||
        s->width > MOST_WIDTH || s->width % unit.n || s->width % unit.k)
        return best;
    for (uint32_t parts = 1; parts <= 8; parts *= 2) {
        attention_matrix_plan p = {.unit = unit,
                                   .parts = parts,
                                   .lanes = profile->subgroup_size / unit.m,
                                   .tile_keys = TILE_KEYS,
                                   .threads = parts * profile->subgroup_size};
        p.blocks = s->batch * s->heads * divide_up(s->queries, (uint64_t)parts * unit.m);
        bool fills = p.blocks * 8 >= profile->compute_units * 7u;
        if (fits(&p, s, profile) && (fills || best.parts == 0))
            best = p;
    }
    return best;
}
