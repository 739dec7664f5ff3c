/* floor(v + 1/2). v + 0.5 itself would be rounded: 8388609.5 is no f32, nor is 1 - 2^-25. */
float nearest_integer(float v)
{
    float low = floor(v);
    return v - low >= 0.5 ? low + 1.0 : low;
}

/* Converts an index that is stored as a float: floor(v + 1/2), clamped to 0 .. extent - 1. NaN is
 * 0. extent <= 2^24. */
uint clamped_index(float v, uint extent)
{
    float last = float(extent - 1u);
    if (is_nan(v) || v <= 0.0)
        return 0u;
    if (v >= last)
        return extent - 1u;
    return uint(nearest_integer(v));
}

/* The same without clamping: NaN and indices outside 0 .. extent - 1 give 2^32 - 1. extent <=
 * 2^24. */
uint checked_index(float v, uint extent)
{
    if (is_nan(v) || v < -0.5 || v >= float(extent))
        return 0xffffffffu;
    uint index = uint(int(nearest_integer(v)));
    return index < extent ? index : 0xffffffffu;
}
