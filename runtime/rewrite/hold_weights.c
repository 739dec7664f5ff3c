/*
 * Holds params that are declared F32 as packed F16 or BF16: half the memory, and half the bytes for
 * kernels to read. The condition is the same as for params declared F16 or BF16: every reader takes
 * packed halves (op/value.h). Besides, no op may write the param in place, because rounding would
 * lose small updates of an optimizer.
 *
 * Invariant: only leaves and their plain views change their dtype. All other nodes keep theirs, so
 * no result is rounded that would not be rounded otherwise.
 */
#include "op/value.h"
#include "op/view.h"
#include "rewrite/rewrite.h"

/* The dtype in which each param is held; F32 if it stays as it is. */
static void choose(const rlxvk_graph *g, const holding_options *options, uint8_t *held_as)
{
    static const uint8_t dtypes[] = {[RLXVK_WEIGHTS_AS_DECLARED] = RLXVK_F32,
                                     [RLXVK_WEIGHTS_F16] = RLXVK_F16,
                                     [RLXVK_WEIGHTS_BF16] = RLXVK_BF16};
    rlxvk_dtype otherwise = (rlxvk_dtype)dtypes[options->storage];
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        if (node_is_param(n) && n->dtype == RLXVK_F32 && !n->begins_as_zeros)
            held_as[id] =
                (uint8_t)(options->held_as ? options->held_as(options->sharer, n, otherwise)
                                           : otherwise);
    }
}

static void keep_written(const rlxvk_graph *g, const uint32_t *roots, uint8_t *held_as)
{
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        uint32_t writes = node_writes(n);
        for (uint32_t i = 0; i < n->input_count && writes >> i; i++)
            if (writes >> i & 1)
                held_as[roots[n->inputs[i]]] = RLXVK_F32;
    }
}

/* If params are joined in one piece of memory, the dtype of the first one counts. */
static uint8_t dtype_of(const rlxvk_graph *g, uint32_t root, const uint8_t *held_as)
{
    const node *n = graph_node(g, root);
    return held_as[n->joins_params ? n->inputs[0] : root];
}

static bool relabel(rlxvk_graph *g, const value_map *map, const uint8_t *held_as)
{
    bool any = false;
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        node *n = &g->nodes.items[id];
        if (map->items[id].storage != STORAGE_HALF || n->dtype != RLXVK_F32)
            continue;
        n->dtype = dtype_of(g, map->items[id].root, held_as);
        any = true;
    }
    return any;
}

rlxvk_status rewrite_hold_weights(rlxvk_graph *g, const holding_options *options, bool *out_any)
{
    size_t count = g->nodes.count + 1;
    uint8_t *held_as = memory_zeroed(count, sizeof *held_as);
    uint32_t *roots = memory_zeroed(count, sizeof *roots);
    value_options how = {.keep_all = options->keep_all,
                         .strided = options->strided,
                         .on_host = options->on_host,
                         .held_as = held_as};
    value_map map = {0};
    rlxvk_status status;
    TRY(held_as && roots ? RLXVK_OK : status_fail_memory("weights"));
    choose(g, options, held_as);
    view_roots(g, roots);
    keep_written(g, roots, held_as);
    TRY(value_map_create(g, &how, &map));
    *out_any = relabel(g, &map, held_as);
error:
    value_map_destroy(&map);
    memory_free(held_as);
    memory_free(roots);
    return status;
}
