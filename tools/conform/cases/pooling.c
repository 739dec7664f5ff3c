/*
 * Cases of the image ops:
 *   layer_norm2d
 *   group_norm             groups
 *   batch_norm_inference   axis; in=x;gamma;beta;mean;var
 *   pool_*                 kernel, stride, padding, padding_after, dilation, ceil, exclude_pad
 *   resize_nearest2x
 *   axial_rope2d           grid=x,y, head_dim, num_heads, theta, repeat, tile, inverse; twice=1
 *                          turns back again
 *
 * shift=n drops the first n indices of axis 0 of x by a view. join=1 makes the result the second
 * part of a concat, so that y does not begin at a multiple of four.
 */
#include "conform/cases/cases.h"

#include <string.h>

static rlxvk_tensor operand(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    return case_shifted(g, s, "shift", case_tensor(s, inputs, "x"));
}

static rlxvk_tensor build_norm(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x = operand(g, s, inputs);
    rlxvk_tensor gamma = case_tensor(s, inputs, "gamma"), beta = case_tensor(s, inputs, "beta");
    float eps = (float)case_real(s, "eps", 1e-5);
    if (strcmp(s->row, "layer_norm2d") == 0)
        return rlxvk_layer_norm2d(g, x, gamma, beta, eps);
    if (strcmp(s->row, "group_norm") == 0)
        return rlxvk_group_norm(g, x, gamma, beta, case_integer(s, "groups", 1), eps);
    return rlxvk_batch_norm_inference(g, x, gamma, beta, case_tensor(s, inputs, "mean"),
                                      case_tensor(s, inputs, "var"), eps,
                                      (int32_t)case_integer(s, "axis", -1));
}

typedef rlxvk_tensor (*pool_builder)(rlxvk_graph *, rlxvk_tensor, const rlxvk_pool_options *);
static const struct pool_row {
    const char *name;
    pool_builder build;
} pool_rows[] = {{"pool_max", rlxvk_pool_max},
                 {"pool_mean", rlxvk_pool_mean},
                 {"pool_min", rlxvk_pool_min},
                 {"pool_sum", rlxvk_pool_sum},
                 {"pool_prod", rlxvk_pool_prod}};

static rlxvk_tensor build_pool(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_pool_options options = {.exclude_pad = case_integer(s, "exclude_pad", 0) != 0};
    size_t i = 0;
    case_windows(s, &options);
    while (strcmp(pool_rows[i].name, s->row) != 0)
        i++;
    return pool_rows[i].build(g, operand(g, s, inputs), &options);
}

static rlxvk_tensor build_axial(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    int32_t grid[2] = {0, 0};
    case_integers(s, "grid", grid, COUNT(grid));
    rlxvk_axial_rope2d_options options = {.end_x = grid[0],
                                          .end_y = grid[1],
                                          .head_dim = case_integer(s, "head_dim", 4),
                                          .num_heads = case_integer(s, "num_heads", 0),
                                          .theta = (float)case_real(s, "theta", 0),
                                          .repeat_factor = case_integer(s, "repeat", 0),
                                          .repeat_mode = case_integer(s, "tile", 0)
                                                             ? RLXVK_AXIAL_TILE
                                                             : RLXVK_AXIAL_EACH,
                                          .inverse = case_integer(s, "inverse", 0) != 0};
    rlxvk_tensor y = rlxvk_axial_rope2d(g, operand(g, s, inputs), &options);
    options.inverse = !options.inverse;
    return case_integer(s, "twice", 0) ? rlxvk_axial_rope2d(g, y, &options) : y;
}

static rlxvk_tensor build_resize(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor y = rlxvk_resize_nearest2x(g, operand(g, s, inputs));
    if (!case_integer(s, "join", 0))
        return y;
    rlxvk_shape row = rlxvk_tensor_shape(g, y);
    row.dims[2] = 1;
    return rlxvk_concat(g, (rlxvk_tensor[]){rlxvk_full(g, row, 0), y}, 2, 2);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    if (strncmp(s->row, "pool_", 5) == 0)
        return build_pool(g, s, inputs);
    if (strcmp(s->row, "axial_rope2d") == 0)
        return build_axial(g, s, inputs);
    if (strcmp(s->row, "resize_nearest2x") == 0)
        return build_resize(g, s, inputs);
    return build_norm(g, s, inputs);
}

/* ---- Norms ---- */

static const char *const fills[] = {"unit", "uniform", "offset"};
static const int channels[] = {1, 6, 32};
static const char *const planes[] = {"1x1", "5x7", "32x33"};
static const char *const vectors[] = {"", ";gamma:f32:%d", ";beta:f32:%d",
                                      ";gamma:f32:%d;beta:f32:%d"};

static void generate_layer_norms(case_list *list)
{
    static const char *const others[] = {
        "eps=1e-6 in=x:f32:2x257x9x5;gamma:f32:257;beta:f32:257",
        "eps=1e-6 in=x:f32:1x4100x2x3:offset;gamma:f32:4100",
        "eps=1e-6 in=x:f32:1x40x60x70;gamma:f32:40;beta:f32:40",
        "eps=0 in=x:f32:2x6x3x3:constant:0.1;beta:f32:6",
        "eps=1e-6 in=x:f32:3x8x7x7:special;gamma:f32:8;beta:f32:8",
        "eps=1e-6 in=x:f32:0x8x7x7;gamma:f32:8",
        "eps=1e-6 in=x:f32:2x0x7x7",
        "eps=1e-6 in=x:f32:2x8x0x7",
        "eps=1e-6 in=x:f16:2x8x5x7;gamma:f16:8;beta:bf16:8",
        "eps=1e-6 in=x:f32:2x8x5x7:integers;gamma:f32:1x8x1x1;beta:f32:8x1",
        "eps=1e-6 shift=1 in=x:f32:3x5x3x3;gamma:f32:5",
        "expect=E_SHAPE in=x:f32:2x8x5;gamma:f32:8",
        "expect=E_SHAPE in=x:f32:2x8x5x7x1;gamma:f32:8",
        "expect=E_SHAPE in=x:f32:2x8x5x7;gamma:f32:7",
        "expect=E_ATTR eps=-1 in=x:f32:2x8x5x7;gamma:f32:8",
        "expect=E_DTYPE in=x:c64:2x8x5x7;gamma:f32:8"};
    for (size_t c = 0; c < COUNT(channels); c++)
        for (size_t p = 0; p < COUNT(planes); p++) {
            char rest[160] = "layer_norm2d eps=1e-6 in=x:f32:2x%dx%s:%s";
            strcat(rest, vectors[(c + p) % COUNT(vectors)]);
            case_add(list, rest, channels[c], planes[p], fills[(c + 2 * p) % COUNT(fills)],
                     channels[c], channels[c]);
        }
    case_add_all(list, "layer_norm2d", others, COUNT(others));
}

static void generate_group_norms(case_list *list)
{
    static const char *const others[] = {
        "groups=3 in=x:f32:2x6;gamma:f32:6;beta:f32:6",
        "groups=2 in=x:f32:3x6x35;gamma:f32:6;beta:f32:6",
        "groups=2 in=x:f32:2x6x3x4x5:offset;gamma:f32:6;beta:f32:6",
        "groups=2 in=x:f32:2x4x1x2x1x3x1x5;gamma:f32:4",
        "groups=7 in=x:f32:5x7x1;beta:f32:7",
        "groups=4 in=x:f32:3x8x33x31;gamma:f32:8;beta:f32:8",
        "groups=2 in=x:f32:1x4x101x103:offset;gamma:f32:4;beta:f32:4",
        "groups=1 in=x:f32:1x3x211x207;gamma:f32:3;beta:f32:3",
        "groups=1 in=x:f32:1x70001x1;gamma:f32:70001",
        "groups=32 in=x:f32:2x64x12x12;gamma:f32:64;beta:f32:64",
        "groups=2 eps=0 in=x:f32:2x6x5:constant:0.1;gamma:f32:6;beta:f32:6",
        "groups=2 eps=0 in=x:f32:2x6x5000:constant:0.1;beta:f32:6",
        "groups=3 in=x:f32:4x6x50:special;gamma:f32:6;beta:f32:6",
        "groups=1 in=x:f32:2x4x9001:special;beta:f32:4",
        "groups=3 in=x:f32:0x6x5;gamma:f32:6",
        "groups=3 in=x:f32:2x6x0;gamma:f32:6",
        "groups=3 in=x:f32:2x0x5;gamma:f32:0",
        "groups=2 in=x:f16:2x4x9;gamma:f16:4;beta:bf16:4",
        "groups=2 in=x:f32:2x4x9:integers;gamma:f32:4x1x1;beta:f32:1x4",
        "groups=2 shift=1 in=x:f32:4x6x5;gamma:f32:6;beta:f32:6",
        "groups=20000 in=x:f32:4x20000x2;gamma:f32:20000",
        "expect=E_SHAPE in=x:f32:6;gamma:f32:6",
        "expect=E_ATTR groups=4 in=x:f32:2x6x5;gamma:f32:6",
        "expect=E_ATTR groups=0 in=x:f32:2x6x5;gamma:f32:6",
        "expect=E_ATTR groups=-2 in=x:f32:2x6x5;gamma:f32:6",
        "expect=E_SHAPE groups=2 in=x:f32:2x6x5;gamma:f32:3"};
    for (size_t c = 0; c < COUNT(channels); c++)
        for (size_t p = 0; p < COUNT(planes); p++)
            for (int k = 0; k < 3; k++) {
                int groups[] = {1, channels[c] > 1 ? 2 : 1, channels[c]};
                char rest[160] = "group_norm groups=%d in=x:f32:2x%dx%s:%s";
                strcat(rest, vectors[(c + p + (size_t)k) % COUNT(vectors)]);
                case_add(list, rest, groups[k], channels[c], planes[p],
                         fills[(c + 2 * p) % COUNT(fills)], channels[c], channels[c]);
            }
    case_add_all(list, "group_norm", others, COUNT(others));
}

static void generate_batch_norms(case_list *list)
{
    static const struct batch_case {
        const char *dims, *axis;
        int n;
    } shapes[] = {{"1", "0", 1},          {"7", "-1", 7},
                  {"3x5", "1", 5},        {"3x5", "0", 3},
                  {"2x6x5x7", "1", 6},    {"2x6x5x7", "-1", 7},
                  {"2x6x5x7", "2", 5},    {"2x1x3x1x4x1x2x3", "4", 4},
                  {"0x4", "1", 4},        {"4x0", "0", 4},
                  {"3x0x5", "1", 0},      {"65x129", "-1", 129},
                  {"2x32x33x31", "1", 32}};
    static const char *const given[] = {"", ";gamma:f32:%d", ";beta:f32:%d",
                                        ";gamma:f32:%d;beta:f32:%d"};
    static const char *const others[] = {
        "in=x:f32:9x40:special;gamma:f32:40;beta:f32:40;mean:f32:40;var:f32:40:positive",
        "in=x:f32:9x40:large;gamma:f32:40;beta:f32:40;mean:f32:40:large;var:f32:40:positive",
        "in=x:f32:9x40;gamma:f32:40;mean:f32:40;var:f32:40:special",
        "eps=0 in=x:f32:9x40;beta:f32:40;mean:f32:40;var:f32:40:zero",
        "eps=0 in=x:f32:9x40;gamma:f32:40;mean:f32:40;var:f32:40:bool",
        "eps=1 in=x:f32:9x4;mean:f32:4;var:f32:4:constant:-1",
        "axis=1 in=x:f32:2x4x9:offset;gamma:f32:4;mean:f32:4:offset;var:f32:4:positive",
        "axis=1 in=x:f16:2x4x9;gamma:f16:4;beta:bf16:4;mean:f16:4;var:f32:4:positive",
        "axis=1 shift=1 in=x:f32:3x5x3;gamma:f32:5x1;beta:f32:1x5;mean:f32:5;var:f32:5:positive",
        "axis=1 in=x:f32:3x7x20011;gamma:f32:7;beta:f32:7;mean:f32:7;var:f32:7:positive",
        "expect=E_SHAPE in=x:f32:scalar;mean:f32:1;var:f32:1",
        "expect=E_AXIS axis=2 in=x:f32:3x5;mean:f32:5;var:f32:5",
        "expect=E_AXIS axis=-3 in=x:f32:3x5;mean:f32:5;var:f32:5",
        "expect=E_SHAPE in=x:f32:3x5;mean:f32:3;var:f32:5",
        "expect=E_SHAPE in=x:f32:3x5;mean:f32:5;var:f32:3",
        "expect=E_SHAPE in=x:f32:3x5;beta:f32:3;mean:f32:5;var:f32:5",
        "expect=E_ARITY in=x:f32:3x5;mean:f32:5",
        "expect=E_ATTR eps=-1 in=x:f32:3x5;mean:f32:5;var:f32:5"};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (size_t j = 0; j < 2; j++) {
            char rest[200] = "batch_norm_inference axis=%s "
                             "in=x:f32:%s:%s;mean:f32:%d;var:f32:%d:positive";
            int n = shapes[i].n;
            strcat(rest, given[(i + 2 * j + i / 4) % COUNT(given)]);
            case_add(list, rest, shapes[i].axis, shapes[i].dims, j ? "uniform" : "unit", n, n, n,
                     n);
        }
    case_add_all(list, "batch_norm_inference", others, COUNT(others));
}

/* ---- Pooling ---- */

/* dims, kernel, stride, padding, fill (products must stay near 1) */
static const char *const pool_shapes[][5] = {
    {"1x1x1", "1", "1", "0", "uniform"},
    {"1x1x5", "3", "2", "1", "iota"},
    {"2x3x17", "3", "1", "1", "special"},
    {"2x3x17", "4", "3", "2", "uniform"},
    {"2x3x16", "2", "2", "0", "integers"},
    {"2x3x9", "9", "1", "0", "uniform"},
    {"2x3x9", "11", "5", "1", "special"},
    {"2x3x4", "2", "9", "1", "uniform"},
    {"3x2x9", "2", "", "", "uniform"},
    {"2x3x8x9", "2,2", "2,2", "0,0", "uniform"},
    {"2x3x7x9", "3,3", "2,2", "1,1", "constant:-5"},
    {"2x3x7x9", "3,2", "1,3", "1,0", "special"},
    {"2x3x7x9", "1,5", "1,1", "0,2", "neginf"},
    {"1x2x33x65", "5,5", "1,1", "2,2", "uniform"},
    {"2x2x7x7", "7,7", "1,1", "0,0", "uniform"},
    {"1x3x101x67", "101,67", "9,9", "0,0", "uniform"},
    {"70x3x1x3x5", "1,3,5", "", "", "special"},
    {"2x70x37x35", "3,3", "2,2", "1,1", "uniform"},
    {"1x2x4x6x8", "2,2,2", "2,2,2", "0,0,0", "integers"},
    {"2x3x5x7x6", "3,3,3", "2,2,2", "1,1,1", "special"},
    {"2x1x5x4x9", "1,2,3", "1,1,2", "0,1,1", "uniform"},
    {"2x3x5x7x6", "2,3,1", "", "1,0,0", "large"},
    {"0x3x9", "2", "1", "0", "uniform"},
    {"2x0x9x4", "2,2", "1,1", "0,0", "uniform"},
    {"2x3x0", "2", "1", "1", "uniform"},
    {"2x3x0x5", "2,3", "1,1", "1,1", "uniform"},
};

/* Windows with dilation, unequal or large padding, and ceil; dims and fill come last. */
static const char *const pool_windows[][3] = {
    {"kernel=2 dilation=3", "1x1x5", "iota"},
    {"kernel=3 stride=2 dilation=2 padding=2", "2x3x17", "special"},
    {"kernel=4 stride=3 dilation=1 padding=2 padding_after=0", "2x3x17", "uniform"},
    {"kernel=3 padding=0 padding_after=2", "2x3x9", "integers"},
    /* windows in the padding only */
    {"kernel=2 padding=5", "2x3x4", "uniform"},
    {"kernel=2 stride=2 padding=3 padding_after=6", "2x3x4", "special"},
    {"kernel=3 dilation=3 padding=9 padding_after=1", "2x3x5", "uniform"},
    {"kernel=2 dilation=4 padding=3 padding_after=3", "1x2x1", "uniform"},
    /* the last window reaches beyond the padding; it is left out if it begins behind x */
    {"kernel=3 stride=2 ceil=1", "2x3x8", "uniform"},
    {"kernel=3 stride=2 ceil=1", "2x3x9", "integers"},
    {"kernel=2 stride=3 padding=1 ceil=1", "1x1x4", "iota"},
    {"kernel=1 stride=3 padding=1 ceil=1", "1x1x4", "iota"},
    {"kernel=2 stride=1 padding_after=7 ceil=1", "1x2x5", "uniform"},
    {"kernel=9 stride=4 ceil=1", "2x3x6", "uniform"},
    {"kernel=3 stride=3 dilation=2 padding=1 padding_after=2 ceil=1", "2x3x10", "uniform"},
    {"kernel=2 stride=2 padding=1 ceil=1", "2x3x0", "uniform"},
    {"kernel=3,3 dilation=2,2", "2x3x7x9", "special"},
    {"kernel=3,3 stride=2,2 padding=1,1 padding_after=0,2", "2x3x8x9", "uniform"},
    {"kernel=3,3 stride=2,2 ceil=1", "2x3x8x10", "uniform"},
    {"kernel=3,2 stride=2,3 padding=1,0 ceil=1", "2x3x8x9", "special"},
    {"kernel=2,3 stride=1,2 dilation=3,1 padding=2,1 padding_after=1,0 ceil=1", "2x3x7x8",
     "uniform"},
    {"kernel=7,7 dilation=1,2 padding=3,0 padding_after=3,6", "1x2x7x13", "uniform"},
    {"kernel=5,5 stride=3,3 padding=2,2 padding_after=1,3 ceil=1", "1x2x33x65", "uniform"},
    /* a window that begins at the first cell of x, and is as long as x */
    {"kernel=7,7 stride=9,9 padding_after=3,3", "2x2x7x7", "uniform"},
    {"kernel=7,7 stride=1,1 padding_after=1,0", "2x2x7x7", "uniform"},
    {"kernel=4,4 stride=1,1 dilation=2,2", "2x2x7x7", "uniform"},
    {"kernel=2,2,2 dilation=2,1,3 stride=1,2,1 padding=1,0,1 ceil=1", "1x2x4x5x6", "integers"},
    {"kernel=3,3,3 stride=2,2,2 padding=1,1,1 padding_after=0,2,1 ceil=1", "2x3x5x7x6", "special"},
    {"kernel=1,2,3 dilation=5,1,2 padding_after=0,1,2", "2x1x3x4x5", "uniform"},
};

static void generate_windows(case_list *list, const char *row)
{
    static const char *const refusals[] = {
        "expect=E_SHAPE kernel=5 dilation=3 padding=1 in=x:f32:2x3x9",
        "expect=E_SHAPE kernel=9 stride=2 ceil=1 in=x:f32:2x3x7",
        "expect=E_SHAPE kernel=2 padding_after=3 ceil=1 in=x:f32:2x3x0",
        ("expect=E_TOO_LARGE kernel=2 stride=2147483647 padding=1073741823 "
         "padding_after=1073741823 ceil=1 in=x:f32:1x1x9"),
        "expect=E_ATTR kernel=3 padding=1073741824 in=x:f32:2x3x9",
        "expect=E_ATTR kernel=3 padding_after=-1 in=x:f32:2x3x9",
        "expect=E_ATTR kernel=3 padding_after=1 padding_kind=0 in=x:f32:2x3x9",
        "expect=E_ATTR kernel=3 padding_kind=2 in=x:f32:2x3x9",
        "expect=E_ATTR kernel=3 ceil=2 in=x:f32:2x3x9",
        "expect=E_ATTR kernel=3 dilation=-1 in=x:f32:2x3x9",
        "expect=E_ATTR kernel=3 dilation=1,1 in=x:f32:2x3x9",
        "expect=E_ATTR kernel=3 padding_after=1,1 in=x:f32:2x3x9"};
    bool product = strcmp(row, "pool_prod") == 0, mean = strcmp(row, "pool_mean") == 0;
    for (size_t i = 0; i < COUNT(pool_windows); i++) {
        const char *const *c = pool_windows[i];
        const char *fill = product && strcmp(c[2], "special") == 0 ? "neginf" : c[2];
        for (int exclude = 0; exclude <= mean; exclude++)
            case_add(list, "%s %s exclude_pad=%d in=x:f32:%s:%s", row, c[0], exclude, c[1], fill);
    }
    case_add_all(list, row, refusals, COUNT(refusals));
}

static void generate_pools(case_list *list, const char *row)
{
    static const char *const refusals[] = {"expect=E_SHAPE kernel=2 in=x:f32:2x9",
                                           "expect=E_SHAPE kernel=2,2,2 in=x:f32:1x1x2x2x2x2",
                                           "expect=E_SHAPE kernel=10 in=x:f32:2x3x9",
                                           "expect=E_SHAPE kernel=12 padding=1 in=x:f32:2x3x9",
                                           "expect=E_ATTR kernel=3 padding=-1 in=x:f32:2x3x9",
                                           "expect=E_ATTR kernel=0 in=x:f32:2x3x9",
                                           "expect=E_ATTR in=x:f32:2x3x9",
                                           "expect=E_ATTR kernel=2,2 in=x:f32:2x3x9",
                                           "expect=E_ATTR kernel=2 in=x:f32:2x3x9x9",
                                           "expect=E_ATTR kernel=2 stride=-1 in=x:f32:2x3x9",
                                           "expect=E_ATTR kernel=2 stride=1,1 in=x:f32:2x3x9",
                                           "expect=E_DTYPE kernel=2 in=x:c64:2x3x9"};
    bool product = strcmp(row, "pool_prod") == 0, mean = strcmp(row, "pool_mean") == 0;
    for (size_t i = 0; i < COUNT(pool_shapes); i++) {
        const char *const *c = pool_shapes[i];
        bool special = strcmp(c[4], "special") == 0 || strcmp(c[4], "neginf") == 0;
        const char *fill = !product                     ? c[4]
                           : special                    ? "neginf"
                           : strcmp(c[4], "large") == 0 ? "range:-1.5:1.5"
                                                        : c[4];
        for (int exclude = 0; exclude <= mean; exclude++)
            case_add(list, "%s kernel=%s stride=%s padding=%s exclude_pad=%d in=x:f32:%s:%s", row,
                     c[1], c[2], c[3], exclude, c[0], fill);
    }
    case_add(list, "%s kernel=3,3 shift=1 in=x:f32:3x3x7x5:range:0.5:1.5", row);
    case_add(list, "%s kernel=3 in=x:f16:2x3x7", row);
    case_add(list, "%s kernel=2 in=x:bool:2x3x7:bool", row);
    case_add_all(list, row, refusals, COUNT(refusals));
}

static void generate_resizes(case_list *list)
{
    static const char *const rests[] = {"in=x:f32:1x1x1x1",
                                        "in=x:f32:2x3x4x5",
                                        "in=x:f32:2x3x1x7:special",
                                        "in=x:f32:2x3x7x1:special",
                                        "in=x:f32:1x5x33x31",
                                        "in=x:f32:3x7x64x65:integers",
                                        "in=x:f32:0x3x4x5",
                                        "in=x:f32:2x0x4x5",
                                        "in=x:f32:2x3x0x5",
                                        "in=x:f32:2x3x4x0",
                                        "in=x:i32:2x3x4x5:integers",
                                        "in=x:bool:2x3x4x5:bool",
                                        "in=x:f16:2x3x4x5",
                                        "shift=1 in=x:f32:3x1x3x5",
                                        "join=1 in=x:f32:1x1x5x3",
                                        "join=1 in=x:f32:1x1x4x5:special",
                                        "join=1 in=x:f32:2x3x4x6:special",
                                        "expect=E_SHAPE in=x:f32:3x4x5",
                                        "expect=E_SHAPE in=x:f32:1x2x3x4x5",
                                        "expect=E_SHAPE in=x:f32:scalar",
                                        "expect=E_DTYPE in=x:c64:1x2x3x4"};
    case_add_all(list, "resize_nearest2x", rests, COUNT(rests));
}

static void generate_axials(case_list *list)
{
    static const char *const others[] = {
        "grid=2,2 head_dim=4 in=x:f32:1x4x4:iota",
        "grid=1,1 head_dim=4 in=x:f32:1x1x4",
        "grid=1,7 head_dim=8 in=x:f32:2x7x24",
        "grid=7,1 head_dim=8 num_heads=3 in=x:f32:2x7x24",
        "grid=9,4 head_dim=12 theta=100 in=x:f32:2x36x24",
        "grid=9,4 head_dim=16 theta=0.5 in=x:f32:1x36x16",
        "grid=9,4 head_dim=16 theta=1 in=x:f32:1x36x16",
        "grid=300,2 head_dim=8 in=x:f32:1x600x8",
        "grid=64,64 head_dim=64 in=x:f32:1x4096x64",
        "grid=5,3 head_dim=8 in=x:f32:2x15x16:special",
        "grid=5,3 head_dim=8 in=x:f32:2x15x16:large",
        "grid=5,3 head_dim=8 in=x:f32:0x15x16",
        "grid=5,3 head_dim=8 in=x:f32:2x15x0",
        "grid=5,3 head_dim=8 in=x:f16:2x15x16",
        "grid=5,3 head_dim=8 shift=1 in=x:f32:3x15x16",
        "grid=5,3 head_dim=8 twice=1 in=x:f32:2x15x16",
        "grid=5,3 head_dim=8 repeat=2 tile=1 twice=1 in=x:f32:2x30x16",
        "expect=E_ATTR grid=5,3 head_dim=6 in=x:f32:2x15x12",
        "expect=E_ATTR grid=5,3 head_dim=0 in=x:f32:2x15x12",
        "expect=E_ATTR grid=0,3 in=x:f32:2x0x12",
        "expect=E_ATTR grid=5,3 repeat=-1 in=x:f32:2x15x12",
        "expect=E_ATTR grid=5,3 theta=-1 in=x:f32:2x15x12",
        "expect=E_ATTR grid=5,3 theta=inf in=x:f32:2x15x12",
        "expect=E_ATTR grid=5,3 num_heads=-1 in=x:f32:2x15x12",
        "expect=E_SHAPE grid=5,3 num_heads=2 in=x:f32:2x15x12",
        "expect=E_SHAPE grid=5,3 in=x:f32:2x14x12",
        "expect=E_SHAPE grid=5,3 repeat=2 in=x:f32:2x15x12",
        "expect=E_SHAPE grid=5,3 in=x:f32:2x15x14",
        "expect=E_SHAPE grid=5,3 in=x:f32:15x12",
        "expect=E_SHAPE grid=5,3 in=x:f32:2x1x15x12",
        "expect=E_DTYPE grid=5,3 in=x:c64:2x15x12"};
    for (int d = 4; d <= 64; d *= 16)
        for (int repeat = 1; repeat <= 2; repeat++)
            for (int mode = 0; mode < 4; mode++)
                case_add(list,
                         "axial_rope2d grid=3,5 head_dim=%d repeat=%d tile=%d inverse=%d "
                         "in=x:f32:2x%dx%d",
                         d, repeat, mode & 1, mode >> 1, 15 * repeat, 2 * d);
    case_add_all(list, "axial_rope2d", others, COUNT(others));
}

/* Rows whose squares do not fit f32, and windows whose sums do not. */
static void generate_ranges(case_list *list)
{
    static const char *const sizes[] = {"1e25:1e25", "1e18:1e18", "1e-25:1e-25", "3e38:3e38"};
    static const char *const planes[] = {"1x1", "3x5", "8x8", "50x90"};
    for (size_t i = 0; i < COUNT(sizes) * COUNT(planes); i++) {
        const char *size = sizes[i % COUNT(sizes)], *plane = planes[i / COUNT(sizes)];
        case_add(list, "layer_norm2d eps=0 in=x:f32:2x12x%s:range:-%s;gamma:f32:12", plane, size);
        case_add(list, "group_norm groups=3 eps=0 in=x:f32:2x12x%s:range:-%s;beta:f32:12", plane,
                 size);
    }
    case_add(list, "pool_mean kernel=3,3 in=x:f32:2x3x9x9:constant:3e38");
    case_add(list, "pool_mean kernel=3,3 padding=1,1 exclude_pad=1 in=x:f32:2x3x9x9:constant:3e38");
    case_add(list, "pool_mean kernel=9,9 in=x:f32:2x3x9x9:range:2e38:3e38");
    case_add(list, "pool_mean kernel=3,3 stride=2,2 ceil=1 in=x:f32:2x3x8x8:constant:3e38");
    case_add(list, "pool_mean kernel=4,4 stride=3,3 in=x:f32:2x3x9x9:range:1.2e-38:2e-38");
    case_add(list, "batch_norm_inference eps=0 axis=1 in=x:f32:2x3x5:constant:3e38;"
                   "mean:f32:3:constant:-3e38;var:f32:3:constant:3e38");
    case_add(list, "batch_norm_inference eps=0 axis=1 in=x:f32:2x3x5:constant:1e-20;"
                   "mean:f32:3:zero;var:f32:3:constant:1e-39");
}

static void generate(case_list *list)
{
    generate_layer_norms(list);
    generate_ranges(list);
    generate_group_norms(list);
    generate_batch_norms(list);
    for (size_t i = 0; i < COUNT(pool_rows); i++)
        generate_pools(list, pool_rows[i].name);
    for (size_t i = 0; i < COUNT(pool_rows); i++)
        generate_windows(list, pool_rows[i].name);
    generate_resizes(list);
    generate_axials(list);
}

static const char *const rows[] = {"layer_norm2d", "group_norm", "batch_norm_inference",
                                   "pool_max",     "pool_mean",  "pool_min",
                                   "pool_sum",     "pool_prod",  "resize_nearest2x",
                                   "axial_rope2d", NULL};

const case_family pooling_cases = {.rows = rows, .build = build, .generate = generate};
