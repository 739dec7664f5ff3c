/*
 * Cases of the elementwise ops. Operands are taken in order, whatever their names.
 *   shift=n     drops the first n rows of every operand by a view, so that they begin inside their
 *               slot
 *   scratch=m   computes the operands of bit mask m (by copy); they are then not leaves, so the
 *               result may take their memory
 */
#include "conform/cases/cases.h"

#include <string.h>

typedef rlxvk_tensor unary_builder(rlxvk_graph *, rlxvk_tensor);
typedef rlxvk_tensor binary_builder(rlxvk_graph *, rlxvk_tensor, rlxvk_tensor);
typedef rlxvk_tensor ternary_builder(rlxvk_graph *, rlxvk_tensor, rlxvk_tensor, rlxvk_tensor);

static const struct {
    const char *row;
    unary_builder *unary;
    binary_builder *binary;
    ternary_builder *ternary;
} builders[] = {
#define UNARY(name)                                                                                \
    {                                                                                              \
        .row = #name, .unary = rlxvk_##name                                                        \
    }
#define BINARY(name)                                                                               \
    {                                                                                              \
        .row = #name, .binary = rlxvk_##name                                                       \
    }
#define TERNARY(name)                                                                              \
    {                                                                                              \
        .row = #name, .ternary = rlxvk_##name                                                      \
    }
#define ACTIVATION(code, NAME, row, ...) UNARY(row),
#include "args/activation.def"
    BINARY(add),
    BINARY(sub),
    BINARY(mul),
    BINARY(div),
    BINARY(max),
    BINARY(gradient_product),
    BINARY(gradient_quotient),
    BINARY(min),
    BINARY(pow),
    BINARY(eq),
    BINARY(ne),
    BINARY(lt),
    BINARY(le),
    BINARY(gt),
    BINARY(ge),
    TERNARY(fma),
    TERNARY(where),
};

static rlxvk_tensor operand(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x, size_t index)
{
    x = case_shifted(g, s, "shift", x);
    return case_integer(s, "scratch", 0) >> index & 1 ? rlxvk_copy(g, x) : x;
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x[3] = {RLXVK_NONE, RLXVK_NONE, RLXVK_NONE};
    for (size_t i = 0; i < s->input_count && i < COUNT(x); i++)
        x[i] = operand(g, s, inputs[i], i);
    if (strcmp(s->row, "activation_backward") == 0)
        return rlxvk_activation_backward(g, x[0], x[1], case_activation(s, "kind"));
    for (size_t i = 0; i < COUNT(builders); i++) {
        if (strcmp(s->row, builders[i].row) != 0)
            continue;
        if (builders[i].unary)
            return builders[i].unary(g, x[0]);
        if (builders[i].binary)
            return builders[i].binary(g, x[0], x[1]);
        return builders[i].ternary(g, x[0], x[1], x[2]);
    }
    return RLXVK_NONE;
}

/* ---- Lines ---- */

static void generate_unary(case_list *list, const char *row)
{
    static const char *const inputs[] = {
        "f32:scalar",
        "f32:1",
        "f32:0",
        "f32:3x0x2",
        "f32:7",
        "f32:2x3x5",
        "f32:1x2x1x2x1x2x1x2",
        "f32:2x2x2x2x2x2x2x2",
        "f32:127",
        "f32:513",
        "f32:97x101",
        "f32:4099:special",
        "f32:2000:unit",
        "f32:2000:positive",
        "f32:512:large",
        "f32:500:integers",
        "f32:500:offset",
        "f32:64:zero",
        "f32:64:neginf",
        "f32:3000:range:-20:20",
        "f32:3000:range:-110:110",
        "f32:3000:range:-0.001:0.001",
        "f32:1000:range:-1e-30:1e-30",
        "f32:3000:range:-10000:10000",
        "f32:3000:range:-1000000:1000000",
        "f32:3000:range:-1e30:1e30",
        "f32:3000:range:0.9:1.1",
        "f32:3000:range:-0.6:0.6",
        "f32:3000:range:0:0.01",
        "f32:9:iota",
        "f32:301:constant:-0.0",
        "f16:65",
        "bf16:3x7",
        "i32:40:integers",
        "bool:33:bool",
    };
    for (size_t i = 0; i < COUNT(inputs); i++)
        case_add(list, "%s in=x:%s", row, inputs[i]);
    case_add(list, "%s shift=3 in=x:f32:10x33", row);
    case_add(list, "%s scratch=1 in=x:f32:3x411", row);
    case_add(list, "%s shift=1 scratch=1 in=x:f32:5x7:special", row);
}

/* Pairs of shapes: dense, single elements, suffixes, rows, columns, loops over axes, and more axes
 * than the arguments hold. */
static const char *const pairs[][2] = {
    {"scalar", "scalar"},
    {"1", "1"},
    {"5", "5"},
    {"scalar", "2x3"},
    {"2x3", "scalar"},
    {"7", "1"},
    {"1x1x1", "4x5"},
    {"2x3", "3"},
    {"3", "2x3"},
    {"4x1", "4x4"},
    {"4x4", "4x1"},
    {"2x1", "1x3"},
    {"2x1", "3"},
    {"2x3x5", "3x5"},
    {"2x3x5", "1x3x1"},
    {"2x3x5", "2x1x5"},
    {"2x1x5", "1x3x1"},
    {"2x1x1", "5x7"},
    {"1x5x1x7", "3x1x2x1"},
    {"0", "1"},
    {"0", "0"},
    {"2x0x3", "3"},
    {"1x0", "4x1"},
    {"1x2x1x3x1x2x1x2", "3x1x2x1x2x1x2x1"},
    {"2x2x2x2x2x2x2x2", "1x2x1x2x1x2x1x2"},
    {"2x2x2x2x2x2x2x2", "2x2x2x2x2x2x2x2"},
    {"2x3x1x2x1x3x2x2", "2x1x2x2x3x1x2x1"},
    {"1x1x1x1x1x1x1x1", "1"},
    {"33x129", "129"},
    {"33x129", "33x1"},
    {"33x1", "1x129"},
    {"1000", "1000"},
    {"13x11x7", "13x11x7"},
    {"1x2048", "3x2048"},
};

static void generate_binary(case_list *list, const char *row, const char *const *fills,
                            size_t count)
{
    for (size_t i = 0; i < COUNT(pairs); i++)
        case_add(list, "%s in=a:f32:%s;b:f32:%s", row, pairs[i][0], pairs[i][1]);
    for (size_t i = 0; i < count; i += 2) {
        case_add(list, "%s in=a:f32:1500:%s;b:f32:1500:%s", row, fills[i], fills[i + 1]);
        case_add(list, "%s in=a:f32:41x1:%s;b:f32:37:%s", row, fills[i], fills[i + 1]);
    }
    case_add(list, "%s shift=2 in=a:f32:5x9;b:f32:5x9", row);
    case_add(list, "%s shift=1 in=a:f32:4x9;b:f32:2x9", row);
    case_add(list, "%s scratch=1 in=a:f32:6x43;b:f32:43", row);
    case_add(list, "%s scratch=2 in=a:f32:6x1;b:f32:6x43", row);
    case_add(list, "%s scratch=3 in=a:f32:5x3;b:f32:5x3", row);
    case_add(list, "%s scratch=3 in=a:f32:1x2x1x2x1x2x1x2;b:f32:2x2x2x2x2x2x2x2", row);
    case_add(list, "%s in=a:i32:40:integers;b:f32:40:integers", row);
    case_add(list, "%s in=a:f16:4x9;b:bf16:9", row);
    case_add(list, "%s in=a:bool:3x5:bool;b:bool:3x5:bool", row);
}

static void generate_arithmetic(case_list *list)
{
    static const char *const sums[] = {
        "special", "special",  "special", "uniform", "large", "large",
        "offset",  "integers", "zero",    "zero",    "large", "unit",
    };
    static const char *const products[] = {
        "special", "uniform", "uniform",  "special",  "large",  "large",
        "large",   "unit",    "integers", "integers", "offset", "positive",
    };
    static const char *const quotients[] = {
        "special",  "special",  "special", "uniform", "large", "large",    "unit", "large",
        "integers", "integers", "zero",    "special", "large", "positive", "one",  "integers",
    };
    static const char *const powers[] = {
        "special",      "special",     "special",        "integers",        "uniform",
        "integers",     "uniform",     "constant:2",     "uniform",         "constant:3",
        "uniform",      "constant:-1", "uniform",        "constant:1",      "positive",
        "range:-60:60", "range:0.5:2", "range:-100:100", "range:0.99:1.01", "range:-5000:5000",
        "large",        "unit",        "integers",       "special",         "positive",
        "constant:0.5", "zero",        "integers",       "range:-9:9",      "constant:-7",
    };
    static const char *const zeros[] = {
        "zero",   "special", "zero",  "zero",          "zero",
        "neginf", "zero",    "large", "constant:-0.0", "special",
    };
    static const char *const sum_rows[] = {"add", "sub", "max", "min"};
    for (size_t i = 0; i < COUNT(sum_rows); i++)
        generate_binary(list, sum_rows[i], sums, COUNT(sums));
    generate_binary(list, "mul", products, COUNT(products));
    generate_binary(list, "div", quotients, COUNT(quotients));
    generate_binary(list, "pow", powers, COUNT(powers));
    generate_binary(list, "gradient_product", products, COUNT(products));
    generate_binary(list, "gradient_product", zeros, COUNT(zeros));
    generate_binary(list, "gradient_quotient", quotients, COUNT(quotients));
    generate_binary(list, "gradient_quotient", zeros, COUNT(zeros));
}

static void generate_compares(case_list *list)
{
    static const char *const rows[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    static const char *const fills[] = {
        "special", "special", "special",    "zero", "integers", "integers",
        "large",   "large",   "constant:1", "one",  "zero",     "constant:-0.0",
    };
    for (size_t i = 0; i < COUNT(rows); i++)
        generate_binary(list, rows[i], fills, COUNT(fills));
}

static void generate_complex(case_list *list)
{
    static const char *const rows[] = {"add", "sub", "mul", "div", "eq", "ne"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        case_add(list, "%s in=a:c64:scalar;b:c64:scalar", rows[i]);
        case_add(list, "%s in=a:c64:7x5;b:c64:7x5", rows[i]);
        case_add(list, "%s in=a:c64:0;b:c64:1", rows[i]);
        case_add(list, "%s in=a:c64:3x1x5;b:c64:4x1", rows[i]);
        case_add(list, "%s in=a:c64:129;b:f32:129", rows[i]);
        case_add(list, "%s in=a:f32:6x1;b:c64:6x9", rows[i]);
        case_add(list, "%s in=a:c64:200:integers;b:c64:200:integers", rows[i]);
        case_add(list, "%s scratch=3 in=a:c64:4x9;b:c64:4x9", rows[i]);
        case_add(list, "%s shift=1 in=a:c64:4x9;b:c64:4x9", rows[i]);
        case_add(list, "%s in=a:c64:1x2x1x2x1x2x1x2;b:c64:2x1x2x1x2x1x2x1", rows[i]);
    }
    case_add(list, "where in=c:bool:5x1:bool;x:c64:5x6;y:c64:6");
    case_add(list, "where in=c:bool:30:bool;x:c64:30;y:f32:30");
    case_add(list, "where in=c:f32:4x5:special;x:f32:5;y:c64:4x1");
    case_add(list, "where scratch=6 in=c:bool:1x600:bool;x:c64:2x600;y:c64:1");
    /* Ordinary quotients whose intermediate values overflow or underflow. */
    case_add(list, "div in=a:c64:67:range:-3e38:3e38;b:c64:67:range:1:3");
    case_add(list, "div in=a:c64:67:range:-3e38:3e38;b:c64:67:range:-3e38:3e38");
    case_add(list, "div in=a:c64:67:range:1e-36:2e-36;b:c64:67:range:-2e-36:-1e-36");
    case_add(list, "div in=a:c64:67:large;b:c64:67:range:1e-6:1e-5");
    case_add(list, "div in=a:c64:67:range:1e25:2e25;b:c64:67:range:1e30:2e30");
    case_add(list, "mul in=a:c64:67:range:1e19:1.8e19;b:c64:67:range:1:1.8e19");
    case_add(list, "div in=a:c64:200:special;b:c64:200:range:1:3");
    case_add(list, "mul in=a:c64:200:special;b:c64:200:range:1:3");
    /* Complex numbers with imaginary part 0 equal real numbers. */
    case_add(list, "eq in=a:c64:130:bool;b:f32:130:bool");
    case_add(list, "ne in=a:f32:13x1:bool;b:c64:13x9:bool");
    case_add(list, "div in=a:c64:30:zero;b:c64:30:range:-1e-44:1e-44");
}

/* Shapes of three operands. */
static const char *const triples[][3] = {
    {"scalar", "scalar", "scalar"},
    {"1", "1", "1"},
    {"5", "5", "5"},
    {"0", "1", "scalar"},
    {"2x0", "0", "1"},
    {"2x3", "3", "scalar"},
    {"scalar", "2x3", "3"},
    {"2x1", "1x3", "2x3"},
    {"4x1", "4x4", "4"},
    {"2x1x1", "3x1", "5"},
    {"2x3x5", "1x3x1", "2x1x5"},
    {"1x5x1x7", "3x1x2x1", "3x5x2x7"},
    {"3x5x2x7", "1x5x1x7", "7"},
    {"1x2x1x2x1x2x1x2", "2x1x2x1x2x1x2x1", "2x2x2x2x2x2x2x2"},
    {"1x2x1x2x1x2x1x2", "2x1x2x1x2x1x2x1", "1x1x2x2x1x1x2x2"},
    {"2x2x1x1x2x2x1x1", "2x1x2x1x2x1x2x1", "1x1x1x1x2x2x2x2"},
    {"3x1x2x1x3x1x2x1", "1", "1x2x1x3x1x2x1x3"},
    {"2x2x2x2x2x2x2x2", "2x2x2x2x2x2x2x2", "2x2x2x2x2x2x2x2"},
    {"33x1", "129", "33x129"},
    {"33x129", "33x1", "1x129"},
    {"1000", "1000", "1000"},
    {"3x2048", "2048", "3x1"},
};

static void generate_ternary(case_list *list, const char *row, const char *first,
                             const char *const *fills, size_t count)
{
    for (size_t i = 0; i < COUNT(triples); i++)
        case_add(list, "%s in=a:f32:%s:%s;b:f32:%s;c:f32:%s", row, triples[i][0], first,
                 triples[i][1], triples[i][2]);
    for (size_t i = 0; i < count; i += 3) {
        case_add(list, "%s in=a:f32:1500:%s;b:f32:1500:%s;c:f32:1500:%s", row, fills[i],
                 fills[i + 1], fills[i + 2]);
        case_add(list, "%s in=a:f32:11x1x1:%s;b:f32:11x1:%s;c:f32:11:%s", row, fills[i],
                 fills[i + 1], fills[i + 2]);
    }
    for (int mask = 1; mask < 8; mask++)
        case_add(list, "%s scratch=%d in=a:f32:5x7:%s;b:f32:5x7;c:f32:5x7", row, mask, first);
    case_add(list, "%s scratch=2 in=a:f32:6x1:%s;b:f32:6x43;c:f32:43", row, first);
    case_add(list, "%s shift=1 in=a:f32:4x9:%s;b:f32:2x9;c:f32:4x9", row, first);
    case_add(list, "%s in=a:i32:40:integers;b:f32:40:integers;c:i32:1:integers", row);
}

static void generate_backward(case_list *list)
{
    static const char *const names[] = {
#define ACTIVATION(code, NAME, row, ...) #row,
#include "args/activation.def"
    };
    static const char *const inputs[] = {
        "in=x:f32:scalar;dy:f32:scalar",
        "in=x:f32:3x0x2;dy:f32:3x0x2",
        "in=x:f32:2x3x5;dy:f32:2x3x5",
        "shift=1 in=x:f32:31x13;dy:f32:31x13",
        "scratch=1 in=x:f32:1023;dy:f32:1023",
        "scratch=2 in=x:f32:1024:range:-16:16;dy:f32:1024",
        "scratch=3 in=x:f32:517:range:-100:100;dy:f32:517:large",
        "in=x:f32:4099:special;dy:f32:4099",
        "in=x:f32:1000:range:-1e-30:1e-30;dy:f32:1000:unit",
        "in=x:f32:64:zero;dy:f32:64",
    };
    for (size_t i = 0; i < COUNT(names); i++)
        for (size_t k = 0; k < COUNT(inputs); k++)
            case_add(list, "activation_backward kind=%s %s", names[i], inputs[k]);
    case_add(list, "activation_backward kind=gelu in=x:f32:1003x67x61;dy:f32:1003x67x61");
    case_add(list, "activation_backward in=x:f32:3;dy:f32:3");
    case_add(list, "activation_backward expect=E_SHAPE kind=relu in=x:f32:3;dy:f32:4");
    case_add(list, "activation_backward expect=E_ATTR kind=other in=x:f32:3;dy:f32:3");
}

static void generate(case_list *list)
{
    static const char *const selections[] = {
        "bool",   "special", "special", "special", "special", "uniform", "integers", "large",
        "offset", "zero",    "special", "uniform", "neginf",  "unit",    "special",
    };
    static const char *const products[] = {
        "uniform", "uniform", "special", "integers", "integers", "integers",
        "large",   "unit",    "large",   "offset",   "positive", "offset",
        "large",   "large",   "uniform", "special",  "uniform",  "uniform",
    };
    for (size_t i = 0; i < COUNT(builders); i++)
        if (builders[i].unary)
            generate_unary(list, builders[i].row);
    generate_arithmetic(list);
    generate_compares(list);
    generate_ternary(list, "where", "bool", selections, COUNT(selections));
    generate_ternary(list, "fma", "uniform", products, COUNT(products));
    generate_complex(list);
    generate_backward(list);
}

static const char *const rows[] = {
#define ACTIVATION(code, NAME, row, ...) #row,
#include "args/activation.def"
    "add",
    "sub",
    "mul",
    "div",
    "max",
    "min",
    "pow",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "fma",
    "where",
    "activation_backward",
    "gradient_product",
    "gradient_quotient",
    NULL,
};

const case_family elementwise_cases = {rows, build, generate};
