/*
 * Cases of softmax_backward (axis; in=y;dy) and of cross entropy (in=logits;labels;dloss).
 *   shift=n         drops the first n rows of the first input by a view
 *   other_shift=n   the same for the other inputs
 *   scratch=m       computes the inputs of bit mask m (by copy), so that the result may take their
 *                   place
 */
#include "conform/cases/cases.h"

#include <stdio.h>
#include <string.h>

static rlxvk_tensor operand(rlxvk_graph *g, const case_spec *s, rlxvk_tensor x, size_t index)
{
    x = case_shifted(g, s, index ? "other_shift" : "shift", x);
    return case_integer(s, "scratch", 0) >> index & 1 ? rlxvk_copy(g, x) : x;
}

/* wrt=targets returns the gradient of the targets, otherwise that of the logits. */
static rlxvk_tensor dense_gradient(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *x)
{
    rlxvk_tensor targets, logits;
    logits = rlxvk_softmax_cross_entropy_dense_backward(g, x[0], x[1], x[2], &targets);
    return strcmp(case_word(s, "wrt", "logits"), "targets") == 0 ? targets : logits;
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_tensor x[3] = {RLXVK_NONE, RLXVK_NONE, RLXVK_NONE};
    for (size_t i = 0; i < s->input_count && i < COUNT(x); i++)
        x[i] = operand(g, s, inputs[i], i);
    if (strcmp(s->row, "softmax_backward") == 0)
        return rlxvk_softmax_backward(g, x[0], x[1], (int32_t)case_integer(s, "axis", -1));
    if (strcmp(s->row, "softmax_cross_entropy_dense") == 0)
        return rlxvk_softmax_cross_entropy_dense(g, x[0], x[1]);
    if (strcmp(s->row, "softmax_cross_entropy_dense_backward") == 0)
        return dense_gradient(g, s, x);
    if (strcmp(s->row, "softmax_cross_entropy") == 0)
        return rlxvk_softmax_cross_entropy(g, x[0], x[1]);
    return rlxvk_softmax_cross_entropy_backward(g, x[0], x[1], x[2]);
}

/* Lengths on both sides of those that a lane, a workgroup and the registers hold. */
static const char *const lengths[] = {"131x33",  "70x256",  "70x257",  "9x8",     "5x11",
                                      "2x8192",  "3x8193",  "2x16388", "3x16389", "2x32768",
                                      "2x32770", "3x32773", "2x65537", "300x17"};
static const char *const classes[] = {"subgroup_quads", "subgroup_ragged", "subgroup_words",
                                      "long_quads",     "long_ragged",     "shared_quads",
                                      "shared_words"};

static void generate_softmax_backward(case_list *list)
{
    static const char *const rests[] = {
        "axis=0 in=y:f32:scalar;dy:f32:scalar",
        "axis=-1 in=y:f32:1;dy:f32:1",
        "axis=0 in=y:f32:31;dy:f32:31",
        "axis=1 in=y:f32:0x4;dy:f32:0x4",
        "axis=0 in=y:f32:0x4;dy:f32:0x4",
        "axis=-1 in=y:f32:3x5;dy:f32:3x5",
        "axis=0 in=y:f32:3x5;dy:f32:3x5",
        "axis=1 in=y:f32:5x7x11:unit;dy:f32:5x7x11",
        "axis=1 in=y:f32:5x1x11;dy:f32:5x1x11",
        "axis=4 in=y:f32:2x3x2x3x2x3x2x3;dy:f32:2x3x2x3x2x3x2x3",
        "axis=0 in=y:f32:130x33:unit;dy:f32:130x33:large",
        "axis=0 in=y:f32:1025x3:unit;dy:f32:1025x3",
        "axis=1 in=y:f32:7x200x40:unit;dy:f32:7x200x40",
        "axis=1 in=y:f32:4x9:special;dy:f32:4x9",
        "axis=1 in=y:f32:4x9;dy:f32:4x9:special",
        "axis=1 in=y:f32:65x64:zero;dy:f32:65x64",
        "axis=0 in=y:f32:9001x5:unit;dy:f32:9001x5",
        "axis=0 in=y:f32:131072:unit;dy:f32:131072",
        "axis=1 in=y:f32:3x200001:unit;dy:f32:3x200001",
        "axis=1 shift=1 in=y:f32:7x13;dy:f32:6x13",
        "axis=1 other_shift=1 in=y:f32:6x13;dy:f32:7x13",
        "axis=1 shift=1 other_shift=1 in=y:f32:7x130;dy:f32:7x130",
        "axis=1 scratch=1 in=y:f32:9x1001;dy:f32:9x1001",
        "axis=1 scratch=2 in=y:f32:9x1024;dy:f32:9x1024",
        "axis=0 scratch=3 in=y:f32:70001:unit;dy:f32:70001",
        "expect=E_SHAPE axis=1 in=y:f32:3x4;dy:f32:4x3",
        "expect=E_AXIS axis=2 in=y:f32:3x4;dy:f32:3x4",
    };
    case_add_all(list, "softmax_backward", rests, COUNT(rests));
    for (size_t c = 0; c < COUNT(classes); c++)
        for (size_t i = 0; i < COUNT(lengths); i++)
            case_add(list, "softmax_backward axis=1 variant=rows=%s in=y:f32:%s:unit;dy:f32:%s",
                     classes[c], lengths[i], lengths[i]);
}

/* `shape` is that of the logits; the fills are those of the logits and of the labels. */
static void add_losses(case_list *list, const char *attributes, const char *shape, const char *fill,
                       const char *labels)
{
    const char *last = strrchr(shape, 'x');
    char rows[64] = "scalar";
    if (last)
        snprintf(rows, sizeof rows, "%.*s", (int)(last - shape), shape);
    case_add(list, "softmax_cross_entropy %s in=logits:f32:%s:%s;labels:f32:%s:%s", attributes,
             shape, fill, rows, labels);
    case_add(list,
             "softmax_cross_entropy_backward %s in=logits:f32:%s:%s;labels:f32:%s:%s;dloss:f32:%s",
             attributes, shape, fill, rows, labels, rows);
}

static void add_forms(case_list *list, const char *class)
{
    for (size_t i = 0; i < COUNT(lengths); i++) {
        char variant[64], labels[64];
        snprintf(variant, sizeof variant, "variant=rows=%s", class);
        snprintf(labels, sizeof labels, "badindex:%s", strchr(lengths[i], 'x') + 1);
        add_losses(list, variant, lengths[i], i % 3 ? "uniform" : "range:-60:60", labels);
    }
}

static void generate_forms(case_list *list)
{
    static const char *const own[] = {"stream_quads", "stream_ragged"};
    for (size_t c = 0; c < COUNT(classes); c++)
        add_forms(list, classes[c]);
    for (size_t c = 0; c < COUNT(own); c++)
        add_forms(list, own[c]);
}

static void generate_losses(case_list *list)
{
    static const char *const lines[][3] = {
        {"1", "uniform", "index:1"},
        {"7", "uniform", "index:7"},
        {"1x1", "special", "zero"},
        {"0x5", "uniform", "index:5"},
        {"3x0x5", "uniform", "index:5"},
        {"16x10", "uniform", "index:10"},
        {"40x10", "range:-100:100", "badindex:10"},
        {"40x9", "special", "index:9"},
        {"40x12", "neginf", "badindex:12"},
        {"33x3", "offset", "index:3"},
        {"33x130", "large", "badindex:130"},
        {"2x3x5x64", "uniform", "badindex:64"},
        {"64x1000", "uniform", "index:1000"},
        {"5x50257", "range:-20:20", "index:50257"},
        {"2x200000", "uniform", "index:200000"},
        {"1x131073", "range:-8:8", "index:131073"},
        {"70000x2", "uniform", "index:2"},
        {"9x40", "uniform", "constant:-100"},
        {"9x40", "special", "constant:-1"},
        {"9x40", "uniform", "constant:40"},
        {"9x40", "zero", "constant:39.4"},
        {"9x40", "uniform", "special"},
    };
    static const char *const others[] = {
        "softmax_cross_entropy shift=1 in=logits:f32:7x13;labels:f32:6:index:13",
        "softmax_cross_entropy other_shift=3 in=logits:f32:7x13;labels:i32:10:index:13",
        "softmax_cross_entropy expect=E_SHAPE in=logits:f32:3x0;labels:f32:3",
        "softmax_cross_entropy expect=E_SHAPE in=logits:f32:scalar;labels:f32:scalar",
        "softmax_cross_entropy expect=E_SHAPE in=logits:f32:3x4;labels:f32:4",
        "softmax_cross_entropy expect=E_DTYPE in=logits:c64:3x4;labels:f32:3",
        "softmax_cross_entropy expect=E_INDEX_RANGE in=logits:f32:0x16777217;labels:f32:0",
        "softmax_cross_entropy_backward shift=1 other_shift=1 "
        "in=logits:f32:7x13;labels:f32:7:index:13;dloss:f32:7",
        "softmax_cross_entropy_backward scratch=1 "
        "in=logits:f32:9x1001;labels:f32:9:badindex:1001;dloss:f32:9",
        "softmax_cross_entropy_backward scratch=1 "
        "in=logits:f32:1x70001;labels:f32:1:index:70001;dloss:f32:1",
        "softmax_cross_entropy_backward in=logits:f32:40x10;labels:f32:40:badindex:10;"
        "dloss:f32:40:special",
        "softmax_cross_entropy_backward in=logits:f32:40x10;labels:f32:40:constant:-1;"
        "dloss:f32:40:special",
        "softmax_cross_entropy_backward expect=E_SHAPE in=logits:f32:3x4;labels:f32:3;dloss:f32:4",
    };
    for (size_t i = 0; i < COUNT(lines); i++)
        add_losses(list, "", lines[i][0], lines[i][1], lines[i][2]);
    generate_forms(list);
    case_add_all(list, "", others, COUNT(others));
}

static void add_dense(case_list *list, const char *attributes, const char *shape, const char *fill,
                      const char *targets)
{
    const char *last = strrchr(shape, 'x');
    char rows[64] = "scalar";
    if (last)
        snprintf(rows, sizeof rows, "%.*s", (int)(last - shape), shape);
    case_add(list, "softmax_cross_entropy_dense %s in=logits:f32:%s:%s;targets:f32:%s:%s",
             attributes, shape, fill, shape, targets);
    for (int i = 0; i < 2; i++)
        case_add(list,
                 "softmax_cross_entropy_dense_backward %s wrt=%s "
                 "in=logits:f32:%s:%s;targets:f32:%s:%s;dloss:f32:%s",
                 attributes, i ? "targets" : "logits", shape, fill, shape, targets, rows);
}

static void generate_dense(case_list *list)
{
    static const char *const lines[][3] = {
        {"1", "uniform", "one"},
        {"7", "uniform", "positive"},
        {"0x5", "uniform", "one"},
        {"16x10", "uniform", "unit"},
        {"40x10", "range:-100:100", "positive"},
        {"40x9", "special", "positive"},
        {"40x12", "neginf", "positive"},
        {"40x12", "neginf", "bool"},
        {"33x3", "offset", "zero"},
        {"2x3x5x64", "uniform", "unit"},
        {"64x1000", "uniform", "positive"},
        {"5x50257", "range:-20:20", "unit"},
        {"1x131073", "range:-8:8", "positive"},
        {"70000x2", "uniform", "bool"},
    };
    static const char *const others[] = {
        "softmax_cross_entropy_dense in=logits:f32:9x9;targets:f32:9x9:special",
        "softmax_cross_entropy_dense_backward "
        "in=logits:f32:9x9;targets:f32:9x9:special;dloss:f32:9",
        "softmax_cross_entropy_dense shift=1 in=logits:f32:7x13;targets:f32:6x13",
        "softmax_cross_entropy_dense other_shift=1 in=logits:f32:6x16;targets:f32:7x16",
        "softmax_cross_entropy_dense expect=E_SHAPE in=logits:f32:3x0;targets:f32:3x0",
        "softmax_cross_entropy_dense expect=E_SHAPE in=logits:f32:scalar;targets:f32:scalar",
        "softmax_cross_entropy_dense expect=E_SHAPE in=logits:f32:3x4;targets:f32:4x3",
        "softmax_cross_entropy_dense_backward shift=1 other_shift=1 "
        "in=logits:f32:7x13;targets:f32:7x13;dloss:f32:7",
        "softmax_cross_entropy_dense_backward shift=1 other_shift=1 wrt=targets "
        "in=logits:f32:7x13;targets:f32:7x13;dloss:f32:7",
        "softmax_cross_entropy_dense_backward "
        "in=logits:f32:40x10;targets:f32:40x10;dloss:f32:40:special",
        "softmax_cross_entropy_dense_backward expect=E_SHAPE "
        "in=logits:f32:3x4;targets:f32:3x4;dloss:f32:4",
    };
    for (size_t i = 0; i < COUNT(lines); i++)
        add_dense(list, "", lines[i][0], lines[i][1], lines[i][2]);
    for (size_t c = 0; c < COUNT(classes); c++)
        for (size_t i = 0; i < COUNT(lengths); i++) {
            char variant[64];
            snprintf(variant, sizeof variant, "variant=rows=%s", classes[c]);
            add_dense(list, variant, lengths[i], i % 3 ? "positive" : "range:-60:60", "positive");
        }
    case_add_all(list, "", others, COUNT(others));
}

static void generate(case_list *list)
{
    generate_softmax_backward(list);
    generate_losses(list);
    generate_dense(list);
}

static const char *const rows[] = {"softmax_backward",
                                   "softmax_cross_entropy",
                                   "softmax_cross_entropy_backward",
                                   "softmax_cross_entropy_dense",
                                   "softmax_cross_entropy_dense_backward",
                                   NULL};

const case_family loss_cases = {rows, build, generate};
