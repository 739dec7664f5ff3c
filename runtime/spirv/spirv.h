/* Transformations of SPIR-V modules: words in, words out. They are pure. The caller frees the
 * result with memory_free. It is NULL if host memory runs out. */
#ifndef RLXVK_SPIRV_H
#define RLXVK_SPIRV_H

#include "kernel/kernel.h"

/* Float controls that the device offers, and that are requested from its driver. */
typedef struct spirv_float_controls {
    bool preserve_special;     /* signed zeros, infinities and NaN of f32 */
    bool round_to_even;        /* f32 */
    bool round_halves_to_even; /* f32 to f16 */
    bool preserve_subnormals;  /* f16: unpackHalf2x16 */
} spirv_float_controls;

/* float_controls.c: the kernel's words, which request these float controls. */
uint32_t *spirv_request(const kernel_info *kernel, spirv_float_controls controls,
                        uint32_t *out_count);

/* specialize.c: sets the constants of SpecId 0, 1, .. to these values and removes code that can
 * then not run. It keeps or removes the hints to unroll loops. The result is a valid module. */
uint32_t *spirv_specialize(const uint32_t *words, uint32_t count, const uint32_t *constants,
                           uint32_t constant_count, bool unroll_hints, uint32_t *out_count);

/* inline.c: copies the functions that the entry point calls into it. Functions that return from
 * inside a loop or a switch stay functions. */
uint32_t *spirv_inline(const uint32_t *words, uint32_t count, uint32_t *out_count);

/* merge.c: merges blocks that only follow one another. */
uint32_t *spirv_merge_blocks(const uint32_t *words, uint32_t count, uint32_t *out_count);

/* contract.c: makes sums of products fused multiply-adds, unless they are `precise`. */
uint32_t *spirv_contract(const uint32_t *words, uint32_t count, uint32_t *out_count);

/* exact.c: makes all float operations `precise`, except fused multiply-adds. */
uint32_t *spirv_make_exact(const uint32_t *words, uint32_t count, uint32_t *out_count);

/* buffers.c: removes storage buffers that no function uses. */
uint32_t *spirv_drop_buffers(const uint32_t *words, uint32_t count, uint32_t *out_count);

/* grid.c: makes a module count with `grid` workgroups, no matter how many are launched. Also NULL
 * if the module does not read the number of workgroups, or reads it other than by loads of all
 * three words or of one component. */
uint32_t *spirv_fix_grid(const uint32_t *words, uint32_t count, const uint32_t grid[3],
                         uint32_t *out_count);
/* Whether a function of the module reads the number of workgroups. */
bool spirv_reads_grid(const uint32_t *words, uint32_t count);
/* Whether a function of the module reads the global number of an invocation. */
bool spirv_reads_global_id(const uint32_t *words, uint32_t count);

/* shared.c: counts the bytes of shared memory that the module's functions use. False if host memory
 * runs out. */
bool spirv_shared_bytes(const uint32_t *words, uint32_t count, uint64_t *out);

/* permute.c: runs invocations and workgroups in another order. If they must keep their order, or
 * are not told apart, the result is a copy and *out_permuted is false. */
typedef enum spirv_order { SPIRV_IN_ORDER, SPIRV_REVERSED, SPIRV_PERMUTED } spirv_order;
uint32_t *spirv_permute(const uint32_t *words, uint32_t count, spirv_order order, uint32_t seed,
                        bool *out_permuted, uint32_t *out_count);

#endif
