/*
 * Language models as models of rlxvk_model.h: every architecture of test/data/models as a graph of
 * whole sequences, against the logits that transformers computed. One executable has symbols, and
 * another one shares its weights.
 */
#include "support/harness.h"

#include <math.h>
#include <rlxvk_model.h>
#include <rlxvk_symbols.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

#include "unit/model/golden_numbers.h"

#define FOLDER "test/data/models/"
#define EXACT  5e-5 /* as in test_models.c */

enum { MOST_TOKENS = 64, MOST_LOGITS = 2 * MOST_TOKENS * MOST_VALUES };

static float logits[MOST_LOGITS], again[MOST_LOGITS];

/* Runs tokens [batch, length] in an executable whose dims are symbols, or those numbers. */
static void run(rlxvk_executable *e, bool symbolic, const int32_t *tokens, size_t batch,
                size_t length, size_t words, float *out)
{
    const rlxvk_binding dims[] = {{RLXVK_USER_SYMBOL, (int64_t)batch},
                                  {RLXVK_USER_SYMBOL + 1, (int64_t)length}};
    rlxvk_run_input in = {.name = "tokens",
                          .data = tokens,
                          .length = batch * length,
                          .dtype = RLXVK_I32};
    rlxvk_run_output result = {.buffer = out, .length = batch * length * words};
    assert_true(result.length <= MOST_LOGITS);
    if (symbolic)
        assert_ok(rlxvk_bind_symbols(e, dims, 2));
    assert_ok(rlxvk_run(e, &in, 1, &result, 1));
}

/* The logits of one whole text: those at its end, and the sum at each position. */
static void check_logits(const char *name, const float *got, const golden *want,
                         const numbers *sums)
{
    size_t words = want->logits.count, count = want->ids.count;
    const float *last = got + (count - 1) * words;
    for (size_t i = 0; i < words; i++)
        if (!(fabs((double)last[i] - want->logits.values[i]) <=
              EXACT * (1 + fabs(want->logits.values[i]))))
            fail_msg("%s: logit %zu is %.7g, not %.7g", name, i, (double)last[i],
                     want->logits.values[i]);
    for (size_t p = 0; p < count; p++) {
        double sum = 0, magnitude = 1;
        for (size_t i = 0; i < words; i++) {
            sum += (double)got[p * words + i];
            magnitude += fabs((double)got[p * words + i]);
        }
        if (!(fabs(sum - sums->values[p]) <= EXACT * magnitude))
            fail_msg("%s, position %zu: the logits' sum is %.7g, not %.7g", name, p, sum,
                     sums->values[p]);
    }
}

/* A batch of two texts: the second one reversed, so that it must not show in the first one. */
static void check_batch(const char *name, rlxvk_executable *e, bool symbolic, const golden *want,
                        const numbers *sums)
{
    int32_t tokens[2 * MOST_TOKENS];
    size_t count = want->ids.count, words = want->logits.count;
    for (size_t i = 0; i < count; i++) {
        tokens[i] = (int32_t)want->ids.values[i];
        tokens[count + i] = (int32_t)want->ids.values[count - 1 - i];
    }
    run(e, symbolic, tokens, 2, count, words, logits);
    check_logits(name, logits, want, sums);
    run(e, symbolic, tokens, 2, count, words, again);
    assert_memory_equal(logits, again, 2 * count * words * sizeof *logits);
}

static void read_expected(const char *name, golden *want, numbers *sums)
{
    char path[512];
    snprintf(path, sizeof path, FOLDER "%s.json", name);
    char *json = read_text(path);
    read_golden(json, NULL, want);
    read_numbers(json, NULL, "sums", sums);
    memory_free(json);
}

static void check_file(const char *name)
{
    static golden want;
    static numbers sums;
    char path[512];
    rlxvk_model_binding dims[] = {{.name = "batch", .size = 2}, {.name = "length"}};
    rlxvk_model_graph_options bound = {.bindings = dims, .binding_count = 2};
    rlxvk_compile_options shared = {0};
    rlxvk_executable *symbolic = NULL, *numbered = NULL;
    int32_t tokens[MOST_TOKENS];
    rlxvk_model *m = NULL;
    read_expected(name, &want, &sums);
    assert_true(want.ids.count <= MOST_TOKENS);
    for (size_t i = 0; i < want.ids.count; i++)
        tokens[i] = (int32_t)want.ids.values[i];
    snprintf(path, sizeof path, FOLDER "%s.gguf", name);
    assert_ok(rlxvk_model_open(path, NULL, &m));
    assert_ok(rlxvk_model_executable(m, shared_context, NULL, NULL, &symbolic));
    run(symbolic, true, tokens, 1, want.ids.count, want.logits.count, logits);
    check_logits(name, logits, &want, &sums);
    check_batch(name, symbolic, true, &want, &sums);
    shared.share_with = symbolic;
    dims[1].size = (int64_t)want.ids.count;
    assert_ok(rlxvk_model_executable(m, shared_context, &bound, &shared, &numbered));
    rlxvk_model_destroy(m);
    rlxvk_executable_destroy(symbolic);
    check_batch(name, numbered, false, &want, &sums);
    rlxvk_executable_destroy(numbered);
}

static void test_architectures(void **state)
{
    static const char *const names[] = {"gemma2",   "gemma3",       "granite",    "llama",
                                        "llama-3",  "llama-linear", "llama-yarn", "mistral",
                                        "mixtral",  "phi3",         "phi3-long",  "qwen2",
                                        "qwen2moe", "qwen3",        "qwen3moe"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_file(names[i]);
}

/* ---- What a model tells ---- */

static void test_lists(void **state)
{
    rlxvk_model *m = NULL;
    rlxvk_model_info info;
    size_t count;
    (void)state;
    assert_ok(rlxvk_model_open(FOLDER "llama.gguf", NULL, &m));
    assert_ok(rlxvk_model_inputs(m, &info, 1, &count));
    assert_int_equal(count, 1);
    assert_string_equal(info.name, "tokens");
    assert_int_equal(info.dtype, RLXVK_I32);
    assert_int_equal(info.shape.rank, 2);
    assert_string_equal(info.dim_names[1], "length");
    assert_ok(rlxvk_model_outputs(m, &info, 1, &count));
    assert_int_equal(count, 1);
    assert_string_equal(info.name, "logits");
    assert_int_equal(info.shape.rank, 3);
    assert_true(info.shape.dims[2] > 0);
    rlxvk_model_destroy(m);
}

/* Matrices keep the names and the bytes of the file. */
static void test_params(void **state)
{
    rlxvk_model *m = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_tensor_info infos[256];
    size_t count, packed = 0;
    bool found = false;
    rlxvk_model_binding dims[] = {{.name = "batch", .size = 1}, {.name = "length", .size = 4}};
    rlxvk_model_graph_options bound = {.bindings = dims, .binding_count = 2};
    (void)state;
    assert_ok(rlxvk_model_open("test/data/docs-5m-q4_k_m.gguf", NULL, &m));
    assert_ok(rlxvk_model_executable(m, shared_context, &bound, NULL, &e));
    assert_ok(rlxvk_executable_params(e, infos, 256, &count));
    assert_true(count <= 256);
    for (size_t i = 0; i < count; i++) {
        packed += infos[i].dtype == RLXVK_U8;
        found = found || strcmp(infos[i].name, "blk.0.attn_q.weight") == 0;
    }
    assert_true(found && packed > 10);
    rlxvk_executable_destroy(e);
    rlxvk_model_destroy(m);
}

static void test_bytes(void **state)
{
    file_content file;
    rlxvk_model *m = NULL;
    rlxvk_graph *g = NULL;
    (void)state;
    assert_ok(file_read(FOLDER "llama.gguf", &file));
    assert_ok(rlxvk_model_open_bytes(file.data, (size_t)file.length, NULL, &m));
    assert_ok(rlxvk_model_graph(m, NULL, &g));
    rlxvk_graph_destroy(g);
    rlxvk_model_destroy(m);
    expect_error(rlxvk_model_open_bytes(file.data, (size_t)file.length / 2, NULL, &m), RLXVK_E_FILE,
                 "pass the end of the file");
    assert_null(m);
    file_free(&file);
}

static void test_errors(void **state)
{
    const float one = 1;
    const char *const other[] = {"hidden"}, *const none[] = {NULL};
    rlxvk_model_binding dim = {.name = "length", .size = 1 << 24};
    rlxvk_model_value value = {.name = "tokens", .data = &one, .length = 1, .dtype = RLXVK_F32};
    rlxvk_model_graph_options o = {.bindings = &dim, .binding_count = 1};
    rlxvk_model *m = NULL;
    rlxvk_graph *g = NULL;
    (void)state;
    assert_ok(rlxvk_model_open(FOLDER "llama.gguf", NULL, &m));
    expect_error(rlxvk_model_graph(m, &o, &g), RLXVK_E_RANGE, "exceed the model's context");
    assert_null(g);
    dim.name = "width";
    expect_error(rlxvk_model_graph(m, &o, &g), RLXVK_E_UNKNOWN_NAME, "'width'");
    o = (rlxvk_model_graph_options){.values = &value, .value_count = 1};
    expect_error(rlxvk_model_graph(m, &o, &g), RLXVK_E_UNKNOWN_NAME, "decide sizes");
    o = (rlxvk_model_graph_options){.outputs = other, .output_count = 1};
    expect_error(rlxvk_model_graph(m, &o, &g), RLXVK_E_UNKNOWN_NAME, "'hidden'");
    o.outputs = none;
    expect_error(rlxvk_model_graph(m, &o, &g), RLXVK_E_NULL, "logits");
    rlxvk_model_destroy(m);
    expect_error(rlxvk_model_open("test/data/models/llama.json", NULL, &m), RLXVK_E_FILE, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_architectures), cmocka_unit_test(test_lists),
        cmocka_unit_test(test_params),        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
