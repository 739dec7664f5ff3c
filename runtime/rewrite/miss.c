/*
 * Patterns that were missed, for whoever reads a dump: the matchers run again over the rewritten
 * graph, where whatever still begins like a pattern was not replaced, and say why. Nothing is
 * remembered while rewriting, so the ids are those of the graph that runs.
 */
#include "rewrite/pass.h"

#include <stdarg.h>
#include <stdio.h>

bool miss(const pass *p, const char *format, ...)
{
    char reason[192];
    va_list arguments;
    if (!p->why || p->why->length)
        return false;
    va_start(arguments, format);
    text_format(reason, sizeof reason, format, arguments);
    va_end(arguments);
    text_append(p->why, "%s", reason);
    return false;
}

static bool is_output(const rlxvk_graph *g, uint32_t id)
{
    for (size_t i = 0; i < g->outputs.count; i++)
        if (g->outputs.items[i] == id)
            return true;
    return false;
}

bool expect_private(const pass *p, uint32_t id)
{
    const char *name = node_row(&p->nodes[id])->name;
    if (is_private(p, id))
        return true;
    if (!p->why)
        return false;
    if (is_output(p->graph, id))
        return miss(p, "%s %%%u is a graph output", name, id);
    return miss(p, "%s %%%u has %u readers", name, id, p->uses[id]);
}

/* The pair that has this sum or this norm. */
static const node_pair *find_pair(const pair_list *pairs, uint32_t id)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (pairs->items[i].first == id || pairs->items[i].second == id)
            return &pairs->items[i];
    return NULL;
}

/* Why a match, of all things, was not replaced. */
static void miss_match(const pass *p, uint32_t id, const pair_list *pairs)
{
    const node_pair *pair = find_pair(pairs, p->nodes[id].inputs[0]);
    if (pair)
        miss(p, "%%%u is in one step with %%%u already", pair->first, pair->second);
    else
        miss(p, "fusion is off, or the pattern came up after its pass");
}

rlxvk_status find_misses(const rlxvk_graph *g, const pair_list *pairs, miss_report report,
                         void *user)
{
    char buffer[192];
    text why = {buffer, sizeof buffer, 0};
    pass p = {.graph = (rlxvk_graph *)g,
              .nodes = g->nodes.items,
              .count = (uint32_t)g->nodes.count,
              .uses = count_node_uses(g),
              .why = &why};
    if (!p.uses)
        return fail_memory("missed patterns");
    for (uint32_t id = 0; id < p.count; id++)
        for (size_t i = 0; i < FUSION_PATTERNS; i++) {
            fusion f;
            why.length = 0;
            if (fusion_patterns[i].match(&p, id, &f) && !find_pair(pairs, id))
                miss_match(&p, id, pairs);
            if (why.length)
                report(user, id, fusion_patterns[i].name, buffer);
        }
    memory_free(p.uses);
    return RLXVK_OK;
}
