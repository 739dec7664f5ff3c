/* How the backward pass of a recurrent net is computed, on made-up devices. */
#include "op/sequence/recurrent_backward_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const device_profile gpu = {.kind = RLXVK_DEVICE_DISCRETE,
                                   .max_workgroup_invocations = 1024,
                                   .workgroup_size = 256,
                                   .shared_memory_bytes = 48 << 10,
                                   .max_binding_bytes = UINT32_MAX,
                                   .compute_units = 128};

static recurrent_sweep net(uint64_t batch, uint64_t hidden, uint64_t gates)
{
    return (recurrent_sweep){.batch = batch,
                             .steps = 128,
                             .hidden = hidden,
                             .gates = gates,
                             .rows = gates * hidden,
                             .states = gates == 4 ? 2 : 1,
                             .cell = gates == 4   ? RECURRENT_LSTM
                                     : gates == 3 ? RECURRENT_GRU
                                                  : RECURRENT_RNN};
}

static const char *choose(uint64_t batch, uint64_t hidden, uint64_t gates,
                          const device_profile *profile)
{
    recurrent_sweep s = net(batch, hidden, gates);
    return recurrent_backward_choose(&s, profile, VARIANT_NONE)->row.name;
}

static void test_sizes(void **state)
{
    (void)state;
    assert_string_equal(choose(1, 128, 4, &gpu), "sequences");
    assert_string_equal(choose(64, 128, 4, &gpu), "sequences");
    assert_string_equal(choose(512, 128, 4, &gpu), "sequences_4");
    assert_string_equal(choose(1, 256, 1, &gpu), "sequences");
    assert_string_equal(choose(1, 129, 4, &gpu), "tiles_4x1");
    assert_string_equal(choose(1, 148, 3, &gpu), "tiles_4x1");
    assert_string_equal(choose(1, 1024, 4, &gpu), "tiles_4x1");
    assert_string_equal(choose(2, 1024, 4, &gpu), "tiles_8x4");
    assert_string_equal(choose(4, 512, 4, &gpu), "tiles_4x4");
    assert_string_equal(choose(8, 1024, 4, &gpu), "tiles_8x8");
    assert_string_equal(choose(64, 512, 4, &gpu), "tiles_16x16");
    assert_string_equal(choose(256, 1024, 4, &gpu), "tiles_32x32");
}

static void test_limits(void **state)
{
    device_profile p = gpu;
    recurrent_sweep s = net(512, 256, 1), wide = net(1, 1024, 4);
    (void)state;
    p.shared_memory_bytes = 16 << 10;
    assert_string_equal(choose(512, 128, 4, &p), "sequences");
    assert_string_equal(choose(64, 512, 4, &p), "tiles_16x16");
    p.max_workgroup_invocations = p.workgroup_size = 128; /* the baseline is enough */
    assert_string_equal(choose(512, 128, 4, &p), "sequences_4");
    assert_string_equal(choose(256, 1024, 4, &p), "tiles_16x16");
    assert_int_equal(recurrent_backward_splits(&s, &p), 2);
    assert_int_equal(recurrent_backward_lanes(&s), 64);
    p = gpu;
    p.max_binding_bytes = 16 << 20;
    assert_string_equal(choose(1, 1024, 4, &p), "tiles_4x1");
    p = gpu;
    p.kind = RLXVK_DEVICE_CPU;
    p.portable = true;
    p.compute_units = 2;
    assert_string_equal(choose(1, 1024, 4, &p), "tiles_4x1");
    wide.hidden = 8;
    wide.rows = 32;
    wide.steps = 70000; /* exceeds the rounds of a loop on a software driver */
    assert_string_equal(recurrent_backward_choose(&wide, &p, VARIANT_NONE)->row.name, "tiles_4x1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
