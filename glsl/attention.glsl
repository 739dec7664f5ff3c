/*
 * What the attention kernels share: which keys a query may see, and how a product becomes a score.
 * Include after `args`, MASK, SOFTCAP and `mask` are declared.
 */
#include "attention_softmax.glsl"

/* First key and one past the last key of the band of query i. */
uint band_begin(uint i)
{
    uint end = i + args.reach;
    return args.window != 0u && end > args.window ? end - args.window : 0u;
}
uint band_end(uint i)
{
    return min(args.keys, i + args.reach);
}

/* What the mask adds to the score: 0, the bias, or -Inf for a dropped key. A NaN in a CUSTOM
 * mask keeps. */
float mask_term(uint row, uint i, uint j)
{
    if (j < band_begin(i) || j >= band_end(i))
        return NEGATIVE_INFINITY;
    if (MASK == ATTENTION_BAND)
        return 0.0;
    float m = mask[row + i * args.mask_query + j * args.mask_key];
    if (MASK == ATTENTION_BIAS)
        return m;
    return is_nan(m) || m >= 0.5 ? 0.0 : NEGATIVE_INFINITY;
}

/* tanh that neither overflows nor cancels; drivers need not saturate theirs. */
float safe_tanh(float x)
{
    float a = abs(x);
    float x2 = x * x;
    float t = exp(-2.0 * a);
    float far = sign(x) * (1.0 - t) / (1.0 + t);
    float near = x * (1.0 + x2 * (-1.0 / 3.0 + x2 * (2.0 / 15.0 - x2 * (17.0 / 315.0))));
    return a < 0.1 ? near : far;
}

/* The score of a key that is not dropped. */
float finish_score(float product, float term)
{
    float z = product * args.scale;
    if (SOFTCAP && !is_nan(z))
        z = args.softcap * safe_tanh(z / args.softcap);
    return z + term;
}
