/*
 * Cases of ops that write or read at indices:
 *   scatter                    axis, mode; in=x;idx;updates
 *   scatter_nd                 mode; in=x;idx;updates
 *   gather_nd                  in=x;idx
 *   one_hot                    depth, axis, on, off; in=idx
 *   keep_first                 axis, fill; in=x, count
 *   pack_first, unpack_first   axis; in=x, count
 *
 * An index of scatter_nd and gather_nd has `rank` numbers, along the last axis of idx. shift=n
 * drops the first n rows of x and updates (of one_hot: idx) by views.
 */
#include "conform/cases/cases.h"

#include <string.h>

static rlxvk_scatter_mode mode_of(const case_spec *s)
{
    static const char *const names[] = {"assign", "add", "mul", "max", "min"};
    const char *word = case_word(s, "mode", "assign");
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(word, names[i]) == 0)
            return (rlxvk_scatter_mode)i;
    return (rlxvk_scatter_mode)9;
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x = case_tensor(s, inputs, "x"), idx = case_tensor(s, inputs, "idx");
    rlxvk_tensor updates = case_tensor(s, inputs, "updates");
    int32_t axis = (int32_t)case_integer(s, "axis", -1);
    if (strcmp(s->row, "one_hot") == 0)
        return rlxvk_one_hot(g, case_shifted(g, s, "shift", idx), case_integer(s, "depth", 0), axis,
                             (float)case_real(s, "on", 1), (float)case_real(s, "off", 0));
    x = case_shifted(g, s, "shift", x);
    if (strcmp(s->row, "keep_first") == 0)
        return rlxvk_keep_first(g, x, case_tensor(s, inputs, "count"), axis,
                                (float)case_real(s, "fill", 0));
    if (strcmp(s->row, "pack_first") == 0)
        return rlxvk_pack_first(g, x, case_tensor(s, inputs, "count"), axis);
    if (strcmp(s->row, "unpack_first") == 0)
        return rlxvk_unpack_first(g, x, case_tensor(s, inputs, "count"), axis);
    if (strcmp(s->row, "gather_nd") == 0)
        return rlxvk_gather_nd(g, x, idx);
    updates = case_shifted(g, s, "shift", updates);
    if (strcmp(s->row, "scatter_nd") == 0)
        return rlxvk_scatter_nd(g, x, idx, updates, mode_of(s));
    return rlxvk_scatter(g, x, case_shifted(g, s, "shift", idx), updates, axis, mode_of(s));
}

static const char *const modes[] = {"assign", "add", "mul", "max", "min"};

static void generate_scatters(case_list *list)
{
    static const char *const every_mode[] = {
        "axis=0 in=x:f32:7;idx:f32:5:badindex:7;updates:f32:5",
        "axis=1 in=x:f32:3x5;idx:f32:3x9:badindex:5;updates:f32:3x9",
        "axis=0 in=x:f32:6x4x3;idx:f32:5x4x3:index:6;updates:f32:5x4x3",
        "axis=1 in=x:f32:2x300;idx:f32:2x200:badindex:300;updates:f32:2x200:unit",
        "axis=0 in=x:f32:40x3;idx:f32:70x3:badindex:40;updates:f32:70x3:unit",
        "axis=1 in=x:f32:3x5000;idx:f32:3x100:index:5000;updates:f32:3x100",
        "axis=1 in=x:f32:1x50;idx:f32:1x4100:badindex:2000;updates:f32:1x4100:unit",
        "axis=0 in=x:f32:9x2;idx:f32:4200x2:index:3000;updates:f32:4200x2:unit",
        "axis=-1 in=x:f32:4096;idx:f32:4096:index:4096;updates:f32:4096",
        "axis=0 in=x:f32:1300x9;idx:f32:400x9:badindex:1300;updates:f32:400x9",
        "axis=1 in=x:f32:2x9000;idx:f32:2x4200:badindex:9000;updates:f32:2x4200",
    };
    static const char *const others[] = {
        "in=x:f32:3x0;idx:f32:3x0;updates:f32:3x0",
        "in=x:f32:3x4;idx:f32:3x0;updates:f32:3x0",
        "in=x:f32:3x0;idx:f32:3x2:special;updates:f32:3x2",
        "mode=assign in=x:f32:2x90:special;idx:f32:2x80:index:90;updates:f32:2x80:special",
        "mode=max in=x:f32:2x90:special;idx:f32:2x80:index:9;updates:f32:2x80:special",
        "mode=min axis=0 in=x:f32:90x2:special;idx:f32:80x2:index:9;updates:f32:80x2:special",
        "mode=max in=x:f32:2x9:special;idx:f32:2x8:index:9;updates:f32:2x8:special",
        "mode=add in=x:f32:3x70;idx:f32:3x70:zero;updates:f32:3x70",
        "mode=assign in=x:f32:3x70;idx:f32:3x70:zero;updates:f32:3x70",
        "mode=add in=x:f32:2x50;idx:f32:2x3000:zero;updates:f32:2x3000",
        "mode=add shift=1 axis=1 in=x:f32:3x70x9;idx:f32:3x80x9:index:70;updates:f32:3x80x9",
        "mode=assign axis=1 in=x:f32:2x70x3;idx:f32:2x70x3:zero;updates:f32:2x70x3",
        "mode=add axis=1 in=x:f32:2x70x3;idx:f32:2x90x3:badindex:70;updates:f32:2x90x3",
        "mode=add in=x:i32:3x8:integers;idx:i32:3x9:index:8;updates:i32:3x9:integers",
        "mode=max in=x:i32:3x8:integers;idx:i64:3x90:index:8;updates:i32:3x90:integers",
        "mode=assign in=x:bool:3x8:bool;idx:i32:3x9:index:8;updates:bool:3x9:bool",
        "mode=add in=x:f16:3x8;idx:f32:3x9:index:8;updates:f16:3x9",
        "mode=assign shift=1 in=x:f32:4x70;idx:f32:4x70:index:70;updates:f32:4x70",
        "mode=add shift=1 in=x:f32:4x70;idx:f32:4x70:index:70;updates:f32:4x70",
        "mode=mul shift=1 axis=1 in=x:f32:4x7x3;idx:f32:4x9x3:index:7;updates:f32:4x9x3",
        "mode=assign shift=1 axis=1 in=x:f32:4x7x3;idx:f32:4x99x3:index:7;updates:f32:4x99x3",
        "mode=assign axis=0 in=x:f32:300x129;idx:f32:300x129:index:300;updates:f32:300x129",
        "mode=add axis=0 in=x:f32:300x129;idx:f32:300x129:index:300;updates:f32:300x129",
        ("mode=add axis=3 in=x:f32:2x1x2x1x2x1x2x3;idx:f32:2x1x2x2x2x1x2x3:zero;"
         "updates:f32:2x1x2x2x2x1x2x3"),
        "expect=E_ATTR mode=other in=x:f32:3;idx:f32:3;updates:f32:3",
        "expect=E_SHAPE in=x:f32:3x4;idx:f32:3x2;updates:f32:3x3",
        "expect=E_SHAPE axis=0 in=x:f32:3x4;idx:f32:3x2;updates:f32:3x2",
        "expect=E_SHAPE in=x:f32:3x4;idx:f32:3;updates:f32:3",
        "expect=E_AXIS axis=2 in=x:f32:3x4;idx:f32:3x2;updates:f32:3x2",
        "expect=E_AXIS axis=0 in=x:f32:scalar;idx:f32:scalar;updates:f32:scalar",
        "expect=E_DTYPE in=x:f32:3;idx:f32:3;updates:i32:3:integers",
        "expect=E_DTYPE in=x:c64:3;idx:f32:3;updates:c64:3",
        "expect=E_DTYPE in=x:f32:3;idx:c64:3;updates:f32:3",
        "expect=E_INDEX_RANGE in=x:f32:0x16777217;idx:f32:0x2;updates:f32:0x2",
    };
    /* There are five lines. With --folded, some workgroups then have no line. */
    static const char *const ways[] = {"direct", "lines", "tiles", "owners", "split", "sort"};
    for (size_t m = 0; m < COUNT(modes); m++)
        for (size_t i = 0; i < COUNT(every_mode); i++)
            case_add(list, "scatter mode=%s %s", modes[m], every_mode[i]);
    case_add_all(list, "scatter", others, COUNT(others));
    for (size_t w = 0; w < COUNT(ways); w++)
        case_add(list,
                 "scatter mode=%s axis=1 variant=scatter=%s "
                 "in=x:f32:5x700;idx:f32:5x800:badindex:700;updates:f32:5x800:unit",
                 modes[w % 2], ways[w]);
    case_add(list, "scatter mode=mul axis=0 in=x:f32:9:range:1e-20:1e-19;idx:f32:70:index:9;"
                   "updates:f32:70:range:1e-12:1");
    case_add(list, "scatter mode=mul axis=0 in=x:f32:9;idx:f32:5000:index:9;"
                   "updates:f32:5000:range:0.8:1");
    /* More updates of one element than the loops of one dispatch may go through. */
    case_add(list, "scatter mode=add axis=0 in=x:f32:2:unit;idx:f32:620001:zero;"
                   "updates:f32:620001:constant:1");
}

static void generate_rows(case_list *list)
{
    static const char *const every_mode[] = {
        "in=x:f32:7;idx:f32:5x1:badindex:7;updates:f32:5",
        "in=x:f32:4x5;idx:f32:9x2:badindex:4;updates:f32:9",
        "in=x:f32:4x5x6;idx:f32:2x3x2:index:4;updates:f32:2x3x6",
        "in=x:f32:50x8;idx:f32:90x1:badindex:50;updates:f32:90x8:unit",
        "in=x:f32:9x5x3;idx:f32:99x2:badindex:5;updates:f32:99x3:unit",
        "in=x:f32:300;idx:f32:5000x1:index:300;updates:f32:5000:unit",
    };
    static const char *const others[] = {
        "in=x:f32:4;idx:f32:0x1;updates:f32:0",
        "in=x:f32:0x3;idx:f32:2x1:zero;updates:f32:2x3",
        "in=x:f32:2x3;idx:f32:2:zero;updates:f32:scalar",
        "in=x:f32:2x3;idx:f32:1:zero;updates:f32:3",
        "mode=assign in=x:f32:70x128;idx:f32:70x1:index:70;updates:f32:70x128",
        "mode=assign shift=1 in=x:f32:70x3;idx:f32:70x1:index:69;updates:f32:71x3",
        "mode=max in=x:f32:30x4:special;idx:f32:70x1:index:30;updates:f32:70x4:special",
        "mode=add in=x:f32:3x2;idx:f32:70000x1:index:3;updates:f32:70000x2:integers",
        "mode=add in=x:f32:2x4:unit;idx:f32:300001x1:zero;updates:f32:300001x4:constant:1",
        "expect=E_SHAPE in=x:f32:3;idx:f32:2x2;updates:f32:2",
        "expect=E_SHAPE in=x:f32:3;idx:f32:2x0;updates:f32:2",
        "expect=E_SHAPE in=x:f32:3;idx:f32:scalar;updates:f32:scalar",
        "expect=E_SHAPE in=x:f32:3x4;idx:f32:2x1;updates:f32:2x3",
        "expect=E_ATTR mode=other in=x:f32:3;idx:f32:2x1;updates:f32:2",
        "expect=E_DTYPE in=x:f32:3;idx:f32:2x1;updates:i32:2:integers",
        "expect=E_INDEX_RANGE in=x:f32:0x16777217;idx:f32:1x2;updates:f32:1",
    };
    static const char *const gathers[] = {
        "in=x:f32:7;idx:f32:5x1:badindex:7",
        "in=x:f32:7;idx:f32:1:badindex:7",
        "in=x:f32:4x5;idx:f32:9x2:badindex:5",
        "in=x:f32:4x5x6:special;idx:f32:2x3x2:index:4",
        "in=x:f32:50x8;idx:f32:90x1:badindex:50",
        "in=x:f32:2x3x2x3;idx:f32:7x4:index:2",
        "in=x:f32:2x2x2x2x2x2x2x2;idx:f32:9x8:index:2",
        "in=x:i32:4x5:integers;idx:i32:9x2:index:4",
        "in=x:f16:4x5;idx:f32:9x1:index:4",
        "in=x:f32:4x5;idx:f32:0x1",
        "in=x:f32:4x0;idx:f32:3x1",
        "shift=1 in=x:f32:5x3;idx:f32:9x1:index:4",
        "in=x:f32:300x129;idx:f32:500x2:index:129",
        "in=x:f32:70x129;idx:f32:41x1:badindex:70",
        "expect=E_SHAPE in=x:f32:4;idx:f32:3x2",
        "expect=E_SHAPE in=x:f32:4;idx:f32:scalar",
        "expect=E_SHAPE in=x:f32:2x2x2x2x2x2;idx:f32:1x1x1x1x1",
        "expect=E_RANGE in=x:f32:0;idx:f32:3x1",
        "expect=E_DTYPE in=x:c64:4;idx:f32:3x1",
    };
    for (size_t m = 0; m < COUNT(modes); m++)
        for (size_t i = 0; i < COUNT(every_mode); i++)
            case_add(list, "scatter_nd mode=%s %s", modes[m], every_mode[i]);
    case_add_all(list, "scatter_nd", others, COUNT(others));
    case_add_all(list, "gather_nd", gathers, COUNT(gathers));
}

static void generate_hot(case_list *list)
{
    static const char *const rests[] = {
        "depth=3 in=idx:f32:scalar:zero",
        "depth=5 in=idx:f32:7:badindex:5",
        "depth=8 in=idx:f32:7:badindex:8",
        "depth=8 on=2.5 off=-1 in=idx:f32:3x4:index:8",
        "depth=5 axis=0 in=idx:f32:3x4:badindex:5",
        "depth=8 axis=1 in=idx:f32:3x4:badindex:8",
        "depth=4 axis=-2 in=idx:f32:3x4:special",
        "depth=1 in=idx:f32:9:badindex:1",
        "depth=0 in=idx:f32:3",
        "depth=4 in=idx:f32:0",
        "depth=4 in=idx:i32:9:index:4",
        "depth=2 in=idx:bool:9:bool",
        "depth=4 shift=1 in=idx:f32:9:index:4",
        "depth=1000 in=idx:f32:300:badindex:1000",
        "depth=2 in=idx:f32:2x1x2x1x2x1x2:index:2",
        "expect=E_SHAPE depth=2 in=idx:f32:2x1x2x1x2x1x2x1",
        "expect=E_AXIS axis=3 depth=2 in=idx:f32:2x1",
        "expect=E_ATTR depth=-1 in=idx:f32:2",
        "expect=E_INDEX_RANGE depth=16777217 in=idx:f32:0",
        "expect=E_TOO_LARGE depth=16777216 in=idx:f32:200",
        "expect=E_DTYPE depth=2 in=idx:c64:2",
    };
    case_add_all(list, "one_hot", rests, COUNT(rests));
}

static void generate_first(case_list *list)
{
    static const char *const rests[] = {
        "axis=0 in=x:f32:7;count:f32:1:constant:3",
        "axis=1 in=x:f32:2x5x3;count:f32:1:range:1.8:2.2",
        "axis=0 in=x:f32:7;count:f32:scalar:constant:2.4",
        "axis=-1 in=x:f32:5x7;count:f32:1:constant:3.6",
        "axis=0 in=x:f32:5x8;count:f32:1:constant:2",
        "axis=1 fill=-2.5 in=x:f32:3x5x4;count:f32:1:constant:2",
        "axis=1 fill=-inf in=x:f32:3x50x12:special;count:f32:1:constant:17",
        "axis=1 in=x:f32:3x50x7:special;count:f32:1:constant:49",
        "axis=0 in=x:f32:4x4;count:f32:1:constant:0",
        "axis=0 in=x:f32:4x4;count:f32:1:constant:-3",
        "axis=0 in=x:f32:4x4;count:f32:1:constant:nan",
        "axis=0 in=x:f32:4x4;count:f32:1:constant:inf",
        "axis=0 in=x:f32:4x4;count:f32:1:constant:3e38",
        "axis=1 in=x:f32:4x4;count:f32:1:constant:4",
        "axis=2 in=x:f32:2x3x1000;count:f32:1:constant:513",
        "axis=0 in=x:f32:3000x40;count:f32:1:constant:1234",
        "axis=1 in=x:i32:4x9:integers;count:i32:1:constant:5",
        "axis=1 in=x:f16:4x9;count:f32:1:constant:5",
        "axis=1 shift=1 in=x:f32:4x8;count:f32:1:constant:5",
        "axis=0 in=x:f32:0x3;count:f32:1:constant:2",
        "axis=0 in=x:f32:9;count:f32:1:constant:0.49999997",
        "expect=E_AXIS axis=2 in=x:f32:2x3;count:f32:1",
        "expect=E_SHAPE axis=0 in=x:f32:2x3;count:f32:2",
        "expect=E_SHAPE axis=0 in=x:f32:2x3;count:f32:1x1",
        "expect=E_DTYPE axis=0 in=x:c64:3;count:f32:1",
    };
    case_add_all(list, "keep_first", rests, COUNT(rests));
}

static void generate_packed(case_list *list)
{
    static const char *const rests[] = {
        "axis=0 in=x:f32:7;count:f32:1:constant:3",
        "axis=1 in=x:f32:2x5x3;count:f32:1:range:1.8:2.2",
        "axis=0 in=x:f32:7;count:f32:scalar:constant:2.4",
        "axis=-1 in=x:f32:5x7;count:f32:1:constant:3.6",
        "axis=0 in=x:f32:5x8;count:f32:1:constant:2",
        "axis=1 in=x:f32:3x50x12:special;count:f32:1:constant:17",
        "axis=1 in=x:f32:3x50x7:special;count:f32:1:constant:49",
        "axis=1 in=x:f32:4x4;count:f32:1:constant:0",
        "axis=1 in=x:f32:4x4;count:f32:1:constant:-3",
        "axis=1 in=x:f32:4x4;count:f32:1:constant:nan",
        "axis=1 in=x:f32:4x4;count:f32:1:constant:inf",
        "axis=1 in=x:f32:4x4;count:f32:1:constant:3e38",
        "axis=1 in=x:f32:4x4;count:f32:1:constant:4",
        "axis=1 in=x:f32:4x1x5;count:f32:1:constant:1",
        "axis=2 in=x:f32:2x3x1000;count:f32:1:constant:513",
        "axis=1 in=x:f32:40x64x48;count:f32:1:constant:23",
        "axis=1 in=x:i32:4x9:integers;count:i32:1:constant:5",
        "axis=1 in=x:f16:4x9;count:f32:1:constant:5",
        "axis=1 shift=1 in=x:f32:4x8;count:f32:1:constant:5",
        "axis=1 in=x:f32:0x3;count:f32:1:constant:2",
        "axis=1 in=x:f32:3x0;count:f32:1:constant:2",
        "axis=0 in=x:f32:9;count:f32:1:constant:0.49999997",
        "expect=E_AXIS axis=2 in=x:f32:2x3;count:f32:1",
        "expect=E_SHAPE axis=0 in=x:f32:2x3;count:f32:2",
        "expect=E_SHAPE axis=0 in=x:f32:2x3;count:f32:1x1",
        "expect=E_DTYPE axis=0 in=x:c64:3;count:f32:1",
    };
    case_add_all(list, "pack_first", rests, COUNT(rests));
    case_add_all(list, "unpack_first", rests, COUNT(rests));
}

static void generate(case_list *list)
{
    generate_scatters(list);
    generate_rows(list);
    generate_hot(list);
    generate_first(list);
    generate_packed(list);
}

static const char *const rows[] = {"scatter",    "scatter_nd", "gather_nd",    "one_hot",
                                   "keep_first", "pack_first", "unpack_first", NULL};

const case_family array_scatter_cases = {.rows = rows, .build = build, .generate = generate};
