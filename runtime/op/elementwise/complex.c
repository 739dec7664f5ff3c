/*
 * complex_norm_sq, conjugate, complex_norm_sq_backward, and the activations neg, exp, log and sqrt
 * of C64 operands (their op family is in unary.c). The errors of exp, log and sqrt are relative to
 * the magnitude of the result, because one part may cancel. For operands that are not finite,
 * results are those of C99 Annex G. Only log 0 differs: it is (-Inf, 0) for
 * all signs of zero.
 */
#include "args/elementwise.h"
#include "constants/elementwise.h"
#include "base/numeric.h"
#include "op/bucket.h"
#include "op/elementwise/complex.h"
#include "op/activation.h"
#include "op/elementwise/elementwise.h"
#include "op/families.h"
#include "op/gradient.h"

#include <complex.h>
#include <math.h>
#include <string.h>

rlxvk_tensor rlxvk_complex_norm_sq(rlxvk_graph *g, rlxvk_tensor z)
{
    return op_build(g, OP_complex_norm_sq, &z, 1, NULL);
}

rlxvk_tensor rlxvk_conjugate(rlxvk_graph *g, rlxvk_tensor z)
{
    return op_build(g, OP_conjugate, &z, 1, NULL);
}

rlxvk_tensor rlxvk_complex_norm_sq_backward(rlxvk_graph *g, rlxvk_tensor z, rlxvk_tensor gradient)
{
    rlxvk_tensor inputs[] = {z, gradient};
    return op_build(g, OP_complex_norm_sq_backward, inputs, 2, NULL);
}

bool complex_code_of(uint32_t unary, uint32_t *out)
{
    static const uint32_t pairs[][2] = {{UNARY_NEG, COMPLEX_NEG},
                                        {UNARY_EXP, COMPLEX_EXP},
                                        {UNARY_LOG, COMPLEX_LOG},
                                        {UNARY_SQRT, COMPLEX_SQRT}};
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++)
        if (pairs[i][0] == unary) {
            *out = pairs[i][1];
            return true;
        }
    return false;
}

static rlxvk_status complex_infer(const rlxvk_graph *g, node *n, void *attributes)
{
    char z[SHAPE_TEXT], gradient[SHAPE_TEXT];
    (void)attributes;
    n->shape = *input_shape(g, n, 0);
    n->dtype = node_code(n) == COMPLEX_NORM_SQ ? RLXVK_F32 : RLXVK_C64;
    if (input_dtype(g, n, 0) != RLXVK_C64)
        return op_fail(n, RLXVK_E_DTYPE, "operand 0 is %s; takes C64",
                       rlxvk_dtype_name(input_dtype(g, n, 0)));
    if (n->input_count == 1)
        return RLXVK_OK;
    if (input_dtype(g, n, 1) == RLXVK_C64)
        return op_fail(n, RLXVK_E_DTYPE, "the gradient is complex; takes a real one");
    if (!shape_equal(input_shape(g, n, 1), &n->shape))
        return op_fail(n, RLXVK_E_SHAPE, "gradient of shape %s; operand 0 has %s",
                       shape_text(input_shape(g, n, 1), gradient), shape_text(&n->shape, z));
    return RLXVK_OK;
}

static uint32_t complex_in_place(const rlxvk_graph *g, const node *n)
{
    (void)g;
    return n->dtype == RLXVK_C64 ? 1 : 0;
}

rlxvk_status complex_lower_as(lowering *l, uint32_t id, uint32_t code)
{
    const node *n = graph_node(l->graph, id);
    operand z = lower_input(l, id, 0), y = lower_write(l, id);
    operand g = n->input_count > 1 ? lower_input(l, id, 1) : z;
    dispatch d = {.kernel = KERNEL_COMPLEX_MAP};
    struct complex_map_args args = {(uint32_t)shape_numel(&n->shape), z.offset, g.offset, y.offset};
    SET_CONSTANTS(&d, {LOCAL_SIZE, l->profile->workgroup_size}, {COMPLEX_MAP_CODE, code});
    lower_groups_in_order(l, &d, args.numel, d.constants[LOCAL_SIZE]);
    return lower_emit(l, &d, &args, sizeof args, (operand[]){z, g, y}, 3);
}

static rlxvk_status complex_lower(lowering *l, uint32_t id)
{
    return complex_lower_as(l, id, node_code(graph_node(l->graph, id)));
}

/* The distance to the nearest f32, which is the bound of a result that is rounded once. */
static double rounding(double v)
{
    double rounded = (float)v;
    return isfinite(rounded) ? fabs(rounded - v) : 0;
}

/* A C complex number is laid out as two doubles. The macro CMPLX would do this, but not every
 * compiler has it. */
static double complex join(const double parts[2])
{
    double complex z;
    memcpy(&z, parts, sizeof z);
    return z;
}

static void split(double complex z, double out[2])
{
    memcpy(out, &z, sizeof z);
}

static void host_exp(double complex z, double out[2], double bound[2])
{
    numeric_complex_exp(creal(z), cimag(z), out);
    for (int k = 0; k < 2; k++)
        bound[k] = (1e-6 + 1.2e-7 * fabs(creal(z))) * fabs(out[k]) + 2e-6 * exp(creal(z));
}

static void host_log(double complex z, double out[2], double bound[2])
{
    split(clog(z), out);
    if (z == 0)
        out[1] = 0;
    bound[0] = 2e-7 + 1e-6 * fabs(out[0]);
    bound[1] = 5e-7 + 1e-6 * fabs(out[1]);
}

static void host_sqrt(double complex z, double out[2], double bound[2])
{
    split(csqrt(z), out);
    bound[0] = bound[1] = 4 * 0x1p-23 * sqrt(cabs(z));
}

static void host_map(uint32_t code, const double z[2], double g, double out[2], double bound[2])
{
    double re = z[0], im = z[1], sign = code == COMPLEX_NEG ? -1 : 1;
    bound[0] = bound[1] = 0;
    if (code == COMPLEX_EXP)
        host_exp(join(z), out, bound);
    else if (code == COMPLEX_LOG)
        host_log(join(z), out, bound);
    else if (code == COMPLEX_SQRT)
        host_sqrt(join(z), out, bound);
    else if (code == COMPLEX_NORM_SQ)
        bound[0] = 3e-7 * (out[0] = re * re + im * im);
    else {
        bool backward = code == COMPLEX_NORM_SQ_BACK;
        out[0] = backward ? g * re : sign * re;
        out[1] = backward ? g * im : -im;
        for (int k = 0; k < 2; k++)
            bound[k] = rounding(out[k]);
    }
}

rlxvk_status complex_host_as(const host_call *call, uint32_t code)
{
    uint64_t numel = shape_numel(&call->node->shape), parts = code == COMPLEX_NORM_SQ ? 1 : 2;
    for (uint64_t i = 0; i < numel; i++) {
        const float *z = call->inputs[0].words + 2 * i;
        double g = call->node->input_count > 1 ? call->inputs[1].words[i] : 0, out[2], bound[2];
        host_map(code, (double[]){z[0], z[1]}, g, out, bound);
        for (uint64_t k = 0; k < parts; k++) {
            call->out[parts * i + k] = out[k];
            if (call->bound)
                call->bound[parts * i + k] = isfinite(bound[k]) ? bound[k] : 0;
        }
    }
    return RLXVK_OK;
}

static rlxvk_status complex_host(const host_call *call)
{
    return complex_host_as(call, node_code(call->node));
}

/* The gradient of a complex tensor is the gradient by its real part plus i times that by its
 * imaginary part. For example, that of |z|^2 is 2 z. */
static rlxvk_status complex_vjp(gradient_call *c)
{
    rlxvk_graph *g = c->graph;
    rlxvk_tensor z = gradient_operand(c, 0);
    if (node_code(&c->n) == COMPLEX_CONJUGATE) {
        gradient_give(c, 0, rlxvk_conjugate(g, c->dy));
    } else if (node_code(&c->n) == COMPLEX_NORM_SQ) {
        gradient_give(c, 0, rlxvk_complex_norm_sq_backward(g, z, rlxvk_add(g, c->dy, c->dy)));
    } else { /* y = z r */
        gradient_give(c, 0, rlxvk_complex_norm_sq_backward(g, c->dy, gradient_operand(c, 1)));
        gradient_give(c, 1, rlxvk_mul(g, rlxvk_conjugate(g, z), c->dy));
    }
    return RLXVK_OK;
}

const op_family complex_family = {
    .name = "complex",
    .infer = complex_infer,
    .storage = {.pairs = true},
    .memory = {.in_place = complex_in_place},
    .execution = {.foldable = true, .lower = complex_lower, .host = complex_host},
    .rows = {.bucket = bucket_broadcast},
    .derivative = {.vjp = complex_vjp},
};
