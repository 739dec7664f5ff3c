/*
 * The order of tokens that sample and sample_best share: scaled logit descending, index ascending.
 * The includer declares args, `only_infinite` and pair_scratch, pairs of shared memory, one for
 * each invocation.
 */

#define MOST uintBitsToFloat(0x7f7fffffu)

/* The scaled logit; -Inf for what can never be chosen. */
float scaled(float z)
{
    if (is_nan(z))
        return -INFINITY;
    if (only_infinite)
        return is_inf(z) && z > 0.0 ? 0.0 : -INFINITY;
    if (is_inf(z))
        return z;
    z = min(z * args.inverse_temperature, MOST); /* none that is not there becomes infinite */
    return z == 0.0 ? 0.0 : z;
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
