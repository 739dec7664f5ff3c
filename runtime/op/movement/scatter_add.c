/*
 * scatter_add: out [R, T] = 0, then out[index(u)] += updates[u] for u = 0, 1, ..., in f32 and in
 * that order; an index that is NaN or outside [0, R) drops its row. Nothing is added atomically:
 *
 *   few updates   each row looks through all indices (scatter_add_direct)
 *   many          the indices are sorted, stably, by R + 1 keys (the last: dropped), and each row
 *                 adds its run of the sorted order: O(U log R + U T + R T)
 *
 * A complex update is two columns. Error of an element with n updates: 2^-23 (n + 2) sum |update|.
 */
#include "args/movement.h"
#include "op/families.h"
#include "op/movement/radix_sort.h"

#include <math.h>

typedef struct scatter_add_attributes {
    int64_t dim;
} scatter_add_attributes;

#define LONGEST_INDEXED_AXIS (1 << 24) /* indices are exact f32 integers */
/* Looking through all indices stays cheaper than sorting them up to so many comparisons, and while
 * its workgroups are few, or have columns for their threads. A processor pays dearly for each. */
#define MOST_COMPARISONS (1u << 24)
#define MOST_GROUPS      (1u << 16)
#define MOST_CPU_GROUPS  (1u << 10)
#define FEWEST_COLUMNS   64
/* Workgroups that fill a device, and updates of an average row that make it a long one. */
#define FEWEST_GROUPS 256
#define LONG_ROW      64
#define LONG_COLUMNS  64

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
    if (a->dim > LONGEST_INDEXED_AXIS)
        return op_fail(n, RLXVK_E_INDEX_RANGE,
                       "dim %lld is above 2^24, which indices held as f32 can count",
                       (long long)a->dim);
    n->shape = *updates;
    n->shape.dims[0] = a->dim;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    return RLXVK_OK;
}

/* ---- Lower ---- */

/* Words of a row. */
static uint64_t row_words(const node *n)
{
    return shape_product(&n->shape, 1, n->shape.rank) * (n->dtype == RLXVK_C64 ? 2 : 1);
}

typedef struct scatter_work {
    uint64_t rows, columns, updates;
    operand source, index, y;
} scatter_work;

static rlxvk_status lower_direct(lowering *l, const scatter_work *w)
{
    uint64_t size = l->profile->workgroup_size;
    uint64_t tiles = MIN(divide_up(w->columns, size), divide_up(FEWEST_GROUPS, w->rows));
    struct scatter_add_direct_args args = {.rows = (u32)w->rows,
                                           .columns = (u32)w->columns,
                                           .updates = (u32)w->updates,
                                           .tiles = (u32)tiles,
                                           .tile_columns =
                                               (u32)round_up(divide_up(w->columns, tiles), size),
                                           .updates_offset = w->source.offset,
                                           .index_offset = w->index.offset,
                                           .y_offset = w->y.offset};
    dispatch d = {.kernel = KERNEL_SCATTER_ADD_DIRECT};
    SET_CONSTANTS(&d, {LOCAL_SIZE, (uint32_t)size});
    lower_groups(l, &d, w->rows * tiles);
    return lower_emit(l, &d, &args, sizeof args, (operand[]){w->source, w->index, w->y}, 3);
}

/* One more key than rows: what is dropped sorts behind them. */
static uint32_t key_bits(uint64_t rows)
{
    uint32_t bits = 1;
    while (rows >> bits)
        bits++;
    return bits;
}

static rlxvk_status emit_sums(lowering *l, const scatter_work *w, operand positions, operand starts)
{
    uint32_t size = l->profile->workgroup_size;
    bool is_long = w->columns <= MIN(LONG_COLUMNS, size) && w->updates / w->rows >= LONG_ROW;
    struct scatter_add_sum_args args = {.rows = (u32)w->rows,
                                        .columns = (u32)w->columns,
                                        .updates_offset = w->source.offset,
                                        .y_offset = w->y.offset};
    dispatch d = {.kernel = is_long ? KERNEL_SCATTER_ADD_LONG : KERNEL_SCATTER_ADD_SUM};
    operand operands[] = {w->source, positions, starts, w->y};
    SET_CONSTANTS(&d, {LOCAL_SIZE, size});
    lower_groups(l, &d, is_long ? w->rows : groups_for(w->rows * w->columns, size));
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status lower_sorted(lowering *l, const scatter_work *w)
{
    radix_sort sort = {.rows = 1, .extent = w->updates, .bits = key_bits(w->rows)};
    struct scatter_add_starts_args args = {(u32)w->rows, (u32)w->updates};
    dispatch d = {.kernel = KERNEL_SCATTER_ADD_STARTS};
    operand starts;
    rlxvk_status status;
    TRY(radix_sort_keys(l, &sort, w->index, RADIX_INDEX, (uint32_t)w->rows));
    TRY(radix_sort_lower(l, &sort));
    TRY(lower_temporary(l, 4 * (w->rows + 1), &starts));
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, groups_for(w->rows + 1, l->profile->workgroup_size));
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){sort.keys, starts}, 2));
    starts.access = ACCESS_READ;
    TRY(emit_sums(l, w, sort.values, starts));
error:
    return status;
}

static bool is_direct(const device_profile *profile, const scatter_work *w)
{
    if (w->updates > SCATTER_DIRECT_UPDATES || w->rows * w->updates > MOST_COMPARISONS)
        return false;
    if (profile_is_software(profile))
        return w->rows <= MOST_CPU_GROUPS;
    return w->rows <= MOST_GROUPS || w->columns >= FEWEST_COLUMNS;
}

static rlxvk_status scatter_add_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    scatter_work w = {.rows = (uint64_t)n->shape.dims[0],
                      .columns = row_words(n),
                      .updates = (uint64_t)input_shape(l->graph, n, 0)->dims[0],
                      .source = lower_input(l, id, 0),
                      .index = lower_input(l, id, 1),
                      .y = lower_write(l, id)};
    if (n->dtype == RLXVK_C64) {
        w.source.offset *= 2;
        w.y.offset *= 2;
    }
    if (w.updates == 0 || is_direct(l->profile, &w))
        return lower_direct(l, &w);
    return lower_sorted(l, &w);
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

static uint64_t scatter_add_index_limit(const rlxvk_graph *g, const node *n, uint32_t *out_operand)
{
    (void)g;
    *out_operand = 1;
    return (uint64_t)((const scatter_add_attributes *)n->attributes)->dim;
}

static void scatter_add_describe(const node *n, text *out)
{
    text_append(out, " dim=%lld", (long long)((const scatter_add_attributes *)n->attributes)->dim);
}

const op_family scatter_add_family = {.name = "scatter_add",
                                      .attribute_size = sizeof(scatter_add_attributes),
                                      .pairs = true,
                                      .infer = scatter_add_infer,
                                      .lower = scatter_add_lower,
                                      .host = scatter_add_host,
                                      .index_limit = scatter_add_index_limit,
                                      .describe = scatter_add_describe};
