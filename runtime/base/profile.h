/*
 * What the pure layers need to know of a device. Plain data: made from a snapshot by vk/, or by
 * hand in tests.
 */
#ifndef RLXVK_PROFILE_H
#define RLXVK_PROFILE_H

#include "base/base.h"

/* One product of the device's matrix units, done by a subgroup: [m, k] x [k, n]. */
typedef struct matrix_shape {
    uint32_t m, n, k;
} matrix_shape;

typedef struct device_profile {
    rlxvk_device_kind kind;
    uint32_t subgroup_size;
    uint32_t max_workgroup_invocations; /* also bounds the x size */
    uint32_t max_group_count[3];
    uint32_t shared_memory_bytes;
    uint32_t push_constant_bytes;
    uint32_t storage_buffers_per_stage;
    uint64_t max_allocation_bytes; /* one memory block */
    uint64_t max_binding_bytes;    /* one slot */
    uint64_t slot_alignment;       /* max(256, minStorageBufferOffsetAlignment) */
    uint32_t
        workgroup_size;     /* preferred size of 1-D kernels: 128, or 256 where the device allows */
    uint32_t compute_units; /* told or typical, for choosing how far to split work */
    matrix_shape matrix_f16, matrix_bf16, matrix_f32; /* with f32 sums; m = 0: none */
    bool subgroup_shuffle;            /* in compute, with whole subgroups of subgroup_size */
    bool subgroup_ballot;             /* likewise */
    uint32_t max_shuffle_invocations; /* of a workgroup, with such subgroups */
    bool half_subnormals;             /* unpackHalf2x16 keeps them */
    bool half_rounding;               /* f32 to f16 is to nearest even, to subnormals too */
    bool byte_products;       /* sums of the products of four packed bytes (integer dot product) */
    bool quick_byte_products; /* by an instruction of their own */
    bool portable;            /* a translated or software driver: prefer plain kernels */
} device_profile;

/* No GPU: a few threads of a processor run the invocations of a workgroup in turns. Then work is
 * cut into few pieces, and groups are small: more of either costs and gains nothing. */
static inline bool profile_is_software(const device_profile *profile)
{
    return profile->kind == RLXVK_DEVICE_CPU;
}

/* Whether there are workgroups for (nearly) every compute unit: seven of eight. */
static inline bool profile_filled(const device_profile *profile, uint64_t groups)
{
    return groups * 8 >= (uint64_t)profile->compute_units * 7;
}

#endif
