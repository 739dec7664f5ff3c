/*
 * Cases of the columns of deformable convolutions:
 *   deform_im2col                   kernel, stride, padding, dilation (rows, columns), groups (of
 *                                   offsets); in=x;offset and mask
 *   deform_im2col_backward_input    the same, and input (H,W); in=dy;offset
 *   deform_im2col_backward_offset   the same; in=x;offset;dy
 *
 * shift=n drops the first n of axis 0 of x or dy by a view, offset_shift=n those of offsets.
 */
#include "conform/cases/cases.h"

#include <string.h>

#include <rlxvk_ops_vision.h>

static void pair_of(const case_spec *s, const char *key, int64_t out[2])
{
    int64_t all[3] = {0};
    case_entries(s, key, all);
    out[0] = all[0];
    out[1] = all[1];
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_deform_options o = {.offset_groups = case_integer(s, "groups", 0)};
    bool of_input = strcmp(s->row, "deform_im2col_backward_input") == 0;
    rlxvk_tensor first = case_tensor(s, inputs, of_input ? "dy" : "x");
    rlxvk_tensor offset = case_shifted(g, s, "offset_shift", case_tensor(s, inputs, "offset"));
    int64_t input[2];
    first = case_shifted(g, s, "shift", first);
    pair_of(s, "kernel", o.kernel);
    pair_of(s, "stride", o.stride);
    pair_of(s, "padding", o.padding);
    pair_of(s, "dilation", o.dilation);
    pair_of(s, "input", input);
    if (strcmp(s->row, "deform_im2col") == 0)
        return rlxvk_deform_im2col(g, first, offset, case_tensor(s, inputs, "mask"), &o);
    if (of_input)
        return rlxvk_deform_im2col_backward_input(g, first, offset, input, &o);
    return rlxvk_deform_im2col_backward_offset(g, first, offset, case_tensor(s, inputs, "dy"), &o);
}

static void generate(case_list *list)
{
    static const char *const columns[] = {
        "kernel=1,1 in=x:f32:1x1x3x3;offset:f32:1x2x3x3",
        "kernel=3,3 padding=1,1 in=x:f32:2x3x6x7;offset:f32:2x18x6x7",
        "kernel=3,3 padding=1,1 in=x:f32:2x3x6x7;offset:f32:2x18x6x7:integers",
        "kernel=3,2 stride=2,1 padding=2,0 dilation=1,2 groups=2 "
        "in=x:f32:2x6x9x8:unit;offset:f32:2x24x4x6;mask:f32:2x12x4x6:unit",
        "kernel=2,2 groups=3 in=x:f32:1x3x4x5;offset:f32:1x24x3x4:range:-9:9;mask:f32:1x12x3x4",
        "kernel=3,3 padding=1,1 in=x:f32:1x37x60x50:unit;offset:f32:1x18x60x50;"
        "mask:f32:1x9x60x50:unit",
        "kernel=2,2 in=x:f32:1x2x5x6:special;offset:f32:1x8x4x5",
        "kernel=2,2 in=x:f32:1x2x5x6;offset:f32:1x8x4x5:special",
        "kernel=2,2 in=x:f32:1x2x5x6;offset:f32:1x8x4x5;mask:f32:1x4x4x5:special",
        "kernel=2,2 in=x:f32:1x2x5x6;offset:f32:1x8x4x5:large",
        "kernel=2,2 shift=1 offset_shift=2 in=x:f32:3x2x5x6;offset:f32:4x8x4x5;mask:f32:2x4x4x5",
        "kernel=2,2 in=x:f16:2x2x5x6;offset:f32:2x8x4x5",
        "kernel=2,2 in=x:f32:1x2x1x1;offset:f32:1x8x4x5:zero",
        "kernel=2,2 in=x:f32:0x2x5x6;offset:f32:0x8x4x5",
        "kernel=2,2 in=x:f32:1x0x5x6;offset:f32:1x8x4x5",
        "kernel=2,2 in=x:f32:1x2x5x6;offset:f32:1x8x0x5",
        "expect=E_ATTR in=x:f32:1x2x5x6;offset:f32:1x8x4x5",
        "expect=E_ATTR kernel=2,-2 in=x:f32:1x2x5x6;offset:f32:1x8x4x5",
        "expect=E_ATTR kernel=2,2 padding=-1,0 in=x:f32:1x2x5x6;offset:f32:1x8x4x5",
        "expect=E_ATTR kernel=2,2 stride=-1,1 in=x:f32:1x2x5x6;offset:f32:1x8x4x5",
        "expect=E_ATTR kernel=2,2 groups=-1 in=x:f32:1x2x5x6;offset:f32:1x8x4x5",
        "expect=E_SHAPE kernel=2,2 groups=3 in=x:f32:1x2x5x6;offset:f32:1x24x4x5",
        "expect=E_SHAPE kernel=2,2 in=x:f32:1x2x5x6;offset:f32:1x9x4x5",
        "expect=E_SHAPE kernel=2,2 in=x:f32:1x2x5x6;offset:f32:2x8x4x5",
        "expect=E_SHAPE kernel=2,2 in=x:f32:2x5x6;offset:f32:1x8x4x5",
        "expect=E_SHAPE kernel=2,2 in=x:f32:1x2x0x6;offset:f32:1x8x4x5",
        "expect=E_SHAPE kernel=2,2 in=x:f32:1x2x5x6;offset:f32:1x8x4x5;mask:f32:1x8x4x5",
        "expect=E_TOO_LARGE kernel=2,2 stride=4194304,1 in=x:f32:1x2x5x6;offset:f32:1x8x4x5",
        "expect=E_TOO_LARGE kernel=1,1 in=x:f32:1x1x1x4194305;offset:f32:1x2x1x1",
        "expect=E_DTYPE kernel=2,2 in=x:c64:1x2x5x6;offset:f32:1x8x4x5"};
    static const char *const inputs[] = {
        "kernel=3,3 padding=1,1 input=6,7 in=dy:f32:2x27x42;offset:f32:2x18x6x7",
        "kernel=3,3 padding=1,1 input=6,7 in=dy:f32:2x27x42;offset:f32:2x18x6x7:integers",
        "kernel=3,2 stride=2,1 padding=2,0 dilation=1,2 groups=2 input=9,8 "
        "in=dy:f32:2x36x24;offset:f32:2x24x4x6",
        "kernel=3,3 padding=1,1 groups=2 input=60,50 in=dy:f32:1x180x3000:unit;"
        "offset:f32:1x36x60x50",
        "kernel=2,2 input=5,6 in=dy:f32:1x8x20:special;offset:f32:1x8x4x5",
        "kernel=2,2 input=5,6 in=dy:f32:1x8x20;offset:f32:1x8x4x5:special",
        "kernel=2,2 shift=1 offset_shift=2 input=5,6 in=dy:f32:3x8x20;offset:f32:4x8x4x5",
        "kernel=2,2 input=5,6 in=dy:f32:0x8x20;offset:f32:0x8x4x5",
        "expect=E_SHAPE kernel=2,2 input=5,6 in=dy:f32:1x8x0;offset:f32:1x8x0x5",
        "expect=E_SHAPE kernel=2,2 input=5,6 in=dy:f32:1x9x20;offset:f32:1x8x4x5",
        "expect=E_SHAPE kernel=2,2 input=5,6 in=dy:f32:1x8x21;offset:f32:1x8x4x5",
        "expect=E_ATTR kernel=2,2 input=5,-6 in=dy:f32:1x8x20;offset:f32:1x8x4x5",
        "expect=E_TOO_LARGE kernel=2,2 input=4000000,4000 in=dy:f32:1x8x20;offset:f32:1x8x4x5"};
    static const char *const offsets[] = {
        "kernel=3,3 padding=1,1 in=x:f32:2x3x6x7;offset:f32:2x18x6x7;dy:f32:2x27x42",
        "kernel=3,3 padding=1,1 in=x:f32:2x3x6x7;offset:f32:2x18x6x7:integers;dy:f32:2x27x42",
        ("kernel=3,2 stride=2,1 padding=2,0 dilation=1,2 groups=2 "
         "in=x:f32:2x10x9x8:unit;offset:f32:2x24x4x6;dy:f32:2x60x24:unit"),
        "kernel=2,2 in=x:f32:1x2x5x6;offset:f32:1x8x4x5:special;dy:f32:1x8x20",
        "kernel=2,2 offset_shift=1 in=x:f32:1x2x5x6;offset:f32:2x8x4x5;dy:f32:1x8x20",
        "kernel=2,2 in=x:f32:1x0x5x6;offset:f32:1x8x4x5;dy:f32:1x0x20",
        "expect=E_SHAPE kernel=2,2 in=x:f32:1x2x5x6;offset:f32:1x8x4x5;dy:f32:1x8x4x5"};
    case_add_all(list, "deform_im2col", columns, COUNT(columns));
    case_add_all(list, "deform_im2col_backward_input", inputs, COUNT(inputs));
    case_add_all(list, "deform_im2col_backward_offset", offsets, COUNT(offsets));
}

static const char *const rows[] = {"deform_im2col", "deform_im2col_backward_input",
                                   "deform_im2col_backward_offset", NULL};

const case_family deform_cases = {.rows = rows, .build = build, .generate = generate};
