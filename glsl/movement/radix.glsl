/* Keys of the sorting kernels. */
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
