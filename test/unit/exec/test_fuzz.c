/*
 * Random graphs on a device. They are compared with the host reference, and all modes of the
 * executable with each other, bit for bit. Scratch memory is filled with NaN. A pattern in the gaps
 * between slots shows writes outside operands.
 */
#include "exec/allocate.h"
#include "exec/transfer.h"
#include "support/harness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const char *const mode_names[] = {"default",      "no reuse",       "in order",
                                         "full barrier", "uncached",       "profiled",
                                         "prepared",     "weights as f16", "weights as bf16"};
enum { MODES = 9, ROUNDING = 7 }; /* these and later modes round, so only exact graphs stay equal */

static rlxvk_compile_options mode_options(int mode)
{
    rlxvk_compile_options o = {.check_plan = RLXVK_ON, .forbid_host = RLXVK_ON};
    o.reuse_memory = mode == 1 ? RLXVK_OFF : RLXVK_DEFAULT;
    o.reorder = mode == 2 ? RLXVK_OFF : RLXVK_DEFAULT;
    o.full_barrier = mode == 3 ? RLXVK_ON : RLXVK_DEFAULT;
    o.cached = mode == 4 ? RLXVK_OFF : RLXVK_DEFAULT;
    o.profile = mode == 5 ? RLXVK_ON : RLXVK_DEFAULT;
    o.prepared_bytes = mode == 6 ? UINT64_MAX : 0;
    o.weight_storage = mode == 7   ? RLXVK_WEIGHTS_F16
                       : mode == 8 ? RLXVK_WEIGHTS_BF16
                                   : RLXVK_WEIGHTS_AS_DECLARED;
    return o;
}

static rlxvk_graph *make_graph(uint64_t seed, bool exact)
{
    rlxvk_graph *g = NULL;
    random_source r = {seed};
    expect_ok(rlxvk_graph_create(&g));
    random_graph(g, &r, 8 + random_below(&r, 30), exact);
    expect_ok(rlxvk_graph_status(g));
    return g;
}

static void compare_bits(const float *a, const float *b, size_t count, uint64_t seed,
                         const char *what)
{
    for (size_t i = 0; i < count; i++)
        if (memcmp(&a[i], &b[i], 4) != 0 && !(a[i] == 0 && b[i] == 0)) {
            print_error("seed %llu, %s: element %zu is %g, wanted %g\n", (unsigned long long)seed,
                        what, i, (double)a[i], (double)b[i]);
            assert_true(false);
        }
}

static void check_seed(rlxvk_context *c, uint64_t seed, bool exact)
{
    rlxvk_graph *g = make_graph(seed, exact);
    size_t count, n;
    float *reference = evaluate_seeded(g, seed, exact, &count), *first = NULL;
    for (int mode = 0; mode < (exact ? MODES : ROUNDING); mode++) {
        rlxvk_compile_options o = mode_options(mode);
        rlxvk_executable *e = NULL;
        expect_ok(rlxvk_compile(c, g, &o, &e));
        float *got = run_seeded(e, g, seed, exact, &n);
        assert_int_equal(n, count);
        float *again = run_seeded(e, g, seed, exact, &n);
        compare_bits(again, got, count, seed, "second run");
        if (exact)
            compare_bits(got, reference, count, seed, mode_names[mode]);
        else if (mode == 0)
            for (size_t i = 0; i < count; i++)
                if (!(fabsf(got[i] - reference[i]) <= 2e-3f * (1 + fabsf(reference[i])))) {
                    print_error("seed %llu: element %zu is %g, wanted %g\n",
                                (unsigned long long)seed, i, (double)got[i], (double)reference[i]);
                    assert_true(false);
                }
        if (first)
            compare_bits(got, first, count, seed, mode_names[mode]);
        free(again);
        if (first)
            free(got);
        else
            first = got;
        rlxvk_executable_destroy(e);
    }
    free(first);
    free(reference);
    rlxvk_graph_destroy(g);
}

static void test_exact_graphs(void **state)
{
    rlxvk_context *c = open_context(NULL);
    (void)state;
    exec_scratch_fill = 0x7fc00001u; /* NaN, so that reads of unwritten memory show */
    for (uint64_t seed = 1; seed <= harness_rounds(40); seed++)
        check_seed(c, seed, true);
    exec_scratch_fill = 0;
    close_context(c);
}

static void test_smooth_graphs(void **state)
{
    rlxvk_context *c = open_context(NULL);
    (void)state;
    exec_scratch_fill = 0x7fc00001u;
    for (uint64_t seed = 101; seed <= 100 + harness_rounds(30); seed++)
        check_seed(c, seed, false);
    exec_scratch_fill = 0;
    close_context(c);
}

/* Emulates a weak device: many small memory blocks, staged uploads, few and small workgroups. */
static void test_small_limits(void **state)
{
    rlxvk_context_options lesser = {.limit_allocation_bytes = 80 * 1024,
                                    .limit_binding_bytes = 80 * 1024,
                                    .limit_workgroup_invocations = 64,
                                    .limit_group_count = 64,
                                    .direct_upload = RLXVK_OFF};
    rlxvk_context *c = open_context(&lesser);
    uint32_t blocks = 0;
    (void)state;
    for (uint64_t seed = 201; seed <= 220; seed++) {
        rlxvk_graph *g = make_graph(seed, true);
        rlxvk_executable *e = NULL;
        rlxvk_memory_report memory;
        size_t count, n;
        expect_ok(rlxvk_compile(c, g, &(rlxvk_compile_options){.check_plan = RLXVK_ON}, &e));
        float *reference = evaluate_seeded(g, seed, true, &count);
        float *got = run_seeded(e, g, seed, true, &n);
        compare_bits(got, reference, count, seed, "small limits");
        rlxvk_executable_memory(e, &memory);
        blocks = MAX(blocks, memory.block_count);
        free(got);
        free(reference);
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
    assert_true(blocks >= 3);
    close_context(c);
}

/* A model that is many times larger than the largest allocation or binding. */
static void test_many_blocks(void **state)
{
    rlxvk_context_options lesser = {.limit_allocation_bytes = 80 * 1024,
                                    .limit_binding_bytes = 80 * 1024};
    rlxvk_graph *g = NULL;
    rlxvk_executable *e = NULL;
    rlxvk_memory_report memory;
    float limits[] = {-8, 8};
    size_t count, n;
    (void)state;
    expect_ok(rlxvk_graph_create(&g));
    rlxvk_tensor x = rlxvk_input(g, "x", RLXVK_F32, RLXVK_SHAPE(3, 128));
    rlxvk_tensor low = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &limits[0], 4);
    rlxvk_tensor high = rlxvk_constant(g, RLXVK_F32, RLXVK_SHAPE(1), &limits[1], 4);
    for (char name[] = "a"; name[0] < 'i'; name[0]++) {
        rlxvk_tensor w = rlxvk_param(g, name, RLXVK_F32, RLXVK_SHAPE(128, 128));
        x = rlxvk_min(g, rlxvk_max(g, rlxvk_matmul(g, x, w), low), high);
    }
    rlxvk_graph_output(g, x);
    for (int staged = 0; staged < 2; staged++) {
        lesser.direct_upload = staged ? RLXVK_OFF : RLXVK_DEFAULT;
        rlxvk_context *c = open_context(&lesser);
        expect_ok(rlxvk_compile(c, g, &(rlxvk_compile_options){.check_plan = RLXVK_ON}, &e));
        float *reference = evaluate_seeded(g, 9, true, &count);
        float *got = run_seeded(e, g, 9, true, &n);
        compare_bits(got, reference, count, 9, "many blocks");
        rlxvk_executable_memory(e, &memory);
        assert_true(memory.block_count >= 10 && memory.weight_bytes >= 8 * 65536);
        free(got);
        free(reference);
        rlxvk_executable_destroy(e);
        close_context(c);
    }
    rlxvk_graph_destroy(g);
}

/* Runs all ops on the host, and two selections of ops. Mixed graphs must give the same bits. */
static void test_host_fallback(void **state)
{
    rlxvk_context *c = open_context(NULL);
    const char *const forced[] = {"all", "add,matmul,transpose,reduce_sum,concat",
                                  "max,min,fused_matmul_bias_act,narrow,cumsum,where"};
    (void)state;
    for (uint64_t seed = 301; seed <= 312; seed++) {
        rlxvk_graph *g = make_graph(seed, true);
        size_t count, n;
        float *reference = evaluate_seeded(g, seed, true, &count);
        for (size_t k = 0; k < ARRAY_COUNT(forced); k++) {
            rlxvk_executable *e = NULL;
            rlxvk_plan_report plan;
            rlxvk_compile_options o = {.check_plan = RLXVK_ON};
            host_rows room;
            force_host(&o, forced[k], &room);
            expect_ok(rlxvk_compile(c, g, &o, &e));
            float *got = run_seeded(e, g, seed, true, &n);
            compare_bits(got, reference, count, seed, forced[k]);
            rlxvk_executable_plan(e, &plan);
            assert_true(k > 0 || (plan.host_steps > 0 && plan.dispatches == 0));
            free(got);
            rlxvk_executable_destroy(e);
        }
        free(reference);
        rlxvk_graph_destroy(g);
    }
    close_context(c);
}

/* No run may write the bytes between the end of a slot and the next slot. */
static void test_guard_bands(void **state)
{
    rlxvk_context *c = open_context(NULL);
    (void)state;
    exec_scratch_fill = 0xdeadbeefu;
    for (uint64_t seed = 401; seed <= 420; seed++) {
        rlxvk_graph *g = make_graph(seed, true);
        rlxvk_executable *e = NULL;
        size_t n;
        expect_ok(rlxvk_compile(c, g, &(rlxvk_compile_options){.reuse_memory = RLXVK_OFF}, &e));
        free(run_seeded(e, g, seed, true, &n));
        for (uint32_t v = 0; v < e->program->plan.value_count; v++) {
            const slot *s = &e->program->plan.slots[v];
            uint32_t guard[64];
            if (s->block == SLOT_NONE || s->class != CLASS_SCRATCH || s->size == s->bytes)
                continue;
            location at = e->locations[v];
            at.offset += s->bytes;
            expect_ok(transfer_read(e, &at, guard, s->size - s->bytes));
            for (uint64_t i = 0; i < (s->size - s->bytes) / 4; i++)
                assert_int_equal(guard[i], 0xdeadbeefu);
        }
        rlxvk_executable_destroy(e);
        rlxvk_graph_destroy(g);
    }
    exec_scratch_fill = 0;
    close_context(c);
}

static void test_replays_are_identical(void **state)
{
    rlxvk_context *c = open_context(NULL);
    rlxvk_graph *g = make_graph(77, false);
    rlxvk_executable *e = NULL;
    uint64_t first = 0;
    (void)state;
    expect_ok(rlxvk_compile(c, g, NULL, &e));
    for (int i = 0; i < 100; i++) {
        size_t n;
        float *got = run_seeded(e, g, 5, false, &n);
        uint64_t hash = hash_floats(got, n);
        first = i ? first : hash;
        assert_true(hash == first);
        free(got);
    }
    rlxvk_executable_destroy(e);
    rlxvk_graph_destroy(g);
    close_context(c);
}

/* Nodes share their operands, so a node that works in place could destroy data that others still
 * read. Compares with the host and, bit for bit, with a plan that reuses no memory, with and
 * without fusion. */
static void check_shared(rlxvk_context *c, uint64_t seed)
{
    static const char *const names[] = {"in place", "no reuse"};
    random_source r = {seed};
    rlxvk_graph *g = NULL;
    size_t count, n;
    expect_ok(rlxvk_graph_create(&g));
    random_shared_graph(g, &r, 4 + random_below(&r, 10));
    expect_ok(rlxvk_graph_status(g));
    float *reference = evaluate_seeded(g, seed, false, &count), *got[2];
    for (int fused = 0; fused < 2; fused++) {
        for (int k = 0; k < 2; k++) {
            rlxvk_compile_options o = {.reuse_memory = k ? RLXVK_OFF : RLXVK_DEFAULT,
                                       .fusion = fused ? RLXVK_DEFAULT : RLXVK_OFF};
            rlxvk_executable *e = NULL;
            expect_ok(rlxvk_compile(c, g, &o, &e));
            got[k] = run_seeded(e, g, seed, false, &n);
            assert_int_equal(n, count);
            rlxvk_executable_destroy(e);
            for (size_t i = 0; i < count; i++)
                if (!(fabsf(got[k][i] - reference[i]) <= 2e-3f * (1 + fabsf(reference[i])))) {
                    print_error("seed %llu, %s: element %zu is %g, wanted %g\n",
                                (unsigned long long)seed, names[k], i, (double)got[k][i],
                                (double)reference[i]);
                    assert_true(false);
                }
        }
        compare_bits(got[0], got[1], count, seed, "in place and no reuse");
        free(got[0]);
        free(got[1]);
    }
    free(reference);
    rlxvk_graph_destroy(g);
}

static void test_shared_operands(void **state)
{
    rlxvk_context *c = open_context(NULL);
    (void)state;
    exec_scratch_fill = 0x7fc00001u;
    for (uint64_t seed = 501; seed <= 500 + harness_rounds(80); seed++)
        check_shared(c, seed);
    exec_scratch_fill = 0;
    close_context(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_graphs),          cmocka_unit_test(test_smooth_graphs),
        cmocka_unit_test(test_small_limits),          cmocka_unit_test(test_many_blocks),
        cmocka_unit_test(test_host_fallback),         cmocka_unit_test(test_guard_bands),
        cmocka_unit_test(test_replays_are_identical), cmocka_unit_test(test_shared_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
