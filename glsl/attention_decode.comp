#version 450
/*
 * Attention for few queries: a workgroup takes CHUNK keys of one kv head for up to ROWS query rows (the queries of all heads
 * that share the kv head), so that K and V are read once. LANES invocations share a key, each with every LANES-th column.
 * With one chunk it writes the result; with more, (m, l, o[width]) of each row and chunk for attention_merge, where a
 * chunk without keys has l = 0 and no o. A chunk outside the band, or dropped whole by the mask, is not read.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"

layout(constant_id = 1) const uint MASK = ATTENTION_BAND;
layout(constant_id = 2) const bool SOFTCAP = false;
layout(constant_id = 3) const uint ROWS = 4;    /* a power of two; at most the local size */
layout(constant_id = 4) const uint LANES = 8;   /* 8, 16 or 32; at most the local size */
layout(constant_id = 5) const uint DIMS = 8;    /* columns of a lane: width <= LANES * DIMS */
layout(constant_id = 6) const uint CHUNK = 256; /* CHUNK * ROWS <= 1024 */
layout(push_constant) uniform block { attention_args args; };
layout(set = 0, binding = 0) readonly restrict buffer q_source { float q[]; };
layout(set = 0, binding = 1) readonly restrict buffer k_source { float k[]; };
layout(set = 0, binding = 2) readonly restrict buffer v_source { float v[]; };
layout(set = 0, binding = 3) readonly restrict buffer mask_source { float mask[]; };
layout(set = 0, binding = 4) writeonly restrict buffer target { float y[]; };

#include "attention.glsl"

const uint SCRATCH = 2048;
const uint PASS = SCRATCH / (LANES * ROWS); /* keys whose partial products fit */
const uint LARGEST_GROUP = 128;
const uint BATCH = SCRATCH / (LARGEST_GROUP * ROWS); /* column steps reduced at once */

const uint NO_ROW = 0xffffffffu;

shared float scores[ROWS * CHUNK];
shared float scratch[SCRATCH];
shared float team_maxima[LARGEST_GROUP], team_sums[LARGEST_GROUP];
shared float row_maxima[ROWS], row_sums[ROWS];
shared uint row_query[ROWS]; /* the query, or NO_ROW beyond the last */
shared uint row_q[ROWS], row_mask[ROWS], row_y[ROWS], row_lse[ROWS]; /* where a row begins */
shared uint kept_any;

uint lane, column, group, groups, team; /* column: the first one; group: which key of a round */
uint b, kv_head, first_row, first_key, limit;
float held[ROWS * DIMS]; /* this lane's columns: of the queries first, of the outputs later */

uint chunk_count()
{
    return (args.keys + CHUNK - 1u) / CHUNK;
}

/* Row `first_row + r` of the kv head is query i of head h. Division is slow on some devices: once a row. */
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

/* Starts every score with its mask term. False when no row keeps a key of the chunk. */
bool start_scores()
{
    bool kept = false;
    if (lane == 0u)
        kept_any = 0u;
    if (lane < ROWS)
        find_row(lane);
    barrier();
    for (uint e = lane; e < ROWS * CHUNK; e += gl_WorkGroupSize.x) {
        uint r = e / CHUNK, j = first_key + e % CHUNK;
        uint i = row_query[r];
        float term = i == NO_ROW ? NEGATIVE_INFINITY : mask_term(row_mask[r], i, j);
        scores[e] = term;
        kept = kept || !is_dropped(term);
    }
    if (kept)
        kept_any = 1u;
    barrier();
    return kept_any != 0u;
}

/* scratch[key * ROWS + row][lane] = this lane's columns of q k. */
void multiply_keys(uint base)
{
    for (uint x = group; x < PASS && base + x < limit; x += groups) {
        uint row = args.k_offset + b * args.k_batch + kv_head * args.k_head +
                   (first_key + base + x) * args.k_seq;
        float products[ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++)
            products[r] = 0.0;
        [[unroll]] for (uint n = 0; n < DIMS; n++) {
            uint d = n * LANES + column;
            float key = d < args.width ? k[row + d] : 0.0;
            [[unroll]] for (uint r = 0; r < ROWS; r++)
                products[r] += held[r * DIMS + n] * key;
        }
        [[unroll]] for (uint r = 0; r < ROWS; r++)
            scratch[(x * ROWS + r) * LANES + column] = products[r];
    }
}

void finish_scores(uint base)
{
    for (uint e = lane; e < PASS * ROWS && base + e / ROWS < limit; e += gl_WorkGroupSize.x) {
        float product = 0.0;
        for (uint x = 0; x < LANES; x++) /* turned, so that neighbours read different banks */
            product += scratch[e * LANES + ((x + (e * LANES >> 5)) & (LANES - 1u))];
        uint at = e % ROWS * CHUNK + base + e / ROWS;
        if (!is_dropped(scores[at]))
            scores[at] = finish_score(product, scores[at]);
    }
}

void compute_scores()
{
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        uint row = row_q[r];
        bool exists = row_query[r] != NO_ROW;
        [[unroll]] for (uint n = 0; n < DIMS; n++) {
            uint d = n * LANES + column;
            held[r * DIMS + n] = exists && d < args.width ? q[row + d] : 0.0;
        }
    }
    for (uint base = 0; base < limit; base += PASS) {
        multiply_keys(base);
        barrier();
        finish_scores(base);
        barrier();
    }
}

/* Scores become weights. Each row has a team of invocations. Its sum may be read after the next barrier. */
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
        [[unroll]] for (uint n = 0; n < DIMS; n++) {
            uint d = n * LANES + column;
            float value = d < args.width ? v[row + d] : 0.0;
            [[unroll]] for (uint r = 0; r < ROWS; r++)
                held[r * DIMS + n] += floatBitsToUint(p[r]) == 0u ? 0.0 : p[r] * value;
        }
    }
}

void accumulate()
{
    [[unroll]] for (uint n = 0; n < ROWS * DIMS; n++)
        held[n] = 0.0;
    add_values();
    [[unroll]] for (uint first = 0; first < DIMS; first += BATCH) {
        barrier();
        [[unroll]] for (uint x = 0; x < BATCH; x++)
            [[unroll]] for (uint r = 0; r < ROWS; r++)
                if (first + x < DIMS)
                    scratch[((x * ROWS + r) * groups + group) * LANES + column] =
                        held[r * DIMS + first + x];
        barrier();
        for (uint e = lane; e < BATCH * ROWS * LANES; e += gl_WorkGroupSize.x) {
            uint item = e / LANES, r = item % ROWS;
            float o = 0.0;
            for (uint x = 0; x < groups; x++)
                o += scratch[(item * groups + x) * LANES + e % LANES];
            store_output(r, (first + item / ROWS) * LANES + e % LANES, o);
        }
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
    limit = min(CHUNK, args.keys - min(first_key, args.keys));
    if (!start_scores()) {
        store_empty();
        return;
    }
    compute_scores();
    weigh();
    accumulate();
    if (lane < ROWS)
        store_statistics(lane);
}
