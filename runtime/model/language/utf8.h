/* UTF-8: strict decoding (no overlong forms, no surrogates, at most U+10FFFF) and encoding. */
#ifndef RLXVK_UTF8_H
#define RLXVK_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define UTF8_INVALID UINT32_MAX

/* Decodes the code point at `bytes` and sets *size to its number of bytes. `length` must be above
 * 0. If the bytes are invalid, this returns UTF8_INVALID and sets *size to 1. */
static inline uint32_t utf8_decode(const uint8_t *bytes, size_t length, size_t *size)
{
    static const uint32_t smallest[4] = {0, 0x80, 0x800, 0x10000};
    uint32_t first = bytes[0];
    size_t extra = first < 0x80 ? 0 : first < 0xc2 ? 4 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    *size = 1;
    if (extra == 0)
        return first;
    if (extra == 4 || first > 0xf4 || extra >= length)
        return UTF8_INVALID;
    uint32_t point = first & (0x3fu >> extra);
    for (size_t i = 1; i <= extra; i++) {
        if ((bytes[i] & 0xc0) != 0x80)
            return UTF8_INVALID;
        point = point << 6 | (bytes[i] & 0x3fu);
    }
    if (point < smallest[extra] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return UTF8_INVALID;
    *size = extra + 1;
    return point;
}

/* Encodes a code point up to U+10FFFF. Returns its number of bytes. */
static inline size_t utf8_encode(uint32_t point, uint8_t out[4])
{
    size_t extra = point < 0x80 ? 0 : point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    static const uint32_t lead[4] = {0, 0xc0, 0xe0, 0xf0};
    out[0] = (uint8_t)(lead[extra] | point >> 6 * extra);
    for (size_t i = 1; i <= extra; i++)
        out[i] = (uint8_t)(0x80 | (point >> 6 * (extra - i) & 0x3f));
    return extra + 1;
}

#endif
