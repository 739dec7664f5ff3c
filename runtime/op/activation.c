/* What activation.def says of every activation, for the host. Each code is its row's place. */
#include "op/activation.h"

#include <math.h>

/* Codes are what kernels and regions are told, ids what programs write, ops what the table lists:
 * all three count alike, so that each is another's by an addition. */
#define ACTIVATION(code, NAME, row, ...)                                                           \
    _Static_assert(code == UNARY_PLACE_##NAME && code == RLXVK_ACTIVATION_##NAME - 1 &&            \
                       OP_##row == OP_gelu + code,                                                 \
                   "activation.def, rlxvk_activation and op.def go by one order");
#include "args/activation.def"

/* region.glsl has five bits for the code of a step. */
_Static_assert(UNARY_COUNT <= REGION_OP_BINARY, "codes of activations and REGION_OP_BINARY differ");

static double gelu_approx_slope(double x)
{
    double c = sqrt(2 / acos(-1)), t = tanh(c * (x + 0.044715 * x * x * x));
    return fabs(x) > 40 ? x > 0
                        : 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
}

#define ACTIVATION(code, NAME, row, atol, rtol, more, host, kernel, slope, ...)                    \
    static double host_##row(double x)                                                             \
    {                                                                                              \
        return host;                                                                               \
    }                                                                                              \
    static double slope_##row(double x)                                                            \
    {                                                                                              \
        (void)x;                                                                                   \
        return slope;                                                                              \
    }                                                                                              \
    static double more_##row(double x, double y)                                                   \
    {                                                                                              \
        (void)x, (void)y;                                                                          \
        return more;                                                                               \
    }
#include "args/activation.def"

static const struct activation {
    const char *name;
    double (*host)(double x), (*slope)(double x);
    double (*more)(double x, double y);
} activations[] = {
#define ACTIVATION(code, NAME, row, ...) [code] = {#row, host_##row, slope_##row, more_##row},
#include "args/activation.def"
};

const char *activation_name(rlxvk_activation a)
{
    return a == RLXVK_ACTIVATION_NONE ? "none" : activations[activation_code(a)].name;
}

double activation_host(uint32_t code, double x)
{
    return activations[code].host(x);
}

double activation_slope(uint32_t code, double x)
{
    return code == UNARY_NONE ? 1 : activations[code].slope(x);
}

/* The row's constants are the op table's own, so that `rlxvk conform` and this agree by themselves.
 */
double activation_tolerance(uint32_t code, double x, double y, double *out_more)
{
    const op_row *row = &op_table[activation_op(code)];
    *out_more = activations[code].more(x, y);
    return row->atol + row->rtol * fabs(y) + *out_more;
}

double activation_carry(uint32_t code, double x, double tolerance, double *out_bound)
{
    double y = activation_host(code, x), more;
    *out_bound = 0;
    if (!isfinite(x) || !isfinite(y))
        return y; /* must be met as it is */
    double up = fabs(activation_host(code, x + tolerance) - y);
    double down = fabs(activation_host(code, x - tolerance) - y);
    *out_bound = fmax(fmax(up, down), tolerance) + activation_tolerance(code, x, y, &more);
    return y;
}
