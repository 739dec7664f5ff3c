/*
 * Dispatches of a sweep back over a recurrent net. Values that do not depend on later steps come
 * first, for all steps (recurrent_factors.comp). They are the slopes of the gates, stored in the
 * place of the gates' gradients, and two more factors. Then there are two ways. Either each
 * workgroup sweeps over all steps for one or a few batch rows (recurrent_sweep.comp). Or each step
 * is a dispatch over tiles of units and batch rows (recurrent_sweep_step.comp). Such a dispatch
 * first does the product that the one before has left, and the last one computes the gradient of
 * h0. W_hh is laid out once, so that each workgroup reads contiguous weights.
 */
#include "constants/sequence.h"
#include "op/movement/layout.h"
#include "op/sequence/recurrent_backward_choice.h"

typedef struct backward_job {
    lowering *l;
    uint32_t id;
    recurrent_sweep s;
    const recurrent_backward_attributes *attributes;
    const recurrent_backward_class *class;
    operand w, dy;   /* w: in its new layout */
    operand d, kept; /* kept: [B, S, Hd], twice for lstm; d stands in for rnn */
    uint32_t c_offset;
} backward_job;

/* If the operand is missing, w stands in for it. */
static operand optional(const backward_job *j, enum recurrent_optional which)
{
    uint32_t i = recurrent_sweep_optional(graph_node(j->l->graph, j->id), which);
    return i == NODE_NONE ? j->w : lower_input(j->l, j->id, i);
}

static bool is_given(const backward_job *j, enum recurrent_optional which)
{
    return j->attributes->given >> which & 1;
}

/* The gradient of an initial state (0: h, 1: c). */
static operand initial_state(const backward_job *j, uint32_t state)
{
    operand o = lower_write(j->l, j->id);
    uint64_t count = recurrent_sweep_state(&j->s);
    lower_narrow(j->l, &o, recurrent_sweep_result(&j->s) + state * count, count);
    return o;
}

/* Distance in words from the gradients of gates from x to those from h. */
static uint32_t second_part(const recurrent_sweep *s)
{
    return s->cell == RECURRENT_GRU ? (uint32_t)(s->batch * s->steps * s->rows) : 0;
}

/* ---- Factors ---- */

static rlxvk_status emit_factors(backward_job *j)
{
    const recurrent_sweep *s = &j->s;
    uint32_t threads = j->l->profile->workgroup_size, at_once = threads / RECURRENT_FACTOR_UNITS;
    bool gru = s->cell == RECURRENT_GRU, lstm = s->cell == RECURRENT_LSTM;
    operand x = lower_input(j->l, j->id, 0), h = lower_input(j->l, j->id, gru ? 1 : 0);
    operand before = gru ? lower_input(j->l, j->id, 2) : optional(j, BACKWARD_C0);
    operand d = writing(j->d), kept = j->kept;
    struct recurrent_factors_args args = {.batch = (uint32_t)s->batch,
                                          .steps = (uint32_t)s->steps,
                                          .hidden = (uint32_t)s->hidden,
                                          .parts = lstm ? 1 : divide_up(s->steps, at_once),
                                          .reversed = j->attributes->reversed,
                                          .has_before = gru || is_given(j, BACKWARD_C0),
                                          .x_offset = x.offset,
                                          .h_offset = h.offset,
                                          .before_offset = before.offset,
                                          .d_offset = d.offset,
                                          .second = second_part(s),
                                          .kept_offset = kept.offset,
                                          .c_offset = j->c_offset};
    const operand operands[] = {x, h, before, d, kept};
    dispatch dispatch = {.kernel = KERNEL_RECURRENT_FACTORS};
    SET_CONSTANTS(&dispatch, {LOCAL_SIZE, threads}, {RECURRENT_FACTORS_CELL, s->cell});
    lower_groups(j->l, &dispatch,
                 divide_up(s->hidden, RECURRENT_FACTOR_UNITS) * args.parts * s->batch);
    return lower_emit(j->l, &dispatch, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

/* Places the slopes and factors, and emits the dispatch that computes them. */
static rlxvk_status make_factors(backward_job *j)
{
    const recurrent_sweep *s = &j->s;
    uint64_t all = s->batch * s->steps * s->hidden;
    bool kept = s->cell == RECURRENT_LSTM || s->cell == RECURRENT_GRU;
    rlxvk_status status = RLXVK_OK;
    j->d = lower_update(j->l, j->id);
    j->kept = lower_input(j->l, j->id, 0); /* not read if there are no steps */
    if (all == 0)
        return RLXVK_OK;
    lower_narrow(j->l, &j->d, 0, recurrent_sweep_result(s));
    j->kept = j->d; /* rnn does not write it */
    if (kept)
        TRY(lower_temporary(j->l, sizeof(float) * all * s->states, &j->kept));
    j->c_offset = j->kept.offset + (uint32_t)(s->states == 2 ? all : 0);
    TRY(emit_factors(j));
    j->kept.access = ACCESS_READ;
error:
    return status;
}

/* ---- Weights ---- */

/* Copies [G Hd, Hd] to [tiles, G Hd, units of a tile], for `count` units from `first` on. These are
 * whole tiles or less than one. Places without a unit are never used. */
static rlxvk_status lay_out_units(const backward_job *j, uint64_t units, uint64_t first,
                                  uint64_t count, operand target)
{
    const recurrent_sweep *s = &j->s;
    rlxvk_shape shape =
        RLXVK_SHAPE((int64_t)MAX(count / units, 1), (int64_t)s->rows, (int64_t)MIN(count, units));
    strided_copy copy = layout_dense_copy(&shape);
    uint32_t w = recurrent_sweep_weights(graph_node(j->l->graph, j->id));
    copy.source_first = (int64_t)first;
    copy.source[0] = (int64_t)units;
    copy.source[1] = (int64_t)s->hidden;
    copy.source[2] = 1;
    copy.target_first = (int64_t)(first * s->rows);
    copy.target[0] = (int64_t)(s->rows * units);
    copy.target[1] = (int64_t)units;
    return layout_emit_copy(j->l, &copy, lower_input(j->l, j->id, w), target);
}

static rlxvk_status lay_out_weights(backward_job *j)
{
    const recurrent_sweep *s = &j->s;
    uint64_t quads = recurrent_backward_quads(j->class, s);
    uint64_t units = 4 * (j->class->quads ? j->class->quads : quads), left = s->hidden % units;
    operand target;
    rlxvk_status status;
    TRY(lower_temporary(j->l, 16 * quads * s->rows, &target));
    if (left < s->hidden)
        TRY(lay_out_units(j, units, 0, s->hidden - left, target));
    if (left)
        TRY(lay_out_units(j, units, s->hidden - left, left, target));
    j->w = reading(target);
error:
    return status;
}

/* How many rows of W_hh a thread loads at a time. There are enough to hide the latency of memory,
 * if registers last. */
static uint32_t rows_ahead(const backward_job *j)
{
    if (j->l->profile->portable)
        return 2;
    return j->class->rows == 1 ? 8 : 4;
}

/* ---- A workgroup alone ---- */

static rlxvk_status lower_sequences(const backward_job *j)
{
    const recurrent_sweep *s = &j->s;
    uint32_t lanes = recurrent_backward_lanes(s);
    uint32_t splits = recurrent_backward_splits(s, j->l->profile);
    bool initial = j->attributes->initial;
    operand dhn = optional(j, BACKWARD_DHN), dcn = optional(j, BACKWARD_DCN);
    operand unused = writing(j->d);
    operand dh0 = initial ? initial_state(j, 0) : unused;
    operand dc0 = initial && s->states == 2 ? initial_state(j, 1) : dh0;
    struct recurrent_sweep_args args = {.batch = (uint32_t)s->batch,
                                        .steps = (uint32_t)s->steps,
                                        .hidden = (uint32_t)s->hidden,
                                        .reversed = j->attributes->reversed,
                                        .seeds =
                                            (is_given(j, BACKWARD_DHN) ? RECURRENT_SEED_H : 0) |
                                            (is_given(j, BACKWARD_DCN) ? RECURRENT_SEED_C : 0),
                                        .initial = initial,
                                        .d_offset = j->d.offset,
                                        .second = second_part(s),
                                        .kept_offset = j->kept.offset,
                                        .c_offset = j->c_offset,
                                        .dy_offset = j->dy.offset,
                                        .dhn_offset = dhn.offset,
                                        .dcn_offset = dcn.offset,
                                        .dh0_offset = dh0.offset,
                                        .dc0_offset = dc0.offset};
    const operand operands[] = {j->d, reading(j->kept), j->w, j->dy, dhn, dcn, dh0, dc0};
    dispatch d = {.kernel = KERNEL_RECURRENT_SWEEP, .variant = j->class->row.name};
    SET_CONSTANTS(&d, {LOCAL_SIZE, lanes * splits}, {RECURRENT_SWEEP_CELL, s->cell},
                  {RECURRENT_SWEEP_ROWS, j->class->rows}, {RECURRENT_SWEEP_LANES, lanes},
                  {RECURRENT_SWEEP_SPLITS, splits}, {RECURRENT_SWEEP_AHEAD, rows_ahead(j)});
    lower_groups(j->l, &d, divide_up(s->batch, j->class->rows));
    return lower_emit(j->l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

/* ---- A dispatch a step ---- */

typedef struct step_job {
    const backward_job *j;
    uint64_t columns;   /* batch rows, rounded up to whole tiles */
    operand vectors[2]; /* factors for the next step's product, in turn */
    operand state;      /* dc, or the part of dh that bypasses the weights */
} step_job;

static rlxvk_status make_room(step_job *t)
{
    const backward_job *j = t->j;
    const recurrent_sweep *s = &j->s;
    uint64_t bytes = sizeof(float) * s->rows * t->columns;
    rlxvk_status status = RLXVK_OK;
    for (int i = 0; i < 2; i++)
        TRY(lower_temporary(j->l, bytes, &t->vectors[i]));
    if (j->attributes->initial && s->states == 2)
        t->state = initial_state(j, 1);
    else
        TRY(lower_temporary(j->l, sizeof(float) * recurrent_sweep_state(s), &t->state));
error:
    return status;
}

/* How the step uses `previous`, `before` and `next`. Step s.steps only ends the sweep. */
static uint32_t step_flags(const backward_job *j, uint64_t step)
{
    bool lstm = j->s.cell == RECURRENT_LSTM, gru = j->s.cell == RECURRENT_GRU;
    uint32_t flags = step == j->s.steps ? RECURRENT_SWEEP_ENDS : 0;
    if (step > 0)
        return flags | RECURRENT_SWEEP_MULTIPLIES | (lstm || gru ? RECURRENT_SWEEP_CONTINUES : 0);
    return flags | (is_given(j, BACKWARD_DHN) ? RECURRENT_SWEEP_SEEDED : 0) |
           (is_given(j, BACKWARD_DCN) ? RECURRENT_SWEEP_CONTINUES : 0);
}

/* The places of a step. Steps are counted back from the net's last one. */
static struct recurrent_sweep_step_args step_arguments(const step_job *t, uint64_t step)
{
    const backward_job *j = t->j;
    const recurrent_sweep *s = &j->s;
    uint64_t last = MAX(s->steps, 1) - 1, counted = MIN(step, last);
    uint64_t at = j->attributes->reversed ? counted : last - counted;
    uint32_t state_at = (uint32_t)(at * s->hidden);
    return (struct recurrent_sweep_step_args){.batch = (uint32_t)s->batch,
                                              .hidden = (uint32_t)s->hidden,
                                              .columns = (uint32_t)t->columns,
                                              .flags = step_flags(j, step),
                                              .d_first = j->d.offset + (uint32_t)(at * s->rows),
                                              .d_batch = (uint32_t)(s->steps * s->rows),
                                              .second = second_part(s),
                                              .kept_first = j->kept.offset + state_at,
                                              .c_first = j->c_offset + state_at,
                                              .state_batch = (uint32_t)(s->steps * s->hidden),
                                              .dy_first = j->dy.offset + state_at};
}

static rlxvk_status emit_step(const step_job *t, uint64_t step)
{
    const backward_job *j = t->j;
    const recurrent_sweep *s = &j->s;
    const recurrent_backward_class *c = j->class;
    struct recurrent_sweep_step_args args = step_arguments(t, step);
    operand previous = step ? reading(t->vectors[step % 2]) : optional(j, BACKWARD_DHN);
    operand next = step == s->steps ? initial_state(j, 0) : t->vectors[(step + 1) % 2];
    operand before = step ? reading(t->state) : optional(j, BACKWARD_DCN),
            after = writing(t->state);
    args.previous_offset = previous.offset;
    args.next_offset = next.offset;
    args.before_offset = before.offset;
    args.after_offset = after.offset;
    const operand operands[] = {j->d, reading(j->kept), j->w, j->dy, previous, next, before, after};
    dispatch d = {.kernel = KERNEL_RECURRENT_SWEEP_STEP, .variant = c->row.name};
    SET_CONSTANTS(&d, {LOCAL_SIZE, recurrent_backward_threads(c, s, j->l->profile)},
                  {RECURRENT_SWEEP_STEP_CELL, s->cell}, {RECURRENT_SWEEP_STEP_QUADS, c->quads},
                  {RECURRENT_SWEEP_STEP_BANDS, c->bands}, {RECURRENT_SWEEP_STEP_ROWS, c->rows},
                  {RECURRENT_SWEEP_STEP_AHEAD, rows_ahead(j)});
    lower_groups(j->l, &d,
                 recurrent_backward_quads(c, s) / c->quads * (t->columns / (c->bands * c->rows)));
    return lower_emit(j->l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status lower_steps(const backward_job *j)
{
    const recurrent_backward_class *c = j->class;
    step_job t = {.j = j, .columns = round_up(j->s.batch, (uint64_t)c->bands * c->rows)};
    uint64_t count = j->s.steps + j->attributes->initial;
    rlxvk_status status;
    TRY(make_room(&t));
    for (uint64_t step = 0; step < count; step++)
        TRY(emit_step(&t, step));
error:
    return status;
}

rlxvk_status recurrent_backward_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    uint32_t weights = recurrent_sweep_weights(n);
    backward_job j = {.l = l,
                      .id = id,
                      .s = recurrent_sweep_of(l->graph, n),
                      .attributes = n->attributes,
                      .w = lower_input(l, id, weights)};
    size_t forced = variant_choose(l, CHOICE_recurrent_backward, NULL, NULL);
    rlxvk_status status;
    j.class = recurrent_backward_choose(&j.s, l->profile, forced);
    j.dy = j.s.steps ? lower_input(l, id, weights + 1) : j.w;
    TRY(make_factors(&j));
    TRY(lay_out_weights(&j));
    status = j.class->quads ? lower_steps(&j) : lower_sequences(&j);
error:
    return status;
}
