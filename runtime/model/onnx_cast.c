/* Lowerings of conversions between types. */
#include "model/host.h"
#include "model/onnx_cast.h"
#include "model/onnx_float8.h"
#include "model/onnx_ops.h"

#include <math.h>

/* ---- Floats of 8 and 4 bits ---- */

/* The largest power of two up to |x|, which is below 2^100: Rump's unit in the first place. It is
 * exact, because each step rounds to f32. */
static rlxvk_tensor leading_power(call *c, rlxvk_tensor x)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor spread = rlxvk_mul(g, x, call_scalar(c, 0x1p23 + 1));
    rlxvk_tensor less = rlxvk_mul(g, spread, call_scalar(c, 1 - 0x1p-24));
    return rlxvk_abs(g, rlxvk_sub(g, spread, less));
}

/* Rounds to the type's digits, ties to even: adding 3/2 2^23 units and subtracting them again
 * leaves a multiple of the unit. */
static rlxvk_tensor round_digits(call *c, rlxvk_tensor x, const onnx_float8 *t)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor unit = rlxvk_mul(g, leading_power(c, x), call_scalar(c, ldexp(1, -t->fraction)));
    unit = rlxvk_max(g, unit, call_scalar(c, ldexp(1, 1 - t->bias - t->fraction)));
    unit = rlxvk_mul(g, unit, call_scalar(c, 0x1.8p23));
    return rlxvk_sub(g, rlxvk_add(g, x, unit), unit);
}

/* Powers of two. 2^-60 x or 2^60 x keeps leading_power in range. */
static rlxvk_tensor round_to_power(call *c, rlxvk_tensor x, int mode)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor large = rlxvk_ge(g, x, call_scalar(c, 1)), scaled, power, up, ratio;
    scaled = rlxvk_mul(g, x, call_scalar(c, 0x1p60));
    scaled = rlxvk_where(g, large, rlxvk_mul(g, x, call_scalar(c, 0x1p-60)), scaled);
    power = leading_power(c, scaled);
    ratio = call_scalar(c, mode == ONNX_ROUND_UP ? 1 : 1.5);
    up = rlxvk_mul(g, power, ratio);
    up = mode == ONNX_ROUND_UP ? rlxvk_gt(g, scaled, up) : rlxvk_ge(g, scaled, up);
    if (mode != ONNX_ROUND_DOWN)
        power = rlxvk_where(g, up, rlxvk_add(g, power, power), power);
    return rlxvk_where(g, large, rlxvk_mul(g, power, call_scalar(c, 0x1p60)),
                       rlxvk_mul(g, power, call_scalar(c, 0x1p-60)));
}

rlxvk_tensor onnx_round_float8(call *c, rlxvk_tensor x, int32_t type, bool saturate, int mode)
{
    rlxvk_graph *g = c->graph;
    const onnx_float8 *t = onnx_find_float8(type);
    float most = (float)t->largest;
    rlxvk_tensor beyond = call_scalar(c, t->has_infinity ? INFINITY : NAN), y, over;
    x = call_cast(c, x, ONNX_FLOAT);
    if (type == ONNX_FLOAT8E8M0) {
        y = round_to_power(c, x, mode);
        return saturate ? rlxvk_min(g, y, call_scalar(c, most)) : y;
    }
    y = round_digits(c, rlxvk_clip(g, x, -0x1p20f, 0x1p20f), t);
    over = rlxvk_gt(g, rlxvk_abs(g, y), call_scalar(c, most));
    if (saturate || type == ONNX_FLOAT4E2M1)
        y = rlxvk_clip(g, y, -most, most);
    else
        y = rlxvk_where(g, over, rlxvk_mul(g, y, beyond), y);
    /* FLOAT4E2M1 has no NaN: it becomes 0. */
    return rlxvk_where(g, rlxvk_ne(g, x, x), call_scalar(c, type == ONNX_FLOAT4E2M1 ? 0 : NAN), y);
}

/* ---- Types ---- */

/* How a cast to floats of 8 bits rounds. */
typedef struct rounding {
    bool saturate;
    int mode;
} rounding;

static rounding read_rounding(call *c)
{
    static const char *const words[] = {"up", "down", "nearest", NULL};
    rounding how = {.saturate = call_flag(c, "saturate", true)};
    how.mode = call_word(c, "round_mode", words, 0);
    return how;
}

static void cast_to(call *c, int32_t type, rounding how)
{
    int32_t from = call_type(c, 0);
    rlxvk_tensor x;
    if (call_is_host(c) && call_is_known(c, 0) && !onnx_find_float8(type)) {
        call_give_host(c, 0, host_cast(c, call_host(c, 0, "the result"), type));
        return;
    }
    if (type == from) {
        call_give_value(c, 0, c->inputs[0]);
        return;
    }
    x = call_tensor(c, 0);
    if (onnx_find_float8(type))
        x = onnx_round_float8(c, x, type, how.saturate, how.mode);
    else if (onnx_is_narrow(type) && onnx_is_integer(from))
        x = call_wrap(c, call_cast(c, x, ONNX_FLOAT), type);
    else if (onnx_is_integer(type) && onnx_type_bits(type) < 8)
        x = call_wrap(c, call_cast(c, call_cast(c, x, ONNX_INT32), ONNX_FLOAT), type);
    call_give_as(c, 0, x, type);
}

static bool is_numeric(call *c, int32_t type, const char *attribute)
{
    rlxvk_dtype dtype;
    if (onnx_value_dtype(type, &dtype))
        return true;
    call_refuse(c, attribute, "type %s is not supported", onnx_type_name(type));
    return false;
}

void onnx_cast(call *c)
{
    int32_t type = (int32_t)call_integer(c, "to", ONNX_UNDEFINED);
    rounding how = read_rounding(c);
    if (is_numeric(c, type, "to") && is_numeric(c, call_type(c, 0), NULL))
        cast_to(c, type, how);
}

void onnx_cast_like(call *c)
{
    int32_t type = call_type(c, 1);
    rounding how = read_rounding(c);
    c->input_count = 1; /* the value of the other operand does not matter */
    if (is_numeric(c, type, NULL) && is_numeric(c, call_type(c, 0), NULL))
        cast_to(c, type, how);
}

/* Bits of integers of 8 and 16 bits, which wrap around between the types. */
void onnx_bit_cast(call *c)
{
    int32_t from = call_type(c, 0), to = (int32_t)call_integer(c, "to", ONNX_UNDEFINED);
    if (!onnx_is_integer(from) || !onnx_is_integer(to) || onnx_type_bits(from) > 16 ||
        onnx_type_bits(from) != onnx_type_bits(to)) {
        call_refuse(c, "to",
                    "bits of %s as %s are not supported; only integers of 8 or 16 bits are",
                    onnx_type_name(from), onnx_type_name(to));
        return;
    }
    call_give_as(c, 0, call_wrap(c, call_cast(c, call_tensor(c, 0), ONNX_FLOAT), to), to);
}
