/*
 * See judge.h. A node has one or more steps, and steps of other nodes may lie between them. So for
 * each node that has begun we keep what its steps have read and written so far:
 *   - Directly before a step we read what it binds of the operands, because later their memory may
 *     be reused. If the node writes the operand in place, only what no step has bound before.
 *   - Directly after it we read what it binds of operands that it writes, because the next node may
 *     write there, too.
 *   - After the node's last step we read its result, and what no step has bound: a part that was
 *     written directly into its concat, or a weight of which a prepared step made another layout.
 *
 * This is sound because barriers and the order of steps follow from the same ranges of bytes.
 */
#include "exec/judge.h"
#include "exec/execute.h"
#include "exec/held.h"
#include "exec/host_step.h"
#include "exec/queue.h"
#include "exec/record.h"
#include "op/evaluation.h"
#include "op/view.h"

#include <stdlib.h>
#include <string.h>

typedef struct judged_node {
    uint32_t steps, prepared; /* how many it has; `prepared`: of those, how many are prepared */
    uint32_t done;            /* steps since it began */
    uint32_t kernel;          /* of its last dispatch that has workgroups */
    const char *variant;
    bool executed, compared; /* in any round of this run */
    size_t wrong;            /* 1 + its place in judge.wrong; 0: none */
    held *operands;          /* before the node's steps; NULL: it has not begun */
    held *after;             /* likewise, after them; only of operands that it writes in place */
} judged_node;

struct judge {
    rlxvk_executable *e;
    judged_node *nodes; /* of the rewritten graph */
    uint32_t *partners; /* of pairs */
    uint64_t round;
    finding first, nearest;
    VECTOR(finding) wrong;
};

/* ---- Making it ---- */

static bool has_reference(const node *n)
{
    const op_family *family = node_row(n)->family;
    return family->execution.host && (!family->execution.has_host || family->execution.has_host(n));
}

rlxvk_status judge_create(rlxvk_executable *e, judge **out)
{
    const program *p = e->program;
    judge *j = memory_zeroed(1, sizeof *j);
    rlxvk_status status = RLXVK_OK;
    if (!(*out = j))
        return status_fail_memory("judge");
    j->e = e;
    j->first.node = j->nearest.node = NODE_NONE;
    j->nodes = memory_zeroed(p->graph->nodes.count + 1, sizeof *j->nodes);
    j->partners = pair_partners(p->pairs.items, p->pairs.count, p->graph->nodes.count);
    if (!j->nodes || !j->partners) {
        judge_destroy(j);
        *out = NULL;
        return status_fail_memory("judge");
    }
    for (uint32_t s = 0; s < p->schedule.steps.count; s++) {
        judged_node *w = &j->nodes[p->schedule.steps.items[s].node];
        w->steps++;
        w->prepared += s < p->schedule.prepared;
    }
    return status;
}

static void forget(judge *j, uint32_t id)
{
    judged_node *w = &j->nodes[id];
    for (uint32_t i = 0; w->operands && i < graph_node(j->e->program->graph, id)->input_count;
         i++) {
        held_destroy(&w->operands[i]);
        held_destroy(&w->after[i]);
    }
    memory_free(w->operands);
    w->operands = w->after = NULL;
    w->done = 0;
}

void judge_destroy(judge *j)
{
    if (!j)
        return;
    for (uint32_t id = 0; j->nodes && id < j->e->program->graph->nodes.count; id++)
        forget(j, id);
    VECTOR_FREE(&j->wrong);
    memory_free(j->nodes);
    memory_free(j->partners);
    memory_free(j);
}

/* ---- Operands ---- */

static bool is_written(const node *n, uint32_t i)
{
    return i < 32 && (node_writes(n) >> i & 1);
}

static rlxvk_status begin(judge *j, uint32_t id)
{
    const node *n = graph_node(j->e->program->graph, id);
    judged_node *w = &j->nodes[id];
    rlxvk_status status = RLXVK_OK;
    if (!(w->operands = memory_zeroed(2 * (size_t)n->input_count + 1, sizeof *w->operands)))
        return status_fail_memory("judge");
    w->after = w->operands + n->input_count;
    for (uint32_t i = 0; i < n->input_count; i++) {
        TRY(held_create(j->e, n->inputs[i], &w->operands[i]));
        if (is_written(n, i))
            TRY(held_create(j->e, n->inputs[i], &w->after[i]));
    }
error:
    return status;
}

typedef rlxvk_status read_function(rlxvk_executable *e, held *h, uint64_t first, uint64_t end);

/* Reads what a step binds of a tensor. A binding begins at an aligned address, so it may have some
 * bytes before the part in question. A host step binds all. */
static rlxvk_status read_bound(judge *j, const step *at, unsigned access, held *h,
                               read_function *read)
{
    const program *p = j->e->program;
    uint32_t root = p->schedule.values.items[h->id].root;
    rlxvk_status status = RLXVK_OK;
    operand o;
    if (at->host)
        return read(j->e, h, h->first, h->first + h->size);
    for (uint32_t k = 0; schedule_step_operand(&p->schedule, at, k, &o) && status == RLXVK_OK; k++)
        if (o.value == root && (o.access & access))
            status = read(j->e, h, o.first, o.first + o.size);
    return status;
}

static rlxvk_status read_before(judge *j, uint32_t id, const step *at)
{
    const node *n = graph_node(j->e->program->graph, id);
    judged_node *w = &j->nodes[id];
    rlxvk_status status = RLXVK_OK;
    if (!w->operands)
        TRY(begin(j, id));
    for (uint32_t i = 0; i < n->input_count; i++)
        TRY(read_bound(j, at, ACCESS_READ | (is_written(n, i) ? ACCESS_WRITE : 0), &w->operands[i],
                       is_written(n, i) ? held_read_new : held_read));
error:
    return status;
}

static rlxvk_status read_after(judge *j, uint32_t id, const step *at)
{
    const node *n = graph_node(j->e->program->graph, id);
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < n->input_count && status == RLXVK_OK; i++)
        if (is_written(n, i))
            status = read_bound(j, at, ACCESS_WRITE, &j->nodes[id].after[i], held_read);
    return status;
}

static rlxvk_status read_rest(judge *j, held *h)
{
    return held_read_new(j->e, h, h->first, h->first + h->size);
}

/* ---- Comparing ---- */

static double got_of(const host_tensor *t, uint64_t i)
{
    if (t->storage != STORAGE_RAW)
        return (double)t->words[i];
    return t->node->dtype == RLXVK_I8 ? (int8_t)t->bytes[i] : t->bytes[i];
}

/* A raw byte is what the exact number becomes as a byte. */
static double expected_of(const host_tensor *t, double exact)
{
    uint8_t byte = t->storage == STORAGE_RAW ? (uint8_t)(int)exact : 0;
    if (t->storage != STORAGE_RAW)
        return exact;
    return t->node->dtype == RLXVK_I8 ? (int8_t)byte : byte;
}

/* Compares a tensor with its reference. *f gets the worst element of all tensors that are compared
 * for its node. Inactive rows may hold anything. */
static rlxvk_status compare(judge *j, held *h, uint32_t written, const double *exact,
                            const double *bounds, finding *f)
{
    rlxvk_executable *e = j->e;
    const node *n = graph_node(e->program->graph, h->id);
    uint64_t parts = n->dtype == RLXVK_C64 ? 2 : 1, count = shape_numel(&n->shape) * parts;
    host_tensor got;
    rlxvk_status status;
    TRY(read_rest(j, h));
    TRY(held_tensor(e, h, &got));
    for (uint64_t i = 0; i < count; i++) {
        double value = got_of(&got, i), wanted = expected_of(&got, exact[i]);
        double error = evaluation_error((float)value, wanted, bounds[i]);
        if (!extent_has(&e->program->extent, h->id, i / parts, (uint64_t)e->extent_actual,
                        (uint64_t)e->extent_upper))
            continue;
        f->judged++;
        f->wrong += error > 1;
        if (f->judged > 1 && error <= f->error)
            continue;
        f->written = written;
        f->index = i;
        f->got = value;
        f->expected = wanted;
        f->bound = bounds[i];
        f->error = error;
    }
error:
    return status;
}

/* Whether a tensor that the node writes in place may lack some of the rows that the reference
 * writes there. So it is if an operand has inactive rows, and the tensor none: a cache of rows, for
 * example. */
static bool may_lack_rows(const rlxvk_executable *e, const node *n, uint32_t written)
{
    const uint64_t *spans = e->program->extent.spans;
    bool rows = false;
    for (uint32_t i = 0; spans && i < n->input_count; i++)
        rows = rows || spans[n->inputs[i]];
    return rows && e->extent_actual < e->extent_upper && !spans[written];
}

/* If the node is a view and writes, its result is operand 0's new content. */
static rlxvk_status compare_result(judge *j, uint32_t id, const double *exact, const double *bounds,
                                   finding *f)
{
    const rlxvk_graph *g = j->e->program->graph;
    const node *n = graph_node(g, id);
    bool is_view = view_is(g, n, NULL);
    held result = {0};
    rlxvk_status status;
    if (is_view && is_written(n, 0))
        return may_lack_rows(j->e, n, n->inputs[0])
                   ? RLXVK_OK
                   : compare(j, &j->nodes[id].after[0], NODE_NONE, exact, bounds, f);
    if (!held_exists(j->e, id))
        return RLXVK_OK;
    TRY(held_create(j->e, id, &result));
    TRY(compare(j, &result, NODE_NONE, exact, bounds, f));
error:
    held_destroy(&result);
    return status;
}

/* Compares the result of a node and the operands that it writes in place. */
static rlxvk_status compare_all(judge *j, uint32_t id, const double *exact, const double *bounds,
                                finding *f)
{
    const rlxvk_graph *g = j->e->program->graph;
    const node *n = graph_node(g, id);
    uint64_t at = shape_numel(&n->shape) * (n->dtype == RLXVK_C64 ? 2 : 1);
    uint32_t writes = node_writes(n) & ~(uint32_t)view_is(g, n, NULL);
    rlxvk_status status;
    TRY(compare_result(j, id, exact, bounds, f));
    for (uint32_t i = 0; i < n->input_count && writes >> i; i++) {
        if (!(writes >> i & 1))
            continue;
        if (!may_lack_rows(j->e, n, n->inputs[i]))
            TRY(compare(j, &j->nodes[id].after[i], i, exact + at, bounds + at, f));
        at += shape_numel(input_shape(g, n, i));
    }
error:
    return status;
}

/* If it was wrong in an earlier round, the worse of both is kept. */
static rlxvk_status note_finding(judge *j, const finding *f)
{
    judged_node *w = &j->nodes[f->node];
    if (f->judged == 0)
        return RLXVK_OK;
    if (f->wrong == 0) {
        if (j->nearest.node == NODE_NONE || f->error > j->nearest.error)
            j->nearest = *f;
        return RLXVK_OK;
    }
    if (j->first.node == NODE_NONE)
        j->first = *f;
    if (w->wrong && f->error > j->wrong.items[w->wrong - 1].error)
        j->wrong.items[w->wrong - 1] = *f;
    if (w->wrong)
        return RLXVK_OK;
    if (!VECTOR_PUSH(&j->wrong, *f))
        return status_fail_memory("judge");
    w->wrong = j->wrong.count;
    return RLXVK_OK;
}

/* Computes the reference. *out_has tells whether it could be computed: a host function may refuse,
 * for example that of a custom op. */
static rlxvk_status compute(judge *j, uint32_t id, const host_tensor *inputs, double *exact,
                            double *bounds, bool *out_has)
{
    const program *p = j->e->program;
    host_call call = {graph_node(p->graph, id), inputs, exact, bounds, p->options.precision};
    status_sentence before;
    status_save(&before);
    rlxvk_status status = evaluation_call(p->graph, &call, bounds);
    *out_has = status == RLXVK_OK;
    if (status == RLXVK_E_OUT_OF_HOST_MEMORY)
        return status;
    status_restore(&before);
    return RLXVK_OK;
}

/* Judges a node after its last step. */
static rlxvk_status conclude(judge *j, uint32_t id)
{
    const rlxvk_graph *g = j->e->program->graph;
    const node *n = graph_node(g, id);
    judged_node *w = &j->nodes[id];
    uint64_t results = op_host_length(g, n);
    host_tensor *inputs = memory_zeroed(n->input_count + 1, sizeof *inputs);
    double *exact = memory_zeroed(2 * results + 1, sizeof *exact);
    finding f = {.node = id,
                 .written = NODE_NONE,
                 .kernel = w->kernel,
                 .variant = w->variant,
                 .round = j->round};
    bool has = false;
    rlxvk_status status;
    TRY(inputs && exact ? RLXVK_OK : status_fail_memory("judge"));
    for (uint32_t i = 0; i < n->input_count; i++) {
        TRY(read_rest(j, &w->operands[i]));
        TRY(held_tensor(j->e, &w->operands[i], &inputs[i]));
    }
    if (results) /* host functions may loop over empty results */
        TRY(compute(j, id, inputs, exact, exact + results, &has));
    if (has)
        TRY(compare_all(j, id, exact, exact + results, &f));
    w->compared = w->compared || f.judged;
    TRY(note_finding(j, &f));
error:
    memory_free(inputs);
    memory_free(exact);
    forget(j, id);
    return status;
}

/* ---- Steps ---- */

/* Whether a dispatch has workgroups under the active extent. */
static bool launches(const rlxvk_executable *e, uint32_t index)
{
    const program *p = e->program;
    uint32_t groups[3];
    if (!e->extent_upper || !extent_scales(&p->extent, index))
        return p->schedule.dispatches.items[index].turn != TURN_FEW_ROWS;
    extent_launch(&p->schedule.dispatches.items[index], &p->extent.groups[index],
                  &e->device->setup.profile, (uint64_t)e->extent_actual, (uint64_t)e->extent_upper,
                  groups);
    return groups[0] != 0;
}

static void note_kernel(judge *j, uint32_t id, const step *at)
{
    judged_node *w = &j->nodes[id];
    const dispatch *d = &j->e->program->schedule.dispatches.items[at->dispatch];
    if (w->done == 0) {
        w->kernel = UINT32_MAX;
        w->variant = NULL;
    }
    if (at->host || !launches(j->e, at->dispatch))
        return;
    w->kernel = d->kernel;
    w->variant = d->variant ? d->variant : w->variant;
}

/* Prepared steps of a node that has other steps, too, only change the layout of weights. */
static bool counts(const judge *j, uint32_t owner, uint32_t s)
{
    const judged_node *w = &j->nodes[owner];
    return s >= j->e->program->schedule.prepared || w->steps == w->prepared;
}

static rlxvk_status execute_step(judge *j, uint32_t s, const host_step *h)
{
    rlxvk_executable *e = j->e;
    rlxvk_status status;
    if (h)
        return host_step_run(e, h);
    TRY(record_step(e, e->transfer, e->program->schedule.steps.items[s].dispatch));
    TRY(queue_submit(e, &e->transfer, 1));
    TRY(queue_wait_all(e));
error:
    return status;
}

/* Executes a step; `h` if it is a host step. Judges the node if it is its last step. Then also the
 * node that is lowered with it, if they are a pair. */
static rlxvk_status run_step(judge *j, uint32_t s, const host_step *h)
{
    const program *p = j->e->program;
    const step *at = &p->schedule.steps.items[s];
    uint32_t ids[2] = {at->node, h ? NODE_NONE : j->partners[at->node]};
    const judged_node *owner = &j->nodes[at->node];
    uint32_t all = owner->steps == owner->prepared ? owner->steps : owner->steps - owner->prepared;
    rlxvk_status status = RLXVK_OK;
    if (ids[1] != NODE_NONE && j->nodes[ids[1]].steps)
        ids[1] = NODE_NONE; /* it is lowered by itself */
    if (!counts(j, at->node, s))
        return execute_step(j, s, h);
    for (int i = 0; i < 2 && ids[i] != NODE_NONE; i++) {
        note_kernel(j, ids[i], at);
        j->nodes[ids[i]].executed = true;
        j->nodes[ids[i]].done++;
        if (has_reference(graph_node(p->graph, ids[i])))
            TRY(read_before(j, ids[i], at));
    }
    TRY(execute_step(j, s, h));
    for (int i = 0; i < 2 && ids[i] != NODE_NONE; i++) {
        bool has = has_reference(graph_node(p->graph, ids[i]));
        if (has)
            TRY(read_after(j, ids[i], at));
        if (j->nodes[ids[i]].done < all)
            continue;
        if (has)
            TRY(conclude(j, ids[i]));
        else
            forget(j, ids[i]);
    }
error:
    return status;
}

/* ---- Segments and loops ---- */

static rlxvk_status run_segment(judge *j, uint32_t index)
{
    const segment *g = &j->e->program->plan.segments.items[index];
    rlxvk_status status = RLXVK_OK;
    for (uint32_t s = g->first; s < g->first + g->count && status == RLXVK_OK; s++)
        status = run_step(j, s, g->host ? &j->e->host_steps[g->hosts_before] : NULL);
    return status;
}

static rlxvk_status run_loop(judge *j, uint32_t loop);

/* As execute_range: `opens` is 1 + the loop that begins with the first of the segments, or 0. */
static rlxvk_status run_range(judge *j, uint32_t first, uint32_t end, uint32_t opens)
{
    const plan *p = &j->e->program->plan;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = first; i < end && status == RLXVK_OK;) {
        uint32_t loop = i == first ? opens : p->segments.items[i].opens;
        status = loop ? run_loop(j, loop - 1) : run_segment(j, i);
        i += loop ? p->loops.items[loop - 1].count : 1;
    }
    return status;
}

static rlxvk_status run_loop(judge *j, uint32_t loop)
{
    const plan_loop *l = &j->e->program->plan.loops.items[loop];
    uint64_t outer = j->round;
    bool goes_on = true;
    rlxvk_status status = RLXVK_OK;
    for (uint64_t i = 0; i < l->times && goes_on; i++) {
        j->round = i + 1;
        TRY(run_range(j, l->first, l->first + l->count, l->inner));
        if (l->stop != NODE_NONE)
            TRY(execute_look(j->e, loop, &goes_on));
    }
error:
    j->round = outer;
    return status;
}

rlxvk_status judge_run(judge *j, bool prepares)
{
    rlxvk_executable *e = j->e;
    const plan *p = &e->program->plan;
    rlxvk_status status;
    TRY(queue_submit_batch(e));
    TRY(queue_wait_all(e));
    for (uint32_t i = prepares ? 0 : program_first_segment(e->program); i < p->segments.count;) {
        uint32_t loop = p->segments.items[i].opens;
        uint32_t end = i + (loop ? p->loops.items[loop - 1].count : 1);
        TRY(run_range(j, i, end, loop));
        i = end;
    }
error:
    return status;
}

/* ---- What was found ---- */

static int by_error(const void *a, const void *b)
{
    const finding *x = a, *y = b;
    if (x->error != y->error)
        return x->error > y->error ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

const rlxvk_graph *judge_graph(const judge *j)
{
    return j->e->program->graph;
}

judgement judge_result(judge *j)
{
    judgement r = {.first = j->first, .nearest = j->nearest};
    if (j->wrong.count)
        qsort(j->wrong.items, j->wrong.count, sizeof *j->wrong.items, by_error);
    for (uint32_t id = 0; id < j->e->program->graph->nodes.count; id++) {
        r.nodes += j->nodes[id].executed;
        r.judged += j->nodes[id].compared;
    }
    r.wrong = j->wrong.items;
    r.wrong_count = j->wrong.count;
    return r;
}
