/*
 * The table of embedded kernels: one row per glsl/<name>.comp. tools/build/spv2c.c generates it
 * into build/generated/kernel_table.{h,c}. It is plain data, and all that layers below vk/ know
 * about kernels.
 */
#ifndef RLXVK_KERNEL_H
#define RLXVK_KERNEL_H

#include "base/base.h"
#include "kernel/packed.h"
#include "kernel_table.h" /* generated: enum kernel_id { KERNEL_<NAME>, ..., KERNEL_COUNT } */

#define KERNEL_MAX_BINDINGS       65
#define KERNEL_MAX_ARGUMENT_BYTES 128
#define KERNEL_MAX_CONSTANTS      36

/* Names of specialization constants are in constants/ (generated). In every kernel, the first
 * constant is local_size_x. */
#define LOCAL_SIZE 0

typedef struct kernel_info {
    const char *name;
    const uint32_t *words; /* SPIR-V of a registered kernel; NULL if it is packed */
    packed_module packed;  /* SPIR-V of a kernel of the table, without debug names */
    /* Names of specialization constants; NULL if the numbering has a gap. */
    const char *const *constants;
    uint32_t word_count;
    uint32_t argument_bytes; /* size of the push-constant struct, checked against glsl/args/ */
    uint32_t binding_count;  /* storage buffers 0 .. binding_count-1 of set 0 */
    uint32_t constant_count; /* of `constants` */
    /* The number of the constant BINDINGS, which says how many bindings are used: only the first
     * ones. 0: all bindings are used. */
    uint32_t bindings_constant;
    bool subgroups; /* needs subgroups of the profile's size: matrix units, shuffles */
} kernel_info;

extern const kernel_info kernel_table[KERNEL_COUNT];

/* Custom ops register kernels at run time (kernel.c). Their ids follow those of the table. */
#define KERNEL_REGISTERED_LIMIT 64
#define KERNEL_LIMIT            (KERNEL_COUNT + KERNEL_REGISTERED_LIMIT)
const kernel_info *kernel_find(uint32_t id); /* the id must exist */
uint32_t kernel_count(void);
/* How many storage buffers a kernel uses with these constants. So many must be bound. */
static inline uint32_t kernel_bindings(const kernel_info *kernel, const uint32_t *constants)
{
    return kernel->bindings_constant ? constants[kernel->bindings_constant] : kernel->binding_count;
}
/* The kernel's word_count words of SPIR-V; NULL if out of memory. The caller frees them with
 * memory_free. */
uint32_t *kernel_words(const kernel_info *kernel);
/* Registers a kernel. `kernel` must stay for ever. False if the limit is reached. */
bool kernel_register(const kernel_info *kernel, uint16_t *out_id);

#endif
