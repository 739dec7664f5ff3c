/*
 * The dispatches of knn and umap_knn. All variants give the same result:
 *
 *   exact     Measures each pair in sums of pairs of floats. A workgroup holds the list of a
 *             row.
 *   filtered  A matrix product in f32 gives rough distances of some queries from all points.
 *     Each query keeps a few more than k candidates, which are then measured exactly. If these
 *     may not contain all k nearest, the whole row is measured.
 *   sorted    Measures all pairs of some queries and sorts them (knn_sorted.c). It is for k
 *             above KNN_MOST.
 *
 * Products are computed in chunks, into two buffers in turn. While candidates are taken from one
 * buffer, the next product is computed into the other.
 *
 * An old software driver silently ends the loops of an invocation after 65,535 rounds in all, and
 * nested rounds count together. So a dispatch handles only as many points as take KNN_MOST_ROUNDS.
 */
#include "args/elementwise.h"
#include "constants/neighbours.h"
#include "op/matmul/matmul.h"
#include "op/neighbours/knn.h"

uint64_t knn_product_words = 1u << 25;
bool knn_marks_unfiltered;

#define FEWEST_PRODUCTS (1u << 24) /* multiply-adds, from which on a filter pays */
#define MOST_COLUMNS    (1u << 18) /* error_of_rough() of knn.comp is valid up to here */
#define ROWS_OF_CHUNK   1024
#define FEWEST_POINTS   64  /* of a chunk, at least */
#define POINTS_OF_TILE  128 /* of a tile of a product */
#define FILTER_THREADS  128
#define ROWS_OF_LISTS   (1u << 17) /* rows that have lists at a time */

/* ---- The choice ---- */

typedef struct knn_shape {
    uint64_t rows, points, columns, k;
    bool measured; /* distances are computed, not given */
} knn_shape;

enum knn_way { KNN_EXACT, KNN_FILTER, KNN_SORT };

typedef struct knn_class {
    choice_row row;
    uint8_t way;
} knn_class;

/* clang-format off */
static const knn_class classes[] = {
    {{"filtered", ON_ALL, 0}, KNN_FILTER},
    {{"exact",    ON_ALL, 0}, KNN_EXACT},
    {{"sorted",   ON_ALL, 0}, KNN_SORT},
};
/* clang-format on */

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const knn_class *c = row;
    const knn_shape *s = problem;
    (void)profile;
    if (c->way != KNN_FILTER)
        return (choice_fit){.can = c->way == KNN_SORT || s->k <= KNN_MOST, .suits = true};
    return (choice_fit){.can = s->measured && s->columns <= MOST_COLUMNS && s->k <= KNN_MOST,
                        .suits = s->points >= 8 * (s->k + KNN_SPARE) &&
                                 s->rows * s->points >= FEWEST_PRODUCTS / s->columns};
}

const choice_table knn_choice = {CHOICE_ROWS(classes), .fit = fit, .last_takes_all = true};

/* ---- Dispatches ---- */

/* How many points of a row one dispatch measures. The invocations of a workgroup take one point
 * each at a time. For each point, loops go through the columns at most three times. If the buffer
 * is full, all waiting candidates are merged. */
static uint64_t points_of_dispatch(const knn_work *w, uint64_t k, uint32_t threads)
{
    uint64_t columns = divide_up(w->columns, knn_columns_of_round(w)), entries = k + KNN_BUFFER;
    uint64_t merge = divide_up(entries, threads) * (entries + 1) + divide_up(3 * k, threads);
    uint64_t turns_of_merge = MAX(KNN_BUFFER / threads, 1);
    uint64_t turn = 1 + 3 * columns + divide_up(merge, turns_of_merge);
    uint64_t once = 2 * columns + 2 * merge + 2 * divide_up(3 * k, threads) +
                    divide_up(w->kept, threads) * turn;
    return once < KNN_MOST_ROUNDS ? MAX((KNN_MOST_ROUNDS - once) / turn, 1) * threads : threads;
}

/* Measures points [first, end) for some rows. */
static rlxvk_status emit_points(const knn_work *w, struct knn_args args, uint32_t threads,
                                operand lists, operand y)
{
    dispatch d = {.kernel = KERNEL_KNN, .variant = w->variant};
    SET_CONSTANTS(&d, {LOCAL_SIZE, threads}, {KNN_METRIC, w->metric}, {KNN_FILTERED, w->kept > 0},
                  {KNN_MARKED, w->kept > 0 && knn_marks_unfiltered},
                  {KNN_COLUMNS, knn_columns_of_round(w)});
    lower_groups(w->l, &d, args.rows);
    return lower_emit(w->l, &d, &args, sizeof args, (operand[]){w->queries, w->given, lists, y}, 4);
}

/* Computes rows [first, first + count) of the result, from their lists or from all points. */
static rlxvk_status emit_rows(const knn_work *w, uint64_t first, uint64_t count)
{
    uint32_t threads = MIN(w->l->profile->workgroup_size, KNN_BUFFER / 2);
    uint32_t k = (u32)graph_node(w->l->graph, w->id)->shape.dims[1] / 2;
    uint64_t each = points_of_dispatch(w, k, threads);
    bool whole = w->points <= each;
    struct knn_args args = {.rows = (u32)count,
                            .points = (u32)w->points,
                            .columns = (u32)w->columns,
                            .k = k,
                            .query_offset = w->queries.offset,
                            .point_offset = w->given.offset,
                            .y_offset = w->y.offset,
                            .first_row = (u32)first,
                            .kept = w->kept,
                            .end_point = whole ? (u32)w->points : 0,
                            .state_offset = (u32)w->list_words};
    operand lists = updating(w->lists);
    rlxvk_status status = RLXVK_OK;
    if (whole || w->kept)
        TRY(emit_points(w, args, threads, lists, w->y));
    args.goes_on = w->kept > 0;
    for (uint64_t point = 0; point < w->points && !whole; point += each) {
        args.first_point = (u32)point;
        args.end_point = (u32)MIN(point + each, w->points);
        TRY(emit_points(w, args, threads, lists, w->y));
    }
error:
    return status;
}

/* Makes memory for `rows` rows: the lists that knn.comp reads, and the states that it keeps from
 * one dispatch to the next. */
static rlxvk_status make_lists(knn_work *w, uint64_t rows)
{
    uint64_t k = (uint64_t)graph_node(w->l->graph, w->id)->shape.dims[1] / 2;
    w->list_words = w->kept ? rows * KNN_LIST_WORDS((uint64_t)w->kept) : 0;
    return lower_temporary(w->l, 4 * (w->list_words + rows * KNN_STATE_WORDS(k)), &w->lists);
}

/* Computes as many rows at a time as have lists. */
static rlxvk_status emit_exact(knn_work *w)
{
    uint64_t held = MIN(ROWS_OF_LISTS, w->rows);
    rlxvk_status status;
    TRY(make_lists(w, held));
    for (uint64_t first = 0; first < w->rows; first += held)
        TRY(emit_rows(w, first, MIN(held, w->rows - first)));
error:
    return status;
}

static rlxvk_status emit_norms(const knn_work *w, operand x, uint64_t rows, operand *norms)
{
    dispatch d = {.kernel = KERNEL_KNN_NORMS, .variant = w->variant};
    struct knn_norms_args args = {.rows = (u32)rows,
                                  .columns = (u32)w->columns,
                                  .x_offset = x.offset};
    rlxvk_status status;
    TRY(lower_temporary(w->l, 4 * rows, norms));
    SET_CONSTANTS(&d, {LOCAL_SIZE, w->l->profile->workgroup_size});
    lower_groups(w->l, &d, groups_for(rows, w->l->profile->workgroup_size));
    TRY(lower_emit(w->l, &d, &args, sizeof args, (operand[]){x, *norms}, 2));
    norms->access = ACCESS_READ;
error:
    return status;
}

/* products = queries points^T, for these rows and points. */
static rlxvk_status emit_products(knn_work *w, uint64_t row, uint64_t rows, uint64_t point,
                                  uint64_t points, operand products)
{
    rlxvk_shape a = RLXVK_SHAPE((int64_t)rows, (int64_t)w->columns);
    rlxvk_shape b = RLXVK_SHAPE((int64_t)points, (int64_t)w->columns);
    matmul_request request = {
        .a = w->queries, .b = w->given, .y = products, .activation = UNARY_NONE, .exact = true};
    lower_narrow(w->l, &request.a, row * w->columns, rows * w->columns);
    lower_narrow(w->l, &request.b, point * w->columns, points * w->columns);
    matmul_problem_make(&a, &b, false, true, &request.problem);
    return matmul_emit(w->l, w->id, &request);
}

/* The search for a bound needs more threads than a row keeps candidates. */
static uint32_t filter_threads(const device_profile *profile)
{
    return MAX(profile->workgroup_size, MIN(profile->max_workgroup_invocations, FILTER_THREADS));
}

/* Filters all points for some rows. Their lists begin at row `list_row` of the lists. */
static rlxvk_status emit_chunk(knn_work *w, uint64_t row, uint64_t rows, uint64_t list_row)
{
    rlxvk_status status = RLXVK_OK;
    for (uint64_t point = 0; point < w->points; point += w->chunk_points) {
        uint64_t points = MIN(w->chunk_points, w->points - point);
        operand products = w->products[w->turn++ % 2];
        struct knn_filter_args args = {.rows = (u32)rows,
                                       .points = (u32)points,
                                       .first_row = (u32)row,
                                       .first_point = (u32)point,
                                       .list_row = (u32)list_row,
                                       .kept = w->kept};
        dispatch d = {.kernel = KERNEL_KNN_FILTER, .variant = w->variant};
        TRY(emit_products(w, row, rows, point, points, products));
        SET_CONSTANTS(&d, {LOCAL_SIZE, filter_threads(w->l->profile)},
                      {KNN_FILTER_METRIC, w->metric});
        lower_groups(w->l, &d, rows);
        TRY(lower_emit(w->l, &d, &args, sizeof args,
                       (operand[]){reading(products), w->query_norms, w->point_norms,
                                   updating(w->lists)},
                       4));
    }
error:
    return status;
}

/* How many points a chunk of the filter may have. An invocation takes KNN_ITEMS points at a time.
 * After each of these rounds, all waiting candidates may have to be ranked. */
static uint64_t points_of_filter(const knn_work *w)
{
    uint64_t threads = filter_threads(w->l->profile), begin = divide_up(w->kept, threads);
    uint64_t tighten = divide_up(KNN_ROOM, threads) * (divide_up(KNN_ROOM, KNN_RANKED) + 1) + begin;
    uint64_t part = 1 + divide_up(threads, KNN_RANKED) + tighten;
    return MAX((KNN_MOST_ROUNDS - tighten - 3 * begin) / part, 1) * threads * KNN_ITEMS;
}

/* Chooses the rows and points of a chunk. There are enough rows to keep a device busy, because each
 * is a workgroup of the filter. There are as many points as the memory for products allows. */
static void choose_chunks(knn_work *w)
{
    uint64_t words = MIN(knn_product_words, w->l->profile->max_binding_bytes / 4);
    w->chunk_rows = MIN(w->rows, MIN(ROWS_OF_CHUNK, MAX(words / FEWEST_POINTS, 1)));
    uint64_t most = MAX(words / w->chunk_rows, 1), chunks = divide_up(w->points, most);
    uint64_t each = round_up(divide_up(w->points, chunks), POINTS_OF_TILE);
    w->chunk_points = MIN(MIN(w->points, points_of_filter(w)), MIN(each, most));
}

static rlxvk_status emit_filtered(knn_work *w)
{
    rlxvk_status status;
    choose_chunks(w);
    uint64_t held = MIN(MAX(ROWS_OF_LISTS, w->chunk_rows), w->rows);
    for (int i = 0; i < 2; i++)
        TRY(lower_temporary(w->l, 4 * w->chunk_rows * w->chunk_points, &w->products[i]));
    TRY(make_lists(w, held));
    TRY(emit_norms(w, w->queries, w->rows, &w->query_norms));
    TRY(emit_norms(w, w->given, w->points, &w->point_norms));
    for (uint64_t first = 0; first < w->rows; first += held) {
        uint64_t end = MIN(first + held, w->rows);
        for (uint64_t row = first; row < end; row += w->chunk_rows)
            TRY(emit_chunk(w, row, MIN(w->chunk_rows, end - row), row - first));
        TRY(emit_rows(w, first, end - first));
    }
error:
    return status;
}

bool knn_is_whole(uint64_t rows)
{
    return rows <= MIN(ROWS_OF_CHUNK, knn_product_words / FEWEST_POINTS);
}

rlxvk_status knn_emit(lowering *l, uint32_t id, uint32_t metric)
{
    const node *n = graph_node(l->graph, id);
    bool given = metric == KNN_OF_ROWS;
    const rlxvk_shape *points = input_shape(l->graph, n, given ? 0 : 1);
    knn_work w = {.l = l,
                  .id = id,
                  .metric = metric,
                  .rows = (uint64_t)n->shape.dims[0],
                  .points = (uint64_t)points->dims[0],
                  .columns = (uint64_t)points->dims[1],
                  .queries = lower_input(l, id, 0),
                  .given = lower_input(l, id, given ? 0 : 1),
                  .y = lower_write(l, id)};
    knn_shape shape = {w.rows, w.points, w.columns, (uint64_t)n->shape.dims[1] / 2, !given};
    const knn_class *class =
        choice_select(&knn_choice, &shape, l->profile, variant_choose(l, CHOICE_knn, NULL, NULL));
    w.variant = class->row.name;
    if (class->way == KNN_SORT)
        return knn_emit_sorted(&w);
    if (class->way == KNN_EXACT)
        return emit_exact(&w);
    w.kept = (uint32_t)shape.k + KNN_SPARE;
    return emit_filtered(&w);
}
