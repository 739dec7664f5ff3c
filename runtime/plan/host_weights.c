/*
 * Chooses the weights that lie in host memory if the device has no room for all. Kernels read such
 * weights over the bus. So those go first of which a run reads the smallest part: weights of
 * prepared steps, then tables of which a gather reads some rows, then weights that are read whole.
 */
#include "plan/plan.h"

#include <stdlib.h>

typedef struct candidate {
    uint32_t value;
    double use; /* bytes that a run reads, per byte of the value */
    uint64_t bytes;
    bool moves;
} candidate;

typedef struct moving {
    const schedule *s;
    const plan_options *options;
    plan *p;
    double *reads; /* per value: bytes that a run reads */
    bool *written; /* per value: a step writes it */
    candidate *candidates;
    size_t count;
} moving;

/* ---- Use ---- */

/* How often a run does a step. */
static double step_times(const schedule *s, uint32_t index)
{
    double times = index >= s->prepared;
    for (size_t i = 0; i < s->loops.count; i++)
        if (index - s->loops.items[i].first < s->loops.items[i].count)
            times *= (double)s->loops.items[i].times;
    return times;
}

/* The part of an operand that the step's node reads: 1, or less if it reads only the rows that its
 * indices name. */
static double read_part(const schedule *s, const step *at, uint32_t value)
{
    const rlxvk_graph *g = s->graph;
    const node *n = graph_node(g, at->node);
    const op_family *family = node_row(n)->family;
    for (uint32_t i = 0; i < n->input_count && family->execution.indexed_inputs >> i; i++) {
        if (!(family->execution.indexed_inputs >> i & 1) ||
            s->values.items[n->inputs[i]].root != value)
            continue;
        index_limits l = family->checks.indices(g, n);
        double named = (double)shape_numel(input_shape(g, n, l.operand));
        return l.limits[0] > 0 ? MIN(named / (double)l.limits[0], 1) : 1;
    }
    return 1;
}

static void count_reads(moving *m)
{
    const schedule *s = m->s;
    operand o;
    for (uint32_t i = 0; i < s->steps.count; i++) {
        const step *at = &s->steps.items[i];
        double times = step_times(s, i);
        for (uint32_t k = 0; schedule_step_operand(s, at, k, &o); k++) {
            m->reads[o.value] += times * (double)o.size * read_part(s, at, o.value);
            m->written[o.value] |= o.access & ACCESS_WRITE;
        }
    }
}

/* ---- Choice ---- */

static bool may_move(const moving *m, uint32_t value)
{
    const slot *at = &m->p->slots[value];
    bool node_value = value < m->s->graph->nodes.count;
    if (at->class != CLASS_WEIGHTS || at->size == 0 || m->written[value])
        return false;
    return !node_value || (m->s->values.items[value].root == value &&
                           !(m->options->shared && m->options->shared[value]));
}

static void list_candidates(moving *m)
{
    for (uint32_t v = 0; v < m->p->value_count; v++) {
        uint64_t size = m->p->slots[v].size;
        if (may_move(m, v))
            m->candidates[m->count++] = (candidate){.value = v,
                                                    .use = m->reads[v] / (double)size,
                                                    .bytes = size + 2 * m->options->guard_bytes};
    }
}

static int by_use(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->use != y->use)
        return x->use < y->use ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* Takes candidates in order until the excess is covered. Then those go back that are not needed,
 * the most used one first. */
static void choose(moving *m, uint64_t excess)
{
    uint64_t moved = 0;
    for (size_t i = 0; i < m->count && moved < excess; i++) {
        candidate *c = &m->candidates[i];
        c->moves = c->bytes <= m->options->host_bytes - moved;
        moved += c->moves ? c->bytes : 0;
    }
    for (size_t i = m->count; i-- > 0 && moved >= excess;) {
        candidate *c = &m->candidates[i];
        if (!c->moves || moved - c->bytes < excess)
            continue;
        c->moves = false;
        moved -= c->bytes;
    }
}

rlxvk_status plan_move_weights(const schedule *s, const plan_options *options, uint64_t excess,
                               plan *p)
{
    moving m = {s,
                options,
                p,
                memory_zeroed(p->value_count + 1, sizeof *m.reads),
                memory_zeroed(p->value_count + 1, sizeof *m.written),
                memory_zeroed(p->value_count + 1, sizeof *m.candidates),
                0};
    bool made = m.reads && m.written && m.candidates;
    if (made) {
        count_reads(&m);
        list_candidates(&m);
        qsort(m.candidates, m.count, sizeof *m.candidates, by_use);
        choose(&m, excess);
        for (size_t i = 0; i < m.count; i++)
            if (m.candidates[i].moves)
                p->slots[m.candidates[i].value].class = CLASS_HOST_WEIGHTS;
    }
    memory_free(m.reads);
    memory_free(m.written);
    memory_free(m.candidates);
    return made ? RLXVK_OK : status_fail_memory("host weights");
}
