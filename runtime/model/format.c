/* See format.h. */
#include "model/format.h"
#include "base/sized.h"

int64_t model_symbol(const name_map *dims, const char *name)
{
    return rlxvk_symbol(RLXVK_USER_SYMBOL + name_find(dims, name));
}

rlxvk_status model_bind_dims(const rlxvk_model_graph_options *o, const name_map *dims,
                             int64_t *sizes)
{
    sized_array items;
    rlxvk_status status;
    for (uint32_t i = 0; i < dims->count; i++)
        sizes[i] = -1;
    TRY(status_require_items(o->bindings, o->binding_count, "model_graph", "bindings"));
    TRY(sized_array_of(SIZED(rlxvk_model_binding), o->bindings, o->binding_count, &items));
    for (size_t i = 0; i < o->binding_count; i++) {
        rlxvk_model_binding room;
        const rlxvk_model_binding *b = sized_item(SIZED(rlxvk_model_binding), &items, i, &room);
        uint32_t dim;
        TRY(status_require(b->name, "model_graph", "bindings[].name"));
        dim = name_find(dims, b->name);
        if (dim == NAME_NONE)
            return status_fail(RLXVK_E_UNKNOWN_NAME,
                               "no dim of the model's inputs is called '%.80s'", b->name);
        if (b->size < 0 || b->size > INT32_MAX)
            return status_fail(RLXVK_E_RANGE,
                               "dim '%.80s': the size %lld is outside of 0 .. 2^31 - 1", b->name,
                               (long long)b->size);
        sizes[dim] = b->size;
    }
error:
    return status;
}
