/* How much host memory the library asks for; for tests. */
#ifndef RLXVK_MEMORY_SIZES_H
#define RLXVK_MEMORY_SIZES_H

#include <stdint.h>

/* Bytes of all blocks that were requested so far, also of freed and of failed ones. */
uint64_t memory_requested_bytes(void);

#endif
