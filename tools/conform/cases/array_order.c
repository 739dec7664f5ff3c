/* Cases of sort and argsort (axis, descending): row lengths around the limits of every kernel.
 * shift=n drops the first n rows of x by a view. */
#include "conform/cases/cases.h"

#include <string.h>

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x = case_turned(g, s, case_shifted(g, s, "shift", inputs[0]));
    int32_t axis = (int32_t)case_integer(s, "axis", -1);
    bool descending = case_integer(s, "descending", 0) != 0;
    return (strcmp(s->row, "sort") == 0 ? rlxvk_sort : rlxvk_argsort)(g, x, axis, descending);
}

static void generate(case_list *list)
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

static const char *const rows[] = {"sort", "argsort", NULL};

const case_family array_order_cases = {.rows = rows, .build = build, .generate = generate};
