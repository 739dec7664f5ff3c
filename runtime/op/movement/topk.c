/*
 * topk: indices of the k largest elements of each row [.., n], the largest first. NaN comes before
 * +Inf, zeros of either sign are equal, and the smaller index wins ties. Exact; indices are f32
 * words (dtype I32).
 *
 *   rows within a workgroup   each element counts the elements before it (topk_rank)
 *   k <= TOPK_MOST            radix selection, one workgroup for each row (topk_select). Few long
 *                             rows are cut into chunks, and a second stage joins the k largest of
 *                             each.
 *   larger k                  a stable sort of whole rows; the first k are taken
 */
#include "args/movement.h"
#include "constants/movement.h"
#include "op/bucket.h"
#include "op/gradient.h"
#include "op/families.h"
#include "op/movement/radix_sort.h"

#include <math.h>
#include <stdlib.h>

typedef struct topk_attributes {
    int64_t k;
} topk_attributes;

#define LONGEST_AXIS   (1 << 24) /* indices are exact f32 integers */
#define LARGEST_RANKED 256       /* topk_rank has shared words for so many threads */
/* The fewest elements of a chunk: in all, and for each one that it keeps. */
#define SHORTEST_CHUNK 4096
#define CHUNK_FACTOR   8
#define FEWEST_GROUPS  256 /* workgroups that fill a device */

rlxvk_tensor rlxvk_topk(rlxvk_graph *g, rlxvk_tensor x, int64_t k)
{
    topk_attributes a = {.k = k};
    return op_build(g, OP_topk, &x, 1, &a);
}

static rlxvk_status topk_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const topk_attributes *a = attributes;
    const rlxvk_shape *x = input_shape(g, n, 0);
    if (x->rank == 0)
        return op_fail(n, RLXVK_E_SHAPE, "x is a scalar; reshape it to [1]");
    int64_t length = x->dims[x->rank - 1];
    if (a->k < 0 || a->k > length)
        return op_fail(n, RLXVK_E_ATTR, "k is %lld; rows have %lld elements", (long long)a->k,
                       (long long)length);
    if (length > LONGEST_AXIS)
        return op_fail(n, RLXVK_E_INDEX_RANGE, "rows have %lld elements; indices end at 2^24",
                       (long long)length);
    n->shape = *x;
    n->shape.dims[x->rank - 1] = a->k;
    n->dtype = RLXVK_I32;
    return RLXVK_OK;
}

static uint32_t topk_sizes(void *attributes, int64_t *out[OP_MOST_SIZES])
{
    topk_attributes *a = attributes;
    out[0] = &a->k;
    return 1;
}

typedef struct topk_work {
    uint64_t rows, extent, k;
    operand x, y;
} topk_work;

static rlxvk_status lower_rank(lowering *l, const topk_work *w, uint32_t size)
{
    uint32_t lanes = power_of_two_from(w->extent, size);
    struct topk_rank_args args = {(u32)w->rows, (u32)w->extent, (u32)w->k,
                                  lanes,        w->x.offset,    w->y.offset};
    dispatch d = {.kernel = KERNEL_TOPK_RANK};
    SET_CONSTANTS(&d, {LOCAL_SIZE, size});
    lower_groups_in_order(l, &d, w->rows, size / lanes);
    return lower_emit(l, &d, &args, sizeof args, (operand[]){w->x, w->y}, 2);
}

/* How many chunks rows are cut into; 1: none. */
static uint64_t choose_chunks(const device_profile *profile, const topk_work *w)
{
    uint64_t wanted = profile_is_software(profile) ? profile->compute_units : FEWEST_GROUPS;
    uint64_t shortest = MAX(SHORTEST_CHUNK, CHUNK_FACTOR * w->k);
    return MAX(MIN(divide_up(wanted, w->rows), w->extent / shortest), 1);
}

static rlxvk_status emit_stage(lowering *l, const topk_work *w, struct topk_select_args args,
                               uint32_t stage, operand candidates, operand to)
{
    dispatch d = {.kernel = KERNEL_TOPK_SELECT};
    args.groups = (u32)w->rows * args.chunks;
    args.y_offset = to.offset;
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {TOPK_SELECT_STAGE, stage});
    lower_groups(l, &d, args.groups);
    d.order = (group_order){.run = args.chunks, .parts = w->rows, .lot = 1};
    return lower_emit(l, &d, &args, sizeof args, (operand[]){w->x, candidates, to}, 3);
}

static rlxvk_status lower_select(lowering *l, const topk_work *w)
{
    uint64_t chunks = choose_chunks(l->profile, w);
    uint64_t length = divide_up(w->extent, chunks);
    struct topk_select_args args = {.extent = (u32)w->extent,
                                    .k = (u32)w->k,
                                    .chunks = 1,
                                    .chunk_length = (u32)w->extent,
                                    .x_offset = w->x.offset};
    operand candidates;
    rlxvk_status status;
    if (chunks == 1)
        return emit_stage(l, w, args, TOPK_ONLY_STAGE, w->x, w->y);
    chunks = divide_up(w->extent, length);
    uint64_t last = w->extent - (chunks - 1) * length;
    args.candidates = (u32)((chunks - 1) * w->k + MIN(w->k, last));
    TRY(lower_temporary(l, 4 * w->rows * args.candidates, &candidates));
    struct topk_select_args first = args;
    first.chunks = (u32)chunks;
    first.chunk_length = (u32)length;
    TRY(emit_stage(l, w, first, TOPK_FIRST_STAGE, w->x, candidates));
    TRY(emit_stage(l, w, args, TOPK_SECOND_STAGE, reading(candidates), w->y));
error:
    return status;
}

static rlxvk_status lower_sort(lowering *l, const topk_work *w)
{
    radix_sort sort = {
        .rows = w->rows, .extent = w->extent, .mode = RADIX_TOP, .bits = 32, .words = w->x};
    struct topk_take_args args = {(u32)(w->rows * w->k), (u32)w->extent, (u32)w->k, w->y.offset};
    dispatch d = {.kernel = KERNEL_TOPK_TAKE};
    rlxvk_status status;
    TRY(radix_sort_lower(l, &sort));
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups_in_order(l, &d, args.count, l->profile->workgroup_size);
    TRY(lower_emit(l, &d, &args, sizeof args, (operand[]){sort.values, w->y}, 2));
error:
    return status;
}

static rlxvk_status topk_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_shape *x = input_shape(l->graph, n, 0);
    topk_work w = {.rows = shape_product(x, 0, x->rank - 1),
                   .extent = (uint64_t)x->dims[x->rank - 1],
                   .k = (uint64_t)((const topk_attributes *)n->attributes)->k,
                   .x = lower_input(l, id, 0),
                   .y = lower_write(l, id)};
    uint32_t size = power_of_two_within(MIN(l->profile->workgroup_size, LARGEST_RANKED));
    if (w.extent <= size)
        return lower_rank(l, &w, size);
    return w.k <= TOPK_MOST ? lower_select(l, &w) : lower_sort(l, &w);
}

typedef struct ranked {
    float value;
    uint32_t index;
} ranked;

/* The order for qsort: NaN, then the larger value, then the smaller index. */
static int compare_ranked(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    bool a_nan = isnan(a->value), b_nan = isnan(b->value);
    if (a_nan != b_nan)
        return a_nan ? -1 : 1;
    if (!a_nan && a->value != b->value)
        return a->value > b->value ? -1 : 1;
    return a->index < b->index ? -1 : 1;
}

static rlxvk_status topk_host(const host_call *c)
{
    const rlxvk_shape *x = &c->inputs[0].node->shape;
    size_t extent = (size_t)x->dims[x->rank - 1];
    size_t k = (size_t)c->node->shape.dims[x->rank - 1];
    uint64_t rows = shape_product(x, 0, x->rank - 1);
    ranked *row = memory_zeroed(extent + 1, sizeof *row);
    if (!row)
        return status_fail_memory("topk");
    for (uint64_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < extent; i++)
            row[i] = (ranked){c->inputs[0].words[r * extent + i], (uint32_t)i};
        qsort(row, extent, sizeof *row, compare_ranked);
        for (size_t i = 0; i < k; i++)
            c->out[r * k + i] = row[i].index;
    }
    memory_free(row);
    return RLXVK_OK;
}

static void topk_describe(const node *n, text *out)
{
    text_append(out, " k=%lld", (long long)((const topk_attributes *)n->attributes)->k);
}

const op_family topk_family = {
    .name = "topk",
    .attribute_size = sizeof(topk_attributes),
    .infer = topk_infer,
    .sizes = topk_sizes,
    .execution = {.lower = topk_lower, .host = topk_host},
    .rows = {.bucket = bucket_vectors},
    .describe = topk_describe,
};
