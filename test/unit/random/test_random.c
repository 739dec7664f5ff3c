/*
 * Philox and MINSTD against their published vectors, the sampling table of the definition, the run
 * counter, and simple statistics.
 */
#include "op/random/random.h"
#include "support/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void test_philox_vectors(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
        {{0, 0, 0, 0}, {42, 0}, {0x9ceaf053, 0x77f5493b, 0x12bf50ad, 0x5742b3d7}},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint32_t out[4];
        random_philox(rows[i].counter, rows[i].key, out);
        assert_memory_equal(out, rows[i].out, sizeof out);
    }
}

/* If no key is given, it is the number of random ops so far. Counting them again for each op would
 * take minutes here. */
static void test_keys_are_counted(void **state)
{
    enum { COUNT = 200000 };
    rlxvk_graph *g;
    uint64_t keys = 0;
    (void)state;
    assert_int_equal(rlxvk_graph_create(&g), RLXVK_OK);
    for (int i = 0; i < COUNT / 2; i++) {
        rlxvk_tensor x = rlxvk_rng_uniform(g, RLXVK_SHAPE(4), 0, 1, NULL);
        rlxvk_sample(g, x, NULL);
    }
    assert_int_equal(rlxvk_graph_status(g), RLXVK_OK);
    for (uint32_t id = 0; id < g->nodes.count; id++) {
        const node *n = graph_node(g, id);
        if (n->op == OP_rng_uniform)
            assert_int_equal(((const rng_attributes *)n->attributes)->stream.key, keys++);
        if (n->op == OP_sample)
            assert_int_equal(((const sample_attributes *)n->attributes)->options.stream.key,
                             keys++);
    }
    assert_int_equal(keys, COUNT);
    rlxvk_graph_destroy(g);
}

/* Compiles one graph with a uniform, a normal and a sample op. */
static rlxvk_executable *compile_draws(rlxvk_context *c, rlxvk_graph **g,
                                       const rlxvk_rng_options *rng)
{
    rlxvk_executable *e = NULL;
    rlxvk_sample_options sample = {.temperature = 1, .stream = {.has_key = true}};
    rlxvk_rng_stream first = {.has_key = true};
    expect_ok(rlxvk_graph_create(g));
    rlxvk_graph_output(*g, rlxvk_rng_uniform(*g, RLXVK_SHAPE(4), 0, 1, &first));
    rlxvk_graph_output(*g, rlxvk_rng_normal(*g, RLXVK_SHAPE(4), 0, 1, &first));
    rlxvk_tensor logits = rlxvk_input(*g, "logits", RLXVK_F32, RLXVK_SHAPE(4, 8));
    rlxvk_graph_output(*g, rlxvk_sample(*g, logits, &sample));
    expect_ok(
        rlxvk_compile(c, *g, &(rlxvk_compile_options){.rng = rng, .forbid_host = RLXVK_ON}, &e));
    return e;
}

static void run_draws(rlxvk_executable *e, float uniform[4], float normal[4], float chosen[4])
{
    static const float row[] = {1, 2, 0.5f, 3, 2.5f, -1, 0, 1.5f};
    float logits[32];
    for (int i = 0; i < 4; i++)
        memcpy(logits + 8 * i, row, sizeof row);
    rlxvk_run_input in = {"logits", logits, 32, RLXVK_F32};
    rlxvk_run_output out[] = {{0, uniform, 4, 0}, {1, normal, 4, 0}, {2, chosen, 4, 0}};
    expect_ok(rlxvk_run(e, &in, 1, out, 3));
}

static void test_run_counter(void **state)
{
    static const float uniforms[] = {0.61295986f, 0.46858650f, 0.07323170f, 0.34086150f};
    static const float normals[] = {-0.970189805f, -1.235620267f, -0.073181484f, -1.106664952f};
    static const float choices[2][4] = {{7, 7, 2, 1}, {4, 0, 1, 6}};
    rlxvk_context *c = open_context(NULL);
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = compile_draws(c, &g, NULL);
    float u[4], z[4], chosen[4];
    rlxvk_rng_options rng;
    (void)state;
    for (int run = 0; run < 2; run++) { /* no advance: each run is the same */
        run_draws(e, u, z, chosen);
        assert_memory_equal(chosen, choices[0], sizeof chosen);
        for (int i = 0; i < 4; i++) {
            assert_true(fabsf(u[i] - uniforms[i]) < 1e-7f);
            assert_true(fabsf(z[i] - normals[i]) < 4e-6f);
        }
    }
    rlxvk_get_rng(e, &rng);
    assert_true(rng.seed == 42 && rng.step == 0 && !rng.advance_per_run);
    rng.advance_per_run = true;
    expect_ok(rlxvk_set_rng(e, &rng));
    for (int step = 0; step < 2; step++) {
        run_draws(e, u, z, chosen);
        assert_memory_equal(chosen, choices[step], sizeof chosen);
    }
    rlxvk_get_rng(e, &rng);
    assert_int_equal(rng.step, 2);
    rng.backend = RLXVK_RNG_ZERO;
    rng.step = 0;
    expect_ok(rlxvk_set_rng(e, &rng));
    run_draws(e, u, z, chosen);
    assert_true(u[0] == 0 && z[3] == 0);
    assert_memory_equal(chosen, choices[0], sizeof chosen); /* sampling still draws */
    rng.backend = (rlxvk_rng_backend)3;
    expect_error(rlxvk_set_rng(e, &rng), RLXVK_E_ATTR, "backend 3");
    rng.backend = RLXVK_RNG_MINSTD;
    rng.seed = 1;
    expect_ok(rlxvk_set_rng(e, &rng)); /* the same recording */
    run_draws(e, u, z, chosen);
    assert_true(u[0] == (float)(16806.0 / 2147483646) && fabsf(z[0] - 1.60159211f) < 4e-6f);
    rlxvk_executable_destroy(e);
    rng = (rlxvk_rng_options){.seed = 0};
    rlxvk_graph_destroy(g);
    e = compile_draws(c, &g, &rng);
    run_draws(e, u, z, chosen);
    assert_true(fabsf(u[0] - uniforms[0]) > 1e-3f);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

/* Seed 1 and the seeds that count as 1: 0, a saturated one, and m + 1. Compares the first words,
 * and the 10,000th, which Park and Miller give as 1043618065. Also compares normals that were
 * computed from the definition in another way. */
static void test_minstd_vectors(void **state)
{
    enum { WORDS = 10000, NORMALS = 6 };
    static const double words[] = {16807, 282475249, 1622650073, 984943658, 1144108930};
    static const float normals[NORMALS] = {1.60159211f,  -0.259093203f, 0.174767548f,
                                           -1.49896116f, -0.302023243f, 0.119264069f};
    static const rlxvk_rng_stream streams[] = {
        {.has_key = true},
        {.has_key = true, .key = 9, .has_op_seed = true, .op_seed = 1.75f},
        {.has_key = true, .key = 9, .has_op_seed = true, .op_seed = 0},
        {.has_key = true, .key = 9, .has_op_seed = true, .op_seed = -3},
        {.has_key = true, .key = 9, .has_op_seed = true, .op_seed = 1e20f},
        {.has_key = true, .key = 9, .has_op_seed = true, .op_seed = 2147483648.0f},
        {.has_key = true, .key = 2147483647},
        {.has_key = true, .key = (1ull << 32) - 1},
    };
    static const rlxvk_rng_options rng = {.seed = 1, .backend = RLXVK_RNG_MINSTD, .step = 5};
    rlxvk_context *c = open_context(NULL);
    float *u = malloc(WORDS * sizeof *u), z[NORMALS];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(streams); i++) {
        rlxvk_graph *g = NULL;
        rlxvk_executable *e = NULL;
        expect_ok(rlxvk_graph_create(&g));
        rlxvk_graph_output(g, rlxvk_rng_uniform(g, RLXVK_SHAPE(WORDS), 0, 1, &streams[i]));
        rlxvk_graph_output(g, rlxvk_rng_normal(g, RLXVK_SHAPE(NORMALS), 0, 1, &streams[i]));
        expect_ok(rlxvk_compile(c, g,
                                &(rlxvk_compile_options){.rng = &rng, .forbid_host = RLXVK_ON},
                                &e));
        rlxvk_run_output out[] = {{0, u, WORDS, 0}, {1, z, NORMALS, 0}};
        expect_ok(rlxvk_run(e, NULL, 0, out, 2));
        for (size_t k = 0; k < ARRAY_COUNT(words); k++)
            assert_true(u[k] == (float)((words[k] - 1) / 2147483646));
        assert_true(u[WORDS - 1] == (float)(1043618064.0 / 2147483646));
        for (size_t k = 0; k < NORMALS; k++)
            assert_true(fabsf(z[k] - normals[k]) < 2e-6f);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
    free(u);
    close_context(c);
}

/* A million normals: mean, variance and tail. 100,000 draws from four tokens: chi-square. */
static void test_statistics(void **state)
{
    enum { NORMALS = 1000000, DRAWS = 100000 };
    static const double logits[] = {0, 1, 2, 0.5};
    rlxvk_context *c = open_context(NULL);
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    float *z = malloc(NORMALS * sizeof *z), *x = malloc(DRAWS * 4 * sizeof *x);
    float *chosen = malloc(DRAWS * sizeof *chosen);
    double mean = 0, square = 0, counts[4] = {0}, total = 0, chi = 0;
    (void)state;
    for (int i = 0; i < DRAWS * 4; i++)
        x[i] = (float)logits[i % 4];
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_graph_output(g, rlxvk_rng_normal(g, RLXVK_SHAPE(NORMALS), 0, 1, NULL));
    rlxvk_tensor rows = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(DRAWS, 4));
    rlxvk_graph_output(g, rlxvk_sample(g, rows, &(rlxvk_sample_options){.temperature = 1}));
    expect_ok(rlxvk_compile(c, g, NULL, &e));
    rlxvk_run_input in = {"x", x, DRAWS * 4, RLXVK_F32};
    rlxvk_run_output out[] = {{0, z, NORMALS, 0}, {1, chosen, DRAWS, 0}};
    expect_ok(rlxvk_run(e, &in, 1, out, 2));
    for (int i = 0; i < NORMALS; i++) {
        mean += z[i] / NORMALS;
        square += (double)z[i] * z[i] / NORMALS;
    }
    assert_true(fabs(mean) < 4e-3 && fabs(square - mean * mean - 1) < 6e-3);
    for (int i = 0; i < DRAWS; i++)
        counts[(int)chosen[i]]++;
    for (int i = 0; i < 4; i++)
        total += exp(logits[i]);
    for (int i = 0; i < 4; i++) {
        double expected = DRAWS * exp(logits[i]) / total;
        chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    assert_true(chi < 21.1); /* p = 1e-4 at three degrees of freedom */
    free(z);
    free(x);
    free(chosen);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_philox_vectors),
                                       cmocka_unit_test(test_keys_are_counted),
                                       cmocka_unit_test(test_run_counter),
                                       cmocka_unit_test(test_minstd_vectors),
                                       cmocka_unit_test(test_statistics)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
