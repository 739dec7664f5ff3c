/* Binding the symbols of a graph. */
#ifndef RLXVK_BIND_H
#define RLXVK_BIND_H

#include "op/instance.h"

typedef VECTOR(rlxvk_binding) binding_list;

/* Adds bindings to a list after checking them, and ROWS if it follows from them. E_RANGE,
 * E_BIND_CONFLICT. */
rlxvk_status bind_resolve(const rlxvk_binding *bindings, size_t count, binding_list *out);
/* Whether every symbol of the graph has a size. */
bool bind_is_complete(const rlxvk_graph *g, const binding_list *sizes);
/* A copy of the graph with the sizes in place of symbols. If all symbols have a size, it has only
 * numbers. */
rlxvk_status bind_graph(const rlxvk_graph *source, const binding_list *sizes, rlxvk_graph **out);
/* E_SHAPE if node `id` of the bound graph does not have the shape that rlxvk_tensor_shape told. */
rlxvk_status bind_check_told(const rlxvk_graph *source, const rlxvk_graph *bound,
                             const binding_list *sizes, uint32_t id);
/* A node as its builder call gave it, ready to be appended to another graph: symbols are replaced
 * by sizes, and computed dims are those of `to`. */
node bind_translate(const rlxvk_graph *from, uint32_t id, const binding_list *sizes,
                    rlxvk_graph *to, instance_attributes *room);

#endif
