/* Chooses the largest workgroup that fits, if its blocks keep (nearly) every compute unit busy.
 * Otherwise the smallest that fits. */
#include "args/matmul.h"
#include "op/attention/attention_matrix.h"
#include "op/matmul/matrix_unit_choice.h"

#define MOST_WIDTH       128
#define MOST_PARTS       8
#define AHEAD_SHARE      8  /* an eighth of the registers is for keys and values loaded ahead */
#define OTHER_REGISTERS  40 /* of gradients: addresses, statistics, fragments of tiles */
#define OPERAND_COPIES   4  /* of a left operand, unless matrices are in lanes; as on RDNA3 */
#define STATISTICS_BYTES 8  /* of an other row */

/* What a workgroup does: attention, or one pass of its gradients. */
typedef enum matrix_work { FORWARD, OF_QUERIES, OF_KEYS, OF_KEYS_APART } matrix_work;

uint64_t attention_matrix_shared_bytes(const attention_matrix_plan *p, uint64_t width)
{
    uint64_t values = 2 * p->tile * (width / 4 + 2) * 2;
    uint64_t unit = (uint64_t)p->unit.m * p->unit.n, query = (uint64_t)p->unit.m * p->unit.k / 2;
    return sizeof(uint32_t) * (values + p->parts * (p->direct ? query : unit));
}

/* Registers of a thread for the rows that are loaded ahead: a tile of each of two tensors. */
static uint64_t ahead_of(const attention_matrix_plan *p, uint64_t width)
{
    return 2 * p->tile * width / p->threads;
}

/* Do the registers suffice? A pass of gradients has its own rows of two tensors in halves, one or
 * two sums as large as these together, and the scores and dp of the tile. Unless matrices are in
 * lanes, lanes may hold left operands several times, and elements go through memory: ACO shows that
 * both take this much. */
static bool has_registers(const attention_matrix_plan *p, uint64_t width, matrix_work work,
                          const device_profile *profile)
{
    uint64_t ahead = ahead_of(p, width), lanes = profile->subgroup_size;
    uint64_t own = width * p->unit.m / lanes, scores = 2ull * p->tile * p->unit.m / lanes;
    uint64_t held = p->direct ? own : OPERAND_COPIES * own;
    uint64_t others = p->direct ? OTHER_REGISTERS : 2 * OTHER_REGISTERS;
    uint64_t all = held + (work == OF_KEYS ? 2 : 1) * own + scores + ahead + others;
    uint32_t most = profile_registers(profile, p->threads);
    return work == FORWARD ? ahead <= most / AHEAD_SHARE : all <= most;
}

static bool fits(const attention_matrix_plan *p, const attention_shape *s, matrix_work work,
                 const device_profile *profile)
{
    const matrix_shape *u = &p->unit;
    uint64_t statistics = work == FORWARD ? 0 : p->tile * STATISTICS_BYTES;
    return p->threads <= profile->max_workgroup_invocations &&
           p->tile * (s->width / 4) % p->threads == 0 &&
           p->rows * profile->subgroup_size == MATRIX_LANES * u->m &&
           u->n % (2 * MATRIX_LANES) == 0 && (u->k == u->n || u->k == 2 * u->n) &&
           p->tile % u->k == 0 && has_registers(p, s->width, work, profile) &&
           attention_matrix_shared_bytes(p, s->width) + statistics <= profile->shared_memory_bytes;
}

/* All matrix units that fits() accepts have this number of columns or a multiple. */
bool attention_matrix_takes(uint64_t width, rlxvk_precision precision)
{
    return (precision == RLXVK_PRECISION_F16 || precision == RLXVK_PRECISION_BF16) && width > 0 &&
           width <= MOST_WIDTH && width % (2 * MATRIX_LANES) == 0;
}

/* Chooses the longest tiles that fit. Software drivers get short ones, because their compile time
 * grows with the unrolled code. */
static bool choose_tile(attention_matrix_plan *p, const attention_shape *s, matrix_work work,
                        const device_profile *profile)
{
    uint32_t longest = profile_is_software(profile) ? 16 : 64;
    for (p->tile = longest; p->tile >= 16; p->tile /= 2)
        if (fits(p, s, work, profile))
            return true;
    return false;
}

/* The plan for `heads` times `own` rows. */
static attention_matrix_plan make_plan(const attention_shape *s, uint64_t heads, uint64_t own,
                                       matrix_work work, const device_profile *profile,
                                       rlxvk_precision precision, bool in_lanes)
{
    attention_matrix_plan best = {0};
    matrix_shape unit = matrix_unit(precision, profile);
    if (unit.m == 0 || !profile->subgroup_shuffle || s->queries < unit.m || s->keys == 0 ||
        !attention_matrix_takes(s->width, precision) || s->width % unit.n || s->width % unit.k)
        return best;
    for (uint32_t parts = 1; parts <= MOST_PARTS; parts *= 2) {
        attention_matrix_plan p = {.unit = unit,
                                   .parts = parts,
                                   .rows = MATRIX_LANES * unit.m / profile->subgroup_size,
                                   .direct = in_lanes,
                                   .threads = parts * profile->subgroup_size};
        p.blocks = s->batch * heads * divide_up(own, (uint64_t)parts * unit.m);
        if (choose_tile(&p, s, work, profile) &&
            (best.parts == 0 || profile_filled(profile, p.blocks)))
            best = p;
    }
    return best;
}

attention_matrix_plan attention_matrix_make_plan(const attention_shape *s,
                                                 const device_profile *profile,
                                                 rlxvk_precision precision, bool in_lanes)
{
    return make_plan(s, s->heads, s->queries, FORWARD, profile, precision, in_lanes);
}

attention_matrix_passes attention_matrix_plan_passes(const attention_shape *s,
                                                     const device_profile *profile,
                                                     rlxvk_precision precision, bool in_lanes)
{
    attention_matrix_passes p = {.queries = make_plan(s, s->heads, s->queries, OF_QUERIES, profile,
                                                      precision, in_lanes),
                                 .keys = make_plan(s, s->kv_heads, s->keys, OF_KEYS, profile,
                                                   precision, in_lanes)};
    p.apart = p.keys.parts == 0;
    if (p.apart)
        p.keys = make_plan(s, s->kv_heads, s->keys, OF_KEYS_APART, profile, precision, in_lanes);
    return p.queries.parts && p.keys.parts ? p : (attention_matrix_passes){0};
}
