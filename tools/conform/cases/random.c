/*
 * Cases of rng_uniform, rng_normal (shape=; a= and b= are low and high, or mean and scale; key=;
 * op_seed=; in=like instead of shape=) and sample (temperature= top_k= top_p= seed= key=; in=x).
 * The run's seed is the default, 42, at step 0. twice=1 draws from two ops and returns both, one
 * after the other, so that default keys must differ.
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

static rlxvk_tensor build(rlxvk_graph *g, const case_spec *s, const rlxvk_tensor *inputs)
{
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

/* Keys that make the first word x of seed 42 what is said: key = x / 16807 - 42 mod 2^31 - 1. */
static void generate_first_words(case_list *list)
{
    /* 1: fraction 0. m - 1: 1, held below 1. Those about 2^30 where f64 rounds to a tie of f32, and
     * their neighbours; those where the number of bits left out changes. */
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
    generate_minstd(list, "rng_uniform");
    generate_minstd(list, "rng_normal");
    generate_first_words(list);
    case_add(list, "sample temperature=1 backend=minstd in=x:f32:4x320");
    case_add(list, "rng_uniform shape=33 twice=1");
    generate_samples(list);
}

static const char *const rows[] = {"rng_uniform", "rng_normal", "sample", NULL};
const case_family random_cases = {rows, build, generate};
