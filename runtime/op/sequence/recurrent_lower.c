/*
 * Dispatches of a recurrent layer. W_ih x + b of all steps and both directions is one product,
 * p [B, S, D, G Hd]. Then either one workgroup per sequence walks the time steps with the state in
 * shared memory (recurrent.comp; W_hh transposed first, so that its lanes read neighbours), or, for
 * nets whose W_hh one workgroup would take too long to read, each step is a dispatch over tiles of
 * units (recurrent_step.comp), which takes the previous h from y itself and keeps c in its final
 * place.
 */
#include "args/elementwise.h"
#include "args/sequence.h"
#include "constants/sequence.h"
#include "op/movement/layout.h"
#include "op/matmul/matmul.h"
#include "op/sequence/recurrent.h"

/* The most weights that one workgroup reads a step: beyond, spreading a step over the device is
 * worth a dispatch. */
#define MOST_SEQUENCE_WEIGHTS 65536
/* Fewer steps do not pay for the transposition. */
#define FEWEST_SEQUENCE_STEPS 3

typedef struct job { /* one layer, or what all layers share */
    lowering *l;
    uint32_t id, cell;
    recurrent_geometry r;
    bool carry, in_place;
    uint64_t layer;
    operand p, y; /* of the layer */
} job;

static job make_job(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const recurrent_attributes *a = n->attributes;
    return (job){.l = l,
                 .id = id,
                 .cell = a->options.relu ? RECURRENT_RELU : node_code(n),
                 .r = recurrent_geometry_of(input_shape(l->graph, n, 0), n, a),
                 .carry = a->carry,
                 .in_place = a->options.in_place};
}

/* The layer's part of operand i, of which each layer has `count` elements. */
static operand layer_part(const job *j, uint32_t i, uint64_t first, uint64_t count)
{
    operand o = lower_input(j->l, j->id, i);
    lower_narrow(j->l, &o, first, count);
    return o;
}

/* The layer's initial state (0: h, 1: c); p in its place where there is none. */
static operand initial_state(const job *j, uint32_t state)
{
    uint64_t count = recurrent_layer_state(&j->r);
    uint32_t i = recurrent_state_operand(graph_node(j->l->graph, j->id)) + state;
    operand p = j->p;
    p.access = ACCESS_READ;
    return j->carry && state < j->r.states ? layer_part(j, i, j->layer * count, count) : p;
}

/* Where the layer's final state goes; only with carry. */
static operand final_state(const job *j, uint32_t state)
{
    const node *n = graph_node(j->l->graph, j->id);
    uint64_t count = recurrent_layer_state(&j->r), first = j->layer * count;
    operand o = j->in_place ? lower_update(j->l, n->inputs[recurrent_state_operand(n) + state])
                            : lower_write(j->l, j->id);
    if (!j->in_place)
        first += recurrent_result(&j->r) + state * j->r.layers * count;
    lower_narrow(j->l, &o, first, count);
    return o;
}

/* p = x W_ih^T + bias */
static rlxvk_status project(job *j, operand x)
{
    const recurrent_geometry *r = &j->r;
    uint64_t columns = recurrent_columns(r, j->layer), rows = r->directions * r->rows;
    operand bias = layer_part(j, 3, j->layer * rows, rows);
    rlxvk_shape a = RLXVK_SHAPE((int64_t)(r->batch * r->steps), (int64_t)columns);
    rlxvk_shape b = RLXVK_SHAPE((int64_t)rows, (int64_t)columns);
    rlxvk_status status;
    TRY(lower_temporary(j->l, r->batch * r->steps * rows * sizeof(float), &j->p));
    matmul_request request = {.a = x,
                              .b = layer_part(j, 1, recurrent_input_weights(r, j->layer),
                                              rows * columns),
                              .bias = &bias,
                              .y = j->p,
                              .activation = UNARY_NONE,
                              .exact = true};
    matmul_problem_make(&a, &b, false, true, &request.problem);
    TRY(matmul_emit(j->l, j->id, &request));
error:
    return status;
}

static operand hidden_weights(const job *j)
{
    uint64_t count = j->r.directions * j->r.rows * j->r.hidden;
    return layer_part(j, 2, j->layer * count, count);
}

/* gru's b_hh; p in its place for the others. */
static operand hidden_bias(const job *j)
{
    uint64_t rows = j->r.directions * j->r.rows;
    operand p = j->p;
    p.access = ACCESS_READ;
    return j->cell == RECURRENT_GRU ? layer_part(j, 4, j->layer * rows, rows) : p;
}

/* ---- A workgroup per sequence ---- */

/* [D, G Hd, Hd] -> [D, Hd, G Hd] */
static rlxvk_status transpose_weights(const job *j, operand *out)
{
    const recurrent_geometry *r = &j->r;
    rlxvk_shape shape = RLXVK_SHAPE((int64_t)r->directions, (int64_t)r->hidden, (int64_t)r->rows);
    strided_copy copy = layout_dense_copy(&shape);
    rlxvk_status status;
    copy.source[0] = (int64_t)(r->rows * r->hidden);
    copy.source[1] = 1;
    copy.source[2] = (int64_t)r->hidden;
    TRY(lower_temporary(j->l, shape_numel(&shape) * sizeof(float), out));
    TRY(layout_emit_copy(j->l, &copy, hidden_weights(j), *out));
    out->access = ACCESS_READ;
error:
    return status;
}

/* An invocation a row of W_hh where the device lets them be so many: one workgroup has a processor
 * to itself, and reads waiting for memory are what it spends its time on. */
static uint32_t sequence_threads(const job *j)
{
    const device_profile *profile = j->l->profile;
    uint32_t threads = profile->workgroup_size;
    while (threads < j->r.rows && threads < 1024 &&
           2 * threads <= profile->max_workgroup_invocations)
        threads *= 2;
    return threads;
}

static rlxvk_status lower_sequences(const job *j)
{
    const recurrent_geometry *r = &j->r;
    operand w, p = j->p, bias = hidden_bias(j);
    operand h0 = initial_state(j, 0), c0 = initial_state(j, 1);
    operand hn = j->carry ? final_state(j, 0) : j->y;
    operand cn = j->carry && r->states == 2 ? final_state(j, 1) : hn;
    dispatch d = {.kernel = KERNEL_RECURRENT};
    rlxvk_status status;
    TRY(transpose_weights(j, &w));
    p.access = ACCESS_READ;
    struct recurrent_args args = {.batch = (uint32_t)r->batch,
                                  .steps = (uint32_t)r->steps,
                                  .hidden = (uint32_t)r->hidden,
                                  .directions = (uint32_t)r->directions,
                                  .p_offset = p.offset,
                                  .w_offset = w.offset,
                                  .bias_offset = bias.offset,
                                  .y_offset = j->y.offset,
                                  .h0_offset = h0.offset,
                                  .c0_offset = c0.offset,
                                  .hn_offset = hn.offset,
                                  .cn_offset = cn.offset};
    const operand operands[] = {p, w, bias, h0, c0, j->y, hn, cn};
    SET_CONSTANTS(&d, {LOCAL_SIZE, sequence_threads(j)}, {RECURRENT_CELL, j->cell},
                  {RECURRENT_CARRY, j->carry});
    lower_groups(j->l, &d, r->batch * r->directions);
    TRY(lower_emit(j->l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands)));
error:
    return status;
}

/* ---- A dispatch per step ---- */

static struct recurrent_step_args step_arguments(const job *j, uint64_t step)
{
    const recurrent_geometry *r = &j->r;
    uint64_t gates = r->directions * r->rows, units = r->directions * r->hidden;
    struct recurrent_step_args args = {.batch = (uint32_t)r->batch,
                                       .hidden = (uint32_t)r->hidden,
                                       .directions = (uint32_t)r->directions,
                                       .has_previous = step > 0 || j->carry,
                                       .p_batch = (uint32_t)(r->steps * gates),
                                       .y_batch = (uint32_t)(r->steps * units),
                                       .h_batch = (uint32_t)(step ? r->steps * units : r->hidden)};
    for (uint64_t d = 0; d < r->directions; d++) {
        uint64_t t = d ? r->steps - 1 - step : step, before = d ? t + 1 : t - 1;
        args.p_first[d] = (uint32_t)(j->p.offset + t * gates + d * r->rows);
        args.y_first[d] = (uint32_t)(j->y.offset + t * units + d * r->hidden);
        args.h_first[d] = step ? (uint32_t)(j->y.offset + before * units + d * r->hidden)
                               : (uint32_t)(d * r->batch * r->hidden);
    }
    return args;
}

static rlxvk_status emit_step(const job *j, uint64_t step, operand c)
{
    const recurrent_geometry *r = &j->r;
    operand p = j->p, w = hidden_weights(j), bias = hidden_bias(j), h = j->y, c0 = c;
    struct recurrent_step_args args = step_arguments(j, step);
    uint32_t rows = r->batch > 1 ? 4 : 1, units = RECURRENT_STEP_THREADS / RECURRENT_STEP_LANES;
    dispatch d = {.kernel = KERNEL_RECURRENT_STEP};
    p.access = h.access = c0.access = ACCESS_READ;
    if (step == 0) {
        h = initial_state(j, 0);
        c0 = initial_state(j, 1);
        for (uint64_t k = 0; k < r->directions; k++)
            args.h_first[k] += h.offset;
    }
    c.access = ACCESS_WRITE; /* what it reads, it reads as c0 */
    args.w_offset = w.offset;
    args.bias_offset = bias.offset;
    args.c0_offset = c0.offset;
    args.c_offset = c.offset;
    const operand operands[] = {p, w, bias, h, c0, j->y, c};
    SET_CONSTANTS(&d, {LOCAL_SIZE, RECURRENT_STEP_THREADS}, {RECURRENT_STEP_CELL, j->cell},
                  {RECURRENT_STEP_ROWS, rows});
    lower_groups(j->l, &d, divide_up(r->hidden, units) * r->directions * divide_up(r->batch, rows));
    return lower_emit(j->l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

/* hn[d] = y at the last step of direction d */
static rlxvk_status copy_last(const job *j)
{
    const recurrent_geometry *r = &j->r;
    uint64_t units = r->directions * r->hidden;
    rlxvk_shape shape = RLXVK_SHAPE((int64_t)r->batch, (int64_t)r->hidden);
    rlxvk_status status = RLXVK_OK;
    for (uint64_t d = 0; d < r->directions; d++) {
        strided_copy copy = layout_dense_copy(&shape);
        operand y = j->y, hn = final_state(j, 0);
        y.access = ACCESS_READ;
        copy.source_first = (int64_t)(d ? d * r->hidden : (r->steps - 1) * units);
        copy.source[0] = (int64_t)(r->steps * units);
        copy.source[1] = 1;
        copy.target_first = (int64_t)(d * r->batch * r->hidden);
        TRY(layout_emit_copy(j->l, &copy, y, hn));
    }
error:
    return status;
}

static rlxvk_status lower_steps(const job *j)
{
    const recurrent_geometry *r = &j->r;
    operand c = j->y;
    rlxvk_status status = RLXVK_OK;
    if (r->states == 2 && j->carry)
        c = final_state(j, 1);
    else if (r->states == 2)
        TRY(lower_temporary(j->l, recurrent_layer_state(r) * sizeof(float), &c));
    for (uint64_t step = 0; step < r->steps; step++)
        TRY(emit_step(j, step, c));
    if (j->carry)
        TRY(copy_last(j));
error:
    return status;
}

/* ---- All layers ---- */

/* Without steps the states pass through. */
static rlxvk_status copy_states(job *j)
{
    rlxvk_shape shape = RLXVK_SHAPE((int64_t)recurrent_layer_state(&j->r));
    strided_copy copy = layout_dense_copy(&shape);
    rlxvk_status status = RLXVK_OK;
    copy.source[0] = 1;
    for (j->layer = 0; j->layer < j->r.layers; j->layer++)
        for (uint32_t i = 0; i < j->r.states; i++)
            TRY(layout_emit_copy(j->l, &copy, initial_state(j, i), final_state(j, i)));
error:
    return status;
}

static bool suits_sequences(const recurrent_geometry *r)
{
    return r->hidden <= RECURRENT_MOST_HIDDEN && r->rows * r->hidden <= MOST_SEQUENCE_WEIGHTS &&
           r->steps >= FEWEST_SEQUENCE_STEPS;
}

rlxvk_status recurrent_lower(lowering *l, uint32_t id)
{
    job j = make_job(l, id);
    uint64_t result = recurrent_result(&j.r);
    operand x = lower_input(l, id, 0);
    rlxvk_status status = RLXVK_OK;
    if (result == 0)
        return copy_states(&j);
    for (; j.layer < j.r.layers; j.layer++) {
        j.y = lower_write(l, id);
        lower_narrow(l, &j.y, 0, result);
        if (j.layer + 1 < j.r.layers)
            TRY(lower_temporary(l, result * sizeof(float), &j.y));
        TRY(project(&j, x));
        TRY(suits_sequences(&j.r) ? lower_sequences(&j) : lower_steps(&j));
        x = j.y;
        x.access = ACCESS_READ;
    }
error:
    return status;
}
