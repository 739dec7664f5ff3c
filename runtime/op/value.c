/* Finds the place of every node's data before lowering: roots, views, packed halves, and parts that
 * are written into their concat. Pure. */
#include "op/value.h"
#include "op/view.h"

typedef struct placement { /* the place of a node that is not a root */
    uint32_t parent;
    uint64_t offset;
    bool produced; /* written there, although it is not a view */
} placement;

/* Counts uses as operands and outputs. */
static void count_uses(const rlxvk_graph *g, uint32_t *uses)
{
    for (uint32_t id = 0; id < g->nodes.count; id++)
        for (uint32_t i = 0; i < graph_node(g, id)->input_count; i++)
            uses[graph_node(g, id)->inputs[i]]++;
    for (size_t i = 0; i < g->outputs.count; i++)
        uses[g->outputs.items[i]]++;
}

static void place_views(const rlxvk_graph *g, placement *places)
{
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        places[id].parent = view_is(g, n, &places[id].offset) ? n->inputs[0] : NODE_NONE;
    }
}

/* Places views at strides, and nodes that are written in the order of a permuting reader. */
static rlxvk_status place_strided(const rlxvk_graph *g, const value_options *options,
                                  placement *places, value_map *map)
{
    strided_views v;
    rlxvk_status status = RLXVK_OK;
    if (options->keep_all || !options->strided)
        return RLXVK_OK;
    TRY(strided_find(g, options->on_host, &v));
    for (uint32_t id = 0; id < g->nodes.count && status == RLXVK_OK; id++) {
        uint32_t in = v.in[id];
        map->items[id].ends = v.ends[id];
        if (in == NODE_NONE)
            continue;
        uint64_t offset = v.at[id].first - (in < id && v.in[in] < in ? v.at[in].first : 0);
        places[id] = (placement){in, offset, in > id};
        if (!VECTOR_PUSH(&map->strided, v.at[id]))
            status = status_fail_memory("strided views");
        map->items[id].strided = (uint32_t)map->strided.count;
    }
    strided_destroy(&v);
error:
    return status;
}

/* Whether part `p` of concat `c` may be written directly into c's slot. It must own its memory, and
 * c must be its only reader. A param is set there. */
static bool can_join(const rlxvk_graph *g, uint32_t c, uint32_t p, const uint32_t *uses,
                     const placement *places)
{
    const node *n = graph_node(g, p);
    bool set = graph_node(g, c)->joins_params && node_is_param(n);
    return uses[p] == 1 && places[p].parent == NODE_NONE && (n->input_count || set) &&
           !node_writes(n) && op_node_storage(g, p) != STORAGE_RAW;
}

/* Two concats cannot both take one part, nor one concat twice, because its uses[] would be 2. */
static void place_parts(const rlxvk_graph *g, const uint32_t *uses, placement *places)
{
    for (uint32_t c = 0; c < g->nodes.count; c++) {
        const node *n = graph_node(g, c);
        const op_family *family = node_row(n)->family;
        uint64_t offset = 0;
        if (!family->views.concatenates || !family->views.concatenates(n))
            continue;
        for (uint32_t i = 0; i < n->input_count; i++) {
            uint32_t p = n->inputs[i];
            if (can_join(g, c, p, uses, places))
                places[p] = (placement){c, offset, true};
            offset += shape_numel(&graph_node(g, p)->shape);
        }
    }
}

/* ---- Values that a loop carries to its next step ---- */

typedef struct carrying {
    uint32_t *roots;     /* of views */
    uint32_t *last_read; /* the last reader of a root, so far */
    uint32_t *loop;      /* of a carry: the node that opens its loop */
    bool *paired;        /* a reader may become its pair, which runs before the reader's turn */
} carrying;

/* Whether `v` reads an element of the carry only before it overwrites the same element. */
static bool overwrites(const rlxvk_graph *g, const carrying *c, uint32_t v, uint32_t carry)
{
    const node *n = graph_node(g, v);
    const op_family *family = node_row(n)->family;
    uint32_t mask = family->memory.in_place && family->execution.elementwise
                        ? family->memory.in_place(g, n)
                        : 0;
    for (uint32_t i = 0; i < n->input_count; i++)
        if (c->roots[n->inputs[i]] == carry && (i >= 32 || !(mask >> i & 1)))
            return false;
    return true;
}

/* Whether value `v` may be written into the carry's slot. It must be in the loop and own its
 * memory, and no node behind it may read the carry's old value. */
static bool can_replace(const rlxvk_graph *g, const carrying *c, const placement *places,
                        uint32_t carry, uint32_t v)
{
    const node *n = graph_node(g, v);
    const op_family *family = node_row(n)->family;
    return places[v].parent == NODE_NONE && n->input_count && !node_writes(n) && !c->paired[v] &&
           v > c->loop[carry] && c->last_read[carry] <= v && !family->execution.lower_pair &&
           !(family->views.concatenates && family->views.concatenates(n)) &&
           op_node_storage(g, v) != STORAGE_RAW && overwrites(g, c, v, carry);
}

static void note_reads(const rlxvk_graph *g, uint32_t id, const placement *places, carrying *c)
{
    const node *n = graph_node(g, id);
    const op_family *family = node_row(n)->family;
    bool is_view = places[id].parent != NODE_NONE && !places[id].produced && !node_writes(n);
    for (uint32_t i = 0; i < n->input_count && !is_view; i++) {
        uint32_t *last = &c->last_read[c->roots[n->inputs[i]]];
        if (family->loop.opens)
            c->loop[n->inputs[i]] = id;
        else
            *last = MAX(*last, id);
    }
}

/* Goes through the nodes in order, so that the last reader so far is the last one in the loop. */
static void place_carried(const rlxvk_graph *g, placement *places, carrying *c)
{
    view_roots(g, c->roots);
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        for (uint32_t i = 0; i < n->input_count; i++)
            c->paired[n->inputs[i]] |= node_row(n)->family->execution.lower_pair != NULL;
        if (node_row(n)->family->memory.replaces) /* another carry reads it */
            c->last_read[c->roots[n->inputs[1]]] = id;
    }
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        bool replaces = node_row(n)->family->memory.replaces && n->input_count == 2;
        if (!replaces)
            note_reads(g, id, places, c);
        else if (can_replace(g, c, places, n->inputs[0], n->inputs[1]))
            places[n->inputs[1]] = (placement){n->inputs[0], 0, true};
    }
}

/* A view that does not change the bits, packed or not. Casts are not plain, nor are nodes that
 * write their operand. A part placed in its concat is not a view. */
static bool is_plain_view(const rlxvk_graph *g, const placement *places, uint32_t id)
{
    const node *n = graph_node(g, id);
    return n->input_count && places[id].parent == n->inputs[0] &&
           !node_row(n)->family->storage.reinterprets && !node_writes(n);
}

/* Whether all its operands are params that lie in its memory. They can stay packed or not, as they
 * are. */
static bool is_joined(const rlxvk_graph *g, const placement *places, uint32_t id)
{
    const node *n = graph_node(g, id);
    bool joined = n->joins_params;
    for (uint32_t i = 0; i < n->input_count && joined; i++)
        joined = places[n->inputs[i]].produced && places[n->inputs[i]].parent == id;
    return joined;
}

/* Clears half[] of leaves that a reader cannot read packed, or that are outputs. A leaf has one
 * storage for all readers, so one such reader widens it. For a view, the readers of the view
 * decide. */
static void refuse_half(const rlxvk_graph *g, const placement *places, const uint32_t *leaf,
                        bool *half)
{
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        bool plain_view = is_plain_view(g, places, id), joined = is_joined(g, places, id);
        for (uint32_t i = 0; i < n->input_count; i++) {
            bool reads = i < 32 && (node_row(n)->family->storage.half_inputs >> i & 1);
            if (leaf[n->inputs[i]] != NODE_NONE && !reads && !joined && !(plain_view && i == 0))
                half[leaf[n->inputs[i]]] = false;
        }
    }
    for (size_t i = 0; i < g->outputs.count; i++)
        if (leaf[g->outputs.items[i]] != NODE_NONE)
            half[leaf[g->outputs.items[i]]] = false;
}

static bool can_be_half(const rlxvk_graph *g, const value_options *options, uint32_t id)
{
    const node *n = graph_node(g, id);
    uint8_t dtype = n->dtype;
    if (options->held_as && dtype == RLXVK_F32)
        dtype = options->held_as[id];
    return node_is_weight(n) && (dtype == RLXVK_F16 || dtype == RLXVK_BF16);
}

static void choose_half(const rlxvk_graph *g, const value_options *options, const placement *places,
                        uint32_t *leaf, bool *half)
{
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        bool joined = is_joined(g, places, id);
        half[id] = can_be_half(g, options, joined ? n->inputs[0] : id);
        leaf[id] = half[id] ? id : is_plain_view(g, places, id) ? leaf[n->inputs[0]] : NODE_NONE;
        for (uint32_t i = 0; i < n->input_count && joined && half[id]; i++)
            leaf[n->inputs[i]] = id;
    }
    refuse_half(g, places, leaf, half);
}

/* Puts a value into its parent's place. */
static void place_in_root(const placement *places, uint32_t id, value_map *map)
{
    const value *parent = &map->items[places[id].parent];
    map->items[id].root = parent->root;
    map->items[id].offset = parent->offset + places[id].offset;
}

/* Parts first, from the end, because a concat comes after its parts. Then views, from the start,
 * because a view comes after its operand. The order is sound, because a part in a concat is never a
 * view. */
static void resolve(const rlxvk_graph *g, const placement *places, const uint32_t *leaf,
                    const bool *half, value_map *map)
{
    for (uint32_t id = (uint32_t)g->nodes.count; id-- > 0;) {
        value *v = &map->items[id];
        v->root = id;
        v->in_concat = places[id].produced;
        if (v->in_concat && places[id].parent > id)
            place_in_root(places, id, map);
    }
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        if (places[id].parent != NODE_NONE && places[id].parent < id)
            place_in_root(places, id, map);
        map->items[id].storage =
            (uint8_t)(leaf[id] != NODE_NONE && half[leaf[id]] ? STORAGE_HALF
                                                              : op_node_storage(g, id));
    }
}

rlxvk_status value_map_create(const rlxvk_graph *g, const value_options *options, value_map *out)
{
    size_t count = g->nodes.count;
    rlxvk_status status;
    value_map map = {.items = memory_zeroed(count + 1, sizeof *map.items), .count = count};
    placement *places = memory_zeroed(count + 1, sizeof *places);
    uint32_t *words = memory_zeroed(5 * count + 1, sizeof *words);
    bool *half = memory_zeroed(2 * count + 1, sizeof *half);
    TRY(map.items && places && words && half ? RLXVK_OK : status_fail_memory("value map"));
    carrying c = {words + 2 * count, words + 3 * count, words + 4 * count, half + count};
    count_uses(g, words);
    place_views(g, places);
    TRY(place_strided(g, options, places, &map));
    if (!options->keep_all)
        place_parts(g, words, places);
    choose_half(g, options, places, words + count, half);
    if (!options->keep_all)
        place_carried(g, places, &c);
    resolve(g, places, words + count, half, &map);
error:
    memory_free(places);
    memory_free(words);
    memory_free(half);
    if (status != RLXVK_OK)
        value_map_destroy(&map);
    else
        *out = map;
    return status;
}

void value_map_destroy(value_map *map)
{
    memory_free(map->items);
    VECTOR_FREE(&map->strided);
    *map = (value_map){0};
}
