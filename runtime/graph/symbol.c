/* See symbol.h: codes, the table of a graph, values and texts of dims. */
#include "graph/symbol.h"

#include <string.h>

#define FIRST_PLAIN (-(INT64_C(1) << 40))
#define FIRST_MADE  (-(INT64_C(1) << 42))

int64_t rlxvk_symbol(uint32_t id)
{
    return FIRST_PLAIN - (int64_t)id;
}

bool symbol_is_plain(int64_t dim, uint32_t *out_id)
{
    bool plain = dim <= FIRST_PLAIN && dim >= FIRST_PLAIN - (int64_t)UINT32_MAX;
    if (plain && out_id)
        *out_id = (uint32_t)(FIRST_PLAIN - dim);
    return plain;
}

static bool is_made(int64_t dim)
{
    return dim <= FIRST_MADE && dim >= FIRST_MADE - (int64_t)UINT32_MAX;
}

const made_dim *symbol_made_dim(const symbol_table *t, int64_t dim)
{
    /* Any number may come as a dim, so it is checked first. */
    return t && is_made(dim) && (uint64_t)(FIRST_MADE - dim) < t->made.count
               ? &t->made.items[FIRST_MADE - dim]
               : NULL;
}

int64_t symbol_made(size_t index)
{
    return FIRST_MADE - (int64_t)index;
}

bool symbol_is_code(int64_t dim)
{
    return symbol_is_plain(dim, NULL) || is_made(dim);
}

bool symbol_in_shape(const rlxvk_shape *s)
{
    for (uint32_t i = 0; i < MIN(s->rank, RLXVK_MAX_RANK); i++)
        if (symbol_is_code(s->dims[i]))
            return true;
    return false;
}

/* ---- The table ---- */

rlxvk_status symbol_begin(rlxvk_graph *g)
{
    if (!g->symbols && !(g->symbols = memory_zeroed(1, sizeof *g->symbols)))
        return status_fail_memory("symbols");
    return RLXVK_OK;
}

void symbol_end(symbol_table *t)
{
    if (!t)
        return;
    for (uint32_t k = 0; k < SYMBOL_POINTS; k++)
        VECTOR_FREE(&t->sizes[k]);
    VECTOR_FREE(&t->made);
    VECTOR_FREE(&t->nodes);
    memory_free(t);
}

bool symbol_find(const symbol_table *t, uint32_t id, size_t *out_index)
{
    for (size_t i = 0; t && i < t->sizes[0].count; i++)
        if (t->sizes[0].items[i].symbol == id) {
            *out_index = i;
            return true;
        }
    return false;
}

int64_t symbol_size(const rlxvk_binding *sizes, size_t count, uint32_t id)
{
    for (size_t i = 0; i < count; i++)
        if (sizes[i].symbol == id)
            return sizes[i].size;
    return -1;
}

void symbol_relate(symbol_table *t, uint32_t example)
{
    const rlxvk_binding *sizes = t->sizes[example].items;
    size_t count = t->sizes[example].count, rows;
    int64_t batch = symbol_size(sizes, count, RLXVK_BATCH);
    int64_t seq = symbol_size(sizes, count, RLXVK_SEQ), product;
    if (batch >= 0 && seq >= 0 && symbol_find(t, RLXVK_ROWS, &rows) &&
        !multiply_overflows(batch, seq, &product))
        t->sizes[example].items[rows].size = product;
}

/* A size at a point that is no example. Every second point has multiples of an example's sizes,
 * because nodes that divide a length fit those. The others tell what is rounded up from what is
 * rounded down. Symbols have different factors, so that their dims differ. */
static int64_t point_size(const symbol_table *t, uint32_t point, size_t index)
{
    static const int64_t factors[] = {2, 5, 3, 7, 11};
    uint32_t k = point - SYMBOL_EXAMPLES;
    int64_t size = t->sizes[k % SYMBOL_EXAMPLES].items[index].size, more = k % 2;
    if (more)
        more += (int64_t)(index * 7 + k * 5) % 13;
    return size * factors[(k / 2 + index) % ARRAY_COUNT(factors)] + more;
}

static void spread_points(symbol_table *t)
{
    for (uint32_t k = SYMBOL_EXAMPLES; k < SYMBOL_POINTS; k++) {
        for (size_t i = 0; i < t->sizes[k].count; i++)
            t->sizes[k].items[i].size = point_size(t, k, i);
        symbol_relate(t, k);
    }
}

rlxvk_status symbol_use(symbol_table *t, uint32_t id, int64_t size)
{
    /* Sizes for examples. They are odd and even, so that quotients differ. Few of their sums and
     * products are equal. They are small, because whole models multiply them. */
    static const int64_t first[][SYMBOL_EXAMPLES] = {{5, 12, 27},  {7, 20, 33},  {11, 18, 35},
                                                     {13, 22, 29}, {17, 26, 31}, {19, 28, 37},
                                                     {23, 30, 41}, {29, 34, 43}};
    size_t index;
    if (symbol_find(t, id, &index))
        return RLXVK_OK;
    index = t->sizes[0].count;
    for (uint32_t k = 0; k < SYMBOL_POINTS; k++) {
        uint32_t example = k % SYMBOL_EXAMPLES;
        int64_t other = first[index % ARRAY_COUNT(first)][example] + 40 * (int64_t)(index / 8);
        rlxvk_binding b = {id, size >= 0 ? size * (int64_t)(example + 1) : other};
        if (!VECTOR_PUSH(&t->sizes[k], b))
            return status_fail_memory("symbols");
    }
    spread_points(t);
    return RLXVK_OK;
}

rlxvk_status symbol_use_all(rlxvk_graph *g, const int64_t *dims, uint32_t count)
{
    uint32_t id;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (symbol_is_code(dims[i]))
            TRY(symbol_begin(g));
        if (symbol_is_plain(dims[i], &id))
            TRY(symbol_use(g->symbols, id, -1));
    }
error:
    return status;
}

rlxvk_shape symbol_tell(const rlxvk_graph *g, uint32_t id)
{
    if (!g->symbols || id >= g->symbols->nodes.count)
        return graph_node(g, id)->shape;
    g->symbols->nodes.items[id].told = true;
    return g->symbols->nodes.items[id].shape;
}

/* ---- Values ---- */

bool symbol_combine(uint8_t form, int64_t left, int64_t right, int64_t *out)
{
    if (form == DIM_SUM)
        return !add_overflows(left, right, out);
    if (form == DIM_PRODUCT)
        return !multiply_overflows(left, right, out);
    if (form == DIM_DIFFERENCE)
        return !subtract_overflows(left, right, out);
    if (right <= 0)
        return false;
    *out = left / right - (left % right < 0);
    return true;
}

int64_t symbol_value(const symbol_table *t, uint32_t point, int64_t dim)
{
    uint32_t id;
    if (symbol_is_plain(dim, &id))
        return symbol_size(t->sizes[point].items, t->sizes[point].count, id);
    const made_dim *m = symbol_made_dim(t, dim);
    return m ? m->values[point] : dim;
}

static int64_t unknown_value(const rlxvk_graph *g, uint32_t point, const made_dim *m)
{
    if (point >= SYMBOL_EXAMPLES)
        return INT64_MAX;
    const rlxvk_graph *at = g->symbols->examples[point] ? g->symbols->examples[point] : g;
    return graph_node(at, (uint32_t)m->left)->shape.dims[m->right];
}

/* If a value overflows, it becomes INT64_MAX. Then the node that uses it fails because of its
 * size. */
void symbol_refresh(const rlxvk_graph *g)
{
    symbol_table *t = g->symbols;
    spread_points(t);
    for (size_t i = 0; i < t->made.count; i++)
        for (uint32_t k = 0; k < SYMBOL_POINTS; k++) {
            made_dim *m = &t->made.items[i];
            if (m->form == DIM_UNKNOWN)
                m->values[k] = unknown_value(g, k, m);
            else if (!symbol_combine(m->form, symbol_value(t, k, m->left),
                                     symbol_value(t, k, m->right), &m->values[k]))
                m->values[k] = INT64_MAX;
        }
}

bool symbol_is_bound(const symbol_table *t, const rlxvk_binding *sizes, size_t count, int64_t dim)
{
    uint32_t id;
    if (symbol_is_plain(dim, &id))
        return symbol_size(sizes, count, id) >= 0;
    const made_dim *m = symbol_made_dim(t, dim);
    if (!m)
        return true;
    return m->form != DIM_UNKNOWN && symbol_is_bound(t, sizes, count, m->left) &&
           symbol_is_bound(t, sizes, count, m->right);
}

rlxvk_status symbol_bind(const symbol_table *t, const rlxvk_binding *sizes, size_t count,
                         int64_t dim, int64_t *out)
{
    char name[32] = "";
    int64_t left, right;
    uint32_t id;
    rlxvk_status status = RLXVK_OK;
    *out = dim;
    if (symbol_is_plain(dim, &id)) {
        *out = symbol_size(sizes, count, id);
        symbol_name(id, &(text){.buffer = name, .size = sizeof name});
        return *out >= 0
                   ? RLXVK_OK
                   : status_fail(RLXVK_E_UNBOUND_SYMBOL, "symbol %s has no size; bind it", name);
    }
    const made_dim *m = symbol_made_dim(t, dim);
    if (!m)
        return RLXVK_OK;
    TRY(symbol_bind(t, sizes, count, m->left, &left));
    TRY(symbol_bind(t, sizes, count, m->right, &right));
    if (!symbol_combine(m->form, left, right, out))
        return status_fail(RLXVK_E_TOO_LARGE, "a dim made of %lld and %lld is above 2^63",
                           (long long)left, (long long)right);
error:
    return status;
}

static bool is_unknown(const symbol_table *t, int64_t dim)
{
    const made_dim *m = symbol_made_dim(t, dim);
    return m && (m->form == DIM_UNKNOWN || is_unknown(t, m->left) || is_unknown(t, m->right));
}

rlxvk_status symbol_check(const symbol_table *t, const char *row, const int64_t *dims,
                          uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (is_made(dims[i]) && !symbol_made_dim(t, dims[i]))
            return status_fail(RLXVK_E_SHAPE,
                               "%s: size %u is a symbolic dim of another graph; take it from this "
                               "one",
                               row, i);
        if (is_unknown(t, dims[i]))
            return status_fail(RLXVK_E_UNSUPPORTED,
                               "%s: size %u is a dim whose dependence on the symbols is not known "
                               "(it prints as ?); bind the symbols first, with rlxvk_graph_bind",
                               row, i);
    }
    return RLXVK_OK;
}

/* ---- Texts ---- */

void symbol_name(uint32_t id, text *out)
{
    static const char *const names[] = {"BATCH", "SEQ", "ROWS", "PAST_SEQ"};
    if (id < ARRAY_COUNT(names))
        text_append(out, "%s", names[id]);
    else
        text_append(out, "S%u", id);
}

static void append_dim(const symbol_table *t, int64_t dim, text *out)
{
    static const char signs[] = {
        [DIM_SUM] = '+', [DIM_PRODUCT] = '*', [DIM_QUOTIENT] = '/', [DIM_DIFFERENCE] = '-'};
    const made_dim *m = symbol_made_dim(t, dim);
    uint32_t id;
    if (symbol_is_plain(dim, &id)) {
        symbol_name(id, out);
    } else if (!is_made(dim)) {
        text_append(out, "%lld", (long long)dim);
    } else if (!m || m->form == DIM_UNKNOWN) {
        text_append(out, "?");
    } else {
        bool minus = m->form == DIM_SUM && !symbol_is_code(m->right) && m->right < 0;
        text_append(out, "(");
        append_dim(t, m->left, out);
        if (!minus)
            text_append(out, "%c", signs[m->form]);
        append_dim(t, m->right, out);
        text_append(out, ")");
    }
}

const char *symbol_shape_text(const rlxvk_graph *g, const rlxvk_shape *s, char buffer[SHAPE_TEXT])
{
    text t = {buffer, SHAPE_TEXT, 0};
    buffer[0] = 0;
    if (s->rank == 0)
        text_append(&t, "scalar");
    for (uint32_t i = 0; i < MIN(s->rank, RLXVK_MAX_RANK); i++) {
        text_append(&t, i ? "x" : "");
        append_dim(g ? g->symbols : NULL, s->dims[i], &t);
    }
    return buffer;
}

void symbol_sizes_text(const rlxvk_binding *sizes, size_t count, text *out)
{
    for (size_t i = 0; i < count; i++) {
        text_append(out, i ? ", " : "");
        symbol_name(sizes[i].symbol, out);
        text_append(out, "=%lld", (long long)sizes[i].size);
    }
}

rlxvk_status rlxvk_shape_text(const rlxvk_graph *graph, rlxvk_shape shape, char *buffer,
                              size_t size)
{
    char whole[SHAPE_TEXT];
    rlxvk_status status;
    TRY(status_require_items(buffer, size, "shape_text", "buffer"));
    text_append(&(text){.buffer = buffer, .size = size}, "%s",
                symbol_shape_text(graph, &shape, whole));
error:
    return status;
}
