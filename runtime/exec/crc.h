/* CRC-32 as zip files have it (polynomial 0xedb88320, reflected), eight bytes at a time. */
#ifndef RLXVK_CRC_H
#define RLXVK_CRC_H

#include "base/base.h"

typedef struct crc_table {
    uint32_t of[8][256];
} crc_table;

void crc_fill(crc_table *out);
/* Goes on from `crc`, which begins as 0. */
uint32_t crc_update(const crc_table *t, uint32_t crc, const void *bytes, uint64_t size);

#endif
