/* See extent.h. The analysis goes through the nodes in order. */
#include "plan/extent.h"
#include "op/bucket.h"

#include <string.h>

/* ---- Nodes ---- */

static void refuse(extent *e, const rlxvk_graph *g, uint32_t id, const char *why)
{
    bucket_explain(g, id, why, &(text){e->why, sizeof e->why, 0});
}

static void note_nodes(bucket_walk *w, const bool *on_host, extent *e)
{
    for (uint32_t id = 0; id < w->graph->nodes.count && !*e->why; id++) {
        bucket_call c = bucket_walk_node(w, id, on_host[id]);
        if (w->spans[id] == BUCKET_NONE)
            refuse(e, w->graph, id, c.why);
    }
}

/* Sets the spans, or why there are none. */
static rlxvk_status note_spans(const schedule *s, const bucket_input *inputs, size_t count,
                               rlxvk_precision precision, extent *e)
{
    bool *on_host = memory_zeroed(s->graph->nodes.count + 1, sizeof *on_host);
    text why = {e->why, sizeof e->why, 0};
    bucket_walk w = {0};
    rlxvk_status status = RLXVK_OK;
    if (!on_host)
        TRY(status_fail_memory("extent"));
    for (size_t i = 0; i < s->steps.count; i++)
        on_host[s->steps.items[i].node] |= s->steps.items[i].host;
    TRY(bucket_walk_begin(s->graph, inputs, count, precision, &why, &w));
    e->unit = w.unit;
    if (w.unit == 0)
        text_append(&why, "no input has rows of a bucket; say which do with the compile option "
                          "bucket_axes");
    note_nodes(&w, on_host, e);
    e->spans = w.spans;
    w.spans = NULL;
error:
    memory_free(on_host);
    bucket_walk_end(&w);
    return status;
}

/* Readers of an output count rows along one axis. Inside the graph, spans are enough. */
static void note_outputs(const schedule *s, extent *e)
{
    const rlxvk_graph *g = s->graph;
    for (size_t i = 0; i < g->outputs.count && !*e->why && e->unit > 1; i++) {
        uint32_t id = g->outputs.items[i];
        if (e->spans[id] != BUCKET_FIXED &&
            bucket_axis_of(&graph_node(g, id)->shape, e->spans[id], e->unit) < 0)
            refuse(e, g, id, "it is an output, and its rows do not lie along one axis");
    }
}

/* ---- Dispatches ---- */

static uint64_t groups_of(const dispatch *d)
{
    return (uint64_t)d->groups[0] * d->groups[1] * d->groups[2];
}

/* How many workgroups go through one span of a result. 0 if no whole number of workgroups does. */
static uint64_t cycle_of_parts(const group_order *o, uint64_t span, uint64_t numel)
{
    uint64_t parts = span * o->parts / numel; /* both factors fit 32 bits */
    bool whole = o->parts && span * o->parts % numel == 0 && parts % o->lot == 0;
    return whole ? parts / o->lot * o->run : 0;
}

/* Launches `count` cycles as a grid with as many rows, if the device allows a grid of that size. */
static extent_groups groups_in_cycles(const dispatch *d, const device_profile *profile,
                                      uint64_t cycle, uint64_t count, uint32_t run)
{
    bool fits = cycle && cycle * count <= groups_of(d) && cycle <= profile->max_group_count[0] &&
                count <= profile->max_group_count[1];
    return fits ? (extent_groups){run, (uint32_t)cycle, (uint32_t)count} : (extent_groups){0};
}

/* How the dispatch can launch fewer workgroups, if its workgroups make the rows of this span one
 * after the other. */
static extent_groups groups_for_span(const dispatch *d, const device_profile *profile,
                                     uint64_t span, uint64_t numel)
{
    const group_order *o = &d->order;
    if (span == BUCKET_FIXED)
        return (extent_groups){0};
    if (span == numel && o->run)
        return (extent_groups){o->run, 0, 0};
    if (span == o->span && !o->cycle)
        return (extent_groups){o->rows_run, 0, 0};
    if (span == o->span)
        return groups_in_cycles(d, profile, o->cycle, o->cycles, o->rows_run);
    return groups_in_cycles(d, profile, cycle_of_parts(o, span, numel), numel / span, o->run);
}

static void note_dispatches(const schedule *s, const device_profile *profile, extent *e)
{
    for (size_t i = 0; i < s->dispatches.count && !*e->why; i++) {
        const dispatch *d = &s->dispatches.items[i];
        uint64_t numel = shape_numel(&graph_node(s->graph, d->node)->shape);
        e->groups[i] = groups_for_span(d, profile, e->spans[d->node], numel);
        if (d->turn != TURN_ALWAYS && !e->groups[i].run)
            refuse(e, s->graph, d->node, "it has kernels for few rows, which cannot be counted");
        e->scaled_count += e->groups[i].run > 0;
    }
}

rlxvk_status extent_analyze(const schedule *s, const bucket_input *inputs, size_t count,
                            rlxvk_precision precision, const device_profile *profile, extent *out)
{
    extent e = {.groups = memory_zeroed(s->dispatches.count + 1, sizeof *e.groups)};
    rlxvk_status status = RLXVK_OK;
    if (!e.groups)
        TRY(status_fail_memory("extent"));
    TRY(note_spans(s, inputs, count, precision, &e));
    note_outputs(s, &e);
    note_dispatches(s, profile, &e);
error:
    if (status != RLXVK_OK || *e.why) {
        memory_free(e.spans);
        memory_free(e.groups);
        e.spans = NULL;
        e.groups = NULL;
    }
    *out = e;
    return status;
}

void extent_destroy(extent *e)
{
    memory_free(e->spans);
    memory_free(e->groups);
    *e = (extent){0};
}

/* ---- Launching ---- */

void extent_grid(const extent_groups *g, uint32_t out[3])
{
    out[0] = g->cycle;
    out[1] = g->cycles;
    out[2] = g->cycle ? 1 : 0;
}

void extent_launch(const dispatch *d, const extent_groups *g, const device_profile *profile,
                   uint64_t actual, uint64_t upper, uint32_t out[3])
{
    dispatch_turn idle = 2 * actual <= upper ? TURN_MANY_ROWS : TURN_FEW_ROWS;
    uint64_t cycle = g->cycle ? g->cycle : groups_of(d);
    actual = d->turn == idle ? 0 : actual;
    uint64_t lots = divide_up(divide_up(cycle, g->run) * actual, upper);
    uint64_t launched = MIN(cycle, lots * g->run);
    extent_grid(g, out);
    if (g->cycle)
        out[0] = (uint32_t)launched;
    else
        lower_fold(profile, launched, out);
}
