/* The last step of a norm: gamma and beta, where there are any, by element of the row or (group
 * norm) by the channel it belongs to. */
layout(set = 0, binding = 3) readonly buffer input_gamma { float gamma[]; };
layout(set = 0, binding = 4) readonly buffer input_beta { float beta[]; };
layout(set = 0, binding = 6) writeonly buffer target { float y[]; };

/* `row`: which one, of all; r: the element of it at `at` of x. */
void store_normalized(uint row, uint at, uint r, float v)
{
    if ((FLAGS & NORM_BY_CHANNEL) != 0u)
        r = row % args.groups * args.group_channels + r / args.spatial;
    if ((FLAGS & NORM_HAS_GAMMA) != 0u)
        v *= gamma[args.gamma_offset + r];
    if ((FLAGS & NORM_HAS_BETA) != 0u)
        v += beta[args.beta_offset + r];
    y[args.y_offset + at] = v;
}
