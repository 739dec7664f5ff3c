/*
 * The k nearest neighbours for any k. The distances of some rows from all points are stored as a
 * key and a rest (knn_measure.glsl). They are sorted by the rest and then by the key. Because
 * sorting is stable, the smaller index comes first if distances are equal. Rows are handled in
 * chunks to bound temporary memory; a chunk has at least one row.
 */
#include "constants/neighbours.h"
#include "op/movement/radix_sort.h"
#include "op/neighbours/knn.h"

#define MOST_ITEMS 8 /* points for which an invocation computes keys */

uint64_t knn_sorted_words = 1u << 23;

typedef struct sorted_chunk {
    uint64_t first, rows;
    operand keys, rests;
    radix_sort by_rest, by_key;
} sorted_chunk;

/* How many points an invocation measures. There are so few that its loops stay below
 * KNN_MOST_ROUNDS. */
static uint64_t choose_items(const knn_work *w)
{
    uint64_t columns = MAX(divide_up(w->columns, knn_columns_of_round(w)), 1);
    return MIN(MAX(KNN_MOST_ROUNDS / (3 * columns + 1), 3) - 2, MOST_ITEMS);
}

static rlxvk_status emit_keys(const knn_work *w, sorted_chunk *c)
{
    uint64_t items = choose_items(w), blocks = divide_up(w->points, items);
    uint64_t words = w->metric == KNN_OF_ROWS ? 1 : c->rows * w->points;
    dispatch d = {.kernel = KERNEL_KNN_KEYS, .variant = w->variant};
    struct knn_keys_args args = {.rows = (u32)c->rows,
                                 .points = (u32)w->points,
                                 .columns = (u32)w->columns,
                                 .query_offset = w->queries.offset,
                                 .point_offset = w->given.offset,
                                 .first_row = (u32)c->first,
                                 .items = (u32)items,
                                 .blocks = (u32)blocks};
    rlxvk_status status;
    TRY(lower_temporary(w->l, 4 * c->rows * w->points, &c->keys));
    TRY(lower_temporary(w->l, 4 * words, &c->rests));
    SET_CONSTANTS(&d, {LOCAL_SIZE, w->l->profile->workgroup_size}, {KNN_KEYS_METRIC, w->metric},
                  {KNN_KEYS_COLUMNS, knn_columns_of_round(w)});
    lower_groups(w->l, &d, groups_for(c->rows * blocks, w->l->profile->workgroup_size));
    TRY(lower_emit(w->l, &d, &args, sizeof args,
                   (operand[]){w->queries, w->given, c->keys, c->rests}, 4));
    c->keys.access = c->rests.access = ACCESS_READ;
error:
    return status;
}

static radix_sort sort_of(const knn_work *w, const sorted_chunk *c, operand words)
{
    return (radix_sort){
        .rows = c->rows, .extent = w->points, .mode = RADIX_WORDS, .bits = 32, .words = words};
}

/* Permutes the keys to the order of their points after the sort by rests. */
static rlxvk_status emit_take(const knn_work *w, const sorted_chunk *c, operand *out)
{
    struct knn_take_args args = {(u32)(c->rows * w->points), (u32)w->points};
    dispatch d = {.kernel = KERNEL_KNN_TAKE, .variant = w->variant};
    rlxvk_status status;
    TRY(lower_temporary(w->l, 4 * c->rows * w->points, out));
    SET_CONSTANTS(&d, {LOCAL_SIZE, w->l->profile->workgroup_size});
    lower_groups(w->l, &d, groups_for(args.count, w->l->profile->workgroup_size));
    TRY(lower_emit(w->l, &d, &args, sizeof args, (operand[]){c->keys, c->by_rest.values, *out}, 3));
    out->access = ACCESS_READ;
error:
    return status;
}

static rlxvk_status emit_sorts(const knn_work *w, sorted_chunk *c)
{
    operand keys = c->keys;
    rlxvk_status status = RLXVK_OK;
    if (w->metric != KNN_OF_ROWS) {
        c->by_rest = sort_of(w, c, c->rests);
        TRY(radix_sort_lower(w->l, &c->by_rest));
        TRY(emit_take(w, c, &keys));
    }
    c->by_key = sort_of(w, c, keys);
    TRY(radix_sort_lower(w->l, &c->by_key));
error:
    return status;
}

static rlxvk_status emit_give(const knn_work *w, const sorted_chunk *c)
{
    uint64_t k = (uint64_t)graph_node(w->l->graph, w->id)->shape.dims[1] / 2;
    const radix_sort *rests = w->metric == KNN_OF_ROWS ? &c->by_key : &c->by_rest;
    struct knn_give_args args = {.rows = (u32)c->rows,
                                 .points = (u32)w->points,
                                 .k = (u32)k,
                                 .query_offset = w->queries.offset,
                                 .y_offset = w->y.offset,
                                 .first_row = (u32)c->first};
    const operand operands[] = {w->queries,  c->by_key.keys, c->by_key.values,
                                rests->keys, rests->values,  w->y};
    dispatch d = {.kernel = KERNEL_KNN_GIVE, .variant = w->variant};
    SET_CONSTANTS(&d, {LOCAL_SIZE, w->l->profile->workgroup_size}, {KNN_GIVE_METRIC, w->metric});
    lower_groups(w->l, &d, groups_for(c->rows * k, w->l->profile->workgroup_size));
    return lower_emit(w->l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

rlxvk_status knn_emit_sorted(const knn_work *w)
{
    uint64_t words = MIN(knn_sorted_words, w->l->profile->max_binding_bytes / 4);
    uint64_t rows = MIN(MAX(words / w->points, 1), w->rows);
    rlxvk_status status = RLXVK_OK;
    for (uint64_t first = 0; first < w->rows; first += rows) {
        sorted_chunk c = {.first = first, .rows = MIN(rows, w->rows - first)};
        TRY(emit_keys(w, &c));
        TRY(emit_sorts(w, &c));
        TRY(emit_give(w, &c));
    }
error:
    return status;
}
