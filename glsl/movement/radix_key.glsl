/* Ascending keys of floats in the order that is wanted, NaN last. `args` is declared before. */
uint sort_key(uint bits)
{
    uint k = ordered_key(bits);
    return args.descending != 0u && k != 0xffffffffu ? ~k : k;
}
