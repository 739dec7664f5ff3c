/* Lowerings of elementwise ops: arithmetic, comparisons, logic, bits, types. */
#include "model/host.h"
#include "model/onnx_ops.h"

#include <math.h>
#include <string.h>

/* ---- One operand ---- */

/* Computes the node on the host if its operands are known. */
static bool fold_unary(call *c, enum host_unary op)
{
    if (!call_is_host(c))
        return false;
    call_give_host(c, 0, host_unary(c, op, call_host(c, 0, "the result")));
    return true;
}

#define UNARY(name, builder)                                                                       \
    void onnx_##name(call *c)                                                                      \
    {                                                                                              \
        call_give(c, 0, rlxvk_##builder(c->graph, call_tensor(c, 0)));                             \
    }
#define FOLDED(name, builder, op)                                                                  \
    void onnx_##name(call *c)                                                                      \
    {                                                                                              \
        if (!fold_unary(c, op))                                                                    \
            call_give(c, 0, rlxvk_##builder(c->graph, call_tensor(c, 0)));                         \
    }

FOLDED(abs, abs, HOST_ABS)
FOLDED(neg, neg, HOST_NEG)
FOLDED(floor, floor, HOST_FLOOR)
FOLDED(ceil, ceil, HOST_CEIL)
FOLDED(round, round, HOST_ROUND)
FOLDED(sign, sign, HOST_SIGN)
FOLDED(sqrt, sqrt, HOST_SQRT)
FOLDED(relu, relu, HOST_RELU)
UNARY(exp, exp)
UNARY(log, log)
UNARY(sin, sin)
UNARY(cos, cos)
UNARY(tan, tan)
UNARY(asin, asin)
UNARY(acos, acos)
UNARY(atan, atan)
UNARY(sinh, sinh)
UNARY(cosh, cosh)
UNARY(asinh, asinh)
UNARY(acosh, acosh)
UNARY(atanh, atanh)
UNARY(erf, erf)
UNARY(sigmoid, sigmoid)
UNARY(tanh, tanh)
UNARY(softplus, softplus)
UNARY(softsign, softsign)
UNARY(mish, mish)
UNARY(hard_swish, hardswish)

void onnx_reciprocal(call *c)
{
    if (!fold_unary(c, HOST_RECIPROCAL))
        call_give(c, 0, rlxvk_div(c->graph, call_scalar(c, 1), call_tensor(c, 0)));
}

void onnx_not(call *c)
{
    if (!fold_unary(c, HOST_NOT))
        call_give(c, 0, rlxvk_eq(c->graph, call_tensor(c, 0), call_scalar(c, 0)));
}

/* max(x, 0) + alpha (e^min(x, 0) - 1), scaled. */
static rlxvk_tensor elu_of(call *c, rlxvk_tensor x, double alpha, double scale)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor zero = call_scalar(c, 0);
    rlxvk_tensor below = rlxvk_expm1(g, rlxvk_min(g, x, zero));
    below = rlxvk_mul(g, below, call_scalar(c, alpha));
    x = rlxvk_add(g, rlxvk_max(g, x, zero), below);
    return scale == 1 ? x : rlxvk_mul(g, x, call_scalar(c, scale));
}

void onnx_elu(call *c)
{
    float alpha = call_real(c, "alpha", 1);
    rlxvk_tensor x = call_tensor(c, 0);
    call_give(c, 0, alpha == 1 ? rlxvk_elu(c->graph, x) : elu_of(c, x, alpha, 1));
}

void onnx_selu(call *c)
{
    float alpha = call_real(c, "alpha", 1.67326319217681884765625f);
    float gamma = call_real(c, "gamma", 1.05070102214813232421875f);
    call_give(c, 0, elu_of(c, call_tensor(c, 0), alpha, gamma));
}

void onnx_celu(call *c)
{
    float alpha = call_real(c, "alpha", 1);
    rlxvk_tensor x = call_tensor(c, 0), scaled;
    if (alpha == 0) {
        call_refuse(c, "alpha", "0 is not allowed");
        return;
    }
    scaled = rlxvk_div(c->graph, x, call_scalar(c, alpha));
    /* For alpha < 0 the two parts change sides, which elu_of does not know. */
    if (alpha < 0)
        call_refuse(c, "alpha", "a negative one is not supported");
    call_give(c, 0, rlxvk_mul(c->graph, elu_of(c, scaled, 1, 1), call_scalar(c, alpha)));
}

void onnx_leaky_relu(call *c)
{
    float alpha = call_real(c, "alpha", 0.01f);
    call_give(c, 0, rlxvk_leaky_relu(c->graph, call_tensor(c, 0), alpha));
}

void onnx_prelu(call *c)
{
    rlxvk_tensor x = call_tensor(c, 0), slope = call_tensor(c, 1);
    call_give(c, 0, rlxvk_prelu(c->graph, x, slope));
}

void onnx_thresholded_relu(call *c)
{
    rlxvk_tensor x = call_tensor(c, 0);
    rlxvk_tensor above = rlxvk_gt(c->graph, x, call_scalar(c, call_real(c, "alpha", 1)));
    call_give(c, 0, rlxvk_where(c->graph, above, x, call_scalar(c, 0)));
}

void onnx_hard_sigmoid(call *c)
{
    float alpha = call_real(c, "alpha", 0.2f), beta = call_real(c, "beta", 0.5f);
    rlxvk_tensor y = rlxvk_mul(c->graph, call_tensor(c, 0), call_scalar(c, alpha));
    call_give(c, 0, rlxvk_clip(c->graph, rlxvk_add(c->graph, y, call_scalar(c, beta)), 0, 1));
}

void onnx_shrink(call *c)
{
    rlxvk_graph *g = c->graph;
    float bias = call_real(c, "bias", 0), limit = call_real(c, "lambd", 0.5f);
    rlxvk_tensor x = call_cast(c, call_tensor(c, 0), ONNX_FLOAT);
    rlxvk_tensor above = rlxvk_gt(g, x, call_scalar(c, limit));
    rlxvk_tensor below = rlxvk_lt(g, x, call_scalar(c, -limit));
    rlxvk_tensor y =
        rlxvk_where(g, above, rlxvk_sub(g, x, call_scalar(c, bias)), call_scalar(c, 0));
    call_give(c, 0, rlxvk_where(g, below, rlxvk_add(g, x, call_scalar(c, bias)), y));
}

void onnx_gelu(call *c)
{
    static const char *const words[] = {"none", "tanh", NULL};
    rlxvk_tensor x = call_tensor(c, 0);
    call_give(c, 0,
              call_word(c, "approximate", words, 0) ? rlxvk_gelu_approx(c->graph, x)
                                                    : rlxvk_gelu(c->graph, x));
}

void onnx_swish(call *c)
{
    float alpha = call_real(c, "alpha", 1);
    rlxvk_tensor x = call_tensor(c, 0);
    rlxvk_tensor scaled = rlxvk_mul(c->graph, x, call_scalar(c, alpha));
    call_give(c, 0,
              alpha == 1 ? rlxvk_silu(c->graph, x)
                         : rlxvk_mul(c->graph, x, rlxvk_sigmoid(c->graph, scaled)));
}

void onnx_is_nan(call *c)
{
    rlxvk_tensor x = call_tensor(c, 0);
    call_give_as(c, 0, rlxvk_ne(c->graph, x, x), ONNX_BOOL);
}

void onnx_is_inf(call *c)
{
    rlxvk_graph *g = c->graph;
    bool positive = call_flag(c, "detect_positive", true);
    bool negative = call_flag(c, "detect_negative", true);
    rlxvk_tensor x = call_tensor(c, 0);
    rlxvk_tensor above = rlxvk_eq(g, x, call_scalar(c, INFINITY));
    rlxvk_tensor below = rlxvk_eq(g, x, call_scalar(c, -INFINITY));
    rlxvk_tensor none = rlxvk_lt(g, x, x);
    call_give_as(c, 0,
                 positive && negative ? rlxvk_max(g, above, below)
                 : positive           ? above
                 : negative           ? below
                                      : none,
                 ONNX_BOOL);
}

/* ---- Two operands ---- */

static bool fold_binary(call *c, enum host_binary op)
{
    if (!call_is_host(c))
        return false;
    call_give_host(c, 0,
                   host_binary(c, op, call_host(c, 0, "the result"),
                               call_host(c, 1, "the result")));
    return true;
}

/* Integers below 32 bits are computed as F32 words, which hold the result, and then wrapped. */
static rlxvk_tensor operand(call *c, size_t i)
{
    rlxvk_tensor t = call_tensor(c, i);
    return onnx_is_narrow(call_type(c, i)) ? call_cast(c, t, ONNX_FLOAT) : t;
}

#define ARITHMETIC(name, builder, op)                                                              \
    void onnx_##name(call *c)                                                                      \
    {                                                                                              \
        if (!fold_binary(c, op)) {                                                                 \
            rlxvk_tensor y = rlxvk_##builder(c->graph, operand(c, 0), operand(c, 1));              \
            call_give(c, 0, call_wrap(c, y, call_type(c, 0)));                                     \
        }                                                                                          \
    }
ARITHMETIC(add, add, HOST_ADD)
ARITHMETIC(sub, sub, HOST_SUB)
ARITHMETIC(mul, mul, HOST_MUL)

/* Of integers, the quotient is rounded towards 0: exactly, because the remainder is. */
void onnx_div(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor a, b;
    if (fold_binary(c, HOST_DIV))
        return;
    a = call_tensor(c, 0);
    b = call_tensor(c, 1);
    if (onnx_is_integer(call_type(c, 0))) {
        a = call_cast(c, a, ONNX_FLOAT);
        b = call_cast(c, b, ONNX_FLOAT);
        a = rlxvk_sub(g, a, rlxvk_fmod(g, a, b));
        call_give(c, 0, rlxvk_round(g, rlxvk_div(g, a, b)));
        return;
    }
    call_give(c, 0, rlxvk_div(g, a, b));
}

void onnx_mod(call *c)
{
    bool sign_of_a = call_flag(c, "fmod", false);
    rlxvk_tensor a, b;
    if (fold_binary(c, sign_of_a ? HOST_FMOD : HOST_MOD))
        return;
    if (!sign_of_a && onnx_is_real(call_type(c, 0)))
        call_refuse(c, "fmod", "floats need fmod = 1");
    a = call_tensor(c, 0);
    b = call_tensor(c, 1);
    call_give(c, 0, sign_of_a ? rlxvk_fmod(c->graph, a, b) : rlxvk_mod(c->graph, a, b));
}

/* A power of an integer is a whole number if the exponent is one; the float next to it is rounded.
 * Others are cut off. */
static rlxvk_tensor whole_power(call *c, rlxvk_tensor power)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor nearest = rlxvk_round(g, power), off, cut;
    off = rlxvk_abs(g, rlxvk_sub(g, power, nearest));
    cut = call_cast(c, call_cast(c, power, ONNX_INT32), ONNX_FLOAT);
    off = rlxvk_le(g, off, rlxvk_mul(g, rlxvk_abs(g, power), call_scalar(c, 1e-5)));
    return rlxvk_where(g, off, nearest, cut);
}

void onnx_pow(call *c)
{
    rlxvk_tensor base = call_tensor(c, 0), exponent = call_tensor(c, 1), y;
    if (call_type(c, 0) != call_type(c, 1) || onnx_is_integer(call_type(c, 0))) {
        base = call_cast(c, base, ONNX_FLOAT);
        exponent = call_cast(c, exponent, ONNX_FLOAT);
    }
    y = rlxvk_pow(c->graph, base, exponent);
    call_give(c, 0, onnx_is_integer(call_type(c, 0)) ? whole_power(c, y) : y);
}

/* ---- Comparisons and logic ---- */

#define COMPARISON(name, builder, op)                                                              \
    void onnx_##name(call *c)                                                                      \
    {                                                                                              \
        if (!fold_binary(c, op)) {                                                                 \
            rlxvk_tensor a = call_tensor(c, 0), b = call_tensor(c, 1);                             \
            call_give_as(c, 0, rlxvk_##builder(c->graph, a, b), ONNX_BOOL);                        \
        }                                                                                          \
    }
COMPARISON(equal, eq, HOST_EQUAL)
COMPARISON(less, lt, HOST_LESS)
COMPARISON(less_or_equal, le, HOST_LESS_EQUAL)
COMPARISON(greater, gt, HOST_GREATER)
COMPARISON(greater_or_equal, ge, HOST_GREATER_EQUAL)
COMPARISON(and, min, HOST_AND)
COMPARISON(or, max, HOST_OR)
COMPARISON(xor, ne, HOST_XOR)

void onnx_where(call *c)
{
    rlxvk_tensor condition, x, y;
    if (call_is_host(c)) {
        call_give_host(c, 0,
                       host_where(c, call_host_integers(c, 0, "the result"),
                                  call_host(c, 1, "the result"), call_host(c, 2, "the result")));
        return;
    }
    condition = call_tensor(c, 0);
    x = call_tensor(c, 1);
    y = call_tensor(c, 2);
    call_give_as(c, 0, rlxvk_where(c->graph, condition, x, y), call_type(c, 1));
}

/* ---- Any number of operands ---- */

typedef rlxvk_tensor builder(rlxvk_graph *g, rlxvk_tensor a, rlxvk_tensor b);

static rlxvk_tensor combine(call *c, builder *of)
{
    rlxvk_tensor y = call_tensor(c, 0);
    for (size_t i = 1; i < c->input_count; i++)
        y = of(c->graph, y, call_tensor(c, i));
    return y;
}

static bool fold_all(call *c, enum host_binary op)
{
    const host_array *y;
    if (!call_is_host(c) || c->input_count == 0)
        return false;
    y = call_host(c, 0, "the result");
    for (size_t i = 1; i < c->input_count; i++)
        y = host_binary(c, op, y, call_host(c, i, "the result"));
    call_give_host(c, 0, y);
    return true;
}

void onnx_max(call *c)
{
    if (!fold_all(c, HOST_MAX))
        call_give(c, 0, combine(c, rlxvk_max));
}

void onnx_min(call *c)
{
    if (!fold_all(c, HOST_MIN))
        call_give(c, 0, combine(c, rlxvk_min));
}

void onnx_sum(call *c)
{
    if (!fold_all(c, HOST_ADD))
        call_give(c, 0, combine(c, rlxvk_add));
}

void onnx_mean(call *c)
{
    double count = (double)MAX(c->input_count, 1);
    call_give(c, 0, rlxvk_div(c->graph, combine(c, rlxvk_add), call_scalar(c, count)));
}

/* From opset 11 on the limits are operands. */
void onnx_clip(call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor x;
    if (c->opset >= 11 && call_is_host(c)) {
        const host_array *h = call_host(c, 0, "the result");
        if (call_has(c, 1))
            h = host_binary(c, HOST_MAX, h, call_host(c, 1, "the lower limit"));
        if (call_has(c, 2))
            h = host_binary(c, HOST_MIN, h, call_host(c, 2, "the upper limit"));
        call_give_host(c, 0, h);
        return;
    }
    x = call_tensor(c, 0);
    if (c->opset < 11) {
        float low = call_real(c, "min", -INFINITY), high = call_real(c, "max", INFINITY);
        x = rlxvk_max(g, x, call_scalar(c, low));
        x = rlxvk_min(g, x, call_scalar(c, high));
    } else {
        if (call_has(c, 1))
            x = rlxvk_max(g, x, call_tensor(c, 1));
        if (call_has(c, 2))
            x = rlxvk_min(g, x, call_tensor(c, 2));
    }
    if (c->opset < 11 || call_has(c, 1) || call_has(c, 2))
        call_give(c, 0, x);
    else
        call_give_value(c, 0, c->inputs[0]);
}

/* ---- Bits ---- */

#define BITWISE(name, builder)                                                                     \
    void onnx_##name(call *c)                                                                      \
    {                                                                                              \
        rlxvk_tensor a = call_tensor(c, 0), b = call_tensor(c, 1);                                 \
        call_give(c, 0, rlxvk_##builder(c->graph, a, b));                                          \
    }
BITWISE(bitwise_and, bitwise_and)
BITWISE(bitwise_or, bitwise_or)
BITWISE(bitwise_xor, bitwise_xor)

void onnx_bitwise_not(call *c)
{
    int32_t type = call_type(c, 0);
    rlxvk_tensor x = call_cast(c, call_tensor(c, 0), ONNX_FLOAT);
    double most = type == ONNX_UINT8 ? 255 : type == ONNX_UINT16 ? 65535 : -1;
    if (type == ONNX_UINT32 || type == ONNX_UINT64)
        call_refuse(c, NULL, "results of type %s are beyond 2^24, up to which f32 words are exact",
                    onnx_type_name(type));
    call_give(c, 0, rlxvk_sub(c->graph, call_scalar(c, most), x));
}

void onnx_bit_shift(call *c)
{
    static const char *const words[] = {"LEFT", "RIGHT", NULL};
    rlxvk_tensor a = call_tensor(c, 0), b = call_tensor(c, 1), y;
    if (!call_attribute(c, "direction", ONNX_ATTRIBUTE_STRING))
        call_refuse(c, "direction", "it is required");
    a = call_cast(c, a, ONNX_INT32);
    b = call_cast(c, b, ONNX_INT32);
    if (call_word(c, "direction", words, 0)) {
        call_give(c, 0, rlxvk_shift_right(c->graph, a, b));
        return;
    }
    y = call_cast(c, rlxvk_shift_left(c->graph, a, b), ONNX_FLOAT);
    call_give(c, 0, call_wrap(c, y, call_type(c, 0)));
}

/* ---- Others ---- */

void onnx_binarizer(call *c)
{
    rlxvk_tensor limit = call_scalar(c, call_real(c, "threshold", 0));
    call_give(c, 0, rlxvk_gt(c->graph, call_tensor(c, 0), limit));
}

void onnx_identity(call *c)
{
    call_give_value(c, 0, c->inputs[0]);
}

/* All true, in the shape of x. */
static rlxvk_tensor mask_like(call *c)
{
    rlxvk_tensor one = rlxvk_cast(c->graph, call_scalar(c, 1), RLXVK_BOOL);
    return rlxvk_expand(c->graph, one, call_shape(c, 0));
}

/* Without training it gives its operand. */
void onnx_dropout(call *c)
{
    bool training = c->opset < 7 && !call_flag(c, "is_test", false);
    call_ignore(c, "seed");
    call_ignore(c, "ratio");
    if (c->opset >= 12 && call_has(c, 2))
        training = call_host_integer(c, 2, "whether numbers are drawn", 0) != 0;
    if (training && call_has(c, 1) && call_is_known(c, 1))
        training = call_host_real(c, 1, "the share of zeros", 0.5) != 0;
    if (training)
        call_refuse(c, NULL,
                    "dropout in training mode draws numbers that no other program can "
                    "draw again; export the model for inference");
    call_give_value(c, 0, c->inputs[0]);
    if (call_wants(c, 1))
        call_give_as(c, 1, mask_like(c), c->opset < 10 ? call_type(c, 0) : ONNX_BOOL);
}
