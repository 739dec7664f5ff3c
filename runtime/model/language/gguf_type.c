/* See gguf_type.h. */
#include "model/language/gguf_type.h"

static const gguf_block blocks[GGUF_TENSOR_TYPES] = {
#define BLOCK_FORMAT(type, NAME, elements, bytes, ...)  [type] = {#NAME, elements, bytes, true},
#define PLAIN_FORMAT(type, NAME, bytes, ...)            [type] = {#NAME, 1, bytes, true},
#define LOADED_FORMAT(type, NAME, elements, bytes, ...) [type] = {#NAME, elements, bytes, false},
#include "args/format.def"
};

const gguf_block *gguf_find_block(uint32_t type)
{
    return type < GGUF_TENSOR_TYPES && blocks[type].name ? &blocks[type] : NULL;
}
