/* The host's functions for all activations, from activation.def. The code of an activation is its
 * place in that table. */
#include "op/activation.h"
#include "base/numeric.h"

#include <math.h>

/* Codes are for kernels and regions, ids (rlxvk_activation) for callers, and ops for the op table.
 * All three have one order, so an addition converts one to another. */
#define ACTIVATION(code, NAME, row, ...)                                                           \
    _Static_assert(code == UNARY_PLACE_##NAME && code == RLXVK_ACTIVATION_##NAME - 1 &&            \
                       OP_##row == OP_gelu + code,                                                 \
                   "activation.def, rlxvk_activation and op.def go by one order");
#include "args/activation.def"

/* region.glsl has six bits for the code of a step. */
_Static_assert(UNARY_COUNT <= REGION_OP_BINARY, "codes of activations and REGION_OP_BINARY differ");

/* y with erf(y) = x. Found by bisection with erf, or with erfc if |x| is near 1. */
static double inverse_erf(double x)
{
    double magnitude = fabs(x), low = 0, high = 6;
    if (!(magnitude < 1))
        return magnitude == 1 ? copysign(INFINITY, x) : NAN;
    for (int i = 0; i < 64; i++) {
        double middle = 0.5 * (low + high);
        bool below = magnitude < 0.5 ? erf(middle) < magnitude : erfc(middle) > 1 - magnitude;
        *(below ? &low : &high) = middle;
    }
    double y = 0.5 * (low + high);
    return copysign(magnitude < 1e-4 ? magnitude * sqrt(acos(-1)) / 2 : y, x);
}

/* With t = tanh(softplus(x)) and s = 1 / (1 + e^-x): t + x (1 - t^2) s. */
static double mish_slope(double x)
{
    double v = fmax(fmin(x, 700), -700), t = tanh(fmax(v, 0) + log1p(exp(-fabs(v))));
    double e = exp(-fabs(v)), n = v < 0 ? e * (e + 2) : 0;
    double rest = v < 0 ? 2 / (n + 2) : 2 * e * e / (1 + 2 * e + 2 * e * e); /* 1 - t */
    return isnan(x) ? x : t + v * rest * (1 + t) / (1 + exp(-v));
}

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

/* The tolerance is from the op table's row, so that it agrees with `rlxvk conform`. */
double activation_tolerance(uint32_t code, double x, double y, double *out_more)
{
    const op_row *row = &op_table[activation_op(code)];
    *out_more = activations[code].more(x, y);
    return row->atol + row->rtol * fabs(y) + *out_more;
}

double activation_carry(uint32_t code, double x, double tolerance, double *out_bound)
{
    double y = activation_host(code, x), more;
    double above = activation_host(code, x + tolerance);
    double below = activation_host(code, x - tolerance);
    int outside = !!isnan(above) + !!isnan(y) + !!isnan(below);
    *out_bound = 0;
    if (isfinite(x) && outside > 0 && outside < 3) /* the function's domain ends here */
        *out_bound = INFINITY;
    else if (isfinite(x) && isfinite(y))
        *out_bound = fmax(fmax(fabs(above - y), fabs(below - y)), tolerance) +
                     activation_tolerance(code, x, y, &more);
    return y; /* if the bound is 0, the result must be exact */
}
