/*
 * Shared by the attention kernels: which keys a query may see, how a product becomes a score, and
 * the layout of partial results. Include this after `args`, MASK, SOFTCAP, `mask` and its strides
 * MASK_QUERY and MASK_KEY are declared.
 *
 * If the keys are split into chunks (split-K), each row and chunk has a partial result. First come
 * all o [width rounded up to quads], then all pairs (m, l). m is the maximum of the scores and l
 * the sum of the weights. o is valid only if l is not 0.
 */
#include "args/attention.h"

const bool NATURAL = MASK == ATTENTION_BIAS;
#include "attention/attention_softmax.glsl"

const bool MASKED = MASK == ATTENTION_CUSTOM || MASK == ATTENTION_BIAS;

uint reach = args.reach; /* 0: no query sees any key */

/* The first key, and one past the last key, of the band of query i. */
uint band_begin(uint i)
{
    uint end = i + reach;
    return args.window != 0u && end > args.window ? end - args.window : 0u;
}
uint band_end(uint i)
{
    return reach == 0u ? 0u : min(args.keys, i + reach);
}

/* The mask's addend to the score: 0, the bias, or -Inf for a dropped key. A NaN in a CUSTOM mask
 * keeps the key. */
float mask_term(uint row, uint i, uint j)
{
    bool outside = j < band_begin(i) || j >= band_end(i);
    float term = 0.0;
    if (MASKED) /* no branch, so that many loads are in flight */
        term = mask[row + i * MASK_QUERY + min(j, args.keys - 1u) * MASK_KEY];
    if (MASK == ATTENTION_CUSTOM)
        term = is_nan(term) || term >= 0.5 ? 0.0 : NEGATIVE_INFINITY;
    return outside ? NEGATIVE_INFINITY : term;
}

/* tanh without overflow and cancellation, because a driver's tanh need not saturate. */
float safe_tanh(float x)
{
    float a = abs(x);
    float x2 = x * x;
    float t = exp(-2.0 * a);
    float far = sign(x) * (1.0 - t) / (1.0 + t);
    float near = x * (1.0 + x2 * (-1.0 / 3.0 + x2 * (2.0 / 15.0 - x2 * (17.0 / 315.0))));
    return a < 0.1 ? near : far;
}

/* The factor of q, and the score that belongs to a product with the scaled q. */
float score_factor()
{
    return SOFTCAP ? args.scale / args.softcap : NATURAL ? args.scale : args.scale * LOG2_E;
}
float capped_score(float product)
{
    if (!SOFTCAP || is_nan(product))
        return product;
    float cap = NATURAL ? args.softcap : args.softcap * LOG2_E;
    return cap * safe_tanh(product);
}

#ifndef CHUNK_KEYS
#define CHUNK_KEYS args.chunk /* used if args.chunk is not 0 */
#endif
uint chunk_count()
{
    return args.chunk == 0u ? 1u : max((args.keys + CHUNK_KEYS - 1u) / CHUNK_KEYS, 1u);
}
uint partial_row(uint row, uint chunk)
{
    return (row * chunk_count() + chunk) * (args.width + 3u & ~3u);
}
/* The index of (m, l) for a chunk of a row. */
uint statistics_at(uint row, uint chunk)
{
    uint rows = args.batch * args.heads * args.queries;
    return partial_row(rows, 0u) + 2u * (row * chunk_count() + chunk);
}
