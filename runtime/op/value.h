/*
 * The slot of each node. A root owns a slot; a view lies inside its root's slot, perhaps at
 * strides. Views here are reshapes, leading narrows, parts that are written directly into their
 * concat, and new values of loop carries. The map is made before lowering. Pure.
 */
#ifndef RLXVK_VALUE_H
#define RLXVK_VALUE_H

#include "op/strided.h"

typedef struct value {
    uint32_t root;    /* node id of the slot's owner; a root has its own id */
    uint64_t offset;  /* elements from the start of the root's slot */
    uint8_t storage;  /* enum storage */
    bool in_concat;   /* not a view, but written directly into the slot of its concat, its transpose
                       * or a loop's carry */
    uint32_t strided; /* one more than its index in the map's `strided`; 0: dense */
    column_ends ends; /* of its columns, if it is written in parts */
} value;

typedef struct value_map {
    value *items; /* one per node */
    size_t count;
    VECTOR(strided) strided;
} value_map;

typedef struct value_options {
    bool keep_all;       /* every node except plain views has its own slot */
    bool strided;        /* nodes may lie in other slots at strides */
    const bool *on_host; /* OP_COUNT flags of ops that run on the host; may be NULL */
    /* Per node: F16 or BF16 if the node is an F32 param that is to be treated as if it were
     * declared so; F32 if it is as declared. NULL: all are as declared. */
    const uint8_t *held_as;
} value_options;

/* F16/BF16 params stay packed if every reader can read them packed. */
rlxvk_status value_map_create(const rlxvk_graph *g, const value_options *options, value_map *out);
void value_map_destroy(value_map *map);

#endif
