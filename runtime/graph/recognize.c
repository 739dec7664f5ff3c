/*
 * Finds the symbolic form of a node's dim from its sizes at all points that the node fits.
 * Listings, users and composite ops read the result, but no node is built from it. If a caller was
 * told a shape, it is checked at every binding.
 */
#include "graph/symbol.h"

#define MOST_NEAR     24   /* dims of operands that are tried */
#define MOST_DIVISOR  4096 /* windows of sound advance by hundreds of samples */
#define MOST_MULTIPLE 4096
#define FAR_STEP      97

typedef struct unknown {
    rlxvk_graph *g;
    const symbol_table *t;
    const observed_dim *observed;
    int64_t values[SYMBOL_POINTS]; /* at the points that the node fits */
    uint32_t points[SYMBOL_POINTS], point_count;
    int64_t near[MOST_NEAR]; /* codes of operands' dims; those at the same axis come first */
    uint32_t near_count;
} unknown;

static int64_t value_at(const unknown *u, uint32_t k, int64_t dim)
{
    return symbol_value(u->t, u->points[k], dim);
}

static bool has_values(const unknown *u, int64_t dim)
{
    for (uint32_t k = 0; k < u->point_count; k++)
        if (value_at(u, k, dim) != u->values[k])
            return false;
    return true;
}

static void add_near(unknown *u, int64_t dim)
{
    for (uint32_t i = 0; i < u->near_count; i++)
        if (u->near[i] == dim)
            return;
    if (symbol_is_code(dim) && u->near_count < MOST_NEAR)
        u->near[u->near_count++] = dim;
}

static void collect(unknown *u, const node *n, uint32_t axis)
{
    for (uint32_t i = 0; i < n->input_count; i++) {
        const rlxvk_shape *s = &u->t->nodes.items[n->inputs[i]].shape;
        if (axis < s->rank)
            add_near(u, s->dims[axis]);
    }
    for (uint32_t i = 0; i < n->input_count; i++) {
        const rlxvk_shape *s = &u->t->nodes.items[n->inputs[i]].shape;
        for (uint32_t d = 0; d < s->rank; d++)
            add_near(u, s->dims[d]);
    }
}

/* A dim that exists already. */
static bool is_known(const unknown *u, int64_t *out)
{
    for (uint32_t i = 0; i < u->near_count; i++)
        if (has_values(u, *out = u->near[i]))
            return true;
    for (size_t i = 0; i < u->t->sizes[0].count; i++)
        if (has_values(u, *out = rlxvk_symbol(u->t->sizes[0].items[i].symbol)))
            return true;
    for (size_t i = 0; i < u->t->made.count; i++)
        if (u->t->made.items[i].form != DIM_UNKNOWN && has_values(u, *out = symbol_made(i)))
            return true;
    return false;
}

/* The sum over all operands along the axis, as for concat. */
static bool is_joined(const unknown *u, const node *n, uint32_t axis, int64_t *out)
{
    int64_t sums[SYMBOL_POINTS] = {0}, sum = 0;
    for (uint32_t i = 0; i < n->input_count; i++) {
        const rlxvk_shape *s = &u->t->nodes.items[n->inputs[i]].shape;
        if (axis >= s->rank)
            return false;
        for (uint32_t k = 0; k < u->point_count; k++)
            sums[k] += value_at(u, k, s->dims[axis]);
    }
    for (uint32_t k = 0; k < u->point_count; k++)
        if (n->input_count < 2 || sums[k] != u->values[k])
            return false;
    for (uint32_t i = 0; i < n->input_count; i++)
        sum = dim_make(u->g, DIM_SUM, sum, u->t->nodes.items[n->inputs[i]].shape.dims[axis]);
    *out = sum;
    return true;
}

/* factor * a * b / divisor; factor or divisor is 1, and b may be 1. */
static bool is_product(const unknown *u, int64_t a, int64_t b, int64_t *out)
{
    int64_t factor = 0, divisor = 0;
    for (uint32_t k = 0; k < u->point_count; k++) {
        int64_t product = value_at(u, k, a) * value_at(u, k, b), v = u->values[k];
        if (product <= 0 || v <= 0)
            return false;
        if (k == 0) {
            factor = v % product ? 0 : v / product;
            divisor = product % v ? 0 : product / v;
        }
        if (factor * product != v)
            factor = 0;
        if (divisor * v != product)
            divisor = 0;
    }
    if (!factor && (!divisor || divisor > MOST_MULTIPLE))
        return false;
    *out = dim_make(u->g, DIM_PRODUCT, a, b);
    *out = factor ? dim_make(u->g, DIM_PRODUCT, *out, factor)
                  : dim_make(u->g, DIM_QUOTIENT, *out, divisor);
    return true;
}

static bool is_sum(const unknown *u, int64_t a, int64_t b, int64_t *out)
{
    int64_t rest = 0;
    for (uint32_t k = 0; k < u->point_count; k++) {
        int64_t more = u->values[k] - value_at(u, k, a) - value_at(u, k, b);
        if (k && more != rest)
            return false;
        rest = more;
    }
    *out = dim_make(u->g, DIM_SUM, dim_make(u->g, DIM_SUM, a, b), rest);
    return true;
}

/* factor * d + rest. */
static bool is_linear(const unknown *u, int64_t d, int64_t *out)
{
    int64_t from = value_at(u, 0, d), step = 0, rise = 0;
    for (uint32_t k = 1; k < u->point_count && step == 0; k++) {
        step = value_at(u, k, d) - from;
        rise = u->values[k] - u->values[0];
    }
    if (step == 0 || rise % step || rise / step < 1)
        return false;
    int64_t factor = rise / step, rest = u->values[0] - factor * from;
    for (uint32_t k = 0; k < u->point_count; k++)
        if (factor * value_at(u, k, d) + rest != u->values[k])
            return false;
    *out = dim_make(u->g, DIM_SUM, dim_make(u->g, DIM_PRODUCT, d, factor), rest);
    return true;
}

/* Whether floor((d + rest) / divisor) becomes `quotient` where it should, at a length and not at
 * the one before. True if the node cannot be asked. */
static bool steps_to(const unknown *u, int64_t d, int64_t divisor, int64_t rest, int64_t quotient)
{
    int64_t length = quotient * divisor - rest;
    int64_t at = u->observed->ask(u->g, u->observed, d, length);
    int64_t before = u->observed->ask(u->g, u->observed, d, length - 1);
    return (at < 0 || at == quotient) && (before < 0 || before == quotient - 1);
}

/* Narrows the rests of floor((d + rest) / divisor) by lengths at which it goes up by one. False if
 * the form is refuted. A divisor that is nearly right is refuted far away. */
static bool narrow_rests(const unknown *u, int64_t d, int64_t divisor, int64_t *least,
                         int64_t *most)
{
    while (*least < *most) {
        int64_t rest = *most - (*most - *least) / 2, from = value_at(u, 0, d);
        int64_t quotient = (from + rest + divisor - 1) / divisor;
        int64_t got = u->observed->ask(u->g, u->observed, d, quotient * divisor - rest);
        if (got < 0)
            return true;
        if (got == quotient)
            *least = rest;
        else if (got == quotient - 1)
            *most = rest - 1;
        else
            return false;
    }
    return steps_to(u, d, divisor, *most, u->values[0] + 1) &&
           steps_to(u, d, divisor, *most, u->values[0] + FAR_STEP);
}

/* floor((d + rest) / divisor), as for windows. `rest` is the smallest that is 0 or more; if all are
 * negative, the largest. */
static bool is_quotient(const unknown *u, int64_t d, int64_t *out)
{
    for (int64_t divisor = 2; divisor <= MOST_DIVISOR; divisor++) {
        int64_t least = INT64_MIN, most = INT64_MAX;
        for (uint32_t k = 0; k < u->point_count && least <= most; k++) {
            int64_t rest = divisor * u->values[k] - value_at(u, k, d);
            least = MAX(least, rest);
            most = MIN(most, rest + divisor - 1);
        }
        if (least > most || !narrow_rests(u, d, divisor, &least, &most))
            continue;
        int64_t rest = least > 0 ? least : most < 0 ? most : 0;
        *out = dim_make(u->g, DIM_QUOTIENT, dim_make(u->g, DIM_SUM, d, rest), divisor);
        return true;
    }
    return false;
}

static bool is_made_of_one(const unknown *u, int64_t *out)
{
    for (uint32_t i = 0; i < u->near_count; i++)
        if (is_product(u, u->near[i], 1, out) || is_linear(u, u->near[i], out))
            return true;
    return false;
}

static bool is_made_of_two(const unknown *u, int64_t *out)
{
    for (uint32_t i = 0; i < u->near_count; i++)
        for (uint32_t j = 0; j <= i; j++)
            if (is_product(u, u->near[i], u->near[j], out) ||
                is_sum(u, u->near[i], u->near[j], out))
                return true;
    return false;
}

static bool is_divided(const unknown *u, int64_t *out)
{
    for (uint32_t i = 0; i < u->near_count; i++)
        if (is_quotient(u, u->near[i], out))
            return true;
    return false;
}

int64_t recognize_dim(rlxvk_graph *g, const observed_dim *o)
{
    const node *n = graph_node(g, o->id);
    unknown u = {.g = g, .t = g->symbols, .observed = o};
    int64_t dim;
    for (uint32_t k = 0; k < SYMBOL_POINTS; k++)
        if (o->values[k] >= 0) {
            u.values[u.point_count] = o->values[k];
            u.points[u.point_count++] = k;
        }
    if (has_values(&u, u.values[0]))
        return u.values[0];
    collect(&u, n, o->axis);
    if (is_known(&u, &dim) || is_joined(&u, n, o->axis, &dim) || is_made_of_one(&u, &dim) ||
        is_made_of_two(&u, &dim) || is_divided(&u, &dim))
        return dim;
    return dim_make(g, DIM_UNKNOWN, o->id, o->axis);
}
