/*
 * Cases of ops on experts:
 *   grouped_matmul                   transpose_w; in=x;w;idx or in=x;w;expert_idx
 *   grouped_matmul_backward_weight   transpose_w, experts; in=x;dy;idx
 *   dequant_grouped_matmul           format, n; in=x;w;idx
 *   dequant_moe_weights              format, k, n; in=w
 *   group_limited_gate               n_group, topk_group, top_k, scaling, experts; in=sig;route
 *
 * skip=S drops the first S rows or slabs of w by a view.
 */
#include "conform/cases/cases.h"
#include "op/packed/quant_format.h"

#include <string.h>

static rlxvk_tensor weights(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor w = case_tensor(s, inputs, "w");
    int64_t skip = case_integer(s, "skip", 0);
    return skip ? rlxvk_narrow(g, w, 0, skip, rlxvk_tensor_shape(g, w).dims[0] - skip) : w;
}

static rlxvk_quant_format format_of(const case_spec *s)
{
    const quant_format *format = quant_format_find_name(case_word(s, "format", ""));
    return format ? (rlxvk_quant_format)format->type : (rlxvk_quant_format)0;
}

static rlxvk_tensor build_gate(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_gate_options options = {.n_group = case_integer(s, "n_group", 0),
                                  .topk_group = case_integer(s, "topk_group", 0),
                                  .top_k = case_integer(s, "top_k", 0),
                                  .routed_scaling = (float)case_real(s, "scaling", 0),
                                  .num_experts = case_integer(s, "experts", 0)};
    bool defaults = s->pair_count == 0;
    return rlxvk_group_limited_gate(g, case_tensor(s, inputs, "sig"),
                                    case_tensor(s, inputs, "route"), defaults ? NULL : &options);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x = case_tensor(s, inputs, "x"), idx = case_tensor(s, inputs, "idx");
    int64_t n = case_integer(s, "n", 0);
    if (strcmp(s->row, "group_limited_gate") == 0)
        return build_gate(g, s, inputs);
    if (strcmp(s->row, "dequant_moe_weights") == 0)
        return rlxvk_dequant_moe_weights(g, weights(g, s, inputs), format_of(s),
                                         case_integer(s, "k", 0), n);
    if (strcmp(s->row, "dequant_grouped_matmul") == 0)
        return rlxvk_dequant_grouped_matmul(g, x, weights(g, s, inputs), idx, format_of(s), n);
    if (strcmp(s->row, "grouped_matmul_backward_weight") == 0)
        return rlxvk_grouped_matmul_backward_weight(g, case_shifted(g, s, "shift", x),
                                                    case_shifted(g, s, "dy_shift",
                                                                 case_tensor(s, inputs, "dy")),
                                                    case_shifted(g, s, "idx_shift", idx),
                                                    case_integer(s, "experts", 1),
                                                    case_integer(s, "transpose_w", 0) != 0);
    return rlxvk_grouped_matmul(g, x, weights(g, s, inputs),
                                idx.id ? idx : case_tensor(s, inputs, "expert_idx"),
                                case_integer(s, "transpose_w", 0) != 0);
}

/* ---- grouped_matmul ---- */

static void add_grouped(case_list *list, int m, int experts, int k, int n, int transposed,
                        const char *fill)
{
    case_add(list,
             "grouped_matmul transpose_w=%d in=x:f32:%dx%d:%s;w:f32:%dx%dx%d:unit;"
             "idx:f32:%d:%s:%d",
             transposed, m, k, fill, experts, transposed ? n : k, transposed ? k : n, m,
             (m + n) % 2 ? "badindex" : "index", experts);
}

static void generate_grouped(case_list *list)
{
    static const int rows[] = {1, 2, 7, 16, 17, 40, 130}, experts[] = {1, 4, 64};
    static const int sizes[][2] = {{1, 1}, {5, 3}, {16, 64}, {33, 65}, {130, 7}, {64, 132}};
    for (size_t m = 0; m < COUNT(rows); m++)
        for (size_t e = 0; e < COUNT(experts); e++)
            for (int t = 0; t < 2; t++) {
                const int *size = sizes[(m + 2 * e + 3 * (size_t)t) % COUNT(sizes)];
                add_grouped(list, rows[m], experts[e], size[0], size[1], t, "unit");
            }
    static const char *const fills[] = {"special", "integers", "large", "offset", "zero"};
    for (size_t i = 0; i < COUNT(fills); i++)
        add_grouped(list, i % 2 ? 40 : 9, 3, 20, 36, (int)i % 2, fills[i]);
    static const char *const lines[] = {
        "in=x:f32:2x3x8;w:f32:3x8x5;idx:f32:2x3:index:3",
        "in=x:f32:1x2x1x2x1x2x1x8;w:f32:2x8x4;idx:i32:8:index:2",
        "in=x:f32:40x12;w:f32:4x12x20;idx:f32:40:constant:-1",
        "in=x:f32:40x12;w:f32:4x12x20;idx:f32:40:constant:4",
        "in=x:f32:40x12;w:f32:4x12x20;idx:f32:40:constant:1.9",
        "in=x:f32:40x12;w:f32:4x12x20;idx:f32:40:constant:3",
        "in=x:f32:9x12;w:f32:4x12x20;idx:f32:9:constant:1.9",
        "in=x:f32:0x12;w:f32:4x12x20;idx:f32:0",
        "in=x:f32:5x12;w:f32:4x12x0;idx:f32:5:index:4",
        "in=x:f32:5x0;w:f32:4x0x7;idx:f32:5:badindex:4",
        "in=x:f32:30x0;w:f32:4x0x7;idx:f32:30:badindex:4",
        "in=x:f32:5x3;w:f32:0x3x7;idx:f32:5:zero",
        "in=x:f32:30x3;w:f32:0x3x7;idx:f32:30:badindex:1",
        "skip=1 in=x:f32:30x5;w:f32:4x5x7;idx:f32:30:badindex:3",
        "in=x:f32:33x20;w:f16:5x20x24;idx:f32:33:badindex:5",
        "in=x:f32:3x20;w:bf16:5x20x24;idx:f32:3:index:5",
        "transpose_w=1 in=x:f16:33x20;w:bf16:5x23x20;idx:f32:33:badindex:5",
        "transpose_w=1 in=x:f32:33x21;w:f16:5x23x21;idx:f32:33:badindex:5",
        "in=x:f32:300x24;w:f32:200x24x12;idx:f32:300:badindex:200",
        "in=x:f32:500x40;w:f32:3x40x70;idx:f32:500:badindex:3",
        /* lanes along K, which are joined */
        "variant=experts=split in=x:f32:9x130;w:f32:4x130x7;idx:f32:9:badindex:4",
        "variant=experts=split in=x:f32:17x67;w:bf16:3x67x132;idx:f32:17:index:3",
        "variant=experts=split transpose_w=1 in=x:f32:7x300;w:f16:4x21x300;idx:f32:7:badindex:4",
        /* more rows than the sort has invocations; more experts; runs that end unevenly */
        "variant=experts=sorted in=x:f32:2500x5:unit;w:f32:3x5x7:unit;idx:f32:2500:badindex:3",
        "variant=experts=sorted in=x:f32:40x5:unit;w:f32:300x5x7:unit;idx:f32:40:badindex:300",
        ("variant=experts=sorted in=x:f32:1500x3:unit;w:f32:1100x3x2:unit;"
         "idx:f32:1500:badindex:1100"),
        "expect=E_SHAPE in=x:f32:5x12;w:f32:4x13x7;idx:f32:5",
        "expect=E_SHAPE transpose_w=1 in=x:f32:5x12;w:f32:4x12x7;idx:f32:5",
        "expect=E_SHAPE in=x:f32:5x12;w:f32:12x7;idx:f32:5",
        "expect=E_SHAPE in=x:f32:12;w:f32:4x12x7;idx:f32:1",
        "expect=E_SHAPE in=x:f32:5x12;w:f32:4x12x7;idx:f32:4",
        "expect=E_DTYPE in=x:u8:5x12:bytes;w:f32:4x12x7;idx:f32:5",
        "expect=E_ARITY in=x:f32:5x12;w:f32:4x12x7",
    };
    case_add_all(list, "grouped_matmul", lines, COUNT(lines));
}

/* ---- grouped_matmul_backward_weight ---- */

static void add_weight(case_list *list, int m, int experts, int k, int n, int transposed)
{
    case_add(list,
             "grouped_matmul_backward_weight experts=%d transpose_w=%d in=x:f32:%dx%d:unit;"
             "dy:f32:%dx%d:unit;idx:f32:%d:%s:%d",
             experts, transposed, m, k, m, n, m, (m + n) % 2 ? "badindex" : "index", experts);
}

static void generate_weights(case_list *list)
{
    static const int rows[] = {1, 2, 17, 63, 64, 65, 130, 700}, experts[] = {1, 4, 15, 16, 100};
    static const int sizes[][2] = {{1, 1}, {5, 3}, {16, 64}, {33, 65}, {130, 7}, {64, 132}};
    for (size_t m = 0; m < COUNT(rows); m++)
        for (size_t e = 0; e < COUNT(experts); e++)
            for (int t = 0; t < 2; t++) {
                const int *size = sizes[(m + 2 * e + 3 * (size_t)t) % COUNT(sizes)];
                add_weight(list, rows[m], experts[e], size[0], size[1], t);
            }
    static const char *const lines[] = {
        "experts=3 in=x:f32:2x3x8;dy:f32:3x2x5;idx:f32:2x3:index:3",
        "experts=2 in=x:f32:1x2x1x2x1x2x1x8;dy:f32:8x4;idx:i32:8:index:2",
        "experts=3 in=x:f32:9x20:special;dy:f32:9x36:unit;idx:f32:9:index:3",
        "experts=3 in=x:f32:90x20:unit;dy:f32:90x36:special;idx:f32:90:badindex:3",
        "experts=3 in=x:f32:90x20:integers;dy:f32:90x36:integers;idx:f32:90:badindex:3",
        "experts=3 in=x:f32:90x20:large;dy:f32:90x36:unit;idx:f32:90:badindex:3",
        "experts=3 in=x:f32:90x20:offset;dy:f32:90x36;idx:f32:90:badindex:3",
        "experts=3 in=x:f32:40x20;dy:f32:40x36:outliers;idx:f32:40:badindex:3",
        "experts=4 in=x:f32:40x12;dy:f32:40x20;idx:f32:40:constant:-1",
        "experts=4 in=x:f32:90x12;dy:f32:90x20;idx:f32:90:constant:4",
        "experts=4 in=x:f32:90x12;dy:f32:90x20;idx:f32:90:constant:1.9",
        "experts=4 in=x:f32:90x12;dy:f32:90x20;idx:f32:90:constant:nan",
        /* unused experts between used ones; all rows of one expert; joined parts */
        "experts=300 in=x:f32:90x12;dy:f32:90x20;idx:f32:90:index:300",
        "experts=7 in=x:f32:900x12;dy:f32:900x20;idx:f32:900:constant:3",
        "experts=1 in=x:f32:5000x5;dy:f32:5000x3;idx:f32:5000:badindex:1",
        "experts=2 transpose_w=1 in=x:f32:3000x33:unit;dy:f32:3000x40:unit;idx:f32:3000:badindex:2",
        "experts=3 in=x:f32:500x40;dy:f32:500x70;idx:f32:500:badindex:3",
        "experts=3 in=x:f32:0x12;dy:f32:0x20;idx:f32:0",
        "experts=0 in=x:f32:5x12;dy:f32:5x20;idx:f32:5:zero",
        "experts=4 in=x:f32:5x12;dy:f32:5x0;idx:f32:5:index:4",
        "experts=4 in=x:f32:5x0;dy:f32:5x7;idx:f32:5:index:4",
        "experts=5 in=x:f16:33x20;dy:f32:33x24;idx:f32:33:badindex:5",
        "experts=5 transpose_w=1 in=x:bf16:93x21;dy:f16:93x24;idx:f32:93:badindex:5",
        "experts=4 shift=2 dy_shift=2 idx_shift=2 in=x:f32:7x7;dy:f32:7x5;idx:f32:7:index:4",
        "experts=4 shift=3 dy_shift=3 idx_shift=3 in=x:f32:97x7;dy:f32:97x5;idx:f32:97:index:4",
        "experts=-1 expect=E_ATTR in=x:f32:5x12;dy:f32:5x7;idx:f32:5",
        "experts=16777217 expect=E_INDEX_RANGE in=x:f32:5x1;dy:f32:5x1;idx:f32:5",
        "experts=4 expect=E_SHAPE in=x:f32:5x12;dy:f32:6x7;idx:f32:5",
        "experts=4 expect=E_SHAPE in=x:f32:5x12;dy:f32:5x7;idx:f32:6",
        "experts=4 expect=E_SHAPE in=x:f32:12;dy:f32:1x7;idx:f32:1",
        "experts=4 expect=E_SHAPE in=x:f32:1x12;dy:f32:7;idx:f32:1",
        "experts=4 expect=E_DTYPE in=x:u8:5x12:bytes;dy:f32:5x7;idx:f32:5",
        "experts=4 expect=E_ARITY in=x:f32:5x12;dy:f32:5x7",
    };
    case_add_all(list, "grouped_matmul_backward_weight", lines, COUNT(lines));
}

/* ---- packed experts ---- */

static void generate_packed_products(case_list *list, const quant_format *b)
{
    static const int rows[] = {0, 1, 5, 16, 17, 200}, experts[] = {1, 2, 8};
    static const int columns[] = {1, 3, 31, 64, 70};
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t e = 0; e < COUNT(experts); e++) {
            int n = columns[(i + e) % COUNT(columns)], across = b->block_elements == 32 ? 3 : 1;
            case_add(list,
                     "dequant_grouped_matmul format=%s n=%d in=x:f32:%dx%d;w:u8:%dx%dx%d:quant:%s;"
                     "idx:f32:%d:%s:%d",
                     b->name, n, rows[i], (int)b->block_elements * across, experts[e], n,
                     (int)b->block_bytes * across, b->name, rows[i], i % 2 ? "badindex" : "index",
                     experts[e]);
        }
}

/* Blocks that do and do not fill tiles. One of the rows has no expert. */
static void generate_packed_tiles(case_list *list, const quant_format *b)
{
    static const char *const variants[] = {"tiled_160x128", "tiled_128x128", "tiled_64x64",
                                           "tiled_32x64", "tiled_16x64"};
    for (size_t v = 0; v < COUNT(variants); v++)
        case_add(list,
                 "dequant_grouped_matmul variant=experts=sorted,dequant_tile=%s format=%s n=%d "
                 "in=x:f32:%dx256;w:u8:3x%dx%d:quant:%s;idx:f32:%d:%s:3",
                 variants[v], b->name, 66 + 33 * (int)v, 150 + 90 * (int)v, 66 + 33 * (int)v,
                 256 / (int)b->block_elements * (int)b->block_bytes, b->name, 150 + 90 * (int)v,
                 v % 2 ? "badindex" : "index");
}

static void generate_packed_shapes(case_list *list, const quant_format *b)
{
    int e = (int)b->block_elements, s = (int)b->block_bytes;
    const char *f = b->name, *row = "dequant_grouped_matmul";
    case_add(list, "%s format=%s n=5 in=x:f32:2x3x%d;w:u8:%d:quant:%s;idx:f32:3x2:index:3", row, f,
             2 * e, 2 * s * 5 * 3, f);
    case_add(list,
             "%s format=%s n=6 skip=2 in=x:f32:20x%d:offset;w:u8:4x6x%d:quant:%s;"
             "idx:f32:20:badindex:2",
             row, f, e, s, f);
    case_add(list, "%s format=%s n=5 in=x:f32:20x%d:large;w:u8:5x%d:quant:%s;idx:f32:20:index:1",
             row, f, e, s, f);
    case_add(list, "%s format=%s n=5 expect=E_LENGTH in=x:f32:2x%d;w:u8:7x%d:quant:%s;idx:f32:2",
             row, f, e, s, f);
    case_add(list, "%s format=%s n=5 expect=E_LENGTH in=x:f32:2x%d;w:u8:0x%d:quant:%s;idx:f32:2",
             row, f, e, s, f);
    case_add(list, "%s format=%s n=5 expect=E_SHAPE in=x:f32:2x%d;w:u8:5x%d:quant:%s;idx:f32:2",
             row, f, e + 1, s, f);
    case_add(list, "%s format=%s n=5 expect=E_SHAPE in=x:f32:2x%d;w:u8:5x%d:quant:%s;idx:f32:3",
             row, f, e, s, f);
    case_add(list, "%s format=%s n=5 expect=E_DTYPE in=x:f32:2x%d;w:f32:5x%d;idx:f32:2", row, f, e,
             s);
    for (int i = 1; i <= 8; i += i)
        case_add(list, "dequant_moe_weights format=%s k=%d n=%d in=w:u8:%dx%dx%d:quant:%s", f,
                 e * (1 + i % 3), 9 * i - 8, i, 9 * i - 8, s * (1 + i % 3), f);
    case_add(list, "dequant_moe_weights format=%s k=%d n=3 skip=2 in=w:u8:4x3x%d:quant:%s", f,
             2 * e, 2 * s, f);
    case_add(list, "dequant_moe_weights format=%s k=%d n=3 expect=E_LENGTH in=w:u8:4x%d:quant:%s",
             f, e, s, f);
    case_add(list, "dequant_moe_weights format=%s k=%d n=3 expect=E_SHAPE in=w:u8:3x%d:quant:%s", f,
             e - 1, s, f);
    case_add(list, "dequant_moe_weights format=%s k=%d n=-3 expect=E_ATTR in=w:u8:3x%d:quant:%s", f,
             e, s, f);
}

/* A selection: one expert; several, with rows that have none; experts without rows while another
 * has several; a view; many rows of few experts; no rows; dequant_moe_weights. */
static void generate_selection(case_list *list, const quant_format *b)
{
    int across = b->block_elements == 1 ? 45 : 3;
    int k = across * (int)b->block_elements, s = across * (int)b->block_bytes;
    const char *f = b->name, *row = "dequant_grouped_matmul";
    case_add(list, "%s format=%s n=5 in=x:f32:3x%d;w:u8:5x%d:quant:%s;idx:f32:3:index:1", row, f, k,
             s, f);
    case_add(list, "%s format=%s n=67 in=x:f32:40x%d;w:u8:4x67x%d:quant:%s;idx:f32:40:badindex:4",
             row, f, k, s, f);
    case_add(list,
             "%s format=%s n=31 in=x:f32:9x%d:unit;w:u8:3x31x%d:quant:%s;idx:f32:9:constant:1", row,
             f, k, s, f);
    case_add(list,
             "%s format=%s n=3 skip=4 in=x:f32:2x3x%d;w:u8:7x3x%d:quant:%s;idx:f32:6:badindex:3",
             row, f, k, s, f);
    case_add(list, "%s format=%s n=66 in=x:f32:150x%d;w:u8:2x66x%d:quant:%s;idx:f32:150:badindex:2",
             row, f, k, s, f);
    case_add(list, "%s format=%s n=5 in=x:f32:0x%d;w:u8:2x5x%d:quant:%s;idx:f32:0", row, f, k, s,
             f);
    case_add(list, "dequant_moe_weights format=%s k=%d n=1 in=w:u8:%d:quant:%s", f, k, s, f);
    case_add(list, "dequant_moe_weights format=%s k=%d n=67 in=w:u8:3x67x%d:quant:%s", f, k, s, f);
    case_add(list, "dequant_moe_weights format=%s k=%d n=3 skip=4 in=w:u8:7x3x%d:quant:%s", f, k, s,
             f);
}

/* Scales that encode NaN; an unknown format. */
static void generate_packed_corners(case_list *list)
{
    static const char *const lines[] = {
        "dequant_grouped_matmul format=mxfp4 n=9 "
        "in=x:f32:5x64;w:u8:2x9x34:constant:255;idx:f32:5:index:2",
        "dequant_moe_weights format=mxfp4 k=64 n=9 in=w:u8:2x9x34:constant:255",
        "dequant_grouped_matmul format=q8_1 n=2 expect=E_UNSUPPORTED "
        "in=x:f32:2x32;w:u8:2x36:bytes;idx:f32:2",
        "dequant_grouped_matmul format=iq2_xs n=2 expect=E_LENGTH "
        "in=x:f32:2x256;w:u8:3x74:bytes;idx:f32:2",
        "dequant_grouped_matmul format=f16 n=2 expect=E_LENGTH "
        "in=x:f32:2x3;w:u8:13:bytes;idx:f32:2",
        "dequant_moe_weights format=i16 k=4 n=2 expect=E_UNSUPPORTED in=w:u8:16:bytes",
        "dequant_moe_weights format=nvfp4 k=32 n=2 expect=E_SHAPE in=w:u8:36:bytes",
    };
    case_add_all(list, "", lines, COUNT(lines));
}

/* ---- group_limited_gate ---- */

static void generate_gates(case_list *list)
{
    static const char *const lines[] = {
        "in=sig:f32:3x64:positive;route:f32:3x64",
        "n_group=4 topk_group=2 top_k=4 in=sig:f32:5x16:positive;route:f32:5x16",
        "n_group=16 topk_group=5 top_k=4 in=sig:f32:5x16:positive;route:f32:5x16",
        "n_group=16 topk_group=16 top_k=16 in=sig:f32:5x16:positive;route:f32:5x16",
        "n_group=16 topk_group=3 top_k=3 in=sig:f32:30x16:positive;route:f32:30x16:special",
        "n_group=1 topk_group=1 top_k=1 in=sig:f32:7x1:uniform;route:f32:7x1",
        "n_group=1 topk_group=1 top_k=5 in=sig:f32:7x5:positive;route:f32:7x5",
        "n_group=2 topk_group=1 top_k=2 scaling=2 in=sig:f32:4x4:positive;route:f32:4x4",
        "n_group=4 topk_group=2 top_k=1 in=sig:f32:9x16:uniform;route:f32:9x16",
        "n_group=4 topk_group=2 top_k=4 in=sig:f32:9x16:positive;route:f32:9x16:integers",
        "n_group=4 topk_group=2 top_k=4 in=sig:f32:9x16:positive;route:f32:9x16:zero",
        "n_group=4 topk_group=3 top_k=12 in=sig:f32:9x16:positive;route:f32:9x16:bool",
        "n_group=4 topk_group=2 top_k=8 in=sig:f32:40x32:positive;route:f32:40x32:special",
        "n_group=4 topk_group=2 top_k=8 in=sig:f32:40x32:positive;route:f32:40x32:neginf",
        "n_group=2 topk_group=2 top_k=6 in=sig:f32:8x6:one;route:f32:8x6:constant:nan",
        "n_group=3 topk_group=2 top_k=3 in=sig:f32:8x15:positive;route:f32:8x15:large",
        "n_group=8 topk_group=4 top_k=8 scaling=-0.5 in=sig:f32:6x256:positive;route:f32:6x256",
        "n_group=300 topk_group=7 top_k=9 in=sig:f32:2x900:positive;route:f32:2x900",
        "n_group=1024 topk_group=70 top_k=70 in=sig:f32:1x1024:positive;route:f32:1x1024",
        "n_group=7 topk_group=3 top_k=4 in=sig:f32:300x21:positive;route:f32:300x21",
        "experts=64 in=sig:f32:0x64;route:f32:0x64",
        "n_group=2 topk_group=1 top_k=2 in=sig:f32:4x4:special;route:f32:4x4",
        "n_group=3 expect=E_ATTR in=sig:f32:4x64;route:f32:4x64",
        "n_group=-1 expect=E_ATTR in=sig:f32:4x64;route:f32:4x64",
        "topk_group=9 expect=E_ATTR in=sig:f32:4x64;route:f32:4x64",
        "top_k=33 expect=E_ATTR in=sig:f32:4x64;route:f32:4x64",
        "experts=63 expect=E_ATTR in=sig:f32:4x64;route:f32:4x64",
        "expect=E_SHAPE in=sig:f32:4x64;route:f32:5x64",
        "expect=E_SHAPE in=sig:f32:64;route:f32:64",
        ("n_group=2048 topk_group=1 top_k=1 expect=E_UNSUPPORTED "
         "in=sig:f32:1x2048;route:f32:1x2048"),
    };
    case_add_all(list, "group_limited_gate", lines, COUNT(lines));
    case_add(list, "group_limited_gate n_group=4 topk_group=2 top_k=4 "
                   "in=sig:f32:9x16:range:2e38:3.4e38;route:f32:9x16:range:2e38:3.4e38");
    case_add(list, "group_limited_gate n_group=8 topk_group=3 top_k=6 "
                   "in=sig:f32:9x64:range:1e-4:1;route:f32:9x64:range:-3.4e38:3.4e38");
}

static void generate(case_list *list)
{
    static const uint32_t thorough[] = {QUANT_Q8_0, QUANT_Q4_K, QUANT_Q6_K};
    generate_grouped(list);
    generate_weights(list);
    for (size_t i = 0; i < COUNT(thorough); i++) {
        generate_packed_products(list, quant_format_find(thorough[i]));
        generate_packed_shapes(list, quant_format_find(thorough[i]));
        generate_packed_tiles(list, quant_format_find(thorough[i]));
    }
    for (uint32_t type = 0; type < QUANT_TYPES; type++)
        if (quant_format_find(type) && quant_format_find(type)->weight)
            generate_selection(list, quant_format_find(type));
    generate_packed_corners(list);
    generate_gates(list);
}

static const char *const rows[] = {"grouped_matmul",         "grouped_matmul_backward_weight",
                                   "dequant_grouped_matmul", "dequant_moe_weights",
                                   "group_limited_gate",     NULL};

const case_family experts_cases = {rows, build, generate};
