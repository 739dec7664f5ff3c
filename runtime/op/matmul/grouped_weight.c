/*
 * The gradient of grouped_matmul's weights: dw[e] is the sum of x[i]^T dy[i] over the rows i that
 * name expert e. If no row names it, dw[e] is zeros.
 *
 * x is [M, K], dy [M, N] (leading axes flattened), idx has M numbers. dw is [E, K, N]. If
 * transpose_w is set, dw is [E, N, K]: the same product with x and dy swapped.
 *
 * Many rows are first sorted by expert. The sort is stable, so the sums are in the order of the
 * rows. If experts and tiles are few, parts of an expert's rows are summed separately and then
 * joined. matmul does the same with a long K.
 */
#include "args/elementwise.h"
#include "args/matmul.h"
#include "constants/matmul.h"
#include "op/bucket.h"
#include "op/families.h"
#include "op/gradient.h"
#include "op/matmul/experts.h"
#include "op/matmul/matmul.h"
#include "op/movement/scatter_add.h"

#include <rlxvk_train.h>

#include <math.h>
#include <string.h>

typedef struct weight_attributes {
    int64_t experts;
    bool transpose_w;
} weight_attributes;

enum {
    SMALL_TILE = 32,
    LARGE_TILE = 64,
    TILE_STEP = 16,
    MOST_LISTED = 64,  /* rows that need no sort: one per invocation of the smallest workgroup */
    GROUPS_A_UNIT = 4, /* workgroups that keep a compute unit busy */
    LEAST_SLICE = 256  /* with fewer rows, a split costs more than it gives */
};

rlxvk_tensor rlxvk_grouped_matmul_backward_weight(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor dy,
                                                  rlxvk_tensor idx, int64_t experts,
                                                  bool transpose_w)
{
    weight_attributes a;
    memset(&a, 0, sizeof a);
    a.experts = experts;
    a.transpose_w = transpose_w;
    return op_build(g, OP_grouped_matmul_backward_weight, (rlxvk_tensor[]){x, dy, idx}, 3, &a);
}

static rlxvk_status grouped_matmul_backward_weight_infer(const rlxvk_graph *g, node *n,
                                                         void *attributes)
{
    const weight_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0), *dy = input_shape(g, n, 1);
    char x_text[SHAPE_TEXT], dy_text[SHAPE_TEXT];
    rlxvk_status status;
    if (x->rank < 2 || dy->rank < 2)
        return op_fail(n, RLXVK_E_SHAPE, "x %s, dy %s; both have rank 2 or more",
                       shape_text(x, x_text), shape_text(dy, dy_text));
    uint64_t rows = shape_product(x, 0, x->rank - 1);
    if (shape_product(dy, 0, dy->rank - 1) != rows)
        return op_fail(n, RLXVK_E_SHAPE, "x %s and dy %s have not as many rows",
                       shape_text(x, x_text), shape_text(dy, dy_text));
    TRY(experts_check_index(g, n, 2, rows));
    if (a->experts < 0)
        return op_fail(n, RLXVK_E_ATTR, "%lld experts; 0 or more", (long long)a->experts);
    if (a->experts > SCATTER_LONGEST_AXIS)
        return op_fail(n, RLXVK_E_INDEX_RANGE, "%lld experts; indices held as f32 reach 2^24",
                       (long long)a->experts);
    int64_t k = x->dims[x->rank - 1], columns = dy->dims[dy->rank - 1];
    n->shape = RLXVK_SHAPE(a->experts, a->transpose_w ? columns : k, a->transpose_w ? k : columns);
    n->dtype = (uint8_t)input_dtype(g, n, 1);
error:
    return status;
}

/* The product as the kernel computes it: y[e] = a^T b, which is [m, n]. */
typedef struct weight_work {
    uint64_t m, n, rows, experts, splits;
    uint32_t tile;
    operand a, b, index, starts, y;
    bool sorted;
} weight_work;

static uint64_t tiles_of(const weight_work *w)
{
    return divide_up(w->m, w->tile) * divide_up(w->n, w->tile);
}

/* Into how many parts each expert's rows are split, so that all compute units have work. */
static uint64_t count_splits(const weight_work *w, const device_profile *profile)
{
    uint64_t groups = w->experts * tiles_of(w);
    uint64_t wanted = (uint64_t)profile->compute_units * GROUPS_A_UNIT / groups;
    return MAX(MIN(wanted, w->rows / LEAST_SLICE), 1u);
}

static rlxvk_status emit_products(lowering *l, uint32_t id, const weight_work *w)
{
    uint32_t across = w->tile == LARGE_TILE ? 8 : 4; /* columns in registers */
    uint32_t vectors = ((w->a.offset | w->m) % 4 == 0 ? MATMUL_VECTOR_A : 0u) |
                       ((w->b.offset | w->n) % 4 == 0 ? MATMUL_VECTOR_B : 0u) |
                       ((w->y.offset | w->n) % 4 == 0 ? MATMUL_VECTOR_Y : 0u);
    struct matmul_args args = {.m = (uint32_t)w->m,
                               .n = (uint32_t)w->n,
                               .k = (uint32_t)w->rows,
                               .k_slice = (uint32_t)w->splits,
                               .a_offset = w->a.offset,
                               .b_offset = w->b.offset,
                               .bias_offset = w->index.offset,
                               .y_offset = w->y.offset,
                               .batch_count = (uint32_t)w->experts};
    const operand operands[] = {w->a, w->b, w->index, w->y, w->starts};
    dispatch d = {.kernel = KERNEL_GROUPED_WEIGHT, .node = id};
    SET_CONSTANTS(&d, {LOCAL_SIZE, w->tile * w->tile / (4 * across)},
                  {GROUPED_WEIGHT_TRANSPOSE_A, true}, {GROUPED_WEIGHT_TRANSPOSE_B, false},
                  {GROUPED_WEIGHT_A_STORAGE, matmul_storage_code(l, &w->a)},
                  {GROUPED_WEIGHT_B_STORAGE, matmul_storage_code(l, &w->b)},
                  {GROUPED_WEIGHT_VECTORS, vectors}, {GROUPED_WEIGHT_BIAS, MATMUL_NO_BIAS},
                  {GROUPED_WEIGHT_ACTIVATION, UNARY_NONE}, {GROUPED_WEIGHT_REG_M, 4},
                  {GROUPED_WEIGHT_REG_N, across}, {GROUPED_WEIGHT_TILE_M, w->tile},
                  {GROUPED_WEIGHT_TILE_N, w->tile}, {GROUPED_WEIGHT_STEP, TILE_STEP},
                  {GROUPED_WEIGHT_LOOP, matmul_tile_loop(TILE_LOOP_ZIGZAG, l->profile)},
                  {GROUPED_WEIGHT_LISTED, w->sorted ? 0 : MOST_LISTED});
    lower_groups(l, &d, w->experts * tiles_of(w) * w->splits);
    return lower_emit(l, &d, &args, sizeof args, operands, ARRAY_COUNT(operands));
}

static rlxvk_status sort_rows(lowering *l, weight_work *w)
{
    scatter_runs runs;
    rlxvk_status status;
    TRY(scatter_add_find_runs(l, w->index, w->experts, w->rows, false, &runs));
    w->index = runs.positions;
    w->starts = runs.starts;
    w->splits = count_splits(w, l->profile);
error:
    return status;
}

static rlxvk_status grouped_matmul_backward_weight_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    bool swapped = ((const weight_attributes *)n->attributes)->transpose_w;
    operand index = lower_input(l, id, 2), y = lower_write(l, id);
    weight_work w = {.m = (uint64_t)n->shape.dims[1],
                     .n = (uint64_t)n->shape.dims[2],
                     .rows = shape_numel(input_shape(l->graph, n, 2)),
                     .experts = (uint64_t)n->shape.dims[0],
                     .splits = 1,
                     .a = lower_input(l, id, swapped),
                     .b = lower_input(l, id, !swapped),
                     .index = index,
                     .starts = index,
                     .y = y};
    rlxvk_status status;
    w.tile = w.m > SMALL_TILE && w.n > SMALL_TILE ? LARGE_TILE : SMALL_TILE;
    w.sorted = w.rows > MOST_LISTED;
    if (w.sorted)
        TRY(sort_rows(l, &w));
    if (w.splits > 1)
        TRY(lower_temporary(l, w.splits * w.experts * w.m * w.n * sizeof(float), &w.y));
    TRY(emit_products(l, id, &w));
    if (w.splits > 1)
        TRY(matmul_emit_plain_sum(l, id, w.y, w.splits, w.experts * w.m * w.n, y));
error:
    return status;
}

/* dw[e] += x[i]^T dy[i]. The bound collects magnitudes. */
static void host_row(const host_call *c, uint64_t i, uint64_t expert)
{
    const weight_attributes *a = c->node->attributes;
    const rlxvk_shape *x = &c->inputs[0].node->shape, *dy = &c->inputs[1].node->shape;
    uint64_t k = (uint64_t)x->dims[x->rank - 1], n = (uint64_t)dy->dims[dy->rank - 1];
    for (uint64_t at = 0; at < k * n; at++) {
        double term =
            (double)c->inputs[0].words[i * k + at / n] * (double)c->inputs[1].words[i * n + at % n];
        uint64_t to = expert * k * n + (a->transpose_w ? at % n * k + at / n : at);
        c->out[to] += term;
        if (c->bound)
            c->bound[to] += fabs(term);
    }
}

/* Bound for R rows: 1e-7 + u (8 + 4 sqrt R) sum |x dy|, u = 2^-24. Without rows the result is
 * exact. */
static rlxvk_status grouped_matmul_backward_weight_host(const host_call *c)
{
    uint64_t experts = (uint64_t)c->node->shape.dims[0], numel = shape_numel(&c->node->shape);
    uint64_t rows = shape_numel(&c->inputs[2].node->shape);
    double *counts = memory_zeroed(experts + 1, sizeof *counts);
    if (!counts)
        return status_fail_memory("grouped_matmul_backward_weight");
    for (uint64_t at = 0; c->bound && at < numel; at++)
        c->bound[at] = 0;
    for (uint64_t i = 0; i < rows && numel; i++) {
        uint64_t expert = experts_host_index(c->inputs[2].words[i], experts);
        counts[expert]++;
        if (expert < experts)
            host_row(c, i, expert);
    }
    for (uint64_t at = 0; c->bound && at < numel; at++) {
        double count = counts[at / (numel / experts)];
        c->bound[at] = count > 0 ? 1e-7 + 0x1p-24 * (8 + 4 * sqrt(count)) * c->bound[at] : 0;
    }
    memory_free(counts);
    return RLXVK_OK;
}

static uint64_t grouped_matmul_backward_weight_bucket(bucket_call *c)
{
    return bucket_refuse(c, "its gradient of weights adds up over the rows");
}

/* With D the gradient of dw: the gradient of x is dy times D by expert, and that of dy is x times
 * D. */
static rlxvk_status grouped_matmul_backward_weight_vjp(gradient_call *c)
{
    bool transposed = ((const weight_attributes *)c->n.attributes)->transpose_w;
    for (uint32_t i = 0; i < 2; i++) {
        if (!gradient_wanted(c, i))
            continue;
        rlxvk_tensor rows = rlxvk_grouped_matmul(c->graph, gradient_operand(c, 1 - i), c->dy,
                                                 gradient_operand(c, 2), (i == 0) != transposed);
        gradient_give(c, i, rlxvk_reshape(c->graph, rows, gradient_shape(c, i)));
    }
    return RLXVK_OK;
}

static index_limits grouped_matmul_backward_weight_indices(const rlxvk_graph *g, const node *n)
{
    (void)g;
    return index_limits_of(2, n->shape.dims[0]);
}

static void grouped_matmul_backward_weight_describe(const node *n, text *out)
{
    const weight_attributes *a = n->attributes;
    text_append(out, " experts=%lld%s", (long long)a->experts,
                a->transpose_w ? " transpose_w" : "");
}

const op_family grouped_matmul_backward_weight_family = {
    .name = "grouped_matmul_backward_weight",
    .attribute_size = sizeof(weight_attributes),
    .infer = grouped_matmul_backward_weight_infer,
    .storage = {.half_inputs = 3},
    .execution = {.lower = grouped_matmul_backward_weight_lower,
                  .host = grouped_matmul_backward_weight_host},
    .rows = {.bucket = grouped_matmul_backward_weight_bucket},
    .derivative = {.vjp = grouped_matmul_backward_weight_vjp},
    .checks = {.indices = grouped_matmul_backward_weight_indices},
    .describe = grouped_matmul_backward_weight_describe,
};
