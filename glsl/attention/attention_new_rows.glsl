/*
 * What attention_step has that attention_decode has not: keys and values of which the last are new
 * rows, as the caches will hold them, and rotated queries.
 */
#include "lib/narrow.glsl"

const uint ROUND = GROUPS < ROWS * QUADS ? GROUPS : ROWS * QUADS; /* quads of a lane */

/* Which new row of its sequence a key is; args.queries or more: none. */
uint new_row_of(uint key)
{
    return key - (reach - 1u);
}
uint new_token(uint row)
{
    return b * args.queries + row;
}
uint new_k_at(uint row)
{
    return step_args.new_k + new_token(row) * args.mask_head + kv_head * args.width;
}
uint new_v_at(uint row)
{
    return step_args.new_v + new_token(row) * args.mask_query + kv_head * args.width;
}

/* Columns 4 * quad .. + 3; 0 beyond the width. */
#define DEFINE_QUAD(name, column_of)                                                               \
    vec4 name(uint row, uint token, uint quad)                                                     \
    {                                                                                              \
        vec4 value;                                                                                \
        [[unroll]] for (uint c = 0; c < 4u; c++) {                                                 \
            uint d = quad * 4u + c;                                                                \
            float x = column_of(row, token, min(d, args.width - 1u));                              \
            value[c] = d < args.width ? x : 0.0;                                                   \
        }                                                                                          \
        return value;                                                                              \
    }
#define COLUMN_OF_V(row, token, d) new_v[(row) + (d)]
DEFINE_QUAD(new_quad_of_q, rotated_q)
DEFINE_QUAD(new_quad_of_k, rotated_k)
DEFINE_QUAD(new_quad_of_v, COLUMN_OF_V)

float held_as(uint held, float x)
{
    return held == ATTENTION_WORDS ? x : to_f16(x);
}
vec4 held_quad(uint held, vec4 x)
{
    return vec4(held_as(held, x.x), held_as(held, x.y), held_as(held, x.z), held_as(held, x.w));
}
vec4 new_key(uint row, uint quad)
{
    return held_quad(K_HELD, new_quad_of_k(new_k_at(row), new_token(row), quad));
}
vec4 new_value(uint row, uint quad)
{
    return held_quad(V_HELD, new_quad_of_v(new_v_at(row), 0u, quad));
}

/* The groups of lanes rotate a quad each for all of them. */
void hold_queries()
{
    float factor = score_factor();
    [[unroll]] for (uint first = 0; first < ROWS * QUADS; first += ROUND) {
        uint item = first + min(group, ROUND - 1u), i = row_query[item / QUADS];
        vec4 value = vec4(0.0);
        if (i != NO_ROW)
            value = new_quad_of_q(row_q[item / QUADS], new_token(i), item % QUADS * LANES + column);
        scratch[lane] = value * factor;
        barrier();
        [[unroll]] for (uint x = 0; x < ROUND; x++)
            if (first + x < ROWS * QUADS)
                held[first + x] = scratch[x * LANES + column];
        barrier();
    }
}

#define DEFINE_STORE(name, held, words, pairs)                                                     \
    void name(uint at, vec4 x)                                                                     \
    {                                                                                              \
        if (held == ATTENTION_HALVES)                                                              \
            pairs[at >> 2] = half_words(x);                                                        \
        else                                                                                       \
            [[unroll]] for (uint c = 0; c < 4u; c++) words[at + c] = x[c];                         \
    }
DEFINE_STORE(store_k, K_HELD, k, k2)
DEFINE_STORE(store_v, V_HELD, v, v2)

/* The chunk's new rows into the caches. */
void append_rows()
{
    const bool QUADWISE = K_HELD == ATTENTION_HALVES || V_HELD == ATTENTION_HALVES;
    const uint UNIT = QUADWISE ? 4u : 1u; /* columns */
    uint units = args.width / UNIT;
    for (uint e = lane; e < args.queries * units && reach != 0u; e += THREADS) {
        uint row = e / units, d = e % units * UNIT, key = reach - 1u + row;
        if (key < first_key || key >= min(first_key + CHUNK, args.keys))
            continue;
        uint at = kv_row + key * args.kv_seq + d;
        if (QUADWISE) {
            store_k(args.k_offset + at, new_key(row, d >> 2));
            store_v(args.v_offset + at, new_value(row, d >> 2));
            continue;
        }
        k[args.k_offset + at] = held_as(K_HELD, rotated_k(new_k_at(row), new_token(row), d));
        v[args.v_offset + at] = held_as(V_HELD, new_v[new_v_at(row) + d]);
    }
}
