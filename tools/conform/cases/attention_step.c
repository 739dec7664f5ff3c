/*
 * Cases of attention_step. Keys: heads, kv_heads, head_dim, n_rot, style=neox|gptj, window,
 * score_scale, softcap; in=q;k;v;keys;values;position;cos;sin. at=0,7,-1 replaces the input
 * position by a constant; places=2,0,1 then gives it a second column.
 *
 * More keys:
 *   show=keys, show=values   return a cache after the step
 *   by=gather                reads that cache by a gather, which leaves it packed
 *   twice=1                  adds a second step, whose q is the first one's result and whose rows
 *                            follow the first one's
 *   cut=n                    views of q, k and v, see case_viewed
 */
#include "conform/cases/cases.h"

#include <stdio.h>
#include <string.h>

#define MOST_SEQUENCES 8

static rlxvk_attention_step_options options_of(const case_spec *s)
{
    bool neighbours = strcmp(case_word(s, "style", "neox"), "gptj") == 0;
    return (rlxvk_attention_step_options){.heads = case_integer(s, "heads", 0),
                                          .kv_heads = case_integer(s, "kv_heads", 0),
                                          .head_dim = case_integer(s, "head_dim", 0),
                                          .n_rot = case_integer(s, "n_rot", 0),
                                          .style = neighbours ? RLXVK_ROPE_GPTJ : RLXVK_ROPE_NEOX,
                                          .window = case_integer(s, "window", 0),
                                          .score_scale = (float)case_real(s, "score_scale", 0),
                                          .softcap = (float)case_real(s, "softcap", 0)};
}

static rlxvk_tensor position_of(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs,
                                int64_t rows_before)
{
    int32_t at[MOST_SEQUENCES], places[MOST_SEQUENCES];
    float values[2 * MOST_SEQUENCES];
    size_t count = case_integers(s, "at", at, MOST_SEQUENCES);
    bool placed = case_integers(s, "places", places, MOST_SEQUENCES) > 0;
    if (count == 0)
        return case_tensor(s, inputs, "position");
    for (size_t i = 0; i < count; i++) {
        values[placed ? 2 * i : i] = (float)(at[i] + rows_before);
        if (placed)
            values[2 * i + 1] = (float)places[i];
    }
    rlxvk_shape shape = RLXVK_SHAPE((int64_t)count, 2);
    shape.rank = placed ? 2 : 1;
    return rlxvk_constant(g, RLXVK_F32, shape, values, count * shape.rank * sizeof *values);
}

static rlxvk_tensor gather_all(rlxvk_graph *g, rlxvk_tensor cache)
{
    static const float counting[] = {0, 1, 2, 3, 4, 5, 6, 7};
    int64_t entries = rlxvk_tensor_shape(g, cache).dims[0];
    return rlxvk_gather(g, cache,
                        rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(entries), counting,
                                       (size_t)entries * sizeof *counting),
                        0);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    static const char *const names[] = {"q", "k", "v", "keys", "values", "cos", "sin"};
    rlxvk_attention_step_options options = options_of(s);
    const char *show = case_word(s, "show", "y");
    rlxvk_tensor o[COUNT(names)], y;
    for (size_t i = 0; i < COUNT(names); i++) {
        o[i] = case_tensor(s, inputs, names[i]);
        if (i < 3 && o[i].id)
            o[i] = case_viewed(g, s, o[i]);
    }
    y = rlxvk_attention_step(g, o[0], o[1], o[2], o[3], o[4], position_of(g, s, inputs, 0), o[5],
                             o[6], &options);
    if (case_integer(s, "twice", 0))
        y = rlxvk_attention_step(g, y, o[1], o[2], o[3], o[4],
                                 position_of(g, s, inputs, rlxvk_tensor_shape(g, o[0]).dims[1]),
                                 o[5], o[6], &options);
    if (!y.id || strcmp(show, "y") == 0)
        return y;
    y = strcmp(show, "keys") == 0 ? o[3] : o[4];
    return strcmp(case_word(s, "by", ""), "gather") == 0 ? gather_all(g, y) : y;
}

typedef struct step_case {
    int batch, rows, heads, kv_heads, width, rotated;
    const char *style;
    int capacity;
    const char *at, *more;
    const char *joined; /* operands that this tensor joins by columns; NULL: q;k;v */
    int entries;        /* of the caches; 0: batch */
    const char *held;   /* the dtype of the caches; NULL: f32 */
} step_case;

/* Writes "q;k;v" as inputs. A joined name, for example "qk", is one tensor with the columns of
 * both. */
static void add_rows(const step_case *c, char *out, size_t size)
{
    const char *at = c->joined ? c->joined : "q;k;v";
    size_t used = 0;
    while (*at) {
        const char *first = at;
        int heads = 0;
        for (; *at && *at != ';'; at++)
            heads += *at == 'q' ? c->heads : c->kv_heads;
        used += (size_t)snprintf(out + used, size - used, "%c:f32:%dx%dx%d:unit;", *first, c->batch,
                                 c->rows, heads * c->width);
        at += *at == ';';
    }
}

static void add(case_list *list, const step_case *c, const char *show)
{
    char tables[128] = "", inputs[128];
    const char *held = c->held ? c->held : "f32";
    int entries = c->entries ? c->entries : c->batch;
    if (c->rotated)
        snprintf(tables, sizeof tables, ";cos:f32:%dx%d:unit;sin:f32:%dx%d:unit",
                 c->batch * c->rows, c->width / 2, c->batch * c->rows, c->width / 2);
    add_rows(c, inputs, sizeof inputs);
    case_add(list,
             "attention_step heads=%d kv_heads=%d head_dim=%d n_rot=%d style=%s at=%s %s %s "
             "in=%skeys:%s:%dx%dx%dx%d:unit;values:%s:%dx%dx%dx%d:unit%s",
             c->heads, c->kv_heads, c->width, c->rotated, c->style, c->at, c->more, show, inputs,
             held, entries, c->kv_heads, c->capacity, c->width, held, entries, c->kv_heads,
             c->capacity, c->width, tables);
}

/* Software drivers take 256 keys a chunk if four rows or more share a kv head, and 1,024 if it is
 * one row. */
static const step_case cases[] = {
    {1, 1, 4, 4, 64, 64, "gptj", 40, "0", ""},
    {1, 1, 4, 4, 64, 64, "gptj", 40, "17", ""},
    {1, 1, 4, 4, 64, 64, "neox", 40, "39", ""},
    {1, 1, 4, 4, 64, 64, "neox", 40, "40", ""},
    {1, 1, 4, 4, 64, 64, "neox", 40, "1000", "window=5"},
    {1, 1, 4, 4, 64, 64, "neox", 40, "-1", ""},
    {1, 1, 4, 2, 64, 0, "neox", 40, "17", ""},
    {3, 1, 4, 1, 64, 32, "neox", 700, "0,699,254", ""},
    {3, 1, 4, 1, 64, 32, "gptj", 700, "255,256,257", ""},
    {3, 1, 4, 1, 64, 32, "gptj", 700, "-7,511,512", "window=100"},
    {2, 2, 4, 1, 64, 64, "neox", 700, "255,-2", ""},
    {2, 2, 4, 1, 64, 64, "gptj", 700, "254,699", "softcap=2"},
    {2, 5, 4, 1, 64, 64, "gptj", 700, "253,697", ""},
    {2, 5, 4, 1, 64, 64, "neox", 700, "510,0", "window=3"},
    {2, 5, 4, 1, 64, 64, "neox", 700, "510,600", "window=300 score_scale=0.5"},
    {1, 8, 4, 1, 64, 64, "neox", 700, "400", ""},
    {1, 1, 8, 1, 128, 128, "gptj", 600, "599", ""},
    {1, 1, 16, 1, 128, 128, "neox", 600, "555", ""},
    {1, 5, 16, 1, 64, 64, "gptj", 600, "400", "softcap=30"},
    {2, 2, 8, 2, 80, 80, "neox", 300, "290,3", ""},
    {2, 1, 4, 2, 6, 4, "neox", 50, "20,49", ""},
    {2, 2, 4, 2, 6, 6, "gptj", 50, "20,49", ""},
    {3, 5, 4, 2, 6, 2, "neox", 50, "20,46,-5", ""},
    {2, 5, 8, 1, 6, 6, "neox", 900, "777,255", "window=600"},
    {2, 1, 2, 2, 64, 64, "neox", 2500, "1023,2499", ""},
    {1, 2, 1, 1, 256, 256, "neox", 1100, "1030", ""},
    {2, 1, 4, 2, 512, 512, "neox", 70, "65,3", ""},
    {1, 20, 2, 1, 320, 64, "gptj", 70, "35", "window=20 softcap=5"},
    {1, 5, 2, 1, 300, 300, "neox", 70, "65", "", NULL, 0, "f16"},
    {1, 1, 1, 1, 514, 0, "neox", 9, "0", "expect=E_ATTR"},
    {1, 3, 3, 1, 7, 0, "gptj", 9, "5", ""},
    {2, 33, 4, 2, 64, 64, "neox", 100, "0,50", ""},
    {2, 33, 4, 2, 64, 64, "gptj", 100, "67,80", ""},
    {3, 33, 4, 1, 64, 32, "neox", 300, "-1,99,260", "window=20"},
    {2, 33, 2, 2, 80, 80, "gptj", 70, "10,20", "softcap=5"},
    {2, 33, 2, 1, 6, 4, "neox", 70, "10,35", ""},
    {1, 33, 4, 4, 128, 128, "gptj", 200, "100", ""},
    {1, 33, 1, 1, 64, 0, "neox", 17000, "16980", ""},
    {2, 1, 4, 1, 64, 32, "neox", 700, "300,20", "twice=1 within=1e-6"},
    {2, 5, 4, 1, 64, 64, "gptj", 700, "250,680", "twice=1 within=1e-6"},
    {1, 33, 4, 1, 64, 64, "gptj", 100, "20", "twice=1 within=1e-6"},
    {3, 1, 4, 1, 64, 32, "neox", 700, "0,699,254", "places=4,0,2", "q;k;v", 5},
    {3, 1, 2, 1, 64, 0, "neox", 20, "5,-1,7", "places=1,0,0", "q;k;v", 2},
    {2, 1, 4, 2, 6, 4, "neox", 50, "20,49", "places=3,-1", "q;k;v", 3},
    {2, 5, 4, 1, 64, 64, "gptj", 700, "250,680", "places=2,0 twice=1 within=1e-6", "q;k;v", 3},
    {2, 2, 4, 1, 64, 64, "gptj", 300, "20,-1", "", "qkv"},
    {2, 2, 3, 1, 8, 0, "neox", 9, "5,0", "", "qkv"},
    {1, 5, 4, 1, 64, 64, "gptj", 700, "253", "places=3", "qk;v", 4},
    {3, 5, 4, 2, 6, 2, "neox", 50, "20,46,-5", "places=2,1,0", "q;kv", 3},
    {2, 33, 4, 2, 64, 64, "neox", 100, "0,50", "places=2,0", "qkv", 3},
    {2, 33, 2, 1, 6, 4, "gptj", 70, "10,35", "places=2,1", "q;kv", 2},
    {1, 33, 4, 1, 64, 0, "neox", 100, "20", "places=1", "qk;v", 2},
    {3, 1, 4, 1, 64, 32, "neox", 700, "0,699,254", "", NULL, 0, "f16"},
    {2, 5, 4, 1, 64, 64, "gptj", 700, "253,697", "", NULL, 0, "f16"},
    {2, 2, 8, 2, 80, 80, "neox", 300, "290,3", "softcap=5", NULL, 0, "f16"},
    {2, 1, 2, 2, 8, 0, "neox", 20, "5,-1", "", NULL, 0, "f16"},
    {2, 5, 4, 1, 64, 0, "gptj", 700, "250,680", "twice=1 within=1e-6", NULL, 0, "f16"},
    {2, 33, 4, 2, 64, 64, "neox", 100, "0,50", "places=2,0", "qkv", 3, "f16"},
    {1, 33, 2, 1, 12, 4, "gptj", 70, "10", "", NULL, 0, "f16"},
    {2, 2, 8, 2, 80, 80, "neox", 300, "290,3", "show=keys", NULL, 0, "f16"},
    {2, 2, 8, 2, 80, 80, "neox", 300, "290,3", "show=values", NULL, 0, "f16"},
    {1, 33, 2, 1, 12, 4, "gptj", 70, "10", "show=keys", NULL, 0, "f16"},
    {1, 33, 2, 1, 12, 4, "gptj", 70, "10", "show=values", NULL, 0, "f16"},
    {1, 33, 4, 1, 64, 0, "gptj", 100, "20", "twice=1 within=1e-6", NULL, 0, "f16"},
    {1, 1, 2, 1, 6, 0, "gptj", 10, "0", "expect=E_ATTR", NULL, 0, "f16"},
    {1, 1, 2, 1, 8, 0, "gptj", 10, "0", "expect=E_DTYPE", NULL, 0, "bf16"},
    {1, 1, 2, 1, 64, 64, "gptj", 0, "0", ""},
    {1, 1, 2, 1, 7, 0, "gptj", 10, "0", "expect=E_ATTR", "qkv"},
    {2, 1, 2, 1, 64, 0, "gptj", 10, "0,1", "expect=E_SHAPE", "q;k;v", 3},
    {0, 1, 2, 1, 64, 0, "gptj", 10, "0", "expect=E_SHAPE"},
    {2, 1, 2, 1, 64, 0, "gptj", 10, "0", "expect=E_SHAPE"},
    {1, 1, 3, 2, 64, 0, "gptj", 10, "0", "expect=E_ATTR"},
    {1, 1, 2, 1, 64, 66, "gptj", 10, "0", "expect=E_ATTR"},
    {1, 1, 2, 1, 7, 4, "gptj", 10, "0", "expect=E_ATTR"},
};

static void generate(case_list *list)
{
    static const char *const shows[] = {"", "show=keys", "show=values"};
    for (size_t i = 0; i < COUNT(cases); i++) {
        bool once = strstr(cases[i].more, "expect") || strstr(cases[i].more, "show");
        for (size_t k = 0; k < (once || cases[i].held ? 1 : COUNT(shows)); k++)
            add(list, &cases[i], shows[k]);
        if (cases[i].held && !once)
            add(list, &cases[i], "show=values by=gather");
    }
    static const char *const lines[] = {
        "in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8;keys:f32:1x20x8;values:f32:1x20x8;"
        "position:f32:1:constant:7.5",
        "in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8;keys:f32:1x20x8;values:f32:1x20x8;"
        "position:f32:scalar:constant:7.4",
        "in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8;keys:f32:1x20x8;values:f32:1x20x8;"
        "position:f32:1:constant:-0.5",
        "in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8;keys:f32:1x20x8;values:f32:1x20x8;"
        "position:f32:1:constant:-0.6",
        "in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8;keys:f32:1x20x8;values:f32:1x20x8;"
        "position:f32:1:constant:nan",
        "window=9 in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8;keys:f32:1x20x8;values:f32:1x20x8;"
        "position:f32:1:constant:inf",
        "in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8;keys:f32:1x20x8;values:f32:1x20x8;"
        "position:f32:1:constant:1e20",
        "in=q:f32:1x2x16;k:f32:1x2x8;v:f32:1x2x8;keys:f32:1x20x8:constant:nan;"
        "values:f32:1x20x8:constant:inf;position:i32:1:zero",
        "in=q:f32:1x12x16;k:f32:1x12x8;v:f32:1x12x8;keys:f32:1x20x8:constant:nan;"
        "values:f32:1x20x8:constant:inf;position:f32:1:zero",
        "cut=4 in=q:f32:1x2x24;k:f32:1x2x16;v:f32:1x2x16;keys:f32:1x20x8;values:f32:1x20x8;"
        "position:f32:1:constant:7",
        "cut=4 n_rot=8 at=7,19 places=2,0 in=q:f32:2x2x40;keys:f32:3x1x20x8;values:f32:3x1x20x8;"
        "cos:f32:4x4:unit;sin:f32:4x4:unit",
        "cut=3 at=0,5 places=0,1 in=q:f32:2x12x38;keys:f16:2x1x20x8;values:f16:2x1x20x8",
        "cut=1 in=q:f32:3x1x18;k:f32:3x1x10;v:f32:3x1x10;keys:f32:3x1x20x8;values:f32:3x1x20x8;"
        "position:f32:3:index:19",
        "cut=8 n_rot=8 in=q:f32:2x3x32;k:f32:2x3x24;v:f32:2x3x24;keys:f32:2x1x20x8;"
        "values:f32:2x1x20x8;position:f32:2:index:15;cos:f32:6x4:unit;sin:f32:6x4:unit",
        "cut=3 n_rot=6 style=gptj in=q:f32:2x12x22;k:f32:2x12x14;v:f32:2x12x14;"
        "keys:f32:2x1x20x8;values:f32:2x1x20x8;position:f32:2:index:9;cos:f32:24x4:unit;"
        "sin:f32:24x4:unit",
        "in=q:f32:2x2x16;k:f32:2x2x8;v:f32:2x2x8;keys:f32:0x1x20x8;values:f32:0x1x20x8;"
        "position:f32:2x2:zero",
        "in=q:f32:3x1x16;k:f32:3x1x8;v:f32:3x1x8;keys:f32:4x1x20x8;values:f32:4x1x20x8;"
        "position:f32:3x2:constant:nan",
        "in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8;keys:f32:4x1x20x8;values:f32:4x1x20x8;"
        "position:f32:1x2:constant:2.5",
        "in=q:f32:1x12x16;k:f32:1x12x8;v:f32:1x12x8;keys:f32:4x1x20x8;values:f32:4x1x20x8;"
        "position:f32:1x2:constant:inf",
        "in=q:f32:1x1x16;k:f32:1x1x8:constant:3e-6;v:f32:1x1x8:constant:-7.1e-6;keys:f16:1x20x8;"
        "values:f16:1x20x8:constant:2e-5;position:f32:1:constant:3",
        "in=q:f32:1x12x16;k:f32:1x12x8:constant:3e-6;v:f32:1x12x8:constant:-7.1e-6;keys:f16:1x20x8;"
        "values:f16:1x20x8:constant:2e-5;position:f32:1:constant:3",
        "in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8:constant:65519.9;keys:f16:1x20x8;"
        "values:f16:1x20x8;position:f32:1:constant:3",
        "in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8:constant:65520;keys:f16:1x20x8;"
        "values:f16:1x20x8;position:f32:1:constant:3",
        "expect=E_UNSUPPORTED in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8;keys:f32:67108864x1x1x8;"
        "values:f32:67108864x1x1x8;position:f32:1x2:zero",
        "expect=E_DTYPE in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8;keys:f16:1x20x8;values:f32:1x20x8;"
        "position:f32:1:zero",
        "in=q:f32:1x0x16;k:f32:1x0x8;v:f32:1x0x8;keys:f32:1x20x8;values:f32:1x20x8;"
        "position:f32:1:zero",
        "n_rot=4 expect=E_ARITY in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8;keys:f32:1x20x8;"
        "values:f32:1x20x8;position:f32:1:zero",
        "expect=E_SHAPE in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8;keys:f32:1x20x4;"
        "values:f32:1x20x4;position:f32:1:zero",
        "expect=E_SHAPE in=q:f32:1x1x16;k:f32:1x1x8;v:f32:1x1x8;keys:f32:2x1x20x8;"
        "values:f32:2x1x20x8;position:f32:1x3:zero",
        "expect=E_SHAPE in=q:f32:1x1x24;k:f32:1x1x8;keys:f32:1x20x8;values:f32:1x20x8;"
        "position:f32:1:zero"};
    for (size_t k = 0; k < COUNT(shows); k++)
        for (size_t i = 0; i < COUNT(lines); i++)
            if (k == 0 || !strstr(lines[i], "expect"))
                case_add(list, "attention_step heads=2 kv_heads=1 head_dim=8 %s %s", shows[k],
                         lines[i]);
}

static const char *const rows[] = {"attention_step", NULL};

const case_family attention_step_cases = {.rows = rows, .build = build, .generate = generate};
