/* Derives the shape of a product from those of its operands; see matmul.h. */
#include "op/matmul/matmul.h"

#include <string.h>

void matmul_dims(const rlxvk_shape *s, bool transposed, int64_t *rows, int64_t *columns)
{
    int64_t last = s->dims[s->rank - 1], before = s->rank > 1 ? s->dims[s->rank - 2] : 1;
    *rows = transposed ? last : before;
    *columns = transposed ? before : last;
}

/* Stride of batch axis `from_last` of an operand (0: the innermost). It is 0 if the operand lacks
 * the axis or the axis has size 1. */
static uint64_t batch_stride(const rlxvk_shape *s, uint32_t from_last)
{
    if (s->rank < 3 + from_last || s->dims[s->rank - 3 - from_last] == 1)
        return 0;
    return shape_product(s, s->rank - 2 - from_last, s->rank);
}

static uint64_t batch_extent(const rlxvk_shape *s, uint32_t from_last)
{
    return s->rank < 3 + from_last ? 1 : (uint64_t)s->dims[s->rank - 3 - from_last];
}

static void add_axis(matmul_problem *p, matmul_axis axis)
{
    matmul_axis *inner = p->axis_count ? &p->axes[p->axis_count - 1] : NULL;
    if (axis.extent == 1)
        return;
    if (inner && axis.a_stride == inner->a_stride * inner->extent &&
        axis.b_stride == inner->b_stride * inner->extent)
        inner->extent *= axis.extent;
    else
        p->axes[p->axis_count++] = axis;
}

void matmul_problem_make(const rlxvk_shape *a, const rlxvk_shape *b, bool transpose_a,
                         bool transpose_b, matmul_problem *out)
{
    int64_t m, k, n;
    matmul_shape *s = &out->shape;
    memset(out, 0, sizeof *out);
    matmul_dims(a, transpose_a, &m, &k);
    matmul_dims(b, transpose_b, &k, &n);
    *s = (matmul_shape){(uint64_t)m, (uint64_t)n, (uint64_t)k, 1, transpose_a, transpose_b};
    for (uint32_t i = 0; i + 2 < MAX(a->rank, b->rank); i++) {
        uint64_t a_extent = batch_extent(a, i), b_extent = batch_extent(b, i);
        add_axis(out, (matmul_axis){a_extent == 1 ? b_extent : a_extent, batch_stride(a, i),
                                    batch_stride(b, i)});
    }
    while (out->axis_count && !transpose_a && out->axes[0].b_stride == 0 &&
           out->axes[0].a_stride == s->m * s->k) {
        s->m *= out->axes[0].extent;
        memmove(&out->axes[0], &out->axes[1], --out->axis_count * sizeof(matmul_axis));
    }
    for (uint32_t i = 0; i < out->axis_count; i++)
        s->batch *= out->axes[i].extent;
}
