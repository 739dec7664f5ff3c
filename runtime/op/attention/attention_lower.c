/*
 * From an attention node to its dispatches: arguments and operands for the kernel that
 * attention_select.c chose, and a second dispatch where keys are split, to join the chunks.
 */
#include "args/attention.h"
#include "constants/attention.h"
#include "op/attention/attention.h"
#include "op/attention/attention_matrix.h"

#include <string.h>

typedef struct job {
    const attention_attributes *attributes;
    attention_geometry a;
    attention_plan plan;
    struct attention_args arguments;
    operand operands[5]; /* q, k, v, mask (or q again), y */
} job;

static uint32_t mask_code(rlxvk_attention_mask mask)
{
    static const uint32_t codes[] = {ATTENTION_BAND, ATTENTION_BAND, ATTENTION_BAND,
                                     ATTENTION_CUSTOM, ATTENTION_BIAS};
    return codes[mask];
}

static void set_operands(const lowering *l, uint32_t id, uint32_t mask, operand out, job *j)
{
    for (uint32_t i = 0; i < 3; i++)
        j->operands[i] = lower_input(l, id, i);
    j->operands[3] = lower_input(l, id, mask);
    j->operands[4] = out;
}

static void set_arguments(const lowering *l, uint32_t id, job *j)
{
    const attention_geometry *a = &j->a;
    const rlxvk_attention_options *o = &j->attributes->options;
    uint64_t results = shape_numel(input_shape(l->graph, graph_node(l->graph, id), 0));
    uint32_t y = j->operands[4].offset;
    j->arguments =
        (struct attention_args){.batch = (uint32_t)a->batch,
                                .heads = (uint32_t)a->heads,
                                .group = (uint32_t)(a->heads / a->kv_heads),
                                .queries = (uint32_t)a->queries,
                                .keys = (uint32_t)a->keys,
                                .width = (uint32_t)a->width,
                                .q_offset = j->operands[0].offset,
                                .q_batch = a->q.batch,
                                .q_head = a->q.head,
                                .q_seq = a->q.seq,
                                .k_offset = j->operands[1].offset,
                                .v_offset = j->operands[2].offset,
                                .kv_batch = a->kv.batch,
                                .kv_head = a->kv.head,
                                .kv_seq = a->kv.seq,
                                .y_offset = y,
                                .y_batch = a->q.batch,
                                .y_head = a->q.head,
                                .y_seq = a->q.seq,
                                .mask_offset = j->operands[3].offset,
                                .mask_batch = a->mask_batch,
                                .mask_head = a->mask_head,
                                .mask_query = a->mask_query,
                                .mask_key = a->mask_key,
                                .lse_offset = j->attributes->with_lse ? y + (uint32_t)results
                                                                      : ATTENTION_NO_LSE,
                                .chunk = j->plan.chunk,
                                .scale = o->score_scale,
                                .softcap = o->softcap};
    attention_band(o, a, &j->arguments.reach, &j->arguments.window);
}

/* Whether every quad of q, k, v and y starts at a multiple of 4 elements. */
static bool has_whole_quads(const struct attention_args *a)
{
    uint32_t all = a->width | a->q_offset | a->q_batch | a->q_head | a->q_seq | a->k_offset |
                   a->v_offset | a->kv_batch | a->kv_head | a->kv_seq | a->y_offset;
    return all % 4 == 0;
}

static void set_constants(const job *j, dispatch *d)
{
    const attention_plan *p = &j->plan;
    const attention_class *c = p->class;
    uint32_t mask = mask_code(j->attributes->options.mask);
    bool softcap = j->attributes->options.softcap > 0, whole = has_whole_quads(&j->arguments);
    if (c->form == ATTENTION_FORM_TILE)
        SET_CONSTANTS(d, {LOCAL_SIZE, p->threads}, {ATTENTION_PREFILL_MASK, mask},
                      {ATTENTION_PREFILL_SOFTCAP, softcap}, {ATTENTION_PREFILL_WHOLE, whole},
                      {ATTENTION_PREFILL_ROW_THREADS, p->threads / c->column_threads},
                      {ATTENTION_PREFILL_COLUMN_THREADS, c->column_threads},
                      {ATTENTION_PREFILL_ROW_QUADS, c->row_quads},
                      {ATTENTION_PREFILL_KEY_QUADS, c->key_quads},
                      {ATTENTION_PREFILL_COLUMN_QUADS, p->column_quads},
                      {ATTENTION_PREFILL_VALUE_KEYS, p->value_keys},
                      {ATTENTION_PREFILL_UNROLL, p->unroll});
    else
        SET_CONSTANTS(d, {LOCAL_SIZE, p->threads}, {ATTENTION_DECODE_MASK, mask},
                      {ATTENTION_DECODE_SOFTCAP, softcap}, {ATTENTION_DECODE_WHOLE, whole},
                      {ATTENTION_DECODE_ROWS, p->rows}, {ATTENTION_DECODE_LANES, p->lanes},
                      {ATTENTION_DECODE_QUADS, p->lane_quads}, {ATTENTION_DECODE_KEYS, p->keys},
                      {ATTENTION_DECODE_CHUNK, p->tile_keys},
                      {ATTENTION_DECODE_GROUPS, p->threads / p->lanes});
}

static rlxvk_status emit_chunks(lowering *l, uint32_t id, const job *j, operand out)
{
    operand operands[5] = {j->operands[0], j->operands[1], j->operands[2], j->operands[3], out};
    bool tile = j->plan.class->form == ATTENTION_FORM_TILE;
    dispatch d = {.kernel = tile ? KERNEL_ATTENTION_PREFILL : KERNEL_ATTENTION_DECODE,
                  .node = id,
                  .variant = j->plan.class->row.name};
    set_constants(j, &d);
    lower_groups(l, &d, j->plan.blocks * j->plan.chunks);
    return lower_emit(l, &d, &j->arguments, sizeof j->arguments, operands, ARRAY_COUNT(operands));
}

static rlxvk_status emit_merge(lowering *l, uint32_t id, const job *j, operand partial)
{
    const struct attention_args *a = &j->arguments;
    operand operands[2] = {partial, j->operands[4]};
    struct attention_merge_args arguments = {.rows = a->batch * a->heads * a->queries,
                                             .chunks = (uint32_t)j->plan.chunks,
                                             .width = a->width,
                                             .heads = a->heads,
                                             .queries = a->queries,
                                             .y_offset = a->y_offset,
                                             .y_batch = a->y_batch,
                                             .y_head = a->y_head,
                                             .y_seq = a->y_seq,
                                             .lse_offset = a->lse_offset};
    uint32_t lanes = 1, threads = l->profile->workgroup_size;
    while (lanes * 4 < a->width && lanes < threads)
        lanes *= 2;
    dispatch d = {.kernel = KERNEL_ATTENTION_MERGE, .node = id};
    operands[0].access = ACCESS_READ;
    SET_CONSTANTS(&d, {LOCAL_SIZE, threads}, {ATTENTION_MERGE_LANES, lanes},
                  {ATTENTION_MERGE_GROUPS, threads / lanes});
    lower_groups(l, &d, arguments.rows);
    return lower_emit(l, &d, &arguments, sizeof arguments, operands, ARRAY_COUNT(operands));
}

/* ---- On matrix units, in precision f16 ---- */

static rlxvk_status emit_matrix(lowering *l, uint32_t id, const job *j,
                                const attention_matrix_plan *p)
{
    dispatch d = {.kernel = KERNEL_ATTENTION_MATRIX, .node = id, .variant = "matrix"};
    SET_CONSTANTS(&d, {LOCAL_SIZE, p->threads},
                  {ATTENTION_MATRIX_SOFTCAP, j->attributes->options.softcap > 0},
                  {ATTENTION_MATRIX_WHOLE, has_whole_quads(&j->arguments)},
                  {ATTENTION_MATRIX_WIDTH, j->arguments.width},
                  {ATTENTION_MATRIX_UNIT_M, p->unit.m}, {ATTENTION_MATRIX_UNIT_N, p->unit.n},
                  {ATTENTION_MATRIX_UNIT_K, p->unit.k}, {ATTENTION_MATRIX_PARTS, p->parts},
                  {ATTENTION_MATRIX_ROWS, p->rows}, {ATTENTION_MATRIX_TILE_KEYS, p->tile_keys},
                  {ATTENTION_MATRIX_DIRECT, p->direct});
    lower_groups(l, &d, p->blocks);
    return lower_emit(l, &d, &j->arguments, sizeof j->arguments, j->operands,
                      ARRAY_COUNT(j->operands));
}

/* ---- Choice ---- */

/* On tiles or rows, keys in chunks where the plan splits them. */
static rlxvk_status emit_f32(lowering *l, uint32_t id, job *j, const attention_shape *shape)
{
    operand partial;
    rlxvk_status status;
    set_arguments(l, id, j);
    if (j->plan.chunk == 0)
        return emit_chunks(l, id, j, j->operands[4]);
    TRY(lower_temporary(l, sizeof(float) * attention_partial_words(&j->plan, shape), &partial));
    TRY(emit_chunks(l, id, j, partial));
    TRY(emit_merge(l, id, j, partial));
error:
    return status;
}

static attention_shape plan_shape(const attention_geometry *a)
{
    return (attention_shape){(uint64_t)a->batch,   (uint64_t)a->heads, (uint64_t)a->kv_heads,
                             (uint64_t)a->queries, (uint64_t)a->keys,  (uint64_t)a->width};
}

rlxvk_status attention_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    job j = {.attributes = n->attributes};
    j.a = attention_geometry_of(&j.attributes->options, input_shape(l->graph, n, 0),
                                input_shape(l->graph, n, 1),
                                n->input_count > 3 ? input_shape(l->graph, n, 3) : NULL);
    attention_shape shape = plan_shape(&j.a);
    attention_matrix_plan matrix =
        attention_matrix_make_plan(&shape, l->profile, l->matrix_in_lanes);
    bool on_units = l->precision == RLXVK_PRECISION_F16 && matrix.parts && !j.attributes->exact &&
                    mask_code(j.attributes->options.mask) == ATTENTION_BAND;
    j.plan = attention_select(&shape, l->profile, variant_choose(l, CHOICE_attention, NULL, NULL));
    set_operands(l, id, n->input_count == 4 ? 3 : 0, lower_write(l, id), &j);
    if (!on_units)
        return emit_f32(l, id, &j, &shape);
    j.plan.chunk = 0;
    set_arguments(l, id, &j);
    return emit_matrix(l, id, &j, &matrix);
}
