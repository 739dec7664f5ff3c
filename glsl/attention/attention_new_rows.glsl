/*
 * The additions of attention_step to attention_decode: queries are rotated, and the last keys and
 * values are new rows, rounded as the caches will store them.
 */
#include "lib/narrow.glsl"

const uint NEW_KEYS = 0, NEW_VALUES = NEW_ROWS * ROW_QUADS; /* start of each */

shared vec4 query_quads[ROWS * ROW_QUADS], new_quads[2 * NEW_ROWS * ROW_QUADS];

/* The index of a key among the new rows of its sequence. If it is NEW_ROWS or more, the key is not
 * new. */
uint new_row_of(uint key)
{
    return key - (reach - 1u);
}
uint new_token(uint row)
{
    return b * queries + row;
}
uint new_k_at(uint row)
{
    return step_args.new_k + new_token(row) * K_ROW + kv_head * width;
}
uint new_v_at(uint row)
{
    return step_args.new_v + new_token(row) * V_ROW + kv_head * width;
}

/* Columns 4 * quad .. + 3. Columns past the width are 0. */
#define DEFINE_QUAD(name, whole, column_of)                                                        \
    vec4 name(uint row, uint token, uint quad)                                                     \
    {                                                                                              \
        vec4 value;                                                                                \
        if (WHOLE)                                                                                 \
            return FULL || quad * 4u < width ? whole(row, token, quad) : vec4(0.0);                \
        [[unroll]] for (uint c = 0; c < 4u; c++) {                                                 \
            uint d = quad * 4u + c;                                                                \
            float x = column_of(row, token, min(d, width - 1u));                                   \
            value[c] = d < width ? x : 0.0;                                                        \
        }                                                                                          \
        return value;                                                                              \
    }
#define COLUMN_OF_V(row, token, d)  new_v[(row) + (d)]
#define QUAD_OF_V(row, token, quad) new_v4[(row) / 4u + (quad)]
DEFINE_QUAD(new_quad_of_q, rotated_quad_of_q, rotated_q)
DEFINE_QUAD(new_quad_of_k, rotated_quad_of_k, rotated_k)
DEFINE_QUAD(new_quad_of_v, QUAD_OF_V, COLUMN_OF_V)

vec4 held_quad(uint held, vec4 x)
{
    if (held == ATTENTION_WORDS)
        return x;
    return vec4(to_f16(x.x), to_f16(x.y), to_f16(x.z), to_f16(x.w));
}

/* Appends a quad, as far as the row has columns. */
#define DEFINE_APPEND(name, words, quads, held, halves)                                            \
    void name(uint at, uint columns, vec4 value)                                                   \
    {                                                                                              \
        if (held == ATTENTION_HALVES)                                                              \
            halves[at >> 2] = half_words(value);                                                   \
        else if (WHOLE)                                                                            \
            quads[at >> 2] = value;                                                                \
        else                                                                                       \
            [[unroll]] for (uint c = 0; c < 4u; c++)                                               \
                if (c < columns)                                                                   \
                    words[at + c] = value[c];                                                      \
    }
DEFINE_APPEND(append_key, k, k4, K_HELD, k2)
DEFINE_APPEND(append_value, v, v4, V_HELD, v2)

void append_quad(uint key, uint quad, uint part, vec4 value)
{
    uint columns = columns_of(quad);
    if (columns == 0u)
        return;
    if (part == NEW_KEYS)
        append_key(k_row + key * args.k_seq + quad * 4u, columns, value);
    else
        append_value(v_row + key * args.v_seq + quad * 4u, columns, value);
}

/* Puts a quad of new row `row` into shared memory. Only the first block of rows also writes it into
 * the cache. */
void bring_new_quad(uint row, uint quad, uint part)
{
    uint key = reach - 1u + row;
    vec4 value = part == NEW_KEYS
                     ? held_quad(K_HELD, new_quad_of_k(new_k_at(row), new_token(row), quad))
                     : held_quad(V_HELD, new_quad_of_v(new_v_at(row), 0u, quad));
    new_quads[part + row * ROW_QUADS + quad] = value;
    if (first_row == 0u && key >= first_key && key < min(first_key + CHUNK, args.keys))
        append_quad(key, quad, part, value);
}

/* Loads everything that is read once and rotated: the queries and, if the chunk has new rows,
 * those. */
void bring_rows()
{
    bool has_new = first_key + limit >= reach && limit != 0u;
    uint rows = ROWS + (has_new ? 2u * NEW_ROWS : 0u);
    float factor = score_factor();
    [[dont_unroll]] for (uint e = lane; e < rows * ROW_QUADS; e += THREADS) {
        uint row = e / ROW_QUADS, quad = e % ROW_QUADS;
        if (row >= ROWS) {
            row -= ROWS;
            bring_new_quad(row % NEW_ROWS, quad, row < NEW_ROWS ? NEW_KEYS : NEW_VALUES);
            continue;
        }
        vec4 value = vec4(0.0);
        if (row_query[row] != NO_ROW)
            value = new_quad_of_q(row_q[row], new_token(row_query[row]), quad) * factor;
        query_quads[e] = value;
    }
    barrier();
}

void hold_queries()
{
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        [[unroll]] for (uint n = 0; n < QUADS; n++)
            held[r * QUADS + n] = query_quads[r * ROW_QUADS + n * LANES + column];
}

/* Replaces rows from the caches by the new rows, because the caches may not contain them yet. A
 * pass without new rows returns at once. */
#define DEFINE_REPLACE(name, part, storage, keys, key_at, quads, quad_of)                          \
    void name(uint base)                                                                           \
    {                                                                                              \
        if (first_key + min(base + PASS, limit) < reach)                                           \
            return;                                                                                \
        [[unroll]] for (uint x = 0; x < keys; x++) {                                               \
            uint row = new_row_of(key_at(base, x));                                                \
            if (row < NEW_ROWS)                                                                    \
                [[unroll]] for (uint n = 0; n < quads; n++)                                        \
                    next[x * quads + n] =                                                          \
                        words_of(new_quads[part + row * ROW_QUADS + quad_of(n)], storage);         \
        }                                                                                          \
    }
#define KEY_QUAD(n) ((n) * LANES + column)
DEFINE_REPLACE(replace_keys, NEW_KEYS, K_HELD, KEYS, key_at, QUADS, KEY_QUAD)
DEFINE_REPLACE(replace_values, NEW_VALUES, V_HELD, VALUE_KEYS, value_key_at, VALUE_QUADS,
               value_quad)
