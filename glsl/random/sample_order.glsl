/*
 * The order of tokens that sample and sample_best share: logit descending, index ascending. The
 * includer declares args and pair_scratch, pairs of shared memory, one for each invocation.
 */

/* The logit; -Inf for what can never be chosen. */
float ranked(float z)
{
    return is_nan(z) ? -INFINITY : z == 0.0 ? 0.0 : z;
}

/* Unsigned order of floats. */
uint key_of(float s)
{
    uint bits = floatBitsToUint(s);
    return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}
/* The larger first component wins; equal ones: the smaller second. */
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
