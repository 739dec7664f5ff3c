/*
 * The order of the passes. Views are detached first: fusing moves reads, and what a view must not
 * see is told by where its readers stand in the graph as built. What is computed twice is shared
 * before patterns are looked for, which then see who reads it, and again what these have made
 * twice. Regions come last, since they take what no pattern wanted. Dead nodes are dropped before
 * each pass, for they would count as readers.
 */
#include "rewrite/fuse.h"

/* Gradients have been taken by now: what a branch reads is read where it is. */
static uint32_t drop_gate(pass *p, uint32_t id)
{
    const node *n = &p->nodes[id];
    return n->op == OP_branch_input ? p->map[n->inputs[0]] : NODE_NONE;
}

rlxvk_status rewrite_graph(rlxvk_graph *g, const rewrite_options *options)
{
    /* Those up to `legal` always run; products are joined when they have their biases, before
     * halves are looked for. Folding again at the end takes the reshaped biases that fusing leaves.
     */
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
