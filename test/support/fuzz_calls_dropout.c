/* Operands and attributes for dropout and accumulate; see fuzz_calls.c. */
#include "support/fuzz_calls.h"

rlxvk_tensor fuzz_call_dropout(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    rlxvk_dropout_options options = {fuzz_real(m), fuzz_byte(m->in)};
    return rlxvk_dropout(m->g, x, &options, fuzz_maybe(m, RLXVK_SCALAR));
}

rlxvk_tensor fuzz_call_accumulate(fuzz_maker *m)
{
    rlxvk_tensor sum = fuzz_any(m);
    rlxvk_tensor t = f32(m, shape_of(m, sum)), keep = f32(m, RLXVK_SHAPE(1));
    return rlxvk_accumulate(m->g, sum, t, keep);
}
