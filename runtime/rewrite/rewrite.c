/*
 * The order of the passes:
 *   - Views are detached first, because fusing moves reads. The places of readers in the built
 *     graph decide what a view may see.
 *   - Equal nodes are shared before patterns are matched, so that the matches see all readers. They
 *     are shared again later, because fusions may make equal nodes.
 *   - Regions come last and take the nodes that no pattern matched.
 *   - Dead nodes are dropped before each pass, because they would count as readers.
 */
#include "rewrite/fuse.h"

/* Gradients were made earlier, so inputs of a branch can now be read directly. */
static uint32_t drop_gate(pass *p, uint32_t id)
{
    const node *n = &p->nodes[id];
    return n->op == OP_branch_input ? p->map[n->inputs[0]] : NODE_NONE;
}

rlxvk_status rewrite_graph(rlxvk_graph *g, const rewrite_options *options)
{
    /* Passes before index `legal` always run. Products are joined once they have their biases, but
     * before SwiGLU looks for halves. The last folding takes the reshaped biases that fusions
     * leave. */
    static const rewrite_rule passes[] = {drop_gate,     region_split,    fuse_split_projection,
                                          fold_constant, share_attention, fuse_matmul_bias_act,
                                          fuse_swiglu,   fuse_projection, fuse_residual_norm,
                                          fuse_conv,     fold_constant};
    enum { legal = 4, biased = 6 };
    size_t count = options->fusion ? ARRAY_COUNT(passes) : legal;
    rlxvk_status status;
    pass_note_origins(g);
    TRY(pass_drop_dead(g));
    TRY(detach_views(g));
    for (size_t i = 0; i < count; i++) {
        TRY(pass_drop_dead(g));
        if (i == legal)
            TRY(share_nodes(g));
        if (i == biased)
            TRY(join_products(g, options));
        TRY(rewrite_run_pass(g, passes[i], options));
    }
    TRY(pass_drop_dead(g));
    if (options->fusion)
        TRY(share_nodes(g));
    TRY(pass_drop_dead(g));
    if (options->regions) {
        TRY(region_make_all(g, options));
        TRY(pass_drop_dead(g));
        TRY(rewrite_run_pass(g, fuse_batch_region, options));
    }
    TRY(pass_drop_dead(g));
    TRY(graph_index_names(g));
    TRY(op_verify(g));
error:
    return status;
}
