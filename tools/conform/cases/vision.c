/*
 * Cases of the ops on images:
 *   resize, resize_backward   size, mode (nearest, linear, cubic, area), coordinates (half_pixel,
 *                             align_corners, asymmetric), input (of resize_backward); join=1 makes
 *                             the result the second part of a concat, at an odd offset
 *   grid_sample, grid_sample_backward_input, grid_sample_backward_grid   mode (bilinear, nearest,
 *                                                                        bicubic), padding (zeros,
 *                                                                        border, reflection),
 *                                                                        align, input;
 *                                                                        in=x;grid[;dy]
 *   pools                     windows as in pooling.c, p, size; in=x[;indices]; if pool_max_unpool
 * has no indices, it takes those of a pool_max_with_indices convolutions              stride,
 * padding, dilation, output_padding, groups, before, after; in=x;w[;bias]
 *
 * shift=n drops the first n indices of axis 0 of x by a view, dy_shift=n those of dy.
 */
#include "base/base.h"
#include "conform/cases/cases.h"

#include <stdio.h>
#include <string.h>

/* Index of the value among `names`; `count` if it is not one of them. */
static int enumerator(const case_spec *s, const char *key, const char *const *names, int count)
{
    const char *word = case_word(s, key, names[0]);
    int i = 0;
    while (i < count && strcmp(word, names[i]) != 0)
        i++;
    return i;
}

static rlxvk_tensor joined(rlxvk_graph *g, const case_spec *s, rlxvk_tensor y)
{
    float zero = 0;
    if (!case_integer(s, "join", 0))
        return y;
    rlxvk_tensor first = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &zero, sizeof zero);
    rlxvk_tensor flat = rlxvk_reshape(g, y, RLXVK_SHAPE(-1));
    return rlxvk_concat(g, (rlxvk_tensor[]){first, flat}, 2, 0);
}

/* ---- Resizing ---- */

static const char *const modes[] = {"nearest", "linear",           "cubic",
                                    "area",    "linear_antialias", "cubic_antialias"};
static const char *const coordinates[] = {
    "half_pixel",         "align_corners",          "asymmetric", "half_pixel_symmetric",
    "pytorch_half_pixel", "half_pixel_for_nearest", "crop"};
static const char *const roundings[] = {"default", "half_up", "half_down", "down", "up"};

static void real_entries(const case_spec *s, const char *key, double out[3])
{
    const char *word = case_word(s, key, "");
    for (int i = 0; i < 3 && *word; i++) {
        char *end;
        out[i] = text_to_real(word, &end);
        word = end + (*end == ',');
    }
}

static rlxvk_tensor build_resize(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_resize_options o =
        RLXVK_SIZED(rlxvk_resize_options,
                    .mode = (rlxvk_resize_mode)enumerator(s, "mode", modes, COUNT(modes)));
    int64_t input[3] = {0};
    rlxvk_tensor x = case_shifted(g, s, "shift", case_tensor(s, inputs, "x"));
    o.coordinates =
        (rlxvk_resize_coordinates)enumerator(s, "coordinates", coordinates, COUNT(coordinates));
    o.rounding = (rlxvk_resize_rounding)enumerator(s, "rounding", roundings, COUNT(roundings));
    o.outside = (rlxvk_resize_outside)case_integer(s, "exclude", 0);
    o.cubic_coefficient = (float)case_real(s, "a", 0);
    o.extrapolation_value = (float)case_real(s, "value", 0);
    real_entries(s, "scale", o.scale);
    real_entries(s, "begin", o.crop_begin);
    real_entries(s, "end", o.crop_end);
    case_entries(s, "size", o.size);
    case_entries(s, "input", input);
    if (strcmp(s->row, "resize") == 0)
        return joined(g, s, rlxvk_resize(g, x, &o));
    return joined(g, s, rlxvk_resize_backward(g, x, input, &o));
}

/* dims of x, their spatial part, size; for resize_backward, these two are exchanged */
static const char *const resize_shapes[][4] = {
    {"1x1", "1", "1", "1"},
    {"2x3", "5", "5", "13"},
    {"2x3", "17", "17", "4"},
    {"2x3", "4x6", "4,6", "8,12"},
    {"1x2", "7x5", "7,5", "3,11"},
    {"1x2", "1x5", "1,5", "4,1"},
    {"2x1", "3x4x5", "3,4,5", "5,2,8"},
};

/* Resizes from and to few cells, all of which are next to an edge. */
static void generate_edges(case_list *list)
{
    for (int from = 1; from <= 5; from++)
        for (int to = 1; to <= 7; to += 2)
            for (int m = 0; m < 12; m += 1 + from % 2)
                case_add(list, "resize size=%d,%d mode=%s coordinates=%s in=x:f32:1x2x%dx%d", to,
                         8 - to, modes[m / 3], coordinates[m % 3], from, 6 - from);
}

/* Roundings, kinds of coordinates, scales, regions, and wider kernels; sizes of both images come
 * last. */
static const char *const resize_details[][3] = {
    {"rounding=half_down", "6", "9"},
    {"rounding=half_down coordinates=align_corners", "5", "3"},
    {"rounding=up coordinates=asymmetric", "4x7", "9,5"},
    {"rounding=down", "4x7", "8,3"},
    {"rounding=half_up coordinates=asymmetric", "4x6", "8,4"},
    {"rounding=half_down coordinates=asymmetric", "4x6", "8,4"},
    {"rounding=up coordinates=half_pixel_for_nearest", "4x6", "8,4"},
    {"coordinates=half_pixel_for_nearest", "4x6x3", "8,4,3"},
    {"rounding=down coordinates=half_pixel_symmetric scale=2.25", "3", "6"},
    {"coordinates=pytorch_half_pixel", "5x4", "1,7"},
    {"scale=0.6,1.3", "7x5", "4,6"},
    {"coordinates=asymmetric scale=1.7 rounding=down", "5", "8"},
    {"coordinates=align_corners scale=0.8,0.8", "4x4", "3,3"},
    {"coordinates=crop begin=0.4,0.6 end=0.6,0.8 value=10", "6x5", "3,3"},
    {"coordinates=crop begin=-0.2 end=1.3 value=-1.5", "9", "14"},
    {"coordinates=crop begin=0.9,0,0.1 end=0.1,1,1.1", "5x4x6", "7,4,3"},
    {"coordinates=crop begin=0.25 end=0.5 rounding=half_down", "9", "1"},
    {"mode=linear coordinates=half_pixel_symmetric scale=0.6,2.3", "7x5", "4,11"},
    {"mode=linear coordinates=pytorch_half_pixel", "5x4", "1,7"},
    {"mode=linear scale=1.3,0.55", "7x5", "9,2"},
    {"mode=linear coordinates=align_corners scale=2.9", "4", "11"},
    {"mode=linear exclude=1", "7x5", "4,11"},
    {"mode=linear coordinates=crop begin=0.4,0.6 end=0.6,0.8 value=10", "6x5", "3,3"},
    {"mode=linear coordinates=crop begin=-0.2,0 end=1.3,2 value=nan", "9x8", "14,5"},
    {"mode=linear coordinates=crop begin=0.8 end=0.1", "16", "5"},
    {"mode=cubic a=-0.5", "6x4", "9,5"},
    {"mode=cubic a=1e-40", "6x4", "9,5"},
    {"mode=cubic exclude=1", "6x4", "9,5"},
    {"mode=cubic a=-0.5 exclude=1 coordinates=asymmetric scale=0.8", "6", "4"},
    {"mode=cubic coordinates=pytorch_half_pixel", "5", "1"},
    {"mode=cubic coordinates=crop begin=-0.1,0.2 end=1.1,0.7 exclude=1 value=3", "6x7", "8,4"},
    {"mode=linear_antialias", "7x9", "3,5"},
    {"mode=linear_antialias", "4x9", "9,2"},
    {"mode=linear_antialias exclude=1 coordinates=align_corners", "20", "3"},
    {"mode=linear_antialias scale=0.31", "20", "6"},
    {"mode=cubic_antialias", "9x8x7", "4,3,7"},
    {"mode=cubic_antialias a=-0.5 exclude=1", "17", "4"},
    {"mode=cubic_antialias coordinates=asymmetric", "700", "9"},
    {"mode=area coordinates=crop begin=2 end=3", "9", "4"},
};

static void generate_details(case_list *list)
{
    static const char *const refusals[] = {
        "expect=E_ATTR size=4 scale=2 in=x:f32:1x1x3",
        "expect=E_ATTR size=1 scale=0.1 in=x:f32:1x1x4",
        "expect=E_ATTR size=4 scale=-1 in=x:f32:1x1x4",
        "expect=E_ATTR size=4 scale=nan in=x:f32:1x1x4",
        "expect=E_ATTR size=4 scale=0,2 in=x:f32:1x1x4",
        "expect=E_ATTR size=4 end=1 in=x:f32:1x1x4",
        "expect=E_ATTR size=4 coordinates=crop end=0,1 in=x:f32:1x1x4",
        "expect=E_ATTR size=4 coordinates=crop begin=1e30 in=x:f32:1x1x4",
        "expect=E_ATTR size=4 coordinates=crop end=nan in=x:f32:1x1x4",
        "expect=E_ATTR size=4 rounding=other in=x:f32:1x1x4",
        "expect=E_ATTR size=4 exclude=2 in=x:f32:1x1x4",
        "expect=E_ATTR size=4 a=inf in=x:f32:1x1x4"};
    static const char *const others[] = {
        "size=5,4 mode=cubic_antialias in=x:f32:1x2x31x33:special",
        "size=5,9 mode=linear_antialias exclude=1 in=x:f32:1x2x31x33:large",
        "size=4,7 mode=linear coordinates=crop begin=-1,0 end=1,1 in=x:f32:2x3x6x9:special",
        "size=4,7 coordinates=crop begin=-1,0 end=1,1 value=7 in=x:i32:2x3x6x9:integers",
        "size=300,280 mode=linear_antialias in=x:f32:1x3x601x530",
        "size=515,513 mode=cubic a=-0.5 exclude=1 in=x:f32:1x5x257x259",
        "size=6 mode=linear scale=2.1 in=x:f32:0x2x3"};
    for (size_t i = 0; i < COUNT(resize_details); i++) {
        const char *const *r = resize_details[i];
        char dy[32], input[32];
        case_add(list, "resize size=%s %s in=x:f32:2x3x%s", r[2], r[0], r[1]);
        strcpy(dy, r[2]);
        strcpy(input, r[1]);
        for (char *at = dy; *at; at++)
            *at = *at == ',' ? 'x' : *at;
        for (char *at = input; *at; at++)
            *at = *at == 'x' ? ',' : *at;
        case_add(list, "resize_backward input=%s %s in=x:f32:2x3x%s", input, r[0], dy);
    }
    case_add_all(list, "resize", refusals, COUNT(refusals));
    case_add_all(list, "resize", others, COUNT(others));
}

static const char *const adjoints[] = {"input=4 mode=linear in=x:f32:2x3x9:special",
                                       "input=4 in=x:f32:2x3x8:special",
                                       "input=6 mode=cubic in=x:f32:2x3x4:large",
                                       "input=2,3 mode=linear in=x:f32:2x3x64x65",
                                       "input=1,1 mode=cubic in=x:f32:2x3x9x7",
                                       "input=2 mode=linear in=x:f32:1x1x70000:unit",
                                       "input=2 in=x:f32:1x1x70000:unit",
                                       "input=9,8 in=x:f32:2x3x4x4",
                                       "input=300,302 mode=linear in=x:f32:2x2x600x604",
                                       "input=259,258 mode=linear in=x:f32:1x4x517x519:special",
                                       "input=260,256 mode=cubic shift=1 in=x:f32:2x4x520x512",
                                       "input=514,260 mode=linear in=x:f32:1x2x257x130",
                                       "input=1024,130 mode=area in=x:f32:1x2x256x19",
                                       "within=2e-6 input=4,8 mode=linear join=1 in=x:f32:2x1x3x4",
                                       "input=5 mode=linear shift=1 in=x:f32:3x1x5",
                                       "input=4 in=x:f32:0x3x5",
                                       "input=3 size=5 in=x:f32:1x1x5",
                                       "expect=E_SHAPE input=3 size=6 in=x:f32:1x1x5",
                                       "expect=E_SHAPE input=3 in=x:f32:1x5",
                                       "expect=E_ATTR in=x:f32:1x2x3",
                                       "expect=E_ATTR input=-1 in=x:f32:1x2x3",
                                       "expect=E_ATTR input=3 mode=other in=x:f32:1x2x3",
                                       "expect=E_TOO_LARGE input=16777217 in=x:f32:1x1x3",
                                       "expect=E_DTYPE input=4 in=x:c64:1x2x3"};

static void generate_resizes(case_list *list)
{
    static const char *const rests[] = {
        "size=8 in=x:f32:2x3x4:special", "size=9 mode=linear in=x:f32:2x3x4:special",
        "size=7 mode=linear coordinates=align_corners in=x:f32:2x3x4:special",
        "size=11 mode=cubic in=x:f32:2x3x6:special",
        "size=8 mode=cubic coordinates=asymmetric in=x:f32:1x2x4:special",
        "size=6 mode=cubic in=x:f32:1x2x4:large",
        "size=16,24 mode=linear in=x:f32:2x3x8x12:integers", "size=5,3 in=x:i32:2x3x4x5:integers",
        "size=5,3 in=x:bool:2x3x4x5:bool", "size=8,10 mode=linear in=x:f16:2x3x4x5",
        "size=3,5 in=x:f16:2x3x4x5", "size=4,8 mode=linear shift=1 in=x:f32:3x1x3x5",
        "within=2e-6 size=4,8 mode=linear join=1 in=x:f32:2x1x3x4",
        "size=4,8 join=1 in=x:f32:2x1x3x4:special", "size=4 in=x:f32:0x3x5",
        "size=4,4 mode=cubic in=x:f32:2x0x5x5",
        "size=1,1 mode=cubic coordinates=align_corners in=x:f32:2x3x4x5",
        "size=70000 mode=linear in=x:f32:1x1x3", "size=3 mode=linear in=x:f32:1x1x70000",
        "size=512,400 in=x:f32:2x2x37x129", "size=600,602 mode=linear in=x:f32:2x2x64x65",
        "size=1024,300 mode=cubic in=x:f32:1x4x33x60",
        /* blocks of rows that are not filled by columns or rows; some have NaN and infinities */
        "size=1026,301 mode=cubic in=x:f32:1x5x33x60",
        "size=514,512 mode=cubic shift=1 in=x:f32:3x3x256x255",
        "size=515,513 mode=linear in=x:f32:1x5x257x259:special",
        "size=258,300 mode=linear in=x:f32:1x4x516x601",
        "size=301,260 mode=cubic coordinates=align_corners in=x:f32:1x4x90x521:special",
        "within=2e-6 size=512,520 mode=linear join=1 in=x:f32:1x4x256x260",
        "size=512,520 shift=1 in=x:f32:2x4x100x77", "size=522,521 in=x:f32:1x4x100x77:special",
        "size=6,200,210 mode=linear in=x:f32:1x5x4x60x70",
        "size=1,3 mode=linear in=x:f32:1x2x1x2:special",
        "size=1 coordinates=align_corners in=x:f32:2x3x2",
        "size=5 mode=area in=x:f32:1x2x12:special",
        "size=3,3,3 mode=cubic coordinates=asymmetric in=x:f32:1x1x2x2x2",
        "expect=E_SHAPE size=4 in=x:f32:2x9", "expect=E_SHAPE size=4,4,4 in=x:f32:1x1x2x2x2x2",
        "expect=E_SHAPE size=4 in=x:f32:1x2x0", "expect=E_ATTR size=0 in=x:f32:1x2x3",
        "expect=E_ATTR in=x:f32:1x2x3", "expect=E_ATTR size=-4 in=x:f32:1x2x3",
        "expect=E_ATTR size=4,4 in=x:f32:1x2x3", "expect=E_ATTR size=4 in=x:f32:1x2x3x3",
        "expect=E_ATTR size=4 mode=other in=x:f32:1x2x3",
        "expect=E_ATTR size=4 coordinates=other in=x:f32:1x2x3",
        "expect=E_TOO_LARGE size=16777217 in=x:f32:1x1x3",
        "expect=E_TOO_LARGE size=2147483647,2147483647 in=x:f32:1x1x3x3",
        "expect=E_TOO_LARGE size=16777216,16777216 in=x:f32:1x1x3x3",
        "expect=E_DTYPE size=4 in=x:c64:1x2x3"};
    for (size_t i = 0; i < COUNT(resize_shapes); i++)
        for (size_t m = 0; m < 12; m++) {
            const char *const *r = resize_shapes[i];
            case_add(list, "resize size=%s mode=%s coordinates=%s in=x:f32:%sx%s", r[3],
                     modes[m / 3], coordinates[m % 3], r[0], r[1]);
            char dy[32];
            strcpy(dy, r[3]);
            for (char *at = dy; *at; at++)
                *at = *at == ',' ? 'x' : *at;
            if (m % 2 == i % 2)
                case_add(list, "resize_backward input=%s mode=%s coordinates=%s in=x:f32:%sx%s",
                         r[2], modes[m / 3], coordinates[m % 3], r[0], dy);
        }
    case_add_all(list, "resize", rests, COUNT(rests));
    case_add_all(list, "resize_backward", adjoints, COUNT(adjoints));
    generate_edges(list);
    generate_details(list);
}

/* ---- Sampling ---- */

static const char *const grid_modes[] = {"bilinear", "nearest", "bicubic"};
static const char *const paddings[] = {"zeros", "border", "reflection"};

static rlxvk_tensor build_grid(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_grid_options o = {.mode = (rlxvk_grid_mode)enumerator(s, "mode", grid_modes, 3),
                            .padding = (rlxvk_grid_padding)enumerator(s, "padding", paddings, 3),
                            .align_corners = case_integer(s, "align", 0) != 0};
    rlxvk_tensor x = case_shifted(g, s, "shift", case_tensor(s, inputs, "x"));
    rlxvk_tensor dy = case_shifted(g, s, "dy_shift", case_tensor(s, inputs, "dy"));
    rlxvk_tensor grid = case_tensor(s, inputs, "grid");
    int64_t input[3] = {0};
    case_entries(s, "input", input);
    if (strcmp(s->row, "grid_sample") == 0)
        return rlxvk_grid_sample(g, x, grid, &o);
    if (strcmp(s->row, "grid_sample_backward_grid") == 0)
        return rlxvk_grid_sample_backward_grid(g, x, grid, dy, &o);
    return rlxvk_grid_sample_backward_input(g, dy, grid, input, &o);
}

static void generate_grids(case_list *list)
{
    static const char *const samples[] = {
        "mode=nearest in=x:f32:2x3x4x5:special;grid:f32:2x4x6x2:range:-1.4:1.4",
        "mode=nearest padding=border in=x:f32:1x1x3x3:special;grid:f32:1x4x6x2:special",
        "padding=border in=x:f32:1x1x3x3;grid:f32:1x4x6x2:special",
        "padding=reflection in=x:f32:1x1x3x3;grid:f32:1x4x6x2:large",
        "in=x:f32:1x1x3x3;grid:f32:1x4x6x2:special",
        "mode=bicubic padding=reflection in=x:f32:1x2x1x5;grid:f32:1x3x3x2:range:-9:9",
        "mode=bicubic padding=reflection align=1 in=x:f32:1x2x1x5;grid:f32:1x3x3x2:range:-9:9",
        "padding=reflection align=1 in=x:f32:1x2x5x1;grid:f32:1x3x3x2:range:-9:9",
        "align=1 in=x:f32:1x2x1x1;grid:f32:1x3x3x2:unit",
        "shift=1 in=x:f32:3x2x6x5;grid:f32:2x3x4x2:unit", "in=x:f16:2x2x6x5;grid:f32:2x3x4x2:unit",
        "in=x:f32:2x9x40x44:unit;grid:f32:2x40x33x2:unit",
        "mode=bicubic in=x:f32:1x19x30x34:unit;grid:f32:1x50x33x2:unit",
        "in=x:f32:1x1024x4x4:unit;grid:f32:1x50x50x2:unit",
        /* several channels at once, with a remainder; strips of points, with a narrow last one */
        "in=x:f32:2x13x60x70:unit;grid:f32:2x290x301x2:turned:290:301",
        "mode=nearest in=x:f32:1x27x30x30:special;grid:f32:1x2x40001x2:range:-1.2:1.2",
        "padding=border shift=1 in=x:f32:3x3x50x50:unit;grid:f32:2x700x510x2:range:-1.2:1.2",
        "in=x:f32:0x2x4x4;grid:f32:0x2x2x2", "in=x:f32:1x0x4x4;grid:f32:1x2x2x2",
        "in=x:f32:1x2x4x4;grid:f32:1x0x2x2", "in=x:f32:2x2x4x4;grid:f32:2x2x2x2:zero",
        "expect=E_SHAPE in=x:f32:1x2x4x4;grid:f32:2x2x2x2",
        "expect=E_SHAPE in=x:f32:1x2x4x4;grid:f32:1x2x2x3",
        "expect=E_SHAPE in=x:f32:1x2x4;grid:f32:1x2x2x2",
        "expect=E_SHAPE in=x:f32:1x2x0x4;grid:f32:1x2x2x2",
        "expect=E_ATTR mode=other in=x:f32:1x2x4x4;grid:f32:1x2x2x2",
        "expect=E_ATTR padding=other in=x:f32:1x2x4x4;grid:f32:1x2x2x2",
        "expect=E_DTYPE in=x:c64:1x2x4x4;grid:f32:1x2x2x2", "expect=E_ARITY in=x:f32:1x2x4x4"};
    static const char *const adjoints[] = {
        "input=9,7 in=dy:f32:2x9x40x33:unit;grid:f32:2x40x33x2:unit",
        "input=30,40 in=dy:f32:2x5x40x33:unit;grid:f32:2x40x33x2:unit",
        "input=2,2 in=dy:f32:1x3x50x80:unit;grid:f32:1x50x80x2:unit",
        "input=300,2 mode=nearest in=dy:f32:1x3x50x80:unit;grid:f32:1x50x80x2:unit",
        "input=3,3 padding=border in=dy:f32:1x1x4x6;grid:f32:1x4x6x2:special",
        /* many channels at once, with a remainder; strips of cells; each image is sorted by itself
         */
        "input=300,310 in=dy:f32:2x12x100x90:unit;grid:f32:2x100x90x2:turned:100:90",
        "input=16,16 padding=reflection in=dy:f32:2x5x80x70:unit;grid:f32:2x80x70x2:range:-1.4:1.4",
        "input=16,16 mode=bicubic in=dy:f32:3x3x70x80:unit;grid:f32:3x70x80x2:range:-1.4:1.4",
        "input=2,2 mode=bicubic padding=reflection in=dy:f32:1x3x50x8:unit;grid:f32:1x50x8x2:unit",
        "input=1,1 in=dy:f32:1x3x5x8:unit;grid:f32:1x5x8x2:unit",
        /* points that read nothing, and cells of weight 0, whatever dy is */
        "input=7,5 in=dy:f32:2x3x40x41:special;grid:f32:2x40x41x2:range:5:6",
        "input=7,5 align=1 in=dy:f32:2x3x4x6:special;grid:f32:2x4x6x2:integers",
        "input=5,4 dy_shift=1 in=dy:f32:3x6x3x5;grid:f32:2x3x5x2:unit",
        "input=3,3 in=dy:f32:0x2x4x4;grid:f32:0x4x4x2",
        "input=3,3 in=dy:f32:1x0x4x4;grid:f32:1x4x4x2",
        "expect=E_SHAPE input=3,3 in=dy:f32:1x2x4x0;grid:f32:1x4x0x2",
        "expect=E_SHAPE input=3,3 in=dy:f32:1x2x4x5;grid:f32:1x4x4x2",
        "expect=E_SHAPE input=3 in=dy:f32:1x2x4x4;grid:f32:1x4x4x2",
        "expect=E_ATTR input=3,-3 in=dy:f32:1x2x4x4;grid:f32:1x4x4x2",
        "expect=E_TOO_LARGE input=16777217,3 in=dy:f32:1x2x4x4;grid:f32:1x4x4x2",
        "expect=E_TOO_LARGE input=16777216,16777216 in=dy:f32:1x2x4x4;grid:f32:1x4x4x2"};
    static const char *const slopes[] = {
        "in=x:f32:2x9x40x44:unit;grid:f32:2x40x33x2:unit;dy:f32:2x9x40x33:unit",
        "in=x:f32:1x300x4x4:unit;grid:f32:1x5x3x2:unit;dy:f32:1x300x5x3:unit",
        "shift=1 dy_shift=2 in=x:f32:3x3x6x5:unit;grid:f32:2x9x70x2:unit;dy:f32:4x3x9x70:unit",
        "align=1 in=x:f32:1x2x6x5;grid:f32:1x9x7x2:integers;dy:f32:1x2x9x7",
        "in=x:f32:1x0x4x4:unit;grid:f32:1x5x3x2:unit;dy:f32:1x0x5x3:unit",
        "in=x:f32:1x2x4x4:unit;grid:f32:1x0x3x2:unit;dy:f32:1x2x0x3:unit",
        "expect=E_SHAPE in=x:f32:1x2x4x4;grid:f32:1x2x3x2;dy:f32:1x2x3x2"};
    for (int i = 0; i < 18; i++) {
        char how[64];
        snprintf(how, sizeof how, "mode=%s padding=%s align=%d", grid_modes[i / 6],
                 paddings[i / 2 % 3], i % 2);
        case_add(list, "grid_sample %s in=x:f32:2x3x5x4;grid:f32:2x4x6x2:range:-1.6:1.6", how);
        case_add(list,
                 "grid_sample_backward_input %s input=5,4 in=dy:f32:2x6x3x5;"
                 "grid:f32:2x3x5x2:range:-1.6:1.6",
                 how);
        case_add(list,
                 "grid_sample_backward_grid %s in=x:f32:2x3x5x4;"
                 "grid:f32:2x4x6x2:range:-1.6:1.6;dy:f32:2x3x4x6",
                 how);
    }
    case_add_all(list, "grid_sample", samples, COUNT(samples));
    case_add_all(list, "grid_sample_backward_input", adjoints, COUNT(adjoints));
    case_add_all(list, "grid_sample_backward_grid", slopes, COUNT(slopes));
}

/* Three spatial axes. */
static void generate_volumes(case_list *list)
{
    static const char *const samples[] = {
        "mode=nearest in=x:f32:2x3x2x4x5:special;grid:f32:2x3x4x6x3:range:-1.4:1.4",
        "mode=nearest padding=border in=x:f32:1x1x3x3x3:special;grid:f32:1x2x4x6x3:special",
        "padding=border in=x:f32:1x1x3x3x3;grid:f32:1x2x4x6x3:special",
        "padding=reflection in=x:f32:1x1x3x3x3;grid:f32:1x2x4x6x3:large",
        "padding=reflection align=1 in=x:f32:1x2x5x1x2;grid:f32:1x2x3x3x3:range:-9:9",
        "align=1 in=x:f32:1x2x1x1x1;grid:f32:1x2x3x3x3:unit",
        "shift=1 in=x:f32:3x2x4x6x5;grid:f32:2x2x3x4x3:unit",
        "in=x:f32:2x9x12x20x14:unit;grid:f32:2x10x12x33x3:unit",
        "in=x:f32:1x9x12x20x14:unit;grid:f32:1x60x64x62x3:unit",
        "mode=nearest in=x:f32:1x2x4x4x4;grid:f32:1x3x3x3x3:integers",
        "in=x:f32:1x2x4x4x4;grid:f32:1x0x2x2x3",
        "in=x:f32:1x0x4x4x4;grid:f32:1x2x2x2x3",
        "expect=E_SHAPE in=x:f32:1x2x4x4x4;grid:f32:1x2x2x3",
        "expect=E_SHAPE in=x:f32:1x2x4x4x4;grid:f32:1x2x2x2x2",
        "expect=E_SHAPE in=x:f32:1x2x0x4x4;grid:f32:1x2x2x2x3",
        "expect=E_SHAPE in=x:f32:1x2x4x4x4x4;grid:f32:1x2x2x2x2x4",
        "expect=E_ATTR mode=bicubic in=x:f32:1x2x4x4x4;grid:f32:1x2x2x2x3"};
    static const char *const adjoints[] = {
        "input=9,7,5 in=dy:f32:2x5x10x12x33:unit;grid:f32:2x10x12x33x3:unit",
        "input=2,1,30 mode=nearest in=dy:f32:1x3x5x10x8:unit;grid:f32:1x5x10x8x3:unit",
        ("input=3,4,70 padding=reflection in=dy:f32:2x9x5x30x40:unit;"
         "grid:f32:2x5x30x40x3:range:-1.4:1.4"),
        "input=3,3,3 padding=border in=dy:f32:1x1x2x4x6;grid:f32:1x2x4x6x3:special",
        "input=3,3,3 in=dy:f32:0x2x4x4x4;grid:f32:0x4x4x4x3",
        "expect=E_SHAPE input=3,3 in=dy:f32:1x2x4x4x4;grid:f32:1x4x4x4x3",
        "expect=E_ATTR input=3,3,-3 in=dy:f32:1x2x4x4x4;grid:f32:1x4x4x4x3",
        "expect=E_TOO_LARGE input=4000,4000,4000 in=dy:f32:1x2x4x4x4;grid:f32:1x4x4x4x3"};
    for (int i = 0; i < 12; i++) {
        char how[64];
        snprintf(how, sizeof how, "mode=%s padding=%s align=%d", grid_modes[i / 6],
                 paddings[i / 2 % 3], i % 2);
        case_add(list, "grid_sample %s in=x:f32:2x3x3x5x4;grid:f32:2x2x4x6x3:range:-1.6:1.6", how);
        case_add(list,
                 "grid_sample_backward_input %s input=3,5,4 in=dy:f32:2x6x2x3x5;"
                 "grid:f32:2x2x3x5x3:range:-1.6:1.6",
                 how);
        case_add(list,
                 "grid_sample_backward_grid %s in=x:f32:2x3x3x5x4;"
                 "grid:f32:2x2x4x6x3:range:-1.6:1.6;dy:f32:2x3x2x4x6",
                 how);
    }
    case_add_all(list, "grid_sample", samples, COUNT(samples));
    case_add_all(list, "grid_sample_backward_input", adjoints, COUNT(adjoints));
    case_add(list, "grid_sample_backward_grid "
                   "in=x:f32:1x70x4x4x4:unit;grid:f32:1x2x5x3x3:unit;dy:f32:1x70x2x5x3:unit");
}

/* ---- Pools ---- */

static const char *const pool_rows[] = {
    "pool_max_indices",   "pool_lp",           "global_pool_max",
    "global_pool_mean",   "global_pool_lp",    "pool_max_unpool",
    "adaptive_pool_mean", "adaptive_pool_max", NULL};

static rlxvk_tensor build_pool(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_pool_options o = {0};
    int64_t size[3] = {0};
    rlxvk_tensor x = case_shifted(g, s, "shift", case_tensor(s, inputs, "x")), indices;
    float p = (float)case_real(s, "p", 2);
    case_windows(s, &o);
    case_entries(s, "size", size);
    if (strcmp(s->row, "pool_lp") == 0)
        return rlxvk_pool_lp(g, x, p, &o);
    if (strcmp(s->row, "global_pool_max") == 0)
        return rlxvk_global_pool_max(g, x);
    if (strcmp(s->row, "global_pool_mean") == 0)
        return rlxvk_global_pool_mean(g, x);
    if (strcmp(s->row, "global_pool_lp") == 0)
        return rlxvk_global_pool_lp(g, x, p);
    if (strcmp(s->row, "adaptive_pool_mean") == 0)
        return rlxvk_adaptive_pool_mean(g, x, size);
    if (strcmp(s->row, "adaptive_pool_max") == 0)
        return rlxvk_adaptive_pool_max(g, x, size);
    if (strcmp(s->row, "pool_max_indices") == 0)
        return rlxvk_pool_max_indices(g, x, &o);
    if (case_tensor(s, inputs, "indices").id)
        return rlxvk_pool_max_unpool(g, x, case_tensor(s, inputs, "indices"), size);
    rlxvk_tensor y = rlxvk_pool_max_with_indices(g, x, &o, &indices);
    return rlxvk_pool_max_unpool(g, y, indices, size);
}

static const char *const adaptives[] = {"size=3 in=x:f32:2x3x9",
                                        "size=4 in=x:f32:2x3x9",
                                        "size=9 in=x:f32:2x3x9",
                                        "size=12 in=x:f32:2x3x9",
                                        "size=1,1 in=x:f32:2x3x8x9",
                                        "size=4,5 in=x:f32:2x3x8x9",
                                        "size=3,3 in=x:f32:2x3x6x9",
                                        "size=7,7 in=x:f32:1x2x5x16",
                                        "size=2,3,4 in=x:f32:1x2x5x6x7",
                                        "size=1,1,1 in=x:f32:1x2x5x6x7:integers",
                                        "size=6,6 in=x:f32:1x2x33x20",
                                        "size=2,2 in=x:f32:0x2x3x3",
                                        "size=2 shift=1 in=x:f32:3x2x5",
                                        "expect=E_ATTR size=0 in=x:f32:1x1x4",
                                        "expect=E_ATTR size=2 in=x:f32:1x1x4x4",
                                        "expect=E_SHAPE size=2 in=x:f32:1x1x0",
                                        "expect=E_SHAPE size=2 in=x:f32:1x4",
                                        "expect=E_TOO_LARGE size=16777217 in=x:f32:1x1x4"};

static void generate_pools(case_list *list)
{
    static const char *const indices[] = {
        "kernel=2 in=x:f32:2x3x9",
        "kernel=3 stride=2 padding=1 in=x:f32:2x3x9:special",
        "kernel=2,2 stride=2,2 in=x:f32:2x3x8x9:bool",
        "kernel=3,3 padding=1,1 in=x:f32:2x3x5x7:neginf",
        "kernel=2,2,2 in=x:f32:1x2x3x4x5:integers",
        "kernel=20,20 in=x:f32:1x2x21x23",
        "kernel=2 shift=1 in=x:f32:3x1x5",
        "kernel=2 in=x:f32:0x1x5",
        "kernel=3,2 dilation=2,3 in=x:f32:2x3x8x9:special",
        "kernel=3,3 stride=2,2 ceil=1 in=x:f32:2x3x8x9",
        "kernel=2 padding=3 padding_after=1 in=x:f32:2x3x4",
        ("kernel=20,20 dilation=1,2 stride=3,3 padding=4,0 ceil=1 "
         "in=x:f32:1x2x21x43"),
        "expect=E_SHAPE kernel=9 in=x:f32:1x1x5",
        "expect=E_ATTR in=x:f32:1x1x5",
        "expect=E_DTYPE kernel=2 in=x:c64:1x1x5"};
    static const char *const powers[] = {
        "within=2e-6 p=2 kernel=2 in=x:f32:2x3x9",
        "within=2e-6 p=1 kernel=3,2 stride=2,1 padding=1,1 in=x:f32:2x3x8x9",
        "within=5e-6 p=3 kernel=3,2 in=x:f32:2x3x8x9",
        "within=5e-6 p=0.5 kernel=2,2,2 in=x:f32:1x2x3x4x5",
        "within=5e-6 p=2.5 kernel=4 stride=4 in=x:f32:2x3x9:zero",
        "within=5e-6 p=2 kernel=3,2 dilation=2,3 padding=3,0 ceil=1 in=x:f32:2x3x8x9",
        "within=5e-6 p=3 kernel=3 stride=2 padding=0 padding_after=2 in=x:f32:2x3x8",
        "expect=E_ATTR p=0 kernel=2 in=x:f32:2x3x9",
        "expect=E_ATTR p=-1 kernel=2 in=x:f32:2x3x9",
        "expect=E_ATTR p=inf kernel=2 in=x:f32:2x3x9",
        "expect=E_SHAPE p=2 kernel=2 in=x:f32:3x9"};
    static const char *const wholes[] = {"in=x:f32:2x3x9",
                                         "in=x:f32:2x3x8x9",
                                         "in=x:f32:2x3x4x3x5:integers",
                                         "in=x:f32:1x1x1",
                                         "in=x:f32:0x3x4x5",
                                         "in=x:f32:2x2x20x25",
                                         "expect=E_SHAPE in=x:f32:2x3",
                                         "expect=E_SHAPE in=x:f32:1x1x1x1x1x1"};
    static const char *const back[] = {
        "kernel=2 stride=2 size=8 in=x:f32:2x3x8",
        "kernel=2,2 stride=2,2 size=8,9 in=x:f32:2x3x8x9",
        "kernel=2,2,2 stride=2,2,2 size=4,4,6 in=x:f32:1x2x4x4x6",
        "within=2e-6 kernel=3,3 size=6,6 in=x:f32:1x2x6x6",
        "size=3,4 in=x:f32:2x1x2x3;indices:f32:2x1x2x3:index:12",
        "within=2e-6 size=3 in=x:f32:2x1x7;indices:f32:2x1x7:badindex:3",
        "size=3 in=x:f32:0x1x7;indices:f32:0x1x7:index:3",
        "expect=E_SHAPE size=3 in=x:f32:2x1x7;indices:f32:2x1x6:index:3",
        "expect=E_SHAPE size=3 in=x:f32:2x1x7;indices:f32:1x2x7:index:3",
        "expect=E_ATTR size=0 in=x:f32:2x1x7;indices:f32:2x1x7:index:3",
        "expect=E_INDEX_RANGE size=5000,5000 in=x:f32:1x1x2x2;indices:f32:1x1x2x2"};
    static const char *const lp[] = {"within=5e-6 p=3 in=x:f32:2x3x9",
                                     "within=5e-6 p=1.5 in=x:f32:2x3x4x5x2",
                                     "within=5e-6 p=2 in=x:f32:2x3x9:range:1e-30:2e-30",
                                     "within=5e-6 p=2 in=x:f32:2x3x9:range:1e25:2e25",
                                     "within=5e-6 p=9 in=x:f32:2x3x9:range:1e25:2e25",
                                     "expect=E_ATTR p=0 in=x:f32:2x3x9"};
    case_add_all(list, "pool_max_indices", indices, COUNT(indices));
    case_add_all(list, "pool_lp", powers, COUNT(powers));
    for (size_t i = 2; i < 5; i++)
        for (size_t k = 0; k < COUNT(wholes); k++) /* the maximum is exact */
            case_add(list, "%s%s %s", pool_rows[i],
                     strcmp(pool_rows[i], "global_pool_lp") == 0 && strncmp(wholes[k], "in", 2) == 0
                         ? " within=2e-6"
                         : "",
                     wholes[k]);
    case_add_all(list, "global_pool_lp", lp, COUNT(lp));
    case_add_all(list, "adaptive_pool_mean", adaptives, COUNT(adaptives));
    case_add_all(list, "adaptive_pool_max", adaptives, COUNT(adaptives));
    case_add_all(list, "pool_max_unpool", back, COUNT(back));
}

/* ---- Convolutions and norms ---- */

static const char *const conv_rows[] = {"conv_padded", "conv_same", "conv_transpose",
                                        "instance_norm", NULL};

static rlxvk_tensor build_conv(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_conv_options o = {.groups = case_integer(s, "groups", 0)};
    int64_t before[3] = {0}, after[3] = {0};
    rlxvk_tensor x = case_shifted(g, s, "shift", case_tensor(s, inputs, "x"));
    rlxvk_tensor w = case_tensor(s, inputs, "w"), bias = case_tensor(s, inputs, "bias");
    case_entries(s, "stride", o.stride);
    case_entries(s, "padding", o.padding);
    case_entries(s, "dilation", o.dilation);
    case_entries(s, "output_padding", o.output_padding);
    case_entries(s, "before", before);
    case_entries(s, "after", after);
    if (strcmp(s->row, "conv_padded") == 0)
        return rlxvk_conv_padded(g, x, w, bias, &o, before, after);
    if (strcmp(s->row, "conv_same") == 0)
        return rlxvk_conv_same(g, x, w, bias, &o);
    if (strcmp(s->row, "conv_transpose") == 0)
        return rlxvk_conv_transpose(g, x, w, bias, &o);
    return rlxvk_instance_norm(g, x, case_tensor(s, inputs, "gamma"),
                               case_tensor(s, inputs, "beta"), (float)case_real(s, "eps", 1e-5));
}

static void generate_convs(case_list *list)
{
    static const char *const padded[] = {
        "before=1 after=2 in=x:f32:2x3x9;w:f32:4x3x3;bias:f32:4",
        "before=0,2 after=1,0 stride=2,1 in=x:f32:2x3x8x7;w:f32:4x3x3x2",
        "before=1,1 after=1,1 in=x:f32:2x3x8x7;w:f32:4x3x3x3;bias:f32:4",
        "before=0,1,2 after=2,1,0 groups=2 in=x:f32:1x4x3x4x5;w:f32:4x2x2x2x2",
        "before=3,0 after=0,3 dilation=2,2 in=x:f32:1x2x6x7;w:f32:3x2x3x3",
        "expect=E_ATTR before=-1 in=x:f32:2x3x9;w:f32:4x3x3",
        "expect=E_ATTR padding=1 in=x:f32:2x3x9;w:f32:4x3x3",
        "expect=E_SHAPE before=1 in=x:f32:2x3x9;w:f32:4x2x3",
        "expect=E_SHAPE in=x:f32:3x9;w:f32:4x3x3"};
    static const char *const same[] = {"in=x:f32:2x3x9;w:f32:4x3x3;bias:f32:4",
                                       "in=x:f32:2x3x9;w:f32:4x3x4",
                                       "stride=2,2 in=x:f32:2x3x8x7;w:f32:4x3x3x3",
                                       "stride=3,2 in=x:f32:2x3x8x7;w:f32:4x3x2x5",
                                       "dilation=2,3 in=x:f32:2x3x8x7;w:f32:4x3x2x3",
                                       "groups=3 in=x:f32:1x3x4x5x6;w:f32:3x1x2x3x4",
                                       "stride=4 in=x:f32:1x1x9;w:f32:1x1x2",
                                       "expect=E_ATTR stride=-1 in=x:f32:2x3x9;w:f32:4x3x3",
                                       "expect=E_ATTR padding=1 in=x:f32:2x3x9;w:f32:4x3x3",
                                       "expect=E_SHAPE in=x:f32:2x3x9;w:f32:4x3x3x3"};
    static const char *const transposed[] = {
        "stride=2 output_padding=1 in=x:f32:2x4x5;w:f32:4x3x3;bias:f32:3",
        "stride=2,3 padding=1,1 output_padding=1,2 in=x:f32:2x4x5x6;w:f32:4x3x3x3",
        "groups=2 dilation=2,1 in=x:f32:1x4x5x6;w:f32:4x3x2x3;bias:f32:6",
        "stride=2,1,2 output_padding=1,0,1 in=x:f32:1x2x3x4x3;w:f32:2x3x2x2x3",
        "stride=1,2,1 groups=2 dilation=1,1,2 padding=1,0,1 in=x:f32:1x4x3x3x4;w:f32:4x1x2x2x2",
        "expect=E_ATTR output_padding=1 in=x:f32:2x4x5;w:f32:4x3x3"};
    static const char *const norms[] = {"in=x:f32:2x3x9;gamma:f32:3;beta:f32:3",
                                        "in=x:f32:2x3x8x9:offset;gamma:f32:3",
                                        "in=x:f32:2x1x3x4x5;beta:f32:1",
                                        "in=x:f32:2x0x5",
                                        "eps=0 in=x:f32:2x3x4:constant:0.5;beta:f32:3",
                                        "expect=E_SHAPE in=x:f32:5",
                                        "expect=E_SHAPE in=x:f32:2x3x9;gamma:f32:4"};
    case_add_all(list, "conv_padded", padded, COUNT(padded));
    case_add_all(list, "conv_same", same, COUNT(same));
    case_add_all(list, "conv_transpose", transposed, COUNT(transposed));
    case_add_all(list, "instance_norm", norms, COUNT(norms));
}

/* ---- All ---- */

static bool is_of(const char *const *names, const char *row)
{
    for (; *names; names++)
        if (strcmp(*names, row) == 0)
            return true;
    return false;
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    if (strncmp(s->row, "grid_", 5) == 0)
        return build_grid(g, s, inputs);
    if (is_of(pool_rows, s->row))
        return build_pool(g, s, inputs);
    if (is_of(conv_rows, s->row))
        return build_conv(g, s, inputs);
    return build_resize(g, s, inputs);
}

static void generate(case_list *list)
{
    generate_resizes(list);
    generate_grids(list);
    generate_volumes(list);
    generate_pools(list);
    generate_convs(list);
}

static const char *const rows[] = {"resize",
                                   "resize_backward",
                                   "grid_sample",
                                   "grid_sample_backward_input",
                                   "grid_sample_backward_grid",
                                   "pool_max_indices",
                                   "pool_lp",
                                   "global_pool_max",
                                   "global_pool_mean",
                                   "global_pool_lp",
                                   "pool_max_unpool",
                                   "adaptive_pool_mean",
                                   "adaptive_pool_max",
                                   "conv_padded",
                                   "conv_same",
                                   "conv_transpose",
                                   "instance_norm",
                                   NULL};

const case_family vision_cases = {.rows = rows, .build = build, .generate = generate};
