/*
 * Cases of gather and take_along_axis, and of their backward ops (axis, dim; in=dy;idx).
 *   shift=n       drops the first n rows of x by a view, so that it begins inside its slot
 *   idx_shift=n   the same for idx
 */
#include "conform/cases/cases.h"

#include <string.h>

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    bool backward = strstr(s->row, "_backward") != NULL;
    rlxvk_tensor x = case_shifted(g, s, "shift", case_tensor(s, inputs, backward ? "dy" : "x"));
    rlxvk_tensor index = case_shifted(g, s, "idx_shift", case_tensor(s, inputs, "idx"));
    int32_t axis = (int32_t)case_integer(s, "axis", 0);
    if (strcmp(s->row, "gather") == 0)
        return rlxvk_gather(g, x, index, axis);
    if (strcmp(s->row, "take_along_axis") == 0)
        return rlxvk_take_along_axis(g, x, index, axis);
    int64_t dim = case_integer(s, "dim", 0);
    if (strcmp(s->row, "gather_backward") == 0)
        return rlxvk_gather_backward(g, x, index, axis, dim);
    return rlxvk_take_along_axis_backward(g, x, index, axis, dim);
}

static void generate_gathers(case_list *list)
{
    static const char *const inners[] = {"1", "2", "3", "4", "6", "8", "64", "129"};
    static const char *const others[] = {
        "axis=0 in=x:f32:1;idx:f32:1:index:1",
        "axis=0 in=x:f32:7;idx:f32:scalar:index:7",
        "axis=1 in=x:f32:2x3;idx:f32:scalar:index:3",
        "axis=0 in=x:f32:5x4;idx:f32:0:index:5",
        "axis=0 in=x:f32:0x4;idx:f32:0",
        "axis=0 in=x:f32:5x0;idx:f32:3:index:5",
        "axis=1 in=x:f32:0x5;idx:f32:3:index:5",
        "axis=0 in=x:f32:5x3;idx:f32:2x3x4:index:5",
        "axis=1 in=x:f32:2x5x3;idx:f32:4x2:index:5",
        "axis=2 in=x:f32:2x3x5;idx:f32:3x1x2:index:5",
        "axis=0 in=x:f32:5;idx:f32:2x1x2x1x2x1x2x1:index:5",
        "axis=3 in=x:f32:2x1x2x5x2x2x2;idx:f32:2x2:index:5",
        "axis=7 in=x:f32:2x1x2x1x2x1x2x3;idx:f32:4:index:3",
        "axis=0 in=x:f32:3x4:iota;idx:f32:64:badindex:3",
        "axis=1 in=x:f32:2x3:iota;idx:f32:64:badindex:3",
        "axis=-1 in=x:f32:2x7x5:special;idx:f32:33:badindex:5",
        "axis=0 in=x:f32:1x5;idx:f32:16:badindex:1",
        "axis=0 in=x:f32:9x4:special;idx:f32:9:special",
        "axis=0 in=x:f32:9x4;idx:f32:9:large",
        "axis=0 in=x:f32:9x4;idx:i32:6:index:9",
        "axis=0 in=x:f32:9x4;idx:i64:6:index:9",
        "axis=0 in=x:i32:9x4:integers;idx:f32:6:index:9",
        "axis=0 in=x:bool:9x3:bool;idx:f32:6:index:9",
        "axis=0 in=x:c64:5;idx:f32:7:index:5",
        "axis=1 in=x:c64:3x5x3;idx:f32:4:index:5",
        "axis=0 in=x:c64:5x4;idx:f32:7:badindex:5",
        "axis=0 in=x:f16:9x8;idx:f32:6:index:9",
        "axis=0 in=x:f16:9x3:special;idx:f32:12:index:9",
        "axis=1 in=x:f16:2x9x6;idx:f32:5:index:9",
        "axis=0 in=x:bf16:9x8:special;idx:f32:6:index:9",
        "axis=1 in=x:bf16:3x9x1;idx:f32:6:badindex:9",
        "axis=0 shift=1 in=x:f16:10x4;idx:f32:6:index:9",
        "axis=0 shift=1 in=x:f16:10x3;idx:f32:6:index:9",
        "axis=0 shift=1 in=x:bf16:10x5;idx:f32:6:index:9",
        "axis=0 shift=1 in=x:f32:10x4;idx:f32:6:index:9",
        "axis=0 shift=1 in=x:f32:10x3;idx:f32:6:index:9",
        "axis=0 shift=1 idx_shift=3 in=x:f32:10x6;idx:f32:8:index:9",
        "axis=0 in=x:f32:320x256;idx:f32:17:index:320",
        "axis=0 in=x:f32:1000000;idx:f32:100:index:1000000",
        "axis=0 in=x:f32:9000001;idx:f32:100:index:9000001", /* f32 has no v + 0.5 above 2^23 */
        "axis=1 in=x:f32:3x100x7;idx:f32:500:index:100",
    };
    for (size_t i = 0; i < COUNT(inners); i++) {
        case_add(list, "gather axis=0 in=x:f32:7x%s;idx:f32:5:index:7", inners[i]);
        case_add(list, "gather axis=%d in=x:f32:3x7x%s;idx:f32:11:index:7", i % 2 ? 1 : -2,
                 inners[i]);
    }
    case_add_all(list, "gather", others, COUNT(others));
}

static void generate_takes(case_list *list)
{
    static const char *const others[] = {
        "axis=0 in=x:f32:1;idx:f32:1:index:1",
        "axis=0 in=x:f32:7;idx:f32:20:index:7",
        "axis=0 in=x:f32:7;idx:f32:0",
        "axis=0 in=x:f32:0x3;idx:f32:0x3",
        "axis=1 in=x:f32:0x3;idx:f32:0x2:index:3",
        "axis=1 in=x:f32:4x1;idx:f32:4x5:index:1",
        "axis=1 in=x:f32:4x6;idx:f32:1x5:index:6",
        "axis=1 in=x:f32:1x6;idx:f32:4x5:index:6",
        "axis=0 in=x:f32:6x4;idx:f32:5x1:index:6",
        "axis=0 in=x:f32:6x1;idx:f32:5x4:index:6",
        "axis=1 in=x:f32:2x6x1x3;idx:f32:1x2x4x3:index:6",
        "axis=2 in=x:f32:1x3x6x1;idx:f32:2x1x2x4:index:6",
        "axis=3 in=x:f32:2x1x3x6;idx:f32:2x2x1x5:index:6",
        "axis=1 in=x:f32:1x1;idx:f32:1x1:index:1",
        "axis=0 in=x:f32:2x2x2x2x2x2x2x2;idx:f32:3x2x2x2x2x2x2x2:index:2",
        "axis=7 in=x:f32:2x1x2x1x2x1x2x3;idx:f32:1x2x1x2x1x2x1x4:index:3",
        "axis=4 in=x:f32:2x1x2x2x5x2x1x3;idx:f32:1x2x2x1x3x2x2x3:index:5",
        "axis=1 in=x:f32:4x5:iota;idx:f32:4x16:badindex:5",
        "axis=0 in=x:f32:5x4:special;idx:f32:16x4:badindex:5",
        "axis=0 in=x:f32:9x4:special;idx:f32:9x4:special",
        "axis=0 in=x:f32:9x4;idx:f32:3x4:large",
        "axis=1 in=x:f32:4x5;idx:i32:4x3:index:5",
        "axis=1 in=x:i32:4x5:integers;idx:i32:4x3:index:5",
        "axis=1 in=x:bool:4x5:bool;idx:f32:4x3:index:5",
        "axis=1 in=x:f16:4x5;idx:f32:4x3:index:5",
        "axis=0 in=x:c64:5;idx:f32:7:index:5",
        "axis=1 in=x:c64:3x5x3;idx:f32:3x4x3:index:5",
        "axis=1 in=x:c64:1x5x3;idx:f32:3x4x1:badindex:5",
        "axis=1 shift=1 in=x:f32:4x5;idx:f32:3x3:index:5",
        "axis=1 shift=1 idx_shift=2 in=x:f32:4x5;idx:f32:5x3:index:5",
        "axis=0 idx_shift=1 in=x:f32:6x4;idx:f32:4x4:index:6",
        "axis=1 in=x:f32:64x320;idx:f32:64x40:index:320",
        "axis=0 in=x:f32:9000001;idx:f32:100:index:9000001", /* f32 has no v + 0.5 above 2^23 */
        "axis=1 in=x:f32:100x300;idx:f32:100x257:index:300",
    };
    for (int axis = 0; axis < 3; axis++) {
        const char *indices[] = {"2x4x3", "5x2x3", "5x4x2"},
                   *longer[] = {"9x4x3", "5x9x3", "5x4x9"};
        int extents[] = {5, 4, 3};
        case_add(list, "take_along_axis axis=%d in=x:f32:5x4x3;idx:f32:%s:index:%d", axis,
                 indices[axis], extents[axis]);
        case_add(list, "take_along_axis axis=%d in=x:f32:5x4x3;idx:f32:%s:badindex:%d", axis - 3,
                 longer[axis], extents[axis]);
    }
    case_add_all(list, "take_along_axis", others, COUNT(others));
}

static void generate_refusals(case_list *list)
{
    static const char *const lines[] = {
        "gather expect=E_AXIS axis=2 in=x:f32:2x3;idx:f32:4",
        "gather expect=E_AXIS axis=0 in=x:f32:scalar;idx:f32:4",
        "gather expect=E_RANGE axis=0 in=x:f32:0x3;idx:f32:4",
        "gather expect=E_DTYPE axis=0 in=x:f32:2x3;idx:c64:4",
        "gather expect=E_DTYPE axis=0 in=x:u8:4x8:bytes;idx:f32:4",
        "gather expect=E_SHAPE axis=0 in=x:f32:2x3;idx:f32:1x1x1x1x1x1x1x1",
        "gather expect=E_INDEX_RANGE axis=0 in=x:f32:16777217x0;idx:f32:4",
        "take_along_axis expect=E_SHAPE axis=0 in=x:f32:2x3;idx:f32:scalar",
        "take_along_axis expect=E_SHAPE axis=0 in=x:f32:2x3;idx:f32:5x2",
        "take_along_axis expect=E_AXIS axis=0 in=x:f32:scalar;idx:f32:scalar",
        "take_along_axis expect=E_RANGE axis=0 in=x:f32:0x3;idx:f32:5x3",
        "take_along_axis expect=E_DTYPE axis=0 in=x:f32:2x3;idx:c64:2x3",
        "take_along_axis expect=E_INDEX_RANGE axis=0 in=x:f32:16777217x0;idx:f32:1x1",
    };
    case_add_all(list, "", lines, COUNT(lines));
}

static void generate_backward(case_list *list)
{
    static const char *const gathers[] = {
        "axis=0 dim=1 in=dy:f32:scalar;idx:f32:scalar",
        "axis=0 dim=7 in=dy:f32:scalar;idx:f32:scalar:index:7",
        "axis=0 dim=7 in=dy:f32:5;idx:f32:5:index:7",
        "axis=0 dim=7 in=dy:f32:50;idx:f32:50:badindex:7",
        "axis=0 dim=7 in=dy:f32:0;idx:f32:0",
        "axis=0 dim=0 in=dy:f32:0x3;idx:f32:0",
        "axis=0 dim=7 in=dy:f32:5x0;idx:f32:5:index:7",
        "axis=0 dim=9 in=dy:f32:6x4;idx:f32:6:badindex:9",
        "axis=1 dim=9 in=dy:f32:6x4;idx:f32:4:badindex:9",
        "axis=-1 dim=9 in=dy:f32:6x4;idx:f32:4:index:9",
        "axis=-2 dim=6 in=dy:f32:5x3x2x4;idx:f32:3x2:badindex:6",
        "axis=1 dim=6 in=dy:f32:5x3x2x4;idx:f32:3:badindex:6",
        "axis=0 dim=33 in=dy:f32:40x129:special;idx:f32:40:index:33",
        "axis=0 dim=32 in=dy:f32:4x10x128;idx:i32:4x10:index:32",
        "axis=0 dim=32 shift=1 in=dy:f32:41x13;idx:f32:40:index:32",
        "axis=0 dim=32 idx_shift=1 in=dy:f32:40x12;idx:f32:41:index:32",
        "axis=1 dim=5 in=dy:c64:3x7x2;idx:f32:7:badindex:5",
        "axis=0 dim=3000 in=dy:f32:5000x64;idx:f32:5000:index:3000",
        "axis=0 dim=3000 in=dy:f32:5000x65;idx:f32:5000:badindex:3000",
        "axis=0 dim=20000 in=dy:c64:5000x2;idx:f32:5000:index:20000",
        "axis=0 dim=20 in=dy:f32:9000x24;idx:f32:9000:badindex:20",
        "axis=1 dim=500 in=dy:f32:3x4200x5;idx:f32:4200:badindex:500",
        "axis=1 dim=500 in=dy:f32:3x4200x8;idx:f32:4200:badindex:500",
        "axis=2 dim=30 in=dy:f32:5x7x5000;idx:f32:5000:badindex:30",
        "axis=1 dim=40000 in=dy:f32:300x11;idx:f32:11:index:40000",
        "expect=E_AXIS axis=2 dim=4 in=dy:f32:3x4;idx:f32:4",
        "expect=E_SHAPE axis=0 dim=4 in=dy:f32:3x4;idx:f32:4",
        "expect=E_SHAPE axis=0 dim=4 in=dy:f32:3;idx:f32:3x1",
        "expect=E_ATTR axis=0 dim=-1 in=dy:f32:3x4;idx:f32:3",
        "expect=E_RANGE axis=0 dim=0 in=dy:f32:3x4;idx:f32:3",
        "expect=E_DTYPE axis=0 dim=4 in=dy:f32:3x4;idx:c64:3",
        "expect=E_INDEX_RANGE axis=0 dim=16777217 in=dy:f32:3x0;idx:f32:3",
    };
    static const char *const takes[] = {
        "axis=0 dim=7 in=dy:f32:5;idx:f32:5:index:7",
        "axis=0 dim=7 in=dy:f32:50;idx:f32:50:badindex:7",
        "axis=0 dim=7 in=dy:f32:0;idx:f32:0",
        "axis=1 dim=7 in=dy:f32:3x0;idx:f32:3x0",
        "axis=0 dim=7 in=dy:f32:5x4x3;idx:f32:5x4x3:badindex:7",
        "axis=1 dim=7 in=dy:f32:5x4x3;idx:f32:5x4x3:badindex:7",
        "axis=-1 dim=7 in=dy:f32:5x4x3:special;idx:f32:5x4x3:index:7",
        "axis=1 dim=5 in=dy:c64:3x4x3;idx:f32:3x4x3:badindex:5",
        "axis=1 dim=5 shift=1 in=dy:f32:4x6;idx:f32:3x6:index:5",
        "axis=1 dim=5 idx_shift=1 in=dy:f32:3x6;idx:f32:4x6:index:5",
        "axis=1 dim=320 in=dy:f32:64x40;idx:f32:64x40:index:320",
        "axis=1 dim=11 in=dy:f32:7x300x5;idx:f32:7x300x5:badindex:11",
        "axis=0 dim=3000 in=dy:f32:3001;idx:f32:3001:index:3000",
        "axis=0 dim=5 in=dy:f32:3001;idx:f32:3001:badindex:5",
        "axis=0 dim=40 in=dy:c64:1000x3;idx:f32:1000x3:badindex:40",
        "expect=E_SHAPE axis=0 dim=4 in=dy:f32:3x4;idx:f32:3x1",
        "expect=E_AXIS axis=2 dim=4 in=dy:f32:3x4;idx:f32:3x4",
        "expect=E_AXIS axis=0 dim=4 in=dy:f32:scalar;idx:f32:scalar",
        "expect=E_ATTR axis=0 dim=-1 in=dy:f32:3x4;idx:f32:3x4",
        "expect=E_RANGE axis=0 dim=0 in=dy:f32:3x4;idx:f32:3x4",
        "expect=E_DTYPE axis=0 dim=4 in=dy:f32:3x4;idx:c64:3x4",
        "expect=E_INDEX_RANGE axis=0 dim=16777217 in=dy:f32:3x0;idx:f32:3x0",
    };
    static const char *const ways[] = {"direct", "runs", "elements", "parts"};
    case_add_all(list, "gather_backward", gathers, COUNT(gathers));
    case_add_all(list, "take_along_axis_backward", takes, COUNT(takes));
    for (size_t i = 0; i < COUNT(ways); i++) {
        case_add(list,
                 "gather_backward axis=1 dim=9 variant=scatter_add=%s "
                 "in=dy:f32:3x70x20;idx:f32:70:badindex:9",
                 ways[i]);
        case_add(list,
                 "take_along_axis_backward axis=1 dim=9 variant=scatter_add=%s "
                 "in=dy:f32:3x300x2;idx:f32:3x300x2:badindex:9",
                 ways[i]);
    }
}

static void generate(case_list *list)
{
    generate_gathers(list);
    generate_takes(list);
    generate_refusals(list);
    generate_backward(list);
}

static const char *const rows[] = {"gather", "take_along_axis", "gather_backward",
                                   "take_along_axis_backward", NULL};

const case_family indexing_cases = {.rows = rows, .build = build, .generate = generate};
