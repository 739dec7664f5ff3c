/* Cases of the norms' gradients (axis, groups, eps). They have the lengths, axes and forms of
 * norm.c and pooling.c. shift=n and scratch=m: of x and dy (case_operand). */
#include "conform/cases/cases.h"

#include <stdio.h>
#include <string.h>

static rlxvk_tensor build_input(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x,
                                rlxvk_tensor gamma, rlxvk_tensor dy)
{
    int32_t axis = (int32_t)case_integer(s, "axis", -1);
    float eps = (float)case_real(s, "eps", 1e-5);
    if (strncmp(s->row, "layer_norm2d", 12) == 0)
        return rlxvk_layer_norm2d_backward_input(g, x, gamma, dy, eps);
    if (strncmp(s->row, "group", 5) == 0)
        return rlxvk_group_norm_backward_input(g, x, gamma, dy, case_integer(s, "groups", 1), eps);
    return strncmp(s->row, "rms", 3) == 0
               ? rlxvk_rms_norm_backward_input(g, x, gamma, dy, axis, eps)
               : rlxvk_layer_norm_backward_input(g, x, gamma, dy, axis, eps);
}

static rlxvk_tensor build_gamma(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x, rlxvk_tensor dy)
{
    int32_t axis = (int32_t)case_integer(s, "axis", -1);
    float eps = (float)case_real(s, "eps", 1e-5);
    if (strncmp(s->row, "layer_norm2d", 12) == 0)
        return rlxvk_layer_norm2d_backward_gamma(g, x, dy, eps);
    if (strncmp(s->row, "group", 5) == 0)
        return rlxvk_group_norm_backward_gamma(g, x, dy, case_integer(s, "groups", 1), eps);
    return strncmp(s->row, "rms", 3) == 0 ? rlxvk_rms_norm_backward_gamma(g, x, dy, axis, eps)
                                          : rlxvk_layer_norm_backward_gamma(g, x, dy, axis, eps);
}

static rlxvk_tensor build_parameters(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x,
                                     rlxvk_tensor dy)
{
    int32_t axis = (int32_t)case_integer(s, "axis", -1);
    float eps = (float)case_real(s, "eps", 1e-5);
    if (strncmp(s->row, "group", 5) == 0)
        return rlxvk_group_norm_backward_parameters(g, x, dy, case_integer(s, "groups", 1), eps);
    return strncmp(s->row, "rms", 3) == 0
               ? rlxvk_rms_norm_backward_parameters(g, x, dy, axis, eps)
               : rlxvk_layer_norm_backward_parameters(g, x, dy, axis, eps);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x = case_operand(g, s, inputs, "x"), dy = case_operand(g, s, inputs, "dy");
    if (strstr(s->row, "_input"))
        return build_input(g, s, x, case_tensor(s, inputs, "gamma"), dy);
    if (strstr(s->row, "_parameters"))
        return build_parameters(g, s, x, dy);
    if (strstr(s->row, "_gamma"))
        return build_gamma(g, s, x, dy);
    if (strncmp(s->row, "layer_norm2d", 12) == 0)
        return rlxvk_layer_norm2d_backward_beta(g, dy);
    if (strncmp(s->row, "group", 5) == 0)
        return rlxvk_group_norm_backward_beta(g, dy, case_integer(s, "groups", 1));
    return rlxvk_rms_norm_backward_beta(g, dy, (int32_t)case_integer(s, "axis", -1));
}

/* ---- Over one axis ---- */

static const struct shape_case {
    const char *dims, *axis;
    int n;
    const char *fill;
} shapes[] = {{"1", "0", 1, "uniform"},
              {"3x1", "-1", 1, "uniform"},
              {"1x2", "-1", 2, "unit"},
              {"7x31", "-1", 31, "offset"},
              {"3x5x64", "-1", 64, "unit"},
              {"65x257", "-1", 257, "uniform"},
              {"33x768", "-1", 768, "offset"},
              {"131x1024", "1", 1024, "unit"},
              {"2x4096", "-1", 4096, "offset"},
              {"2x8193", "-1", 8193, "unit"},
              {"1x66000", "-1", 66000, "offset"},
              {"2001x5", "-1", 5, "unit"},
              {"5x7x11", "0", 5, "unit"},
              {"5x7x11", "1", 7, "offset"},
              {"2x65x33", "1", 65, "uniform"},
              {"9000x2", "0", 9000, "unit"},
              {"2x3x2x3x2x3x2x3", "4", 2, "unit"},
              {"700x70", "0", 700, "unit"},
              {"0x4", "1", 4, "unit"},
              {"4x0", "1", 0, "unit"},
              {"4x0", "0", 4, "unit"},
              {"3x1x5", "1", 1, "unit"}};

static const char *const sums[] = {"gamma", "parameters"};

static void generate_axes(case_list *list, const char *norm)
{
    for (size_t i = 0; i < COUNT(shapes); i++) {
        const struct shape_case *c = &shapes[i];
        if (i % 3 == 0)
            case_add(list, "%s_backward_input axis=%s in=x:f32:%s:%s;dy:f32:%s", norm, c->axis,
                     c->dims, c->fill, c->dims);
        else
            case_add(list, "%s_backward_input axis=%s in=x:f32:%s:%s;gamma:f32:%d;dy:f32:%s", norm,
                     c->axis, c->dims, c->fill, c->n, c->dims);
        for (size_t both = 0; both < 2; both++)
            case_add(list, "%s_backward_%s axis=%s in=x:f32:%s:%s;dy:f32:%s", norm, sums[both],
                     c->axis, c->dims, c->fill, c->dims);
    }
}

static void generate_others(case_list *list, const char *norm)
{
    static const char *const inputs[] = {
        "eps=0 in=x:f32:4x7:zero;dy:f32:4x7",
        "eps=1e-5 in=x:f32:4x7:constant:0.1;gamma:f32:7;dy:f32:4x7",
        "eps=1 in=x:f32:4x7:integers;gamma:f32:1x7;dy:f32:4x7:offset",
        "eps=1e-6 in=x:f32:40x300:special;gamma:f32:300;dy:f32:40x300",
        "eps=1e-6 in=x:f32:3x9000:special;gamma:f32:9000;dy:f32:3x9000",
        "shift=1 in=x:f32:5x13;gamma:f32:13;dy:f32:5x13",
        "shift=1 in=x:f32:4x8193;gamma:f32:8193;dy:f32:4x8193",
        "scratch=1 in=x:f32:5x64;gamma:f32:64;dy:f32:5x64",
        "scratch=4 in=x:f32:5x260;gamma:f32:260;dy:f32:5x260",
        "scratch=1 in=x:f32:2x20000;gamma:f32:20000;dy:f32:2x20000",
        "scratch=2 in=x:f32:70x33;dy:f32:70x33",
        "in=x:f16:5x64;gamma:bf16:64;dy:f32:5x64",
        "variant=rows=long_quads in=x:f32:3x12288:offset;gamma:f32:12288;dy:f32:3x12288",
        "variant=rows=long_quads in=x:f32:2x16384;gamma:f32:16384;dy:f32:2x16384",
        "variant=rows=long_quads scratch=1 in=x:f32:2x16380;dy:f32:2x16380",
        "in=x:f32:2x16388;gamma:f32:16388;dy:f32:2x16388",
        "eps=1e-6 in=x:f32:2x20000:range:999:1001;gamma:f32:20000;dy:f32:2x20000:offset",
        "expect=E_SHAPE in=x:f32:scalar;dy:f32:scalar",
        "expect=E_SHAPE in=x:f32:3x5;dy:f32:5x3",
        "expect=E_SHAPE in=x:f32:3x5;gamma:f32:3;dy:f32:3x5",
        "expect=E_AXIS axis=2 in=x:f32:3x5;dy:f32:3x5",
        "expect=E_ATTR eps=-1 in=x:f32:3x5;dy:f32:3x5"};
    static const char *const gammas[] = {"eps=0 in=x:f32:4x7:constant:0.1;dy:f32:4x7",
                                         "eps=1e-6 in=x:f32:4x300:special;dy:f32:4x300",
                                         "shift=1 in=x:f32:50x13;dy:f32:50x13",
                                         "in=x:f32:4200x64:offset;dy:f32:4200x64:offset",
                                         "in=x:f32:1100x20;dy:f32:1100x20:unit",
                                         "in=x:f32:30x300:range:999:1001;dy:f32:30x300:offset",
                                         "in=x:f16:5x64;dy:f32:5x64",
                                         "expect=E_SHAPE in=x:f32:3x5;dy:f32:5x3",
                                         "expect=E_ATTR eps=-1 in=x:f32:3x5;dy:f32:3x5"};
    static const char *const classes[] = {"subgroup_quads", "subgroup_words", "subgroup_ragged",
                                          "shared_quads",   "shared_words",   "summed_quads"};
    static const int sizes[][2] = {{70, 8}, {33, 132}, {9, 1024}, {5, 4096}, {3, 8191}};
    char head[64];
    snprintf(head, sizeof head, "%s_backward_input", norm);
    case_add_all(list, head, inputs, COUNT(inputs));
    for (size_t both = 0; both < 2; both++) {
        snprintf(head, sizeof head, "%s_backward_%s", norm, sums[both]);
        case_add_all(list, head, gammas, COUNT(gammas));
    }
    for (size_t i = 0; i < COUNT(classes) * COUNT(sizes); i++) {
        const int *s = sizes[i % COUNT(sizes)];
        const char *name = classes[i / COUNT(sizes)];
        case_add(list, "%s_backward_input variant=rows=%s in=x:f32:%dx%d;gamma:f32:%d;dy:f32:%dx%d",
                 norm, name, s[0], s[1], s[1], s[0], s[1]);
        case_add(list, "%s_backward_%s variant=rows=%s in=x:f32:%dx%d;dy:f32:%dx%d", norm,
                 sums[i % 2], name, s[0], s[1], s[0], s[1]);
    }
}

/* ---- Of images ---- */

static void generate_images(case_list *list)
{
    static const struct image_case {
        const char *dims;
        int channels, groups;
        const char *fill;
    } images[] = {{"2x1x1x1", 1, 1, "unit"},       {"2x6x5x7", 6, 2, "offset"},
                  {"2x32x32x33", 32, 4, "unit"},   {"2x257x9x5", 257, 257, "unit"},
                  {"1x4x101x103", 4, 2, "offset"}, {"1x4100x2x3", 4100, 1, "unit"},
                  {"3x8x4x4", 8, 8, "unit"},       {"0x8x7x7", 8, 4, "unit"},
                  {"2x8x0x7", 8, 4, "unit"},       {"2x64x12x12", 64, 32, "unit"}};
    for (size_t i = 0; i < COUNT(images); i++) {
        const struct image_case *c = &images[i];
        case_add(list, "layer_norm2d_backward_input in=x:f32:%s:%s;gamma:f32:%d;dy:f32:%s", c->dims,
                 c->fill, c->channels, c->dims);
        case_add(list, "layer_norm2d_backward_gamma in=x:f32:%s:%s;dy:f32:%s", c->dims, c->fill,
                 c->dims);
        case_add(list, "layer_norm2d_backward_beta in=dy:f32:%s:%s", c->dims, c->fill);
        case_add(list, "group_norm_backward_input groups=%d in=x:f32:%s:%s;gamma:f32:%d;dy:f32:%s",
                 c->groups, c->dims, c->fill, c->channels, c->dims);
        case_add(list, "group_norm_backward_input groups=%d in=x:f32:%s:%s;dy:f32:%s", c->groups,
                 c->dims, c->fill, c->dims);
        for (size_t both = 0; both < 2; both++)
            case_add(list, "group_norm_backward_%s groups=%d in=x:f32:%s:%s;dy:f32:%s", sums[both],
                     c->groups, c->dims, c->fill, c->dims);
        case_add(list, "group_norm_backward_beta groups=%d in=dy:f32:%s", c->groups, c->dims);
    }
}

/* Channels of one chunk and of several, in quads and in words, for each class of kernel. */
static void generate_chunks(case_list *list)
{
    static const struct chunk_case {
        const char *dims;
        int channels, groups;
        const char *fill;
    } chunks[] = {{"2x4x70x64", 4, 2, "range:999:1001"},
                  {"1x6x49x57", 6, 1, "offset"},
                  {"3x12x28x28", 12, 1, "range:-1001:-999"}};
    static const char *const classes[] = {"subgroup_quads", "subgroup_words", "shared_quads",
                                          "shared_words", "long_quads"};
    for (size_t i = 0; i < COUNT(chunks) * COUNT(classes); i++) {
        const struct chunk_case *c = &chunks[i % COUNT(chunks)];
        const char *name = classes[i / COUNT(chunks)];
        case_add(list,
                 "group_norm_backward_input variant=rows=%s groups=%d "
                 "in=x:f32:%s:%s;gamma:f32:%d;dy:f32:%s:offset",
                 name, c->groups, c->dims, c->fill, c->channels, c->dims);
        case_add(list,
                 "group_norm_backward_parameters variant=rows=%s groups=%d "
                 "in=x:f32:%s:%s;dy:f32:%s:offset",
                 name, c->groups, c->dims, c->fill, c->dims);
    }
}

static void generate_refusals(case_list *list)
{
    static const char *const groups[] = {
        "groups=3 in=x:f32:2x12;gamma:f32:12;dy:f32:2x12",
        "groups=2 in=x:f32:3x6x35;gamma:f32:6;dy:f32:3x6x35",
        "groups=2 shift=1 in=x:f32:3x6x5;gamma:f32:6x1;dy:f32:3x6x5",
        "groups=3 eps=0 in=x:f32:2x6x5:constant:0.1;gamma:f32:6;dy:f32:2x6x5",
        "groups=3 in=x:f32:4x6x50:special;gamma:f32:6;dy:f32:4x6x50",
        "groups=2 scratch=1 in=x:f32:2x6x5000;gamma:f32:6;dy:f32:2x6x5000",
        "expect=E_SHAPE in=x:f32:6;dy:f32:6",
        "expect=E_ATTR groups=4 in=x:f32:2x6x5;dy:f32:2x6x5",
        "expect=E_ATTR groups=0 in=x:f32:2x6x5;dy:f32:2x6x5",
        "expect=E_SHAPE groups=2 in=x:f32:2x6x5;gamma:f32:3;dy:f32:2x6x5"};
    static const char *const parameters[] = {
        "groups=3 in=x:f32:2x6;dy:f32:2x6",
        "groups=2 in=x:f32:500x6;dy:f32:500x6",
        "groups=1 in=x:f32:5000x2x8:range:999:1001;dy:f32:5000x2x8:offset",
        "groups=3 eps=0 in=x:f32:2x6x5:constant:0.1;dy:f32:2x6x5",
        "groups=2 shift=1 in=x:f32:3x6x16;dy:f32:3x6x16",
        "groups=2 in=x:f32:2x0x5;dy:f32:2x0x5",
        "expect=E_ATTR groups=4 in=x:f32:2x6;dy:f32:2x6"};
    static const char *const layers[] = {"expect=E_SHAPE in=x:f32:2x8x5;dy:f32:2x8x5",
                                         "expect=E_SHAPE in=x:f32:2x8x5x7;dy:f32:2x8x7x5",
                                         "shift=1 in=x:f32:3x5x3x3;gamma:f32:5;dy:f32:3x5x3x3",
                                         "scratch=5 in=x:f32:3x5x3x3;gamma:f32:5;dy:f32:3x5x3x3"};
    case_add_all(list, "group_norm_backward_input", groups, COUNT(groups));
    case_add_all(list, "layer_norm2d_backward_input", layers, COUNT(layers));
    for (size_t both = 0; both < 2; both++) {
        char head[40];
        snprintf(head, sizeof head, "group_norm_backward_%s", sums[both]);
        case_add_all(list, head, parameters, COUNT(parameters));
    }
    case_add(list, "layer_norm2d_backward_gamma expect=E_SHAPE in=x:f32:2x8x5;dy:f32:2x8x5");
    case_add(list, "layer_norm2d_backward_beta expect=E_SHAPE in=dy:f32:2x8x5");
}

/* Rows whose squares overflow or underflow. The result takes the memory of x, of dy, or of neither.
 */
static void generate_ranges(case_list *list, const char *norm)
{
    static const char *const classes[] = {"shared_words",   "shared_quads", "subgroup_words",
                                          "subgroup_quads", "summed_quads", "long_quads"};
    static const char *const dims[][2] = {{"70x60", "1"},  {"9x257", "1"},   {"5x4096", "1"},
                                          {"3x9001", "1"}, {"2x40004", "1"}, {"3x48x20", "1"},
                                          {"900x20", "0"}};
    static const char *const sizes[] = {"1e25", "1e18", "1e-25", "1e30", "1e-30"};
    for (size_t i = 0; i < COUNT(classes) * COUNT(dims); i++) {
        const char *const *d = dims[i % COUNT(dims)], *size = sizes[i % COUNT(sizes)];
        case_add(list,
                 "%s_backward_%s eps=0 axis=%s scratch=%zu variant=rows=%s "
                 "in=x:f32:%s:range:-%s:%s;dy:f32:%s:unit",
                 norm, i % 2 ? "input" : "parameters", d[1], i % 2 ? i / 2 % 4 : 0,
                 classes[i / COUNT(dims)], d[0], size, size, d[0]);
    }
}

static void generate_group_ranges(case_list *list)
{
    static const char *const dims[] = {"2x6x5", "3x6x50", "2x6x9000"};
    static const char *const parts[] = {"input", "gamma", "parameters"};
    for (size_t i = 0; i < COUNT(dims) * COUNT(parts); i++)
        case_add(list,
                 "group_norm_backward_%s groups=2 eps=0 scratch=%zu "
                 "in=x:f32:%s:range:-%s;dy:f32:%s:unit",
                 parts[i % COUNT(parts)], i % COUNT(parts) ? 0 : i / COUNT(parts),
                 dims[i / COUNT(parts)], i & 1 ? "1e25:1e25" : "1e-25:1e-25",
                 dims[i / COUNT(parts)]);
}

static void generate(case_list *list)
{
    static const char *const norms[] = {"layer_norm", "rms_norm"};
    for (size_t i = 0; i < COUNT(norms); i++) {
        generate_axes(list, norms[i]);
        generate_others(list, norms[i]);
        generate_ranges(list, norms[i]);
    }
    for (size_t i = 0; i < COUNT(shapes); i++)
        case_add(list, "rms_norm_backward_beta axis=%s in=dy:f32:%s:%s", shapes[i].axis,
                 shapes[i].dims, shapes[i].fill);
    case_add(list, "rms_norm_backward_beta expect=E_AXIS axis=2 in=dy:f32:3x5");
    generate_images(list);
    generate_chunks(list);
    generate_refusals(list);
    generate_group_ranges(list);
}

static const char *const rows[] = {
    "layer_norm_backward_parameters", "rms_norm_backward_parameters", "layer_norm_backward_input",
    "layer_norm_backward_gamma",      "rms_norm_backward_input",      "rms_norm_backward_gamma",
    "rms_norm_backward_beta",         "layer_norm2d_backward_input",  "layer_norm2d_backward_gamma",
    "layer_norm2d_backward_beta",     "group_norm_backward_input",    "group_norm_backward_gamma",
    "group_norm_backward_parameters", "group_norm_backward_beta",     NULL};

const case_family norm_backward_cases = {.rows = rows, .build = build, .generate = generate};
