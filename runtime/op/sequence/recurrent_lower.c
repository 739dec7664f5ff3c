/*
 * Dispatches of a recurrent layer. W_ih x + b is one product for all steps and both directions, p
 * [B, S, D, G Hd]. Then there are three ways through the time steps:
 *
 *   recurrent.comp        One workgroup per sequence does all steps, with the state in shared
 *                         memory. W_hh is transposed first, so that lanes read neighbours.
 *   recurrent_tile.c      Each step is a dispatch over tiles of units and batch rows.
 *   recurrent_step.comp   Each step is a dispatch over a few units. It reads the previous h from y.
 *
 * The last two are for nets whose W_hh would take one workgroup too long to read. Both keep c in
 * its final place.
 */
#include "args/elementwise.h"
#include "args/sequence.h"
#include "constants/sequence.h"
#include "op/movement/layout.h"
#include "op/matmul/matmul.h"
#include "op/sequence/recurrent_job.h"

/* p = x W_ih^T + bias. */
static rlxvk_status project(recurrent_job *j, operand x)
{
    const recurrent_geometry *r = &j->r;
    uint64_t columns = recurrent_columns(r, j->layer), rows = r->directions * r->rows;
    operand bias = recurrent_layer_part(j, 3, j->layer * rows, rows);
    rlxvk_shape a = RLXVK_SHAPE((int64_t)(r->batch * r->steps), (int64_t)columns);
    rlxvk_shape b = RLXVK_SHAPE((int64_t)rows, (int64_t)columns);
    rlxvk_status status;
    TRY(lower_temporary(j->l, r->batch * r->steps * rows * sizeof(float), &j->p));
    matmul_request request = {.a = x,
                              .b = recurrent_layer_part(j, 1, recurrent_input_weights(r, j->layer),
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

/* ---- A workgroup per sequence ---- */

/* [D, G Hd, Hd] -> [D, Hd, G Hd] */
static rlxvk_status transpose_weights(const recurrent_job *j, operand *out)
{
    const recurrent_geometry *r = &j->r;
    rlxvk_shape shape = RLXVK_SHAPE((int64_t)r->directions, (int64_t)r->hidden, (int64_t)r->rows);
    strided_copy copy = layout_dense_copy(&shape);
    rlxvk_status status;
    copy.source[0] = (int64_t)(r->rows * r->hidden);
    copy.source[1] = 1;
    copy.source[2] = (int64_t)r->hidden;
    TRY(lower_temporary(j->l, shape_numel(&shape) * sizeof(float), out));
    TRY(layout_emit_copy(j->l, &copy, recurrent_hidden_weights(j), *out));
    out->access = ACCESS_READ;
error:
    return status;
}

/* One invocation for each row of W_hh, if the device allows so many. A workgroup has a compute unit
 * to itself and mostly waits for memory, so many reads should be in flight. */
static uint32_t sequence_threads(const recurrent_job *j)
{
    const device_profile *profile = j->l->profile;
    uint32_t threads = profile->workgroup_size;
    while (threads < j->r.rows && threads < 1024 &&
           2 * threads <= profile->max_workgroup_invocations)
        threads *= 2;
    return threads;
}

static rlxvk_status lower_sequences(const recurrent_job *j, const recurrent_class *class)
{
    const recurrent_geometry *r = &j->r;
    operand w, p = reading(j->p), bias = recurrent_hidden_bias(j);
    operand h0 = recurrent_initial_state(j, 0), c0 = recurrent_initial_state(j, 1);
    operand hn = j->carry ? recurrent_final_state(j, 0) : j->y;
    operand cn = j->carry && r->states == 2 ? recurrent_final_state(j, 1) : hn;
    dispatch d = {.kernel = KERNEL_RECURRENT, .variant = class->row.name};
    rlxvk_status status;
    TRY(transpose_weights(j, &w));
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

static struct recurrent_step_args step_arguments(const recurrent_job *j, uint64_t step)
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
    recurrent_step_places(j, step, args.p_first, args.y_first);
    for (uint64_t d = 0; d < r->directions; d++) /* the previous step is a step back, or on */
        args.h_first[d] = step ? args.y_first[d] + (uint32_t)(d ? units : 0 - units)
                               : (uint32_t)(d * r->batch * r->hidden);
    return args;
}

/* Do the rows of W_hh and of h, in either direction, begin with a quad? */
static bool has_whole_quads(const struct recurrent_step_args *a)
{
    return (a->hidden | a->w_offset | a->h_batch | a->h_first[0] | a->h_first[1]) % 4 == 0;
}

static rlxvk_status emit_step(const recurrent_job *j, const recurrent_class *class, uint64_t step,
                              operand c)
{
    const recurrent_geometry *r = &j->r;
    operand p = reading(j->p), w = recurrent_hidden_weights(j), bias = recurrent_hidden_bias(j);
    operand h = reading(j->y), c0 = reading(c);
    struct recurrent_step_args args = step_arguments(j, step);
    uint32_t rows = r->batch > 1 ? 4 : 1, units = RECURRENT_STEP_THREADS / RECURRENT_STEP_LANES;
    dispatch d = {.kernel = KERNEL_RECURRENT_STEP, .variant = class->row.name};
    if (step == 0) {
        h = recurrent_initial_state(j, 0);
        c0 = recurrent_initial_state(j, 1);
        for (uint64_t k = 0; k < r->directions; k++)
            args.h_first[k] += h.offset;
    }
    args.w_offset = w.offset;
    args.bias_offset = bias.offset;
    args.c0_offset = c0.offset;
    args.c_offset = c.offset;
    const operand operands[] = {p, w, bias, h, c0, j->y, writing(c)};
    SET_CONSTANTS(&d, {LOCAL_SIZE, RECURRENT_STEP_THREADS}, {RECURRENT_STEP_CELL, j->cell},
                  {RECURRENT_STEP_ROWS, rows}, {RECURRENT_STEP_WHOLE, has_whole_quads(&args)});
    lower_groups(j->l, &d, divide_up(r->hidden, units) * r->directions * divide_up(r->batch, rows));
    return lower_emit(j->l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status lower_steps(const recurrent_job *j, const recurrent_class *class)
{
    const recurrent_geometry *r = &j->r;
    operand c;
    rlxvk_status status;
    TRY(recurrent_cell_state(j, &c));
    for (uint64_t step = 0; step < r->steps; step++)
        TRY(emit_step(j, class, step, c));
    if (j->carry)
        TRY(recurrent_copy_last(j));
error:
    return status;
}

/* ---- All layers ---- */

/* Without steps the final states are the initial ones. */
static rlxvk_status copy_states(recurrent_job *j)
{
    rlxvk_shape shape = RLXVK_SHAPE((int64_t)recurrent_layer_state(&j->r));
    strided_copy copy = layout_dense_copy(&shape);
    rlxvk_status status = RLXVK_OK;
    copy.source[0] = 1;
    for (j->layer = 0; j->layer < j->r.layers; j->layer++)
        for (uint32_t i = 0; i < j->r.states; i++)
            TRY(layout_emit_copy(j->l, &copy, recurrent_initial_state(j, i),
                                 recurrent_final_state(j, i)));
error:
    return status;
}

static rlxvk_status lower_layer(const recurrent_job *j)
{
    size_t forced = variant_choose(j->l, CHOICE_recurrent, NULL, NULL);
    const recurrent_class *c = recurrent_choose(&j->r, j->l->profile, forced);
    if (c->way == RECURRENT_TILES)
        return recurrent_lower_tiles(j, c);
    return c->way == RECURRENT_STEPS ? lower_steps(j, c) : lower_sequences(j, c);
}

rlxvk_status recurrent_lower(lowering *l, uint32_t id)
{
    recurrent_job j = recurrent_job_make(l, id);
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
        TRY(lower_layer(&j));
        x = reading(j.y);
    }
error:
    return status;
}
