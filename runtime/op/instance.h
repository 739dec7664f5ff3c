/* A graph with symbols at given sizes: its nodes as their builder calls gave them, and the graph of
 * numbers that results. */
#ifndef RLXVK_INSTANCE_H
#define RLXVK_INSTANCE_H

#include "graph/symbol.h"
#include "op/op.h"

#define INSTANCE_ATTRIBUTE_WORDS 64 /* of 8 bytes; no family's struct is larger */

/* Room for a node's attributes. */
typedef struct instance_attributes {
    uint64_t words[INSTANCE_ATTRIBUTE_WORDS];
} instance_attributes;

/* Pointers to the sizes in a node as its builder call gave it. The attributes must be writable. */
uint32_t instance_sizes(node *n, void *attributes, int64_t *out[OP_MOST_SIZES]);
/* Node `id` as its builder call gave it: it is not normalized, and sizes may be symbolic. Its
 * attributes are in *room. */
node instance_given(const rlxvk_graph *g, uint32_t id, instance_attributes *room);
/* Replaces the symbols of such a node by sizes, and checks it as the next node of `to`, a graph of
 * numbers. */
rlxvk_status instance_check(const rlxvk_graph *to, const symbol_table *t,
                            const rlxvk_binding *sizes, size_t count, node *n, void *attributes);
/* Appends node `id` at these sizes to `to`, which has the nodes before it. */
rlxvk_status instance_append(rlxvk_graph *to, const rlxvk_graph *source, uint32_t id,
                             const rlxvk_binding *sizes, size_t count, bool light);
/* Makes the graph at these sizes, which must include every symbol. light: constants get no data. */
rlxvk_status instance_build(const rlxvk_graph *source, const rlxvk_binding *sizes, size_t count,
                            bool light, rlxvk_graph **out);

#endif
