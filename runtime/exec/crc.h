/* CRC-32 as in zip files (polynomial 0xedb88320, reflected), eight bytes at a time. */
#ifndef RLXVK_CRC_H
#define RLXVK_CRC_H

#include "base/base.h"

typedef struct crc_table {
    uint32_t of[8][256];
} crc_table;

void crc_fill(crc_table *out);
/* Continues from `crc`, which is 0 at the beginning. */
uint32_t crc_update(const crc_table *t, uint32_t crc, const void *bytes, uint64_t size);

#endif
