/* Cases of reduce_*, softmax, cumsum, cumsum_backward (in=dy), argmax and argmin: every axis and
 * set of axes, ranks 0 to 8, and short, long and many rows. */
#include "conform/cases/cases.h"

#include <string.h>

static const char *const rows[] = {"reduce_sum",  "reduce_mean",     "reduce_max", "reduce_min",
                                   "reduce_prod", "softmax",         "cumsum",     "argmax",
                                   "argmin",      "cumsum_backward", NULL};

typedef rlxvk_tensor (*reduce_builder)(rlxvk_graph *, rlxvk_tensor, const int32_t *, size_t, bool);
static const reduce_builder reduce_builders[] = {rlxvk_reduce_sum, rlxvk_reduce_mean,
                                                 rlxvk_reduce_max, rlxvk_reduce_min,
                                                 rlxvk_reduce_prod};

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    /* golden cases name the op cumsum here, too */
    bool backward = strcmp(s->inputs[0].name, "dy") == 0;
    rlxvk_tensor x = case_tensor(s, inputs, backward ? "dy" : "x");
    int32_t axes[RLXVK_MAX_RANK], axis = (int32_t)case_integer(s, "axis", -1);
    bool keep = case_integer(s, "keep_dim", 0) != 0;
    size_t count = case_integers(s, "axes", axes, RLXVK_MAX_RANK);
    for (size_t i = 0; i < COUNT(reduce_builders); i++)
        if (strcmp(s->row, rows[i]) == 0)
            return reduce_builders[i](g, x, axes, count, keep);
    if (strcmp(s->row, "softmax") == 0)
        return rlxvk_softmax(g, x, axis);
    bool exclusive = case_integer(s, "exclusive", 0) != 0;
    if (backward)
        return rlxvk_cumsum_backward(g, x, axis, exclusive);
    if (strcmp(s->row, "cumsum") == 0)
        return rlxvk_cumsum(g, x, axis, exclusive);
    if (strcmp(s->row, "argmax") == 0)
        return rlxvk_argmax(g, x, axis, keep);
    return rlxvk_argmin(g, x, axis, keep);
}

/* dims, axes, fill (product_fill converts it for products) */
static const char *const reduce_shapes[][3] = {
    {"scalar", "", "uniform"},
    {"scalar", "0", "uniform"},
    {"1", "0", "special"},
    {"7", "0", "uniform"},
    {"7", "", "special"},
    {"3x5", "0", "integers"},
    {"3x5", "-1", "integers"},
    {"3x5", "0,1", "uniform"},
    {"2x0", "1", "uniform"},
    {"2x0", "0", "uniform"},
    {"0x3x2", "0,2", "uniform"},
    {"2x3x4", "0,2", "one"},
    {"4x1x6", "1", "special"},
    {"5x7x11", "0", "uniform"},
    {"5x7x11", "1", "special"},
    {"5x7x11", "2", "special"},
    {"5x7x11", "-3,-2", "uniform"},
    {"5x7x11", "2,0", "special"},
    {"5x1x11x3", "1,2", "uniform"},
    {"2x3x2x3x2x3x2x3", "0,2,4,6", "integers"},
    {"2x3x2x3x2x3x2x3", "1,3,5,7", "uniform"},
    {"2x1x2x3x1x3x2x3", "0,1,2,3,4,5,6,7", "uniform"},
    {"2x3x2x3x2x3x2x3", "7", "special"},
    {"3x257", "1", "offset"},
    {"257x3", "0", "offset"},
    {"65x129", "1", "large"},
    {"129x300", "0", "uniform"},
    {"13x31x67", "1", "integers"},
    {"9x4097", "1", "uniform"},
    {"9x4", "1", "neginf"},
};

/* Products stay near 1 or become infinite. If a driver flushes denormals, a denormal times an
 * infinity becomes NaN. */
static const char *product_fill(const char *fill)
{
    if (strcmp(fill, "special") == 0 || strcmp(fill, "neginf") == 0)
        return "neginf";
    return strcmp(fill, "one") == 0 ? "one" : "range:0.95:1.05";
}

static void generate_reductions(case_list *list, const char *row)
{
    bool product = strcmp(row, "reduce_prod") == 0;
    for (size_t i = 0; i < COUNT(reduce_shapes); i++) {
        const char *const *c = reduce_shapes[i];
        case_add(list, "%s axes=%s keep_dim=%zu in=x:f32:%s:%s", row, c[1], i % 2, c[0],
                 product ? product_fill(c[2]) : c[2]);
    }
    case_add(list, "%s axes=1 in=x:f16:6x33", row);
    case_add(list, "%s axes=0 in=x:f32:20000:%s", row, product ? "range:0.9999:1.0001" : "uniform");
    case_add(list, "%s axes=0 in=x:f32:300001:%s", row, product ? "one" : "integers");
    case_add(list, "%s axes=1 in=x:f32:2x30011x3:%s", row, product ? "one" : "constant:0.1");
}

/* Complex operands are reduced part by part. Reductions that need an order, and products, must be
 * refused. */
static void generate_complex(case_list *list, const char *row, bool sums)
{
    for (size_t i = 0; i < COUNT(reduce_shapes) && sums; i += 1 + i % 2)
        case_add(list, "%s axes=%s keep_dim=%zu in=x:c64:%s:%s", row, reduce_shapes[i][1], i % 2,
                 reduce_shapes[i][0], reduce_shapes[i][2]);
    if (sums)
        case_add(list, "%s axes=0 in=x:c64:70001:integers", row);
    else
        case_add(list, "%s expect=E_DTYPE axes=0 in=x:c64:7", row);
}

/* dims and axis, for ops with one axis. No tensor is empty along it. */
static const char *const axis_shapes[][2] = {
    {"scalar", "0"},   {"scalar", "-1"},  {"1", "0"},
    {"2", "0"},        {"31", "0"},       {"3x5", "0"},
    {"3x5", "-1"},     {"5x7x11", "0"},   {"5x7x11", "1"},
    {"5x7x11", "-1"},  {"5x1x11", "1"},   {"2x3x2x3x2x3x2x3", "0"},
    {"0x4", "1"},      {"65x64", "1"},    {"2x3x2x3x2x3x2x3", "7"},
    {"64x65", "0"},    {"33x130", "1"},   {"2x3x2x3x2x3x2x3", "4"},
    {"130x33", "0"},   {"3x1025", "1"},   {"1025x3", "0"},
    {"7x200x40", "1"}, {"2x100x130", "1"}};

static const char *const plain_fills[] = {"uniform", "special", "integers", "neginf", "large"};

static void generate_axis(case_list *list, const char *row, const char *attributes, size_t phase)
{
    for (size_t i = 0; i < COUNT(axis_shapes); i++)
        case_add(list, "%s axis=%s %s in=x:f32:%s:%s", row, axis_shapes[i][1], attributes,
                 axis_shapes[i][0], plain_fills[(i + phase) % COUNT(plain_fills)]);
}

static void generate_softmax(case_list *list)
{
    generate_axis(list, "softmax", "", 0);
    generate_axis(list, "softmax", "", 3);
    case_add(list, "softmax axis=0 in=x:f32:0x3");
    case_add(list, "softmax axis=1 in=x:f32:4x9:range:-100:100");
    case_add(list, "softmax axis=1 in=x:f32:5x2100:offset");
    case_add(list, "softmax axis=1 in=x:f32:3x5000:range:-30:30");
    case_add(list, "softmax axis=1 in=x:f32:3x9001:special");
    case_add(list, "softmax axis=0 in=x:f32:3001x5");
    case_add(list, "softmax axis=1 scratch=1 in=x:f32:9x1001");
    case_add(list, "softmax axis=1 scratch=1 in=x:f32:5x4096");
    case_add(list, "softmax axis=1 scratch=1 in=x:f32:3x9001");
    case_add(list, "softmax axis=1 scratch=1 in=x:f32:1x70000");
    case_add(list, "softmax axis=0 scratch=1 in=x:f32:301x40");
    case_add(list, "softmax axis=0 in=x:f32:2000x37:neginf");
    case_add(list, "softmax axis=-1 in=x:f32:1x131072");
    case_add(list, "softmax axis=1 in=x:f32:70000x2");
}

static void generate_cumsum(case_list *list)
{
    generate_axis(list, "cumsum", "exclusive=0", 0);
    generate_axis(list, "cumsum", "exclusive=1", 2);
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        case_add(list, "cumsum axis=0 exclusive=%d in=x:f32:0x3", exclusive);
        case_add(list, "cumsum axis=1 exclusive=%d in=x:f32:3x5000:constant:0.1", exclusive);
        case_add(list, "cumsum axis=0 exclusive=%d in=x:f32:30001:integers", exclusive);
        case_add(list, "cumsum axis=1 exclusive=%d in=x:f32:2x9001x3:special", exclusive);
        case_add(list, "cumsum axis=0 exclusive=%d in=x:f32:300007", exclusive);
        case_add(list, "cumsum axis=1 exclusive=%d scratch=1 in=x:f32:7x301", exclusive);
        case_add(list, "cumsum axis=0 exclusive=%d scratch=1 in=x:f32:5000x3", exclusive);
        case_add(list, "cumsum axis=0 exclusive=%d scratch=1 in=x:f32:70001", exclusive);
    }
}

static void generate_cumsum_backward(case_list *list)
{
    static const char *const dys[] = {"axis=0 in=dy:f32:scalar",
                                      "axis=-1 in=dy:f32:1",
                                      "axis=0 in=dy:f32:7:integers",
                                      "axis=0 in=dy:f32:0x3",
                                      "axis=0 in=dy:f32:3x5",
                                      "axis=-1 in=dy:f32:3x5:integers",
                                      "axis=1 in=dy:f32:5x130x3",
                                      "axis=-2 in=dy:f32:2x3x2x3x2x3x2x3",
                                      "axis=1 in=dy:f32:3x5000",
                                      "axis=0 in=dy:f32:30001:integers",
                                      "axis=1 in=dy:f32:2x900x3:special"};
    for (size_t i = 0; i < COUNT(dys); i++)
        for (int exclusive = 0; exclusive < 2; exclusive++)
            case_add(list, "cumsum_backward within=1e-6 exclusive=%d %s", exclusive, dys[i]);
    case_add(list, "cumsum_backward expect=E_AXIS axis=2 in=dy:f32:3x5");
    case_add(list, "cumsum_backward expect=E_AXIS axis=1 in=dy:f32:scalar");
    case_add(list, "cumsum_backward expect=E_DTYPE axis=0 in=dy:c64:3x5");
}

static void generate_arguments(case_list *list, const char *row)
{
    generate_axis(list, row, "keep_dim=0", 0);
    generate_axis(list, row, "keep_dim=1", 2);
    case_add(list, "%s axis=0 in=x:f32:7:zero", row);
    case_add(list, "%s axis=1 in=x:f32:6x50:bool", row);
    case_add(list, "%s axis=1 in=x:f32:3x9001:integers", row);
    case_add(list, "%s axis=0 in=x:f32:40001:special", row);
    case_add(list, "%s axis=0 in=x:f32:300007", row);
    case_add(list, "%s axis=1 in=x:f32:2x20011x3:integers", row);
    case_add(list, "%s axis=1 in=x:f32:1x128256", row);
    case_add(list, "%s axis=1 in=x:f32:3000x5:integers", row);
}

/* Every class of row kernel, with rows for a part of a workgroup, for a whole one, and in chunks.
 */
static void generate_classes(case_list *list)
{
    static const char *const classes[] = {"subgroup_quads", "subgroup_words", "shared_quads",
                                          "shared_words"};
    static const char *const shapes[] = {"70x8:special", "33x132:uniform", "9x1024:neginf",
                                         "5x4096:special", "3x40004:uniform"};
    for (size_t c = 0; c < COUNT(classes); c++)
        for (size_t s = 0; s < COUNT(shapes); s++) {
            const char *shape = shapes[s];
            case_add(list, "reduce_sum axes=1 variant=rows=%s in=x:f32:%s", classes[c], shape);
            case_add(list, "reduce_max axes=1 variant=rows=%s in=x:f32:%s", classes[c], shape);
            case_add(list, "softmax axis=1 variant=rows=%s in=x:f32:%s", classes[c], shape);
            case_add(list, "argmin axis=1 variant=rows=%s in=x:f32:%s", classes[c], shape);
            case_add(list, "cumsum axis=1 variant=rows=%s in=x:f32:%s", classes[c], shape);
            case_add(list, "cumsum axis=1 exclusive=1 variant=rows=%s in=x:f32:%s", classes[c],
                     shape);
            case_add(list, "log_softmax axis=1 variant=rows=%s in=x:f32:%s", classes[c], shape);
            case_add(list,
                     "cumprod axis=1 exclusive=%zu variant=rows=%s in=x:f32:%.*s:range:0.9:1.1",
                     s % 2, classes[c], (int)strcspn(shape, ":"), shape);
            case_add(list, "argmax axis=1 variant=rows=%s in=x:f32:%s", classes[c], shape);
        }
}

/* Means of values whose sum f32 cannot hold, beside values that must not be scaled down; and
 * softmax. */
static void generate_ranges(case_list *list)
{
    static const char *const classes[] = {"shared_words",   "shared_quads", "subgroup_words",
                                          "subgroup_quads", "columns",      "subgroup_ragged",
                                          "subgroup_span",  "stream_quads", "long_quads"};
    static const char *const shapes[][2] = {{"131x30", "1"},      {"9x1024", "1"},
                                            {"5x257", "1"},       {"2x40001", "1"},
                                            {"3x48x20", "1"},     {"3x300x20", "1"},
                                            {"70x5x1200", "0,2"}, {"900x6x70", "0,2"}};
    static const char *const ranges[] = {"2e38:3e38", "-3e38:3e38", "1.2e-38:2e-38"};
    for (size_t i = 0; i < COUNT(classes) * COUNT(shapes); i++) {
        const char *const *s = shapes[i % COUNT(shapes)];
        const char *name = classes[i / COUNT(shapes)], *range = ranges[i % COUNT(ranges)];
        case_add(list, "reduce_mean axes=%s variant=rows=%s in=x:f32:%s:range:%s", s[1], name, s[0],
                 range);
        case_add(list, "softmax axis=1 variant=rows=%s in=x:f32:%s:range:%s", name, s[0], range);
    }
    case_add(list, "reduce_mean axes=0,1 in=x:f32:300x300:constant:3e38");
    case_add(list, "reduce_mean axes=1 in=x:f32:300x3001:large");
    case_add(list, "reduce_mean axes=1 in=x:c64:3x3001:range:2e38:3e38");
}

/* Only softmax has these kernels. Lengths lie on both sides of those that a lane, a workgroup and
 * the registers of the largest workgroup hold. */
static void generate_forms(case_list *list)
{
    static const char *const classes[] = {"subgroup_span", "subgroup_ragged", "long_quads",
                                          "long_ragged"};
    static const char *const shapes[] = {"131x33:special",  "70x256:uniform",  "70x257:special",
                                         "9x8:neginf",      "5x11:uniform",    "2x8192:uniform",
                                         "3x8193:uniform",  "2x32768:special", "2x32770:uniform",
                                         "3x32773:uniform", "2x65537:neginf",  "2x40004:uniform",
                                         "3x66000:special", "300x17:uniform"};
    for (size_t c = 0; c < COUNT(classes); c++)
        for (size_t s = 0; s < COUNT(shapes); s++)
            case_add(list, "softmax axis=1 variant=rows=%s in=x:f32:%s", classes[c], shapes[s]);
}

/* Quads of neighbouring rows, on both sides of the lengths that a lane and a workgroup take. */
static void generate_columns(case_list *list, const char *row)
{
    static const char *const shapes[] = {"128x4:special",   "129x300:uniform",  "2x200x12:special",
                                         "3x512x36:neginf", "2x513x36:uniform", "160x2052:uniform"};
    static const char *const factors[] = {"129x300:range:0.95:1.05", "2x513x36:range:-1.05:-0.95",
                                          "160x2052:range:0.9:1.1"};
    for (size_t s = 0; s < COUNT(shapes); s++)
        case_add(list, "%s axes=-2 variant=rows=columns in=x:f32:%s", row, shapes[s]);
    for (size_t s = 0; strcmp(row, "reduce_prod") == 0 && s < COUNT(factors); s++)
        case_add(list, "%s axes=-2 variant=rows=columns in=x:f32:%s", row, factors[s]);
}

static void generate(case_list *list)
{
    for (size_t i = 0; i < COUNT(reduce_builders); i++) {
        generate_reductions(list, rows[i]);
        generate_columns(list, rows[i]);
        generate_complex(list, rows[i], i < 2);
    }
    /* If a device has 64 rows a workgroup, these are more workgroups than one grid dimension has.
     */
    generate_softmax(list);
    generate_cumsum(list);
    generate_cumsum_backward(list);
    generate_arguments(list, "argmax");
    generate_arguments(list, "argmin");
    generate_classes(list);
    generate_forms(list);
    /* Ties between the blocks of quads that a lane reads in turn. */
    case_add(list, "argmax axis=1 in=x:f32:300x9004:integers");
    case_add(list, "argmin axis=1 in=x:f32:300x9004:integers");
    case_add(list, "argmax axis=1 variant=rows=shared_quads in=x:f32:30x9004:integers");
    case_add(list, "argmin axis=1 variant=rows=shared_quads in=x:f32:30x9004:integers");
    case_add(list, "argmax axis=1 in=x:f32:3x9004:bool");
    case_add(list, "argmax axis=1 in=x:f32:3x9003:bool");
    generate_ranges(list);
}

const case_family reduction_cases = {rows, build, generate};
