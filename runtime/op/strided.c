/*
 * Finds tensors that need no memory of their own. A tensor's place depends on its operand's place,
 * and a reader may refuse the resulting strides. So at first all candidates are placed in their
 * operand. As long as a reader refuses one, the refused ones become copies, and views of them are
 * tried again.
 *
 * If all readers of a product select columns, and together they select every column once, the
 * product is written in parts. Strided views would be possible, too, but some devices read rows
 * with gaps far more slowly.
 *
 * Memory that is written in place, carried by a loop or waited for gets no such views. A read
 * through a view happens later, when the reader runs, and it could see the wrong content.
 */
#include "op/strided.h"
#include "op/view.h"

#include <string.h>

/* In so many rounds, a refused view whose operand was refused, too, is not copied yet, because it
 * may fit the new copy. Later rounds copy all, because a long chain would need as many rounds as it
 * has views. */
#define MOST_ROUNDS 8
#define MOST_PARTS  3 /* of columns */

typedef struct search {
    const rlxvk_graph *g;
    const bool *on_host;
    strided_views *v;
    uint32_t *roots;   /* by op/view.h */
    uint32_t *uses;    /* number of uses as operands and outputs */
    uint32_t *refused; /* the reader that refused the node in this round */
    bool *restless;    /* roots whose content changes, or that are waited for */
    bool *waits;       /* its readers must not run earlier */
    bool *copied;      /* refused in an earlier round */
    bool *renewed;     /* refused in this round, or a view of such a node */
} search;

strided strided_dense(const rlxvk_shape *s)
{
    strided at = {0};
    shape_strides(s, at.strides);
    return at;
}

/* Splits each run of axes that has one common stride, from the last run on. Axes of size 1 fit any
 * run. */
bool strided_reshape(const rlxvk_shape *from, const rlxvk_shape *to, strided *at)
{
    strided had = *at;
    uint32_t i = from->rank, next = to->rank;
    memset(at->strides, 0, sizeof at->strides);
    while (i > 0) {
        int64_t step = 0, run = 1, given = 1;
        for (; i > 0 && (run == 1 || from->dims[i - 1] == 1 || had.strides[i - 1] == step * run);
             i--) {
            if (run == 1)
                step = had.strides[i - 1];
            run *= from->dims[i - 1];
        }
        for (; next > 0 && (given < run || to->dims[next - 1] == 1); given *= to->dims[next])
            at->strides[--next] = step * given;
        if (given != run)
            return false;
    }
    return true;
}

/* ---- Properties of nodes ---- */

static bool is_hosted(const search *s, uint32_t id)
{
    return s->on_host && s->on_host[graph_node(s->g, id)->op];
}

static bool accepts_strides(const search *s, uint32_t id, uint32_t operand, const int64_t *strides)
{
    const node *n = graph_node(s->g, id);
    const op_family *family = node_row(n)->family;
    return family->views.accepts_strides && !is_hosted(s, id) &&
           family->views.accepts_strides(s->g, n, operand, strides);
}

static bool lies(const search *s, uint32_t id)
{
    return s->v->in[id] != NODE_NONE;
}

/* Whether it has its own memory according to op/view.h. If so, it is a copy unless it lies in
 * another node's memory here. */
static bool owns(const search *s, uint32_t id)
{
    return s->roots[id] == id;
}

/* Operands whose content the node changes, or for which it waits. */
static uint32_t restless_operands(const node *n)
{
    const op_family *family = node_row(n)->family;
    return node_writes(n) | (family->memory.replaces ? 3 : 0) | (family->memory.waits ? 2 : 0);
}

static void survey(search *s)
{
    view_roots(s->g, s->roots);
    for (uint32_t id = 0; id < s->g->nodes.count; id++) {
        const node *n = graph_node(s->g, id);
        s->v->in[id] = s->v->need[id] = NODE_NONE;
        for (uint32_t i = 0; i < n->input_count; i++) {
            s->uses[n->inputs[i]]++;
            if (i < 32 && (restless_operands(n) >> i & 1))
                s->restless[s->roots[n->inputs[i]]] = true;
        }
        s->waits[id] =
            node_row(n)->family->memory.waits || (!owns(s, id) && s->waits[n->inputs[0]]);
    }
    for (size_t i = 0; i < s->g->outputs.count; i++)
        s->uses[s->g->outputs.items[i]]++;
}

/* Whether a node, which must have operands, only selects or reorders elements of operand 0. */
static bool can_be_view(const search *s, uint32_t id)
{
    const node *n = graph_node(s->g, id);
    if (!node_row(n)->family->views.strided_view || is_hosted(s, id))
        return false;
    uint32_t x = n->inputs[0];
    return !s->waits[x] && !s->restless[s->roots[x]] && op_node_storage(s->g, id) == STORAGE_WORD &&
           shape_numel(&n->shape) > 0;
}

/* ---- Products in parts ---- */

/* Whether the node only selects columns of operand 0. *first is the first column. */
static bool shows_columns(const search *s, uint32_t id, uint64_t *first)
{
    const node *n = graph_node(s->g, id);
    if (!can_be_view(s, id))
        return false;
    const rlxvk_shape *x = input_shape(s->g, n, 0), *y = &n->shape;
    strided dense = strided_dense(x), at = dense;
    bool alike = x->rank == y->rank && node_row(n)->family->views.strided_view(s->g, n, &at);
    for (uint32_t i = 0; i < x->rank && alike; i++)
        alike = at.strides[i] == dense.strides[i] && (i + 1 == x->rank || x->dims[i] == y->dims[i]);
    *first = at.first;
    return alike;
}

typedef struct column_part {
    uint64_t first, end;
} column_part;

/* Keeps the parts ordered by their columns. */
static void insert_part(column_part *parts, uint32_t count, column_part added)
{
    for (; count > 0 && parts[count - 1].first > added.first; count--)
        parts[count] = parts[count - 1];
    parts[count] = added;
}

/* Finds the ends of the parts of x that its readers select. Returns the reason if there are no such
 * parts. */
static const char *find_parts(const search *s, uint32_t x, column_ends *out)
{
    const rlxvk_shape *shape = &graph_node(s->g, x)->shape;
    uint64_t columns = (uint64_t)shape->dims[shape->rank - 1];
    column_part parts[MOST_PARTS], all = {0};
    uint32_t count = 0, joined = 0, most = s->uses[x];
    if (most > MOST_PARTS)
        return "it has more than three readers";
    for (uint32_t id = x + 1; id < s->g->nodes.count && count < most; id++) {
        const node *n = graph_node(s->g, id);
        for (uint32_t i = 0; i < n->input_count; i++) {
            uint64_t first;
            if (n->inputs[i] != x)
                continue;
            if (!shows_columns(s, id, &first))
                return "it is read as a whole";
            insert_part(parts, count++,
                        (column_part){first, first + (uint64_t)n->shape.dims[shape->rank - 1]});
        }
    }
    while (joined < count && parts[joined].first == all.end)
        all.end = parts[joined++].end;
    if (count < most)
        return "it is a graph output";
    if (joined < count || all.end != columns || count < 2)
        return "the parts are not all columns, one after the other";
    out->at[0] = (uint32_t)parts[0].end;
    out->at[1] = (uint32_t)parts[1].end;
    return NULL;
}

/* A matrix of one row needs no parts, because they are dense there anyway. */
static bool can_divide(const search *s, uint32_t x)
{
    const node *n = graph_node(s->g, x);
    const op_family *family = node_row(n)->family;
    return family->views.writes_parts && family->views.writes_parts(s->g, n) && !is_hosted(s, x) &&
           owns(s, x) && !s->waits[x] && !s->restless[x] && n->shape.rank > 0 &&
           shape_numel(&n->shape) > (uint64_t)n->shape.dims[n->shape.rank - 1];
}

static void divide(search *s)
{
    for (uint32_t x = 0; x < s->g->nodes.count; x++)
        if (can_divide(s, x))
            s->v->whole[x] = find_parts(s, x, &s->v->ends[x]);
}

static bool is_divided(const search *s, uint32_t id)
{
    return s->v->ends[id].at[0] != 0;
}

/* The place of a node that selects columns of an x in parts. */
static strided place_part(const search *s, uint32_t id)
{
    const node *n = graph_node(s->g, id);
    const rlxvk_shape *x = input_shape(s->g, n, 0);
    strided at = strided_dense(&n->shape);
    shows_columns(s, id, &at.first);
    at.first *= shape_product(x, 0, x->rank - 1);
    return at;
}

/* ---- Views at strides ---- */

/* A view by op/view.h of a dense operand needs no strides. */
static void lay_out(search *s)
{
    for (uint32_t id = 0; id < s->g->nodes.count; id++) {
        const node *n = graph_node(s->g, id);
        s->v->in[id] = s->refused[id] = NODE_NONE;
        if (!can_be_view(s, id) || s->copied[id] || !(lies(s, n->inputs[0]) || owns(s, id)))
            continue;
        uint32_t x = n->inputs[0];
        strided at = lies(s, x) ? s->v->at[x] : strided_dense(&graph_node(s->g, x)->shape);
        if (is_divided(s, x))
            at = place_part(s, id);
        else if (!node_row(n)->family->views.strided_view(s->g, n, &at))
            continue;
        s->v->at[id] = at;
        s->v->in[id] = x;
    }
}

static void refuse(search *s, uint32_t id, uint32_t reader)
{
    if (lies(s, id) && s->refused[id] == NODE_NONE)
        s->refused[id] = reader;
}

static bool lies_dense(const search *s, uint32_t id)
{
    const rlxvk_shape *shape = &graph_node(s->g, id)->shape;
    strided dense = strided_dense(shape);
    bool alike = true;
    for (uint32_t axis = 0; axis < shape->rank && alike; axis++)
        alike = shape->dims[axis] == 1 || s->v->at[id].strides[axis] == dense.strides[axis];
    return alike;
}

/* Whether the node can read operand i at its place. If that is dense, every kernel can, but a host
 * function cannot. */
static bool accepts(const search *s, uint32_t id, uint32_t i)
{
    uint32_t x = graph_node(s->g, id)->inputs[i];
    return (!is_hosted(s, id) && lies_dense(s, x)) ||
           accepts_strides(s, id, i, s->v->at[x].strides);
}

/* Goes from the last node to the first. If a view is refused and cannot become a copy, its operand
 * is refused, too. */
static void ask_readers(search *s)
{
    for (size_t i = 0; i < s->g->outputs.count; i++) {
        uint32_t id = s->g->outputs.items[i];
        if (lies(s, id) && !lies_dense(s, id)) /* outputs are copied to the host as one piece */
            refuse(s, id, id);
    }
    for (uint32_t id = (uint32_t)s->g->nodes.count; id-- > 0;) {
        const node *n = graph_node(s->g, id);
        uint32_t by = lies(s, id) ? s->refused[id] : NODE_NONE;
        if (by != NODE_NONE && !owns(s, id))
            refuse(s, n->inputs[0], by);
        for (uint32_t i = lies(s, id) && (by == NODE_NONE || !owns(s, id)); i < n->input_count; i++)
            if (lies(s, n->inputs[i]) && !accepts(s, id, i))
                refuse(s, n->inputs[i], id);
    }
}

/* If a reader refuses a part, the product is written as a whole again. */
static bool join_refused(search *s)
{
    bool any = false;
    for (uint32_t id = 0; id < s->g->nodes.count; id++) {
        if (!lies(s, id) || s->refused[id] == NODE_NONE || !is_divided(s, s->v->in[id]))
            continue;
        s->v->ends[s->v->in[id]] = (column_ends){0};
        s->v->whole[s->v->in[id]] =
            "a part is read by the host, or a graph output that lies otherwise";
        any = true;
    }
    return any;
}

/* Makes refused nodes copies. Returns whether there was any. */
static bool copy_refused(search *s, bool spare)
{
    bool any = false;
    for (uint32_t id = 0; id < s->g->nodes.count; id++) {
        bool behind = lies(s, id) && s->renewed[graph_node(s->g, id)->inputs[0]] && spare;
        bool copied = lies(s, id) && s->refused[id] != NODE_NONE && owns(s, id) && !behind;
        if (copied)
            s->v->need[id] = s->refused[id];
        s->copied[id] |= copied;
        s->renewed[id] = copied || behind;
        any |= copied;
    }
    return any;
}

/* ---- Nodes written in their reader's order ---- */

/* The strides of operand 0 if it is written in the order of the node. The node must only permute
 * the operand's axes. The permutation is found by applying it to the numbers of the axes. */
static bool turn_back(const search *s, uint32_t id, strided *out)
{
    const node *n = graph_node(s->g, id);
    const rlxvk_shape *x = input_shape(s->g, n, 0);
    strided axes = {0}, dense = strided_dense(&n->shape);
    for (uint32_t i = 0; i < x->rank; i++)
        axes.strides[i] = i;
    if (n->shape.rank != x->rank || shape_numel(x) != shape_numel(&n->shape) ||
        !node_row(n)->family->views.strided_view(s->g, n, &axes))
        return false;
    *out = (strided){0};
    for (uint32_t i = 0; i < x->rank; i++)
        out->strides[axes.strides[i]] = dense.strides[i];
    return true;
}

static void make_turned(search *s)
{
    for (uint32_t id = 0; id < s->g->nodes.count; id++) {
        const node *n = graph_node(s->g, id);
        strided at;
        if (!can_be_view(s, id) || lies(s, id) || !owns(s, id))
            continue;
        uint32_t x = n->inputs[0];
        if (lies(s, x) || !owns(s, x) || s->restless[id] || !turn_back(s, id, &at) ||
            !accepts_strides(s, x, graph_node(s->g, x)->input_count, at.strides))
            continue;
        bool alone = s->uses[x] == 1;
        s->v->need[id] = alone ? NODE_NONE : x;
        if (!alone)
            continue;
        s->v->at[x] = at;
        s->v->in[x] = id;
    }
}

rlxvk_status strided_find(const rlxvk_graph *g, const bool *on_host, strided_views *out)
{
    size_t count = g->nodes.count + 1;
    strided_views v = {.at = memory_zeroed(count, sizeof *v.at),
                       .in = memory_zeroed(2 * count, sizeof *v.in),
                       .ends = memory_zeroed(count, sizeof *v.ends),
                       .whole = memory_zeroed(count, sizeof *v.whole)};
    uint32_t *words = memory_zeroed(3 * count, sizeof *words);
    bool *flags = memory_zeroed(4 * count, sizeof *flags);
    rlxvk_status status;
    TRY(v.at && v.in && v.ends && v.whole && words && flags ? RLXVK_OK
                                                            : status_fail_memory("strided views"));
    v.need = v.in + count;
    search s = {.g = g,
                .on_host = on_host,
                .v = &v,
                .roots = words,
                .uses = words + count,
                .refused = words + 2 * count,
                .restless = flags,
                .waits = flags + count,
                .copied = flags + 2 * count,
                .renewed = flags + 3 * count};
    survey(&s);
    divide(&s);
    bool again = true;
    for (uint32_t round = 0; again; round++) {
        lay_out(&s);
        ask_readers(&s);
        again = join_refused(&s) || copy_refused(&s, round < MOST_ROUNDS);
    }
    make_turned(&s);
error:
    memory_free(words);
    memory_free(flags);
    if (status != RLXVK_OK)
        strided_destroy(&v);
    else
        *out = v;
    return status;
}

void strided_destroy(strided_views *v)
{
    memory_free(v->at);
    memory_free(v->in);
    memory_free(v->ends);
    memory_free(v->whole);
    *v = (strided_views){0};
}
