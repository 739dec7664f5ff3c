/*
 * Cases of regions of images:
 *   roi_align                  size, ratio, mode (average, max), scale, half; in=x;regions;images
 *   roi_align_backward_input   the same, and input (N,H,W); in=dy;regions;images and x for max
 *
 * shift=n drops the first n of axis 0 of x or dy by a view, region_shift=n those of regions.
 */
#include "conform/cases/cases.h"

#include <string.h>

#include <rlxvk_ops_vision.h>

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    const char *mode = case_word(s, "mode", "average");
    rlxvk_roi_options o = {.sampling_ratio = case_integer(s, "ratio", 0),
                           .mode = strcmp(mode, "average") == 0 ? RLXVK_ROI_AVERAGE
                                   : strcmp(mode, "max") == 0   ? RLXVK_ROI_MAX
                                                                : (rlxvk_roi_mode)2,
                           .spatial_scale = (float)case_real(s, "scale", 0),
                           .half_pixel = case_integer(s, "half", 0) != 0};
    bool forward = strcmp(s->row, "roi_align") == 0;
    rlxvk_tensor first = case_shifted(g, s, "shift", case_tensor(s, inputs, forward ? "x" : "dy"));
    rlxvk_tensor regions = case_shifted(g, s, "region_shift", case_tensor(s, inputs, "regions"));
    rlxvk_tensor images = case_tensor(s, inputs, "images");
    int64_t size[3] = {0}, input[3] = {0};
    case_entries(s, "size", size);
    case_entries(s, "input", input);
    o.size[0] = size[0];
    o.size[1] = size[1];
    if (forward)
        return rlxvk_roi_align(g, first, regions, images, &o);
    return rlxvk_roi_align_backward_input(g, first, regions, images, case_tensor(s, inputs, "x"),
                                          input, &o);
}

static const char *const forward[] = {
    "in=x:f32:2x3x4x5;regions:f32:3x4;images:f32:3:zero",
    "size=7,7 in=x:f32:1x37x50x40:unit;regions:f32:9x4:range:-4:55;images:f32:9:zero",
    "size=7,7 ratio=2 scale=0.25 in=x:f32:2x70x50x40:unit;regions:f32:40x4:range:0:200;"
    "images:f32:40:index:2",
    "size=7,7 ratio=2 half=1 mode=max in=x:f32:2x70x30x40:unit;regions:f32:50x4:range:0:30;"
    "images:f32:50:index:2",
    "size=7,7 ratio=2 in=x:f32:2x90x20x20:unit;regions:f32:61x4:range:0:20;"
    "images:f32:61:index:2",
    "size=7,7 ratio=1 mode=max in=x:f32:2x91x20x20:unit;regions:f32:61x4:range:0:20;"
    "images:f32:61:index:2",
    "size=2,2 ratio=2 in=x:f32:2x3x4x5:special;regions:f32:12x4:range:-2:7;"
    "images:f32:12:index:2",
    "size=2,2 mode=max in=x:f32:2x3x4x5:special;regions:f32:12x4:range:-2:7;"
    "images:f32:12:index:2",
    "size=2,2 in=x:f32:2x3x4x5;regions:f32:12x4:special;images:f32:12:index:2",
    "size=2,2 half=1 in=x:f32:2x3x4x5;regions:f32:12x4:special;images:f32:12:index:2",
    "size=2,2 mode=max half=1 in=x:f32:2x3x4x5;regions:f32:12x4:special;images:f32:12:zero",
    "size=2,1 ratio=3 in=x:f32:2x3x4x5;regions:f32:12x4:large;images:f32:12:zero",
    "size=2,2 in=x:f32:3x2x5x4;regions:f32:12x4:range:-2:7;images:f32:12:badindex:3",
    /* samples on cells, and at the border; as many samples as cells, exactly */
    "size=2,2 in=x:f32:1x2x6x7;regions:f32:20x4:integers;images:f32:20:zero",
    "size=2,2 half=1 in=x:f32:1x2x6x7;regions:f32:20x4:integers;images:f32:20:zero",
    "size=2,2 ratio=1 half=1 mode=max in=x:f32:1x2x6x7:integers;regions:f32:20x4:integers;"
    "images:f32:20:zero",
    /* more cells than samples of a bin; no more than 256 samples */
    "size=1,1 in=x:f32:1x1x300x2:unit;regions:f32:2x4:range:-20000:20000;images:f32:2:zero",
    "size=1,2 ratio=256 in=x:f32:1x2x6x7;regions:f32:2x4:range:-2:9;images:f32:2:zero",
    "size=1,1 in=x:f32:1x1x1x1;regions:f32:5x4;images:f32:5:zero",
    "size=40,1 ratio=1 in=x:f32:1x2x3x1;regions:f32:5x4;images:f32:5:zero",
    "size=2,2 shift=1 region_shift=1 in=x:f32:3x2x5x4;regions:f32:6x4:range:-2:7;"
    "images:f32:5:index:2",
    "size=2,2 in=x:f16:2x2x5x4;regions:f32:5x4:range:-2:7;images:f32:5:index:2",
    "size=2,2 in=x:f32:2x2x5x4;regions:f32:0x4;images:f32:0",
    "size=2,2 in=x:f32:0x2x5x4;regions:f32:0x4;images:f32:0",
    "size=2,2 in=x:f32:2x0x5x4;regions:f32:3x4;images:f32:3:zero",
    "expect=E_SHAPE in=x:f32:2x5x4;regions:f32:3x4;images:f32:3:zero",
    "expect=E_SHAPE in=x:f32:2x2x0x4;regions:f32:3x4;images:f32:3:zero",
    "expect=E_SHAPE in=x:f32:0x2x5x4;regions:f32:3x4;images:f32:3:zero",
    "expect=E_SHAPE in=x:f32:1x2x5x4;regions:f32:3x5;images:f32:3:zero",
    "expect=E_SHAPE in=x:f32:1x2x5x4;regions:f32:3x4;images:f32:4:zero",
    "expect=E_SHAPE in=x:f32:1x2x5x4;regions:f32:3x4;images:f32:3x1:zero",
    "expect=E_ATTR size=-1,2 in=x:f32:1x2x5x4;regions:f32:3x4;images:f32:3:zero",
    "expect=E_ATTR ratio=-1 in=x:f32:1x2x5x4;regions:f32:3x4;images:f32:3:zero",
    "expect=E_ATTR ratio=257 in=x:f32:1x2x5x4;regions:f32:3x4;images:f32:3:zero",
    "expect=E_ATTR scale=inf in=x:f32:1x2x5x4;regions:f32:3x4;images:f32:3:zero",
    "expect=E_ATTR mode=other in=x:f32:1x2x5x4;regions:f32:3x4;images:f32:3:zero",
    "expect=E_TOO_LARGE size=16385,1 in=x:f32:1x2x5x4;regions:f32:3x4;images:f32:3:zero",
    "expect=E_TOO_LARGE in=x:f32:1x1x4194305x1;regions:f32:3x4;images:f32:3:zero",
    "expect=E_INDEX_RANGE in=x:f32:16777217x1x1x1;regions:f32:3x4;images:f32:3:zero",
    "expect=E_DTYPE in=x:c64:1x2x5x4;regions:f32:3x4;images:f32:3:zero",
    "expect=E_ARITY in=x:f32:1x2x5x4;regions:f32:3x4"};

static void generate(case_list *list)
{
    static const char *const forms[] = {"size=3,2 ratio=2", "size=3,2", "size=3,2 ratio=3 half=1",
                                        "size=2,5 half=1 scale=0.5", "size=1,1 scale=1.5"};
    static const char *const backward[] = {
        "size=7,7 input=2,30,40 in=dy:f32:40x9x7x7:unit;regions:f32:40x4:range:-4:44;"
        "images:f32:40:index:2",
        /* several dispatches add the lines of bins */
        "size=40,41 ratio=1 input=1,20,21 in=dy:f32:40x3x40x41:unit;regions:f32:40x4:range:0:20;"
        "images:f32:40:zero",
        /* several channels at once, with a remainder */
        "size=2,2 input=1,150,150 in=dy:f32:10x13x2x2:unit;regions:f32:10x4:range:0:150;"
        "images:f32:10:zero",
        "size=2,2 mode=max input=1,300,300 in=dy:f32:4x2x2x2:unit;regions:f32:4x4:range:0:60;"
        "images:f32:4:zero;x:f32:1x2x300x300:unit",
        "size=3,3 ratio=2 half=1 mode=max input=2,30,40 in=dy:f32:40x9x3x3:unit;"
        "regions:f32:40x4:range:-4:44;images:f32:40:index:2;x:f32:2x9x30x40:unit",
        "size=2,2 mode=max input=1,6,7 in=dy:f32:20x2x2x2;regions:f32:20x4:integers;"
        "images:f32:20:zero;x:f32:1x2x6x7:integers",
        "size=2,2 input=1,6,7 in=dy:f32:20x2x2x2;regions:f32:20x4:integers;images:f32:20:zero",
        "size=2,2 input=2,4,5 in=dy:f32:12x2x2x2;regions:f32:12x4:special;images:f32:12:index:2",
        "size=2,2 input=2,4,5 in=dy:f32:12x2x2x2:special;regions:f32:12x4:range:-2:7;"
        "images:f32:12:index:2",
        "size=2,2 shift=1 region_shift=2 input=2,4,5 in=dy:f32:6x2x2x2;"
        "regions:f32:7x4:range:-2:7;images:f32:5:badindex:2",
        "size=2,2 input=0,4,5 in=dy:f32:0x2x2x2;regions:f32:0x4;images:f32:0",
        "size=2,2 input=1,4,5 in=dy:f32:3x0x2x2;regions:f32:3x4;images:f32:3:zero",
        "expect=E_SHAPE size=2,2 input=1,4,5 in=dy:f32:0x2x2x2;regions:f32:0x4;images:f32:0",
        "expect=E_SHAPE size=2,2 input=1,4,5 in=dy:f32:3x2x2x2;regions:f32:4x4;images:f32:4",
        "expect=E_SHAPE size=2,2 input=1,4,5 mode=max in=dy:f32:3x2x2x2;regions:f32:3x4;"
        "images:f32:3",
        "expect=E_SHAPE size=2,2 input=1,4,5 in=dy:f32:3x2x2x2;regions:f32:3x4;images:f32:3;"
        "x:f32:1x2x4x5",
        "expect=E_SHAPE size=2,2 input=1,4,5 mode=max in=dy:f32:3x2x2x2;regions:f32:3x4;"
        "images:f32:3;x:f32:1x2x4x4",
        "expect=E_ATTR size=2,3 input=1,4,5 in=dy:f32:3x2x2x2;regions:f32:3x4;images:f32:3",
        "expect=E_ATTR size=2,2 input=1,-4,5 in=dy:f32:3x2x2x2;regions:f32:3x4;images:f32:3",
        "expect=E_TOO_LARGE size=9,9 input=1,4000000,1 in=dy:f32:300x1x9x9;regions:f32:300x4;"
        "images:f32:300"};
    for (size_t i = 0; i < 2 * COUNT(forms); i++) {
        const char *how = forms[i / 2], *size = "3x2";
        if (strncmp(how, "size=2,5", 8) == 0)
            size = "2x5";
        else if (strncmp(how, "size=1,1", 8) == 0)
            size = "1x1";
        case_add(list,
                 "roi_align %s mode=%s in=x:f32:2x3x7x6;regions:f32:9x4:range:-3:9;"
                 "images:f32:9:index:2",
                 how, i % 2 ? "max" : "average");
        case_add(list,
                 "roi_align_backward_input %s mode=%s input=2,7,6 in=dy:f32:9x3x%s;"
                 "regions:f32:9x4:range:-3:9;images:f32:9:index:2%s",
                 how, i % 2 ? "max" : "average", size, i % 2 ? ";x:f32:2x3x7x6" : "");
    }
    case_add_all(list, "roi_align", forward, COUNT(forward));
    case_add_all(list, "roi_align_backward_input", backward, COUNT(backward));
}

static const char *const rows[] = {"roi_align", "roi_align_backward_input", NULL};

const case_family regions_cases = {.rows = rows, .build = build, .generate = generate};
