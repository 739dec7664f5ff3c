/* Made-up devices for the tests of kernel selection: a large GPU, the smallest device that the
 * library takes, and a software driver. Fields that no kernel selection reads are 0. */
#ifndef RLXVK_TEST_PROFILES_H
#define RLXVK_TEST_PROFILES_H

#include "base/profile.h"

/* A device with all fields, for tests that plan whole graphs. */
#define ORDINARY_GPU                                                                               \
    {                                                                                              \
        .kind = RLXVK_DEVICE_DISCRETE, .subgroup_size = 32, .max_workgroup_invocations = 256,      \
        .max_shuffle_invocations = 256, .max_group_count = {65535, 65535, 65535},                  \
        .shared_memory_bytes = 32768, .push_constant_bytes = 128, .storage_buffers_per_stage = 8,  \
        .max_allocation_bytes = 1u << 30, .max_binding_bytes = 1u << 27, .slot_alignment = 256,    \
        .workgroup_size = 256, .compute_units = 64                                                 \
    }

static inline device_profile big_gpu(void)
{
    return (device_profile){.kind = RLXVK_DEVICE_DISCRETE,
                            .max_workgroup_invocations = 1024,
                            .max_shuffle_invocations = 1024,
                            .shared_memory_bytes = 49152,
                            .workgroup_size = 256,
                            .compute_units = 128,
                            .max_binding_bytes = UINT32_MAX};
}

static inline device_profile baseline(void)
{
    return (device_profile){.kind = RLXVK_DEVICE_INTEGRATED,
                            .max_workgroup_invocations = 128,
                            .max_shuffle_invocations = 128,
                            .shared_memory_bytes = 16384,
                            .workgroup_size = 128,
                            .compute_units = 16,
                            .max_binding_bytes = 1u << 27};
}

static inline device_profile software(void)
{
    device_profile p = baseline();
    p.kind = RLXVK_DEVICE_CPU;
    p.max_workgroup_invocations = 1024;
    p.shared_memory_bytes = 32768;
    p.portable = true;
    return p;
}

#endif
