/*
 * Finds the node at which NaN or Inf first appears. Every node must keep its memory for that. So we
 * compile a second executable with keep_all and copy the content of the given one.
 */
#include "exec/copy.h"
#include "exec/create.h"
#include "exec/member.h"
#include "exec/scan.h"

static void report_bad(const rlxvk_graph *g, uint32_t id, const scan *s, const float *words,
                       uint64_t count, rlxvk_bad_node *out)
{
    const node *n = graph_node(g, id);
    out->found = true;
    out->node = op_node_origin(g, id);
    text op = {out->op, sizeof out->op, 0}, name = {out->name, sizeof out->name, 0};
    text_append(&op, "%s", node_row(n)->name);
    text_append(&name, "%s", n->name ? n->name : "");
    out->nan_count = s->nan_count;
    out->infinity_count = s->infinity_count;
    out->first_index = s->first_bad;
    for (int k = -2; k <= 2; k++) {
        int64_t at = (int64_t)s->first_bad + k;
        out->neighbours[k + 2] = at >= 0 && (uint64_t)at < count ? words[at] : 0;
    }
}

static void remember_previous(const rlxvk_graph *g, uint32_t id, const scan *s, rlxvk_bad_node *out)
{
    const node *n = graph_node(g, id);
    text op = {out->previous_op, sizeof out->previous_op, 0};
    text_append(&op, "%s", node_row(n)->name);
    out->previous_node = op_node_origin(g, id);
    out->previous_shape = n->shape;
    out->previous_min = s->min;
    out->previous_max = s->max;
    out->previous_max_abs = s->max_abs;
}

static rlxvk_status scan_nodes(rlxvk_executable *e, rlxvk_bad_node *out)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t id = 0; id < e->program->graph->nodes.count && !out->found; id++) {
        float *words;
        uint64_t count;
        status = scan_read(e, id, &words, &count);
        if (status == RLXVK_OK && words) {
            scan s = scan_words(words, count);
            if (s.bad)
                report_bad(e->program->graph, id, &s, words, count, out);
            else
                remember_previous(e->program->graph, id, &s, out);
        }
        memory_free(words);
        if (status != RLXVK_OK)
            break;
    }
    return status;
}

rlxvk_status rlxvk_first_bad_node(rlxvk_executable *executable, const rlxvk_run_input *inputs,
                                  size_t input_count, rlxvk_bad_node *out_node)
{
    program_options options;
    rlxvk_executable *e = NULL;
    rlxvk_bad_node found = {0};
    sized_array given;
    rlxvk_status status;
    TRY(status_require_items(inputs, input_count, "first_bad_node", "inputs"));
    TRY(sized_array_of(SIZED(rlxvk_run_input), inputs, input_count, &given));
    TRY(member_bind_run(executable, "first_bad_node", &given));
    TRY(executable_require(executable, "first_bad_node"));
    TRY(status_require(out_node, "first_bad_node", "out_node"));
    options = options_for_nodes(&executable->program->options);
    TRY(create_compiled(executable->context, executable->program->source, &options, NULL, &e));
    TRY(copy_content(e, executable));
    status = rlxvk_run(e, inputs, input_count, NULL, 0);
    if (status != RLXVK_E_SINGULAR) /* singular matrices give NaN, which we look for */
        TRY(status);
    TRY(scan_nodes(e, &found));
    sized_write(SIZED(rlxvk_bad_node), &found, out_node);
error:
    executable_end(e);
    return status;
}
