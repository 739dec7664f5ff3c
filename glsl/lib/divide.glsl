/* Division by a number that the host knows. multiplier = ceil(2^(31 + s) / by) with s =
 * ceil(log2(by)); conv_divide_multiplier() computes it on the host. Exact for n < 2^31. */
uint divide(uint n, uint by, uint multiplier)
{
    uint high, low;
    umulExtended(n, multiplier, high, low);
    return (high << 1 | low >> 31) >> (findMSB(by - 1u) + 1);
}
