/*
 * State-space scans, batch first, from a zero state or a carried one:
 *
 *   selective_scan  x, delta [B, S, C], a [C, n], b, c [B, S, n]:
 *                   h[ch, k] = exp(delta a[ch, k]) h[ch, k] + delta b[k] x[ch]
 *   mamba2          x [B, S, H, P], dt [B, S, H], a [H], b, c [B, S, H, n], state [B, H, P, n]:
 *                   M[p, k] = exp(dt a) M[p, k] + dt x[p] b[k]
 *
 * Both give y = sum_k c[k] h[., k]. One kernel computes both: its channels are C, or H x P with a
 * and dt per head. n may have any size. The channels of a batch row must be fewer than 2^31.
 */
#include "args/sequence.h"
#include "constants/sequence.h"
#include "op/families.h"
#include "op/sequence/sequence.h"
#include "op/sequence/sequence_backward.h"
#include "op/sequence/state_scan.h"

#include <float.h>
#include <math.h>

rlxvk_tensor rlxvk_selective_scan(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor delta,
                                  rlxvk_tensor a, rlxvk_tensor b, rlxvk_tensor c)
{
    rlxvk_tensor operands[] = {x, delta, a, b, c, RLXVK_NONE};
    return sequence_build_carry(g, OP_selective_scan, operands, &(carry_attributes){0}, NULL);
}

rlxvk_tensor rlxvk_mamba2(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dt, rlxvk_tensor a,
                          rlxvk_tensor b, rlxvk_tensor c, rlxvk_tensor state, bool in_place,
                          rlxvk_tensor *out_state)
{
    rlxvk_tensor operands[] = {x, dt, a, b, c, state};
    carry_attributes attributes = {.in_place = in_place};
    return sequence_build_carry(g, OP_mamba2, operands, &attributes, out_state);
}

static rlxvk_status check_size(const node *n, int64_t size)
{
    return size >= 1 ? RLXVK_OK
                     : op_fail(n, RLXVK_E_SHAPE, "the state size is 0; must be 1 or more");
}

static rlxvk_status check_selective(const rlxvk_graph *g, const node *n)
{
    const rlxvk_shape *x = input_shape(g, n, 0), *rates = input_shape(g, n, 2);
    char x_text[SHAPE_TEXT], a_text[SHAPE_TEXT];
    rlxvk_status status;
    if (x->rank != 3 || rates->rank != 2 || rates->dims[0] != x->dims[2])
        return op_fail(n, RLXVK_E_SHAPE, "x is %s and a is %s; must be [B, S, C] and [C, n]",
                       shape_text(x, x_text), shape_text(rates, a_text));
    rlxvk_shape vectors = RLXVK_SHAPE(x->dims[0], x->dims[1], rates->dims[1]);
    TRY(check_size(n, rates->dims[1]));
    TRY(op_require_shape(g, n, 1, "delta", *x));
    TRY(op_require_shape(g, n, 3, "b", vectors));
    TRY(op_require_shape(g, n, 4, "c", vectors));
error:
    return status;
}

static rlxvk_status check_mamba2(const rlxvk_graph *g, const node *n, rlxvk_shape *out_state)
{
    const rlxvk_shape *x = input_shape(g, n, 0), *b = input_shape(g, n, 3);
    char x_text[SHAPE_TEXT], b_text[SHAPE_TEXT];
    rlxvk_status status;
    if (x->rank != 4 || b->rank != 4)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s and b is %s; must be [B, S, H, P], [B, S, H, n]",
                       shape_text(x, x_text), shape_text(b, b_text));
    rlxvk_shape vectors = RLXVK_SHAPE(x->dims[0], x->dims[1], x->dims[2], b->dims[3]);
    *out_state = RLXVK_SHAPE(x->dims[0], x->dims[2], x->dims[3], b->dims[3]);
    TRY(check_size(n, b->dims[3]));
    TRY(op_require_shape(g, n, 1, "dt", RLXVK_SHAPE(x->dims[0], x->dims[1], x->dims[2])));
    TRY(op_require_shape(g, n, 2, "a", RLXVK_SHAPE(x->dims[2])));
    TRY(op_require_shape(g, n, 3, "b", vectors));
    TRY(op_require_shape(g, n, 4, "c", vectors));
error:
    return status;
}

rlxvk_status state_scan_check(const rlxvk_graph *g, const node *n, rlxvk_shape *out_state)
{
    *out_state = RLXVK_SCALAR;
    return node_code(n) == STATE_SCAN_MAMBA2 ? check_mamba2(g, n, out_state)
                                             : check_selective(g, n);
}

static rlxvk_status state_scan_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_shape state;
    rlxvk_status status;
    TRY(state_scan_check(g, n, &state));
    TRY(sequence_infer_carry(g, n, attributes, *input_shape(g, n, 0), state));
error:
    return status;
}

scan_geometry state_scan_geometry(const rlxvk_shape *x, const rlxvk_shape *b)
{
    bool by_head = x->rank == 4;
    return (scan_geometry){.batch = (uint64_t)x->dims[0],
                           .steps = (uint64_t)x->dims[1],
                           .heads = by_head ? (uint64_t)x->dims[2] : 1,
                           .width = (uint64_t)x->dims[x->rank - 1],
                           .size = (uint64_t)b->dims[b->rank - 1]};
}

/* How many numbers a lane keeps. It keeps few if the channels do not fill the device, because a
 * step waits until every lane has done its last number. */
static uint32_t choose_keep(const lowering *l, const scan_geometry *s)
{
    uint64_t channels = s->batch * s->heads * s->width;
    uint64_t busy = channels * sequence_lanes(s->size, 16, STATE_SCAN_THREADS);
    return s->size > 4 && busy < (uint64_t)l->profile->compute_units * 512 ? 4 : 16;
}

static struct state_scan_args make_arguments(const scan_geometry *s, uint32_t lanes,
                                             const operand operands[8])
{
    return (struct state_scan_args){.batch = (uint32_t)s->batch,
                                    .steps = (uint32_t)s->steps,
                                    .heads = (uint32_t)s->heads,
                                    .width = (uint32_t)s->width,
                                    .size = (uint32_t)s->size,
                                    .lanes = lanes,
                                    .x_offset = operands[0].offset,
                                    .delta_offset = operands[1].offset,
                                    .a_offset = operands[2].offset,
                                    .b_offset = operands[3].offset,
                                    .c_offset = operands[4].offset,
                                    .y_offset = operands[5].offset,
                                    .before_offset = operands[6].offset,
                                    .after_offset = operands[7].offset};
}

static rlxvk_status state_scan_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const carry_attributes *a = n->attributes;
    scan_geometry s = state_scan_geometry(input_shape(l->graph, n, 0), input_shape(l->graph, n, 3));
    uint64_t result = shape_numel(input_shape(l->graph, n, 0)), channels = s.heads * s.width;
    uint32_t keep = choose_keep(l, &s), lanes = sequence_lanes(s.size, keep, STATE_SCAN_THREADS);
    operand operands[8];
    dispatch d = {.kernel = KERNEL_STATE_SCAN};
    if (result == 0)
        return sequence_lower_copy(l, id, result);
    sequence_lower_operands(l, id, result, operands);
    struct state_scan_args args = make_arguments(&s, lanes, operands);
    SET_CONSTANTS(&d, {LOCAL_SIZE, STATE_SCAN_THREADS}, {STATE_SCAN_KIND, node_code(n)},
                  {STATE_SCAN_KEEP, keep}, {STATE_SCAN_CARRY, a->carry});
    lower_groups(l, &d, s.batch * divide_up(channels, STATE_SCAN_THREADS / lanes));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static scan_geometry host_geometry(const host_call *call)
{
    return state_scan_geometry(&call->inputs[0].node->shape, &call->inputs[3].node->shape);
}

#define UNIT 0x1p-24

/* Bounds for one element of the state. */
typedef struct scan_element {
    double size;  /* sum of the magnitudes of its terms */
    double error; /* of f32 arithmetic so far */
} scan_element;

static void step_error(scan_element *e, double exponent, double added)
{
    double decay = exp(exponent), kept = decay * e->size;
    e->size = kept + fabs(added);
    e->error =
        decay * e->error + UNIT * ((8 + 4 * fabs(exponent)) * kept + 4 * fabs(added) + 2 * e->size);
}

/* The bound of the sum over the state. */
static double sum_bound(const scan_element *elements, const float *c, uint64_t count)
{
    double size = 0, error = 0;
    for (uint64_t k = 0; k < count; k++) {
        size += fabs(c[k]) * elements[k].size;
        error += fabs(c[k]) * elements[k].error;
    }
    return 2 * (error + UNIT * (double)(count + 4) * size) + 1e-37;
}

/* Have finite numbers exceeded the range of f32? A kernel then has an infinity that the reference
 * does not have, and any value may result from it. */
static bool passes_range(const scan_element *elements, uint64_t count)
{
    bool passes = false;
    for (uint64_t k = 0; k < count; k++)
        passes = passes || (isfinite(elements[k].size) && elements[k].size > FLT_MAX);
    return passes;
}

/* Takes one channel of one batch row through all steps. */
static rlxvk_status walk_channel(const host_call *call, uint64_t row, double *state)
{
    const host_tensor *in = call->inputs;
    bool by_head = node_code(call->node) == STATE_SCAN_MAMBA2;
    scan_geometry s = host_geometry(call);
    uint64_t channels = s.heads * s.width, channel = row % channels, head = channel / s.width;
    bool passed = false;
    scan_element *elements = call->bound ? memory_zeroed(s.size + 1, sizeof *elements) : NULL;
    if (call->bound && !elements)
        return status_fail_memory("bounds of a scan");
    for (uint64_t k = 0; elements && k < s.size; k++)
        elements[k].size = fabs(state[k]);
    for (uint64_t t = 0; t < s.steps; t++) {
        uint64_t token = row / channels * s.steps + t, vector = (token * s.heads + head) * s.size;
        double step = in[1].words[by_head ? token * s.heads + head : token * channels + channel];
        double input = in[0].words[token * channels + channel], sum = 0;
        for (uint64_t k = 0; k < s.size; k++) {
            double rate = in[2].words[by_head ? head : channel * s.size + k];
            double added = step * input * in[3].words[vector + k];
            state[k] = exp(step * rate) * state[k] + added;
            sum += in[4].words[vector + k] * state[k];
            if (elements)
                step_error(&elements[k], step * rate, added);
        }
        call->out[token * channels + channel] = sum;
        if (!elements)
            continue;
        call->bound[token * channels + channel] = sum_bound(elements, in[4].words + vector, s.size);
        passed = passed || passes_range(elements, s.size);
        if (passed)
            host_leave_open(call, token * channels + channel);
    }
    memory_free(elements);
    return RLXVK_OK;
}

static rlxvk_status state_scan_host(const host_call *call)
{
    scan_geometry s = host_geometry(call);
    return sequence_host_states(call, s.batch * s.heads * s.width, s.size, 1, walk_channel);
}

/* All steps need operand 2, a. */
static uint64_t state_scan_bucket(bucket_call *c)
{
    uint32_t within = node_code(c->node) == STATE_SCAN_SELECTIVE ? 2 : 3;
    return sequence_bucket_carry(c, 1u << within, 1u << 1 | 1u << 3 | 1u << 4);
}

static rlxvk_status state_scan_vjp(gradient_call *c)
{
    backward_attributes a = {0};
    return sequence_carry_vjp(c,
                              node_code(&c->n) == STATE_SCAN_MAMBA2 ? OP_mamba2_backward
                                                                    : OP_selective_scan_backward,
                              &a);
}

const op_family state_scan_family = {
    .name = "state_scan",
    .attribute_size = sizeof(carry_attributes),
    .infer = state_scan_infer,
    .memory = {.writes = sequence_carry_writes},
    .execution = {.lower = state_scan_lower, .host = state_scan_host},
    .rows = {.bucket = state_scan_bucket},
    .derivative = {.vjp = state_scan_vjp},
    .describe = sequence_describe_carry,
};
