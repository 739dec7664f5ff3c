/*
 * Dispatches of the k nearest. "exact": one, which measures each pair in sums of pairs of floats.
 * "filtered": a matrix product of some queries with all points, in f32, from whose rough distances
 * each query keeps a few more than k candidates; these are measured exactly, and a row for which
 * they may not be all it takes is measured whole. The result is the same.
 *
 * Products are made in chunks, in two buffers in turn: while candidates are taken from one, the
 * next product is made.
 */
#include "args/elementwise.h"
#include "constants/neighbours.h"
#include "op/matmul/matmul.h"
#include "op/neighbours/knn.h"

uint64_t knn_product_words = 1u << 25;
bool knn_marks_unfiltered;

#define FEWEST_PRODUCTS (1u << 24) /* of single numbers, from which on a filter pays */
#define MOST_COLUMNS    (1u << 18) /* error_of_rough() of knn.comp holds */
#define ROWS_OF_CHUNK   1024
#define FEWEST_POINTS   64  /* of a chunk */
#define POINTS_OF_TILE  128 /* of a product */
#define FILTER_THREADS  128
#define ROWS_OF_LISTS   (1u << 17) /* lists that are held at a time */

/* ---- The choice ---- */

typedef struct knn_shape {
    uint64_t rows, points, columns, k;
    bool measured; /* distances are not given */
} knn_shape;

typedef struct knn_class {
    choice_row row;
    bool filtered;
} knn_class;

/* clang-format off */
static const knn_class classes[] = {
    {{"filtered", ON_ALL, 0}, true},
    {{"exact",    ON_ALL, 0}, false},
};
/* clang-format on */

static choice_fit fit(const void *row, const void *problem, const device_profile *profile)
{
    const knn_class *c = row;
    const knn_shape *s = problem;
    (void)profile;
    if (!c->filtered)
        return (choice_fit){.can = true, .suits = true};
    return (choice_fit){.can = s->measured && s->columns <= MOST_COLUMNS,
                        .suits = s->points >= 8 * (s->k + KNN_SPARE) &&
                                 s->rows * s->points >= FEWEST_PRODUCTS / s->columns};
}

const choice_table knn_choice = {CHOICE_ROWS(classes), .fit = fit};

/* ---- Dispatches ---- */

typedef struct knn_work {
    lowering *l;
    uint32_t id, metric, kept;
    uint64_t rows, points, columns;
    operand queries, given, y;
    uint64_t chunk_rows, chunk_points;
    operand products[2], query_norms, point_norms, lists;
    uint32_t turn; /* of the products' buffers */
    const char *variant;
} knn_work;

/* Rows [first, first + count) of the result, from their lists, or from all points. */
static rlxvk_status emit_rows(const knn_work *w, uint64_t first, uint64_t count)
{
    const node *n = graph_node(w->l->graph, w->id);
    operand lists = w->kept ? w->lists : w->queries;
    dispatch d = {.kernel = KERNEL_KNN, .variant = w->variant};
    struct knn_args args = {.rows = (u32)count,
                            .points = (u32)w->points,
                            .columns = (u32)w->columns,
                            .k = (u32)n->shape.dims[1] / 2,
                            .query_offset = w->queries.offset,
                            .point_offset = w->given.offset,
                            .y_offset = w->y.offset,
                            .first_row = (u32)first,
                            .kept = w->kept};
    lists.access = ACCESS_READ;
    SET_CONSTANTS(&d, {LOCAL_SIZE, MIN(w->l->profile->workgroup_size, KNN_BUFFER / 2)},
                  {KNN_METRIC, w->metric}, {KNN_FILTERED, w->kept > 0},
                  {KNN_MARKED, w->kept > 0 && knn_marks_unfiltered});
    lower_groups(w->l, &d, count);
    return lower_emit(w->l, &d, &args, sizeof args, (operand[]){w->queries, w->given, lists, w->y},
                      4);
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

/* products = queries points^T, of these rows and points. */
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

/* A bound takes more threads than a row keeps candidates. */
static uint32_t filter_threads(const device_profile *profile)
{
    return MAX(profile->workgroup_size, MIN(profile->max_workgroup_invocations, FILTER_THREADS));
}

/* `list_row`: where the first of these rows has its list. */
static rlxvk_status emit_chunk(knn_work *w, uint64_t row, uint64_t rows, uint64_t list_row)
{
    rlxvk_status status = RLXVK_OK;
    for (uint64_t point = 0; point < w->points; point += w->chunk_points) {
        uint64_t points = MIN(w->chunk_points, w->points - point);
        operand products = w->products[w->turn++ % 2], lists = w->lists;
        struct knn_filter_args args = {.rows = (u32)rows,
                                       .points = (u32)points,
                                       .first_row = (u32)row,
                                       .first_point = (u32)point,
                                       .list_row = (u32)list_row,
                                       .kept = w->kept};
        dispatch d = {.kernel = KERNEL_KNN_FILTER, .variant = w->variant};
        TRY(emit_products(w, row, rows, point, points, products));
        products.access = ACCESS_READ;
        lists.access = ACCESS_READ | ACCESS_WRITE;
        SET_CONSTANTS(&d, {LOCAL_SIZE, filter_threads(w->l->profile)},
                      {KNN_FILTER_METRIC, w->metric});
        lower_groups(w->l, &d, rows);
        TRY(lower_emit(w->l, &d, &args, sizeof args,
                       (operand[]){products, w->query_norms, w->point_norms, lists}, 4));
    }
error:
    return status;
}

/* Rows that keep a device busy, each a workgroup of the filter, and as many points at a time as
 * their products may take. */
static void choose_chunks(knn_work *w)
{
    uint64_t words = MIN(knn_product_words, w->l->profile->max_binding_bytes / 4);
    w->chunk_rows = MIN(w->rows, MIN(ROWS_OF_CHUNK, MAX(words / FEWEST_POINTS, 1)));
    uint64_t most = MAX(words / w->chunk_rows, 1), chunks = divide_up(w->points, most);
    uint64_t each = round_up(divide_up(w->points, chunks), POINTS_OF_TILE);
    w->chunk_points = MIN(w->points, MIN(each, most));
}

static rlxvk_status emit_filtered(knn_work *w)
{
    uint64_t list_bytes = 4 * KNN_LIST_WORDS((uint64_t)w->kept);
    rlxvk_status status;
    choose_chunks(w);
    uint64_t held = MIN(MAX(ROWS_OF_LISTS, w->chunk_rows), w->rows);
    for (int i = 0; i < 2; i++)
        TRY(lower_temporary(w->l, 4 * w->chunk_rows * w->chunk_points, &w->products[i]));
    TRY(lower_temporary(w->l, held * list_bytes, &w->lists));
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
    if (!class->filtered)
        return emit_rows(&w, 0, w.rows);
    w.kept = (uint32_t)shape.k + KNN_SPARE;
    return emit_filtered(&w);
}
