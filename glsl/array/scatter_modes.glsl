/* Combines two values of an element. */
float apply(uint mode, float a, float b)
{
    if (mode == SCATTER_ADD)
        return a + b;
    if (mode == SCATTER_MUL)
        return a * b;
    if (mode == SCATTER_MAX)
        return a > b || is_nan(a) ? a : b;
    if (mode == SCATTER_MIN)
        return a < b || is_nan(a) ? a : b;
    return b;
}

/* For a maximum or a minimum: a number that is larger if the value wins. NaN has the largest. */
uint rank_of(uint mode, uint bits)
{
    uint magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return 0xffffffffu;
    uint ascending = bits != magnitude ? ~bits : bits | 0x80000000u;
    return mode == SCATTER_MAX ? ascending : ~ascending;
}
uint bits_of(uint mode, uint rank)
{
    if (rank == 0xffffffffu)
        return 0x7fc00000u;
    uint ascending = mode == SCATTER_MAX ? rank : ~rank;
    return (ascending & 0x80000000u) != 0u ? ascending ^ 0x80000000u : ~ascending;
}
