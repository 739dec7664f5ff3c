/* Operands and attributes for the builders of rlxvk_ops_math.h. */
#include "support/fuzz_calls.h"

#include <rlxvk_ops_math.h>

static int64_t diagonal(fuzz_maker *m)
{
    int64_t k = fuzz_number(m);
    return fuzz_bool(m->in) && k != INT64_MIN ? -k : k;
}

rlxvk_tensor fuzz_call_triu(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_triu(m->g, x, diagonal(m));
}

rlxvk_tensor fuzz_call_tril(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_tril(m->g, x, diagonal(m));
}

rlxvk_tensor fuzz_call_arange(fuzz_maker *m)
{
    float start = fuzz_real(m), step = fuzz_real(m);
    return rlxvk_arange(m->g, start, step, fuzz_byte(m->in) < 250 ? fuzz_dim(m) : fuzz_number(m));
}

rlxvk_tensor fuzz_call_scalar(fuzz_maker *m)
{
    return rlxvk_scalar(m->g, fuzz_real(m));
}

rlxvk_tensor fuzz_call_full(fuzz_maker *m)
{
    rlxvk_shape shape = shape_of(m, fuzz_any(m));
    return rlxvk_full(m->g, shape, fuzz_real(m));
}

rlxvk_tensor fuzz_call_leaky_relu(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    return rlxvk_leaky_relu(m->g, x, fuzz_real(m));
}

rlxvk_tensor fuzz_call_clip(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_any(m);
    float low = fuzz_real(m), high = fuzz_real(m);
    return rlxvk_clip(m->g, x, low, high);
}
