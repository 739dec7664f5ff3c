/*
 * Which attention kernel runs, and with which tiles.
 *
 * Decode (at most 8 queries): rows of all heads that share a kv head are folded into blocks of up
 * to 8, keys are split into chunks until the device is full, and a second dispatch joins the
 * chunks. Prefill: tiles of 32 or 64 queries by 64 keys; the larger tile needs 24 KiB of shared
 * memory and is taken where its registers suffice.
 *
 * Every size rides in the arguments; constants are few, so that pipelines are.
 */
#include "op/attention.h"

#define DECODE_QUERIES 8
#define PREFILL_GROUP  128
#define PREFILL_KEYS   64
#define PREFILL_DEPTH  16
#define PREFILL_WORDS  8    /* shared words outside the arrays, rounded up */
#define DECODE_SCORES  1024 /* ROWS * CHUNK of the kernel */
#define LEAST_CHUNK    64
#define LARGEST_CHUNK  256

typedef struct job {
    const attention_attributes *attributes;
    attention_geometry a;
    struct attention_args arguments;
    operand operands[5]; /* q, k, v, mask (or q again), y */
} job;

static uint32_t mask_code(rlxvk_attention_mask mask)
{
    static const uint32_t codes[] = {ATTENTION_BAND, ATTENTION_BAND, ATTENTION_BAND,
                                     ATTENTION_CUSTOM, ATTENTION_BIAS};
    return codes[mask];
}

static void set_operands(const lowering *l, uint32_t id, job *j)
{
    const node *n = graph_node(l->graph, id);
    for (uint32_t i = 0; i < 3; i++)
        j->operands[i] = lower_input(l, id, i);
    j->operands[3] = lower_input(l, id, n->input_count == 4 ? 3 : 0);
    j->operands[4] = lower_write(l, id);
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
                                .k_batch = a->kv.batch,
                                .k_head = a->kv.head,
                                .k_seq = a->kv.seq,
                                .v_offset = j->operands[2].offset,
                                .v_batch = a->kv.batch,
                                .v_head = a->kv.head,
                                .v_seq = a->kv.seq,
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
                                .scale = o->score_scale,
                                .softcap = o->softcap};
    attention_band(o, a, &j->arguments.reach, &j->arguments.window);
}

/* ---- Prefill ---- */

static uint32_t prefill_shared_bytes(uint32_t row_quads, uint32_t column_quads, uint32_t values)
{
    uint32_t rows = 32 * row_quads;
    uint32_t score_slice = PREFILL_DEPTH * (rows + PREFILL_KEYS);
    uint32_t value_slice = values * 64 * column_quads;
    return 4 * (rows * PREFILL_KEYS + MAX(score_slice, value_slice) + PREFILL_WORDS);
}

static rlxvk_status lower_prefill(lowering *l, uint32_t id, const job *j)
{
    const rlxvk_attention_options *o = &j->attributes->options;
    uint32_t column_quads = MAX(1, (uint32_t)divide_up((uint64_t)j->a.width, 64));
    uint32_t values = 32 / column_quads;
    uint32_t room = l->profile->shared_memory_bytes;
    /* 64 rows of more than 128 columns would need over 128 registers for the outputs alone. */
    bool large = column_quads <= 2 && j->a.queries > 32 &&
                 prefill_shared_bytes(2, column_quads, values) <= room;
    uint32_t row_quads = large ? 2 : 1;
    while (values > 1 && prefill_shared_bytes(row_quads, column_quads, values) > room)
        values--;
    uint64_t tiles = divide_up((uint64_t)j->a.queries, 32 * row_quads);
    dispatch d = {.kernel = KERNEL_ATTENTION_PREFILL,
                  .node = id,
                  .constants = {PREFILL_GROUP, mask_code(o->mask), o->softcap > 0, row_quads,
                                column_quads, values}};
    lower_groups(l, &d, tiles * (uint64_t)(j->a.batch * j->a.heads));
    return lower_emit(l, &d, &j->arguments, sizeof j->arguments, j->operands,
                      ARRAY_COUNT(j->operands));
}

/* ---- Decode ---- */

typedef struct decode_plan {
    uint32_t rows, lanes, quads, chunk, group; /* specialization constants; group: local size */
    uint64_t blocks, chunks;                   /* row blocks of all kv heads; chunks of each */
} decode_plan;

/* A lane holds one or two quads of a row. */
static void set_lanes(decode_plan *p, uint32_t width)
{
    uint32_t quads = (uint32_t)divide_up(width, 4);
    p->lanes = quads <= 16 ? 8 : quads <= 32 ? 16 : 32;
    p->quads = (uint32_t)divide_up(quads, p->lanes);
}

/* Whether every quad of q, k and v starts at a multiple of 4 elements. */
static bool has_whole_quads(const struct attention_args *a)
{
    uint32_t all = a->width | a->q_offset | a->q_batch | a->q_head | a->q_seq | a->k_offset |
                   a->k_batch | a->k_head | a->k_seq | a->v_offset | a->v_batch | a->v_head |
                   a->v_seq;
    return all % 4 == 0;
}

static decode_plan plan_decode(const device_profile *profile, const attention_geometry *a)
{
    uint64_t kv_rows = (uint64_t)(a->heads / a->kv_heads * a->queries);
    uint64_t keys = (uint64_t)a->keys;
    decode_plan p = {.rows = 1};
    set_lanes(&p, (uint32_t)a->width);
    /* Each row costs `dims` registers, and what is unrolled far compiles slowly on software
     * drivers. */
    uint32_t most_rows = profile->portable ? 8 / p.quads : 8;
    while (p.rows < most_rows && p.rows < kv_rows)
        p.rows *= 2;
    p.blocks = (uint64_t)(a->batch * a->kv_heads) * divide_up(kv_rows, p.rows);
    /* Software drivers run invocations in turns: small groups. To them the second dispatch costs
     * more than some hundred keys: no smaller chunks to fill them. */
    p.group = profile->portable ? 4 * p.lanes : 128;
    p.chunk = MIN(LARGEST_CHUNK, DECODE_SCORES / p.rows);
    uint64_t wanted = profile->portable ? 1 : 8 * (uint64_t)profile->compute_units;
    while (p.chunk > LEAST_CHUNK && p.blocks * divide_up(keys, p.chunk) < wanted)
        p.chunk /= 2;
    p.chunks = divide_up(keys, p.chunk);
    return p;
}

static rlxvk_status emit_decode(lowering *l, uint32_t id, const job *j, const decode_plan *p,
                                operand out)
{
    const rlxvk_attention_options *o = &j->attributes->options;
    operand operands[5] = {j->operands[0], j->operands[1], j->operands[2], j->operands[3], out};
    dispatch d = {.kernel = KERNEL_ATTENTION_DECODE,
                  .node = id,
                  .constants = {p->group, mask_code(o->mask), o->softcap > 0, p->rows, p->lanes,
                                p->quads, p->chunk, has_whole_quads(&j->arguments)}};
    lower_groups(l, &d, p->blocks * MAX(p->chunks, 1));
    return lower_emit(l, &d, &j->arguments, sizeof j->arguments, operands, ARRAY_COUNT(operands));
}

static rlxvk_status emit_merge(lowering *l, uint32_t id, const job *j, const decode_plan *p,
                               operand partial)
{
    const struct attention_args *a = &j->arguments;
    operand operands[2] = {partial, j->operands[4]};
    struct attention_merge_args arguments = {.rows = a->batch * a->heads * a->queries,
                                             .chunks = (uint32_t)p->chunks,
                                             .width = a->width,
                                             .heads = a->heads,
                                             .queries = a->queries,
                                             .y_offset = a->y_offset,
                                             .y_batch = a->y_batch,
                                             .y_head = a->y_head,
                                             .y_seq = a->y_seq,
                                             .lse_offset = a->lse_offset};
    dispatch d = {.kernel = KERNEL_ATTENTION_MERGE,
                  .node = id,
                  .constants = {l->profile->workgroup_size}};
    operands[0].access = ACCESS_READ;
    lower_groups(l, &d,
                 groups_for((uint64_t)arguments.rows * a->width, l->profile->workgroup_size));
    return lower_emit(l, &d, &arguments, sizeof arguments, operands, ARRAY_COUNT(operands));
}

/* Elements of (m, l, o) for every row and chunk. */
static uint64_t partial_numel(const attention_geometry *a, const decode_plan *p)
{
    return (uint64_t)(a->batch * a->heads * a->queries) * p->chunks * (uint64_t)(a->width + 2);
}

static rlxvk_status lower_decode(lowering *l, uint32_t id, const job *j, const decode_plan *p)
{
    operand partial;
    rlxvk_status status;
    if (p->chunks <= 1)
        return emit_decode(l, id, j, p, j->operands[4]);
    TRY(lower_temporary(l, 4 * partial_numel(&j->a, p), &partial));
    TRY(emit_decode(l, id, j, p, partial));
    TRY(emit_merge(l, id, j, p, partial));
error:
    return status;
}

rlxvk_status attention_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    job j = {.attributes = n->attributes};
    const rlxvk_shape *mask = n->input_count == 4 ? input_shape(l->graph, n, 3) : NULL;
    j.a = attention_geometry_of(&j.attributes->options, input_shape(l->graph, n, 0),
                                input_shape(l->graph, n, 1), mask);
    set_operands(l, id, &j);
    set_arguments(l, id, &j);
    if (j.a.queries > DECODE_QUERIES || j.a.width == 0)
        return lower_prefill(l, id, &j);
    decode_plan p = plan_decode(l->profile, &j.a);
    /* Too many partial results to address, or to bind: one workgroup a tile then. */
    uint64_t most = MIN(l->profile->max_binding_bytes / 4, (uint64_t)INT32_MAX);
    if (p.chunks > 1 && partial_numel(&j.a, &p) > most)
        return lower_prefill(l, id, &j);
    return lower_decode(l, id, &j, &p);
}
