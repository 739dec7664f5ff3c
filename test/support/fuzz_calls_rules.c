/* What the builders of gradient rules are called with; see fuzz_calls.c. */
#include "support/fuzz_calls.h"

rlxvk_tensor fuzz_call_grouped_matmul_backward_weight(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_F32, 2);
    int64_t rows = last(shape_of(m, x), 1), n = fuzz_dim(m);
    rlxvk_tensor dy = f32(m, RLXVK_SHAPE(rows, n)), idx = f32(m, RLXVK_SHAPE(rows));
    int64_t experts = fuzz_bool(m->in) ? fuzz_dim(m) : fuzz_number(m);
    return rlxvk_grouped_matmul_backward_weight(m->g, x, dy, idx, experts, fuzz_bool(m->in));
}
