/*
 * Cases of matmul and fused_matmul_bias_act. Keys:
 *   transpose_a=1, transpose_b=1   of matmul
 *   transpose_w=1, activation=NAME of fused_matmul_bias_act
 *   narrow_a=S, narrow_b=S         drop the first S of the operand's first axis, which leaves a
 *                                  view at that offset
 */
#include "conform/cases/cases.h"

#include <string.h>

static const char *const activations[] = {
    "none",
#define ACTIVATION(code, NAME, row, ...) #row,
#include "args/activation.def"
};
#define ACTIVATION_COUNT (sizeof activations / sizeof activations[0])

/* ---- building ---- */

static rlxvk_tensor operand(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs,
                            const char *name, const char *narrow_key)
{
    int64_t start = case_integer(s, narrow_key, 0);
    rlxvk_tensor x = case_tensor(s, inputs, name);
    for (size_t i = 0; start && i < s->input_count; i++)
        if (strcmp(s->inputs[i].name, name) == 0)
            return rlxvk_narrow(g, x, 0, start, s->inputs[i].shape.dims[0] - start);
    return x;
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    if (strcmp(s->row, "fused_matmul_bias_act") == 0)
        return rlxvk_fused_matmul_bias_act(g, operand(g, s, inputs, "x", "narrow_a"),
                                           operand(g, s, inputs, "w", "narrow_b"),
                                           case_tensor(s, inputs, "bias"),
                                           case_activation(s, "activation"),
                                           case_integer(s, "transpose_w", 0) != 0);
    rlxvk_matmul_options options = {.transpose_a = case_integer(s, "transpose_a", 0) != 0,
                                    .transpose_b = case_integer(s, "transpose_b", 0) != 0};
    return rlxvk_matmul_with(g, operand(g, s, inputs, "a", "narrow_a"),
                             operand(g, s, inputs, "b", "narrow_b"), &options);
}

/* ---- plain products ---- */

typedef struct size {
    int m, n, k;
} size;

/* Adds one matrix product of these sizes. The two low bits of `flags` say which operands are
 * transposed. */
static void add_plain(case_list *list, size z, int flags, const char *a_fill, const char *b_fill)
{
    bool ta = flags & 1, tb = flags & 2;
    case_add(list, "matmul transpose_a=%d transpose_b=%d in=a:f32:%dx%d:%s;b:f32:%dx%d:%s", ta,
             tb != 0, ta ? z.k : z.m, ta ? z.m : z.k, a_fill, tb ? z.n : z.k, tb ? z.k : z.n,
             b_fill);
}

static void generate_sizes(case_list *list)
{
    static const size every_way[] = {{1, 1, 1},    {2, 3, 4},     {17, 19, 23}, {64, 64, 64},
                                     {65, 63, 67}, {1, 130, 300}, {5, 36, 516}, {300, 3, 130}};
    static const size once[] = {{1, 1, 4099}, {128, 128, 32},  {129, 260, 40}, {7, 513, 5},
                                {513, 7, 5},  {9, 20, 1100},   {8, 128, 16},   {2, 2, 3000},
                                {1, 8, 64},   {4, 4, 2},       {200, 1, 1},    {1, 200, 1},
                                {3, 1, 777},  {12, 16, 10000}, {256, 192, 96}};
    for (size_t i = 0; i < sizeof every_way / sizeof every_way[0]; i++)
        for (int flags = 0; flags < 4; flags++)
            add_plain(list, every_way[i], flags, "unit", "unit");
    for (size_t i = 0; i < sizeof once / sizeof once[0]; i++)
        add_plain(list, once[i], (int)i & 3, "unit", "uniform");
    for (int flags = 0; flags < 4;
         flags++) /* more rounds than loops of a software driver may have */
        add_plain(list, (size){3, 5, 70001}, flags, "unit", "unit");
}

/* If rows are few, they are shared out in other ways: whole and partial quads and steps, one tile
 * and two. */
static void generate_few_rows(case_list *list)
{
    static const size sizes[] = {{9, 132, 96},   {17, 128, 64},  {33, 130, 101},
                                 {40, 96, 2100}, {100, 260, 64}, {129, 36, 70}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int flags = 0; flags < 4; flags += i % 2 ? 1 : 2)
            add_plain(list, sizes[i], flags, "unit", "unit");
    add_plain(list, (size){17, 36, 68}, 0, "special", "unit");
    add_plain(list, (size){17, 36, 68}, 2, "unit", "special");
}

static void generate_batches(case_list *list)
{
    static const char *const lines[] = {
        "matmul in=a:f32:3x5x7;b:f32:7x9",
        "matmul in=a:f32:5x7;b:f32:3x7x9",
        "matmul in=a:f32:2x1x5x7;b:f32:1x3x7x9",
        "matmul in=a:f32:2x1x33x20;b:f32:4x20x40",
        "matmul in=a:f32:2x3x5x7;b:f32:2x3x7x9",
        "matmul in=a:f32:2x3x5x7;b:f32:3x7x9",
        "matmul in=a:f32:2x3x5x7;b:f32:2x1x7x9",
        "matmul in=a:f32:3x5x7;b:f32:2x3x7x9",
        "matmul transpose_a=1 in=a:f32:3x7x5;b:f32:7x9",
        "matmul transpose_b=1 in=a:f32:4x3x1x64;b:f32:3x40x64",
        "matmul transpose_a=1 transpose_b=1 in=a:f32:2x1x7x5;b:f32:1x3x9x7",
        "matmul in=a:f32:2x1x3x1x2x1x5x6;b:f32:1x2x1x3x1x2x6x7",
        "matmul transpose_a=1 transpose_b=1 in=a:f32:2x1x2x1x2x1x8x40;b:f32:2x2x1x1x2x3x36x8",
        "matmul in=a:f32:1x1x1x1x1x1x5x6;b:f32:6x7",
        "matmul in=a:f32:6x1x40;b:f32:6x40x70",
        "matmul in=a:f32:6x70x40;b:f32:6x40x1",
        "matmul transpose_b=1 in=a:f32:2x2x300x20;b:f32:2x1x3x20",
        "matmul in=a:f32:0x5x7;b:f32:7x9",
        "matmul in=a:f32:3x0x7;b:f32:3x7x9",
        "matmul in=a:f32:5x7;b:f32:7x0",
        "matmul in=a:f32:5x0;b:f32:0x9",
        "matmul in=a:f32:2x3x5x0;b:f32:3x0x2",
        "matmul transpose_a=1 in=a:f32:0x70;b:f32:0x65",
        "matmul in=a:f32:3000x2x3;b:f32:3000x3x2",
    };
    case_add_all(list, "", lines, COUNT(lines));
}

static void generate_values(case_list *list)
{
    static const size sizes[] = {{33, 37, 45}, {3, 68, 90}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int flags = 0; flags < 4; flags += 3) {
            add_plain(list, sizes[i], flags, "integers", "integers");
            add_plain(list, sizes[i], flags, "special", "unit");
            add_plain(list, sizes[i], flags, "unit", "special");
            add_plain(list, sizes[i], flags, "large", "unit");
            add_plain(list, sizes[i], flags, "offset", "offset");
        }
    add_plain(list, (size){20, 20, 20}, 0, "special", "zero");
}

/* Packed halves in either operand or both, with odd sizes and odd offsets. */
static void generate_halves(case_list *list)
{
    static const char *const types[][2] = {
        {"f16", "f32"}, {"f32", "f16"}, {"bf16", "f32"}, {"f32", "bf16"}, {"f16", "bf16"}};
    static const char *const shapes[][3] = {
        {"", "33x36", "36x40"},
        {"transpose_b=1", "1x258", "65x258"},
        {"transpose_b=1", "3x256", "64x256"},
        {"transpose_a=1", "35x67", "35x33"},
        {"narrow_b=1 transpose_b=1", "2x5x7", "3x9x7"},
        {"narrow_a=1", "4x5x7", "7x9"},
    };
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            case_add(list, "matmul %s in=a:%s:%s;b:%s:%s", shapes[s][0], types[t][0], shapes[s][1],
                     types[t][1], shapes[s][2]);
    case_add(list, "matmul in=a:f16:1x1:special;b:f32:1x64:special");
    case_add(list, "matmul in=a:f32:1x1:one;b:bf16:1x301:special");
    /* Denormal halves, scaled up so that the tolerance does not hide them. */
    case_add(list, "matmul in=a:f32:1x1:constant:1048576;b:f16:1x301:range:-7e-5:7e-5");
    case_add(list, "matmul in=a:f16:67x1:range:-7e-5:7e-5;b:f32:1x36:constant:1048576");
}

/* Batches in both operands for matrix units: broadcast, transposed, with partial tiles. */
static void generate_batches_for_units(case_list *list)
{
    static const char *const ways[] = {"", "variant=matrix=small ", "variant=matrix=medium ",
                                       "variant=matmul=scalar_single "};
    static const char *const operands[] = {
        "in=a:f32:3x40x24;b:f32:3x24x50",
        "transpose_a=1 in=a:f32:2x3x24x17:unit;b:f32:2x3x24x16:unit",
        "transpose_b=1 in=a:f32:2x1x33x20:unit;b:f32:3x40x20:unit",
        "transpose_a=1 transpose_b=1 in=a:f32:2x70x65:integers;b:f32:2x66x70:integers",
        "in=a:f32:5x16x8;b:f32:1x8x16"};
    for (size_t w = 0; w < COUNT(ways); w++)
        for (size_t i = 0; i < COUNT(operands); i++)
            case_add(list, "matmul %s%s", ways[w], operands[i]);
}

/* Products of blocks on matrix units: rows of even and odd lengths in each operand and the result,
 * as they lie and transposed. */
static void generate_direct(case_list *list)
{
    static const char *const rows[] = {"direct_small", "direct_deep", "direct_low", "direct"};
    static const char *const operands[] = {
        "in=a:f32:130x70;b:f32:70x131", "transpose_b=1 in=a:f32:67x71;b:f32:257x71",
        "transpose_a=1 in=a:f32:129x35;b:f32:129x66", "in=a:f16:3x40x33;b:f16:33x45",
        "transpose_a=1 transpose_b=1 in=a:f32:64x133;b:f16:65x64"};
    for (size_t i = 0; i < COUNT(operands); i++)
        for (size_t r = 0; r < COUNT(rows); r++)
            case_add(list, "matmul precision=%s variant=matrix=%s %s", r == 1 ? "bf16" : "f16",
                     rows[r], operands[i]);
}

/* Blocks in registers, even if the device would choose another kernel: edges on each side of a
 * block. */
static void generate_scalar(case_list *list)
{
    static const char *const variants[] = {"scalar_block", "scalar_row", "scalar_column",
                                           "scalar_single", "scalar_element"};
    for (size_t v = 0; v < COUNT(variants); v++) {
        case_add(list, "matmul variant=matmul=%s in=a:f32:2x33x37;b:f32:37x45", variants[v]);
        case_add(list,
                 "matmul variant=matmul=%s transpose_a=1 transpose_b=1 "
                 "in=a:f32:20x39;b:f32:18x20",
                 variants[v]);
        case_add(list, "matmul variant=matmul=%s transpose_b=1 in=a:f32:17x40;b:f32:31x40",
                 variants[v]);
    }
}

/* The opt-in precisions: every padding, batches, halves, rows of very different sizes, sums of one
 * sign. Devices without matrix units run them on the f32 kernels. */
static void generate_precisions(case_list *list)
{
    static const char *const lines[] = {
        "in=a:f32:16x16;b:f32:16x16",
        "in=a:f32:33x45;b:f32:45x37:uniform",
        "transpose_a=1 transpose_b=1 in=a:f32:70x129;b:f32:130x70",
        "transpose_b=1 in=a:f32:300x1000;b:f32:260x1000",
        "transpose_a=1 in=a:f32:96x256;b:f32:96x192",
        "in=a:f32:40x4100:positive;b:f32:4100x24:positive",
        "in=a:f32:64x7:range:-1e-6:1e-6;b:f32:7x65:range:-1e-7:1e-7",
        "in=a:f32:20x64:integers;b:f32:64x20:integers",
        "in=a:f32:2x1x33x20;b:f32:1x3x20x40",
        "transpose_b=1 in=a:f32:6x17x24;b:f32:6x18x24",
        "in=a:f32:2x3x25x17;b:f32:17x19",
        "transpose_b=1 in=a:f32:48x64;b:f16:65x64",
        "transpose_b=1 in=a:f32:48x64;b:bf16:65x64",
        "transpose_b=1 in=a:f32:2x48x128;b:f16:2x131x128",
        "in=a:bf16:33x36;b:f16:36x40",
        "narrow_b=1 in=a:f32:20x30;b:f32:31x21",
        "in=a:f32:128x128;b:f32:128x128",
        "in=a:f32:513x72;b:f32:72x257",
    };
    for (rlxvk_precision p = RLXVK_PRECISION_F16; p <= RLXVK_PRECISION_SPLIT; p++) {
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
            case_add(list, "matmul precision=%s %s", rlxvk_precision_name(p), lines[i]);
        case_add(list,
                 "fused_matmul_bias_act precision=%s activation=gelu "
                 "in=x:f32:2x20x30;w:f32:30x35;bias:f32:35",
                 rlxvk_precision_name(p));
    }
}

/* ---- fused ---- */

static void generate_activations(case_list *list)
{
    for (size_t i = 0; i < ACTIVATION_COUNT; i++) {
        const char *name = activations[i];
        bool roots = strcmp(name, "log") == 0 || strstr(name, "sqrt") != NULL;
        const char *fill = roots ? "positive" : "unit";
        case_add(
            list,
            "fused_matmul_bias_act activation=%s in=x:f32:21x30:%s;w:f32:30x19:%s;bias:f32:19:%s",
            name, fill, fill, fill);
        case_add(list,
                 "fused_matmul_bias_act activation=%s transpose_w=1 "
                 "in=x:f32:2x1x40:%s;w:f32:36x40:%s;bias:f32:36:%s",
                 name, fill, fill, fill);
    }
}

static void generate_fused(case_list *list)
{
    static const char *const lines[] = {
        "in=x:f32:1x1;w:f32:1x1;bias:f32:1",
        "in=x:f32:7;w:f32:7x5;bias:f32:5",
        "transpose_w=1 activation=relu in=x:f32:70;w:f32:130x70;bias:f32:130",
        "activation=silu in=x:f32:2x3x4x10;w:f32:10x66;bias:f32:66",
        "activation=gelu in=x:f32:1x2x1x2x1x2x3x9;w:f32:9x5;bias:f32:5",
        "activation=relu in=x:f32:130x64;w:f32:64x100;bias:f32:100",
        "activation=relu in=x:f32:3x1200;w:f32:1200x9;bias:f32:9",
        "activation=gelu in=x:f32:300x40;w:f32:40x3;bias:f32:3",
        "activation=tanh transpose_w=1 in=x:f32:300x40;w:f32:3x40;bias:f32:3",
        "in=x:f32:12x10000:unit;w:f32:10000x10:unit;bias:f32:10",
        "activation=sigmoid in=x:f32:5x0;w:f32:0x9;bias:f32:9",
        "in=x:f32:0x4;w:f32:4x9;bias:f32:9",
        "in=x:f32:3x4;w:f32:4x0;bias:f32:0",
        "activation=relu in=x:f32:9x20:special;w:f32:20x33;bias:f32:33:special",
        "activation=neg in=x:f32:9x20:integers;w:f32:20x33:integers;bias:f32:33:integers",
        "activation=abs in=x:f32:9x20:large;w:f32:20x33:unit;bias:f32:33",
        "activation=silu transpose_w=1 in=x:f32:1x64;w:f16:33x64;bias:f32:33",
        "transpose_w=1 in=x:f32:1x2048;w:f16:99x2048;bias:f32:99",
        "transpose_w=1 in=x:f32:1x264;w:bf16:1000x264;bias:f32:1000",
        "activation=silu in=x:f32:40x33;w:bf16:33x65;bias:f32:65",
        "activation=gelu in=x:f32:35x1300;w:f16:1300x132;bias:f32:132",
        "activation=tanh transpose_w=1 in=x:f32:70x36;w:bf16:133x36;bias:f32:133",
        "activation=relu in=x:f16:40x33;w:f16:33x65;bias:f16:65",
        "narrow_a=1 activation=relu in=x:f32:4x5x7;w:f32:7x9;bias:f32:9",
    };
    case_add_all(list, "fused_matmul_bias_act", lines, COUNT(lines));
}

static void generate(case_list *list)
{
    generate_sizes(list);
    generate_few_rows(list);
    generate_batches(list);
    generate_values(list);
    generate_halves(list);
    generate_batches_for_units(list);
    generate_direct(list);
    generate_scalar(list);
    generate_activations(list);
    generate_fused(list);
    generate_precisions(list);
}

static const char *const rows[] = {"matmul", "fused_matmul_bias_act", NULL};

const case_family matmul_cases = {.rows = rows, .build = build, .generate = generate};
