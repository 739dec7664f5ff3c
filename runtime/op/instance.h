/* A graph with symbols, at sizes: what its nodes were given, and the graph of numbers that this
 * makes. */
#ifndef RLXVK_INSTANCE_H
#define RLXVK_INSTANCE_H

#include "graph/symbol.h"
#include "op/op.h"

#define INSTANCE_ATTRIBUTE_WORDS 64 /* of 8 bytes: no family's struct is larger */

/* Room for a node's attributes. */
typedef struct instance_attributes {
    uint64_t words[INSTANCE_ATTRIBUTE_WORDS];
} instance_attributes;

/* Where sizes stand in a node as its builder call gave it, whose attributes may be written. */
uint32_t instance_sizes(node *n, void *attributes, int64_t *out[OP_MOST_SIZES]);
/* Node `id` as given: not normalized, sizes perhaps symbolic; the attributes lie in *room. */
node instance_given(const rlxvk_graph *g, uint32_t id, instance_attributes *room);
/* Puts sizes for the codes of such a node and checks it as the next of `to`, a graph of numbers. */
rlxvk_status instance_check(const rlxvk_graph *to, const symbol_table *t,
                            const rlxvk_binding *sizes, size_t count, node *n, void *attributes);
/* Node `id` at these sizes as the next of `to`, which has those before it. */
rlxvk_status instance_append(rlxvk_graph *to, const rlxvk_graph *source, uint32_t id,
                             const rlxvk_binding *sizes, size_t count, bool light);
/* The nodes at these sizes, which must be all. `light`: without what constants hold. */
rlxvk_status instance_build(const rlxvk_graph *source, const rlxvk_binding *sizes, size_t count,
                            bool light, rlxvk_graph **out);

#endif
