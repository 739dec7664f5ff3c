/*
 * Runs a pass, counts uses and writes for the rules, and removes dead nodes.
 *
 * A pass only appends to a new list, in the order of the old one. So operands stay smaller than
 * their readers for every rule. The old list and its counts do not change until the pass ends.
 */
#include "rewrite/pass.h"
#include "op/movement/movement.h"
#include "op/view.h"

#include <stdarg.h>
#include <string.h>

uint32_t *rewrite_count_uses(const rlxvk_graph *g)
{
    uint32_t *uses = memory_zeroed(g->nodes.count + 1, sizeof *uses);
    if (!uses)
        return NULL;
    for (uint32_t id = 0; id < g->nodes.count; id++)
        for (uint32_t i = 0; i < graph_node(g, id)->input_count; i++)
            uses[graph_node(g, id)->inputs[i]]++;
    for (size_t i = 0; i < g->outputs.count; i++)
        uses[g->outputs.items[i]] += 2; /* an output is never private */
    return uses;
}

uint32_t *rewrite_count_writes(const rlxvk_graph *g)
{
    uint32_t *writes = memory_zeroed(g->nodes.count + 1, sizeof *writes);
    for (uint32_t id = 0; writes && id < g->nodes.count; id++)
        writes[id + 1] = writes[id] + (node_writes(graph_node(g, id)) != 0);
    return writes;
}

bool *rewrite_find_written(const rlxvk_graph *g)
{
    bool *written = memory_zeroed(g->nodes.count + 1, sizeof *written);
    uint32_t *roots = memory_allocate((g->nodes.count + 1) * sizeof *roots);
    if (written && roots)
        view_roots(g, roots);
    for (uint32_t id = 0; written && roots && id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        uint32_t writes = node_writes(n);
        for (uint32_t i = 0; i < n->input_count && writes >> i; i++)
            if (writes >> i & 1)
                written[roots[n->inputs[i]]] = true;
    }
    for (uint32_t id = 0; written && roots && id < g->nodes.count; id++)
        written[id] = written[roots[id]];
    if (!roots) {
        memory_free(written);
        written = NULL;
    }
    memory_free(roots);
    return written;
}

/* writes[] counts the writes of all earlier nodes, so one comparison answers for a range. */
bool rewrite_writes_between(const pass *p, uint32_t first, uint32_t last)
{
    return first < last && p->writes[last] != p->writes[first + 1];
}

bool rewrite_miss(const pass *p, const char *format, ...)
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

bool rewrite_expect_private(const pass *p, uint32_t id)
{
    const char *name = node_row(&p->nodes[id])->name;
    if (is_private(p, id))
        return true;
    if (!p->why)
        return false;
    if (p->outputs[id])
        return rewrite_miss(p, "%s %%%u is a graph output", name, id);
    return rewrite_miss(p, "%s %%%u has %u readers", name, id, p->uses[id]);
}

/* Operands are renamed in a new array, because later matches may still read the old node. */
uint32_t pass_copy(pass *p, uint32_t id)
{
    rlxvk_graph *g = p->graph;
    node n = p->nodes[id];
    uint32_t *inputs =
        n.input_count ? arena_allocate(&g->memory, n.input_count * sizeof *inputs) : NULL;
    if ((n.input_count && !inputs) || !VECTOR_PUSH(&g->nodes, n)) {
        graph_fail(g, status_fail_memory("rewritten node"));
        return NODE_NONE;
    }
    for (uint32_t i = 0; i < n.input_count; i++)
        inputs[i] = p->map[n.inputs[i]];
    g->nodes.items[g->nodes.count - 1].inputs = inputs;
    return (uint32_t)g->nodes.count - 1;
}

void pass_note_origins(rlxvk_graph *g)
{
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        node *n = &g->nodes.items[id];
        if (n->origin)
            continue;
        n->origin = id + 1;
        n->origin_op = n->op;
    }
}

/* Nodes that are appended from now on get the origin of this old node; if it is NULL, none. */
static void stand_for(rlxvk_graph *g, const node *n)
{
    g->origin = n ? n->origin : 0;
    g->origin_op = n ? n->origin_op : 0;
    g->gradient_of = n ? n->gradient_of : 0;
}

rlxvk_status rewrite_run_pass(rlxvk_graph *g, rewrite_rule rule, const void *context)
{
    uint32_t count = (uint32_t)g->nodes.count;
    pass p = {.graph = g,
              .nodes = g->nodes.items,
              .count = count,
              .map = memory_zeroed(count + 1, sizeof(uint32_t)),
              .uses = rewrite_count_uses(g),
              .writes = rewrite_count_writes(g),
              .context = context};
    if (!p.map || !p.uses || !p.writes) {
        graph_fail(g, status_fail_memory("pass"));
    } else {
        g->nodes.items = NULL;
        g->nodes.count = g->nodes.capacity = 0;
        for (uint32_t id = 0; id < count && g->status == RLXVK_OK; id++) {
            stand_for(g, &p.nodes[id]);
            p.map[id] = rule(&p, id);
            if (p.map[id] == NODE_NONE && g->status == RLXVK_OK)
                p.map[id] = pass_copy(&p, id);
        }
        /* After a failure outputs still name old nodes, so such a graph may only be destroyed. */
        for (size_t i = 0; i < g->outputs.count && g->status == RLXVK_OK; i++)
            g->outputs.items[i] = p.map[g->outputs.items[i]];
        memory_free((void *)p.nodes);
    }
    stand_for(g, NULL);
    memory_free(p.map);
    memory_free(p.uses);
    memory_free(p.writes);
    return g->status == RLXVK_OK ? RLXVK_OK : status_fail(g->status, "%s", g->error);
}

/* ---- Dead nodes ---- */

/* From the end, because readers come after their operands. So one walk settles whole chains. */
static void mark_live(const rlxvk_graph *g, bool *live)
{
    for (size_t i = 0; i < g->outputs.count; i++)
        live[g->outputs.items[i]] = true;
    for (uint32_t id = (uint32_t)g->nodes.count; id-- > 0;) {
        const node *n = graph_node(g, id);
        live[id] = live[id] || node_has_effect(g, n);
        for (uint32_t i = 0; i < n->input_count && live[id]; i++)
            live[n->inputs[i]] = true;
    }
}

/* Works in place, because nodes only move down. Unread inputs and params are removed, too; the
 * built graph still knows their names. */
rlxvk_status pass_drop_dead(rlxvk_graph *g)
{
    size_t count = g->nodes.count, kept = 0;
    bool *live = memory_zeroed(count + 1, sizeof *live);
    uint32_t *map = memory_zeroed(count + 1, sizeof *map);
    rlxvk_status status = live && map ? RLXVK_OK : status_fail_memory("dead nodes");
    if (status == RLXVK_OK) {
        mark_live(g, live);
        for (uint32_t id = 0; id < count; id++) {
            if (!live[id])
                continue;
            node n = g->nodes.items[id];
            for (uint32_t i = 0; i < n.input_count; i++)
                ((uint32_t *)n.inputs)[i] = map[n.inputs[i]]; /* the arena's own copy */
            map[id] = (uint32_t)kept;
            g->nodes.items[kept++] = n;
        }
        g->nodes.count = kept;
        for (size_t i = 0; i < g->outputs.count; i++)
            g->outputs.items[i] = map[g->outputs.items[i]];
    }
    memory_free(live);
    memory_free(map);
    return status;
}

bool pass_is_identity(const axis_order *o)
{
    for (uint32_t i = 0; i < o->rank; i++)
        if (o->place[i] != (int32_t)i)
            return false;
    return true;
}

uint32_t pass_transpose(pass *p, uint32_t x, const axis_order *order, const char *name)
{
    transpose_attributes t = {.count = order->rank};
    memcpy(t.perm, order->place, sizeof t.perm);
    return pass_is_identity(order) ? x : op_append(p->graph, OP_transpose, &x, 1, &t, name);
}
