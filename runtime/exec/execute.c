/*
 * Executes a plan. Segments of dispatches are put into batches. A host step waits for everything
 * before it.
 *
 * A loop submits its recorded commands again and again, so rounds record nothing. Rounds follow one
 * another on the device. The host waits only if a host step is among them, or if the loop may stop
 * early.
 *
 * If a loop may stop early, the first word of one value becomes 0 at the stop. That word is copied
 * to the host, which reads it after 1, 2, 4, 8, 16, 24, ... groups of rounds. So after the stop at
 * most as many groups run in vain as before it, and at most 8. Rounds after the stop change nothing
 * (op_loop.stop). A group is all rounds in one command buffer. If a loop has several segments, a
 * group is one round.
 *
 * If submissions are bounded by time, the first round of a segment is measured (bounded.h). From
 * then on, a batch is submitted before it would exceed the bound.
 */
#include "exec/execute.h"
#include "exec/bounded.h"
#include "exec/host_step.h"
#include "exec/queue.h"
#include "exec/record.h"

#include <string.h>

#define MOST_GROUPS_UNSEEN 8

/* `ns`: how long they take, if they are measured; else 0. */
static rlxvk_status add_timed(rlxvk_executable *e, VkCommandBuffer commands, uint64_t ns)
{
    const program_options *o = &e->program->options;
    bool loops = e->program->plan.loops.count != 0;
    size_t most = QUEUE_BATCH_LOOPS + (loops ? 0 : e->program->input_count);
    uint64_t most_ns = o->sliced ? 0 : o->submission_ns;
    rlxvk_status status = RLXVK_OK;
    if (e->bounded && e->batch_ns && e->batch_ns + ns > most_ns)
        TRY(queue_submit_batch(e));
    e->batch[e->batch_count++] = commands;
    e->batch_ns += ns;
    if ((loops || e->bounded) && e->batch_count >= most)
        TRY(queue_submit_batch(e));
error:
    return status;
}

static rlxvk_status add_commands(rlxvk_executable *e, VkCommandBuffer commands)
{
    return add_timed(e, commands, 0);
}

/* Executes one round of a segment whose submissions are bounded. */
static rlxvk_status execute_bounded(rlxvk_executable *e, uint32_t index)
{
    const bounded_segment *s = &e->bounded->segments[index];
    rlxvk_status status = RLXVK_OK;
    if (!s->measured)
        return bounded_measure(e, index);
    if (s->parts.count == 0)
        return add_timed(e, e->segments[index], s->ns);
    for (size_t i = 0; i < s->parts.count; i++)
        TRY(add_timed(e, s->commands.items[i], s->parts.items[i].ns));
error:
    return status;
}

static rlxvk_status execute_segment(rlxvk_executable *e, uint32_t index)
{
    const segment *g = &e->program->plan.segments.items[index];
    rlxvk_status status;
    if (!g->host)
        return e->bounded ? execute_bounded(e, index) : add_commands(e, e->segments[index]);
    TRY(queue_submit_batch(e));
    TRY(queue_wait_all(e));
    TRY(host_step_run(e, &e->host_steps[g->hosts_before]));
error:
    return status;
}

rlxvk_status execute_look(rlxvk_executable *e, uint32_t loop, bool *out_goes_on)
{
    uint32_t word;
    rlxvk_status status;
    TRY(add_commands(e, e->stops[loop]));
    TRY(queue_submit_batch(e));
    TRY(queue_wait_all(e));
    TRY(memory_block_invalidate(e->device, &e->stop_words, 0, e->stop_words.size));
    memcpy(&word, e->stop_words.mapped + 4 * (size_t)loop, sizeof word);
    *out_goes_on = word != 0;
error:
    return status;
}

static rlxvk_status execute_loop(rlxvk_executable *e, uint32_t loop);

/* Executes segments [first, end). `opens` is 1 + the loop that begins with the first of them, or
 * 0. */
static rlxvk_status execute_range(rlxvk_executable *e, uint32_t first, uint32_t end, uint32_t opens)
{
    const plan *p = &e->program->plan;
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = first; i < end && status == RLXVK_OK;) {
        uint32_t loop = i == first ? opens : p->segments.items[i].opens;
        status = loop ? execute_loop(e, loop - 1) : execute_segment(e, i);
        i += loop ? p->loops.items[loop - 1].count : 1;
    }
    return status;
}

/* A loop of one segment whose rounds are recorded in groups. */
typedef struct grouped_rounds {
    uint32_t group; /* rounds */
    uint64_t ns;    /* one round, if it is measured */
    VkCommandBuffer commands;
} grouped_rounds;

static grouped_rounds rounds_of(const rlxvk_executable *e, const plan_loop *l)
{
    const segment *g = &e->program->plan.segments.items[l->first];
    grouped_rounds r = {l->inner ? 1 : g->rounds, 0, e->segments[l->first]};
    if (r.group > 1 && e->bounded && e->bounded->segments[l->first].measured) {
        const bounded_segment *s = &e->bounded->segments[l->first];
        r = (grouped_rounds){s->rounds, s->ns, s->group ? s->group : r.commands};
    }
    return r;
}

/* The last rounds of a loop, which do not fill a group. */
static rlxvk_status execute_rest(rlxvk_executable *e, uint32_t index, const grouped_rounds *r,
                                 uint64_t rest)
{
    const segment *g = &e->program->plan.segments.items[index];
    rlxvk_status status = RLXVK_OK;
    if (r->group == g->rounds && rest == g->rest)
        return add_timed(e, e->rests[index], r->ns * rest);
    for (uint64_t i = 0; i < rest; i++)
        TRY(execute_segment(e, index));
error:
    return status;
}

static rlxvk_status execute_loop(rlxvk_executable *e, uint32_t loop)
{
    const plan_loop *l = &e->program->plan.loops.items[loop];
    grouped_rounds r = rounds_of(e, l);
    uint64_t left = l->times, next_look = 1;
    bool goes_on = true;
    rlxvk_status status = RLXVK_OK;
    while (r.group > 1 && left && e->bounded && !e->bounded->segments[l->first].measured) {
        TRY(bounded_measure(e, l->first));
        r = rounds_of(e, l);
        left--;
    }
    uint32_t group = r.group;
    uint64_t groups = left / group;
    for (uint64_t i = 0; i < groups && goes_on; i++) {
        if (group > 1)
            TRY(add_timed(e, r.commands, r.ns * group));
        else
            TRY(execute_range(e, l->first, l->first + l->count, l->inner));
        if (l->stop == NODE_NONE || i + 1 < next_look)
            continue;
        TRY(execute_look(e, loop, &goes_on));
        next_look = i + 1 + MIN(i + 1, MOST_GROUPS_UNSEEN);
    }
    if (goes_on && left % group)
        TRY(execute_rest(e, l->first, &r, left % group));
error:
    return status;
}

/* Records all segments anew, because the option `cached` is off. */
static rlxvk_status record_again(rlxvk_executable *e)
{
    rlxvk_status status;
    TRY(queue_wait_all(e));
    for (uint32_t i = 0; i < e->program->plan.segments.count; i++)
        if (!e->program->plan.segments.items[i].host)
            TRY(record_segment(e, i));
    for (uint32_t i = 0; e->bounded && i < e->program->plan.segments.count; i++)
        TRY(bounded_record(e, i));
error:
    return status;
}

rlxvk_status execute_all(rlxvk_executable *e, bool prepares)
{
    const plan *p = &e->program->plan;
    rlxvk_status status = RLXVK_OK;
    if (!e->program->options.cached)
        TRY(record_again(e));
    for (uint32_t i = prepares ? 0 : program_first_segment(e->program); i < p->segments.count;) {
        uint32_t loop = p->segments.items[i].opens;
        if (loop && e->stamps)
            TRY(add_commands(e, e->stamps[2 * (loop - 1)]));
        uint32_t end = i + (loop ? p->loops.items[loop - 1].count : 1);
        TRY(execute_range(e, i, end, loop));
        if (loop && e->stamps)
            TRY(add_commands(e, e->stamps[2 * (loop - 1) + 1]));
        i = end;
    }
error:
    return status;
}
