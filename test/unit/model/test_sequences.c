/* Several sequences of one model: each must give the same results as if it were run alone. */
#include "unit/model/gguf_builder.h"
#include "model/language/llama_internal.h"
#include "support/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h> /* after base.h, whose status_fail() it hides */

#include "unit/model/small_model.h"

/* Sequences of different lengths run side by side. One ends and another takes its place. Each must
 * be as if it were alone. */
static void many_sequences(void **state)
{
    (void)state;
    enum { MANY = 3, STEPS = 14 };
    static small_model s;
    static const size_t lengths[MANY + 1] = {3, 21, 34, 9};
    uint32_t ids[MANY + 1][50], next[MANY];
    static float alone[WORDS], logits[MANY][WORDS];
    memset(&s, 0, sizeof s);
    gguf_file *file = make_small_model(&s);
    llama *single = NULL, *m = NULL;
    expect_ok(llama_load(shared_context, file, &(rlxvk_language_options){.capacity = 50}, &single));
    expect_ok(llama_load(shared_context, file,
                         &(rlxvk_language_options){.capacity = 50, .sequences = MANY}, &m));
    for (uint32_t i = 0; i <= MANY; i++)
        for (uint32_t k = 0; k < 50; k++)
            ids[i][k] = (k * k + 5 * k * i + 3 * i + k / 6) % WORDS;
    for (uint32_t i = 0; i < MANY; i++) {
        llama_select(m, i);
        expect_ok(llama_extend(m, ids[i], lengths[i] - 1, (llama_result){NULL, NULL}));
        expect_ok(llama_extend(m, ids[i] + lengths[i] - 1, 1, (llama_result){NULL, NULL}));
    }
    size_t place[MANY] = {0, 1, 2}, at[MANY] = {lengths[0], lengths[1], lengths[2]};
    for (size_t step = 0; step < STEPS; step++) {
        if (step == 6) { /* another sequence replaces the second */
            place[1] = MANY;
            at[1] = lengths[MANY];
            llama_select(m, 1);
            llama_rewind(m);
            expect_ok(llama_extend(m, ids[MANY], lengths[MANY], (llama_result){NULL, NULL}));
        }
        for (size_t i = 0; i < MANY; i++)
            next[i] = step % 5 == i ? RLXVK_NO_TOKEN : ids[place[i]][at[i]++];
        expect_ok(llama_step(m, next, logits[0], NULL));
        for (size_t i = 0; i < MANY; i++) {
            if (next[i] == RLXVK_NO_TOKEN)
                continue;
            llama_rewind(single);
            expect_ok(llama_extend(single, ids[place[i]], at[i], (llama_result){alone, NULL}));
            for (size_t k = 0; k < WORDS; k++)
                if (!(fabsf(logits[i][k] - alone[k]) <= 1e-5f * (1 + fabsf(alone[k]))))
                    fail_msg("step %zu, sequence %zu, logit %zu: %g, alone %g", step, i, k,
                             (double)logits[i][k], (double)alone[k]);
        }
    }
    llama_destroy(single);
    llama_destroy(m);
    gguf_close(file);
}

/* Extends several sequences at once, by pieces of any length and from any position. Each must be as
 * if it were alone. If a piece does not fit, the call fails before anything is run. */
static void pieces_at_once(void **state)
{
    (void)state;
    enum { MANY = 5, ROUNDS = 4, CONTEXT = 90 };
    static small_model s;
    static const size_t lengths[ROUNDS][MANY] = {{9, 10, 7, 8, 12},
                                                 {3, 0, 21, 34, 0},
                                                 {1, 60, 2, 1, 3},
                                                 {15, 6, 16, 0, 14}};
    uint32_t ids[MANY][CONTEXT], next[MANY];
    size_t at[MANY] = {0};
    static float alone[WORDS];
    memset(&s, 0, sizeof s);
    gguf_file *file = make_small_model(&s);
    llama *single = NULL, *m = NULL;
    rlxvk_language_report report;
    expect_ok(
        llama_load(shared_context, file, &(rlxvk_language_options){.capacity = CONTEXT}, &single));
    expect_ok(llama_load(shared_context, file,
                         &(rlxvk_language_options){.capacity = CONTEXT, .sequences = MANY}, &m));
    for (uint32_t i = 0; i < MANY; i++)
        for (uint32_t k = 0; k < CONTEXT; k++)
            ids[i][k] = (k * k + 5 * k * i + 3 * i + k / 6) % WORDS;
    for (size_t r = 0; r < ROUNDS; r++) {
        llama_piece pieces[MANY];
        for (size_t i = 0; i < MANY; i++) {
            pieces[i] = (llama_piece){ids[i] + at[i], lengths[r][i]};
            next[i] = RLXVK_NO_TOKEN;
        }
        expect_ok(llama_extend_each(m, pieces, next));
        pieces[1].count = CONTEXT; /* more than the room of sequence 1 */
        assert_int_equal(llama_extend_each(m, pieces, next), RLXVK_E_RANGE);
        for (size_t i = 0; i < MANY; i++) {
            at[i] += lengths[r][i];
            if (lengths[r][i] == 0) {
                assert_int_equal(next[i], RLXVK_NO_TOKEN);
                continue;
            }
            llama_rewind(single);
            expect_ok(llama_extend(single, ids[i], at[i], (llama_result){alone, NULL}));
            assert_int_equal(next[i], best_of(alone, WORDS));
        }
    }
    llama_usage(m, &report);
    /* The step's graph, one of 8 rows for all sequences, and 8, 16, 32 and 64 rows for one
     * sequence. */
    assert_int_equal(report.graphs, 6);
    llama_destroy(single);
    llama_destroy(m);
    gguf_close(file);
}

/* Whatever the chunks are, the last rows of a sequence must not reach into those of the next
 * one. */
static void full_neighbours(void **state)
{
    (void)state;
    static small_model s;
    uint32_t ids[40], next[] = {5, RLXVK_NO_TOKEN};
    float before[WORDS], after[2][WORDS];
    memset(&s, 0, sizeof s);
    gguf_file *file = make_small_model(&s);
    llama *m = NULL;
    for (uint32_t i = 0; i < 40; i++)
        ids[i] = i * 7 % WORDS;
    expect_ok(llama_load(shared_context, file,
                         &(rlxvk_language_options){.capacity = 40, .sequences = 2}, &m));
    llama_select(m, 1);
    expect_ok(llama_extend(m, ids, 2, (llama_result){NULL, NULL}));
    for (size_t cut = 1; cut < 40; cut += 6) {
        llama_select(m, 0);
        llama_rewind(m);
        expect_ok(llama_extend(m, ids, cut, (llama_result){NULL, NULL}));
        expect_ok(llama_extend(m, ids + cut, 40 - cut, (llama_result){NULL, NULL}));
    }
    assert_int_equal(llama_step(m, next, NULL, NULL), RLXVK_E_RANGE);
    next[0] = RLXVK_NO_TOKEN;
    next[1] = 6;
    expect_ok(llama_step(m, next, after[0], NULL));
    llama_select(m, 1);
    llama_rewind(m);
    expect_ok(llama_extend(m, ids, 2, (llama_result){NULL, NULL}));
    expect_ok(llama_extend(m, &next[1], 1, (llama_result){before, NULL}));
    for (size_t i = 0; i < WORDS; i++)
        assert_true(fabsf(after[1][i] - before[i]) <= 1e-5f * (1 + fabsf(before[i])));
    llama_destroy(m);
    gguf_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_sequences),
        cmocka_unit_test(pieces_at_once),
        cmocka_unit_test(full_neighbours),
    };
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
