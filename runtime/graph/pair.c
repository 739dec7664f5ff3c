/* See pair.h. */
#include "graph/pair.h"

/* Allocates one element more, because an allocation must not be empty. NULL if out of memory. */
uint32_t *pair_partners(const node_pair *pairs, size_t count, size_t nodes)
{
    uint32_t *partners = memory_allocate((nodes + 1) * sizeof *partners);
    for (size_t i = 0; partners && i < nodes; i++)
        partners[i] = NODE_NONE;
    for (size_t i = 0; partners && i < count; i++) {
        partners[pairs[i].first] = pairs[i].second;
        partners[pairs[i].second] = pairs[i].first;
    }
    return partners;
}
