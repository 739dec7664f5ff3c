/*
 * Cases of the gradients of pools and convolutions:
 *   pool_*_backward, pool_*_take   kernel, stride, padding, padding_after, dilation, ceil; in=x, dy
 *                                  or values
 *   conv_backward_input            input_size, stride, padding, dilation, groups; in=w;dy
 *   conv_backward_weight           kernel, stride, padding, dilation, groups; in=x;dy
 *
 * shift=n drops the first n of axis 0 of the first operand by a view, dy_shift=n those of dy.
 */
#include "conform/cases/cases.h"

#include <stdio.h>
#include <string.h>

static rlxvk_tensor build_pool(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x, rlxvk_tensor dy)
{
    rlxvk_pool_options o = {0};
    case_windows(s, &o);
    bool largest = strncmp(s->row, "pool_max", 8) == 0;
    if (strstr(s->row, "_take"))
        return (largest ? rlxvk_pool_max_take : rlxvk_pool_min_take)(g, x, dy, &o);
    return (largest ? rlxvk_pool_max_backward : rlxvk_pool_min_backward)(g, x, dy, &o);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    bool of_input = strcmp(s->row, "conv_backward_input") == 0;
    rlxvk_tensor first = case_tensor(s, inputs, of_input ? "w" : "x");
    rlxvk_tensor dy = case_tensor(s, inputs, strstr(s->row, "_take") ? "values" : "dy");
    dy = case_shifted(g, s, "dy_shift", dy);
    rlxvk_conv_options o = {.groups = case_integer(s, "groups", 0)};
    int64_t size[3] = {0};
    first = case_shifted(g, s, "shift", first);
    if (strncmp(s->row, "pool", 4) == 0)
        return build_pool(g, s, first, dy);
    case_entries(s, "kernel", o.kernel);
    case_entries(s, "stride", o.stride);
    case_entries(s, "padding", o.padding);
    case_entries(s, "dilation", o.dilation);
    case_entries(s, "output_padding", o.output_padding);
    case_entries(s, "input_size", size);
    return of_input ? rlxvk_conv_backward_input(g, first, dy, size, &o)
                    : rlxvk_conv_backward_weight(g, first, dy, &o);
}

/* ---- Pools ---- */

static void generate_pools(case_list *list, const char *row)
{
    static const char *const lines[] = {
        "kernel=1 in=x:f32:1x1x1;dy:f32:1x1x1",
        "kernel=3 stride=2 padding=1 in=x:f32:1x1x5:iota;dy:f32:1x1x3",
        "kernel=3 padding=1 in=x:f32:2x3x17:special;dy:f32:2x3x17:special",
        "kernel=4 stride=3 padding=2 in=x:f32:2x3x17;dy:f32:2x3x6",
        "kernel=2 stride=2 in=x:f32:2x3x16:integers;dy:f32:2x3x8",
        "kernel=11 stride=5 padding=1 in=x:f32:2x3x9:special;dy:f32:2x3x1",
        "kernel=2 stride=9 in=x:f32:2x3x4;dy:f32:2x3x1",
        "kernel=2 in=x:f32:3x2x9;dy:f32:3x2x8:integers",
        "kernel=2,2 stride=2,2 in=x:f32:2x3x8x9;dy:f32:2x3x4x4",
        /* equal cells: the first one gets the gradient */
        "kernel=3,3 stride=2,2 padding=1,1 in=x:f32:2x3x7x9:constant:-5;dy:f32:2x3x4x5",
        "kernel=3,3 padding=1,1 in=x:f32:2x3x7x9:integers;dy:f32:2x3x7x9:large",
        "kernel=3,2 stride=1,3 padding=1,0 in=x:f32:2x3x7x9:special;dy:f32:2x3x7x3",
        /* windows with only -Inf */
        "kernel=1,5 padding=0,2 in=x:f32:2x3x7x9:neginf;dy:f32:2x3x7x9",
        "kernel=5,5 padding=2,2 in=x:f32:1x2x33x65;dy:f32:1x2x33x65",
        "kernel=7,7 in=x:f32:2x2x7x7;dy:f32:2x2x1x1",
        /* a workgroup for each window */
        "kernel=101,67 stride=9,9 in=x:f32:1x3x101x67:integers;dy:f32:1x3x1x1",
        "kernel=300 stride=150 padding=150 in=x:f32:2x2x700:special;dy:f32:2x2x5",
        "kernel=7,7,7 stride=3,3,3 padding=3,3,3 in=x:f32:1x2x8x9x7:integers;dy:f32:1x2x3x3x3",
        "kernel=40,20 padding=20,10 in=x:f32:1x1x21x11:neginf;dy:f32:1x1x22x12",
        "kernel=3,3 stride=2,2 padding=1,1 in=x:f32:2x70x37x35;dy:f32:2x70x19x18",
        "kernel=2,2,2 stride=2,2,2 in=x:f32:1x2x4x6x8:integers;dy:f32:1x2x2x3x4",
        "kernel=3,3,3 stride=2,2,2 padding=1,1,1 in=x:f32:2x3x5x7x6:special;dy:f32:2x3x3x4x3",
        "kernel=1,2,3 stride=1,1,2 padding=0,1,1 in=x:f32:2x1x5x4x9;dy:f32:2x1x5x5x5",
        /* blocks of cells in registers, in quads */
        "kernel=3,3 stride=2,2 padding=1,1 in=x:f32:2x3x13x16:special;dy:f32:2x3x7x8:special",
        "kernel=3,3 padding=1,1 in=x:f32:2x3x6x8:integers;dy:f32:2x3x6x8",
        "kernel=2,2 stride=2,2 in=x:f32:2x3x9x12:special;dy:f32:2x3x4x6",
        "kernel=4,3 stride=3,4 padding=2,1 in=x:f32:1x2x11x20:integers;dy:f32:1x2x4x5",
        "kernel=1,6 stride=1,2 padding=0,3 in=x:f32:1x2x3x20:special;dy:f32:1x2x3x11",
        "kernel=2,2 stride=4,4 in=x:f32:1x2x9x20:integers;dy:f32:1x2x2x5",
        "kernel=3,3 stride=2,2 padding=1,1 shift=1 in=x:f32:3x1x6x6:neginf;dy:f32:2x1x3x3",
        /* dilation, unequal or large padding, and windows beyond the padding */
        "kernel=2 dilation=3 in=x:f32:1x1x5:iota;dy:f32:1x1x2",
        "kernel=3 stride=2 dilation=2 padding=2 in=x:f32:2x3x17:special;dy:f32:2x3x9",
        "kernel=3,3 dilation=2,2 in=x:f32:2x3x7x9:integers;dy:f32:2x3x3x5",
        "kernel=2,3 stride=1,2 dilation=3,1 padding=2,1 padding_after=1,0 ceil=1 "
        "in=x:f32:2x3x7x8:special;dy:f32:2x3x7x4",
        "kernel=2,2,2 dilation=2,1,3 stride=1,2,1 padding=1,0,1 ceil=1 "
        "in=x:f32:1x2x4x5x6:integers;dy:f32:1x2x4x3x5",
        "kernel=30,20 dilation=2,3 stride=7,5 padding=9,20 in=x:f32:1x2x50x40:special;"
        "dy:f32:1x2x2x5",
        "kernel=3,3 stride=2,2 padding=1,1 padding_after=0,2 in=x:f32:2x3x8x12;dy:f32:2x3x4x7",
        "kernel=3,3 stride=2,2 ceil=1 in=x:f32:2x3x8x12:special;dy:f32:2x3x4x6",
        "kernel=3,3 stride=2,2 padding=1,1 ceil=1 in=x:f32:2x3x8x12:integers;dy:f32:2x3x5x7",
        "kernel=2,2 padding=3,3 padding_after=2,4 in=x:f32:1x2x3x4;dy:f32:1x2x7x10",
        "kernel=1,1 padding=2,1 in=x:f32:1x2x3x4:special;dy:f32:1x2x7x6",
        "kernel=2 padding=5 in=x:f32:2x3x4;dy:f32:2x3x13",
        "kernel=2 in=x:f32:0x3x9;dy:f32:0x3x8",
        "kernel=2,2 in=x:f32:2x0x9x4;dy:f32:2x0x8x3",
        "kernel=2 padding=1 in=x:f32:2x3x0;dy:f32:2x3x1",
        "kernel=3,3 shift=1 dy_shift=2 in=x:f32:3x3x7x5;dy:f32:4x3x5x3",
        "kernel=3 in=x:f16:2x3x7;dy:f32:2x3x5",
        "expect=E_SHAPE kernel=3 in=x:f32:2x3x7;dy:f32:2x3x4",
        "expect=E_SHAPE kernel=3 in=x:f32:3x7;dy:f32:3x5",
        "expect=E_SHAPE kernel=9 in=x:f32:2x3x7;dy:f32:2x3x1",
        "expect=E_ATTR in=x:f32:2x3x7;dy:f32:2x3x7",
        "expect=E_DTYPE kernel=3 in=x:c64:2x3x7;dy:f32:2x3x5",
    };
    case_add_all(list, row, lines, COUNT(lines));
}

static void generate_takes(case_list *list, const char *row)
{
    static const char *const lines[] = {
        "kernel=1 in=x:f32:1x1x1;values:f32:1x1x1",
        "kernel=3 stride=2 padding=1 in=x:f32:1x1x5:iota;values:f32:1x1x5",
        "kernel=3 padding=1 in=x:f32:2x3x17:special;values:f32:2x3x17:special",
        "kernel=11 stride=5 padding=1 in=x:f32:2x3x9:special;values:f32:2x3x9",
        "kernel=2,2 stride=2,2 in=x:f32:2x3x8x9;values:f32:2x3x8x9",
        "kernel=3,3 stride=2,2 padding=1,1 in=x:f32:2x3x7x9:constant:-5;values:f32:2x3x7x9",
        "kernel=3,3 padding=1,1 in=x:f32:2x3x7x9:integers;values:f32:2x3x7x9:large",
        "kernel=1,5 padding=0,2 in=x:f32:2x3x7x9:neginf;values:f32:2x3x7x9",
        "kernel=101,67 stride=9,9 in=x:f32:1x3x101x67:integers;values:f32:1x3x101x67",
        "kernel=300 stride=150 padding=150 in=x:f32:2x2x700:special;values:f32:2x2x700",
        "kernel=40,20 padding=20,10 in=x:f32:1x1x21x11:neginf;values:f32:1x1x21x11",
        "kernel=3,3 stride=2,2 padding=1,1 in=x:f32:2x70x37x35;values:f32:2x70x37x35",
        "kernel=3,3,3 stride=2,2,2 padding=1,1,1 in=x:f32:2x3x5x7x6:special;values:f32:2x3x5x7x6",
        "kernel=2 dilation=3 in=x:f32:1x1x5:iota;values:f32:1x1x5",
        "kernel=2,3 stride=1,2 dilation=3,1 padding=2,1 padding_after=1,0 ceil=1 "
        "in=x:f32:2x3x7x8:special;values:f32:2x3x7x8",
        "kernel=30,20 dilation=2,3 stride=7,5 padding=9,20 in=x:f32:1x2x50x40:special;"
        "values:f32:1x2x50x40",
        "kernel=2 padding=5 in=x:f32:2x3x4;values:f32:2x3x4",
        "kernel=2 in=x:f32:0x3x9;values:f32:0x3x9",
        "kernel=2 padding=1 in=x:f32:2x3x0;values:f32:2x3x0",
        "kernel=3,3 shift=1 dy_shift=2 in=x:f32:3x3x7x5;values:f32:4x3x7x5",
        "kernel=3 in=x:f16:2x3x7;values:f32:2x3x7",
        "expect=E_SHAPE kernel=3 in=x:f32:2x3x7;values:f32:2x3x5",
        "expect=E_SHAPE kernel=9 in=x:f32:2x3x7;values:f32:2x3x7",
        "expect=E_ATTR in=x:f32:2x3x7;values:f32:2x3x7",
        "expect=E_DTYPE kernel=3 in=x:c64:2x3x7;values:f32:2x3x7",
    };
    case_add_all(list, row, lines, COUNT(lines));
}

/* ---- Convolutions ---- */

/* Adds cases with windows over x [2, 6, ...] to 12 channels, the same on every axis. `less` is by
 * how much the windows are fewer than fit. */
static void add_windows(case_list *list, int axes, int number)
{
    static const int sizes[] = {9, 7, 8}, groups[] = {1, 2, 6};
    int kernel = 1 + number % 3, stride = 1 + number / 3 % 2, padding = number / 6 % 3;
    int dilation = 1 + number / 18 % 2, group = groups[number % 7 % 3], less = number % 5 == 4;
    char in[32] = "", out[32] = "", taps[32] = "", size[32] = "", values[3][16] = {"", "", ""};
    for (int i = 0; i < axes; i++) {
        int span = dilation * (kernel - 1) + 1;
        int count = (sizes[i] + 2 * padding - span) / stride + 1 - less;
        const char *comma = i ? "," : "";
        snprintf(in + strlen(in), sizeof in - strlen(in), "x%d", sizes[i]);
        snprintf(out + strlen(out), sizeof out - strlen(out), "x%d", count);
        snprintf(taps + strlen(taps), sizeof taps - strlen(taps), "%s%d", comma, kernel);
        snprintf(size + strlen(size), sizeof size - strlen(size), "%s%d", comma, sizes[i]);
        const int each[] = {stride, padding, dilation};
        for (int k = 0; k < 3; k++)
            snprintf(values[k] + strlen(values[k]), sizeof values[k] - strlen(values[k]), "%s%d",
                     comma, each[k]);
    }
    case_add(list,
             "conv_backward_weight kernel=%s stride=%s padding=%s dilation=%s groups=%d "
             "in=x:f32:2x6%s:unit;dy:f32:2x12%s:unit",
             taps, values[0], values[1], values[2], group, in, out);
    for (char *c = taps; *c; c++)
        if (*c == ',')
            *c = 'x';
    case_add(list,
             "conv_backward_input input_size=%s stride=%s padding=%s dilation=%s groups=%d "
             "in=w:f32:12x%dx%s:unit;dy:f32:2x12%s:unit",
             size, values[0], values[1], values[2], group, 6 / group, taps, out);
}

static void generate_inputs(case_list *list)
{
    static const char *const lines[] = {
        "input_size=1 in=w:f32:1x1x1;dy:f32:1x1x1",
        "input_size=5,4 in=w:f32:7x3x5x4;dy:f32:2x7x1x1",
        "input_size=9,11 stride=1,3 padding=2,0 dilation=3,1 in=w:f32:5x3x2x4;dy:f32:2x5x10x3",
        "input_size=8,9 stride=5,4 in=w:f32:9x2x3x2;dy:f32:1x9x2x2", /* cells in no window */
        "input_size=7,6,8 stride=3,1,2 padding=0,2,1 dilation=1,2,3 in=w:f32:3x2x3x2x1;"
        "dy:f32:1x3x2x8x5",
        "input_size=12,12 stride=2,2 padding=1,1 in=w:f32:40x20x4x4;dy:f32:2x40x6x6",
        "input_size=9,9 padding=1,1 in=w:f32:65x33x3x3;dy:f32:2x65x9x9",
        "input_size=11,11 stride=2,2 padding=1,1 groups=8 in=w:f32:16x1x3x3;dy:f32:2x16x6x6",
        "input_size=1,1 in=w:f32:300x9x1x1:unit;dy:f32:1x300x1x1:unit",
        /* w is rotated */
        "input_size=48,48 padding=1,1 in=w:f32:24x24x3x3:unit;dy:f32:1x24x48x48:unit",
        "input_size=31,37 padding=2,1 dilation=2,1 groups=2 in=w:f32:70x20x3x4:unit;"
        "dy:f32:2x70x31x36:unit",
        "input_size=40,64 padding=3,3 groups=12 in=w:f32:12x1x7x7;dy:f32:7x12x40x64",
        "input_size=12,13,16 padding=0,1,2 in=w:f32:16x18x3x3x2:unit;dy:f32:1x16x10x13x19:unit",
        "input_size=2100 padding=1 shift=1 dy_shift=1 in=w:f32:40x40x5:unit;dy:f32:2x39x2098:unit",
        "input_size=48,48 padding=1,1 in=w:f32:24x24x3x3:special;dy:f32:1x24x48x48",
        /* values of several kinds */
        "input_size=5,5 stride=2,2 padding=1,1 in=w:f32:3x9x3x3:special;dy:f32:1x3x3x3",
        "input_size=5,5 stride=2,2 padding=1,1 in=w:f32:20x40x3x3:special;dy:f32:1x20x3x3",
        "input_size=7,7 in=w:f32:3x9x3x3;dy:f32:1x3x5x5:special",
        "input_size=7,7 in=w:f32:3x9x3x3:integers;dy:f32:2x3x5x5:integers",
        "input_size=7,7 in=w:f32:3x9x3x3:unit;dy:f32:1x3x5x5:large",
        "input_size=7,7 in=w:bf16:6x10x3x3;dy:f32:1x6x5x5",
        /* empty tensors */
        "input_size=7,7 in=w:f32:3x9x3x3;dy:f32:0x3x5x5",
        "input_size=7,7 in=w:f32:0x9x3x3;dy:f32:2x0x5x5",
        "input_size=7,7 in=w:f32:3x0x3x3;dy:f32:2x3x5x5",
        "input_size=0 padding=2 in=w:f32:3x4x3;dy:f32:2x3x2",
        "input_size=5,5 in=w:f32:3x4x3x3;dy:f32:2x3x0x3",
        "expect=E_SHAPE input_size=7,7 in=w:f32:3x9x3x3;dy:f32:1x3x6x5",
        "expect=E_SHAPE input_size=2,7 in=w:f32:3x9x3x3;dy:f32:1x3x1x5",
        "expect=E_SHAPE input_size=7,7 in=w:f32:3x9x3x3;dy:f32:1x4x5x5",
        "expect=E_SHAPE groups=2 input_size=7,7 in=w:f32:3x9x3x3;dy:f32:1x3x5x5",
        "expect=E_SHAPE input_size=7,7 in=w:f32:3x9x3;dy:f32:1x3x5x5",
        "expect=E_ATTR input_size=-7,7 in=w:f32:3x9x3x3;dy:f32:1x3x5x5",
        "expect=E_ATTR stride=-1,1 input_size=7,7 in=w:f32:3x9x3x3;dy:f32:1x3x5x5",
        "expect=E_ATTR output_padding=1,1 input_size=7,7 in=w:f32:3x9x3x3;dy:f32:1x3x5x5",
    };
    case_add_all(list, "conv_backward_input", lines, COUNT(lines));
}

static void generate_weights(case_list *list)
{
    static const char *const lines[] = {
        "kernel=1 in=x:f32:1x1x1;dy:f32:1x1x1",
        "kernel=5,4 in=x:f32:2x3x5x4;dy:f32:2x7x1x1",
        "kernel=2,4 stride=1,3 padding=2,0 dilation=3,1 in=x:f32:2x3x9x11;dy:f32:2x5x10x3",
        "kernel=3,2,1 stride=3,1,2 padding=0,2,1 dilation=1,2,3 in=x:f32:1x2x7x6x8;"
        "dy:f32:1x3x2x8x5",
        /* many images and windows: the sum is computed in parts */
        "kernel=3,3 padding=1,1 in=x:f32:8x5x20x20:unit;dy:f32:8x7x20x20:unit",
        "kernel=3,3 stride=2,2 padding=1,1 in=x:f32:3x17x33x31:unit;dy:f32:3x40x17x16:unit",
        "kernel=7,7 stride=2,2 padding=3,3 in=x:f32:2x3x64x64:unit;dy:f32:2x24x32x32:unit",
        "kernel=3 padding=1 in=x:f32:5x33x129:unit;dy:f32:5x70x129:unit",
        "kernel=3,3 padding=1,1 groups=2 in=x:f32:4x66x8x8;dy:f32:4x70x8x8",
        "kernel=3,3 padding=1,1 groups=37 in=x:f32:3x37x19x19;dy:f32:3x37x19x19",
        "kernel=3,3 padding=1,1 groups=5 in=x:f32:2x5x40x40;dy:f32:2x15x40x40",
        "kernel=5,5 stride=2,1 dilation=1,2 padding=2,4 groups=6 in=x:f32:2x6x67x70;"
        "dy:f32:2x12x34x70",
        "kernel=3 padding=1 groups=3 in=x:f32:4x3x5000:unit;dy:f32:4x3x5000:unit",
        "kernel=3,3,2 padding=1,1,1 in=x:f32:2x9x6x6x6;dy:f32:2x36x6x6x7",
        "kernel=1,1 in=x:f32:70000x1x1x1:one;dy:f32:70000x2x1x1:one",
        /* windows of one cell: four elements of K at a time, also if they are not quads */
        "kernel=1,1 in=x:f32:3x40x6x6;dy:f32:3x70x6x6",
        "kernel=1,1 in=x:f32:3x37x5x5;dy:f32:3x33x5x5",
        "kernel=1,1 shift=1 dy_shift=2 in=x:f32:3x33x6x6;dy:f32:4x35x6x6:special",
        "kernel=1 groups=2 in=x:f32:2x18x260:unit;dy:f32:2x70x260:unit",
        "kernel=1,1 stride=2,2 in=x:f32:2x12x8x8;dy:f32:2x40x4x4",
        "kernel=1,1 in=x:f32:2x12x8x8;dy:f32:2x40x7x8",
        /* as many taps along the axes as a word has bits, and more */
        "kernel=3,3 in=x:f32:1x2x17x17;dy:f32:1x35x15x15",
        "kernel=3,3 in=x:f32:1x2x17x18;dy:f32:1x35x15x16",
        "kernel=2,2,2 in=x:f32:1x2x11x11x12;dy:f32:1x3x10x10x11",
        "kernel=2,2,2 in=x:f32:1x2x11x12x12;dy:f32:1x33x10x11x11",
        /* values of several kinds: taps outside the input are skipped, whatever dy is */
        "kernel=3,3 padding=1,1 in=x:f32:1x3x6x5;dy:f32:1x9x6x5:special",
        "kernel=3,3 padding=1,1 in=x:f32:2x40x6x6;dy:f32:2x40x6x6:special",
        "kernel=3,3 padding=1,1 in=x:f32:2x5x6x6:special;dy:f32:2x33x6x6",
        "kernel=3,3 padding=1,1 in=x:f32:2x5x9x9:integers;dy:f32:2x33x9x9:integers",
        "kernel=3,3 padding=1,1 in=x:f32:1x6x9x9:large;dy:f32:1x10x9x9:unit",
        "kernel=3,3 padding=1,1 in=x:f32:1x6x9x9:offset;dy:f32:1x10x9x9:offset",
        "kernel=3,3 padding=1,1 in=x:f16:2x5x9x9;dy:f32:2x33x9x9",
        "shift=1 kernel=3,3 padding=1,1 in=x:f32:3x5x7x7;dy:f32:2x9x7x7",
        /* empty tensors */
        "kernel=3,3 in=x:f32:0x3x5x5;dy:f32:0x4x3x3",
        "kernel=3,3 in=x:f32:2x0x5x5;dy:f32:2x4x3x3",
        "kernel=3,3 in=x:f32:2x3x5x5;dy:f32:2x0x3x3",
        "kernel=3 padding=2 in=x:f32:2x3x0;dy:f32:2x4x2",
        "kernel=3,3 in=x:f32:2x3x5x5;dy:f32:2x4x0x3",
        "expect=E_ATTR in=x:f32:2x3x5x5;dy:f32:2x4x3x3",
        "expect=E_SHAPE kernel=3,3 in=x:f32:2x3x5x5;dy:f32:2x4x4x3",
        "expect=E_SHAPE kernel=6,3 in=x:f32:2x3x5x5;dy:f32:2x4x1x3",
        "expect=E_SHAPE kernel=3,3 in=x:f32:2x3x5x5;dy:f32:1x4x3x3",
        "expect=E_SHAPE kernel=3,3 groups=3 in=x:f32:2x3x5x5;dy:f32:2x4x3x3",
        "expect=E_SHAPE kernel=3,3 groups=2 in=x:f32:2x3x5x5;dy:f32:2x4x3x3",
        "expect=E_SHAPE kernel=3 in=x:f32:2x3x5;dy:f32:2x4x3x3",
        "expect=E_DTYPE kernel=3 in=x:c64:2x3x5;dy:f32:2x4x3",
    };
    case_add_all(list, "conv_backward_weight", lines, COUNT(lines));
}

/* The opt-in precisions. Devices without matrix units run them on the f32 kernels. */
static void generate_precisions(case_list *list)
{
    static const char *const lines[] = {
        "conv_backward_input input_size=9,9 padding=1,1 in=w:f32:65x33x3x3;dy:f32:2x65x9x9",
        "conv_backward_input input_size=12,12 stride=2,2 padding=1,1 in=w:f32:40x20x4x4;"
        "dy:f32:2x40x6x6",
        "conv_backward_input input_size=9,11 stride=1,3 padding=2,0 dilation=3,1 "
        "in=w:f32:64x24x2x4;dy:f32:2x64x10x3",
        "conv_backward_input input_size=6,6,8 stride=2,1,2 padding=0,1,1 in=w:f32:32x16x2x3x3;"
        "dy:f32:1x32x3x6x4",
        "conv_backward_input input_size=31 padding=1 groups=2 in=w:f32:70x20x3;dy:f32:2x70x31",
        "conv_backward_input input_size=14,14 stride=2,2 in=w:f32:64x32x1x1;dy:f32:1x64x7x7",
        "conv_backward_weight kernel=3,3 padding=1,1 in=x:f32:2x16x9x7:unit;dy:f32:2x20x9x7:unit",
        "conv_backward_weight kernel=3,3 stride=2,2 padding=1,1 in=x:f32:3x17x33x31:unit;"
        "dy:f32:3x40x17x16:unit",
        "conv_backward_weight kernel=7,7 stride=2,2 padding=3,3 in=x:f32:2x3x40x40:unit;"
        "dy:f32:2x24x20x20:unit",
        "conv_backward_weight kernel=3 padding=1 in=x:f32:5x33x129:unit;dy:f32:5x70x129:unit",
        "conv_backward_weight kernel=3,3 padding=1,1 groups=2 in=x:f32:4x66x8x8;dy:f32:4x70x8x8",
        "conv_backward_weight kernel=3,3,2 padding=1,1,1 dilation=1,2,1 in=x:f32:2x24x6x7x6;"
        "dy:f32:2x36x6x5x7",
        "conv_backward_weight kernel=1,1 in=x:f32:3x40x6x6;dy:f32:3x70x6x6",
        "conv_backward_weight kernel=3,3 padding=1,1 in=x:f32:2x16x9x9:integers;"
        "dy:f32:2x33x9x9:integers",
        "conv_backward_weight kernel=3,3 padding=1,1 in=x:f32:2x16x6x6;dy:f32:2x33x6x6:special",
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
    generate_pools(list, "pool_max_backward");
    generate_pools(list, "pool_min_backward");
    generate_takes(list, "pool_max_take");
    generate_takes(list, "pool_min_take");
    for (int axes = 1; axes <= 3; axes++)
        for (int i = 0; i < 36; i++)
            if (axes == 2 || i % 3 == axes / 2)
                add_windows(list, axes, i);
    generate_inputs(list);
    generate_weights(list);
    generate_precisions(list);
}

static const char *const rows[] = {"pool_max_backward",
                                   "pool_min_backward",
                                   "pool_max_take",
                                   "pool_min_take",
                                   "conv_backward_input",
                                   "conv_backward_weight",
                                   NULL};

const case_family image_backward_cases = {.rows = rows, .build = build, .generate = generate};
