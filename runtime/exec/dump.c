/* What RLXVK_DUMP and RLXVK_DEBUG print at compile, a line at a time, to the context's log sink. */
#include "exec/executable.h"
#include "op/matmul/matrix_select.h"

#include <stdlib.h>
#include <string.h>

#define SAY(...) log_line(&e->context->log, RLXVK_LOG_INFO, __VA_ARGS__)

static void count_rows(const rlxvk_graph *g, uint32_t counts[OP_COUNT])
{
    for (size_t i = 0; i < g->nodes.count; i++)
        counts[g->nodes.items[i].op]++;
}

static void dump_counts(const rlxvk_executable *e)
{
    uint32_t before[OP_COUNT] = {0}, after[OP_COUNT] = {0};
    count_rows(e->source, before);
    count_rows(e->graph, after);
    for (uint32_t i = 0; i < OP_COUNT; i++)
        if (before[i] != after[i])
            SAY("  %s: %u -> %u", op_table[i].name, before[i], after[i]);
}

static void say_miss(void *user, uint32_t id, const char *pattern, const char *reason)
{
    const rlxvk_executable *e = user;
    const node *n = graph_node(e->graph, id);
    SAY("  not fused: %s at %%%u %s%s%s%s: %s", pattern, id, node_row(n)->name, n->name ? " '" : "",
        n->name ? n->name : "", n->name ? "'" : "", reason);
}

void dump_graph(const rlxvk_executable *e, const rlxvk_graph *g, const char *title)
{
    char buffer[1024];
    SAY("%s: %zu nodes, %zu outputs", title, g->nodes.count, g->outputs.count);
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        text t = {buffer, sizeof buffer, 0};
        buffer[0] = 0;
        op_node_describe(g, id, &t);
        SAY("  %s", buffer);
    }
    for (size_t i = 0; i < g->outputs.count; i++)
        SAY("  output %zu: %%%u", i, g->outputs.items[i]);
}

rlxvk_status dump_rewrite(const rlxvk_executable *e)
{
    dump_graph(e, e->graph, "rewritten");
    dump_counts(e);
    return rewrite_find_misses(e->graph, &e->pairs, say_miss, (void *)e);
}

static void dump_step(const rlxvk_executable *e, uint32_t index)
{
    static const char *const sources[] = {
        [VARIANT_BY_TABLE] = "", [VARIANT_BY_NAME] = " (forced)", [VARIANT_BY_TUNING] = " (tuned)"};
    const step *s = &e->schedule.steps.items[index];
    const node *n = graph_node(e->graph, s->node);
    char buffer[768], shape[SHAPE_TEXT];
    text t = {buffer, sizeof buffer, 0};
    operand o;
    buffer[0] = 0;
    if (s->host) {
        text_append(&t, "host %s", node_row(n)->name);
    } else {
        const dispatch *d = &e->schedule.dispatches.items[s->dispatch];
        const kernel_info *k = kernel_find(d->kernel);
        text_append(&t, "%s<", k->name);
        for (uint32_t i = 0; i < k->constant_count; i++)
            text_append(&t, "%s%u", i ? "," : "", d->constants[i]);
        text_append(&t, ">%s%s%s groups %ux%ux%u", d->variant ? " " : "",
                    d->variant ? d->variant : "", sources[d->source], d->groups[0], d->groups[1],
                    d->groups[2]);
    }
    text_append(&t, " for %%%u %s", s->node, node_row(n)->name);
    if (n->name)
        text_append(&t, " '%s'", n->name);
    text_append(&t, " %s", shape_text(&n->shape, shape));
    for (uint32_t i = 0; schedule_step_operand(&e->schedule, s, i, &o); i++)
        text_append(&t, " %s%s%u[%llu+%llu]", o.access & ACCESS_READ ? "r" : "",
                    o.access & ACCESS_WRITE ? "w" : "", o.value, (unsigned long long)o.first,
                    (unsigned long long)o.size);
    SAY("  %4u %c %s", index, e->plan.barriers[index].kind ? '|' : ' ', buffer);
}

void dump_plan(const rlxvk_executable *e)
{
    static const char *const names[] = {"weights", "state", "scratch"};
    const plan *p = &e->plan;
    SAY("plan: %zu steps, %u barriers, %zu segments ('|': barrier before)", e->schedule.steps.count,
        p->barrier_count, p->segments.count);
    if (!matrix_unit(e->precision, &e->device->choice.profile).m &&
        e->precision != RLXVK_PRECISION_F32)
        SAY("  precision %s: this device has no matrix units for it; products run in f32",
            rlxvk_precision_name(e->precision));
    for (uint32_t i = 0; i < e->schedule.steps.count; i++)
        dump_step(e, i);
    for (int c = 0; c < CLASS_COUNT; c++)
        SAY("  %s: %.3f MiB in %zu blocks", names[c], (double)p->class_bytes[c] / 1048576.0,
            p->blocks[c].count);
    for (uint32_t v = 0; v < p->value_count; v++)
        if (p->slots[v].block != SLOT_NONE)
            SAY("  slot %s:%u+%llu size %llu value %u", names[p->slots[v].class], p->slots[v].block,
                (unsigned long long)p->slots[v].offset, (unsigned long long)p->slots[v].size, v);
    SAY("  scratch peak %llu, lower bound %llu, without reuse %llu",
        (unsigned long long)p->scratch_peak, (unsigned long long)p->scratch_lower_bound,
        (unsigned long long)p->scratch_unshared);
}

void dump_barriers(const rlxvk_executable *e)
{
    static const char *const names[] = {"", "RAW", "WAW", "WAR", "forced"};
    for (uint32_t i = 0; i < e->schedule.steps.count; i++) {
        const barrier *b = &e->plan.barriers[i];
        if (b->kind != HAZARD_NONE)
            SAY("barrier before step %u: %s on value %u with step %u", i, names[b->kind], b->value,
                b->earlier);
    }
}

typedef struct kernel_uses {
    uint32_t kernel, count;
} kernel_uses;

static int by_count(const void *a, const void *b)
{
    const kernel_uses *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1) : (int)x->kernel - (int)y->kernel;
}

void dump_summary(const rlxvk_executable *e)
{
    kernel_uses counts[KERNEL_LIMIT] = {0};
    rlxvk_plan_report r;
    rlxvk_executable_plan(e, &r);
    for (uint32_t i = 0; i < KERNEL_LIMIT; i++)
        counts[i].kernel = i;
    for (size_t i = 0; i < e->schedule.dispatches.count; i++)
        counts[e->schedule.dispatches.items[i].kernel].count++;
    qsort(counts, KERNEL_LIMIT, sizeof *counts, by_count);
    SAY("device %s, portable %d, cooperative matrix %d", e->device->snapshot.properties.deviceName,
        e->device->choice.profile.portable, e->device->snapshot.cooperative_matrix);
    SAY("%u dispatches, %u barriers, %u host steps, cached %d, %u submissions per run",
        r.dispatches, r.barriers, r.host_steps, e->cached, r.submissions_per_run);
    for (uint32_t i = 0; i < KERNEL_LIMIT && counts[i].count; i++)
        SAY("  %s %u", kernel_find(counts[i].kernel)->name, counts[i].count);
}
