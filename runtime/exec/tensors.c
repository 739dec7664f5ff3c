/*
 * Lists the inputs, params and outputs of an executable, in the order in which they were added to
 * the graph. Inputs of the library's own, for example the random state, are not listed.
 */
#include "exec/cached_bindings.h"
#include "op/random/random.h"

_Static_assert(sizeof((rlxvk_tensor_info){0}.shape_text) == SHAPE_TEXT, "rlxvk.h has room for it");

/* Describes a tensor of the graph as built. If there are symbols, it reads the graph with them,
 * because its names live long enough. Members have the same nodes. */
static rlxvk_tensor_info describe(const rlxvk_executable *e, uint32_t source)
{
    const rlxvk_graph *g = e->bindings ? e->bindings->graph : e->program->source;
    const node *n = graph_node(g, source);
    rlxvk_tensor_info info = {.name = n->name ? n->name : "",
                              .shape = e->bindings ? cached_shape(e->bindings, source) : n->shape,
                              .dtype = (rlxvk_dtype)n->dtype,
                              .live = true,
                              .held = (rlxvk_dtype)n->dtype};
    symbol_shape_text(g, &info.shape, info.shape_text);
    return info;
}

static rlxvk_tensor_info describe_leaf(const rlxvk_executable *e, const program_leaf *leaf,
                                       const leaf_content *content)
{
    rlxvk_tensor_info info = describe(e, leaf->source);
    info.live = leaf->node != NODE_NONE;
    info.held = info.live ? program_held_dtype(e->program, leaf->node) : info.dtype;
    info.in_place = leaf->in_place;
    info.written = content->written;
    info.shared = content->shared;
    return info;
}

static rlxvk_tensor_info describe_input(const rlxvk_executable *e, size_t index)
{
    const input_state *in = &e->inputs[index];
    rlxvk_tensor_info info = describe_leaf(e, in->leaf, in->content);
    info.bound = input_is_restored(in);
    info.resident = in->resident || (in->bound && !info.bound);
    info.fed = in->feed >= 0 || in->row_feed >= 0;
    return info;
}

static rlxvk_tensor_info describe_param(const rlxvk_executable *e, size_t index)
{
    return describe_leaf(e, e->params[index].leaf, e->params[index].content);
}

static rlxvk_tensor_info describe_output(const rlxvk_executable *e, size_t index)
{
    rlxvk_tensor_info info = describe(e, executable_source(e)->outputs.items[index]);
    info.written = e->runs > 0;
    if (e->program)
        info.held = program_held_dtype(e->program, e->outputs[index].result->node);
    for (size_t i = 0; e->program && i < e->program->input_count; i++)
        info.fed = info.fed || e->inputs[i].feed == (int64_t)index ||
                   e->inputs[i].row_feed == (int64_t)index;
    return info;
}

static void put(const sized_array *infos, size_t i, const rlxvk_tensor_info *info)
{
    sized_put(SIZED(rlxvk_tensor_info), infos, i, info);
}

/* Lists the leaves if nothing is bound. Then there is only the graph. */
static size_t list_unbound(const rlxvk_executable *e, bool params, const sized_array *infos)
{
    const rlxvk_graph *g = e->bindings->graph;
    size_t count = 0;
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        if (params ? !node_is_param(n) : !node_is_input(n) || op_is_own_input(n))
            continue;
        if (count < infos->count) {
            rlxvk_tensor_info info = describe(e, id);
            info.written = params && cached_has_param(e->bindings, id);
            put(infos, count, &info);
        }
        count++;
    }
    return count;
}

static rlxvk_status check_list(const rlxvk_executable *e, const char *call,
                               const rlxvk_tensor_info *infos, size_t capacity,
                               const size_t *out_count, sized_array *out)
{
    rlxvk_status status;
    TRY(status_require(e, call, "executable"));
    TRY(status_require_items(infos, capacity, call, "infos"));
    TRY(status_require(out_count, call, "out_count"));
    *out = sized_room(SIZED(rlxvk_tensor_info), (void *)infos, capacity);
error:
    return status;
}

rlxvk_status rlxvk_executable_inputs(const rlxvk_executable *executable, rlxvk_tensor_info *infos,
                                     size_t capacity, size_t *out_count)
{
    size_t count = 0;
    sized_array list;
    rlxvk_tensor_info info;
    rlxvk_status status;
    TRY(check_list(executable, "executable_inputs", infos, capacity, out_count, &list));
    if (!executable->program)
        count = list_unbound(executable, false, &list);
    for (size_t i = 0; executable->program && i < executable->program->input_count; i++) {
        if (executable_is_own(executable, i))
            continue;
        info = describe_input(executable, i);
        if (count < capacity)
            put(&list, count, &info);
        count++;
    }
    *out_count = count;
error:
    return status;
}

rlxvk_status rlxvk_executable_params(const rlxvk_executable *executable, rlxvk_tensor_info *infos,
                                     size_t capacity, size_t *out_count)
{
    sized_array list;
    rlxvk_tensor_info info;
    rlxvk_status status;
    TRY(check_list(executable, "executable_params", infos, capacity, out_count, &list));
    if (!executable->program) {
        *out_count = list_unbound(executable, true, &list);
        return RLXVK_OK;
    }
    for (size_t i = 0; i < MIN(executable->program->param_count, capacity); i++) {
        info = describe_param(executable, i);
        put(&list, i, &info);
    }
    *out_count = executable->program->param_count;
error:
    return status;
}

rlxvk_status rlxvk_executable_outputs(const rlxvk_executable *executable, rlxvk_tensor_info *infos,
                                      size_t capacity, size_t *out_count)
{
    sized_array list;
    rlxvk_tensor_info info;
    rlxvk_status status;
    TRY(check_list(executable, "executable_outputs", infos, capacity, out_count, &list));
    *out_count = executable_source(executable)->outputs.count;
    for (size_t i = 0; i < MIN(*out_count, capacity); i++) {
        info = describe_output(executable, i);
        put(&list, i, &info);
    }
error:
    return status;
}

rlxvk_status rlxvk_executable_host_params(const rlxvk_executable *executable, const char **names,
                                          size_t capacity, size_t *out_count)
{
    size_t count = 0;
    rlxvk_status status;
    TRY(status_require(executable, "executable_host_params", "executable"));
    TRY(status_require_items(names, capacity, "executable_host_params", "names"));
    TRY(status_require(out_count, "executable_host_params", "out_count"));
    for (size_t i = 0; executable->program && i < executable->program->param_count; i++) {
        const program_leaf *leaf = executable->params[i].leaf;
        location at = {0};
        if (leaf->node != NODE_NONE)
            at = executable_location(executable, leaf->node);
        if (!location_on_host(&at))
            continue;
        if (count < capacity)
            names[count] = describe(executable, leaf->source).name;
        count++;
    }
    *out_count = count;
error:
    return status;
}
