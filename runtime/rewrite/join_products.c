/*
 * Products of one input with several weights, for example attention's three projections, or a gate
 * and the tensor it gates. Their weights are joined into one weight, and the products read parts of
 * it.
 *
 * The params can lie in the joined weight's memory if they are rows of it (transpose_b), begin at
 * aligned addresses, and have no other reader. Then setting a param writes there, and nothing is
 * copied. Otherwise the joined weight is a copy, made when params are set, and the caller must
 * allow memory for it.
 *
 * One product replaces all of them if its parts cost nothing. That is so for one row, because the
 * parts then follow each other in memory. It is also so for a gate, whose halves are used as they
 * are (fuse_swiglu.c). Products of more rows stay separate. The joined memory costs them nothing,
 * so executables for one row and for many rows can share it.
 */
#include "op/movement/movement.h"
#include "rewrite/fuse.h"

#include <string.h>

#define MOST_PARTS 8

typedef struct product_group {
    uint32_t parts[MOST_PARTS], count; /* old nodes, ascending */
    uint32_t before; /* while groups are found: 1 + the previous group of the same input */
    bool in_place, as_one;
    uint32_t joined; /* new nodes: the weight, and the product if there is only one */
    uint32_t product;
} product_group;

typedef VECTOR(product_group) group_list;

typedef struct joining {
    const rewrite_options *options;
    group_list groups;
    uint32_t *group_of; /* per old product: 1 + its group; while groups are found, per x */
    uint32_t *moved;    /* per old leaf: 1 + the new leaf, if it was copied early */
    uint64_t left;      /* bytes that are left for copies */
} joining;

/* ---- Which products can be parts ---- */

static bool is_product(const pass *p, const node *n)
{
    const matmul_attributes *a = n->attributes;
    return (n->op == OP_matmul || n->op == OP_fused_matmul_bias_act) && !a->transpose_a &&
           fuse_operand(p, n, 1)->shape.rank == 2 && shape_numel(&n->shape) > 0;
}

static bool is_written(const pass *p, uint32_t id)
{
    for (uint32_t reader = id + 1; p->writes[p->count] && reader < p->count; reader++) {
        const node *n = &p->nodes[reader];
        uint32_t writes = node_writes(n);
        for (uint32_t i = 0; i < n->input_count && writes >> i; i++)
            if ((writes >> i & 1) && n->inputs[i] == id)
                return true;
    }
    return false;
}

/* Whether weight and bias are set by the caller, not computed. */
static bool has_set_weights(const pass *p, const node *n)
{
    for (uint32_t i = 1; i < n->input_count; i++) {
        uint32_t id = n->inputs[i];
        if (!node_is_param(&p->nodes[id]))
            return rewrite_miss(p, "the weight %%%u of a product of the same input is no param",
                                id);
        if (is_written(p, id))
            return rewrite_miss(p, "the weight %%%u is written in place", id);
    }
    return true;
}

/* Whether the weight may lie in the memory of the joined one. It must be rows of it, begin at an
 * aligned address, and have no other reader. Rows that are aligned as halves are also aligned as
 * words. */
static bool is_placeable(const pass *p, const node *n, const rewrite_options *options)
{
    const node *w = fuse_operand(p, n, 1);
    rlxvk_dtype held = w->dtype == RLXVK_F32 && options->may_halve ? RLXVK_F16 : w->dtype;
    uint64_t bytes = shape_numel(&w->shape) * rlxvk_dtype_size(held);
    if (!((const matmul_attributes *)n->attributes)->transpose_b)
        return rewrite_miss(p, "the weight %%%u is not stored as rows of the result (transpose_b)",
                            fuse_id(p, w));
    if (bytes % options->profile->slot_alignment)
        return rewrite_miss(p, "the weight %%%u ends at no aligned address", fuse_id(p, w));
    return rewrite_expect_private(p, fuse_id(p, w));
}

static bool are_alike(const pass *p, const node *a, const node *b)
{
    bool alike = a->op == b->op && a->dtype == b->dtype && a->inputs[0] == b->inputs[0] &&
                 memcmp(a->attributes, b->attributes, a->attribute_size) == 0;
    for (uint32_t i = 1; i < a->input_count && alike; i++)
        alike = fuse_operand(p, a, i)->dtype == fuse_operand(p, b, i)->dtype;
    return alike;
}

/* Whether the memory of the node may be written between two of its readers. */
static bool may_change(const pass *p, uint32_t id)
{
    const node *n = &p->nodes[id];
    while (n->input_count && node_row(n)->family->views.view)
        n = &p->nodes[n->inputs[0]];
    return is_written(p, fuse_id(p, n));
}

/* ---- How a group is joined ---- */

static bool is_transposed(const pass *p, const product_group *g)
{
    return ((const matmul_attributes *)p->nodes[g->parts[0]].attributes)->transpose_b;
}

static const node *weight_of(const pass *p, const product_group *g, uint32_t part)
{
    return fuse_operand(p, &p->nodes[g->parts[part]], 1);
}

static int64_t columns_of(const pass *p, uint32_t product)
{
    return p->nodes[product].shape.dims[p->nodes[product].shape.rank - 1];
}

static uint64_t total_bytes(const pass *p, const product_group *g)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->count; i++)
        sum += shape_numel(&weight_of(p, g, i)->shape) *
               rlxvk_dtype_size((rlxvk_dtype)weight_of(p, g, i)->dtype);
    return sum;
}

static bool fits(const pass *p, const product_group *g, const device_profile *profile)
{
    uint64_t numel = 0, most = MIN(profile->max_binding_bytes, profile->max_allocation_bytes);
    for (uint32_t i = 0; i < g->count; i++)
        numel += shape_numel(&weight_of(p, g, i)->shape);
    return (numel <= INT32_MAX && 4 * numel <= most) ||
           rewrite_miss(p, "the joined weight of %%%u would not fit the device", g->parts[0]);
}

/* Whether the weights may lie in one piece of memory, as far as sharing allows it. */
static bool may_lie(const pass *p, const product_group *g, const rewrite_options *options)
{
    const char *names[MOST_PARTS];
    for (uint32_t i = 0; i < g->count; i++)
        names[i] = weight_of(p, g, i)->name;
    return !options->may_join || options->may_join(options->sharer, names, g->count) ||
           rewrite_miss(p, "the weights lie apart in share_with");
}

/* Whether one product is gated by silu of the other, and nothing else reads them. */
static bool is_gate(const pass *p, const product_group *g)
{
    uint32_t a = g->parts[0], b = g->parts[1];
    if (g->count != 2 || columns_of(p, a) != columns_of(p, b) || !is_private(p, a) ||
        !is_private(p, b))
        return false;
    for (uint32_t id = b + 1; id < p->count; id++) {
        const node *n = &p->nodes[id];
        for (uint32_t i = 0; i < 2 && n->op == OP_mul; i++) {
            const node *silu = fuse_operand(p, n, i);
            if (silu->op == OP_silu && is_private(p, n->inputs[i]) &&
                ((silu->inputs[0] == a && n->inputs[1 - i] == b) ||
                 (silu->inputs[0] == b && n->inputs[1 - i] == a)))
                return true;
        }
    }
    return false;
}

static bool is_of_one_row(const pass *p, const product_group *g)
{
    return shape_numel(&p->nodes[g->parts[0]].shape) == (uint64_t)columns_of(p, g->parts[0]);
}

/* Decides how to join a group. Returns false if it stays as it is. *left is the number of bytes
 * that copies may take. */
static bool decide(const pass *p, product_group *g, const rewrite_options *options, uint64_t *left)
{
    uint32_t last = g->parts[g->count - 1], x = p->nodes[last].inputs[0];
    bool halves = weight_of(p, g, 0)->dtype != RLXVK_F32 || options->may_halve;
    uint64_t bytes = total_bytes(p, g);
    if (!fits(p, g, options->profile))
        return false;
    g->as_one = is_of_one_row(p, g) || is_gate(p, g);
    if (g->as_one && rewrite_writes_between(p, g->parts[0], last) && may_change(p, x))
        return rewrite_miss(p, "their input %%%u is written in place between them", x);
    g->in_place = is_placeable(p, &p->nodes[g->parts[0]], options) &&
                  is_placeable(p, &p->nodes[last], options) && may_lie(p, g, options);
    if (g->in_place || !g->as_one)
        return g->in_place;
    if (halves)
        return rewrite_miss(p, "a copy of their weights would be widened");
    if (bytes > *left)
        return rewrite_miss(p,
                            "a copy of their weights takes %llu bytes, more than prepared_bytes "
                            "leaves",
                            (unsigned long long)bytes);
    *left -= bytes;
    return true;
}

/* ---- Finding groups ---- */

static bool has_part(const pass *p, const product_group *g, uint32_t weight)
{
    for (uint32_t i = 0; i < g->count; i++)
        if (p->nodes[g->parts[i]].inputs[1] == weight)
            return true;
    return false;
}

static bool takes_part(const pass *p, const product_group *g, const node *n,
                       const rewrite_options *options)
{
    const node *first = &p->nodes[g->parts[0]];
    return g->count < MOST_PARTS && are_alike(p, first, n) && !has_part(p, g, n->inputs[1]) &&
           is_placeable(p, first, options) == is_placeable(p, n, options);
}

/* While groups are found, group_of[x] of the input x has the last group of x. */
static bool take_part(const pass *p, joining *j, uint32_t id)
{
    const node *n = &p->nodes[id];
    uint32_t *last = &j->group_of[n->inputs[0]];
    for (uint32_t i = *last; i; i = j->groups.items[i - 1].before) {
        product_group *g = &j->groups.items[i - 1];
        if (!takes_part(p, g, n, j->options))
            continue;
        g->parts[g->count++] = id;
        return true;
    }
    product_group made = {.parts = {id}, .count = 1, .before = *last};
    *last = (uint32_t)j->groups.count + 1;
    return VECTOR_PUSH(&j->groups, made);
}

static rlxvk_status find_groups(const pass *p, joining *j)
{
    for (uint32_t id = 0; id < p->count; id++)
        if (is_product(p, &p->nodes[id]) && has_set_weights(p, &p->nodes[id]) &&
            !take_part(p, j, id))
            return status_fail_memory("products");
    memset(j->group_of, 0, p->count * sizeof *j->group_of);
    for (size_t i = 0; i < j->groups.count; i++) {
        product_group *g = &j->groups.items[i];
        bool joins = g->count > 1 && decide(p, g, j->options, &j->left);
        for (uint32_t k = 0; k < g->count && joins; k++)
            j->group_of[g->parts[k]] = (uint32_t)i + 1;
    }
    return RLXVK_OK;
}

/* ---- Building the new nodes ---- */

/* If a leaf comes after old node `now`, it is copied early, because the new node reads it. */
static uint32_t take_leaf(pass *p, const joining *j, uint32_t leaf, uint32_t now)
{
    if (leaf < now)
        return p->map[leaf];
    if (!j->moved[leaf])
        j->moved[leaf] = pass_copy(p, leaf) + 1;
    return j->moved[leaf] - 1;
}

static uint32_t join_operand(pass *p, const joining *j, const product_group *g, uint32_t operand,
                             int32_t axis)
{
    axis_attributes a = {.axis = axis};
    uint32_t inputs[MOST_PARTS], id;
    for (uint32_t i = 0; i < g->count; i++)
        inputs[i] = take_leaf(p, j, p->nodes[g->parts[i]].inputs[operand], g->parts[0]);
    id = p->graph->status == RLXVK_OK ? op_append(p->graph, OP_concat, inputs, g->count, &a, NULL)
                                      : NODE_NONE;
    if (id != NODE_NONE) {
        p->graph->nodes.items[id].prepare = true;
        p->graph->nodes.items[id].joins_params = operand == 1 && g->in_place;
    }
    return id;
}

static uint32_t append_product(pass *p, uint32_t old, const uint32_t *inputs, const char *name)
{
    const node *n = &p->nodes[old];
    matmul_attributes a = *(const matmul_attributes *)n->attributes;
    return op_append(p->graph, (op_kind)n->op, inputs, n->input_count, &a, name);
}

static void emit_joined(pass *p, const joining *j, product_group *g)
{
    const node *n = &p->nodes[g->parts[0]];
    uint32_t inputs[3] = {p->map[n->inputs[0]]};
    g->joined = inputs[1] = join_operand(p, j, g, 1, is_transposed(p, g) ? 0 : 1);
    if (!g->as_one || g->joined == NODE_NONE)
        return;
    if (n->input_count > 2)
        inputs[2] = join_operand(p, j, g, 2, 0);
    if (p->graph->status == RLXVK_OK)
        g->product = append_product(p, g->parts[0], inputs, NULL);
}

/* The product of one part: columns of the one product, or a product with the part's rows. */
static uint32_t emit_part(pass *p, const product_group *g, uint32_t id)
{
    const node *n = &p->nodes[id];
    narrow_attributes a = {.axis = g->as_one ? (int32_t)n->shape.rank - 1 : 0,
                           .length = columns_of(p, id)};
    uint32_t inputs[3];
    for (uint32_t i = 0; g->parts[i] != id; i++)
        a.start += columns_of(p, g->parts[i]);
    if (g->as_one)
        return op_append(p->graph, OP_narrow, &g->product, 1, &a, n->name);
    for (uint32_t i = 0; i < n->input_count; i++)
        inputs[i] = p->map[n->inputs[i]];
    inputs[1] = op_append(p->graph, OP_narrow, &g->joined, 1, &a, NULL);
    return p->graph->status == RLXVK_OK ? append_product(p, id, inputs, n->name) : NODE_NONE;
}

static uint32_t join_product(pass *p, uint32_t id)
{
    const joining *j = p->context;
    if (j->moved[id])
        return j->moved[id] - 1;
    if (!j->group_of[id])
        return NODE_NONE;
    product_group *g = &j->groups.items[j->group_of[id] - 1];
    if (g->parts[0] == id)
        emit_joined(p, j, g);
    return p->graph->status == RLXVK_OK ? emit_part(p, g, id) : NODE_NONE;
}

rlxvk_status join_products(rlxvk_graph *g, const rewrite_options *options)
{
    size_t count = g->nodes.count + 1;
    joining j = {.options = options,
                 .group_of = memory_zeroed(count, sizeof *j.group_of),
                 .moved = memory_zeroed(count, sizeof *j.moved),
                 .left = options->prepared_bytes};
    pass before = {.nodes = g->nodes.items,
                   .count = (uint32_t)g->nodes.count,
                   .uses = rewrite_count_uses(g),
                   .writes = rewrite_count_writes(g)};
    rlxvk_status status = RLXVK_OK;
    if (!j.group_of || !j.moved || !before.uses || !before.writes)
        TRY(status_fail_memory("products"));
    if (options->profile && !(options->on_host && options->on_host[OP_concat]))
        TRY(find_groups(&before, &j));
    if (j.groups.count)
        TRY(rewrite_run_pass(g, join_product, &j));
error:
    VECTOR_FREE(&j.groups);
    memory_free(j.group_of);
    memory_free(j.moved);
    memory_free(before.uses);
    memory_free(before.writes);
    return status;
}

/* ---- Misses ---- */

/* The first product before this one that has the same input; NODE_NONE if there is none. */
static uint32_t sibling_of(const pass *p, uint32_t id)
{
    for (uint32_t first = p->nodes[id].inputs[0] + 1; first < id; first++)
        if (is_product(p, &p->nodes[first]) && are_alike(p, &p->nodes[first], &p->nodes[id]))
            return first;
    return NODE_NONE;
}

/* Reports why two products were not joined. If their weights are in one piece already, that is not
 * a miss. */
bool join_match_products(const pass *p, uint32_t id, fusion *out)
{
    const rewrite_options *options = p->context;
    const node *n = &p->nodes[id];
    uint64_t left = options->prepared_bytes;
    (void)out;
    if (!is_product(p, n) || !options->profile)
        return false;
    product_group g = {.parts = {sibling_of(p, id), id}, .count = 2};
    if (g.parts[0] == NODE_NONE || !(is_of_one_row(p, &g) || is_gate(p, &g)) ||
        n->inputs[1] == p->nodes[g.parts[0]].inputs[1])
        return false;
    if (fuse_operand(p, &p->nodes[g.parts[0]], 1)->prepare) /* joined, without this one */
        return has_set_weights(p, n) && is_placeable(p, n, options);
    return has_set_weights(p, &p->nodes[g.parts[0]]) && has_set_weights(p, n) &&
           decide(p, &g, options, &left);
}
