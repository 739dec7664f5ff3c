/* Cases of the norms: row lengths around the limits of every kernel, every axis, and every set of
 * optional operands. */
#include "conform/cases/cases.h"

#include <stdio.h>
#include <string.h>

static const char *const rows[] = {"layer_norm", "rms_norm", "fused_residual_ln",
                                   "fused_residual_rms_norm", NULL};

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x = case_tensor(s, inputs, "x"), residual = case_tensor(s, inputs, "residual");
    rlxvk_tensor bias = case_tensor(s, inputs, "bias"), gamma = case_tensor(s, inputs, "gamma");
    rlxvk_tensor beta = case_tensor(s, inputs, "beta");
    int32_t axis = (int32_t)case_integer(s, "axis", -1);
    float eps = (float)case_real(s, "eps", 1e-5);
    if (case_integer(s, "same", 0))
        residual = x;
    if (strcmp(s->row, "layer_norm") == 0)
        return rlxvk_layer_norm(g, x, gamma, beta, axis, eps);
    if (strcmp(s->row, "rms_norm") == 0)
        return rlxvk_rms_norm(g, x, gamma, beta, axis, eps);
    if (strcmp(s->row, "fused_residual_ln") == 0)
        return rlxvk_fused_residual_ln(g, x, residual, bias, gamma, beta, eps);
    return rlxvk_fused_residual_rms_norm(g, x, residual, bias, gamma, beta, eps);
}

static const int lengths[] = {1, 2, 31, 64, 257, 768, 1024, 4096, 8193};
static const int row_counts[] = {1, 3, 65};
static const char *const fills[] = {"unit", "uniform", "offset"};

/* Writes ";bias:..;gamma:..;beta:.." for the bits of `present` (1 bias, 2 gamma, 4 beta). */
static const char *vectors(unsigned present, int n, char *out, size_t size)
{
    static const char *const names[] = {"bias", "gamma", "beta"};
    size_t at = 0;
    out[0] = 0;
    for (unsigned i = 0; i < COUNT(names); i++)
        if (present >> i & 1)
            at += (size_t)snprintf(out + at, size - at, ";%s:f32:%d", names[i], n);
    return out;
}

static void generate_lengths(case_list *list, const char *row, bool fused)
{
    char text[96];
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t j = 0; j < COUNT(row_counts); j++) {
            int n = lengths[i], count = n > 1024 ? (row_counts[j] + 1) / 2 : row_counts[j];
            unsigned present = (unsigned)(i + 3 * j) % (fused ? 8 : 4) * (fused ? 1 : 2);
            const char *fill = fills[(i + j) % COUNT(fills)];
            vectors(present, n, text, sizeof text);
            if (fused)
                case_add(list, "%s eps=1e-5 in=x:f32:%dx%d:%s;residual:f32:%dx%d:unit%s", row,
                         count, n, fill, count, n, text);
            else
                case_add(list, "%s eps=1e-5 in=x:f32:%dx%d:%s%s", row, count, n, fill, text);
        }
}

/* dims, axis, length of the axis */
static const struct axis_case {
    const char *dims, *axis;
    int n;
} axis_cases[] = {{"5x7x11", "0", 5},          {"5x7x11", "1", 7},    {"5x7x11", "-1", 11},
                  {"4x65x33", "1", 65},        {"130x40", "0", 130},  {"2100x3", "0", 2100},
                  {"2x3x2x3x2x3x2x3", "4", 2}, {"9000x2", "0", 9000}, {"2x3x2x3x2x3x2x3", "7", 3},
                  {"700x70", "0", 700},        {"0x4", "1", 4},       {"3x1x5", "1", 1}};

static void generate_axes(case_list *list, const char *row)
{
    char text[96];
    for (size_t i = 0; i < COUNT(axis_cases); i++) {
        const struct axis_case *c = &axis_cases[i];
        case_add(list, "%s axis=%s eps=1e-5 in=x:f32:%s:%s%s", row, c->axis, c->dims,
                 fills[i % COUNT(fills)], vectors((unsigned)(i % 4) * 2, c->n, text, sizeof text));
    }
}

static void generate_special(case_list *list, const char *row)
{
    case_add(list, "%s eps=0 in=x:f32:4x7:zero;beta:f32:7", row);
    case_add(list, "%s eps=1e-5 in=x:f32:4x7:constant:0.1;gamma:f32:7", row);
    case_add(list, "%s eps=1 in=x:f32:4x7:integers;gamma:f32:1x7;beta:f32:7x1", row);
    case_add(list, "%s eps=1e-6 in=x:f32:4x7:special;beta:f32:7", row);
    case_add(list, "%s eps=1e-6 in=x:f32:40x300:special;gamma:f32:300", row);
    case_add(list, "%s eps=1e-12 in=x:f16:5x64;gamma:bf16:64;beta:f16:64", row);
}

/* Every class of row kernel, with rows for a part of a workgroup, for a whole one, and in chunks.
 * Each shape has only one set of vectors, because devices with one class should compile no more
 * than that. */
static void generate_classes(case_list *list, const char *row)
{
    static const char *const classes[] = {"subgroup_quads", "subgroup_words", "shared_quads",
                                          "shared_words"};
    static const int shapes[][2] = {{70, 8}, {33, 132}, {9, 1024}, {5, 4096}, {3, 20004}};
    char text[96];
    for (size_t i = 0; i < COUNT(classes) * COUNT(shapes); i++) {
        const int *s = shapes[i % COUNT(shapes)];
        case_add(list, "%s eps=1e-5 variant=rows=%s in=x:f32:%dx%d:%s;residual:f32:%dx%d:unit%s",
                 row, classes[i / COUNT(shapes)], s[0], s[1], fills[i % COUNT(fills)], s[0], s[1],
                 vectors((unsigned)(i % COUNT(shapes)) * 3 % 8, s[1], text, sizeof text));
    }
}

/* Without a residual: kernels that copy rows and kernels that read them again. Lengths lie on both
 * sides of those that a lane, a workgroup and the registers of the largest workgroup hold. */
static void generate_forms(case_list *list, const char *row)
{
    static const char *const classes[] = {"subgroup_span", "subgroup_ragged", "long_quads",
                                          "long_ragged"};
    static const int shapes[][2] = {{131, 33},  {70, 256},  {70, 257},  {9, 8},     {5, 11},
                                    {2, 8192},  {3, 8193},  {2, 32768}, {2, 32770}, {3, 32773},
                                    {2, 65537}, {2, 40004}, {3, 66000}, {300, 17}};
    char text[96];
    for (size_t i = 0; i < COUNT(classes) * COUNT(shapes); i++) {
        const int *s = shapes[i % COUNT(shapes)];
        case_add(list, "%s eps=1e-5 variant=rows=%s in=x:f32:%dx%d:%s%s", row,
                 classes[i / COUNT(shapes)], s[0], s[1], fills[i % COUNT(fills)],
                 vectors((unsigned)(i % 4) * 2, s[1], text, sizeof text));
    }
}

/* Rows whose squares overflow or underflow, for each kernel of plain norms and of norms with a
 * residual. The result takes the memory of an operand, or not. */
static void generate_ranges(case_list *list, const char *row, bool fused)
{
    static const char *const classes[] = {"shared_words",    "shared_quads",  "subgroup_words",
                                          "subgroup_quads",  "subgroup_span", "columns",
                                          "subgroup_ragged", "long_quads",    "long_ragged"};
    static const char *const shapes[][2] = {{"131x30", "1"},  {"9x260", "1"},  {"9x1023", "1"},
                                            {"5x4096", "1"},  {"3x8193", "1"}, {"2x40004", "1"},
                                            {"3x48x20", "1"}, {"900x20", "0"}};
    static const char *const ranges[] = {"1e25", "1.5e38", "1e-25", "1e18", "1e-38"};
    size_t shape_count = fused ? 6 : COUNT(shapes), range_count = fused ? 4 : COUNT(ranges);
    for (size_t i = 0; i < COUNT(classes) * shape_count; i++) {
        const char *dims = shapes[i % shape_count][0], *range = ranges[i % range_count];
        char residual[64] = "";
        if (fused)
            snprintf(residual, sizeof residual, ";residual:f32:%s:range:-%s:%s", dims, range,
                     range);
        case_add(list, "%s eps=%s axis=%s scratch=%zu variant=rows=%s in=x:f32:%s:range:-%s:%s%s",
                 row, i % 3 || i % range_count == 4 ? "0" : "1e-12", shapes[i % shape_count][1],
                 i / 2 % (fused ? 4 : 2), classes[i / shape_count], dims, range, range, residual);
    }
    if (!fused) {
        case_add(list, "%s eps=0 axis=1 in=x:f32:70x300:large", row);
        case_add(list, "%s eps=0 axis=1 in=x:f32:7x12:constant:3e38", row);
        case_add(list, "%s eps=0 axis=1 in=x:f32:2x9001:constant:-1e-38", row);
    }
}

static void generate(case_list *list)
{
    for (size_t i = 0; i < 2; i++) {
        generate_lengths(list, rows[i], false);
        generate_axes(list, rows[i]);
        generate_special(list, rows[i]);
        generate_forms(list, rows[i]);
        generate_ranges(list, rows[i], false);
    }
    case_add(list, "layer_norm eps=0 in=x:f32:5x77:constant:0.1;beta:f32:77");
    case_add(list, "layer_norm eps=0 in=x:f32:2x9001:constant:0.1;beta:f32:9001");
    case_add(list, "rms_norm eps=1e-5 in=x:f32:70000x5:unit;gamma:f32:5");
    for (size_t i = 2; i < 4; i++) {
        generate_classes(list, rows[i]);
        generate_ranges(list, rows[i], true);
        generate_lengths(list, rows[i], true);
        case_add(list, "%s eps=1e-5 in=x:f32:4x7:zero;residual:f32:4x7:zero;beta:f32:7", rows[i]);
        case_add(list, "%s eps=0 in=x:f32:4x7:zero;residual:f32:4x7:zero;beta:f32:7", rows[i]);
        case_add(list, "%s eps=1e-5 in=x:f32:9x70:special;residual:f32:9x70;bias:f32:70", rows[i]);
        case_add(list, "%s same=1 eps=1e-5 in=x:f32:9x70;gamma:f32:70", rows[i]);
        case_add(list, "%s same=1 eps=1e-5 in=x:f32:2x4500;beta:f32:4500", rows[i]);
    }
}

const case_family norm_cases = {rows, build, generate};
