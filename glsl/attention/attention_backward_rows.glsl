/*
 * The rows of a pass of attention_backward: where they lie, which tiles see each other, and loads
 * of four columns. The own rows are those whose gradients the workgroup computes; it loops over the
 * other rows. Include this after the buffers, and after OF_KEYS (own rows are keys) and OTHERS
 * (other rows of a step) are declared.
 */
#include "args/attention_backward.h"

uint own_first, own_count, other_first, other_count;
uint q_at, k_at, mask_at, row_at; /* start of the head of this step */

void set_head(uint b, uint h)
{
    uint group = max(args.heads / max(args.kv_heads, 1u), 1u);
    q_at = b * args.q_batch + h * args.q_head;
    k_at = b * args.kv_batch + h / group * args.kv_head;
    mask_at = args.mask_offset + b * args.mask_batch + h * args.mask_head;
    row_at = (b * args.heads + h) * args.queries;
}

uint tiles_of(uint count, uint tile)
{
    return (count + tile - 1u) / tile;
}

/* Tiles [first, end) of queries that see any of `own` keys. */
void find_queries(uint own, out uint first, out uint end)
{
    uint own_end = min(own_first + own, args.keys);
    first = (max(own_first + 1u, args.reach) - args.reach) / OTHERS;
    end = args.queries;
    if (args.window != 0u)
        end = min(end, max(own_end + args.window, args.reach) - args.reach);
    end = tiles_of(end, OTHERS);
}

/* ---- Loads ---- */

/* Loads four columns. Columns past the last one are 0. */
#define DEFINE_LOAD(name, words, quads)                                                            \
    vec4 name(uint row, uint d)                                                                    \
    {                                                                                              \
        uint at = row + d, left = args.width - d;                                                  \
        if (d >= args.width)                                                                       \
            return vec4(0.0);                                                                      \
        if (WHOLE)                                                                                 \
            return quads[at >> 2];                                                                 \
        return vec4(words[at], left > 1u ? words[at + 1u] : 0.0, left > 2u ? words[at + 2u] : 0.0, \
                    left > 3u ? words[at + 3u] : 0.0);                                             \
    }
DEFINE_LOAD(load_q, q, q4)
DEFINE_LOAD(load_dy, dy, dy4)
DEFINE_LOAD(load_k, k, k4)
DEFINE_LOAD(load_v, v, v4)

/* The operands of product 0 (the scores) are q and k, those of product 1 are dy and v. */
vec4 load_query(uint product, uint i, uint d)
{
    uint row = q_at + i * args.q_seq;
    return product == 0u ? load_q(args.q_offset + row, d) : load_dy(args.dy_offset + row, d);
}
vec4 load_key(uint product, uint j, uint d)
{
    uint row = k_at + j * args.kv_seq;
    return product == 0u ? load_k(args.k_offset + row, d) : load_v(args.v_offset + row, d);
}
/* Rows past the last one repeat it. Own ones are not stored, and others have no weight. */
vec4 load_own(uint product, uint row, uint d)
{
    uint known = min(own_first + row, own_count - 1u);
    return OF_KEYS ? load_key(product, known, d) : load_query(product, known, d);
}
vec4 load_other(uint product, uint row, uint d)
{
    uint known = min(other_first + row, other_count - 1u);
    return OF_KEYS ? load_query(product, known, d) : load_key(product, known, d);
}
