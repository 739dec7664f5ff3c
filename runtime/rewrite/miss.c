/*
 * Reports missed patterns for dumps. The matchers run again over the rewritten graph. If something
 * still begins like a pattern, it was not replaced, and the matcher says why. Nothing is recorded
 * while rewriting, so the ids are those of the final graph.
 */
#include "rewrite/fuse.h"

static const struct {
    const char *name;
    fusion_match match;
} patterns[] = {
    {"matmul + bias + activation", fuse_match_matmul_bias_act},
    {"residual + norm", fuse_match_residual_norm},
    {"residual and norm in one step", fuse_match_norm_pair},
    {"SwiGLU", fuse_match_swiglu},
    {"projection", fuse_match_projection},
    {"convolution + what follows", fuse_match_conv},
    {"attention", fuse_match_attention},
    {"concat of regions", fuse_match_batch_region},
    {"products of one input", join_match_products},
};

/* Gives the reason if a pattern matches but was not replaced. */
static void miss_match(const pass *p, uint32_t id, const uint32_t *partners)
{
    uint32_t sum = p->nodes[id].inputs[0], partner = partners[sum];
    if (partner != NODE_NONE)
        rewrite_miss(p, "%%%u is in one step with %%%u already", MIN(sum, partner),
                     MAX(sum, partner));
    else
        rewrite_miss(p, "fusion is off, or the pattern came up after its pass");
}

static void report_misses(pass *p, const uint32_t *partners, miss_report report, void *user)
{
    for (uint32_t id = 0; id < p->count; id++)
        for (size_t i = 0; i < ARRAY_COUNT(patterns); i++) {
            fusion f;
            p->why->length = 0;
            if (patterns[i].match(p, id, &f) && partners[id] == NODE_NONE)
                miss_match(p, id, partners);
            if (p->why->length)
                report(user, id, patterns[i].name, p->why->buffer);
        }
}

rlxvk_status rewrite_find_misses(const rlxvk_graph *g, const pair_list *pairs,
                                 const device_profile *profile, miss_report report, void *user)
{
    char buffer[192];
    text why = {buffer, sizeof buffer, 0};
    bool *outputs = memory_zeroed(g->nodes.count + 1, sizeof *outputs);
    uint32_t *partners = pair_partners(pairs->items, pairs->count, g->nodes.count);
    rewrite_options how = {.profile = profile};
    pass p = {.nodes = g->nodes.items,
              .count = (uint32_t)g->nodes.count,
              .uses = rewrite_count_uses(g),
              .writes = rewrite_count_writes(g),
              .outputs = outputs,
              .context = &how,
              .why = &why};
    rlxvk_status status = RLXVK_OK;
    if (!outputs || !partners || !p.uses || !p.writes)
        TRY(status_fail_memory("missed patterns"));
    for (size_t i = 0; i < g->outputs.count; i++)
        outputs[g->outputs.items[i]] = true;
    report_misses(&p, partners, report, user);
error:
    memory_free(outputs);
    memory_free(partners);
    memory_free(p.uses);
    memory_free(p.writes);
    return status;
}
