/*
 * Places items in scratch memory. Several orders are tried. In each, every item gets the lowest
 * address that is free of all placed items live at the same time. The order with the smallest peak
 * wins.
 *
 * Placed items form a treap, sorted by address. Each node knows the lifetimes, the bytes and the
 * widest hole of its subtree. The search skips a whole subtree if none of its items is live at the
 * same time. It also skips it if all of them are live and no hole between them is wide enough.
 *
 * In the order of birth, dead items are removed, so all items in the tree are live and the search
 * takes logarithmic time. Other orders are often nearly as fast. They are given up if they are not.
 */
#include "plan/place.h"

#include <stdlib.h>

#define NONE UINT32_MAX

/* The limit of visited nodes for an order: so many per item, plus a base. The order of birth is
 * never given up. */
#define EFFORT_EACH 256
#define EFFORT_BASE (1u << 24)

typedef struct spot { /* a placed item, with totals of its subtree */
    uint32_t left, right, priority;
    uint32_t earliest_first, latest_first, earliest_last, latest_last;
    uint64_t low, high; /* the bytes that the subtree spans */
    uint64_t hole;      /* no hole between its items is wider */
} spot;

typedef struct placer {
    item *items;
    spot *spots;   /* per item */
    uint32_t root; /* NONE: nothing is placed */
    uint64_t block_bytes, visits, most_visits;
} placer;

/* ---- The tree ---- */

static uint64_t gap_between(uint64_t end, uint64_t start)
{
    return start > end ? start - end : 0;
}

/* Adds a subtree at higher addresses than `s`, or at the same one. */
static void join(spot *s, const spot *above)
{
    s->hole = MAX(MAX(s->hole, above->hole), gap_between(s->high, above->low));
    s->low = MIN(s->low, above->low);
    s->high = MAX(s->high, above->high);
    s->earliest_first = MIN(s->earliest_first, above->earliest_first);
    s->latest_first = MAX(s->latest_first, above->latest_first);
    s->earliest_last = MIN(s->earliest_last, above->earliest_last);
    s->latest_last = MAX(s->latest_last, above->latest_last);
}

static spot alone(const item *it, uint32_t priority)
{
    return (spot){NONE,      NONE,      priority,
                  it->first, it->first, it->last,
                  it->last,  it->trial, it->trial + it->size,
                  0};
}

/* Updates the sums of a node after a change below it. */
static void sum_up(placer *p, uint32_t id)
{
    spot *s = &p->spots[id], own = alone(&p->items[id], s->priority), sum = own;
    if (s->left != NONE) {
        sum = p->spots[s->left];
        join(&sum, &own);
    }
    if (s->right != NONE)
        join(&sum, &p->spots[s->right]);
    sum.left = s->left;
    sum.right = s->right;
    sum.priority = s->priority;
    *s = sum;
}

/* Items at the same address live one after the other, so their first steps order them. */
static bool is_before(const item *it, uint64_t at, uint32_t first)
{
    return it->trial != at ? it->trial < at : it->first < first;
}

static void split(placer *p, uint32_t id, uint64_t at, uint32_t first, uint32_t *below,
                  uint32_t *above)
{
    if (id == NONE) {
        *below = *above = NONE;
        return;
    }
    spot *s = &p->spots[id];
    if (is_before(&p->items[id], at, first)) {
        split(p, s->right, at, first, &s->right, above);
        *below = id;
    } else {
        split(p, s->left, at, first, below, &s->left);
        *above = id;
    }
    sum_up(p, id);
}

static uint32_t merge(placer *p, uint32_t below, uint32_t above)
{
    if (below == NONE || above == NONE)
        return below == NONE ? above : below;
    bool below_stays = p->spots[below].priority > p->spots[above].priority;
    uint32_t top = below_stays ? below : above;
    if (below_stays)
        p->spots[top].right = merge(p, p->spots[top].right, above);
    else
        p->spots[top].left = merge(p, below, p->spots[top].left);
    sum_up(p, top);
    return top;
}

static void insert(placer *p, uint32_t id)
{
    const item *it = &p->items[id];
    uint32_t below, above;
    split(p, p->root, it->trial, it->first, &below, &above);
    p->spots[id] = alone(it, (id + 1) * 0x9e3779b1u); /* pseudo-random, but the same in every run */
    p->root = merge(p, merge(p, below, id), above);
}

static void erase(placer *p, uint32_t id)
{
    const item *it = &p->items[id];
    uint32_t below, above;
    split(p, p->root, it->trial, it->first, &below, &above);
    split(p, above, it->trial, it->first + 1, &id, &above);
    p->root = merge(p, below, above);
}

/* ---- The search ---- */

/* Looks for a place for `it` among the items below a node. Raises *at beyond items that are in the
 * way. Returns true once the item fits before the next of them. */
static bool find_hole(placer *p, uint32_t id, const item *it, uint64_t *at)
{
    if (id == NONE)
        return false;
    const spot *s = &p->spots[id];
    const item *own = &p->items[id];
    p->visits++;
    if (s->latest_last < it->first || it->last < s->earliest_first || s->high <= *at)
        return false;
    if (s->earliest_last >= it->first && s->latest_first <= it->last) {
        if (place_fit(*at, it->size, p->block_bytes) + it->size <= s->low)
            return true;
        if (s->hole < it->size) {
            *at = MAX(*at, s->high);
            return false;
        }
    }
    if (find_hole(p, s->left, it, at))
        return true;
    if (own->last >= it->first && own->first <= it->last && own->trial + own->size > *at) {
        if (place_fit(*at, it->size, p->block_bytes) + it->size <= own->trial)
            return true;
        *at = own->trial + own->size;
    }
    return find_hole(p, s->right, it, at);
}

/* ---- The orders ---- */

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}
static int by_size(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int order = compare_u64(y->size, x->size);
    return order ? order : compare_u64(x->group, y->group);
}
static int by_area(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int order = compare_u64(y->size * (y->last - y->first + 1), x->size * (x->last - x->first + 1));
    return order ? order : by_size(a, b);
}
static int by_birth(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int order = compare_u64(x->first, y->first);
    return order ? order : by_size(a, b);
}
static int by_death(const void *a, const void *b)
{
    const item *x = *(item *const *)a, *y = *(item *const *)b;
    int order = compare_u64(x->last, y->last);
    return order ? order : compare_u64(x->group, y->group);
}

/* Places all items in their present order. If that is the order of birth, `deaths` has all items by
 * death; else it is NULL. Returns the highest end. Returns UINT64_MAX if the end reaches `best`, or
 * if the effort is spent. */
static uint64_t place(placer *p, size_t count, item *const *deaths, uint64_t best)
{
    uint64_t peak = 0;
    size_t dead = 0;
    p->root = NONE;
    p->visits = 0;
    for (uint32_t i = 0; i < count; i++) {
        item *it = &p->items[i];
        uint64_t at = 0;
        while (deaths && deaths[dead]->last < it->first)
            erase(p, (uint32_t)(deaths[dead++] - p->items));
        (void)find_hole(p, p->root, it, &at);
        it->trial = place_fit(at, it->size, p->block_bytes);
        peak = MAX(peak, it->trial + it->size);
        if (peak >= best || (!deaths && p->visits > p->most_visits))
            return UINT64_MAX;
        insert(p, i);
    }
    return peak;
}

static rlxvk_status largest_live_set(const item *items, size_t count, uint64_t *out)
{
    uint64_t now = 0;
    uint32_t end = 0;
    for (size_t i = 0; i < count; i++)
        end = MAX(end, items[i].last + 1);
    uint64_t *changes = memory_zeroed((size_t)end + 1, sizeof *changes);
    if (!changes)
        return status_fail_memory("layout");
    for (size_t i = 0; i < count; i++) {
        changes[items[i].first] += items[i].size;
        changes[items[i].last + 1] -= items[i].size; /* wraps around; sums back to zero */
    }
    *out = 0;
    for (uint32_t step = 0; step < end; step++) {
        now += changes[step];
        *out = MAX(*out, now);
    }
    memory_free(changes);
    return RLXVK_OK;
}

static void try_orders(placer *p, size_t count, item **deaths, plan *out)
{
    static int (*const orders[])(const void *, const void *) = {by_size, by_area, by_birth};
    uint64_t best = UINT64_MAX;
    for (size_t o = 0; o < ARRAY_COUNT(orders) && best > out->scratch_lower_bound; o++) {
        bool births = orders[o] == by_birth;
        qsort(p->items, count, sizeof *p->items, orders[o]);
        for (size_t i = 0; i < count; i++)
            deaths[i] = &p->items[i];
        if (births)
            qsort(deaths, count, sizeof(item *), by_death);
        uint64_t peak = place(p, count, births ? deaths : NULL, best);
        out->visits += p->visits;
        if (peak == UINT64_MAX)
            continue;
        best = peak;
        for (size_t i = 0; i < count; i++)
            p->items[i].at = p->items[i].trial;
    }
    out->scratch_peak = best;
}

rlxvk_status place_items(item *items, size_t count, uint64_t block_bytes, plan *p)
{
    placer to = {.items = items,
                 .spots = memory_zeroed(count + 1, sizeof *to.spots),
                 .block_bytes = block_bytes,
                 .most_visits = EFFORT_BASE + EFFORT_EACH * (uint64_t)count};
    item **deaths = memory_zeroed(count + 1, sizeof *deaths);
    rlxvk_status status;
    TRY(to.spots && deaths ? RLXVK_OK : status_fail_memory("layout"));
    TRY(largest_live_set(items, count, &p->scratch_lower_bound));
    if (count)
        try_orders(&to, count, deaths, p);
error:
    memory_free(to.spots);
    memory_free(deaths);
    return status;
}
