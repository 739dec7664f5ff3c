/*
 * A user may have built a region for which the device has no kernel, or compiles it for seconds. It
 * becomes one node for each of its steps; of a batch, for each of its inputs. This makes the graph
 * legal, so it also runs with fusion off.
 */
#include "op/elementwise/region.h"
#include "rewrite/pass.h"

static bool has_kernel(const pass *p, const node *n)
{
    const rewrite_options *options = p->context;
    const region_attributes *a = n->attributes;
    region_size size = n->op == OP_batch_elementwise_region
                           ? region_batch_size_of(a->steps, a->step_count)
                           : region_size_of(a->steps, a->step_count, n->input_count);
    return region_choose(size, options->profile, VARIANT_NONE);
}

uint32_t region_split(pass *p, uint32_t id)
{
    const node *n = &p->nodes[id];
    bool batch = n->op == OP_batch_elementwise_region;
    if ((!batch && n->op != OP_elementwise_region) ||
        !((const rewrite_options *)p->context)->profile || has_kernel(p, n))
        return NODE_NONE;
    node moved = *n;
    uint32_t *inputs = memory_zeroed(n->input_count, sizeof *inputs), result = NODE_NONE;
    if (!inputs) {
        graph_fail(p->graph, status_fail_memory("region"));
        return NODE_NONE;
    }
    for (uint32_t i = 0; i < n->input_count; i++)
        inputs[i] = p->map[n->inputs[i]];
    moved.inputs = inputs;
    if (batch)
        result = node_row(n)->family->derivative.expand(p->graph, &moved).id - 1;
    else
        result = region_emit_steps(p->graph, &moved, inputs);
    memory_free(inputs);
    return result;
}
