/* See train.h. */
#include "op/train/train.h"

rlxvk_status train_check_written(const rlxvk_graph *g, const node *n, uint32_t i)
{
    rlxvk_status status = op_require_writable(g, n, i);
    return status == RLXVK_OK ? op_require_dtype(g, n, i, RLXVK_F32, "as all that trains is")
                              : status;
}

rlxvk_status train_check_numbers(const rlxvk_graph *g, const node *n, uint32_t i, const char *name,
                                 int64_t length)
{
    char text[SHAPE_TEXT];
    if ((int64_t)shape_numel(input_shape(g, n, i)) == length)
        return RLXVK_OK;
    return op_fail(n, RLXVK_E_SHAPE, "%s is %s; takes %lld numbers", name,
                   shape_text(input_shape(g, n, i), text), (long long)length);
}
