/* One padded axis: the source of each element of the result. */
#include "args/array.h"
#include "op/array/pad.h"

#include <rlxvk_ops_array.h>

_Static_assert(PAD_CONSTANT == (int)RLXVK_PAD_CONSTANT && PAD_REFLECT == (int)RLXVK_PAD_REFLECT &&
                   PAD_EDGE == (int)RLXVK_PAD_EDGE && PAD_WRAP == (int)RLXVK_PAD_WRAP,
               "kernels know the public modes");

const char *pad_mode_name(uint32_t mode)
{
    static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
    return mode < ARRAY_COUNT(names) ? names[mode] : "?";
}

rlxvk_status pad_check_mode(const node *n, uint32_t mode, int64_t extent, int64_t size)
{
    if (mode > PAD_WRAP)
        return op_fail(n, RLXVK_E_ATTR, "mode %u; takes constant, reflect, edge or wrap", mode);
    if (mode != PAD_CONSTANT && extent == 0 && size > 0)
        return op_fail(n, RLXVK_E_RANGE,
                       "an empty axis is to have %lld elements by mode %s; only constant ones can "
                       "be added to it",
                       (long long)size, pad_mode_name(mode));
    if (mode == PAD_REFLECT && extent > PAD_LONGEST_MIRRORED)
        return op_fail(n, RLXVK_E_TOO_LARGE, "an axis of %lld elements is mirrored; 2^30 at most",
                       (long long)extent);
    return RLXVK_OK;
}

/* The period of the endlessly continued axis; 0 if it does not repeat. An axis may be too long to
 * be mirrored only if it does not change, in a tensor without elements. Its period is INT64_MAX. */
static int64_t period_of(uint32_t mode, int64_t extent)
{
    if (mode == PAD_WRAP)
        return extent;
    if (mode == PAD_REFLECT && extent > PAD_LONGEST_MIRRORED)
        return INT64_MAX;
    return mode == PAD_REFLECT ? MAX(2 * (extent - 1), 1) : 0;
}

int64_t pad_normal_before(uint32_t mode, pad_axis a)
{
    int64_t period = period_of(mode, a.extent);
    if (period == 0)
        return MIN(MAX(a.before, -a.extent), a.size);
    int64_t rest = a.before % period;
    return rest < 0 ? rest + period : rest;
}

int64_t pad_source(uint32_t mode, pad_axis a, int64_t j)
{
    int64_t period = period_of(mode, a.extent), before = pad_normal_before(mode, a);
    if (period) {
        int64_t p = j % period - before;
        p = p < 0 ? p + period : p;
        return p < a.extent ? p : period - p;
    }
    bool inside = j >= before && (uint64_t)j - (uint64_t)before < (uint64_t)a.extent;
    if (inside)
        return j - before;
    if (mode == PAD_CONSTANT)
        return -1;
    return j < before ? 0 : a.extent - 1;
}
