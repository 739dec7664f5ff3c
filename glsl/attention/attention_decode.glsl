/*
 * Attention for few queries. A workgroup takes CHUNK keys of one kv head and up to ROWS query rows.
 * The rows are the queries of all heads that share the kv head, so K and V are read only once.
 * LANES invocations share a key; each takes every LANES-th quad of columns. If offsets, strides and
 * width are multiples of 4, quads are loaded as vec4s. Each group of lanes reads KEYS keys at a
 * time, and loads the next ones before it waits at a barrier.
 *
 * With one chunk, the kernel writes the result. With several, it writes partial results.
 * attention_merge joins them, or with JOIN the workgroup that stores the last chunk of its rows
 * joins them. A chunk without keys has l = 0. Keys past the last one that the band or the mask
 * keeps get no weight.
 *
 * k and v may be packed f16.
 *
 * With APPEND defined, this is the body of attention_step. The includer declares q, k, v, mask, y,
 * partial and arrivals.
 */
#include "args/attention.h"

layout(constant_id = 1) const uint MASK = ATTENTION_BAND;
layout(constant_id = 2) const bool SOFTCAP = false;
layout(constant_id = 3) const bool WHOLE = false; /* quads are aligned */
layout(constant_id = 4) const uint ROWS = 4;    /* a power of two; at most the local size */
layout(constant_id = 5) const uint LANES = 8;   /* 4, 8, 16 or 32; at most the local size */
layout(constant_id = 6) const uint QUADS = 2;   /* quads of a lane: width <= 4 * LANES * QUADS */
layout(constant_id = 7) const uint KEYS = 1;    /* keys of a group of lanes at a time */
layout(constant_id = 8) const uint CHUNK = 256; /* a multiple of PASS, the keys of all groups */
layout(constant_id = 9) const uint GROUPS = 16; /* groups of lanes: the local size / LANES */
layout(constant_id = 10) const bool JOIN = false; /* join the chunks in the same dispatch */
/* The shape, if it is compiled in; 0: args has it. Compiled in, the code is short. This helps,
 * because code that alternates with large kernels is fetched again each time. */
layout(constant_id = 19) const uint WIDTH = 0;
layout(constant_id = 20) const uint QUERIES = 0;
layout(constant_id = 21) const uint SHARERS = 0; /* query heads of a kv head */
layout(constant_id = 22) const uint KV_HEADS = 0;

#define CHUNK_KEYS CHUNK
#include "attention/attention_forward.glsl"
#include "attention/attention_packed.glsl"

const uint PASS = GROUPS * KEYS;
const bool ONE_PASS = CHUNK == PASS;
const uint THREADS = GROUPS * LANES;
const uint TEAM = THREADS / ROWS > 16 ? 16 : THREADS / ROWS; /* invocations of a row; whole quads */
const uint PARTS = PASS * ROWS * LANES / 4; /* quads of partial products */
const uint ROW_QUADS = QUADS * LANES; /* room for the quads of a row */
const bool FULL = WIDTH == 4 * ROW_QUADS;
/* For values, a lane loads the same number of quads, but from more keys and fewer columns. So it
 * has fewer sums for each row. */
const uint WIDER = QUADS % 2 == 0 && LANES < 32 ? 2 : 1;
const uint VALUE_LANES = LANES * WIDER, VALUE_GROUPS = GROUPS / WIDER;
const uint VALUE_QUADS = QUADS / WIDER, VALUE_KEYS = KEYS * WIDER;
const uint HELD = ROWS * VALUE_QUADS;
const uint BATCH = HELD < KEYS * ROWS / 4 ? HELD
                   : KEYS * ROWS > 4      ? KEYS * ROWS / 4
                                          : 1; /* quads of a lane that fit into PARTS */
/* To join chunks: the invocations that take a quad each, and the shares of the chunks for each
 * quad. */
const uint WORKERS = ROWS * ROW_QUADS < THREADS ? ROWS * ROW_QUADS : THREADS;
const uint SHARES = THREADS / WORKERS;
const uint BLOCK = ATTENTION_PAIRS / ROWS; /* chunks at a time */
const uint NO_ROW = 0xffffffffu;

shared float scores[ROWS * CHUNK]; /* key-major */
shared vec4 scratch[PARTS > THREADS ? PARTS : THREADS];
shared vec2 pairs[JOIN ? ATTENTION_PAIRS : 1]; /* maximum and sum by chunk and row */
shared float row_maxima[ROWS], row_sums[ROWS];
shared uint row_query[ROWS]; /* the query; past the last row, NO_ROW */
shared uint row_q[ROWS], row_mask[ROWS], row_y[ROWS]; /* start of a row */
shared uint row_index[ROWS];                          /* number of a row */
shared bool last_arrival; /* all other chunks are done */
shared uint kept_end; /* one past the last key of the chunk that the mask keeps for any row */

uint width = WIDTH != 0u ? WIDTH : args.width;
uint queries = QUERIES != 0u ? QUERIES : args.queries;
uint sharers = SHARERS != 0u ? SHARERS : args.group;

uint lane, column, group; /* column: the first quad; group: which key of a round */
uint b, kv_head, first_row, chunk, first_key, limit;
uint first_chunk, last_chunk; /* chunks to join, and one past the last */
bool split;                   /* several chunks: results are partial */
uint k_row, v_row;            /* start of the kv head's rows */
/* Keys, then values, as raw words, because any arithmetic on a quad would wait for its load. */
uvec4 next[KEYS * QUADS];
vec4 held[ROWS * QUADS]; /* this lane's columns of the queries */
vec4 sums[HELD];         /* and of the outputs, by VALUE_LANES */

/* Row `first_row + r` of the kv head is query i of head h. Rows past the last one repeat the first.
 * Division is slow on some devices, so it is done once for each row. */
void find_row(uint r)
{
    bool exists = first_row + r < sharers * queries;
    uint row = exists ? first_row + r : first_row;
    uint h = row / queries, i = row - h * queries;
    h += kv_head * sharers;
    row_query[r] = exists ? i : NO_ROW;
    row_q[r] = args.q_offset + b * args.q_batch + h * args.q_head + i * args.q_seq;
    row_mask[r] = mask_row(b, h);
    row_index[r] = (b * args.heads + h) * queries + i;
    row_y[r] = result_row(b, h) + i * result_step;
    row_maxima[r] = NEGATIVE_INFINITY;
    row_sums[r] = 0.0;
}

/* The number of keys of the chunk to process. Keys past the band of the last query are left out. If
 * the chunk ends before the band of the first query, the number is 0. */
uint band_limit()
{
    uint end = min(first_key + CHUNK, band_end(queries - 1u));
    return end > max(first_key, band_begin(0u)) ? end - first_key : 0u;
}

/* Sets every score to its mask term. Returns the number of keys to process, up to the last one that
 * any row keeps. */
uint start_scores()
{
    uint end = 0u;
    if (lane == 0u)
        kept_end = 0u;
    barrier();
    [[dont_unroll]] for (uint e = lane; e < ROWS * CHUNK; e += THREADS) {
        uint i = row_query[e % ROWS], j = first_key + e / ROWS;
        float term = i == NO_ROW ? NEGATIVE_INFINITY : mask_term(row_mask[e % ROWS], i, j);
        scores[e] = term;
        if (!is_dropped(term))
            end = max(end, e / ROWS + 1u);
    }
    if (end > 0u)
        atomicMax(kept_end, end);
    barrier();
    return kept_end;
}

/* The number of columns of a quad that a row has. */
uint columns_of(uint quad)
{
    return FULL ? 4u : min(quad * 4u + 4u, width) - min(quad * 4u, width);
}

/* Loads columns 4 * quad .. + 3 of a row. Columns past the width are 0. */
#define DEFINE_LOAD(name, words, quads, storage, halves)                                           \
    uvec4 name(uint row, uint quad)                                                                \
    {                                                                                              \
        uint d = quad * 4u;                                                                        \
        if (storage == ATTENTION_HALVES)                                                           \
            return FULL || d < width ? uvec4(halves[(row + d) >> 2], 0u, 0u) : uvec4(0u);          \
        if (WHOLE)                                                                                 \
            return FULL || d < width ? floatBitsToUint(quads[(row + d) >> 2]) : uvec4(0u);         \
        return floatBitsToUint(vec4(d < width ? words[row + d] : 0.0,                              \
                                    d + 1u < width ? words[row + d + 1u] : 0.0,                    \
                                    d + 2u < width ? words[row + d + 2u] : 0.0,                    \
                                    d + 3u < width ? words[row + d + 3u] : 0.0));                  \
    }
#ifndef APPEND
DEFINE_LOAD(load_q, q, q4, ATTENTION_WORDS, k2)
#endif
DEFINE_LOAD(load_k, k, k4, K_HELD, k2)
DEFINE_LOAD(load_v, v, v4, V_HELD, v2)

/* Converts the words in memory to floats, and back. The latter is exact if the numbers fit the
 * storage. */
vec4 quad_from(uvec4 words, uint storage)
{
    return storage == ATTENTION_HALVES ? half_quad(words.xy) : uintBitsToFloat(words);
}
uvec4 words_of(vec4 quad, uint storage)
{
    return storage == ATTENTION_HALVES ? uvec4(half_words(quad), 0u, 0u) : floatBitsToUint(quad);
}

/* Key `x` of this group in the pass that starts at `base`; and the same for the lanes that share
 * values. Past the last key, the last one is repeated. */
uint key_at(uint base, uint x)
{
    return first_key + min(base + x * GROUPS + group, limit - 1u);
}
uint value_key(uint base, uint x)
{
    return base + x * VALUE_GROUPS + lane / VALUE_LANES;
}
uint value_key_at(uint base, uint x)
{
    return first_key + min(value_key(base, x), limit - 1u);
}
uint value_quad(uint n)
{
    return n * VALUE_LANES + lane % VALUE_LANES;
}

#ifdef APPEND
#include "attention/attention_new_rows.glsl"
#else
void hold_queries()
{
    float factor = score_factor();
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        bool exists = row_query[r] != NO_ROW;
        [[unroll]] for (uint n = 0; n < QUADS; n++)
            held[r * QUADS + n] =
                exists ? uintBitsToFloat(load_q(row_q[r], n * LANES + column)) * factor : vec4(0.0);
    }
}
#endif

void fetch_keys(uint base)
{
    [[unroll]] for (uint x = 0; x < KEYS; x++)
        [[unroll]] for (uint n = 0; n < QUADS; n++)
            next[x * QUADS + n] = load_k(k_row + key_at(base, x) * args.k_seq, n * LANES + column);
}
void fetch_values(uint base)
{
    [[unroll]] for (uint x = 0; x < VALUE_KEYS; x++)
        [[unroll]] for (uint n = 0; n < VALUE_QUADS; n++)
            next[x * VALUE_QUADS + n] =
                load_v(v_row + value_key_at(base, x) * args.v_seq, value_quad(n));
}

/* Word [key * ROWS + row][lane] of scratch = the product q k over this lane's columns. */
void multiply_keys()
{
    [[unroll]] for (uint x = 0; x < KEYS; x++) {
        vec4 key[QUADS];
        [[unroll]] for (uint n = 0; n < QUADS; n++)
            key[n] = quad_from(next[x * QUADS + n], K_HELD);
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            float product = 0.0;
            [[unroll]] for (uint n = 0; n < QUADS; n++)
                product += dot(held[r * QUADS + n], key[n]);
            scratch[(((x * GROUPS + group) * ROWS + r) * LANES + column) >> 2][column & 3u] =
                product;
        }
    }
}

void finish_scores(uint base)
{
    [[dont_unroll]] for (uint e = lane; e < PASS * ROWS && base + e / ROWS < limit;
                         e += THREADS) {
        vec4 sum = vec4(0.0);
        for (uint x = 0; x < LANES / 4u; x++) /* rotated, to avoid bank conflicts */
            sum += scratch[e * (LANES / 4u) + ((x + (e * LANES >> 5)) & (LANES / 4u - 1u))];
        float score = capped_score((sum.x + sum.y) + (sum.z + sum.w)), term;
        uint i = row_query[e % ROWS];
        if (MASKED)
            term = scores[base * ROWS + e];
        else
            term = i == NO_ROW ? NEGATIVE_INFINITY
                               : mask_term(0u, i, first_key + base + e / ROWS);
        scores[base * ROWS + e] = is_dropped(term) ? term : score + term;
    }
}

void compute_scores()
{
    uint base = 0u;
    hold_queries();
    [[dont_unroll]] do {
#ifdef APPEND
        replace_keys(base);
#endif
        multiply_keys();
        if (!ONE_PASS && base + PASS < limit)
            fetch_keys(base + PASS);
        else
            fetch_values(0u);
        barrier();
        finish_scores(base);
        barrier();
        base += PASS;
    } while (!ONE_PASS && base < limit);
}

/* Each row has a team of invocations. share_value() stores one value of each in place 0 or 1 of
 * scratch, and then waits at a barrier. The values must be read before the same place is used
 * again. */
void share_value(uint place, float value)
{
    scratch[place * (THREADS / 4) + (lane >> 2)][lane & 3u] = value;
    barrier();
}
vec4 shared_quad(uint place, uint r, uint x)
{
    return scratch[place * (THREADS / 4) + min(r, ROWS - 1u) * (TEAM / 4) + x];
}

float team_maximum(uint r, float m)
{
    share_value(0u, m);
    [[unroll]] for (uint x = 0; x < TEAM / 4; x++) {
        vec4 v = shared_quad(0u, r, x);
        m = larger(larger(larger(larger(m, v.x), v.y), v.z), v.w);
    }
    return m;
}

/* Stores the maximum of the row and the sum over its team. Both may be read after the next
 * barrier. */
void keep_statistics(uint r, float m, float l)
{
    vec4 sum = vec4(0.0);
    share_value(1u, l);
    if (lane % TEAM != 0u || r >= ROWS)
        return;
    [[unroll]] for (uint x = 0; x < TEAM / 4; x++)
        sum += shared_quad(1u, r, x);
    row_maxima[r] = m;
    row_sums[r] = (sum.x + sum.y) + (sum.z + sum.w);
}

/* Converts scores to weights. */
void weigh()
{
    uint r = lane / TEAM, t = lane % TEAM, last = limit * ROWS;
    float m = NEGATIVE_INFINITY, l = 0.0;
    [[dont_unroll]] for (uint e = t * ROWS + r; e < last && r < ROWS; e += TEAM * ROWS)
        m = larger(m, scores[e]);
    m = team_maximum(r, m);
    [[dont_unroll]] for (uint e = t * ROWS + r; e < last && r < ROWS; e += TEAM * ROWS) {
        float p = weight_of(scores[e], m);
        scores[e] = p;
        l += p;
    }
    keep_statistics(r, m, l);
}

/* Stores quad `quad` of row r: o / l, or o itself if it is partial. */
void store_quad(uint r, uint quad, bool part, float l, vec4 o)
{
    uint columns = columns_of(quad);
    if (row_query[r] == NO_ROW || columns == 0u)
        return;
    if (part) {
        partial4[partial_row(row_index[r], chunk) / 4u + quad] = o;
        return;
    }
    o = floatBitsToUint(l) == 0u ? vec4(0.0) : o * (1.0 / l); /* 0 for a row without keys */
    if (WHOLE) {
        y4[row_y[r] / 4u + quad] = o;
        return;
    }
    [[unroll]] for (uint c = 0; c < 4u; c++)
        if (c < columns)
            y[row_y[r] + quad * 4u + c] = o[c];
}

void store_row_statistics(uint r)
{
    if (row_query[r] == NO_ROW)
        return;
    if (split) {
        uint at = statistics_at(row_index[r], chunk);
        partial[at] = row_maxima[r];
        partial[at + 1u] = row_sums[r];
    } else if (args.lse_offset != ATTENTION_NO_LSE)
        y[args.lse_offset + row_index[r]] = log_sum(row_maxima[r], row_sums[r]);
}

/* A dropped key adds nothing, even if its v is NaN. */
void add_values()
{
    uint base = 0u;
    [[dont_unroll]] do {
#ifdef APPEND
        replace_values(base);
#endif
        vec4 values[KEYS * QUADS];
        [[unroll]] for (uint x = 0; x < KEYS * QUADS; x++)
            values[x] = quad_from(next[x], V_HELD);
        if (!ONE_PASS && base + PASS < limit)
            fetch_values(base + PASS);
        [[unroll]] for (uint x = 0; x < VALUE_KEYS; x++) {
            uint key = value_key(base, x);
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                float p = key < limit ? scores[key * ROWS + r] : 0.0;
                if (floatBitsToUint(p) != 0u)
                    [[unroll]] for (uint n = 0; n < VALUE_QUADS; n++)
                        sums[r * VALUE_QUADS + n] += p * values[x * VALUE_QUADS + n];
            }
        }
        base += PASS;
    } while (!ONE_PASS && base < limit);
}

/* Sums quads first .. first + BATCH - 1 over the groups, and stores them. */
void store_batch(uint first)
{
    [[dont_unroll]] for (uint e = lane; e < BATCH * VALUE_LANES && first + e / VALUE_LANES < HELD;
                         e += THREADS) {
        uint item = first + e / VALUE_LANES, r = item / VALUE_QUADS, at = e % VALUE_LANES;
        vec4 o = vec4(0.0);
        [[dont_unroll]] for (uint x = 0; x < VALUE_GROUPS; x++)
            o += scratch[(e / VALUE_LANES * VALUE_GROUPS + x) * VALUE_LANES + at];
        store_quad(r, item % VALUE_QUADS * VALUE_LANES + at, split, row_sums[r], o);
    }
}

void store_sums()
{
    [[unroll]] for (uint first = 0; first < HELD; first += BATCH) {
        barrier();
        [[unroll]] for (uint x = 0; x < BATCH; x++)
            if (first + x < HELD)
                scratch[x * THREADS + lane] = sums[first + x];
        barrier();
        store_batch(first);
    }
}

void process_chunk()
{
    compute_scores();
    weigh();
    barrier();
    add_values();
}

/* ---- Joining chunks ---- */

/* Have the other chunks of these rows been stored? No workgroup waits for another one. The one that
 * stores the last chunk sees the results of all others. It also resets the counter for the next
 * dispatch. */
bool is_last(uint item)
{
    memoryBarrierBuffer();
    barrier();
    if (lane == 0u) {
        bool last = atomicAdd(arrivals[item], 1u) + 1u == last_chunk - first_chunk;
        if (last)
            arrivals[item] = 0u;
        last_arrival = last;
    }
    barrier();
    memoryBarrierBuffer();
    return last_arrival;
}

/* Loads the maxima and sums of chunks begin .. end - 1 for all rows. There are at most BLOCK
 * chunks. */
void bring_pairs(uint begin, uint end)
{
    barrier();
    [[dont_unroll]] for (uint e = lane; e < (end - begin) * ROWS; e += THREADS) {
        uint at = statistics_at(row_index[e % ROWS], begin + e / ROWS);
        pairs[e] = vec2(partial[at], partial[at + 1u]);
    }
    barrier();
}

/* The chunks of a row joined so far. l and o cover only every SHARES-th chunk. */
struct joined_quad {
    vec4 o;
    float m, l;
};

/* Raises q.m to the maximum over the earlier and the new chunks, and rescales l and o to it. */
void raise_maximum(inout joined_quad q, uint r, uint chunks)
{
    float past = q.m;
    [[dont_unroll]] for (uint c = 0; c < chunks; c++)
        q.m = larger(q.m, pairs[c * ROWS + r].x);
    float p = weight_of(past, q.m);
    q.l *= p;
    q.o = floatBitsToUint(p) != 0u ? p * q.o : vec4(0.0);
}

/* STEP chunks are loaded at a time. A chunk's o is valid only if its l is not 0. */
void join_block(inout joined_quad q, uint r, uint quad, uint begin, uint end)
{
    const uint STEP = 4u;
    bring_pairs(begin, end);
    raise_maximum(q, r, end - begin);
    [[dont_unroll]] for (uint c = begin + lane / WORKERS; c < end; c += STEP * SHARES) {
        vec4 o[STEP];
        [[unroll]] for (uint x = 0; x < STEP; x++)
            o[x] =
                partial4[partial_row(row_index[r], min(c + x * SHARES, end - 1u)) / 4u + quad];
        [[unroll]] for (uint x = 0; x < STEP; x++) {
            uint at = c + x * SHARES - begin;
            vec2 pair = pairs[min(at, BLOCK - 1u) * ROWS + r];
            float p = at < end - begin ? weight_of(pair.x, q.m) : 0.0;
            if (at < end - begin)
                q.l += p * pair.y;
            if (floatBitsToUint(p) != 0u)
                q.o += p * o[x];
        }
    }
}

/* Adds the other shares of this quad. */
void join_shares(inout joined_quad q)
{
    barrier();
    scratch[lane] = q.o;
    pairs[lane].x = q.l;
    barrier();
    [[dont_unroll]] for (uint other = lane + WORKERS; other < THREADS; other += WORKERS) {
        q.o += scratch[other];
        q.l += pairs[other].x;
    }
}

/* Joins the chunks of all rows, by quads. */
void join_chunks()
{
    [[dont_unroll]] for (uint first = 0u; first < ROWS * ROW_QUADS; first += WORKERS) {
        uint r = (first + lane % WORKERS) / ROW_QUADS, quad = (first + lane) % ROW_QUADS;
        joined_quad q = joined_quad(vec4(0.0), NEGATIVE_INFINITY, 0.0);
        [[dont_unroll]] for (uint c = first_chunk; c < last_chunk; c += BLOCK)
            join_block(q, r, min(quad, (width - 1u) / 4u), c, min(c + BLOCK, last_chunk));
        if (SHARES > 1u)
            join_shares(q);
        if (lane >= WORKERS)
            continue;
        store_quad(r, quad, false, q.l, q.o);
        if (quad == 0u && row_query[r] != NO_ROW && args.lse_offset != ATTENTION_NO_LSE)
            y[args.lse_offset + row_index[r]] = log_sum(q.m, q.l);
    }
}

/* If the band leaves out chunks, only the others are joined. At least one is kept; it reports that
 * there are no keys. Without JOIN, a merge follows, which reads all chunks. */
void find_chunks(uint chunks)
{
    first_chunk = 0u;
    last_chunk = chunks;
    split = args.chunk != 0u;
    if (!JOIN || MASKED)
        return;
    uint end = (band_end(queries - 1u) + CHUNK - 1u) / CHUNK;
    first_chunk = band_begin(0u) / CHUNK;
    last_chunk = end;
    if (first_chunk >= end) {
        first_chunk = 0u;
        last_chunk = 1u;
    }
    split = last_chunk - first_chunk > 1u;
}

void main()
{
    uint chunks = chunk_count(), kv_heads = KV_HEADS != 0u ? KV_HEADS : args.heads / sharers;
    uint blocks = (sharers * queries + ROWS - 1u) / ROWS;
    uint item = group_index() / chunks;
    chunk = group_index() % chunks;
    first_key = chunk * CHUNK;
    first_row = item % blocks * ROWS;
    kv_head = item / blocks % kv_heads;
    b = item / blocks / kv_heads;
    if (b >= args.batch)
        return;
    find_reach(b);
    find_chunks(chunks);
    if (chunk < first_chunk || chunk >= last_chunk)
        return;
    lane = gl_LocalInvocationID.x;
    column = lane % LANES;
    group = lane / LANES;
    k_row = args.k_offset + entry * args.k_batch + kv_head * args.k_head;
    v_row = args.v_offset + entry * args.v_batch + kv_head * args.v_head;
    if (!MASKED) {
        limit = band_limit();
        if (limit != 0u)
            fetch_keys(0u);
    }
    if (lane < ROWS)
        find_row(lane);
    barrier();
    if (MASKED) {
        limit = min(start_scores(), args.keys - min(first_key, args.keys));
        if (limit != 0u)
            fetch_keys(0u);
    }
#ifdef APPEND
    bring_rows();
#endif
    [[unroll]] for (uint n = 0; n < HELD; n++)
        sums[n] = vec4(0.0);
    if (limit != 0u)
        process_chunk();
    store_sums();
    if (lane < ROWS)
        store_row_statistics(lane);
    if (JOIN && split && is_last(item))
        join_chunks();
}
