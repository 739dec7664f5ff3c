/*
 * attention_backward: the gradients dq, dk and dv of an attention, packed, then dbias if it is
 * wanted. Each has the layout of its tensor.
 *
 * y and the log-sum-exp of each row come from an attention of the same operands. If the forward
 * pass has it, there is only one (rewrite/share_attention.c). Each row also needs
 * delta = dy . y. Each pass then computes the weights that it needs again, tile by tile
 * (attention_backward.comp). If a pass has too few workgroups, several share the rows of one, and
 * their results are added in order. At precisions F16 and BF16, passes are on matrix units if the
 * shape suits them (attention_backward_matrix.glsl).
 *
 * dy may also hold the gradient of the log-sum-exp, packed after that of y. It is subtracted from
 * delta.
 */
#include "graph/symbol.h"
#include "args/attention.h"
#include "args/attention_backward.h"
#include "constants/attention.h"
#include "op/attention/attention.h"
#include "op/attention/attention_backward_choice.h"
#include "op/attention/attention_matrix.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/matmul/matmul.h"

#include <rlxvk_train.h>

/* ---- Building ---- */

static rlxvk_tensor part_of(rlxvk_graph *g, rlxvk_tensor packed, int64_t *start, rlxvk_shape shape)
{
    int64_t count = dim_elements(g, &shape), at = *start;
    *start = dim_make(g, DIM_SUM, at, count);
    return rlxvk_reshape(g, rlxvk_narrow(g, packed, 0, at, count), shape);
}

/* Would op_check accept the node? It is checked before its attention is built, so that an error
 * names this node and not the attention. */
static bool takes(rlxvk_graph *g, const rlxvk_tensor inputs[5], attention_backward_attributes a)
{
    uint32_t ids[5], count = 0;
    for (uint32_t i = 0; i < 5; i++) {
        if (i < 4 || inputs[i].id) {
            if (graph_take(g, inputs[i], "attention_backward", "operand", i) != RLXVK_OK)
                return false;
            ids[count++] = inputs[i].id - 1;
        }
    }
    node n = {.op = OP_attention_backward,
              .building = g,
              .input_count = count,
              .inputs = ids,
              .attributes = &a,
              .attribute_size = sizeof a};
    return op_check(g, &n, &a) == RLXVK_OK;
}

/* y and the log-sum-exps, packed. RLXVK_NONE if there are no scores. */
static rlxvk_tensor forward_of(rlxvk_graph *g, const rlxvk_tensor inputs[5],
                               const rlxvk_attention_options *o)
{
    const rlxvk_tensor operands[] = {inputs[0], inputs[1], inputs[2], inputs[4]};
    attention_attributes a = {.options = *o, .with_lse = true, .exact = true};
    rlxvk_shape q = rlxvk_tensor_shape(g, inputs[0]), k = rlxvk_tensor_shape(g, inputs[1]);
    if (dim_elements(g, &q) == 0 || dim_elements(g, &k) == 0)
        return RLXVK_NONE;
    return op_build(g, OP_attention, operands, ARRAY_COUNT(operands), &a);
}

attention_gradients attention_backward_build(rlxvk_graph *g, const rlxvk_tensor inputs[5],
                                             const attention_backward_attributes *a)
{
    attention_backward_attributes copy = *a;
    /* If one of the first four is missing, op_build must not take the mask in its place. */
    bool given = inputs[0].id && inputs[1].id && inputs[2].id && inputs[3].id;
    rlxvk_tensor all[] = {inputs[0], inputs[1], inputs[2], inputs[3], RLXVK_NONE, inputs[4]};
    if (graph_ready(g, "attention_backward") && takes(g, inputs, copy))
        all[4] = forward_of(g, inputs, &copy.options);
    copy.with_forward = all[4].id != 0;
    rlxvk_tensor packed = op_build(g, OP_attention_backward, all, given ? 6 : 3, &copy);
    attention_gradients d = {0};
    int64_t start = 0;
    if (!packed.id)
        return d;
    rlxvk_shape q = rlxvk_tensor_shape(g, inputs[0]), k = rlxvk_tensor_shape(g, inputs[1]);
    d.q = part_of(g, packed, &start, q);
    d.k = part_of(g, packed, &start, k);
    d.v = part_of(g, packed, &start, k);
    if (a->with_bias)
        d.bias = part_of(g, packed, &start, rlxvk_tensor_shape(g, inputs[4]));
    return d;
}

rlxvk_tensor rlxvk_attention_backward(rlxvk_graph *g, rlxvk_tensor q, rlxvk_tensor k,
                                      rlxvk_tensor v, rlxvk_tensor dy, rlxvk_tensor mask,
                                      const rlxvk_attention_options *options, rlxvk_tensor *out_dk,
                                      rlxvk_tensor *out_dv, rlxvk_tensor *out_dbias)
{
    attention_backward_attributes a = {0};
    if (out_dk)
        *out_dk = RLXVK_NONE;
    if (out_dv)
        *out_dv = RLXVK_NONE;
    if (out_dbias)
        *out_dbias = RLXVK_NONE;
    if (!op_take(g, "attention_backward", SIZED(rlxvk_attention_options), options, &a.options))
        return RLXVK_NONE;
    a.with_bias = a.options.mask == RLXVK_MASK_BIAS;
    attention_gradients d = attention_backward_build(g, (rlxvk_tensor[]){q, k, v, dy, mask}, &a);
    if (out_dk)
        *out_dk = d.k;
    if (out_dv)
        *out_dv = d.v;
    if (out_dbias)
        *out_dbias = d.bias;
    return d.q;
}

/* ---- Infer ---- */

static rlxvk_status check_gradient(const node *n, const rlxvk_shape *dy, const rlxvk_shape *wanted)
{
    char have[SHAPE_TEXT], want[SHAPE_TEXT];
    if (shape_equal(dy, wanted))
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_SHAPE, "dy is %s; must be %s, as the result is", shape_text(dy, have),
                   shape_text(wanted, want));
}

static rlxvk_status attention_backward_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    attention_backward_attributes *a = attributes;
    const rlxvk_shape *q = input_shape(g, n, 0);
    rlxvk_status status;
    uint32_t mask = attention_backward_mask(a);
    TRY(attention_resolve(g, n, mask, &a->options));
    attention_geometry s = attention_geometry_of(&a->options, q, input_shape(g, n, 1), NULL);
    uint64_t results = shape_numel(q), keys = shape_numel(input_shape(g, n, 1)), numel;
    uint64_t rows = results ? (uint64_t)(s.batch * s.heads * s.queries) : 0;
    uint64_t bias = a->with_bias ? shape_numel(input_shape(g, n, mask)) : 0;
    rlxvk_shape packed = RLXVK_SHAPE((int64_t)(results + rows));
    TRY(check_gradient(n, input_shape(g, n, 3), a->with_lse ? &packed : q));
    if (a->with_forward)
        TRY(check_gradient(n, input_shape(g, n, 4), &packed));
    n->shape = RLXVK_SHAPE((int64_t)(results + 2 * keys + bias));
    if (!shape_numel_checked(&n->shape, &numel) || results + 2 * rows > INT32_MAX)
        return op_fail(n, RLXVK_E_TOO_LARGE,
                       "gradients of %llu elements in all, %llu rows; both with what goes along "
                       "stay below 2^31; split the batch",
                       (unsigned long long)(results + 2 * keys + bias), (unsigned long long)rows);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static rlxvk_status attention_backward_settle(const node *n, void *given, const void *inferred)
{
    return attention_settle_layout(n, &((attention_backward_attributes *)given)->options,
                                   &((const attention_backward_attributes *)inferred)->options);
}

/* ---- Lower ---- */

typedef struct job {
    uint32_t id;
    const attention_backward_attributes *attributes;
    attention_geometry a;
    attention_backward_plan plan;
    attention_matrix_passes units; /* 0 parts: not on matrix units */
    struct attention_backward_args arguments;
    operand operands[6]; /* q, dy, k, v, the mask (or q again), log-sum-exps and deltas */
    uint64_t results, keys;
} job;

static void set_arguments(job *j)
{
    const attention_geometry *a = &j->a;
    const rlxvk_attention_options *o = &j->attributes->options;
    j->arguments = (struct attention_backward_args){.batch = (uint32_t)a->batch,
                                                    .heads = (uint32_t)a->heads,
                                                    .kv_heads = (uint32_t)a->kv_heads,
                                                    .queries = (uint32_t)a->queries,
                                                    .keys = (uint32_t)a->keys,
                                                    .width = (uint32_t)a->width,
                                                    .q_offset = j->operands[0].offset,
                                                    .dy_offset = j->operands[1].offset,
                                                    .q_batch = a->q.batch,
                                                    .q_head = a->q.head,
                                                    .q_seq = a->q.seq,
                                                    .k_offset = j->operands[2].offset,
                                                    .v_offset = j->operands[3].offset,
                                                    .kv_batch = a->kv.batch,
                                                    .kv_head = a->kv.head,
                                                    .kv_seq = a->kv.seq,
                                                    .mask_offset = j->operands[4].offset,
                                                    .mask_batch = a->mask_batch,
                                                    .mask_head = a->mask_head,
                                                    .mask_query = a->mask_query,
                                                    .mask_key = a->mask_key,
                                                    .lse_offset = j->operands[5].offset,
                                                    .scale = o->score_scale,
                                                    .softcap = o->softcap};
    attention_band(o, a, &j->arguments.reach, &j->arguments.window);
}

static bool has_whole_quads(const struct attention_backward_args *a)
{
    uint32_t all = a->width | a->q_offset | a->dy_offset | a->q_batch | a->q_head | a->q_seq |
                   a->k_offset | a->v_offset | a->kv_batch | a->kv_head | a->kv_seq |
                   a->out_offset | a->part_words | a->part_words / 2 | a->dq_offset | a->dq_words;
    return all % 4 == 0;
}

static bool has_bias(const job *j)
{
    return j->attributes->options.mask == RLXVK_MASK_BIAS;
}

/* Computes the log-sum-exps of all rows, then the deltas of all rows. Then come their peaks for
 * matrix units, or, with a bias, room for the rests of the log-sum-exps. */
static rlxvk_status emit_rows(lowering *l, job *j)
{
    const attention_geometry *a = &j->a;
    uint64_t rows = (uint64_t)(a->batch * a->heads * a->queries);
    operand *stats = &j->operands[5];
    rlxvk_status status;
    bool peaks = j->units.keys.parts;
    TRY(lower_temporary(l, sizeof(float) * (has_bias(j) || peaks ? 3 : 2) * rows, stats));
    const operand operands[] = {j->operands[1], lower_input(l, j->id, 4), *stats};
    stats->access = ACCESS_READ;
    uint32_t threads = l->profile->workgroup_size;
    uint32_t lanes = power_of_two_from((uint64_t)a->width, 32);
    struct attention_delta_args arguments = {
        .rows = (uint32_t)rows,
        .heads = (uint32_t)a->heads,
        .queries = (uint32_t)a->queries,
        .width = (uint32_t)a->width,
        .dy_offset = operands[0].offset,
        .y_offset = operands[1].offset,
        .batch_stride = a->q.batch,
        .head_stride = a->q.head,
        .seq_stride = a->q.seq,
        .lse_offset = operands[1].offset + (uint32_t)j->results,
        .stats_offset = stats->offset,
        .dlse_offset =
            j->attributes->with_lse ? operands[0].offset + (uint32_t)j->results : ATTENTION_NO_LSE};
    dispatch d = {.kernel = KERNEL_ATTENTION_DELTA, .node = j->id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, threads}, {ATTENTION_DELTA_LANES, lanes},
                  {ATTENTION_DELTA_ROWS, threads / lanes}, {ATTENTION_DELTA_PEAKS, peaks});
    lower_groups(l, &d, groups_for(rows, threads / lanes));
    TRY(lower_emit(l, &d, &arguments, sizeof arguments, operands, ARRAY_COUNT(operands)));
error:
    return status;
}

/* Computes the rests: the rounding errors of log-sum-exps that are large. */
static rlxvk_status emit_rests(lowering *l, job *j)
{
    const attention_geometry *a = &j->a;
    uint64_t rows = (uint64_t)(a->batch * a->heads * a->queries);
    uint32_t threads = l->profile->workgroup_size;
    uint32_t lanes = power_of_two_within(MIN(threads, 32));
    operand operands[] = {j->operands[0], j->operands[2], j->operands[4], updating(j->operands[5])};
    dispatch d = {.kernel = KERNEL_ATTENTION_REST, .node = j->id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, threads / lanes * lanes},
                  {ATTENTION_REST_SOFTCAP, j->attributes->options.softcap > 0},
                  {ATTENTION_REST_LANES, lanes}, {ATTENTION_REST_ROWS, threads / lanes});
    lower_groups(l, &d, groups_for(rows, threads / lanes));
    return lower_emit(l, &d, &j->arguments, sizeof j->arguments, operands, ARRAY_COUNT(operands));
}

static bool owns_keys(uint32_t pass)
{
    return pass != ATTENTION_OF_QUERIES && pass != ATTENTION_OF_BIAS;
}

/* The number of workgroups of a pass, and the most steps that one of them takes. */
static void size_pass(const job *j, uint32_t pass, uint64_t *out_blocks, uint64_t *out_steps)
{
    const attention_geometry *a = &j->a;
    const struct attention_backward_args *s = &j->arguments;
    uint64_t batch = (uint64_t)a->batch, heads = (uint64_t)a->heads,
             own = j->plan.own[owns_keys(pass)];
    uint64_t others = j->plan.others, queries = (uint64_t)a->queries, keys = (uint64_t)a->keys;
    if (pass == ATTENTION_OF_QUERIES) {
        *out_blocks = batch * heads * divide_up(queries, own);
        *out_steps = divide_up(keys, others);
        return;
    }
    if (owns_keys(pass)) {
        *out_blocks = batch * (uint64_t)a->kv_heads * divide_up(keys, own);
        *out_steps = heads / (uint64_t)a->kv_heads * divide_up(queries, others);
        return;
    }
    uint64_t counts[] = {batch, heads, divide_up(queries, own), divide_up(keys, others)};
    uint32_t strides[] = {s->mask_batch, s->mask_head, s->mask_query, s->mask_key};
    *out_blocks = *out_steps = 1;
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++)
        *(strides[i] ? out_blocks : out_steps) *= counts[i];
}

static void set_constants(const job *j, uint32_t pass, dispatch *d)
{
    static const uint32_t masks[] = {ATTENTION_BAND, ATTENTION_BAND, ATTENTION_BAND,
                                     ATTENTION_CUSTOM, ATTENTION_BIAS};
    const attention_backward_plan *p = &j->plan;
    uint32_t of = owns_keys(pass);
    const rlxvk_attention_options *o = &j->attributes->options;
    SET_CONSTANTS(
        d, {LOCAL_SIZE, p->threads[of]}, {ATTENTION_BACKWARD_PASS, pass},
        {ATTENTION_BACKWARD_MASK, masks[o->mask]}, {ATTENTION_BACKWARD_SOFTCAP, o->softcap > 0},
        {ATTENTION_BACKWARD_WHOLE, has_whole_quads(&j->arguments)},
        {ATTENTION_BACKWARD_ROW_THREADS, p->class->row_threads[of]},
        {ATTENTION_BACKWARD_COLUMN_THREADS, p->class->column_threads},
        {ATTENTION_BACKWARD_ROW_QUADS, p->class->row_quads[of]},
        {ATTENTION_BACKWARD_COLUMN_QUADS, pass == ATTENTION_OF_BIAS ? 1 : p->column_quads},
        {ATTENTION_BACKWARD_VALUE_ROWS, p->value_rows}, {ATTENTION_BACKWARD_UNROLL, p->unroll},
        {ATTENTION_BACKWARD_TURNS, p->class->turns}, {ATTENTION_BACKWARD_AHEAD, p->class->ahead});
}

/* `dq` is written only if one pass finds all gradients. Otherwise any operand will do. */
static rlxvk_status emit_dispatch(lowering *l, job *j, uint32_t pass, uint64_t groups, operand out,
                                  operand dq)
{
    const operand operands[] = {j->operands[0],
                                j->operands[1],
                                j->operands[2],
                                j->operands[3],
                                j->operands[4],
                                j->operands[5],
                                out,
                                dq};
    dispatch d = {.kernel = KERNEL_ATTENTION_BACKWARD,
                  .node = j->id,
                  .variant = j->plan.class->row.name};
    set_constants(j, pass, &d);
    lower_groups(l, &d, groups);
    return lower_emit(l, &d, &j->arguments, sizeof j->arguments, operands, ARRAY_COUNT(operands));
}

/* Writes words [first, first + words) of the result. */
static rlxvk_status emit_pass(lowering *l, job *j, uint32_t pass, uint64_t first, uint64_t words)
{
    uint64_t blocks, steps;
    operand y = lower_write(l, j->id), out;
    rlxvk_status status;
    if (words == 0)
        return RLXVK_OK;
    size_pass(j, pass, &blocks, &steps);
    uint64_t parts = attention_backward_parts(blocks, steps, words, l->profile);
    lower_narrow(l, &y, first, words);
    out = y;
    if (parts > 1)
        TRY(lower_temporary(l, sizeof(float) * parts * words, &out));
    j->arguments.out_offset = out.offset;
    j->arguments.parts = (uint32_t)parts;
    j->arguments.part_words = (uint32_t)words;
    TRY(emit_dispatch(l, j, pass, blocks * parts, out, out));
    if (parts > 1)
        TRY(matmul_emit_plain_sum(l, j->id, out, parts, words, y));
error:
    return status;
}

/* Computes dq, dk and dv in one pass. */
static rlxvk_status emit_all(lowering *l, job *j)
{
    uint64_t parts = j->plan.key_parts, blocks = (uint64_t)(j->a.batch * j->a.kv_heads);
    operand y = lower_write(l, j->id), dq = y, rest = y, partial;
    rlxvk_status status;
    lower_narrow(l, &dq, 0, j->results);
    lower_narrow(l, &rest, j->results, 2 * j->keys);
    partial = dq;
    if (parts > 1)
        TRY(lower_temporary(l, sizeof(float) * parts * j->results, &partial));
    j->arguments.out_offset = rest.offset;
    j->arguments.parts = (uint32_t)parts;
    j->arguments.part_words = (uint32_t)(2 * j->keys);
    j->arguments.dq_offset = partial.offset;
    j->arguments.dq_words = (uint32_t)j->results;
    TRY(emit_dispatch(l, j, ATTENTION_OF_ALL, blocks * parts, rest, partial));
    if (parts > 1)
        TRY(matmul_emit_plain_sum(l, j->id, partial, parts, j->results, dq));
error:
    return status;
}

/* ---- On matrix units, in precision F16 or BF16 ---- */

static attention_matrix_passes plan_units(const lowering *l, const job *j,
                                          const attention_shape *shape)
{
    bool band = j->attributes->options.mask < RLXVK_MASK_CUSTOM;
    return band && j->attributes->with_forward
               ? attention_matrix_plan_passes(shape, l->profile, l->precision, l->matrix_in_lanes)
               : (attention_matrix_passes){0};
}

/* Writes words [from, from + words) of the result: of the pass of keys dk, dv, or both. */
static rlxvk_status emit_units_pass(lowering *l, job *j, const attention_matrix_plan *p,
                                    uint32_t pass, uint64_t from, uint64_t words)
{
    operand y = lower_write(l, j->id);
    lower_narrow(l, &y, from, words);
    j->arguments.out_offset = y.offset;
    j->arguments.part_words = pass == ATTENTION_OF_KEYS ? (uint32_t)words : 0;
    const operand operands[] = {j->operands[0],
                                j->operands[1],
                                j->operands[2],
                                j->operands[3],
                                j->operands[4],
                                j->operands[5],
                                y};
    dispatch d = {.kernel = l->precision == RLXVK_PRECISION_BF16
                                ? KERNEL_ATTENTION_BACKWARD_MATRIX_BF16
                                : KERNEL_ATTENTION_BACKWARD_MATRIX_F16,
                  .node = j->id,
                  .variant = "matrix"};
    SET_CONSTANTS(&d, {LOCAL_SIZE, p->threads}, {ATTENTION_BACKWARD_MATRIX_PASS, pass},
                  {ATTENTION_BACKWARD_MATRIX_SOFTCAP, j->attributes->options.softcap > 0},
                  {ATTENTION_BACKWARD_MATRIX_WHOLE, has_whole_quads(&j->arguments)},
                  {ATTENTION_BACKWARD_MATRIX_WIDTH, j->arguments.width},
                  {ATTENTION_BACKWARD_MATRIX_UNIT_M, p->unit.m},
                  {ATTENTION_BACKWARD_MATRIX_UNIT_N, p->unit.n},
                  {ATTENTION_BACKWARD_MATRIX_UNIT_K, p->unit.k},
                  {ATTENTION_BACKWARD_MATRIX_PARTS, p->parts},
                  {ATTENTION_BACKWARD_MATRIX_ROWS, p->rows},
                  {ATTENTION_BACKWARD_MATRIX_TILE, p->tile},
                  {ATTENTION_BACKWARD_MATRIX_DIRECT, p->direct});
    lower_groups(l, &d, p->blocks);
    return lower_emit(l, &d, &j->arguments, sizeof j->arguments, operands, ARRAY_COUNT(operands));
}

static rlxvk_status emit_units(lowering *l, job *j)
{
    const attention_matrix_passes *u = &j->units;
    rlxvk_status status;
    TRY(emit_units_pass(l, j, &u->queries, ATTENTION_OF_QUERIES, 0, j->results));
    if (u->apart) {
        TRY(emit_units_pass(l, j, &u->keys, ATTENTION_OF_DK, j->results, j->keys));
        TRY(emit_units_pass(l, j, &u->keys, ATTENTION_OF_DV, j->results + j->keys, j->keys));
    } else {
        TRY(emit_units_pass(l, j, &u->keys, ATTENTION_OF_KEYS, j->results, 2 * j->keys));
    }
error:
    return status;
}

rlxvk_status attention_backward_lower(lowering *l, uint32_t id)
{
    static const uint8_t order[] = {0, 3, 1, 2};
    const node *n = graph_node(l->graph, id);
    const attention_backward_attributes *a = n->attributes;
    const rlxvk_shape *q = input_shape(l->graph, n, 0), *k = input_shape(l->graph, n, 1);
    uint32_t at = attention_backward_mask(a);
    const rlxvk_shape *mask = n->input_count > at ? input_shape(l->graph, n, at) : NULL;
    job j = {.id = id, .attributes = a, .results = shape_numel(q), .keys = shape_numel(k)};
    uint64_t bias = a->with_bias ? shape_numel(mask) : 0;
    rlxvk_status status;
    j.a = attention_geometry_of(&a->options, q, k, mask);
    attention_shape shape = {(uint64_t)j.a.batch,   (uint64_t)j.a.heads, (uint64_t)j.a.kv_heads,
                             (uint64_t)j.a.queries, (uint64_t)j.a.keys,  (uint64_t)j.a.width};
    j.plan = attention_backward_choose(&shape, l->profile,
                                       variant_choose(l, CHOICE_attention_backward, NULL, NULL));
    j.units = plan_units(l, &j, &shape);
    for (size_t i = 0; i < ARRAY_COUNT(order); i++)
        j.operands[i] = lower_input(l, id, order[i]);
    j.operands[4] = lower_input(l, id, mask ? at : 0);
    j.operands[5] = j.operands[0]; /* never read if there are no rows or no keys */
    if (a->with_forward)
        TRY(emit_rows(l, &j));
    set_arguments(&j);
    if (a->with_forward && has_bias(&j))
        TRY(emit_rests(l, &j));
    if (j.units.keys.parts) {
        TRY(emit_units(l, &j));
    } else if (j.plan.key_parts && j.results && j.keys) {
        TRY(emit_all(l, &j));
    } else {
        TRY(emit_pass(l, &j, ATTENTION_OF_QUERIES, 0, j.results));
        if (j.plan.class->apart) {
            TRY(emit_pass(l, &j, ATTENTION_OF_DK, j.results, j.keys));
            TRY(emit_pass(l, &j, ATTENTION_OF_DV, j.results + j.keys, j.keys));
        } else {
            TRY(emit_pass(l, &j, ATTENTION_OF_KEYS, j.results, 2 * j.keys));
        }
    }
    TRY(emit_pass(l, &j, ATTENTION_OF_BIAS, j.results + 2 * j.keys, bias));
error:
    return status;
}

/* ---- The family ---- */

static uint64_t attention_backward_bucket(bucket_call *c)
{
    return bucket_refuse(c, "it adds up over the queries, and its gradients lie behind each other");
}

static void attention_backward_describe(const node *n, text *out)
{
    const attention_backward_attributes *a = n->attributes;
    attention_describe_options(&a->options, out);
    if (a->with_lse)
        text_append(out, " with_lse=1");
    if (a->with_bias)
        text_append(out, " with_bias=1");
}

const op_family attention_backward_family = {
    .name = "attention_backward",
    .attribute_size = sizeof(attention_backward_attributes),
    .infer = attention_backward_infer,
    .settle = attention_backward_settle,
    .execution = {.matrix_layout = true,
                  .lower = attention_backward_lower,
                  .host = attention_backward_host},
    .rows = {.bucket = attention_backward_bucket},
    .derivative = {.expand = attention_backward_expand},
    .describe = attention_backward_describe,
};
