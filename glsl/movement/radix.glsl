/* Keys of the sorting kernels. */
#include "args/movement.h"

/* A key that grows with the float. Zeros of either sign are equal, and NaN is larger than any
 * number. */
uint ordered_key(uint bits)
{
    uint magnitude = bits & 0x7fffffffu, k = bits ^ (uint(int(bits) >> 31) | 0x80000000u);
    k = magnitude == 0u ? 0x80000000u : k;
    return magnitude > 0x7f800000u ? 0xffffffffu : k;
}
