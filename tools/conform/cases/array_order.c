/* Cases of ops that order and count. Row lengths lie around the limits of every kernel.
 *   sort, argsort   axis, descending
 *   histogram       bins, low, high; in=x
 *   bincount        bins; in=x, weights
 *
 * shift=n drops the first n rows of x by a view. */
#include "conform/cases/cases.h"

#include <string.h>

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x = case_turned(g, s, case_shifted(g, s, "shift", inputs[0]));
    int32_t axis = (int32_t)case_integer(s, "axis", -1);
    int64_t bins = case_integer(s, "bins", 0);
    if (strcmp(s->row, "histogram") == 0)
        return rlxvk_histogram(g, x, bins, (float)case_real(s, "low", 0),
                               (float)case_real(s, "high", 0));
    if (strcmp(s->row, "bincount") == 0)
        return rlxvk_bincount(g, x, case_tensor(s, inputs, "weights"), bins);
    bool descending = case_integer(s, "descending", 0) != 0;
    return (strcmp(s->row, "sort") == 0 ? rlxvk_sort : rlxvk_argsort)(g, x, axis, descending);
}

static void generate_sorts(case_list *list)
{
    static const int lengths[] = {1, 2, 7, 64, 129, 255, 256, 257, 1000, 2049, 4095, 4096, 4097};
    static const char *const fills[] = {"uniform", "special", "integers", "bool", "large"};
    static const char *const rests[] = {"in=x:f32:0",
                                        "in=x:f32:0x5",
                                        "in=x:f32:3x0",
                                        "in=x:f32:3x900:zero",
                                        "in=x:f32:2x5000:zero",
                                        "in=x:f32:2x300:constant:nan",
                                        "in=x:f32:1x9001:constant:nan",
                                        "in=x:f32:9:neginf",
                                        "in=x:f32:3x8193:special",
                                        "in=x:f32:2x12288:integers",
                                        "in=x:f32:70001:integers",
                                        "in=x:f32:100003",
                                        "in=x:f32:2x40000:iota",
                                        "in=x:f32:5000x1",
                                        "in=x:f32:5000x3:integers",
                                        "in=x:f32:2x1x2x1x2x1x3x5",
                                        "axis=0 in=x:f32:50x3:integers",
                                        "axis=0 in=x:f32:5000x2:special",
                                        "axis=1 in=x:f32:3x70x5:integers",
                                        "axis=-2 in=x:f32:3x70x5:special",
                                        "axis=0 in=x:f32:1x5",
                                        "in=x:i32:4x50:integers",
                                        "in=x:bool:4x50:bool",
                                        "in=x:f16:4x50",
                                        "shift=1 in=x:f32:4x77:special",
                                        "shift=1 in=x:f32:3x4999:special",
                                        "turned=1 in=x:f32:3x4x6",
                                        "expect=E_AXIS axis=2 in=x:f32:3x5",
                                        "expect=E_AXIS axis=-3 in=x:f32:3x5",
                                        "expect=E_AXIS axis=0 in=x:f32:scalar",
                                        "expect=E_DTYPE in=x:c64:5",
                                        "expect=E_DTYPE in=x:u8:8:bytes"};
    for (int row = 0; row < 2; row++) {
        const char *name = row ? "argsort" : "sort";
        for (size_t i = 0; i < COUNT(lengths); i++)
            for (int down = 0; down < 2; down++)
                case_add(list, "%s descending=%d in=x:f32:%dx%d:%s", name, down,
                         lengths[i] > 1000 ? 2 : 9, lengths[i],
                         fills[(i + 2 * (size_t)down) % COUNT(fills)]);
        for (size_t i = 0; i < COUNT(rests); i++)
            case_add(list, "%s descending=%d %s", name, (int)i % 2, rests[i]);
    }
    case_add(list, "argsort expect=E_INDEX_RANGE in=x:f32:0x16777217");
}

static void generate_counts(case_list *list)
{
    static const char *const lines[] = {
        "histogram bins=1 low=-3 high=3 in=x:f32:100",
        "histogram bins=10 low=-2 high=2 in=x:f32:1000",
        "histogram bins=7 low=0 high=1 in=x:f32:30x70:special",
        "histogram bins=17 low=-8 high=8.5 in=x:f32:5000:integers",
        "histogram bins=16 low=-8 high=8 in=x:f32:5000:integers",
        "histogram bins=256 low=-3 high=3 in=x:f32:70001",
        "histogram bins=4096 low=-3 high=3 in=x:f32:9000",
        "histogram bins=4097 low=-3 high=3 in=x:f32:9000",
        "histogram bins=3 low=-1e30 high=1e30 in=x:f32:500:large",
        "histogram bins=5 low=0 high=1 in=x:f32:0",
        "histogram bins=5 low=-1 high=1 in=x:f32:scalar",
        "histogram bins=5 low=-8 high=8 in=x:i32:500:integers",
        "histogram bins=5 low=-1 high=1 shift=1 in=x:f32:9x70",
        "histogram expect=E_ATTR bins=0 low=0 high=1 in=x:f32:5",
        "histogram expect=E_ATTR bins=5 low=1 high=1 in=x:f32:5",
        "histogram expect=E_ATTR bins=5 low=nan high=1 in=x:f32:5",
        "histogram expect=E_ATTR bins=5 low=-3e38 high=3e38 in=x:f32:5",
        "histogram expect=E_INDEX_RANGE bins=16777217 low=0 high=1 in=x:f32:5",
        "histogram expect=E_DTYPE bins=5 low=0 high=1 in=x:c64:5",
        "bincount bins=1 in=x:f32:100:badindex:1",
        "bincount bins=10 in=x:f32:1000:badindex:10",
        "bincount bins=10 in=x:f32:30x70:special",
        "bincount bins=300 in=x:i32:70001:index:300",
        "bincount bins=5000 in=x:f32:9000:badindex:5000",
        "bincount bins=9000 in=x:f32:600001:badindex:9000",
        "bincount bins=40000 in=x:f32:9000:badindex:40000",
        "bincount bins=4 in=x:f32:90:zero",
        "bincount bins=8193 in=x:f32:70003:zero",
        "bincount bins=0 in=x:f32:5",
        "bincount bins=5 in=x:f32:0",
        "bincount bins=5 in=x:f32:scalar:zero",
        "bincount bins=5 shift=1 in=x:f32:9x70:index:5",
        "bincount bins=9 in=x:f32:90:badindex:9;weights:f32:90",
        "bincount bins=9 in=x:f32:9x10:badindex:9;weights:f32:9x10",
        "bincount bins=9 in=x:f32:scalar:zero;weights:f32:scalar",
        "bincount expect=E_SHAPE bins=9 in=x:f32:9;weights:f32:8",
        "bincount expect=E_ATTR bins=-1 in=x:f32:9",
        "bincount expect=E_INDEX_RANGE bins=16777217 in=x:f32:9",
    };
    case_add_all(list, "", lines, COUNT(lines));
}

static void generate(case_list *list)
{
    generate_sorts(list);
    generate_counts(list);
}

static const char *const rows[] = {"sort", "argsort", "histogram", "bincount", NULL};

const case_family array_order_cases = {.rows = rows, .build = build, .generate = generate};
