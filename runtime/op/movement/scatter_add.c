/*
 * scatter_add: out [R, T] = 0, then out[index(u)] += updates[u] for u = 0, 1, ..., in f32 and in
 * this order. If an index is NaN or outside [0, R), its update is dropped. No atomics are used:
 *
 *   few updates   each row compares itself with all indices (scatter_add_direct)
 *   many          The indices are sorted, stably, by R + 1 keys, of which the last means dropped.
 *                 Each row then adds its run of the sorted order: O(U log R + U T + R T). Either an
 *                 invocation makes an element (scatter_add_sum), or a workgroup makes some columns
 *                 (scatter_add_long).
 *
 * A complex update is two columns. Error of an element with n updates: 2^-23 (n + 2) sum |update|.
 */
#include "args/movement.h"
#include "constants/movement.h"
#include "op/gradient.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/movement/scatter_add.h"

#include <math.h>

typedef struct scatter_add_attributes {
    int64_t dim;
} scatter_add_attributes;

/* ---- Building ---- */

rlxvk_tensor rlxvk_scatter_add(rlxvk_graph *g, rlxvk_tensor updates, rlxvk_tensor indices,
                               int64_t dim)
{
    scatter_add_attributes a = {.dim = dim};
    return op_build(g, OP_scatter_add, (rlxvk_tensor[]){updates, indices}, 2, &a);
}

/* ---- Infer ---- */

static rlxvk_status scatter_add_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const scatter_add_attributes *a = attributes;
    const rlxvk_shape *updates = input_shape(g, n, 0), *index = input_shape(g, n, 1);
    char update_text[SHAPE_TEXT], index_text[SHAPE_TEXT];
    if (updates->rank == 0 || shape_numel(index) != (uint64_t)updates->dims[0])
        return op_fail(n, RLXVK_E_SHAPE,
                       "updates %s by indices %s; needs one index for each of "
                       "axis 0 of the updates",
                       shape_text(updates, update_text), shape_text(index, index_text));
    if (input_dtype(g, n, 1) == RLXVK_C64)
        return op_fail(n, RLXVK_E_DTYPE, "the indices are complex; takes real ones");
    if (a->dim < 0)
        return op_fail(n, RLXVK_E_ATTR, "dim %lld is negative; it counts rows", (long long)a->dim);
    if (a->dim > SCATTER_LONGEST_AXIS)
        return op_fail(n, RLXVK_E_INDEX_RANGE,
                       "dim %lld is above 2^24, which indices held as f32 can count",
                       (long long)a->dim);
    n->shape = *updates;
    n->shape.dims[0] = a->dim;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    return RLXVK_OK;
}

static uint32_t scatter_add_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    scatter_add_attributes *a = attributes;
    out[0] = &a->dim;
    return 1;
}

/* ---- Lower ---- */

/* The words of a row. */
static uint64_t row_words(const node *n)
{
    return shape_product(&n->shape, 1, n->shape.rank) * (n->dtype == RLXVK_C64 ? 2 : 1);
}

/* Workgroups that fill a device. */
#define FEWEST_GROUPS 256

#define MARK_WORDS (SCATTER_DIRECT_UPDATES / 32)

static rlxvk_status lower_direct(lowering *l, const scatter_work *w)
{
    uint64_t size = l->profile->workgroup_size;
    uint64_t rows = w->outer * w->rows;
    uint64_t turns = divide_up(w->columns, size), rounds = turns * (w->updates + MARK_WORDS);
    uint64_t tiles =
        MAX(divide_up(FEWEST_GROUPS, rows), divide_up(rounds, SCATTER_MOST_ROUNDS / 2));
    tiles = MIN(turns, tiles);
    struct scatter_add_direct_args args = {.outer = (u32)w->outer,
                                           .rows = (u32)w->rows,
                                           .columns = (u32)w->columns,
                                           .updates = (u32)w->updates,
                                           .tiles = (u32)tiles,
                                           .tile_columns =
                                               (u32)round_up(divide_up(w->columns, tiles), size),
                                           .updates_offset = w->source.offset,
                                           .index_offset = w->index.offset,
                                           .y_offset = w->y.offset};
    dispatch d = {.kernel = KERNEL_SCATTER_ADD_DIRECT, .variant = w->class->row.name};
    SET_CONSTANTS(&d, {LOCAL_SIZE, (uint32_t)size}, {SCATTER_ADD_DIRECT_CLAMPED, w->clamped});
    lower_groups(l, &d, rows * tiles);
    return lower_emit(l, &d, &args, sizeof args, (operand[]){w->source, w->index, w->y}, 3);
}

/* Emits the dispatch until every run is added. Each adds the next updates of all runs; `skipped`,
 * in its arguments, says how many come before. */
static rlxvk_status emit_turns(lowering *l, const scatter_work *w, const scatter_runs *s,
                               dispatch *d, const void *args, size_t size, u32 *skipped)
{
    uint64_t most = scatter_longest_run(l->profile);
    operand operands[] = {w->source, s->positions, s->starts, w->y};
    rlxvk_status status = RLXVK_OK;
    for (uint64_t first = 0; first < w->updates; first += most) {
        *skipped = (u32)first;
        operands[3].access |= first > 0 ? ACCESS_READ : 0;
        TRY(lower_emit(l, d, args, size, operands, ARRAY_COUNT(operands)));
    }
error:
    return status;
}

static rlxvk_status emit_sums(lowering *l, const scatter_work *w, const scatter_runs *s)
{
    bool quads = (w->columns | w->source.offset | w->y.offset) % 4 == 0;
    uint32_t size = l->profile->workgroup_size, width = quads ? 4 : 1;
    struct scatter_add_sum_args args = {.outer = (u32)w->outer,
                                        .rows = (u32)w->rows,
                                        .columns = (u32)(w->columns / width),
                                        .updates = (u32)w->updates,
                                        .updates_offset = w->source.offset / width,
                                        .y_offset = w->y.offset / width,
                                        .most = (u32)scatter_longest_run(l->profile)};
    dispatch d = {.kernel = KERNEL_SCATTER_ADD_SUM, .variant = w->class->row.name};
    SET_CONSTANTS(&d, {LOCAL_SIZE, size}, {SCATTER_ADD_SUM_QUADS, quads});
    lower_groups(l, &d, groups_for(w->outer * w->rows * w->columns / width, size));
    return emit_turns(l, w, s, &d, &args, sizeof args, &args.skipped);
}

static rlxvk_status emit_runs(lowering *l, const scatter_work *w, const scatter_runs *s)
{
    uint32_t columns = power_of_two_from(w->columns, SCATTER_LONG_COLUMNS);
    uint64_t tiles = divide_up(w->columns, columns);
    struct scatter_add_long_args args = {.outer = (u32)w->outer,
                                         .rows = (u32)w->rows,
                                         .columns = (u32)w->columns,
                                         .updates = (u32)w->updates,
                                         .tiles = (u32)tiles,
                                         .updates_offset = w->source.offset,
                                         .y_offset = w->y.offset,
                                         .most = (u32)scatter_longest_run(l->profile)};
    dispatch d = {.kernel = KERNEL_SCATTER_ADD_LONG, .variant = w->class->row.name};
    SET_CONSTANTS(&d, {LOCAL_SIZE, SCATTER_LONG_THREADS}, {SCATTER_ADD_LONG_COLUMNS, columns});
    lower_groups(l, &d, w->outer * w->rows * tiles);
    return emit_turns(l, w, s, &d, &args, sizeof args, &args.skipped);
}

/* There is one key more than rows, because dropped updates sort after all rows. */
static rlxvk_status find_runs(lowering *l, operand words, uint32_t mode, uint64_t rows,
                              uint64_t updates, scatter_runs *out)
{
    radix_sort sort = {.rows = 1,
                       .extent = updates,
                       .mode = mode,
                       .limit = (uint32_t)rows,
                       .bits = radix_sort_bits(rows),
                       .words = words};
    rlxvk_status status;
    TRY(radix_sort_lower(l, &sort));
    out->positions = sort.values;
    TRY(radix_sort_find_starts(l, &sort, rows, rows + 1, &out->starts));
error:
    return status;
}

rlxvk_status scatter_add_find_runs(lowering *l, operand index, uint64_t rows, uint64_t updates,
                                   bool clamped, scatter_runs *out)
{
    return find_runs(l, index, clamped ? RADIX_CLAMPED : RADIX_INDEX, rows, updates, out);
}

static rlxvk_status add_runs(lowering *l, const scatter_work *w, const scatter_runs *s)
{
    return w->class->way == SCATTER_RUNS ? emit_runs(l, w, s) : emit_sums(l, w, s);
}

static rlxvk_status lower_sorted(lowering *l, const scatter_work *w)
{
    scatter_runs runs;
    rlxvk_status status;
    TRY(scatter_add_find_runs(l, w->index, w->rows, w->updates, w->clamped, &runs));
    TRY(add_runs(l, w, &runs));
error:
    return status;
}

/* Sums parts of the updates, then adds the sums of the parts. */
static rlxvk_status lower_parts(lowering *l, const scatter_work *w)
{
    uint64_t parts = divide_up(w->updates, SCATTER_PARTS_THREADS * SCATTER_PARTS_RUN);
    struct scatter_add_parts_args args = {.rows = (u32)w->rows,
                                          .columns = (u32)w->columns,
                                          .updates = (u32)w->updates,
                                          .parts = (u32)parts,
                                          .updates_offset = w->source.offset,
                                          .index_offset = w->index.offset};
    dispatch d = {.kernel = KERNEL_SCATTER_ADD_PARTS, .variant = w->class->row.name}, last = d;
    operand sums;
    rlxvk_status status;
    TRY(lower_temporary(l, 4 * parts * w->rows * w->columns, &sums));
    SET_CONSTANTS(&d, {LOCAL_SIZE, SCATTER_PARTS_THREADS}, {SCATTER_ADD_PARTS_LAST, false});
    lower_groups(l, &d, parts);
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){w->source, w->index, sums}, 3));
    args.y_offset = w->y.offset;
    SET_CONSTANTS(&last, {LOCAL_SIZE, SCATTER_PARTS_THREADS}, {SCATTER_ADD_PARTS_LAST, true});
    lower_groups(l, &last, w->rows * w->columns);
    TRY(lower_emit(l, &last, &args, sizeof args, (operand[]){reading(sums), w->index, w->y}, 3));
error:
    return status;
}

static void choose(lowering *l, scatter_work *w, bool keyed)
{
    scatter_shape shape = {w->outer, w->rows, w->columns, w->updates, w->clamped, keyed};
    w->class =
        scatter_choose(&shape, l->profile, variant_choose(l, CHOICE_scatter_add, NULL, NULL));
}

void scatter_add_count_words(scatter_work *w)
{
    w->source.offset *= 2;
    w->y.offset *= 2;
}

rlxvk_status scatter_add_lower_node(lowering *l, uint32_t id, scatter_work w)
{
    w.source = lower_input(l, id, 0);
    w.index = lower_input(l, id, 1);
    w.y = lower_write(l, id);
    if (graph_node(l->graph, id)->dtype == RLXVK_C64)
        scatter_add_count_words(&w);
    choose(l, &w, false);
    if (w.class->way == SCATTER_DIRECT)
        return lower_direct(l, &w);
    return w.class->way == SCATTER_PARTS ? lower_parts(l, &w) : lower_sorted(l, &w);
}

rlxvk_status scatter_add_emit_keyed(lowering *l, scatter_work *w, operand keys)
{
    scatter_runs runs;
    rlxvk_status status;
    choose(l, w, true);
    TRY(find_runs(l, keys, RADIX_WORDS, w->rows, w->updates, &runs));
    TRY(add_runs(l, w, &runs));
error:
    return status;
}

static rlxvk_status scatter_add_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    scatter_work w = {.outer = 1,
                      .rows = (uint64_t)n->shape.dims[0],
                      .columns = row_words(n),
                      .updates = (uint64_t)input_shape(l->graph, n, 0)->dims[0]};
    return scatter_add_lower_node(l, id, w);
}

/* ---- Host ---- */

static rlxvk_status scatter_add_host(const host_call *c)
{
    const int64_t *shape = c->node->shape.dims, *from = c->inputs[0].node->shape.dims;
    uint64_t columns = row_words(c->node), words = columns * (uint64_t)shape[0];
    double *counts = memory_zeroed((size_t)shape[0] + 1, sizeof *counts);
    if (!counts)
        return status_fail_memory("scatter_add");
    for (uint64_t i = 0; c->bound && i < words; i++)
        c->bound[i] = 0;
    for (int64_t u = 0; u < from[0]; u++) {
        double row = floor((double)c->inputs[1].words[u] + 0.5);
        if (!(row >= 0 && row < (double)shape[0]))
            continue;
        counts[(size_t)row]++;
        for (uint64_t t = 0; t < columns; t++) {
            double v = c->inputs[0].words[(uint64_t)u * columns + t];
            c->out[(uint64_t)row * columns + t] += v;
            if (c->bound)
                c->bound[(uint64_t)row * columns + t] += fabs(v);
        }
    }
    for (uint64_t i = 0; c->bound && i < words; i++)
        c->bound[i] *= 0x1p-23 * (counts[i / columns] + 2);
    memory_free(counts);
    return RLXVK_OK;
}

/* ---- The family ---- */

/* A column of the result depends only on the same column of the updates. */
static uint64_t scatter_add_bucket(bucket_call *c)
{
    if (bucket_axis(c, 0) <= 0 || bucket_others(c, 1))
        return bucket_refuse(c, "it adds up over the rows of its updates");
    return bucket_along(c, bucket_axis(c, 0));
}

/* A dropped update gets gradient 0. A mask does this, because gather would clamp its index and read
 * the nearest row. */
static rlxvk_status scatter_add_vjp(gradient_call *c)
{
    const scatter_add_attributes *a = c->n.attributes;
    rlxvk_graph *g = c->graph;
    rlxvk_tensor index = gradient_operand(c, 1);
    rlxvk_shape shape = gradient_shape(c, 0), rows = {.rank = shape.rank, .dims = {shape.dims[0]}};
    rlxvk_tensor zero = gradient_filled(g, 0, (rlxvk_dtype)c->n.dtype, RLXVK_SCALAR);
    if (a->dim == 0) {
        gradient_give(c, 0, gradient_filled(g, 0, (rlxvk_dtype)c->n.dtype, shape));
        return RLXVK_OK;
    }
    for (uint32_t i = 1; i < rows.rank; i++)
        rows.dims[i] = 1;
    rlxvk_tensor inside = rlxvk_mul(g, rlxvk_ge(g, index, gradient_scalar(g, -0.5)),
                                    rlxvk_lt(g, index, gradient_scalar(g, (double)a->dim - 0.5)));
    rlxvk_tensor taken = rlxvk_reshape(g, rlxvk_gather(g, c->dy, index, 0), shape);
    gradient_give(c, 0, rlxvk_where(g, rlxvk_reshape(g, inside, rows), taken, zero));
    return RLXVK_OK;
}

static index_limits scatter_add_indices(const rlxvk_graph *g, const node *n)
{
    (void)g;
    return index_limits_of(1, ((const scatter_add_attributes *)n->attributes)->dim);
}

static void scatter_add_describe(const node *n, text *out)
{
    text_append(out, " dim=%lld", (long long)((const scatter_add_attributes *)n->attributes)->dim);
}

const op_family scatter_add_family = {
    .name = "scatter_add",
    .attribute_size = sizeof(scatter_add_attributes),
    .infer = scatter_add_infer,
    .sizes = scatter_add_sizes,
    .storage = {.pairs = true},
    .execution = {.lower = scatter_add_lower, .host = scatter_add_host},
    .rows = {.bucket = scatter_add_bucket},
    .derivative = {.vjp = scatter_add_vjp},
    .checks = {.indices = scatter_add_indices},
    .describe = scatter_add_describe,
};
