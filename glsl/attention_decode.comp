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

shared float scores[ROWS * CHUNK];
shared float scratch[SCRATCH];
shared float team_maxima[LARGEST_GROUP], team_sums[LARGEST_GROUP];
shared uint kept_any;

uint lane, column, group, groups, team; /* column: the first one; group: which key of a round */
uint b, kv_head, first_row, first_key, limit;
float held[ROWS * DIMS]; /* this lane's columns: of the queries first, of the outputs later */

/* Row `first_row + r` of the kv head is query i of head h. */
uint query_of(uint r)
{
    return (first_row + r) % args.queries;
}
uint head_of(uint r)
{
    return kv_head * args.group + (first_row + r) / args.queries;
}
bool row_exists(uint r)
{
    return first_row + r < args.group * args.queries;
}

/* Starts every score with its mask term. False when no row keeps a key of the chunk. */
bool start_scores()
{
    bool kept = false;
    if (lane == 0u)
        kept_any = 0u;
    barrier();
    for (uint e = lane; e < ROWS * CHUNK; e += gl_WorkGroupSize.x) {
        uint r = e / CHUNK, j = first_key + e % CHUNK;
        float term = NEGATIVE_INFINITY;
        if (row_exists(r))
            term = mask_term(args.mask_offset + b * args.mask_batch + head_of(r) * args.mask_head,
                             query_of(r), j);
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
        uint row = args.q_offset + b * args.q_batch + head_of(r) * args.q_head +
                   query_of(r) * args.q_seq;
        [[unroll]] for (uint n = 0; n < DIMS; n++) {
            uint d = n * LANES + column;
            held[r * DIMS + n] = row_exists(r) && d < args.width ? q[row + d] : 0.0;
        }
    }
    for (uint base = 0; base < limit; base += PASS) {
        multiply_keys(base);
        barrier();
        finish_scores(base);
        barrier();
    }
}

/* Scores become weights. Each row has a team of invocations. */
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
}

float row_maximum(uint r)
{
    float m = NEGATIVE_INFINITY;
    for (uint x = 0; x < team; x++)
        m = larger(m, team_maxima[r * team + x]);
    return m;
}
float row_sum(uint r)
{
    float l = 0.0;
    for (uint x = 0; x < team; x++)
        l += team_sums[r * team + x];
    return l;
}

uint chunk_count()
{
    return (args.keys + CHUNK - 1u) / CHUNK;
}

/* Where (m, l, o) of row r and this chunk stand. */
uint partial_base(uint r)
{
    uint row = (b * args.heads + head_of(r)) * args.queries + query_of(r);
    return (row * chunk_count() + first_key / CHUNK) * (args.width + 2u);
}

void store_output(uint r, uint d, float o)
{
    if (!row_exists(r) || d >= args.width)
        return;
    if (chunk_count() > 1u)
        y[partial_base(r) + 2u + d] = o;
    else
        y[args.y_offset + b * args.y_batch + head_of(r) * args.y_head + query_of(r) * args.y_seq +
          d] = normalized(o, row_sum(r));
}

void store_statistics(uint r, float m, float l)
{
    if (chunk_count() > 1u) {
        y[partial_base(r)] = m;
        y[partial_base(r) + 1u] = l;
    } else if (args.lse_offset != ATTENTION_NO_LSE) {
        y[args.lse_offset + (b * args.heads + head_of(r)) * args.queries + query_of(r)] =
            log_sum(m, l);
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

void store_empty()
{
    team_sums[lane] = 0.0;
    barrier();
    for (uint e = lane; e < ROWS * args.width && chunk_count() <= 1u; e += gl_WorkGroupSize.x)
        store_output(e / args.width, e % args.width, 0.0);
    if (lane < ROWS && row_exists(lane))
        store_statistics(lane, NEGATIVE_INFINITY, 0.0);
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
    if (lane < ROWS && row_exists(lane))
        store_statistics(lane, row_maximum(lane), row_sum(lane));
}
