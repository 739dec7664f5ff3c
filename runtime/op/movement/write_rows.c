/*
 * write_rows: writes rows of a resident cache in place. cache is [H, R, D], rows is [H, n, D] and
 * position is [1]. Row r goes to cache row floor(position + 0.5) + r. If that is outside [0, R), it
 * is dropped. The node is a view of the cache. The cache must be a leaf, because the write must
 * outlive the run. Bit-exact.
 */
#include "args/movement.h"
#include "op/bucket.h"
#include "op/families.h"

#include <math.h>
#include <string.h>

rlxvk_tensor rlxvk_write_rows(rlxvk_graph *g, rlxvk_tensor cache, rlxvk_tensor rows,
                              rlxvk_tensor position)
{
    rlxvk_tensor operands[] = {cache, rows, position};
    return op_build(g, OP_write_rows, operands, ARRAY_COUNT(operands), NULL);
}

static rlxvk_status write_rows_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    const rlxvk_shape *cache = input_shape(g, n, 0), *rows = input_shape(g, n, 1);
    const rlxvk_shape *position = input_shape(g, n, 2);
    uint16_t leaf = graph_node(g, n->inputs[0])->op;
    char cache_text[SHAPE_TEXT], rows_text[SHAPE_TEXT];
    (void)attributes;
    if (leaf != OP_input && leaf != OP_param)
        return op_fail(n, RLXVK_E_ATTR, "the cache is a %s; it must be an input or a param",
                       op_table[leaf].name);
    if (n->inputs[1] == n->inputs[0] || n->inputs[2] == n->inputs[0])
        return op_fail(n, RLXVK_E_ATTR, "operand %d is the cache itself; copy it first",
                       n->inputs[1] == n->inputs[0] ? 1 : 2);
    if (cache->rank != 3 || rows->rank != 3 || cache->dims[0] != rows->dims[0] ||
        cache->dims[2] != rows->dims[2])
        return op_fail(n, RLXVK_E_SHAPE, "cache %s, rows %s; takes [H,R,D] and [H,n,D]",
                       shape_text(cache, cache_text), shape_text(rows, rows_text));
    if (position->rank > 1 || shape_numel(position) != 1)
        return op_fail(n, RLXVK_E_SHAPE, "position %s; must be one number",
                       shape_text(position, rows_text));
    if (input_dtype(g, n, 0) != input_dtype(g, n, 1))
        return op_fail(n, RLXVK_E_DTYPE, "cache is %s, rows are %s; insert a cast",
                       rlxvk_dtype_name(input_dtype(g, n, 0)),
                       rlxvk_dtype_name(input_dtype(g, n, 1)));
    n->shape = *cache;
    n->dtype = (uint8_t)input_dtype(g, n, 0);
    return RLXVK_OK;
}

static bool write_rows_view(const rlxvk_graph *g, const node *n, uint64_t *out_offset)
{
    (void)g;
    (void)n;
    *out_offset = 0;
    return true;
}

static uint32_t write_rows_writes(const node *n)
{
    (void)n;
    return 1;
}

static bool write_rows_accepts_strides(const rlxvk_graph *g, const node *n, uint32_t i,
                                       const int64_t *strides)
{
    (void)g, (void)n;
    return i == 1 && strides[2] == 1;
}

static rlxvk_status write_rows_lower(lowering *l, uint32_t id)
{
    const node *n = graph_node(l->graph, id);
    const rlxvk_shape *rows = input_shape(l->graph, n, 1);
    operand operands[] = {lower_update(l, n->inputs[0]), lower_input(l, id, 1),
                          lower_input(l, id, 2)};
    int64_t strides[RLXVK_MAX_RANK];
    lower_strides(l, n->inputs[1], strides);
    struct write_rows_args arguments = {.numel = (uint32_t)shape_numel(rows),
                                        .rows = (uint32_t)rows->dims[1],
                                        .capacity = (uint32_t)n->shape.dims[1],
                                        .columns = (uint32_t)n->shape.dims[2],
                                        .cache_offset = operands[0].offset,
                                        .rows_offset = operands[1].offset,
                                        .rows_head = (uint32_t)strides[0],
                                        .rows_row = (uint32_t)strides[1],
                                        .position_offset = operands[2].offset};
    dispatch d = {.kernel = KERNEL_WRITE_ROWS, .node = id};
    if (arguments.numel == 0)
        return RLXVK_OK;
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size});
    lower_groups(l, &d, groups_for(arguments.numel, l->profile->workgroup_size));
    return lower_emit(l, &d, &arguments, sizeof arguments, operands, ARRAY_COUNT(operands));
}

static rlxvk_status write_rows_host(const host_call *call)
{
    const host_tensor *in = call->inputs;
    const int64_t *cache = in[0].node->shape.dims, *rows = in[1].node->shape.dims;
    uint64_t numel = shape_numel(&in[0].node->shape);
    double first = floor((double)in[2].words[0] + 0.5);
    for (uint64_t i = 0; i < numel; i++)
        call->out[i] = in[0].words[i];
    for (int64_t h = 0; h < rows[0]; h++)
        for (int64_t r = 0; r < rows[1]; r++) {
            double target = first + (double)r;
            if (!(target >= 0 && target < (double)cache[1]))
                continue;
            double *to = call->out + (h * cache[1] + (int64_t)target) * cache[2];
            const float *from = in[1].words + (h * rows[1] + r) * cache[2];
            for (int64_t d = 0; d < cache[2]; d++)
                to[d] = from[d];
        }
    return RLXVK_OK;
}

static uint64_t write_rows_bucket(bucket_call *c)
{
    return bucket_refuse(c, "its cache would keep rows that are not active");
}

/* A position is valid only if all rows fit, because rows after the cache's end would be lost. */
static index_limits write_rows_indices(const rlxvk_graph *g, const node *n)
{
    const rlxvk_shape *rows = input_shape(g, n, 1);
    return index_limits_of(2, MAX(n->shape.dims[1] - rows->dims[1] + 1, 0));
}

const op_family write_rows_family = {
    .name = "write_rows",
    .infer = write_rows_infer,
    .views = {.view = write_rows_view, .accepts_strides = write_rows_accepts_strides},
    .memory = {.writes = write_rows_writes},
    .execution = {.lower = write_rows_lower, .host = write_rows_host},
    .rows = {.bucket = write_rows_bucket},
    .checks = {.indices = write_rows_indices},
};
