/* Converts a count that is given as a float: rounded, and clamped to 0 .. `most`. NaN is 0. */
uint first_count(float given, uint most)
{
    float v = floor(given + 0.5);
    return v > 0.0 ? (v < float(most) ? uint(v) : most) : 0u;
}
