/* Cuts the work of a segment into submissions. */
#include "exec/slice.h"

enum { MOST_GROWTH = 4 };

/* ---- Boxes ---- */

uint64_t slice_box_at(const uint32_t grid[3], uint64_t first, uint64_t end, slice_box *out)
{
    uint64_t row = grid[0], plane = row * grid[1], left = end - first;
    uint64_t x = first % row, y = first / row % grid[1], z = first / plane;
    *out = (slice_box){{(uint32_t)x, (uint32_t)y, (uint32_t)z}, {grid[0], grid[1], 1}};
    if (x || left < row)
        out->count[0] = (uint32_t)MIN(left, row - x);
    if (x || left < row)
        out->count[1] = 1;
    else if (y || left < plane)
        out->count[1] = (uint32_t)MIN(left / row, grid[1] - y);
    else
        out->count[2] = (uint32_t)(left / plane);
    return (uint64_t)out->count[0] * out->count[1] * out->count[2];
}

/* ---- Sizes ---- */

/* How many of `count` workgroups, which take `ns` together, take `room`. */
static uint64_t fitting(uint64_t count, uint64_t ns, uint64_t room)
{
    double fits = (double)count * (double)room / (double)MAX(ns, 1);
    return fits >= (double)count ? count : (uint64_t)fits;
}

uint64_t slice_next(uint64_t count, uint64_t ns, uint64_t aim)
{
    return MAX(fitting(MOST_GROWTH * count, MOST_GROWTH * ns, aim), 1);
}

/* ---- Parts ---- */

typedef struct packing {
    uint64_t aim;
    piece_list *pieces;
    slice_part_list *parts;
    bool open; /* the last part takes more */
} packing;

/* Continues the last piece if the two are ranges of one step. */
static bool join(packing *k, const slice_part *part, const piece *p)
{
    piece *last = part->count ? &k->pieces->items[k->pieces->count - 1] : NULL;
    if (!last || !p->count || last->step != p->step || last->first + last->count != p->first)
        return false;
    last->count += p->count;
    last->ns += p->ns;
    return true;
}

static rlxvk_status put(packing *k, const piece *p)
{
    if (!k->open && !VECTOR_PUSH(k->parts, ((slice_part){.first = (uint32_t)k->pieces->count})))
        return status_fail_memory("submissions");
    slice_part *part = &k->parts->items[k->parts->count - 1];
    k->open = true;
    part->ns += p->ns;
    if (join(k, part, p))
        return RLXVK_OK;
    if (!VECTOR_PUSH(k->pieces, *p))
        return status_fail_memory("submissions");
    part->count++;
    return RLXVK_OK;
}

/* Takes the first `count` workgroups from a piece. */
static piece take(piece *from, uint64_t count)
{
    piece taken = *from;
    taken.count = count;
    taken.ns = (uint64_t)((double)from->ns * (double)count / (double)from->count);
    from->first += count;
    from->count -= count;
    from->ns -= MIN(taken.ns, from->ns);
    return taken;
}

static rlxvk_status pack(packing *k, piece p)
{
    rlxvk_status status = RLXVK_OK;
    for (;;) {
        uint64_t used = k->open ? k->parts->items[k->parts->count - 1].ns : 0;
        uint64_t room = k->aim - MIN(used, k->aim), fits = fitting(p.count, p.ns, room);
        if (p.ns <= room || (!k->open && p.count <= 1))
            return put(k, &p);
        if (fits || !k->open) {
            piece taken = take(&p, MAX(fits, 1));
            TRY(put(k, &taken));
        }
        k->open = false;
    }
error:
    return status;
}

rlxvk_status slice_pack(const piece_list *measured, uint64_t aim, piece_list *pieces,
                        slice_part_list *parts)
{
    packing k = {.aim = aim, .pieces = pieces, .parts = parts};
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < measured->count; i++) {
        k.open = k.open && aim;
        TRY(aim ? pack(&k, measured->items[i]) : put(&k, &measured->items[i]));
    }
error:
    return status;
}
