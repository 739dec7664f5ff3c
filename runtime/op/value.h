/*
 * Which slot every node lives in. A root owns a slot; a view (reshape, leading narrow, a part
 * written straight into its concat, what a loop's next step gets) lives inside its root's. Made
 * before lowering, pure.
 */
#ifndef RLXVK_VALUE_H
#define RLXVK_VALUE_H

#include "graph/graph.h"

typedef struct value {
    uint32_t root;   /* node id of the slot's owner; itself for a root */
    uint64_t offset; /* elements from the start of the root's slot */
    uint8_t storage; /* enum storage */
    bool in_concat;  /* a producer that writes into its concat's slot, or a loop's carry's */
} value;

typedef struct value_map {
    value *items; /* one per node */
    size_t count;
} value_map;

/* `keep_all` gives every node but pure views a slot of its own. F16/BF16 params stay packed where
 * every reader can read them so. */
rlxvk_status value_map_create(const rlxvk_graph *g, bool keep_all, value_map *out);
void value_map_destroy(value_map *map);

#endif
