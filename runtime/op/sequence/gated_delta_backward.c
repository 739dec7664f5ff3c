/*
 * Gradients of the gated delta rule (gated_delta.c): q, k, v, g, beta, [state], dy, [dstate] -> dq,
 * dk, dv, dg, dbeta, [the initial state's], packed. Let D = exp(g) M for the state M before a step,
 * e = v - D^T k and d = beta e. Let G be the gradient of the state after the step. Each head goes
 * back in time from G = dstate, or 0:
 *
 *   G += q dy^T / sqrt(n),  dd = G^T k,  dv = beta dd,  dbeta = dd . e,
 *   dq = (D + k d^T) dy / sqrt(n),  dk = G d - D dv,  G -= k dv^T,  dg = sum G D,  G = exp(g) G.
 *
 * A first pass goes forward, computes e and keeps some states, about the square root of their
 * number. The pass back computes the other states again from those. Columns depend on each other
 * only in sums, so each workgroup takes a tile of them. n is at most 512, because a column must fit
 * the registers of one workgroup.
 */
#include "args/sequence.h"
#include "args/sequence_backward.h"
#include "constants/sequence.h"
#include "op/families.h"
#include "op/sequence/gated_delta.h"
#include "op/sequence/sequence_backward.h"

#include <rlxvk_train.h>

#define MOST_SIZE    512
#define MOST_ROWS    8 /* of an invocation */
#define MOST_COLUMNS 4
/* Of an invocation, if a compiler loads all operands of a step early. */
#define REGISTERS(elements) (6 * (elements) + 32)

/* ---- Building ---- */

rlxvk_tensor rlxvk_gated_delta_net_backward(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k,
                                            rlxvk_tensor v, rlxvk_tensor decay, rlxvk_tensor beta,
                                            rlxvk_tensor state, rlxvk_tensor dy,
                                            rlxvk_tensor dstate, rlxvk_tensor *out_dk,
                                            rlxvk_tensor *out_dv, rlxvk_tensor *out_ddecay,
                                            rlxvk_tensor *out_dbeta, rlxvk_tensor *out_dinitial)
{
    const rlxvk_tensor operands[] = {q, k, v, decay, beta, state, dy, dstate};
    rlxvk_tensor *const out[] = {out_dk, out_dv, out_ddecay, out_dbeta, out_dinitial};
    return sequence_build_backward(g, OP_gated_delta_net_backward, operands, out);
}

static rlxvk_status gated_delta_backward_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *q = input_shape(g, n, 0);
    rlxvk_status status;
    TRY(sequence_check_backward(n, attributes));
    TRY(gated_delta_check(g, n, MOST_SIZE));
    TRY(sequence_infer_backward(g, n, attributes, *q,
                                RLXVK_SHAPE(q->dims[0], q->dims[2], q->dims[3], q->dims[3])));
error:
    return status;
}

/* ---- Lower ---- */

/* A tile of a head's state: all rows, some columns. */
typedef struct delta_tile {
    uint32_t lanes_i, lanes_j, own_i, own_j;
    uint64_t tiles;
} delta_tile;

typedef struct job {
    uint32_t id;
    uint64_t heads, steps, size, vectors; /* heads: of all batch rows; vectors: words of q */
    uint64_t chunks;
    delta_tile tile;
    operand inputs[6], y, work;
    sequence_ends ends;
    struct gated_delta_backward_args args;
    uint64_t first[SEQUENCE_OPERANDS + 1]; /* of the results */
} job;

static uint64_t shared_bytes(const delta_tile *t)
{
    uint64_t threads = (uint64_t)t->lanes_i * t->lanes_j;
    return sizeof(float) *
           (threads * (t->own_j + 2 * t->own_i + 2) + (uint64_t)t->own_j * t->lanes_j);
}

/* A wide tile leaves few partial sums to add up. If wide tiles do not fill the device, take
 * narrower ones. */
static delta_tile choose_tile(const lowering *l, uint64_t heads, uint64_t size)
{
    const device_profile *profile = l->profile;
    delta_tile t = {.own_i = power_of_two_from(size, MOST_ROWS),
                    .own_j = power_of_two_from(size, MOST_COLUMNS)};
    while (t.own_j > 1 && profile->loads_early &&
           REGISTERS(t.own_i * t.own_j) > profile_registers(profile, profile->workgroup_size))
        t.own_j /= 2;
    t.lanes_i = power_of_two_from(divide_up(size, t.own_i), MOST_SIZE / MOST_ROWS);
    t.lanes_j = power_of_two_from(divide_up(size, t.own_j), profile->workgroup_size / t.lanes_i);
    t.lanes_j = MAX(t.lanes_j, 1);
    while (t.lanes_j > 1 &&
           (shared_bytes(&t) > profile->shared_memory_bytes ||
            (t.lanes_i * t.lanes_j > 64 &&
             !profile_filled(profile, heads * divide_up(size, t.lanes_j * t.own_j)))))
        t.lanes_j /= 2;
    t.tiles = divide_up(size, (uint64_t)t.lanes_j * t.own_j);
    return t;
}

/* Decides where everything lies. Partial sums go to work, sums that one tile completes to the
 * result. */
static rlxvk_status place_all(lowering *l, job *j)
{
    const backward_attributes *a = graph_node(l->graph, j->id)->attributes;
    struct gated_delta_backward_args *args = &j->args;
    const delta_tile *t = &j->tile;
    uint64_t words = 0, kept = (uint64_t)t->lanes_i * t->lanes_j * t->own_i * t->own_j;
    args->rest_at = sequence_take_words(l, &words, j->vectors);
    args->start_at = args->end_at = STATE_SCAN_ZERO;
    if (a->carry) {
        args->start_at = sequence_take_words(l, &words, j->ends.states);
        args->end_at = sequence_take_words(l, &words, j->ends.states);
    }
    args->scratch_at =
        sequence_take_words(l, &words, j->heads * t->tiles * (j->chunks + args->chunk) * kept);
    args->vectors_at = (uint32_t)(j->y.offset + j->first[0]);
    if (t->tiles > 1)
        args->vectors_at = sequence_take_words(l, &words, t->tiles * 2 * j->vectors);
    args->gates_at = (uint32_t)(j->y.offset + j->first[3]);
    if (t->tiles * t->lanes_i > 1)
        args->gates_at =
            sequence_take_words(l, &words, t->tiles * t->lanes_i * 2 * j->heads * j->steps);
    args->values_at = (uint32_t)(j->y.offset + j->first[2]);
    args->initial_at = a->carry ? (uint32_t)(j->y.offset + j->first[5]) : STATE_SCAN_ZERO;
    j->ends.start_at = args->start_at;
    j->ends.end_at = args->end_at;
    return sequence_lower_work(l, j->id, words, &j->work);
}

static rlxvk_status plan_job(lowering *l, job *j)
{
    const node *n = graph_node(l->graph, j->id);
    const rlxvk_shape *q = input_shape(l->graph, n, 0);
    j->heads = (uint64_t)(q->dims[0] * q->dims[2]);
    j->steps = (uint64_t)q->dims[1];
    j->size = (uint64_t)q->dims[3];
    j->vectors = shape_numel(q);
    j->tile = choose_tile(l, j->heads, j->size);
    j->ends = (sequence_ends){.states = j->heads * j->size * j->size, .segments = 1};
    for (uint32_t i = 0; i < SEQUENCE_OPERANDS; i++)
        j->inputs[i] = lower_input(l, j->id, i);
    j->inputs[5] = lower_input(l, j->id, sequence_dy_operand(n->attributes));
    j->y = lower_write(l, j->id);
    for (uint32_t i = 0; i < ARRAY_COUNT(j->first); i++)
        j->first[i] = sequence_result_first(l->graph, n, i);
    j->args = (struct gated_delta_backward_args){.batch = (uint32_t)q->dims[0],
                                                 .steps = (uint32_t)j->steps,
                                                 .heads = (uint32_t)q->dims[2],
                                                 .size = (uint32_t)j->size,
                                                 .chunk = sequence_chunk(j->steps),
                                                 .scale = (float)(1 / sqrt((double)j->size)),
                                                 .q_offset = j->inputs[0].offset,
                                                 .k_offset = j->inputs[1].offset,
                                                 .v_offset = j->inputs[2].offset,
                                                 .g_offset = j->inputs[3].offset,
                                                 .beta_offset = j->inputs[4].offset,
                                                 .dy_offset = j->inputs[5].offset};
    j->chunks = divide_up(j->steps, j->args.chunk);
    return place_all(l, j);
}

static rlxvk_status emit_walk(lowering *l, const job *j, bool back)
{
    const delta_tile *t = &j->tile;
    const operand operands[] = {j->inputs[0], j->inputs[1], j->inputs[2], j->inputs[3],
                                j->inputs[4], j->inputs[5], j->y,         j->work};
    dispatch d = {.kernel = KERNEL_GATED_DELTA_BACKWARD, .node = j->id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, t->lanes_i * t->lanes_j}, {GATED_DELTA_BACKWARD_BACK, back},
                  {GATED_DELTA_BACKWARD_LANES_I, t->lanes_i},
                  {GATED_DELTA_BACKWARD_LANES_J, t->lanes_j},
                  {GATED_DELTA_BACKWARD_OWN_I, t->own_i}, {GATED_DELTA_BACKWARD_OWN_J, t->own_j},
                  {GATED_DELTA_BACKWARD_VECTOR_PARTS, t->tiles > 1},
                  {GATED_DELTA_BACKWARD_GATE_PARTS, t->tiles * t->lanes_i > 1});
    lower_groups(l, &d, j->heads * t->tiles);
    return lower_emit(l, &d, &j->args, sizeof j->args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status gated_delta_backward_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const backward_attributes *a = n->attributes;
    job j = {.id = id};
    rlxvk_status status;
    if (shape_numel(input_shape(l->graph, n, 0)) == 0)
        return sequence_lower_idle(l, id);
    TRY(plan_job(l, &j));
    if (a->carry)
        TRY(sequence_emit_ends(l, id, &j.ends, j.work));
    TRY(emit_walk(l, &j, false));
    TRY(emit_walk(l, &j, true));
    uint64_t tiles = j.tile.tiles, rows = tiles * j.tile.lanes_i;
    if (tiles > 1)
        TRY(sequence_emit_sum(l, id, j.work, j.args.vectors_at, tiles, j.first[0], 2 * j.vectors));
    if (rows > 1)
        TRY(sequence_emit_sum(l, id, j.work, j.args.gates_at, rows, j.first[3],
                              j.first[5] - j.first[3]));
error:
    return status;
}

const op_family gated_delta_backward_family = {
    .name = "gated_delta_backward",
    .attribute_size = sizeof(backward_attributes),
    .infer = gated_delta_backward_infer,
    .execution = {.lower = gated_delta_backward_lower, .host = gated_delta_backward_host},
    .rows = {.bucket = sequence_bucket_backward},
    .describe = sequence_describe_backward,
};
