/*
 * Checks after a run, while its values are still in memory: bad indices, flags of nodes, and the
 * statistics that RLXVK_NAN_TRACE and RLXVK_DUMP_NODES print. Statistics need keep_all, because
 * every node must keep its memory.
 */
#include "exec/diagnose.h"
#include "exec/canary.h"
#include "exec/scan.h"
#include "exec/transfer.h"

#include <float.h>
#include <math.h>

static bool is_result(const rlxvk_executable *e, uint32_t id)
{
    const value *v = &e->program->schedule.values.items[id];
    return graph_node(e->program->graph, id)->input_count && (v->root == id || v->in_concat);
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
             op_node_label(e->program->graph, id, label), (double)s->max_abs,
             (unsigned long long)s->nonzero, (unsigned long long)count,
             (unsigned long long)s->nan_count, at);
}

/* ---- RLXVK_NAN_TRACE ---- */

#define TRACED_NODES    3 /* the first that are bad */
#define TRACED_BESIDE   3 /* values before the first bad one, and as many behind */
#define TRACED_OPERANDS 4
#define TRACE_LINE      640

/* Some printf functions print a NaN with a sign, so we write it without one. */
static void append_value(text *t, float v)
{
    if (isnan(v))
        text_append(t, "NaN");
    else
        text_append(t, "%g", (double)v);
}

/* Appends the words around the first bad one, which is in parentheses. */
static void append_neighbours(text *t, const scan *s, const float *words, uint64_t count)
{
    uint64_t first = s->first_bad - MIN(s->first_bad, TRACED_BESIDE);
    uint64_t end = MIN(s->first_bad + TRACED_BESIDE + 1, count);
    text_append(t, "; around it:%s", first ? " .." : "");
    for (uint64_t i = first; i < end; i++) {
        text_append(t, i == s->first_bad ? " (" : " ");
        append_value(t, words[i]);
        text_append(t, i == s->first_bad ? ")" : "");
    }
    text_append(t, end < count ? " .." : "");
}

static void trace_bad(rlxvk_executable *e, uint32_t id, const scan *s, const float *words,
                      uint64_t count)
{
    const node *n = graph_node(e->program->graph, id);
    uint64_t parts = n->dtype == RLXVK_C64 ? 2 : 1;
    char line[TRACE_LINE] = "", label[NODE_LABEL];
    text t = {line, sizeof line, 0};
    text_append(&t, "NaN %llu, +Inf %llu, -Inf %llu of %llu %s; first at %llu",
                (unsigned long long)s->nan_count,
                (unsigned long long)(s->infinity_count - s->negative_infinity_count),
                (unsigned long long)s->negative_infinity_count, (unsigned long long)count,
                parts == 2 ? "real and imaginary parts" : "elements",
                (unsigned long long)(s->first_bad / parts));
    shape_append_place(&n->shape, s->first_bad / parts, &t);
    append_neighbours(&t, s, words, count);
    log_line(&e->context->log, RLXVK_LOG_WARNING, "%s: %s",
             op_node_label(e->program->graph, id, label), line);
}

/* Logs the range of an operand's values after the run. */
static rlxvk_status trace_operand(rlxvk_executable *e, const node *n, uint32_t i)
{
    char line[TRACE_LINE] = "", label[NODE_LABEL];
    text t = {line, sizeof line, 0};
    float *words;
    uint64_t count;
    rlxvk_status status = scan_read(e, n->inputs[i], &words, &count);
    if (status != RLXVK_OK || !words)
        return status;
    scan s = scan_words(words, count);
    text_append(&t, "%llu values", (unsigned long long)count);
    if (s.min <= s.max)
        text_append(&t, " from %g to %g", (double)s.min, (double)s.max);
    if (s.nan_count)
        text_append(&t, ", NaN %llu", (unsigned long long)s.nan_count);
    log_line(&e->context->log, RLXVK_LOG_WARNING, "  operand %u, %s: %s", i,
             op_node_label(e->program->graph, n->inputs[i], label), line);
    memory_free(words);
    return RLXVK_OK;
}

static rlxvk_status trace_operands(rlxvk_executable *e, uint32_t id)
{
    const node *n = graph_node(e->program->graph, id);
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < MIN(n->input_count, TRACED_OPERANDS) && status == RLXVK_OK; i++)
        status = trace_operand(e, n, i);
    return status;
}

/* ---- RLXVK_CHECK=index ---- */

/* Only active rows are checked, because the others may hold anything. */
static bool is_checked(const rlxvk_executable *e, uint32_t id, uint64_t i)
{
    return extent_has(&e->program->extent, id, i, (uint64_t)e->extent_actual,
                      (uint64_t)e->extent_upper);
}

/* Nobody computes a denormal as an index. It is a small int32_t, for example 1, read as a float. */
static bool is_misread(float index)
{
    return index != 0 && fabsf(index) < FLT_MIN;
}

static rlxvk_status check_indices(rlxvk_executable *e, uint32_t id)
{
    const node *n = graph_node(e->program->graph, id);
    index_limits r = node_row(n)->family->checks.indices(e->program->graph, n);
    uint64_t count, bad = 0, first = 0;
    float *words;
    char label[NODE_LABEL];
    rlxvk_status status = scan_read(e, n->inputs[r.operand], &words, &count);
    for (uint64_t i = 0; status == RLXVK_OK && words && i < count; i++) {
        double index = floor((double)words[i] + 0.5) + (double)r.base;
        double limit = (double)r.limits[i % r.columns];
        bool inside = isnan(index) ? r.idles : (index >= 0 || r.skips) && index < limit;
        inside = inside && !is_misread(words[i]);
        inside = inside || !is_checked(e, n->inputs[r.operand], i);
        first = inside || bad ? first : i;
        bad += !inside;
    }
    if (bad)
        status = status_fail(
            RLXVK_E_INDEX_OOB,
            "%s: %llu indices are outside 0 .. %lld; the first is %g at position %llu%s",
            op_node_label(e->program->graph, id, label), (unsigned long long)bad,
            (long long)r.limits[first % r.columns] - 1, (double)words[first] + (double)r.base,
            (unsigned long long)first,
            is_misread(words[first]) ? ", an int32_t in an input declared F32?" : "");
    memory_free(words);
    return status;
}

static rlxvk_status check_and_trace(rlxvk_executable *e)
{
    const switches *s = &e->context->switches;
    uint64_t printed = 0, bad = 0;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t id = 0; id < e->program->graph->nodes.count && e->program->options.check_index &&
                          status == RLXVK_OK;
         id++)
        if (node_row(graph_node(e->program->graph, id))->family->checks.indices)
            status = check_indices(e, id);
    if (status != RLXVK_OK || !e->program->options.keep_all || (!s->nan_trace && !s->dump_nodes))
        return status;
    for (uint32_t id = 0; id < e->program->graph->nodes.count && status == RLXVK_OK; id++) {
        float *words = NULL;
        uint64_t count;
        if (!is_result(e, id))
            continue;
        status = scan_read(e, id, &words, &count);
        if (status == RLXVK_OK && words) {
            scan found = scan_words(words, count);
            if (s->dump_nodes && printed++ < s->dump_nodes_limit)
                print_stats(e, id, &found, words, count);
            if (s->nan_trace && found.bad && bad++ < TRACED_NODES) {
                trace_bad(e, id, &found, words, count);
                status = trace_operands(e, id);
            }
        }
        memory_free(words);
    }
    if (s->nan_trace && bad == 0 && status == RLXVK_OK)
        log_line(&e->context->log, RLXVK_LOG_INFO, "run %llu: clean", (unsigned long long)e->runs);
    return status;
}

/* ---- Flags ---- */

static rlxvk_status check_flags(rlxvk_executable *e, uint32_t id)
{
    const node *n = graph_node(e->program->graph, id);
    const op_family *family = node_row(n)->family;
    uint64_t first;
    run_flags found = {.count = family->checks.flags(n, &first)};
    location from = executable_location(e, id);
    char label[NODE_LABEL];
    float *flags = memory_zeroed(found.count + 1, sizeof *flags);
    rlxvk_status status = flags ? RLXVK_OK : status_fail_memory("flags of a run");
    from.offset += first * sizeof *flags;
    from.bytes = found.count * sizeof *flags;
    if (status == RLXVK_OK && found.count)
        status = transfer_read(e, &from, flags, from.bytes);
    for (uint64_t i = found.count; status == RLXVK_OK && i-- > 0;)
        if (flags[i] != 0) {
            found.bad++;
            found.first = i;
            found.value = flags[i];
        }
    if (found.bad)
        status = family->checks.flag_error(n, op_node_label(e->program->graph, id, label), &found);
    memory_free(flags);
    return status;
}

rlxvk_status diagnose_run(rlxvk_executable *e)
{
    rlxvk_status status = canary_check(e);
    if (status == RLXVK_OK)
        status = check_and_trace(e);
    for (uint32_t id = 0; id < e->program->graph->nodes.count && status == RLXVK_OK; id++)
        if (node_row(graph_node(e->program->graph, id))->family->checks.flags)
            status = check_flags(e, id);
    return status;
}

bool diagnose_needed(const rlxvk_executable *e)
{
    const switches *s = &e->context->switches;
    bool needed = e->program->options.canary ||
                  (e->program->options.keep_all && (s->nan_trace || s->dump_nodes));
    for (uint32_t id = 0; id < e->program->graph->nodes.count; id++) {
        const op_family *family = node_row(graph_node(e->program->graph, id))->family;
        needed = needed || family->checks.flags ||
                 (e->program->options.check_index && family->checks.indices);
    }
    return needed;
}
