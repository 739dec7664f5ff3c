/*
 * The elements of a node as the device holds them: read from the slot where they lie, be it dense,
 * at strides, in parts of columns or as packed halves, and given to a host function.
 */
#ifndef RLXVK_EXEC_HELD_H
#define RLXVK_EXEC_HELD_H

#include "exec/executable.h"

typedef struct held {
    uint32_t id;
    uint64_t first, size; /* the bytes of the root's slot from its first element to its last one */
    uint8_t *bytes;       /* `size` of them; zeros until they are read */
    float *words;         /* its elements in order, if the bytes are not that already */
    uint64_t low, high;   /* what was read so far, in the slot; equal: nothing */
} held;

rlxvk_status held_create(const rlxvk_executable *e, uint32_t id, held *out);
void held_destroy(held *h);
/* Reads those of its bytes that lie in [first, end) of the root's slot. The executable must be
 * idle. Does nothing if the node has no memory, because no step touches it. */
rlxvk_status held_read(rlxvk_executable *e, held *h, uint64_t first, uint64_t end);
/* The same, but what was read before stays as it is. Bytes between two reads count as read. */
rlxvk_status held_read_new(rlxvk_executable *e, held *h, uint64_t first, uint64_t end);
/* What host functions get. It lives as long as `h`, until more is read. */
rlxvk_status held_tensor(const rlxvk_executable *e, held *h, host_tensor *out);
/* Whether the node has memory. */
bool held_exists(const rlxvk_executable *e, uint32_t id);

#endif
