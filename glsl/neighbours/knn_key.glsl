/*
 * Distances of keys (see knn_measure.glsl). The includer declares query_bits[], METRIC, and `args`
 * with points and query_offset.
 */
#include "lib/math.glsl"
#include "movement/radix.glsl"

uint row;

float value_of(uint key)
{
    return uintBitsToFloat(key >= 0x80000000u ? key & 0x7fffffffu : ~key);
}

/* The distance of a square_key. Roots are taken only of numbers from 1 to 4. */
float distance_of(uint key)
{
    int exponent = int(key >> 23) - KNN_SQUARE_BIAS;
    float m = uintBitsToFloat((key & 0x007fffffu) | 0x3f800000u);
    if (key >= KNN_SQUARE_INFINITY)
        return key == KNN_SQUARE_INFINITY ? INFINITY : NAN_VALUE;
    return key == 0u ? 0.0 : scale_by_power(sqrt((exponent & 1) != 0 ? 2.0 * m : m), exponent >> 1);
}

/*
 * The distance of an entry (key, rest, index), as bits. Unused entries have the index 0xffffffff.
 */
uint distance_bits(uvec3 e)
{
    if (METRIC == KNN_OF_ROWS)
        return e.z == 0xffffffffu ? 0x7f7fffffu
                                  : query_bits[args.query_offset + row * args.points + e.z];
    if (METRIC == KNN_L2)
        return floatBitsToUint(distance_of(e.x));
    float high = value_of(e.x);
    if (METRIC == KNN_DOT || is_nan(high))
        return floatBitsToUint(high);
    precise float rest = (1.0 + high) + value_of(e.y);
    return floatBitsToUint(clamp(rest, 0.0, 2.0));
}
