/*
 * The position of units of 32 elements in a row of a packed format. A unit is two runs of 16
 * elements that lie DISTANCE apart. The includer declares DISTANCE, a multiple of 16.
 */
#include "args/matmul.h"

#define UNIT_ELEMENTS 32
#define RUN_ELEMENTS  16

/* The first element of the unit's first run. The second run starts DISTANCE later. */
uint unit_position(uint index)
{
    uint runs = DISTANCE / RUN_ELEMENTS;
    return index / runs * (2 * DISTANCE) + index % runs * RUN_ELEMENTS;
}

/*
 * The order in which the lanes of a row hold weights. Each lane has one of MATRIX_LANES
 * neighbouring units (a group), and all lanes give a pair of elements in turn. A pair is two bytes
 * of a word of codes, two apart. Pairs of the first run's word come before those of the second
 * run's. This function returns the first element of a lane's pair.
 */
#define GROUP_ELEMENTS (MATRIX_LANES * UNIT_ELEMENTS)
uint lane_element(uint group, uint pair, uint lane)
{
    return unit_position(group * MATRIX_LANES + lane) + pair / 2 % 2 * DISTANCE + pair / 4 * 4 +
           pair % 2;
}
