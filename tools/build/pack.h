/* The reverse of runtime/kernel/packed.h. */
#ifndef RLXVK_PACK_H
#define RLXVK_PACK_H

#include "kernel/packed.h"

/* Packs the words of a module. Returns false if memory runs out. The caller frees out->bytes. */
bool pack_module(const uint32_t *words, uint32_t count, packed_module *out);

#endif
