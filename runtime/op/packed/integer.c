/* Shared by the families that compute with 8-bit integers: quantize, dequantize, qmatmul and
 * qconv2d. If an I8 operand is a leaf, it is bytes; if it was computed, it is words. */
#include "op/packed/integer.h"
#include "base/numeric.h"

#include <math.h>

rlxvk_status integer_check_operand(const rlxvk_graph *g, const node *n, uint32_t index)
{
    return op_require_dtype(g, n, index, RLXVK_I8, "quantize it");
}

bool integer_is_zero_point(int64_t value)
{
    return value >= -128 && value <= 127;
}

int integer_host_read(const host_tensor *t, uint64_t index)
{
    if (t->storage == STORAGE_RAW)
        return (int8_t)t->bytes[index];
    return (int)fmin(fmax(t->words[index], -128), 127);
}

double integer_host_saturate(float v, int32_t zero_point)
{
    if (isnan(v))
        return zero_point;
    return fmin(fmax(numeric_round((double)v) + zero_point, -128), 127);
}
