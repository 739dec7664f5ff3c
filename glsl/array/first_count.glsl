#include "lib/index.glsl"

/* Converts a count that is given as a float: rounded, and clamped to 0 .. `most`, which is below
 * 2^31. NaN is 0. */
uint first_count(float given, uint most)
{
    float v = nearest_integer(given);
    return v > 0.0 ? min(uint(min(v, 2147483648.0)), most) : 0u;
}
