/* RLXVK_CHECK=canary: if a kernel stores past its operand, the run fails and names the bytes, the
 * place and the kernel. Reads past the end return NaN. The tests run such kernels only in this
 * mode, because otherwise they might overwrite memory of the driver. */
#include "args/elementwise.h"
#include "exec/canary.h"
#include "kernel/kernel.h"
#include "support/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* Runs the embedded unary kernel (gelu) wrongly: over `extra` more elements than the tensor has,
 * reading `later` elements too far. */
typedef struct fault {
    uint32_t extra, later;
} fault;

static bool same_shape(const rlxvk_shape *inputs, size_t count, const void *attributes, size_t size,
                       rlxvk_shape *out_shape, rlxvk_dtype *out_dtype)
{
    (void)attributes, (void)size, (void)out_dtype;
    *out_shape = inputs[0];
    return count == 1;
}

static bool faulty_arguments(const rlxvk_custom_call *call)
{
    fault f;
    memcpy(&f, call->attributes, sizeof f);
    uint64_t elements = 1;
    for (uint32_t i = 0; i < call->shapes[1].rank; i++)
        elements *= (uint64_t)call->shapes[1].dims[i];
    struct unary_args args = {(uint32_t)elements + f.extra, call->offsets[0] + f.later,
                              call->offsets[1]};
    memcpy(call->arguments, &args, sizeof args);
    call->groups[0] = (args.numel + call->workgroup_size - 1) / call->workgroup_size;
    call->groups[1] = call->groups[2] = 1;
    return true;
}

static rlxvk_context *watched; /* made with RLXVK_CHECK=canary */

static int open_contexts(void **state)
{
    const kernel_info *unary = kernel_find(KERNEL_UNARY);
    uint32_t *words = kernel_words(unary);
    rlxvk_custom_kernel kernel = {words, unary->word_count, unary->argument_bytes,
                                  faulty_arguments};
    (void)state;
    expect_ok(rlxvk_custom_register(&(rlxvk_custom_op){"faulty", 1, same_shape, NULL, &kernel}));
    memory_free(words);
    setenv("RLXVK_CHECK", "canary", 1);
    watched = open_context(NULL);
    unsetenv("RLXVK_CHECK");
    return 0;
}

static int close_contexts(void **state)
{
    (void)state;
    close_context(watched);
    return 0;
}

typedef enum place { INSIDE, LAST, FIRST, PLACE_COUNT } place;

/* Places the faulty op between other nodes, as the output, or directly behind a param. */
static rlxvk_graph *graph_of(place where, int64_t n, const fault *f)
{
    rlxvk_graph *g = NULL;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = where == FIRST ? rlxvk_param(g, "x", RLXVK_F32, RLXVK_SHAPE(n))
                                    : rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(n));
    if (where == INSIDE)
        x = rlxvk_cumsum(g, x, 0, false);
    rlxvk_tensor y = rlxvk_custom(g, "faulty", &x, 1, f, sizeof *f);
    rlxvk_graph_output(g, where == LAST ? y : rlxvk_cumsum(g, y, 0, false));
    return g;
}

static rlxvk_status run(rlxvk_executable *e, place where, int64_t n, float *y)
{
    float *x = calloc((size_t)n, sizeof *x);
    rlxvk_run_input in = {"x", x, (size_t)n, RLXVK_F32};
    rlxvk_run_output out = {0, y, (size_t)n, RLXVK_F32};
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i % 7) - 3;
    if (where == FIRST)
        expect_ok(rlxvk_set_param(e, "x", x, (size_t)n));
    rlxvk_status status = rlxvk_run(e, &in, where != FIRST, &out, 1);
    free(x);
    return status;
}

static rlxvk_status run_in(rlxvk_context *c, place where, int64_t n, fault f, float *y)
{
    rlxvk_graph *g = graph_of(where, n, &f);
    rlxvk_executable *e = NULL;
    rlxvk_status status = rlxvk_compile(c, g, NULL, &e);
    if (status == RLXVK_OK)
        status = run(e, where, n, y);
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    return status;
}

/* Stores past the end by one element, a vector, the rest of a slot and a workgroup. Some lengths
 * fill their slot and some do not. */
static void stores_past_the_end(void **state)
{
    static const uint32_t extras[] = {1, 4, 63, 512};
    static const int64_t lengths[] = {1, 3, 4, 64, 300, 1024};
    float y[1024];
    char wanted[96];
    (void)state;
    for (int where = 0; where < PLACE_COUNT; where++)
        for (size_t i = 0; i < ARRAY_COUNT(lengths); i++)
            for (size_t k = 0; k < ARRAY_COUNT(extras); k++) {
                int64_t n = lengths[i];
                fault f = {extras[k], 0};
                expect_ok(run_in(watched, (place)where, n, (fault){0, 0}, y));
                snprintf(
                    wanted, sizeof wanted,
                    "behind the end of custom (node %d): %u, the first 0 bytes behind its %lld;",
                    where == INSIDE ? 2 : 1, f.extra, 4 * (long long)n);
                expect_error(run_in(watched, (place)where, n, f, y), RLXVK_E_RANGE, wanted);
                assert_non_null(strstr(rlxvk_last_error(),
                                       "written by operand 1 of kernel 'faulty' for custom (node"));
            }
}

/* The last element reads memory behind the operand. Without the mode it would read zeros or
 * leftovers. */
static void reads_past_the_end(void **state)
{
    float y[300];
    (void)state;
    for (int where = 0; where < PLACE_COUNT; where++) {
        expect_ok(run_in(watched, (place)where, 300, (fault){0, 1}, y));
        assert_false(isnan(y[298]));
        assert_true(isnan(y[299]));
        expect_ok(run_in(watched, (place)where, 300, (fault){0, 0}, y));
        assert_false(isnan(y[299]));
    }
}

/* A run reports only its own faults, not those of earlier runs. The same holds for a clone, and for
 * an executable that shares its weights. */
static void each_run_by_itself(void **state)
{
    fault bad = {4, 0}, good = {0, 0};
    rlxvk_graph *graphs[] = {graph_of(FIRST, 300, &bad), graph_of(FIRST, 300, &good)};
    rlxvk_executable *wrong = NULL, *right = NULL, *clone = NULL;
    float y[300];
    (void)state;
    expect_ok(rlxvk_compile(watched, graphs[0], NULL, &wrong));
    for (int i = 0; i < 3; i++)
        expect_error(run(wrong, FIRST, 300, y), RLXVK_E_RANGE,
                     "behind the end of custom (node 1): 4, the first");
    expect_ok(rlxvk_clone(wrong, &clone));
    expect_error(run(clone, FIRST, 300, y), RLXVK_E_RANGE,
                 "behind the end of custom (node 1): 4, the first");
    expect_ok(
        rlxvk_compile(watched, graphs[1], &(rlxvk_compile_options){.share_with = wrong}, &right));
    for (int i = 0; i < 3; i++)
        expect_ok(run(right, FIRST, 300, y));
    rlxvk_executable_destroy(clone);
    expect_ok(rlxvk_clone(right, &clone)); /* it now has weights of its own */
    expect_ok(run(clone, FIRST, 300, y));
    rlxvk_executable_destroy(clone);
    rlxvk_executable_destroy(right);
    rlxvk_executable_destroy(wrong);
    for (size_t i = 0; i < ARRAY_COUNT(graphs); i++)
        rlxvk_graph_destroy(graphs[i]);
}

/* Each submitted run reports its fault to its own wait. */
static void runs_in_flight(void **state)
{
    fault bad = {1, 0};
    rlxvk_graph *g = graph_of(LAST, 64, &bad);
    rlxvk_executable *e = NULL;
    rlxvk_ticket tickets[2];
    float x[64] = {0}, y[2][64];
    rlxvk_run_input in = {"x", x, 64, RLXVK_F32};
    (void)state;
    expect_ok(rlxvk_compile(watched, g, NULL, &e));
    rlxvk_run_output out[] = {{0, y[0], 64, RLXVK_F32}, {0, y[1], 64, RLXVK_F32}};
    for (int i = 0; i < 2; i++)
        expect_ok(rlxvk_submit(e, &in, 1, &out[i], 1, &tickets[i]));
    for (int i = 0; i < 2; i++)
        expect_error(rlxvk_wait(e, tickets[i]), RLXVK_E_RANGE,
                     "behind the end of custom (node 1): 1, the first");
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
}

/* If a run fails because it cannot refill the canaries, the next run still has the previous ones.
 */
static void failed_fills(void **state)
{
    rlxvk_graph *g = graph_of(LAST, 64, &(fault){0, 0});
    rlxvk_executable *e = NULL;
    uint32_t failed = 0;
    float y[64];
    (void)state;
    for (uint64_t nth = 1; nth < 12; nth++) {
        expect_ok(rlxvk_compile(watched, g, NULL, &e));
        expect_ok(run(e, LAST, 64, y));
        vk_hooks.fail_at = nth;
        bool fails = run(e, LAST, 64, y) != RLXVK_OK;
        vk_hooks.fail_at = 0;
        if (!e->lost) {
            expect_ok(run(e, LAST, 64, y));
            failed += fails;
        }
        rlxvk_executable_destroy(e);
        e = NULL;
    }
    assert_true(failed > 1);
    rlxvk_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_past_the_end), cmocka_unit_test(reads_past_the_end),
        cmocka_unit_test(each_run_by_itself),  cmocka_unit_test(runs_in_flight),
        cmocka_unit_test(failed_fills),
    };
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
