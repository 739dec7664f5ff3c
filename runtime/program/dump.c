/* Output of RLXVK_DUMP and RLXVK_DEBUG while compiling. It goes to the context's log sink, a line
 * at a time. */
#include "program/dump.h"
#include "op/matmul/matrix_unit_choice.h"

#include <stdlib.h>
#include <string.h>

#define SAY(...) log_line(&p->context->log, RLXVK_LOG_INFO, __VA_ARGS__)

static void count_rows(const rlxvk_graph *g, uint32_t counts[OP_COUNT])
{
    for (size_t i = 0; i < g->nodes.count; i++)
        counts[g->nodes.items[i].op]++;
}

static void dump_counts(const program *p)
{
    uint32_t before[OP_COUNT] = {0}, after[OP_COUNT] = {0};
    count_rows(p->source, before);
    count_rows(p->graph, after);
    for (uint32_t i = 0; i < OP_COUNT; i++)
        if (before[i] != after[i])
            SAY("  %s: %u -> %u", op_table[i].name, before[i], after[i]);
}

static void say_miss(void *user, uint32_t id, const char *pattern, const char *reason)
{
    const program *p = user;
    const node *n = graph_node(p->graph, id);
    SAY("  not fused: %s at %%%u %s%s%s%s: %s", pattern, id, node_row(n)->name, n->name ? " '" : "",
        n->name ? n->name : "", n->name ? "'" : "", reason);
}

void dump_graph(const program *p, const rlxvk_graph *g, const char *title)
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

rlxvk_status dump_rewrite(const program *p)
{
    dump_graph(p, p->graph, "rewritten");
    rlxvk_status status;
    dump_counts(p);
    TRY(rewrite_find_misses(p->graph, &p->pairs, &p->device->setup.profile, say_miss, (void *)p));
    TRY(rewrite_find_copies(p->graph, p->options.on_host, p->options.strided, say_miss, (void *)p));
error:
    return status;
}

static void dump_step(const program *p, uint32_t index)
{
    static const char *const sources[] = {
        [VARIANT_BY_TABLE] = "", [VARIANT_BY_NAME] = " (forced)", [VARIANT_BY_TUNING] = " (tuned)"};
    const step *s = &p->schedule.steps.items[index];
    const node *n = graph_node(p->graph, s->node);
    char buffer[768], shape[SHAPE_TEXT];
    text t = {buffer, sizeof buffer, 0};
    operand o;
    buffer[0] = 0;
    if (s->host) {
        text_append(&t, "host %s", node_row(n)->name);
    } else {
        const dispatch *d = &p->schedule.dispatches.items[s->dispatch];
        const kernel_info *k = kernel_find(d->kernel);
        text_append(&t, "%s<", k->name);
        for (uint32_t i = 0; i < k->constant_count; i++)
            text_append(&t, "%s%u", i ? "," : "", d->constants[i]);
        text_append(&t, ">%s%s%s groups %ux%ux%u%s", d->variant ? " " : "",
                    d->variant ? d->variant : "", sources[d->source], d->groups[0], d->groups[1],
                    d->groups[2], extent_scales(&p->extent, s->dispatch) ? " by active rows" : "");
    }
    text_append(&t, " for %%%u %s", s->node, node_row(n)->name);
    if (n->name)
        text_append(&t, " '%s'", n->name);
    text_append(&t, " %s", shape_text(&n->shape, shape));
    const uint32_t *ends = p->schedule.values.items[s->node].ends.at;
    if (ends[0])
        text_append(&t, " in parts before columns %u, %u", ends[0], ends[1]);
    for (uint32_t i = 0; schedule_step_operand(&p->schedule, s, i, &o); i++)
        text_append(&t, " %s%s%u[%llu+%llu]", o.access & ACCESS_READ ? "r" : "",
                    o.access & ACCESS_WRITE ? "w" : "", o.value, (unsigned long long)o.first,
                    (unsigned long long)o.size);
    SAY("  %4u %c %s%s", index, p->plan.barriers[index].kind ? '|' : ' ',
        index < p->schedule.prepared ? "prepared: " : "", buffer);
}

static void dump_loop(const program *p, const schedule_loop *steps, const plan_loop *l)
{
    SAY("  loop: steps %u to %u, %llu times%s, recorded %u times", steps->first,
        steps->first + steps->count - 1, (unsigned long long)l->times,
        l->stop == NODE_NONE ? "" : " at most", p->plan.segments.items[l->first].rounds);
}

void dump_plan(const program *p)
{
    static const char *const names[] = {[CLASS_WEIGHTS] = "weights",
                                        [CLASS_HOST_WEIGHTS] = "host weights",
                                        [CLASS_STATE] = "state",
                                        [CLASS_SCRATCH] = "scratch"};
    const plan *plan = &p->plan;
    SAY("plan: %zu steps, %u barriers, %zu segments ('|': barrier before)", p->schedule.steps.count,
        plan->barrier_count, plan->segments.count);
    if (!matrix_unit(p->options.precision, &p->device->setup.profile).m &&
        p->options.precision != RLXVK_PRECISION_F32)
        SAY("  precision %s: this device has no matrix units for it; products run in f32",
            rlxvk_precision_name(p->options.precision));
    if (p->extent.unit)
        SAY("  active extents of %llu rows: %s%s", (unsigned long long)p->extent.unit,
            p->extent.spans ? "supported" : "every run is a full one, for ", p->extent.why);
    for (size_t i = 0; i < plan->loops.count; i++)
        dump_loop(p, &p->schedule.loops.items[i], &plan->loops.items[i]);
    for (uint32_t i = 0; i < p->schedule.steps.count; i++)
        dump_step(p, i);
    for (int c = 0; c < CLASS_COUNT; c++)
        SAY("  %s: %.3f MiB in %zu blocks", names[c], (double)plan->class_bytes[c] / 1048576.0,
            plan->blocks[c].count);
    for (uint32_t v = 0; v < plan->value_count; v++)
        if (plan->slots[v].block != SLOT_NONE)
            SAY("  slot %s:%u+%llu size %llu value %u", names[plan->slots[v].class],
                plan->slots[v].block, (unsigned long long)plan->slots[v].offset,
                (unsigned long long)plan->slots[v].size, v);
    SAY("  scratch peak %llu, lower bound %llu, without reuse %llu",
        (unsigned long long)plan->scratch_peak, (unsigned long long)plan->scratch_lower_bound,
        (unsigned long long)plan->scratch_unshared);
}

void dump_barriers(const program *p)
{
    static const char *const names[] = {"", "RAW", "WAW", "WAR", "forced", "next round"};
    for (uint32_t i = 0; i < p->schedule.steps.count; i++) {
        const barrier *b = &p->plan.barriers[i];
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

void dump_summary(const program *p)
{
    kernel_uses counts[KERNEL_LIMIT] = {0};
    uint32_t host = (uint32_t)p->host_step_count;
    for (uint32_t i = 0; i < KERNEL_LIMIT; i++)
        counts[i].kernel = i;
    for (size_t i = 0; i < p->schedule.dispatches.count; i++)
        counts[p->schedule.dispatches.items[i].kernel].count++;
    qsort(counts, KERNEL_LIMIT, sizeof *counts, by_count);
    SAY("device %s, portable %d, cooperative matrix %d", p->device->snapshot.properties.deviceName,
        p->device->setup.profile.portable, p->device->snapshot.cooperative_matrix);
    SAY("%u dispatches, %u barriers, %u host steps, cached %d, %u submissions per run",
        (uint32_t)p->schedule.steps.count - p->schedule.prepared - host, p->plan.barrier_count,
        host, p->options.cached, program_submissions(p));
    if (p->schedule.prepared)
        SAY("%u dispatches more when params were set, which leave %.3f MiB", p->schedule.prepared,
            (double)p->plan.prepared_bytes / 1048576.0);
    if (p->plan.loops.count)
        SAY("%zu loops that replay: %llu dispatches executed", p->plan.loops.count,
            (unsigned long long)program_executed(p));
    for (uint32_t i = 0; i < KERNEL_LIMIT && counts[i].count; i++)
        SAY("  %s %u", kernel_find(counts[i].kernel)->name, counts[i].count);
}
