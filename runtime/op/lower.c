/*
 * Helpers with which families emit dispatches: the slots of nodes, temporaries, folded grids.
 *
 * A binding must start at an aligned address, but a view may start anywhere. So an operand is bound
 * from the last aligned address before it, and its arguments have the number of elements in between
 * as `offset`. Hazards are found from the bound bytes, so a range is only as wide as alignment
 * makes it.
 */
#include "op/op.h"
#include "op/value.h"

#include <string.h>

/* Binds `bytes` bytes of the slot from `byte` on. The binding starts at the last aligned address
 * before them. */
static void aim(const lowering *l, operand *o, uint64_t byte, uint64_t bytes)
{
    uint64_t alignment = l->profile ? l->profile->slot_alignment : 1;
    o->first = byte / alignment * alignment;
    o->offset = (uint32_t)((byte - o->first) / dtype_storage_element_bytes((storage)o->storage));
    o->size = byte - o->first + bytes;
}

void lower_strides(const lowering *l, uint32_t node_id, int64_t out[RLXVK_MAX_RANK])
{
    uint32_t at = l->values->items[node_id].strided;
    if (at)
        memcpy(out, l->values->strided.items[at - 1].strides, RLXVK_MAX_RANK * sizeof *out);
    else
        shape_strides(&graph_node(l->graph, node_id)->shape, out);
}

void lower_ends(const lowering *l, uint32_t node_id, uint32_t out[2])
{
    const rlxvk_shape *shape = &graph_node(l->graph, node_id)->shape;
    const uint32_t *ends = l->values->items[node_id].ends.at;
    uint32_t columns = (uint32_t)shape->dims[shape->rank - 1];
    for (int i = 0; i < 2; i++)
        out[i] = ends[0] ? ends[i] : columns;
}

/* The number of elements from a node's first element to its last one. No node at strides is empty.
 */
static uint64_t span_of(const lowering *l, uint32_t id)
{
    const rlxvk_shape *shape = &graph_node(l->graph, id)->shape;
    int64_t strides[RLXVK_MAX_RANK], last = 0;
    if (!l->values->items[id].strided)
        return shape_numel(shape);
    lower_strides(l, id, strides);
    for (uint32_t i = 0; i < shape->rank; i++)
        last += (shape->dims[i] - 1) * strides[i];
    return (uint64_t)last + 1;
}

/* The same for views, parts of a concat and roots, because the value map has the place of each. */
static operand view_of(const lowering *l, uint32_t id, unsigned access)
{
    const value *v = &l->values->items[id];
    operand o = {.value = v->root, .access = (uint8_t)access, .storage = v->storage};
    uint64_t element = dtype_storage_element_bytes((storage)v->storage);
    aim(l, &o, v->offset * element, span_of(l, id) * element);
    return o;
}

void lower_narrow(const lowering *l, operand *o, uint64_t first, uint64_t count)
{
    uint64_t element = dtype_storage_element_bytes((storage)o->storage);
    aim(l, o, o->first + (o->offset + first) * element, count * element);
}

operand lower_read(const lowering *l, uint32_t node_id)
{
    return view_of(l, node_id, ACCESS_READ);
}

operand lower_write(const lowering *l, uint32_t node_id)
{
    return view_of(l, node_id, ACCESS_WRITE);
}

operand lower_update(const lowering *l, uint32_t node_id)
{
    return view_of(l, node_id, ACCESS_READ | ACCESS_WRITE);
}

/* Only then are the elements at the same places as those of the result. */
static bool is_whole(const value *v)
{
    return v->offset == 0 && !v->in_concat && !v->strided;
}

/* If the node writes an operand in place itself, the lowering may bind it twice. */
static uint8_t overlap_of(const lowering *l, const node *n, uint32_t index)
{
    const op_family *family = node_row(n)->family;
    uint32_t first = family->memory.in_place ? family->memory.in_place(l->graph, n) : 0;
    if (index < 32 && node_writes(n) >> index & 1)
        return OVERLAP_ANY;
    return index < 32 && first >> index & 1 && is_whole(&l->values->items[n->inputs[index]])
               ? OVERLAP_FIRST
               : OVERLAP_NONE;
}

operand lower_input(const lowering *l, uint32_t id, uint32_t index)
{
    const node *n = graph_node(l->graph, id);
    operand o = lower_read(l, n->inputs[index]);
    o.overlap = overlap_of(l, n, index);
    return o;
}

/* It has at least one word, because no binding may be empty. Its id is behind those of the nodes,
 * and the plan treats it as one of them. */
rlxvk_status lower_temporary(lowering *l, uint64_t bytes, operand *out)
{
    if (!VECTOR_PUSH(&l->temporaries, (temporary){MAX(bytes, 4), NULL}))
        return status_fail_memory("temporary");
    *out = (operand){.value = (uint32_t)(l->graph->nodes.count + l->temporaries.count - 1),
                     .size = bytes,
                     .access = ACCESS_WRITE,
                     .storage = STORAGE_WORD};
    return RLXVK_OK;
}

/* Index of the constant with these bytes, or the number of temporaries if there is none. Layers of
 * a model need the same tables many times, but only one copy is uploaded. */
static size_t find_constant(const lowering *l, const void *bytes, uint64_t size)
{
    size_t i = 0;
    for (; i < l->temporaries.count; i++) {
        const temporary *t = &l->temporaries.items[i];
        if (t->content && t->bytes == size && memcmp(t->content, bytes, size) == 0)
            break;
    }
    return i;
}

rlxvk_status lower_constant(lowering *l, const void *bytes, uint64_t size, operand *out)
{
    size_t index = find_constant(l, bytes, size);
    if (index == l->temporaries.count) {
        void *content = memory_allocate(size);
        if (!content || !VECTOR_PUSH(&l->temporaries, (temporary){size, content})) {
            memory_free(content);
            return status_fail_memory("lowering constant");
        }
        memcpy(content, bytes, size);
    }
    *out = (operand){.value = (uint32_t)(l->graph->nodes.count + index),
                     .size = size,
                     .access = ACCESS_READ,
                     .storage = STORAGE_WORD};
    return RLXVK_OK;
}

/* Fills x before y and y before z. So the surplus is less than one row of workgroups, or less than
 * one plane if z is needed. */
void lower_fold(const device_profile *profile, uint64_t count, uint32_t groups[3])
{
    const uint32_t *limit = profile->max_group_count;
    uint64_t x = MIN(count, limit[0]);
    uint64_t y = count ? MIN(divide_up(count, x), limit[1]) : 1;
    groups[0] = (uint32_t)x;
    groups[1] = (uint32_t)y;
    groups[2] = count ? (uint32_t)divide_up(count, x * y) : 1;
}

void lower_groups(const lowering *l, dispatch *d, uint64_t count)
{
    lower_fold(l->profile, count, d->groups);
}

void lower_groups_in_order(const lowering *l, dispatch *d, uint64_t parts, uint64_t lot)
{
    lower_groups(l, d, divide_up(parts, lot));
    d->order = (group_order){.run = 1, .parts = parts, .lot = lot};
}

_Static_assert(KERNEL_MAX_CONSTANTS <= 64, "a bit of constants_set each");

void lower_set_constants(dispatch *d, const constant_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        d->constants[values[i].constant] = values[i].value;
        d->constants_set |= 1ull << values[i].constant;
    }
}

/* A missing constant would be 0, not the kernel's default. This is not E_UNSUPPORTED, because a
 * conformance run skips cases with that status, and this is a bug of the lowering. */
static rlxvk_status check_constants(const kernel_info *kernel, const dispatch *d)
{
    for (uint32_t i = 0; i < KERNEL_MAX_CONSTANTS; i++) {
        const char *name = i < kernel->constant_count ? kernel->constants[i] : NULL;
        bool set = d->constants_set >> i & 1;
        if (name && !set)
            return status_fail(RLXVK_E_ARITY, "kernel %s: its constant %s (%u) is not set",
                               kernel->name, name, i);
        if (set && !name)
            return status_fail(RLXVK_E_ARITY, "kernel %s has no constant %u; it is set to %u",
                               kernel->name, i, d->constants[i]);
    }
    return RLXVK_OK;
}

rlxvk_status lower_emit(lowering *l, dispatch *d, const void *arguments, size_t size,
                        const operand *operands, uint32_t count)
{
    const kernel_info *kernel = kernel_find(d->kernel);
    uint32_t bindings = MIN(kernel_bindings(kernel, d->constants), kernel->binding_count);
    rlxvk_status status;
    if (size != kernel->argument_bytes || count != bindings)
        return status_fail(
            RLXVK_E_ARITY,
            "kernel %s takes %u argument bytes and %u operands; lowering gave %zu and %u",
            kernel->name, kernel->argument_bytes, bindings, size, count);
    TRY(check_constants(kernel, d));
    if (d->groups[0] == 0 || d->groups[1] == 0 || d->groups[2] == 0)
        return RLXVK_OK;
    for (int i = 0; i < 3; i++)
        if (d->groups[i] > l->profile->max_group_count[i])
            return status_fail(RLXVK_E_TOO_LARGE,
                               "kernel %s needs %u workgroups in dimension %d; the device has %u",
                               kernel->name, d->groups[i], i, l->profile->max_group_count[i]);
    d->operand_count = (uint8_t)count;
    d->prepares = l->prepares;
    d->turn = (uint8_t)l->turn;
    d->argument_bytes = (uint32_t)size;
    /* Row names are unique strings of their tables, so the pointer identifies the choice. */
    if (d->variant && d->variant == l->choice.row)
        d->source = l->choice.source;
    else if (variant_is_named(&l->variants, d->variant))
        d->source = VARIANT_BY_NAME;
    if (size)
        memcpy(d->arguments, arguments, size);
    d->operands = arena_copy(&l->operands, operands, count * sizeof *operands);
    if (!d->operands || !VECTOR_PUSH(&l->dispatches, *d))
        return status_fail_memory("dispatches");
error:
    return status;
}
