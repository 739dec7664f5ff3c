/*
 * Dims made of others. If an equal one exists, it is reused, so that equal dims have one code.
 */
#include "graph/symbol.h"

static bool is_neutral(uint8_t form, int64_t left, int64_t right)
{
    if (form == DIM_SUM || form == DIM_DIFFERENCE)
        return right == 0;
    return form != DIM_UNKNOWN && right == 1 && left != 0;
}

static int64_t intern(rlxvk_graph *g, made_dim m)
{
    symbol_table *t = g->symbols;
    for (size_t i = 0; i < t->made.count; i++)
        if (t->made.items[i].form == m.form && t->made.items[i].left == m.left &&
            t->made.items[i].right == m.right)
            return symbol_made(i);
    if (!VECTOR_PUSH(&t->made, m)) {
        graph_fail(g, status_fail_memory("symbolic dims"));
        return 0;
    }
    symbol_refresh(g);
    return symbol_made(t->made.count - 1);
}

/* Normalizes a sum or a product: codes get a fixed order, and a number goes to the right. If the
 * left side already has a number on its right, the two are combined. */
static made_dim arrange(const symbol_table *t, made_dim m)
{
    if (symbol_is_code(m.right) && (!symbol_is_code(m.left) || m.left < m.right)) {
        int64_t left = m.left;
        m.left = m.right;
        m.right = left;
    }
    const made_dim *inner = symbol_made_dim(t, m.left);
    int64_t number;
    if (inner && inner->form == m.form && !symbol_is_code(inner->right) &&
        !symbol_is_code(m.right) && symbol_combine(m.form, inner->right, m.right, &number)) {
        m.right = number;
        m.left = inner->left;
    }
    return m;
}

int64_t dim_make(rlxvk_graph *g, enum dim_form form, int64_t left, int64_t right)
{
    int64_t number;
    made_dim m = {.form = (uint8_t)form, .left = left, .right = right};
    if (form == DIM_SUM || form == DIM_PRODUCT)
        m = arrange(g->symbols, m);
    if (form != DIM_UNKNOWN && !symbol_is_code(left) && !symbol_is_code(right)) {
        if (symbol_combine(m.form, left, right, &number))
            return number;
        graph_fail(g, status_fail(RLXVK_E_TOO_LARGE, "dims %lld and %lld give one above 2^63",
                                  (long long)left, (long long)right));
        return 0;
    }
    if ((form == DIM_PRODUCT && m.right == 0) || (form == DIM_DIFFERENCE && left == right))
        return 0;
    if (is_neutral(m.form, m.left, m.right))
        return m.left;
    if (graph_fail(g, symbol_use_all(g, (int64_t[]){left, right}, 2)) != RLXVK_OK)
        return 0;
    return intern(g, m);
}

int64_t dim_elements(rlxvk_graph *g, const rlxvk_shape *s)
{
    int64_t product = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        product = dim_make(g, DIM_PRODUCT, product, s->dims[i]);
    return product;
}

/* ---- The public calls ---- */

static int64_t make_public(rlxvk_graph *g, const char *call, enum dim_form form, int64_t a,
                           int64_t b)
{
    const int64_t dims[] = {a, b};
    if (!graph_ready(g, call) || graph_fail(g, symbol_check(g->symbols, call, dims, 2)) != RLXVK_OK)
        return 0;
    for (uint32_t i = 0; i < 2; i++)
        if (dims[i] < 0 && !symbol_is_code(dims[i])) {
            graph_fail(g,
                       status_fail(RLXVK_E_SHAPE, "%s: %lld is no dim; dims are >= 0, or symbols",
                                   call, (long long)dims[i]));
            return 0;
        }
    bool numbers = !symbol_is_code(a) && !symbol_is_code(b);
    if (form == DIM_QUOTIENT && b == 0)
        graph_fail(g, status_fail(RLXVK_E_SHAPE, "%s: a dim by 0", call));
    else if (form == DIM_DIFFERENCE && numbers && a < b)
        graph_fail(g, status_fail(RLXVK_E_SHAPE, "%s: %lld less %lld is below 0", call,
                                  (long long)a, (long long)b));
    else if (form == DIM_DIFFERENCE && !symbol_is_code(b))
        return dim_make(g, DIM_SUM, a, -b);
    else
        return dim_make(g, form, a, b);
    return 0;
}

int64_t rlxvk_dim_add(rlxvk_graph *g, int64_t a, int64_t b)
{
    return make_public(g, "dim_add", DIM_SUM, a, b);
}

int64_t rlxvk_dim_multiply(rlxvk_graph *g, int64_t a, int64_t b)
{
    return make_public(g, "dim_multiply", DIM_PRODUCT, a, b);
}

int64_t rlxvk_dim_sub(rlxvk_graph *g, int64_t a, int64_t b)
{
    return make_public(g, "dim_sub", DIM_DIFFERENCE, a, b);
}

int64_t rlxvk_dim_div(rlxvk_graph *g, int64_t a, int64_t b)
{
    return make_public(g, "dim_div", DIM_QUOTIENT, a, b);
}
