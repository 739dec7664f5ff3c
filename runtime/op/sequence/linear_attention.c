/*
 * Linear attention. q is [B, S, Q H, n], k [B, S, H, n], v [B, S, H, m], the decay g [B, S, H] or
 * [B, S, H, n], beta [B, S, H]. The state M is [B, H, n, m], with the key index i first. Per step
 * and head, in this order:
 *
 *   M[i, j] = exp(g[i]) M[i, j],  d[j] = beta (v[j] - sum_i M[i, j] k[i]),  M[i, j] += k[i] d[j],
 *   y[j] = scale sum_i M[i, j] q[i]   for each of its Q queries.
 *
 * Without the delta rule, d[j] is beta v[j]. gated_delta_net has one shape for q, k and v.
 *
 * Columns j do not depend on each other, so each workgroup takes a tile of them through all steps.
 * n is at most 2048, because a column must fit the registers of one workgroup.
 */
#include "args/sequence.h"
#include "constants/sequence.h"
#include "op/compose/composite.h"
#include "op/families.h"
#include "op/sequence/linear_attention.h"

#include <string.h>

#define THREADS   128
#define MOST_KEEP 16
#define MOST_SIZE (MOST_KEEP * THREADS)
/* An invocation that keeps so many numbers needs about so many registers. */
#define REGISTERS(numbers) (7 * (numbers) + 32)

/* ---- Building ---- */

rlxvk_tensor rlxvk_gated_delta_net(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                                   rlxvk_tensor decay, rlxvk_tensor beta, rlxvk_tensor state,
                                   bool in_place, rlxvk_tensor *out_state)
{
    rlxvk_tensor operands[] = {q, k, v, decay, beta, state};
    linear_attention_attributes a;
    memset(&a, 0, sizeof a);
    a.carried.in_place = in_place;
    return sequence_build_carry(g, OP_gated_delta_net, operands, &a.carried, out_state);
}

rlxvk_tensor linear_attention_gate(rlxvk_graph *g, rlxvk_tensor given, rlxvk_tensor k, float value)
{
    if (given.id)
        return given;
    rlxvk_shape s = rlxvk_tensor_shape(g, k);
    return rlxvk_full(g, RLXVK_SHAPE(s.dims[0], s.dims[1], s.dims[2]), value);
}

bool linear_attention_options(rlxvk_graph *g, const char *row,
                              const rlxvk_linear_attention_options *given, rlxvk_tensor beta,
                              rlxvk_linear_attention_options *out, linear_attention_rule *rule)
{
    if (!op_take(g, row, SIZED(rlxvk_linear_attention_options), given, out))
        return false;
    rule->plain = !beta.id;
    rule->scale = out->scale;
    return true;
}

rlxvk_tensor rlxvk_linear_attention(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                                    rlxvk_tensor decay, rlxvk_tensor beta, rlxvk_tensor state,
                                    const rlxvk_linear_attention_options *options,
                                    rlxvk_tensor *out_state)
{
    static const char row[] = "linear_attention";
    rlxvk_tensor operands[] = {q, k, v, decay.id ? decay : k, beta.id ? beta : k, state}, y;
    rlxvk_linear_attention_options o;
    linear_attention_attributes a;
    memset(&a, 0, sizeof a);
    if (out_state)
        *out_state = RLXVK_NONE;
    if (!composite_begin(g, row, operands, SEQUENCE_OPERANDS) ||
        !linear_attention_options(g, row, options, beta, &o, &a.rule))
        return RLXVK_NONE;
    size_t start = g->nodes.count;
    operands[3] = linear_attention_gate(g, decay, k, 0);
    operands[4] = linear_attention_gate(g, beta, k, 1);
    a.carried.in_place = o.in_place;
    a.carried.width_operand = 2;
    y = sequence_build_carry(g, OP_linear_attention, operands, &a.carried, out_state);
    return composite_end(g, row, start, y);
}

/* ---- Infer ---- */

static rlxvk_status check_heads(const rlxvk_graph *g, const node *n)
{
    const rlxvk_shape *q = input_shape(g, n, 0), *k = input_shape(g, n, 1);
    const rlxvk_shape *v = input_shape(g, n, 2);
    char q_text[SHAPE_TEXT], k_text[SHAPE_TEXT], v_text[SHAPE_TEXT];
    if (k->rank != 4 || v->rank != 4 || k->dims[3] != q->dims[3] || v->dims[3] < 1 ||
        (k->dims[2] ? q->dims[2] < 1 || q->dims[2] % k->dims[2] : q->dims[2] != 0))
        return op_fail(n, RLXVK_E_SHAPE,
                       "q is %s, k is %s and v is %s; must be [B, S, Q H, n], [B, S, H, n] and "
                       "[B, S, H, m] with m of 1 or more",
                       shape_text(q, q_text), shape_text(k, k_text), shape_text(v, v_text));
    return RLXVK_OK;
}

static rlxvk_status check_decay(const rlxvk_graph *g, const node *n, rlxvk_shape tokens,
                                const rlxvk_shape *keys)
{
    if (node_code(n) == LINEAR_ATTENTION_ANY && input_shape(g, n, 3)->rank == 4)
        return op_require_shape(g, n, 3, "the decay by key", *keys);
    return op_require_shape(g, n, 3, "g", tokens);
}

rlxvk_status linear_attention_check(const rlxvk_graph *g, const node *n,
                                    const linear_attention_rule *rule, uint32_t most_width,
                                    rlxvk_shape *out_result, rlxvk_shape *out_state)
{
    const rlxvk_shape *q = input_shape(g, n, 0);
    char buffer[SHAPE_TEXT];
    rlxvk_status status;
    if (!isfinite(rule->scale))
        return op_fail(n, RLXVK_E_ATTR, "scale is %g; it must be finite", (double)rule->scale);
    if (q->rank != 4 || q->dims[3] < 1)
        return op_fail(n, RLXVK_E_SHAPE, "q is %s; must be [B, S, H, n] with n of 1 or more",
                       shape_text(q, buffer));
    if (q->dims[3] > most_width)
        return op_fail(n, RLXVK_E_UNSUPPORTED, "the state size is %lld; at most %u is supported",
                       (long long)q->dims[3], most_width);
    rlxvk_shape keys = *q, values = *q;
    if (node_code(n) == LINEAR_ATTENTION_ANY) {
        TRY(check_heads(g, n));
        keys.dims[2] = values.dims[2] = input_shape(g, n, 1)->dims[2];
        values.dims[3] = input_shape(g, n, 2)->dims[3];
    }
    rlxvk_shape tokens = RLXVK_SHAPE(keys.dims[0], keys.dims[1], keys.dims[2]);
    TRY(op_require_shape(g, n, 1, "k", keys));
    TRY(op_require_shape(g, n, 2, "v", values));
    TRY(check_decay(g, n, tokens, &keys));
    TRY(op_require_shape(g, n, 4, "beta", tokens));
    *out_result = sequence_result(q, &values);
    *out_state = RLXVK_SHAPE(q->dims[0], keys.dims[2], q->dims[3], values.dims[3]);
error:
    return status;
}

static rlxvk_status linear_attention_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const linear_attention_attributes *a = attributes;
    rlxvk_shape result, state;
    rlxvk_status status;
    TRY(linear_attention_check(g, n, &a->rule, MOST_SIZE, &result, &state));
    TRY(sequence_infer_carry(g, n, &a->carried, result, state));
error:
    return status;
}

/* ---- Lower ---- */

typedef struct column_tile {
    uint32_t threads, keep, lanes; /* of a workgroup; numbers a lane keeps; lanes of a column */
} column_tile;

static column_tile make_tile(const linear_attention_sizes *s, uint32_t threads, uint32_t keep)
{
    return (column_tile){threads, keep, sequence_lanes(s->key_width, keep, threads)};
}

/* A lane keeps half as many numbers if whole columns do not fill the device, or exceed the
 * registers. The widest keys need twice the threads for that. */
static column_tile choose_tile(const device_profile *profile, const linear_attention_sizes *s)
{
    column_tile most = make_tile(s, THREADS, MOST_KEEP);
    uint64_t columns = most.threads / most.lanes;
    uint64_t groups = s->batch * s->heads * divide_up(s->value_width, columns);
    bool fills = groups >= 4 * (uint64_t)profile->compute_units;
    bool fits = REGISTERS(MOST_KEEP) <= profile_registers(profile, THREADS);
    if (s->key_width <= MOST_SIZE / 2)
        return fills && fits ? most : make_tile(s, THREADS, MOST_KEEP / 2);
    bool doubles = !fits && profile->max_workgroup_invocations >= 2 * THREADS;
    return doubles ? make_tile(s, 2 * THREADS, MOST_KEEP / 2) : most;
}

static struct linear_attention_args make_arguments(const linear_attention_sizes *s, uint32_t lanes,
                                                   double scale, const operand operands[8])
{
    return (struct linear_attention_args){.batch = (uint32_t)s->batch,
                                          .steps = (uint32_t)s->steps,
                                          .heads = (uint32_t)s->heads,
                                          .queries = (uint32_t)s->queries,
                                          .key_width = (uint32_t)s->key_width,
                                          .value_width = (uint32_t)s->value_width,
                                          .lanes = lanes,
                                          .scale = (float)scale,
                                          .q_offset = operands[0].offset,
                                          .k_offset = operands[1].offset,
                                          .v_offset = operands[2].offset,
                                          .g_offset = operands[3].offset,
                                          .beta_offset = operands[4].offset,
                                          .y_offset = operands[5].offset,
                                          .before_offset = operands[6].offset,
                                          .after_offset = operands[7].offset};
}

static rlxvk_status linear_attention_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const linear_attention_attributes *a = n->attributes;
    const linear_attention_sizes s = linear_attention_node_sizes(l->graph, n);
    uint64_t result = s.batch * s.steps * s.heads * s.queries * s.value_width;
    column_tile tile = choose_tile(l->profile, &s);
    operand operands[8];
    dispatch d = {.kernel = KERNEL_LINEAR_ATTENTION};
    if (result == 0)
        return sequence_lower_copy(l, id, result);
    sequence_lower_operands(l, id, result, operands);
    struct linear_attention_args args =
        make_arguments(&s, tile.lanes, linear_attention_scale(&a->rule, s.key_width), operands);
    SET_CONSTANTS(&d, {LOCAL_SIZE, tile.threads}, {LINEAR_ATTENTION_KEEP, tile.keep},
                  {LINEAR_ATTENTION_CARRY, a->carried.carry},
                  {LINEAR_ATTENTION_DELTA, !a->rule.plain}, {LINEAR_ATTENTION_BY_KEY, s.by_key},
                  {LINEAR_ATTENTION_GROUPED, s.queries > 1});
    lower_groups(l, &d, s.batch * s.heads * divide_up(s.value_width, tile.threads / tile.lanes));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

/* ---- Host ---- */

/* Takes column m of the state, j of this head and batch row, through a step. */
static void walk_step(const host_call *call, const linear_attention_sizes *s, uint64_t token,
                      uint64_t j, double *m)
{
    const linear_attention_attributes *a = call->node->attributes;
    const host_tensor *in = call->inputs;
    uint64_t n = s->key_width;
    const float *k = in[1].words + token * n;
    const float *g = in[3].words + (s->by_key ? token * n : token);
    double found = 0, decay = exp(g[0]);
    for (uint64_t i = 0; i < n; i++) {
        if (s->by_key)
            decay = exp(g[i]);
        m[i] *= decay;
        found += m[i] * k[i];
    }
    double value = in[2].words[token * s->value_width + j];
    double change = (a->rule.plain ? value : value - found) * in[4].words[token];
    for (uint64_t i = 0; i < n; i++)
        m[i] += k[i] * change;
    for (uint64_t which = token * s->queries; which < (token + 1) * s->queries; which++) {
        double sum = 0;
        for (uint64_t i = 0; i < n; i++)
            sum += m[i] * in[0].words[which * n + i];
        call->out[which * s->value_width + j] = sum * linear_attention_scale(&a->rule, n);
    }
}

static rlxvk_status walk_column(const host_call *call, uint64_t index, double *m)
{
    const linear_attention_sizes s = linear_attention_host_sizes(call);
    uint64_t pair = index / s.value_width, j = index % s.value_width;
    for (uint64_t t = 0; t < s.steps; t++)
        walk_step(call, &s, (pair / s.heads * s.steps + t) * s.heads + pair % s.heads, j, m);
    return RLXVK_OK;
}

static rlxvk_status linear_attention_host(const host_call *call)
{
    const linear_attention_sizes s = linear_attention_host_sizes(call);
    return sequence_host_states(call, s.batch * s.heads * s.value_width, s.key_width,
                                MAX(s.value_width, 1), walk_column);
}

/* ---- Rows, derivative ---- */

static uint64_t linear_attention_bucket(bucket_call *c)
{
    return sequence_bucket_carry(c, 1u << 3, 0xfu << 1);
}

static rlxvk_status linear_attention_vjp(gradient_call *c)
{
    const linear_attention_attributes *a = c->n.attributes;
    linear_attention_backward_attributes back;
    memset(&back, 0, sizeof back);
    back.rule = a->rule;
    return sequence_carry_vjp(c,
                              node_code(&c->n) == LINEAR_ATTENTION_ANY
                                  ? OP_linear_attention_backward
                                  : OP_gated_delta_net_backward,
                              &back.carried);
}

void linear_attention_describe_rule(const linear_attention_rule *rule, text *out)
{
    if (rule->plain)
        text_append(out, " plain=1");
    if (rule->scale != 0)
        text_append(out, " scale=%g", (double)rule->scale);
}

static void linear_attention_describe(const node *n, text *out)
{
    sequence_describe_carry(n, out);
    linear_attention_describe_rule(&((const linear_attention_attributes *)n->attributes)->rule,
                                   out);
}

const op_family linear_attention_family = {
    .name = "linear_attention",
    .attribute_size = sizeof(linear_attention_attributes),
    .infer = linear_attention_infer,
    .memory = {.writes = sequence_carry_writes},
    .execution = {.lower = linear_attention_lower, .host = linear_attention_host},
    .rows = {.bucket = linear_attention_bucket},
    .derivative = {.vjp = linear_attention_vjp},
    .describe = linear_attention_describe,
};
