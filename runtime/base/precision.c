/* The names of precisions. */
#include "base/base.h"

const char *rlxvk_precision_name(rlxvk_precision precision)
{
    static const char *const names[] = {"f32", "f16", "bf16", "split"};
    return (unsigned)precision < ARRAY_COUNT(names) ? names[precision] : NULL;
}
