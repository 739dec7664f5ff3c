/* The sampler: frequencies of draws, its limits, equal seeds, refused options. */
#include "sampler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* after base.h, whose fail() it hides */

static uint32_t draw_many(const sampler_options *options, uint32_t counts[4])
{
    static const float logits[] = {1, NAN, 2, 0};
    sampler *s = NULL;
    uint32_t digest = 0;
    memset(counts, 0, 4 * sizeof *counts);
    assert_int_equal(sampler_create(options, 4, &s), RLXVK_OK);
    for (int i = 0; i < 10000; i++) {
        uint32_t id = sampler_next(s, logits);
        assert_true(id < 4);
        counts[id]++;
        digest = digest * 31 + id;
    }
    sampler_destroy(s);
    return digest;
}

static void test_sampler(void **state)
{
    (void)state;
    uint32_t counts[4];
    sampler_options all = {.temperature = 1, .top_p = 1, .seed = 7}, other = all;
    uint32_t digest = draw_many(&all, counts);
    /* softmax of 1, 2, 0: 0.2447, 0.6652, 0.0900; five standard deviations of 10000 draws */
    assert_true(abs((int)counts[0] - 2447) < 215 && abs((int)counts[2] - 6652) < 236);
    assert_true(counts[1] == 0 && abs((int)counts[3] - 900) < 143);
    assert_int_equal(draw_many(&all, counts), digest);
    other.seed = 8;
    assert_int_not_equal(draw_many(&other, counts), digest);
    (void)draw_many(&(sampler_options){.temperature = 1, .top_p = 1, .top_k = 2}, counts);
    assert_true(counts[3] == 0 && counts[0] > 0);
    (void)draw_many(&(sampler_options){.temperature = 1, .top_p = 0.66f}, counts);
    assert_int_equal(counts[2], 10000);
    (void)draw_many(&(sampler_options){.temperature = 1, .top_p = 0.67f}, counts);
    assert_true(counts[0] > 0 && counts[3] == 0);
    (void)draw_many(&(sampler_options){.greedy = true, .top_p = 1}, counts);
    assert_int_equal(counts[2], 10000);
}

static void test_sampler_refusals(void **state)
{
    (void)state;
    sampler *s = NULL;
    assert_int_equal(sampler_create(&(sampler_options){.temperature = -1, .top_p = 1}, 4, &s),
                     RLXVK_E_RANGE);
    assert_int_equal(sampler_create(&(sampler_options){.temperature = NAN, .top_p = 1}, 4, &s),
                     RLXVK_E_RANGE);
    assert_int_equal(sampler_create(&(sampler_options){.top_p = 0}, 4, &s), RLXVK_E_RANGE);
    assert_int_equal(sampler_create(&(sampler_options){.top_p = 1.5f}, 4, &s), RLXVK_E_RANGE);
    assert_int_equal(sampler_create(&(sampler_options){.top_p = 1}, 0, &s), RLXVK_E_RANGE);
    assert_null(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sampler),
        cmocka_unit_test(test_sampler_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
