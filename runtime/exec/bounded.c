/* Measures segments, and records them in parts that are within the bound. */
#include "exec/bounded.h"
#include "exec/queue.h"
#include "exec/record.h"
#include "program/bound.h"

#include <string.h>

/* Parts and ranges aim at less than the bound, because times vary. */
#define AIM 0.7
/* After growing by more, an active extent is measured again. AIM leaves room for that. */
#define MOST_GROWTH 1.25
/* With options.sliced: ranges of a dispatch. */
#define MOST_SLICES 64

static uint64_t aim_of(const rlxvk_executable *e)
{
    const program_options *o = &e->program->options;
    return o->sliced ? 0 : (uint64_t)((double)o->submission_ns * AIM);
}

/* ---- The begin and the end ---- */

rlxvk_status bounded_create(rlxvk_executable *e)
{
    const program_options *o = &e->program->options;
    rlxvk_status status = RLXVK_OK;
    if (!o->sliced && (!o->submission_ns || bound_estimate_all(e->program) <= o->submission_ns))
        return RLXVK_OK;
    bounded *b = memory_zeroed(1, sizeof *b);
    if (!(e->bounded = b) ||
        !(b->segments = memory_zeroed(e->program->plan.segments.count + 1, sizeof *b->segments)))
        return status_fail_memory("submissions");
    TRY(command_buffers_allocate(e->device, e->pool, 1, &b->commands));
error:
    return status;
}

static void forget(rlxvk_executable *e, bounded_segment *s)
{
    const vk_functions *fn = &e->device->fn;
    if (s->commands.count)
        fn->FreeCommandBuffers(e->device->handle, e->pool, (uint32_t)s->commands.count,
                               s->commands.items);
    if (s->group)
        fn->FreeCommandBuffers(e->device->handle, e->pool, 1, &s->group);
    bounded_segment_free(s);
    *s = (bounded_segment){.apart = s->apart};
}

/* ---- Active extents ---- */

/* The active part of the rows. */
static double share_of(const rlxvk_executable *e)
{
    return e->extent_upper ? (double)e->extent_actual / (double)e->extent_upper : 1;
}

/* Whether a dispatch is cut that launches fewer workgroups under an extent. */
static bool has_scaled_ranges(const rlxvk_executable *e, const bounded_segment *s)
{
    bool any = false;
    for (size_t i = 0; i < s->packed.count && !any; i++)
        any = s->packed.items[i].count &&
              extent_scales(&e->program->extent,
                            e->program->schedule.steps.items[s->packed.items[i].step].dispatch);
    return any;
}

/* More rows take more time; attention and some others take the square of it. */
static bool still_holds(const rlxvk_executable *e, const bounded_segment *s, uint32_t rounds)
{
    double growth = share_of(e) / MAX(s->share, 1e-9);
    if (e->extent_upper && has_scaled_ranges(e, s))
        return false;
    return growth <= MOST_GROWTH ||
           (s->parts.count == 0 &&
            (double)s->ns * rounds * growth * growth <= (double)e->program->options.submission_ns);
}

void bounded_adapt(rlxvk_executable *e)
{
    const plan *p = &e->program->plan;
    for (size_t i = 0; e->bounded && e->group_counts && i < p->segments.count; i++)
        if (!still_holds(e, &e->bounded->segments[i], p->segments.items[i].rounds))
            forget(e, &e->bounded->segments[i]);
}

/* ---- Recording ---- */

/* Cuts one round into parts. A loop of grouped rounds has a part even if one is enough, because
 * rounds that fill no group run alone. */
static rlxvk_status pack(rlxvk_executable *e, uint32_t index)
{
    const segment *g = &e->program->plan.segments.items[index];
    bounded_segment *s = &e->bounded->segments[index];
    uint64_t bound = e->program->options.submission_ns;
    bool sliced = e->program->options.sliced;
    rlxvk_status status = RLXVK_OK;
    s->ns = 0;
    for (size_t i = 0; i < s->pieces.count; i++)
        s->ns += s->pieces.items[i].ns;
    bool fits = !sliced && (double)s->ns * g->rounds <= (double)bound;
    s->rounds = fits ? g->rounds : 1;
    if (!fits && !sliced && s->ns <= aim_of(e))
        s->rounds = (uint32_t)MIN(aim_of(e) / MAX(s->ns, 1), g->rounds);
    if (fits && g->rounds == 1)
        return RLXVK_OK;
    TRY(slice_pack(&s->pieces, aim_of(e), &s->packed, &s->parts));
error:
    return status;
}

static rlxvk_status make_commands(rlxvk_executable *e, uint32_t index)
{
    bounded_segment *s = &e->bounded->segments[index];
    uint32_t count = (uint32_t)s->parts.count;
    rlxvk_status status = RLXVK_OK;
    if (!VECTOR_RESERVE(&s->commands, count))
        return status_fail_memory("submissions");
    TRY(command_buffers_allocate(e->device, e->pool, count, s->commands.items));
    s->commands.count = count;
    if (s->rounds > 1 && s->rounds < e->program->plan.segments.items[index].rounds)
        TRY(command_buffers_allocate(e->device, e->pool, 1, &s->group));
error:
    return status;
}

rlxvk_status bounded_record(rlxvk_executable *e, uint32_t index)
{
    bounded_segment *s = &e->bounded->segments[index];
    rlxvk_status status = RLXVK_OK;
    for (size_t i = 0; i < s->parts.count; i++) {
        const slice_part *part = &s->parts.items[i];
        TRY(record_pieces(e, index, s->commands.items[i], s->packed.items + part->first,
                          part->count, 1));
    }
    if (s->group)
        TRY(record_pieces(e, index, s->group, s->packed.items, (uint32_t)s->packed.count,
                          s->rounds));
error:
    return status;
}

static rlxvk_status record_anew(rlxvk_executable *e, uint32_t index)
{
    bounded_segment *s = &e->bounded->segments[index];
    rlxvk_status status;
    TRY(pack(e, index));
    TRY(make_commands(e, index));
    TRY(bounded_record(e, index));
    s->measured = true;
    return RLXVK_OK;
error:
    forget(e, s);
    return status;
}

rlxvk_status bounded_copy(rlxvk_executable *e, const rlxvk_executable *from)
{
    bounded *b = e->bounded;
    rlxvk_status status = RLXVK_OK;
    if (!b || !from->bounded)
        return RLXVK_OK;
    b->longest_ns = from->bounded->longest_ns;
    for (uint32_t i = 0; i < e->program->plan.segments.count; i++) {
        const bounded_segment *s = &from->bounded->segments[i];
        b->segments[i].apart = s->apart;
        b->segments[i].share = s->share;
        if (!s->measured)
            continue;
        if (!VECTOR_RESERVE(&b->segments[i].pieces, s->pieces.count))
            return status_fail_memory("submissions");
        memcpy(b->segments[i].pieces.items, s->pieces.items,
               s->pieces.count * sizeof *s->pieces.items);
        b->segments[i].pieces.count = s->pieces.count;
        TRY(record_anew(e, i));
    }
error:
    return status;
}

/* ---- Measuring ---- */

/* Under an active extent, a dispatch that launches fewer workgroups for fewer rows is not cut. */
static bool cuts(const rlxvk_executable *e, uint32_t dispatch)
{
    const program *p = e->program;
    return p->ranges && p->ranges[dispatch] &&
           !(e->extent_upper && extent_scales(&p->extent, dispatch));
}

/* Submits a piece on its own, waits, and keeps it with its time. */
static rlxvk_status measure_piece(rlxvk_executable *e, uint32_t index, piece *p)
{
    bounded *b = e->bounded;
    rlxvk_status status;
    TRY(record_pieces(e, index, b->commands, p, 1, 1));
    double begin = trace_now();
    TRY(queue_submit(e, &b->commands, 1));
    TRY(queue_wait_all(e));
    p->ns = (uint64_t)((trace_now() - begin) * 1e3);
    b->longest_ns = MAX(b->longest_ns, p->ns);
    if (!VECTOR_PUSH(&b->segments[index].pieces, *p))
        TRY(status_fail_memory("submissions"));
error:
    return status;
}

/* Measures a dispatch in ranges of its workgroups. */
static rlxvk_status measure_ranges(rlxvk_executable *e, uint32_t index, uint32_t step)
{
    uint32_t dispatch = e->program->schedule.steps.items[step].dispatch;
    uint64_t all = bound_groups(&e->program->schedule.dispatches.items[dispatch]);
    bool sliced = e->program->options.sliced;
    uint64_t next =
        sliced ? divide_up(all, MOST_SLICES) : MAX(e->device->setup.profile.compute_units, 1);
    rlxvk_status status = RLXVK_OK;
    for (uint64_t first = 0; first < all;) {
        piece p = {step, 1, first, MIN(next, all - first), 0};
        TRY(measure_piece(e, index, &p));
        first += p.count;
        next = sliced ? next : slice_next(p.count, p.ns, aim_of(e));
    }
error:
    return status;
}

/* How many steps from this one on are measured together: those that are surely short even
 * together. */
static uint32_t steps_together(const rlxvk_executable *e, const segment *g, uint32_t first,
                               bool apart)
{
    const program *p = e->program;
    uint64_t ns = 0;
    uint32_t s = first;
    for (; s < g->first + g->count; s++) {
        uint32_t dispatch = p->schedule.steps.items[s].dispatch;
        uint64_t most = bound_estimate(p, dispatch);
        bool fits =
            !apart && ns <= p->options.submission_ns && most <= p->options.submission_ns - ns;
        if (s > first && (!fits || cuts(e, dispatch)))
            break;
        ns = fits ? ns + most : p->options.submission_ns;
    }
    return s - first;
}

/* If steps together were longer than the bound, the estimate was wrong. The next run measures them
 * one by one. */
static void doubt(rlxvk_executable *e, bounded_segment *s)
{
    bool wrong = false;
    for (size_t i = 0; i < s->pieces.count; i++)
        wrong |= s->pieces.items[i].steps > 1 &&
                 s->pieces.items[i].ns > e->program->options.submission_ns;
    if (wrong && !s->apart && !e->program->options.sliced) {
        forget(e, s);
        s->apart = true;
    }
}

rlxvk_status bounded_measure(rlxvk_executable *e, uint32_t index)
{
    const segment *g = &e->program->plan.segments.items[index];
    bounded_segment *s = &e->bounded->segments[index];
    rlxvk_status status;
    TRY(queue_submit_batch(e));
    TRY(queue_wait_all(e));
    s->pieces.count = 0;
    s->share = share_of(e);
    for (uint32_t step = g->first; step < g->first + g->count;) {
        piece together = {step, steps_together(e, g, step, s->apart), 0, 0, 0};
        bool cut = cuts(e, e->program->schedule.steps.items[step].dispatch);
        TRY(cut ? measure_ranges(e, index, step) : measure_piece(e, index, &together));
        step += cut ? 1 : together.steps;
    }
    TRY(record_anew(e, index));
    doubt(e, s);
error:
    return status;
}
