/*
 * Gradients of linear attention (linear_attention.c): q, k, v, g, beta, [state], dy, [dstate] ->
 * dq, dk, dv, dg, dbeta, [the initial state's], packed. Let D = exp(g) M for the state M before a
 * step, e = v - D^T k and d = beta e. Let G be the gradient of the state after the step. Each head
 * goes back in time from G = dstate, or 0:
 *
 *   G += scale q dy^T,  dd = G^T k,  dv = beta dd,  dbeta = dd . e,
 *   dq = scale (D + k d^T) dy,  dk = G d - D dv,  G -= k dv^T,  dg = sum G D,  G = exp(g) G.
 *
 * Several queries of a head each give a dq, and all add to G. Without the delta rule, e is v, and
 * dk and G do not lose the part with dv. A decay by key has dg[i] = sum_j G[i, j] D[i, j].
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
#include "op/compose/composite.h"
#include "op/sequence/linear_attention.h"

#include <rlxvk_train.h>

#include <string.h>

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
    linear_attention_backward_attributes a;
    memset(&a, 0, sizeof a);
    return sequence_build_backward(g, OP_gated_delta_net_backward, operands, &a.carried, out);
}

rlxvk_tensor rlxvk_linear_attention_backward(
    rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v, rlxvk_tensor decay,
    rlxvk_tensor beta, rlxvk_tensor state, rlxvk_tensor dy, rlxvk_tensor dstate,
    const rlxvk_linear_attention_options *options, rlxvk_tensor *out_dk, rlxvk_tensor *out_dv,
    rlxvk_tensor *out_ddecay, rlxvk_tensor *out_dbeta, rlxvk_tensor *out_dinitial)
{
    static const char row[] = "linear_attention_backward";
    rlxvk_tensor operands[] = {q,     k,  v,     decay.id ? decay : k, beta.id ? beta : k,
                               state, dy, dstate};
    rlxvk_tensor *const out[] = {out_dk, out_dv, decay.id ? out_ddecay : NULL,
                                 beta.id ? out_dbeta : NULL, out_dinitial};
    rlxvk_tensor *const all[] = {out_dk, out_dv, out_ddecay, out_dbeta, out_dinitial};
    rlxvk_linear_attention_options o;
    linear_attention_backward_attributes a;
    memset(&a, 0, sizeof a);
    for (size_t i = 0; i < ARRAY_COUNT(all); i++)
        if (all[i])
            *all[i] = RLXVK_NONE;
    if (!composite_begin(g, row, operands, SEQUENCE_OPERANDS) ||
        !linear_attention_options(g, row, options, beta, &o, &a.rule))
        return RLXVK_NONE;
    if (o.in_place) {
        graph_fail(g, status_fail(RLXVK_E_ATTR, "%s: in_place is for the forward op", row));
        return RLXVK_NONE;
    }
    size_t start = g->nodes.count;
    operands[3] = linear_attention_gate(g, decay, k, 0);
    operands[4] = linear_attention_gate(g, beta, k, 1);
    return composite_end(g, row, start,
                         sequence_build_backward(g, OP_linear_attention_backward, operands,
                                                 &a.carried, out));
}

static rlxvk_status linear_attention_backward_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const linear_attention_backward_attributes *a = attributes;
    rlxvk_shape result, state;
    rlxvk_status status;
    TRY(sequence_check_backward(n, &a->carried));
    TRY(linear_attention_check(g, n, &a->rule, LINEAR_ATTENTION_MOST_BACKWARD, &result, &state));
    TRY(sequence_infer_backward(g, n, &a->carried, result, state));
error:
    return status;
}

/* ---- Lower ---- */

/* A tile of a head's state: all rows, some columns. */
typedef struct state_tile {
    uint32_t lanes_i, lanes_j, own_i, own_j;
    uint64_t tiles;
} state_tile;

typedef struct job {
    uint32_t id;
    linear_attention_sizes sizes;
    uint64_t heads; /* of all batch rows */
    uint64_t chunks;
    state_tile tile;
    operand inputs[6], y, work;
    sequence_ends ends;
    struct linear_attention_backward_args args;
    uint64_t first[SEQUENCE_OPERANDS + 1]; /* of the results */
} job;

static uint64_t shared_bytes(const state_tile *t, bool by_key)
{
    uint64_t threads = (uint64_t)t->lanes_i * t->lanes_j;
    uint64_t sums = t->own_j + 2 * t->own_i + (by_key ? t->own_i : 1) + 1;
    return sizeof(float) * (threads * sums + (uint64_t)t->own_j * t->lanes_j);
}

/* A wide tile leaves few partial sums to add up. If wide tiles do not fill the device, take
 * narrower ones. */
static state_tile choose_tile(const lowering *l, const linear_attention_sizes *s)
{
    const device_profile *profile = l->profile;
    uint64_t heads = s->batch * s->heads;
    state_tile t = {.own_i = power_of_two_from(s->key_width, MOST_ROWS),
                    .own_j = power_of_two_from(s->value_width, MOST_COLUMNS)};
    while (t.own_j > 1 && profile->loads_early &&
           REGISTERS(t.own_i * t.own_j) > profile_registers(profile, profile->workgroup_size))
        t.own_j /= 2;
    t.lanes_i = power_of_two_from(divide_up(s->key_width, t.own_i),
                                  LINEAR_ATTENTION_MOST_BACKWARD / MOST_ROWS);
    t.lanes_j =
        power_of_two_from(divide_up(s->value_width, t.own_j), profile->workgroup_size / t.lanes_i);
    t.lanes_j = MAX(t.lanes_j, 1);
    while (t.lanes_j > 1 &&
           (shared_bytes(&t, s->by_key) > profile->shared_memory_bytes ||
            (t.lanes_i * t.lanes_j > 64 &&
             !profile_filled(profile, heads * divide_up(s->value_width, t.lanes_j * t.own_j)))))
        t.lanes_j /= 2;
    t.tiles = divide_up(s->value_width, (uint64_t)t.lanes_j * t.own_j);
    return t;
}

/* The first result that row lanes give in parts: dg, or dbeta if the decay is by key. dg and dbeta
 * are one after the other. */
static uint32_t first_gate(const linear_attention_sizes *s)
{
    return s->by_key ? 4 : 3;
}
static uint64_t gate_words(const job *j)
{
    return j->first[5] - j->first[first_gate(&j->sizes)];
}

/* Decides where everything lies. Partial sums go to work, sums that one tile completes to the
 * result. */
static rlxvk_status place_all(lowering *l, job *j)
{
    const backward_attributes *a = graph_node(l->graph, j->id)->attributes;
    struct linear_attention_backward_args *args = &j->args;
    const linear_attention_sizes *s = &j->sizes;
    const state_tile *t = &j->tile;
    uint64_t words = 0, kept = (uint64_t)t->lanes_i * t->lanes_j * t->own_i * t->own_j;
    uint64_t tokens = j->heads * s->steps;
    args->rest_at = sequence_take_words(l, &words, tokens * s->value_width);
    args->start_at = args->end_at = STATE_SCAN_ZERO;
    if (a->carry) {
        args->start_at = sequence_take_words(l, &words, j->ends.states);
        args->end_at = sequence_take_words(l, &words, j->ends.states);
    }
    args->scratch_at =
        sequence_take_words(l, &words, j->heads * t->tiles * (j->chunks + args->chunk) * kept);
    args->vectors_at = (uint32_t)(j->y.offset + j->first[0]);
    args->decays_at = (uint32_t)(j->y.offset + j->first[3]);
    if (t->tiles > 1) {
        args->vectors_at = sequence_take_words(l, &words, t->tiles * j->first[2]);
        if (s->by_key)
            args->decays_at = sequence_take_words(l, &words, t->tiles * tokens * s->key_width);
    }
    args->gates_at = (uint32_t)(j->y.offset + j->first[first_gate(s)]);
    if (t->tiles * t->lanes_i > 1)
        args->gates_at = sequence_take_words(l, &words, t->tiles * t->lanes_i * gate_words(j));
    args->values_at = (uint32_t)(j->y.offset + j->first[2]);
    args->initial_at = a->carry ? (uint32_t)(j->y.offset + j->first[5]) : STATE_SCAN_ZERO;
    j->ends.start_at = args->start_at;
    j->ends.end_at = args->end_at;
    return sequence_lower_work(l, j->id, words, &j->work);
}

static rlxvk_status plan_job(lowering *l, job *j)
{
    const node *n = graph_node(l->graph, j->id);
    const linear_attention_backward_attributes *a = n->attributes;
    linear_attention_sizes s = linear_attention_node_sizes(l->graph, n);
    j->sizes = s;
    j->heads = s.batch * s.heads;
    j->tile = choose_tile(l, &s);
    j->ends = (sequence_ends){.states = j->heads * s.key_width * s.value_width, .segments = 1};
    for (uint32_t i = 0; i < SEQUENCE_OPERANDS; i++)
        j->inputs[i] = lower_input(l, j->id, i);
    j->inputs[5] = lower_input(l, j->id, sequence_dy_operand(&a->carried));
    j->y = lower_write(l, j->id);
    for (uint32_t i = 0; i < ARRAY_COUNT(j->first); i++)
        j->first[i] = sequence_result_first(l->graph, n, i);
    j->args =
        (struct linear_attention_backward_args){.batch = (uint32_t)s.batch,
                                                .steps = (uint32_t)s.steps,
                                                .heads = (uint32_t)s.heads,
                                                .queries = (uint32_t)s.queries,
                                                .key_width = (uint32_t)s.key_width,
                                                .value_width = (uint32_t)s.value_width,
                                                .chunk = sequence_chunk(s.steps),
                                                .scale = (float)linear_attention_scale(&a->rule,
                                                                                       s.key_width),
                                                .q_offset = j->inputs[0].offset,
                                                .k_offset = j->inputs[1].offset,
                                                .v_offset = j->inputs[2].offset,
                                                .g_offset = j->inputs[3].offset,
                                                .beta_offset = j->inputs[4].offset,
                                                .dy_offset = j->inputs[5].offset};
    j->chunks = divide_up(s.steps, j->args.chunk);
    return place_all(l, j);
}

static rlxvk_status emit_walk(lowering *l, const job *j, bool back)
{
    const linear_attention_backward_attributes *a = graph_node(l->graph, j->id)->attributes;
    const state_tile *t = &j->tile;
    const operand operands[] = {j->inputs[0], j->inputs[1], j->inputs[2], j->inputs[3],
                                j->inputs[4], j->inputs[5], j->y,         j->work};
    dispatch d = {.kernel = KERNEL_LINEAR_ATTENTION_BACKWARD, .node = j->id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, t->lanes_i * t->lanes_j}, {LINEAR_ATTENTION_BACKWARD_BACK, back},
                  {LINEAR_ATTENTION_BACKWARD_LANES_I, t->lanes_i},
                  {LINEAR_ATTENTION_BACKWARD_LANES_J, t->lanes_j},
                  {LINEAR_ATTENTION_BACKWARD_OWN_I, t->own_i},
                  {LINEAR_ATTENTION_BACKWARD_OWN_J, t->own_j},
                  {LINEAR_ATTENTION_BACKWARD_VECTOR_PARTS, t->tiles > 1},
                  {LINEAR_ATTENTION_BACKWARD_GATE_PARTS, t->tiles * t->lanes_i > 1},
                  {LINEAR_ATTENTION_BACKWARD_DELTA, !a->rule.plain},
                  {LINEAR_ATTENTION_BACKWARD_BY_KEY, j->sizes.by_key},
                  {LINEAR_ATTENTION_BACKWARD_GROUPED, j->sizes.queries > 1});
    lower_groups(l, &d, j->heads * t->tiles);
    return lower_emit(l, &d, &j->args, sizeof j->args, operands, ARRAY_COUNT(operands));
}

/* Adds up what the tiles and the row lanes left. */
static rlxvk_status emit_sums(lowering *l, const job *j)
{
    uint64_t tiles = j->tile.tiles, lanes = tiles * j->tile.lanes_i;
    const uint64_t *first = j->first;
    rlxvk_status status = RLXVK_OK;
    if (tiles > 1)
        TRY(sequence_emit_sum(l, j->id, j->work, j->args.vectors_at, tiles, 0, first[2]));
    if (tiles > 1 && j->sizes.by_key)
        TRY(sequence_emit_sum(l, j->id, j->work, j->args.decays_at, tiles, first[3],
                              first[4] - first[3]));
    if (lanes > 1)
        TRY(sequence_emit_sum(l, j->id, j->work, j->args.gates_at, lanes,
                              first[first_gate(&j->sizes)], gate_words(j)));
error:
    return status;
}

static rlxvk_status linear_attention_backward_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const backward_attributes *a = n->attributes;
    job j = {.id = id};
    rlxvk_status status;
    if (shape_numel(input_shape(l->graph, n, sequence_dy_operand(a))) == 0)
        return sequence_lower_idle(l, id);
    TRY(plan_job(l, &j));
    if (a->carry)
        TRY(sequence_emit_ends(l, id, &j.ends, j.work));
    TRY(emit_walk(l, &j, false));
    TRY(emit_walk(l, &j, true));
    TRY(emit_sums(l, &j));
error:
    return status;
}

static void linear_attention_backward_describe(const node *n, text *out)
{
    const linear_attention_backward_attributes *a = n->attributes;
    sequence_describe_backward(n, out);
    linear_attention_describe_rule(&a->rule, out);
}

const op_family linear_attention_backward_family = {
    .name = "linear_attention_backward",
    .attribute_size = sizeof(linear_attention_backward_attributes),
    .infer = linear_attention_backward_infer,
    .execution = {.lower = linear_attention_backward_lower, .host = linear_attention_backward_host},
    .rows = {.bucket = sequence_bucket_backward},
    .describe = linear_attention_backward_describe,
};
