/*
 * The passes, in a table: from top to bottom is their order, and each row says why it is there.
 * Dead nodes are dropped before each pass, because they would count as readers.
 */
#include "rewrite/fuse.h"

/* Gradients were made earlier, so inputs of a branch can now be read directly. */
static uint32_t drop_gate(pass *p, uint32_t id)
{
    const node *n = &p->nodes[id];
    return n->op == OP_branch_input ? p->map[n->inputs[0]] : NODE_NONE;
}

enum pass_turn { ALWAYS, WITH_FUSION, WITH_REGIONS }; /* as the options say */

static const struct {
    const char *name;
    enum pass_turn turn;
    rewrite_rule rule;                                                   /* for each node; or */
    rlxvk_status (*run)(rlxvk_graph *g, const rewrite_options *options); /* the whole pass */
} passes[] = {
    /* First, because the places of readers in the built graph decide what a view may see. Fusions
     * move reads. */
    {"detach_views", ALWAYS, .run = detach_views},
    /* Before the patterns, so that they see what a branch reads. */
    {"drop_gate", ALWAYS, drop_gate},
    /* Before folding, sharing and fusing, because the nodes that replace a region or a projection
     * take part in all that. */
    {"region_split", ALWAYS, region_split},
    {"fuse_split_projection", ALWAYS, fuse_split_projection},
    /* Before the patterns, because a fused product does not say which part of a weight it reads. */
    {"split_weight", ALWAYS, split_weight},
    {"fold_constant", ALWAYS, fold_constant},
    /* Before the patterns, so that they see all readers. */
    {"share_nodes", WITH_FUSION, .run = share_nodes},
    /* After share_nodes, so that a value is transposed once. Before the patterns, which then see
     * convolutions beside what follows them. */
    {"move_transposes", WITH_FUSION, .run = move_transposes},
    /* After share_nodes, because both attentions must read the same nodes. */
    {"share_attention", WITH_FUSION, share_attention},
    /* After move_transposes, which may put the transpose of k into its product. */
    {"fuse_attention", WITH_FUSION, fuse_attention},
    {"fuse_matmul_bias_act", WITH_FUSION, fuse_matmul_bias_act},
    /* After fuse_matmul_bias_act, so that products have their biases. Before fuse_swiglu, which
     * looks for halves of one product. */
    {"join_products", WITH_FUSION, .run = join_products},
    {"fuse_swiglu", WITH_FUSION, fuse_swiglu},
    /* After fuse_swiglu, because a projection takes the SwiGLU. Before fuse_residual_norm, because
     * that would take sums and norms of projections. */
    {"fuse_projection", WITH_FUSION, fuse_projection},
    {"fuse_residual_norm", WITH_FUSION, fuse_residual_norm},
    /* Anywhere among the patterns, because no other has convolutions. */
    {"fuse_conv", WITH_FUSION, fuse_conv},
    /* After the patterns, because they leave reshaped biases and equal nodes. */
    {"fold_constant", WITH_FUSION, fold_constant},
    {"share_nodes", WITH_FUSION, .run = share_nodes},
    /* After the patterns, because regions take the nodes that are left. */
    {"region_make_all", WITH_REGIONS, .run = region_make_all},
    {"fuse_batch_region", WITH_REGIONS, fuse_batch_region}, /* of regions */
};

static rlxvk_status run_pass(rlxvk_graph *g, size_t i, const rewrite_options *options)
{
    rlxvk_status status;
    TRY(pass_drop_dead(g));
    status =
        passes[i].rule ? rewrite_run_pass(g, passes[i].rule, options) : passes[i].run(g, options);
    if (status != RLXVK_OK)
        TRY(status_fail_within(status, "pass %s", passes[i].name));
error:
    return status;
}

rlxvk_status rewrite_graph(rlxvk_graph *g, const rewrite_options *options)
{
    const bool on[] = {
        [ALWAYS] = true, [WITH_FUSION] = options->fusion, [WITH_REGIONS] = options->regions};
    rlxvk_status status;
    pass_note_origins(g);
    for (size_t i = 0; i < ARRAY_COUNT(passes); i++)
        if (on[passes[i].turn])
            TRY(run_pass(g, i, options));
    TRY(pass_drop_dead(g));
    TRY(graph_index_names(g));
    TRY(op_verify(g));
error:
    return status;
}
