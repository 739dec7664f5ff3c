/*
 * Language models. The bundled ones must give their golden logits and tokens. A small random model
 * with all optional parts must give the same logits from runs over prompts and from runs over
 * single tokens. Broken files must be refused.
 */
#include "unit/model/gguf_builder.h"
#include "model/language/llama_internal.h"
#include "support/harness.h"
#include "op/packed/quant_format.h"

#include <rlxvk_symbols.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

#include "unit/model/golden_numbers.h"
#include "unit/model/small_model.h"

enum { LENGTH = 256 };

/* ---- Golden values ---- */

static void check_logits(const float *logits, const numbers *expected, const char *entry)
{
    double worst = 0;
    for (size_t i = 0; i < expected->count; i++)
        worst = fmax(worst, fabs((double)logits[i] - expected->values[i]));
    if (!(worst <= 2e-3))
        fail_msg("%s: logits are off by %g", entry, worst);
}

/* Stops at the first step that has two nearly equal logits, because either choice may be right and
 * later tokens depend on it. */
static void check_tokens(llama *m, float *logits, uint32_t chosen, size_t vocabulary,
                         const golden *want)
{
    for (size_t i = 0; i < want->greedy.count && want->margin.values[i] >= 1e-3; i++) {
        uint32_t id = best_of(logits, vocabulary);
        assert_int_equal(chosen, id); /* the device takes the largest logit */
        assert_int_equal(id, (uint32_t)want->greedy.values[i]);
        if (i + 1 < want->greedy.count)
            assert_ok(llama_decode(m, id, (llama_result){logits, &chosen}));
    }
}

static void check_report(const llama *m)
{
    rlxvk_language_report report;
    llama_usage(m, &report);
    assert_int_equal(report.host_steps, 0);
    assert_true(report.step_dispatches > 0);
    assert_int_equal(report.step_submissions, report.step_runs);
    if (m->last_chunk) { /* the padding must be skipped */
        rlxvk_extent_report rows;
        if (!rlxvk_extent_supported(m->last_chunk, &rows))
            fail_msg("%s", rows.reason);
        assert_true(rows.actual > 0 && rows.scaled_dispatches > 0);
    }
}

static void check_golden(const gguf_file *file, const char *json, const char *entry)
{
    static golden want;
    uint32_t ids[MOST_VALUES], chosen;
    float logits[MOST_VALUES];
    llama *m = NULL;
    read_golden(json, entry, &want);
    for (size_t i = 0; i < want.ids.count; i++)
        ids[i] = (uint32_t)want.ids.values[i];
    assert_ok(llama_load(shared_context, file, &(rlxvk_language_options){.capacity = LENGTH}, &m));
    assert_int_equal(llama_configuration(m)->vocabulary, want.logits.count);
    assert_ok(llama_extend(m, ids, want.ids.count, (llama_result){logits, &chosen}));
    check_logits(logits, &want.logits, entry);
    check_tokens(m, logits, chosen, want.logits.count, &want);
    check_report(m);
    llama_rewind(m);
    assert_ok(llama_extend(m, ids, want.ids.count, (llama_result){logits, NULL}));
    check_logits(logits, &want.logits, entry);
    llama_destroy(m);
}

static void test_golden(void **state)
{
    const char *variant = *state;
    char name[96];
    gguf_file *file = NULL;
    char *json = read_text("test/data/docs-5m-golden.json");
    snprintf(name, sizeof name, "test/data/docs-5m-%s.gguf", variant);
    assert_ok(gguf_result(gguf_open(name, &file)));
    for (int prompt = 0; prompt < 3; prompt++) {
        snprintf(name, sizeof name, "%s.%d", variant, prompt);
        check_golden(file, json, name);
    }
    gguf_close(file);
    memory_free(json);
}

static void copy_file(const char *from, const char *to)
{
    file_content content;
    FILE *file = fopen(to, "wb");
    assert_ok(file_read(from, &content));
    assert_non_null(file);
    assert_int_equal(fwrite(content.data, 1, content.length, file), content.length);
    assert_int_equal(fclose(file), 0);
    file_free(&content);
}

/* The file shrinks to different lengths while the model is loaded. */
static void a_file_cut_short_while_loading_is_an_error(void **state)
{
    char path[] = "/tmp/rlxvk-model-XXXXXX";
    (void)state;
    close(mkstemp(path));
    for (off_t length = 0; length < 9 << 20; length += 2 << 20) {
        gguf_file *file = NULL;
        llama *m = NULL;
        copy_file("test/data/docs-5m-f16.gguf", path);
        assert_ok(gguf_result(gguf_open(path, &file)));
        assert_int_equal(truncate(path, length), 0);
        assert_int_equal(llama_load(shared_context, file, NULL, &m), RLXVK_E_FILE);
        assert_non_null(strstr(rlxvk_last_error(), path));
        gguf_close(file);
    }
    unlink(path);
}

/* ---- A small model, several ways ---- */

/* Returns the logits after the last of `count` ids. All but the last `steps` ids are run in chunks
 * of up to `chunk`; the last ones are run one by one. */
static void run_small(const gguf_file *file, const uint32_t *ids, size_t count, size_t chunk,
                      size_t steps, float *logits)
{
    llama *m = NULL;
    assert_ok(llama_load(shared_context, file, &(rlxvk_language_options){.capacity = 50}, &m));
    for (size_t at = 0, n; at < count; at += n) {
        n = at < count - steps ? MIN(chunk, count - steps - at) : 1;
        assert_ok(llama_prepare(m, n));
        assert_ok(llama_extend(m, ids + at, n, (llama_result){logits, NULL}));
    }
    check_report(m);
    llama_destroy(m);
}

enum { LONG_PROMPT = 49 };

/* Compares a run over the whole prompt with runs over chunks and over single tokens. Some chunks
 * are padded, and they begin at any position. */
static void compare_paths(bool tied, bool biased, bool mixed)
{
    static small_model m;
    static const size_t chunks[][2] = {{49, 1}, {30, 6}, {8, 0}, {5, 11}, {47, 0}, {1, 0}};
    uint32_t ids[LONG_PROMPT];
    float whole[WORDS], parted[WORDS];
    memset(&m, 0, sizeof m);
    m.tied = tied, m.biased = biased, m.mixed = mixed;
    for (size_t i = 0; i < LONG_PROMPT; i++)
        ids[i] = (uint32_t)(i * i + 3 * i + i / 7) % WORDS;
    gguf_file *file = make_small_model(&m);
    run_small(file, ids, LONG_PROMPT, LONG_PROMPT, 0, whole);
    for (size_t c = 0; c < ARRAY_COUNT(chunks); c++) {
        run_small(file, ids, LONG_PROMPT, chunks[c][0], chunks[c][1], parted);
        for (size_t i = 0; i < WORDS; i++)
            if (!(fabsf(whole[i] - parted[i]) <= 1e-5f * (1 + fabsf(whole[i]))))
                fail_msg("chunks of %zu, then %zu steps, logit %zu: %g, not %g", chunks[c][0],
                         chunks[c][1], i, (double)parted[i], (double)whole[i]);
    }
    gguf_close(file);
}

static void test_small_plain(void **state)
{
    (void)state;
    compare_paths(false, false, false);
}

static void test_small_tied_biased_mixed(void **state)
{
    (void)state;
    compare_paths(true, true, true);
}

/* The same experts must give the same logits, packed or not. test_models checks the experts'
 * sums. */
static void test_packed_experts(void **state)
{
    (void)state;
    static small_model plain = {.experts = true}, packed = {.experts = true, .packed = true};
    static const uint32_t ids[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
    float expected[WORDS], logits[WORDS];
    gguf_file *file = make_small_model(&plain);
    run_small(file, ids, ARRAY_COUNT(ids), ARRAY_COUNT(ids), 2, expected);
    gguf_close(file);
    file = make_small_model(&packed);
    run_small(file, ids, ARRAY_COUNT(ids), ARRAY_COUNT(ids), 2, logits);
    gguf_close(file);
    for (size_t i = 0; i < WORDS; i++)
        assert_true(fabsf(logits[i] - expected[i]) <= 1e-4f * (1 + fabsf(expected[i])));
}

/* Whichever allocation fails, loading must report only that, and clean up. */
static void test_allocation_failure(void **state)
{
    (void)state;
    static small_model s;
    uint64_t first, total;
    memset(&s, 0, sizeof s);
    gguf_file *file = make_small_model(&s);
    llama *m = NULL;
    first = memory_allocation_count();
    assert_ok(llama_load(shared_context, file, NULL, &m));
    total = memory_allocation_count() - first;
    llama_destroy(m);
    for (uint64_t n = 1; n <= total; n += n < 40 ? 1 : 1 + total / 60) {
        m = NULL;
        memory_fail_at(n);
        rlxvk_status status = llama_load(shared_context, file, NULL, &m);
        memory_fail_at(0);
        if (status == RLXVK_OK) /* for example, loading can do without a pipeline cache */
            llama_destroy(m);
        else
            assert_int_equal(status, RLXVK_E_OUT_OF_HOST_MEMORY);
    }
    gguf_close(file);
}

/* ---- Refusals ---- */

typedef struct patch {
    const char *find, *replace; /* of the same length; the first match counts */
    size_t skip;                /* bytes from `find` to the patch; 0: `find` itself */
    rlxvk_status status;
    const char *mentions;
} patch;

static const patch patches[] = {
    {"\5\0\0\0\0\0\0\0llama", "\5\0\0\0\0\0\0\0mamba", 0, RLXVK_E_UNSUPPORTED,
     "'mamba'; those that run are llama, qwen2,"},
    {"llama.block_count", "llama.block_counx", 0, RLXVK_E_UNKNOWN_NAME, "llama.block_count"},
    {"llama.attention.layer_norm_rms", "llama.attention.layer_norm_rmx", 0, RLXVK_E_UNKNOWN_NAME,
     "layer_norm_rms_epsilon"},
    {"general.architecture", "general.architecturx", 0, RLXVK_E_UNKNOWN_NAME,
     "general.architecture"},
    {"blk.3.ffn_up.weight", "blk.3.ffn_ux.weight", 0, RLXVK_E_UNKNOWN_NAME, "blk.3.ffn_up.weight"},
    {"token_embd.weight", "token_embx.weight", 0, RLXVK_E_UNKNOWN_NAME, "token_embd.weight"},
    {"output_norm.weight", "output_nomr.weight", 0, RLXVK_E_UNKNOWN_NAME, "output_norm.weight"},
    /* Swaps dims: 256 x 768 and 256 x 128 become their transposes. */
    {"blk.2.ffn_gate.weight", "\0\3\0\0\0\0\0\0\0\1\0\0\0\0\0\0", 4, RLXVK_E_SHAPE,
     "blk.2.ffn_gate.weight"},
    {"blk.0.attn_v.weight", "\200\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0", 4, RLXVK_E_SHAPE,
     "blk.0.attn_v.weight"},
    {"blk.1.attn_k.weight", "\30\0\0\0", 20, RLXVK_E_UNSUPPORTED, "I8 (1, first 'blk.1.attn_k"},
    {"llama.attention.head_count_kv", "\3\0\0\0", 4, RLXVK_E_RANGE, "3 key/value heads"},
    {"llama.rope.dimension_count", "\101\0\0\0", 4, RLXVK_E_RANGE, "rope.dimension_count"},
    {"llama.vocab_size", "\77\1\0\0", 4, RLXVK_E_SHAPE, "token_embd.weight"},
    {"llama.embedding_length", "\0\0\0\0", 4, RLXVK_E_RANGE, "embedding_length"},
    {"llama.block_count", "\0\0\0\20", 4, RLXVK_E_RANGE, "block_count"},
    {"llama.block_count", "\7\0\0\0", 4, RLXVK_E_UNKNOWN_NAME, "blk.6."},
};

/* Lengths are explicit because some patches contain zero bytes. */
static size_t find_length(const patch *p)
{
    return p->find[1] == 0 ? 13 : strlen(p->find);
}

static size_t replace_length(const patch *p)
{
    if (p->skip == 0)
        return find_length(p);
    return strncmp(p->find, "llama.", 6) == 0 || p->skip == 20 ? 4 : 16;
}

static void apply_patch(uint8_t *bytes, size_t length, const patch *p)
{
    size_t size = find_length(p);
    for (size_t i = 0; i + size < length; i++)
        if (memcmp(bytes + i, p->find, size) == 0) {
            memcpy(bytes + i + (p->skip ? size + p->skip : 0), p->replace, replace_length(p));
            return;
        }
    fail_msg("'%s' is not in the file", p->find);
}

static void test_refusals(void **state)
{
    (void)state;
    file_content content;
    assert_ok(file_read("test/data/docs-5m-q8_0.gguf", &content));
    uint8_t *bytes = memory_zeroed(content.length, 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < ARRAY_COUNT(patches); i++) {
        gguf_file *file = NULL;
        llama *m = NULL;
        memcpy(bytes, content.data, content.length);
        apply_patch(bytes, content.length, &patches[i]);
        assert_ok(gguf_result(gguf_parse(bytes, content.length, NULL, &file)));
        rlxvk_status status = llama_load(shared_context, file, NULL, &m);
        if (status != patches[i].status || !strstr(rlxvk_last_error(), patches[i].mentions))
            fail_msg("patch %zu: %s: %s", i, rlxvk_status_name(status), rlxvk_last_error());
        assert_null(m);
        gguf_close(file);
    }
    memory_free(bytes);
    file_free(&content);
}

static void test_features_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key, *word;
        uint32_t number;
    } cases[] = {{"llama.rope.scaling.type", "dynamic", 0},
                 {"llama.tensor_data_layout", "Meta AI original pth", 0},
                 {"llama.expert_gating_func", NULL, 2},
                 {"llama.rope.dimension_sections", NULL, 3},
                 {"llama.attention.value_length", NULL, 4}};
    static builder b;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        gguf_file *file = NULL;
        llama_config config;
        memset(&b, 0, sizeof b);
        put_header(&b, 3, 0, 7);
        put_text(&b, "general.architecture", "llama");
        put_u32(&b, "llama.block_count", 1);
        put_u32(&b, "llama.context_length", 64);
        put_u32(&b, "llama.embedding_length", WIDTH);
        put_u32(&b, "llama.feed_forward_length", FFN);
        put_u32(&b, "llama.attention.head_count", HEADS);
        if (cases[i].word)
            put_text(&b, cases[i].key, cases[i].word);
        else
            put_u32(&b, cases[i].key, cases[i].number);
        assert_ok(gguf_result(gguf_parse(b.bytes, b.length, NULL, &file)));
        assert_int_equal(llama_read_config(file, &config), RLXVK_E_UNSUPPORTED);
        gguf_close(file);
    }
}

/* Which blocks have a window. The key is either a number or a list of flags. */
static void window_patterns(void **state)
{
    (void)state;
    static const struct {
        uint8_t flags[8];
        uint64_t count; /* of flags; 0: flags[0] is the number */
        rlxvk_status status;
        const char *local; /* of the first six blocks: 1 has a window */
    } cases[] = {{{2}, 0, RLXVK_OK, "101010"},
                 {{0}, 0, RLXVK_OK, "111111"},
                 {{1, 1, 0, 1, 1, 0, 1}, 7, RLXVK_OK, "110110"},
                 {{1, 1, 1}, 3, RLXVK_OK, "111111"},
                 {{0, 0, 0}, 3, RLXVK_OK, "000000"},
                 {{1, 0, 0, 1}, 4, RLXVK_E_UNSUPPORTED, NULL}};
    static builder b;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        static const char key[] = "gemma3.attention.sliding_window_pattern";
        static const uint64_t dims[] = {WIDTH, WORDS};
        gguf_file *file = NULL;
        llama_config config;
        memset(&b, 0, sizeof b);
        put_header(&b, 3, 6, 9);
        put_text(&b, "general.architecture", "gemma3");
        put_u32(&b, "gemma3.block_count", 6);
        put_u32(&b, "gemma3.context_length", 64);
        put_u32(&b, "gemma3.embedding_length", WIDTH);
        put_u32(&b, "gemma3.feed_forward_length", FFN);
        put_u32(&b, "gemma3.attention.head_count", HEADS);
        put_u32(&b, "gemma3.attention.sliding_window", 8);
        put_key(&b, "gemma3.attention.layer_norm_rms_epsilon", GGUF_F32);
        put(&b, 0x3727c5ac, 4); /* 1e-5 */
        if (cases[i].count)
            put_array(&b, key, GGUF_BOOL, cases[i].count);
        else
            put_u32(&b, key, cases[i].flags[0]);
        for (uint64_t k = 0; k < cases[i].count; k++)
            put(&b, cases[i].flags[k], 1);
        put_tensor(&b, "token_embd.weight", QUANT_F32, 0, 2, dims);
        for (int k = 1; k < 6; k++) {
            char name[16];
            snprintf(name, sizeof name, "filler.%d", k);
            put_tensor(&b, name, QUANT_F32, (uint64_t)k * WIDTH * WORDS * 4, 2, dims);
        }
        put_data(&b, 32, 6 * WIDTH * WORDS * 4);
        assert_ok(gguf_result(gguf_parse(b.bytes, b.length, NULL, &file)));
        rlxvk_status status = llama_read_config(file, &config);
        if (status != cases[i].status)
            fail_msg("case %zu: %s: %s", i, rlxvk_status_name(status), rlxvk_last_error());
        for (int k = 0; cases[i].local && k < 6; k++)
            assert_int_equal(llama_is_local(&config, k), cases[i].local[k] == '1');
        gguf_close(file);
    }
}

static void test_lengths(void **state)
{
    (void)state;
    static small_model s;
    static const uint32_t ids[] = {1, 2, WORDS};
    float logits[WORDS];
    llama *m = NULL;
    memset(&s, 0, sizeof s);
    gguf_file *file = make_small_model(&s);
    assert_int_equal(llama_load(shared_context, file, &(rlxvk_language_options){.capacity = 101},
                                &m),
                     RLXVK_E_RANGE);
    assert_null(m);
    assert_ok(llama_load(shared_context, file, NULL, &m));
    assert_int_equal(llama_extend(m, ids, 0, (llama_result){logits, NULL}), RLXVK_E_RANGE);
    assert_int_equal(llama_extend(m, ids + 1, 2, (llama_result){logits, NULL}), RLXVK_E_INDEX_OOB);
    assert_int_equal(llama_prepare(m, 101), RLXVK_E_RANGE);
    assert_ok(llama_extend(m, ids, 2, (llama_result){logits, NULL}));
    assert_int_equal(llama_decode(m, WORDS, (llama_result){logits, NULL}), RLXVK_E_INDEX_OOB);
    assert_int_equal(llama_extend(m, ids, 99, (llama_result){logits, NULL}), RLXVK_E_RANGE);
    for (int i = 0; i < 98; i++)
        assert_ok(llama_decode(m, 1, (llama_result){logits, NULL}));
    assert_int_equal(llama_decode(m, 1, (llama_result){logits, NULL}), RLXVK_E_RANGE);
    llama_destroy(m);
    gguf_close(file);
}

/* Prompts of different lengths share one graph for each length of chunks. */
static void one_graph_a_length(void **state)
{
    (void)state;
    static small_model s;
    static const size_t lengths[] = {3, 8, 7, 1, 5};
    static const uint32_t ids[64] = {1, 2, 3};
    memset(&s, 0, sizeof s);
    gguf_file *file = make_small_model(&s);
    llama *m = NULL;
    rlxvk_language_report report;
    assert_ok(llama_load(shared_context, file, NULL, &m));
    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
        llama_rewind(m);
        assert_ok(llama_extend(m, ids, lengths[i], (llama_result){NULL, NULL}));
    }
    llama_usage(m, &report);
    assert_int_equal(report.graphs, 2); /* a chunk's and the step's */
    assert_ok(llama_prepare(m, 12));
    llama_usage(m, &report);
    assert_int_equal(report.graphs, 3);
    assert_ok(llama_extend(m, ids, 12, (llama_result){NULL, NULL}));
    llama_usage(m, &report);
    assert_int_equal(report.graphs, 3);
    llama_destroy(m);
    gguf_close(file);
}

/* A prompt that is longer than the longest chunk must give the same logits as its pieces. */
static void compare_chunks(uint32_t context, size_t tokens, uint32_t longest)
{
    static small_model s;
    static uint32_t ids[2600];
    float whole[WORDS], parted[WORDS];
    rlxvk_language_report report;
    memset(&s, 0, sizeof s);
    s.context = context;
    for (size_t i = 0; i < tokens; i++)
        ids[i] = (uint32_t)(i * 7 + i / 5) % WORDS;
    gguf_file *file = make_small_model(&s);
    llama *m = NULL;
    assert_ok(llama_load(shared_context, file, NULL, &m));
    llama_usage(m, &report);
    assert_int_equal(report.longest_run, longest);
    assert_ok(llama_extend(m, ids, tokens, (llama_result){whole, NULL}));
    llama_rewind(m);
    for (size_t at = 0; at < tokens; at += 100)
        assert_ok(llama_extend(m, ids + at, 100, (llama_result){parted, NULL}));
    for (size_t i = 0; i < WORDS; i++)
        assert_true(fabsf(whole[i] - parted[i]) <= 1e-5f * (1 + fabsf(whole[i])));
    llama_destroy(m);
    gguf_close(file);
}

/* The prompt fills the whole cache. */
static void a_prompt_of_several_chunks(void **state)
{
    (void)state;
    compare_chunks(1100, 1100, 512);
}

/* If the cache is large, the tensors of a long chunk are small beside it, so chunks may be long. */
static void a_prompt_of_long_chunks(void **state)
{
    (void)state;
    compare_chunks(40000, 2600, 2048);
}

/* 260 tokens are 256 and 4, not 512 with 252 rows of padding. 500 tokens stay together. */
static void much_padding_makes_two_chunks(void **state)
{
    (void)state;
    static small_model s;
    static const uint32_t ids[500];
    memset(&s, 0, sizeof s);
    s.context = 600;
    gguf_file *file = make_small_model(&s);
    llama *m = NULL;
    assert_ok(llama_load(shared_context, file, NULL, &m));
    assert_ok(llama_extend(m, ids, 260, (llama_result){NULL, NULL}));
    assert_true(m->chunks[5] && m->chunks[0]);
    assert_null(m->chunks[6]);
    llama_rewind(m);
    assert_ok(llama_extend(m, ids, 500, (llama_result){NULL, NULL}));
    assert_ptr_equal(m->last_chunk, m->chunks[6]);
    llama_destroy(m);
    gguf_close(file);
}

/* If no device has room for the cache, loading fails before anything is made. */
static void a_cache_beyond_the_device(void **state)
{
    (void)state;
    static small_model s;
    memset(&s, 0, sizeof s);
    s.context = 1 << 30;
    gguf_file *file = make_small_model(&s);
    llama *m = NULL;
    assert_int_equal(llama_load(shared_context, file, NULL, &m), RLXVK_E_TOO_LARGE);
    assert_non_null(strstr(rlxvk_last_error(), "a cache of 262144 MiB"));
    assert_null(m);
    gguf_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        {"golden f16", test_golden, NULL, NULL, "f16"},
        {"golden q8_0", test_golden, NULL, NULL, "q8_0"},
        {"golden q4_k_m", test_golden, NULL, NULL, "q4_k_m"},
        cmocka_unit_test(a_file_cut_short_while_loading_is_an_error),
        cmocka_unit_test(test_small_plain),
        cmocka_unit_test(test_small_tied_biased_mixed),
        cmocka_unit_test(test_packed_experts),
        cmocka_unit_test(test_allocation_failure),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_features_refused),
        cmocka_unit_test(window_patterns),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(one_graph_a_length),
        cmocka_unit_test(a_prompt_of_several_chunks),
        cmocka_unit_test(a_prompt_of_long_chunks),
        cmocka_unit_test(much_padding_makes_two_chunks),
        cmocka_unit_test(a_cache_beyond_the_device),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
