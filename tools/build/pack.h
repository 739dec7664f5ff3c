/* The other way of runtime/kernel/packed.h. */
#ifndef RLXVK_PACK_H
#define RLXVK_PACK_H

#include "kernel/packed.h"

/* Packs the words of a module; false where memory ends. out->bytes is the caller's to free. */
bool pack_module(const uint32_t *words, uint32_t count, packed_module *out);

#endif
