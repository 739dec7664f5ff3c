/* The lines that RLXVK_CHECK=results logs after a run. */
#include "exec/judge.h"

#define LOGGED_NODES 10 /* the worst of the wrong ones */
#define LOGGED_LINE  768

/* Some printf functions print a NaN with a sign, so we write it without one. */
static void append_number(text *t, const char *before, double v)
{
    if (isnan(v))
        text_append(t, "%sNaN", before);
    else
        text_append(t, "%s%.9g", before, v);
}

/* Appends for example "element 35 = [2, 0, 5] is 1.5, expected 2; 3.1e+04 of its bound 1.6e-05". */
static void append_element(const judge *j, const finding *f, text *t)
{
    const rlxvk_graph *g = judge_graph(j);
    const node *n = graph_node(g, f->node);
    const node *of = graph_node(g, f->written == NODE_NONE ? f->node : n->inputs[f->written]);
    uint64_t parts = of->dtype == RLXVK_C64 ? 2 : 1;
    char label[NODE_LABEL];
    if (f->written != NODE_NONE)
        text_append(t, "in operand %u, %s, which it writes: ", f->written,
                    op_node_label(g, n->inputs[f->written], label));
    text_append(t, "element %llu", (unsigned long long)(f->index / parts));
    shape_append_place(&of->shape, f->index / parts, t);
    if (parts == 2)
        text_append(t, f->index % 2 ? ", imaginary part," : ", real part,");
    append_number(t, " is ", f->got);
    append_number(t, ", expected ", f->expected);
    if (isinf(f->error))
        text_append(t, ", bound %.3g", f->bound);
    else
        text_append(t, "; %.3g of its bound %.3g", f->error, f->bound);
}

static void log_finding(const judge *j, const log_sink *log, const char *prefix, const finding *f)
{
    char line[LOGGED_LINE] = "", label[NODE_LABEL];
    text t = {line, sizeof line, 0};
    if (f->kernel == UINT32_MAX)
        text_append(&t, "on the host");
    else
        text_append(&t, "kernel '%s'", kernel_find(f->kernel)->name);
    if (f->variant)
        text_append(&t, ", variant '%s'", f->variant);
    if (f->round)
        text_append(&t, ", round %llu", (unsigned long long)f->round);
    text_append(&t, "; %llu of %llu elements; ", (unsigned long long)f->wrong,
                (unsigned long long)f->judged);
    append_element(j, f, &t);
    log_line(log, RLXVK_LOG_WARNING, "%s%s: %s", prefix,
             op_node_label(judge_graph(j), f->node, label), line);
}

void judge_log(judge *j, const log_sink *log)
{
    judgement r = judge_result(j);
    char counts[96] = "", label[NODE_LABEL];
    text t = {counts, sizeof counts, 0};
    text_append(&t, "results: %llu nodes, %llu judged", (unsigned long long)r.nodes,
                (unsigned long long)r.judged);
    if (r.wrong_count == 0 && r.nearest.node == NODE_NONE) {
        log_line(log, RLXVK_LOG_INFO, "%s", counts);
    } else if (r.wrong_count == 0) {
        log_line(log, RLXVK_LOG_INFO, "%s, all within their bounds; %.2g of its bound at %s",
                 counts, r.nearest.error, op_node_label(judge_graph(j), r.nearest.node, label));
    } else {
        log_line(log, RLXVK_LOG_WARNING, "%s, %zu outside their bounds", counts, r.wrong_count);
        log_finding(j, log, "  the first, ", &r.first);
        for (size_t i = 0; i < MIN(r.wrong_count, LOGGED_NODES) && r.wrong_count > 1; i++)
            log_finding(j, log, i ? "  then, " : "  the worst, ", &r.wrong[i]);
    }
}
