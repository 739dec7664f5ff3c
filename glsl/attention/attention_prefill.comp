#version 450
/*
 * Attention for many queries. A workgroup of ROW_THREADS x COLUMN_THREADS invocations owns a tile
 * of queries of one head. It loops over the keys in tiles, with an online softmax. Both products
 * are sums of outer products from shared memory into registers. An invocation has 4 ROW_QUADS rows,
 * and for these the scores of 4 KEY_QUADS keys (s) and 4 COLUMN_QUADS output columns (o).
 *
 * Shared memory holds the weights of a part of the tile (4 COLUMN_THREADS keys), key-major. Before
 * that, the same memory holds a slice of q and k, 16 columns deep, transposed. A second area holds
 * VALUE_KEYS rows of v, or a reduction over rows.
 *
 * In a transposed slice, rows q, q + n, q + 2 n and q + 3 n share a quad (n: quads of a part),
 * rotated by a quarter of the depth. So neither the transposing stores nor the loads have bank
 * conflicts, and neighbouring invocations have neighbouring keys. The next slice is loaded into
 * registers while this one is multiplied. The kernel is limited by the bandwidth of shared memory.
 * So register blocks of 8 x 8 are faster than 8 x 4, however many invocations are resident.
 *
 * Scores are in units of log2, because q is scaled by scale * log2(e); with a bias they are not
 * scaled. Tiles outside the band, or entirely dropped by the mask, are never read. Single keys are
 * tested only in tiles that some row sees partly, and in all tiles if there is a mask tensor.
 * There, a dropped key must not count even if its v is NaN or Inf. If such a v is seen, a guarded
 * loop takes over.
 *
 * If args.chunk > 0, a workgroup takes that number of keys, a multiple of its tile, and stores
 * partial results for attention_merge.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/attention.h"

layout(constant_id = 1) const uint MASK = ATTENTION_BAND;
layout(constant_id = 2) const bool SOFTCAP = false;
layout(constant_id = 3) const bool WHOLE = false; /* quads are aligned */
layout(constant_id = 4) const uint ROW_THREADS = 8;     /* 4, 8, 12 .. */
layout(constant_id = 5) const uint COLUMN_THREADS = 16; /* 8, 16, 32 .. */
layout(constant_id = 6) const uint ROW_QUADS = 1;
layout(constant_id = 7) const uint KEY_QUADS = 1;
layout(constant_id = 8) const uint COLUMN_QUADS = 1; /* width <= 4 COLUMN_THREADS COLUMN_QUADS */
layout(constant_id = 9) const uint VALUE_KEYS = 8;   /* a multiple of 4 */
layout(constant_id = 10) const uint UNROLL = 4; /* keys of v; above 4, also slices of q and k */
layout(push_constant) uniform block { attention_args args; };
layout(set = 0, binding = 0) readonly buffer q_source { float q[]; };
layout(set = 0, binding = 1) readonly buffer k_source { float k[]; };
layout(set = 0, binding = 2) readonly buffer v_source { float v[]; };
layout(set = 0, binding = 0) readonly buffer q_quads { vec4 q4[]; };
layout(set = 0, binding = 1) readonly buffer k_quads { vec4 k4[]; };
layout(set = 0, binding = 2) readonly buffer v_quads { vec4 v4[]; };
layout(set = 0, binding = 1) readonly buffer k_halves { uvec2 k2[]; };
layout(set = 0, binding = 2) readonly buffer v_halves { uvec2 v2[]; };
layout(set = 0, binding = 3) readonly restrict buffer mask_source { float mask[]; };
layout(set = 0, binding = 4) writeonly buffer target { float y[]; };
layout(set = 0, binding = 4) writeonly buffer target_quads { vec4 y4[]; };

#include "attention/attention_forward.glsl"
#include "attention/attention_packed.glsl"

const uint DEPTH = 16;
const uint THREADS = ROW_THREADS * COLUMN_THREADS;
const uint ROWS = 4 * ROW_QUADS;
const uint TILE_ROW_QUADS = ROW_THREADS * ROW_QUADS;
const uint TILE_KEY_QUADS = COLUMN_THREADS * KEY_QUADS;
const uint TILE_COLUMN_QUADS = COLUMN_THREADS * COLUMN_QUADS;
const uint TILE_QUERIES = 4 * TILE_ROW_QUADS;
const uint TILE_KEYS = 4 * TILE_KEY_QUADS;
const uint PITCH = TILE_ROW_QUADS + 1; /* stride of the weights of a key */
/* Quads that an invocation loads for a slice, at most. */
const uint Q_LOADS = (TILE_ROW_QUADS * DEPTH + THREADS - 1) / THREADS;
const uint K_LOADS = TILE_KEY_QUADS * DEPTH / THREADS;
const uint V_LOADS = (VALUE_KEYS * TILE_COLUMN_QUADS + THREADS - 1) / THREADS;
const uint SCORE_SLICE = DEPTH * (TILE_ROW_QUADS + TILE_KEY_QUADS);
const uint VALUE_SLICE = VALUE_KEYS * TILE_COLUMN_QUADS;
const uint PART_KEYS = 4 * COLUMN_THREADS; /* keys with weights in shared memory at a time */
const uint WEIGHTS = PART_KEYS * PITCH;
const uint REDUCTION = TILE_QUERIES * COLUMN_THREADS / 4;
/* Double buffering: two slices need one barrier for each step instead of two. */
const bool TURNS = 2 * SCORE_SLICE <= WEIGHTS;

shared vec4 weights[WEIGHTS > SCORE_SLICE ? WEIGHTS : SCORE_SLICE]; /* or slices of q and k */
shared vec4 values[VALUE_SLICE > REDUCTION ? VALUE_SLICE : REDUCTION];
shared vec4 row_maxima[TILE_ROW_QUADS]; /* after a tile, and the scale of l and o */
shared vec4 row_scales[TILE_ROW_QUADS];
shared uint unsafe_value;              /* 1 + the last tile with a NaN or Inf in v */
shared uint kept_tile;                 /* 1 + the last tile of which the mask keeps a key */

uint lane, ty, tx, first_query, q_base, k_base, v_base, mask_base;
vec4 next[Q_LOADS + K_LOADS > V_LOADS ? Q_LOADS + K_LOADS : V_LOADS];
vec4 s[ROWS * KEY_QUADS];
vec4 o[ROWS * COLUMN_QUADS];
float sums[ROWS]; /* l, over this invocation's keys */
float maximum;    /* of row `lane` */

/* The position in the tile of row 4 m + e of an invocation, and of its key 4 n + c. */
uint row_of(uint r)
{
    return (r & 3u) * TILE_ROW_QUADS + (r >> 2) * ROW_THREADS + ty;
}
uint key_of(uint n, uint c)
{
    return n * PART_KEYS + c * COLUMN_THREADS + tx;
}

/* Loads four columns. Columns past the last one are 0. */
#define DEFINE_LOAD(name, words, quads, held, packed)                                              \
    vec4 name(uint row, uint d)                                                                    \
    {                                                                                              \
        uint at = row + d, left = args.width - d;                                                  \
        if (d >= args.width)                                                                       \
            return vec4(0.0);                                                                      \
        if (held == ATTENTION_HALVES)                                                              \
            return packed(at);                                                                     \
        if (WHOLE)                                                                                 \
            return quads[at >> 2];                                                                 \
        return vec4(words[at], left > 1u ? words[at + 1u] : 0.0,                                   \
                    left > 2u ? words[at + 2u] : 0.0, left > 3u ? words[at + 3u] : 0.0);           \
    }
DEFINE_LOAD(load_q, q, q4, ATTENTION_WORDS, packed_k)
DEFINE_LOAD(load_k, k, k4, K_HELD, packed_k)
DEFINE_LOAD(load_v, v, v4, V_HELD, packed_v)

/* Rows past the last one repeat it. Queries there are not stored, and keys get no weight. */
void fetch_scores(uint first_key, uint depth)
{
    uint d = depth + lane % 4u * 4u;
    [[unroll]] for (uint i = 0; i < Q_LOADS; i++) {
        uint row = min(first_query + i * (THREADS / 4u) + lane / 4u, args.queries - 1u);
        next[i] = load_q(q_base + row * args.q_seq, d);
    }
    [[unroll]] for (uint i = 0; i < K_LOADS; i++) {
        uint row = min(first_key + i * (THREADS / 4u) + lane / 4u, args.keys - 1u);
        next[Q_LOADS + i] = load_k(k_base + row * args.k_seq, d);
    }
}

/* `pitch`: quads of a column, over all parts. Within a part, rows `part` apart share a quad. */
void store_turned(uint first, uint pitch, uint part, uint row, vec4 value)
{
    uint at = first + lane % 4u * 4u * pitch + row / (4u * part) * part + row % part;
    uint c = row / part + lane % 4u & 3u;
    [[unroll]] for (uint i = 0; i < 4u; i++)
        weights[at + i * pitch][c] = value[i];
}

void store_scores(uint slice, float factor)
{
    [[unroll]] for (uint i = 0; i < Q_LOADS; i++)
        if (Q_LOADS * THREADS == TILE_ROW_QUADS * DEPTH ||
            i * THREADS + lane < TILE_ROW_QUADS * DEPTH)
            store_turned(slice, TILE_ROW_QUADS, TILE_ROW_QUADS, i * (THREADS / 4u) + lane / 4u,
                         next[i] * factor);
    [[unroll]] for (uint i = 0; i < K_LOADS; i++)
        store_turned(slice + DEPTH * TILE_ROW_QUADS, TILE_KEY_QUADS, COLUMN_THREADS,
                     i * (THREADS / 4u) + lane / 4u, next[Q_LOADS + i]);
}

/* Multiplies the quarter of a slice whose quads have the same rotation. The sums rotate with the
 * quads from quarter to quarter. So each sum keeps its register even in a loop over the quarters,
 * which compiles faster. If the loop is unrolled, the rotation only renames registers. */
void multiply_quarter(uint rows_at, uint keys_at)
{
    [[unroll]] for (uint d = 0; d < DEPTH / 4u; d++) {
        vec4 b[KEY_QUADS];
        [[unroll]] for (uint n = 0; n < KEY_QUADS; n++)
            b[n] = weights[keys_at + d * TILE_KEY_QUADS + n * COLUMN_THREADS];
        [[unroll]] for (uint m = 0; m < ROW_QUADS; m++) {
            vec4 a = weights[rows_at + d * TILE_ROW_QUADS + m * ROW_THREADS];
            [[unroll]] for (uint e = 0; e < 4u; e++)
                [[unroll]] for (uint n = 0; n < KEY_QUADS; n++) {
                    uint at = (m * 4u + e) * KEY_QUADS + n;
                    s[at] = fma(vec4(a[e]), b[n], s[at]);
                }
        }
    }
    [[unroll]] for (uint m = 0; m < ROW_QUADS; m++)
        [[unroll]] for (uint n = 0; n < KEY_QUADS; n++) {
            uint at = m * 4u * KEY_QUADS + n;
            vec4 last = s[at + 3u * KEY_QUADS].wxyz;
            [[unroll]] for (uint e = 3u; e > 0u; e--)
                s[at + e * KEY_QUADS] = s[at + (e - 1u) * KEY_QUADS].wxyz;
            s[at] = last;
        }
}

void multiply_scores(uint slice)
{
    uint rows_at = slice + ty, keys_at = slice + DEPTH * TILE_ROW_QUADS + tx;
    const uint rows_quarter = DEPTH / 4u * TILE_ROW_QUADS;
    const uint keys_quarter = DEPTH / 4u * TILE_KEY_QUADS;
    if (UNROLL > 4u) {
        [[unroll]] for (uint t = 0; t < 4u; t++)
            multiply_quarter(rows_at + t * rows_quarter, keys_at + t * keys_quarter);
    } else {
        [[dont_unroll]] for (uint t = 0; t < 4u; t++)
            multiply_quarter(rows_at + t * rows_quarter, keys_at + t * keys_quarter);
    }
}

void fetch_values(uint first_key)
{
    [[unroll]] for (uint i = 0; i < V_LOADS; i++) {
        uint e = i * THREADS + lane;
        uint row = min(first_key + e / TILE_COLUMN_QUADS, args.keys - 1u);
        next[i] = load_v(v_base + row * args.v_seq, e % TILE_COLUMN_QUADS * 4u);
    }
}

void store_values(bool edge, uint tile)
{
    bool unsafe = false;
    [[unroll]] for (uint i = 0; i < V_LOADS; i++) {
        if (V_LOADS * THREADS == VALUE_SLICE || i * THREADS + lane < VALUE_SLICE)
            values[i * THREADS + lane] = next[i];
        if (edge)
            unsafe = unsafe || any(greaterThanEqual(floatBitsToUint(next[i]) & 0x7fffffffu,
                                                    uvec4(0x7f800000u)));
    }
    if (unsafe)
        unsafe_value = tile + 1u;
}

void multiply_values(uint base)
{
    [[dont_unroll]] for (uint x0 = 0; x0 < VALUE_KEYS; x0 += UNROLL) {
        uint rows_at = (base + x0) * PITCH + ty;
        uint columns_at = x0 * TILE_COLUMN_QUADS + tx;
        [[unroll]] for (uint x = 0; x < UNROLL; x++) {
            vec4 b[COLUMN_QUADS];
            [[unroll]] for (uint n = 0; n < COLUMN_QUADS; n++)
                b[n] = values[columns_at + x * TILE_COLUMN_QUADS + n * COLUMN_THREADS];
            [[unroll]] for (uint m = 0; m < ROW_QUADS; m++) {
                vec4 a = weights[rows_at + x * PITCH + m * ROW_THREADS];
                [[unroll]] for (uint e = 0; e < 4u; e++)
                    [[unroll]] for (uint n = 0; n < COLUMN_QUADS; n++) {
                        uint at = (m * 4u + e) * COLUMN_QUADS + n;
                        o[at] = fma(vec4(a[e]), b[n], o[at]);
                    }
            }
        }
    }
}

/* The same order and operations as multiply_values. So a value that no query sees changes no bit,
 * even if it is NaN. */
void multiply_unsafe_values(uint base)
{
    [[dont_unroll]] for (uint x = 0; x < VALUE_KEYS; x++)
        [[unroll]] for (uint m = 0; m < ROW_QUADS; m++) {
            vec4 a = weights[(base + x) * PITCH + m * ROW_THREADS + ty];
            uint at = x * TILE_COLUMN_QUADS + tx;
            [[unroll]] for (uint e = 0; e < 4u; e++)
                if (floatBitsToUint(a[e]) != 0u)
                    [[unroll]] for (uint n = 0; n < COLUMN_QUADS; n++) {
                        uint to = (m * 4u + e) * COLUMN_QUADS + n;
                        o[to] = fma(vec4(a[e]), values[at + n * COLUMN_THREADS], o[to]);
                    }
        }
}

/* Does the mask keep a key of the tile for any row of this invocation? */
bool keeps_any(uint first_key)
{
    bool any_kept = false;
    for (uint r = 0; r < ROWS; r++) {
        uint i = min(first_query + row_of(r), args.queries - 1u);
        for (uint x = 0; x < 4u * KEY_QUADS && !any_kept; x++)
            any_kept = !is_dropped(mask_term(mask_base, i, first_key + key_of(x / 4u, x % 4u)));
    }
    return any_kept;
}

void apply_softcap()
{
    [[unroll]] for (uint r = 0; r < ROWS * KEY_QUADS; r++)
        [[unroll]] for (uint c = 0; c < 4u; c++)
            s[r][c] = capped_score(s[r][c]);
}

void apply_mask(uint first_key)
{
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        uint i = min(first_query + row_of(r), args.queries - 1u);
        [[unroll]] for (uint n = 0; n < KEY_QUADS; n++)
            [[unroll]] for (uint c = 0; c < 4u; c++) {
                float term = mask_term(mask_base, i, first_key + key_of(n, c));
                float z = s[r * KEY_QUADS + n][c];
                if (MASK == ATTENTION_BIAS)
                    z += term;
                s[r * KEY_QUADS + n][c] = is_dropped(term) ? NEGATIVE_INFINITY : z;
            }
    }
}

/* max() may return either operand for a NaN. This does not matter, because the whole row becomes
 * NaN. */
float largest(vec4 a)
{
    return max(max(a.x, a.y), max(a.z, a.w));
}

/* Stores the largest score of every row so far in row_maxima, and the scale from the previous
 * maximum in row_scales. */
void reduce_maxima()
{
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        float m = largest(s[r * KEY_QUADS]);
        [[unroll]] for (uint n = 1; n < KEY_QUADS; n++)
            m = max(m, largest(s[r * KEY_QUADS + n]));
        values[row_of(r) * (COLUMN_THREADS / 4u) + (tx >> 2)][tx & 3u] = m;
    }
    barrier();
    if (lane < TILE_QUERIES) {
        float past = maximum;
        [[unroll]] for (uint x = 0; x < COLUMN_THREADS / 4u; x++)
            maximum = max(maximum, largest(values[lane * (COLUMN_THREADS / 4u) + x]));
        row_maxima[lane % TILE_ROW_QUADS][lane / TILE_ROW_QUADS] = maximum;
        row_scales[lane % TILE_ROW_QUADS][lane / TILE_ROW_QUADS] =
            weight_below(past - (is_dropped(maximum) ? 0.0 : maximum));
    }
    barrier();
}

/* Converts scores to weights, and rescales l and o to the new maximum. If a score is NaN, l is NaN,
 * whatever exp2 returns. */
void update_rows()
{
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        float m = row_maxima[(r >> 2) * ROW_THREADS + ty][r & 3u];
        float scale = row_scales[(r >> 2) * ROW_THREADS + ty][r & 3u];
        float base = is_dropped(m) ? 0.0 : m, total = 0.0;
        vec4 p = vec4(0.0);
        [[unroll]] for (uint n = 0; n < KEY_QUADS; n++) {
            vec4 z = s[r * KEY_QUADS + n], d = z - base, w = weights_below(d);
            total += (d.x + d.y) + (d.z + d.w);
            w = mix(w, vec4(0.0), equal(floatBitsToUint(z), uvec4(0xff800000u)));
            p += w;
            s[r * KEY_QUADS + n] = w;
        }
        float l = is_dropped(m) ? sums[r] : fma(sums[r], scale, (p.x + p.y) + (p.z + p.w));
        sums[r] = is_nan(total) ? NAN_VALUE : l;
        [[unroll]] for (uint n = 0; n < COLUMN_QUADS; n++)
            o[r * COLUMN_QUADS + n] *= scale;
    }
}

void store_weights(uint n)
{
    [[unroll]] for (uint c = 0; c < 4u; c++)
        [[unroll]] for (uint m = 0; m < ROW_QUADS; m++) {
            vec4 w;
            [[unroll]] for (uint e = 0; e < 4u; e++)
                w[e] = s[(m * 4u + e) * KEY_QUADS + n][c];
            weights[key_of(0u, c) * PITCH + m * ROW_THREADS + ty] = w;
        }
}

void compute_scores(uint first_key)
{
    float factor = score_factor();
    uint slice = 0u;
    [[unroll]] for (uint r = 0; r < ROWS * KEY_QUADS; r++)
        s[r] = vec4(0.0);
    if (TURNS)
        barrier();
    [[dont_unroll]] for (uint depth = 0; depth < args.width; depth += DEPTH) {
        if (!TURNS)
            barrier();
        store_scores(slice, factor);
        barrier();
        if (depth + DEPTH < args.width)
            fetch_scores(first_key, depth + DEPTH);
        else
            fetch_values(first_key);
        multiply_scores(slice);
        if (TURNS)
            slice ^= SCORE_SLICE;
    }
}

void add_part(uint first_key, uint end, uint next_key, bool edge, uint tile)
{
    uint count = min(PART_KEYS, end - first_key);
    [[dont_unroll]] for (uint base = 0; base < count; base += VALUE_KEYS) {
        if (base > 0u)
            barrier();
        store_values(edge, tile);
        barrier();
        if (first_key + base + VALUE_KEYS < end)
            fetch_values(first_key + base + VALUE_KEYS);
        else
            fetch_scores(next_key, 0u);
        if (edge && unsafe_value == tile + 1u)
            multiply_unsafe_values(base);
        else
            multiply_values(base);
    }
}

void add_values(uint tile, uint end, bool edge)
{
    uint first_key = tile * TILE_KEYS, next_key = first_key + TILE_KEYS;
    [[dont_unroll]] for (uint n = 0; n < KEY_QUADS && first_key + n * PART_KEYS < end; n++) {
        if (n > 0u)
            barrier();
        [[unroll]] for (uint known = 0; known < KEY_QUADS; known++)
            if (known == n)
                store_weights(known);
        add_part(first_key + n * PART_KEYS, min(end, next_key), next_key, edge, tile);
    }
}

void process_tile(uint tile, uint end)
{
    uint first_key = tile * TILE_KEYS;
    bool edge = MASKED || first_key + TILE_KEYS > band_end(first_query) ||
                first_key < band_begin(first_query + TILE_QUERIES - 1u);
    if (MASKED) {
        if (keeps_any(first_key))
            kept_tile = tile + 1u;
        barrier();
        if (kept_tile != tile + 1u) {
            fetch_scores(first_key + TILE_KEYS, 0u);
            return;
        }
    }
    compute_scores(first_key);
    if (SOFTCAP)
        apply_softcap();
    if (edge)
        apply_mask(first_key);
    reduce_maxima();
    update_rows();
    add_values(tile, end, edge);
}

void store_quad(uint at, uint d, vec4 value)
{
    if (WHOLE) {
        if (d < args.width)
            y4[(at + d) >> 2] = value;
        return;
    }
    [[unroll]] for (uint e = 0; e < 4u; e++)
        if (d + e < args.width)
            y[at + d + e] = value[e];
}

/* Invocation `lane` finishes row `lane`: it stores the row's statistics and computes the factor of
 * o. */
void finish_row(uint b, uint h, uint chunk)
{
    uint i = first_query + lane, row = (b * args.heads + h) * args.queries + i;
    vec4 part = vec4(0.0);
    for (uint x = 0; x < COLUMN_THREADS / 4u; x++)
        part += values[lane * (COLUMN_THREADS / 4u) + x];
    float l = (part.x + part.y) + (part.z + part.w);
    bool empty = floatBitsToUint(l) == 0u;
    float factor = empty ? 0.0 : args.chunk != 0u ? 1.0 : 1.0 / l;
    row_scales[lane % TILE_ROW_QUADS][lane / TILE_ROW_QUADS] = factor;
    if (i < args.queries && args.chunk != 0u) {
        uint at = statistics_at(row, chunk);
        y[at] = maximum;
        y[at + 1u] = l;
    } else if (i < args.queries && args.lse_offset != ATTENTION_NO_LSE)
        y[args.lse_offset + row] = log_sum(maximum, l);
}

/* The loops over `o` are short and have no divisions, because `o` stays in registers only if
 * drivers unroll them. */
void store_rows(uint b, uint h, uint chunk)
{
    barrier();
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        values[row_of(r) * (COLUMN_THREADS / 4u) + (tx >> 2)][tx & 3u] = sums[r];
    barrier();
    if (lane < TILE_QUERIES)
        finish_row(b, h, chunk);
    barrier();
    uint first_row = (b * args.heads + h) * args.queries;
    uint base = result_row(b, h);
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        float factor = row_scales[(r >> 2) * ROW_THREADS + ty][r & 3u];
        uint i = first_query + row_of(r);
        uint at = args.chunk != 0u ? partial_row(first_row + i, chunk) : base + i * result_step;
        [[unroll]] for (uint n = 0; n < COLUMN_QUADS; n++) {
            vec4 w = o[r * COLUMN_QUADS + n];
            w = floatBitsToUint(factor) == 0u ? vec4(0.0) : w * factor;
            if (i < args.queries)
                store_quad(at, (n * COLUMN_THREADS + tx) * 4u, w);
        }
    }
}

/* Invocations form blocks of 4 x 8 neighbours. A block reads few different quads, so loads of
 * neighbours merge. */
void find_place()
{
    lane = gl_LocalInvocationID.x;
    uint block = lane / 32u;
    tx = (lane & 1u) | (lane >> 1 & 6u) | (block % (COLUMN_THREADS / 8u) * 8u);
    ty = (lane >> 1 & 1u) | (lane >> 3 & 2u) | (block / (COLUMN_THREADS / 8u) * 4u);
}

/* Workgroups of later queries start first, because they have the most work under a causal mask. If
 * there are fewer workgroups than tiles, the first tiles are computed. */
void main()
{
    uint chunks = chunk_count(), heads = args.batch * args.heads, item = group_index() / chunks;
    uint launched = gl_NumWorkGroups.x * gl_NumWorkGroups.y * gl_NumWorkGroups.z;
    uint all_tiles = (args.queries + TILE_QUERIES - 1u) / TILE_QUERIES;
    uint tiles = min(all_tiles, launched / (heads * chunks));
    uint chunk = group_index() % chunks, head = item % heads;
    uint b = head / args.heads, h = head % args.heads;
    if (item / heads >= tiles)
        return;
    find_place();
    find_reach(b);
    first_query = (tiles - 1u - item / heads) * TILE_QUERIES;
    q_base = args.q_offset + b * args.q_batch + h * args.q_head;
    k_base = args.k_offset + entry * args.k_batch + h / args.group * args.k_head;
    v_base = args.v_offset + entry * args.v_batch + h / args.group * args.v_head;
    mask_base = mask_row(b, h);
    maximum = NEGATIVE_INFINITY;
    if (lane < TILE_ROW_QUADS)
        row_maxima[lane] = vec4(NEGATIVE_INFINITY);
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        sums[r] = 0.0;
    [[unroll]] for (uint r = 0; r < ROWS * COLUMN_QUADS; r++)
        o[r] = vec4(0.0);
    if (lane == 0u) {
        unsafe_value = 0u;
        kept_tile = 0u;
    }
    barrier();
    uint begin = band_begin(first_query);
    uint end = band_end(min(first_query + TILE_QUERIES, args.queries) - 1u);
    if (args.chunk != 0u) {
        begin = max(begin, chunk * args.chunk);
        end = min(end, chunk * args.chunk + args.chunk);
    }
    uint tile = begin / TILE_KEYS;
    if (begin < end)
        fetch_scores(tile * TILE_KEYS, 0u);
    [[dont_unroll]] for (; begin < end && tile * TILE_KEYS < end; tile++)
        process_tile(tile, end);
    store_rows(b, h, chunk);
}
