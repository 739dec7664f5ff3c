/*
 * The nodes that make a loop of the nodes between them; see loop.h. They move words and count
 * steps. The schedule and the executable decide how often the steps run (plan/schedule.h).
 *
 * The clock is a few words of bits in device memory, held as f32 like all other values. The
 * recorded body is replayed, and only the step in the clock differs from one replay to the next. It
 * selects the rows of sequences to read and the row of the trajectory to write.
 *
 * Random ops of a step have key + s * 2^32, where s grows by `stride` with each step. A key is
 * multiplied by the golden ratio and added to the seed mod 2^64. So the steps differ only in the
 * upper word, by t * stride * (golden ratio mod 2^32). loop_random adds that to a word of their
 * state.
 */
#include "args/compose.h"
#include "constants/compose.h"
#include "op/compose/loop.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/movement/layout.h"
#include "op/random/random.h"

#include <string.h>

static void loop_describe(const node *n, text *out)
{
    const loop_attributes *a = loop_of(n);
    if (a->steps)
        text_append(out, " steps=%lld", (long long)a->steps);
    if (a->rows)
        text_append(out, " rows=%lld", (long long)a->rows);
    if (a->stride)
        text_append(out, " stride=%llu", (unsigned long long)a->stride);
    if (a->stops)
        text_append(out, " stops");
}

static bool first_operand_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    (void)g, (void)n;
    *out_offset = 0;
    return true;
}

static uint32_t first_operand_written(const node *n)
{
    (void)n;
    return 1;
}

static rlxvk_status take_first(const rlxvk_graph *g, node *n)
{
    n->shape = *input_shape(g, n, 0);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    return RLXVK_OK;
}

static rlxvk_status require_op(const rlxvk_graph *g, const node *n, uint32_t operand,
                               op_kind wanted)
{
    const node *given = graph_node(g, n->inputs[operand]);
    if (given->op == wanted)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_ATTR, "operand %u is a %s; takes a %s", operand,
                   node_row(given)->name, op_table[wanted].name);
}

static rlxvk_shape without_rows(const rlxvk_shape *s)
{
    rlxvk_shape row = {.rank = s->rank - 1};
    memcpy(row.dims, s->dims + 1, row.rank * sizeof *row.dims);
    return row;
}

/* The number of words of a node's result. */
static uint32_t word_count(const lowering *l, const operand *o, uint32_t id)
{
    return (uint32_t)shape_numel(&graph_node(l->graph, id)->shape) * element_words(o);
}

/* Copies a row of `source` to a row of `target`. */
static rlxvk_status emit_row(lowering *l, uint32_t mode, uint32_t words, operand clock,
                             operand source, operand target, const loop_attributes *a)
{
    dispatch d = {.kernel = KERNEL_LOOP_ROW};
    struct loop_row_args args = {.count = words,
                                 .source_offset = source.offset * element_words(&source),
                                 .target_offset = target.offset * element_words(&target),
                                 .clock_offset = clock.offset,
                                 .rows = (u32)a->rows,
                                 .steps = (u32)a->steps};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {LOOP_ROW_MODE, mode});
    lower_groups(l, &d, groups_for(words, l->profile->workgroup_size));
    return lower_emit(l, &d, &args, sizeof args, (operand[]){clock, source, target}, 3);
}

static rlxvk_status emit_tick(lowering *l, operand clock, const loop_attributes *a, bool start)
{
    dispatch d = {.kernel = KERNEL_LOOP_TICK, .groups = {1, 1, 1}};
    struct loop_tick_args args = {.clock_offset = clock.offset,
                                  .rows = (u32)a->rows,
                                  .steps = (u32)a->steps,
                                  .start = start};
    SET_CONSTANTS(&d, {LOCAL_SIZE, 1});
    return lower_emit(l, &d, &args, sizeof args, &clock, 1);
}

/* ---- loop_carry ---- */

static rlxvk_status loop_carry_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const loop_attributes *a = attributes;
    rlxvk_shape value = *input_shape(g, n, 0);
    (void)take_first(g, n);
    if (a->rows == 0)
        return RLXVK_OK;
    if (value.rank == RLXVK_MAX_RANK || a->rows < 0)
        return op_fail(n, RLXVK_E_SHAPE, "%lld rows of rank %u; ranks end at %d",
                       (long long)a->rows, value.rank, RLXVK_MAX_RANK);
    n->shape = (rlxvk_shape){.rank = value.rank + 1, .dims = {a->rows}};
    memcpy(n->shape.dims + 1, value.dims, value.rank * sizeof *value.dims);
    return RLXVK_OK;
}

/* A trajectory has no initial value, because the steps write all its rows. */
static rlxvk_status loop_carry_lower(lowering *l, uint32_t id)
{
    const loop_attributes *a = loop_of(graph_node(l->graph, id));
    operand source = lower_input(l, id, 0), target = lower_write(l, id);
    if (a->rows)
        return RLXVK_OK;
    return emit_row(l, LOOP_ROW_COPY, word_count(l, &target, id), source, source, target, a);
}

static rlxvk_status loop_carry_host(const host_call *call)
{
    uint64_t numel = shape_numel(&call->node->shape);
    for (uint64_t i = 0; i < numel && !loop_of(call->node)->rows; i++)
        layout_host_move(call, i, &call->inputs[0], i);
    return RLXVK_OK;
}

/* For all families in this file. */
static uint64_t loop_bucket(bucket_call *c)
{
    return bucket_refuse(c, "it is part of a loop that is replayed");
}

const op_family loop_carry_family = {
    .name = "loop_carry",
    .attribute_size = sizeof(loop_attributes),
    .infer = loop_carry_infer,
    .storage = {.pairs = true},
    .execution = {.lower = loop_carry_lower, .host = loop_carry_host},
    .rows = {.bucket = loop_bucket},
    .describe = loop_describe,
};

/* ---- loop_begin ---- */

static rlxvk_status loop_begin_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    (void)g, (void)attributes;
    n->shape = RLXVK_SHAPE(LOOP_CLOCK_WORDS);
    n->dtype = RLXVK_F32;
    return RLXVK_OK;
}

static rlxvk_status loop_begin_lower(lowering *l, uint32_t id)
{
    return emit_tick(l, lower_write(l, id), loop_of(graph_node(l->graph, id)), true);
}

static rlxvk_status loop_begin_host(const host_call *call)
{
    (void)call; /* the result is zeroed already */
    return RLXVK_OK;
}

const op_family loop_begin_family = {
    .name = "loop_begin",
    .attribute_size = sizeof(loop_attributes),
    .infer = loop_begin_infer,
    .storage = {.pairs = true},
    .loop = {.opens = true},
    .execution = {.lower = loop_begin_lower, .host = loop_begin_host},
    .rows = {.bucket = loop_bucket},
    .describe = loop_describe,
};

/* ---- Host: the clock's bits ---- */

static uint32_t clock_word(const host_tensor *clock, uint32_t word)
{
    uint32_t bits;
    memcpy(&bits, &clock->words[word], sizeof bits);
    return bits;
}

static double as_word(uint32_t bits)
{
    float word;
    memcpy(&word, &bits, sizeof word);
    return word;
}

/* ---- loop_slice ---- */

static rlxvk_status loop_slice_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const loop_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    char buffer[SHAPE_TEXT];
    rlxvk_status status;
    TRY(require_op(g, n, 1, OP_loop_begin));
    if (x->rank == 0 || x->dims[0] < a->steps)
        return op_fail(n, RLXVK_E_SHAPE, "%s has no row for each of %lld steps",
                       shape_text(x, buffer), (long long)a->steps);
    n->shape = without_rows(x);
    n->dtype = (uint8_t)input_dtype(g, n, 0);
error:
    return status;
}

static rlxvk_status loop_slice_lower(lowering *l, uint32_t id)
{
    operand target = lower_write(l, id);
    return emit_row(l, LOOP_ROW_SLICE, word_count(l, &target, id), lower_input(l, id, 1),
                    lower_input(l, id, 0), target, loop_of(graph_node(l->graph, id)));
}

static rlxvk_status loop_slice_host(const host_call *call)
{
    uint64_t row = shape_numel(&call->node->shape);
    uint64_t first = row * clock_word(&call->inputs[1], LOOP_CLOCK_STEP);
    for (uint64_t i = 0; i < row; i++)
        layout_host_move(call, i, &call->inputs[0], first + i);
    return RLXVK_OK;
}

const op_family loop_slice_family = {
    .name = "loop_slice",
    .attribute_size = sizeof(loop_attributes),
    .infer = loop_slice_infer,
    .storage = {.pairs = true},
    .execution = {.lower = loop_slice_lower, .host = loop_slice_host},
    .rows = {.bucket = loop_bucket},
    .describe = loop_describe,
};

/* ---- loop_random ---- */

static rlxvk_status loop_random_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_status status;
    (void)attributes;
    TRY(require_op(g, n, 1, OP_loop_begin));
    if (shape_numel(input_shape(g, n, 0)) != RNG_STATE_WORDS)
        return op_fail(n, RLXVK_E_SHAPE, "operand 0 is no state of random ops");
    (void)take_first(g, n);
error:
    return status;
}

/* Added to the upper word of the mixed seeds with each step. */
static uint32_t random_stride(const node *n)
{
    return (uint32_t)loop_of(n)->stride * (uint32_t)GOLDEN_RATIO;
}

static rlxvk_status loop_random_lower(lowering *l, uint32_t id)
{
    operand clock = lower_input(l, id, 1), source = lower_input(l, id, 0);
    operand target = lower_write(l, id);
    dispatch d = {.kernel = KERNEL_LOOP_RANDOM, .groups = {1, 1, 1}};
    struct loop_random_args args = {.words = RNG_STATE_WORDS,
                                    .word = RNG_STATE_SHIFT,
                                    .stride = random_stride(graph_node(l->graph, id)),
                                    .source_offset = source.offset,
                                    .target_offset = target.offset,
                                    .clock_offset = clock.offset};
    SET_CONSTANTS(&d, {LOCAL_SIZE, RNG_STATE_WORDS});
    return lower_emit(l, &d, &args, sizeof args, (operand[]){clock, source, target}, 3);
}

/* Moves words as bits, as kernels do, because a signaling NaN does not survive as a number. */
static rlxvk_status loop_random_host(const host_call *call)
{
    uint32_t shift = clock_word(&call->inputs[0], RNG_STATE_SHIFT);
    for (uint64_t i = 0; i < RNG_STATE_WORDS; i++)
        layout_host_move(call, i, &call->inputs[0], i);
    shift += clock_word(&call->inputs[1], LOOP_CLOCK_STEP) * random_stride(call->node);
    call->out[RNG_STATE_SHIFT] = as_word(shift);
    return RLXVK_OK;
}

const op_family loop_random_family = {
    .name = "loop_random",
    .attribute_size = sizeof(loop_attributes),
    .infer = loop_random_infer,
    .execution = {.lower = loop_random_lower, .host = loop_random_host},
    .rows = {.bucket = loop_bucket},
    .describe = loop_describe,
};

/* ---- loop_update ---- */

static rlxvk_status loop_update_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *target = input_shape(g, n, 0), *value = input_shape(g, n, 1);
    rlxvk_shape wanted = n->input_count == 3 && target->rank ? without_rows(target) : *target;
    char want[SHAPE_TEXT], have[SHAPE_TEXT];
    rlxvk_status status;
    (void)attributes;
    TRY(require_op(g, n, 0, OP_loop_carry));
    if (n->input_count == 3)
        TRY(require_op(g, n, 2, OP_loop_begin));
    if (!shape_equal(&wanted, value) || input_dtype(g, n, 0) != input_dtype(g, n, 1))
        return op_fail(n, RLXVK_E_SHAPE, "%s %s against %s %s; both must have one shape and dtype",
                       rlxvk_dtype_name(input_dtype(g, n, 1)), shape_text(value, have),
                       rlxvk_dtype_name(input_dtype(g, n, 0)), shape_text(&wanted, want));
    (void)take_first(g, n);
error:
    return status;
}

static rlxvk_status loop_update_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    operand target = lower_update(l, n->inputs[0]), value = lower_input(l, id, 1);
    bool stores = n->input_count == 3;
    if (!stores && value.value == target.value && value.first == target.first)
        return RLXVK_OK; /* the value was written there, or is the unchanged carry */
    return emit_row(l, stores ? LOOP_ROW_STORE : LOOP_ROW_COPY, word_count(l, &value, n->inputs[1]),
                    stores ? lower_input(l, id, 2) : value, value, target, loop_of(n));
}

static rlxvk_status loop_update_host(const host_call *call)
{
    const loop_attributes *a = loop_of(call->node);
    uint64_t row = shape_numel(&call->inputs[1].node->shape), first = 0;
    uint64_t numel = shape_numel(&call->node->shape);
    const host_tensor *clock = call->node->input_count == 3 ? &call->inputs[2] : NULL;
    for (uint64_t i = 0; i < numel; i++)
        layout_host_move(call, i, &call->inputs[0], i);
    if (clock && clock_word(clock, LOOP_CLOCK_REST) + (uint64_t)a->rows < (uint64_t)a->steps)
        return RLXVK_OK;
    if (clock)
        first = row * clock_word(clock, LOOP_CLOCK_ROW);
    for (uint64_t i = 0; i < row; i++)
        layout_host_move(call, first + i, &call->inputs[1], i);
    return RLXVK_OK;
}

const op_family loop_update_family = {
    .name = "loop_update",
    .attribute_size = sizeof(loop_attributes),
    .infer = loop_update_infer,
    .storage = {.pairs = true},
    .views = {.view = first_operand_view},
    .memory = {.writes = first_operand_written, .replaces = true},
    .execution = {.lower = loop_update_lower, .host = loop_update_host},
    .rows = {.bucket = loop_bucket},
    .describe = loop_describe,
};

/* ---- loop_end ---- */

static rlxvk_status loop_end_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const loop_attributes *a = attributes;
    rlxvk_status status;
    TRY(require_op(g, n, 0, OP_loop_begin));
    for (uint32_t i = 1; i < n->input_count; i++)
        TRY(require_op(g, n, i, OP_loop_update));
    int64_t most = a->counted ? LOOP_MOST_COUNTED : UINT32_MAX;
    if (a->steps < 1 || a->steps > most || a->rows < 0 || a->rows > a->steps)
        return op_fail(n, RLXVK_E_TOO_LARGE, "%lld steps, %lld rows; at most %lld steps",
                       (long long)a->steps, (long long)a->rows, (long long)most);
    (void)take_first(g, n);
error:
    return status;
}

static bool loop_end_closes(const node *n, op_loop *out)
{
    const loop_attributes *a = loop_of(n);
    *out = (op_loop){(uint64_t)a->steps, a->stops ? 1 : NODE_NONE};
    return true;
}

static rlxvk_status loop_end_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    if (!loop_of(n)->counted)
        return RLXVK_OK;
    return emit_tick(l, lower_update(l, n->inputs[0]), loop_of(n), false);
}

static rlxvk_status loop_end_host(const host_call *call)
{
    const loop_attributes *a = loop_of(call->node);
    const host_tensor *clock = &call->inputs[0];
    uint32_t rest = clock_word(clock, LOOP_CLOCK_REST) + (uint32_t)a->rows;
    uint32_t saved = rest >= (uint32_t)a->steps;
    call->out[LOOP_CLOCK_STEP] = as_word(clock_word(clock, LOOP_CLOCK_STEP) + 1);
    call->out[LOOP_CLOCK_ROW] = as_word(clock_word(clock, LOOP_CLOCK_ROW) + saved);
    call->out[LOOP_CLOCK_REST] = as_word(rest - saved * (uint32_t)a->steps);
    return RLXVK_OK;
}

const op_family loop_end_family = {
    .name = "loop_end",
    .attribute_size = sizeof(loop_attributes),
    .infer = loop_end_infer,
    .storage = {.pairs = true},
    .views = {.view = first_operand_view},
    .memory = {.writes = first_operand_written},
    .loop = {.closes = loop_end_closes},
    .execution = {.lower = loop_end_lower, .host = loop_end_host},
    .rows = {.bucket = loop_bucket},
    .describe = loop_describe,
};

/* ---- loop_result ---- */

static rlxvk_status loop_result_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    rlxvk_status status;
    (void)attributes;
    TRY(require_op(g, n, 0, OP_loop_carry));
    TRY(require_op(g, n, 1, OP_loop_end));
    (void)take_first(g, n);
error:
    return status;
}

static rlxvk_status loop_result_host(const host_call *call)
{
    uint64_t numel = shape_numel(&call->node->shape);
    for (uint64_t i = 0; i < numel; i++)
        layout_host_move(call, i, &call->inputs[0], i);
    return RLXVK_OK;
}

const op_family loop_result_family = {
    .name = "loop_result",
    .attribute_size = sizeof(loop_attributes),
    .infer = loop_result_infer,
    .storage = {.pairs = true},
    .views = {.view = first_operand_view},
    .execution = {.host = loop_result_host},
    .rows = {.bucket = loop_bucket},
    .derivative = {.expand = loop_unroll},
    .describe = loop_describe,
};
