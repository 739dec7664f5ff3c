/*
 * Cases of ops in transformers:
 *   rope, rope_backward   head_dim, n_rot, style=neox|gptj, table=auto|position|token; in=x;cos;sin
 *   fused_swiglu          gate_first; in=x
 *   write_rows            in=cache;rows;position[;rows2;position2]; with rows2 and position2, a
 *                         second write follows the first; difference=1 returns the cache after the
 *                         write minus the cache that an earlier reader saw
 *
 * shift=n drops the first n indices of axis 0 of x by a view. turned=1 and cut=n make x and rows
 * views (case_viewed); cut applies to the tables, too.
 */
#include "conform/cases/cases.h"

#include <string.h>

static rlxvk_tensor build_rope(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    const char *table = case_word(s, "table", "auto");
    rlxvk_rope_options options = {.head_dim = case_integer(s, "head_dim", 0),
                                  .n_rot = case_integer(s, "n_rot", 0),
                                  .style = strcmp(case_word(s, "style", "neox"), "gptj")
                                               ? RLXVK_ROPE_NEOX
                                               : RLXVK_ROPE_GPTJ,
                                  .table = !strcmp(table, "position")
                                               ? RLXVK_ROPE_TABLE_PER_POSITION
                                           : !strcmp(table, "token") ? RLXVK_ROPE_TABLE_PER_TOKEN
                                                                     : RLXVK_ROPE_TABLE_AUTO};
    bool back = strcmp(s->row, "rope_backward") == 0;
    rlxvk_tensor x = case_viewed(g, s, case_shifted(g, s, "shift", inputs[0]));
    rlxvk_tensor cos = case_viewed(g, s, case_tensor(s, inputs, "cos"));
    rlxvk_tensor sin = case_viewed(g, s, case_tensor(s, inputs, "sin"));
    return (back ? rlxvk_rope_backward : rlxvk_rope)(g, x, cos, sin, &options);
}

static rlxvk_tensor build_write_rows(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    bool difference = case_integer(s, "difference", 0) != 0;
    rlxvk_tensor cache = case_tensor(s, inputs, "cache"), before = cache;
    rlxvk_tensor second = case_tensor(s, inputs, "rows2");
    if (difference)
        before = rlxvk_neg(g, cache);
    rlxvk_tensor rows = case_viewed(g, s, case_tensor(s, inputs, "rows"));
    rlxvk_tensor after = rlxvk_write_rows(g, cache, rows, case_tensor(s, inputs, "position"));
    if (second.id)
        after = rlxvk_write_rows(g, cache, second, case_tensor(s, inputs, "position2"));
    return difference ? rlxvk_add(g, after, before) : after;
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    if (strncmp(s->row, "rope", 4) == 0)
        return build_rope(g, s, inputs);
    if (strcmp(s->row, "write_rows") == 0)
        return build_write_rows(g, s, inputs);
    return rlxvk_fused_swiglu(g, case_shifted(g, s, "shift", inputs[0]),
                              case_integer(s, "gate_first", 0) != 0);
}

static void generate_rope(case_list *list, const char *row)
{
    static const int widths[] = {2, 8, 64, 128};
    static const char *const styles[] = {"neox", "gptj"};
    for (size_t w = 0; w < COUNT(widths); w++)
        for (size_t j = 0; j < 8; j++) {
            int d = widths[w], rotated[] = {0, 2, d / 2 / 2 * 2, d};
            case_add(list,
                     "%s head_dim=%d n_rot=%d style=%s scratch=%zu in=x:f32:2x5x%d;"
                     "cos:f32:5x%d:unit;sin:f32:5x%d:unit",
                     row, d, rotated[j / 2], styles[j % 2], (w + j / 2) % 2, 3 * d, d / 2, d / 2);
        }
    static const char *const lines[] = {
        "in=x:f32:7x24;cos:f32:7x4:unit;sin:f32:7x4:unit",
        "in=x:f32:1x8;cos:f32:1x4:unit;sin:f32:1x4:unit",
        "in=x:f32:1x8;cos:f32:4:unit;sin:f32:4:unit",
        "in=x:f32:2x8;cos:f32:8:unit;sin:f32:8:unit",
        "in=x:f32:2x4x5x8;cos:f32:5x4:unit;sin:f32:5x4:unit",
        "in=x:f32:2x4x5x16;cos:f32:9x4:unit;sin:f32:9x4:unit",
        "in=x:f32:3x5x16;cos:f32:15x4:unit;sin:f32:15x4:unit",
        "table=position in=x:f32:3x5x16;cos:f32:15x4:unit;sin:f32:15x4:unit",
        "table=token in=x:f32:3x5x16;cos:f32:3x5x4:unit;sin:f32:3x5x4:unit",
        "table=token in=x:f32:3x2x5x8;cos:f32:15x4:unit;sin:f32:15x4:unit",
        "table=token in=x:f32:5x8;cos:f32:5x4:unit;sin:f32:5x4:unit",
        "table=token in=x:f32:2x3x2x5x8;cos:f32:10x4:unit;sin:f32:10x4:unit",
        "in=x:f32:2x1x2x1x1x3x5x8;cos:f32:5x7:unit;sin:f32:5x7:unit",
        "in=x:f32:3x1x8;cos:f32:1x4:unit;sin:f32:1x4:unit",
        "in=x:f32:0x5x8;cos:f32:5x4:unit;sin:f32:5x4:unit",
        "in=x:f32:2x0x8;cos:f32:5x4:unit;sin:f32:5x4:unit",
        "in=x:f32:2x5x0;cos:f32:5x4:unit;sin:f32:5x4:unit",
        "shift=1 in=x:f32:3x5x16;cos:f32:5x4:unit;sin:f32:5x4:unit",
        "in=x:f32:2x5x16:special;cos:f32:5x4:unit;sin:f32:5x4:unit",
        "in=x:f32:2x5x16;cos:f32:5x4:special;sin:f32:5x4",
        "in=x:f32:2x5x16:large;cos:f32:5x4:unit;sin:f32:5x4:unit",
        "in=x:f32:2x5x16:integers;cos:f32:5x4:integers;sin:f32:5x4:integers",
        "in=x:f32:3x67x256;cos:f32:67x4:unit;sin:f32:67x4:unit",
        "turned=1 in=x:f32:2x5x4x8;cos:f32:5x4:unit;sin:f32:5x4:unit",
        "turned=1 cut=3 in=x:f32:2x5x4x14;cos:f32:5x10:unit;sin:f32:5x10:unit",
        "turned=1 cut=1 in=x:f32:5x4x18;cos:f32:9x6:unit;sin:f32:9x6:unit",
        "cut=4 table=token in=x:f32:2x3x5x24;cos:f32:10x12:unit;sin:f32:10x12:unit",
        "cut=2 in=x:f32:2x3x2x5x12;cos:f32:5x8:unit;sin:f32:5x8:unit"};
    for (size_t i = 0; i < COUNT(lines); i++)
        for (size_t j = 0; j < COUNT(styles); j++)
            case_add(list, "%s head_dim=8 n_rot=%d style=%s %s", row, i % 3 == 2 ? 4 : 8, styles[j],
                     lines[i]);
}

static void generate_swiglu(case_list *list)
{
    static const char *const inputs[] = {"2",
                                         "10",
                                         "3x2",
                                         "3x14",
                                         "0x6",
                                         "4x0",
                                         "5x7x38",
                                         "2x1x3x1x22",
                                         "2x1x2x1x1x3x1x4",
                                         "1x1536",
                                         "65x514",
                                         "7x6:neginf",
                                         "3x6:constant:nan",
                                         "3x6:constant:inf",
                                         "3x6:constant:-inf",
                                         "9x30:large",
                                         "9x30:range:-100:100",
                                         "6x128:integers",
                                         "4x10:zero",
                                         "300x1002"};
    for (size_t i = 0; i < COUNT(inputs); i++)
        for (int gate_first = 0; gate_first < 2; gate_first++)
            case_add(list, "fused_swiglu gate_first=%d in=x:f32:%s", gate_first, inputs[i]);
    case_add(list, "fused_swiglu shift=2 in=x:f32:5x14");
    case_add(list, "fused_swiglu gate_first=1 shift=1 in=x:f32:5x3x14");
    case_add(list, "fused_swiglu in=x:f16:5x14");
}

static void generate_write_rows(case_list *list)
{
    static const char *const positions[] = {"0",           "3",         "4",     "5",
                                            "6",           "7",         "-1",    "-2",
                                            "-3",          "1.4",       "1.5",   "-0.5",
                                            "-0.6",        "1e20",      "-1e20", "2147483648",
                                            "-2147483648", "0.49999997"};
    for (size_t i = 0; i < COUNT(positions); i++)
        case_add(list, "write_rows in=cache:f32:2x7x5;rows:f32:2x3x5;position:f32:1:constant:%s",
                 positions[i]);
    static const char *const lines[] = {
        "in=cache:f32:2x7x5;rows:f32:2x3x5;position:f32:1:constant:nan",
        "in=cache:f32:2x7x5;rows:f32:2x3x5;position:f32:1:constant:inf",
        "in=cache:f32:2x7x5;rows:f32:2x3x5;position:f32:1:constant:-inf",
        "in=cache:f32:2x7x5:special;rows:f32:2x3x5:special;position:f32:1:constant:2",
        "in=cache:f32:1x1x1;rows:f32:1x1x1;position:f32:1:constant:0",
        "in=cache:f32:2x512x64;rows:f32:2x1x64;position:f32:1:constant:511",
        "in=cache:f32:2x512x64;rows:f32:2x1x64;position:f32:1:constant:512",
        "in=cache:f32:4x100x33;rows:f32:4x100x33;position:f32:1:constant:0",
        "in=cache:f32:4x10x33;rows:f32:4x100x33;position:f32:1:constant:-45",
        "in=cache:f32:2x7x5;rows:f32:2x0x5;position:f32:1:constant:0",
        "in=cache:f32:2x0x5;rows:f32:2x3x5;position:f32:1:constant:0",
        "in=cache:f32:2x7x5;rows:f32:2x3x5;position:i32:1:constant:3",
        "in=cache:f32:2x7x5;rows:f32:2x3x5;position:f32:scalar:constant:3",
        "difference=1 in=cache:f32:2x7x5:integers;rows:f32:2x3x5:integers;"
        "position:f32:1:constant:3",
        "in=cache:f32:2x7x5;rows:f32:2x3x5;position:f32:1:constant:1;rows2:f32:2x2x5;"
        "position2:f32:1:constant:3",
        "difference=1 in=cache:f32:2x7x5:integers;rows:f32:2x3x5:integers;"
        "position:f32:1:constant:3;rows2:f32:2x1x5:integers;position2:f32:1:constant:0",
        "in=cache:f32:8x300x128;rows:f32:8x200x128;position:f32:1:constant:50",
        "turned=1 in=cache:f32:2x7x5;rows:f32:3x2x5;position:f32:1:constant:3",
        "turned=1 cut=2 in=cache:f32:2x7x5:special;rows:f32:3x2x9:special;"
        "position:f32:1:constant:5",
        "cut=1 in=cache:f32:4x100x33;rows:f32:4x70x35;position:f32:1:constant:40"};
    case_add_all(list, "write_rows", lines, COUNT(lines));
}

static void generate(case_list *list)
{
    generate_rope(list, "rope");
    generate_rope(list, "rope_backward");
    generate_swiglu(list);
    generate_write_rows(list);
}

static const char *const rows[] = {"rope", "rope_backward", "fused_swiglu", "write_rows", NULL};

const case_family transformer_cases = {.rows = rows, .build = build, .generate = generate};
