/*
 * Every architecture: the models in test/data/models, against the logits and tokens that
 * transformers computed from them. tools/model/golden_models.py makes the models.
 */
#include "model/language/llama.h"
#include "support/harness.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

#include "unit/model/golden_numbers.h"

#define FOLDER "test/data/models"
#define EXACT  5e-5 /* in f32 */

static void check_logits(const char *model, const char *how, const float *logits,
                         const numbers *want, double within)
{
    for (size_t i = 0; i < want->count; i++)
        if (!(fabs((double)logits[i] - want->values[i]) <= within * (1 + fabs(want->values[i]))))
            fail_msg("%s, %s: logit %zu is %.7g, not %.7g", model, how, i, (double)logits[i],
                     want->values[i]);
}

static void check_sum(const char *model, const float *logits, size_t count, size_t position,
                      double want)
{
    double sum = 0, magnitude = 1;
    for (size_t i = 0; i < count; i++) {
        sum += (double)logits[i];
        magnitude += fabs((double)logits[i]);
    }
    if (!(fabs(sum - want) <= 5e-5 * magnitude))
        fail_msg("%s, position %zu: the logits' sum is %.7g, not %.7g", model, position, sum, want);
}

/* Runs the text at once, token by token, and in chunks that begin anywhere. Then compares the next
 * tokens, as long as one logit is clearly the best. */
static void check_model(const char *name, llama *m, const golden *want, const numbers *sums)
{
    static const size_t cuts[] = {0, 9, 12, 29, 31};
    uint32_t ids[MOST_VALUES], chosen = 0;
    float logits[MOST_VALUES];
    size_t count = want->ids.count, words = want->logits.count;
    assert_int_equal(llama_configuration(m)->vocabulary, words);
    assert_int_equal(sums->count, count);
    for (size_t i = 0; i < count; i++)
        ids[i] = (uint32_t)want->ids.values[i];
    assert_ok(llama_extend(m, ids, count, (llama_result){logits, NULL}));
    check_logits(name, "whole prompt", logits, &want->logits, EXACT);
    llama_rewind(m);
    for (size_t i = 0; i < count; i++) {
        assert_ok(llama_decode(m, ids[i], (llama_result){logits, NULL}));
        check_sum(name, logits, words, i, sums->values[i]);
    }
    check_logits(name, "token by token", logits, &want->logits, EXACT);
    llama_rewind(m);
    for (size_t c = 0; c < ARRAY_COUNT(cuts); c++) {
        size_t end = c + 1 < ARRAY_COUNT(cuts) ? cuts[c + 1] : count;
        assert_ok(llama_extend(m, ids + cuts[c], end - cuts[c], (llama_result){logits, &chosen}));
        check_sum(name, logits, words, end - 1, sums->values[end - 1]);
    }
    check_logits(name, "in chunks", logits, &want->logits, EXACT);
    for (size_t i = 0; i < want->greedy.count && want->margin.values[i] >= 1e-3; i++) {
        if (chosen != (uint32_t)want->greedy.values[i])
            fail_msg("%s: token %zu is %u, not %g", name, i, chosen, want->greedy.values[i]);
        if (i + 1 < want->greedy.count)
            assert_ok(llama_decode(m, chosen, (llama_result){NULL, &chosen}));
    }
}

/* Runs three sequences of different lengths side by side. Each step is for all of them. */
static void check_many(const char *name, const gguf_file *file, const golden *want,
                       const numbers *sums)
{
    enum { MANY = 3, STEPS = 8 };
    static const size_t starts[MANY] = {31, 4, 17};
    static float logits[MANY * MOST_VALUES];
    uint32_t ids[MOST_VALUES], next[MANY];
    size_t words = want->logits.count;
    llama *m = NULL;
    assert_ok(llama_load(shared_context, file,
                         &(rlxvk_language_options){.sequences = MANY, .long_divisors = true}, &m));
    for (size_t i = 0; i < want->ids.count; i++)
        ids[i] = (uint32_t)want->ids.values[i];
    for (uint32_t s = 0; s < MANY; s++) {
        llama_select(m, s);
        assert_ok(llama_extend(m, ids, starts[s], (llama_result){NULL, NULL}));
    }
    for (size_t step = 0; step < STEPS; step++) {
        for (size_t s = 0; s < MANY; s++)
            next[s] = ids[starts[s] + step];
        assert_ok(llama_step(m, next, logits, NULL));
        for (size_t s = 0; s < MANY; s++)
            check_sum(name, logits + s * words, words, starts[s] + step,
                      sums->values[starts[s] + step]);
    }
    llama_destroy(m);
}

/* ---- Keys and values as halves ---- */

/* Each rounding to f16 is off by up to 2^-11, and goes through a few blocks. */
static void check_halves(const char *name, const gguf_file *file, const llama *words,
                         const golden *want)
{
    uint32_t ids[MOST_VALUES];
    float logits[MOST_VALUES];
    size_t count = want->ids.count;
    rlxvk_language_report with_words, with_halves;
    llama *m = NULL;
    for (size_t i = 0; i < count; i++)
        ids[i] = (uint32_t)want->ids.values[i];
    assert_ok(llama_load(shared_context, file,
                         &(rlxvk_language_options){.cache = RLXVK_F16, .long_divisors = true}, &m));
    assert_ok(llama_extend(m, ids, count, (llama_result){logits, NULL}));
    check_logits(name, "whole prompt, halves", logits, &want->logits, 0x1p-8);
    llama_rewind(m);
    for (size_t i = 0; i < count; i++)
        assert_ok(llama_decode(m, ids[i], (llama_result){logits, NULL}));
    check_logits(name, "token by token, halves", logits, &want->logits, 0x1p-8);
    llama_usage(words, &with_words);
    llama_usage(m, &with_halves);
    assert_true(with_halves.device_bytes < with_words.device_bytes);
    llama_destroy(m);
}

/* ---- More prompts than sequences ---- */

enum { PLACES = 3, PROMPTS = 5, MOST_MADE = 9 };
static const size_t prompt_lengths[PROMPTS] = {31, 4, 17, 1, 9};
static const size_t made_lengths[PROMPTS] = {5, MOST_MADE, 2, 7, 4};

/* The tokens after a prompt, up to the first choice between two nearly equal logits. */
typedef struct answer {
    uint32_t ids[MOST_MADE];
    size_t count;
} answer;

static double margin(const float *logits, size_t count, uint32_t best)
{
    double second = -INFINITY;
    for (size_t i = 0; i < count; i++)
        if (i != best)
            second = fmax(second, (double)logits[i]);
    return (double)logits[best] - second;
}

static void answer_alone(llama *m, const uint32_t *ids, size_t prompt, answer *out)
{
    float logits[MOST_VALUES];
    size_t words = (size_t)llama_configuration(m)->vocabulary;
    uint32_t next;
    llama_rewind(m);
    assert_ok(llama_extend(m, ids, prompt_lengths[prompt], (llama_result){logits, &next}));
    for (out->count = 0; margin(logits, words, next) >= 1e-3;) {
        out->ids[out->count++] = next;
        if (out->count == made_lengths[prompt])
            break;
        assert_ok(llama_decode(m, next, (llama_result){logits, &next}));
    }
}

static void check_answer(const char *name, size_t prompt, const answer *alone, size_t at,
                         uint32_t id)
{
    if (at < alone->count && id != alone->ids[at])
        fail_msg("%s, prompt %zu of many: token %zu is %u, not %u", name, prompt, at, id,
                 alone->ids[at]);
}

/* Runs all prompts in PLACES sequences. A sequence that has ended takes the next prompt. At the end
 * some are idle. */
static void check_places(const char *name, llama *m, const uint32_t *ids,
                         const answer alone[PROMPTS])
{
    size_t prompts[PLACES] = {0}, made[PLACES] = {0}, next = 0;
    uint32_t tokens[PLACES] = {RLXVK_NO_TOKEN, RLXVK_NO_TOKEN, RLXVK_NO_TOKEN};
    for (bool active = true; active;) {
        active = false;
        for (uint32_t p = 0; p < PLACES; p++) {
            if (tokens[p] == RLXVK_NO_TOKEN && next < PROMPTS) {
                prompts[p] = next++;
                made[p] = 0;
                llama_select(m, p);
                llama_rewind(m);
                assert_ok(llama_extend(m, ids, prompt_lengths[prompts[p]],
                                       (llama_result){NULL, &tokens[p]}));
            }
            if (tokens[p] == RLXVK_NO_TOKEN)
                continue;
            check_answer(name, prompts[p], &alone[prompts[p]], made[p], tokens[p]);
            if (++made[p] == made_lengths[prompts[p]])
                tokens[p] = RLXVK_NO_TOKEN;
            active = true;
        }
        assert_ok(llama_step(m, tokens, NULL, tokens));
    }
    assert_int_equal(next, PROMPTS);
}

static void check_batch(const char *name, const gguf_file *file, llama *single, const golden *want)
{
    answer alone[PROMPTS];
    uint32_t ids[MOST_VALUES];
    size_t compared = 0;
    llama *m = NULL;
    for (size_t i = 0; i < want->ids.count; i++)
        ids[i] = (uint32_t)want->ids.values[i];
    for (size_t i = 0; i < PROMPTS; i++) {
        answer_alone(single, ids, i, &alone[i]);
        compared += alone[i].count;
    }
    assert_true(compared >= PROMPTS);
    assert_ok(llama_load(shared_context, file,
                         &(rlxvk_language_options){.sequences = PLACES, .long_divisors = true},
                         &m));
    check_places(name, m, ids, alone);
    llama_destroy(m);
}

static void check_file(const char *name)
{
    const rlxvk_language_options whole = {.long_divisors = true}; /* as one run of the text */
    static golden want;
    static numbers sums;
    char path[512];
    gguf_file *file = NULL;
    llama *m = NULL;
    snprintf(path, sizeof path, FOLDER "/%s.json", name);
    char *json = read_text(path);
    read_golden(json, NULL, &want);
    read_numbers(json, NULL, "sums", &sums);
    memory_free(json);
    snprintf(path, sizeof path, FOLDER "/%s.gguf", name);
    assert_ok(gguf_result(gguf_open(path, &file)));
    if (llama_load(shared_context, file, &whole, &m) != RLXVK_OK)
        fail_msg("%s: %s", name, rlxvk_last_error());
    check_model(name, m, &want, &sums);
    check_batch(name, file, m, &want);
    check_halves(name, file, m, &want);
    llama_destroy(m);
    check_many(name, file, &want, &sums);
    print_message("%s\n", name);
    gguf_close(file);
}

/* Removes the ending from a file name. Returns false if the file has another ending. */
static bool cut_ending(const char *file, const char *ending, char name[256])
{
    size_t length = strlen(file), tail = strlen(ending);
    if (length <= tail || length >= 256 || strcmp(file + length - tail, ending) != 0)
        return false;
    memcpy(name, file, length - tail);
    name[length - tail] = 0;
    return true;
}

/* Calls `visit` for each file with this ending and returns their number. */
static int visit_all(const char *ending, void (*visit)(const char *name))
{
    DIR *folder = opendir(FOLDER);
    int count = 0;
    char name[256];
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (cut_ending(entry->d_name, ending, name)) {
            visit(name);
            count++;
        }
    if (folder)
        closedir(folder);
    return count;
}

static void ignore(const char *name)
{
    (void)name;
}

/* A model is a .gguf and a .json file, so there must be as many of one as of the other. */
static void pairs(void **state)
{
    (void)state;
    assert_int_equal(visit_all(".gguf", ignore), visit_all(".json", ignore));
}

static void architectures(void **state)
{
    (void)state;
    if (visit_all(".gguf", check_file) > 0)
        return;
    print_message(FOLDER " holds no model: NOTHING IS CHECKED; tools/model/golden_models.py makes "
                         "them\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pairs), cmocka_unit_test(architectures)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
