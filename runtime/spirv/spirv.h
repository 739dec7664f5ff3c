/* Transformations of modules: words in, words out. Pure; the results are the caller's to
 * memory_free, NULL where host memory does not suffice. */
#ifndef RLXVK_SPIRV_H
#define RLXVK_SPIRV_H

#include "kernel/kernel.h"

/* What a device offers that its driver is asked for. */
typedef struct spirv_float_controls {
    bool preserve_special;     /* signed zeros, infinities and NaN of f32 */
    bool round_to_even;        /* f32 */
    bool round_halves_to_even; /* f32 to f16 */
    bool preserve_subnormals;  /* f16: unpackHalf2x16 */
} spirv_float_controls;

/* float_controls.c: the kernel's words with these float controls asked for. */
uint32_t *spirv_request(const kernel_info *kernel, spirv_float_controls controls,
                        uint32_t *out_count);

/* specialize.c: a valid module with these values for the constants of SpecId 0, 1, .., without what
 * they rule out, with or without the hints to unroll loops. */
uint32_t *spirv_specialize(const uint32_t *words, uint32_t count, const uint32_t *constants,
                           uint32_t constant_count, bool unroll_hints, uint32_t *out_count);

/* inline.c: the module with the functions that its entry point calls copied into it, but those that
 * return from inside a loop or a switch. */
uint32_t *spirv_inline(const uint32_t *words, uint32_t count, uint32_t *out_count);

/* merge.c: the module with blocks that only follow one another made one. */
uint32_t *spirv_merge_blocks(const uint32_t *words, uint32_t count, uint32_t *out_count);

/* contract.c: the module with fused multiply-adds for sums of products that are not `precise`. */
uint32_t *spirv_contract(const uint32_t *words, uint32_t count, uint32_t *out_count);

/* buffers.c: the module without the storage buffers that no function uses. */
uint32_t *spirv_drop_buffers(const uint32_t *words, uint32_t count, uint32_t *out_count);

/* grid.c: the module as if `grid` were the number of workgroups, however many are launched. NULL
 * also where it does not read that number by component, once at least. */
uint32_t *spirv_fix_grid(const uint32_t *words, uint32_t count, const uint32_t grid[3],
                         uint32_t *out_count);

/* permute.c: the module with its invocations, and its workgroups, in another order. A copy where
 * they must keep theirs, or are not told apart: *out_permuted is false. */
typedef enum spirv_order { SPIRV_IN_ORDER, SPIRV_REVERSED, SPIRV_PERMUTED } spirv_order;
uint32_t *spirv_permute(const uint32_t *words, uint32_t count, spirv_order order, uint32_t seed,
                        bool *out_permuted, uint32_t *out_count);

#endif
