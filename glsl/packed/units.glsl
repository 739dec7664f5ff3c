/*
 * Where the units of 32 elements lie in a row of a packed format: two runs of 16 elements, DISTANCE
 * apart, which the includer declares, a multiple of 16.
 */
#define UNIT_ELEMENTS 32
#define RUN_ELEMENTS  16

/* First element of the unit's first run; the second run starts DISTANCE later. */
uint unit_position(uint index)
{
    uint runs = DISTANCE / RUN_ELEMENTS;
    return index / runs * (2 * DISTANCE) + index % runs * RUN_ELEMENTS;
}
