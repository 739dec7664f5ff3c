/*
 * Attention for few queries: a workgroup takes CHUNK keys of one kv head for up to ROWS query rows
 * (the queries of all heads that share the kv head), so that K and V are read once. LANES
 * invocations share a key, each with every LANES-th quad of columns; quads are loaded whole where
 * offsets, strides and width are multiples of 4. Each of these groups of lanes reads KEYS keys at a
 * time, and reads the next ones before it waits for the others.
 *
 * With one chunk it writes the result; with more, partial results, which attention_merge joins, or
 * with JOIN the workgroup that stores the last of its rows'. A chunk without keys has l = 0. Keys
 * behind the last one that the band or the mask keeps get no weight.
 *
 * k and v may be packed f16.
 *
 * With APPEND defined it is attention_step's; it has q, k, v, mask, y, partial and arrivals.
 */
#include "args/attention.h"

layout(constant_id = 1) const uint MASK = ATTENTION_BAND;
layout(constant_id = 2) const bool SOFTCAP = false;
layout(constant_id = 3) const bool WHOLE = false; /* quads are aligned */
layout(constant_id = 4) const uint ROWS = 4;    /* a power of two; at most the local size */
layout(constant_id = 5) const uint LANES = 8;   /* 4, 8, 16 or 32; at most the local size */
layout(constant_id = 6) const uint QUADS = 2;   /* of a lane: width <= 4 * LANES * QUADS */
layout(constant_id = 7) const uint KEYS = 1;    /* of a group of lanes at a time */
layout(constant_id = 8) const uint CHUNK = 256; /* a multiple of the keys of all groups */
layout(constant_id = 9) const uint GROUPS = 16; /* of lanes: the local size / LANES */
layout(constant_id = 10) const bool JOIN = false; /* chunks are joined in the same dispatch */

#include "attention/attention.glsl"
#include "attention/attention_packed.glsl"

const uint PASS = GROUPS * KEYS;
const uint THREADS = GROUPS * LANES;
const uint PARTS = PASS * ROWS * LANES / 4; /* quads of partial products */
const uint BATCH = ROWS * QUADS < KEYS * ROWS / 4 ? ROWS * QUADS
                   : KEYS * ROWS > 4              ? KEYS * ROWS / 4
                                                  : 1; /* quads of a lane that fit */
const uint NO_ROW = 0xffffffffu;

shared float scores[ROWS * CHUNK]; /* key-major */
shared vec4 scratch[PARTS > THREADS ? PARTS : THREADS];
shared float row_maxima[ROWS], row_sums[ROWS];
shared uint row_query[ROWS]; /* the query, or NO_ROW beyond the last */
shared uint row_q[ROWS], row_mask[ROWS], row_y[ROWS]; /* where a row begins */
shared uint row_index[ROWS];                          /* its number */
shared bool last_arrival; /* whether all other chunks are done */
shared uint kept_end; /* behind the last key of the chunk that the mask keeps for some row */

uint lane, column, group, team; /* column: the first quad; group: which key of a round */
uint b, kv_head, first_row, chunk, first_key, limit;
uint first_chunk, last_chunk; /* those whose results are joined, and one past them */
bool split;                   /* whether there are several: results are partial */
uint kv_row;                  /* where the kv head's rows begin, in both k and v */
vec4 next[KEYS * QUADS];
vec4 held[ROWS * QUADS]; /* this lane's columns: of the queries first, of the outputs later */

/* An attention's y lies as its q does, a step's in whole rows. */
uint y_row(uint h, uint i)
{
#ifdef APPEND
    return args.y_offset + ((b * args.queries + i) * args.heads + h) * args.width;
#else
    return args.y_offset + b * args.q_batch + h * args.q_head + i * args.q_seq;
#endif
}

/* Row `first_row + r` of the kv head is query i of head h; beyond the last the first again.
 * Division is slow on some devices: once a row. */
void find_row(uint r)
{
    bool exists = first_row + r < args.group * args.queries;
    uint row = exists ? first_row + r : first_row;
    uint h = row / args.queries, i = row - h * args.queries;
    h += kv_head * args.group;
    row_query[r] = exists ? i : NO_ROW;
    row_q[r] = args.q_offset + b * args.q_batch + h * args.q_head + i * args.q_seq;
    row_mask[r] = args.mask_offset + b * args.mask_batch + h * args.mask_head;
    row_index[r] = (b * args.heads + h) * args.queries + i;
    row_y[r] = split ? partial_row(row_index[r], chunk)
                     : y_row(h, i);
    row_maxima[r] = NEGATIVE_INFINITY;
    row_sums[r] = 0.0;
}

/* How many keys of the chunk to look at: none beyond the band of the last query, none at all where
 * the chunk ends before the band of the first. */
uint band_limit()
{
    uint end = min(first_key + CHUNK, band_end(args.queries - 1u));
    return end > max(first_key, band_begin(0u)) ? end - first_key : 0u;
}

/* Starts every score with its mask term. Returns how many keys to look at: none beyond the last one
 * that a row keeps. */
uint start_scores()
{
    uint end = 0u;
    if (lane == 0u)
        kept_end = 0u;
    barrier();
    for (uint e = lane; e < ROWS * CHUNK; e += THREADS) {
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

/* Columns 4 * quad .. + 3 of a row; 0 beyond the width. */
#define DEFINE_LOAD(name, words, quads, held, packed)                                              \
    vec4 name(uint row, uint quad)                                                                 \
    {                                                                                              \
        uint d = quad * 4u;                                                                        \
        if (held == ATTENTION_HALVES)                                                              \
            return d < args.width ? packed(row + d) : vec4(0.0);                                   \
        if (WHOLE)                                                                                 \
            return d < args.width ? quads[(row + d) >> 2] : vec4(0.0);                             \
        return vec4(d < args.width ? words[row + d] : 0.0,                                         \
                    d + 1u < args.width ? words[row + d + 1u] : 0.0,                               \
                    d + 2u < args.width ? words[row + d + 2u] : 0.0,                               \
                    d + 3u < args.width ? words[row + d + 3u] : 0.0);                              \
    }
#ifndef APPEND
DEFINE_LOAD(load_q, q, q4, ATTENTION_WORDS, packed_k)
#endif
DEFINE_LOAD(load_k, k, k4, K_HELD, packed_k)
DEFINE_LOAD(load_v, v, v4, V_HELD, packed_v)

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
                exists ? load_q(row_q[r], n * LANES + column) * factor : vec4(0.0);
    }
}
#endif

/* Key `x` of this group in the pass that starts at `base`; the last one again behind it. */
uint key_at(uint base, uint x)
{
    return first_key + min(base + x * GROUPS + group, limit - 1u);
}

/* New rows are read from where they come from, but after all others are under way, which a branch
 * for each would prevent. In a pass without any, none is looked for. */
#ifdef APPEND
#define REPLACE_NEW(base, new_quad)                                                                \
    if (first_key + min((base) + PASS, limit) >= reach)                                            \
        [[unroll]] for (uint x = 0; x < KEYS; x++) {                                               \
            uint row = new_row_of(key_at(base, x));                                                \
            if (row < args.queries)                                                                \
                [[unroll]] for (uint n = 0; n < QUADS; n++)                                        \
                    next[x * QUADS + n] = new_quad(row, n * LANES + column);                       \
        }
#else
#define REPLACE_NEW(base, new_quad)
#endif
void fetch_keys(uint base)
{
    [[unroll]] for (uint x = 0; x < KEYS; x++)
        [[unroll]] for (uint n = 0; n < QUADS; n++)
            next[x * QUADS + n] = load_k(args.k_offset + kv_row + key_at(base, x) * args.kv_seq,
                                         n * LANES + column);
    REPLACE_NEW(base, new_key)
}
void fetch_values(uint base)
{
    [[unroll]] for (uint x = 0; x < KEYS; x++)
        [[unroll]] for (uint n = 0; n < QUADS; n++)
            next[x * QUADS + n] = load_v(args.v_offset + kv_row + key_at(base, x) * args.kv_seq,
                                         n * LANES + column);
    REPLACE_NEW(base, new_value)
}

/* Word [key * ROWS + row][lane] of scratch = this lane's columns of q k. */
void multiply_keys()
{
    [[unroll]] for (uint x = 0; x < KEYS; x++)
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            float product = 0.0;
            [[unroll]] for (uint n = 0; n < QUADS; n++)
                product += dot(held[r * QUADS + n], next[x * QUADS + n]);
            scratch[(((x * GROUPS + group) * ROWS + r) * LANES + column) >> 2][column & 3u] =
                product;
        }
}

void finish_scores(uint base)
{
    for (uint e = lane; e < PASS * ROWS && base + e / ROWS < limit; e += THREADS) {
        vec4 sum = vec4(0.0);
        for (uint x = 0; x < LANES / 4u; x++) /* turned, so that neighbours read different banks */
            sum += scratch[e * (LANES / 4u) + ((x + (e * LANES >> 5)) & (LANES / 4u - 1u))];
        float score = capped_score((sum.x + sum.y) + (sum.z + sum.w)), term;
        uint i = row_query[e % ROWS];
        if (MASKED)
            term = scores[base * ROWS + e];
        else
            term = i == NO_ROW ? NEGATIVE_INFINITY
                               : mask_term(0u, i, first_key + base + e / ROWS);
        scores[base * ROWS + e] = is_dropped(term) ? term : score + term * LOG2_E;
    }
}

void compute_scores()
{
    hold_queries();
    [[dont_unroll]] for (uint base = 0; base < limit; base += PASS) {
        multiply_keys();
        if (base + PASS < limit)
            fetch_keys(base + PASS);
        else
            fetch_values(0u);
        barrier();
        finish_scores(base);
        barrier();
    }
}

/* Each row has a team of invocations. The largest m of the team of row r. */
float team_maximum(uint r, float m)
{
    scratch[lane].x = m;
    barrier();
    for (uint x = 0; x < team && r < ROWS; x++)
        m = larger(m, scratch[r * team + x].x);
    return m;
}

/* Keeps the row's maximum and the sum of what its team has. Both may be read after the next
 * barrier. */
void keep_statistics(uint r, float m, float l)
{
    scratch[lane].y = l;
    barrier();
    if (lane % team != 0u || r >= ROWS)
        return;
    l = 0.0;
    for (uint x = 0; x < team; x++)
        l += scratch[r * team + x].y;
    row_maxima[r] = m;
    row_sums[r] = l;
}

/* Scores become weights. */
void weigh()
{
    uint r = lane / team, t = lane % team, last = limit * ROWS;
    float m = NEGATIVE_INFINITY, l = 0.0;
    for (uint e = t * ROWS + r; e < last && r < ROWS; e += team * ROWS)
        m = larger(m, scores[e]);
    m = team_maximum(r, m);
    for (uint e = t * ROWS + r; e < last && r < ROWS; e += team * ROWS) {
        float p = weight_of(scores[e], m);
        scores[e] = p;
        l += p;
    }
    keep_statistics(r, m, l);
}

void store_output(uint r, uint d, float o)
{
    if (row_query[r] == NO_ROW || d >= args.width)
        return;
    if (split)
        partial[row_y[r] + d] = o;
    else
        y[row_y[r] + d] = normalized(o, row_sums[r]);
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

/* A dropped key adds nothing even where its v is NaN. */
void add_values()
{
    [[dont_unroll]] for (uint base = 0; base < limit; base += PASS) {
        vec4 values[KEYS * QUADS];
        [[unroll]] for (uint x = 0; x < KEYS * QUADS; x++)
            values[x] = next[x];
        if (base + PASS < limit)
            fetch_values(base + PASS);
        [[unroll]] for (uint x = 0; x < KEYS; x++) {
            uint key = base + x * GROUPS + group;
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                float p = key < limit ? scores[key * ROWS + r] : 0.0;
                if (floatBitsToUint(p) != 0u)
                    [[unroll]] for (uint n = 0; n < QUADS; n++)
                        held[r * QUADS + n] += p * values[x * QUADS + n];
            }
        }
    }
}

/* Adds up what the groups hold of quads first .. first + BATCH - 1 and stores it. */
void store_batch(uint first)
{
    for (uint e = lane; e < BATCH * LANES && first + e / LANES < ROWS * QUADS; e += THREADS) {
        uint item = first + e / LANES, r = item / QUADS;
        vec4 o = vec4(0.0);
        for (uint x = 0; x < GROUPS; x++)
            o += scratch[(e / LANES * GROUPS + x) * LANES + e % LANES];
        for (uint c = 0; c < 4u; c++)
            store_output(r, (item % QUADS * LANES + e % LANES) * 4u + c, o[c]);
    }
}

void store_held()
{
    [[unroll]] for (uint first = 0; first < ROWS * QUADS; first += BATCH) {
        barrier();
        [[unroll]] for (uint x = 0; x < BATCH; x++)
            if (first + x < ROWS * QUADS)
                scratch[(x * GROUPS + group) * LANES + column] = held[first + x];
        barrier();
        store_batch(first);
    }
}

void clear_held()
{
    [[unroll]] for (uint n = 0; n < ROWS * QUADS; n++)
        held[n] = vec4(0.0);
}

/* Without keys: zeros, or no more than l = 0 where chunks are joined. */
void store_empty()
{
    for (uint e = lane; e < ROWS * args.width && !split; e += THREADS)
        store_output(e / args.width, e % args.width, 0.0);
}

void process_chunk()
{
    compute_scores();
    weigh();
    barrier();
    clear_held();
    add_values();
}

/* ---- Joining ---- */

/* Whether the other chunks of these rows have been stored. No workgroup waits for another: the one
 * that stores the last finds all others' results, and sets the count back for the next dispatch. */
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

/* Maximum and sum of the chunks of a row, which a team takes in turns: four each are under way at a
 * time. */
void join_statistics()
{
    const uint STEP = 4u;
    uint r = lane / team, row = row_index[min(r, ROWS - 1u)];
    float m = NEGATIVE_INFINITY, l = 0.0;
    for (uint first = first_chunk + lane % team; first < last_chunk; first += STEP * team) {
        float part_m[STEP], part_l[STEP], past = m;
        [[unroll]] for (uint x = 0; x < STEP; x++) {
            uint at = statistics_at(row, min(first + x * team, last_chunk - 1u));
            part_m[x] = partial[at];
            part_l[x] = first + x * team < last_chunk ? partial[at + 1u] : 0.0;
        }
        [[unroll]] for (uint x = 0; x < STEP; x++)
            m = larger(m, part_m[x]);
        l *= weight_of(past, m);
        [[unroll]] for (uint x = 0; x < STEP; x++)
            l += part_l[x] * weight_of(part_m[x], m);
    }
    float largest = team_maximum(r, m);
    keep_statistics(r, largest, l * weight_of(m, largest));
}

/* The groups of lanes take the chunks in turns. A chunk without keys has no output. */
void add_chunks()
{
    uint last_quad = (args.width - 1u) / 4u;
    for (uint c = first_chunk + group; c < last_chunk; c += GROUPS) {
        float maxima[ROWS];
        vec4 parts[ROWS * QUADS];
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            uint first = partial_row(row_index[r], c) / 4u;
            maxima[r] = partial[statistics_at(row_index[r], c)];
            [[unroll]] for (uint n = 0; n < QUADS; n++)
                parts[r * QUADS + n] = partial4[first + min(n * LANES + column, last_quad)];
        }
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            float p = weight_of(maxima[r], row_maxima[r]);
            if (floatBitsToUint(p) != 0u)
                [[unroll]] for (uint n = 0; n < QUADS; n++)
                    held[r * QUADS + n] += p * parts[r * QUADS + n];
        }
    }
}

void join_chunks()
{
    split = false;
    if (lane < ROWS)
        find_row(lane);
    barrier();
    join_statistics();
    barrier();
    clear_held();
    add_chunks();
}

/* Where the band leaves out chunks, only the others are joined; one at least, which says that there
 * are no keys. Without JOIN a merge follows, which reads them all. */
void find_chunks(uint chunks)
{
    first_chunk = 0u;
    last_chunk = chunks;
    split = args.chunk != 0u;
    if (!JOIN || MASKED)
        return;
    uint end = (band_end(args.queries - 1u) + CHUNK - 1u) / CHUNK;
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
    uint chunks = chunk_count(), kv_heads = args.heads / args.group;
    uint blocks = (args.group * args.queries + ROWS - 1u) / ROWS;
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
    team = min(16u, THREADS / ROWS);
    kv_row = entry * args.kv_batch + kv_head * args.kv_head;
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
    if (first_row == 0u)
        append_rows();
#endif
    if (limit == 0u)
        store_empty();
    else
        process_chunk();
    /* Once, and for the last chunk of several a second time. */
    [[dont_unroll]] for (bool joined = false;; joined = true) {
        if (limit != 0u || joined)
            store_held();
        if (lane < ROWS)
            store_row_statistics(lane);
        if (!JOIN || !split || !is_last(item))
            break;
        join_chunks();
    }
}
