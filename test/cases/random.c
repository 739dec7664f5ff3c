/*
 * Cases of rng_uniform, rng_normal (shape=; a= and b= are low and high, or mean and scale; key=;
 * op_seed=) and sample (temperature= top_k= top_p= seed= key=; in=x). The run's seed is the
 * default, 42, at step 0. twice=1 draws from two ops and returns both, one after the other, so that
 * default keys must differ.
 */
#include "cases/cases.h"

#include <string.h>

static rlxvk_rng_stream stream_of(const case_spec *s)
{
    return (rlxvk_rng_stream){.has_key = case_word(s, "key", NULL) != NULL,
                              .key = (uint64_t)case_integer(s, "key", 0),
                              .has_op_seed = case_word(s, "op_seed", NULL) != NULL,
                              .op_seed = (float)case_real(s, "op_seed", 0)};
}

static rlxvk_tensor draw(rlxvk_graph *g, const case_spec *s)
{
    rlxvk_rng_stream stream = stream_of(s);
    float a = (float)case_real(s, "a", 0), b = (float)case_real(s, "b", 1);
    if (strcmp(s->row, "rng_uniform") == 0)
        return rlxvk_rng_uniform(g, case_shape(s, "shape"), a, b, &stream);
    return rlxvk_rng_normal(g, case_shape(s, "shape"), a, b, &stream);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_sample_options o = {.temperature = (float)case_real(s, "temperature", 1),
                              .top_k = (uint32_t)case_integer(s, "top_k", 0),
                              .top_p = (float)case_real(s, "top_p", 0),
                              .seed = (uint64_t)case_integer(s, "seed", 0),
                              .stream = stream_of(s)};
    if (strcmp(s->row, "sample") == 0)
        return rlxvk_sample(g, case_tensor(s, inputs, "x"), &o);
    rlxvk_tensor first = draw(g, s);
    return case_integer(s, "twice", 0) ? rlxvk_concat(g, (rlxvk_tensor[]){first, draw(g, s)}, 2, 0)
                                       : first;
}

static void generate_numbers(case_list *list, const char *row)
{
    static const char *const shapes[] = {"1",     "2",      "3",    "4",       "5",    "7x3",
                                         "2x0x3", "scalar", "1025", "3x1x5x7", "70001"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        case_add(list, "%s shape=%s", row, shapes[i]);
    for (int key = 0; key < 12; key++)
        case_add(list, "%s shape=37 key=%d a=-2 b=%d", row, key * key, key);
    case_add(list, "%s shape=8 key=1234567890123", row);
    case_add(list, "%s shape=64 op_seed=0.5 key=3", row);
    case_add(list, "%s shape=64 op_seed=0 key=3", row);
    case_add(list, "%s shape=64 op_seed=-7e20", row);
    case_add(list, "%s shape=64 a=1e30 b=2e30", row);
    case_add(list, "%s shape=64 a=3 b=3", row);
    case_add(list, "%s shape=16 a=0 b=inf expect=E_ATTR", row);
    case_add(list, "%s shape=16 a=nan b=1 expect=E_ATTR", row);
    case_add(list, "%s shape=16 a=0 b=-1 expect=E_ATTR", row);
}

static void generate_samples(case_list *list)
{
    static const char *const shapes[] = {"1",     "8",      "3x5",     "2x3x17",
                                         "4x320", "2x1000", "1x32003", "0x9"};
    static const char *const rules[] = {"temperature=0",
                                        "temperature=1",
                                        "temperature=0.7 top_k=5",
                                        "temperature=1.3 top_p=0.6",
                                        "top_k=40 top_p=0.9",
                                        "top_k=1",
                                        "top_p=-1",
                                        "top_k=100000 seed=9 key=4"};
    static const char *const fills[] = {"special",      "neginf",       "one",           "integers",
                                        "constant:inf", "constant:nan", "constant:-inf", "large"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (size_t k = 0; k < sizeof rules / sizeof *rules; k++)
            case_add(list, "sample %s in=x:f32:%s", rules[k], shapes[i]);
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++)
        for (size_t k = 0; k < 6; k++)
            case_add(list, "sample %s in=x:f32:7x65:%s", rules[k], fills[i]);
    case_add(list, "sample temperature=0.8 top_k=50 top_p=0.9 in=x:f32:1x128256");
    case_add(list, "sample temperature=-1 in=x:f32:4 expect=E_ATTR");
    case_add(list, "sample temperature=nan in=x:f32:4 expect=E_ATTR");
    case_add(list, "sample top_p=1.5 in=x:f32:4 expect=E_ATTR");
    case_add(list, "sample in=x:f32:scalar expect=E_SHAPE");
    case_add(list, "sample in=x:f32:3x0 expect=E_SHAPE");
}

static void generate(case_list *list)
{
    generate_numbers(list, "rng_uniform");
    generate_numbers(list, "rng_normal");
    case_add(list, "rng_uniform shape=33 twice=1");
    generate_samples(list);
}

static const char *const rows[] = {"rng_uniform", "rng_normal", "sample", NULL};
const case_family random_cases = {rows, build, generate};
