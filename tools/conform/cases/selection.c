/*
 * Cases of scatter_add (dim; in=updates;idx) and topk (k; in=x). shift=n drops the first n rows of
 * updates and indices, or of x, by views. For topk, values=1 returns the values instead of the
 * indices.
 */
#include "conform/cases/cases.h"

#include <string.h>

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    if (strcmp(s->row, "scatter_add") == 0)
        return rlxvk_scatter_add(g, case_shifted(g, s, "shift", case_tensor(s, inputs, "updates")),
                                 case_shifted(g, s, "shift", case_tensor(s, inputs, "idx")),
                                 case_integer(s, "dim", 0));
    rlxvk_tensor x = case_shifted(g, s, "shift", case_tensor(s, inputs, "x"));
    rlxvk_tensor indices = rlxvk_topk(g, x, case_integer(s, "k", 0));
    return case_integer(s, "values", 0) ? rlxvk_take_along_axis(g, x, indices, -1) : indices;
}

static void generate_scatters(case_list *list)
{
    static const char *const rests[] = {
        "dim=1 in=updates:f32:1;idx:f32:1:zero", "dim=3 in=updates:f32:4x1;idx:f32:4:badindex:3",
        "dim=5 in=updates:f32:7;idx:f32:7:index:5", "dim=5 in=updates:f32:7x3;idx:f32:7:zero",
        "dim=5 in=updates:f32:64x3:integers;idx:f32:64:badindex:5",
        "dim=5 in=updates:f32:64x3:special;idx:f32:64:badindex:5",
        "dim=5 in=updates:f32:64x3:large;idx:f32:64:index:5",
        "dim=5 in=updates:f32:40x3;idx:f32:40:special",
        "dim=5 in=updates:f32:40x3;idx:f32:40:large",
        "dim=9 in=updates:f32:24x2x3x5;idx:f32:24:index:9",
        "dim=9 in=updates:f32:24x7;idx:f32:2x3x4:index:9",
        "dim=1 in=updates:f32:1x7;idx:f32:scalar:zero",
        "dim=4 in=updates:f32:6x1x2x1x2x1x2x3;idx:f32:6:index:4",
        "dim=4 in=updates:f32:0x3;idx:f32:0", "dim=0 in=updates:f32:3x2;idx:f32:3",
        "dim=4 in=updates:f32:3x0;idx:f32:3", "dim=4 in=updates:f16:9x3;idx:f32:9:index:4",
        "dim=4 in=updates:f32:9x3;idx:i32:9:index:4",
        "dim=4 in=updates:i32:9x3:integers;idx:i64:9:index:4",
        "dim=4 shift=3 in=updates:f32:12x5;idx:f32:12:index:4",
        "dim=33 in=updates:f32:33x129;idx:f32:33:iota",
        "dim=1000 in=updates:f32:5x7;idx:f32:5:index:1000",
        "dim=2 in=updates:f32:300x700;idx:f32:300:index:2",
        "dim=7 in=updates:f32:4096x3;idx:f32:4096:badindex:7",
        "dim=70001 in=updates:f32:9x2;idx:f32:9:index:70001",
        /* sorted */
        "dim=7 in=updates:f32:4097x3;idx:f32:4097:badindex:7",
        "dim=1 in=updates:f32:5000x2:integers;idx:f32:5000:badindex:1",
        "dim=15 in=updates:f32:6001:integers;idx:f32:6001:index:15",
        "dim=16 in=updates:f32:6001x5;idx:f32:6001:index:16",
        "dim=40 in=updates:f32:9000x65;idx:f32:9000:badindex:40",
        "dim=3001 in=updates:f32:8192x5:integers;idx:f32:8192:index:3001",
        "dim=5000 in=updates:f32:5000x3;idx:f32:5000:iota",
        "dim=300 in=updates:f32:20011x8;idx:f32:20011:badindex:300",
        "dim=3 in=updates:f32:100003:integers;idx:f32:100003:index:3",
        "dim=3 in=updates:f32:9001x64;idx:f32:9001:zero",
        "dim=65536 in=updates:f32:4999x2:special;idx:f32:4999:index:65536",
        "dim=70001 in=updates:f32:6000x2x2;idx:f32:60x100:index:70001",
        "dim=300000 in=updates:f32:5000;idx:f32:5000:index:1000000",
        "dim=78 in=updates:f32:5000x3;idx:f32:5000:index:78",
        "dim=79 in=updates:f32:5000x3;idx:f32:5000:index:79",
        "dim=50 shift=3 in=updates:f32:5003x3;idx:f32:5003:index:50",
        "expect=E_SHAPE dim=4 in=updates:f32:3x2;idx:f32:4",
        "expect=E_SHAPE dim=4 in=updates:f32:scalar;idx:f32:1",
        "expect=E_ATTR dim=-1 in=updates:f32:3x2;idx:f32:3",
        "expect=E_INDEX_RANGE dim=16777217 in=updates:f32:3x0;idx:f32:3",
        "expect=E_TOO_LARGE dim=16777216 in=updates:f32:1x200;idx:f32:1",
        "dim=4 in=updates:c64:9x3;idx:f32:9:index:4",
        "dim=4 shift=3 in=updates:c64:12x5;idx:f32:12:badindex:4",
        "dim=4 in=updates:c64:9;idx:i32:9:index:4", "dim=4 in=updates:c64:0x3;idx:f32:0",
        "dim=2 in=updates:c64:300x350;idx:f32:300:index:2",
        "dim=7 shift=1 in=updates:c64:5001x3;idx:f32:5001:badindex:7",
        "dim=3001 in=updates:c64:8192x5:integers;idx:f32:8192:index:3001",
        "dim=3 shift=2 in=updates:c64:9001x33;idx:f32:9001:index:3",
        "expect=E_DTYPE dim=4 in=updates:f32:3x2;idx:c64:3"};
    static const char *const ways[] = {"direct", "runs", "elements", "parts"};
    case_add_all(list, "scatter_add", rests, COUNT(rests));
    /* More updates of one row than the loops of one dispatch may go through. */
    case_add(list, "scatter_add dim=2 variant=scatter_add=elements "
                   "in=updates:f32:620001:constant:1;idx:f32:620001:zero");
    case_add(list, "scatter_add dim=2 variant=scatter_add=elements "
                   "in=updates:f32:300001x4:constant:1;idx:f32:300001:zero");
    case_add(list, "scatter_add dim=2 variant=scatter_add=runs "
                   "in=updates:f32:500001x3:constant:1;idx:f32:500001:zero");
    case_add(list, "scatter_add dim=256 variant=scatter_add=direct "
                   "in=updates:f32:4096x2200:unit;idx:f32:4096:zero");
    for (size_t i = 0; i < COUNT(ways); i++) {
        case_add(list,
                 "scatter_add variant=scatter_add=%s dim=9 "
                 "in=updates:f32:9001x3;idx:f32:9001:badindex:9",
                 ways[i]);
        case_add(list,
                 "scatter_add variant=scatter_add=%s dim=3 shift=1 "
                 "in=updates:c64:301x5;idx:f32:301:index:3",
                 ways[i]);
    }
}

/* Row lengths around the limits of every kernel. */
static const int lengths[] = {1, 2, 7, 64, 127, 129, 257, 1000, 4099};
static const char *const fills[] = {"uniform", "special", "integers", "bool", "large"};

static void generate_topk(case_list *list)
{
    static const char *const rests[] = {"k=3 in=x:f32:9:neginf",
                                        "k=9 in=x:f32:3x9:neginf",
                                        "k=300 in=x:f32:2x300:neginf",
                                        "k=20 in=x:f32:2x900:zero",
                                        "k=200 in=x:f32:2x900:constant:nan",
                                        "k=900 in=x:f32:2x900:special",
                                        "k=1024 in=x:f32:1x3001:integers",
                                        "k=1024 in=x:f32:2x1024",
                                        "k=1025 in=x:f32:2x1100:special",
                                        "k=5000 in=x:f32:3x5000:integers",
                                        "k=2000 in=x:f32:1x9001:bool",
                                        "k=50 in=x:f32:1x32003",
                                        "k=1 in=x:f32:1x128256",
                                        "k=64 in=x:f32:1x262144:special",
                                        "k=100 in=x:f32:2x70001:bool",
                                        "k=1000 in=x:f32:1x50000:integers",
                                        "k=6 in=x:f32:3x20000:iota",
                                        "k=2 in=x:f32:2x1x2x1x2x1x3x5",
                                        "k=4 in=x:f32:5000x7",
                                        "k=8 in=x:f32:700x64:integers",
                                        "k=0 in=x:f32:3x5",
                                        "k=0 in=x:f32:3x0",
                                        "k=0 in=x:f32:0x0",
                                        "k=2 in=x:f32:0x5",
                                        "k=3 in=x:f16:4x50",
                                        "k=3 in=x:i32:4x50:integers",
                                        "k=3 in=x:bool:4x50:bool",
                                        "k=3 shift=1 in=x:f32:4x5",
                                        "k=7 shift=1 in=x:f32:3x2003",
                                        "k=1200 shift=1 in=x:f32:3x1301",
                                        "k=7 values=1 in=x:f32:3x333",
                                        "expect=E_ATTR k=6 in=x:f32:3x5",
                                        "expect=E_ATTR k=-1 in=x:f32:3x5",
                                        "expect=E_ATTR k=1 in=x:f32:3x0",
                                        "expect=E_SHAPE k=1 in=x:f32:scalar",
                                        "expect=E_INDEX_RANGE k=1 in=x:f32:0x16777217",
                                        "expect=E_DTYPE k=1 in=x:c64:3x5"};
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (int j = 0; j < 4; j++) {
            int n = lengths[i], k[] = {1, (n + 2) / 3, n - n / 9, n};
            case_add(list, "topk k=%d in=x:f32:%dx%d:%s", k[j], n > 1000 ? 2 : 3, n,
                     fills[(i + (size_t)j) % COUNT(fills)]);
        }
    case_add_all(list, "topk", rests, COUNT(rests));
}

static void generate(case_list *list)
{
    generate_scatters(list);
    generate_topk(list);
}

static const char *const rows[] = {"scatter_add", "topk", NULL};

const case_family selection_cases = {.rows = rows, .build = build, .generate = generate};
