/*
 * Gradients of state scans (state_scan.c): x, delta (dt), a, b, c, [state], dy, [dstate] -> dx,
 * ddelta, da, db, dc, [the initial state's], packed. Let G be the gradient of the state after step
 * t. It goes back in time from dstate, or 0. Let h' = exp(delta a) h be the decayed state before t:
 *
 *   G += dy c,  dc = sum dy (h' + delta b x),  dx = delta sum G b,  db = sum G delta x,
 *   ddelta = sum G (a h' + b x),  da = sum G delta h',  G = exp(delta a) G.
 *
 * Some states are kept, about the square root of their number; the others are computed again from
 * them. If there are few workgroups, the time is cut into segments. For each segment its effect on
 * a state that starts from zero is computed first. From these effects follow the states with which
 * the segments start, and the gradients that arrive at their ends.
 */
#include "op/sequence/state_scan_backward.h"
#include "args/sequence.h"
#include "args/sequence_backward.h"
#include "constants/sequence.h"
#include "op/families.h"
#include "op/sequence/sequence_backward.h"
#include "op/sequence/state_scan.h"

#include <rlxvk_train.h>

#define MOST_OWN   4    /* channels, and numbers of a state, per invocation */
#define SMALL_TILE 1024 /* below this, half of MOST_OWN, so that more invocations share */
/* Of an invocation, if a compiler loads all operands of a step early. */
#define REGISTERS(numbers) (8 * (numbers) + 36)
#define LEAST_SEGMENT      64 /* in steps; if shorter, its ends cost more than it gives */
#define GROUPS_A_UNIT      2  /* workgroups that keep a compute unit busy */

/* ---- Building ---- */

rlxvk_tensor rlxvk_selective_scan_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor delta,
                                           rlxvk_tensor a, rlxvk_tensor b, rlxvk_tensor c,
                                           rlxvk_tensor dy, rlxvk_tensor *out_ddelta,
                                           rlxvk_tensor *out_da, rlxvk_tensor *out_db,
                                           rlxvk_tensor *out_dc)
{
    const rlxvk_tensor operands[] = {x, delta, a, b, c, RLXVK_NONE, dy, RLXVK_NONE};
    rlxvk_tensor *const out[] = {out_ddelta, out_da, out_db, out_dc, NULL};
    return sequence_build_backward(g, OP_selective_scan_backward, operands,
                                   &(backward_attributes){0}, out);
}

rlxvk_tensor rlxvk_mamba2_backward(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dt, rlxvk_tensor a,
                                   rlxvk_tensor b, rlxvk_tensor c, rlxvk_tensor state,
                                   rlxvk_tensor dy, rlxvk_tensor dstate, rlxvk_tensor *out_ddt,
                                   rlxvk_tensor *out_da, rlxvk_tensor *out_db, rlxvk_tensor *out_dc,
                                   rlxvk_tensor *out_dinitial)
{
    const rlxvk_tensor operands[] = {x, dt, a, b, c, state, dy, dstate};
    rlxvk_tensor *const out[] = {out_ddt, out_da, out_db, out_dc, out_dinitial};
    return sequence_build_backward(g, OP_mamba2_backward, operands, &(backward_attributes){0}, out);
}

static rlxvk_status state_scan_backward_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_shape state;
    rlxvk_status status;
    TRY(sequence_check_backward(n, attributes));
    TRY(state_scan_check(g, n, &state));
    TRY(sequence_infer_backward(g, n, attributes, *input_shape(g, n, 0), state));
error:
    return status;
}

/* ---- Tiles ---- */

/* A tile: channels of a head by numbers of a state. */
typedef struct scan_tile {
    uint32_t lanes_c, lanes_k, own_c, own_k;
    uint64_t tiles_c, tiles_k;
} scan_tile;

/* How many words a tile moves per token and head. They are the numbers of the state, including
 * padding, which are kept and read once, and the partial sums. Both count alike. */
static uint64_t tile_cost(const scan_geometry *s, const scan_tile *t)
{
    uint64_t numbers = t->tiles_c * t->lanes_c * t->own_c * t->tiles_k * t->lanes_k * t->own_k;
    uint64_t vectors = t->tiles_c > 1 ? t->tiles_c * 2 * s->size : 0;
    return numbers + vectors + (t->tiles_k > 1 ? t->tiles_k * 2 * s->width : 0);
}

static scan_tile choose_tile(const scan_geometry *s, const device_profile *profile)
{
    scan_tile best = {0};
    bool small = s->width * s->size < SMALL_TILE;
    uint32_t most = small ? MOST_OWN / 2 : MOST_OWN;
    uint32_t own_c = power_of_two_from(s->width, most), own_k = power_of_two_from(s->size, most);
    while (own_c > 1 && profile->loads_early &&
           REGISTERS(own_c * own_k) > profile_registers(profile, STATE_SCAN_THREADS))
        own_c /= 2;
    for (uint32_t lanes_k = 1; lanes_k <= STATE_SCAN_THREADS; lanes_k *= 2) {
        scan_tile t = {.lanes_k = lanes_k, .own_c = own_c, .own_k = own_k};
        t.lanes_c = power_of_two_from(divide_up(s->width, own_c), STATE_SCAN_THREADS / lanes_k);
        t.tiles_c = divide_up(s->width, (uint64_t)t.lanes_c * own_c);
        t.tiles_k = divide_up(s->size, (uint64_t)lanes_k * own_k);
        if (!best.own_c || tile_cost(s, &t) < tile_cost(s, &best))
            best = t;
    }
    return best;
}

/* ---- Lower ---- */

typedef struct job {
    uint32_t id;
    bool by_head;
    scan_geometry s;
    scan_tile tile;
    uint64_t tiles, groups, segments, segment_steps;
    uint64_t tokens; /* of all batch rows */
    operand inputs[6], y, work;
    struct state_scan_backward_args args;
    uint32_t decay_at;
    uint64_t words;                  /* of work */
    uint64_t rate_parts, step_parts; /* partial sums of da, and of ddt by head */
    uint64_t rates;                  /* words of da */
} job;

static uint64_t states_of(const job *j)
{
    return j->s.batch * j->s.heads * j->s.width * j->s.size;
}

static void cut_time(const lowering *l, job *j)
{
    uint64_t wanted = GROUPS_A_UNIT * (uint64_t)l->profile->compute_units;
    uint64_t least = j->s.batch * j->s.heads * j->tiles;
    uint64_t segments = MIN(wanted / least, j->s.steps / LEAST_SEGMENT);
    j->segment_steps = divide_up(j->s.steps, MAX(segments, 1));
    j->segments = divide_up(j->s.steps, j->segment_steps);
    j->groups = least * j->segments;
}

/* Decides where everything lies. Partial sums go to work, complete sums to the result. */
static rlxvk_status place_all(lowering *l, job *j)
{
    const node *n = graph_node(l->graph, j->id);
    const backward_attributes *a = n->attributes;
    struct state_scan_backward_args *args = &j->args;
    const scan_tile *t = &j->tile;
    uint64_t first[SEQUENCE_OPERANDS + 1], threads = (uint64_t)t->lanes_c * t->lanes_k;
    uint64_t slots = divide_up(j->segment_steps, args->chunk) + args->chunk,
             ends = j->segments * states_of(j);
    for (uint32_t i = 0; i < ARRAY_COUNT(first); i++)
        first[i] = j->y.offset + sequence_result_first(l->graph, n, i);
    args->start_at = args->end_at = STATE_SCAN_ZERO;
    if (j->segments > 1 || a->carry) {
        args->start_at = sequence_take_words(l, &j->words, ends);
        args->end_at = sequence_take_words(l, &j->words, ends);
    }
    if (j->segments > 1)
        j->decay_at = sequence_take_words(l, &j->words, ends);
    args->scratch_at =
        sequence_take_words(l, &j->words, j->groups * slots * threads * t->own_c * t->own_k);
    j->rates = j->by_head ? j->s.heads : j->s.width * j->s.size;
    j->rate_parts = j->s.batch * j->segments * (j->by_head ? j->tiles : 1);
    j->step_parts = j->by_head ? j->tiles * t->lanes_k : 0;
    args->channels_at = (uint32_t)first[0];
    if (t->tiles_k > 1)
        args->channels_at =
            sequence_take_words(l, &j->words, t->tiles_k * (first[j->by_head ? 1 : 2] - first[0]));
    args->rates_at = (uint32_t)first[2];
    if (j->by_head || j->rate_parts > 1)
        args->rates_at = sequence_take_words(l, &j->words, j->rate_parts * j->rates);
    args->vectors_at = (uint32_t)first[3];
    if (t->tiles_c > 1)
        args->vectors_at = sequence_take_words(l, &j->words, t->tiles_c * (first[5] - first[3]));
    if (j->by_head)
        args->steps_at = sequence_take_words(l, &j->words, j->step_parts * j->tokens * j->s.heads);
    args->initial_at = a->carry ? (uint32_t)first[5] : STATE_SCAN_ZERO;
    return sequence_lower_work(l, j->id, j->words, &j->work);
}

static rlxvk_status plan_job(lowering *l, job *j)
{
    const node *n = graph_node(l->graph, j->id);
    const backward_attributes *a = n->attributes;
    struct state_scan_backward_args *args = &j->args;
    j->by_head = node_code(n) == STATE_SCAN_MAMBA2;
    j->s = state_scan_geometry(input_shape(l->graph, n, 0), input_shape(l->graph, n, 3));
    j->tokens = j->s.batch * j->s.steps;
    j->tile = choose_tile(&j->s, l->profile);
    j->tiles = j->tile.tiles_c * j->tile.tiles_k;
    cut_time(l, j);
    for (uint32_t i = 0; i < SEQUENCE_OPERANDS; i++)
        j->inputs[i] = lower_input(l, j->id, i);
    j->inputs[5] = lower_input(l, j->id, sequence_dy_operand(a));
    j->y = lower_write(l, j->id);
    *args = (struct state_scan_backward_args){.batch = (uint32_t)j->s.batch,
                                              .steps = (uint32_t)j->s.steps,
                                              .heads = (uint32_t)j->s.heads,
                                              .width = (uint32_t)j->s.width,
                                              .size = (uint32_t)j->s.size,
                                              .segments = (uint32_t)j->segments,
                                              .segment_steps = (uint32_t)j->segment_steps,
                                              .chunk = sequence_chunk(j->segment_steps),
                                              .x_offset = j->inputs[0].offset,
                                              .delta_offset = j->inputs[1].offset,
                                              .a_offset = j->inputs[2].offset,
                                              .b_offset = j->inputs[3].offset,
                                              .c_offset = j->inputs[4].offset,
                                              .dy_offset = j->inputs[5].offset};
    return place_all(l, j);
}

/* Computes the effect of each segment on a state. */
static rlxvk_status emit_segments(lowering *l, job *j)
{
    const struct state_scan_backward_args *from = &j->args;
    struct state_scan_segment_args args = {.batch = from->batch,
                                           .steps = from->steps,
                                           .heads = from->heads,
                                           .width = from->width,
                                           .size = from->size,
                                           .segments = from->segments,
                                           .segment_steps = from->segment_steps,
                                           .x_offset = from->x_offset,
                                           .delta_offset = from->delta_offset,
                                           .a_offset = from->a_offset,
                                           .b_offset = from->b_offset,
                                           .c_offset = from->c_offset,
                                           .dy_offset = from->dy_offset,
                                           .start_at = from->start_at,
                                           .end_at = from->end_at,
                                           .decay_at = j->decay_at};
    const operand operands[] = {j->inputs[0], j->inputs[1], j->inputs[2], j->inputs[3],
                                j->inputs[4], j->inputs[5], j->work};
    dispatch d = {.kernel = KERNEL_STATE_SCAN_SEGMENT, .node = j->id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, STATE_SCAN_THREADS},
                  {STATE_SCAN_SEGMENT_KIND, j->by_head ? STATE_SCAN_MAMBA2 : STATE_SCAN_SELECTIVE});
    lower_groups(l, &d, groups_for(j->segments * states_of(j), STATE_SCAN_THREADS));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status emit_walk(lowering *l, job *j)
{
    const scan_tile *t = &j->tile;
    const operand operands[] = {j->inputs[0], j->inputs[1], j->inputs[2], j->inputs[3],
                                j->inputs[4], j->inputs[5], j->y,         j->work};
    dispatch d = {.kernel = KERNEL_STATE_SCAN_BACKWARD, .node = j->id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, t->lanes_c * t->lanes_k},
                  {STATE_SCAN_BACKWARD_KIND, j->by_head ? STATE_SCAN_MAMBA2 : STATE_SCAN_SELECTIVE},
                  {STATE_SCAN_BACKWARD_LANES_C, t->lanes_c},
                  {STATE_SCAN_BACKWARD_LANES_K, t->lanes_k}, {STATE_SCAN_BACKWARD_OWN_C, t->own_c},
                  {STATE_SCAN_BACKWARD_OWN_K, t->own_k},
                  {STATE_SCAN_BACKWARD_CHANNEL_PARTS, t->tiles_k > 1},
                  {STATE_SCAN_BACKWARD_VECTOR_PARTS, t->tiles_c > 1},
                  {STATE_SCAN_BACKWARD_RATE_PARTS, j->rate_parts > 1});
    lower_groups(l, &d, j->groups);
    return lower_emit(l, &d, &j->args, sizeof j->args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status emit_sums(lowering *l, const job *j)
{
    const node *n = graph_node(l->graph, j->id);
    const struct state_scan_backward_args *a = &j->args;
    uint64_t first[SEQUENCE_OPERANDS + 1];
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i < ARRAY_COUNT(first); i++)
        first[i] = sequence_result_first(l->graph, n, i);
    if (j->tile.tiles_k > 1)
        TRY(sequence_emit_sum(l, j->id, j->work, a->channels_at, j->tile.tiles_k, 0,
                              first[j->by_head ? 1 : 2]));
    if (j->by_head)
        TRY(sequence_emit_sum(l, j->id, j->work, a->steps_at, j->step_parts, first[1],
                              first[2] - first[1]));
    if (j->by_head || j->rate_parts > 1)
        TRY(sequence_emit_sum(l, j->id, j->work, a->rates_at, j->rate_parts, first[2], j->rates));
    if (j->tile.tiles_c > 1)
        TRY(sequence_emit_sum(l, j->id, j->work, a->vectors_at, j->tile.tiles_c, first[3],
                              first[5] - first[3]));
error:
    return status;
}

static rlxvk_status state_scan_backward_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const backward_attributes *a = n->attributes;
    job j = {.id = id};
    rlxvk_status status;
    if (shape_numel(input_shape(l->graph, n, 0)) == 0)
        return sequence_lower_idle(l, id);
    TRY(plan_job(l, &j));
    if (j.segments > 1)
        TRY(emit_segments(l, &j));
    sequence_ends ends = {states_of(&j), j.segments, j.args.start_at, j.args.end_at, j.decay_at};
    if (j.segments > 1 || a->carry)
        TRY(sequence_emit_ends(l, id, &ends, j.work));
    TRY(emit_walk(l, &j));
    TRY(emit_sums(l, &j));
error:
    return status;
}

const op_family state_scan_backward_family = {
    .name = "state_scan_backward",
    .attribute_size = sizeof(backward_attributes),
    .infer = state_scan_backward_infer,
    .execution = {.lower = state_scan_backward_lower, .host = state_scan_backward_host},
    .rows = {.bucket = sequence_bucket_backward},
    .describe = sequence_describe_backward,
};
