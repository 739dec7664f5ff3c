/*
 * Finds needless copies: parts and transposes that have memory of their own although a reader or
 * the producer of the operand could use strides. It uses the same search as the value map.
 */
#include "op/strided.h"
#include "op/view.h"
#include "rewrite/rewrite.h"

/* Whether n accepts operand i, or the result (i = input_count), at some strides: it tries those
 * that the tensor has. */
static bool accepts_some(const rlxvk_graph *g, const node *n, uint32_t i)
{
    const op_family *family = node_row(n)->family;
    if (!family->views.accepts_strides || family->views.strided_view)
        return false;
    strided dense = strided_dense(input_shape(g, n, i));
    return family->views.accepts_strides(g, n, i, dense.strides);
}

/* wanted[id]: a reader takes it at strides, or a node that is only a view of it is wanted. */
static void find_wanted(const rlxvk_graph *g, bool *wanted)
{
    for (uint32_t id = (uint32_t)g->nodes.count; id-- > 0;) {
        const node *n = graph_node(g, id);
        for (uint32_t i = 0; i < n->input_count; i++)
            if (accepts_some(g, n, i) ||
                (i == 0 && wanted[id] && node_row(n)->family->views.strided_view))
                wanted[n->inputs[i]] = true;
    }
}

static bool is_output(const rlxvk_graph *g, uint32_t id)
{
    bool found = false;
    for (size_t i = 0; i < g->outputs.count && !found; i++)
        found = g->outputs.items[i] == id;
    return found;
}

static void say_why(const rlxvk_graph *g, uint32_t id, const strided_views *v, bool strided,
                    text *out)
{
    uint32_t need = v->need[id];
    const char *name = node_row(graph_node(g, need == NODE_NONE ? id : need))->name;
    if (!strided)
        text_append(out, "strides are off");
    else if (need == NODE_NONE)
        text_append(out, "what it shows is written in place, carried by a loop, waited for or no "
                         "words, or it is to run on the host");
    else if (need < id)
        text_append(out, "%s %%%u has other readers", name, need);
    else if (is_output(g, need) && node_row(graph_node(g, need))->family->views.strided_view)
        text_append(out, "%s %%%u is a graph output", name, need);
    else
        text_append(out, "%s %%%u does not take it at strides", name, need);
    uint32_t x = graph_node(g, id)->inputs[0];
    if (strided && v->whole[x])
        text_append(out, "; %%%u is not made in parts: %s", x, v->whole[x]);
}

/* Excludes nodes that are not copied. */
static bool is_copied(const rlxvk_graph *g, uint32_t id, const strided_views *v, bool strided)
{
    const node *n = graph_node(g, id);
    bool copies = node_row(n)->family->views.strided_view && !view_is(g, n, NULL);
    return copies && (!strided || (v->in[id] == NODE_NONE && v->in[n->inputs[0]] != id));
}

rlxvk_status rewrite_find_copies(const rlxvk_graph *g, const bool *on_host, bool strided,
                                 miss_report report, void *user)
{
    bool *wanted = memory_zeroed(g->nodes.count + 1, sizeof *wanted);
    strided_views v = {0};
    rlxvk_status status;
    TRY(wanted ? RLXVK_OK : status_fail_memory("copies"));
    TRY(strided_find(g, on_host, &v));
    find_wanted(g, wanted);
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        char buffer[192] = "";
        if (!is_copied(g, id, &v, strided))
            continue;
        uint32_t x = graph_node(g, id)->inputs[0];
        bool of_parts = strided ? v.whole[x] != NULL : v.ends[x].at[0] != 0;
        if (!wanted[id] && !of_parts && v.need[id] >= id)
            continue;
        say_why(g, id, &v, strided, &(text){buffer, sizeof buffer, 0});
        report(user, id, "strided view", buffer);
    }
error:
    memory_free(wanted);
    strided_destroy(&v);
    return status;
}
