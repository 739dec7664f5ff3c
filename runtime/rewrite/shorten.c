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
    uint64_t *spans;    /* per old node */
    bool *indices;
    uint64_t unit;
    uint32_t count_id; /* old id of the count of active rows */
    uint32_t count;    /* new id */
    text why;
} shortening;

static void refuse(shortening *s, uint32_t id, const char *why)
{
    char label[NODE_LABEL];
    if (!s->why.length)
        text_append(&s->why, "%s: %s", op_node_label(&s->before, id, label), why);
}

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
    s->spans[id] = made.id ? c.span : BUCKET_FIXED;
    if (!made.id && p->graph->status == RLXVK_OK)
        refuse(s, id, bucket->why);
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
    bucket_call c = {.graph = &s->before,
                     .node = &p->nodes[id],
                     .spans = s->spans,
                     .indices = s->indices,
                     .unit = s->unit,
                     .precision = s->inputs->precision,
                     .why = ""};
    if (c.node->input_count == 0 || s->why.length)
        return NODE_NONE;
    s->spans[id] = bucket_of_node(&c, s->inputs->on_host && s->inputs->on_host[c.node->op]);
    return s->spans[id] == BUCKET_NONE ? shorten(p, s, id, &c) : NODE_NONE;
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
    uint32_t wrong = NODE_NONE;
    rlxvk_status status;
    shortening s = {.inputs = inputs, .why = {why, sizeof why, 0}};
    pass_note_origins(g);
    s.count_id = graph_find(g, OP_input, EXTENT_COUNT_NAME);
    s.before = *g;
    s.spans = memory_zeroed(g->nodes.count, sizeof *s.spans);
    s.indices = memory_zeroed(g->nodes.count, sizeof *s.indices);
    if (!s.spans || !s.indices)
        TRY(status_fail_memory("shortened graph"));
    s.unit = bucket_begin(g, inputs->items, inputs->count, s.spans, s.indices, &wrong);
    if (wrong != NODE_NONE)
        refuse(&s, wrong, "it has rows of the bucket along several axes");
    if (s.unit > SHORTEN_MOST_ROWS)
        refuse(&s, s.count_id, "it counts at most 2^24 rows");
    if (s.unit && !s.why.length)
        TRY(rewrite_run_pass(g, rule, &s));
    if (s.why.length)
        TRY(status_fail(RLXVK_E_UNSUPPORTED, "compile option extent_promise: %s", why));
    TRY(graph_index_names(g));
    TRY(op_verify(g));
error:
    memory_free(s.spans);
    memory_free(s.indices);
    return status;
}
