#version 450
/*
 * Attention for many queries: a workgroup of 128 owns 32 * ROW_QUADS queries of one head and walks
 * over the keys in tiles of 64 with an online softmax (m, l, o in registers). Invocation (ty, tx)
 * of 8 x 16 holds the scores of its rows with keys 4 tx .. 4 tx + 3 and the outputs of its rows in
 * columns 4 (tx + 16 c) .. + 3.
 *
 * Shared memory: the weights of a tile, transposed, and one slice: q and k 16 columns deep, or
 * VALUE_KEYS rows of v, or a row reduction. Slices are transposed on the way in; the quad index is
 * xored with the row so that neither side of a transposition hits one bank. Tiles outside the
 * band, or dropped whole by the mask, are never read.
 *
 * A dropped key must not count even where its v is NaN or Inf: once such a v is seen the guarded
 * loop takes over.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"

layout(constant_id = 1) const uint MASK = ATTENTION_BAND;
layout(constant_id = 2) const bool SOFTCAP = false;
layout(constant_id = 3) const uint ROW_QUADS = 1;    /* rows an invocation: 4 * ROW_QUADS */
layout(constant_id = 4) const uint COLUMN_QUADS = 1; /* width at most 64 * COLUMN_QUADS */
layout(constant_id = 5) const uint VALUE_KEYS = 32;
layout(push_constant) uniform block { attention_args args; };
layout(set = 0, binding = 0) readonly restrict buffer q_source { float q[]; };
layout(set = 0, binding = 1) readonly restrict buffer k_source { float k[]; };
layout(set = 0, binding = 2) readonly restrict buffer v_source { float v[]; };
layout(set = 0, binding = 3) readonly restrict buffer mask_source { float mask[]; };
layout(set = 0, binding = 4) writeonly restrict buffer target { float y[]; };

#include "attention.glsl"

const uint LANES = 128;
const uint TILE_KEYS = 64;
const uint DEPTH = 16;
const uint ROWS = 4 * ROW_QUADS;
const uint TILE_QUADS = 8 * ROW_QUADS;
const uint TILE_QUERIES = 4 * TILE_QUADS;
const uint VALUE_QUADS = 16 * COLUMN_QUADS;
const uint SCORE_SLICE = DEPTH * (TILE_QUADS + TILE_KEYS / 4);
const uint VALUE_SLICE = VALUE_KEYS * VALUE_QUADS;

shared vec4 weights[TILE_KEYS * TILE_QUADS];
shared vec4 slice[SCORE_SLICE > VALUE_SLICE ? SCORE_SLICE : VALUE_SLICE];
shared uint unsafe_value; /* a NaN or Inf in v has been seen */
shared uint kept_tile;    /* 1 + the last tile the mask keeps a key of */

uint lane, ty, tx;
uint q_base, k_base, v_base, mask_base;
vec4 scores[ROWS];
vec4 outputs[ROWS * COLUMN_QUADS];
float maxima[ROWS], sums[ROWS];

uint row_quad(uint n)
{
    return n * 8u + ty;
}
uint row_of(uint r)
{
    return row_quad(r >> 2) * 4u + (r & 3u);
}

/* Bit 4 r + c: row r sees key 4 tx + c. */
uint kept_keys(uint first_query, uint first_key)
{
    uint bits = 0u;
    for (uint r = 0; r < ROWS; r++) {
        uint i = first_query + row_of(r);
        for (uint c = 0; c < 4u; c++)
            if (i < args.queries && !is_dropped(mask_term(mask_base, i, first_key + tx * 4u + c)))
                bits |= 1u << (r * 4u + c);
    }
    return bits;
}

void load_score_slice(uint first_query, uint first_key, uint depth)
{
    for (uint e = lane; e < TILE_QUERIES * DEPTH; e += LANES) {
        uint d = e % DEPTH, row = e / DEPTH, i = first_query + row;
        bool inside = i < args.queries && depth + d < args.width;
        slice[d * TILE_QUADS + ((row >> 2) ^ (d & 7u))][row & 3u] =
            inside ? q[q_base + i * args.q_seq + depth + d] : 0.0;
    }
    for (uint e = lane; e < TILE_KEYS * DEPTH; e += LANES) {
        uint d = e % DEPTH, key = e / DEPTH, j = first_key + key;
        bool inside = j < args.keys && depth + d < args.width;
        slice[DEPTH * TILE_QUADS + d * 16u + ((key >> 2) ^ (d & 7u))][key & 3u] =
            inside ? k[k_base + j * args.k_seq + depth + d] : 0.0;
    }
}

void add_score_slice()
{
    for (uint d = 0; d < DEPTH; d++) {
        vec4 keys = slice[DEPTH * TILE_QUADS + d * 16u + (tx ^ (d & 7u))];
        [[unroll]] for (uint n = 0; n < ROW_QUADS; n++) {
            vec4 queries = slice[d * TILE_QUADS + (row_quad(n) ^ (d & 7u))];
            [[unroll]] for (uint e = 0; e < 4u; e++)
                scores[n * 4u + e] += queries[e] * keys;
        }
    }
}

void compute_scores(uint first_query, uint first_key, uint kept)
{
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        scores[r] = vec4(0.0);
    for (uint depth = 0; depth < args.width; depth += DEPTH) {
        barrier();
        load_score_slice(first_query, first_key, depth);
        barrier();
        add_score_slice();
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        uint row = mask_base + (first_query + row_of(r)) * args.mask_query;
        [[unroll]] for (uint c = 0; c < 4u; c++) {
            float term = 0.0;
            bool keep = (kept >> (r * 4u + c) & 1u) != 0u;
            if (MASK == ATTENTION_BIAS && keep)
                term = mask[row + (first_key + tx * 4u + c) * args.mask_key];
            scores[r][c] = keep ? finish_score(scores[r][c], term) : NEGATIVE_INFINITY;
        }
    }
}

float largest(vec4 a)
{
    return larger(larger(a.x, a.y), larger(a.z, a.w));
}

/* Scores become weights; m, l and o move to the new maximum. */
void update_rows()
{
    barrier();
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        slice[row_of(r) * 4u + (tx >> 2)][tx & 3u] = largest(scores[r]);
    barrier();
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        uint at = row_of(r) * 4u;
        float m = maxima[r];
        for (uint x = 0; x < 4u; x++)
            m = larger(m, largest(slice[at + x]));
        float scale = weight_of(maxima[r], m);
        maxima[r] = m;
        [[unroll]] for (uint c = 0; c < 4u; c++)
            scores[r][c] = weight_of(scores[r][c], m);
        sums[r] = sums[r] * scale + scores[r].x + scores[r].y + scores[r].z + scores[r].w;
        [[unroll]] for (uint c = 0; c < COLUMN_QUADS; c++)
            outputs[r * COLUMN_QUADS + c] *= scale;
    }
    [[unroll]] for (uint n = 0; n < ROW_QUADS; n++)
        [[unroll]] for (uint c = 0; c < 4u; c++)
            weights[(tx * 4u + c) * TILE_QUADS + (row_quad(n) ^ (tx & 7u))] =
                vec4(scores[n * 4u][c], scores[n * 4u + 1u][c], scores[n * 4u + 2u][c],
                     scores[n * 4u + 3u][c]);
}

void load_value_slice(uint first_key, uint count)
{
    bool unsafe = false;
    for (uint e = lane; e < count * VALUE_QUADS * 4u; e += LANES) {
        uint d = e % (VALUE_QUADS * 4u), key = e / (VALUE_QUADS * 4u), j = first_key + key;
        bool inside = j < args.keys && d < args.width;
        float value = inside ? v[v_base + j * args.v_seq + d] : 0.0;
        unsafe = unsafe || is_nan(value) || is_inf(value);
        slice[key * VALUE_QUADS + (d >> 2)][d & 3u] = value;
    }
    if (unsafe)
        unsafe_value = 1u;
}

void add_value_slice(uint base, uint count)
{
    for (uint x = 0; x < count; x++) {
        uint row = (base + x) * TILE_QUADS, swizzle = (base + x) >> 2 & 7u;
        [[unroll]] for (uint n = 0; n < ROW_QUADS; n++) {
            vec4 p = weights[row + (row_quad(n) ^ swizzle)];
            [[unroll]] for (uint c = 0; c < COLUMN_QUADS; c++) {
                vec4 value = slice[x * VALUE_QUADS + c * 16u + tx];
                [[unroll]] for (uint e = 0; e < 4u; e++)
                    outputs[(n * 4u + e) * COLUMN_QUADS + c] += p[e] * value;
            }
        }
    }
}

void add_unsafe_value_slice(uint base, uint count)
{
    for (uint x = 0; x < count; x++) {
        uint row = (base + x) * TILE_QUADS, swizzle = (base + x) >> 2 & 7u;
        for (uint r = 0; r < ROWS; r++) {
            float p = weights[row + (row_quad(r >> 2) ^ swizzle)][r & 3u];
            for (uint c = 0; c < COLUMN_QUADS && floatBitsToUint(p) != 0u; c++)
                outputs[r * COLUMN_QUADS + c] += p * slice[x * VALUE_QUADS + c * 16u + tx];
        }
    }
}

void add_values(uint first_key, uint end)
{
    for (uint base = 0; base < end - first_key; base += VALUE_KEYS) {
        uint count = min(VALUE_KEYS, end - first_key - base);
        barrier();
        load_value_slice(first_key + base, count);
        barrier();
        if (unsafe_value == 0u)
            add_value_slice(base, count);
        else
            add_unsafe_value_slice(base, count);
    }
}

void process_tile(uint first_query, uint tile, uint end)
{
    uint first_key = tile * TILE_KEYS;
    uint kept = kept_keys(first_query, first_key);
    if (MASK != ATTENTION_BAND) {
        if (kept != 0u)
            kept_tile = tile + 1u;
        barrier();
        if (kept_tile != tile + 1u)
            return;
    }
    compute_scores(first_query, first_key, kept);
    update_rows();
    add_values(first_key, min(end, first_key + TILE_KEYS));
}

void store_rows(uint b, uint h, uint first_query)
{
    barrier();
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        slice[row_of(r) * 4u + (tx >> 2)][tx & 3u] = sums[r];
    barrier();
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        uint i = first_query + row_of(r);
        vec4 s = vec4(0.0);
        for (uint x = 0; x < 4u; x++)
            s += slice[row_of(r) * 4u + x];
        float l = (s.x + s.y) + (s.z + s.w);
        uint base = args.y_offset + b * args.y_batch + h * args.y_head + i * args.y_seq;
        [[unroll]] for (uint c = 0; c < COLUMN_QUADS; c++)
            [[unroll]] for (uint e = 0; e < 4u; e++) {
                uint d = (c * 16u + tx) * 4u + e;
                if (i < args.queries && d < args.width)
                    y[base + d] = normalized(outputs[r * COLUMN_QUADS + c][e], l);
            }
        if (tx == 0u && i < args.queries && args.lse_offset != ATTENTION_NO_LSE)
            y[args.lse_offset + (b * args.heads + h) * args.queries + i] = log_sum(maxima[r], l);
    }
}

void main()
{
    uint tiles = (args.queries + TILE_QUERIES - 1u) / TILE_QUERIES;
    uint head = group_index() / tiles;
    uint b = head / args.heads, h = head % args.heads;
    if (b >= args.batch)
        return;
    lane = gl_LocalInvocationID.x;
    ty = lane / 16u;
    tx = lane % 16u;
    /* Last rows first: under a causal mask they have the most to do. */
    uint first_query = (tiles - 1u - group_index() % tiles) * TILE_QUERIES;
    q_base = args.q_offset + b * args.q_batch + h * args.q_head;
    k_base = args.k_offset + b * args.k_batch + h / args.group * args.k_head;
    v_base = args.v_offset + b * args.v_batch + h / args.group * args.v_head;
    mask_base = args.mask_offset + b * args.mask_batch + h * args.mask_head;
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        maxima[r] = NEGATIVE_INFINITY;
        sums[r] = 0.0;
    }
    [[unroll]] for (uint r = 0; r < ROWS * COLUMN_QUADS; r++)
        outputs[r] = vec4(0.0);
    if (lane == 0u) {
        unsafe_value = 0u;
        kept_tile = 0u;
    }
    barrier();
    uint end = band_end(min(first_query + TILE_QUERIES, args.queries) - 1u);
    for (uint tile = band_begin(first_query) / TILE_KEYS; tile * TILE_KEYS < end; tile++)
        process_tile(first_query, tile, end);
    store_rows(b, h, first_query);
}
