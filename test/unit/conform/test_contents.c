/*
 * Contents that once showed a fault. Either the reference accepted only one of several right
 * results, or a kernel was wrong. The contents of the leaves follow from the number of a case and
 * the seed.
 */
#include "conform/conform.h"
#include "support/harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct {
    uint64_t number, seed;
    const char *line;
} contents[] = {
    /* all scores are -inf, or keys are infinite */
    {244, 14,
     "attention_backward mask=sliding window=2 "
     "in=q:f32:1x2x40x8;k:f32:1x2x40x8:special;v:f32:1x2x40x8;dy:f32:1x2x40x8"},
    /* Terms cancel, so the bound must depend on the terms, not on the result. */
    {12, 8, "einsum within=2e-6 equation=i,i-> in=a:f32:300;b:f32:300"},
    /* The sum overflows f32 only in some orders of its terms. */
    {51, 6, "einsum within=2e-6 equation=ij,jk->ik in=a:f32:5x7:special;b:f32:7x9:unit"},
    {14, 12, "upfirdn in=x:f32:9:special;taps:f32:4"},
    {59, 10,
     "gru_backward_gates in=x:f32:2x6x9;h:f32:2x6x9;previous:f32:2x6x3;w_hh:f32:9x3:one;"
     "dy:f32:2x6x3:special"},
    {55, 11, "rnn_backward_gates in=z:f32:2x6x3;w_hh:f32:3x3;dy:f32:2x6x3:special"},
    {14, 28, "softmax_backward axis=1 in=y:f32:4x9;dy:f32:4x9:special"},
    {71, 31,
     "adamw step=2 weight_decay=0.01 result=v in=p:f32:203:special;g:f32:203:special;"
     "m:f32:203:special;v:f32:203:special"},
    /* Large terms cancel beside small ones. */
    {54, 34, "rnn hidden=3 in=x:f32:2x6x2:special;w_ih:f32:3x2:one;w_hh:f32:3x3;bias:f32:3"},
    /* A quotient overflows, but is multiplied by a small gamma. */
    {28, 17,
     "batch_norm_inference in=x:f32:9x40:special;gamma:f32:40;beta:f32:40;mean:f32:40;"
     "var:f32:40:positive"},
    /* Only denormals tell the points apart. Their indices, which are cast, depend on that. */
    {70, 12,
     "knn variant=knn=filtered metric=0 indices=1 k=4 in=q:f32:2x3:zero;p:f32:500x3:special"},
    /* Denormals, on a device that flushes them to 0. */
    {57, 2, "exp in=x:c64:20000:special"},
    {2, 13, "pool_max_backward kernel=3 padding=1 in=x:f32:2x3x17:special;dy:f32:2x3x17:special"},
    {2, 28, "pool_max_backward kernel=3 padding=1 in=x:f32:2x3x17:special;dy:f32:2x3x17:special"},
    {2, 38, "pool_min_backward kernel=3 padding=1 in=x:f32:2x3x17:special;dy:f32:2x3x17:special"},
    {2, 34, "pool_max_take kernel=3 padding=1 in=x:f32:2x3x17:special;values:f32:2x3x17:special"},
    {144, 8,
     "adamw step=3 eps=0 beta2=0.5 result=p in=p:f32:203:special;g:f32:203:special;"
     "m:f32:203:special;v:f32:203:special"},
    {13, 16, "softmax_backward axis=1 in=y:f32:4x9:special;dy:f32:4x9"},
    /* Near the middle between a number and infinity. */
    {33, 4,
     "grid_sample mode=nearest in=x:f32:1x27x30x30:special;grid:f32:1x2x40001x2:range:-1.2:1.2"},
    /* The squares of the quaternions leave the range of f32, and the kernel took them for 0. */
    {54, 3,
     "gaussian_splat_prepare in=positions:f32:9x3:special;scales:f32:9x3:special;"
     "rotations:f32:9x4:special;opacities:f32:9:special;colors:f32:9x3:range:0:1;sh:f32:0"},
};

static void they_pass(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(contents); i++) {
        const conform_setup setup = {.context = shared_context,
                                     .seeds = {contents[i].seed},
                                     .seed_count = 1};
        const conform_case given = {.line = contents[i].line, .number = contents[i].number};
        conform_result result;
        conform_run(&setup, &given, &result);
        if (result.verdict != VERDICT_PASSED)
            fail_msg("%s: %s", given.line, result.message);
        /* A result that is hardly judged would pass without a test. */
        if (result.unjudged > 0.8 * (double)result.elements)
            fail_msg("%s: %llu of %llu elements are unjudged", given.line,
                     (unsigned long long)result.unjudged, (unsigned long long)result.elements);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(they_pass)};
    return cmocka_run_group_tests(tests, open_shared_context, close_shared_context);
}
