/* Custom ops: the process-wide table of what users registered. Entries are never freed: graphs and
 * executables point at them, and a re-registration makes a new entry under the same name. */
#ifndef RLXVK_CUSTOM_H
#define RLXVK_CUSTOM_H

#include "op/op.h"

#define CUSTOM_ATTRIBUTE_BYTES 256
#define CUSTOM_MAX_BINDINGS    8 /* what every device has */

typedef struct custom_entry {
    char name[64];
    rlxvk_custom_op op; /* name and kernel pointers are not used: see the members beside */
    kernel_info kernel; /* words NULL: no kernel */
    uint16_t kernel_id;
    uint64_t invocations; /* of a workgroup, as far as the kernel states them; 0: it does not */
    rlxvk_custom_arguments arguments;
} custom_entry;

typedef struct custom_attributes {
    const custom_entry *entry;
    size_t size;
    uint8_t bytes[CUSTOM_ATTRIBUTE_BYTES];
    bool packed; /* the caller stated the result's shape */
    rlxvk_shape shape;
    rlxvk_dtype dtype;
} custom_attributes;

/* E_ATTR unless the words are a compute shader as rlxvk_custom_kernel describes it, with buffers
 * 0 .. bindings - 1. custom_module.c */
rlxvk_status custom_check_module(const char *name, const uint32_t *words, size_t count,
                                 uint32_t bindings, uint32_t argument_bytes,
                                 uint64_t *out_invocations);

#endif
