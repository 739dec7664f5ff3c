/*
 * What the sorting kernels share. A digit is RADIX_BITS bits of a key; counts lie [row, digit,
 * block], so that their running sum is where a digit of a block starts in its sorted row.
 */
#include "args/movement.h"

/* Grows with the float: zeros of either sign are equal, NaN is above everything. */
uint ordered_key(uint bits)
{
    uint magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return 0xffffffffu;
    if (magnitude == 0u)
        return 0x80000000u;
    return bits != magnitude ? ~bits : bits | 0x80000000u;
}

uint radix_digit(uint key, uint shift)
{
    return key >> shift & (RADIX_DIGITS - 1u);
}
