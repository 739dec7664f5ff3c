/* See bucket_axes.h. */
#include "program/bucket_axes.h"
#include "base/sized.h"
#include "graph/symbol.h"
#include "program/name.h"
#include "rewrite/rewrite.h"

static rlxvk_status add_axis(axis_list *list, rlxvk_bucket_axis axis)
{
    axis.struct_size = RLXVK_SIZE_OF(rlxvk_bucket_axis);
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].input == axis.input && list->items[i].axis == axis.axis &&
            list->items[i].indices == axis.indices)
            return RLXVK_OK;
    if (!VECTOR_PUSH(list, axis))
        return status_fail_memory("bucket axes");
    return RLXVK_OK;
}

static rlxvk_status add_given(const rlxvk_graph *g, const rlxvk_bucket_axis *given, axis_list *out)
{
    uint32_t id = program_input_of(g, given->input);
    if (id == NODE_NONE)
        return name_unknown(g, "compile option bucket_axes", "input", given->input);
    const node *n = graph_node(g, id);
    int64_t rank = n->shape.rank, axis = given->axis < 0 ? given->axis + rank : given->axis;
    char shape[SHAPE_TEXT];
    if (given->indices)
        return add_axis(out, (rlxvk_bucket_axis){n->name, .indices = true});
    if (axis < 0 || axis >= rank)
        return status_fail(RLXVK_E_AXIS,
                           "compile option bucket_axes: input '%s' (%s) has no axis %d", n->name,
                           shape_text(&n->shape, shape), given->axis);
    return add_axis(out, (rlxvk_bucket_axis){n->name, (int32_t)axis, false});
}

static bool stands_for_rows(int64_t dim)
{
    return dim == rlxvk_symbol(RLXVK_SEQ) || dim == rlxvk_symbol(RLXVK_ROWS) ||
           dim == rlxvk_symbol(RLXVK_PAST_SEQ);
}

static rlxvk_status add_symbols(const rlxvk_graph *g, axis_list *out)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        if (!node_is_input(n))
            continue;
        const rlxvk_shape *s = &g->symbols->nodes.items[id].shape;
        for (uint32_t axis = 0; axis < s->rank; axis++)
            if (stands_for_rows(s->dims[axis]))
                TRY(add_axis(out, (rlxvk_bucket_axis){n->name, (int32_t)axis, false}));
    }
error:
    return status;
}

rlxvk_status bucket_axes_resolve(const rlxvk_graph *graph, const rlxvk_compile_options *given,
                                 axis_list *out)
{
    sized_array axes;
    rlxvk_bucket_axis own;
    rlxvk_status status = graph->status;
    if (status != RLXVK_OK)
        return RLXVK_OK; /* compiling reports the error of the graph */
    TRY(status_require_items(given->bucket_axes, given->bucket_axis_count, "compile",
                             "bucket_axes"));
    TRY(sized_array_of(SIZED(rlxvk_bucket_axis), given->bucket_axes, given->bucket_axis_count,
                       &axes));
    for (size_t i = 0; i < axes.count; i++)
        TRY(add_given(graph, sized_item(SIZED(rlxvk_bucket_axis), &axes, i, &own), out));
    if (graph->symbols && toggle(given->bucket_symbols, false))
        TRY(add_symbols(graph, out));
error:
    return status;
}

/* The precision that matrix products really have: on a device without matrix units, f16 and bf16
 * are computed as f32. */
static rlxvk_precision effective_precision(const program *p)
{
    const device_profile *profile = &p->device->setup.profile;
    rlxvk_precision wanted = p->options.precision;
    bool lacks = (wanted == RLXVK_PRECISION_F16 && profile->matrix_f16.m == 0) ||
                 (wanted == RLXVK_PRECISION_BF16 && profile->matrix_bf16.m == 0);
    return lacks ? RLXVK_PRECISION_F32 : wanted;
}

/* Finds the inputs that the graph still has. */
static rlxvk_status find_inputs(const rlxvk_graph *g, const rlxvk_bucket_axis *axes, size_t count,
                                bucket_input **out, size_t *out_count)
{
    bucket_input *found = memory_zeroed(count + 1, sizeof *found);
    if (!found)
        return status_fail_memory("bucket axes");
    for (size_t i = 0; i < count; i++) {
        uint32_t node = op_find_input(g, axes[i].input);
        if (node != NODE_NONE)
            found[(*out_count)++] = (bucket_input){node, axes[i].axis, axes[i].indices};
    }
    *out = found;
    return RLXVK_OK;
}

rlxvk_status bucket_axes_shorten(program *p, const rlxvk_bucket_axis *axes, size_t count)
{
    shorten_inputs inputs = {.precision = effective_precision(p), .on_host = p->options.on_host};
    bucket_input *found = NULL;
    rlxvk_status status;
    TRY(find_inputs(p->graph, axes, count, &found, &inputs.count));
    inputs.items = found;
    TRY(rewrite_shorten(p->graph, &inputs));
    memory_free(found); /* the nodes have other numbers now */
    found = NULL;
    inputs.count = 0;
    TRY(find_inputs(p->graph, axes, count, &found, &inputs.count));
    inputs.items = found;
    TRY(rewrite_pack_rows(p->graph, &inputs));
error:
    memory_free(found);
    return status;
}

rlxvk_status bucket_axes_analyze(program *p, const rlxvk_bucket_axis *axes, size_t count)
{
    bucket_input *found = NULL;
    size_t found_count = 0;
    rlxvk_status status;
    TRY(find_inputs(p->graph, axes, count, &found, &found_count));
    TRY(extent_analyze(&p->schedule, found, found_count, effective_precision(p),
                       &p->device->setup.profile, &p->extent));
    if (p->options.shorter && p->extent.unit && !p->extent.spans)
        TRY(status_fail(RLXVK_E_UNSUPPORTED, "compile option extent_promise: %s", p->extent.why));
error:
    memory_free(found);
    return status;
}
