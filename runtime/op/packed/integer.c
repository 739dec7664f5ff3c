/* What the families that compute with 8-bit integers share: quantize, dequantize, qmatmul, qconv2d.
 * An I8 operand is bytes where it is a leaf and words where it was computed. */
#include "op/packed/integer.h"

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
    return fmin(fmax(round((double)v) + zero_point, -128), 127);
}
