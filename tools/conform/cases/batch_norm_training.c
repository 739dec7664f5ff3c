/*
 * Cases of batch norm in training. Keys: eps, momentum; result=mean or variance returns the updated
 * running average, which is an operand of that name. shift=n and scratch=m: of x and dy
 * (case_operand).
 */
#include "conform/cases/cases.h"

#include <string.h>

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_batch_norm_options o = {(float)case_real(s, "eps", 1e-5),
                                  (float)case_real(s, "momentum", 0.1)};
    rlxvk_tensor x = case_operand(g, s, inputs, "x"), dy = case_operand(g, s, inputs, "dy");
    rlxvk_tensor gamma = case_tensor(s, inputs, "gamma");
    rlxvk_tensor averages[] = {case_tensor(s, inputs, "mean"), case_tensor(s, inputs, "variance")};
    const char *result = case_word(s, "result", "y");
    rlxvk_tensor y;
    if (strstr(s->row, "backward")) {
        rlxvk_tensor known = rlxvk_batch_norm_statistics(g, x, RLXVK_NONE, RLXVK_NONE, &o);
        rlxvk_tensor sums = rlxvk_batch_norm_backward_parameters(g, x, known, dy);
        return strstr(s->row, "parameters")
                   ? sums
                   : rlxvk_batch_norm_backward_input(g, x, gamma, known, sums, dy);
    }
    if (strcmp(s->row, "batch_norm_statistics") == 0)
        y = rlxvk_batch_norm_statistics(g, x, averages[0], averages[1], &o);
    else
        y = rlxvk_batch_norm_training(g, x, gamma, case_tensor(s, inputs, "beta"), averages[0],
                                      averages[1], &o);
    return strcmp(result, "y") == 0 ? y : averages[strcmp(result, "variance") == 0];
}

static const struct shape_case {
    const char *dims, *fill;
    int channels;
} shapes[] = {{"2x1", "unit", 1},           {"2x3", "uniform", 3},
              {"7x5", "offset", 5},         {"9000x2", "offset", 2},
              {"7001x1", "unit", 1},        {"33x129", "uniform", 129},
              {"1x3x2", "unit", 3},         {"2x3x5x7", "uniform", 3},
              {"3x4x33", "offset", 4},      {"2x2x101x103", "unit", 2},
              {"1x1x66001", "offset", 1},   {"700x3x4", "unit", 3},
              {"300x2x3x3", "offset", 2},   {"300x1x7", "unit", 1},
              {"40x70x6x6", "uniform", 70}, {"5x8x2x2x3x1x2", "unit", 8},
              {"6x5x64", "zero", 5},        {"3x0x5", "unit", 0},
              {"20x9x8", "integers", 9},    {"4x3x4100", "outliers", 3}};

static void generate_shape(case_list *list, const struct shape_case *c)
{
    case_add(list, "batch_norm_training in=x:f32:%s:%s;gamma:f32:%d;beta:f32:%d", c->dims, c->fill,
             c->channels, c->channels);
    case_add(list, "batch_norm_training eps=1e-3 in=x:f32:%s:%s;gamma:f32:%d", c->dims, c->fill,
             c->channels);
    case_add(list, "batch_norm_training in=x:f32:%s:%s;beta:f32:%d;mean:f32:%d;variance:f32:%d",
             c->dims, c->fill, c->channels, c->channels, c->channels);
    case_add(list, "batch_norm_statistics in=x:f32:%s:%s", c->dims, c->fill);
    case_add(list,
             "batch_norm_statistics momentum=0.3 result=mean "
             "in=x:f32:%s:%s;mean:f32:%d;variance:f32:%d:positive",
             c->dims, c->fill, c->channels, c->channels);
    case_add(list,
             "batch_norm_statistics result=variance "
             "in=x:f32:%s:%s;mean:f32:%d;variance:f32:%d:positive",
             c->dims, c->fill, c->channels, c->channels);
    case_add(list, "batch_norm_backward_parameters in=x:f32:%s:%s;dy:f32:%s", c->dims, c->fill,
             c->dims);
    case_add(list, "batch_norm_backward_input eps=0.25 in=x:f32:%s:%s;gamma:f32:%d;dy:f32:%s",
             c->dims, c->fill, c->channels, c->dims);
    case_add(list, "batch_norm_backward_input eps=0.25 in=x:f32:%s:%s;dy:f32:%s:unit", c->dims,
             c->fill, c->dims);
}

static const char *const statistics[] = {
    "momentum=1 result=variance in=x:f32:5x3x9;mean:f32:3;variance:f32:1x3x1",
    "momentum=1e-40 result=mean in=x:f32:5x3x9;mean:f32:3;variance:f32:3",
    "eps=1e-40 in=x:f32:5x3x9:constant:0.1",
    "eps=1e-40 in=x:f32:5x3x9:range:-1e25:1e25",
    "eps=1e-40 in=x:f32:9000x3:range:-1e-25:1e-25",
    "eps=1e-40 in=x:f32:2x3x9000:large",
    "eps=1e-40 in=x:f32:5x3x9:range:-3.4e38:3.4e38",
    "eps=1e-40 in=x:f32:9000x3:range:-1e-39:1e-39",
    "in=x:f32:50x12x9:special",
    "shift=1 in=x:f32:4x3x5",
    "expect=E_SHAPE in=x:f32:1x3",
    "expect=E_SHAPE in=x:f32:1x3x1x1",
    "expect=E_SHAPE in=x:f32:0x3x4",
    "expect=E_SHAPE in=x:f32:3",
    "expect=E_SHAPE in=x:f32:4x3;mean:f32:3;variance:f32:4",
    "expect=E_ARITY in=x:f32:4x3;mean:f32:3",
    "expect=E_ARITY in=x:f32:4x3;variance:f32:3",
    "expect=E_ATTR eps=-1 in=x:f32:4x3",
    "expect=E_ATTR momentum=1.5 in=x:f32:4x3",
    "expect=E_DTYPE in=x:f16:4x3",
    "expect=E_DTYPE in=x:f32:4x3;mean:f32:3;variance:f16:3"};

static const char *const trainings[] = {
    "eps=1e-40 in=x:f32:5x3x9:constant:0.1;gamma:f32:3;beta:f32:3",
    "eps=1e-40 in=x:f32:5x3x9;gamma:f32:3;beta:f32:3",
    "eps=1e-40 in=x:f32:5x3x9:range:-1e25:1e25;gamma:f32:3",
    "eps=1e-40 in=x:f32:9000x3:range:-1e-25:1e-25;beta:f32:3",
    "eps=1e-40 in=x:f32:2x3x9000:large",
    "eps=1e-40 in=x:f32:5x3x9:range:-3.4e38:3.4e38",
    "eps=1e-40 in=x:f32:9000x3:range:-1e-39:1e-39",
    "in=x:f32:50x30x9:special;gamma:f32:30;beta:f32:30",
    "shift=1 in=x:f32:4x3x5;gamma:f32:3x1;beta:f32:1x3x1",
    "scratch=1 in=x:f32:4x3x64;gamma:f32:3",
    "result=mean in=x:f32:4x3x64;mean:f32:3;variance:f32:3",
    "expect=E_SHAPE in=x:f32:4x3;gamma:f32:4",
    "expect=E_SHAPE in=x:f32:4x4;beta:f32:2x2"};

static const char *const inputs[] = {
    "eps=1e-40 in=x:f32:70x3x9:range:-1e25:1e25;dy:f32:70x3x9:unit",
    "eps=1e-40 in=x:f32:9000x3:range:-1e-25:1e-25;dy:f32:9000x3:unit",
    "in=x:f32:2x2x101x103:offset;dy:f32:2x2x101x103:offset",
    "in=x:f32:9000x5:unit;dy:f32:9000x5:offset",
    "eps=1e-40 in=x:f32:5x3x9:constant:0.1;gamma:f32:3;dy:f32:5x3x9",
    "in=x:f32:50x30x9:special;gamma:f32:30;dy:f32:50x30x9",
    "shift=1 in=x:f32:4x3x5;gamma:f32:3x1;dy:f32:4x3x5",
    "scratch=1 in=x:f32:4x3x64;gamma:f32:3;dy:f32:4x3x64",
    "scratch=2 in=x:f32:4x3x64;dy:f32:4x3x64",
    "expect=E_SHAPE in=x:f32:4x3;gamma:f32:4;dy:f32:4x3"};

static const char *const parameters[] = {
    "eps=1e-40 in=x:f32:70x3x9:range:-1e25:1e25;dy:f32:70x3x9:unit",
    "eps=1e-40 in=x:f32:9000x3:range:-1e-25:1e-25;dy:f32:9000x3:unit",
    "in=x:f32:2x2x101x103:offset;dy:f32:2x2x101x103:offset",
    "in=x:f32:50x30x9:special;dy:f32:50x30x9",
    "shift=1 in=x:f32:4x3x5;dy:f32:4x3x5",
    "expect=E_SHAPE in=x:f32:4x3;dy:f32:3x4"};

static void generate(case_list *list)
{
    for (size_t i = 0; i < COUNT(shapes); i++)
        generate_shape(list, &shapes[i]);
    case_add_all(list, "batch_norm_statistics", statistics, COUNT(statistics));
    case_add_all(list, "batch_norm_training", trainings, COUNT(trainings));
    case_add_all(list, "batch_norm_backward_input", inputs, COUNT(inputs));
    case_add_all(list, "batch_norm_backward_parameters", parameters, COUNT(parameters));
}

static const char *const rows[] = {"batch_norm_statistics", "batch_norm_training",
                                   "batch_norm_backward_parameters", "batch_norm_backward_input",
                                   NULL};

const case_family batch_norm_training_cases = {.rows = rows, .build = build, .generate = generate};
