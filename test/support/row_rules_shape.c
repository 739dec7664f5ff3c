/* Rules of other elementwise ops, of images and of index ops; see row_rules.h. */
#include "support/row_graph.h"
#include "support/row_rules.h"

#include <rlxvk_ops_array.h>
#include <rlxvk_ops_domain.h>
#include <rlxvk_ops_math.h>
#include <rlxvk_ops_vision.h>
#include <rlxvk_train.h>

#define W ROW_GRAPH_WIDTH

/* ---- Element by element ---- */

ROW_RULE(ternary)
{
    ROW_UNUSED(i);
    return rlxvk_copy(g, rlxvk_fma(g, x, y, ROW_PARAM(W)));
}
ROW_RULE(whole_numbers)
{
    ROW_UNUSED(i);
    rlxvk_tensor hundred = rlxvk_scalar(g, 100);
    rlxvk_tensor a = rlxvk_cast(g, rlxvk_mul(g, x, hundred), RLXVK_I32);
    rlxvk_tensor b = rlxvk_cast(g, rlxvk_mul(g, y, hundred), RLXVK_I32);
    rlxvk_tensor bits = rlxvk_bitwise_xor(g, a, b);
    return rlxvk_div(g, rlxvk_cast(g, rlxvk_mod(g, bits, rlxvk_scalar(g, 17)), RLXVK_F32), hundred);
}
ROW_RULE(complex_numbers)
{
    ROW_UNUSED(i);
    rlxvk_tensor z = rlxvk_conjugate(g, rlxvk_cast(g, x, RLXVK_C64));
    rlxvk_tensor back = rlxvk_cast(g, rlxvk_complex_norm_sq_backward(g, z, y), RLXVK_F32);
    return rlxvk_sub(g, rlxvk_complex_norm_sq(g, z), back);
}
ROW_RULE(activation_gradient)
{
    ROW_UNUSED(i);
    return rlxvk_activation_backward(g, x, y, RLXVK_ACTIVATION_GELU);
}
ROW_RULE(region)
{
    const rlxvk_region_step steps[] = {{RLXVK_REGION_BINARY, RLXVK_BINARY_SUB,
                                        RLXVK_REGION_INPUT(0), RLXVK_REGION_INPUT(1)},
                                       {RLXVK_REGION_ACTIVATION, RLXVK_ACTIVATION_TANH - 1,
                                        RLXVK_REGION_STEP(0), 0}};
    rlxvk_region r = {.shape = rlxvk_tensor_shape(g, x), .steps = steps, .step_count = 2};
    ROW_UNUSED(i);
    return rlxvk_elementwise_region(g, (rlxvk_tensor[]){x, y}, 2, &r);
}
ROW_RULE(batch_region)
{
    const rlxvk_region_step relu = {.op = RLXVK_ACTIVATION_RELU - 1};
    int64_t rows = row_count(g, x);
    rlxvk_region r = {.shape = RLXVK_SHAPE(2, rows, W), .steps = &relu, .step_count = 1};
    rlxvk_tensor parts[] = {rlxvk_reshape(g, x, RLXVK_SHAPE(1, rows, W)),
                            rlxvk_reshape(g, y, RLXVK_SHAPE(1, rows, W))};
    ROW_UNUSED(i);
    rlxvk_tensor both = rlxvk_batch_elementwise_region(g, parts, 2, &r);
    return rlxvk_reduce_sum(g, both, (const int32_t[]){0}, 1, false);
}
ROW_RULE(repeated)
{
    rlxvk_shape twice = RLXVK_SHAPE(2, row_count(g, x), W);
    ROW_UNUSED(i);
    rlxvk_tensor sum = rlxvk_sub(g, rlxvk_expand(g, x, twice), rlxvk_expand(g, y, twice));
    return rlxvk_reduce_max(g, sum, (const int32_t[]){0}, 1, false);
}
ROW_RULE(ordered)
{
    ROW_UNUSED(i);
    return rlxvk_stop_gradient(g, rlxvk_after(g, rlxvk_silu(g, x), y));
}
ROW_RULE(branches)
{
    rlxvk_graph *body = NULL;
    rlxvk_tensor result = RLXVK_NONE, inputs[] = {x, y};
    ROW_UNUSED(i);
    if (rlxvk_graph_create(&body) == RLXVK_OK) {
        rlxvk_tensor a = rlxvk_input(body, "a", RLXVK_F32, rlxvk_tensor_shape(g, x));
        rlxvk_tensor b = rlxvk_input(body, "b", RLXVK_F32, rlxvk_tensor_shape(g, x));
        rlxvk_graph_output(body, rlxvk_mul(body, a, b));
        rlxvk_tensor first = row_columns(g, y, 0, 1);
        result = rlxvk_if(g, rlxvk_gt(g, first, rlxvk_scalar(g, 0)), body, body, inputs, 2);
    }
    rlxvk_graph_destroy(body);
    return result;
}

/* ---- Images ---- */

ROW_RULE(convolved)
{
    rlxvk_conv_options o = {.padding = {1, 1}};
    rlxvk_fused_conv_options fused = {.window = o, .activation = RLXVK_ACTIVATION_RELU};
    ROW_UNUSED(i);
    rlxvk_tensor image = row_image(g, x);
    image = rlxvk_conv_transpose(g, image, ROW_PARAM(2, 2, 3, 3), ROW_PARAM(2), &o);
    return row_back(g, rlxvk_fused_conv(g, image, ROW_PARAM(2, 2, 3, 3), RLXVK_NONE,
                                        row_image(g, y), &fused));
}
ROW_RULE(pooled)
{
    static const rlxvk_pool_options o = {.kernel = {2, 2}};
    ROW_UNUSED(i);
    rlxvk_tensor small = rlxvk_pool_max(g, row_image(g, x), &o);
    return row_back(g, rlxvk_mul(g, rlxvk_resize_nearest2x(g, small), row_image(g, y)));
}
ROW_RULE(resized)
{
    rlxvk_resize_options o = {.size = {7, 3}, .mode = RLXVK_RESIZE_LINEAR};
    ROW_UNUSED(y, i);
    rlxvk_tensor large = rlxvk_resize(g, row_image(g, x), &o);
    return row_back(g, rlxvk_resize_backward(g, large, (const int64_t[]){4, 4}, &o));
}
ROW_RULE(batch_norm)
{
    ROW_UNUSED(y, i);
    return row_back(g,
                    rlxvk_batch_norm_inference(g, row_image(g, x), ROW_PARAM(2), ROW_PARAM(2),
                                               ROW_PARAM(2), rlxvk_abs(g, ROW_PARAM(2)), 1e-3f, 1));
}

/* ---- Places ---- */

ROW_RULE(sorted)
{
    ROW_UNUSED(i);
    rlxvk_tensor which = rlxvk_cast(g, rlxvk_argsort(g, y, 1, true), RLXVK_F32);
    return rlxvk_add(g, rlxvk_sort(g, x, 1, false), which);
}
ROW_RULE(padded)
{
    const rlxvk_pad_options o = {.mode = RLXVK_PAD_REFLECT};
    const int64_t shift = 3;
    const int32_t axis = 1;
    ROW_UNUSED(y, i);
    rlxvk_tensor wide = rlxvk_pad(g, x, (const int64_t[]){2}, (const int64_t[]){4}, 1, &o);
    wide = rlxvk_roll(g, wide, &shift, &axis, 1);
    return rlxvk_pad_backward(g, wide, 1, 2, W, RLXVK_PAD_REFLECT);
}
ROW_RULE(tiled)
{
    ROW_UNUSED(i);
    rlxvk_tensor tiles = rlxvk_tile(g, row_columns(g, x, 8, 8), (const int64_t[]){4}, 1);
    return rlxvk_add(g, tiles, y);
}
ROW_RULE(sliced)
{
    const int64_t starts[] = {RLXVK_SLICE_FIRST, RLXVK_SLICE_LAST},
                  stops[] = {RLXVK_SLICE_LAST, RLXVK_SLICE_FIRST}, steps[] = {1, -2};
    ROW_UNUSED(i);
    return row_filled(g, rlxvk_silu(g, rlxvk_slice(g, x, starts, stops, steps, 2)), y);
}
ROW_RULE(transformed)
{
    ROW_UNUSED(y, i);
    return rlxvk_fft(g, x, false, RLXVK_FFT_ORTHO);
}
ROW_RULE(packed_rows)
{
    ROW_UNUSED(y);
    rlxvk_tensor table = row_param(g, RLXVK_U8, RLXVK_SHAPE(50 * 34));
    return rlxvk_add(g, x, rlxvk_dequant_gather(g, table, i, RLXVK_Q8_0, W));
}
ROW_RULE(scaled_product)
{
    const rlxvk_quant_scheme o = {.kind = RLXVK_QUANT_INT8, .block = 16, .n = W};
    ROW_UNUSED(y, i);
    return rlxvk_dequant_matmul_scaled(g, x, row_param(g, RLXVK_U8, RLXVK_SHAPE(W * W)),
                                       row_numbers(g, 0.01f, RLXVK_SHAPE(2, W)), RLXVK_NONE, &o);
}
/* Determinants of 4 x 4 matrices, two a row, with those of 8 x 8 and cofactors. */
ROW_RULE(determinants)
{
    ROW_UNUSED(i);
    rlxvk_tensor log_abs, small = rlxvk_reshape(g, x, RLXVK_SHAPE(-1, 2, 4, 4));
    rlxvk_tensor large =
        rlxvk_reshape(g, rlxvk_concat(g, (rlxvk_tensor[]){x, y}, 2, 1), RLXVK_SHAPE(-1, 8, 8));
    rlxvk_tensor sign = rlxvk_slogdet(g, large, &log_abs);
    sign = rlxvk_reshape(g, rlxvk_mul(g, sign, log_abs), RLXVK_SHAPE(-1, 1));
    sign = rlxvk_add(g, sign, rlxvk_reshape(g, rlxvk_det(g, large), RLXVK_SHAPE(-1, 1)));
    rlxvk_tensor both = rlxvk_add(g, sign, rlxvk_det(g, small));
    both = rlxvk_reshape(g, both, RLXVK_SHAPE(-1, 2, 1, 1));
    rlxvk_tensor squares = rlxvk_mul(g, rlxvk_cofactor(g, small), rlxvk_inverse(g, small));
    return row_back(g, rlxvk_add(g, squares, both));
}

row_rules row_rules_of_shapes(void)
{
    static const row_rule items[] = {
        ternary,     whole_numbers, complex_numbers, activation_gradient,
        region,      batch_region,  repeated,        ordered,
        branches,    convolved,     pooled,          resized,
        batch_norm,  sorted,        padded,          tiled,
        sliced,      transformed,   packed_rows,     scaled_product,
        determinants};
    return (row_rules){items, sizeof items / sizeof *items};
}
