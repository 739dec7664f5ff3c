/* Shape arithmetic. Dims are checked to be non-negative when a node is built; products are checked
 * here. */
#include "graph/symbol.h"

#include <string.h>

/* If a dim is 0, the product of the others must still fit 63 bits, because views and strides
 * multiply them. Elements fit 31 bits, because kernels index them with 32. */
bool shape_numel_checked(const rlxvk_shape *s, uint64_t *out)
{
    uint64_t numel = 1;
    bool zero = false;
    for (uint32_t i = 0; i < s->rank; i++) {
        zero = zero || s->dims[i] == 0;
        if (!size_multiply(numel, (uint64_t)MAX(s->dims[i], 1), &numel) || numel > INT64_MAX)
            return false;
    }
    if (!zero && numel > INT32_MAX)
        return false;
    *out = zero ? 0 : numel;
    return true;
}

uint64_t shape_numel(const rlxvk_shape *s)
{
    return shape_product(s, 0, s->rank);
}

uint64_t shape_product(const rlxvk_shape *s, uint32_t first, uint32_t last)
{
    uint64_t product = 1;
    for (uint32_t i = first; i < last; i++)
        product *= (uint64_t)s->dims[i];
    return product;
}

bool shape_equal(const rlxvk_shape *a, const rlxvk_shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

bool rlxvk_shape_equal(rlxvk_shape a, rlxvk_shape b)
{
    return a.rank <= RLXVK_MAX_RANK && shape_equal(&a, &b);
}

rlxvk_status rlxvk_shape_elements(rlxvk_shape shape, uint64_t *out_count)
{
    char dims[SHAPE_TEXT];
    rlxvk_status status;
    TRY(status_require(out_count, "shape_elements", "out_count"));
    if (shape.rank > RLXVK_MAX_RANK)
        return status_fail(RLXVK_E_SHAPE, "shape_elements: rank %u; at most %d", shape.rank,
                           RLXVK_MAX_RANK);
    for (uint32_t i = 0; i < shape.rank; i++)
        if (shape.dims[i] < 0)
            return status_fail(RLXVK_E_SHAPE,
                               "shape_elements: dim %u of %s is negative or symbolic", i,
                               shape_text(&shape, dims));
    if (!shape_numel_checked(&shape, out_count))
        return status_fail(RLXVK_E_TOO_LARGE,
                           "shape_elements: %s is above 2^31 - 1 elements; split the tensor",
                           shape_text(&shape, dims));
error:
    return status;
}

/* No product overflows, even if a dim is 0, because shape_numel_checked has checked it. */
void shape_strides(const rlxvk_shape *s, int64_t strides[RLXVK_MAX_RANK])
{
    int64_t stride = 1;
    for (uint32_t i = s->rank; i-- > 0;) {
        strides[i] = stride;
        stride *= s->dims[i];
    }
}

/* Shapes are aligned at the last axis; a missing axis counts as 1. A 1 against a 0 gives 0, as in
 * NumPy. */
bool shape_broadcast(const rlxvk_shape *a, const rlxvk_shape *b, rlxvk_shape *out)
{
    rlxvk_shape result = {.rank = MAX(a->rank, b->rank)};
    for (uint32_t i = 0; i < result.rank; i++) {
        int64_t left = i < a->rank ? a->dims[a->rank - 1 - i] : 1;
        int64_t right = i < b->rank ? b->dims[b->rank - 1 - i] : 1;
        if (left != right && left != 1 && right != 1)
            return false;
        result.dims[result.rank - 1 - i] = left == 1 ? right : left;
    }
    *out = result;
    return true;
}

/* A broadcast axis has stride 0, so one loop over the target reads any operand. */
void shape_broadcast_strides(const rlxvk_shape *s, const rlxvk_shape *target,
                             int64_t strides[RLXVK_MAX_RANK])
{
    int64_t own[RLXVK_MAX_RANK] = {0};
    shape_strides(s, own);
    for (uint32_t i = 0; i < target->rank; i++) {
        uint32_t from_end = target->rank - i;
        bool present = from_end <= s->rank;
        uint32_t axis = present ? s->rank - from_end : 0;
        strides[i] = present && s->dims[axis] != 1 ? own[axis] : 0;
    }
}

const char *shape_text(const rlxvk_shape *s, char buffer[SHAPE_TEXT])
{
    return symbol_shape_text(NULL, s, buffer);
}

void shape_append_place(const rlxvk_shape *s, uint64_t at, text *out)
{
    uint64_t rest = shape_numel(s);
    if (s->rank == 0 || at >= rest)
        return;
    text_append(out, " = [");
    for (uint32_t i = 0; i < s->rank; i++) {
        rest /= (uint64_t)s->dims[i];
        text_append(out, "%s%llu", i ? ", " : "", (unsigned long long)(at / rest));
        at %= rest;
    }
    text_append(out, "]");
}
