/*
 * Implements RLXVK_EXTENT_SHORTER: nodes that compute across the rows of a bucket end their rows at
 * the extent (op/shorten.h). A node that keeps rows apart stays as it is. The result of a node that
 * ends rows is independent of the bucket, because none of its elements depends on a row behind the
 * end.
 */
#include "op/shorten.h"
#include "op/array/keep_first.h"
#include "rewrite/pass.h"

typedef struct shortening {
    const shorten_inputs *inputs;
    rlxvk_graph before; /* the old nodes, for rules that need shapes */
    bucket_walk walk;   /* through the old nodes */
    uint32_t count_id;  /* old id of the count of active rows */
    uint32_t count;     /* new id */
    text why;
} shortening;

static uint32_t shorten(pass *p, shortening *s, uint32_t id, bucket_call *bucket)
{
    const node *n = bucket->node;
    rlxvk_tensor operands[SHORTEN_MOST_OPERANDS], made = RLXVK_NONE;
    shorten_call c = {.bucket = bucket,
                      .graph = p->graph,
                      .operands = operands,
                      .count = tensor_of(p->graph, s->count)};
    for (uint32_t i = 0; i < MIN(n->input_count, SHORTEN_MOST_OPERANDS); i++)
        operands[i] = tensor_of(p->graph, p->map[n->inputs[i]]);
    if (node_row(n)->family->rows.shorten && n->input_count <= SHORTEN_MOST_OPERANDS)
        made = node_row(n)->family->rows.shorten(&c);
    s->walk.spans[id] = made.id ? c.span : BUCKET_FIXED;
    if (!made.id && p->graph->status == RLXVK_OK)
        bucket_explain(&s->before, id, bucket->why, &s->why);
    return made.id ? made.id - 1 : NODE_NONE;
}

/* The count is copied first, so that it comes before all its readers. */
static uint32_t rule(pass *p, uint32_t id)
{
    shortening *s = (shortening *)p->context;
    if (id == 0)
        s->count = pass_copy(p, s->count_id);
    if (id == s->count_id)
        return s->count;
    if (s->why.length)
        return NODE_NONE;
    const bool *on_host = s->inputs->on_host;
    bucket_call c = bucket_walk_node(&s->walk, id, on_host && on_host[p->nodes[id].op]);
    return s->walk.spans[id] == BUCKET_NONE ? shorten(p, s, id, &c) : NODE_NONE;
}

rlxvk_status rewrite_add_count(rlxvk_graph *g)
{
    if (op_own_input(g, EXTENT_COUNT_NAME, 1) == NODE_NONE)
        return status_fail(g->status, "%s", g->error);
    return RLXVK_OK;
}

rlxvk_status rewrite_shorten(rlxvk_graph *g, const shorten_inputs *inputs)
{
    char why[512] = "";
    rlxvk_status status;
    shortening s = {.inputs = inputs, .why = {why, sizeof why, 0}};
    pass_note_origins(g);
    s.count_id = graph_find(g, OP_input, EXTENT_COUNT_NAME);
    s.before = *g;
    TRY(bucket_walk_begin(&s.before, inputs->items, inputs->count, inputs->precision, &s.why,
                          &s.walk));
    if (s.walk.unit > SHORTEN_MOST_ROWS)
        bucket_explain(&s.before, s.count_id, "it counts at most 2^24 rows", &s.why);
    if (s.walk.unit && !s.why.length)
        TRY(rewrite_run_pass(g, rule, &s));
    if (s.why.length)
        TRY(status_fail(RLXVK_E_UNSUPPORTED, "compile option extent_promise: %s", why));
    TRY(graph_index_names(g));
    TRY(op_verify(g));
error:
    bucket_walk_end(&s.walk);
    return status;
}
