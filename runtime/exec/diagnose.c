/*
 * Finding the node where NaN or Inf first appears, and statistics of nodes. Both need every node to
 * keep its memory, so they work on executables compiled with keep_all; rlxvk_first_bad_node
 * compiles such a one beside the given executable.
 */
#include "exec/executable.h"

#include <math.h>
#include <string.h>

typedef struct scan {
    uint64_t nan_count, infinity_count, nonzero, first_bad;
    bool bad;
    float min, max, max_abs;
} scan;

static scan scan_words(const float *words, uint64_t count)
{
    scan s = {.min = INFINITY, .max = -INFINITY};
    for (uint64_t i = 0; i < count; i++) {
        float v = words[i];
        bool bad = !isfinite(v);
        if (bad && !s.bad)
            s.first_bad = i;
        s.bad = s.bad || bad;
        s.nan_count += isnan(v) != 0;
        s.infinity_count += isinf(v) != 0;
        s.nonzero += v != 0;
        if (isnan(v))
            continue;
        s.min = fminf(s.min, v);
        s.max = fmaxf(s.max, v);
        s.max_abs = fmaxf(s.max_abs, fabsf(v));
    }
    return s;
}

/* Raw bytes, packed halves and the random state are no f32 words to be judged. */
static bool holds_numbers(const rlxvk_executable *e, uint32_t id)
{
    storage held = node_held(e, id);
    bool random_state = e->rng_input && e->rng_input->node == id;
    return held != STORAGE_RAW && held != STORAGE_HALF && !random_state;
}

/* The words of a node, NULL where it holds no numbers or none. The caller frees *words. */
static rlxvk_status read_node(rlxvk_executable *e, uint32_t id, float **words, uint64_t *count)
{
    location from = node_location(e, id);
    rlxvk_status status = RLXVK_OK;
    *words = NULL;
    *count = from.bytes / 4;
    if (!holds_numbers(e, id) || from.bytes == 0)
        return RLXVK_OK;
    if (!(*words = memory_allocate(from.bytes)))
        return status_fail_memory("node content");
    status = location_read(e, &from, *words, from.bytes);
    return status;
}

static void report_bad(const rlxvk_graph *g, uint32_t id, const scan *s, const float *words,
                       uint64_t count, rlxvk_bad_node *out)
{
    const node *n = graph_node(g, id);
    out->found = true;
    out->node = id;
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
    out->previous_node = id;
    out->previous_shape = n->shape;
    out->previous_min = s->min;
    out->previous_max = s->max;
    out->previous_max_abs = s->max_abs;
}

static rlxvk_status scan_nodes(rlxvk_executable *e, rlxvk_bad_node *out)
{
    rlxvk_status status = RLXVK_OK;
    for (uint32_t id = 0; id < e->graph->nodes.count && !out->found; id++) {
        float *words;
        uint64_t count;
        status = read_node(e, id, &words, &count);
        if (status == RLXVK_OK && words) {
            scan s = scan_words(words, count);
            if (s.bad)
                report_bad(e->graph, id, &s, words, count, out);
            else
                remember_previous(e->graph, id, &s, out);
        }
        memory_free(words);
        if (status != RLXVK_OK)
            break;
    }
    return status;
}

/* Copies params and written inputs, node by name, from one executable to another of the same source
 * graph. */
static rlxvk_status copy_leaves(rlxvk_executable *to, rlxvk_executable *from)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < from->param_count; i++) {
        param_state *a = &from->params[i], *b = &to->params[i];
        b->set = a->set || a->node == NODE_NONE;
        if (a->node == NODE_NONE || b->node == NODE_NONE)
            continue;
        const node *n = graph_node(from->source, a->source);
        location source = node_location(from, a->node);
        float *words = memory_zeroed(1, 2 * node_slot_bytes(from, a->node) + 8);
        void *bytes = memory_zeroed(1, 2 * node_slot_bytes(from, a->node) + 8);
        location target = node_location(to, b->node);
        status = words && bytes ? location_read(from, &source, bytes, source.bytes)
                                : status_fail_memory("leaf copy");
        if (status == RLXVK_OK && node_held(from, a->node) == STORAGE_HALF &&
            node_held(to, b->node) != STORAGE_HALF) {
            decode_slot(n, STORAGE_HALF, RLXVK_AS_F32, bytes, words);
            status = location_write(to, &target, words, target.bytes);
        } else if (status == RLXVK_OK) {
            status = location_write(to, &target, bytes, target.bytes);
        }
        memory_free(words);
        memory_free(bytes);
        if (status != RLXVK_OK)
            return status;
    }
    return status;
}

static rlxvk_status copy_handle(rlxvk_executable *to, const rlxvk_executable *from, size_t i)
{
    const input_state *a = &from->inputs[i];
    input_state *b = &to->inputs[i];
    const node *n = graph_node(from->source, a->source);
    uint64_t bytes =
        dtype_storage_bytes(op_node_storage(from->source, a->source), shape_numel(&n->shape));
    b->written = a->written;
    b->bound = a->bound;
    b->resident = a->resident;
    if (!a->mirror)
        return RLXVK_OK;
    if (!(b->mirror = memory_allocate(bytes)))
        return status_fail_memory("handle mirror");
    memcpy(b->mirror, a->mirror, bytes);
    return RLXVK_OK;
}

static rlxvk_status copy_inputs(rlxvk_executable *to, rlxvk_executable *from)
{
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < from->input_count; i++) {
        input_state *a = &from->inputs[i], *b = &to->inputs[i];
        TRY(copy_handle(to, from, i));
        if (a->node == NODE_NONE || b->node == NODE_NONE)
            continue;
        location target = node_location(to, b->node), source = node_location(from, a->node);
        TRY(location_copy(to, &target, &source));
    }
error:
    return status;
}

rlxvk_status executable_copy_content(rlxvk_executable *to, rlxvk_executable *from)
{
    rlxvk_status status;
    TRY(flush_row_feeds(from));
    TRY(copy_leaves(to, from));
    TRY(copy_inputs(to, from));
    to->rng = from->rng;
error:
    return status;
}

rlxvk_status rlxvk_first_bad_node(rlxvk_executable *executable, const rlxvk_run_input *inputs,
                                  size_t input_count, rlxvk_bad_node *out_node)
{
    rlxvk_compile_options options;
    rlxvk_executable *e = NULL;
    rlxvk_bad_node found = {0};
    rlxvk_status status;
    TRY(status_require(executable, "first_bad_node", "executable"));
    TRY(status_require_items(inputs, input_count, "first_bad_node", "inputs"));
    TRY(status_require(out_node, "first_bad_node", "out_node"));
    options = executable->options;
    options.keep_all = RLXVK_ON;
    options.share_with = NULL;
    options.allow_unset = RLXVK_ON;
    TRY(compile_graph(executable->context, executable->source, &options, &e));
    TRY(executable_copy_content(e, executable));
    status = rlxvk_run(e, inputs, input_count, NULL, 0);
    if (status != RLXVK_E_SINGULAR) /* whose NaN are what is looked for */
        TRY(status);
    TRY(scan_nodes(e, &found));
    *out_node = found;
error:
    rlxvk_executable_destroy(e);
    return status;
}

/* ---- After each run: RLXVK_NAN_TRACE, RLXVK_DUMP_NODES ---- */

static bool is_result(const rlxvk_executable *e, uint32_t id)
{
    const value *v = &e->schedule.values.items[id];
    return graph_node(e->graph, id)->input_count && (v->root == id || v->in_concat);
}

static void print_stats(rlxvk_executable *e, uint32_t id, const scan *s, const float *words,
                        uint64_t count)
{
    int64_t flat = e->context->switches.dump_nodes_flat;
    char at[64] = "", label[NODE_LABEL];
    if (flat >= 0 && (uint64_t)flat < count) {
        text t = {at, sizeof at, 0};
        text_append(&t, " [%lld]=%g", (long long)flat, (double)words[flat]);
    }
    log_line(&e->context->log, RLXVK_LOG_INFO, "%s: max abs %g, nonzero %llu / %llu, NaN %llu%s",
             op_node_label(e->graph, id, label), (double)s->max_abs, (unsigned long long)s->nonzero,
             (unsigned long long)count, (unsigned long long)s->nan_count, at);
}

/* ---- RLXVK_CHECK=index ---- */

static rlxvk_status check_indices(rlxvk_executable *e, uint32_t id)
{
    const node *n = graph_node(e->graph, id);
    uint32_t operand;
    uint64_t limit = node_row(n)->family->index_limit(e->graph, n, &operand), count, bad = 0;
    uint64_t first = 0;
    float *words;
    char label[NODE_LABEL];
    rlxvk_status status = read_node(e, n->inputs[operand], &words, &count);
    for (uint64_t i = 0; status == RLXVK_OK && words && i < count; i++) {
        double index = floor((double)words[i] + 0.5);
        bool inside = index >= 0 && index < (double)limit; /* false for NaN */
        first = inside || bad ? first : i;
        bad += !inside;
    }
    if (bad)
        status =
            status_fail(RLXVK_E_INDEX_OOB,
                        "%s: %llu indices are outside 0 .. %llu; the first is %g at position %llu",
                        op_node_label(e->graph, id, label), (unsigned long long)bad,
                        (unsigned long long)limit - 1, (double)words[first],
                        (unsigned long long)first);
    memory_free(words);
    return status;
}

static rlxvk_status check_and_trace(rlxvk_executable *e)
{
    const switches *s = &e->context->switches;
    uint64_t printed = 0, bad = 0;
    char label[NODE_LABEL];
    rlxvk_status status = RLXVK_OK;
    for (uint32_t id = 0; id < e->graph->nodes.count && e->check_index && status == RLXVK_OK; id++)
        if (node_row(graph_node(e->graph, id))->family->index_limit)
            status = check_indices(e, id);
    if (status != RLXVK_OK || !e->keep_all || (!s->nan_trace && !s->dump_nodes))
        return status;
    for (uint32_t id = 0; id < e->graph->nodes.count && status == RLXVK_OK; id++) {
        float *words = NULL;
        uint64_t count;
        if (!is_result(e, id))
            continue;
        status = read_node(e, id, &words, &count);
        if (status == RLXVK_OK && words) {
            scan found = scan_words(words, count);
            if (s->dump_nodes && printed++ < s->dump_nodes_limit)
                print_stats(e, id, &found, words, count);
            if (s->nan_trace && found.bad && bad++ < 3)
                log_line(&e->context->log, RLXVK_LOG_WARNING,
                         "%s: NaN %llu, Inf %llu, first at %llu",
                         op_node_label(e->graph, id, label), (unsigned long long)found.nan_count,
                         (unsigned long long)found.infinity_count,
                         (unsigned long long)found.first_bad);
        }
        memory_free(words);
    }
    if (s->nan_trace && bad == 0 && status == RLXVK_OK)
        log_line(&e->context->log, RLXVK_LOG_INFO, "run %llu: clean", (unsigned long long)e->runs);
    return status;
}

/* ---- After each run: singular matrices ---- */

static rlxvk_status check_singular(rlxvk_executable *e, uint32_t id)
{
    const node *n = graph_node(e->graph, id);
    uint64_t first, count = node_row(n)->family->singular_flags(n, &first), bad = 0, slice = 0;
    location from = node_location(e, id);
    char label[NODE_LABEL];
    float *flags = memory_zeroed(count + 1, sizeof *flags);
    rlxvk_status status = flags ? RLXVK_OK : status_fail_memory("singular flags");
    from.offset += first * sizeof *flags;
    from.bytes = count * sizeof *flags;
    if (status == RLXVK_OK && count)
        status = location_read(e, &from, flags, from.bytes);
    for (uint64_t i = 0; status == RLXVK_OK && i < count; i++) {
        bool singular = flags[i] != 0;
        slice = singular && !bad ? i : slice;
        bad += singular;
    }
    if (bad)
        status =
            status_fail(RLXVK_E_SINGULAR,
                        "%s: %llu of %llu matrices are singular, the first is slice %llu; their "
                        "solutions are NaN, all else is valid",
                        op_node_label(e->graph, id, label), (unsigned long long)bad,
                        (unsigned long long)count, (unsigned long long)slice);
    memory_free(flags);
    return status;
}

rlxvk_status diagnose_run(rlxvk_executable *e)
{
    rlxvk_status status = check_and_trace(e);
    for (uint32_t id = 0; id < e->graph->nodes.count && status == RLXVK_OK; id++)
        if (node_row(graph_node(e->graph, id))->family->singular_flags)
            status = check_singular(e, id);
    return status;
}

bool needs_diagnosis(const rlxvk_executable *e)
{
    const switches *s = &e->context->switches;
    bool needed = e->keep_all && (s->nan_trace || s->dump_nodes);
    for (uint32_t id = 0; id < e->graph->nodes.count; id++) {
        const op_family *family = node_row(graph_node(e->graph, id))->family;
        needed = needed || family->singular_flags || (e->check_index && family->index_limit);
    }
    return needed;
}
