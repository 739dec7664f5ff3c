/* Roots, views, packed halves and concat-in-place: where every node's data live, before any
 * lowering. Pure. */
#include "op/value.h"
#include "op/view.h"

typedef struct placement { /* a non-root: whose slot it lies in, and where */
    uint32_t parent;
    uint64_t offset;
} placement;

/* Uses by operands and outputs. */
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

/* Whether part `p` of concat `c` may be produced straight into c's slot: nothing else reads it, and
 * it owns its memory. */
static bool can_join(const rlxvk_graph *g, uint32_t p, const uint32_t *uses,
                     const placement *places)
{
    return uses[p] == 1 && places[p].parent == NODE_NONE && graph_node(g, p)->input_count &&
           !node_writes(graph_node(g, p)) && op_node_storage(g, p) != STORAGE_RAW;
}

/* No two concats want one part, nor one concat twice: its uses[] would be 2. */
static void place_parts(const rlxvk_graph *g, const uint32_t *uses, placement *places)
{
    for (uint32_t c = 0; c < g->nodes.count; c++) {
        const node *n = graph_node(g, c);
        const op_family *family = node_row(n)->family;
        uint64_t offset = 0;
        if (!family->joins || !family->joins(n))
            continue;
        for (uint32_t i = 0; i < n->input_count; i++) {
            uint32_t p = n->inputs[i];
            if (can_join(g, p, uses, places))
                places[p] = (placement){c, offset};
            offset += shape_numel(&graph_node(g, p)->shape);
        }
    }
}

/* A view that leaves the bits as they are, packed or not: no cast, and no node that writes what it
 * is a view of. A part placed in its concat is no view at all. */
static bool is_plain_view(const rlxvk_graph *g, const placement *places, uint32_t id)
{
    const node *n = graph_node(g, id);
    return n->input_count && places[id].parent == n->inputs[0] &&
           !node_row(n)->family->reinterprets && !node_writes(n);
}

/* A leaf is packed in one way for all: a single reader that cannot take it, or its being an output,
 * has it widened.
 * Clears half[] of leaves that some reader cannot take packed. A view hands the question on to its
 * own readers. */
static void refuse_half(const rlxvk_graph *g, const placement *places, const uint32_t *leaf,
                        bool *half)
{
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        bool plain_view = is_plain_view(g, places, id);
        for (uint32_t i = 0; i < n->input_count; i++) {
            bool reads = i < 32 && (node_row(n)->family->half_inputs >> i & 1);
            if (leaf[n->inputs[i]] != NODE_NONE && !reads && !(plain_view && i == 0))
                half[leaf[n->inputs[i]]] = false;
        }
    }
    for (size_t i = 0; i < g->outputs.count; i++)
        if (leaf[g->outputs.items[i]] != NODE_NONE)
            half[leaf[g->outputs.items[i]]] = false;
}

static bool can_be_half(const node *n)
{
    return node_is_weight(n) && (n->dtype == RLXVK_F16 || n->dtype == RLXVK_BF16);
}

static void choose_half(const rlxvk_graph *g, const placement *places, uint32_t *leaf, bool *half)
{
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        half[id] = can_be_half(n);
        leaf[id] = half[id] ? id : is_plain_view(g, places, id) ? leaf[n->inputs[0]] : NODE_NONE;
    }
    refuse_half(g, places, leaf, half);
}

/* Puts a value where its parent's is. */
static void place_in_root(const placement *places, uint32_t id, value_map *map)
{
    const value *parent = &map->items[places[id].parent];
    map->items[id].root = parent->root;
    map->items[id].offset = parent->offset + places[id].offset;
}

/* A concat stands after its parts and a view after its operand, and only a part that is no view is
 * placed in a concat: so parts first, from the end, and then views. */
static void resolve(const rlxvk_graph *g, const placement *places, const uint32_t *leaf,
                    const bool *half, value_map *map)
{
    for (uint32_t id = (uint32_t)g->nodes.count; id-- > 0;) {
        value *v = &map->items[id];
        v->root = id;
        v->in_concat = places[id].parent != NODE_NONE && places[id].parent > id;
        if (v->in_concat)
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

rlxvk_status value_map_create(const rlxvk_graph *g, bool keep_all, value_map *out)
{
    size_t count = g->nodes.count;
    rlxvk_status status = RLXVK_OK;
    value_map map = {memory_zeroed(count + 1, sizeof *map.items), count};
    placement *places = memory_zeroed(count + 1, sizeof *places);
    uint32_t *words = memory_zeroed(2 * count + 1, sizeof *words);
    bool *half = memory_zeroed(count + 1, sizeof *half);
    if (!map.items || !places || !words || !half) {
        status = status_fail_memory("value map");
        value_map_destroy(&map);
    } else {
        count_uses(g, words);
        place_views(g, places);
        if (!keep_all)
            place_parts(g, words, places);
        choose_half(g, places, words + count, half);
        resolve(g, places, words + count, half, &map);
        *out = map;
    }
    memory_free(places);
    memory_free(words);
    memory_free(half);
    return status;
}

void value_map_destroy(value_map *map)
{
    memory_free(map->items);
    *map = (value_map){0};
}
