/* The last step of a norm: gamma and beta, where there are any. */
layout(set = 0, binding = 3) readonly buffer input_gamma { float gamma[]; };
layout(set = 0, binding = 4) readonly buffer input_beta { float beta[]; };
layout(set = 0, binding = 6) writeonly buffer target { float y[]; };

void store_normalized(uint at, uint r, float v)
{
    if ((FLAGS & NORM_HAS_GAMMA) != 0u)
        v *= gamma[args.gamma_offset + r];
    if ((FLAGS & NORM_HAS_BETA) != 0u)
        v += beta[args.beta_offset + r];
    y[args.y_offset + at] = v;
}
