/*
 * Cases of the ops in rlxvk_ops_math.h:
 *   log_softmax                     axis
 *   cumprod                         axis, exclusive
 *   log_sum_exp, l1_norm, l2_norm   axes, keep_dim
 *   triu, tril                      k
 *   leaky_relu                      slope
 *   prelu                           in=x;slope
 *   clip                            low, high
 *   mod, fmod, bitwise_*, shift_*   in=a;b (bitwise_not: in=x)
 *   scalar, full                    value, to; the result is added to x
 */
#include "conform/cases/cases.h"

#include <stdio.h>
#include <string.h>

typedef rlxvk_tensor (*reduce_builder)(rlxvk_graph *, rlxvk_tensor, const int32_t *, size_t, bool);

static const char *const rows[] = {"log_sum_exp", "l1_norm",    "l2_norm",     "log_softmax",
                                   "cumprod",     "triu",       "tril",        "leaky_relu",
                                   "prelu",       "clip",       "scalar",      "full",
                                   "mod",         "fmod",       "bitwise_and", "bitwise_or",
                                   "bitwise_xor", "shift_left", "shift_right", "bitwise_not",
                                   NULL};

static const struct {
    const char *row;
    rlxvk_tensor (*build)(rlxvk_graph *, rlxvk_tensor, rlxvk_tensor);
} integrals[] = {
    {"mod", rlxvk_mod},
    {"fmod", rlxvk_fmod},
    {"bitwise_and", rlxvk_bitwise_and},
    {"bitwise_or", rlxvk_bitwise_or},
    {"bitwise_xor", rlxvk_bitwise_xor},
    {"shift_left", rlxvk_shift_left},
    {"shift_right", rlxvk_shift_right},
};
static const reduce_builder reduce_builders[] = {rlxvk_log_sum_exp, rlxvk_l1_norm, rlxvk_l2_norm};

static rlxvk_tensor build_reduction(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x,
                                    reduce_builder builder)
{
    int32_t axes[RLXVK_MAX_RANK];
    size_t count = case_integers(s, "axes", axes, RLXVK_MAX_RANK);
    return builder(g, x, axes, count, case_integer(s, "keep_dim", 0) != 0);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x = case_tensor(s, inputs, "x");
    int32_t axis = (int32_t)case_integer(s, "axis", -1);
    float value = (float)case_real(s, "value", 0);
    for (size_t i = 0; i < COUNT(reduce_builders); i++)
        if (strcmp(s->row, rows[i]) == 0)
            return build_reduction(g, s, x, reduce_builders[i]);
    for (size_t i = 0; i < COUNT(integrals); i++)
        if (strcmp(s->row, integrals[i].row) == 0)
            return integrals[i].build(g, case_tensor(s, inputs, "a"), case_tensor(s, inputs, "b"));
    if (strcmp(s->row, "bitwise_not") == 0)
        return rlxvk_bitwise_not(g, x);
    if (strcmp(s->row, "log_softmax") == 0)
        return rlxvk_log_softmax(g, x, axis);
    if (strcmp(s->row, "cumprod") == 0)
        return rlxvk_cumprod(g, x, axis, case_integer(s, "exclusive", 0) != 0);
    if (strcmp(s->row, "triu") == 0)
        return rlxvk_triu(g, x, case_integer(s, "k", 0));
    if (strcmp(s->row, "tril") == 0)
        return rlxvk_tril(g, x, case_integer(s, "k", 0));
    if (strcmp(s->row, "leaky_relu") == 0)
        return rlxvk_leaky_relu(g, x, (float)case_real(s, "slope", 0.01));
    if (strcmp(s->row, "prelu") == 0)
        return rlxvk_prelu(g, x, case_tensor(s, inputs, "slope"));
    if (strcmp(s->row, "clip") == 0)
        return rlxvk_clip(g, x, (float)case_real(s, "low", -1), (float)case_real(s, "high", 1));
    if (strcmp(s->row, "scalar") == 0)
        return rlxvk_add(g, x, rlxvk_scalar(g, value));
    return rlxvk_add(g, x, rlxvk_full(g, case_shape(s, "to"), value));
}

static const char *const axis_cases[] = {
    "axis=0 in=x:f32:1",
    "axis=0 in=x:f32:2",
    "axis=0 in=x:f32:31:unit",
    "axis=0 in=x:f32:3x5",
    "axis=-1 in=x:f32:3x5:special",
    "axis=1 in=x:f32:5x7x11:integers",
    "axis=-1 in=x:f32:5x7x11:special",
    "axis=1 in=x:f32:5x1x11",
    "axis=4 in=x:f32:2x3x2x3x2x3x2x3",
    "axis=1 in=x:f32:0x4",
    "axis=1 in=x:f32:33x130",
    "axis=0 in=x:f32:130x33:special",
    "axis=1 in=x:f32:3x1025",
    "axis=0 in=x:f32:1025x3",
    "expect=E_AXIS axis=2 in=x:f32:3x5",
    "expect=E_DTYPE axis=1 in=x:u8:3x5:bytes",
};

static const char *const log_softmax_cases[] = {
    "axis=0 in=x:f32:scalar",     "axis=1 in=x:f32:9x4:neginf",
    "axis=1 in=x:f32:9x40:large", "axis=1 in=x:f32:5x300:offset",
    "axis=1 in=x:f32:2x20000",    "axis=0 in=x:f32:70001:special",
    "axis=1 in=x:f32:2x9001x3",   "axis=1 in=x:f32:300x1000:range:-200:0",
};

/* Products stay near 1, because the order of factors matters if they leave the range of f32. */
static const char *const cumprod_cases[] = {
    "axis=0 in=x:f32:scalar",
    "axis=0 in=x:f32:1",
    "axis=1 in=x:f32:9x40:range:1e-3:1", /* products of parts that are below f32's normal numbers */
    "axis=1 exclusive=1 in=x:f32:9x400:range:-0.7:0.9",
    "axis=0 in=x:f32:200x5:range:1e-20:1e-19",
    "axis=1 in=x:f32:3x9000:range:0.9:1",
    "axis=0 in=x:f32:7:integers",
    "axis=0 exclusive=1 in=x:f32:7:integers",
    "axis=1 in=x:f32:3x5",
    "axis=0 exclusive=1 in=x:f32:3x5",
    "axis=1 in=x:f32:5x7x11",
    "axis=2 in=x:f32:5x7x11:bool",
    "axis=0 in=x:f32:20:zero",
    "axis=4 in=x:f32:2x3x2x3x2x3x2x3",
    "axis=1 in=x:f32:0x4",
    "axis=1 in=x:f32:4x0",
    "axis=1 in=x:f32:33x130:range:0.95:1.05",
    "axis=0 exclusive=1 in=x:f32:130x33:range:-1.05:-0.95",
    "axis=1 in=x:f32:3x1025:range:0.99:1.01",
    "axis=0 in=x:f32:1025x3:range:-1.01:-0.99",
    "axis=0 in=x:f32:20000:range:0.9999:1.0001",
    "axis=0 exclusive=1 in=x:f32:300001:one",
    "axis=1 in=x:f32:2x30011x3:range:0.9999:1.0001",
    "expect=E_AXIS axis=2 in=x:f32:3x5",
};

static const char *const reduce_cases[] = {
    "axes=0 in=x:f32:scalar",
    "in=x:f32:3x5",
    "axes=0 in=x:f32:1",
    "axes=0 in=x:f32:70",
    "axes=0 keep_dim=1 in=x:f32:70:special",
    "axes=1 in=x:f32:3x5:special",
    "axes=0 keep_dim=1 in=x:f32:3x5",
    "axes=0,1 in=x:f32:3x5:integers",
    "axes=1 in=x:f32:5x7x11:zero",
    "axes=-3,-2 in=x:f32:5x7x11:unit",
    "axes=0,2 keep_dim=1 in=x:f32:5x7x11",
    "axes=0 in=x:f32:0x4",
    "axes=1 keep_dim=1 in=x:f32:0x4",
    "axes=1 in=x:f32:9x4:neginf",
    "axes=1 in=x:f32:9x40:range:-1e-30:1e-30",
    "axes=1 in=x:f32:9x40:range:1e30:3e30",
    "axes=1 in=x:f32:3x1025:offset",
    "axes=0 in=x:f32:20000:unit",
};

static const char *const reduce_errors[] = {"expect=E_AXIS axes=2 in=x:f32:3x5",
                                            "expect=E_AXIS axes=1,1 in=x:f32:3x5",
                                            "expect=E_DTYPE axes=1 in=x:u8:3x5:bytes"};

static const char *const triangle_cases[] = {
    "in=x:f32:5x7",
    "k=1 in=x:f32:5x7:special",
    "k=-2 in=x:f32:7x5:special",
    "k=3 in=x:f32:2x3x6x6",
    "k=100 in=x:f32:4x4",
    "k=-100 in=x:f32:4x4",
    "k=9223372036854775807 in=x:f32:4x4",
    "in=x:f32:1x1",
    "in=x:f32:0x4",
    "in=x:f32:4x0",
    "in=x:f32:130x65",
    "expect=E_SHAPE in=x:f32:5",
    "expect=E_SHAPE in=x:f32:scalar",
    "expect=E_DTYPE in=x:u8:3x5:bytes",
};

static const char *const others[] = {
    "leaky_relu in=x:f32:33:special",
    "leaky_relu slope=-0.5 in=x:f32:3x5",
    "leaky_relu slope=2 in=x:f32:scalar",
    "prelu in=x:f32:3x5:special;slope:f32:5",
    "prelu in=x:f32:2x3x4;slope:f32:3x1",
    "prelu in=x:f32:2x3x4;slope:f32:scalar",
    "prelu expect=E_SHAPE in=x:f32:3x5;slope:f32:4",
    "clip in=x:f32:33:special",
    "clip low=0 high=6 in=x:f32:5x7",
    "clip low=-inf high=0.5 in=x:f32:5x7:special",
    "clip low=1 high=1 in=x:f32:5x7",
    "clip expect=E_ATTR low=1 high=0 in=x:f32:5x7",
    "clip expect=E_ATTR low=nan in=x:f32:5x7",
    "scalar value=2.5 in=x:f32:5x7",
    "scalar value=inf in=x:f32:5x7",
    "full value=2.5 to=5x7 in=x:f32:5x7",
    "full value=-1 to=4x1x3 in=x:f32:2x3",
    "full value=3 to=0x3 in=x:f32:3",
};

static const char *const remainder_cases[] = {
    "in=a:f32:scalar;b:f32:scalar",
    "in=a:f32:0;b:f32:0",
    "in=a:f32:5x7;b:f32:5x7",
    "in=a:f32:5x7:large;b:f16:7",
    "in=a:f32:1;b:f32:5x7:special",
    "in=a:f32:2x1x3;b:f32:1x4x3",
    "in=a:f32:4099:special;b:f32:4099:special",
    "in=a:f32:2000:range:-1e30:1e30;b:f16:2000:range:-0.1:0.1",
    "in=a:f32:2000:range:-1e-30:1e-30;b:f32:2000:range:-1e-37:1e-37",
    "in=a:f32:2000:integers;b:f32:2000:integers",
    "in=a:f32:2000:positive;b:f32:1:constant:-0.7",
    "in=a:i32:40:integers;b:i32:40:integers",
    "in=a:f32:100;b:f32:100:zero",
    "expect=E_SHAPE in=a:f32:3;b:f32:4",
    "expect=E_DTYPE in=a:c64:3;b:f32:3",
};

static const char *const bit_cases[] = {
    "in=a:i32:scalar:integers;b:i32:scalar:integers",
    "in=a:i32:0;b:i32:0",
    "in=a:i32:5x7:integers;b:i32:5x7:integers",
    "in=a:i32:2x1x3:integers;b:i32:1x4x3:integers",
    "in=a:i32:1000:range:-16777216:16777216;b:i32:1000:index:34",
    "in=a:i32:1000:range:-16777216:16777216;b:i32:1000:range:-16777216:16777216",
    "in=a:i64:1000:range:-5e9:5e9;b:i32:1000:range:-2147483648:2147483648",
    "in=a:bool:33:bool;b:bool:33:bool",
    "expect=E_DTYPE in=a:f32:3;b:i32:3",
    "expect=E_DTYPE in=a:i32:3;b:f32:3",
    "expect=E_SHAPE in=a:i32:3;b:i32:4",
};

/* The bounds of composites are relative to the largest element. Exponentials lose more. */
static void generate_reductions(case_list *list)
{
    for (size_t i = 0; i < COUNT(reduce_builders); i++) {
        char head[64];
        snprintf(head, sizeof head, "%s within=%s", rows[i], i == 0 ? "3e-6" : "2e-6");
        case_add_all(list, head, reduce_cases, COUNT(reduce_cases));
        case_add_all(list, rows[i], reduce_errors, COUNT(reduce_errors));
    }
}

static void generate(case_list *list)
{
    case_add_all(list, "log_softmax", axis_cases, COUNT(axis_cases));
    case_add_all(list, "log_softmax", log_softmax_cases, COUNT(log_softmax_cases));
    case_add_all(list, "cumprod", cumprod_cases, COUNT(cumprod_cases));
    generate_reductions(list);
    case_add_all(list, "triu", triangle_cases, COUNT(triangle_cases));
    case_add_all(list, "tril", triangle_cases, COUNT(triangle_cases));
    for (size_t i = 0; i < COUNT(integrals); i++)
        case_add_all(list, integrals[i].row, i < 2 ? remainder_cases : bit_cases,
                     i < 2 ? COUNT(remainder_cases) : COUNT(bit_cases));
    case_add(list, "bitwise_not in=x:i32:5x7:integers");
    case_add(list, "bitwise_not in=x:i32:1000:range:-16777216:16777215");
    case_add(list, "bitwise_not expect=E_DTYPE in=x:f32:5");
    case_add(list, "bitwise_not expect=E_DTYPE in=x:u32:5");
    for (size_t i = 0; i < COUNT(others); i++)
        case_add(list, "%s", others[i]);
}

const case_family math_cases = {rows, build, generate};
