/* How much host memory the library asks for, for tests. */
#ifndef RLXVK_MEMORY_SIZES_H
#define RLXVK_MEMORY_SIZES_H

#include <stdint.h>

/* Bytes of all blocks asked for so far, freed ones and refused ones included. */
uint64_t memory_requested_bytes(void);

#endif
