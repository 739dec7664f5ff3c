/* The options of pools: checks, defaults, kernel arguments, and their text in dumps. */
#include "op/conv/pool.h"

static rlxvk_status check_axis(const node *n, const rlxvk_pool_options *o, uint32_t axis,
                               bool exists)
{
    int64_t k = o->kernel[axis], s = o->stride[axis], p = o->padding[axis];
    if (!exists && (k || s || p))
        return op_fail(n, RLXVK_E_ATTR,
                       "entry %u of kernel, stride or padding is for no axis of x; leave it 0",
                       axis);
    if (exists && (k < 1 || k > INT32_MAX || s < 1 || s > INT32_MAX || p < 0 || p > k / 2))
        return op_fail(n, RLXVK_E_ATTR,
                       "spatial axis %u: kernel %lld, stride %lld, padding %lld; needs kernel and "
                       "stride >= 1, 0 <= padding <= kernel / 2",
                       axis, (long long)k, (long long)s, (long long)p);
    return RLXVK_OK;
}

rlxvk_status pool_check(const node *n, const rlxvk_shape *x, rlxvk_pool_options *o,
                        rlxvk_shape *out)
{
    char shape[SHAPE_TEXT];
    rlxvk_status status;
    if (x->rank < 3 || x->rank > 5)
        return op_fail(n, RLXVK_E_SHAPE, "x is %s; must be [N, C, 1 to 3 spatial axes]",
                       shape_text(x, shape));
    *out = *x;
    for (uint32_t i = 0; i < ARRAY_COUNT(o->kernel); i++) {
        bool exists = i < x->rank - 2;
        if (exists && o->stride[i] == 0)
            o->stride[i] = o->kernel[i];
        TRY(check_axis(n, o, i, exists));
        if (!exists)
            continue;
        if (x->dims[i + 2] > INT32_MAX)
            return op_fail(n, RLXVK_E_TOO_LARGE, "spatial axis %u is %lld cells; below 2^31", i,
                           (long long)x->dims[i + 2]);
        int64_t room = x->dims[i + 2] + 2 * o->padding[i] - o->kernel[i];
        if (room < 0)
            return op_fail(n, RLXVK_E_SHAPE,
                           "spatial axis %u: kernel %lld is longer than %lld + 2 * %lld; pad more "
                           "or take a smaller one",
                           i, (long long)o->kernel[i], (long long)x->dims[i + 2],
                           (long long)o->padding[i]);
        out->dims[i + 2] = room / o->stride[i] + 1;
    }
error:
    return status;
}

void pool_fill_axes(struct pool_args *args, const rlxvk_shape *x, const rlxvk_shape *result,
                    const rlxvk_pool_options *o)
{
    uint32_t absent = 2 + POOL_AXES - x->rank;
    for (uint32_t i = 0; i < POOL_AXES; i++) {
        bool exists = i >= absent;
        uint32_t axis = exists ? i - absent : 0;
        args->extents[i] = exists ? (u32)x->dims[axis + 2] : 1;
        args->results[i] = exists ? (u32)result->dims[axis + 2] : 1;
        args->kernel[i] = exists ? (u32)o->kernel[axis] : 1;
        args->stride[i] = exists ? (u32)o->stride[axis] : 1;
        args->padding[i] = exists ? (u32)o->padding[axis] : 0;
    }
}

static void append_entries(text *out, const char *key, const int64_t *values)
{
    text_append(out, " %s=", key);
    for (uint32_t i = 0; i < 3; i++)
        text_append(out, "%s%lld", i ? "," : "", (long long)values[i]);
}

void pool_describe(const node *n, text *out)
{
    const rlxvk_pool_options *o = &((const pool_attributes *)n->attributes)->options;
    append_entries(out, "kernel", o->kernel);
    append_entries(out, "stride", o->stride);
    append_entries(out, "padding", o->padding);
    text_append(out, "%s", o->exclude_pad ? " exclude_pad" : "");
}
