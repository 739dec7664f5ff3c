/*
 * Cases of conv, conv_transpose2d, fused_conv, im2col and col2im. Keys:
 *   kernel, stride, padding, dilation, output_padding   one value for each spatial axis
 *   groups
 *   size                                 of col2im: height, width
 *   activation=NAME, activation_first=1  of fused_conv
 *   shift=n, w_shift=n, residual_shift=n drop the first n of axis 0 of x, w or the residual, so
 *     that they begin inside their slots
 *
 * Case files of other frameworks also give `dims`, which the shapes already show.
 */
#include "conform/cases/cases.h"

#include <stdio.h>
#include <string.h>

/* ---- building ---- */

static rlxvk_conv_options options_of(const case_spec *s)
{
    rlxvk_conv_options options = {.groups = case_integer(s, "groups", 0)};
    case_entries(s, "kernel", options.kernel);
    case_entries(s, "stride", options.stride);
    case_entries(s, "padding", options.padding);
    case_entries(s, "dilation", options.dilation);
    case_entries(s, "output_padding", options.output_padding);
    return options;
}

static rlxvk_tensor operand(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs,
                            const char *name, const char *key)
{
    rlxvk_tensor x = case_tensor(s, inputs, name);
    int64_t shift = case_integer(s, key, 0);
    if (shift == 0)
        return x;
    return rlxvk_narrow(g, x, 0, shift, rlxvk_tensor_shape(g, x).dims[0] - shift);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_conv_options options = options_of(s);
    int32_t size[2] = {0};
    rlxvk_tensor x = operand(g, s, inputs, "x", "shift");
    if (strcmp(s->row, "im2col") == 0)
        return rlxvk_im2col(g, x, &options);
    case_integers(s, "size", size, 2);
    if (strcmp(s->row, "col2im") == 0)
        return rlxvk_col2im(g, x, size[0], size[1], &options);
    rlxvk_tensor w = operand(g, s, inputs, "w", "w_shift");
    rlxvk_tensor bias = case_tensor(s, inputs, "bias");
    if (strcmp(s->row, "fused_conv") == 0) {
        rlxvk_fused_conv_options fused = {options, case_activation(s, "activation"),
                                          case_integer(s, "activation_first", 0)};
        rlxvk_tensor residual = operand(g, s, inputs, "residual", "residual_shift");
        return rlxvk_fused_conv(g, x, w, bias, residual, &fused);
    }
    return strcmp(s->row, "conv") == 0 ? rlxvk_conv(g, x, w, bias, &options)
                                       : rlxvk_conv_transpose2d(g, x, w, bias, &options);
}

/* ---- lines ---- */

typedef struct window {
    int kernel, stride, padding, dilation, groups;
} window;

/* Adds a conv from 6 to 12 channels over `axes` axes, with the same window on each. */
static void add_forward(case_list *list, int axes, window v, bool bias)
{
    static const char *const sizes[] = {"2x6x19", "2x6x7x9", "2x6x5x6x7"};
    static const char *const values[] = {"%d", "%d,%d", "%d,%d,%d"};
    static const char *const kernels[] = {"1", "2", "3"};
    char stride[16], padding[16], dilation[16], kernel[16] = "";
    const char *form = values[axes - 1];
    snprintf(stride, sizeof stride, form, v.stride, v.stride, v.stride);
    snprintf(padding, sizeof padding, form, v.padding, v.padding, v.padding);
    snprintf(dilation, sizeof dilation, form, v.dilation, v.dilation, v.dilation);
    for (int i = 0; i < axes; i++) {
        strcat(kernel, "x");
        strcat(kernel, kernels[v.kernel - 1]);
    }
    case_add(
        list,
        "conv stride=%s padding=%s dilation=%s groups=%d in=x:f32:%s:unit;w:f32:12x%d%s:unit%s",
        stride, padding, dilation, v.groups, sizes[axes - 1], 6 / v.groups, kernel,
        bias ? ";bias:f32:12" : "");
}

static void generate_windows(case_list *list)
{
    static const int groups[] = {1, 2, 6};
    unsigned number = 0;
    for (int axes = 1; axes <= 3; axes++)
        for (int i = 0; i < 72; i++, number++) {
            window v = {.kernel = i % 2 ? 3 : 1,
                        .stride = 1 + i / 2 % 2,
                        .padding = i / 4 % 3,
                        .dilation = 1 + i / 12 % 2,
                        .groups = groups[i / 24]};
            if (axes == 2 || i % 3 == axes / 2)
                add_forward(list, axes, v, number % 2);
        }
}

static void generate_forward(case_list *list)
{
    static const char *const lines[] = {
        "in=x:f32:1x1x1;w:f32:1x1x1", "in=x:f32:1x1x1x1;w:f32:1x1x1x1;bias:f32:1",
        "in=x:f32:1x1x1x1x1;w:f32:1x1x1x1x1",
        "stride=2 padding=1 dilation=2 in=x:f32:1x1x5:iota;w:f32:1x1x2:iota",
        /* only one position, because the kernel is the whole padded input */
        "in=x:f32:2x3x5x4;w:f32:7x3x5x4;bias:f32:7", "padding=1,2 in=x:f32:2x3x3x2;w:f32:4x3x5x6",
        "padding=1 dilation=6 in=x:f32:1x2x5;w:f32:3x2x2",
        /* different values for each axis */
        "stride=1,3 padding=2,0 dilation=3,1 in=x:f32:2x3x9x11;w:f32:5x3x2x4;bias:f32:5",
        "stride=3,1,2 padding=0,2,1 dilation=1,2,3 in=x:f32:1x2x7x6x8;w:f32:3x2x3x2x1",
        "kernel=3,2 stride=5,4 in=x:f32:1x2x11x13;w:f32:9x2x3x2",
        "padding=7,9 in=x:f32:1x1x1x1;w:f32:2x1x2x2",
        /* empty tensors */
        "in=x:f32:0x3x5x5;w:f32:4x3x3x3;bias:f32:4", "in=x:f32:2x3x5x5;w:f32:0x3x3x3",
        "in=x:f32:2x0x5x5;w:f32:4x0x3x3;bias:f32:4",
        "padding=2 in=x:f32:2x3x0;w:f32:4x3x3;bias:f32:4", "in=x:f32:2x0x5x5;w:f32:4x0x3x3",
        /* taps outside the input are skipped, whatever the weight */
        "padding=1,1 in=x:f32:1x3x6x5;w:f32:9x3x3x3:special",
        "padding=1,1 in=x:f32:2x40x6x6;w:f32:40x40x3x3:special;bias:f32:40",
        "padding=2 groups=4 in=x:f32:2x4x9;w:f32:4x1x5:special",
        "padding=1,1 in=x:f32:2x5x6x6:special;w:f32:33x5x3x3",
        "padding=1,1,1 in=x:f32:1x3x3x4x5;w:f32:5x3x3x3x3:special",
        "padding=1,1 in=x:f32:1x3x6x5:special;w:f32:40x3x3x3:zero",
        "padding=1,1 in=x:f32:1x3x6x5:zero;w:f32:40x3x3x3:special",
        /* values of several kinds */
        "padding=1,1 in=x:f32:2x5x9x9:integers;w:f32:33x5x3x3:integers;bias:f32:33:integers",
        "padding=1,1 in=x:f32:1x6x9x9:large;w:f32:10x6x3x3:unit;bias:f32:10",
        "padding=1,1 in=x:f32:1x6x9x9:offset;w:f32:10x6x3x3:offset",
        "in=x:f32:1x6x9x9:zero;w:f32:10x6x3x3;bias:f32:10:offset",
        "in=x:i32:1x6x9x9:integers;w:f32:10x6x3x3",
        "padding=1,1 in=x:f32:1x6x9x9;w:f16:10x6x3x3;bias:f16:10",
        /* views */
        "shift=1 padding=1,1 in=x:f32:3x5x7x7;w:f32:9x5x3x3",
        "w_shift=1 padding=1,1 in=x:f32:1x5x8x8;w:f32:10x5x3x3;bias:f32:9",
        "shift=1 w_shift=3 groups=3 in=x:f32:3x3x5x7;w:f32:6x1x3x3",
        /* sizes around those of tiles */
        "padding=1,1 in=x:f32:1x16x16x16;w:f32:32x16x3x3",
        "padding=1,1 in=x:f32:2x17x13x11;w:f32:65x17x3x3;bias:f32:65",
        "in=x:f32:2x64x9x13;w:f32:129x64x1x1;bias:f32:129", "in=x:f32:3x31x33;w:f32:31x31x1",
        "groups=2 padding=1,1 in=x:f32:2x66x8x8;w:f32:70x33x3x3",
        "groups=3 padding=1 in=x:f32:2x30x65;w:f32:99x10x3;bias:f32:99",
        "padding=1,1 in=x:f32:1x130x3x3:unit;w:f32:20x130x3x3:unit;bias:f32:20",
        "stride=2,2 padding=3,3 in=x:f32:1x3x32x32;w:f32:24x3x7x7;bias:f32:24",
        "padding=1,1,1 in=x:f32:1x9x6x6x6;w:f32:36x9x3x3x3",
        "in=x:f32:1x1200x1x1:unit;w:f32:10x1200x1x1:unit;bias:f32:10",
        /* depthwise, also with several outputs a channel; positions across images */
        "groups=37 padding=1,1 in=x:f32:3x37x9x9;w:f32:37x1x3x3;bias:f32:37",
        "groups=5 padding=2,2 in=x:f32:2x5x14x14;w:f32:15x1x5x5",
        "groups=64 stride=2 padding=1 in=x:f32:1x64x33;w:f32:64x1x4",
        "groups=4 padding=1,1,1 in=x:f32:2x4x5x5x5;w:f32:4x1x3x3x3", "in=x:f32:300x2x3;w:f32:3x2x2",
        "groups=2 in=x:f32:1x2x4194309;w:f32:2x1x1", /* more groups than a grid dimension */
    };
    case_add_all(list, "conv", lines, COUNT(lines));
    /* More terms than a software driver may loop over in one invocation. */
    case_add(list, "conv in=x:f32:1x16000x3x3:one;w:f32:2x16000x3x3:one");
}

/* Sizes on both sides of the limits between kernels, and between ways through one kernel. */
static void generate_edges(case_list *list)
{
    static const char *const lines[] = {
        /* many planes in a workgroup; quads of x that begin left of the taps; leftover rows and
         * columns */
        "groups=40 padding=3,3 in=x:f32:2x40x7x7;w:f32:40x1x7x7;bias:f32:40",
        "groups=6 padding=3,3 in=x:f32:2x6x28x28;w:f32:6x1x7x7",
        "groups=6 padding=2,1 stride=2,2 in=x:f32:2x6x17x16;w:f32:12x1x5x4;bias:f32:12",
        "groups=8 padding=3 in=x:f32:2x8x64;w:f32:8x1x4",
        "groups=300 in=x:f32:2x300x1;w:f32:300x1x1",
        "groups=3 padding=1,5 in=x:f32:1x3x6x4;w:f32:3x1x3x3;bias:f32:3",
        "groups=5 dilation=2,2 padding=2,2 in=x:f32:1x5x9x8;w:f32:5x1x3x3",
        "groups=4 padding=3,3 in=x:f32:1x4x12x12;w:f32:4x1x7x7:special;bias:f32:4",
        "groups=4 padding=1,1 in=x:f32:1x4x8x8:special;w:f32:4x1x3x3",
        "groups=2 padding=8,8 in=x:f32:1x2x9x24;w:f32:2x1x5x16",
        "groups=2 padding=8,8 in=x:f32:1x2x9x24;w:f32:2x1x5x17",
        "groups=2 stride=4,4 in=x:f32:1x2x19x40;w:f32:2x1x5x6",
        "groups=2 stride=5,5 in=x:f32:1x2x19x40;w:f32:2x1x5x6",
        /* as many taps along the axes as a word has bits, and more */
        "padding=7,7 in=x:f32:1x2x6x6;w:f32:35x2x15x15",
        "padding=7,7 in=x:f32:1x2x6x6;w:f32:35x2x15x16",
        "padding=4,4,4 in=x:f32:1x2x5x4x4;w:f32:3x2x10x10x11",
        "padding=4,4,4 in=x:f32:1x2x5x4x4;w:f32:3x2x10x11x11",
        /* windows of one cell */
        "in=x:f32:3x40x4x5;w:f32:33x40x1x1;bias:f32:33",
        "in=x:f32:3x37x2x2x9;w:f32:33x37x1x1x1",
        "groups=2 in=x:f32:3x18x36;w:f32:70x9x1",
        "padding=1,1 in=x:f32:2x12x6x6;w:f32:40x12x1x1",
        "shift=1 in=x:f32:2x33x6x6;w:f32:40x33x1x1:special",
        "in=x:f32:2x33x6x6:special;w:f32:40x33x1x1",
        /* a step of K is one tap */
        "padding=1,1 in=x:f32:2x64x7x7;w:f32:40x64x3x3;bias:f32:40",
        "groups=2 padding=1,1,1 in=x:f32:1x64x3x4x5;w:f32:70x32x3x2x3:special",
        "stride=2,1 dilation=1,2 padding=2,2 in=x:f32:2x32x9x8;w:f32:33x32x3x3",
        "w_shift=1 padding=1 in=x:f32:2x16x40;w:f32:41x16x5",
    };
    case_add_all(list, "conv", lines, COUNT(lines));
    /* One channel or position less and more than a tile has, with integers so that sums are exact.
     */
    static const int counts[] = {15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129};
    for (size_t i = 0; i < COUNT(counts); i++)
        for (int step = 1; step <= 5; step += 4) {
            int out = counts[(i * 5 + (size_t)step) % COUNT(counts)];
            int in = counts[(i * 7 + (size_t)step) % 6];
            case_add(list,
                     "conv padding=1 in=x:f32:2x%dx%d:integers;w:f32:%dx%dx3:integers;"
                     "bias:f32:%d:integers",
                     in, counts[i], out, in, out);
            case_add(list, "conv in=x:f32:1x%dx%dx%d:integers;w:f32:%dx%dx1x1:integers", in,
                     counts[i], step, out, in);
        }
    /* The same for tiles even if they are not the first choice. Some cases have more taps than a
     * word has bits, or taps of many channels. Others have windows of one cell, with NaN and
     * infinities. */
    static const char *const tiles[] = {"tiled_32x32", "tiled_64x64", "tiled_32x128"};
    static const char *const tiled[] = {
        "padding=7,7 in=x:f32:1x2x6x6:integers;w:f32:35x2x15x16:integers",
        "padding=4,4,4 in=x:f32:1x2x5x4x4:integers;w:f32:3x2x10x11x11:integers",
        "in=x:f32:2x33x6x6:special;w:f32:40x33x1x1",
        "padding=1,1 in=x:f32:2x64x7x7:integers;w:f32:40x64x3x3:integers",
        "padding=1,1 in=x:f32:2x5x9x9:integers;w:f32:33x5x3x3:integers;bias:f32:33:integers",
        "padding=1,1,1 in=x:f32:1x32x3x4x5:integers;w:f32:33x32x3x3x3:integers"};
    for (size_t t = 0; t < COUNT(tiles); t++)
        for (size_t l = 0; l < COUNT(tiled); l++)
            case_add(list, "conv variant=conv=%s %s", tiles[t], tiled[l]);
}

/* Tiles in cases for which other kernels are the first choice: transposed products, and the
 * epilogue of sums in one and several parts. */
static void generate_tiles(case_list *list)
{
    static const char *const tiles[] = {"tiled_32x32", "tiled_64x64", "tiled_32x128"};
    static const char *const lines[][2] = {
        {"conv_transpose2d", "stride=2,2 padding=1,1 in=x:f32:2x20x7x6;w:f32:20x40x4x4;"
                             "bias:f32:40"},
        {"conv_transpose2d", "groups=2 stride=2,1 dilation=1,2 in=x:f32:1x36x8x8;"
                             "w:f32:36x35x3x2"},
        {"fused_conv", "activation=relu padding=1,1 in=x:f32:2x17x13x11;"
                       "w:f32:65x17x3x3;bias:f32:2x65;residual:f32:2x65x13x11"},
        {"fused_conv", "activation=gelu activation_first=1 in=x:f32:1x33x8x8;"
                       "w:f32:40x33x1x1;bias:f32:40;residual:f32:1x40x8x8"},
        {"fused_conv", "activation=relu in=x:f32:1x1200x1x1:unit;"
                       "w:f32:10x1200x1x1:unit;bias:f32:2x10;residual:f32:1x10x1x1"},
        {"fused_conv",
         "activation=silu activation_first=1 padding=1,1 "
         "in=x:f32:1x130x3x3:unit;w:f32:20x130x3x3:unit;bias:f32:20;residual:f32:1x20x3x3"},
        {"fused_conv", "activation=relu padding=1,1 residual_shift=1 "
                       "in=x:f32:2x64x5x5:unit;w:f32:40x64x3x3:unit;residual:f32:3x40x5x5"}};
    for (size_t t = 0; t < COUNT(tiles); t++)
        for (size_t l = 0; l < COUNT(lines); l++)
            case_add(list, "%s variant=conv=%s %s", lines[l][0], tiles[t], lines[l][1]);
}

static void generate_transposed(case_list *list)
{
    static const char *const lines[] = {
        "in=x:f32:1x1x1x1;w:f32:1x1x1x1",
        "stride=2 padding=1 output_padding=1 in=x:f32:1x1x2:iota;w:f32:1x1x3:iota",
        "stride=3 padding=2 in=x:f32:2x5x9;w:f32:5x4x4;bias:f32:4",
        "stride=2,2,2 padding=1,0,1 output_padding=1,0,1 in=x:f32:1x3x3x4x2;w:f32:3x2x3x2x4",
        "groups=3 in=x:f32:1x6x3x2x2;w:f32:6x3x2x2x2",
        "stride=1,3 padding=2,0 dilation=3,1 in=x:f32:2x3x9x5;w:f32:3x5x3x4;bias:f32:5",
        "stride=5,4 in=x:f32:1x2x3x4;w:f32:2x9x3x2;bias:f32:9", /* only the bias reaches gaps
                                                                   between windows */
        "kernel=4,4 stride=2,2 padding=1,1 in=x:f32:2x20x7x6;w:f32:20x40x4x4;bias:f32:40",
        "groups=8 stride=2,2 padding=1,1 in=x:f32:2x8x6x6;w:f32:8x1x4x4;bias:f32:8",
        "groups=2 stride=2,2 in=x:f32:1x36x8x8;w:f32:36x35x2x2",
        "stride=1,1 padding=1,1 in=x:f32:2x33x8x8;w:f32:33x65x3x3;bias:f32:65",
        "in=x:f32:1x300x2x2:unit;w:f32:300x9x3x3:unit",
        "stride=2,2 padding=1,1 in=x:f32:1x3x5x5;w:f32:3x9x3x3:special",
        "stride=2,2 padding=1,1 in=x:f32:1x20x5x5;w:f32:20x40x3x3:special;bias:f32:40",
        "stride=2,2 in=x:f32:1x3x5x5:special;w:f32:3x9x3x3",
        "stride=2,2 in=x:f32:2x3x5x5:integers;w:f32:3x9x3x3:integers;bias:f32:9:integers",
        "in=x:f32:1x3x5x5:large;w:f32:3x9x3x3:unit",
        "in=x:f32:0x3x5x5;w:f32:3x9x3x3",
        "in=x:f32:2x0x5x5;w:f32:0x9x3x3;bias:f32:9",
        "in=x:f32:2x3x5x5;w:f32:3x0x3x3",
        "in=x:f32:2x3x0;w:f32:3x4x3;bias:f32:4",
        "padding=2,2 in=x:f32:1x3x3x3;w:f32:3x4x3x3",
        "shift=1 w_shift=1 stride=2,2 in=x:f32:3x3x5x5;w:f32:4x9x3x3;bias:f32:9",
        "output_padding=0,1 dilation=1,2 in=x:f32:1x2x4x4;w:f32:2x3x3x3;bias:f32:3",
        "in=x:f32:1x6x9x9;w:bf16:6x10x3x3",
    };
    for (int i = 0; i < 48; i++) {
        int stride = 1 + i % 3, padding = i / 3 % 2, extra = i / 6 % 2, dilation = 1 + i / 12 % 2;
        int groups = 1 + i / 24;
        if (extra && stride == 1 && dilation == 1)
            continue;
        case_add(list,
                 "conv_transpose2d stride=%d,%d padding=%d,%d output_padding=%d,%d dilation=%d,%d "
                 "groups=%d in=x:f32:2x4x5x3;w:f32:4x%dx3x2%s",
                 stride, stride, padding, padding, extra, extra, dilation, dilation, groups, 3,
                 i % 2 ? groups == 1 ? ";bias:f32:3" : ";bias:f32:6" : "");
    }
    case_add_all(list, "conv_transpose2d", lines, COUNT(lines));
}

/* Every activation, with and without optional operands. */
static void generate_activations(case_list *list)
{
    static const char *const names[] = {
        "none",
#define ACTIVATION(code, NAME, row, ...) #row,
#include "args/activation.def"
    };
    static const char *const biases[] = {"", ";bias:f32:12:unit", ";bias:f32:2x12:unit"};
    static const char *const residuals[] = {"", ";residual:f32:2x12x7x9:unit"};
    for (int i = 0; i < (int)COUNT(names) * 6; i++) {
        bool positive = strcmp(names[i / 6], "log") == 0 || strstr(names[i / 6], "sqrt");
        case_add(list,
                 "fused_conv activation=%s activation_first=%d groups=2 padding=1,1 dilation=1,2 "
                 "in=x:f32:2x6x7x9:%s;w:f32:12x3x3x2:%s%s%s",
                 names[i / 6], i / 12 % 2, positive ? "positive" : "unit",
                 positive ? "positive" : "unit", positive ? "" : biases[i % 3],
                 residuals[i / 3 % 2]);
    }
}

static void generate_fused(case_list *list)
{
    static const char *const lines[] = {
        "in=x:f32:1x1x1;w:f32:1x1x1",
        "activation=relu in=x:f32:1x1x1x1x1;w:f32:1x1x1x1x1;bias:f32:2x1;residual:f32:1x1x1x1x1",
        "activation=relu in=x:f32:0x3x5x5;w:f32:4x3x3x3;bias:f32:4;residual:f32:0x4x3x3",
        "activation=relu in=x:f32:2x0x5x5;w:f32:4x0x3x3;bias:f32:2x4;residual:f32:2x4x3x3",
        /* one and three axes, odd numbers of channels */
        "activation=silu stride=2 padding=1 in=x:f32:2x5x19;w:f32:7x5x3;bias:f32:2x7;"
        "residual:f32:2x7x10",
        "activation=relu padding=1,1,1 in=x:f32:1x3x5x6x7;w:f32:37x3x3x3x3;bias:f32:37;"
        "residual:f32:1x37x5x6x7",
        "activation=gelu activation_first=1 stride=1,2,1 in=x:f32:2x33x4x5x6;w:f32:35x33x1x1x1;"
        "residual:f32:2x35x4x3x6",
        /* sizes around those of tiles */
        "activation=relu padding=1,1 in=x:f32:1x16x16x16;w:f32:32x16x3x3;bias:f32:2x32;"
        "residual:f32:1x32x16x16",
        "activation=relu padding=1,1 in=x:f32:2x17x13x11;w:f32:65x17x3x3;bias:f32:2x65;"
        "residual:f32:2x65x13x11",
        "activation=tanh in=x:f32:2x64x9x13;w:f32:129x64x1x1;bias:f32:2x129;"
        "residual:f32:2x129x9x13",
        "activation=relu in=x:f32:3x40x4x5;w:f32:33x40x1x1;bias:f32:2x33;residual:f32:3x33x4x5",
        "activation=relu groups=2 padding=1,1 in=x:f32:2x66x8x8;w:f32:70x33x3x3;bias:f32:2x70;"
        "residual:f32:2x70x8x8",
        "activation=relu padding=1,1 in=x:f32:2x64x7x7;w:f32:40x64x3x3;bias:f32:40;"
        "residual:f32:2x40x7x7",
        "activation=sigmoid stride=2,2 padding=3,3 in=x:f32:1x3x32x32;w:f32:24x3x7x7;bias:f32:24",
        /* sums in parts */
        "activation=relu in=x:f32:1x1200x1x1:unit;w:f32:10x1200x1x1:unit;bias:f32:2x10;"
        "residual:f32:1x10x1x1",
        "activation=silu activation_first=1 padding=1,1 in=x:f32:1x130x3x3:unit;"
        "w:f32:20x130x3x3:unit;bias:f32:20;residual:f32:1x20x3x3",
        /* depthwise, also with several outputs a channel */
        "activation=relu groups=37 padding=1,1 in=x:f32:3x37x9x9;w:f32:37x1x3x3;bias:f32:2x37;"
        "residual:f32:3x37x9x9",
        "activation=silu groups=6 padding=3,3 in=x:f32:2x6x28x28;w:f32:6x1x7x7;bias:f32:2x6;"
        "residual:f32:2x6x28x28",
        "activation=relu groups=5 padding=2,2 in=x:f32:2x5x14x14;w:f32:15x1x5x5;bias:f32:15",
        /* values of several kinds */
        "activation=relu padding=1,1 in=x:f32:2x5x6x6:special;w:f32:33x5x3x3;bias:f32:2x33;"
        "residual:f32:2x33x6x6",
        "activation=relu padding=1,1 in=x:f32:2x5x6x6;w:f32:33x5x3x3:special;bias:f32:33",
        "activation=relu padding=1,1 in=x:f32:2x5x6x6;w:f32:33x5x3x3;bias:f32:33:special;"
        "residual:f32:2x33x6x6",
        "activation=relu padding=1,1 in=x:f32:2x5x6x6;w:f32:33x5x3x3;bias:f32:33;"
        "residual:f32:2x33x6x6:special",
        "activation=gelu padding=1,1 activation_first=1 in=x:f32:2x5x6x6:special;w:f32:33x5x3x3;"
        "residual:f32:2x33x6x6",
        "groups=4 padding=1,1 in=x:f32:1x4x8x8;w:f32:4x1x3x3:special;bias:f32:2x4;"
        "residual:f32:1x4x8x8",
        "activation=relu padding=1,1 in=x:f32:2x5x9x9:integers;w:f32:33x5x3x3:integers;"
        "bias:f32:2x33:integers;residual:f32:2x33x9x9:integers",
        "activation=relu padding=1,1 in=x:f32:1x6x9x9;w:f16:10x6x3x3;bias:f16:10",
        /* views */
        "activation=relu shift=1 residual_shift=1 padding=1,1 in=x:f32:3x5x7x7;w:f32:9x5x3x3;"
        "bias:f32:2x9;residual:f32:3x9x7x7",
        "activation=relu shift=1 residual_shift=1 groups=3 padding=1,1 in=x:f32:3x3x6x7;"
        "w:f32:3x1x3x3;bias:f32:2x3;residual:f32:3x3x6x7",
        /* must be refused */
        "expect=E_ATTR activation=swish in=x:f32:1x3x5x5;w:f32:4x3x3x3",
        "expect=E_SHAPE in=x:f32:1x3x5x5;w:f32:4x3x3x3;bias:f32:3",
        "expect=E_SHAPE in=x:f32:1x3x5x5;w:f32:4x3x3x3;bias:f32:4x2",
        "expect=E_SHAPE in=x:f32:1x3x5x5;w:f32:4x3x3x3;bias:f32:3x4",
        "expect=E_SHAPE in=x:f32:1x3x5x5;w:f32:4x3x3x3;residual:f32:1x4x1x1",
        "expect=E_SHAPE in=x:f32:1x3x5x5;w:f32:4x3x3x3;residual:f32:4x3x3",
        "expect=E_ATTR output_padding=1,0 in=x:f32:1x3x5x5;w:f32:4x3x3x3",
        "expect=E_DTYPE in=x:f32:1x3x5x5;w:f32:4x3x3x3;residual:u8:1x4x3x3:bytes",
    };
    generate_activations(list);
    case_add_all(list, "fused_conv", lines, COUNT(lines));
}

static void generate_columns(case_list *list)
{
    static const char *const forward[] = {
        "kernel=1,1 in=x:f32:1x1x1x1",
        "kernel=1,1 in=x:f32:2x3x4x5",
        "kernel=3,3 padding=1,1 in=x:f32:2x3x4x5",
        "kernel=3,2 stride=2,1 padding=0,1 dilation=1,2 in=x:f32:2x3x7x6",
        "kernel=4,5 in=x:f32:2x3x4x5",
        "kernel=2,2 stride=3,4 in=x:f32:1x3x9x10",
        "kernel=3,3 padding=5,6 in=x:f32:1x1x1x1",
        "kernel=3,3 padding=1,1 in=x:f32:2x3x6x6:special",
        "kernel=2,3 in=x:f32:0x3x4x5",
        "kernel=2,3 in=x:f32:2x0x4x5",
        "kernel=2,3 padding=1,2 in=x:f32:2x3x0x5",
        "kernel=3,3 shift=1 in=x:f32:3x5x7x7",
        "kernel=3,3 padding=1,1 in=x:i32:1x5x7x7:integers",
        "kernel=3,3 stride=2,2 padding=1,1 in=x:f32:3x9x31x33",
        "kernel=7,7 stride=2,2 padding=3,3 in=x:f32:1x3x40x40",
    };
    static const char *const back[] = {
        "kernel=1,1 size=1,1 in=x:f32:1x1",
        "kernel=1,1 size=4,5 in=x:f32:40x3",
        "kernel=3,3 padding=1,1 size=4,5 in=x:f32:40x27",
        "kernel=3,2 stride=2,1 padding=0,1 dilation=1,2 size=7,6 in=x:f32:36x18",
        "kernel=4,5 size=4,5 in=x:f32:2x60",
        "kernel=2,2 stride=3,4 size=9,10 in=x:f32:9x12", /* cells in no window */
        "kernel=3,3 padding=5,6 size=1,1 in=x:f32:99x9",
        "kernel=3,3 padding=1,1 size=6,6 in=x:f32:72x27:special",
        "kernel=3,3 padding=1,1 size=6,6 in=x:f32:72x27:integers",
        "kernel=3,3 padding=1,1 size=6,6 in=x:f32:72x27:large",
        "kernel=2,3 size=4,5 in=x:f32:0x18",
        "kernel=2,3 size=4,5 in=x:f32:18x0",
        "kernel=2,3 padding=1,2 size=0,5 in=x:f32:14x18",
        "kernel=3,3 size=5,5 shift=9 in=x:f32:18x36",
        "kernel=3,3 stride=2,2 padding=1,1 size=31,33 in=x:f32:816x81",
    };
    for (int i = 0; i < 24; i++) {
        int kernel = 1 + i % 3, stride = 1 + i / 3 % 2, padding = i / 6 % 2, dilation = 1 + i / 12;
        int span = (kernel - 1) * dilation + 1, high = (7 + 2 * padding - span) / stride + 1,
            wide = (8 + 2 * padding - span) / stride + 1;
        case_add(list,
                 "im2col kernel=%d,%d stride=%d,%d padding=%d,%d dilation=%d,%d in=x:f32:2x3x7x8",
                 kernel, kernel, stride, stride, padding, padding, dilation, dilation);
        case_add(list,
                 "col2im kernel=%d,%d stride=%d,%d padding=%d,%d dilation=%d,%d size=7,8 "
                 "in=x:f32:%dx%d",
                 kernel, kernel, stride, stride, padding, padding, dilation, dilation,
                 2 * high * wide, 3 * kernel * kernel);
    }
    case_add_all(list, "im2col", forward, COUNT(forward));
    case_add_all(list, "col2im", back, COUNT(back));
}

static void generate_refusals(case_list *list)
{
    static const char *const lines[] = {
        "conv expect=E_SHAPE in=x:f32:3x5;w:f32:3x5",
        "conv expect=E_SHAPE in=x:f32:1x1x2x2x2x2;w:f32:1x1x1x1x1x1",
        "conv expect=E_SHAPE in=x:f32:1x3x5x5;w:f32:4x3x3",
        "conv expect=E_SHAPE in=x:f32:1x3x5x5;w:f32:4x2x3x3",
        "conv expect=E_SHAPE in=x:f32:1x3x5x5;w:f32:4x3x6x3",
        "conv expect=E_SHAPE padding=1,1 in=x:f32:1x3x5x5;w:f32:4x3x3x8",
        "conv expect=E_SHAPE dilation=3,1 in=x:f32:1x3x5x5;w:f32:4x3x3x3",
        "conv expect=E_SHAPE in=x:f32:1x3x0;w:f32:4x3x1",
        "conv expect=E_SHAPE groups=2 in=x:f32:1x3x5x5;w:f32:4x1x3x3",
        "conv expect=E_SHAPE groups=2 in=x:f32:1x4x5x5;w:f32:5x2x3x3",
        "conv expect=E_SHAPE kernel=3,2 in=x:f32:1x3x5x5;w:f32:4x3x3x3",
        "conv expect=E_SHAPE in=x:f32:1x3x5x5;w:f32:4x3x3x3;bias:f32:3",
        "conv expect=E_SHAPE in=x:f32:1x3x5x5;w:f32:4x3x3x3;bias:f32:4x1",
        "conv expect=E_ATTR in=x:f32:1x3x5x5;w:f32:4x3x0x3",
        "conv expect=E_ATTR kernel=-3,3 in=x:f32:1x3x5x5;w:f32:4x3x3x3",
        "conv expect=E_ATTR stride=-1,1 in=x:f32:1x3x5x5;w:f32:4x3x3x3",
        "conv expect=E_ATTR padding=0,-1 in=x:f32:1x3x5x5;w:f32:4x3x3x3",
        "conv expect=E_ATTR dilation=1,-1 in=x:f32:1x3x5x5;w:f32:4x3x3x3",
        "conv expect=E_ATTR groups=-1 in=x:f32:1x3x5x5;w:f32:4x3x3x3",
        "conv expect=E_ATTR stride=1,1,1 in=x:f32:1x3x5x5;w:f32:4x3x3x3",
        "conv expect=E_ATTR output_padding=1,0 in=x:f32:1x3x5x5;w:f32:4x3x3x3",
        "conv expect=E_TOO_LARGE padding=2000000000 in=x:f32:1x3x5;w:f32:4x3x3",
        "conv expect=E_TOO_LARGE padding=30000,30000 in=x:f32:1x3x5x5;w:f32:4x3x3x3",
        "conv expect=E_DTYPE in=x:u8:1x3x5x5:bytes;w:f32:4x3x3x3",
        "conv expect=E_DTYPE in=x:c64:1x3x5x5;w:f32:4x3x3x3",
        "conv_transpose2d expect=E_SHAPE in=x:f32:3x5;w:f32:3x5",
        "conv_transpose2d expect=E_SHAPE in=x:f32:1x3x5x5;w:f32:4x3x3x3",
        "conv_transpose2d expect=E_SHAPE groups=2 in=x:f32:1x3x5x5;w:f32:3x3x3x3",
        "conv_transpose2d expect=E_SHAPE padding=3,3 in=x:f32:1x3x3x3;w:f32:3x4x3x3",
        "conv_transpose2d expect=E_SHAPE groups=2 in=x:f32:1x4x3x3;w:f32:4x3x3x3;bias:f32:3",
        "conv_transpose2d expect=E_ATTR output_padding=1,1 in=x:f32:1x3x3x3;w:f32:3x4x3x3",
        "conv_transpose2d expect=E_ATTR stride=2 output_padding=2 in=x:f32:1x3x3;w:f32:3x4x3",
        "conv_transpose2d expect=E_ATTR stride=2 output_padding=-1 in=x:f32:1x3x3;w:f32:3x4x3",
        "conv_transpose2d expect=E_TOO_LARGE stride=2000000000 in=x:f32:1x3x5;w:f32:3x4x3",
        "im2col expect=E_SHAPE kernel=2,2 in=x:f32:3x5x5",
        "im2col expect=E_SHAPE kernel=6,2 in=x:f32:1x3x5x5",
        "im2col expect=E_ATTR in=x:f32:1x3x5x5",
        "im2col expect=E_ATTR kernel=2,2,2 in=x:f32:1x3x5x5",
        "im2col expect=E_ATTR kernel=2,2 groups=3 in=x:f32:1x3x5x5",
        "im2col expect=E_ATTR kernel=2,2 stride=1,-2 in=x:f32:1x3x5x5",
        "col2im expect=E_SHAPE kernel=2,2 size=5,5 in=x:f32:16x12x1",
        "col2im expect=E_SHAPE kernel=2,2 size=5,5 in=x:f32:17x12",
        "col2im expect=E_SHAPE kernel=2,2 size=5,5 in=x:f32:16x13",
        "col2im expect=E_SHAPE kernel=6,2 size=5,5 in=x:f32:16x12",
        "col2im expect=E_ATTR kernel=2,2 size=-5,5 in=x:f32:16x12",
        "col2im expect=E_ATTR size=5,5 in=x:f32:16x12",
    };
    case_add_all(list, "", lines, COUNT(lines));
}

/* So few weights that a single one may be NaN or infinite. Whichever it is, taps outside the input
 * are skipped. */
static void generate_lone_weights(case_list *list)
{
    static const char *const tiles[] = {"tiled_32x32", "tiled_64x64"};
    for (int i = 0; i < 12; i++)
        case_add(list, "conv padding=%s variant=conv=%s in=x:f32:1x1x4x%d;w:f32:1x1x%s:special",
                 i % 3 ? "1,1" : "0,1", tiles[i % 2], 3 + i, i % 3 ? "3x3" : "1x3");
}

/* The opt-in precisions: one to three axes, groups, every kind of window, channels that are whole
 * octets or not, splits of K, and epilogues. Devices without matrix units run them on the f32
 * kernels. */
static void generate_precisions(case_list *list)
{
    static const char *const lines[] = {
        "conv padding=1,1 in=x:f32:2x16x9x7;w:f32:20x16x3x3;bias:f32:20",
        "conv in=x:f32:2x64x6x6;w:f32:48x64x1x1",
        "conv padding=1,1 in=x:f32:1x128x8x8;w:f32:40x128x3x3",
        "conv stride=2,2 padding=3,3 in=x:f32:2x3x30x31;w:f32:24x3x7x7;bias:f32:24",
        "conv stride=2,1 dilation=1,2 padding=2,0 in=x:f32:2x33x11x14;w:f32:70x33x3x4",
        "conv padding=1,1,1 in=x:f32:1x9x6x5x7;w:f32:36x9x3x3x3",
        "conv stride=1,2,1 padding=0,1,2 in=x:f32:2x96x4x5x6;w:f32:33x96x2x3x2;bias:f32:33",
        "conv padding=4 in=x:f32:3x24x150;w:f32:40x24x9",
        "conv padding=40 in=x:f32:1x16x150;w:f32:16x16x80",
        "conv groups=2 padding=1,1 in=x:f32:2x64x8x8;w:f32:70x32x3x3;bias:f32:70",
        "conv groups=3 in=x:f32:2x60x5x8;w:f32:51x20x1x1",
        "conv groups=4 padding=1,1 in=x:f32:2x32x8x8;w:f32:64x8x3x3", /* stays f32 */
        "conv in=x:f32:2x640x6x6:unit;w:f32:20x640x3x3:unit;bias:f32:20",
        "conv padding=1,1 in=x:f32:2x32x8x8:integers;w:f32:32x32x3x3:integers",
        "conv padding=1,1 in=x:f32:1x64x12x12:positive;w:f32:64x64x3x3:positive",
        "conv shift=1 w_shift=1 padding=1,1 in=x:f32:3x32x7x7;w:f32:33x32x3x3;bias:f32:32",
        "conv padding=1,1 in=x:f32:1x16x9x9;w:f16:20x16x3x3",
        "conv padding=1,1 in=x:f32:1x16x9x9:special;w:f32:20x16x3x3",
        "conv padding=1,1 in=x:f32:1x16x9x9;w:f32:20x16x3x3:special",
        "conv_transpose2d stride=2,2 padding=1,1 in=x:f32:2x20x7x6;w:f32:20x40x4x4;bias:f32:40",
        "conv_transpose2d stride=3,2 dilation=2,1 output_padding=2,1 in=x:f32:2x64x4x5;"
        "w:f32:64x18x3x3",
        "conv_transpose2d padding=1,1 in=x:f32:1x32x9x9;w:f32:32x24x3x3",
        "conv_transpose2d groups=2 stride=5,4 in=x:f32:1x36x8x8;w:f32:36x35x3x2;bias:f32:70",
        "conv_transpose2d stride=2 padding=1 in=x:f32:2x40x19;w:f32:40x33x4",
        "fused_conv activation=relu padding=1,1 in=x:f32:2x17x13x11;w:f32:65x17x3x3;"
        "bias:f32:2x65;residual:f32:2x65x13x11",
        "fused_conv activation=relu activation_first=1 in=x:f32:2x32x8x8;w:f32:40x32x1x1;"
        "bias:f32:40;residual:f32:2x40x8x8",
        "fused_conv activation=silu padding=1,1 in=x:f32:2x32x7x9;w:f32:40x32x3x3;bias:f32:40",
        "fused_conv activation=relu padding=1,1 residual_shift=1 in=x:f32:1x640x4x4:unit;"
        "w:f32:40x640x3x3:unit;residual:f32:2x40x4x4",
    };
    for (rlxvk_precision p = RLXVK_PRECISION_F16; p <= RLXVK_PRECISION_SPLIT; p++)
        for (size_t i = 0; i < COUNT(lines); i++) {
            const char *rest = strchr(lines[i], ' ');
            case_add(list, "%.*s precision=%s%s", (int)(rest - lines[i]), lines[i],
                     rlxvk_precision_name(p), rest);
        }
}

static void generate(case_list *list)
{
    generate_windows(list);
    generate_forward(list);
    generate_edges(list);
    generate_transposed(list);
    generate_fused(list);
    generate_tiles(list);
    generate_columns(list);
    generate_refusals(list);
    generate_lone_weights(list);
    generate_precisions(list);
}

static const char *const rows[] = {"conv",   "conv_transpose2d", "fused_conv",
                                   "im2col", "col2im",           NULL};

const case_family conv_cases = {.rows = rows, .build = build, .generate = generate};
