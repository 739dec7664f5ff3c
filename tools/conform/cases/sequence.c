/*
 * Cases of the sequence models:
 *   lstm, gru, rnn    hidden, layers, bidirectional, relu; in=x, h0, c0 and weights: either w_ih,
 *                     w_hh, bias (gru: b_ih, b_hh), or named as in golden files
 *   selective_scan    in=x, delta, a, b, c
 *   mamba2            in=x, dt, a, b, c, state
 *   gated_delta_net   in=q, k, v, g, beta, state
 *   linear_attention  scale; in=q, k, v, and if given, g, beta, state
 *
 * More keys:
 *   show=h, c or state   returns a final state
 *   in_place=1           writes the states over their operands; show returns these
 *   split=t              cuts axis 1 of the sequence operands at t and runs two nets; the second
 *                        one begins with the states of the first, and its result (or states) is
 *                        returned
 */
#include "conform/cases/cases.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))
#define MOST_OPERANDS 6

/* The operands of one op, in order. Those before `sequences` and x have time on axis 1. */
typedef struct call {
    rlxvk_graph *graph;
    const case_spec *spec;
    rlxvk_tensor operands[MOST_OPERANDS];
    rlxvk_tensor result, states[2];
} call;

static bool is_row(const case_spec *s, const char *name)
{
    return strcmp(s->row, name) == 0;
}

/* ---- Recurrent nets ---- */

/* Flattens and concatenates the inputs `base` and base_reverse. RLXVK_NONE if they are absent. */
static rlxvk_tensor both_directions(call *c, const rlxvk_tensor *inputs, const char *base)
{
    char reverse[40];
    rlxvk_tensor parts[2] = {case_tensor(c->spec, inputs, base)};
    snprintf(reverse, sizeof reverse, "%s_reverse", base);
    parts[1] = case_tensor(c->spec, inputs, reverse);
    size_t count = parts[1].id ? 2 : 1;
    for (size_t i = 0; i < count && parts[0].id; i++)
        parts[i] = rlxvk_reshape(c->graph, parts[i], RLXVK_SHAPE(-1));
    return count == 2 ? rlxvk_concat(c->graph, parts, 2, 0) : parts[0];
}

/* The input `name`; or, if it is absent, PyTorch's parameters, packed. */
static rlxvk_tensor weight(call *c, const rlxvk_tensor *inputs, const char *name,
                           const char *torch_name)
{
    rlxvk_tensor given = case_tensor(c->spec, inputs, name);
    return given.id ? given : both_directions(c, inputs, torch_name);
}

static void recurrent_operands(call *c, const rlxvk_tensor *inputs)
{
    const case_spec *s = c->spec;
    rlxvk_tensor *o = c->operands;
    size_t at = 4;
    o[0] = case_tensor(s, inputs, "x");
    o[1] = weight(c, inputs, "w_ih", "weight_ih_l0");
    o[2] = weight(c, inputs, "w_hh", "weight_hh_l0");
    if (is_row(s, "gru")) {
        o[3] = weight(c, inputs, "b_ih", "bias_ih_l0");
        o[at++] = weight(c, inputs, "b_hh", "bias_hh_l0");
    } else {
        o[3] = case_tensor(s, inputs, "bias");
        if (!o[3].id)
            o[3] = rlxvk_add(c->graph, both_directions(c, inputs, "bias_ih_l0"),
                             both_directions(c, inputs, "bias_hh_l0"));
    }
    o[at++] = case_tensor(s, inputs, "h0");
    if (is_row(s, "lstm"))
        o[at] = case_tensor(s, inputs, "c0");
}

static void build_recurrent(call *c)
{
    const case_spec *s = c->spec;
    const rlxvk_tensor *o = c->operands;
    rlxvk_recurrent_options options = {.hidden_size = case_integer(s, "hidden", 0),
                                       .num_layers = case_integer(s, "layers", 0),
                                       .bidirectional = case_integer(s, "bidirectional", 0) != 0,
                                       .in_place = case_integer(s, "in_place", 0) != 0,
                                       .relu = case_integer(s, "relu", 0) != 0};
    if (is_row(s, "lstm"))
        c->result = rlxvk_lstm(c->graph, o[0], o[1], o[2], o[3], o[4], o[5], &options,
                               &c->states[0], &c->states[1]);
    else if (is_row(s, "gru"))
        c->result =
            rlxvk_gru(c->graph, o[0], o[1], o[2], o[3], o[4], o[5], &options, &c->states[0]);
    else
        c->result = rlxvk_rnn(c->graph, o[0], o[1], o[2], o[3], o[4], &options, &c->states[0]);
}

/* ---- Scans ---- */

static void scan_operands(call *c, const rlxvk_tensor *inputs)
{
    static const char *const names[][MOST_OPERANDS] = {{"x", "delta", "a", "b", "c", "state"},
                                                       {"x", "dt", "a", "b", "c", "state"},
                                                       {"q", "k", "v", "g", "beta", "state"}};
    size_t row = is_row(c->spec, "selective_scan") ? 0 : is_row(c->spec, "mamba2") ? 1 : 2;
    for (size_t i = 0; i < MOST_OPERANDS; i++)
        c->operands[i] = case_tensor(c->spec, inputs, names[row][i]);
}

static void build_scan(call *c)
{
    const rlxvk_tensor *o = c->operands;
    bool in_place = case_integer(c->spec, "in_place", 0) != 0;
    if (is_row(c->spec, "selective_scan"))
        c->result = rlxvk_selective_scan(c->graph, o[0], o[1], o[2], o[3], o[4]);
    else if (is_row(c->spec, "mamba2"))
        c->result =
            rlxvk_mamba2(c->graph, o[0], o[1], o[2], o[3], o[4], o[5], in_place, &c->states[0]);
    else if (is_row(c->spec, "gated_delta_net"))
        c->result = rlxvk_gated_delta_net(c->graph, o[0], o[1], o[2], o[3], o[4], o[5], in_place,
                                          &c->states[0]);
    else
        c->result = rlxvk_linear_attention(
            c->graph, o[0], o[1], o[2], o[3], o[4], o[5],
            &(rlxvk_linear_attention_options){.scale = (float)case_real(c->spec, "scale", 0),
                                              .in_place = in_place},
            &c->states[0]);
}

/* ---- Building ---- */

static bool is_recurrent(const case_spec *s)
{
    return is_row(s, "lstm") || is_row(s, "gru") || is_row(s, "rnn");
}

/* Index of the first state among the operands. */
static size_t state_index(const case_spec *s)
{
    return is_row(s, "lstm") || is_row(s, "rnn") ? 4 : 5;
}

static void emit(call *c)
{
    c->states[0] = c->states[1] = RLXVK_NONE;
    if (is_recurrent(c->spec))
        build_recurrent(c);
    else
        build_scan(c);
    if (case_integer(c->spec, "in_place", 0) && state_index(c->spec) < MOST_OPERANDS) {
        c->states[0] = c->operands[state_index(c->spec)];
        if (is_row(c->spec, "lstm"))
            c->states[1] = c->operands[5];
    }
}

/* Whether operand i has time steps on axis 1. */
static bool has_time(const case_spec *s, size_t i)
{
    bool rates = i == 2 && (is_row(s, "selective_scan") || is_row(s, "mamba2"));
    return is_recurrent(s) ? i == 0 : i < 5 && !rates;
}

static void cut(call *c, const rlxvk_tensor *whole, int64_t from, int64_t to)
{
    for (size_t i = 0; i < MOST_OPERANDS; i++)
        if (has_time(c->spec, i) && whole[i].id)
            c->operands[i] = rlxvk_narrow(c->graph, whole[i], 1, from, to - from);
}

static void emit_split(call *c, int64_t at)
{
    rlxvk_tensor whole[MOST_OPERANDS];
    memcpy(whole, c->operands, sizeof whole);
    int64_t steps = rlxvk_tensor_shape(c->graph, whole[0]).dims[1];
    cut(c, whole, 0, at);
    emit(c);
    c->operands[state_index(c->spec)] = c->states[0];
    if (is_row(c->spec, "lstm"))
        c->operands[5] = c->states[1];
    cut(c, whole, at, steps);
    emit(c);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    call c = {.graph = g, .spec = s};
    const char *show = case_word(s, "show", "y");
    if (is_recurrent(s))
        recurrent_operands(&c, inputs);
    else
        scan_operands(&c, inputs);
    if (case_integer(s, "same", 0)) /* one tensor serves as both states */
        c.operands[5] = c.operands[4];
    if (case_integer(s, "computed", 0)) /* the state is not a leaf */
        c.operands[state_index(s)] = rlxvk_neg(g, c.operands[state_index(s)]);
    if (case_integer(s, "split", 0))
        emit_split(&c, case_integer(s, "split", 0));
    else
        emit(&c);
    return *show == 'y' ? c.result : c.states[*show == 'c'];
}

/* ---- Lines ---- */

typedef struct net {
    int batch, steps, inputs, hidden, layers, directions;
} net;

static const char *const recurrent_rows[] = {"lstm", "gru", "rnn"};
static const int recurrent_gates[] = {4, 3, 1};

/* Weights shrink as the width grows, so that sums stay near 1. */
static void add_net(case_list *list, size_t row, net n, bool carry, const char *extra)
{
    char line[CASE_TEXT];
    int gates = recurrent_gates[row] * n.hidden, blocks = n.layers * n.directions;
    int w_ih = n.directions * gates * (n.inputs + (n.layers - 1) * n.directions * n.hidden);
    double reach = n.hidden > 40 ? 0.1 : 0.5;
    int at =
        snprintf(line, sizeof line,
                 "%s hidden=%d layers=%d bidirectional=%d%s in=x:f32:%dx%dx%d;"
                 "w_ih:f32:%d:range:-%g:%g;w_hh:f32:%d:range:-%g:%g",
                 recurrent_rows[row], n.hidden, n.layers, n.directions == 2, extra, n.batch,
                 n.steps, n.inputs, w_ih, reach, reach, blocks * gates * n.hidden, reach, reach);
    const char *bias = row == 1 ? ";b_ih:f32:%d:unit;b_hh:f32:%d:unit" : ";bias:f32:%d:unit";
    at += snprintf(line + at, sizeof line - (size_t)at, bias, blocks * gates, blocks * gates);
    for (int i = 0; carry && i < (row == 0 ? 2 : 1); i++)
        at += snprintf(line + at, sizeof line - (size_t)at, ";%s:f32:%dx%dx%d:unit",
                       i ? "c0" : "h0", blocks, n.batch, n.hidden);
    case_add(list, "%s", line);
}

static void generate_shapes(case_list *list, size_t row)
{
    static const net nets[] = {{1, 1, 1, 1, 1, 1},    {1, 2, 5, 4, 1, 1},   {3, 17, 5, 4, 2, 2},
                               {3, 17, 5, 33, 1, 1},  {1, 17, 1, 33, 2, 1}, {3, 2, 5, 33, 2, 2},
                               {1, 2, 5, 300, 1, 2},  {3, 3, 5, 300, 1, 1}, {1, 4, 7, 140, 1, 1},
                               {5, 3, 3, 130, 1, 2},  {2, 9, 65, 64, 1, 2}, {9, 3, 4, 20, 1, 1},
                               {70, 3, 2, 5, 1, 2},   {2, 3, 0, 6, 1, 1},   {2, 12, 3, 17, 3, 2},
                               {1, 200, 2, 7, 1, 1},  {7, 3, 5, 150, 1, 2}, {8, 3, 5, 150, 1, 2},
                               {33, 4, 3, 260, 1, 1}, {1, 2000, 1, 2, 1, 1}};
    for (size_t i = 0; i < COUNT(nets); i++)
        add_net(list, row, nets[i], false, "");
}

static void generate_states(case_list *list, size_t row)
{
    static const net nets[] = {{1, 1, 2, 3, 1, 1}, {3, 17, 5, 33, 2, 2}, {2, 1, 3, 33, 1, 2}};
    static const int wide_hidden[] = {140, 150, 260}; /* each exceeds one workgroup's share */
    static const net longer = {2, 8, 3, 10, 2, 1};
    const net wide = {2, 3, 3, wide_hidden[row], 1, 2};
    static const char *const shows[] = {"", " show=h", " show=c"};
    char extra[64];
    size_t count = row == 0 ? 3 : 2;
    for (size_t i = 0; i < COUNT(nets); i++)
        for (size_t k = 0; k < count; k++) {
            add_net(list, row, nets[i], true, shows[k]);
            snprintf(extra, sizeof extra, " in_place=1%s", shows[k]);
            add_net(list, row, nets[i], true, extra);
        }
    for (size_t k = 0; k < count; k++) {
        snprintf(extra, sizeof extra, " split=4%s", shows[k]);
        add_net(list, row, longer, true, extra);
        snprintf(extra, sizeof extra, " in_place=1 split=4%s", shows[k]);
        add_net(list, row, longer, true, extra);
        snprintf(extra, sizeof extra, " in_place=1 split=1%s", shows[k]);
        add_net(list, row, wide, true, extra);
    }
}

static void generate_edges(case_list *list, size_t row)
{
    static const net empty[] = {{0, 3, 2, 4, 1, 1}, {2, 0, 2, 4, 2, 2}};
    static const net good = {2, 3, 2, 4, 1, 1};
    for (size_t i = 0; i < COUNT(empty); i++) {
        add_net(list, row, empty[i], false, "");
        add_net(list, row, empty[i], true, "");
        add_net(list, row, empty[i], true, " show=h");
        add_net(list, row, empty[i], true, " in_place=1 show=h");
    }
    add_net(list, row, good, false, " in_place=1 expect=E_ATTR");
    add_net(list, row, good, true, " in_place=1 computed=1 expect=E_ATTR");
    add_net(list, row, (net){2, 3, 2, 0, 1, 1}, false, " expect=E_ATTR");
    if (row < 2)
        add_net(list, row, good, false, " relu=1 expect=E_ATTR");
}

static void generate_refusals(case_list *list)
{
    static const char *const lines[] = {
        "lstm hidden=2 expect=E_SHAPE in=x:f32:2x3;w_ih:f32:8x3;w_hh:f32:8x2;bias:f32:8",
        "lstm hidden=2 expect=E_SHAPE in=x:f32:1x2x3;w_ih:f32:8x2;w_hh:f32:8x2;bias:f32:8",
        "lstm hidden=2 expect=E_SHAPE in=x:f32:1x2x3;w_ih:f32:8x3;w_hh:f32:8x3;bias:f32:8",
        "lstm hidden=2 expect=E_SHAPE in=x:f32:1x2x3;w_ih:f32:8x3;w_hh:f32:8x2;bias:f32:6",
        "lstm hidden=2 expect=E_ARITY "
        "in=x:f32:1x2x3;w_ih:f32:8x3;w_hh:f32:8x2;bias:f32:8;h0:f32:1x1x2",
        "lstm hidden=2 expect=E_ARITY "
        "in=x:f32:1x2x3;w_ih:f32:8x3;w_hh:f32:8x2;bias:f32:8;c0:f32:1x1x2",
        "lstm hidden=2 expect=E_SHAPE "
        "in=x:f32:1x2x3;w_ih:f32:8x3;w_hh:f32:8x2;bias:f32:8;h0:f32:1x1x2;c0:f32:1x2",
        "lstm hidden=2 in_place=1 same=1 expect=E_ATTR "
        "in=x:f32:1x2x3;w_ih:f32:8x3;w_hh:f32:8x2;bias:f32:8;h0:f32:1x1x2",
        "lstm hidden=40000 expect=E_TOO_LARGE in=x:f32:1x2x3;w_ih:f32:8;w_hh:f32:8;bias:f32:8",
        "lstm hidden=2 layers=-1 expect=E_ATTR in=x:f32:1x2x3;w_ih:f32:8;w_hh:f32:8;bias:f32:8",
        "gru hidden=2 expect=E_SHAPE "
        "in=x:f32:1x2x3;w_ih:f32:6x3;w_hh:f32:6x2;b_ih:f32:6;b_hh:f32:2",
        "gru hidden=2 expect=E_SHAPE "
        "in=x:f32:1x2x3;w_ih:f32:6x3;w_hh:f32:6x2;b_ih:f32:6;b_hh:f32:6;h0:f32:1x2x2",
        "rnn hidden=2 expect=E_DTYPE in=x:u8:1x2x3;w_ih:f32:2x3;w_hh:f32:2x2;bias:f32:2",
        "lstm hidden=2 in=x:f16:1x4x3;w_ih:f16:8x3;w_hh:bf16:8x2;bias:f16:8",
        "lstm hidden=2 in=x:f16:1x4x3;w_ih:f32:8x3;w_hh:bf16:8x2;bias:f32:8",
        "gru hidden=2 in=x:f32:1x4x3;w_ih:f16:6x3;w_hh:bf16:6x2;b_ih:f32:6;b_hh:f16:6",
        "lstm hidden=3 in=x:f32:2x6x2:range:-90:90;w_ih:f32:12x2;w_hh:f32:12x3;bias:f32:12",
        "gru hidden=3 in=x:f32:2x6x2:range:-90:90;w_ih:f32:9x2;w_hh:f32:9x3;b_ih:f32:9;b_hh:f32:9",
        "lstm hidden=3 in=x:f32:2x6x2:special;w_ih:f32:12x2:one;w_hh:f32:12x3;bias:f32:12",
        "gru hidden=3 in=x:f32:2x6x2:special;w_ih:f32:9x2:one;w_hh:f32:9x3;b_ih:f32:9;b_hh:f32:9",
        "rnn hidden=3 in=x:f32:2x6x2:special;w_ih:f32:3x2:one;w_hh:f32:3x3;bias:f32:3"};
    case_add_all(list, "", lines, COUNT(lines));
}

static void generate_relu(case_list *list)
{
    static const net nets[] = {{3, 17, 5, 4, 2, 2}, {2, 5, 5, 33, 1, 1}, {2, 3, 5, 300, 1, 1}};
    for (size_t i = 0; i < COUNT(nets); i++)
        case_add(list,
                 "rnn relu=1 hidden=%d layers=%d bidirectional=%d in=x:f32:%dx%dx%d;"
                 "w_ih:f32:%d:unit;w_hh:f32:%d:range:-%g:%g;bias:f32:%d:unit",
                 nets[i].hidden, nets[i].layers, nets[i].directions == 2, nets[i].batch,
                 nets[i].steps, nets[i].inputs,
                 nets[i].directions * nets[i].hidden *
                     (nets[i].inputs + (nets[i].layers - 1) * nets[i].directions * nets[i].hidden),
                 nets[i].layers * nets[i].directions * nets[i].hidden * nets[i].hidden,
                 0.9 / nets[i].hidden, 0.9 / nets[i].hidden,
                 nets[i].layers * nets[i].directions * nets[i].hidden);
    case_add(list, "rnn relu=1 hidden=3 in=x:f32:2x6x2:special;w_ih:f32:3x2:one;"
                   "w_hh:f32:3x3:zero;bias:f32:3");
}

/* steps, batch, channels (heads x width), size */
static const int scans[][5] = {{1, 1, 1, 1, 1},    {2, 2, 1, 3, 16},    {65, 2, 3, 5, 16},
                               {65, 1, 2, 7, 1},   {9, 2, 1, 70, 17},   {2, 1, 2, 3, 300},
                               {65, 1, 1, 2, 300}, {3, 1, 1, 2, 2100},  {17, 3, 2, 64, 4},
                               {8, 2, 2, 130, 5},  {16, 1, 4, 200, 16}, {7, 1, 1, 1, 600}};

static void generate_selective(case_list *list)
{
    const char *form = "selective_scan in=x:f32:%dx%dx%d:%s;delta:f32:%dx%dx%d:range:%s;"
                       "a:f32:%dx%d:range:-1:-0.01;b:f32:%dx%dx%d:unit;c:f32:%dx%dx%d:unit";
    static const char *const deltas[] = {"0:1", "0:0", "50:60"};
    for (size_t i = 0; i < COUNT(scans); i++) {
        const int *s = scans[i];
        int width = s[2] * s[3];
        for (size_t k = 0; k < (s[0] == 65 ? 3 : 1); k++)
            case_add(list, form, s[1], s[0], width, k ? "unit" : "uniform", s[1], s[0], width,
                     deltas[k], width, s[4], s[1], s[0], s[4], s[1], s[0], s[4]);
    }
    static const char *const lines[] = {
        "in=x:f32:0x3x4;delta:f32:0x3x4;a:f32:4x2;b:f32:0x3x2;c:f32:0x3x2",
        "in=x:f32:2x0x4;delta:f32:2x0x4;a:f32:4x2;b:f32:2x0x2;c:f32:2x0x2",
        "in=x:f32:2x3x0;delta:f32:2x3x0;a:f32:0x2;b:f32:2x3x2;c:f32:2x3x2",
        "in=x:f32:2x3x4:special;delta:f32:2x3x4:positive;a:f32:4x2;b:f32:2x3x2:one;c:f32:2x3x2:one",
        "in=x:f16:2x3x4;delta:f32:2x3x4;a:f32:4x2;b:f32:2x3x2;c:f32:2x3x2",
        "expect=E_SHAPE in=x:f32:2x3x4;delta:f32:2x3x4;a:f32:4x0;b:f32:2x3x0;c:f32:2x3x0",
        "expect=E_SHAPE in=x:f32:2x3x4;delta:f32:2x3x3;a:f32:4x2;b:f32:2x3x2;c:f32:2x3x2",
        "expect=E_SHAPE in=x:f32:2x3x4;delta:f32:2x3x4;a:f32:3x2;b:f32:2x3x2;c:f32:2x3x2",
        "expect=E_SHAPE in=x:f32:2x3x4;delta:f32:2x3x4;a:f32:4x2;b:f32:2x3x2;c:f32:2x3x1",
        "expect=E_SHAPE in=x:f32:2x12;delta:f32:2x12;a:f32:4x2;b:f32:2x3x2;c:f32:2x3x2",
        "expect=E_ARITY in=x:f32:2x3x4;delta:f32:2x3x4;a:f32:4x2;b:f32:2x3x2"};
    case_add_all(list, "selective_scan", lines, COUNT(lines));
}

static void add_mamba2(case_list *list, const int *s, const char *extra, const char *dt, bool state)
{
    char carried[80] = "";
    if (state)
        snprintf(carried, sizeof carried, ";state:f32:%dx%dx%dx%d:unit", s[1], s[2], s[3], s[4]);
    case_add(list,
             "mamba2 %sin=x:f32:%dx%dx%dx%d;dt:f32:%dx%dx%d:range:%s;a:f32:%d:range:-1:-0.01;"
             "b:f32:%dx%dx%dx%d:unit;c:f32:%dx%dx%dx%d:unit%s",
             extra, s[1], s[0], s[2], s[3], s[1], s[0], s[2], dt, s[2], s[1], s[0], s[2], s[4],
             s[1], s[0], s[2], s[4], carried);
}

static void generate_mamba2(case_list *list)
{
    static const char *const extras[] = {"", "show=state ", "in_place=1 ",
                                         "in_place=1 show=state "};
    static const int split[] = {11, 2, 3, 5, 16}, wide[] = {4, 1, 2, 3, 2100};
    static const int empty[][5] = {{0, 2, 1, 3, 4}, {3, 0, 1, 3, 4}, {3, 2, 0, 3, 4}};
    for (size_t i = 0; i < COUNT(scans); i++) {
        add_mamba2(list, scans[i], "", "0:1", false);
        add_mamba2(list, scans[i], extras[i % COUNT(extras)], scans[i][0] == 65 ? "50:60" : "0:1",
                   true);
        if (scans[i][0] == 65)
            add_mamba2(list, scans[i], "", "0:0", i % 2);
    }
    for (size_t i = 0; i < COUNT(extras); i++) {
        char extra[64];
        snprintf(extra, sizeof extra, "split=5 %s", extras[i]);
        add_mamba2(list, split, extra, "0:1", true);
        add_mamba2(list, wide, extras[i], "0:1", true);
        for (size_t k = 0; k < COUNT(empty); k++)
            add_mamba2(list, empty[k], extras[i], "0:1", true);
    }
    add_mamba2(list, split, "in_place=1 expect=E_ATTR ", "0:1", false);
    add_mamba2(list, split, "in_place=1 computed=1 expect=E_ATTR ", "0:1", true);
    static const char *const lines[] = {
        "in=x:f32:1x2x2x3;dt:f32:1x2x3;a:f32:2;b:f32:1x2x2x4;c:f32:1x2x2x4",
        "in=x:f32:1x2x2x3;dt:f32:1x2x2;a:f32:3;b:f32:1x2x2x4;c:f32:1x2x2x4",
        "in=x:f32:1x2x2x3;dt:f32:1x2x2;a:f32:2;b:f32:1x2x1x4;c:f32:1x2x1x4",
        "in=x:f32:1x2x2x3;dt:f32:1x2x2;a:f32:2;b:f32:1x2x2x4;c:f32:1x2x2x4;state:f32:1x2x4x3",
        "in=x:f32:2x2x3;dt:f32:1x2x2;a:f32:2;b:f32:1x2x2x4;c:f32:1x2x2x4"};
    case_add_all(list, "mamba2 expect=E_SHAPE", lines, COUNT(lines));
}

/* s: steps, batch, heads, size. Keys are scaled so that their length is below 1. */
static void add_delta(case_list *list, const int *s, const char *extra, const char *g,
                      const char *beta, bool state)
{
    char carried[80] = "";
    double reach = s[3] >= 64 ? 0.08 : s[3] > 8 ? 0.2 : 0.35;
    if (state)
        snprintf(carried, sizeof carried, ";state:f32:%dx%dx%dx%d:unit", s[1], s[2], s[3], s[3]);
    case_add(list,
             "gated_delta_net %sin=q:f32:%dx%dx%dx%d:unit;k:f32:%dx%dx%dx%d:range:-%g:%g;"
             "v:f32:%dx%dx%dx%d;g:f32:%dx%dx%d:%s;beta:f32:%dx%dx%d:%s%s",
             extra, s[1], s[0], s[2], s[3], s[1], s[0], s[2], s[3], reach, reach, s[1], s[0], s[2],
             s[3], s[1], s[0], s[2], g, s[1], s[0], s[2], beta, carried);
}

static void generate_delta(case_list *list)
{
    static const char *const extras[] = {"", "show=state ", "in_place=1 ",
                                         "in_place=1 show=state "};
    static const int shapes[][4] = {{1, 1, 1, 1},   {5, 2, 3, 3},   {64, 1, 2, 3},  {5, 2, 2, 64},
                                    {64, 1, 1, 64}, {5, 1, 3, 128}, {1, 2, 1, 128}, {4, 1, 1, 256},
                                    {3, 1, 1, 300}, {6, 4, 9, 17},  {7, 3, 5, 9},   {9, 1, 40, 33}};
    static const int empty[][4] = {{0, 2, 1, 3}, {3, 0, 1, 3}, {3, 2, 0, 3}};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        add_delta(list, shapes[i], "", "range:-2:0", "range:0:1", false);
        add_delta(list, shapes[i], "", "zero", "one", i % 2);
        add_delta(list, shapes[i], extras[i % COUNT(extras)], "range:-1:0", "range:0:1", true);
    }
    for (size_t i = 0; i < COUNT(extras); i++) {
        char extra[64];
        snprintf(extra, sizeof extra, "split=2 %s", extras[i]);
        add_delta(list, shapes[1], extra, "range:-1:0", "range:0:1", true);
        add_delta(list, shapes[3], extra, "range:-1:0", "range:0:1", true);
        for (size_t k = 0; k < COUNT(empty); k++)
            add_delta(list, empty[k], extras[i], "range:-1:0", "range:0:1", true);
    }
    add_delta(list, (int[]){2, 1, 1, 1030}, "", "range:-1:0", "range:0:1", false);
    add_delta(list, (int[]){2, 1, 1, 2049}, "expect=E_UNSUPPORTED ", "zero", "one", false);
    add_delta(list, (int[]){2, 1, 1, 0}, "expect=E_SHAPE ", "zero", "one", false);
    add_delta(list, shapes[1], "in_place=1 expect=E_ATTR ", "zero", "one", false);
    add_delta(list, shapes[1], "in_place=1 computed=1 expect=E_ATTR ", "zero", "one", true);
    add_delta(list, shapes[1], "", "range:-50:-40", "range:0:1", true);
    static const char *const lines[] = {
        "in=q:f32:1x2x2x3;k:f32:1x2x2x2;v:f32:1x2x2x3;g:f32:1x2x2;beta:f32:1x2x2",
        "in=q:f32:1x2x2x3;k:f32:1x2x2x3;v:f32:1x2x2x4;g:f32:1x2x2;beta:f32:1x2x2",
        "in=q:f32:1x2x2x3;k:f32:1x2x2x3;v:f32:1x2x2x3;g:f32:1x2x1;beta:f32:1x2x2",
        "in=q:f32:1x2x2x3;k:f32:1x2x2x3;v:f32:1x2x2x3;g:f32:1x2x2;beta:f32:1x2x2x1",
        "in=q:f32:2x2x3;k:f32:1x2x2x3;v:f32:1x2x2x3;g:f32:1x2x2;beta:f32:1x2x2"};
    case_add_all(list, "gated_delta_net expect=E_SHAPE", lines, COUNT(lines));
}

/* steps, batch, heads, queries of each head, key width, value width */
typedef int linear_shape[6];

enum { BY_HEAD = 1, BY_KEY = 2, DELTA = 4 };

static void add_linear(case_list *list, const linear_shape s, int rule, const char *extra,
                       bool state)
{
    char given[200];
    int at = 0;
    double reach = s[4] >= 64 ? 0.08 : s[4] > 8 ? 0.2 : 0.35;
    given[0] = 0;
    if (rule & BY_KEY)
        at +=
            snprintf(given, sizeof given, ";g:f32:%dx%dx%dx%d:range:-1:0", s[1], s[0], s[2], s[4]);
    else if (rule & BY_HEAD)
        at += snprintf(given, sizeof given, ";g:f32:%dx%dx%d:range:-1:0", s[1], s[0], s[2]);
    if (rule & DELTA)
        at += snprintf(given + at, sizeof given - (size_t)at, ";beta:f32:%dx%dx%d:range:0:1", s[1],
                       s[0], s[2]);
    if (state)
        snprintf(given + at, sizeof given - (size_t)at, ";state:f32:%dx%dx%dx%d:unit", s[1], s[2],
                 s[4], s[5]);
    case_add(list,
             "linear_attention %sin=q:f32:%dx%dx%dx%d:unit;k:f32:%dx%dx%dx%d:range:-%g:%g;"
             "v:f32:%dx%dx%dx%d:unit%s",
             extra, s[1], s[0], s[2] * s[3], s[4], s[1], s[0], s[2], s[4], reach, reach, s[1], s[0],
             s[2], s[5], given);
}

static void generate_linear(case_list *list)
{
    static const char *const extras[] = {"", "show=state ", "in_place=1 scale=0.5 ",
                                         "in_place=1 show=state ", "scale=-2 "};
    static const int rules[] = {0, BY_HEAD, BY_KEY, DELTA, BY_HEAD | DELTA, BY_KEY | DELTA};
    static const linear_shape shapes[] = {{1, 1, 1, 1, 1, 1},    {5, 2, 3, 1, 3, 7},
                                          {33, 1, 2, 2, 5, 3},   {6, 2, 2, 3, 64, 32},
                                          {5, 1, 1, 4, 17, 130}, {9, 3, 2, 1, 128, 1},
                                          {4, 1, 2, 2, 1, 9},    {3, 1, 1, 2, 300, 40}};
    static const linear_shape empty[] = {{0, 2, 1, 2, 3, 4},
                                         {3, 0, 1, 2, 3, 4},
                                         {3, 2, 0, 2, 3, 4}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (size_t k = 0; k < COUNT(rules); k++) {
            add_linear(list, shapes[i], rules[k], k % 2 ? "" : "scale=1 ", false);
            add_linear(list, shapes[i], rules[k], extras[(i + k) % COUNT(extras)], true);
        }
    for (size_t k = 0; k < COUNT(rules); k++) {
        add_linear(list, shapes[2], rules[k], "split=7 ", true);
        add_linear(list, shapes[3], rules[k], "split=1 in_place=1 show=state ", true);
        add_linear(list, empty[k % COUNT(empty)], rules[k], extras[k % COUNT(extras)], true);
        add_linear(list, (linear_shape){2, 1, 1, 2, 1030, 5}, rules[k], "", k % 2);
    }
    add_linear(list, (linear_shape){2, 1, 1, 1, 2049, 1}, 0, "expect=E_UNSUPPORTED ", false);
    add_linear(list, shapes[1], 0, "scale=inf expect=E_ATTR ", false);
    add_linear(list, shapes[1], 0, "in_place=1 expect=E_ATTR ", false);
    static const char *const lines[] = {
        "in=q:f32:1x2x2x3;k:f32:1x2x2x2;v:f32:1x2x2x3", /* two widths of keys */
        "in=q:f32:1x2x3x3;k:f32:1x2x2x3;v:f32:1x2x2x3", /* 3 heads for 2 */
        "in=q:f32:1x2x0x3;k:f32:1x2x2x3;v:f32:1x2x2x3",
        "in=q:f32:1x2x2x3;k:f32:1x2x2x3;v:f32:1x2x2x0",
        "in=q:f32:1x2x2x3;k:f32:1x2x2x3;v:f32:1x2x1x3",
        "in=q:f32:1x2x2x3;k:f32:1x2x2x3;v:f32:1x3x2x3",
        "in=q:f32:1x2x2x3;k:f32:1x2x2x3;v:f32:1x2x6",
        "in=q:f32:1x2x6;k:f32:1x2x6;v:f32:1x2x6",
        "in=q:f32:1x2x2x3;k:f32:1x2x2x3;v:f32:1x2x2x4;g:f32:1x2x2x4",
        "in=q:f32:1x2x2x3;k:f32:1x2x2x3;v:f32:1x2x2x4;g:f32:1x2x4",
        "in=q:f32:1x2x4x3;k:f32:1x2x2x3;v:f32:1x2x2x4;beta:f32:1x2x4",
        "in=q:f32:1x2x4x3;k:f32:1x2x2x3;v:f32:1x2x2x4;state:f32:1x4x3x4",
        "in=q:f32:1x2x2x3;k:f32:1x2x2x3;v:f32:1x2x2x4;state:f32:1x2x4x3"};
    case_add_all(list, "linear_attention expect=E_SHAPE", lines, COUNT(lines));
    case_add(list, "linear_attention expect=E_DTYPE in=q:u8:1x2x2x3;k:f32:1x2x2x3;v:f32:1x2x2x3");
    case_add(list, "linear_attention in=q:f16:1x2x2x3:unit;k:bf16:1x2x1x3:range:-0.3:0.3;"
                   "v:f16:1x2x1x4:unit;beta:f16:1x2x1:range:0:1");
}

static void generate(case_list *list)
{
    for (size_t row = 0; row < COUNT(recurrent_rows); row++) {
        generate_shapes(list, row);
        generate_states(list, row);
        generate_edges(list, row);
    }
    generate_relu(list);
    generate_refusals(list);
    generate_selective(list);
    generate_mamba2(list);
    generate_delta(list);
    generate_linear(list);
}

static const char *const rows[] = {
    "lstm", "gru", "rnn", "selective_scan", "mamba2", "gated_delta_net", "linear_attention", NULL};

const case_family sequence_cases = {.rows = rows, .build = build, .generate = generate};
