/*
 * Lowerings of ops on quantized integers in the domain com.microsoft. Operands become floats; the
 * result is quantized again. A chain of them is fused when the graph is compiled.
 */
#include "model/host.h"
#include "model/onnx_ops.h"
#include "model/onnx_quantized.h"

/* Operand i as floats: its scale and zero point are the two operands behind it. */
static rlxvk_tensor real(call *c, size_t i)
{
    rlxvk_tensor x = onnx_quantized_centred(c, i, i + 2, 0);
    return rlxvk_mul(c->graph, x, onnx_quantized_spread(c, i + 1, RLXVK_SCALAR, 0, 0));
}

/* Quantizes with the scale of operand i and the zero point behind it. */
static void give(call *c, rlxvk_tensor y, size_t i, int32_t type)
{
    rlxvk_tensor zero = RLXVK_NONE;
    if (c->failed)
        return;
    y = onnx_quantized_quotient(c, y, onnx_quantized_spread(c, i, RLXVK_SCALAR, 0, 0));
    if (call_has(c, i + 1))
        zero = onnx_quantized_spread(c, i + 1, RLXVK_SCALAR, 0, 0);
    onnx_quantized_give(c, 0, y, zero, type);
}

void onnx_qlinear_add(call *c)
{
    give(c, rlxvk_add(c->graph, real(c, 0), real(c, 3)), 6, call_type(c, 0));
}

void onnx_qlinear_mul(call *c)
{
    give(c, rlxvk_mul(c->graph, real(c, 0), real(c, 3)), 6, call_type(c, 0));
}

void onnx_qlinear_where(call *c)
{
    rlxvk_tensor condition = call_tensor(c, 0);
    give(c, rlxvk_where(c->graph, condition, real(c, 1), real(c, 4)), 7, call_type(c, 1));
}

/* One operand: the op on floats. */
static void give_applied(call *c, void lowering(call *), int64_t opset)
{
    rlxvk_tensor x = real(c, 0);
    give(c, call_apply(c, lowering, opset, &x, 1, ONNX_FLOAT), 3, call_type(c, 0));
}

void onnx_qlinear_sigmoid(call *c)
{
    give_applied(c, onnx_sigmoid, 13);
}

void onnx_qlinear_leaky_relu(call *c)
{
    give_applied(c, onnx_leaky_relu, 16);
}

void onnx_qlinear_reduce_mean(call *c)
{
    give_applied(c, onnx_reduce_mean, 13);
}

void onnx_qlinear_softmax(call *c)
{
    give_applied(c, onnx_softmax, call_integer(c, "opset", 13));
}

static void refuse_channels_last(call *c)
{
    if (call_flag(c, "channels_last", false))
        call_refuse(c, "channels_last", "only 0 is supported");
}

void onnx_qlinear_average_pool(call *c)
{
    refuse_channels_last(c);
    give_applied(c, onnx_average_pool, 22);
}

void onnx_qlinear_global_average_pool(call *c)
{
    refuse_channels_last(c);
    give_applied(c, onnx_global_average_pool, 22);
}

/* Scale and zero point of the result, then three operands for each part. */
void onnx_qlinear_concat(call *c)
{
    size_t count = c->input_count > 2 ? (c->input_count - 2) / 3 : 0;
    rlxvk_tensor *parts = arena_allocate(c->a, MAX(count, 1) * sizeof *parts);
    rlxvk_shape s = call_shape(c, 2);
    int32_t axis = call_axis(c, "axis", call_integer(c, "axis", 0), s.rank);
    if (count == 0 || c->input_count != 2 + 3 * count)
        call_refuse(c, NULL, "it does not have three operands for each part");
    for (size_t i = 0; parts && i < count && !c->failed; i++)
        parts[i] = real(c, 2 + 3 * i);
    if (!parts)
        import_end(c->import, status_fail_memory("node of a model"));
    else if (!c->failed)
        give(c, rlxvk_concat(c->graph, parts, count, axis), 0, call_type(c, 2));
}

/* ---- Products ---- */

/* The bias is an integer in units of both scales. Without a scale of the result, it is a float. */
void onnx_q_gemm(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_matmul_options o = {.transpose_a = call_flag(c, "transA", false),
                              .transpose_b = call_flag(c, "transB", false)};
    float alpha = call_real(c, "alpha", 1);
    rlxvk_tensor x = onnx_quantized_centred(c, 0, 2, 0), y, scale;
    rlxvk_tensor w = onnx_quantized_centred(c, 3, 5, o.transpose_b ? 0 : 1);
    if (c->failed)
        return;
    y = rlxvk_matmul_with(g, x, w, &o);
    if (call_has(c, 6))
        y = rlxvk_add(g, y, call_cast(c, call_tensor(c, 6), ONNX_FLOAT));
    scale = rlxvk_mul(g, onnx_quantized_spread(c, 1, RLXVK_SCALAR, 0, 0),
                      onnx_quantized_spread(c, 4, call_tensor_shape(c, y), 1, 0));
    y = rlxvk_mul(g, y, rlxvk_mul(g, scale, call_scalar(c, alpha)));
    if (call_has(c, 7))
        give(c, y, 7, call_has(c, 8) ? call_type(c, 8) : ONNX_UINT8);
    else
        call_give_as(c, 0, y, ONNX_FLOAT);
}

/* Codes x zero-centred, times centred codes of operand b, then the scales and a bias. */
static void give_product(call *c, rlxvk_tensor x, rlxvk_tensor scale, size_t b, size_t b_scale,
                         size_t b_zero, size_t bias)
{
    rlxvk_graph *g = c->graph;
    rlxvk_shape s = call_shape(c, b);
    rlxvk_tensor w, y;
    if (s.rank < 1) {
        call_refuse(c, NULL, "an operand is a scalar");
        return;
    }
    w = onnx_quantized_centred(c, b, b_zero, (int32_t)s.rank - 1);
    y = rlxvk_matmul(g, x, w);
    scale = rlxvk_mul(g, scale, onnx_quantized_spread(c, b_scale, s, (int32_t)s.rank - 1, 0));
    y = rlxvk_mul(g, y, scale);
    if (call_has(c, bias))
        y = rlxvk_add(g, y, call_tensor(c, bias));
    call_give_as(c, 0, y, ONNX_FLOAT);
}

void onnx_mat_mul_integer_to_float(call *c)
{
    rlxvk_tensor x = onnx_quantized_centred(c, 0, 4, 0);
    give_product(c, x, onnx_quantized_spread(c, 2, RLXVK_SCALAR, 0, 0), 1, 3, 5, 6);
}

void onnx_dynamic_quantize_mat_mul(call *c)
{
    rlxvk_tensor x = call_tensor(c, 0), scale, zero;
    if (c->failed)
        return;
    x = onnx_quantized_dynamic(c, x, &scale, &zero);
    give_product(c, rlxvk_sub(c->graph, x, zero), scale, 1, 2, 3, 4);
}
