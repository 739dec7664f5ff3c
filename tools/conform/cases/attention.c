/*
 * Cases of attention. Keys:
 *   layout        auto, bhsd, bshd, packed or bh_sd
 *   mask          none, causal, sliding, custom or bias; window is another word for sliding
 *   heads, kv_heads, head_dim, window, score_scale, softcap
 *   in=q;k;v;mask
 *
 * attention_backward has the same keys, and dy behind the other inputs. bias=1 also returns the
 * gradient of a bias. part=0..3 returns only the gradient of one operand.
 *
 * More keys:
 *   lse=1, lse=2  return the log-sum-exp; return the result of the call that gives both
 *   shift=1       drops the first index of axis 0 of q, k and v by a view, so that they begin
 *                 inside their slots
 *   prefix=n      turns an iota mask into "the first n keys"
 *   turned=1, cut=n   views of q, k and v, see case_viewed; turned also applies to the result
 *   joint=1       q holds all three operands, along axis 2 if it has rank 5, otherwise along the
 *                 last axis
 */
#include "conform/cases/cases.h"
#include "op/op.h"

#include <stdio.h>
#include <string.h>

static int find_word(const char *word, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(word, words[i]) == 0)
            return i;
    return count;
}

static rlxvk_attention_mask mask_kind(const char *word)
{
    static const char *const words[] = {"none", "causal", "sliding", "custom", "bias"};
    if (strcmp(word, "window") == 0)
        return RLXVK_MASK_SLIDING;
    return (rlxvk_attention_mask)find_word(word, words, COUNT(words));
}

static rlxvk_attention_options options_of(const case_spec *s)
{
    static const char *const layouts[] = {"auto", "bhsd", "bshd", "packed", "bh_sd"};
    const char *layout = case_word(s, "layout", "auto");
    return (rlxvk_attention_options){.num_heads = case_integer(s, "heads", 0),
                                     .num_kv_heads = case_integer(s, "kv_heads", 0),
                                     .head_dim = case_integer(s, "head_dim", 0),
                                     .mask = mask_kind(case_word(s, "mask", "none")),
                                     .window = case_integer(s, "window", 0),
                                     .score_scale = (float)case_real(s, "score_scale", 0),
                                     .softcap = (float)case_real(s, "softcap", 0),
                                     .layout = (rlxvk_attention_layout)find_word(layout, layouts,
                                                                                 COUNT(layouts))};
}

static rlxvk_tensor shifted(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs,
                            const char *name)
{
    rlxvk_tensor x = case_tensor(s, inputs, name);
    return x.id ? case_viewed(g, s, case_shifted(g, s, "shift", x)) : x;
}

/* Takes q, k and v from a tensor that holds all three. */
static void split(rlxvk_graph *g, const case_spec *s, rlxvk_tensor all, rlxvk_tensor out[3])
{
    rlxvk_attention_options o = options_of(s);
    rlxvk_shape p = rlxvk_tensor_shape(g, all);
    int64_t kv = (o.num_kv_heads ? o.num_kv_heads : o.num_heads) * o.head_dim;
    int64_t widths[] = {o.num_heads * o.head_dim, kv, kv}, at = 0;
    for (int i = 0; i < 3; at += widths[i++])
        if (p.rank == 5)
            out[i] = rlxvk_reshape(g, rlxvk_narrow(g, all, 2, i, 1),
                                   RLXVK_SHAPE(p.dims[0], p.dims[1], p.dims[3], p.dims[4]));
        else
            out[i] = rlxvk_narrow(g, all, -1, at, widths[i]);
}

static rlxvk_tensor mask_operand(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor mask = case_tensor(s, inputs, "mask");
    float prefix = (float)case_integer(s, "prefix", -1);
    if (prefix < 0)
        return mask;
    rlxvk_tensor count = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &prefix, sizeof prefix);
    return rlxvk_lt(g, mask, count);
}

/* The gradients as one packed tensor. The first gradient is a view, and the packed node is its
 * root. Without bias=1 the gradient of the bias is left out, because golden cases do not have it.
 * part=i returns only that of operand i. */
static rlxvk_tensor build_backward(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_attention_options options = options_of(s);
    rlxvk_tensor q = shifted(g, s, inputs, "q"), k = shifted(g, s, inputs, "k"), d[4];
    rlxvk_tensor v = shifted(g, s, inputs, "v"), dy = shifted(g, s, inputs, "dy");
    d[0] = rlxvk_attention_backward(g, q, k, v, dy, mask_operand(g, s, inputs), &options, &d[1],
                                    &d[2], &d[3]);
    int64_t which = case_integer(s, "part", -1);
    if (which >= 0 || !d[0].id)
        return d[which < 0 ? 0 : which];
    int64_t count = 0;
    const node *view = graph_node(g, d[0].id - 1);
    rlxvk_tensor packed = {d[0].id};
    while (strcmp(node_row(view)->name, "attention_backward") != 0) {
        packed = tensor_of(g, view->inputs[0]);
        view = graph_node(g, view->inputs[0]);
    }
    for (int i = 0; i < 3; i++) {
        rlxvk_shape shape = rlxvk_tensor_shape(g, d[i]);
        count += (int64_t)shape_numel(&shape);
    }
    return case_integer(s, "bias", 0) ? packed : rlxvk_narrow(g, packed, 0, 0, count);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_attention_options options = options_of(s);
    rlxvk_tensor x[] = {shifted(g, s, inputs, "q"), shifted(g, s, inputs, "k"),
                        shifted(g, s, inputs, "v")};
    rlxvk_tensor mask = mask_operand(g, s, inputs), lse;
    int64_t which = case_integer(s, "lse", 0);
    if (strcmp(s->row, "attention_backward") == 0)
        return build_backward(g, s, inputs);
    if (case_integer(s, "joint", 0))
        split(g, s, x[0], x);
    if (which == 0)
        return case_turned(g, s, rlxvk_attention(g, x[0], x[1], x[2], mask, &options));
    rlxvk_tensor y = rlxvk_attention_with_lse(g, x[0], x[1], x[2], mask, &options, &lse);
    return which == 1 ? lse : y;
}

/* One [B,H,S,D] case. `attributes` may hold anything but the shapes. */
static void add(case_list *list, const char *attributes, int batch, int heads, int kv_heads,
                int queries, int keys, int width)
{
    case_add(list,
             "attention layout=bhsd %s in=q:f32:%dx%dx%dx%d:unit;k:f32:%dx%dx%dx%d:unit;"
             "v:f32:%dx%dx%dx%d:unit",
             attributes, batch, heads, queries, width, batch, kv_heads, keys, width, batch,
             kv_heads, keys, width);
}

/* Adds the same with a mask tensor of these dims and this fill. */
static void add_masked(case_list *list, const char *attributes, int kv_heads, int queries, int keys,
                       int width, const char *mask)
{
    case_add(list,
             "attention layout=bhsd %s in=q:f32:2x4x%dx%d:unit;k:f32:2x%dx%dx%d:unit;"
             "v:f32:2x%dx%dx%d:unit;mask:f32:%s",
             attributes, queries, width, kv_heads, keys, width, kv_heads, keys, width, mask);
}

/* Software drivers take up to a second to compile one pipeline. Pipelines depend on the width and
 * on how many rows share a kv head. So wide cases have only one number of decoded rows, and most
 * others have 8 columns. */
static const int lengths[][2] = {{1, 1}, {1, 129}, {65, 65}, {70, 5}, {33, 130}, {7, 7}, {5, 70}};
enum { WIDE_LENGTHS = 5 };

static void generate_sizes(case_list *list)
{
    static const int widths[] = {1, 8, 64, 128, 256};
    static const char *const bands[] = {"mask=none", "mask=causal", "mask=sliding window=3"};
    for (size_t w = 0; w < COUNT(widths); w++)
        for (size_t i = 0; i < (widths[w] > 8 ? WIDE_LENGTHS : COUNT(lengths)); i++)
            for (size_t b = 0; b<COUNT(bands); b += widths[w]> 64 ? 2 : 1)
                add(list, bands[(w + i + b) % COUNT(bands)], 2, 4, 2, lengths[i][0], lengths[i][1],
                    widths[w]);
    add(list, bands[1], 2, 4, 2, 20, 70, 512);
    add(list, bands[0], 1, 2, 1, 1, 70, 260);
    add(list, "mask=sliding window=20 softcap=2 lse=1", 1, 2, 2, 33, 40, 301);
    add(list, bands[0], 1, 1, 1, 2, 17000, 260); /* in parts on software drivers */
    add(list, bands[1], 2, 4, 2, 70, 70, 80);
    add(list, bands[0], 2, 4, 2, 33, 70, 100);
    add(list, bands[0], 1, 4, 1, 1, 132000, 8); /* too many chunks to join in one dispatch */
    case_add(list,
             "attention layout=bhsd mask=bias in=q:f32:1x1x2x260:unit;k:f32:1x1x17000x260:unit;"
             "v:f32:1x1x17000x260:unit;mask:f32:1x2x17000:range:-90:90");
    static const int windows[] = {1, 2, 4, 64, 100, 1000};
    for (size_t i = 0; i < COUNT(lengths); i++)
        for (size_t j = 0; j < COUNT(windows); j++)
            case_add(list,
                     "attention layout=bhsd mask=sliding window=%d in=q:f32:1x2x%dx8;"
                     "k:f32:1x2x%dx8;v:f32:1x2x%dx8",
                     windows[j], lengths[i][0], lengths[i][1], lengths[i][1]);
}

static void generate_heads(case_list *list)
{
    static const int heads[][2] = {{1, 1}, {4, 1}, {4, 4}, {6, 3}, {16, 2}, {3, 1}};
    for (size_t i = 0; i < COUNT(heads); i++)
        for (size_t j = 0; j < COUNT(lengths); j++)
            add(list, "mask=causal", 1, heads[i][0], heads[i][1], lengths[j][0], lengths[j][1], 8);
}

/* Writes the dims of a mask with Q and S replaced, and its fill. */
static void expand_mask(const char *dims, int queries, int keys, const char *fill, char *out,
                        size_t size)
{
    size_t used = 0;
    for (; *dims; dims++)
        if (*dims == 'Q' || *dims == 'S')
            used += (size_t)snprintf(out + used, size - used, "%d", *dims == 'Q' ? queries : keys);
        else
            used += (size_t)snprintf(out + used, size - used, "%c", *dims);
    snprintf(out + used, size - used, ":%s", fill);
}

static void generate_masks(case_list *list)
{
    static const int sizes[][2] = {{3, 130}, {20, 70}};
    static const char *const dims[] = {"1",       "S",       "1x1",     "1xS",
                                       "2x1",     "2xS",     "1x1xS",   "1xQxS",
                                       "2xQx1",   "2xQxS",   "1x1x1xS", "1x4x1xS",
                                       "2x1xQxS", "1x1xQx1", "2x4xQxS", "2x4x1x1"};
    static const char *const kinds[][2] = {{"custom", "bool"},
                                           {"bias", "uniform"},
                                           {"bias", "neginf"},
                                           {"custom", "special"}};
    for (size_t i = 0; i < COUNT(dims); i++)
        for (size_t j = 0; j < COUNT(sizes); j++)
            for (size_t k = (i + j) % 2; k < COUNT(kinds); k += 2) {
                char attributes[32], mask[64];
                expand_mask(dims[i], sizes[j][0], sizes[j][1], kinds[k][1], mask, sizeof mask);
                snprintf(attributes, sizeof attributes, "mask=%s", kinds[k][0]);
                add_masked(list, attributes, 2, sizes[j][0], sizes[j][1], 8, mask);
            }
    add_masked(list, "mask=custom", 1, 3, 70, 512, "1x4x3x70:bool");
    add_masked(list, "mask=bias", 2, 20, 70, 300, "2x20x70:neginf");
}

static void generate_layouts(case_list *list)
{
    static const char *const lines[] = {
        "layout=bshd in=q:f32:2x5x4x8;k:f32:2x9x2x8;v:f32:2x9x2x8",
        "layout=bshd mask=causal in=q:f32:2x40x4x8;k:f32:2x41x4x8;v:f32:2x41x4x8",
        "layout=bshd heads=4 kv_heads=2 head_dim=8 in=q:f32:2x1x4x8;k:f32:2x9x2x8;v:f32:2x9x2x8",
        "layout=packed heads=4 in=q:f32:2x5x32;k:f32:2x9x16;v:f32:2x9x16",
        "layout=packed heads=4 kv_heads=1 mask=causal in=q:f32:2x40x32;k:f32:2x40x8;v:f32:2x40x8",
        "layout=packed heads=4 in=q:f32:5x32;k:f32:9x32;v:f32:9x32",
        "heads=4 in=q:f32:5x32;k:f32:9x16;v:f32:9x16",
        "heads=4 head_dim=8 in=q:f32:2x5x32;k:f32:2x9x16;v:f32:2x9x16",
        "heads=4 head_dim=8 in=q:f32:8x5x8;k:f32:4x9x8;v:f32:4x9x8",
        "layout=bh_sd heads=4 in=q:f32:8x5x8;k:f32:2x9x8;v:f32:2x9x8",
        "layout=bh_sd heads=2 mask=causal in=q:f32:6x40x8;k:f32:6x41x8;v:f32:6x41x8",
        "heads=5 in=q:f32:2x5x5x8;k:f32:2x5x5x8;v:f32:2x5x5x8",
        "heads=4 in=q:f32:2x5x4x8;k:f32:2x6x2x8;v:f32:2x6x2x8",
        "layout=bshd heads=5 in=q:f32:2x5x5x8;k:f32:2x5x5x8;v:f32:2x5x5x8",
        "in=q:f32:2x4x5x8;k:f32:2x2x9x8;v:f32:2x2x9x8",
        "shift=1 in=q:f32:3x4x5x8;k:f32:3x2x9x8;v:f32:3x2x9x8",
        "shift=1 mask=causal in=q:f32:3x4x40x8;k:f32:3x2x70x8;v:f32:3x2x70x8",
        "layout=packed heads=4 lse=1 in=q:f32:2x5x32;k:f32:2x9x16;v:f32:2x9x16"};
    case_add_all(list, "attention", lines, COUNT(lines));
    case_add(list, "attention layout=packed heads=4 mask=custom in=q:f32:2x20x32;k:f32:2x70x16;"
                   "v:f32:2x70x16;mask:f32:2x70:bool");
}

static void generate_values(case_list *list)
{
    static const int sizes[][2] = {{7, 7}, {5, 70}, {20, 130}, {20, 5}};
    static const char *const attributes[] = {
        "score_scale=0.3",   "softcap=2",   "softcap=2 score_scale=3 mask=causal",
        "score_scale=-1",    "softcap=50",  "lse=1",
        "lse=2 mask=causal", "softcap=0.01"};
    for (size_t i = 0; i < COUNT(attributes); i++)
        for (size_t j = 0; j < COUNT(sizes); j++)
            add(list, attributes[i], 1, 4, 2, sizes[j][0], sizes[j][1], 8);
    for (size_t j = 0; j < COUNT(lengths); j++) {
        int q = lengths[j][0], s = lengths[j][1];
        /* Scores up to about 30, and q, k or v with NaN and infinities. */
        case_add(list,
                 "attention score_scale=0.35 in=q:f32:1x2x%dx8;k:f32:1x2x%dx8:range:-3:4;"
                 "v:f32:1x2x%dx8:range:-100:100",
                 q, s, s);
        case_add(list,
                 "attention lse=1 score_scale=0.35 mask=causal in=q:f32:1x2x%dx8;k:f32:1x2x%dx8;"
                 "v:f32:1x2x%dx8",
                 q, s, s);
        case_add(list,
                 "attention mask=causal in=q:f32:1x2x%dx8:special;k:f32:1x2x%dx8;v:f32:1x2x%dx8", q,
                 s, s);
        case_add(list,
                 "attention mask=sliding window=2 in=q:f32:1x2x%dx8;k:f32:1x2x%dx8:special;"
                 "v:f32:1x2x%dx8",
                 q, s, s);
        case_add(list,
                 "attention mask=sliding window=2 in=q:f32:1x2x%dx8;k:f32:1x2x%dx8;"
                 "v:f32:1x2x%dx8:special",
                 q, s, s);
    }
}

/* If no query may see a NaN, it must change nothing. */
static void generate_unseen(case_list *list)
{
    static const int sizes[][2] = {{7, 7}, {5, 70}, {20, 130}};
    for (size_t j = 0; j < COUNT(sizes); j++) {
        int q = sizes[j][0], s = sizes[j][1];
        case_add(list,
                 "attention mask=custom lse=%zu in=q:f32:1x2x%dx8;k:f32:1x2x%dx8:special;"
                 "v:f32:1x2x%dx8:special;mask:f32:1x%dx%d:zero",
                 j % 2, q, s, s, q, s);
    }
}

/* Operands with strides of their own, in every form, in whole quads and not; and transposed
 * results. */
static void generate_strides(case_list *list)
{
    static const char *const lines[] = {
        "layout=bhsd turned=1 within=1e-5 mask=causal in=q:f32:2x3x4x8;k:f32:2x9x2x8;v:f32:2x9x2x8",
        "layout=bhsd turned=1 within=1e-5 mask=causal "
        "in=q:f32:2x40x4x8;k:f32:2x70x2x8;v:f32:2x70x2x8",
        "layout=bshd turned=1 within=1e-5 mask=causal in=q:f32:2x4x3x8;k:f32:2x2x9x8;v:f32:2x2x9x8",
        "layout=bshd turned=1 within=1e-5 in=q:f32:2x4x40x8;k:f32:2x2x70x8;v:f32:2x2x70x8",
        "layout=bhsd turned=1 within=1e-5 cut=4 in=q:f32:2x5x4x16;k:f32:2x9x2x16;v:f32:2x9x2x16",
        "layout=bhsd turned=1 within=1e-5 cut=1 in=q:f32:2x40x4x10;k:f32:2x70x2x10;v:f32:2x70x2x10",
        "layout=bhsd turned=1 within=1e-5 mask=custom "
        "in=q:f32:2x5x4x8;k:f32:2x70x2x8;v:f32:2x70x2x8;"
        "mask:f32:2x1x5x70:bool",
        "layout=bhsd turned=1 within=1e-5 mask=bias "
        "in=q:f32:2x40x4x8;k:f32:2x70x2x8;v:f32:2x70x2x8;"
        "mask:f32:2x40x70:uniform",
        "layout=bhsd turned=1 within=1e-5 mask=causal "
        "in=q:f32:1x2x4x8;k:f32:1x2500x1x8;v:f32:1x2500x1x8",
        "layout=bhsd turned=1 within=1e-5 mask=causal "
        "in=q:f32:1x20x2x8;k:f32:1x1100x1x8;v:f32:1x1100x1x8",
        "layout=bh_sd heads=4 cut=4 in=q:f32:8x5x16;k:f32:4x9x16;v:f32:4x9x16",
        "layout=bh_sd heads=4 cut=3 lse=1 in=q:f32:8x40x14;k:f32:4x70x14;v:f32:4x70x14",
        "layout=packed heads=4 cut=8 mask=causal in=q:f32:2x5x48;k:f32:2x9x32;v:f32:2x9x32",
        "layout=packed heads=4 cut=5 lse=2 in=q:f32:40x42;k:f32:70x26;v:f32:70x26",
        "layout=bshd joint=1 mask=causal in=q:f32:2x5x3x4x8",
        "layout=bshd joint=1 in=q:f32:2x40x3x4x8",
        "layout=packed joint=1 heads=4 head_dim=8 mask=causal in=q:f32:2x5x96",
        "layout=packed joint=1 heads=4 kv_heads=2 head_dim=8 mask=causal in=q:f32:2x40x64",
        "layout=packed joint=1 heads=4 kv_heads=1 head_dim=6 lse=1 in=q:f32:2x40x36",
        "layout=packed joint=1 heads=4 kv_heads=1 head_dim=6 mask=sliding window=3 in=q:f32:40x36",
        "precision=f16 layout=packed joint=1 heads=4 kv_heads=2 head_dim=64 mask=causal "
        "in=q:f32:2x90x512:unit",
        "precision=f16 layout=bhsd turned=1 mask=causal lse=2 in=q:f32:2x70x4x32:unit;"
        "k:f32:2x70x2x32:unit;v:f32:2x70x2x32:unit",
        "precision=f16 layout=bhsd turned=1 within=1e-5 cut=1 "
        "in=q:f32:1x70x4x34:unit;k:f32:1x90x2x34:unit;"
        "v:f32:1x90x2x34:unit"};
    case_add_all(list, "attention", lines, COUNT(lines));
}

/* Precisions f16 and bf16: widths that do and do not fill matrix units, partial tiles of queries
 * and keys, and every band. Devices without matrix units run these cases in f32. */
static void generate_halves(case_list *list, const char *precision)
{
    static const char *const attributes[] = {"mask=none", "mask=causal lse=1",
                                             "mask=sliding window=40", "mask=causal softcap=5"};
    static const int sizes[][3] = {{16, 16, 16},  {70, 70, 128},  {130, 257, 64},
                                   {33, 100, 80}, {300, 300, 32}, {20, 31, 24}};
    for (size_t i = 0; i < COUNT(attributes); i++)
        for (size_t j = 0; j < COUNT(sizes); j++)
            case_add(list,
                     "attention precision=%s %s layout=bhsd in=q:f32:1x4x%dx%d:unit;"
                     "k:f32:1x2x%dx%d:unit;v:f32:1x2x%dx%d:unit",
                     precision, attributes[i], sizes[j][0], sizes[j][2], sizes[j][1], sizes[j][2],
                     sizes[j][1], sizes[j][2]);
    case_add(list,
             "attention precision=%s layout=bshd mask=causal in=q:f32:2x90x4x64:unit;"
             "k:f32:2x91x4x64:unit;v:f32:2x91x4x64:unit",
             precision);
    case_add(list,
             "attention precision=%s layout=packed heads=4 mask=causal "
             "in=q:f32:2x40x128:unit;k:f32:2x41x128:unit;v:f32:2x41x128:unit",
             precision);
}

static void generate_edges(case_list *list)
{
    static const char *const lines[] = {
        "in=q:f32:2x4x5x8;k:f32:2x4x0x8;v:f32:2x4x0x8",
        "mask=causal in=q:f32:2x4x50x8;k:f32:2x4x0x8;v:f32:2x4x0x8",
        "lse=1 in=q:f32:2x4x5x8;k:f32:2x4x0x8;v:f32:2x4x0x8",
        "lse=1 in=q:f32:2x4x50x8;k:f32:2x4x0x8;v:f32:2x4x0x8",
        "mask=bias in=q:f32:2x4x5x8;k:f32:2x4x0x8;v:f32:2x4x0x8;mask:f32:2x0",
        "in=q:f32:2x4x0x8;k:f32:2x4x7x8;v:f32:2x4x7x8",
        "in=q:f32:0x4x3x8;k:f32:0x4x7x8;v:f32:0x4x7x8",
        "mask=custom lse=1 in=q:f32:2x4x5x8;k:f32:2x4x70x8;v:f32:2x4x70x8;mask:f32:1:zero",
        "mask=custom lse=1 in=q:f32:2x4x20x8;k:f32:2x4x70x8;v:f32:2x4x70x8;mask:f32:1:zero",
        "mask=custom lse=2 in=q:f32:2x4x20x8;k:f32:2x4x70x8;v:f32:2x4x70x8;mask:f32:1:zero",
        "mask=custom prefix=100 in=q:f32:1x4x3x8;k:f32:1x2x512x8;v:f32:1x2x512x8;"
        "mask:f32:512:iota",
        "mask=custom prefix=1 lse=1 in=q:f32:1x4x3x8;k:f32:1x2x512x8;v:f32:1x2x512x8;"
        "mask:f32:512:iota",
        "mask=custom prefix=64 in=q:f32:1x4x20x8;k:f32:1x2x300x8;v:f32:1x2x300x8;"
        "mask:f32:300:iota",
        "mask=custom prefix=512 in=q:f32:1x4x3x8;k:f32:1x2x512x8;v:f32:1x2x512x8;"
        "mask:f32:512:iota",
        "mask=causal in=q:f32:1x4x1x64;k:f32:1x2x2048x64;v:f32:1x2x2048x64",
        "mask=causal lse=1 in=q:f32:1x8x1x128;k:f32:1x1x1000x128;v:f32:1x1x1000x128",
        "mask=causal in=q:f32:1x8x8x128;k:f32:1x1x500x128;v:f32:1x1x500x128",
        "mask=sliding window=100 in=q:f32:1x2x200x64;k:f32:1x2x200x64;v:f32:1x2x200x64",
        "mask=causal in=q:f32:1x2x260x64;k:f32:1x1x260x64;v:f32:1x1x260x64",
        /* Keys are long enough to be split although there are many queries (variant tile_split). */
        "mask=causal in=q:f32:1x2x20x8;k:f32:1x1x1100x8;v:f32:1x1x1100x8",
        "mask=causal lse=1 in=q:f32:2x2x600x8;k:f32:2x1x600x8;v:f32:2x1x600x8",
        "mask=sliding window=300 in=q:f32:1x2x100x6;k:f32:1x1x700x6;v:f32:1x1x700x6",
        "mask=custom lse=1 in=q:f32:1x2x40x8;k:f32:1x2x700x8;v:f32:1x2x700x8;mask:f32:700:bool",
        "mask=custom prefix=1 in=q:f32:1x2x40x8;k:f32:1x2x700x8;v:f32:1x2x700x8;"
        "mask:f32:700:iota",
        "mask=bias softcap=5 in=q:f32:1x2x40x8;k:f32:1x2x700x8;v:f32:1x2x700x8;"
        "mask:f32:1x40x700:neginf",
        "mask=custom lse=1 in=q:f32:1x2x40x8;k:f32:1x2x700x8;v:f32:1x2x700x8;mask:f32:1:zero",
        "mask=sliding window=2 in=q:f32:1x2x40x8;k:f32:1x2x700x8:special;v:f32:1x2x700x8:special",
        "mask=causal in=q:f32:1x2x140x132;k:f32:1x1x150x132;v:f32:1x1x150x132",
        "in=q:f32:1x1x70x190;k:f32:1x1x90x190;v:f32:1x1x90x190"};
    case_add_all(list, "attention layout=bhsd", lines, COUNT(lines));
}

/* ---- attention_backward ---- */

static void add_backward(case_list *list, const char *attributes, int batch, int heads,
                         int kv_heads, int queries, int keys, int width, const char *mask)
{
    case_add(list,
             "attention_backward layout=bhsd %s in=q:f32:%dx%dx%dx%d:unit;k:f32:%dx%dx%dx%d:unit;"
             "v:f32:%dx%dx%dx%d:unit;%sdy:f32:%dx%dx%dx%d:unit",
             attributes, batch, heads, queries, width, batch, kv_heads, keys, width, batch,
             kv_heads, keys, width, mask, batch, heads, queries, width);
}

static void generate_backward_sizes(case_list *list)
{
    static const int widths[] = {1, 6, 8, 64, 128, 256};
    static const char *const attributes[] = {"mask=none",
                                             "mask=causal",
                                             "mask=sliding window=3",
                                             "mask=sliding window=40",
                                             "mask=sliding window=1000 score_scale=-1",
                                             "mask=causal softcap=2 score_scale=0.7",
                                             "softcap=0.5"};
    enum { UNCAPPED = 5 }; /* the first ones have no softcap, which would need more pipelines */
    static const int heads[][2] = {{1, 1}, {4, 1}, {4, 4}, {6, 3}, {3, 1}};
    for (size_t w = 0; w < COUNT(widths); w++)
        for (size_t i = 0; i < (widths[w] > 8 ? WIDE_LENGTHS : COUNT(lengths)); i++)
            for (size_t b = 0; b < (widths[w] > 8 ? 2 : 4); b++)
                add_backward(
                    list,
                    attributes[(2 * w + i + b) % (widths[w] > 128 ? UNCAPPED : COUNT(attributes))],
                    2, 4, 2, lengths[i][0], lengths[i][1], widths[w], "");
    for (size_t i = 0; i < COUNT(heads); i++)
        for (size_t j = 0; j < COUNT(lengths); j++)
            add_backward(list, attributes[(i + j) % 4], 1, heads[i][0], heads[i][1], lengths[j][0],
                         lengths[j][1], 8, "");
    add_backward(list, "mask=causal", 1, 4, 2, 20, 70, 512, "");
    add_backward(list, "mask=sliding window=20 softcap=2", 1, 1, 1, 40, 33, 301, "");
    add_backward(list, "mask=bias bias=1", 1, 2, 1, 20, 70, 512, "mask:f32:1x2x20x70:uniform;");
    add_backward(list, "mask=causal", 2, 2, 1, 200, 200, 80, "");
    add_backward(list, "mask=sliding window=100", 1, 2, 2, 300, 310, 64, "");
    add_backward(list, "mask=causal", 1, 1, 1, 20, 1100, 8, "");
    add_backward(list, "mask=none", 1, 1, 1, 1100, 20, 8, "");
}

static void generate_backward_masks(case_list *list)
{
    static const int sizes[][2] = {{3, 130}, {40, 70}};
    static const char *const dims[] = {"1",       "S",       "1x1",     "2xS",     "1x1xS",
                                       "1xQxS",   "2xQx1",   "2xQxS",   "1x4x1xS", "2x1xQxS",
                                       "1x1xQx1", "2x4xQxS", "2x4x1x1", "1x1x1x1", "1x4xQx1"};
    static const char *const kinds[][2] = {{"custom", "bool"},
                                           {"bias bias=1", "uniform"},
                                           {"bias bias=1 softcap=2", "neginf"},
                                           {"custom", "special"}};
    for (size_t i = 0; i < COUNT(dims); i++)
        for (size_t k = i % 2; k < COUNT(kinds) + i % 2; k++) {
            char attributes[64], mask[64], given[80];
            const int *size = sizes[(i + k) % 2];
            const char *const *kind = kinds[k % COUNT(kinds)];
            expand_mask(dims[i], size[0], size[1], kind[1], mask, sizeof mask);
            snprintf(attributes, sizeof attributes, "mask=%s", kind[0]);
            snprintf(given, sizeof given, "mask:f32:%s;", mask);
            add_backward(list, attributes, 2, 4, 2, size[0], size[1], 8, given);
        }
    add_backward(list, "mask=custom prefix=5", 1, 2, 1, 40, 300, 8, "mask:f32:300:iota;");
    add_backward(list, "mask=custom", 1, 2, 1, 40, 70, 8, "mask:f32:1:zero;");
    add_backward(list, "mask=bias bias=1", 1, 2, 1, 40, 70, 8, "mask:f32:1:constant:-inf;");
    add_backward(list, "mask=bias bias=1 part=3", 2, 2, 2, 300, 300, 8, "mask:f32:300:unit;");
}

/* All gradients in one pass. Cases share out the keys among parts in both directions. They have
 * tiles of queries that the first tile of keys does not visit, or that a mask drops. */
static void generate_backward_joined(case_list *list)
{
    static const char *const lines[] = {
        "mask=causal in=q:f32:2x2x300x8:unit;k:f32:2x2x300x8:unit;v:f32:2x2x300x8:unit;"
        "dy:f32:2x2x300x8:unit",
        "mask=sliding window=70 in=q:f32:1x4x400x8:unit;k:f32:1x2x400x8:unit;"
        "v:f32:1x2x400x8:unit;dy:f32:1x4x400x8:unit",
        "mask=none in=q:f32:1x2x70x64:unit;k:f32:1x1x513x64:unit;v:f32:1x1x513x64:unit;"
        "dy:f32:1x2x70x64:unit",
        "mask=causal in=q:f32:1x2x600x6:special;k:f32:1x2x530x6:special;v:f32:1x2x530x6:special;"
        "dy:f32:1x2x600x6:unit",
        "mask=causal in=q:f32:1x2x40x6:unit;k:f32:1x1x300x6:unit;v:f32:1x1x300x6:unit;"
        "dy:f32:1x2x40x6:unit",
        "mask=custom prefix=100 in=q:f32:1x2x200x8:unit;k:f32:1x2x300x8:unit;v:f32:1x2x300x8:unit;"
        "mask:f32:300:iota;dy:f32:1x2x200x8:unit",
        "mask=custom in=q:f32:1x2x140x8:unit;k:f32:1x2x300x8:unit;v:f32:1x2x300x8:unit;"
        "mask:f32:1x140x300:bool;dy:f32:1x2x140x8:unit"};
    case_add_all(list, "attention_backward layout=bhsd variant=attention_backward=joined_64x64",
                 lines, COUNT(lines));
}

/* Precision f16, as for attention, with gradients of ordinary size, far below what f16 holds, and
 * far above. Whole heads and rows of very different sizes share keys. */
static void generate_backward_halves(case_list *list, const char *precision)
{
    static const char *const attributes[] = {"mask=none", "mask=causal", "mask=sliding window=40",
                                             "mask=causal softcap=5 score_scale=-0.4"};
    static const int sizes[][3] = {{16, 16, 16}, {130, 257, 64}, {33, 100, 80}, {300, 300, 32}};
    static const char *const gradients[] = {"unit", "range:-2e-9:1e-9", "range:-4e7:6e7"};
    for (size_t i = 0; i < COUNT(attributes); i++)
        for (size_t j = 0; j < COUNT(sizes); j++) {
            int q = sizes[j][0], k = sizes[j][1], width = sizes[j][2];
            case_add(list,
                     "attention_backward precision=%s %s layout=bhsd in=q:f32:1x4x%dx%d:unit;"
                     "k:f32:1x2x%dx%d:unit;v:f32:1x2x%dx%d:unit;dy:f32:1x4x%dx%d:%s",
                     precision, attributes[i], q, width, k, width, k, width, q, width,
                     gradients[(i + j) % COUNT(gradients)]);
        }
    static const char *const lines[] = {
        "layout=bshd mask=causal in=q:f32:2x90x4x64:unit;k:f32:2x91x2x64:unit;"
        "v:f32:2x91x2x64:unit;dy:f32:2x90x4x64:unit",
        "layout=packed heads=4 mask=causal in=q:f32:2x40x128:unit;k:f32:2x41x128:unit;"
        "v:f32:2x41x128:unit;dy:f32:2x40x128:unit",
        "layout=bhsd mask=causal in=q:f32:1x2x140x128:unit;k:f32:1x1x150x128:unit;"
        "v:f32:1x1x150x128:unit;dy:f32:1x2x140x128:unit",
        "layout=bhsd mask=causal in=q:f32:1x2x140x96:unit;k:f32:1x2x140x96:unit;"
        "v:f32:1x2x140x96:unit;dy:f32:1x2x140x96:iota",
        "layout=bhsd in=q:f32:1x4x70x32:unit;k:f32:1x1x90x32:unit;v:f32:1x1x90x32:unit;"
        "dy:f32:1x4x70x32:outliers",
        "layout=bhsd mask=causal in=q:f32:1x2x70x34:unit;k:f32:1x2x70x34:unit;"
        "v:f32:1x2x70x34:unit;dy:f32:1x2x70x34:unit"};
    for (size_t i = 0; i < COUNT(lines); i++)
        case_add(list, "attention_backward precision=%s %s", precision, lines[i]);
}

static void generate_backward_edges(case_list *list)
{
    static const char *const lines[] = {
        "layout=bshd in=q:f32:2x5x4x8;k:f32:2x9x2x8;v:f32:2x9x2x8;dy:f32:2x5x4x8",
        "layout=bshd mask=causal in=q:f32:2x40x4x8;k:f32:2x41x4x8;v:f32:2x41x4x8;dy:f32:2x40x4x8",
        "layout=packed heads=4 mask=causal in=q:f32:2x40x32;k:f32:2x40x8;v:f32:2x40x8;"
        "dy:f32:2x40x32",
        "heads=4 in=q:f32:5x32;k:f32:9x16;v:f32:9x16;dy:f32:5x32",
        "layout=bh_sd heads=2 mask=causal in=q:f32:6x40x8;k:f32:6x41x8;v:f32:6x41x8;dy:f32:6x40x8",
        "shift=1 in=q:f32:3x4x5x8;k:f32:3x2x9x8;v:f32:3x2x9x8;dy:f32:3x4x5x8",
        "shift=1 mask=causal in=q:f32:3x3x7x3;k:f32:3x1x7x3;v:f32:3x1x7x3;dy:f32:3x3x7x3",
        "part=0 mask=causal in=q:f32:2x2x7x8;k:f32:2x2x9x8;v:f32:2x2x9x8;dy:f32:2x2x7x8",
        "part=1 mask=causal in=q:f32:2x2x7x8;k:f32:2x2x9x8;v:f32:2x2x9x8;dy:f32:2x2x7x8",
        "part=2 mask=causal in=q:f32:2x2x7x8;k:f32:2x2x9x8;v:f32:2x2x9x8;dy:f32:2x2x7x8",
        "in=q:f32:2x4x5x8;k:f32:2x4x0x8;v:f32:2x4x0x8;dy:f32:2x4x5x8",
        "in=q:f32:2x4x0x8;k:f32:2x4x7x8;v:f32:2x4x7x8;dy:f32:2x4x0x8",
        "in=q:f32:0x4x3x8;k:f32:0x4x7x8;v:f32:0x4x7x8;dy:f32:0x4x3x8",
        "mask=bias bias=1 layout=bhsd in=q:f32:0x4x3x8;k:f32:0x4x7x8;v:f32:0x4x7x8;mask:f32:7;"
        "dy:f32:0x4x3x8",
        "mask=bias bias=1 layout=bhsd in=q:f32:2x4x3x0;k:f32:2x4x7x0;v:f32:2x4x7x0;mask:f32:7;"
        "dy:f32:2x4x3x0",
        "mask=causal in=q:f32:1x2x70x8:special;k:f32:1x2x70x8;v:f32:1x2x70x8;dy:f32:1x2x70x8",
        "mask=causal in=q:f32:1x2x70x8;k:f32:1x2x70x8;v:f32:1x2x70x8;dy:f32:1x2x70x8:special",
        "mask=sliding window=2 in=q:f32:1x2x40x8;k:f32:1x2x40x8:special;v:f32:1x2x40x8;"
        "dy:f32:1x2x40x8",
        "mask=sliding window=2 in=q:f32:1x2x40x8;k:f32:1x2x40x8;v:f32:1x2x40x8:special;"
        "dy:f32:1x2x40x8",
        "mask=custom in=q:f32:1x2x40x8;k:f32:1x2x40x8:special;v:f32:1x2x40x8:special;"
        "mask:f32:1x40x40:zero;dy:f32:1x2x40x8",
        "score_scale=0.35 in=q:f32:1x2x70x8;k:f32:1x2x70x8:range:-3:4;v:f32:1x2x70x8;"
        "dy:f32:1x2x70x8",
        "expect=E_SHAPE in=q:f32:2x4x5x8;k:f32:2x4x9x8;v:f32:2x4x9x8;dy:f32:2x4x9x8",
        "expect=E_ARITY mask=bias in=q:f32:2x4x5x8;k:f32:2x4x9x8;v:f32:2x4x9x8;dy:f32:2x4x5x8",
        "expect=E_UNSUPPORTED in=q:f32:1x1x5x513;k:f32:1x1x9x513;v:f32:1x1x9x513;"
        "dy:f32:1x1x5x513"};
    case_add_all(list, "attention_backward", lines, COUNT(lines));
}

/* Keys that no query sees, and queries that see no key, have gradients of 0, even if all values
 * that every invocation reads are NaN or infinite. */
static void generate_backward_unseen(case_list *list)
{
    static const char *const lines[] = {
        "mask=custom in=q:f32:1x1x5x64:constant:nan;k:f32:1x1x40x64;v:f32:1x1x40x64;"
        "mask:f32:40:bool;dy:f32:1x1x5x64:constant:inf",
        "mask=custom in=q:f32:1x1x40x64;k:f32:1x1x5x64:constant:nan;v:f32:1x1x5x64:constant:inf;"
        "mask:f32:1x1x40x1:bool;dy:f32:1x1x40x64"};
    case_add_all(list, "attention_backward layout=bhsd", lines, COUNT(lines));
}

static void generate(case_list *list)
{
    generate_sizes(list);
    generate_heads(list);
    generate_masks(list);
    generate_layouts(list);
    generate_values(list);
    generate_unseen(list);
    generate_edges(list);
    generate_strides(list);
    generate_halves(list, "f16");
    generate_halves(list, "bf16");
    generate_backward_sizes(list);
    generate_backward_masks(list);
    generate_backward_joined(list);
    generate_backward_halves(list, "f16");
    generate_backward_halves(list, "bf16");
    generate_backward_edges(list);
    /* Biases at the limits of f32, because only -Inf may remove a key. They run in every form:
     * rows, tiles, split keys. Scores vanish beside such a bias, so differences of the result
     * cannot judge gradients. */
    static const int bias_sizes[][3] = {{1, 3, 1},    {1, 70, 8},    {5, 600, 8},
                                        {40, 70, 16}, {70, 300, 33}, {3, 40, 128}};
    static const char *const biases[] = {"constant:-3.4028234e38", "range:-3.4e38:-3e38",
                                         "range:-3.4e38:3.4e38", "constant:-1e9",
                                         "constant:3.4028234e38"};
    for (size_t i = 0; i < COUNT(bias_sizes); i++)
        for (size_t j = 0; j < COUNT(biases); j++)
            for (int lse = 0; lse < 2; lse++) {
                int q = bias_sizes[i][0], s = bias_sizes[i][1], d = bias_sizes[i][2];
                case_add(list,
                         "attention differences=0 layout=bhsd lse=%d mask=bias "
                         "in=q:f32:1x2x%dx%d;k:f32:1x2x%dx%d;v:f32:1x2x%dx%d;mask:f32:%dx%d:%s",
                         lse, q, d, s, d, s, d, 1, s, biases[j]);
            }
    /* Gradients of rows whose biases are at the limits of f32, or far from 0. */
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < COUNT(biases); j++) {
            int q = bias_sizes[i][0], s = bias_sizes[i][1], d = bias_sizes[i][2];
            case_add(list,
                     "attention_backward differences=0 layout=bhsd mask=bias bias=1 "
                     "in=q:f32:1x2x%dx%d:unit;k:f32:1x2x%dx%d:unit;v:f32:1x2x%dx%d:unit;"
                     "mask:f32:%dx%d:%s;"
                     "dy:f32:1x2x%dx%d:unit",
                     q, d, s, d, s, d, 1, s, biases[j], q, d);
        }
    generate_backward_unseen(list);
}

static const char *const rows[] = {"attention", "attention_backward", NULL};

const case_family attention_cases = {.rows = rows, .build = build, .generate = generate};
