/*
 * Finds nodes whose results are outside their bounds. A clone runs, so that the given executable
 * stays as it is. It has the same program, so it runs the same kernels in the same memory.
 */
#include "exec/judge.h"
#include "exec/member.h"

/* ---- What the caller gets ---- */

static void append_name(char *buffer, size_t size, const char *name)
{
    text t = {buffer, size, 0};
    text_append(&t, "%s", name ? name : "");
}

static rlxvk_wrong_node describe(const rlxvk_graph *g, const judgement *r, const finding *f)
{
    rlxvk_wrong_node w = {.computed_nodes = r->nodes, .judged_nodes = r->judged};
    char label[NODE_LABEL];
    if (f->node == NODE_NONE)
        return w;
    const node *n = graph_node(g, f->node), *of = n;
    w.found = f->wrong > 0;
    w.node = op_node_origin(g, f->node);
    append_name(w.op, sizeof w.op, node_row(n)->name);
    append_name(w.name, sizeof w.name, n->name);
    if (f->kernel != UINT32_MAX)
        append_name(w.kernel, sizeof w.kernel, kernel_find(f->kernel)->name);
    append_name(w.variant, sizeof w.variant, f->variant);
    if (f->written != NODE_NONE) {
        of = graph_node(g, n->inputs[f->written]);
        append_name(w.written, sizeof w.written,
                    of->name ? of->name : op_node_label(g, n->inputs[f->written], label));
    }
    w.shape = of->shape;
    w.index = f->index;
    w.round = f->round;
    w.got = f->got;
    w.expected = f->expected;
    w.bound = f->bound;
    w.error = f->error;
    w.wrong_count = f->wrong;
    w.judged_count = f->judged;
    return w;
}

static void deliver(judge *j, rlxvk_wrong_node *out_node, rlxvk_wrong_node *worst, size_t capacity,
                    size_t *out_count)
{
    const rlxvk_graph *g = judge_graph(j);
    judgement r = judge_result(j);
    sized_array array = sized_room(SIZED(rlxvk_wrong_node), worst, capacity);
    rlxvk_wrong_node own = describe(g, &r, r.wrong_count ? &r.first : &r.nearest);
    sized_write(SIZED(rlxvk_wrong_node), &own, out_node);
    for (size_t i = 0; i < MIN(capacity, r.wrong_count); i++) {
        own = describe(g, &r, &r.wrong[i]);
        sized_put(SIZED(rlxvk_wrong_node), &array, i, &own);
    }
    *out_count = r.wrong_count;
}

/* ---- The public call ---- */

rlxvk_status rlxvk_first_wrong_node(rlxvk_executable *executable, const rlxvk_run_input *inputs,
                                    size_t input_count, rlxvk_wrong_node *out_node,
                                    rlxvk_wrong_node *worst, size_t capacity, size_t *out_count)
{
    rlxvk_executable *e = NULL;
    judge *j = NULL;
    sized_array given;
    rlxvk_status status;
    TRY(status_require_items(inputs, input_count, "first_wrong_node", "inputs"));
    TRY(sized_array_of(SIZED(rlxvk_run_input), inputs, input_count, &given));
    TRY(member_bind_run(executable, "first_wrong_node", &given));
    TRY(executable_require(executable, "first_wrong_node"));
    TRY(status_require(out_node, "first_wrong_node", "out_node"));
    TRY(status_require_items(worst, capacity, "first_wrong_node", "worst"));
    TRY(status_require(out_count, "first_wrong_node", "out_count"));
    TRY(rlxvk_clone(executable, &e));
    TRY(judge_create(e, &j));
    e->judge = j;
    e->is_prepared = false; /* so that prepared steps are judged, too */
    status = rlxvk_run(e, inputs, input_count, NULL, 0);
    if (status != RLXVK_E_SINGULAR) /* the reference gives NaN then, too */
        TRY(status);
    status = RLXVK_OK;
    deliver(j, out_node, worst, capacity, out_count);
error:
    judge_destroy(j);
    rlxvk_executable_destroy(e);
    return status;
}
