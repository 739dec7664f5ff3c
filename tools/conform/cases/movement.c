/*
 * Cases of the layout ops: reshape, stop_gradient, after, transpose, narrow, concat, expand,
 * reverse. All of them copy bit for bit. So shapes are chosen for the paths of the copy: coalesced
 * or not, one, two or four words at a time, tiled, folded.
 *
 * Keys besides the attributes:
 *   shift=n   drops the first n rows of x by a view, so that operands begin inside their slot
 *   flip=1    computes each part of a concat, so that it is not a leaf
 *   nest=n    concatenates the first n parts in a concat of their own
 *   twice=1   passes the parts a second time
 */
#include "conform/cases/cases.h"

#include <string.h>

static rlxvk_tensor operand(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    return case_shifted(g, s, "shift", inputs[0]);
}

static rlxvk_shape target_shape(const case_spec *s)
{
    int32_t dims[RLXVK_MAX_RANK];
    rlxvk_shape shape = {.rank = (uint32_t)case_integers(s, "shape", dims, RLXVK_MAX_RANK)};
    for (uint32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = dims[i];
    return shape;
}

static rlxvk_tensor build_concat(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor parts[2 * CASE_MAX_INPUTS];
    size_t count = s->input_count, nest = (size_t)case_integer(s, "nest", 0);
    int32_t axis = (int32_t)case_integer(s, "axis", 0), first = 0;
    memcpy(parts, inputs, count * sizeof *parts);
    if (case_integer(s, "flip", 0))
        for (size_t i = 0; i < count; i++)
            parts[i] = rlxvk_reverse(g, parts[i], &first, 1);
    if (case_integer(s, "twice", 0)) {
        memcpy(parts + count, parts, count * sizeof *parts);
        count *= 2;
    }
    if (nest) {
        parts[nest - 1] = rlxvk_concat(g, parts, nest, axis);
        return rlxvk_concat(g, parts + nest - 1, count - nest + 1, axis);
    }
    return rlxvk_concat(g, parts, count, axis);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    int32_t axes[RLXVK_MAX_RANK];
    if (strcmp(s->row, "concat") == 0)
        return build_concat(g, s, inputs);
    rlxvk_tensor x = operand(g, s, inputs);
    if (strcmp(s->row, "reshape") == 0)
        return rlxvk_reshape(g, x, target_shape(s));
    if (strcmp(s->row, "expand") == 0)
        return rlxvk_expand(g, x, target_shape(s));
    if (strcmp(s->row, "stop_gradient") == 0)
        return rlxvk_stop_gradient(g, x);
    if (strcmp(s->row, "after") == 0)
        return rlxvk_after(g, x, rlxvk_exp(g, inputs[1]));
    if (strcmp(s->row, "narrow") == 0)
        return rlxvk_narrow(g, x, (int32_t)case_integer(s, "axis", 0), case_integer(s, "start", 0),
                            case_integer(s, "length", 0));
    if (strcmp(s->row, "transpose") == 0)
        return rlxvk_transpose(g, x, axes, case_integers(s, "perm", axes, RLXVK_MAX_RANK));
    return rlxvk_reverse(g, x, axes, case_integers(s, "axes", axes, RLXVK_MAX_RANK));
}

/* ---- Lines ---- */

static void generate_views(case_list *list)
{
    static const char *const reshapes[] = {
        "shape=6 in=x:f32:2x3:special",
        "shape=3,2 in=x:f32:2x3",
        "shape=1 in=x:f32:scalar",
        "in=x:f32:scalar",
        "in=x:f32:1",
        "in=x:f32:1x1x1x1x1x1x1x1",
        "shape=2,2,2,2,2,2,2,2 in=x:f32:256",
        "shape=-1 in=x:f32:4x5x6",
        "shape=4,-1 in=x:f32:4x5x6",
        "shape=-1,6 in=x:f32:4x5x6",
        "shape=2,-1,3 in=x:f32:4x5x6",
        "shape=5,-1,24 in=x:f32:4x5x6",
        "shape=0 in=x:f32:3x0",
        "shape=0,7 in=x:f32:3x0",
        "shape=-1,3 in=x:f32:0x3",
        "shape=7,11,13 in=x:f32:1001:large",
        "shape=13,77 in=x:i32:7x11x13:integers",
        "shape=10 in=x:bool:2x5:bool",
        "shape=3,2 in=x:c64:2x3",
        "shape=-1,1 in=x:c64:5",
        "shape=6,4 in=x:f16:4x6",
        "shape=6,4 in=x:bf16:4x6",
        "shape=1000,41 in=x:f32:41x1000",
        "shape=6 shift=1 in=x:f32:3x3",
        "shape=2,-1 shift=3 in=x:f32:7x5",
        "shape=1,1,1,1,1,1,1,1 shift=2 in=x:f32:3",
    };
    static const char *const leaves[] = {
        "x:f32:scalar",
        "x:f32:1",
        "x:f32:0",
        "x:f32:7:special",
        "x:f32:2x3x5:large",
        "x:i32:4x4",
        "x:bool:9:bool",
        "x:c64:3x2",
        "x:f16:8",
        "x:bf16:3x3",
        "x:f32:1x2x1x2x1x2x1x2",
        "x:f32:3x0x2",
        "x:f32:100x101",
    };
    case_add_all(list, "reshape", reshapes, COUNT(reshapes));
    for (size_t i = 0; i < COUNT(leaves); i++)
        case_add(list, "stop_gradient in=%s", leaves[i]);
    case_add(list, "stop_gradient shift=2 in=x:f32:5x3");
    for (size_t i = 0; i < COUNT(leaves); i += 2)
        case_add(list, "after in=%s;y:f32:2x3", leaves[i]);
}

static void generate_transposes(case_list *list)
{
    static const char *const matrices[] = {
        "1x1",   "1x7",   "7x1",     "2x3",     "3x5",   "15x16",   "16x16",
        "17x16", "31x33", "32x32",   "33x31",   "64x64", "127x129", "257x130",
        "0x3",   "3x0",   "1000x15", "15x1000", "4x64",  "64x4",
    };
    static const char *const perms3[] = {"0,1,2", "0,2,1", "1,0,2", "1,2,0", "2,0,1", "2,1,0"};
    static const char *const others[] = {
        "in=x:f32:scalar",
        "perm=0 in=x:f32:5",
        "perm=0,2,1,3 in=x:f32:2x5x3x8",
        "perm=0,2,1,3 in=x:f32:2x17x3x5",
        "perm=0,2,1,3 in=x:f32:1x9x4x64",
        "perm=0,2,3,1 in=x:f32:2x20x3x18",
        "perm=0,3,1,2 in=x:f32:2x17x3x33",
        "perm=3,2,1,0 in=x:f32:3x4x5x6",
        "perm=1,0,3,2 in=x:f32:3x5x16x17:special",
        "perm=1,0,2,3,4 in=x:f32:1x6x1x3x2",
        "perm=4,1,3,0,2 in=x:f32:2x3x2x3x5",
        "perm=7,6,5,4,3,2,1,0 in=x:f32:2x2x2x2x2x2x2x2",
        "perm=3,6,0,7,2,5,1,4 in=x:f32:2x3x2x2x3x2x2x3",
        "perm=7,6,5,4,3,2,1,0 in=x:f32:2x1x3x2x1x2x3x2",
        "perm=7,6,5,4,3,2,1,0 in=x:f32:17x2x2x2x2x2x2x18",
        "perm=0,1,2,3,4,5,7,6 in=x:f32:1x2x1x2x1x2x16x33",
        "perm=1,0 in=x:i32:37x41:integers",
        "perm=1,0 in=x:bool:20x40:bool",
        "perm=1,0 in=x:f32:40x40:special",
        "perm=1,0 in=x:f32:9x11:special",
        "perm=1,0 in=x:f16:18x20",
        "perm=1,0 in=x:c64:3x5",
        "perm=1,0 in=x:c64:33x35",
        "perm=0,2,1,3 in=x:c64:2x3x4x6",
        "perm=7,6,5,4,3,2,1,0 in=x:c64:2x2x2x2x2x2x2x2",
        "perm=1,0 shift=1 in=x:f32:34x35",
        "perm=1,0,2 shift=1 in=x:f32:6x3x4",
        "perm=1,0,2 shift=1 in=x:f32:6x3x5",
        "perm=1,0 shift=3 in=x:f32:8x2",
        "perm=1,0 in=x:f32:1031x517",
    };
    for (size_t i = 0; i < COUNT(matrices); i++)
        case_add(list, "transpose perm=1,0 in=x:f32:%s", matrices[i]);
    for (size_t i = 0; i < COUNT(perms3); i++) {
        case_add(list, "transpose perm=%s in=x:f32:3x5x7", perms3[i]);
        case_add(list, "transpose perm=%s in=x:f32:17x33x18", perms3[i]);
    }
    case_add_all(list, "transpose", others, COUNT(others));
}

static void generate_narrows(case_list *list)
{
    static const int slices[][2] = {{0, 0}, {0, 1}, {0, 8}, {2, 5}, {4, 4}, {7, 1}, {8, 0}};
    static const char *const others[] = {
        "axis=0 start=2 length=3 in=x:f32:7",
        "axis=-1 start=2 length=3 in=x:f32:4x7:special",
        "axis=1 start=4 length=8 in=x:f32:3x16x4",
        "axis=1 start=1 length=2 in=x:f32:3x5x4",
        "axis=2 start=4 length=4 in=x:f32:3x5x12",
        "axis=2 start=2 length=4 in=x:f32:3x5x12",
        "axis=1 start=0 length=1 in=x:f32:1x1",
        "axis=1 start=3 length=9 in=x:f32:1x16x3",
        "axis=7 start=1 length=1 in=x:f32:2x2x2x2x2x2x2x2",
        "axis=4 start=0 length=2 in=x:f32:2x1x2x1x3x1x2x1",
        "axis=0 start=0 length=0 in=x:f32:0x4",
        "axis=1 start=0 length=3 in=x:f32:0x4",
        "axis=1 start=64 length=64 in=x:f32:37x192",
        "axis=1 start=63 length=65 in=x:f32:37x191",
        "axis=1 start=1 length=3 in=x:i32:5x6:integers",
        "axis=1 start=1 length=3 in=x:bool:5x6:bool",
        "axis=1 start=1 length=3 in=x:c64:5x6",
        "axis=1 start=2 length=4 in=x:c64:5x6",
        "axis=0 start=1 length=3 in=x:c64:5x3",
        "axis=0 start=2 length=3 in=x:f16:6x3",
        "axis=1 start=2 length=3 in=x:bf16:4x6",
        "axis=0 start=4 length=8 in=x:u8:16:bytes",
        "axis=0 start=1 length=2 in=x:i8:4x4:bytes",
        "axis=1 start=2 length=3 shift=1 in=x:f32:5x6",
        "axis=1 start=4 length=4 shift=1 in=x:f32:5x8",
        "axis=1 start=500 length=1000 in=x:f32:100x2000",
    };
    for (int i = 0; i < (int)COUNT(slices); i++)
        for (int axis = 0; axis < 3; axis++) {
            const char *shapes[] = {"8x5x3", "5x8x3", "5x3x8"};
            case_add(list, "narrow axis=%d start=%d length=%d in=x:f32:%s", axis - 3 * (i % 2),
                     slices[i][0], slices[i][1], shapes[axis]);
        }
    case_add_all(list, "narrow", others, COUNT(others));
}

static void generate_concats(case_list *list)
{
    static const char *const others[] = {
        "axis=0 in=a:f32:5",
        "axis=0 in=a:f32:5;b:f32:1;c:f32:7",
        "axis=0 in=a:f32:0;b:f32:3",
        "axis=1 in=a:f32:2x0;b:f32:2x3;c:f32:2x0;d:f32:2x1",
        "axis=1 in=a:f32:2x0;b:f32:2x0",
        "axis=0 in=a:f32:0x3;b:f32:0x3",
        "axis=1 in=a:f32:0x2;b:f32:0x5",
        "axis=1 in=a:f32:3x4:special;b:f32:3x8:special",
        "axis=1 in=a:f32:3x4;b:f32:3x2;c:f32:3x6",
        "axis=1 in=a:f32:3x4;b:f32:3x3",
        "axis=-1 in=a:f32:2x3x32;b:f32:2x3x32",
        "axis=1 in=a:f32:2x1x5x5;b:f32:2x3x5x5;c:f32:2x2x5x5",
        "axis=4 in=a:f32:2x1x2x1x3x1x2x2;b:f32:2x1x2x1x2x1x2x2",
        "axis=7 in=a:f32:2x2x2x2x2x2x2x1;b:f32:2x2x2x2x2x2x2x2",
        "axis=0 in=a:f32:1;b:f32:2;c:f32:3;d:f32:4;e:f32:5;f:f32:6;g:f32:7;h:f32:8",
        "axis=1 in=a:f32:3x1;b:f32:3x2;c:f32:3x3;d:f32:3x4;e:f32:3x5;f:f32:3x6;g:f32:3x7;h:f32:3x8",
        "axis=0 in=a:i32:2x2:integers;b:i32:1x2:integers",
        "axis=0 in=a:bool:4:bool;b:bool:3:bool",
        "axis=0 in=a:c64:2x3;b:c64:1x3",
        "axis=1 in=a:c64:2x3;b:c64:2x2",
        "axis=1 in=a:c64:2x2;b:c64:2x4",
        "axis=1 in=a:f16:2x3;b:f16:2x2",
        "axis=0 in=a:bf16:3;b:bf16:2",
        "axis=0 flip=1 in=a:f32:5x3;b:f32:4x3",
        "axis=0 flip=1 in=a:f32:5;b:f32:1;c:f32:7;d:f32:64",
        "axis=1 flip=1 in=a:f32:1x5x2;b:f32:1x6x2",
        "axis=1 flip=1 in=a:f32:4x5;b:f32:4x6",
        "axis=0 flip=1 in=a:c64:3x2;b:c64:5x2",
        "axis=0 nest=2 in=a:f32:3;b:f32:4;c:f32:5",
        "axis=0 nest=2 flip=1 in=a:f32:3;b:f32:4;c:f32:5",
        "axis=0 nest=3 flip=1 in=a:f32:3x2;b:f32:4x2;c:f32:5x2;d:f32:1x2",
        "axis=1 nest=2 in=a:f32:2x3;b:f32:2x4;c:f32:2x5",
        "axis=0 twice=1 in=a:f32:5x3;b:f32:4x3",
        "axis=0 twice=1 flip=1 in=a:f32:5x3;b:f32:4x3",
        "axis=0 twice=1 nest=2 in=a:f32:3;b:f32:4",
        "axis=0 twice=1 nest=2 flip=1 in=a:f32:3;b:f32:4",
        "axis=0 twice=1 nest=1 flip=1 in=a:f32:8",
        "axis=0 twice=1 nest=1 in=a:f32:8",
        "axis=1 in=a:f32:130x257;b:f32:130x511",
        "axis=0 in=a:f32:300x100;b:f32:200x100",
    };
    for (int axis = 0; axis < 4; axis++) {
        const char *seconds[] = {"5x3x4x2", "2x5x4x2", "2x3x5x2", "2x3x4x5"};
        case_add(list, "concat axis=%d in=a:f32:2x3x4x2;b:f32:%s", axis, seconds[axis]);
        case_add(list, "concat axis=%d in=a:f32:%s;b:f32:2x3x4x2", axis - 4, seconds[axis]);
    }
    case_add_all(list, "concat", others, COUNT(others));
}

static void generate_expands(case_list *list)
{
    static const char *const expands[] = {
        "in=x:f32:scalar",
        "shape=1 in=x:f32:scalar",
        "shape=2 in=x:f32:scalar:constant:7",
        "shape=2,3,4 in=x:f32:scalar",
        "shape=1,1,1,1,1,1,1,1 in=x:f32:scalar",
        "shape=2,3,1,2,1,2,3,2 in=x:f32:scalar",
        "shape=2,3 in=x:f32:1x3",
        "shape=4,3 in=x:f32:4x1",
        "shape=4,3 in=x:f32:4x3",
        "shape=-1,5 in=x:f32:4x1:special",
        "shape=5,-1 in=x:f32:1x4:special",
        "shape=2,-1,-1 in=x:f32:3x4",
        "shape=-1,-1 in=x:f32:3x4",
        "shape=2,3,4 in=x:f32:4",
        "shape=2,3,4 in=x:f32:3x1",
        "shape=2,3,5 in=x:f32:5",
        "shape=2,3,4 in=x:f32:2x1x1",
        "shape=2,3,4 in=x:f32:2x1x4",
        "shape=2,3,4,5 in=x:f32:2x1x4x1",
        "shape=2,3,4,5 in=x:f32:1x3x1x5",
        "shape=2,3,2,3,2,3,2,3 in=x:f32:2x1x2x1x2x1x2x1",
        "shape=2,3,2,3,2,3,2,3 in=x:f32:1x3x1x3x1x3x1x3",
        "shape=2,2,2,2,2,2,2,2 in=x:f32:1x2x2x1x2x1x1x2",
        "shape=0,3 in=x:f32:1x3",
        "shape=0 in=x:f32:1",
        "shape=4,0 in=x:f32:0",
        "shape=4,0 in=x:f32:1x0",
        "shape=3,8 in=x:f32:8",
        "shape=3,6 in=x:f32:6",
        "shape=64,128 in=x:f32:64x1",
        "shape=40,40 in=x:f32:40x1",
        "shape=20,3,20 in=x:f32:20x1x20",
        "shape=3,4 in=x:i32:1x4:integers",
        "shape=3,4 in=x:bool:3x1:bool",
        "shape=3,4 in=x:c64:3x1",
        "shape=3,4 in=x:c64:4",
        "shape=3,5 in=x:c64:5",
        "shape=3,4 in=x:f16:4",
        "shape=3,4 in=x:bf16:3x1",
        "shape=3,2,4 shift=1 in=x:f32:4x1x4",
        "shape=3,2,5 shift=1 in=x:f32:4x1x5",
        "shape=1,1000 shift=3 in=x:f32:4x1",
        "shape=16777301 in=x:f32:1", /* more workgroups than one dimension of the grid holds */
    };
    case_add_all(list, "expand", expands, COUNT(expands));
}

static void generate_reverses(case_list *list)
{
    static const char *const subsets[] = {"",          " axes=0",   " axes=1",   " axes=2",
                                          " axes=0,1", " axes=2,0", " axes=1,2", " axes=-1,-2,-3"};
    static const char *const shapes[] = {"3x5x7:special", "2x3x8", "4x1x6"};
    static const char *const others[] = {
        "in=x:f32:scalar",
        "axes=0 in=x:f32:1",
        "axes=0 in=x:f32:0",
        "axes=0 in=x:f32:2",
        "axes=-1 in=x:f32:1001",
        "axes=1 in=x:f32:0x3",
        "axes=0,1 in=x:f32:1x1",
        "axes=0,1 in=x:f32:40x40",
        "axes=0 in=x:f32:40x40",
        "axes=0,1,2,3,4,5,6,7 in=x:f32:2x2x2x2x2x2x2x2",
        "axes=1,3,5,7 in=x:f32:2x3x2x3x2x3x2x3",
        "axes=0,2,4,6 in=x:f32:2x3x2x3x2x3x2x4",
        "axes=0 in=x:i32:9:integers",
        "axes=0 in=x:bool:9:bool",
        "axes=0 in=x:c64:5",
        "axes=1 in=x:c64:3x4",
        "axes=0 in=x:c64:3x4",
        "axes=0 in=x:f16:7",
        "axes=1 in=x:bf16:3x4",
        "axes=0 in=x:f32:7:large",
        "axes=0,1 shift=1 in=x:f32:4x5",
        "axes=0 shift=1 in=x:f32:4x8",
        "axes=1 shift=2 in=x:f32:4x8",
        "axes=1 in=x:f32:300x401",
    };
    for (size_t i = 0; i < COUNT(subsets); i++)
        for (size_t j = 0; j < COUNT(shapes); j++)
            case_add(list, "reverse%s in=x:f32:%s", subsets[i], shapes[j]);
    case_add_all(list, "reverse", others, COUNT(others));
}

static void generate_refusals(case_list *list)
{
    static const char *const lines[] = {
        "reshape expect=E_SHAPE shape=4,-1 in=x:f32:2x3",
        "reshape expect=E_SHAPE shape=4 in=x:f32:2x3",
        "reshape expect=E_ATTR shape=-1,-1 in=x:f32:2x3",
        "reshape expect=E_ATTR shape=-2,3 in=x:f32:2x3",
        "reshape expect=E_ATTR shape=-1,0 in=x:f32:0x3",
        "transpose expect=E_ATTR perm=0 in=x:f32:2x3",
        "transpose expect=E_ATTR perm=0,0 in=x:f32:2x3",
        "transpose expect=E_ATTR perm=0,2 in=x:f32:2x3",
        "transpose expect=E_DTYPE perm=1,0 in=x:u8:4x8:bytes",
        "narrow expect=E_AXIS axis=2 length=1 in=x:f32:2x3",
        "narrow expect=E_AXIS axis=0 length=1 in=x:f32:scalar",
        "narrow expect=E_RANGE axis=1 start=2 length=2 in=x:f32:2x3",
        "narrow expect=E_RANGE axis=1 start=-1 length=2 in=x:f32:2x3",
        "narrow expect=E_RANGE axis=1 length=-1 in=x:f32:2x3",
        "narrow expect=E_RANGE axis=1 start=9223372036854775807 length=2 in=x:f32:2x3",
        "narrow expect=E_DTYPE axis=1 start=4 length=4 in=x:u8:4x8:bytes",
        "narrow expect=E_DTYPE axis=0 start=2 length=4 in=x:u8:8:bytes",
        "concat expect=E_AXIS axis=0 in=a:f32:scalar;b:f32:scalar",
        "concat expect=E_AXIS axis=2 in=a:f32:2x3;b:f32:2x3",
        "concat expect=E_SHAPE axis=1 in=a:f32:2x3;b:f32:1x3",
        "concat expect=E_SHAPE axis=0 in=a:f32:2x3;b:f32:3",
        "concat expect=E_DTYPE axis=0 in=a:f32:2x3;b:i32:2x3:integers",
        "concat expect=E_DTYPE axis=0 in=a:u8:4:bytes;b:u8:6:bytes",
        "concat expect=E_DTYPE axis=1 in=a:u8:2x4:bytes;b:u8:2x3:bytes",
        "concat expect=E_DTYPE axis=0 in=a:u8:4:bytes;b:i8:4:bytes",
        "concat axis=0 in=a:u8:4:bytes;b:u8:4:bytes",
        "concat axis=0 in=a:u8:8:bytes;b:u8:0:bytes;c:u8:12:bytes",
        "concat axis=0 in=a:i8:3x4:bytes;b:i8:5x4:bytes",
        "concat axis=1 in=a:i8:3x4:bytes;b:i8:3x8:bytes",
        "concat axis=1 in=a:u8:3x1x4:bytes;b:u8:3x5x4:bytes;c:u8:3x2x4:bytes",
        "concat axis=-1 in=a:u8:70x16:bytes;b:u8:70x32:bytes;c:u8:70x4:bytes",
        "concat axis=1 twice=1 in=a:u8:5x4:bytes;b:u8:5x8:bytes;c:u8:5x4:bytes",
        "concat axis=1 nest=2 in=a:u8:5x4:bytes;b:u8:5x8:bytes;c:u8:5x4:bytes",
        "concat axis=0 nest=2 in=a:u8:8:bytes;b:u8:4:bytes;c:u8:16:bytes",
        "expand expect=E_SHAPE shape=3 in=x:f32:2x3",
        "expand expect=E_SHAPE shape=4,3 in=x:f32:2x3",
        "expand expect=E_ATTR shape=-1,2,3 in=x:f32:2x3",
        "expand expect=E_ATTR shape=-2,3 in=x:f32:2x3",
        "expand expect=E_TOO_LARGE shape=1000000000,2,3 in=x:f32:2x3",
        "reverse expect=E_AXIS axes=0,-2 in=x:f32:2x3",
        "reverse expect=E_AXIS axes=2 in=x:f32:2x3",
        "reverse expect=E_AXIS axes=0 in=x:f32:scalar",
    };
    case_add_all(list, "", lines, COUNT(lines));
}

static void generate(case_list *list)
{
    generate_views(list);
    generate_transposes(list);
    generate_narrows(list);
    generate_concats(list);
    generate_expands(list);
    generate_reverses(list);
    generate_refusals(list);
}

static const char *const rows[] = {"reshape", "stop_gradient", "after",   "transpose", "narrow",
                                   "concat",  "expand",        "reverse", NULL};

const case_family movement_cases = {.rows = rows, .build = build, .generate = generate};
