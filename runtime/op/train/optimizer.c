/*
 * Optimizers: adamw (Loshchilov and Hutter 2019), sgd with momentum (Sutskever et al. 2013, in the
 * form of PyTorch), and lion (Chen et al. 2023). Operands: the parameter p, its gradient g, the
 * running averages (m; adamw also has v), then optional data.
 *
 * In place, p and the averages are params or inputs; they are overwritten, and the node is a view
 * of p. Otherwise the results are packed one after the other: p and the averages are copied, and
 * the copies are updated.
 */
#include "graph/symbol.h"
#include "args/train.h"
#include "constants/train.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/movement/layout.h"
#include "op/train/train.h"

#include <rlxvk_train.h>

#include <float.h>
#include <math.h>

typedef struct optimizer_attributes {
    float rate, beta1, beta2, eps, decay;
    uint32_t step;
    bool in_place, nesterov, scheduled, scaled;
} optimizer_attributes;

/* How many running averages the optimizer has. */
static uint32_t average_count(const node *n)
{
    return node_code(n) == OPTIMIZER_ADAMW ? 2 : 1;
}

/* How many numbers the optimizer's schedule has. */
static int64_t schedule_length(const node *n)
{
    return node_code(n) == OPTIMIZER_ADAMW ? 3 : 1;
}

/* The operand number of p (0) or of an average (1, 2). */
static uint32_t state_operand(uint32_t i)
{
    return i ? i + 1 : 0;
}

/* ---- Building ---- */

static rlxvk_tensor build(rlxvk_graph *g, op_kind op, rlxvk_tensor parameter, rlxvk_tensor gradient,
                          const rlxvk_tensor *averages, const rlxvk_optimizer_data *data,
                          optimizer_attributes a, rlxvk_tensor *out_averages)
{
    rlxvk_tensor operands[6] = {parameter, gradient};
    uint32_t count = op == OP_adamw ? 2 : 1;
    rlxvk_optimizer_data d;
    for (uint32_t i = 0; i < count && out_averages; i++)
        out_averages[i] = RLXVK_NONE;
    if (!op_take(g, op_table[op].name, SIZED(rlxvk_optimizer_data), data, &d))
        return RLXVK_NONE;
    for (uint32_t i = 0; i < count; i++)
        operands[2 + i] = averages[i];
    operands[2 + count] = d.schedule;
    operands[3 + count] = d.gradient_scale;
    a.scheduled = d.schedule.id;
    a.scaled = d.gradient_scale.id;
    rlxvk_tensor result = op_build(g, op, operands, 4 + count, &a);
    if (!result.id || a.in_place)
        return result;
    rlxvk_shape shape = rlxvk_tensor_shape(g, parameter);
    int64_t length = dim_elements(g, &shape);
    for (uint32_t i = 0; i < count && out_averages; i++)
        out_averages[i] = rlxvk_reshape(
            g, rlxvk_narrow(g, result, 0, dim_make(g, DIM_PRODUCT, length, i + 1), length), shape);
    return rlxvk_reshape(g, rlxvk_narrow(g, result, 0, 0, length), shape);
}

rlxvk_tensor rlxvk_adamw(rlxvk_graph *g, rlxvk_tensor parameter, rlxvk_tensor gradient,
                         rlxvk_tensor first, rlxvk_tensor second,
                         const rlxvk_adamw_options *options, const rlxvk_optimizer_data *data,
                         rlxvk_tensor *out_averages)
{
    rlxvk_adamw_options o;
    if (!op_take(g, "adamw", SIZED(rlxvk_adamw_options), options, &o))
        return RLXVK_NONE;
    return build(g, OP_adamw, parameter, gradient, (rlxvk_tensor[]){first, second}, data,
                 (optimizer_attributes){.rate = op_number(o.learning_rate, 1e-3f),
                                        .beta1 = op_number(o.beta1, 0.9f),
                                        .beta2 = op_number(o.beta2, 0.999f),
                                        .eps = op_number(o.eps, 1e-8f),
                                        .decay = o.weight_decay,
                                        .step = o.step,
                                        .in_place = !out_averages},
                 out_averages);
}

rlxvk_tensor rlxvk_sgd(rlxvk_graph *g, rlxvk_tensor parameter, rlxvk_tensor gradient,
                       rlxvk_tensor momentum, const rlxvk_sgd_options *options,
                       const rlxvk_optimizer_data *data, rlxvk_tensor *out_momentum)
{
    rlxvk_sgd_options o;
    if (!op_take(g, "sgd", SIZED(rlxvk_sgd_options), options, &o))
        return RLXVK_NONE;
    return build(g, OP_sgd, parameter, gradient, &momentum, data,
                 (optimizer_attributes){.rate = op_number(o.learning_rate, 1e-3f),
                                        .beta1 = o.momentum,
                                        .decay = o.weight_decay,
                                        .nesterov = o.nesterov,
                                        .in_place = !out_momentum},
                 out_momentum);
}

rlxvk_tensor rlxvk_lion(rlxvk_graph *g, rlxvk_tensor parameter, rlxvk_tensor gradient,
                        rlxvk_tensor average, const rlxvk_lion_options *options,
                        const rlxvk_optimizer_data *data, rlxvk_tensor *out_average)
{
    rlxvk_lion_options o;
    if (!op_take(g, "lion", SIZED(rlxvk_lion_options), options, &o))
        return RLXVK_NONE;
    return build(g, OP_lion, parameter, gradient, &average, data,
                 (optimizer_attributes){.rate = op_number(o.learning_rate, 1e-4f),
                                        .beta1 = op_number(o.beta1, 0.9f),
                                        .beta2 = op_number(o.beta2, 0.99f),
                                        .decay = o.weight_decay,
                                        .in_place = !out_average},
                 out_average);
}

/* A vector of the norms of all gradients, or RLXVK_NONE after an error. */
static rlxvk_tensor join_norms(rlxvk_graph *g, const rlxvk_tensor *gradients, size_t count,
                               rlxvk_tensor *norms)
{
    static const int32_t axes[RLXVK_MAX_RANK] = {0, 1, 2, 3, 4, 5, 6, 7};
    for (size_t i = 0; i < count && g->status == RLXVK_OK; i++) {
        graph_fail(g, graph_take(g, gradients[i], "gradient_clip", "gradient", (uint32_t)i));
        if (g->status != RLXVK_OK)
            return RLXVK_NONE;
        rlxvk_shape shape = rlxvk_tensor_shape(g, gradients[i]);
        norms[i] = rlxvk_l2_norm(g, gradients[i], axes, shape.rank, false);
        norms[i] = rlxvk_reshape(g, norms[i], RLXVK_SHAPE(1));
    }
    return g->status == RLXVK_OK ? rlxvk_concat(g, norms, count, 0) : RLXVK_NONE;
}

rlxvk_tensor rlxvk_gradient_clip(rlxvk_graph *g, const rlxvk_tensor *gradients, size_t count,
                                 float most)
{
    static const int32_t axis = 0;
    if (!graph_ready(g, "gradient_clip") ||
        graph_fail(g, status_require_items(gradients, count, "gradient_clip", "gradients")) !=
            RLXVK_OK)
        return RLXVK_NONE;
    if (!(most > 0)) {
        graph_fail(g, status_fail(RLXVK_E_ATTR, "gradient_clip: most is %g; must be above 0",
                                  (double)most));
        return RLXVK_NONE;
    }
    if (count == 0)
        return gradient_scalar(g, 1);
    rlxvk_tensor *norms = memory_zeroed(count, sizeof *norms);
    if (!norms) {
        graph_fail(g, status_fail_memory("gradient_clip"));
        return RLXVK_NONE;
    }
    rlxvk_tensor all = join_norms(g, gradients, count, norms);
    memory_free(norms);
    rlxvk_tensor norm = rlxvk_l2_norm(g, all, &axis, 1, false);
    norm = rlxvk_add(g, norm, gradient_scalar(g, 1e-6));
    return rlxvk_min(g, rlxvk_div(g, gradient_scalar(g, most), norm), gradient_scalar(g, 1));
}

/* ---- Inference ---- */

static rlxvk_status check_numbers(const node *n, const optimizer_attributes *a)
{
    const struct {
        const char *name;
        float value, most;
    } numbers[] = {{"learning_rate", a->rate, INFINITY},
                   {"beta1 or momentum", a->beta1, 1},
                   {"beta2", a->beta2, 1},
                   {"eps", a->eps, INFINITY},
                   {"weight_decay", a->decay, INFINITY}};
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        if (!(numbers[i].value >= 0 && numbers[i].value < numbers[i].most))
            return op_fail(n, RLXVK_E_ATTR, "%s is %g; takes 0 up to, not with, %g",
                           numbers[i].name, (double)numbers[i].value, (double)numbers[i].most);
    return RLXVK_OK;
}

static rlxvk_status optimizer_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    optimizer_attributes *a = attributes;
    uint32_t averages = average_count(n), next = 2 + averages;
    char have[SHAPE_TEXT], want[SHAPE_TEXT];
    rlxvk_status status;
    n->shape = *input_shape(g, n, 0);
    n->dtype = RLXVK_F32;
    if (node_code(n) == OPTIMIZER_ADAMW && a->step < 1 && !a->scheduled)
        return op_fail(n, RLXVK_E_ATTR, "step is 0; the first is 1, or give a schedule");
    if (n->input_count != next + a->scheduled + a->scaled)
        return op_fail(n, RLXVK_E_ARITY, "%u operands; takes %u with what is given as data",
                       n->input_count, next + a->scheduled + a->scaled);
    TRY(check_numbers(n, a));
    for (uint32_t i = 1; i < next; i++)
        if (!shape_equal(input_shape(g, n, i), &n->shape))
            return op_fail(n, RLXVK_E_SHAPE,
                           "operand %u is %s, the parameter %s; they must be "
                           "alike",
                           i, shape_text(input_shape(g, n, i), have), shape_text(&n->shape, want));
    if (a->scheduled)
        TRY(train_check_numbers(g, n, next++, "schedule", schedule_length(n)));
    if (a->scaled)
        TRY(train_check_numbers(g, n, next, "gradient_scale", 1));
    for (uint32_t i = 0; i <= averages && a->in_place; i++)
        TRY(train_check_written(g, n, state_operand(i)));
    if (!a->in_place)
        n->shape = RLXVK_SHAPE((int64_t)(shape_numel(&n->shape) * (1 + averages)));
error:
    return status;
}

static bool optimizer_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    (void)g;
    *out_offset = 0;
    return ((const optimizer_attributes *)n->attributes)->in_place;
}

static uint32_t optimizer_writes(const node *n)
{
    if (!((const optimizer_attributes *)n->attributes)->in_place)
        return 0;
    return node_code(n) == OPTIMIZER_ADAMW ? 1 | 1 << 2 | 1 << 3 : 1 | 1 << 2;
}

/* ---- Lowering ---- */

/* Finds the buffers of p and the averages, which are read and written. In place these are the
 * operands. Otherwise they are parts of the result, into which the operands are copied first. */
static rlxvk_status take_states(lowering *l, uint32_t id, operand out[3])
{
    const node *n = graph_node(l->graph, id);
    const optimizer_attributes *a = n->attributes;
    uint64_t numel = shape_numel(input_shape(l->graph, n, 0));
    rlxvk_shape line = RLXVK_SHAPE((int64_t)numel);
    rlxvk_status status = RLXVK_OK;
    for (uint32_t i = 0; i <= average_count(n); i++) {
        if (a->in_place) {
            out[i] = lower_update(l, n->inputs[state_operand(i)]);
            continue;
        }
        strided_copy copy = layout_dense_copy(&line);
        copy.source[0] = 1;
        operand part = lower_write(l, id);
        lower_narrow(l, &part, i * numel, numel);
        TRY(layout_emit_copy(l, &copy, lower_input(l, id, state_operand(i)), part));
        out[i] = part;
        out[i].access = ACCESS_READ | ACCESS_WRITE;
    }
error:
    return status;
}

static struct optimizer_args make_arguments(const node *n, uint64_t numel, const operand o[6])
{
    const optimizer_attributes *a = n->attributes;
    double step = a->step;
    return (struct optimizer_args){.numel = (uint32_t)numel,
                                   .parameter_offset = o[0].offset,
                                   .gradient_offset = o[1].offset,
                                   .first_offset = o[2].offset,
                                   .second_offset = o[3].offset,
                                   .schedule_offset = o[4].offset,
                                   .scale_offset = o[5].offset,
                                   .rate = a->rate,
                                   .beta1 = a->beta1,
                                   .beta2 = a->beta2,
                                   .rest1 = (float)(1 - (double)a->beta1),
                                   .rest2 = (float)(1 - (double)a->beta2),
                                   .eps = a->eps,
                                   .decay = a->decay,
                                   .correction1 = (float)(1 - pow(a->beta1, step)),
                                   .correction2 = (float)(1 - pow(a->beta2, step))};
}

/* If a binding has no operand, the gradient is bound there, because it is only read. */
static rlxvk_status optimizer_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const optimizer_attributes *a = n->attributes;
    uint64_t numel = shape_numel(input_shape(l->graph, n, 0));
    uint32_t averages = average_count(n), next = 2 + averages;
    operand states[3], gradient = lower_input(l, id, 1), o[6];
    dispatch d = {.kernel = KERNEL_OPTIMIZER};
    rlxvk_status status;
    if (numel == 0)
        return RLXVK_OK;
    TRY(take_states(l, id, states));
    o[0] = states[0];
    o[1] = gradient;
    o[2] = states[1];
    o[3] = averages == 2 ? states[2] : gradient;
    o[4] = a->scheduled ? lower_input(l, id, next++) : gradient;
    o[5] = a->scaled ? lower_input(l, id, next) : gradient;
    struct optimizer_args args = make_arguments(n, numel, o);
    bool quads =
        (args.parameter_offset | args.gradient_offset | args.first_offset | args.second_offset) %
            4 ==
        0;
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {OPTIMIZER_CODE, node_code(n)},
                  {OPTIMIZER_VECTORS, quads}, {OPTIMIZER_NESTEROV, a->nesterov},
                  {OPTIMIZER_SCHEDULED, a->scheduled}, {OPTIMIZER_SCALED, a->scaled});
    lower_groups(l, &d, groups_for(MAX(quads ? numel / 4 : numel, 3), l->profile->workgroup_size));
    TRY(lower_emit(l, &d, &args, sizeof args, o, ARRAY_COUNT(o)));
error:
    return status;
}

/* ---- Host ---- */

typedef struct state {
    double p, m, v;
} state;

#define UNIT 0x1p-22  /* relative error of a few roundings */
#define TINY 0x1p-125 /* values that f32 may flush to 0 */

/* v as f32, which is computed with an error of up to `error`. It becomes infinite if f32 overflows.
 * If the error decides that, *out_unsure is set. NaN stays. */
static double held(double v, double error, bool *out_unsure)
{
    const double rounds_to_infinity = 0x1.ffffffp127;
    if (isnan(v) || isinf(v) || fabs(v) + error < rounds_to_infinity)
        return v;
    if (fabs(v) - error >= rounds_to_infinity)
        return copysign(INFINITY, v);
    *out_unsure = true;
    return v;
}

/* Whether v is exact in f32 and not a denormal. */
static bool is_exact(double v)
{
    return (double)(float)v == v && (v == 0 || fabs(v) >= (double)FLT_MIN);
}

/* A step of one element. `k` has rates and corrections; `g` is the scaled gradient. The step
 * functions return the new state and set *out_error to how far that of f32 may be off. */
typedef struct host_step {
    const optimizer_attributes *a;
    const struct optimizer_args *k;
    double g;
    state s;
    bool unsure; /* out: any p is accepted */
    bool meets;  /* out: v is -infinity, or NaN if g^2 overflows f32 */
} host_step;

static state sgd_step(host_step *h, state *out_error)
{
    const optimizer_attributes *a = h->a;
    state s = h->s, e = {0};
    double size = fabs(h->g) + fabs(a->decay * s.p), rate = h->k->rate;
    double decayed = held(h->g + a->decay * s.p, UNIT * size, &h->unsure);
    e.m = UNIT * (fabs(a->beta1 * s.m) + size) + TINY;
    double m = held(a->beta1 * s.m + decayed, e.m, &h->unsure), change = m;
    if (a->nesterov)
        change = held(decayed + a->beta1 * m, UNIT * (size + fabs(m)) + e.m, &h->unsure);
    e.p = UNIT * (fabs(s.p) + fabs(rate) * (2 * size + fabs(change) + fabs(m))) +
          2 * fabs(rate) * e.m;
    *out_error = e;
    return (state){s.p - rate * change, m, 0};
}

/* If rounding may change the sign of the direction, both signs are accepted. But if f32 computes
 * the direction exactly, its sign is sure. For example, it is exactly 0 if the average and the
 * gradient are 0. */
static state lion_step(host_step *h, state *out_error)
{
    const optimizer_attributes *a = h->a;
    state s = h->s, e = {0};
    double rate = h->k->rate, rest = 1 - (double)a->beta1, kept = a->beta1 * s.m;
    double direction = kept + rest * h->g, sign = (direction > 0) - (direction < 0);
    double unsure = UNIT * (fabs(kept) + fabs(h->g)) + TINY;
    bool sure = fabs(direction) > unsure;
    if (!sure && is_exact(rest) && is_exact(h->g) && is_exact(rest * h->g) && is_exact(kept))
        sure = true;
    if (h->g == 0 && s.m == 0)
        sure = true;
    if (isnan(direction)) {
        sign = direction;
        sure = true;
    }
    double m = a->beta2 * s.m + (1 - (double)a->beta2) * h->g;
    e.m = UNIT * (fabs(a->beta2 * s.m) + fabs(h->g)) + TINY;
    e.p = UNIT * (fabs(s.p) * (1 + rate * a->decay) + rate) + (sure ? 0 : 2 * rate);
    *out_error = e;
    return (state){s.p - rate * (a->decay * s.p + sign), m, 0};
}

/* p and the step may cancel, so the error is relative to the size of each. */
static state adamw_step(host_step *h, state *out_error)
{
    const optimizer_attributes *a = h->a;
    const struct optimizer_args *k = h->k;
    state s = h->s, e = {0};
    double rate = k->rate, square = (1 - (double)a->beta2) * h->g * h->g;
    e.m = UNIT * (fabs(a->beta1 * s.m) + fabs(h->g)) + TINY;
    e.v = UNIT * (fabs(a->beta2 * s.v) + square) + TINY;
    double m = held(a->beta1 * s.m + (1 - (double)a->beta1) * h->g, e.m, &h->unsure);
    double v = held(a->beta2 * s.v + square, e.v, &h->unsure);
    double spread = sqrt(v / k->correction2) + a->eps;
    double least = sqrt(fmax(v - e.v, 0) / k->correction2) + a->eps;
    double change = m / k->correction1 / spread;
    double most = (fabs(m) + e.m) / k->correction1 / least;
    double off = most - fabs(change) + 4 * UNIT * fabs(change);
    change = held(change, off, &h->unsure);
    h->unsure |= (isfinite(change) && !isfinite(off)) || (v < 0 && v >= -e.v);
    h->unsure |= isinf(change) && m != 0 && fabs(m) <= e.m; /* or NaN, 0 / 0, if m is flushed */
    h->meets = s.v == -INFINITY && isfinite(h->g) && h->g * h->g > FLT_MAX;
    e.p = UNIT * fabs(s.p) * (1 + rate * a->decay) + rate * off;
    *out_error = e;
    return (state){s.p - rate * (a->decay * s.p + change), m, v};
}

/* If the value is not finite, it is not finite in f32, either. */
static double bound_of(double value, double error)
{
    return isfinite(value) ? error + 1e-37 : 0;
}

static rlxvk_status optimizer_host(const host_call *call)
{
    const node *n = call->node;
    const optimizer_attributes *a = n->attributes;
    const host_tensor *in = call->inputs;
    uint64_t numel = shape_numel(&in[0].node->shape);
    uint32_t averages = average_count(n), next = 2 + averages, code = node_code(n);
    struct optimizer_args k = make_arguments(n, numel, (operand[6]){{0}});
    double scale = 1;
    state (*step)(host_step *, state *) = adamw_step;
    if (code != OPTIMIZER_ADAMW)
        step = code == OPTIMIZER_SGD ? sgd_step : lion_step;
    if (a->scheduled) {
        const float *schedule = in[next++].words;
        k.rate = schedule[0];
        if (averages == 2) {
            k.correction1 = schedule[1];
            k.correction2 = schedule[2];
        }
    }
    if (a->scaled)
        scale = in[next].words[0];
    for (uint64_t i = 0; i < numel; i++) {
        host_step h = {.a = a, .k = &k};
        h.s = (state){in[0].words[i], in[2].words[i], averages == 2 ? in[3].words[i] : 0};
        h.g = held(in[1].words[i] * scale, 0, &h.unsure);
        state e, s = step(&h, &e);
        const double values[] = {s.p, s.m, s.v}, errors[] = {e.p, e.m, e.v};
        for (uint32_t r = 0; r <= averages; r++) {
            call->out[r * numel + i] = values[r];
            if (call->bound)
                call->bound[r * numel + i] = bound_of(values[r], errors[r]);
            if (r == 0 && h.unsure)
                host_leave_open(call, i);
            if (r == 2 && h.meets && call->bound)
                call->bound[r * numel + i] = INFINITY;
        }
    }
    return RLXVK_OK;
}

/* The op is elementwise. Its result has parts: the parameter, then each average. */
static uint64_t optimizer_bucket(bucket_call *c)
{
    if (((const optimizer_attributes *)c->node->attributes)->in_place)
        return bucket_refuse(c, "what it writes in place would keep rows that are not active");
    return bucket_parts(c, 0, (1u << (2 + average_count(c->node))) - 1);
}

static void optimizer_describe(const node *n, text *out)
{
    const optimizer_attributes *a = n->attributes;
    text_append(out, " learning_rate=%g weight_decay=%g%s%s%s", (double)a->rate, (double)a->decay,
                a->in_place ? " in_place" : "", a->scheduled ? " scheduled" : "",
                a->scaled ? " scaled" : "");
}

const op_family optimizer_family = {
    .name = "optimizer",
    .attribute_size = sizeof(optimizer_attributes),
    .infer = optimizer_infer,
    .views = {.view = optimizer_view},
    .memory = {.writes = optimizer_writes},
    .execution = {.lower = optimizer_lower, .host = optimizer_host},
    .rows = {.bucket = optimizer_bucket},
    .describe = optimizer_describe,
};
