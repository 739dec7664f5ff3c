/* See instance.h. */
#include "op/instance.h"

#include <string.h>

static bool is_leaf(const node *n)
{
    return node_row(n)->family == op_table[OP_input].family;
}

uint32_t instance_sizes(node *n, void *attributes, int64_t *out[OP_MOST_SIZES])
{
    const op_family *family = node_row(n)->family;
    if (is_leaf(n))
        return op_shape_sizes(&n->shape, out);
    return family->sizes && attributes ? family->sizes(attributes, out) : 0;
}

node instance_given(const rlxvk_graph *g, uint32_t id, instance_attributes *room)
{
    node n = *graph_node(g, id);
    const symbol_node *s =
        g->symbols && id < g->symbols->nodes.count ? &g->symbols->nodes.items[id] : NULL;
    if (n.attributes)
        memcpy(room, s ? s->attributes : n.attributes, n.attribute_size);
    n.attributes = n.attributes ? room : NULL;
    if (is_leaf(&n) && s)
        n.shape = s->shape;
    return n;
}

rlxvk_status instance_check(const rlxvk_graph *to, const symbol_table *t,
                            const rlxvk_binding *sizes, size_t count, node *n, void *attributes)
{
    int64_t *at[OP_MOST_SIZES];
    uint32_t size_count = instance_sizes(n, attributes, at);
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < size_count; i++)
        TRY(symbol_bind(t, sizes, count, *at[i], at[i]));
    TRY(op_check(to, n, attributes));
error:
    return status;
}

/* A leaf without symbols is not checked again, because the check would refuse the names of the
 * library's own inputs. */
rlxvk_status instance_append(rlxvk_graph *to, const rlxvk_graph *source, uint32_t id,
                             const rlxvk_binding *sizes, size_t count, bool light)
{
    instance_attributes room;
    node n = instance_given(source, id, &room);
    rlxvk_status status = RLXVK_OK;
    if (!is_leaf(&n) || symbol_in_shape(&n.shape)) {
        n.building = to;
        TRY(instance_check(to, source->symbols, sizes, count, &n, n.attributes ? &room : NULL));
    }
    if (light && n.data)
        n.data_size = 0;
    n.gradient_of = graph_node(source, id)->gradient_of;
    if (graph_append(to, &n) == NODE_NONE)
        TRY(to->status);
error:
    return status;
}

rlxvk_status instance_build(const rlxvk_graph *source, const rlxvk_binding *sizes, size_t count,
                            bool light, rlxvk_graph **out)
{
    rlxvk_graph *to = NULL;
    rlxvk_status status;
    TRY(rlxvk_graph_create(&to));
    for (uint32_t id = 0; id < source->nodes.count; id++)
        TRY(instance_append(to, source, id, sizes, count, light));
    *out = to;
    return RLXVK_OK;
error:
    rlxvk_graph_destroy(to);
    return status;
}
