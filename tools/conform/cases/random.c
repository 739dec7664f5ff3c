/*
 * Cases of random numbers:
 *   rng_uniform   shape= (or in=like); a= and b= are low and high; key=; op_seed=
 *   rng_normal    the same, but a= and b= are mean and scale
 *   sample        temperature= top_k= top_p= seed= key=; in=x
 *   dropout       rate= seed=; in=x and maybe step; shift=1 drops the first index of axis 0 of x by
 *                 a view
 *
 * The run has the default seed, 42, at step 0. twice=1 draws from two ops and returns both results,
 * one after the other, so that default keys must differ.
 */
#include "conform/cases/cases.h"

#include <stdint.h>
#include <string.h>

static rlxvk_rng_stream stream_of(const case_spec *s)
{
    return (rlxvk_rng_stream){.has_key = case_word(s, "key", NULL) != NULL,
                              .key = (uint64_t)case_integer(s, "key", 0),
                              .has_op_seed = case_word(s, "op_seed", NULL) != NULL,
                              .op_seed = (float)case_real(s, "op_seed", 0)};
}

static rlxvk_tensor draw(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_rng_stream stream = stream_of(s);
    rlxvk_tensor like = case_tensor(s, inputs, "like");
    float a = (float)case_real(s, "a", 0), b = (float)case_real(s, "b", 1);
    bool uniform = strcmp(s->row, "rng_uniform") == 0;
    if (!case_word(s, "shape", NULL))
        return uniform ? rlxvk_rng_uniform_like(g, like, a, b, &stream)
                       : rlxvk_rng_normal_like(g, like, a, b, &stream);
    if (uniform)
        return rlxvk_rng_uniform(g, case_shape(s, "shape"), a, b, &stream);
    return rlxvk_rng_normal(g, case_shape(s, "shape"), a, b, &stream);
}

static rlxvk_tensor drop(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    rlxvk_dropout_options o = {(float)case_real(s, "rate", 0.5),
                               (uint64_t)case_integer(s, "seed", 0)};
    rlxvk_tensor x = case_shifted(g, s, "shift", case_tensor(s, inputs, "x"));
    return rlxvk_dropout(g, x, &o,
                         s->input_count > 1 ? case_tensor(s, inputs, "step") : RLXVK_NONE);
}

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
    if (strcmp(s->row, "dropout") == 0)
        return drop(g, s, inputs);
    rlxvk_sample_options o = {.temperature = (float)case_real(s, "temperature", 1),
                              .top_k = (uint32_t)case_integer(s, "top_k", 0),
                              .top_p = (float)case_real(s, "top_p", 0),
                              .seed = (uint64_t)case_integer(s, "seed", 0),
                              .stream = stream_of(s)};
    if (strcmp(s->row, "sample") == 0)
        return rlxvk_sample(g, case_tensor(s, inputs, "x"), &o);
    rlxvk_tensor first = draw(g, s, inputs);
    if (!case_integer(s, "twice", 0))
        return first;
    return rlxvk_concat(g, (rlxvk_tensor[]){first, draw(g, s, inputs)}, 2, 0);
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

/* Chooses keys so that the first word is a given x with seed 42: key = x / 16807 - 42 mod 2^31 - 1.
 */
static void generate_first_words(case_list *list)
{
    /* 1: fraction 0. m - 1: held below 1. Words near 2^30 that f64 rounds to a tie of f32, and
     * their neighbours. Words at which the number of dropped bits changes. */
    static const uint32_t words[] = {1,          2,          0x7ffffffe, 0x7fffffbe, 0x7fffffbd,
                                     0x3fffffe0, 0x3fffffdf, 0x3fffffe1, 0x40000040, 0x4000003f,
                                     0x40000041, 0x40000000, 0x3fffffff, 0x1000000,  0x1000001,
                                     0x1000002,  0x1000003,  0x2000003,  0x20000021, 0x20000020,
                                     0x2000001f};
    const uint64_t modulus = 2147483647, inverse = 1407677000;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        uint64_t seed = words[i] * inverse % modulus;
        case_add(list, "rng_uniform shape=3 backend=minstd key=%llu",
                 (unsigned long long)((seed + modulus - 42) % modulus));
        case_add(list, "rng_normal shape=3 backend=minstd key=%llu",
                 (unsigned long long)((seed + modulus - 42) % modulus));
    }
}

static void generate_minstd(case_list *list, const char *row)
{
    static const char *const shapes[] = {"1",    "2",    "3",    "4",    "5",    "2x0x3",  "scalar",
                                         "1025", "1607", "1608", "1609", "4096", "3x1x5x7"};
    static const char *const op_seeds[] = {"0",          "0.9",        "-1",         "-7e20",
                                           "1",          "2147483520", "2147483648", "3e9",
                                           "4294967040", "4294967296", "1e30",       "-inf",
                                           "nan"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        case_add(list, "%s shape=%s backend=minstd", row, shapes[i]);
    for (size_t i = 0; i < sizeof op_seeds / sizeof *op_seeds; i++)
        case_add(list, "%s shape=67 backend=minstd op_seed=%s key=5", row, op_seeds[i]);
    for (int key = 1; key < 12; key++)
        case_add(list, "%s shape=%d backend=minstd key=%d", row, 3000 + 1000 * key, key * key);
    /* one chunk or more, of 128 or 256 invocations */
    for (int key = 0; key < 6; key++) {
        case_add(list, "%s shape=%d backend=minstd key=%d", row, 12864 + key, key);
        case_add(list, "%s shape=%d backend=minstd key=%d", row, 25730 + key, key);
        case_add(list, "%s shape=%d backend=minstd key=%d", row, 30001 + 7777 * key, key);
    }
    case_add(list, "%s shape=70001 backend=minstd a=-3 b=3e4", row);
    case_add(list, "%s shape=1000003 backend=minstd a=1 b=3", row);
    case_add(list, "%s shape=9 backend=minstd key=4294967254", row); /* 2^32 - 42: seed 0 */
    case_add(list, "%s shape=9 backend=minstd key=2147483605", row); /* m */
    case_add(list, "%s shape=9 backend=minstd key=4294967252", row); /* 2 m */
    case_add(list, "%s shape=9 backend=minstd key=4294967253", row); /* 2 m + 1 */
    case_add(list, "%s shape=9 backend=zero a=1 b=2", row);
    case_add(list, "%s in=like:f32:3x5", row);
    case_add(list, "%s backend=minstd in=like:i32:2x1x7", row);
    case_add(list, "%s expect=E_ARITY", row);
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
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) /* thousands of equal values */
        case_add(list, "sample %s in=x:f32:1x5000:one", rules[k]);
    for (size_t i = 0; i < sizeof fills / sizeof *fills; i++) /* in parts */
        case_add(list, "sample %s in=x:f32:3x%d:%s", rules[i % 4], 8192 + 4097 * (int)i, fills[i]);
    case_add(list, "sample temperature=0 in=x:f32:2x40000:one");
    case_add(list, "sample temperature=0 in=x:f32:65x8192");
    case_add(list, "sample temperature=0 in=x:f32:7x65:bool"); /* the best is next to zeros */
    case_add(list, "sample temperature=0 in=x:f32:3x9001:bool");
    case_add(list, "sample top_k=2500 in=x:f32:2x5000");
    case_add(list, "sample top_k=2500 top_p=0.3 in=x:f32:2x5000:one");
    case_add(list, "sample temperature=1e-30 top_k=4 in=x:f32:3x70:large");
    case_add(list, "sample temperature=-1 in=x:f32:4 expect=E_ATTR");
    case_add(list, "sample temperature=nan in=x:f32:4 expect=E_ATTR");
    case_add(list, "sample top_p=1.5 in=x:f32:4 expect=E_ATTR");
    case_add(list, "sample in=x:f32:scalar expect=E_SHAPE");
    case_add(list, "sample in=x:f32:3x0 expect=E_SHAPE");
}

static void generate_dropouts(case_list *list)
{
    static const char *const shapes[] = {
        "1",      "2",    "3",    "4",    "5",    "8",    "9",       "7x3",   "2x0x3",          "0",
        "scalar", "1025", "2047", "2048", "2049", "4096", "3x1x5x7", "70001", "2x2x2x2x2x2x2x3"};
    static const char *const rates[] = {"0",    "0.1",        "0.5",          "0.9",
                                        "1e-9", "0.99999994", "5.9604645e-08"};
    static const char *const steps[] = {"0",       "0.5",       "0.49999997", "1",
                                        "1.5",     "2.4999998", "7",          "8388607.5",
                                        "8388609", "16777215",  "3e9",        "4294967040",
                                        "1e30",    "inf",       "-3",         "-inf",
                                        "nan"};
    static const char *const fills[] = {"special", "large", "constant:nan", "constant:inf", "zero"};
    for (size_t i = 0; i < COUNT(shapes); i++) {
        case_add(list, "dropout seed=%zu in=x:f32:%s", i, shapes[i]);
        case_add(list, "dropout rate=0.1 seed=77 in=x:f32:%s;step:f32:1:constant:%zu", shapes[i],
                 i);
    }
    for (size_t i = 0; i < COUNT(rates); i++) {
        case_add(list, "dropout rate=%s seed=3 in=x:f32:5003", rates[i]);
        case_add(list, "dropout rate=%s seed=3 in=x:f32:131:special;step:f32:scalar:constant:9",
                 rates[i]);
    }
    for (size_t i = 0; i < COUNT(steps); i++)
        case_add(list, "dropout seed=5 in=x:f32:67;step:f32:1x1:constant:%s", steps[i]);
    for (size_t i = 0; i < COUNT(fills); i++)
        case_add(list, "dropout rate=0.3 in=x:f32:517:%s", fills[i]);
    for (int i = 0; i < 8; i++)
        case_add(list, "dropout rate=0.25 seed=%lld shift=%d in=x:f32:%dx5;step:f32:1:index:9",
                 0x123456789abcdefLL * (i + 1), i % 4, 40 + i);
    case_add(list, "dropout backend=zero in=x:f32:33");
    case_add(list, "dropout backend=minstd in=x:f32:33");
    case_add(list, "dropout in=x:f16:77");
    case_add(list, "dropout in=x:bf16:77;step:i32:1:constant:4");
    case_add(list, "dropout in=x:i32:77:integers");
    case_add(list, "dropout rate=1 in=x:f32:4 expect=E_ATTR");
    case_add(list, "dropout rate=-0.1 in=x:f32:4 expect=E_ATTR");
    case_add(list, "dropout rate=nan in=x:f32:4 expect=E_ATTR");
    case_add(list, "dropout in=x:f32:4;step:f32:2 expect=E_SHAPE");
    case_add(list, "dropout in=x:f32:4;step:f32:0 expect=E_SHAPE");
    case_add(list, "dropout in=x:c64:4 expect=E_DTYPE");
}

static void generate(case_list *list)
{
    generate_dropouts(list);
    generate_numbers(list, "rng_uniform");
    generate_numbers(list, "rng_normal");
    generate_minstd(list, "rng_uniform");
    generate_minstd(list, "rng_normal");
    generate_first_words(list);
    case_add(list, "sample temperature=1 backend=minstd in=x:f32:4x320");
    case_add(list, "rng_uniform shape=33 twice=1");
    generate_samples(list);
    /* Ranges that are longer than f32 can hold. Logits whose quotient by the temperature exceeds
     * f32: all low, all high, or both. */
    case_add(list, "rng_uniform shape=301 a=-3e38 b=3e38");
    case_add(list, "rng_uniform shape=301 a=-3.4028235e38 b=3.4028235e38");
    case_add(list, "rng_uniform shape=301 backend=minstd a=-3e38 b=2e38");
    for (int threads = 0; threads < 2; threads++) {
        int length = threads ? 9001 : 70;
        for (int i = 0; i < 4; i++) {
            static const char *const options[] = {"temperature=0.5", "temperature=1e-5 top_k=7",
                                                  "temperature=0.01 top_p=0.5", "temperature=1e30"};
            case_add(list, "sample %s key=%d in=x:f32:3x%d:range:-3.4e38:-3e38", options[i], i,
                     length);
            case_add(list, "sample %s key=%d in=x:f32:3x%d:range:3e38:3.4e38", options[i], i,
                     length);
            case_add(list, "sample %s key=%d in=x:f32:3x%d:range:-3.4e38:3.4e38", options[i], i,
                     length);
            case_add(list, "sample %s key=%d in=x:f32:3x%d:constant:-3.4028234e38", options[i], i,
                     length);
        }
    }
}

static const char *const rows[] = {"rng_uniform", "rng_normal", "sample", "dropout", NULL};
const case_family random_cases = {rows, build, generate};
