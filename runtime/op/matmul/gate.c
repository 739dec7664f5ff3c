/*
 * group_limited_gate: chooses the experts of each token, only within the best groups of experts.
 *
 *   score[g] = sum of the two largest routes of group g (of the only one, if a group has one)
 *   ids      = the top_k largest routes among the experts of the topk_group largest scores
 *   weight   = sig[id] / (sum of them + 1e-20) * scaling; sig[id] * scaling for top_k = 1
 *
 * Larger routes come first. On ties the lower index comes first; NaN comes last. The result is [T,
 * 2k]: ids, then weights. There are at most 1024 groups. Gradients flow only from the weights to
 * sig, because the choice, and with it route, is constant almost everywhere.
 */
#include "args/matmul.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"

#include <rlxvk_train.h>

#include <math.h>
#include <string.h>

typedef struct gate_attributes {
    rlxvk_gate_options options; /* defaults filled */
} gate_attributes;

rlxvk_tensor rlxvk_group_limited_gate(rlxvk_graph *g, rlxvk_tensor sig, rlxvk_tensor route,
                                      const rlxvk_gate_options *options)
{
    gate_attributes a;
    memset(&a, 0, sizeof a);
    if (!op_take(g, "group_limited_gate", SIZED(rlxvk_gate_options), options, &a.options))
        return RLXVK_NONE;
    return op_build(g, OP_group_limited_gate, (rlxvk_tensor[]){sig, route}, 2, &a);
}

static void take_defaults(rlxvk_gate_options *o, int64_t experts)
{
    o->n_group = o->n_group ? o->n_group : 8;
    o->topk_group = o->topk_group ? o->topk_group : 4;
    o->top_k = o->top_k ? o->top_k : 8;
    o->routed_scaling = o->routed_scaling != 0 ? o->routed_scaling : 2.5f;
    o->num_experts = o->num_experts ? o->num_experts : experts;
}

static rlxvk_status check_counts(const node *n, const rlxvk_gate_options *o, int64_t experts)
{
    if (o->num_experts != experts)
        return op_fail(n, RLXVK_E_ATTR, "num_experts is %lld; the operands have %lld",
                       (long long)o->num_experts, (long long)experts);
    if (experts > 1 << 24)
        return op_fail(n, RLXVK_E_INDEX_RANGE, "%lld experts; ids held as f32 reach 2^24",
                       (long long)experts);
    if (o->n_group < 1 || experts % o->n_group != 0 || experts < 1)
        return op_fail(n, RLXVK_E_ATTR, "n_group %lld must divide %lld experts",
                       (long long)o->n_group, (long long)experts);
    if (o->topk_group < 1 || o->topk_group > o->n_group)
        return op_fail(n, RLXVK_E_ATTR, "topk_group %lld of %lld groups; keep 1 to all of them",
                       (long long)o->topk_group, (long long)o->n_group);
    if (o->top_k < 1 || o->top_k > o->topk_group * (experts / o->n_group))
        return op_fail(n, RLXVK_E_ATTR, "top_k %lld; the chosen groups have %lld experts",
                       (long long)o->top_k, (long long)(o->topk_group * (experts / o->n_group)));
    if (o->n_group > GATE_MAX_GROUPS)
        return op_fail(n, RLXVK_E_UNSUPPORTED, "%lld groups; at most %d are supported",
                       (long long)o->n_group, GATE_MAX_GROUPS);
    return RLXVK_OK;
}

static rlxvk_status group_limited_gate_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_gate_options *o = &((gate_attributes *)attributes)->options;
    const rlxvk_shape *sig = input_shape(g, n, 0), *route = input_shape(g, n, 1);
    char sig_text[SHAPE_TEXT], route_text[SHAPE_TEXT];
    rlxvk_status status;
    if (sig->rank != 2 || !shape_equal(sig, route))
        return op_fail(n, RLXVK_E_SHAPE, "sig %s, route %s; both are [tokens, experts]",
                       shape_text(sig, sig_text), shape_text(route, route_text));
    take_defaults(o, sig->dims[1]);
    TRY(check_counts(n, o, sig->dims[1]));
    n->shape = RLXVK_SHAPE(sig->dims[0], 2 * o->top_k);
    n->dtype = RLXVK_F32;
error:
    return status;
}

static rlxvk_status group_limited_gate_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_gate_options *o = &((const gate_attributes *)n->attributes)->options;
    operand operands[] = {lower_input(l, id, 0), lower_input(l, id, 1), lower_write(l, id)};
    struct group_limited_gate_args args = {.tokens = (uint32_t)n->shape.dims[0],
                                           .experts = (uint32_t)o->num_experts,
                                           .groups = (uint32_t)o->n_group,
                                           .topk_group = (uint32_t)o->topk_group,
                                           .top_k = (uint32_t)o->top_k,
                                           .signal_offset = operands[0].offset,
                                           .route_offset = operands[1].offset,
                                           .y_offset = operands[2].offset,
                                           .scaling = o->routed_scaling};
    dispatch d = {.kernel = KERNEL_GROUP_LIMITED_GATE, .node = id};
    operands[2].access = ACCESS_READ | ACCESS_WRITE;
    bool software = profile_is_software(l->profile);
    SET_CONSTANTS(&d, {LOCAL_SIZE, !software ? 64 : o->num_experts <= 256 ? 16 : 128});
    lower_groups(l, &d, args.tokens);
    return lower_emit(l, &d, &args, sizeof args, operands, 3);
}

/* Does a at index i come before b at index j? */
static bool before(double a, uint64_t i, double b, uint64_t j)
{
    if (isnan(a) || isnan(b))
        return isnan(a) == isnan(b) ? i < j : isnan(b);
    return a != b ? a > b : i < j;
}

/* How many of `values` come before value i. */
static uint64_t rank_of(const float *values, uint64_t count, uint64_t i)
{
    uint64_t rank = 0;
    for (uint64_t j = 0; j < count; j++)
        rank += before(values[j], j, values[i], i);
    return rank;
}

/* Half the sum, as f32 computes it. So groups that tie in f32 tie here, too, and no sum
 * overflows. */
static float host_score(const float *route, uint64_t size)
{
    float largest[2] = {NAN, NAN};
    for (uint64_t i = 0; i < size; i++)
        if (rank_of(route, size, i) < 2)
            largest[rank_of(route, size, i)] = route[i];
    return size == 1 ? largest[0] : largest[0] / 2 + largest[1] / 2;
}

/* Chooses among the experts of the groups that stay: ids[r] is the r-th best of them. */
static void host_choose(const rlxvk_gate_options *o, const float *route, const bool *stays,
                        uint64_t *ids)
{
    uint64_t experts = (uint64_t)o->num_experts, size = experts / (uint64_t)o->n_group;
    for (uint64_t e = 0; e < experts; e++) {
        uint64_t rank = 0;
        for (uint64_t other = 0; other < experts && stays[e / size]; other++)
            rank += stays[other / size] && before(route[other], other, route[e], e);
        if (stays[e / size] && rank < (uint64_t)o->top_k)
            ids[rank] = e;
    }
}

static void host_token(const host_call *c, uint64_t token, float *scores, bool *stays,
                       uint64_t *ids)
{
    const rlxvk_gate_options *o = &((const gate_attributes *)c->node->attributes)->options;
    uint64_t experts = (uint64_t)o->num_experts, k = (uint64_t)o->top_k;
    uint64_t size = experts / (uint64_t)o->n_group;
    const float *sig = c->inputs[0].words + token * experts;
    const float *route = c->inputs[1].words + token * experts;
    double sum = 0, *out = c->out + token * 2 * k;
    for (uint64_t g = 0; g < (uint64_t)o->n_group; g++)
        scores[g] = host_score(route + g * size, size);
    for (uint64_t g = 0; g < (uint64_t)o->n_group; g++)
        stays[g] = rank_of(scores, (uint64_t)o->n_group, g) < (uint64_t)o->topk_group;
    host_choose(o, route, stays, ids);
    for (uint64_t j = 0; j < k; j++)
        sum += sig[ids[j]];
    for (uint64_t j = 0; j < k; j++) {
        out[j] = (double)ids[j];
        out[k + j] = (k > 1 ? sig[ids[j]] / (sum + 1e-20) : sig[ids[j]]) * o->routed_scaling;
        if (c->bound)
            c->bound[token * 2 * k + j] = 0;
    }
}

static rlxvk_status group_limited_gate_host(const host_call *c)
{
    const rlxvk_gate_options *o = &((const gate_attributes *)c->node->attributes)->options;
    float *scores = memory_zeroed((uint64_t)o->n_group, sizeof *scores);
    bool *stays = memory_zeroed((uint64_t)o->n_group, sizeof *stays);
    uint64_t *ids = memory_zeroed((uint64_t)o->top_k, sizeof *ids);
    rlxvk_status status = scores && stays && ids ? RLXVK_OK : status_fail_memory("gate");
    for (uint64_t t = 0; status == RLXVK_OK && t < (uint64_t)c->node->shape.dims[0]; t++)
        host_token(c, t, scores, stays, ids);
    memory_free(scores);
    memory_free(stays);
    memory_free(ids);
    return status;
}

static uint64_t group_limited_gate_bucket(bucket_call *c)
{
    return bucket_rows(c, 1u << 1, 1u << 1);
}

/* If s are the chosen elements of sig and S = sum s + 1e-20, ds = scaling (dw - sum(dw s) / S) /
 * S. */
static rlxvk_status group_limited_gate_vjp(gradient_call *c)
{
    const rlxvk_gate_options *o = &((const gate_attributes *)c->n.attributes)->options;
    rlxvk_graph *g = c->graph;
    int64_t k = o->top_k;
    rlxvk_tensor ids = rlxvk_narrow(g, gradient_result(c), 1, 0, k),
                 d = rlxvk_narrow(g, c->dy, 1, k, k);
    d = rlxvk_mul(g, d, gradient_scalar(g, o->routed_scaling));
    if (k > 1) {
        const int32_t last = 1;
        rlxvk_tensor chosen = rlxvk_take_along_axis(g, gradient_operand(c, 0), ids, 1);
        rlxvk_tensor total = rlxvk_reduce_sum(g, chosen, &last, 1, true);
        rlxvk_tensor share = rlxvk_reduce_sum(g, rlxvk_mul(g, d, chosen), &last, 1, true);
        total = rlxvk_add(g, total, gradient_scalar(g, 1e-20));
        d = rlxvk_div(g, rlxvk_sub(g, d, rlxvk_div(g, share, total)), total);
    }
    gradient_give(c, 0, rlxvk_take_along_axis_backward(g, d, ids, 1, o->num_experts));
    return RLXVK_OK;
}

static void group_limited_gate_describe(const node *n, text *out)
{
    const rlxvk_gate_options *o = &((const gate_attributes *)n->attributes)->options;
    text_append(out, " n_group=%lld topk_group=%lld top_k=%lld scaling=%g", (long long)o->n_group,
                (long long)o->topk_group, (long long)o->top_k, (double)o->routed_scaling);
}

const op_family group_limited_gate_family = {
    .name = "group_limited_gate",
    .attribute_size = sizeof(gate_attributes),
    .infer = group_limited_gate_infer,
    .execution = {.lower = group_limited_gate_lower, .host = group_limited_gate_host},
    .rows = {.bucket = group_limited_gate_bucket},
    .derivative = {.vjp = group_limited_gate_vjp},
    .describe = group_limited_gate_describe,
};
