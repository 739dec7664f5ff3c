/* Which variant a recurrent layer takes, on made-up devices. */
#include "op/sequence/recurrent_choice.h"

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

static const char *choose(uint64_t batch, uint64_t hidden, uint64_t gates,
                          const device_profile *profile)
{
    recurrent_geometry r = {.batch = batch,
                            .steps = 128,
                            .inputs = 8,
                            .hidden = hidden,
                            .gates = gates,
                            .layers = 1,
                            .directions = 1,
                            .rows = gates * hidden};
    return recurrent_choose(&r, profile, VARIANT_NONE)->row.name;
}

static void test_batch(void **state)
{
    (void)state;
    assert_string_equal(choose(64, 512, 4, &gpu), "tiles_32_256");
    assert_string_equal(choose(17, 1024, 4, &gpu), "tiles_32_256");
    assert_string_equal(choose(16, 1024, 4, &gpu), "tiles_16_256");
    assert_string_equal(choose(64, 256, 4, &gpu), "tiles_16_256");
    assert_string_equal(choose(4, 512, 4, &gpu), "tiles_8_256");
    assert_string_equal(choose(3, 512, 4, &gpu), "steps");
    assert_string_equal(choose(64, 512, 1, &gpu), "tiles_8_256");
    assert_string_equal(choose(64, 128, 4, &gpu), "sequences");
    assert_string_equal(choose(64, 129, 4, &gpu), "tiles_8_256");
}

static void test_limits(void **state)
{
    device_profile p = gpu;
    (void)state;
    p.max_workgroup_invocations = 128;
    assert_string_equal(choose(64, 512, 4, &p), "tiles_32_128");
    assert_string_equal(choose(16, 512, 4, &p), "steps");
    p = gpu;
    p.shared_memory_bytes = 16 << 10;
    assert_string_equal(choose(64, 512, 4, &p), "tiles_32_128");
    p = gpu;
    p.max_binding_bytes = 4 * 4 * 512 * 512; /* W_hh of three gates is laid out as of four */
    assert_string_equal(choose(64, 512, 3, &p), "tiles_32_256");
    p.max_binding_bytes--;
    assert_string_equal(choose(64, 512, 3, &p), "steps");
    p = gpu;
    p.kind = RLXVK_DEVICE_CPU;
    assert_string_equal(choose(64, 512, 4, &p), "steps");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_batch), cmocka_unit_test(test_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
