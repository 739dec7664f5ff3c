/*
 * Lowers attention_step. It is one dispatch if the kernel for few rows takes it and the device has
 * enough bindings. Otherwise three steps follow each other: append new rows to the caches, rotate
 * queries, and compute attention over the caches.
 */
#include "op/attention/attention_step.h"
#include "constants/attention.h"
#include "op/attention/attention_lower.h"

typedef struct step_job {
    const rlxvk_attention_step_options *o;
    attention_job attention; /* operands: q, both caches, position, y */
    operand new_k, new_v, cosines, sines;
    uint32_t new_k_row, new_v_row; /* elements from one new row to the next */
} step_job;

/* q may have any strides if columns are contiguous. Rows of k and v must also be equally far
 * apart. */
bool attention_step_accepts_strides(const rlxvk_graph *g, const node *n, uint32_t i,
                                    const int64_t *strides)
{
    if (i > STEP_V)
        return false;
    const int64_t *dims = input_shape(g, n, i)->dims;
    bool even = dims[0] == 1 || dims[1] == 1 || strides[0] == dims[1] * strides[1];
    return strides[2] == 1 && (i == STEP_Q || even);
}

/* The distance of rows in [B, n, ..], in elements. */
static uint32_t row_pitch(const lowering *l, uint32_t id, enum attention_step_operand i)
{
    const node *n = graph_node(l->graph, id);
    int64_t strides[RLXVK_MAX_RANK];
    lower_strides(l, n->inputs[i], strides);
    return (uint32_t)strides[input_shape(l->graph, n, (uint32_t)i)->dims[1] == 1 ? 0 : 1];
}

/* The operand, with its offset at the tensor's first column. */
static operand new_rows(const lowering *l, uint32_t id, enum attention_step_operand i)
{
    operand rows = lower_input(l, id, (uint32_t)i);
    rows.offset += (uint32_t)attention_step_column(graph_node(l->graph, id)->attributes, i);
    return rows;
}

/* How is the cache held? An F16 cache is not packed if it has other readers that take only
 * words. */
static uint32_t held_as(const lowering *l, uint32_t id, enum attention_step_operand i)
{
    if (lower_input(l, id, (uint32_t)i).storage == STORAGE_HALF)
        return ATTENTION_HALVES;
    return input_dtype(l->graph, graph_node(l->graph, id), (uint32_t)i) == RLXVK_F16
               ? ATTENTION_ROUNDED
               : ATTENTION_WORDS;
}

/* Without rotation no table is read, but the bindings need some operand. */
static step_job make_job(const lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    step_job j = {.o = &((const attention_step_attributes *)n->attributes)->options,
                  .new_k = new_rows(l, id, STEP_K),
                  .new_v = new_rows(l, id, STEP_V),
                  .new_k_row = row_pitch(l, id, STEP_K),
                  .new_v_row = row_pitch(l, id, STEP_V)};
    bool rotates = j.o->n_rot > 0;
    int64_t q[RLXVK_MAX_RANK];
    lower_strides(l, n->inputs[STEP_Q], q);
    j.cosines = rotates ? lower_input(l, id, STEP_COS) : j.new_k;
    j.sines = rotates ? lower_input(l, id, STEP_SIN) : j.new_k;
    j.attention =
        (attention_job){.a = attention_step_geometry(n, input_shape(l->graph, n, STEP_KEYS),
                                                     input_shape(l->graph, n, STEP_POSITION)),
                        .mask = ATTENTION_POSITION,
                        .held = {held_as(l, id, STEP_KEYS), held_as(l, id, STEP_VALUES)},
                        .window = (uint32_t)j.o->window,
                        .scale = j.o->score_scale,
                        .softcap = j.o->softcap,
                        .operands = {new_rows(l, id, STEP_Q), lower_update(l, n->inputs[STEP_KEYS]),
                                     lower_update(l, n->inputs[STEP_VALUES]),
                                     lower_input(l, id, STEP_POSITION), lower_write(l, id)}};
    const attention_geometry *a = &j.attention.a;
    j.attention.q = (attention_strides){(uint32_t)q[0], a->q.head, (uint32_t)q[1]};
    j.attention.k = j.attention.v = a->kv;
    j.attention.y = a->q;
    return j;
}

static struct rotation_table table_of(const lowering *l, uint32_t id, const step_job *j)
{
    const node *n = graph_node(l->graph, id);
    if (j->o->n_rot == 0)
        return (struct rotation_table){0};
    return (struct rotation_table){j->cosines.offset, j->sines.offset,
                                   (uint32_t)input_shape(l->graph, n, STEP_COS)->dims[1]};
}

/* ---- One dispatch ---- */

_Static_assert((int)ATTENTION_STEP_MASK == (int)ATTENTION_DECODE_MASK &&
                   (int)ATTENTION_STEP_JOIN == (int)ATTENTION_DECODE_JOIN &&
                   (int)ATTENTION_STEP_HALF_SUBNORMALS == (int)ATTENTION_DECODE_HALF_SUBNORMALS,
               "attention_decode.glsl has the constants of both");

/* Does everything that is read by quads start at a multiple of 4 elements? This includes new rows,
 * tables and the halves that a rotation exchanges. */
static bool has_whole_quads(const struct attention_step_args *a, const step_job *j)
{
    const struct rotation_table *table = &a->table;
    uint32_t all = a->new_k | j->new_k_row | a->new_v | j->new_v_row | table->cos_offset |
                   table->sin_offset | table->columns;
    return attention_has_whole_quads(&a->attention) && all % 4 == 0 && j->o->n_rot % 8 == 0;
}

static rlxvk_status emit_step(lowering *l, uint32_t id, step_job *j)
{
    const attention_job *a = &j->attention;
    attention_set_arguments(&j->attention);
    struct attention_step_args arguments = {.attention = a->arguments,
                                            .table = table_of(l, id, j),
                                            .new_k = j->new_k.offset,
                                            .new_v = j->new_v.offset};
    dispatch d = {.kernel = KERNEL_ATTENTION_STEP, .node = id, .variant = a->plan.class->row.name};
    operand memory[2];
    rlxvk_status status;
    j->attention.plan.joins = a->plan.chunk != 0;
    TRY(attention_join_memory(l, a, memory));
    operand operands[] = {a->operands[0], a->operands[1], a->operands[2], a->operands[3],
                          a->operands[4], memory[0],      memory[1],      j->new_k,
                          j->new_v,       j->cosines,     j->sines};
    attention_set_rows(l, a, &d);
    SET_CONSTANTS(&d, {ATTENTION_STEP_WHOLE, has_whole_quads(&arguments, j)},
                  {ATTENTION_STEP_ROTATED, (uint32_t)j->o->n_rot},
                  {ATTENTION_STEP_NEIGHBOURS, j->o->style == RLXVK_ROPE_GPTJ},
                  {ATTENTION_STEP_NEW_ROWS, (uint32_t)a->a.queries},
                  {ATTENTION_STEP_K_ROW, j->new_k_row}, {ATTENTION_STEP_V_ROW, j->new_v_row});
    lower_groups(l, &d, a->plan.blocks * a->plan.chunks);
    TRY(lower_emit(l, &d, &arguments, sizeof arguments, operands, ARRAY_COUNT(operands)));
error:
    return status;
}

/* ---- Step by step ---- */

static rlxvk_status emit_append(lowering *l, uint32_t id, const step_job *j)
{
    const attention_geometry *a = &j->attention.a;
    const operand *o = j->attention.operands;
    operand operands[] = {o[1], o[2], o[3], j->new_k, j->new_v, j->cosines, j->sines};
    uint32_t rows = (uint32_t)(a->batch * a->queries);
    struct attention_append_args arguments = {.numel = rows * (uint32_t)(a->kv_heads * a->width),
                                              .rows = (uint32_t)a->queries,
                                              .heads = (uint32_t)a->kv_heads,
                                              .width = (uint32_t)a->width,
                                              .capacity = (uint32_t)a->keys,
                                              .k_offset = o[1].offset,
                                              .v_offset = o[2].offset,
                                              .position_offset = o[3].offset,
                                              .new_k = j->new_k.offset,
                                              .new_v = j->new_v.offset,
                                              .new_k_row = j->new_k_row,
                                              .new_v_row = j->new_v_row,
                                              .placed = a->placed,
                                              .entries = (uint32_t)a->entries,
                                              .table = table_of(l, id, j)};
    dispatch d = {.kernel = KERNEL_ATTENTION_APPEND, .node = id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size},
                  {ATTENTION_APPEND_ROTATED, (uint32_t)j->o->n_rot},
                  {ATTENTION_APPEND_NEIGHBOURS, j->o->style == RLXVK_ROPE_GPTJ},
                  {ATTENTION_APPEND_K_HELD, j->attention.held[0]},
                  {ATTENTION_APPEND_V_HELD, j->attention.held[1]});
    const uint32_t *held = j->attention.held;
    uint32_t unit = held[0] == ATTENTION_HALVES || held[1] == ATTENTION_HALVES ? 2 : 1;
    lower_groups(l, &d, divide_up(arguments.numel / unit, l->profile->workgroup_size));
    d.order.run = 1;
    return lower_emit(l, &d, &arguments, sizeof arguments, operands, ARRAY_COUNT(operands));
}

/* Rotates q. The result replaces q as the attention's operand. */
static rlxvk_status emit_rotation(lowering *l, uint32_t id, step_job *j)
{
    const attention_geometry *a = &j->attention.a;
    uint32_t row = (uint32_t)(a->heads * a->width), rows = (uint32_t)(a->batch * a->queries);
    operand *q = &j->attention.operands[0], rotated;
    struct rope_args arguments = {.pairs = rows * row / 2,
                                  .row_pairs = row / 2,
                                  .head_pairs = (uint32_t)a->width / 2,
                                  .rotated_pairs = (uint32_t)j->o->n_rot / 2,
                                  .sequence = (uint32_t)a->queries,
                                  .batch_rows = (uint32_t)a->queries,
                                  .table_batch = (uint32_t)a->queries,
                                  .cos_row = table_of(l, id, j).columns,
                                  .sin_row = table_of(l, id, j).columns,
                                  .x_batch = j->attention.q.batch,
                                  .x_row = j->attention.q.seq};
    rlxvk_status status = RLXVK_OK;
    if (j->o->n_rot == 0)
        return status;
    TRY(lower_temporary(l, sizeof(float) * rows * row, &rotated));
    TRY(rope_emit(l, id, &arguments, (operand[]){*q, j->cosines, j->sines, rotated},
                  j->o->style == RLXVK_ROPE_GPTJ, false));
    *q = rotated;
    q->access = ACCESS_READ;
    j->attention.q = a->q;
error:
    return status;
}

static rlxvk_status emit_in_order(lowering *l, uint32_t id, step_job *j)
{
    operand *caches = &j->attention.operands[1];
    rlxvk_status status;
    TRY(emit_append(l, id, j));
    TRY(emit_rotation(l, id, j));
    caches[0].access = caches[1].access = ACCESS_READ;
    TRY(attention_job_emit(l, id, &j->attention));
error:
    return status;
}

rlxvk_status attention_step_lower(lowering *l, uint32_t id)
{
    step_job j = make_job(l, id);
    if (j.attention.a.batch == 0 || j.attention.a.queries == 0)
        return RLXVK_OK;
    attention_job_plan(l, &j.attention);
    bool bindable =
        kernel_find(KERNEL_ATTENTION_STEP)->binding_count <= l->profile->storage_buffers_per_stage;
    bool joinable = !j.attention.plan.chunk || attention_may_join(l->profile);
    if (bindable && joinable && j.attention.plan.class->form == ATTENTION_FORM_ROWS)
        return emit_step(l, id, &j);
    return emit_in_order(l, id, &j);
}
