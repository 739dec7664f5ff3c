/*
 * The order of tokens in sample and sample_best: logit descending, then index ascending. The
 * includer declares args and pair_scratch, a shared array of pairs with one element per invocation.
 */

/* The logit, or -Inf for a token that can never be chosen. */
float ranked(float z)
{
    return is_nan(z) ? -INFINITY : z == 0.0 ? 0.0 : z;
}

/* An unsigned integer with the order of the floats. */
uint key_of(float s)
{
    uint bits = floatBitsToUint(s);
    return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}
/*
 * The pair with the larger first component wins. If these are equal, the smaller second one wins.
 */
uvec2 better(uvec2 a, uvec2 b)
{
    return b.x > a.x || (b.x == a.x && b.y < a.y) ? b : a;
}

uvec2 best_of_row(uvec2 mine)
{
    uint me = gl_LocalInvocationID.x, half_size = gl_WorkGroupSize.x / 2u;
    pair_scratch[me] = mine;
    barrier();
    for (; half_size > 0u; half_size /= 2u) {
        if (me < half_size)
            pair_scratch[me] = better(pair_scratch[me], pair_scratch[me + half_size]);
        barrier();
    }
    uvec2 result = pair_scratch[0];
    barrier();
    return result;
}
