/* Custom ops: the table of registered ops, one for the process. Entries are never freed, because
 * graphs and executables point to them. Registering a name again makes a new entry. */
#ifndef RLXVK_CUSTOM_H
#define RLXVK_CUSTOM_H

#include "op/op.h"

#define CUSTOM_ATTRIBUTE_BYTES 256
#define CUSTOM_MAX_BINDINGS    8 /* every device has at least so many */

typedef struct custom_entry {
    char name[64];
    rlxvk_custom_op op; /* its name and kernel pointers are not used, but the members here */
    kernel_info kernel; /* words NULL: no kernel */
    uint16_t kernel_id;
    uint64_t invocations; /* of a workgroup, if the kernel states them; 0: it does not */
    rlxvk_custom_arguments arguments;
} custom_entry;

typedef struct custom_attributes {
    const custom_entry *entry;
    size_t size;
    uint8_t bytes[CUSTOM_ATTRIBUTE_BYTES];
    bool packed; /* the caller gave the shape of the result */
    rlxvk_shape shape;
    rlxvk_dtype dtype;
} custom_attributes;

/* E_ATTR unless the words are a compute shader as rlxvk_custom_kernel describes it, with buffers 0
 * .. bindings - 1. See custom_module.c. */
rlxvk_status custom_check_module(const char *name, const uint32_t *words, size_t count,
                                 uint32_t bindings, uint32_t argument_bytes,
                                 uint64_t *out_invocations);

#endif
