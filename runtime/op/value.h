/*
 * Which slot every node lives in. A root owns a slot; a view (reshape, leading narrow, a part
 * written straight into its concat, what a loop's next step gets) lives inside its root's, perhaps
 * at strides. Made before lowering, pure.
 */
#ifndef RLXVK_VALUE_H
#define RLXVK_VALUE_H

#include "op/strided.h"

typedef struct value {
    uint32_t root;    /* node id of the slot's owner; itself for a root */
    uint64_t offset;  /* elements from the start of the root's slot */
    uint8_t storage;  /* enum storage */
    bool in_concat;   /* a producer that writes into its concat's slot, its transpose's or a loop's
                       * carry's */
    uint32_t strided; /* one more than where its strides are in the map; 0: dense */
    column_ends ends; /* of its parts, where it is made in such */
} value;

typedef struct value_map {
    value *items; /* one per node */
    size_t count;
    VECTOR(strided) strided;
} value_map;

typedef struct value_options {
    bool keep_all;       /* every node but pure views has a slot of its own */
    bool strided;        /* nodes may lie in others' slots at strides */
    const bool *on_host; /* OP_COUNT flags of rows that run on the host; may be NULL */
    /* Per node: F16 or BF16 if the node is an F32 param that is to be treated as if it were
     * declared so; F32: as declared. NULL: all are as declared. */
    const uint8_t *held_as;
} value_options;

/* F16/BF16 params stay packed where every reader can read them so. */
rlxvk_status value_map_create(const rlxvk_graph *g, const value_options *options, value_map *out);
void value_map_destroy(value_map *map);

#endif
