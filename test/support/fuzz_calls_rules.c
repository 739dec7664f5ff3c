/* Operands and attributes for the builders of gradient rules; see fuzz_calls.c. */
#include "support/fuzz_calls.h"

rlxvk_tensor fuzz_call_grouped_matmul_backward_weight(fuzz_maker *m)
{
    rlxvk_tensor x = fuzz_ranked(m, RLXVK_F32, 2);
    int64_t rows = last(shape_of(m, x), 1), n = fuzz_dim(m);
    rlxvk_tensor dy = f32(m, RLXVK_SHAPE(rows, n)), idx = f32(m, RLXVK_SHAPE(rows));
    int64_t experts = fuzz_bool(m->in) ? fuzz_dim(m) : fuzz_number(m);
    return rlxvk_grouped_matmul_backward_weight(m->g, x, dy, idx, experts, fuzz_bool(m->in));
}

static rlxvk_tensor pool_take(fuzz_maker *m, bool largest)
{
    uint32_t spatial = 1 + fuzz_below(m->in, 3), bits = fuzz_byte(m->in);
    rlxvk_shape x = fuzz_shape(m, 2 + spatial);
    rlxvk_pool_options o = {0};
    for (uint32_t i = 0; i < spatial; i++) {
        o.kernel[i] = bits & 1 ? 1 : x.dims[2 + i];
        if (bits >= 128)
            o.stride[i] = fuzz_number(m);
        if (bits >= 250)
            o.padding[i] = fuzz_number(m);
    }
    fuzz_later_windows(m, &o, spatial);
    rlxvk_tensor image = f32(m, x), values = f32(m, x);
    return (largest ? rlxvk_pool_max_take : rlxvk_pool_min_take)(m->g, image, values, &o);
}

rlxvk_tensor fuzz_call_pool_max_take(fuzz_maker *m)
{
    return pool_take(m, true);
}

rlxvk_tensor fuzz_call_pool_min_take(fuzz_maker *m)
{
    return pool_take(m, false);
}

/* The function is a product of two values, or of existing tensors. Its gradients may have other
 * shapes. */
rlxvk_tensor fuzz_call_custom_function(fuzz_maker *m)
{
    rlxvk_graph *body = NULL, *vjp = NULL;
    rlxvk_tensor x = fuzz_any(m), in[2] = {x, fuzz_bool(m->in) ? fuzz_any(m) : x};
    rlxvk_tensor y = RLXVK_NONE;
    if (rlxvk_graph_create(&body) == RLXVK_OK && rlxvk_graph_create(&vjp) == RLXVK_OK) {
        rlxvk_tensor a[2], b[4];
        for (uint32_t i = 0; i < 4; i++) {
            rlxvk_tensor like = in[i % 2];
            char name[2] = {(char)('a' + i), 0};
            b[i] = rlxvk_input(vjp, name, rlxvk_tensor_dtype(m->g, like), shape_of(m, like));
            if (i < 2)
                a[i] = rlxvk_input(body, name, rlxvk_tensor_dtype(m->g, like), shape_of(m, like));
        }
        rlxvk_graph_output(body, rlxvk_mul(body, a[0], a[1]));
        for (uint32_t i = 0; i < 2; i++)
            rlxvk_graph_output(vjp, rlxvk_mul(vjp, b[3], b[fuzz_below(m->in, 3)]));
        y = rlxvk_custom_function(m->g, body, fuzz_byte(m->in) < 250 ? vjp : body, in,
                                  fuzz_byte(m->in) < 250 ? 2 : fuzz_below(m->in, 3));
    }
    rlxvk_graph_destroy(body);
    rlxvk_graph_destroy(vjp);
    return y;
}
