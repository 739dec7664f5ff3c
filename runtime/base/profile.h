/*
 * The facts about a device that the pure layers need. Plain data: vk/ makes it from a snapshot, and
 * tests make it by hand.
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
    uint32_t max_workgroup_invocations; /* also the limit of local_size_x */
    uint32_t max_group_count[3];
    uint32_t shared_memory_bytes;
    uint32_t push_constant_bytes;
    uint32_t storage_buffers_per_stage;
    uint64_t max_allocation_bytes; /* of one memory block */
    uint64_t max_binding_bytes;    /* of one operand */
    uint64_t slot_alignment;       /* max(256, minStorageBufferOffsetAlignment) */
    uint32_t workgroup_size;       /* of 1-D kernels: 64 on a CPU, else 256 or 128, as allowed */
    uint32_t compute_units;        /* reported or typical; decides how far to split work */
    /* Registers of 32 bits: those of a compute unit, which the threads of a workgroup share, and
     * the most of one thread. 0: not known, or the variants were measured, so none is refused. */
    uint32_t unit_registers, thread_registers;
    uint32_t register_threads; /* a workgroup takes registers for a multiple of these; 0: of 1 */
    bool loads_early; /* the compiler moves the loads of unrolled code far ahead of their use */
    matrix_shape matrix_f16, matrix_bf16, matrix_f32; /* with f32 sums; m = 0: none */
    bool subgroup_shuffle;            /* in compute shaders, with full subgroups of subgroup_size */
    bool subgroup_ballot;             /* under the same conditions */
    uint32_t max_shuffle_invocations; /* most invocations of a workgroup with such subgroups */
    bool half_subnormals;             /* unpackHalf2x16 keeps denormals */
    bool half_rounding;               /* f32 to f16 rounds to nearest even, also to denormals */
    bool byte_products;       /* sums of the products of four packed bytes (integer dot product) */
    bool quick_byte_products; /* they have an instruction of their own */
    bool portable;            /* a translated or software driver: prefer plain kernels */
} device_profile;

/* Whether the device is not a GPU but a CPU. A few threads then run the invocations of a workgroup
 * in turns. Cut work into few pieces and use small groups, because more of either costs time and
 * gains nothing. */
static inline bool profile_is_software(const device_profile *profile)
{
    return profile->kind == RLXVK_DEVICE_CPU;
}

/* Whether the workgroups occupy (nearly) every compute unit: at least seven of eight. */
static inline bool profile_filled(const device_profile *profile, uint64_t groups)
{
    return groups * 8 >= (uint64_t)profile->compute_units * 7;
}

/* The most registers that a thread can have in a workgroup of `threads`. */
static inline uint32_t profile_registers(const device_profile *profile, uint32_t threads)
{
    if (profile->unit_registers == 0)
        return UINT32_MAX;
    uint64_t holders = round_up(MAX(threads, 1), MAX(profile->register_threads, 1));
    return MIN(profile->thread_registers, (uint32_t)(profile->unit_registers / holders));
}

#endif
