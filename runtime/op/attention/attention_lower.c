/*
 * Lowers an attention node: arguments and operands for the kernel that attention_choice.c chose. If
 * keys are split and the first dispatch does not join the chunks itself, a second one does.
 */
#include "op/attention/attention_lower.h"
#include "constants/attention.h"
#include "op/attention/attention_matrix.h"

static uint32_t mask_code(rlxvk_attention_mask mask)
{
    static const uint32_t codes[] = {ATTENTION_BAND, ATTENTION_BAND, ATTENTION_BAND,
                                     ATTENTION_CUSTOM, ATTENTION_BIAS};
    return codes[mask];
}

static bool is_masked(const attention_job *j)
{
    return j->mask == ATTENTION_CUSTOM || j->mask == ATTENTION_BIAS;
}

static attention_shape shape_of(const attention_job *j)
{
    const attention_geometry *a = &j->a;
    return (attention_shape){.batch = (uint64_t)a->batch,
                             .heads = (uint64_t)a->heads,
                             .kv_heads = (uint64_t)a->kv_heads,
                             .queries = (uint64_t)a->queries,
                             .keys = (uint64_t)a->keys,
                             .width = (uint64_t)a->width,
                             .new_rows = j->mask == ATTENTION_POSITION ? (uint64_t)a->queries : 0};
}

/* The axes that the mask has, as flags. An axis of 1 has stride 0, so it is not one of them. */
static uint32_t axes_of(const attention_job *j)
{
    const attention_geometry *a = &j->a;
    return (a->mask_batch ? ATTENTION_MASK_BATCH : 0) | (a->mask_head ? ATTENTION_MASK_HEAD : 0) |
           (a->mask_query ? ATTENTION_MASK_QUERY : 0) | (a->mask_key ? ATTENTION_MASK_KEY : 0) |
           (j->y.head == a->width ? ATTENTION_ROWS_FIRST : 0) |
           (a->placed ? ATTENTION_PLACED | (uint32_t)a->entries << ATTENTION_ENTRIES : 0);
}

void attention_set_arguments(attention_job *j)
{
    const attention_geometry *a = &j->a;
    uint64_t results = (uint64_t)(a->batch * a->heads * a->queries * a->width);
    uint32_t y = j->operands[4].offset;
    j->arguments = (struct attention_args){.batch = (uint32_t)a->batch,
                                           .heads = (uint32_t)a->heads,
                                           .group = (uint32_t)(a->heads / a->kv_heads),
                                           .queries = (uint32_t)a->queries,
                                           .keys = (uint32_t)a->keys,
                                           .width = (uint32_t)a->width,
                                           .q_offset = j->operands[0].offset,
                                           .q_batch = j->q.batch,
                                           .q_head = j->q.head,
                                           .q_seq = j->q.seq,
                                           .k_offset = j->operands[1].offset,
                                           .k_batch = j->k.batch,
                                           .k_head = j->k.head,
                                           .k_seq = j->k.seq,
                                           .v_offset = j->operands[2].offset,
                                           .v_batch = j->v.batch,
                                           .v_head = j->v.head,
                                           .v_seq = j->v.seq,
                                           .y_offset = y,
                                           .mask_offset = j->operands[3].offset,
                                           .axes = axes_of(j),
                                           .lse_offset = j->with_lse ? y + (uint32_t)results
                                                                     : ATTENTION_NO_LSE,
                                           .reach = j->reach,
                                           .window = j->window,
                                           .chunk = j->plan.chunk,
                                           .scale = j->scale,
                                           .softcap = j->softcap};
}

bool attention_has_whole_quads(const struct attention_args *a)
{
    uint32_t all = a->width | a->q_offset | a->q_batch | a->q_head | a->q_seq | a->k_offset |
                   a->k_batch | a->k_head | a->k_seq | a->v_offset | a->v_batch | a->v_head |
                   a->v_seq | a->y_offset;
    return all % 4 == 0;
}

/* ---- Rows ---- */

/* Software drivers compile slowly, so they get one kernel for many shapes. */
void attention_set_rows(const lowering *l, const attention_job *j, dispatch *d)
{
    const attention_plan *p = &j->plan;
    const attention_geometry *a = &j->a;
    bool compiled = !(p->class->row.settings & ON_PORTABLE);
    SET_CONSTANTS(d, {LOCAL_SIZE, p->threads}, {ATTENTION_DECODE_MASK, j->mask},
                  {ATTENTION_DECODE_SOFTCAP, j->softcap > 0},
                  {ATTENTION_DECODE_WHOLE, attention_has_whole_quads(&j->arguments)},
                  {ATTENTION_DECODE_ROWS, p->rows}, {ATTENTION_DECODE_LANES, p->lanes},
                  {ATTENTION_DECODE_QUADS, p->lane_quads}, {ATTENTION_DECODE_KEYS, p->keys},
                  {ATTENTION_DECODE_CHUNK, p->tile_keys},
                  {ATTENTION_DECODE_GROUPS, p->threads / p->lanes},
                  {ATTENTION_DECODE_JOIN, p->joins}, {ATTENTION_DECODE_K_HELD, j->held[0]},
                  {ATTENTION_DECODE_V_HELD, j->held[1]},
                  {ATTENTION_DECODE_HALF_SUBNORMALS, l->profile->half_subnormals},
                  {ATTENTION_DECODE_WIDTH, compiled ? (uint32_t)a->width : 0},
                  {ATTENTION_DECODE_QUERIES, compiled ? (uint32_t)a->queries : 0},
                  {ATTENTION_DECODE_SHARERS, compiled ? (uint32_t)(a->heads / a->kv_heads) : 0},
                  {ATTENTION_DECODE_KV_HEADS, compiled ? (uint32_t)a->kv_heads : 0});
}

rlxvk_status attention_join_memory(lowering *l, const attention_job *j, operand out[2])
{
    attention_shape shape = shape_of(j);
    uint32_t *zeros = NULL;
    rlxvk_status status = RLXVK_OK;
    out[0] = out[1] = j->operands[4];
    if (j->plan.chunk)
        TRY(lower_temporary(l, sizeof(float) * attention_partial_words(&j->plan, &shape), &out[0]));
    if (!j->plan.joins)
        return RLXVK_OK;
    zeros = memory_zeroed(j->plan.blocks, sizeof *zeros);
    TRY(zeros ? RLXVK_OK : status_fail_memory("attention counters"));
    TRY(lower_constant(l, zeros, j->plan.blocks * sizeof *zeros, &out[1]));
    out[0].access = out[1].access = ACCESS_READ | ACCESS_WRITE;
error:
    memory_free(zeros);
    return status;
}

static rlxvk_status emit_rows(lowering *l, uint32_t id, const attention_job *j,
                              const operand memory[2])
{
    operand operands[7] = {j->operands[0], j->operands[1], j->operands[2], j->operands[3],
                           j->operands[4], memory[0],      memory[1]};
    dispatch d = {.kernel = KERNEL_ATTENTION_DECODE,
                  .node = id,
                  .variant = j->plan.class->row.name};
    attention_set_rows(l, j, &d);
    lower_groups(l, &d, j->plan.blocks * j->plan.chunks);
    return lower_emit(l, &d, &j->arguments, sizeof j->arguments, operands, ARRAY_COUNT(operands));
}

/* ---- Tiles ---- */

/* Every `each` workgroups make the next rows of queries. All batches advance together. With cycles,
 * one batch comes after the other. */
static group_order order_of(const attention_job *j, uint64_t each, uint64_t cycle, uint64_t cycles)
{
    const attention_geometry *a = &j->a;
    bool rows_first = j->y.head == a->width;
    if (j->with_lse)
        return (group_order){0};
    return (group_order){.run = a->batch == 1 && (rows_first || a->heads == 1) ? (uint32_t)each : 0,
                         .span = (uint64_t)(a->queries * a->width * (rows_first ? a->heads : 1)),
                         .cycle = (uint32_t)cycle,
                         .cycles = (uint32_t)cycles,
                         .rows_run = (uint32_t)each};
}

/* Emits all chunks. They write to `out`: y, or partial results. */
static rlxvk_status emit_tiles(lowering *l, uint32_t id, const attention_job *j, operand out)
{
    const attention_plan *p = &j->plan;
    const attention_class *c = p->class;
    operand operands[5] = {j->operands[0], j->operands[1], j->operands[2], j->operands[3], out};
    dispatch d = {.kernel = KERNEL_ATTENTION_PREFILL, .node = id, .variant = c->row.name};
    SET_CONSTANTS(&d, {LOCAL_SIZE, p->threads}, {ATTENTION_PREFILL_MASK, j->mask},
                  {ATTENTION_PREFILL_SOFTCAP, j->softcap > 0},
                  {ATTENTION_PREFILL_WHOLE, attention_has_whole_quads(&j->arguments)},
                  {ATTENTION_PREFILL_ROW_THREADS, p->threads / c->column_threads},
                  {ATTENTION_PREFILL_COLUMN_THREADS, c->column_threads},
                  {ATTENTION_PREFILL_ROW_QUADS, c->row_quads},
                  {ATTENTION_PREFILL_KEY_QUADS, c->key_quads},
                  {ATTENTION_PREFILL_COLUMN_QUADS, p->column_quads},
                  {ATTENTION_PREFILL_VALUE_KEYS, p->value_keys},
                  {ATTENTION_PREFILL_UNROLL, p->unroll}, {ATTENTION_PREFILL_K_HELD, j->held[0]},
                  {ATTENTION_PREFILL_V_HELD, j->held[1]},
                  {ATTENTION_PREFILL_HALF_SUBNORMALS, l->profile->half_subnormals});
    lower_groups(l, &d, p->blocks * p->chunks);
    d.order = order_of(j, (uint64_t)(j->a.batch * j->a.heads) * p->chunks, 0, 0);
    return lower_emit(l, &d, &j->arguments, sizeof j->arguments, operands, ARRAY_COUNT(operands));
}

/* ---- Joining chunks ---- */

static rlxvk_status emit_merge(lowering *l, uint32_t id, const attention_job *j, operand partial)
{
    const struct attention_args *a = &j->arguments;
    operand operands[2] = {partial, j->operands[4]};
    struct attention_merge_args arguments = {.rows = a->batch * a->heads * a->queries,
                                             .chunks = (uint32_t)j->plan.chunks,
                                             .width = a->width,
                                             .heads = a->heads,
                                             .queries = a->queries,
                                             .y_offset = a->y_offset,
                                             .y_batch = j->y.batch,
                                             .y_head = j->y.head,
                                             .y_seq = j->y.seq,
                                             .lse_offset = a->lse_offset};
    uint32_t threads = l->profile->workgroup_size;
    uint32_t lanes = power_of_two_from(divide_up(a->width, 4), threads);
    dispatch d = {.kernel = KERNEL_ATTENTION_MERGE, .node = id};
    operands[0].access = ACCESS_READ;
    SET_CONSTANTS(&d, {LOCAL_SIZE, threads}, {ATTENTION_MERGE_LANES, lanes},
                  {ATTENTION_MERGE_GROUPS, threads / lanes},
                  {ATTENTION_MERGE_NATURAL, j->mask == ATTENTION_BIAS});
    lower_groups(l, &d, arguments.rows);
    d.order = order_of(j, a->heads, (uint64_t)a->heads * a->queries, (uint64_t)j->a.batch);
    return lower_emit(l, &d, &arguments, sizeof arguments, operands, ARRAY_COUNT(operands));
}

/* ---- On matrix units, in precision F16 or BF16 ---- */

static rlxvk_status emit_matrix(lowering *l, uint32_t id, const attention_job *j,
                                const attention_matrix_plan *p)
{
    dispatch d = {.kernel = l->precision == RLXVK_PRECISION_BF16 ? KERNEL_ATTENTION_MATRIX_BF16
                                                                 : KERNEL_ATTENTION_MATRIX_F16,
                  .node = id,
                  .variant = "matrix"};
    SET_CONSTANTS(&d, {LOCAL_SIZE, p->threads}, {ATTENTION_MATRIX_SOFTCAP, j->softcap > 0},
                  {ATTENTION_MATRIX_WHOLE, attention_has_whole_quads(&j->arguments)},
                  {ATTENTION_MATRIX_WIDTH, j->arguments.width},
                  {ATTENTION_MATRIX_UNIT_M, p->unit.m}, {ATTENTION_MATRIX_UNIT_N, p->unit.n},
                  {ATTENTION_MATRIX_UNIT_K, p->unit.k}, {ATTENTION_MATRIX_PARTS, p->parts},
                  {ATTENTION_MATRIX_ROWS, p->rows}, {ATTENTION_MATRIX_TILE_KEYS, p->tile},
                  {ATTENTION_MATRIX_DIRECT, p->direct}, {ATTENTION_MATRIX_MASK, j->mask},
                  {ATTENTION_MATRIX_K_HELD, j->held[0]}, {ATTENTION_MATRIX_V_HELD, j->held[1]},
                  {ATTENTION_MATRIX_HALF_SUBNORMALS, l->profile->half_subnormals});
    lower_groups(l, &d, p->blocks);
    return lower_emit(l, &d, &j->arguments, sizeof j->arguments, j->operands,
                      ARRAY_COUNT(j->operands));
}

/* ---- Choice ---- */

void attention_job_plan(lowering *l, attention_job *j)
{
    attention_shape shape = shape_of(j);
    j->plan = attention_choose(&shape, l->profile, variant_choose(l, CHOICE_attention, NULL, NULL));
}

/* Emits tiles or rows. If the plan splits the keys, chunks are joined. */
static rlxvk_status emit_f32(lowering *l, uint32_t id, const attention_job *j)
{
    operand memory[2];
    rlxvk_status status;
    TRY(attention_join_memory(l, j, memory));
    if (j->plan.class->form == ATTENTION_FORM_TILE)
        TRY(emit_tiles(l, id, j, memory[0]));
    else
        TRY(emit_rows(l, id, j, memory));
    if (j->plan.chunk && !j->plan.joins)
        TRY(emit_merge(l, id, j, memory[0]));
error:
    return status;
}

rlxvk_status attention_job_emit(lowering *l, uint32_t id, attention_job *j)
{
    attention_shape shape = shape_of(j);
    attention_matrix_plan matrix =
        attention_matrix_make_plan(&shape, l->profile, l->precision, l->matrix_in_lanes);
    bool on_units = matrix.parts && !is_masked(j);
    if (on_units && j->exact)
        on_units =
            attention_matrix_plan_passes(&shape, l->profile, l->precision, l->matrix_in_lanes)
                .keys.parts;
    if (on_units) {
        j->plan.chunk = 0;
        attention_set_arguments(j);
        return emit_matrix(l, id, j, &matrix);
    }
    attention_set_arguments(j);
    return emit_f32(l, id, j);
}

static attention_strides strides_at(const lowering *l, const rlxvk_attention_options *o,
                                    uint32_t id, int64_t heads)
{
    int64_t strides[RLXVK_MAX_RANK];
    lower_strides(l, id, strides);
    return attention_strides_at(o, graph_node(l->graph, id)->shape.rank, heads, strides);
}

rlxvk_status attention_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const attention_attributes *attributes = n->attributes;
    const rlxvk_attention_options *o = &attributes->options;
    bool masked = n->input_count == 4;
    attention_job j = {.mask = mask_code(o->mask),
                       .scale = o->score_scale,
                       .softcap = o->softcap,
                       .with_lse = attributes->with_lse,
                       .exact = attributes->exact};
    j.a = attention_geometry_of(o, input_shape(l->graph, n, 0), input_shape(l->graph, n, 1),
                                masked ? input_shape(l->graph, n, 3) : NULL);
    j.q = strides_at(l, o, n->inputs[0], j.a.heads);
    j.k = strides_at(l, o, n->inputs[1], j.a.kv_heads);
    j.v = strides_at(l, o, n->inputs[2], j.a.kv_heads);
    j.y = j.with_lse ? j.a.q : strides_at(l, o, id, j.a.heads);
    attention_band(o, &j.a, &j.reach, &j.window);
    for (uint32_t i = 0; i < 3; i++)
        j.operands[i] = lower_input(l, id, i);
    j.operands[3] = lower_input(l, id, masked ? 3 : 0);
    j.operands[4] = lower_write(l, id);
    attention_job_plan(l, &j);
    return attention_job_emit(l, id, &j);
}
