#version 450
/*
 * Attention for few queries: a workgroup takes CHUNK keys of one kv head for up to ROWS query rows
 * (the queries of all heads that share the kv head), so that K and V are read once. LANES
 * invocations share a key, each with every LANES-th quad of columns; quads are loaded whole where
 * offsets, strides and width are multiples of 4.
 *
 * With one chunk it writes the result; with more, (m, l, o[width]) of each row and chunk for
 * attention_merge, where a chunk without keys has l = 0 and no o. Keys behind the last one that the
 * band or the mask keeps are not read.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"

layout(constant_id = 1) const uint MASK = ATTENTION_BAND;
layout(constant_id = 2) const bool SOFTCAP = false;
layout(constant_id = 3) const uint ROWS = 4;    /* a power of two; at most the local size */
layout(constant_id = 4) const uint LANES = 8;   /* 8, 16 or 32; at most the local size */
layout(constant_id = 5) const uint QUADS = 2;   /* of a lane: width <= 4 * LANES * QUADS */
layout(constant_id = 6) const uint CHUNK = 256; /* CHUNK * ROWS <= 1024 */
layout(constant_id = 7) const bool WHOLE = false; /* quads are aligned */
layout(push_constant) uniform block { attention_args args; };
layout(set = 0, binding = 0) readonly buffer q_source { float q[]; };
layout(set = 0, binding = 1) readonly buffer k_source { float k[]; };
layout(set = 0, binding = 2) readonly buffer v_source { float v[]; };
layout(set = 0, binding = 0) readonly buffer q_quads { vec4 q4[]; };
layout(set = 0, binding = 1) readonly buffer k_quads { vec4 k4[]; };
layout(set = 0, binding = 2) readonly buffer v_quads { vec4 v4[]; };
layout(set = 0, binding = 3) readonly restrict buffer mask_source { float mask[]; };
layout(set = 0, binding = 4) writeonly restrict buffer target { float y[]; };

#include "attention.glsl"

const uint SCRATCH = 2048;
const uint PASS = SCRATCH / (LANES * ROWS); /* keys whose partial products fit */
const uint LARGEST_GROUP = 128;
const uint BATCH = 4; /* quads of a lane that fit: SCRATCH / (4 * LARGEST_GROUP) */
const uint NO_ROW = 0xffffffffu;

shared float scores[ROWS * CHUNK];
shared vec4 scratch[SCRATCH / 4];
shared float team_maxima[LARGEST_GROUP], team_sums[LARGEST_GROUP];
shared float row_maxima[ROWS], row_sums[ROWS];
shared uint row_query[ROWS]; /* the query, or NO_ROW beyond the last */
shared uint row_q[ROWS], row_mask[ROWS], row_y[ROWS], row_lse[ROWS]; /* where a row begins */
shared uint kept_end; /* behind the last key of the chunk that some row keeps */

uint lane, column, group, groups, team; /* column: the first quad; group: which key of a round */
uint b, kv_head, first_row, first_key, limit;
vec4 held[ROWS * QUADS]; /* this lane's columns: of the queries first, of the outputs later */

uint chunk_count()
{
    return (args.keys + CHUNK - 1u) / CHUNK;
}

/* Row `first_row + r` of the kv head is query i of head h. Division is slow on some devices:
 * once a row. */
void find_row(uint r)
{
    uint h = (first_row + r) / args.queries, i = (first_row + r) - h * args.queries;
    bool exists = h < args.group;
    h += kv_head * args.group;
    uint row = (b * args.heads + h) * args.queries + i;
    row_query[r] = exists ? i : NO_ROW;
    row_q[r] = args.q_offset + b * args.q_batch + h * args.q_head + i * args.q_seq;
    row_mask[r] = args.mask_offset + b * args.mask_batch + h * args.mask_head;
    row_y[r] = chunk_count() > 1u
                   ? (row * chunk_count() + first_key / CHUNK) * (args.width + 2u) + 2u
                   : args.y_offset + b * args.y_batch + h * args.y_head + i * args.y_seq;
    row_lse[r] = args.lse_offset + row;
    row_maxima[r] = NEGATIVE_INFINITY;
    row_sums[r] = 0.0;
}

/* Starts every score with its mask term. Returns how many keys to look at: none beyond the last one
 * that a row keeps. */
uint start_scores()
{
    uint end = 0u;
    if (lane == 0u)
        kept_end = 0u;
    if (lane < ROWS)
        find_row(lane);
    barrier();
    for (uint e = lane; e < ROWS * CHUNK; e += gl_WorkGroupSize.x) {
        uint r = e / CHUNK, j = first_key + e % CHUNK;
        uint i = row_query[r];
        float term = i == NO_ROW ? NEGATIVE_INFINITY : mask_term(row_mask[r], i, j);
        scores[e] = term;
        if (!is_dropped(term))
            end = max(end, e % CHUNK + 1u);
    }
    if (end > 0u)
        atomicMax(kept_end, end);
    barrier();
    return kept_end;
}

/* Columns 4 * quad .. + 3 of a row; 0 beyond the width. */
vec4 load_q(uint row, uint quad)
{
    uint d = quad * 4u;
    if (WHOLE)
        return d < args.width ? q4[(row + d) >> 2] : vec4(0.0);
    return vec4(d < args.width ? q[row + d] : 0.0, d + 1u < args.width ? q[row + d + 1u] : 0.0,
                d + 2u < args.width ? q[row + d + 2u] : 0.0,
                d + 3u < args.width ? q[row + d + 3u] : 0.0);
}
vec4 load_k(uint row, uint quad)
{
    uint d = quad * 4u;
    if (WHOLE)
        return d < args.width ? k4[(row + d) >> 2] : vec4(0.0);
    return vec4(d < args.width ? k[row + d] : 0.0, d + 1u < args.width ? k[row + d + 1u] : 0.0,
                d + 2u < args.width ? k[row + d + 2u] : 0.0,
                d + 3u < args.width ? k[row + d + 3u] : 0.0);
}
vec4 load_v(uint row, uint quad)
{
    uint d = quad * 4u;
    if (WHOLE)
        return d < args.width ? v4[(row + d) >> 2] : vec4(0.0);
    return vec4(d < args.width ? v[row + d] : 0.0, d + 1u < args.width ? v[row + d + 1u] : 0.0,
                d + 2u < args.width ? v[row + d + 2u] : 0.0,
                d + 3u < args.width ? v[row + d + 3u] : 0.0);
}

/* Word [key * ROWS + row][lane] of scratch = this lane's columns of q k. */
void multiply_keys(uint base)
{
    for (uint x = group; x < PASS && base + x < limit; x += groups) {
        uint row = args.k_offset + b * args.k_batch + kv_head * args.k_head +
                   (first_key + base + x) * args.k_seq;
        float products[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++)
            products[r] = 0.0;
        [[unroll]] for (uint n = 0; n < QUADS; n++) {
            vec4 key = load_k(row, n * LANES + column);
            [[unroll]] for (uint r = 0; r < ROWS; r++)
                products[r] += dot(held[r * QUADS + n], key);
        }
        [[unroll]] for (uint r = 0; r < ROWS; r++)
            scratch[((x * ROWS + r) * LANES + column) >> 2][column & 3u] = products[r];
    }
}

void finish_scores(uint base)
{
    for (uint e = lane; e < PASS * ROWS && base + e / ROWS < limit; e += gl_WorkGroupSize.x) {
        vec4 sum = vec4(0.0);
        for (uint x = 0; x < LANES / 4u; x++) /* turned, so that neighbours read different banks */
            sum += scratch[e * (LANES / 4u) + ((x + (e * LANES >> 5)) & (LANES / 4u - 1u))];
        uint at = e % ROWS * CHUNK + base + e / ROWS;
        if (!is_dropped(scores[at]))
            scores[at] = finish_score((sum.x + sum.y) + (sum.z + sum.w), scores[at]);
    }
}

void compute_scores()
{
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        bool exists = row_query[r] != NO_ROW;
        [[unroll]] for (uint n = 0; n < QUADS; n++)
            held[r * QUADS + n] = exists ? load_q(row_q[r], n * LANES + column) : vec4(0.0);
    }
    for (uint base = 0; base < limit; base += PASS) {
        multiply_keys(base);
        barrier();
        finish_scores(base);
        barrier();
    }
}

/* Scores become weights. Each row has a team of invocations. Its sum may be read after the next
 * barrier. */
void weigh()
{
    uint r = lane / team, t = lane % team;
    float m = NEGATIVE_INFINITY, l = 0.0;
    for (uint j = t; j < limit && r < ROWS; j += team)
        m = larger(m, scores[r * CHUNK + j]);
    team_maxima[lane] = m;
    barrier();
    for (uint x = 0; x < team && r < ROWS; x++)
        m = larger(m, team_maxima[r * team + x]);
    for (uint j = t; j < limit && r < ROWS; j += team) {
        float p = weight_of(scores[r * CHUNK + j], m);
        scores[r * CHUNK + j] = p;
        l += p;
    }
    team_sums[lane] = l;
    barrier();
    if (t == 0u && r < ROWS) {
        l = 0.0;
        for (uint x = 0; x < team; x++)
            l += team_sums[r * team + x];
        row_maxima[r] = m;
        row_sums[r] = l;
    }
}

void store_output(uint r, uint d, float o)
{
    if (row_query[r] != NO_ROW && d < args.width)
        y[row_y[r] + d] = chunk_count() > 1u ? o : normalized(o, row_sums[r]);
}

void store_statistics(uint r)
{
    if (row_query[r] == NO_ROW)
        return;
    if (chunk_count() > 1u) {
        y[row_y[r] - 2u] = row_maxima[r];
        y[row_y[r] - 1u] = row_sums[r];
    } else if (args.lse_offset != ATTENTION_NO_LSE) {
        y[row_lse[r]] = log_sum(row_maxima[r], row_sums[r]);
    }
}

/* A dropped key adds nothing even where its v is NaN. */
void add_values()
{
    for (uint x = group; x < limit; x += groups) {
        uint row = args.v_offset + b * args.v_batch + kv_head * args.v_head +
                   (first_key + x) * args.v_seq;
        float p[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++)
            p[r] = scores[r * CHUNK + x];
        [[unroll]] for (uint n = 0; n < QUADS; n++) {
            vec4 value = load_v(row, n * LANES + column);
            [[unroll]] for (uint r = 0; r < ROWS; r++)
                if (floatBitsToUint(p[r]) != 0u)
                    held[r * QUADS + n] += p[r] * value;
        }
    }
}

/* Adds up what the groups hold of quads first .. first + BATCH - 1 and stores it. */
void store_batch(uint first)
{
    for (uint e = lane; e < BATCH * LANES && first + e / LANES < ROWS * QUADS;
         e += gl_WorkGroupSize.x) {
        uint item = first + e / LANES, r = item / QUADS;
        vec4 o = vec4(0.0);
        for (uint x = 0; x < groups; x++)
            o += scratch[(e / LANES * groups + x) * LANES + e % LANES];
        for (uint c = 0; c < 4u; c++)
            store_output(r, (item % QUADS * LANES + e % LANES) * 4u + c, o[c]);
    }
}

void accumulate()
{
    [[unroll]] for (uint n = 0; n < ROWS * QUADS; n++)
        held[n] = vec4(0.0);
    add_values();
    [[unroll]] for (uint first = 0; first < ROWS * QUADS; first += BATCH) {
        barrier();
        [[unroll]] for (uint x = 0; x < BATCH; x++)
            if (first + x < ROWS * QUADS)
                scratch[(x * groups + group) * LANES + column] = held[first + x];
        barrier();
        store_batch(first);
    }
}

/* Without keys: zeros, or no more than l = 0 where a merge follows. */
void store_empty()
{
    for (uint e = lane; e < ROWS * args.width && chunk_count() <= 1u; e += gl_WorkGroupSize.x)
        store_output(e / args.width, e % args.width, 0.0);
    if (lane < ROWS)
        store_statistics(lane);
}

void main()
{
    uint chunks = max(chunk_count(), 1u), kv_heads = args.heads / args.group;
    uint blocks = (args.group * args.queries + ROWS - 1u) / ROWS;
    uint item = group_index() / chunks;
    first_key = group_index() % chunks * CHUNK;
    first_row = item % blocks * ROWS;
    kv_head = item / blocks % kv_heads;
    b = item / blocks / kv_heads;
    if (b >= args.batch)
        return;
    lane = gl_LocalInvocationID.x;
    column = lane % LANES;
    group = lane / LANES;
    groups = gl_WorkGroupSize.x / LANES;
    team = min(16u, gl_WorkGroupSize.x / ROWS);
    limit = min(start_scores(), args.keys - min(first_key, args.keys));
    if (limit == 0u) {
        store_empty();
        return;
    }
    compute_scores();
    weigh();
    accumulate();
    if (lane < ROWS)
        store_statistics(lane);
}
