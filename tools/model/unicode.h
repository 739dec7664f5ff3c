/* The three character classes that tokenizer patterns use. */
#ifndef RLXVK_UNICODE_H
#define RLXVK_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct unicode_range {
    uint32_t first, last;
} unicode_range;

extern const unicode_range unicode_letters[], unicode_numbers[];
extern const size_t unicode_letters_count, unicode_numbers_count;

static inline bool unicode_in_ranges(const unicode_range *ranges, size_t count, uint32_t point)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (point > ranges[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && point >= ranges[low].first;
}

static inline bool unicode_is_letter(uint32_t point)
{
    return unicode_in_ranges(unicode_letters, unicode_letters_count, point);
}

static inline bool unicode_is_number(uint32_t point)
{
    return unicode_in_ranges(unicode_numbers, unicode_numbers_count, point);
}

/* The White_Space property. */
static inline bool unicode_is_space(uint32_t point)
{
    return (point >= 9 && point <= 13) || point == 0x20 || point == 0x85 || point == 0xa0 ||
           point == 0x1680 || (point >= 0x2000 && point <= 0x200a) || point == 0x2028 ||
           point == 0x2029 || point == 0x202f || point == 0x205f || point == 0x3000;
}

#endif
