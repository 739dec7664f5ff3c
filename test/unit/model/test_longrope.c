/*
 * Longrope: the rope divisors of a text depend only on its length. If a text is run in pieces, in
 * steps or beside other sequences, it must have the logits of a single run.
 */
#include "model/language/llama.h"
#include "support/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

#include "unit/model/golden_numbers.h"

#define MODEL "test/data/models/phi3-long"
enum { ORIGINAL = 32, CONTEXT = 64, TEXT = 44, WORDS = 96 };

static gguf_file *file;
static uint32_t ids[TEXT];
static float expected[TEXT + 1][WORDS]; /* [n]: after n tokens */

static llama *load(uint64_t capacity, bool by_length, uint32_t sequences)
{
    llama *m = NULL;
    const rlxvk_language_options options = {.capacity = capacity,
                                            .long_divisors = !by_length,
                                            .sequences = sequences};
    assert_ok(llama_load(shared_context, file, &options, &m));
    assert_int_equal(llama_configuration(m)->vocabulary, WORDS);
    return m;
}

/* Computes the expected logits. Two models each use only one set of divisors, and each text is run
 * from its start. */
static int open_texts(void **state)
{
    static golden want;
    if (open_shared_context(state) != 0)
        return -1;
    char *json = read_text(MODEL ".json");
    read_golden(json, NULL, &want);
    memory_free(json);
    assert_int_equal(gguf_open(MODEL ".gguf", &file), GGUF_OK);
    for (size_t i = 0; i < TEXT; i++)
        ids[i] = (uint32_t)want.ids.values[i % want.ids.count];
    llama *within = load(ORIGINAL, false, 1), *beyond = load(CONTEXT, false, 1);
    for (size_t n = 1; n <= TEXT; n++) {
        llama *m = n <= ORIGINAL ? within : beyond;
        llama_rewind(m);
        assert_ok(llama_extend(m, ids, n, (llama_result){expected[n], NULL}));
    }
    llama_destroy(within);
    llama_destroy(beyond);
    return 0;
}

static int close_texts(void **state)
{
    gguf_close(file);
    return close_shared_context(state);
}

static double difference(const float *a, const float *b)
{
    double most = 0;
    for (size_t i = 0; i < WORDS; i++)
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
    return most;
}

static void check(const char *how, size_t length, const float *logits)
{
    double off = difference(logits, expected[length]);
    if (!(off <= 2e-4))
        fail_msg("%s: after %zu tokens the logits are off by %g", how, length, off);
}

/* The two sets differ so much that the wrong one cannot pass. */
static void sets_differ(void **state)
{
    float logits[WORDS];
    llama *m = load(CONTEXT, false, 1);
    (void)state;
    for (size_t n = 4; n <= ORIGINAL; n += 4) {
        llama_rewind(m);
        assert_ok(llama_extend(m, ids, n, (llama_result){logits, NULL}));
        assert_true(difference(logits, expected[n]) > 2e-2);
    }
    llama_destroy(m);
}

/* A text may be cut into any pieces, and may follow a longer one. */
static void pieces(void **state)
{
    static const size_t cuts[] = {1, 5, 8, 31, 32, 33, 44};
    float logits[WORDS];
    llama *m = load(CONTEXT, true, 1);
    (void)state;
    for (size_t size = 0; size < ARRAY_COUNT(cuts); size++) {
        llama_rewind(m);
        for (size_t at = 0, count; at < TEXT; at += count) {
            count = MIN(cuts[size], TEXT - at);
            assert_ok(llama_extend(m, ids + at, count, (llama_result){logits, NULL}));
            check("pieces", at + count, logits);
        }
    }
    llama_destroy(m);
}

/* The capacity that is asked for does not matter. */
static void capacities(void **state)
{
    static const uint64_t rooms[] = {16, 32, 33, 48, 64};
    float logits[WORDS];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rooms); i++) {
        llama *m = load(rooms[i], true, 1);
        assert_ok(llama_extend(m, ids, 12, (llama_result){logits, NULL}));
        check("a small text", 12, logits);
        llama_destroy(m);
    }
}

/* Sequences pass the limit at different steps, and one of them starts again. */
static void sequences(void **state)
{
    enum { MANY = 3 };
    size_t lengths[MANY] = {30, 3, 21};
    float logits[MANY][WORDS];
    llama *m = load(CONTEXT, true, MANY);
    llama_piece first[MANY];
    (void)state;
    for (size_t s = 0; s < MANY; s++)
        first[s] = (llama_piece){ids, lengths[s]};
    assert_ok(llama_extend_each(m, first, NULL));
    for (int step = 0; step < 13; step++) {
        uint32_t next[MANY];
        for (size_t s = 0; s < MANY; s++)
            next[s] = s == 1 && step % 4 == 3 ? RLXVK_NO_TOKEN : ids[lengths[s]];
        assert_ok(llama_step(m, next, logits[0], NULL));
        for (size_t s = 0; s < MANY; s++)
            if (next[s] != RLXVK_NO_TOKEN)
                check("sequences", ++lengths[s], logits[s]);
    }
    llama_select(m, 0);
    llama_rewind(m);
    assert_ok(llama_extend(m, ids, 9, (llama_result){logits[0], NULL}));
    check("a new text in its place", 9, logits[0]);
    for (size_t s = 0; s < MANY; s++)
        first[s] = (llama_piece){ids + (s ? lengths[s] : 9), s ? 1 : 35};
    assert_ok(llama_extend_each(m, first, NULL));
    uint32_t idle[MANY] = {RLXVK_NO_TOKEN, ids[lengths[1] + 1], RLXVK_NO_TOKEN};
    assert_ok(llama_step(m, idle, logits[0], NULL));
    check("beside a long piece", lengths[1] + 2, logits[1]);
    llama_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sets_differ), cmocka_unit_test(pieces),
                                       cmocka_unit_test(capacities), cmocka_unit_test(sequences)};
    return cmocka_run_group_tests(tests, open_texts, close_texts);
}
