/*
 * Cases of the gradients of scans: in= the forward op's operands as in sequence.c, dy, and dstate.
 * The result is the packed tensor of all gradients; part=i returns only that of operand i.
 */
#include "conform/cases/cases.h"
#include "op/op.h"

#include <stdio.h>
#include <string.h>

#define OPERANDS 8

enum scan { SELECTIVE, MAMBA2, DELTA, LINEAR };

static const char *const rows[] = {"selective_scan_backward", "mamba2_backward",
                                   "gated_delta_net_backward", "linear_attention_backward", NULL};
static const char *const names[][OPERANDS] = {{"x", "delta", "a", "b", "c", "state", "dy",
                                               "dstate"},
                                              {"x", "dt", "a", "b", "c", "state", "dy", "dstate"},
                                              {"q", "k", "v", "g", "beta", "state", "dy", "dstate"},
                                              {"q", "k", "v", "g", "beta", "state", "dy",
                                               "dstate"}};

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor o[OPERANDS], d[6] = {0};
    int64_t which = case_integer(s, "part", -1);
    size_t row = 0;
    while (strcmp(s->row, rows[row]) != 0)
        row++;
    for (size_t i = 0; i < OPERANDS; i++)
        o[i] = case_tensor(s, inputs, names[row][i]);
    if (row == SELECTIVE)
        d[0] = rlxvk_selective_scan_backward(g, o[0], o[1], o[2], o[3], o[4], o[6], &d[1], &d[2],
                                             &d[3], &d[4]);
    else if (row == MAMBA2)
        d[0] = rlxvk_mamba2_backward(g, o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7], &d[1],
                                     &d[2], &d[3], &d[4], &d[5]);
    else if (row == DELTA)
        d[0] = rlxvk_gated_delta_net_backward(g, o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7],
                                              &d[1], &d[2], &d[3], &d[4], &d[5]);
    else
        d[0] = rlxvk_linear_attention_backward(
            g, o[0], o[1], o[2], o[3], o[4], o[5], o[6], o[7],
            &(rlxvk_linear_attention_options){.scale = (float)case_real(s, "scale", 0),
                                              .in_place = case_integer(s, "in_place", 0) != 0},
            &d[1], &d[2], &d[3], &d[4], &d[5]);
    if (which >= 0 || !d[0].id)
        return d[which < 0 ? 0 : which];
    rlxvk_tensor packed = d[0];
    while (strcmp(node_row(graph_node(g, packed.id - 1))->name, s->row) != 0)
        packed = tensor_of(g, graph_node(g, packed.id - 1)->inputs[0]);
    return packed;
}

/* steps, batch, channels (heads x width), size. Pipelines of the wide ones take longest to compile.
 * Both ops are modes of one kernel, so each wide one goes to only one op, by turns. */
static const int scans[][5] = {{1, 1, 1, 1, 1},     {2, 2, 1, 3, 16},   {65, 2, 3, 5, 16},
                               {65, 1, 2, 7, 1},    {2, 1, 2, 3, 300},  {65, 1, 1, 2, 300},
                               {17, 3, 2, 64, 4},   {7, 1, 1, 1, 600},  {130, 1, 2, 3, 5},
                               {1000, 1, 1, 2, 3},  {1000, 2, 2, 1, 1}, {200, 3, 1, 9, 2},
                               {9, 2, 1, 70, 17},   {8, 2, 2, 130, 5},  {16, 1, 4, 200, 16},
                               {33, 1, 1, 64, 128}, {3, 1, 1, 1030, 3}, {3, 1, 1, 2, 2100}};
enum { WIDE_SCANS = 12 };

static bool takes_scan(enum scan op, size_t i)
{
    return i < WIDE_SCANS || i % 2 == (size_t)op;
}

static void add_selective(case_list *list, const int *s, const char *extra, const char *delta)
{
    int width = s[2] * s[3];
    case_add(list,
             "selective_scan_backward %sin=x:f32:%dx%dx%d:unit;delta:f32:%dx%dx%d:range:%s;"
             "a:f32:%dx%d:range:-1:-0.01;b:f32:%dx%dx%d:unit;c:f32:%dx%dx%d:unit;"
             "dy:f32:%dx%dx%d:unit",
             extra, s[1], s[0], width, s[1], s[0], width, delta, width, s[4], s[1], s[0], s[4],
             s[1], s[0], s[4], s[1], s[0], width);
}

static void generate_selective(case_list *list)
{
    static const int parts[] = {70, 2, 1, 5, 7};
    for (size_t i = 0; i < COUNT(scans); i++) {
        if (!takes_scan(SELECTIVE, i))
            continue;
        add_selective(list, scans[i], "", "0:1");
        if (scans[i][0] == 65) {
            add_selective(list, scans[i], "", "0:0");
            add_selective(list, scans[i], "", "50:60");
        }
        if (scans[i][0] >= 130)
            add_selective(list, scans[i], "", "0:0.01");
    }
    for (int i = 0; i < 5; i++) {
        char extra[16];
        snprintf(extra, sizeof extra, "part=%d ", i);
        add_selective(list, parts, extra, "0:1");
    }
    static const char *const lines[] = {
        "in=x:f32:0x3x4;delta:f32:0x3x4;a:f32:4x2;b:f32:0x3x2;c:f32:0x3x2;dy:f32:0x3x4",
        "in=x:f32:2x0x4;delta:f32:2x0x4;a:f32:4x2;b:f32:2x0x2;c:f32:2x0x2;dy:f32:2x0x4",
        "in=x:f32:2x3x0;delta:f32:2x3x0;a:f32:0x2;b:f32:2x3x2;c:f32:2x3x2;dy:f32:2x3x0",
        "in=x:f32:2x3x4:special;delta:f32:2x3x4:positive;a:f32:4x2;b:f32:2x3x2:one;c:f32:2x3x2;"
        "dy:f32:2x3x4",
        "in=x:f32:2x3x4;delta:f32:2x3x4:positive;a:f32:4x2;b:f32:2x3x2;c:f32:2x3x2;"
        "dy:f32:2x3x4:special",
        "in=x:f16:2x3x4;delta:f32:2x3x4;a:bf16:4x2;b:f32:2x3x2;c:f16:2x3x2;dy:f32:2x3x4",
        "expect=E_SHAPE in=x:f32:2x3x4;delta:f32:2x3x4;a:f32:4x0;b:f32:2x3x0;c:f32:2x3x0;"
        "dy:f32:2x3x4",
        "expect=E_SHAPE in=x:f32:2x3x4;delta:f32:2x3x4;a:f32:4x2;b:f32:2x3x2;c:f32:2x3x2;"
        "dy:f32:2x3x2",
        "expect=E_SHAPE in=x:f32:2x3x4;delta:f32:2x3x3;a:f32:4x2;b:f32:2x3x2;c:f32:2x3x2;"
        "dy:f32:2x3x4",
        "expect=E_ARITY in=x:f32:2x3x4;delta:f32:2x3x4;a:f32:4x2;b:f32:2x3x2;c:f32:2x3x2",
        "expect=E_DTYPE in=x:u8:2x3x4;delta:f32:2x3x4;a:f32:4x2;b:f32:2x3x2;c:f32:2x3x2;"
        "dy:f32:2x3x4"};
    case_add_all(list, "selective_scan_backward", lines, COUNT(lines));
}

/* states: 0 none; 1 an initial one; 2 also a gradient of the final one */
static void add_mamba2(case_list *list, const int *s, const char *extra, const char *dt, int states)
{
    char carried[160] = "", given[60];
    snprintf(given, sizeof given, ":f32:%dx%dx%dx%d:unit", s[1], s[2], s[3], s[4]);
    if (states)
        snprintf(carried, sizeof carried, ";state%s%s%s", given, states > 1 ? ";dstate" : "",
                 states > 1 ? given : "");
    case_add(list,
             "mamba2_backward %sin=x:f32:%dx%dx%dx%d:unit;dt:f32:%dx%dx%d:range:%s;"
             "a:f32:%d:range:-1:-0.01;b:f32:%dx%dx%dx%d:unit;c:f32:%dx%dx%dx%d:unit;"
             "dy:f32:%dx%dx%dx%d:unit%s",
             extra, s[1], s[0], s[2], s[3], s[1], s[0], s[2], dt, s[2], s[1], s[0], s[2], s[4],
             s[1], s[0], s[2], s[4], s[1], s[0], s[2], s[3], carried);
}

static void generate_mamba2(case_list *list)
{
    static const int empty[][5] = {{0, 2, 1, 3, 4},
                                   {3, 0, 1, 3, 4},
                                   {3, 2, 0, 3, 4},
                                   {3, 2, 1, 0, 4}};
    static const int parts[] = {70, 2, 3, 5, 7};
    for (size_t i = 0; i < COUNT(scans); i++) {
        if (!takes_scan(MAMBA2, i))
            continue;
        add_mamba2(list, scans[i], "", "0:1", 0);
        add_mamba2(list, scans[i], "", scans[i][0] == 65 ? "50:60" : "0:0.1", 1 + (int)i % 2);
        if (scans[i][0] == 65)
            add_mamba2(list, scans[i], "", "0:0", 2);
    }
    for (int i = 0; i < 6; i++) {
        char extra[16];
        snprintf(extra, sizeof extra, "part=%d ", i);
        add_mamba2(list, parts, extra, "0:1", 2);
    }
    for (size_t i = 0; i < COUNT(empty); i++)
        for (int states = 0; states < 3; states++)
            add_mamba2(list, empty[i], "", "0:1", states);
    static const char *const lines[] = {
        "in=x:f32:1x2x2x3;dt:f32:1x2x2;a:f32:2;b:f32:1x2x2x4;c:f32:1x2x2x4;dy:f32:1x2x3x2",
        "in=x:f32:1x2x2x3;dt:f32:1x2x2;a:f32:3;b:f32:1x2x2x4;c:f32:1x2x2x4;dy:f32:1x2x2x3",
        "in=x:f32:1x2x2x3;dt:f32:1x2x2;a:f32:2;b:f32:1x2x2x4;c:f32:1x2x2x4;state:f32:1x2x4x3;"
        "dy:f32:1x2x2x3",
        "in=x:f32:1x2x2x3;dt:f32:1x2x2;a:f32:2;b:f32:1x2x2x4;c:f32:1x2x2x4;state:f32:1x2x3x4;"
        "dy:f32:1x2x2x3;dstate:f32:1x2x4x3"};
    case_add_all(list, "mamba2_backward expect=E_SHAPE", lines, COUNT(lines));
    case_add(list, "mamba2_backward expect=E_ARITY in=x:f32:1x2x2x3;dt:f32:1x2x2;a:f32:2;"
                   "b:f32:1x2x2x4;c:f32:1x2x2x4;dy:f32:1x2x2x3;dstate:f32:1x2x3x4");
}

/* s: steps, batch, heads, size; states as above. Keys are scaled so that their length is below 1.
 */
static void add_delta(case_list *list, const int *s, const char *extra, const char *g,
                      const char *beta, int states)
{
    char carried[160] = "", given[60];
    double reach = s[3] >= 64 ? 0.08 : s[3] > 8 ? 0.2 : 0.35;
    snprintf(given, sizeof given, ":f32:%dx%dx%dx%d:unit", s[1], s[2], s[3], s[3]);
    if (states)
        snprintf(carried, sizeof carried, ";state%s%s%s", given, states > 1 ? ";dstate" : "",
                 states > 1 ? given : "");
    case_add(list,
             "gated_delta_net_backward %sin=q:f32:%dx%dx%dx%d:unit;k:f32:%dx%dx%dx%d:range:-%g:%g;"
             "v:f32:%dx%dx%dx%d:unit;g:f32:%dx%dx%d:%s;beta:f32:%dx%dx%d:%s;dy:f32:%dx%dx%dx%d:unit"
             "%s",
             extra, s[1], s[0], s[2], s[3], s[1], s[0], s[2], s[3], reach, reach, s[1], s[0], s[2],
             s[3], s[1], s[0], s[2], g, s[1], s[0], s[2], beta, s[1], s[0], s[2], s[3], carried);
}

static void generate_delta(case_list *list)
{
    static const int shapes[][4] = {{1, 1, 1, 1},   {5, 2, 3, 3},   {64, 1, 2, 3},   {5, 2, 2, 64},
                                    {64, 1, 1, 64}, {5, 1, 3, 128}, {1, 2, 1, 128},  {4, 1, 1, 256},
                                    {3, 1, 1, 300}, {6, 4, 9, 17},  {1000, 1, 1, 2}, {9, 1, 40, 33},
                                    {2, 1, 1, 512}};
    static const int empty[][4] = {{0, 2, 1, 3}, {3, 0, 1, 3}, {3, 2, 0, 3}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        add_delta(list, shapes[i], "", "range:-2:0", "range:0:1", 0);
        add_delta(list, shapes[i], "", "zero", "one", (int)i % 3);
        add_delta(list, shapes[i], "", "range:-1:0", "range:0:1", 1 + (int)i % 2);
    }
    for (int i = 0; i < 6; i++) {
        char extra[16];
        snprintf(extra, sizeof extra, "part=%d ", i);
        add_delta(list, shapes[1], extra, "range:-1:0", "range:0:1", 2);
    }
    for (size_t i = 0; i < COUNT(empty); i++)
        for (int states = 0; states < 3; states++)
            add_delta(list, empty[i], "", "zero", "one", states);
    add_delta(list, shapes[1], "", "range:-50:-40", "range:0:1", 2);
    add_delta(list, shapes[1], "", "range:0:0.5", "range:1:3", 2);
    add_delta(list, shapes[1], "", "special", "one", 2);
    add_delta(list, (int[]){2, 1, 1, 513}, "expect=E_UNSUPPORTED ", "zero", "one", 0);
    add_delta(list, (int[]){2, 1, 1, 0}, "expect=E_SHAPE ", "zero", "one", 0);
    static const char *const lines[] = {
        "in=q:f32:1x2x2x3;k:f32:1x2x2x2;v:f32:1x2x2x3;g:f32:1x2x2;beta:f32:1x2x2;dy:f32:1x2x2x3",
        "in=q:f32:1x2x2x3;k:f32:1x2x2x3;v:f32:1x2x2x3;g:f32:1x2x2;beta:f32:1x2x2;dy:f32:1x2x2",
        ("in=q:f32:1x2x2x3;k:f32:1x2x2x3;v:f32:1x2x2x3;g:f32:1x2x2;beta:f32:1x2x2;"
         "state:f32:1x2x3x2;dy:f32:1x2x2x3")};
    case_add_all(list, "gated_delta_net_backward expect=E_SHAPE", lines, COUNT(lines));
    case_add(list, "gated_delta_net_backward expect=E_ARITY in=q:f32:1x2x2x3;k:f32:1x2x2x3;"
                   "v:f32:1x2x2x3;g:f32:1x2x2;beta:f32:1x2x2;state:f32:1x2x3x3");
}

/* s: steps, batch, heads, queries of each head, key width, value width */
static void add_linear(case_list *list, const int *s, const char *extra, const char *g,
                       const char *beta, int states)
{
    char carried[160] = "", decay[60] = "", strength[60] = "", given[60];
    double reach = s[4] >= 64 ? 0.08 : s[4] > 8 ? 0.2 : 0.35;
    snprintf(given, sizeof given, ":f32:%dx%dx%dx%d:unit", s[1], s[2], s[4], s[5]);
    if (states)
        snprintf(carried, sizeof carried, ";state%s%s%s", given, states > 1 ? ";dstate" : "",
                 states > 1 ? given : "");
    if (*g == 'x') /* by key */
        snprintf(decay, sizeof decay, ";g:f32:%dx%dx%dx%d:%s", s[1], s[0], s[2], s[4], g + 1);
    else if (*g)
        snprintf(decay, sizeof decay, ";g:f32:%dx%dx%d:%s", s[1], s[0], s[2], g);
    if (*beta)
        snprintf(strength, sizeof strength, ";beta:f32:%dx%dx%d:%s", s[1], s[0], s[2], beta);
    case_add(list,
             "linear_attention_backward %sin=q:f32:%dx%dx%dx%d:unit;k:f32:%dx%dx%dx%d:range:-%g:%g;"
             "v:f32:%dx%dx%dx%d:unit%s%s;dy:f32:%dx%dx%dx%d:unit%s",
             extra, s[1], s[0], s[2] * s[3], s[4], s[1], s[0], s[2], s[4], reach, reach, s[1], s[0],
             s[2], s[5], decay, strength, s[1], s[0], s[2] * s[3], s[5], carried);
}

static void generate_linear(case_list *list)
{
    static const char *const decays[] = {"", "range:-1:0", "xrange:-1:0"};
    static const int shapes[][6] = {{1, 1, 1, 1, 1, 1},    {5, 2, 3, 1, 3, 7},
                                    {33, 1, 2, 2, 5, 3},   {6, 2, 2, 3, 64, 32},
                                    {5, 1, 1, 4, 17, 130}, {9, 3, 2, 1, 128, 1},
                                    {4, 1, 2, 2, 1, 9},    {3, 1, 1, 2, 300, 40},
                                    {2, 1, 1, 2, 512, 6}};
    static const int empty[][6] = {{0, 2, 1, 2, 3, 4}, {3, 0, 1, 2, 3, 4}, {3, 2, 0, 2, 3, 4}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (size_t k = 0; k < COUNT(decays); k++) {
            add_linear(list, shapes[i], "", decays[k], "", (int)(i + k) % 3);
            add_linear(list, shapes[i], k % 2 ? "" : "scale=-2 ", decays[k], "range:0:1",
                       (int)(i + k + 1) % 3);
        }
    for (int i = 0; i < 6; i++) {
        char extra[24];
        snprintf(extra, sizeof extra, "part=%d ", i);
        add_linear(list, shapes[2], extra, decays[1 + i % 2], "range:0:1", 2);
    }
    for (size_t i = 0; i < COUNT(empty); i++)
        for (int states = 0; states < 3; states++)
            add_linear(list, empty[i], "", decays[states], states % 2 ? "one" : "", states);
    add_linear(list, shapes[2], "", "xrange:-50:-40", "range:0:1", 2);
    add_linear(list, shapes[2], "", "xrange:0:0.5", "range:1:3", 2);
    add_linear(list, shapes[2], "", "xspecial", "one", 2);
    add_linear(list, (int[]){2, 1, 1, 1, 513, 2}, "expect=E_UNSUPPORTED ", "", "", 0);
    add_linear(list, shapes[1], "in_place=1 expect=E_ATTR ", "", "", 1);
    add_linear(list, shapes[1], "scale=nan expect=E_ATTR ", "", "", 1);
    static const char *const lines[] = {
        "in=q:f32:1x2x2x3;k:f32:1x2x2x3;v:f32:1x2x2x4;dy:f32:1x2x2x3",
        "in=q:f32:1x2x4x3;k:f32:1x2x2x3;v:f32:1x2x2x4;dy:f32:1x2x2x4",
        "in=q:f32:1x2x2x3;k:f32:1x2x2x3;v:f32:1x2x2x4;state:f32:1x2x3x4;dy:f32:1x2x2x4;"
        "dstate:f32:1x2x4x3"};
    case_add_all(list, "linear_attention_backward expect=E_SHAPE", lines, COUNT(lines));
    case_add(list, "linear_attention_backward expect=E_ARITY in=q:f32:1x2x2x3;k:f32:1x2x2x3;"
                   "v:f32:1x2x2x4;dy:f32:1x2x2x4;dstate:f32:1x2x3x4");
}

static void generate(case_list *list)
{
    generate_selective(list);
    generate_mamba2(list);
    generate_delta(list);
    generate_linear(list);
}

const case_family sequence_backward_cases = {.rows = rows, .build = build, .generate = generate};
