/* See crc.h. of[k][b] is the remainder of byte b with k zero bytes behind it. */
#include "exec/crc.h"

#include <string.h>

void crc_fill(crc_table *out)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        out->of[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t b = 0; b < 256; b++) {
            uint32_t crc = out->of[k - 1][b];
            out->of[k][b] = crc >> 8 ^ out->of[0][crc & 0xff];
        }
}

uint32_t crc_update(const crc_table *t, uint32_t crc, const void *bytes, uint64_t size)
{
    const uint8_t *at = bytes;
    crc = ~crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t eight;
        memcpy(&eight, at, 8);
        eight ^= crc;
        crc = 0;
        for (int k = 0; k < 8; k++)
            crc ^= t->of[7 - k][eight >> 8 * k & 0xff];
    }
    for (; size; size--, at++)
        crc = crc >> 8 ^ t->of[0][(crc ^ *at) & 0xff];
    return ~crc;
}
