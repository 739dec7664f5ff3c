/*
 * Shared by the layout and indexing families: one way to emit a bit-exact copy between strided
 * views, and helpers for host functions.
 */
#ifndef RLXVK_LAYOUT_H
#define RLXVK_LAYOUT_H

#include "args/movement.h"
#include "op/op.h"

/* For each coordinate c below dims, target[target_first + c . target] = source[source_first + c .
 * source]. Indices are elements of the operands' views, and axes are outermost first. Source
 * strides may be 0 or negative. Target strides are positive and never collide. */
typedef struct strided_copy {
    uint32_t rank;
    int64_t dims[RLXVK_MAX_RANK], source[RLXVK_MAX_RANK], target[RLXVK_MAX_RANK];
    int64_t source_first, target_first;
} strided_copy;

/* Starts a copy that writes `shape` densely. The caller fills source and source_first. */
strided_copy layout_dense_copy(const rlxvk_shape *shape);
/* Emits a copy, with the kernel that suits its strides. Takes only words and pairs. */
rlxvk_status layout_emit_copy(lowering *l, const strided_copy *copy, operand source,
                              operand target);
/* The same, for a copy that makes the node's result, or its rows one for one. */
rlxvk_status layout_emit_rows(lowering *l, const strided_copy *copy, operand source,
                              operand target);
/* The same, from operand 0 of a node to its result. Emits nothing if the operand was made in the
 * result's memory. */
rlxvk_status layout_emit_node(lowering *l, uint32_t id, const strided_copy *copy);
/* The words of an element: 2 for pairs, otherwise 1. */
static inline uint32_t element_words(const operand *o)
{
    return MAX(dtype_storage_element_bytes((storage)o->storage) / 4, 1);
}
/* The units that one workgroup moves, if each invocation moves COPY_ITEMS. A unit is up to 4
 * words. */
static inline uint64_t copy_lot(uint32_t workgroup_size)
{
    return (uint64_t)workgroup_size * COPY_ITEMS;
}
/* build: a node with one operand and a given shape (shape_attributes). describe: appends that shape
 * to the text. */
rlxvk_tensor layout_build_shape(rlxvk_graph *g, op_kind op, rlxvk_tensor x, rlxvk_shape shape);
void layout_describe_shape(const node *n, text *out);
uint32_t layout_shape_sizes(void *attributes, int64_t *out[OP_MOST_SIZES]);
/* Appends " <key>=1,2,3", for example " axes=1,2,3". */
void layout_describe_axes(text *out, const char *key, const int32_t *axes, uint32_t count);

/* ---- Host ---- */

void layout_host_coordinates(const rlxvk_shape *s, uint64_t index,
                             int64_t coordinates[RLXVK_MAX_RANK]);
uint64_t layout_host_index(const rlxvk_shape *s, const int64_t coordinates[RLXVK_MAX_RANK]);
/* out[to] = input[from], for one element of any storage. */
void layout_host_move(const host_call *call, uint64_t to, const host_tensor *input, uint64_t from);
/* out[c] = operand 0 [source]. `source_of` maps coordinates c of the result to those of the
 * operand. */
rlxvk_status layout_host_gather(const host_call *call,
                                void (*source_of)(const node *n, const rlxvk_shape *from,
                                                  const int64_t c[RLXVK_MAX_RANK],
                                                  int64_t source[RLXVK_MAX_RANK]));

#endif
