/*
 * Attention for many queries, with cooperative matrices. q, k, v and the weights are rounded to f16
 * or bf16. Sums, maxima and the online softmax are in f32. Only bands are supported as masks.
 *
 * Each subgroup takes UNIT_M queries; all queries of a workgroup belong to one head. The workgroup
 * loops over the keys in tiles of TILE_KEYS. k and v are converted and stored in shared memory,
 * with rows padded by one octet. The next tile is loaded into registers while this one is
 * multiplied. Scores are in units of log2, because q is scaled by scale * log2(e).
 *
 * The softmax must know which element of a matrix is which, so it uses a layout of its own
 * (matrix_layout.glsl). DIRECT: the device uses the same layout, so elements are accessed directly.
 * Without it, they go through the subgroup's part of `work`.
 *
 * Rows of v that no query of the workgroup sees count as zeros. If some queries see a row of v with
 * a NaN or Inf, all UNIT_M queries become NaN.
 */
#include "lib/common.glsl"
#include "args/attention.h"

layout(constant_id = 1) const bool SOFTCAP = false;
layout(constant_id = 2) const bool WHOLE = false; /* quads are aligned */
layout(constant_id = 3) const uint WIDTH = 128;   /* a multiple of the units */
layout(constant_id = 4) const uint UNIT_M = 16;
layout(constant_id = 5) const uint UNIT_N = 16;
layout(constant_id = 6) const uint UNIT_K = 16;
layout(constant_id = 7) const uint PARTS = 8;       /* subgroups */
layout(constant_id = 8) const uint ROWS = 2;        /* MATRIX_LANES UNIT_M / subgroup size */
layout(constant_id = 9) const uint TILE_KEYS = 64;  /* in whole UNIT_K of 1 or 2 UNIT_N */
layout(constant_id = 10) const bool DIRECT = false; /* then UNIT_K equals UNIT_N */
layout(constant_id = 11) const uint MASK = ATTENTION_BAND; /* or ATTENTION_POSITION */
layout(push_constant) uniform block { attention_args args; };
layout(set = 0, binding = 0) readonly buffer q_source { float q[]; };
layout(set = 0, binding = 1) readonly buffer k_source { float k[]; };
layout(set = 0, binding = 2) readonly buffer v_source { float v[]; };
layout(set = 0, binding = 0) readonly buffer q_quads { vec4 q4[]; };
layout(set = 0, binding = 1) readonly buffer k_quads { vec4 k4[]; };
layout(set = 0, binding = 2) readonly buffer v_quads { vec4 v4[]; };
layout(set = 0, binding = 1) readonly buffer k_halves { uvec2 k2[]; };
layout(set = 0, binding = 2) readonly buffer v_halves { uvec2 v2[]; };
layout(set = 0, binding = 3) readonly buffer mask_source { float mask[]; };
layout(set = 0, binding = 4) writeonly buffer target { float y[]; };

#include "attention/attention_forward.glsl"
#include "attention/attention_packed.glsl"
#include "matmul/matrix_layout.glsl"

const uint THREADS = gl_WorkGroupSize.x;
const uint TILE_QUERIES = PARTS * UNIT_M;
const uint PITCH = WIDTH / 4 + 2;                     /* stride of rows of k or v, in quads */
const uint CARRY = TILE_KEYS * (WIDTH / 4) / THREADS; /* quads that an invocation loads */
const uint KEYS_N = TILE_KEYS / UNIT_N, KEYS_K = TILE_KEYS / UNIT_K;
const uint WIDTH_N = WIDTH / UNIT_N, WIDTH_K = WIDTH / UNIT_K;
const uint WORK = DIRECT ? UNIT_M * UNIT_K / 2 : UNIT_M * UNIT_N; /* words of a subgroup's part */

shared uvec2 tile_k[TILE_KEYS * PITCH];
shared uvec2 tile_v[TILE_KEYS * PITCH];
shared uint work[PARTS * WORK];

#define OPERAND_A coopmat<ELEMENT, gl_ScopeSubgroup, UNIT_M, UNIT_K, gl_MatrixUseA>
#define OPERAND_B coopmat<ELEMENT, gl_ScopeSubgroup, UNIT_K, UNIT_N, gl_MatrixUseB>
#define SUM       coopmat<float, gl_ScopeSubgroup, UNIT_M, UNIT_N, gl_MatrixUseAccumulator>
#define BY_ROW    gl_CooperativeMatrixLayoutRowMajor
#define BY_COLUMN gl_CooperativeMatrixLayoutColumnMajor

OPERAND_A query[WIDTH_K];
SUM o[WIDTH_N];
vec4 next_k[CARRY], next_v[CARRY];
float score[KEYS_N * UNIT];                  /* scores of this lane, then its weights */
float maximum[ROWS], sum[ROWS], scale[ROWS]; /* of its rows; sum: over its own keys */
uint row_begin[ROWS], row_end[ROWS];         /* the bands of its rows */

uvec2 halves(vec4 x)
{
    return uvec2(pack_pair(x.xy), pack_pair(x.zw));
}

vec4 read_k(uint at)
{
    if (K_HELD == ATTENTION_HALVES)
        return packed_k(at);
    if (WHOLE)
        return k4[at >> 2];
    return vec4(k[at], k[at + 1], k[at + 2], k[at + 3]);
}
vec4 read_v(uint at)
{
    if (V_HELD == ATTENTION_HALVES)
        return packed_v(at);
    if (WHOLE)
        return v4[at >> 2];
    return vec4(v[at], v[at + 1], v[at + 2], v[at + 3]);
}

void fetch(uvec2 base, uint first_key)
{
    [[unroll]] for (uint i = 0; i < CARRY; i++) {
        uint slot = i * THREADS + gl_LocalInvocationID.x;
        uint key = first_key + slot / (WIDTH / 4), column = slot % (WIDTH / 4) * 4;
        uvec2 at = base + min(key, args.keys - 1) * uvec2(args.k_seq, args.v_seq) + column;
        next_k[i] = read_k(at.x);
        next_v[i] = read_v(at.y);
    }
}

/* Values of keys outside [begin, end) are stored as zeros, because no query of the workgroup sees
 * them. */
void store(uint first_key, uint begin, uint end)
{
    [[unroll]] for (uint i = 0; i < CARRY; i++) {
        uint slot = i * THREADS + gl_LocalInvocationID.x;
        uint key = first_key + slot / (WIDTH / 4);
        uint at = slot / (WIDTH / 4) * PITCH + slot % (WIDTH / 4);
        tile_k[at] = halves(next_k[i]);
        tile_v[at] = key >= begin && key < end ? halves(next_v[i]) : uvec2(0);
    }
}

/* Converts the lane's scores to weights. Updates `maximum`, `sum`, and the scale of the previous
 * sums. */
void make_weights(uint first_key, bool edge)
{
    float top[ROWS], base[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        top[r] = maximum[r];
    [[unroll]] for (uint e = 0; e < KEYS_N * UNIT; e++)
        score[e] = capped_score(score[e]);
    if (edge) {
        [[unroll]] for (uint e = 0; e < KEYS_N * UNIT; e++) {
            uint key = first_key + e / UNIT * UNIT_N + column_of(e % UNIT), r = e % UNIT / OWN;
            score[e] = key >= row_begin[r] && key < row_end[r] ? score[e] : NEGATIVE_INFINITY;
        }
    }
    [[unroll]] for (uint e = 0; e < KEYS_N * UNIT; e++)
        top[e % UNIT / OWN] = max(top[e % UNIT / OWN], score[e]);
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        [[unroll]] for (uint lanes = 1; lanes < LANES; lanes *= 2)
            top[r] = max(top[r], subgroupShuffleXor(top[r], lanes));
        base[r] = is_dropped(top[r]) ? 0.0 : top[r];
        scale[r] = exp2(maximum[r] - base[r]);
        maximum[r] = top[r];
        sum[r] *= scale[r];
    }
    [[unroll]] for (uint e = 0; e < KEYS_N * UNIT; e++) {
        uint r = e % UNIT / OWN;
        score[e] = weight_of(score[e], base[r]);
        sum[r] += score[e];
    }
}

vec4 read_q(uint at)
{
    if (WHOLE)
        return q4[at >> 2];
    return vec4(q[at], q[at + 1], q[at + 2], q[at + 3]);
}

/* Reads the subgroup's queries, times `factor`. The head's query 0 begins at q_base. */
void take_queries(uint q_base, uint first_query, uint work_at, float factor)
{
    [[unroll]] for (uint i = 0; i < WIDTH_K; i++) {
        [[unroll]] for (uint quad = 0; quad < UNIT_M * UNIT_K / 4; quad += LANE_COUNT) {
            uint own = quad + gl_SubgroupInvocationID, row = own / (UNIT_K / 4);
            uint at = q_base + min(first_query + row, args.queries - 1) * args.q_seq + i * UNIT_K;
            if (own < UNIT_M * UNIT_K / 4) {
                uvec2 pair = halves(read_q(at + own % (UNIT_K / 4) * 4) * factor);
                work[work_at + own * 2] = pair.x;
                work[work_at + own * 2 + 1] = pair.y;
            }
        }
        subgroupBarrier();
        coopMatLoad(query[i], work, work_at, UNIT_K / 2, BY_ROW);
        subgroupBarrier();
    }
}

/* Multiplies the queries by the tile of k. Each lane gets its scores. */
void make_scores(uint work_at)
{
    SUM s[KEYS_N];
    [[unroll]] for (uint n = 0; n < KEYS_N; n++)
        s[n] = SUM(0.0);
    [[unroll]] for (uint i = 0; i < WIDTH_K; i++) {
        [[unroll]] for (uint n = 0; n < KEYS_N; n++) {
            OPERAND_B keys;
            coopMatLoad(keys, tile_k, n * UNIT_N * PITCH + i * (UNIT_K / 4), PITCH, BY_COLUMN);
            s[n] = coopMatMulAdd(query[i], keys, s[n]);
        }
    }
    [[unroll]] for (uint n = 0; n < KEYS_N; n++) {
        if (DIRECT) {
            [[unroll]] for (uint e = 0; e < UNIT; e++)
                score[n * UNIT + e] = s[n][e];
        } else {
            coopMatStore(s[n], work, work_at, UNIT_N, BY_ROW);
            subgroupBarrier();
            [[unroll]] for (uint e = 0; e < UNIT; e++)
                score[n * UNIT + e] =
                    uintBitsToFloat(work[work_at + row_of(e) * UNIT_N + column_of(e)]);
            subgroupBarrier();
        }
    }
}

/* o *= the scale of its row */
void scale_sums(uint work_at)
{
    if (DIRECT) {
        [[unroll]] for (uint i = 0; i < WIDTH_N; i++)
            [[unroll]] for (uint e = 0; e < UNIT; e++)
                o[i][e] = o[i][e] * scale[e / OWN];
    } else {
        SUM scales;
        [[unroll]] for (uint e = 0; e < UNIT; e++)
            work[work_at + row_of(e) * UNIT_N + column_of(e)] = floatBitsToUint(scale[e / OWN]);
        subgroupBarrier();
        coopMatLoad(scales, work, work_at, UNIT_N, BY_ROW);
        subgroupBarrier();
        [[unroll]] for (uint i = 0; i < WIDTH_N; i++)
            o[i] = o[i] * scales;
    }
}

/* o += the weights times the tile of v */
void add_values(uint work_at)
{
    [[unroll]] for (uint n = 0; n < KEYS_K; n++) {
        OPERAND_A weights;
        if (DIRECT) {
            [[unroll]] for (uint e = 0; e < UNIT; e++)
                weights[e] = ELEMENT(score[n * UNIT + e]);
        } else {
            [[unroll]] for (uint e = 0; e < UNIT_K / UNIT_N * UNIT; e += 2)
                work[work_at + (row_of(e % UNIT) * UNIT_K + e / UNIT * UNIT_N +
                                column_of(e % UNIT)) / 2] =
                    pack_pair(vec2(score[n * (UNIT_K / UNIT_N) * UNIT + e],
                                      score[n * (UNIT_K / UNIT_N) * UNIT + e + 1]));
            subgroupBarrier();
            coopMatLoad(weights, work, work_at, UNIT_K / 2, BY_ROW);
            subgroupBarrier();
        }
        [[unroll]] for (uint i = 0; i < WIDTH_N; i++) {
            OPERAND_B values;
            coopMatLoad(values, tile_v, n * UNIT_K * PITCH + i * (UNIT_N / 4), PITCH, BY_ROW);
            o[i] = coopMatMulAdd(weights, values, o[i]);
        }
    }
}

/* Divides o by the sums of the weights, and writes it. Rows without keys are zeros. */
void finish(uint b, uint h, uint first_query, uint work_at)
{
    float inverse[ROWS]; /* sum is 0 or at least 1, because the maximum has weight 1 */
    bool is_empty[ROWS];
    uint y_base = result_row(b, h);
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        uint query = first_query + row_of(r * OWN);
        [[unroll]] for (uint lanes = 1; lanes < LANES; lanes *= 2)
            sum[r] += subgroupShuffleXor(sum[r], lanes);
        is_empty[r] = floatBitsToUint(sum[r]) == 0u;
        inverse[r] = 1.0 / sum[r];
        if (query < args.queries && gl_SubgroupInvocationID % LANES == 0 &&
            args.lse_offset != ATTENTION_NO_LSE)
            y[args.lse_offset + (b * args.heads + h) * args.queries + query] =
                log_sum(maximum[r], sum[r]);
    }
    [[unroll]] for (uint i = 0; i < WIDTH_N; i++) {
        if (!DIRECT) {
            coopMatStore(o[i], work, work_at, UNIT_N, BY_ROW);
            subgroupBarrier();
        }
        [[unroll]] for (uint e = 0; e < UNIT; e++) {
            uint query = first_query + row_of(e);
            float x = DIRECT ? o[i][e]
                             : uintBitsToFloat(work[work_at + row_of(e) * UNIT_N + column_of(e)]);
            if (query < args.queries)
                y[y_base + query * result_step + i * UNIT_N + column_of(e)] =
                    is_empty[e / OWN] ? 0.0 : x * inverse[e / OWN];
        }
        if (!DIRECT)
            subgroupBarrier();
    }
}

/* Workgroups of later queries start first, because they have the most work under a causal mask. */
void main()
{
    uint tiles = (args.queries + TILE_QUERIES - 1) / TILE_QUERIES;
    uint heads = args.batch * args.heads, item = group_index(), head = item % heads;
    uint b = head / args.heads, h = head % args.heads;
    if (item / heads >= tiles)
        return;
    find_reach(b);
    uint first_tile_query = (tiles - 1 - item / heads) * TILE_QUERIES;
    uint first_query = first_tile_query + gl_SubgroupID * UNIT_M;
    uint work_at = gl_SubgroupID * WORK;
    uvec2 base = uvec2(args.k_offset, args.v_offset) + entry * uvec2(args.k_batch, args.v_batch) +
                 h / args.group * uvec2(args.k_head, args.v_head);
    uint last_query = min(first_tile_query + TILE_QUERIES, args.queries) - 1;
    uint begin = band_begin(first_tile_query), end = band_end(last_query);
    float factor = score_factor();
    uint q_base = args.q_offset + b * args.q_batch + h * args.q_head;
    take_queries(q_base, first_query, work_at, factor);
    [[unroll]] for (uint i = 0; i < WIDTH_N; i++)
        o[i] = SUM(0.0);
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        row_begin[r] = band_begin(first_query + row_of(r * OWN));
        row_end[r] = band_end(first_query + row_of(r * OWN));
        maximum[r] = NEGATIVE_INFINITY;
        sum[r] = 0.0;
    }
    uint first_key = begin / TILE_KEYS * TILE_KEYS;
    fetch(base, first_key);
    [[dont_unroll]] for (; first_key < end; first_key += TILE_KEYS) {
        barrier();
        store(first_key, begin, end);
        barrier();
        fetch(base, first_key + TILE_KEYS);
        make_scores(work_at);
        bool edge = first_key + TILE_KEYS > band_end(first_query) ||
                    first_key < band_begin(first_query + UNIT_M - 1);
        make_weights(first_key, edge);
        scale_sums(work_at);
        add_values(work_at);
    }
    finish(b, h, first_query, work_at);
}
