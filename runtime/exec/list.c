/*
 * The inputs, params and outputs of an executable, in the order in which the graph was built. What
 * is the library's own (the random state) is none of them.
 */
#include "exec/state.h"

/* What every tensor is, as the graph was built. */
static rlxvk_tensor_info describe(const program *p, uint32_t source)
{
    const node *n = graph_node(p->source, source);
    return (rlxvk_tensor_info){.name = n->name ? n->name : "",
                               .shape = n->shape,
                               .dtype = (rlxvk_dtype)n->dtype};
}

static rlxvk_tensor_info describe_leaf(const program *p, const program_leaf *leaf,
                                       const leaf_content *content)
{
    rlxvk_tensor_info info = describe(p, leaf->source);
    info.live = leaf->node != NODE_NONE;
    info.in_place = leaf->in_place;
    info.written = content->written;
    info.shared = content->shared;
    return info;
}

static rlxvk_tensor_info describe_input(const rlxvk_executable *e, size_t index)
{
    const input_state *in = &e->inputs[index];
    rlxvk_tensor_info info = describe_leaf(e->program, in->leaf, in->content);
    info.bound = in->bound && !in->resident;
    info.resident = in->resident;
    info.fed = in->feed >= 0 || in->row_feed >= 0;
    return info;
}

static rlxvk_tensor_info describe_param(const rlxvk_executable *e, size_t index)
{
    return describe_leaf(e->program, e->params[index].leaf, e->params[index].content);
}

static rlxvk_tensor_info describe_output(const rlxvk_executable *e, size_t index)
{
    rlxvk_tensor_info info = describe(e->program, e->program->source->outputs.items[index]);
    info.live = true;
    info.written = e->runs > 0;
    for (size_t i = 0; i < e->program->input_count; i++)
        info.fed = info.fed || e->inputs[i].feed == (int64_t)index ||
                   e->inputs[i].row_feed == (int64_t)index;
    return info;
}

static bool is_callers(const rlxvk_executable *e, size_t index)
{
    return &e->inputs[index] != e->rng_input;
}

static rlxvk_status check_list(const rlxvk_executable *e, const char *call,
                               const rlxvk_tensor_info *infos, size_t capacity,
                               const size_t *out_count)
{
    rlxvk_status status;
    TRY(status_require(e, call, "executable"));
    TRY(status_require_items(infos, capacity, call, "infos"));
    TRY(status_require(out_count, call, "out_count"));
error:
    return status;
}

rlxvk_status rlxvk_executable_inputs(const rlxvk_executable *executable, rlxvk_tensor_info *infos,
                                     size_t capacity, size_t *out_count)
{
    size_t count = 0;
    rlxvk_status status;
    TRY(check_list(executable, "executable_inputs", infos, capacity, out_count));
    for (size_t i = 0; i < executable->program->input_count; i++) {
        if (!is_callers(executable, i))
            continue;
        if (count < capacity)
            infos[count] = describe_input(executable, i);
        count++;
    }
    *out_count = count;
error:
    return status;
}

rlxvk_status rlxvk_executable_params(const rlxvk_executable *executable, rlxvk_tensor_info *infos,
                                     size_t capacity, size_t *out_count)
{
    rlxvk_status status;
    TRY(check_list(executable, "executable_params", infos, capacity, out_count));
    for (size_t i = 0; i < MIN(executable->program->param_count, capacity); i++)
        infos[i] = describe_param(executable, i);
    *out_count = executable->program->param_count;
error:
    return status;
}

rlxvk_status rlxvk_executable_outputs(const rlxvk_executable *executable, rlxvk_tensor_info *infos,
                                      size_t capacity, size_t *out_count)
{
    rlxvk_status status;
    TRY(check_list(executable, "executable_outputs", infos, capacity, out_count));
    for (size_t i = 0; i < MIN(executable->program->result_count, capacity); i++)
        infos[i] = describe_output(executable, i);
    *out_count = executable->program->result_count;
error:
    return status;
}
