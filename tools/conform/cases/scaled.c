/*
 * Cases of dequant_matmul_scaled: x [.., k], w (packed codes of [k, n]), scale, and `extra`, which
 * is the zero points or the global factor.
 *
 *   kind=N          number of rlxvk_quant_kind
 *   block=N n=N     of the scheme
 *   skip=N          w begins with N bytes that are sliced off first
 */
#include "conform/cases/cases.h"

#include <stdio.h>

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_quant_scheme scheme = {(rlxvk_quant_kind)case_integer(s, "kind", 0),
                                 case_integer(s, "block", 0), case_integer(s, "n", 0)};
    rlxvk_tensor w = case_tensor(s, inputs, "w");
    int64_t skip = case_integer(s, "skip", 0);
    for (size_t i = 0; skip && i < s->input_count; i++)
        if (s->inputs[i].name[0] == 'w')
            w = rlxvk_narrow(g, w, 0, skip, s->inputs[i].shape.dims[0] - skip);
    return rlxvk_dequant_matmul_scaled(g, case_tensor(s, inputs, "x"), w,
                                       case_tensor(s, inputs, "scale"),
                                       case_tensor(s, inputs, "extra"), &scheme);
}

/* ---- Cases ---- */

/* Integer codes are leaves of i8 and u8 by turns. Scale bytes have exponents around 1. */
static const struct kind {
    int bits, block;           /* block: the only one allowed, or 0 for any */
    const char *scale, *extra; /* dtype and fill; all have dims [columns], except the global
                                  factor */
} kinds[] = {
    {8, 0, "f32:%d:unit", NULL},          {8, 0, "f32:%d:unit", "uniform"},
    {4, 0, "f32:%d:unit", NULL},          {8, -1, "f32:%d:unit", NULL},
    {8, -1, "f32:%d:unit", NULL},         {4, 16, "u8:%d:index:96", "positive"},
    {4, 32, "u8:%d:range:110:133", NULL}, {4, 0, "f32:%d:unit", "uniform"},
};

static const struct shape {
    int m, k, n, block;
} shapes[] = {
    {1, 64, 8, 32},   {1, 100, 7, 32},  {1, 1, 1, 1},     {1, 33, 130, 5},   {1, 512, 36, 128},
    {2, 32, 5, 4},    {3, 17, 64, 16},  {5, 48, 3, 48},   {8, 31, 66, 100},  {33, 40, 65, 7},
    {40, 96, 70, 32}, {64, 33, 12, 32}, {17, 256, 4, 64}, {1, 2048, 20, 64},
};

/* Rows and columns on both sides of a tile's, one tile and several, K of one step and of more. */
static const struct shape tiles[] = {
    {1, 32, 1, 32}, {17, 40, 65, 5}, {33, 64, 63, 16}, {65, 70, 64, 32}, {130, 33, 131, 48},
};

static void add(case_list *list, int kind, const struct shape *shape, const char *fill,
                const char *options, int skip, int scales)
{
    const struct kind *row = &kinds[kind];
    int bytes = (shape->k * shape->n * row->bits + 7) / 8 + skip;
    char scale[64], extra[64] = "";
    snprintf(scale, sizeof scale, row->scale, scales);
    if (row->extra)
        snprintf(extra, sizeof extra, ";extra:f32:%d:%s", kind == 5 ? 1 : scales, row->extra);
    case_add(list,
             "dequant_matmul_scaled kind=%d block=%d n=%d%s in=x:f32:%dx%d:%s;w:%s:%d:bytes;"
             "scale:%s%s",
             kind, row->block > 0 ? 0 : shape->block, shape->n, options, shape->m, shape->k, fill,
             shape->m % 2 ? "u8" : "i8", bytes, scale, extra);
}

static int count_scales(int kind, const struct shape *shape)
{
    int block = kinds[kind].block ? kinds[kind].block : shape->block;
    return block > 0 ? (shape->k + block - 1) / block * shape->n : shape->n;
}

static void generate_kind(case_list *list, int kind)
{
    static const struct shape few = {2, 64, 20, 32},
                              empty[] = {{0, 64, 8, 32}, {3, 0, 5, 32}, {3, 32, 0, 32}};
    static const char *const fills[] = {"integers", "large", "offset", "zero"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        add(list, kind, &shapes[i], "uniform", "", 0, count_scales(kind, &shapes[i]));
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++)
        add(list, kind, &few, fills[i], "", 0, count_scales(kind, &few));
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++)
        add(list, kind, &empty[i], "uniform", "", 0, count_scales(kind, &empty[i]));
    add(list, kind, &few, "unit", " skip=4", 4, count_scales(kind, &few));
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++)
        add(list, kind, &tiles[i], "unit", " variant=dequant=tiled", 0,
            count_scales(kind, &tiles[i]));
    if (kinds[kind].block < 0)
        for (size_t i = 1; i < sizeof shapes / sizeof *shapes; i += 4)
            add(list, kind, &shapes[i], "uniform", "", 0, 1);
}

/* The dummy operand of symmetric kinds, scale bytes that are NaN, ranks, and bad operands. */
static void generate_rest(case_list *list)
{
    static const char *const lines[] = {
        "kind=0 block=4 n=3 in=x:f32:2x8;w:i8:24:bytes;scale:f32:2x3;extra:f32:1",
        "kind=2 block=4 n=3 in=x:f32:2x8;w:u8:12:bytes;scale:f32:2x3;extra:f32:6",
        "kind=3 n=3 in=x:f32:2x8;w:u8:8x3:bytes;scale:f32:1x3;extra:f32:1",
        "kind=4 n=3 in=x:f32:2x8;w:u8:8x3:bytes;scale:f32:scalar;extra:f32:1",
        "kind=6 n=4 in=x:f32:3x64;w:u8:128:bytes;scale:u8:2x4:constant:255",
        "kind=6 n=4 in=x:f32:3x64;w:u8:128:bytes;scale:u8:2x4:constant:40",
        "kind=5 n=4 in=x:f32:3x64;w:u8:128:bytes;scale:u8:4x4:constant:127;extra:f32:scalar",
        "kind=5 n=4 in=x:f32:3x64;w:u8:128:bytes;scale:u8:4x4:bytes;extra:f32:1",
        "kind=1 block=8 n=6 in=x:f32:2x1x3x16;w:i8:16x6:bytes;scale:f32:2x6;extra:f32:2x6",
        "kind=7 block=8 n=6 in=x:f32:16;w:u8:48:bytes;scale:f32:12;extra:f32:12",
        "expect=E_ATTR kind=8 block=8 n=6 in=x:f32:2x16;w:u8:96:bytes;scale:f32:12",
        "expect=E_ATTR kind=0 block=0 n=6 in=x:f32:2x16;w:u8:96:bytes;scale:f32:12",
        "expect=E_ATTR kind=0 block=8 n=-1 in=x:f32:2x16;w:u8:96:bytes;scale:f32:12",
        "expect=E_ATTR kind=5 block=32 n=1 in=x:f32:2x32;w:u8:16:bytes;scale:u8:2;extra:f32:1",
        "expect=E_LENGTH kind=0 block=8 n=6 in=x:f32:2x16;w:u8:95:bytes;scale:f32:12",
        "expect=E_LENGTH kind=2 block=8 n=3 in=x:f32:2x5;w:u8:7:bytes;scale:f32:3",
        "expect=E_LENGTH kind=6 n=2 in=x:f32:2x33;w:u8:33:bytes;scale:u8:2",
        "expect=E_SHAPE kind=0 block=8 n=6 in=x:f32:2x16;w:u8:96:bytes;scale:f32:6",
        "expect=E_SHAPE kind=1 block=8 n=6 in=x:f32:2x16;w:u8:96:bytes;scale:f32:12;extra:f32:6",
        "expect=E_SHAPE kind=3 n=6 in=x:f32:2x16;w:u8:96:bytes;scale:f32:2",
        "expect=E_SHAPE kind=5 n=1 in=x:f32:2x32;w:u8:16:bytes;scale:u8:2;extra:f32:2",
        "expect=E_SHAPE kind=0 block=8 n=6 in=x:f32:scalar;w:u8:96:bytes;scale:f32:12",
        "expect=E_ARITY kind=1 block=8 n=6 in=x:f32:2x16;w:u8:96:bytes;scale:f32:12",
        "expect=E_ARITY kind=5 n=1 in=x:f32:2x32;w:u8:16:bytes;scale:u8:2",
        "expect=E_ARITY kind=6 n=1 in=x:f32:2x32;w:u8:16:bytes;scale:u8:1;extra:f32:1",
        "expect=E_DTYPE kind=0 block=8 n=6 in=x:f32:2x16;w:f32:96;scale:f32:12",
        "expect=E_DTYPE kind=6 n=1 in=x:f32:2x32;w:u8:16:bytes;scale:f32:1",
        "expect=E_DTYPE kind=0 block=8 n=6 in=x:i32:2x16;w:u8:96:bytes;scale:f32:12",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        case_add(list, "dequant_matmul_scaled %s", lines[i]);
}

static void generate(case_list *list)
{
    for (int kind = 0; kind < 8; kind++)
        generate_kind(list, kind);
    generate_rest(list);
}

static const char *const rows[] = {"dequant_matmul_scaled", NULL};

const case_family scaled_cases = {rows, build, generate};
