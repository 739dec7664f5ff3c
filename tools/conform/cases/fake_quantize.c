/*
 * Cases of fake quantization. Keys: bits, axis (if absent, there is one scale),
 * mode=batch|ema|fixed, ste=identity|clipped|tanh|hard_tanh, decay. result=state returns the
 * updated average. shift=n and scratch=m: of x and dy (case_operand).
 */
#include "conform/cases/cases.h"

#include <string.h>

static int index_of(const char *word, const char *const *names, int count)
{
    int i = 0;
    while (i < count && strcmp(word, names[i]) != 0)
        i++;
    return i;
}

static rlxvk_fake_quantize_options options_of(const case_spec *s)
{
    static const char *const modes[] = {"batch", "ema", "fixed"};
    static const char *const estimators[] = {"identity", "clipped", "tanh", "hard_tanh"};
    int mode = index_of(case_word(s, "mode", "batch"), modes, COUNT(modes));
    int estimator = index_of(case_word(s, "ste", "clipped"), estimators, COUNT(estimators));
    return (rlxvk_fake_quantize_options){.bits = (uint32_t)case_integer(s, "bits", 8),
                                         .per_axis = case_word(s, "axis", NULL) != NULL,
                                         .axis = (int32_t)case_integer(s, "axis", 0),
                                         .mode = (rlxvk_scale_mode)mode,
                                         .estimator = (rlxvk_estimator)estimator,
                                         .decay = (float)case_real(s, "decay", 0)};
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_fake_quantize_options o = options_of(s);
    rlxvk_tensor x = case_operand(g, s, inputs, "x"), dy = case_operand(g, s, inputs, "dy");
    rlxvk_tensor scale = case_tensor(s, inputs, "scale");
    if (strcmp(s->row, "fake_quantize") == 0) {
        rlxvk_tensor y = rlxvk_fake_quantize(g, x, scale, &o);
        return strcmp(case_word(s, "result", "y"), "state") == 0 ? scale : y;
    }
    if (strcmp(s->row, "fake_quantize_backward") == 0)
        return rlxvk_fake_quantize_backward(g, x, dy, scale, &o);
    if (strcmp(s->row, "fake_quantize_lsq") == 0)
        return rlxvk_fake_quantize_lsq(g, x, scale, &o);
    return strcmp(s->row, "fake_quantize_lsq_backward_x") == 0
               ? rlxvk_fake_quantize_lsq_backward_x(g, x, scale, dy, &o)
               : rlxvk_fake_quantize_lsq_backward_scale(g, x, scale, dy, &o);
}

/* One scale, or one for each of `channels`. */
static const struct shape_case {
    const char *dims, *axis, *fill;
    int channels, bits;
} shapes[] = {{"scalar", "", "uniform", 1, 4},
              {"1", "", "uniform", 1, 2},
              {"1", "axis=0 ", "uniform", 1, 8},
              {"0", "", "uniform", 1, 8},
              {"0x3", "axis=0 ", "uniform", 0, 8},
              {"0x3", "axis=1 ", "uniform", 3, 8},
              {"3x0", "axis=0 ", "uniform", 3, 8},
              {"7", "", "unit", 1, 3},
              {"5x7", "axis=0 ", "uniform", 5, 4},
              {"5x7", "axis=-1 ", "outliers", 7, 8},
              {"2x3x4x5", "axis=1 ", "uniform", 3, 5},
              {"2x3x4x5x2x1x3", "axis=3 ", "unit", 5, 6},
              {"4x6x3x3", "axis=0 ", "uniform", 4, 7},
              {"70x33x3", "axis=1 ", "outliers", 33, 8},
              {"3x129x40", "axis=1 ", "uniform", 129, 2},
              {"9000x2", "axis=1 ", "unit", 2, 8},
              {"7000x1", "axis=1 ", "unit", 1, 8},
              {"700x1x3", "axis=1 ", "unit", 1, 4},
              {"2x9001", "axis=0 ", "unit", 2, 4},
              {"66001", "", "unit", 1, 8},
              {"300x2x33", "axis=1 ", "unit", 2, 4},
              {"40x300", "axis=1 ", "special", 300, 8},
              {"40x300", "", "special", 1, 4},
              {"6x50", "axis=0 ", "large", 6, 4},
              {"6x50", "axis=0 ", "zero", 6, 8},
              {"6x50", "axis=1 ", "integers", 50, 4}};

static void generate_forward(case_list *list, const struct shape_case *c)
{
    case_add(list, "fake_quantize bits=%d %sin=x:f32:%s:%s", c->bits, c->axis, c->dims, c->fill);
    case_add(list, "fake_quantize mode=fixed bits=%d %sin=x:f32:%s:%s;scale:f32:%d:range:0.05:0.5",
             c->bits, c->axis, c->dims, c->fill, c->channels);
    case_add(list, "fake_quantize_lsq bits=%d %sin=x:f32:%s:%s;scale:f32:%d:range:0.05:0.5",
             c->bits, c->axis, c->dims, c->fill, c->channels);
    for (int state = 0; state < 2; state++) {
        const char *result = state ? "result=state " : "";
        case_add(list,
                 "fake_quantize mode=ema decay=0.9 bits=%d %s%sin=x:f32:%s:%s;scale:f32:%d:"
                 "range:0.01:0.5",
                 c->bits, c->axis, result, c->dims, c->fill, c->channels);
        case_add(list,
                 "fake_quantize mode=ema decay=0.999 bits=%d %s%sin=x:f32:%s:%s;"
                 "scale:f32:%d:zero",
                 c->bits, c->axis, result, c->dims, c->fill, c->channels);
    }
}

static void generate_backward(case_list *list, const struct shape_case *c)
{
    static const char *const estimators[] = {"identity", "clipped", "tanh", "hard_tanh"};
    for (size_t i = 0; i < COUNT(estimators); i++) {
        case_add(list, "fake_quantize_backward ste=%s bits=%d %sin=x:f32:%s:%s;dy:f32:%s",
                 estimators[i], c->bits, c->axis, c->dims, c->fill, c->dims);
        case_add(list,
                 "fake_quantize_backward ste=%s mode=%s bits=%d %sin=x:f32:%s:%s;dy:f32:%s;"
                 "scale:f32:%d:range:0.05:0.5",
                 estimators[i], i % 2 ? "ema" : "fixed", c->bits, c->axis, c->dims, c->fill,
                 c->dims, c->channels);
    }
    case_add(list,
             "fake_quantize_lsq_backward_x bits=%d %sin=x:f32:%s:%s;"
             "scale:f32:%d:range:0.05:0.5;dy:f32:%s",
             c->bits, c->axis, c->dims, c->fill, c->channels, c->dims);
    case_add(list,
             "fake_quantize_lsq_backward_scale bits=%d %sin=x:f32:%s:%s;"
             "scale:f32:%d:range:0.05:0.5;dy:f32:%s",
             c->bits, c->axis, c->dims, c->fill, c->channels, c->dims);
}

static const char *const others[] = {
    "shift=1 bits=4 axis=1 in=x:f32:5x13",
    "shift=1 bits=4 mode=fixed axis=1 in=x:f32:5x13;scale:f32:13:positive",
    "scratch=1 axis=1 in=x:f32:5x260",
    "mode=fixed axis=1 in=x:f32:3x5;scale:f32:1:positive",
    "mode=fixed axis=1 in=x:f32:3x5;scale:f32:1x5x1:positive",
    "mode=fixed in=x:f32:3x5;scale:f32:scalar:positive",
    "mode=fixed in=x:f32:300;scale:f32:1:zero",
    "mode=fixed axis=0 in=x:f32:40x7;scale:f32:40:special",
    "mode=ema decay=0.5 axis=0 in=x:f32:40x7;scale:f32:40:special",
    "mode=ema decay=0.5 axis=0 result=state in=x:f32:40x7;scale:f32:40:special",
    "mode=ema decay=0 axis=0 result=state in=x:f32:40x7;scale:f32:40",
    "mode=fixed bits=4 in=x:f32:64:integers;scale:f32:1:constant:2",
    "bits=2 in=x:f32:64:constant:3e38",
    "in=x:f32:64:constant:1e-30",
    "expect=E_ATTR bits=1 in=x:f32:3",
    "expect=E_ATTR bits=9 in=x:f32:3",
    "expect=E_ATTR decay=1 in=x:f32:3",
    "expect=E_ATTR decay=-0.5 mode=ema in=x:f32:3;scale:f32:1",
    "expect=E_ATTR mode=other in=x:f32:3",
    "expect=E_ATTR ste=other in=x:f32:3",
    "expect=E_AXIS axis=2 in=x:f32:3x5",
    "expect=E_ARITY mode=ema in=x:f32:3",
    "expect=E_ARITY mode=fixed in=x:f32:3",
    "expect=E_ARITY in=x:f32:3;scale:f32:1",
    "expect=E_SHAPE mode=fixed axis=1 in=x:f32:3x5;scale:f32:3",
    "expect=E_SHAPE mode=fixed in=x:f32:3x5;scale:f32:5",
    "expect=E_SHAPE mode=ema axis=1 in=x:f32:3x5;scale:f32:1",
    "expect=E_SHAPE mode=fixed axis=0 in=x:f32:4x5;scale:f32:2x2",
    "expect=E_DTYPE in=x:i32:3",
    "expect=E_DTYPE mode=ema in=x:f32:3;scale:f16:1"};

static const char *const backward_others[] = {
    "shift=1 axis=1 in=x:f32:5x13;dy:f32:5x13",
    "scratch=1 ste=tanh axis=0 in=x:f32:7x64;dy:f32:7x64",
    "scratch=2 ste=tanh axis=0 in=x:f32:7x64;dy:f32:7x64",
    "ste=tanh in=x:f32:500;dy:f32:500:special",
    "ste=hard_tanh in=x:f32:500;dy:f32:500:special",
    "ste=clipped in=x:f32:500;dy:f32:500:special",
    "expect=E_SHAPE in=x:f32:3x5;dy:f32:5x3",
    "expect=E_ARITY mode=ema in=x:f32:3;dy:f32:3",
    "expect=E_SHAPE mode=ema axis=0 in=x:f32:3;dy:f32:3;scale:f32:2"};

static const char *const learned_others[] = {
    "shift=1 axis=1 bits=4 in=x:f32:5x13;scale:f32:13:positive;dy:f32:5x13",
    "axis=0 bits=8 in=x:f32:5x1300:offset;scale:f32:5:range:90:120;dy:f32:5x1300:offset",
    "bits=4 in=x:f32:3x5;scale:f32:scalar:positive;dy:f32:3x5",
    "axis=1 bits=4 in=x:f32:3x5;scale:f32:1x5:positive;dy:f32:3x5",
    "bits=2 in=x:f32:3000;scale:f32:1:constant:-1;dy:f32:3000",
    "bits=2 in=x:f32:300:large;scale:f32:1:constant:1e30;dy:f32:300",
    "bits=3 axis=0 in=x:f32:40x9;scale:f32:40:special;dy:f32:40x9",
    "expect=E_SHAPE in=x:f32:3;scale:f32:2;dy:f32:3",
    "expect=E_ATTR bits=11 in=x:f32:3;scale:f32:1;dy:f32:3",
    "expect=E_DTYPE in=x:f32:3;scale:i32:1;dy:f32:3"};

static const char *const classes[] = {"subgroup_quads", "subgroup_words", "shared_quads",
                                      "shared_words"};

static void generate(case_list *list)
{
    for (size_t i = 0; i < COUNT(shapes); i++) {
        generate_forward(list, &shapes[i]);
        generate_backward(list, &shapes[i]);
    }
    case_add_all(list, "fake_quantize", others, COUNT(others));
    case_add_all(list, "fake_quantize_backward", backward_others, COUNT(backward_others));
    case_add_all(list, "fake_quantize_lsq_backward_x", learned_others, COUNT(learned_others));
    case_add_all(list, "fake_quantize_lsq_backward_scale", learned_others, COUNT(learned_others));
    for (size_t i = 0; i < COUNT(classes); i++) { /* of kernels that find the largest magnitude */
        case_add(list, "fake_quantize variant=rows=%s axis=0 in=x:f32:33x132:special", classes[i]);
        case_add(list, "fake_quantize variant=rows=%s in=x:f32:20000", classes[i]);
    }
    for (int bits = 2; bits <= 8; bits++)
        case_add(list, "fake_quantize bits=%d axis=0 in=x:f32:3x500", bits);
    case_add(list, "fake_quantize_lsq expect=E_SHAPE in=x:f32:3;scale:f32:3");
}

static const char *const rows[] = {"fake_quantize",
                                   "fake_quantize_backward",
                                   "fake_quantize_lsq",
                                   "fake_quantize_lsq_backward_x",
                                   "fake_quantize_lsq_backward_scale",
                                   NULL};

const case_family fake_quantize_cases = {.rows = rows, .build = build, .generate = generate};
