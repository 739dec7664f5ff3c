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

#include "attention/attention_forward.glsl"
#include "attention/attention_packed.glsl"

const uint PASS = GROUPS * KEYS;
const uint THREADS = GROUPS * LANES;
const uint TEAM = THREADS / ROWS > 16 ? 16 : THREADS / ROWS; /* invocations for a row: quads */
const uint PARTS = PASS * ROWS * LANES / 4; /* quads of partial products */
const uint BATCH = ROWS * QUADS < KEYS * ROWS / 4 ? ROWS * QUADS
                   : KEYS * ROWS > 4              ? KEYS * ROWS / 4
                                                  : 1; /* quads of a lane that fit */
const uint ROW_QUADS = QUADS * LANES; /* room for a row's */
/* Joining: invocations that take a quad each, and shares of the chunks for it. */
const uint WORKERS = ROWS * ROW_QUADS < THREADS ? ROWS * ROW_QUADS : THREADS;
const uint SHARES = THREADS / WORKERS;
const uint NO_ROW = 0xffffffffu;

shared float scores[ROWS * CHUNK]; /* key-major */
shared vec4 scratch[PARTS > THREADS ? PARTS : THREADS];
shared float row_maxima[ROWS], row_sums[ROWS];
shared uint row_query[ROWS]; /* the query, or NO_ROW beyond the last */
shared uint row_q[ROWS], row_mask[ROWS], row_y[ROWS]; /* where a row begins */
shared uint row_index[ROWS];                          /* its number */
shared vec2 share_statistics[JOIN && SHARES > 1 ? THREADS : 1];
shared bool last_arrival; /* whether all other chunks are done */
shared uint kept_end; /* behind the last key of the chunk that the mask keeps for some row */

uint lane, column, group; /* column: the first quad; group: which key of a round */
uint b, kv_head, first_row, chunk, first_key, limit;
uint first_chunk, last_chunk; /* those whose results are joined, and one past them */
bool split;                   /* whether there are several: results are partial */
uint k_row, v_row;            /* where the kv head's rows begin */
vec4 next[KEYS * QUADS];
vec4 held[ROWS * QUADS]; /* this lane's columns: of the queries first, of the outputs later */

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
    row_mask[r] = mask_row(b, h);
    row_index[r] = (b * args.heads + h) * args.queries + i;
    row_y[r] = result_row(b, h) + i * result_step;
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

/* How many of a quad a row has. */
uint columns_of(uint quad)
{
    return min(quad * 4u + 4u, args.width) - min(quad * 4u, args.width);
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

/* Key `x` of this group in the pass that starts at `base`; the last one again behind it. */
uint key_at(uint base, uint x)
{
    return first_key + min(base + x * GROUPS + group, limit - 1u);
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
                exists ? load_q(row_q[r], n * LANES + column) * factor : vec4(0.0);
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
    [[unroll]] for (uint x = 0; x < KEYS; x++)
        [[unroll]] for (uint n = 0; n < QUADS; n++)
            next[x * QUADS + n] = load_v(v_row + key_at(base, x) * args.v_seq, n * LANES + column);
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
    [[dont_unroll]] for (uint e = lane; e < PASS * ROWS && base + e / ROWS < limit;
                         e += THREADS) {
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
#ifdef APPEND
        replace_new(base, NEW_KEYS);
#endif
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

/* Each row has a team of invocations. What they have of one value each lies in place 0 or 1 of
 * scratch, after a barrier; it is read before the next one of the same place. */
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

/* Keeps the row's maximum and the sum of what its team has. Both may be read after the next
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

/* Scores become weights. */
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

/* o / l, or the partial o, at quad `quad` of row r. */
void store_quad(uint r, uint quad, bool part, float l, vec4 o)
{
    uint columns = columns_of(quad);
    if (row_query[r] == NO_ROW || columns == 0u)
        return;
    if (part) {
        partial4[partial_row(row_index[r], chunk) / 4u + quad] = o;
        return;
    }
    o = floatBitsToUint(l) == 0u ? vec4(0.0) : o * (1.0 / l); /* none for a row without keys */
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

/* A dropped key adds nothing even where its v is NaN. */
void add_values()
{
    [[dont_unroll]] for (uint base = 0; base < limit; base += PASS) {
#ifdef APPEND
        replace_new(base, NEW_VALUES);
#endif
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
    [[dont_unroll]] for (uint e = lane; e < BATCH * LANES && first + e / LANES < ROWS * QUADS;
                         e += THREADS) {
        uint item = first + e / LANES, r = item / QUADS;
        vec4 o = vec4(0.0);
        for (uint x = 0; x < GROUPS; x++)
            o += scratch[(e / LANES * GROUPS + x) * LANES + e % LANES];
        store_quad(r, item % QUADS * LANES + e % LANES, split, row_sums[r], o);
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
    for (uint e = lane; e < ROWS * ROW_QUADS && !split; e += THREADS)
        store_quad(e / ROW_QUADS, e % ROW_QUADS, false, 0.0, vec4(0.0));
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

/* A row's chunks so far: o counts only where l is not 0. */
struct joined_quad {
    vec4 o;
    float m, l;
};

/* A part's sums are at its own maximum, m; at most the sum's. */
void join_part(inout joined_quad q, float m, float l, vec4 o)
{
    float p = weight_of(m, q.m);
    q.l += l * p;
    if (floatBitsToUint(p) != 0u)
        q.o += p * o;
}
void raise_maximum(inout joined_quad q, float m)
{
    joined_quad past = q;
    q = joined_quad(vec4(0.0), larger(q.m, m), 0.0);
    join_part(q, past.m, past.l, past.o);
}

/* Every SHARES-th chunk from `first` on: STEP of them are under way at a time. */
joined_quad join_share(uint row, uint quad, uint first)
{
    const uint STEP = 4u;
    joined_quad q = joined_quad(vec4(0.0), NEGATIVE_INFINITY, 0.0);
    [[dont_unroll]] for (; first < last_chunk; first += STEP * SHARES) {
        float m[STEP], l[STEP], most = NEGATIVE_INFINITY;
        vec4 o[STEP];
        [[unroll]] for (uint x = 0; x < STEP; x++) {
            uint c = min(first + x * SHARES, last_chunk - 1u), at = statistics_at(row, c);
            m[x] = partial[at];
            l[x] = partial[at + 1u];
            o[x] = partial4[partial_row(row, c) / 4u + quad];
        }
        [[unroll]] for (uint x = 0; x < STEP; x++) {
            if (first + x * SHARES >= last_chunk)
                m[x] = NEGATIVE_INFINITY;
            most = larger(most, m[x]);
        }
        raise_maximum(q, most);
        [[unroll]] for (uint x = 0; x < STEP; x++)
            join_part(q, m[x], l[x], o[x]);
    }
    return q;
}

/* The other shares' of this quad. */
void join_shares(inout joined_quad q)
{
    scratch[lane] = q.o;
    share_statistics[lane] = vec2(q.m, q.l);
    barrier();
    [[dont_unroll]] for (uint other = lane + WORKERS; other < THREADS; other += WORKERS) {
        raise_maximum(q, share_statistics[other].x);
        join_part(q, share_statistics[other].x, share_statistics[other].y, scratch[other]);
    }
}

/* The chunks of all rows, by quads. */
void join_chunks()
{
    [[dont_unroll]] for (uint first = 0u; first < ROWS * ROW_QUADS; first += WORKERS) {
        uint r = (first + lane % WORKERS) / ROW_QUADS, quad = (first + lane) % ROW_QUADS;
        uint last_quad = (args.width - 1u) / 4u, share = lane / WORKERS;
        joined_quad q = join_share(row_index[r], min(quad, last_quad), first_chunk + share);
        if (SHARES > 1u)
            join_shares(q);
        if (lane >= WORKERS || row_query[r] == NO_ROW)
            continue;
        store_quad(r, quad, false, q.l, q.o);
        if (quad == 0u && args.lse_offset != ATTENTION_NO_LSE)
            y[args.lse_offset + row_index[r]] = log_sum(q.m, q.l);
    }
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
    if (limit == 0u) {
        store_empty();
    } else {
        process_chunk();
        store_held();
    }
    if (lane < ROWS)
        store_row_statistics(lane);
    if (JOIN && split && is_last(item))
        join_chunks();
}
