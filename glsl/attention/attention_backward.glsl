/*
 * The parts of a step of attention_backward: products over the columns of the tiles (s, dp), the
 * weights, and products over the other rows (dv, dk, dq) or over the own rows (dq of OF_ALL), with
 * their loads. Include this after its constants, buffers and state.
 */
/* ---- Stores ---- */

DEFINE_LOAD(load_dq, dq, dq4)

/* Stores four columns. Columns past the last one are not stored. */
#define DEFINE_QUAD_STORE(name, words, quads)                                                      \
    void name(uint row, uint d, vec4 value)                                                        \
    {                                                                                              \
        if (WHOLE) {                                                                               \
            if (d < args.width)                                                                    \
                quads[(row + d) >> 2] = value;                                                     \
            return;                                                                                \
        }                                                                                          \
        [[unroll]] for (uint e = 0; e < 4u; e++) if (d + e < args.width) words[row + d + e] =      \
            value[e];                                                                              \
    }
DEFINE_QUAD_STORE(store_quad, y, y4)
DEFINE_QUAD_STORE(store_dq, dq, dq4)

/* ---- Products over the columns ---- */

/* Does an invocation load quad i of the own rows? */
bool has_own(uint i)
{
    return OWN_LOADS * THREADS == OWN_SLICE || i * THREADS + lane < OWN_SLICE;
}

void fetch_slice(uint product, uint depth)
{
    uint d = depth + lane % 4u * 4u;
    [[unroll]] for (uint i = 0; i < OWN_LOADS; i++) if (has_own(i)) next[i] =
        load_own(product, i * (THREADS / 4u) + lane / 4u, d);
    [[unroll]] for (uint i = 0; i < OTHER_LOADS; i++) next[OWN_LOADS + i] =
        load_other(product, i * (THREADS / 4u) + lane / 4u, d);
}

/* Stores a value transposed. Rows `pitch` apart share a quad, rotated by a quarter of the depth. */
void store_turned(uint first, uint pitch, uint row, vec4 value)
{
    uint at = first + lane % 4u * 4u * pitch + row % pitch;
    uint c = row / pitch + lane % 4u & 3u;
    [[unroll]] for (uint i = 0; i < 4u; i++) weights[at + i * pitch][c] = value[i];
}

void store_slice(uint slice)
{
    [[unroll]] for (uint i = 0; i < OWN_LOADS; i++) if (has_own(i))
        store_turned(slice, OWN_QUADS, i * (THREADS / 4u) + lane / 4u, next[i]);
    [[unroll]] for (uint i = 0; i < OTHER_LOADS; i++)
        store_turned(slice + OWN_SLICE, COLUMN_THREADS, i * (THREADS / 4u) + lane / 4u,
                     next[OWN_LOADS + i]);
}

/* Multiplies the quarter of a slice whose quads have the same rotation. Then the sums rotate,
 * too. */
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

void multiply_slice(uint slice)
{
    uint own_at = slice + ty, other_at = slice + DEPTH * OWN_QUADS + tx;
    const uint own_quarter = DEPTH / 4u * OWN_QUADS, other_quarter = DEPTH / 4u * COLUMN_THREADS;
    if (UNROLL > 4u) {
        [[unroll]] for (uint t = 0; t < 4u; t++)
            multiply_quarter(own_at + t * own_quarter, other_at + t * other_quarter);
    } else {
        [[dont_unroll]] for (uint t = 0; t < 4u; t++)
            multiply_quarter(own_at + t * own_quarter, other_at + t * other_quarter);
    }
}

/* Computes a product into s. Its first slice was already fetched, if slices are fetched ahead. */
void multiply_columns(uint product)
{
    [[unroll]] for (uint r = 0; r < ROWS; r++) s[r] = vec4(0.0);
    uint slice = 0u;
    if (TURNS)
        barrier();
    [[dont_unroll]] for (uint depth = 0; depth < args.width; depth += DEPTH)
    {
        if (!TURNS)
            barrier();
        if (!AHEAD)
            fetch_slice(product, depth);
        store_slice(slice);
        barrier();
        if (AHEAD && depth + DEPTH < args.width)
            fetch_slice(product, depth + DEPTH);
        multiply_slice(slice);
        if (TURNS)
            slice ^= SCORE_SLICE;
    }
}

/* ---- Weights ---- */

/* Does this tile contain pairs that do not count? */
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

/* For a row: its log-sum-exp, in two parts if there is a bias (attention_delta.comp), and delta. */
struct row_statistics {
    float lse, rest, delta;
};

/* The statistics at index `at`, of which there are `rows`. The log-sum-exp is a product in any
 * case, because a difference absorbs a product (spirv/contract.c), but not a value that a constant
 * chooses. */
row_statistics statistics_of(uint at, uint rows)
{
    return row_statistics(stats[at] * (NATURAL ? 1.0 : LOG2_E),
                          NATURAL ? stats[at + 2u * rows] : 0.0, stats[at + rows]);
}

/* Sets s to p, and g to ds for a bias, else to dz. If a score is NaN, p is NaN, whatever exp2
 * returns. */
void weigh(uint r, uint c, bool edge, row_statistics row)
{
    float product = s[r][c] * score_factor(), term = 0.0, slope = 1.0;
    float z = product;
    if (SOFTCAP) {
        float t = is_nan(product) ? product : safe_tanh(product);
        z = (NATURAL ? args.softcap : args.softcap * LOG2_E) * t;
        slope = 1.0 - t * t;
    }
    if (edge)
        term = pair_term(row_of(r), other_of(c));
    if (MASK == ATTENTION_BIAS)
        z += term;
    bool out_of_it = is_dropped(term) || is_dropped(z);
    float d = z - row.lse;
    if (NATURAL)
        d -= row.rest;
    float p = is_nan(d) ? NAN_VALUE : weight_below(d), ds = p * (g[r][c] - row.delta);
    s[r][c] = out_of_it ? 0.0 : p;
    g[r][c] = out_of_it ? 0.0 : OF_BIAS ? ds : ds * slope;
}

void find_weights(bool edge)
{
    uint rows = args.batch * args.heads * args.queries, at = args.lse_offset + row_at;
    if (OF_KEYS) {
        [[unroll]] for (uint c = 0; c < 4u; c++)
        {
            uint of_row = at + min(other_first + other_of(c), args.queries - 1u);
            row_statistics row = statistics_of(of_row, rows);
            [[unroll]] for (uint r = 0; r < ROWS; r++) weigh(r, c, edge, row);
        }
    } else {
        [[unroll]] for (uint r = 0; r < ROWS; r++)
        {
            uint of_row = at + min(own_first + row_of(r), args.queries - 1u);
            row_statistics row = statistics_of(of_row, rows);
            [[unroll]] for (uint c = 0; c < 4u; c++) weigh(r, c, edge, row);
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

/* Stores weights to shared memory: for sums over the other rows, and below for sums over the own
 * rows. */
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

/* Sums products of weights and values over `count` rows. An invocation has `quads` quads of weights
 * for each row. */
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
        if (AHEAD)                                                                                 \
            fetch_values(product, own, 0u);                                                        \
        barrier();                                                                                 \
        store();                                                                                   \
        [[dont_unroll]] for (uint base = 0; base < count; base += VALUE_ROWS)                      \
        {                                                                                          \
            if (base > 0u)                                                                         \
                barrier();                                                                         \
            if (!AHEAD)                                                                            \
                fetch_values(product, own, base);                                                  \
            store_values(edge);                                                                    \
            barrier();                                                                             \
            if (AHEAD && base + VALUE_ROWS < count)                                                \
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
               OWN_PITCH, QUERY_QUADS, 0u, true)

/* ---- The workgroup's own dq ---- */

/* The index of row 4 m + e of an invocation's dq. */
uint query_of(uint r)
{
    return other_first + (r & 3u) * COLUMN_THREADS + (r >> 2) * ROW_THREADS + ty;
}

#define EACH_OF_QUERIES(statement)                                                                 \
    [[unroll]] for (uint r = 0; r < 4u * QUERY_QUADS; r++) if (query_of(r) < other_count)          \
        [[unroll]] for (uint n = 0; n < COLUMN_QUADS; n++)                                         \
    {                                                                                              \
        uint d = (n * COLUMN_THREADS + tx) * 4u;                                                   \
        uint row = query_target_at + q_at + query_of(r) * args.q_seq;                              \
        statement;                                                                                 \
    }

void clear_queries()
{
    EACH_OF_QUERIES(store_dq(row, d, vec4(0.0)))
}

void add_queries(bool edge)
{
    if (fresh) [[unroll]]
        for (uint i = 0; i < 4u * QUERY_QUADS * COLUMN_QUADS; i++)
            query_sums[i] = vec4(0.0);
    else
        EACH_OF_QUERIES(query_sums[r * COLUMN_QUADS + n] = load_dq(row, d))
    add_own_dz(edge);
    EACH_OF_QUERIES(store_dq(row, d, query_sums[r * COLUMN_QUADS + n]))
}
