#version 450
/*
 * Gradients of an attention, in passes of one form: a workgroup owns a tile of rows and walks over
 * tiles of other rows. OF_QUERIES owns queries and walks over keys (dq += dz k); OF_KEYS owns keys
 * and walks over the queries of every head of its kv head (dk += dz^T q, dv += p^T dy); OF_BIAS
 * owns a tile of the bias and walks over what that is broadcast along (dbias += ds). Each step
 * finds the weights p anew, from the log-sum-exp of the rows: none are stored.
 *
 * OF_ALL is OF_KEYS and OF_QUERIES with the weights found once, five products a step in place of
 * seven. A workgroup takes the tiles of one of `parts` parts of the keys, one after the other, and
 * has a dq of its own in memory, to which each step adds; the dq of all parts are summed behind it.
 * An invocation adds to the same elements in every step, so that none waits for another.
 *
 * All products are sums of outer products from shared memory into registers, as in
 * attention_prefill: an invocation has 4 ROW_QUADS of the own rows, four of the others, and 4
 * COLUMN_QUADS columns. Shared memory: p or dz of the tile, other-major; before them, in their
 * place, a slice 16 columns deep of both tiles, transposed and turned as there; and VALUE_ROWS of
 * the other rows. The next slice is read into registers while one is multiplied.
 *
 * Tiles outside the band, or dropped whole by the mask, are not multiplied. A dropped pair must not
 * count even where an operand is NaN or Inf: once such a value is seen in a tile of dropped pairs a
 * guarded loop takes over.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/attention.h"
#include "args/attention_backward.h"

layout(constant_id = 1) const uint PASS = ATTENTION_OF_QUERIES;
layout(constant_id = 2) const uint MASK = ATTENTION_BAND;
layout(constant_id = 3) const bool SOFTCAP = false;
layout(constant_id = 4) const bool WHOLE = false;       /* quads are aligned */
layout(constant_id = 5) const uint ROW_THREADS = 8;     /* 4, 8 or 16 */
layout(constant_id = 6) const uint COLUMN_THREADS = 16; /* 8 or 16 */
layout(constant_id = 7) const uint ROW_QUADS = 1;
layout(constant_id = 8) const uint COLUMN_QUADS = 1; /* width <= 4 COLUMN_THREADS COLUMN_QUADS */
layout(constant_id = 9) const uint VALUE_ROWS = 8;   /* a multiple of 4 */
layout(constant_id = 10) const uint UNROLL = 4;      /* of them; above 4 slices too */
layout(push_constant) uniform block
{
    attention_backward_args args;
};
layout(set = 0, binding = 0) readonly buffer q_source
{
    float q[];
};
layout(set = 0, binding = 1) readonly buffer dy_source
{
    float dy[];
};
layout(set = 0, binding = 2) readonly buffer k_source
{
    float k[];
};
layout(set = 0, binding = 3) readonly buffer v_source
{
    float v[];
};
layout(set = 0, binding = 0) readonly buffer q_quads
{
    vec4 q4[];
};
layout(set = 0, binding = 1) readonly buffer dy_quads
{
    vec4 dy4[];
};
layout(set = 0, binding = 2) readonly buffer k_quads
{
    vec4 k4[];
};
layout(set = 0, binding = 3) readonly buffer v_quads
{
    vec4 v4[];
};
layout(set = 0, binding = 4) readonly restrict buffer mask_source
{
    float mask[];
};
layout(set = 0, binding = 5) readonly restrict buffer statistics
{
    float stats[];
};
layout(set = 0, binding = 6) writeonly buffer target
{
    float y[];
};
layout(set = 0, binding = 7) buffer query_target
{
    float dq[];
};
layout(set = 0, binding = 7) buffer query_target_quads
{
    vec4 dq4[];
};
layout(set = 0, binding = 6) writeonly buffer target_quads
{
    vec4 y4[];
};

#include "attention/attention.glsl"

const bool OF_ALL = PASS == ATTENTION_OF_ALL;
const bool OF_KEYS = PASS == ATTENTION_OF_KEYS || OF_ALL; /* own rows are keys */
const bool OF_BIAS = PASS == ATTENTION_OF_BIAS;
const uint DEPTH = 16;
const uint THREADS = ROW_THREADS * COLUMN_THREADS;
const uint ROWS = 4 * ROW_QUADS;
const uint OWN_QUADS = ROW_THREADS * ROW_QUADS;
const uint OWN = 4 * OWN_QUADS;
const uint OTHERS = 4 * COLUMN_THREADS;
const uint TILE_COLUMN_QUADS = COLUMN_THREADS * COLUMN_QUADS;
const uint PITCH = OWN_QUADS + 1;            /* of an other row's weights */
const uint OWN_PITCH = COLUMN_THREADS + 1u; /* of an own row's */
/* Quads that an invocation carries into a slice. */
const uint OWN_LOADS = OWN_QUADS * DEPTH / THREADS;
const uint OTHER_LOADS = COLUMN_THREADS * DEPTH / THREADS;
const uint VALUE_SLICE = VALUE_ROWS * TILE_COLUMN_QUADS;
const uint V_LOADS = (VALUE_SLICE + THREADS - 1) / THREADS;
const uint SCORE_SLICE = DEPTH * (OWN_QUADS + COLUMN_THREADS);
const uint OTHER_WEIGHTS = OTHERS * PITCH, OWN_WEIGHTS = OF_ALL ? OWN * OWN_PITCH : 0u;
const uint WEIGHTS = OWN_WEIGHTS > OTHER_WEIGHTS ? OWN_WEIGHTS : OTHER_WEIGHTS;
const uint SUMS = OF_BIAS ? ROWS : ROWS * COLUMN_QUADS;

shared vec4 weights[WEIGHTS > SCORE_SLICE ? WEIGHTS : SCORE_SLICE]; /* or slices */
shared vec4 values[OF_BIAS ? 1 : VALUE_SLICE];
shared uint unsafe_mark; /* of the last product where a NaN or Inf was seen */
shared uint kept_mark;   /* of the last step the mask keeps a pair of */

uint lane, ty, tx;
uint own_first, own_count, other_first, other_count;
uint q_at, k_at, mask_at, row_at; /* of this step's head */
uint query_target_at;             /* of the workgroup's own dq */
uint mark;                        /* counts steps and products, from 1 on */
vec4 next[OWN_LOADS + OTHER_LOADS > V_LOADS ? OWN_LOADS + OTHER_LOADS : V_LOADS];
vec4 s[ROWS]; /* scores, then p */
vec4 g[ROWS]; /* dp, then ds or dz */
vec4 first_sums[SUMS];
vec4 second_sums[OF_KEYS ? SUMS : 1u];
vec4 query_sums[OF_ALL ? 4u * COLUMN_QUADS : 1u];

/* Row 4 m + e of an invocation, and its other row c, in their tiles. */
uint row_of(uint r)
{
    return (r & 3u) * OWN_QUADS + (r >> 2) * ROW_THREADS + ty;
}
uint other_of(uint c)
{
    return c * COLUMN_THREADS + tx;
}

/* ---- Loads ---- */

/* Columns beyond the last are 0. */
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

/* Of product 0, the scores: q and k; of product 1: dy and v. */
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
/* Rows beyond the last are read as the last: own ones are not stored, others get no weight. */
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

/* ---- Products over the columns ---- */

void fetch_slice(uint product, uint depth)
{
    uint d = depth + lane % 4u * 4u;
    [[unroll]] for (uint i = 0; i < OWN_LOADS; i++) next[i] =
        load_own(product, i * (THREADS / 4u) + lane / 4u, d);
    [[unroll]] for (uint i = 0; i < OTHER_LOADS; i++) next[OWN_LOADS + i] =
        load_other(product, i * (THREADS / 4u) + lane / 4u, d);
}

/* Rows `pitch` apart share a quad, turned by a quarter of the depth. */
void store_turned(uint first, uint pitch, uint row, vec4 value)
{
    uint at = first + lane % 4u * 4u * pitch + row % pitch;
    uint c = row / pitch + lane % 4u & 3u;
    [[unroll]] for (uint i = 0; i < 4u; i++) weights[at + i * pitch][c] = value[i];
}

void store_slice()
{
    [[unroll]] for (uint i = 0; i < OWN_LOADS; i++)
        store_turned(0u, OWN_QUADS, i * (THREADS / 4u) + lane / 4u, next[i]);
    [[unroll]] for (uint i = 0; i < OTHER_LOADS; i++)
        store_turned(DEPTH * OWN_QUADS, COLUMN_THREADS, i * (THREADS / 4u) + lane / 4u,
                     next[OWN_LOADS + i]);
}

/* The quarter of a slice whose quads are turned alike; the sums turn with them. */
void multiply_quarter(uint own_at, uint other_at)
{
    [[unroll]] for (uint d = 0; d < DEPTH / 4u; d++)
    {
        vec4 b = weights[other_at + d * COLUMN_THREADS];
        [[unroll]] for (uint m = 0; m < ROW_QUADS; m++)
        {
            vec4 a = weights[own_at + d * OWN_QUADS + m * ROW_THREADS];
            [[unroll]] for (uint e = 0; e < 4u; e++) s[m * 4u + e] =
                fma(vec4(a[e]), b, s[m * 4u + e]);
        }
    }
    [[unroll]] for (uint m = 0; m < ROW_QUADS; m++)
    {
        vec4 last = s[m * 4u + 3u].wxyz;
        [[unroll]] for (uint e = 3u; e > 0u; e--) s[m * 4u + e] = s[m * 4u + e - 1u].wxyz;
        s[m * 4u] = last;
    }
}

void multiply_slice()
{
    uint own_at = ty, other_at = DEPTH * OWN_QUADS + tx;
    const uint own_quarter = DEPTH / 4u * OWN_QUADS, other_quarter = DEPTH / 4u * COLUMN_THREADS;
    if (UNROLL > 4u) {
        [[unroll]] for (uint t = 0; t < 4u; t++)
            multiply_quarter(own_at + t * own_quarter, other_at + t * other_quarter);
    } else {
        [[dont_unroll]] for (uint t = 0; t < 4u; t++)
            multiply_quarter(own_at + t * own_quarter, other_at + t * other_quarter);
    }
}

/* Into s; the product's first slice has been fetched. */
void multiply_columns(uint product)
{
    [[unroll]] for (uint r = 0; r < ROWS; r++) s[r] = vec4(0.0);
    [[dont_unroll]] for (uint depth = 0; depth < args.width; depth += DEPTH)
    {
        barrier();
        store_slice();
        barrier();
        if (depth + DEPTH < args.width)
            fetch_slice(product, depth + DEPTH);
        multiply_slice();
    }
}

/* ---- Weights ---- */

/* Whether this tile has pairs that do not count. */
bool is_edge()
{
    uint i = OF_KEYS ? other_first : own_first, j = OF_KEYS ? own_first : other_first;
    uint i_end = i + (OF_KEYS ? OTHERS : OWN), j_end = j + (OF_KEYS ? OWN : OTHERS);
    return MASK != ATTENTION_BAND || i_end > args.queries || j_end > band_end(i) ||
           j < band_begin(i_end - 1u);
}

float pair_term(uint row, uint other)
{
    uint i = OF_KEYS ? other_first + other : own_first + row;
    uint j = OF_KEYS ? own_first + row : other_first + other;
    float term = mask_term(mask_at, min(i, args.queries - 1u), j);
    return i < args.queries ? term : NEGATIVE_INFINITY;
}

bool keeps_any()
{
    bool any_kept = false;
    for (uint r = 0; r < ROWS; r++)
        for (uint c = 0; c < 4u && !any_kept; c++)
            any_kept = !is_dropped(pair_term(row_of(r), other_of(c)));
    return any_kept;
}

/* s: p; g: ds for a bias, else dz. A NaN among the scores makes p NaN, whatever exp2 makes of it.
 */
void weigh(uint r, uint c, bool edge, float lse, float delta)
{
    float product = s[r][c] * score_factor(), term = 0.0, slope = 1.0;
    float z = product;
    if (SOFTCAP) {
        float t = is_nan(product) ? product : safe_tanh(product);
        z = args.softcap * LOG2_E * t;
        slope = 1.0 - t * t;
    }
    if (edge)
        term = pair_term(row_of(r), other_of(c));
    if (MASK == ATTENTION_BIAS)
        z += term * LOG2_E;
    bool out_of_it = is_dropped(term) || is_dropped(z);
    float d = z - lse, p = is_nan(d) ? NAN_VALUE : exp2(d), ds = p * (g[r][c] - delta);
    s[r][c] = out_of_it ? 0.0 : p;
    g[r][c] = out_of_it ? 0.0 : OF_BIAS ? ds : ds * slope;
}

void find_weights(bool edge)
{
    uint rows = args.batch * args.heads * args.queries, at = args.lse_offset + row_at;
    if (OF_KEYS) {
        [[unroll]] for (uint c = 0; c < 4u; c++)
        {
            uint row = at + min(other_first + other_of(c), args.queries - 1u);
            float lse = stats[row] * LOG2_E, delta = stats[row + rows];
            [[unroll]] for (uint r = 0; r < ROWS; r++) weigh(r, c, edge, lse, delta);
        }
    } else {
        [[unroll]] for (uint r = 0; r < ROWS; r++)
        {
            uint row = at + min(own_first + row_of(r), args.queries - 1u);
            float lse = stats[row] * LOG2_E, delta = stats[row + rows];
            [[unroll]] for (uint c = 0; c < 4u; c++) weigh(r, c, edge, lse, delta);
        }
    }
}

/* ---- Products over the other rows ---- */

void fetch_values(uint product, bool own, uint first)
{
    [[unroll]] for (uint i = 0; i < V_LOADS; i++)
    {
        uint e = i * THREADS + lane, row = first + e / TILE_COLUMN_QUADS;
        uint d = e % TILE_COLUMN_QUADS * 4u;
        next[i] = own ? load_own(product, row, d) : load_other(product, row, d);
    }
}

void store_values(bool edge)
{
    bool unsafe = false;
    [[unroll]] for (uint i = 0; i < V_LOADS; i++)
    {
        if (V_LOADS * THREADS == VALUE_SLICE || i * THREADS + lane < VALUE_SLICE)
            values[i * THREADS + lane] = next[i];
        if (edge)
            unsafe = unsafe || any(greaterThanEqual(floatBitsToUint(next[i]) & 0x7fffffffu,
                                                    uvec4(0x7f800000u)));
    }
    if (unsafe)
        unsafe_mark = mark;
}

/* Weights to shared memory for the sums over the other rows, and for those over the own. */
#define DEFINE_STORE(store, held)                                                                  \
    void store()                                                                                   \
    {                                                                                              \
        [[unroll]] for (uint c = 0; c < 4u; c++) [[unroll]] for (uint m = 0; m < ROW_QUADS; m++)   \
            weights[other_of(c) * PITCH + m * ROW_THREADS + ty] =                                  \
                vec4(held[m * 4u][c], held[m * 4u + 1u][c], held[m * 4u + 2u][c],                  \
                     held[m * 4u + 3u][c]);                                                        \
    }
DEFINE_STORE(store_p, s)
DEFINE_STORE(store_dz, g)
void store_own_dz()
{
    [[unroll]] for (uint r = 0; r < ROWS; r++) weights[row_of(r) * OWN_PITCH + tx] =
        g[r] * args.scale;
}

/* The sum over `count` rows of weights and values, `quads` quads of weights a row and invocation.
 */
#define DEFINE_PRODUCT(add, multiply, multiply_guarded, store, sums, pitch, quads, product, own)   \
    void multiply(uint base)                                                                       \
    {                                                                                              \
        [[dont_unroll]] for (uint x0 = 0; x0 < VALUE_ROWS; x0 += UNROLL)                           \
        {                                                                                          \
            uint rows_at = (base + x0) * pitch + ty, columns_at = x0 * TILE_COLUMN_QUADS + tx;     \
            [[unroll]] for (uint x = 0; x < UNROLL; x++)                                           \
            {                                                                                      \
                vec4 b[COLUMN_QUADS];                                                              \
                [[unroll]] for (uint n = 0; n < COLUMN_QUADS; n++) b[n] =                          \
                    values[columns_at + x * TILE_COLUMN_QUADS + n * COLUMN_THREADS];               \
                [[unroll]] for (uint m = 0; m < quads; m++)                                        \
                {                                                                                  \
                    vec4 a = weights[rows_at + x * pitch + m * ROW_THREADS];                       \
                    [[unroll]] for (uint e = 0; e < 4u; e++)                                       \
                        [[unroll]] for (uint n = 0; n < COLUMN_QUADS; n++)                         \
                    {                                                                              \
                        uint at = (m * 4u + e) * COLUMN_QUADS + n;                                 \
                        sums[at] = fma(vec4(a[e]), b[n], sums[at]);                                \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    void multiply_guarded(uint base)                                                               \
    {                                                                                              \
        [[dont_unroll]] for (uint x = 0; x < VALUE_ROWS; x++)                                      \
            [[unroll]] for (uint m = 0; m < quads; m++)                                            \
        {                                                                                          \
            vec4 a = weights[(base + x) * pitch + m * ROW_THREADS + ty];                           \
            [[unroll]] for (uint e = 0; e < 4u;                                                    \
                            e++) if ((floatBitsToUint(a[e]) & 0x7fffffffu) != 0u)                  \
                [[unroll]] for (uint n = 0; n < COLUMN_QUADS; n++)                                 \
                    sums[(m * 4u + e) * COLUMN_QUADS + n] +=                                       \
                a[e] * values[x * TILE_COLUMN_QUADS + n * COLUMN_THREADS + tx];                    \
        }                                                                                          \
    }                                                                                              \
    void add(bool edge)                                                                            \
    {                                                                                              \
        uint count =                                                                               \
            own ? min(OWN, own_count - own_first) : min(OTHERS, other_count - other_first);        \
        mark++;                                                                                    \
        fetch_values(product, own, 0u);                                                            \
        barrier();                                                                                 \
        store();                                                                                   \
        [[dont_unroll]] for (uint base = 0; base < count; base += VALUE_ROWS)                      \
        {                                                                                          \
            if (base > 0u)                                                                         \
                barrier();                                                                         \
            store_values(edge);                                                                    \
            barrier();                                                                             \
            if (base + VALUE_ROWS < count)                                                         \
                fetch_values(product, own, base + VALUE_ROWS);                                     \
            if (edge && unsafe_mark == mark)                                                       \
                multiply_guarded(base);                                                            \
            else                                                                                   \
                multiply(base);                                                                    \
        }                                                                                          \
    }
DEFINE_PRODUCT(add_dz, multiply_dz, multiply_guarded_dz, store_dz, first_sums, PITCH, ROW_QUADS, 0u,
               false)
DEFINE_PRODUCT(add_p, multiply_p, multiply_guarded_p, store_p, second_sums, PITCH, ROW_QUADS, 1u,
               false)
DEFINE_PRODUCT(add_own_dz, multiply_own_dz, multiply_guarded_own_dz, store_own_dz, query_sums,
               OWN_PITCH, 1u, 0u, true)

/* ---- The workgroup's own dq ---- */

uint query_place(uint e)
{
    return q_at + (other_first + e * COLUMN_THREADS + ty) * args.q_seq;
}

#define EACH_OF_QUERIES(statement)                                                                 \
    [[unroll]] for (uint e = 0; e < 4u; e++) if (other_first + e * COLUMN_THREADS + ty <           \
                                                 other_count)                                      \
        [[unroll]] for (uint n = 0; n < COLUMN_QUADS; n++)                                         \
    {                                                                                              \
        uint d = (n * COLUMN_THREADS + tx) * 4u, at = query_target_at + query_place(e) + d;        \
        statement;                                                                                 \
    }

vec4 load_sum(uint at, uint d)
{
    uint left = args.width - d;
    if (d >= args.width)
        return vec4(0.0);
    if (WHOLE)
        return dq4[at >> 2];
    return vec4(dq[at], left > 1u ? dq[at + 1u] : 0.0, left > 2u ? dq[at + 2u] : 0.0,
                left > 3u ? dq[at + 3u] : 0.0);
}

void store_sum(uint at, uint d, vec4 value)
{
    if (WHOLE) {
        if (d < args.width)
            dq4[at >> 2] = value;
        return;
    }
    [[unroll]] for (uint i = 0; i < 4u; i++) if (d + i < args.width) dq[at + i] = value[i];
}

void add_queries(bool edge)
{
    EACH_OF_QUERIES(query_sums[e * COLUMN_QUADS + n] = load_sum(at, d))
    add_own_dz(edge);
    EACH_OF_QUERIES(store_sum(at, d, query_sums[e * COLUMN_QUADS + n]))
}

void process()
{
    bool edge = is_edge();
    mark++;
    if (MASK != ATTENTION_BAND) {
        barrier();
        if (keeps_any())
            kept_mark = mark;
        barrier();
        if (kept_mark != mark)
            return;
    }
    fetch_slice(1u, 0u);
    multiply_columns(1u);
    fetch_slice(0u, 0u);
    [[unroll]] for (uint r = 0; r < ROWS; r++) g[r] = s[r];
    multiply_columns(0u);
    find_weights(edge);
    if (OF_BIAS) {
        [[unroll]] for (uint r = 0; r < ROWS; r++) first_sums[r] += g[r];
        return;
    }
    if (OF_KEYS)
        add_p(edge);
    add_dz(edge);
    if (OF_ALL)
        add_queries(edge);
}

/* ---- Results ---- */

void store_quad(uint at, uint d, vec4 value)
{
    if (WHOLE) {
        if (d < args.width)
            y4[(at + d) >> 2] = value;
        return;
    }
    [[unroll]] for (uint e = 0; e < 4u; e++) if (d + e < args.width) y[at + d + e] = value[e];
}

void store_rows(uint part)
{
    uint base = args.out_offset + part * args.part_words + (OF_KEYS ? k_at : q_at);
    uint second = args.part_words / 2u; /* from dk to dv */
    [[unroll]] for (uint r = 0; r < ROWS; r++)
    {
        uint row = own_first + row_of(r);
        uint at = base + row * (OF_KEYS ? args.kv_seq : args.q_seq);
        [[unroll]] for (uint n = 0; n < COLUMN_QUADS; n++)
        {
            uint d = (n * COLUMN_THREADS + tx) * 4u;
            if (row < own_count) {
                store_quad(at, d, first_sums[r * COLUMN_QUADS + n] * args.scale);
                if (OF_KEYS)
                    store_quad(at + second, d, second_sums[r * COLUMN_QUADS + n]);
            }
        }
    }
}

float weight_at(uint row, uint other)
{
    return weights[other * PITCH + row % OWN_QUADS][row / OWN_QUADS];
}
void set_weight(uint row, uint other, float value)
{
    weights[other * PITCH + row % OWN_QUADS][row / OWN_QUADS] = value;
}

/* The tile of ds, summed along the axes that the bias has not. */
void store_bias(uint part, uint b, uint h)
{
    bool each_query = args.mask_query != 0u, each_key = args.mask_key != 0u;
    barrier();
    [[unroll]] for (uint r = 0; r < ROWS; r++) g[r] = first_sums[r];
    store_dz();
    barrier();
    if (!each_query && lane < OTHERS) {
        float sum = 0.0;
        for (uint r = 0; r < OWN; r++)
            sum += weight_at(r, lane);
        set_weight(0u, lane, sum);
    }
    barrier();
    if (!each_key && lane < (each_query ? OWN : 1u)) {
        float sum = 0.0;
        for (uint x = 0; x < OTHERS; x++)
            sum += weight_at(lane, x);
        set_weight(lane, 0u, sum);
    }
    barrier();
    uint base = args.out_offset + part * args.part_words + b * args.mask_batch + h * args.mask_head;
    for (uint e = lane; e < OWN * OTHERS; e += THREADS) {
        uint r = e / OTHERS, x = e % OTHERS;
        bool here = (each_query ? own_first + r < args.queries : r == 0u) &&
                    (each_key ? other_first + x < args.keys : x == 0u);
        if (here)
            y[base + (own_first + r) * args.mask_query + (other_first + x) * args.mask_key] =
                weight_at(r, x);
    }
}

/* ---- Walks ---- */

/* Blocks of 4 x 8 neighbours, as in attention_prefill. */
void find_place()
{
    lane = gl_LocalInvocationID.x;
    uint block = lane / 32u;
    tx = (lane & 1u) | (lane >> 1 & 6u) | (block % (COLUMN_THREADS / 8u) * 8u);
    ty = (lane >> 1 & 1u) | (lane >> 3 & 2u) | (block / (COLUMN_THREADS / 8u) * 4u);
}

void clear_sums()
{
    [[unroll]] for (uint r = 0; r < SUMS; r++) first_sums[r] = vec4(0.0);
    if (OF_KEYS) [[unroll]]
        for (uint r = 0; r < SUMS; r++)
            second_sums[r] = vec4(0.0);
}

void begin()
{
    find_place();
    mark = 0u;
    if (lane == 0u) {
        unsafe_mark = 0u;
        kept_mark = 0u;
    }
    clear_sums();
    own_count = OF_KEYS ? args.keys : args.queries;
    other_count = OF_KEYS ? args.queries : args.keys;
    barrier();
}

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

/* The steps of this part: all shared out alike. */
uint part_begin(uint steps, uint parts, uint part)
{
    return min(steps, part * tiles_of(steps, parts));
}

/* Workgroups of later queries come first: under a causal mask they have the most to do. */
void walk_keys(uint item, uint part)
{
    uint heads = args.batch * args.heads, head = item % heads;
    uint tiles = tiles_of(args.queries, OWN);
    if (item / heads >= tiles)
        return;
    own_first = (tiles - 1u - item / heads) * OWN;
    begin();
    set_head(head / args.heads, head % args.heads);
    uint first = band_begin(own_first) / OTHERS;
    uint end = tiles_of(band_end(min(own_first + OWN, args.queries) - 1u), OTHERS);
    uint steps = end - min(first, end), last = part_begin(steps, args.parts, part + 1u);
    [[dont_unroll]] for (uint step = part_begin(steps, args.parts, part); step < last; step++)
    {
        other_first = (first + step) * OTHERS;
        process();
    }
    store_rows(part);
}

/* Tiles of queries that see any of the keys from own_first on: [first, end) */
void find_queries(out uint first, out uint end)
{
    uint own_end = min(own_first + OWN, args.keys);
    first = (max(own_first + 1u, args.reach) - args.reach) / OTHERS;
    end = args.queries;
    if (args.window != 0u)
        end = min(end, max(own_end + args.window, args.reach) - args.reach);
    end = tiles_of(end, OTHERS);
}

/* A tile of keys, over the queries of every head of its kv head. */
void walk_tile(uint b, uint kv_head, uint parts, uint part)
{
    uint group = args.heads / args.kv_heads, first, end;
    find_queries(first, end);
    uint tiles = end - min(first, end), steps = group * tiles;
    uint last = part_begin(steps, parts, part + 1u);
    k_at = b * args.kv_batch + kv_head * args.kv_head;
    [[dont_unroll]] for (uint step = part_begin(steps, parts, part); step < last; step++)
    {
        set_head(b, kv_head * group + step / tiles);
        other_first = (first + step % tiles) * OTHERS;
        process();
    }
    store_rows(OF_ALL ? 0u : part);
}

void walk_queries(uint item, uint part)
{
    uint heads = args.batch * args.kv_heads;
    if (item / heads >= tiles_of(args.keys, OWN))
        return;
    own_first = item / heads * OWN;
    begin();
    walk_tile(item % heads / args.kv_heads, item % args.kv_heads, args.parts, part);
}

void clear_queries(uint b, uint kv_head)
{
    uint group = args.heads / args.kv_heads, tiles = tiles_of(args.queries, OTHERS);
    [[dont_unroll]] for (uint step = 0; step < group * tiles; step++)
    {
        set_head(b, kv_head * group + step / tiles);
        other_first = step % tiles * OTHERS;
        EACH_OF_QUERIES(store_sum(at, d, vec4(0.0)))
    }
}

/* Tiles forth and back over the parts, so that under a causal mask all have as much to do. */
void walk_all(uint item, uint part)
{
    uint b = item / args.kv_heads, kv_head = item % args.kv_heads;
    uint tiles = tiles_of(args.keys, OWN);
    if (b >= args.batch)
        return;
    begin();
    query_target_at = args.dq_offset + part * args.dq_words;
    clear_queries(b, kv_head);
    [[dont_unroll]] for (uint round = 0; round * args.parts < tiles; round++)
    {
        uint tile = round * args.parts + ((round & 1u) == 0u ? part : args.parts - 1u - part);
        own_first = tile * OWN;
        if (own_first < args.keys) {
            clear_sums();
            walk_tile(b, kv_head, 1u, 0u);
        }
    }
}

/* What the bias has, a workgroup owns one of; what it has not, the workgroup walks over. */
void walk_bias(uint item, uint part)
{
    uint i_tiles = tiles_of(args.queries, OWN), j_tiles = tiles_of(args.keys, OTHERS);
    uint own_j = args.mask_key != 0u ? j_tiles : 1u, own_i = args.mask_query != 0u ? i_tiles : 1u;
    uint own_h = args.mask_head != 0u ? args.heads : 1u;
    uint own_b = args.mask_batch != 0u ? args.batch : 1u;
    uint other_j = args.mask_key != 0u ? 1u : j_tiles;
    uint other_i = args.mask_query != 0u ? 1u : i_tiles;
    uint other_h = args.mask_head != 0u ? 1u : args.heads;
    uint other_b = args.mask_batch != 0u ? 1u : args.batch;
    if (item >= own_b * own_h * own_i * own_j)
        return;
    begin();
    uint j = item % own_j, i = item / own_j % own_i;
    uint h = item / (own_j * own_i) % own_h, b = item / (own_j * own_i * own_h);
    uint steps = args.width == 0u ? 0u : other_b * other_h * other_i * other_j;
    uint last = part_begin(steps, args.parts, part + 1u);
    [[dont_unroll]] for (uint step = part_begin(steps, args.parts, part); step < last; step++)
    {
        other_first = (j + step % other_j) * OTHERS;
        own_first = (i + step / other_j % other_i) * OWN;
        set_head(b + step / (other_j * other_i * other_h),
                 h + step / (other_j * other_i) % other_h);
        process();
    }
    own_first = i * OWN;
    other_first = j * OTHERS;
    store_bias(part, b, h);
}

void main()
{
    uint item = group_index() / args.parts, part = group_index() % args.parts;
    if (PASS == ATTENTION_OF_QUERIES)
        walk_keys(item, part);
    else if (OF_ALL)
        walk_all(item, part);
    else if (OF_KEYS)
        walk_queries(item, part);
    else
        walk_bias(item, part);
}
