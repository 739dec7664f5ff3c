/*
 * The gated delta rule. q, k and v are [B, S, H, n], g and beta [B, S, H]. The state M is [B, H, n,
 * n], with the key index i first. Per step and head, in this order:
 *
 *   M = exp(g) M,  d[j] = beta (v[j] - sum_i M[i, j] k[i]),  M[i, j] += k[i] d[j],
 *   y[j] = sum_i M[i, j] q[i] / sqrt(n).
 *
 * Columns j do not depend on each other, so each workgroup takes a tile of them through all steps.
 * n is at most 2048, because a column must fit the registers of one workgroup.
 */
#include "args/sequence.h"
#include "constants/sequence.h"
#include "op/families.h"
#include "op/sequence/gated_delta.h"
#include "op/sequence/sequence.h"
#include "op/sequence/sequence_backward.h"

#include <math.h>

#define MOST_KEEP 16
/* An invocation that keeps so many numbers needs about so many registers. */
#define REGISTERS(numbers) (7 * (numbers) + 32)
#define MOST_SIZE          (MOST_KEEP * GATED_DELTA_THREADS)

rlxvk_tensor rlxvk_gated_delta_net(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k, rlxvk_tensor v,
                                   rlxvk_tensor decay, rlxvk_tensor beta, rlxvk_tensor state,
                                   bool in_place, rlxvk_tensor *out_state)
{
    rlxvk_tensor operands[] = {q, k, v, decay, beta, state};
    return sequence_build_carry(g, OP_gated_delta_net, operands, in_place, out_state);
}

rlxvk_status gated_delta_check(const rlxvk_graph *g, const node *n, uint32_t most_size)
{
    const rlxvk_shape *q = input_shape(g, n, 0);
    char buffer[SHAPE_TEXT];
    rlxvk_status status;
    if (q->rank != 4 || q->dims[3] < 1)
        return op_fail(n, RLXVK_E_SHAPE, "q is %s; must be [B, S, H, n] with n of 1 or more",
                       shape_text(q, buffer));
    if (q->dims[3] > most_size)
        return op_fail(n, RLXVK_E_UNSUPPORTED, "the state size is %lld; at most %u is supported",
                       (long long)q->dims[3], most_size);
    rlxvk_shape tokens = RLXVK_SHAPE(q->dims[0], q->dims[1], q->dims[2]);
    TRY(op_require_shape(g, n, 1, "k", *q));
    TRY(op_require_shape(g, n, 2, "v", *q));
    TRY(op_require_shape(g, n, 3, "g", tokens));
    TRY(op_require_shape(g, n, 4, "beta", tokens));
error:
    return status;
}

static rlxvk_status gated_delta_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *q = input_shape(g, n, 0);
    rlxvk_status status;
    TRY(gated_delta_check(g, n, MOST_SIZE));
    TRY(sequence_infer_carry(g, n, attributes, *q,
                             RLXVK_SHAPE(q->dims[0], q->dims[2], q->dims[3], q->dims[3])));
error:
    return status;
}

/* How many numbers a lane keeps. It keeps half as many if whole columns do not fill the device, or
 * exceed the registers. */
static uint32_t choose_keep(const lowering *l, uint64_t heads, uint64_t size)
{
    uint64_t columns = GATED_DELTA_THREADS / sequence_lanes(size, MOST_KEEP, GATED_DELTA_THREADS);
    bool fills = heads * divide_up(size, columns) >= 4 * (uint64_t)l->profile->compute_units;
    bool fits = REGISTERS(MOST_KEEP) <= profile_registers(l->profile, GATED_DELTA_THREADS);
    return (fills && fits) || size > MOST_SIZE / 2 ? MOST_KEEP : MOST_KEEP / 2;
}

static struct gated_delta_args make_arguments(const rlxvk_shape *q, uint32_t lanes,
                                              const operand operands[8])
{
    return (struct gated_delta_args){.batch = (uint32_t)q->dims[0],
                                     .steps = (uint32_t)q->dims[1],
                                     .heads = (uint32_t)q->dims[2],
                                     .size = (uint32_t)q->dims[3],
                                     .lanes = lanes,
                                     .scale = (float)(1 / sqrt((double)q->dims[3])),
                                     .q_offset = operands[0].offset,
                                     .k_offset = operands[1].offset,
                                     .v_offset = operands[2].offset,
                                     .g_offset = operands[3].offset,
                                     .beta_offset = operands[4].offset,
                                     .y_offset = operands[5].offset,
                                     .before_offset = operands[6].offset,
                                     .after_offset = operands[7].offset};
}

static rlxvk_status gated_delta_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const carry_attributes *a = n->attributes;
    const rlxvk_shape *q = input_shape(l->graph, n, 0);
    uint64_t result = shape_numel(q), heads = (uint64_t)(q->dims[0] * q->dims[2]);
    uint64_t size = (uint64_t)q->dims[3];
    uint32_t keep = choose_keep(l, heads, size);
    uint32_t lanes = sequence_lanes(size, keep, GATED_DELTA_THREADS);
    operand operands[8];
    dispatch d = {.kernel = KERNEL_GATED_DELTA};
    if (result == 0)
        return sequence_lower_copy(l, id, result);
    sequence_lower_operands(l, id, result, operands);
    struct gated_delta_args args = make_arguments(q, lanes, operands);
    SET_CONSTANTS(&d, {LOCAL_SIZE, GATED_DELTA_THREADS}, {GATED_DELTA_KEEP, keep},
                  {GATED_DELTA_CARRY, a->carry});
    lower_groups(l, &d, heads * divide_up(size, GATED_DELTA_THREADS / lanes));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

/* Computes all tokens of one column of a head and batch row; m is the column. */
static rlxvk_status walk_column(const host_call *call, uint64_t index, double *m)
{
    const int64_t *dims = call->inputs[0].node->shape.dims;
    const host_tensor *in = call->inputs;
    uint64_t steps = (uint64_t)dims[1], heads = (uint64_t)dims[2], size = (uint64_t)dims[3];
    uint64_t pair = index / size, j = index % size;
    for (uint64_t t = 0; t < steps; t++) {
        uint64_t token = (pair / heads * steps + t) * heads + pair % heads;
        const float *q = in[0].words + token * size, *k = in[1].words + token * size;
        double decay = exp(in[3].words[token]), beta = in[4].words[token], found = 0, sum = 0;
        for (uint64_t i = 0; i < size; i++) {
            m[i] *= decay;
            found += m[i] * k[i];
        }
        double change = (in[2].words[token * size + j] - found) * beta;
        for (uint64_t i = 0; i < size; i++) {
            m[i] += k[i] * change;
            sum += m[i] * q[i];
        }
        call->out[token * size + j] = sum / sqrt((double)size);
    }
    return RLXVK_OK;
}

static rlxvk_status gated_delta_host(const host_call *call)
{
    const int64_t *dims = call->inputs[0].node->shape.dims;
    uint64_t size = (uint64_t)dims[3];
    return sequence_host_states(call, (uint64_t)(dims[0] * dims[2]) * size, size, MAX(size, 1),
                                walk_column);
}

static uint64_t gated_delta_bucket(bucket_call *c)
{
    return sequence_bucket_carry(c, 1u << 3, 0xfu << 1);
}

static rlxvk_status gated_delta_vjp(gradient_call *c)
{
    return sequence_carry_vjp(c, OP_gated_delta_net_backward);
}

const op_family gated_delta_family = {
    .name = "gated_delta",
    .attribute_size = sizeof(carry_attributes),
    .infer = gated_delta_infer,
    .memory = {.writes = sequence_carry_writes},
    .execution = {.lower = gated_delta_lower, .host = gated_delta_host},
    .rows = {.bucket = gated_delta_bucket},
    .derivative = {.vjp = gated_delta_vjp},
    .describe = sequence_describe_carry,
};
