/*
 * A user may have built a region for which the device has no kernel. It becomes one node for each
 * of its steps. This makes the graph legal, so it also runs with fusion off.
 */
#include "op/elementwise/region.h"
#include "rewrite/pass.h"

uint32_t region_split(pass *p, uint32_t id)
{
    const node *n = &p->nodes[id];
    const rewrite_options *options = p->context;
    const region_attributes *a = n->attributes;
    uint32_t inputs[REGION_INPUTS];
    if (n->op != OP_elementwise_region || !options->profile ||
        region_choose(region_size_of(a->steps, a->step_count, n->input_count), options->profile,
                      VARIANT_NONE))
        return NODE_NONE;
    for (uint32_t i = 0; i < n->input_count; i++)
        inputs[i] = p->map[n->inputs[i]];
    return region_emit_steps(p->graph, n, inputs);
}
