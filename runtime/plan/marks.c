/*
 * See marks.h. This is a segment tree that is walked from the leaves up. Numbers only rise, so a
 * node never has to pass its numbers down.
 *
 * `whole` of a node holds for every byte below it. `some` holds for a range whose last piece is
 * below it. The highest number on a range is a maximum: of `some` over the nodes that cover it, and
 * of `whole` over the ancestors of its last piece. This finds every overlapping range: if two
 * ranges overlap, the one that ends first ends within the other.
 */
#include "plan/marks.h"

#include <stdlib.h>

bool marks_add(marks *m, byte_range range)
{
    return VECTOR_PUSH(&m->cuts, (byte_cut){range.space, range.first}) &&
           VECTOR_PUSH(&m->cuts, (byte_cut){range.space, range.first + range.size});
}

static int compare_cuts(const void *a, const void *b)
{
    const byte_cut *x = a, *y = b;
    if (x->space != y->space)
        return x->space < y->space ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

rlxvk_status marks_seal(marks *m)
{
    size_t kept = 0;
    if (m->cuts.count)
        qsort(m->cuts.items, m->cuts.count, sizeof *m->cuts.items, compare_cuts);
    for (size_t i = 0; i < m->cuts.count; i++)
        if (kept == 0 || compare_cuts(&m->cuts.items[kept - 1], &m->cuts.items[i]) != 0)
            m->cuts.items[kept++] = m->cuts.items[i];
    m->cuts.count = kept;
    for (m->leaves = 1; m->leaves < kept;)
        m->leaves *= 2;
    m->nodes = memory_zeroed(2 * (size_t)m->leaves, sizeof *m->nodes);
    return m->nodes ? RLXVK_OK : status_fail_memory("byte ranges");
}

void marks_destroy(marks *m)
{
    VECTOR_FREE(&m->cuts);
    memory_free(m->nodes);
    *m = (marks){0};
}

/* Always found, because every range was named before marks_seal. */
static uint32_t leaf_at(const marks *m, uint32_t space, uint64_t at)
{
    byte_cut cut = {space, at};
    const byte_cut *found = bsearch(&cut, m->cuts.items, m->cuts.count, sizeof cut, compare_cuts);
    return m->leaves + (uint32_t)(found - m->cuts.items);
}

static void raise_to(uint32_t *number, uint32_t to)
{
    *number = MAX(*number, to);
}

void marks_raise(marks *m, enum mark_kind kind, byte_range range, uint32_t number)
{
    if (range.size == 0)
        return;
    uint32_t from = leaf_at(m, range.space, range.first);
    uint32_t to = leaf_at(m, range.space, range.first + range.size);
    for (uint32_t a = from, b = to; a < b; a /= 2, b /= 2, m->visits++) {
        if (a & 1)
            raise_to(&m->nodes[a++].whole[kind], number);
        if (b & 1)
            raise_to(&m->nodes[--b].whole[kind], number);
    }
    for (uint32_t b = to - 1; b; b /= 2, m->visits++)
        raise_to(&m->nodes[b].some[kind], number);
}

uint32_t marks_highest(marks *m, enum mark_kind kind, byte_range range)
{
    uint32_t highest = 0;
    if (range.size == 0)
        return 0;
    uint32_t from = leaf_at(m, range.space, range.first);
    uint32_t to = leaf_at(m, range.space, range.first + range.size);
    for (uint32_t a = from, b = to; a < b; a /= 2, b /= 2, m->visits++) {
        if (a & 1)
            raise_to(&highest, m->nodes[a++].some[kind]);
        if (b & 1)
            raise_to(&highest, m->nodes[--b].some[kind]);
    }
    for (uint32_t b = to - 1; b; b /= 2, m->visits++)
        raise_to(&highest, m->nodes[b].whole[kind]);
    return highest;
}
