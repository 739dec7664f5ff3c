/*
 * Computes how much an opt-in precision of products may add to the error of words in a graph.
 *
 * The evaluation gives each node a bound for its own error. The bound at the precision minus the
 * bound at f32 is how far the precision may move each element of that node. To first order, the
 * error of a word is the sum of the effects of all elements of all nodes. To find the effect of an
 * element, the host moves it up and down by that distance and computes the word again.
 */
#include "conform/conform.h"

#include <math.h>
#include <string.h>

#define MOST_MOVED 40000000u /* limit for words computed again */

typedef struct spread {
    evaluation *v;
    const conform_word *words;
    size_t count;
    double *values, *moved; /* of the words: original; largest effect of the current element */
    bool *reaches;          /* by node: it is, or leads to, a node of a word */
    bool *follows;          /* by node: it also depends on the current node */
    uint64_t work;          /* words computed again so far, including the current node */
} spread;

static double value_of(const evaluation *v, const conform_word *w)
{
    return v->exact[w->node] ? v->exact[w->node][w->element]
                             : (double)v->words[w->node][w->element];
}

static bool reads(const node *n, const bool *marked)
{
    for (uint32_t i = 0; i < n->input_count; i++)
        if (marked[n->inputs[i]])
            return true;
    return false;
}

static void mark_reaching(spread *s)
{
    for (size_t i = 0; i < s->count; i++)
        s->reaches[s->words[i].node] = true;
    for (size_t id = s->v->graph->nodes.count; id-- > 0;) {
        const node *n = graph_node(s->v->graph, (uint32_t)id);
        for (uint32_t i = 0; s->reaches[id] && i < n->input_count; i++)
            s->reaches[n->inputs[i]] = true;
    }
}

static void mark_following(spread *s, uint32_t from)
{
    size_t count = s->v->graph->nodes.count;
    memset(s->follows, 0, count * sizeof *s->follows);
    s->follows[from] = true;
    for (size_t id = from + 1; id < count; id++)
        s->follows[id] = s->reaches[id] && reads(graph_node(s->v->graph, (uint32_t)id), s->follows);
}

/* Computes the words with the element moved, and their distance from the original ones. */
static rlxvk_status move(spread *s, uint32_t id, uint64_t element, double by)
{
    float *word = &s->v->words[id][element], before = *word;
    rlxvk_status status = RLXVK_OK;
    *word = (float)(before + by);
    for (uint32_t k = id + 1; k < s->v->graph->nodes.count && status == RLXVK_OK; k++)
        if (s->follows[k])
            status = evaluation_node(s->v, k);
    *word = before;
    for (size_t i = 0; i < s->count && status == RLXVK_OK; i++) {
        const conform_word *w = &s->words[i];
        double off = w->node == id ? (w->element == element ? fabs(by) : 0)
                                   : fabs(value_of(s->v, w) - s->values[i]);
        s->moved[i] = isnan(off) ? INFINITY : fmax(s->moved[i], off);
    }
    return status;
}

/* Computes how far the precision moves each element, and how many elements it moves. */
static rlxvk_status extra_bounds(evaluation *v, uint32_t id, rlxvk_precision precision, double *out,
                                 uint64_t *out_count)
{
    uint64_t length = op_host_length(v->graph, graph_node(v->graph, id));
    rlxvk_status status;
    v->values_only = false;
    v->precision = RLXVK_PRECISION_F32;
    TRY(evaluation_node(v, id));
    memcpy(out, v->bounds[id], length * sizeof *out);
    v->precision = precision;
    TRY(evaluation_node(v, id));
    *out_count = 0;
    for (uint64_t e = 0; e < length; e++) {
        out[e] = v->bounds[id][e] > out[e] ? v->bounds[id][e] - out[e] : 0;
        *out_count += out[e] > 0;
    }
    v->values_only = true; /* the other nodes read values, even of open elements */
    TRY(evaluation_node(v, id));
error:
    v->values_only = true;
    return status;
}

/* `bounds` has room for the bounds of the node. */
static rlxvk_status add_node(spread *s, uint32_t id, rlxvk_precision precision, double *bounds,
                             double *out)
{
    uint64_t length = op_host_length(s->v->graph, graph_node(s->v->graph, id)), count;
    rlxvk_status status;
    TRY(extra_bounds(s->v, id, precision, bounds, &count));
    mark_following(s, id);
    for (size_t k = id + 1; count && k < s->v->graph->nodes.count; k++)
        if (s->follows[k])
            s->work += count * op_host_length(s->v->graph, graph_node(s->v->graph, (uint32_t)k));
    if (s->work > MOST_MOVED)
        TRY(status_fail(RLXVK_E_TOO_LARGE, "too much to compute again"));
    for (uint64_t e = 0; e < length; e++) {
        if (bounds[e] == 0)
            continue;
        memset(s->moved, 0, s->count * sizeof *s->moved);
        TRY(move(s, id, e, bounds[e]));
        TRY(move(s, id, e, -bounds[e]));
        for (size_t i = 0; i < s->count; i++)
            out[i] += s->moved[i];
    }
error:
    return status;
}

rlxvk_status conform_precision_errors(evaluation *v, rlxvk_precision precision,
                                      const conform_word *words, size_t count, double *out)
{
    size_t nodes = v->graph->nodes.count;
    spread s = {v, words, count};
    uint64_t longest = 0;
    double *bounds = NULL;
    rlxvk_status status;
    memset(out, 0, count * sizeof *out);
    v->values_only = true;
    TRY(evaluation_run(v));
    for (uint32_t id = 0; id < nodes; id++)
        longest = MAX(longest, op_host_length(v->graph, graph_node(v->graph, id)));
    bounds = memory_zeroed(longest + 2 * count + 1, sizeof *bounds);
    s.reaches = memory_zeroed(2 * nodes + 1, sizeof *s.reaches);
    TRY(bounds && s.reaches ? RLXVK_OK : status_fail_memory("precision errors"));
    s.values = bounds + longest;
    s.moved = s.values + count;
    s.follows = s.reaches + nodes;
    for (size_t i = 0; i < count; i++)
        s.values[i] = value_of(v, &words[i]);
    mark_reaching(&s);
    for (uint32_t id = 0; id < nodes; id++)
        if (s.reaches[id] && graph_node(v->graph, id)->input_count && v->words[id])
            TRY(add_node(&s, id, precision, bounds, out));
error:
    memory_free(bounds);
    memory_free(s.reaches);
    return status;
}
