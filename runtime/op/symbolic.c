/*
 * Builds graphs with symbolic sizes. Each node is inferred at each example. If an example does not
 * fit the node, other sizes are tried for the whole graph so far: numbers in the graph, multiples,
 * powers of two, 1. Every binding checks again whatever is accepted here.
 */
#include "op/symbolic.h"
#include "op/points.h"

#include <string.h>

#define MOST_TRIALS   512u    /* for one node and example */
#define MOST_APPENDED 200000u /* nodes, in these trials */
#define MOST_NUMBERS  24      /* in the graph that are tried as sizes */

typedef struct attempt {
    rlxvk_graph *g;
    const node *given;
    bool checked;
    node at[SYMBOL_EXAMPLES]; /* the node at each example */
    instance_attributes attributes[SYMBOL_EXAMPLES];
} attempt;

bool symbolic_needed(const rlxvk_graph *g, const node *given)
{
    instance_attributes room;
    int64_t *at[OP_MOST_SIZES];
    node n = *given;
    if (g->symbols)
        return true;
    if (n.attributes)
        memcpy(&room, n.attributes, n.attribute_size);
    uint32_t count = instance_sizes(&n, n.attributes ? &room : NULL, at);
    for (uint32_t i = 0; i < count; i++)
        if (symbol_is_code(*at[i]))
            return true;
    return false;
}

/* ---- Examples ---- */

static const rlxvk_graph *example_of(const rlxvk_graph *g, uint32_t k)
{
    return g->symbols->examples[k] ? g->symbols->examples[k] : g;
}

/* The graph itself is the first example. Its nodes take the shapes and attributes of `from`. */
static rlxvk_status adopt_first(rlxvk_graph *g, const rlxvk_graph *from)
{
    for (uint32_t id = 0; id < from->nodes.count; id++) {
        node *n = &g->nodes.items[id];
        const node *other = graph_node(from, id);
        n->shape = other->shape;
        if (n->attributes &&
            !(n->attributes = arena_copy(&g->memory, other->attributes, n->attribute_size)))
            return status_fail_memory("symbols");
    }
    return RLXVK_OK;
}

static int64_t ask_changed(rlxvk_graph *g, const observed_dim *o, int64_t dim, int64_t value)
{
    rlxvk_shape shape;
    return points_infer_changed(g, o->id, dim, value, &shape) && o->axis < shape.rank
               ? shape.dims[o->axis]
               : -1;
}

static rlxvk_status recognize(rlxvk_graph *g, uint32_t id)
{
    symbol_node *s = &g->symbols->nodes.items[id];
    const node *n = graph_node(g, id);
    rlxvk_shape at[SYMBOL_POINTS];
    observed_dim o = {.id = id, .ask = ask_changed};
    rlxvk_status status = RLXVK_OK;
    if (n->input_count == 0 && symbol_in_shape(&s->shape))
        return RLXVK_OK; /* a leaf keeps the shape it was given */
    TRY(points_infer(g, id, at));
    s->shape = n->shape;
    for (o.axis = 0; o.axis < n->shape.rank; o.axis++) {
        for (uint32_t k = 0; k < SYMBOL_POINTS; k++)
            o.values[k] = at[k].rank == n->shape.rank ? at[k].dims[o.axis] : -1;
        s->shape.dims[o.axis] = recognize_dim(g, &o);
    }
error:
    return status;
}

/* Dims that were recognized as expressions at other sizes may not hold at these. They are
 * recognized again, unless a caller was told them. */
static rlxvk_status recognize_again(rlxvk_graph *g, uint32_t k)
{
    const symbol_table *t = g->symbols;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t id = 0; id < t->nodes.count; id++) {
        const symbol_node *s = &t->nodes.items[id];
        const node *n = graph_node(example_of(g, k), id);
        bool holds = true;
        for (uint32_t axis = 0; axis < s->shape.rank; axis++)
            holds = holds && symbol_value(t, k, s->shape.dims[axis]) == n->shape.dims[axis];
        if (!holds && !s->told)
            TRY(recognize(g, id));
    }
error:
    return status;
}

/* Adopts a graph that was built at other sizes of the example. */
static rlxvk_status adopt(rlxvk_graph *g, uint32_t k, rlxvk_graph *built)
{
    rlxvk_status status = RLXVK_OK;
    if (k == 0) {
        status = adopt_first(g, built);
        rlxvk_graph_destroy(built);
    } else {
        rlxvk_graph_destroy(g->symbols->examples[k]);
        g->symbols->examples[k] = built;
    }
    symbol_refresh(g);
    return status == RLXVK_OK ? recognize_again(g, k) : status;
}

static rlxvk_status build_example(const rlxvk_graph *g, uint32_t k, rlxvk_graph **out)
{
    const symbol_table *t = g->symbols;
    return instance_build(g, t->sizes[k].items, t->sizes[k].count, true, out);
}

/* Sets ROWS to BATCH * SEQ. Those two may have appeared after nodes that use ROWS. */
static rlxvk_status relate(rlxvk_graph *g)
{
    symbol_table *t = g->symbols;
    rlxvk_graph *built;
    size_t rows;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t k = 0; k < SYMBOL_EXAMPLES && symbol_find(t, RLXVK_ROWS, &rows); k++) {
        int64_t before = t->sizes[k].items[rows].size;
        symbol_relate(t, k);
        if (t->sizes[k].items[rows].size == before)
            continue;
        TRY(build_example(g, k, &built));
        TRY(adopt(g, k, built));
    }
error:
    return status;
}

/* Afterwards the table has every node of the graph, and so has every example. */
static rlxvk_status prepare(rlxvk_graph *g)
{
    symbol_table *t;
    rlxvk_status status;
    TRY(symbol_begin(g));
    t = g->symbols;
    while (t->nodes.count < g->nodes.count) {
        const node *n = graph_node(g, (uint32_t)t->nodes.count);
        if (!VECTOR_PUSH(&t->nodes, ((symbol_node){n->attributes, n->shape, false})))
            TRY(status_fail_memory("symbols"));
    }
    for (uint32_t k = 1; k < SYMBOL_EXAMPLES; k++)
        if (!t->examples[k])
            TRY(build_example(g, k, &t->examples[k]));
error:
    return status;
}

/* ---- One node at one example ---- */

/* Checks the node as the next one of `to`, at these sizes. */
static rlxvk_status check_at(attempt *a, uint32_t k, const rlxvk_graph *to,
                             const rlxvk_binding *sizes)
{
    const symbol_table *t = a->g->symbols;
    node *n = &a->at[k];
    *n = *a->given;
    n->building = a->g;
    if (n->attributes) {
        memcpy(&a->attributes[k], a->given->attributes, n->attribute_size);
        n->attributes = &a->attributes[k];
    }
    if (!a->checked)
        return RLXVK_OK;
    return instance_check(to, t, sizes, t->sizes[k].count, n,
                          n->attributes ? &a->attributes[k] : NULL);
}

/* ---- The search ---- */

typedef struct search {
    attempt *attempt;
    uint32_t example, trials;
    rlxvk_binding *sizes; /* being tried */
    size_t count;
    int64_t numbers[MOST_NUMBERS];
    uint32_t number_count;
} search;

static void reset_sizes(search *s)
{
    memcpy(s->sizes, s->attempt->g->symbols->sizes[s->example].items, s->count * sizeof *s->sizes);
}

/* Whether the graph so far and the node fit these sizes. If so, they become the example's sizes. */
static bool try_sizes(search *s)
{
    rlxvk_graph *g = s->attempt->g, *built = NULL;
    rlxvk_binding *own = g->symbols->sizes[s->example].items;
    size_t bytes = s->count * sizeof *own;
    if (s->trials == 0)
        return false;
    s->trials--;
    int64_t batch = symbol_size(s->sizes, s->count, RLXVK_BATCH);
    int64_t seq = symbol_size(s->sizes, s->count, RLXVK_SEQ);
    for (size_t i = 0; i < s->count && batch >= 0 && seq >= 0; i++)
        if (s->sizes[i].symbol == RLXVK_ROWS)
            s->sizes[i].size = batch * seq;
    bool fits = instance_build(g, s->sizes, s->count, true, &built) == RLXVK_OK &&
                check_at(s->attempt, s->example, built, s->sizes) == RLXVK_OK;
    if (fits) {
        memcpy(own, s->sizes, bytes);
        fits = graph_fail(g, adopt(g, s->example, built)) == RLXVK_OK;
    } else {
        rlxvk_graph_destroy(built);
    }
    return fits;
}

static void add_number(search *s, int64_t number)
{
    for (uint32_t i = 0; i < s->number_count; i++)
        if (s->numbers[i] == number)
            return;
    if (number > 1 && number <= INT32_MAX && s->number_count < MOST_NUMBERS)
        s->numbers[s->number_count++] = number;
}

static void add_numbers(search *s, const rlxvk_shape *shape)
{
    for (uint32_t i = 0; i < shape->rank; i++)
        add_number(s, shape->dims[i]);
}

/* Numbers in the shapes of the operands first, then those of the leaves. */
static void collect_numbers(search *s)
{
    const symbol_table *t = s->attempt->g->symbols;
    node n = s->attempt->at[s->example];
    int64_t *at[OP_MOST_SIZES];
    for (uint32_t i = 0; i < n.input_count; i++)
        add_numbers(s, &t->nodes.items[n.inputs[i]].shape);
    uint32_t sizes =
        instance_sizes(&n, n.attributes ? &s->attempt->attributes[s->example] : NULL, at);
    for (uint32_t i = 0; i < sizes; i++)
        add_number(s, *at[i]);
    for (uint32_t id = 0; id < t->nodes.count; id++)
        if (graph_node(s->attempt->g, id)->input_count == 0)
            add_numbers(s, &t->nodes.items[id].shape);
}

/* Tries this size for each symbol, one at a time. */
static bool try_each(search *s, int64_t size)
{
    for (size_t i = 0; i < s->count; i++) {
        reset_sizes(s);
        s->sizes[i].size = size;
        if (try_sizes(s))
            return true;
    }
    return false;
}

/* Tries `factor` times its size for each symbol, one at a time, and then for all together. */
static bool try_multiples(search *s, int64_t factor)
{
    for (size_t i = 0; i <= s->count; i++) {
        reset_sizes(s);
        for (size_t k = 0; k < s->count; k++)
            s->sizes[k].size *= i == k || i == s->count ? factor : 1;
        if (try_sizes(s))
            return true;
    }
    return false;
}

/* Tries the sizes of the first example, which fit all nodes so far. */
static bool try_first(search *s)
{
    if (s->example == 0)
        return false;
    memcpy(s->sizes, s->attempt->g->symbols->sizes[0].items, s->count * sizeof *s->sizes);
    return try_sizes(s);
}

static bool find_sizes(search *s)
{
    static const int64_t factors[] = {2, 4, 8, 16, 32, 64, 3, 5, 6, 7, 10, 12};
    collect_numbers(s);
    for (uint32_t i = 0; i < s->number_count; i++) /* examples should differ if they can */
        if (try_each(s, s->numbers[i] * (s->example + 1)))
            return true;
    for (uint32_t i = 0; i < s->number_count && s->example; i++)
        if (try_each(s, s->numbers[i]))
            return true;
    for (size_t i = 0; i < ARRAY_COUNT(factors); i++)
        if (try_multiples(s, factors[i]))
            return true;
    for (int64_t size = 2; size <= 4096; size *= 2)
        if (try_each(s, size))
            return true;
    s->trials = MAX(s->trials, 2 * (uint32_t)s->count + 2);
    return try_each(s, 1) || try_first(s);
}

/* Whether other sizes may help. */
static bool is_about_sizes(rlxvk_status status)
{
    return status != RLXVK_E_OUT_OF_HOST_MEMORY && status != RLXVK_E_ARITY &&
           status != RLXVK_E_AXIS && status != RLXVK_E_DANGLING && status != RLXVK_E_DUP_NAME &&
           status != RLXVK_E_NULL;
}

/* Reports the error at the original sizes, together with these sizes and the sizes that were tried.
 */
static rlxvk_status fail_at(const attempt *a, uint32_t k, rlxvk_status status, const char *first)
{
    const symbol_table *t = a->g->symbols;
    char operands[256] = "", sizes[160] = "", shape[SHAPE_TEXT];
    text list = {.buffer = operands, .size = sizeof operands};
    for (uint32_t i = 0; i < a->given->input_count; i++)
        text_append(&list, "%s%s", i ? ", " : "; operands are ",
                    symbol_shape_text(a->g, &t->nodes.items[a->given->inputs[i]].shape, shape));
    symbol_sizes_text(t->sizes[k].items, t->sizes[k].count,
                      &(text){.buffer = sizes, .size = sizeof sizes});
    return status_fail(status,
                       "%s (tried at %s and others%s; where some sizes fit, name one with "
                       "rlxvk_set_symbol_example)",
                       first, sizes, operands);
}

static rlxvk_status fit_example(attempt *a, uint32_t k)
{
    const symbol_table *t = a->g->symbols;
    status_sentence before, first;
    search s = {.attempt = a, .example = k, .count = t->sizes[k].count};
    status_save(&before);
    rlxvk_status status = check_at(a, k, example_of(a->g, k), t->sizes[k].items);
    if (status == RLXVK_OK || !is_about_sizes(status) || s.count == 0)
        return status;
    status_save(&first);
    uint32_t nodes = (uint32_t)a->g->nodes.count + 1;
    s.trials = MIN(MOST_TRIALS, MAX(MOST_APPENDED / nodes, 32));
    if (!(s.sizes = memory_zeroed(s.count, sizeof *s.sizes)))
        return status_fail_memory("symbols");
    bool found = find_sizes(&s);
    memory_free(s.sizes);
    if (!found)
        return fail_at(a, k, status, first.text);
    status_restore(&before);
    return RLXVK_OK;
}

/* ---- Appending ---- */

/* Checks that each symbolic dim belongs to this graph, and marks its symbols as used. */
static rlxvk_status take_codes(const attempt *a)
{
    instance_attributes room;
    int64_t *at[OP_MOST_SIZES], dims[OP_MOST_SIZES];
    node n = *a->given;
    rlxvk_status status = RLXVK_OK;
    if (n.attributes)
        memcpy(&room, n.attributes, n.attribute_size);
    uint32_t count = instance_sizes(&n, n.attributes ? &room : NULL, at);
    for (uint32_t i = 0; i < count; i++)
        dims[i] = *at[i];
    TRY(symbol_check(a->g->symbols, node_row(&n)->name, dims, count));
    TRY(symbol_use_all(a->g, dims, count));
    TRY(relate(a->g));
    for (uint32_t i = 0; i < count && node_is_constant(&n); i++)
        if (symbol_is_code(dims[i]))
            return op_fail(&n, RLXVK_E_UNSUPPORTED,
                           "a constant's shape is of numbers; expand one with the symbol");
error:
    return status;
}

/* The attributes as given, except for choices that the library made. */
static rlxvk_status keep_attributes(attempt *a, const void **out)
{
    const node *given = a->given;
    instance_attributes room;
    rlxvk_status status = RLXVK_OK;
    *out = NULL;
    if (!given->attributes)
        return RLXVK_OK;
    memcpy(&room, given->attributes, given->attribute_size);
    for (uint32_t k = 0; k < SYMBOL_EXAMPLES; k++)
        if (a->checked && node_row(given)->family->settle)
            TRY(node_row(given)->family->settle(given, &room, &a->attributes[k]));
    if (!(*out = arena_copy(&a->g->memory, &room, given->attribute_size)))
        TRY(status_fail_memory("symbols"));
error:
    return status;
}

/* Only the graph itself keeps the bytes of constants; the examples do not. */
static rlxvk_status append_all(attempt *a)
{
    symbol_table *t = a->g->symbols;
    symbol_node known = {NULL, a->given->shape, false};
    rlxvk_status status = RLXVK_OK;
    TRY(keep_attributes(a, &known.attributes));
    if (!VECTOR_PUSH(&t->nodes, known))
        TRY(status_fail_memory("symbols"));
    for (uint32_t k = 0; k < SYMBOL_EXAMPLES; k++) {
        rlxvk_graph *to = k ? t->examples[k] : a->g;
        a->at[k].data_size = k ? 0 : a->at[k].data_size;
        if (graph_append(to, &a->at[k]) == NODE_NONE)
            TRY(to->status);
    }
error:
    return status;
}

uint32_t symbolic_append(rlxvk_graph *g, const node *given, bool checked)
{
    attempt a = {.g = g, .given = given, .checked = checked};
    rlxvk_status status;
    TRY(prepare(g));
    TRY(take_codes(&a));
    for (uint32_t k = 0; k < SYMBOL_EXAMPLES; k++)
        TRY(fit_example(&a, k));
    TRY(append_all(&a));
    TRY(recognize(g, (uint32_t)g->nodes.count - 1));
    return g->status == RLXVK_OK ? (uint32_t)g->nodes.count - 1 : NODE_NONE;
error:
    graph_fail(g, status);
    return NODE_NONE;
}

/* ---- The public call ---- */

static rlxvk_status set_example(rlxvk_graph *g, uint32_t symbol, int64_t size)
{
    rlxvk_graph *built;
    size_t index;
    rlxvk_status status;
    if (size < 0 || size > INT32_MAX)
        return status_fail(RLXVK_E_RANGE, "set_symbol_example: size %lld; takes 0 to 2^31 - 1",
                           (long long)size);
    TRY(prepare(g));
    if (!symbol_find(g->symbols, symbol, &index))
        return symbol_use(g->symbols, symbol, size);
    g->symbols->sizes[0].items[index].size = size;
    symbol_relate(g->symbols, 0);
    TRY(build_example(g, 0, &built));
    TRY(adopt(g, 0, built));
error:
    return status;
}

void rlxvk_set_symbol_example(rlxvk_graph *graph, uint32_t symbol, int64_t size)
{
    if (graph_ready(graph, "set_symbol_example"))
        graph_fail(graph, set_example(graph, symbol, size));
}
