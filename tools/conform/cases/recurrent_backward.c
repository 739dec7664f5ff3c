/*
 * Cases of the backward ops of recurrent nets. Keys: relu, reversed; in=z (gru: x, h, previous),
 * w_hh, dy, and optional c0, dhn, dcn.
 *   part=1, part=2   return the gradients of h0 and of c0
 *   part=h           returns the gradient of the terms that come from h (gru)
 */
#include "conform/cases/cases.h"

#include <stdio.h>
#include <string.h>

static bool is_row(const case_spec *s, const char *name)
{
    return strcmp(s->row, name) == 0;
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor z = case_tensor(s, inputs, "z"), w = case_tensor(s, inputs, "w_hh");
    rlxvk_tensor dy = case_tensor(s, inputs, "dy"), dhn = case_tensor(s, inputs, "dhn");
    rlxvk_tensor results[3] = {RLXVK_NONE, RLXVK_NONE, RLXVK_NONE}, from_h = RLXVK_NONE;
    const char *part = case_word(s, "part", "0");
    bool reversed = case_integer(s, "reversed", 0) != 0, initial = *part == '1' || *part == '2';
    rlxvk_tensor *dh0 = initial ? &results[1] : NULL, *dc0 = initial ? &results[2] : NULL;
    if (is_row(s, "lstm_backward_gates"))
        results[0] = rlxvk_lstm_backward_gates(g, z, w, dy, case_tensor(s, inputs, "c0"), dhn,
                                               case_tensor(s, inputs, "dcn"), reversed, dh0, dc0);
    else if (is_row(s, "gru_backward_gates"))
        results[0] =
            rlxvk_gru_backward_gates(g, case_tensor(s, inputs, "x"), case_tensor(s, inputs, "h"),
                                     case_tensor(s, inputs, "previous"), w, dy, dhn, reversed,
                                     &from_h, dh0);
    else
        results[0] = rlxvk_rnn_backward_gates(g, z, w, dy, dhn, case_integer(s, "relu", 0) != 0,
                                              reversed, dh0);
    return *part == 'h' ? from_h : results[initial ? *part - '0' : 0];
}

static const char *const rows[] = {"lstm_backward_gates", "gru_backward_gates",
                                   "rnn_backward_gates", NULL};
static const int gate_counts[] = {4, 3, 1};

typedef struct net {
    int batch, steps, hidden;
} net;

/* Weights shrink as the width grows, so that gradients stay near 1. */
static void add(case_list *list, size_t row, net n, bool carry, const char *extra)
{
    char line[CASE_TEXT];
    int gates = gate_counts[row] * n.hidden;
    double reach = 1.5 / (n.hidden > 8 ? n.hidden : 2);
    const char *form = row == 1 ? "%s%s in=x:f32:%dx%dx%d:unit;h:f32:%dx%dx%d:unit;"
                                  "previous:f32:%dx%dx%d:unit"
                                : "%s%s in=z:f32:%dx%dx%d";
    int at = snprintf(line, sizeof line, form, rows[row], extra, n.batch, n.steps, gates, n.batch,
                      n.steps, gates, n.batch, n.steps, n.hidden);
    at += snprintf(line + at, sizeof line - (size_t)at,
                   ";w_hh:f32:%dx%d:range:-%g:%g;dy:f32:%dx%dx%d:unit", gates, n.hidden, reach,
                   reach, n.batch, n.steps, n.hidden);
    static const char *const states[] = {"dhn", "c0", "dcn"};
    for (int i = 0; carry && i < (row == 0 ? 3 : 1); i++)
        at += snprintf(line + at, sizeof line - (size_t)at, ";%s:f32:%dx%d:unit", states[i],
                       n.batch, n.hidden);
    case_add(list, "%s", line);
}

static const char *const parts[] = {"", " part=1", " part=2"};

/* Sizes on both sides of those that one workgroup sweeps, and of whole quads, tiles and bands. */
static void generate_shapes(case_list *list, size_t row)
{
    static const net nets[] = {{1, 1, 1},    {1, 2, 4},   {3, 17, 5},  {1, 40, 33},
                               {5, 6, 64},   {2, 3, 128}, {1, 3, 129}, {3, 3, 150},
                               {2, 4, 171},  {1, 3, 300}, {4, 3, 260}, {9, 3, 257},
                               {33, 2, 260}, {70, 3, 6},  {2, 300, 3}, {1, 2, 1024}};
    char extra[64];
    for (size_t i = 0; i < COUNT(nets); i++) {
        snprintf(extra, sizeof extra, "%s%s", i % 2 ? " reversed=1" : "",
                 parts[i % (row == 0 ? 3 : 2)]);
        add(list, row, nets[i], i % 3 == 0, extra);
    }
}

static void generate_states(case_list *list, size_t row)
{
    static const net nets[] = {{3, 1, 3}, {3, 9, 33}, {2, 3, 260}};
    char extra[64];
    for (size_t i = 0; i < COUNT(nets); i++)
        for (size_t k = 0; k < (row == 0 ? 6 : 4); k++) {
            snprintf(extra, sizeof extra, "%s%s", k % 2 ? " reversed=1" : "", parts[k / 2]);
            add(list, row, nets[i], true, extra);
        }
    if (row == 1)
        for (size_t i = 0; i < COUNT(nets); i++)
            add(list, row, nets[i], i == 1, " part=h");
}

/* Every variant, also for nets that it was not made for. */
static void generate_variants(case_list *list, size_t row)
{
    static const char *const ways[] = {"sequences_4", "sequences", "tiles_32x32", "tiles_16x16",
                                       "tiles_8x8",   "tiles_8x4", "tiles_4x4",   "tiles_4x1"};
    static const net nets[] = {{37, 3, 11}, {3, 4, 70}};
    char extra[96];
    for (size_t i = 0; i < COUNT(ways); i++)
        for (size_t k = 0; k < COUNT(nets); k++) {
            snprintf(extra, sizeof extra, "%s variant=recurrent_backward=%s",
                     parts[(i + k) % (row == 0 ? 3 : 2)], ways[i]);
            add(list, row, nets[k], (i + k) % 2 == 0, extra);
        }
    add(list, row, (net){2, 0, 5}, true, " part=1 variant=recurrent_backward=tiles_4x4");
}

static void generate_edges(case_list *list, size_t row)
{
    static const net empty[] = {{0, 3, 4}, {2, 0, 4}};
    for (size_t i = 0; i < COUNT(empty); i++)
        for (size_t k = 0; k < (row == 0 ? 3 : 2); k++) {
            add(list, row, empty[i], false, parts[k]);
            add(list, row, empty[i], true, parts[k]);
        }
    add(list, row, (net){1, 2000, 3}, true, " part=1");
}

static void generate(case_list *list)
{
    static const char *const lines[] = {
        "lstm_backward_gates in=z:f32:2x6x12:range:-90:90;w_hh:f32:12x3;dy:f32:2x6x3",
        "lstm_backward_gates in=z:f32:2x6x12:special;w_hh:f32:12x3:one;dy:f32:2x6x3",
        "lstm_backward_gates in=z:f32:2x6x12;w_hh:f32:12x3:one;dy:f32:2x6x3:special",
        "gru_backward_gates in=x:f32:2x6x9:range:-90:90;h:f32:2x6x9;previous:f32:2x6x3;"
        "w_hh:f32:9x3;dy:f32:2x6x3",
        "gru_backward_gates in=x:f32:2x6x9:special;h:f32:2x6x9;previous:f32:2x6x3;"
        "w_hh:f32:9x3:one;dy:f32:2x6x3",
        "gru_backward_gates in=x:f32:2x6x9;h:f32:2x6x9;previous:f32:2x6x3;w_hh:f32:9x3:one;"
        "dy:f32:2x6x3:special",
        "rnn_backward_gates in=z:f32:2x6x3:special;w_hh:f32:3x3:one;dy:f32:2x6x3",
        "rnn_backward_gates in=z:f32:2x6x3;w_hh:f32:3x3;dy:f32:2x6x3:special",
        "rnn_backward_gates in=z:f32:2x6x3:range:-90:90;w_hh:f32:3x3;dy:f32:2x6x3",
        "rnn_backward_gates relu=1 in=z:f32:3x17x5;w_hh:f32:5x5:range:-0.2:0.2;dy:f32:3x17x5",
        "rnn_backward_gates relu=1 reversed=1 part=1 "
        "in=z:f32:3x4x300;w_hh:f32:300x300:range:-0.003:0.003;dy:f32:3x4x300;dhn:f32:3x300",
        "rnn_backward_gates relu=1 in=z:f32:2x6x3:special;w_hh:f32:3x3:one;dy:f32:2x6x3",
        "lstm_backward_gates in=z:f32:2x6x12;w_hh:f32:12x3;dy:f32:2x6x3;c0:f32:2x3",
        "lstm_backward_gates part=2 in=z:f32:2x6x12;w_hh:f32:12x3;dy:f32:2x6x3;dcn:f32:2x3",
        "lstm_backward_gates part=1 in=z:f32:2x6x12;w_hh:f32:12x3;dy:f32:2x6x3;dhn:f32:2x3",
        "rnn_backward_gates in=z:f32:2x6x3;w_hh:f16:3x3;dy:f32:2x6x3",
        "lstm_backward_gates expect=E_SHAPE in=z:f32:2x12;w_hh:f32:12x3;dy:f32:2x6x3",
        "lstm_backward_gates expect=E_SHAPE in=z:f32:2x6x9;w_hh:f32:12x3;dy:f32:2x6x3",
        "lstm_backward_gates expect=E_SHAPE in=z:f32:2x6x12;w_hh:f32:3x12;dy:f32:2x6x3",
        "lstm_backward_gates expect=E_SHAPE in=z:f32:2x6x12;w_hh:f32:12x3;dy:f32:2x6x4",
        "lstm_backward_gates expect=E_SHAPE in=z:f32:2x6x12;w_hh:f32:12x3;dy:f32:2x6x3;c0:f32:3",
        "lstm_backward_gates expect=E_SHAPE in=z:f32:2x6x0;w_hh:f32:0x0;dy:f32:2x6x0",
        "gru_backward_gates expect=E_SHAPE in=x:f32:2x6x9;h:f32:2x6x3;previous:f32:2x6x3;"
        "w_hh:f32:9x3;dy:f32:2x6x3",
        "gru_backward_gates expect=E_SHAPE in=x:f32:2x6x9;h:f32:2x6x9;previous:f32:2x5x3;"
        "w_hh:f32:9x3;dy:f32:2x6x3",
        "rnn_backward_gates expect=E_DTYPE in=z:u8:2x6x3;w_hh:f32:3x3;dy:f32:2x6x3"};
    for (size_t row = 0; rows[row]; row++) {
        generate_shapes(list, row);
        generate_states(list, row);
        generate_variants(list, row);
        generate_edges(list, row);
    }
    case_add_all(list, "", lines, COUNT(lines));
}

const case_family recurrent_backward_cases = {rows, build, generate};
