/* The elements of a node as the device holds them; see held.h. */
#include "exec/held.h"
#include "exec/transfer.h"
#include "program/slot.h"

#include <string.h>

/* Where the elements of a node lie, counted from its first one. */
typedef struct places {
    const rlxvk_shape *shape;
    int64_t strides[RLXVK_MAX_RANK];
    const uint32_t *ends; /* of the first two parts of its columns; NULL: it is in one part */
} places;

static places places_of(const program *p, uint32_t id)
{
    const value *v = &p->schedule.values.items[id];
    places at = {.shape = &graph_node(p->graph, id)->shape};
    if (v->strided)
        memcpy(at.strides, p->schedule.values.strided.items[v->strided - 1].strides,
               sizeof at.strides);
    else
        shape_strides(at.shape, at.strides);
    at.ends = v->ends.at[0] ? v->ends.at : NULL;
    return at;
}

/* As place_in_parts of glsl/lib/parts.glsl. */
static uint64_t place_in_parts(const places *at, uint64_t i)
{
    uint64_t columns = (uint64_t)at->shape->dims[at->shape->rank - 1];
    uint64_t rows = shape_product(at->shape, 0, at->shape->rank - 1);
    uint64_t row = i / columns, column = i % columns;
    uint64_t first = column < at->ends[0] ? 0 : column < at->ends[1] ? at->ends[0] : at->ends[1];
    uint64_t end = column < at->ends[0]   ? at->ends[0]
                   : column < at->ends[1] ? at->ends[1]
                                          : columns;
    return first * rows + row * (end - first) + column - first;
}

static uint64_t place(const places *at, uint64_t i)
{
    uint64_t sum = 0;
    if (at->ends)
        return place_in_parts(at, i);
    for (uint32_t axis = at->shape->rank; axis-- > 0;) {
        uint64_t dim = (uint64_t)at->shape->dims[axis];
        sum += i % dim * (uint64_t)at->strides[axis];
        i /= dim;
    }
    return sum;
}

/* Whether its elements do not follow each other in order. */
static bool is_scattered(const program *p, uint32_t id)
{
    const value *v = &p->schedule.values.items[id];
    return v->strided || v->ends.at[0];
}

bool held_exists(const rlxvk_executable *e, uint32_t id)
{
    return e->locations[e->program->schedule.values.items[id].root].pool != NULL;
}

rlxvk_status held_create(const rlxvk_executable *e, uint32_t id, held *out)
{
    const program *p = e->program;
    uint64_t element = dtype_storage_element_bytes(program_held(p, id));
    uint64_t numel = shape_numel(&graph_node(p->graph, id)->shape), span = numel;
    places at = places_of(p, id);
    if (numel && p->schedule.values.items[id].strided)
        span = place(&at, numel - 1) + 1; /* strides are not negative */
    *out = (held){.id = id,
                  .first = p->schedule.values.items[id].offset * element,
                  .size = span * element,
                  .bytes = memory_zeroed(MAX(span, 4), element)};
    return out->bytes ? RLXVK_OK : status_fail_memory("values of a node");
}

void held_destroy(held *h)
{
    memory_free(h->bytes);
    memory_free(h->words);
    *h = (held){0};
}

rlxvk_status held_read(rlxvk_executable *e, held *h, uint64_t first, uint64_t end)
{
    location from = e->locations[e->program->schedule.values.items[h->id].root];
    first = MAX(first, h->first);
    end = MIN(end, h->first + h->size);
    if (!from.pool || first >= end)
        return RLXVK_OK;
    h->low = h->low < h->high ? MIN(h->low, first) : first;
    h->high = MAX(h->high, end);
    from.offset += first;
    from.bytes = end - first;
    return transfer_read(e, &from, h->bytes + (first - h->first), from.bytes);
}

rlxvk_status held_read_new(rlxvk_executable *e, held *h, uint64_t first, uint64_t end)
{
    uint64_t low = h->low, high = h->high;
    rlxvk_status status;
    if (low == high)
        return held_read(e, h, first, end);
    TRY(held_read(e, h, first, MIN(end, low)));
    TRY(held_read(e, h, MAX(first, high), end));
error:
    return status;
}

static void gather(const program *p, const held *h, float *out)
{
    uint64_t numel = shape_numel(&graph_node(p->graph, h->id)->shape);
    places at = places_of(p, h->id);
    for (uint64_t i = 0; i < numel; i++)
        memcpy(&out[i], h->bytes + place(&at, i) * sizeof *out, sizeof *out);
}

rlxvk_status held_tensor(const rlxvk_executable *e, held *h, host_tensor *out)
{
    const program *p = e->program;
    const node *n = graph_node(p->graph, h->id);
    uint64_t numel = shape_numel(&n->shape);
    storage as = program_held(p, h->id);
    bool scattered = is_scattered(p, h->id);
    if ((scattered || as == STORAGE_HALF) && !h->words &&
        !(h->words = memory_zeroed(numel + 1, sizeof *h->words)))
        return status_fail_memory("values of a node");
    if (as == STORAGE_HALF)
        slot_decode(n, as, SLOT_WORDS, h->bytes, numel, h->words);
    else if (scattered)
        gather(p, h, h->words);
    *out = (host_tensor){.node = n,
                         .storage = as == STORAGE_RAW ? STORAGE_RAW
                                                      : (uint8_t)op_node_storage(p->graph, h->id)};
    if (as == STORAGE_RAW)
        out->bytes = h->bytes;
    else
        out->words = h->words ? h->words : (const void *)h->bytes;
    return RLXVK_OK;
}
