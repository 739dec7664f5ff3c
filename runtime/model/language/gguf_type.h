/* The types of tensors in GGUF files, as glsl/args/format.def lists them. */
#ifndef RLXVK_GGUF_TYPE_H
#define RLXVK_GGUF_TYPE_H

#include "base/base.h"

/* Numbers of types: GGUF_TENSOR_Q4_K. */
enum gguf_tensor_type {
#define QUANT_FORMAT(type, NAME, ...) GGUF_TENSOR_##NAME = type,
#include "args/format.def"
    GGUF_TENSOR_TYPES /* above all of them */
};

typedef struct gguf_block {
    const char *name; /* "Q4_K" */
    uint32_t elements, bytes;
    bool is_weight; /* matrix products read it; the others can only be loaded */
} gguf_block;

/* The block of a type, or NULL if the type is unknown or withdrawn. */
const gguf_block *gguf_find_block(uint32_t type);

#endif
