#version 450
#pragma use_vulkan_memory_model
/*
 * Attention for many queries on the device's matrix units: q, k, v and the weights rounded to f16,
 * sums, maxima and the online softmax in f32. Bands only (causal, sliding, none).
 *
 * A workgroup takes UNIT_M queries of one head a subgroup and walks over the keys in tiles of
 * TILE_KEYS. k and v go through shared memory, converted on the way, rows skewed by one octet; the
 * next tile is read into registers while this one is multiplied. Only shared memory tells which
 * element of a matrix is which, so a subgroup stores its scores to its own part of `work`, LANES
 * lanes a row turn them into weights there, and what scales the outputs so far comes back as a
 * matrix of equal columns. Scores are in units of log2: q is scaled by scale * log2(e).
 *
 * Rows of v that no query of the workgroup sees count as zeros; a NaN or Inf in one that some see
 * makes NaN of all UNIT_M queries.
 */
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"

layout(constant_id = 1) const bool SOFTCAP = false;
layout(constant_id = 2) const bool WHOLE = false; /* quads are aligned */
layout(constant_id = 3) const uint WIDTH = 128;   /* a multiple of the units */
layout(constant_id = 4) const uint UNIT_M = 16;
layout(constant_id = 5) const uint UNIT_N = 16;
layout(constant_id = 6) const uint UNIT_K = 16;
layout(constant_id = 7) const uint PARTS = 8;      /* subgroups */
layout(constant_id = 8) const uint LANES = 2; /* of a row: subgroup size / UNIT_M; UNIT_K / 8 */
layout(constant_id = 9) const uint TILE_KEYS = 32; /* a multiple of 8 LANES, 2 UNIT_N */
layout(push_constant) uniform block { attention_args args; };
layout(set = 0, binding = 0) readonly buffer q_source { float q[]; };
layout(set = 0, binding = 1) readonly buffer k_source { float k[]; };
layout(set = 0, binding = 2) readonly buffer v_source { float v[]; };
layout(set = 0, binding = 0) readonly buffer q_quads { vec4 q4[]; };
layout(set = 0, binding = 1) readonly buffer k_quads { vec4 k4[]; };
layout(set = 0, binding = 2) readonly buffer v_quads { vec4 v4[]; };
layout(set = 0, binding = 3) readonly buffer mask_source { float mask[]; };
layout(set = 0, binding = 4) writeonly buffer target { float y[]; };

const uint MASK = ATTENTION_BAND;
#include "attention.glsl"

const uint THREADS = gl_WorkGroupSize.x;
const uint TILE_QUERIES = PARTS * UNIT_M;
const uint PITCH = WIDTH / 8 + 1;                          /* octets of a row of k or v */
const uint CARRY = TILE_KEYS * (WIDTH / 4) / THREADS;      /* quads an invocation carries */
/* A subgroup's part of `work`: its scores; then scales, and behind them weights in f16. */
const uint SCORE_PITCH = TILE_KEYS / 4 + 1, WORK = UNIT_M * SCORE_PITCH;
const uint WEIGHTS = UNIT_M * UNIT_N / 4, WEIGHT_PITCH = TILE_KEYS / 8 + 1;
const uint KEYS_N = TILE_KEYS / UNIT_N, KEYS_K = TILE_KEYS / UNIT_K;
const uint WIDTH_N = WIDTH / UNIT_N, WIDTH_K = WIDTH / UNIT_K;
const uint LANE_KEYS = TILE_KEYS / LANES;

shared uvec4 tile_k[TILE_KEYS * PITCH];
shared uvec4 tile_v[TILE_KEYS * PITCH];
shared uvec4 work[PARTS * WORK];

#define OPERAND_A coopmat<float16_t, gl_ScopeSubgroup, UNIT_M, UNIT_K, gl_MatrixUseA>
#define OPERAND_B coopmat<float16_t, gl_ScopeSubgroup, UNIT_K, UNIT_N, gl_MatrixUseB>
#define SUM       coopmat<float, gl_ScopeSubgroup, UNIT_M, UNIT_N, gl_MatrixUseAccumulator>
#define ROWS      gl_CooperativeMatrixLayoutRowMajor
#define COLUMNS   gl_CooperativeMatrixLayoutColumnMajor

uvec2 next_k[CARRY], next_v[CARRY];
float maximum, sum; /* of this lane's row; sum: of its own keys */

uvec2 halves(vec4 x)
{
    return uvec2(packHalf2x16(x.xy), packHalf2x16(x.zw));
}

vec4 read_k(uint at)
{
    if (WHOLE)
        return k4[at >> 2];
    return vec4(k[at], k[at + 1], k[at + 2], k[at + 3]);
}
vec4 read_v(uint at)
{
    if (WHOLE)
        return v4[at >> 2];
    return vec4(v[at], v[at + 1], v[at + 2], v[at + 3]);
}

/* Keys from `end` on, and before `begin`, are no key of the workgroup's. */
void fetch(uvec2 base, uint first_key, uint begin, uint end)
{
    [[unroll]] for (uint i = 0; i < CARRY; i++) {
        uint slot = i * THREADS + gl_LocalInvocationID.x;
        uint key = first_key + slot / (WIDTH / 4), column = slot % (WIDTH / 4) * 4;
        bool seen = key >= begin && key < end;
        uint at = min(key, args.keys - 1) * args.kv_seq + column;
        next_k[i] = seen ? halves(read_k(base.x + at)) : uvec2(0);
        next_v[i] = seen ? halves(read_v(base.y + at)) : uvec2(0);
    }
}

void store_quad(uint slot, uvec2 of_k, uvec2 of_v)
{
    uint at = slot / (WIDTH / 4) * PITCH + slot % (WIDTH / 4) / 2, side = slot % 2 * 2;
    tile_k[at][side] = of_k.x;
    tile_k[at][side + 1] = of_k.y;
    tile_v[at][side] = of_v.x;
    tile_v[at][side + 1] = of_v.y;
}

/* Four of a row's scores; -Inf where the key is outside the band. */
vec4 scores_at(uint at, uint key, uint begin, uint end)
{
    vec4 z = uintBitsToFloat(work[at]);
    [[unroll]] for (uint i = 0; i < 4; i++)
        z[i] = key + i >= begin && key + i < end ? capped_score(z[i]) : NEGATIVE_INFINITY;
    return z;
}

/* The row's scores become weights in f16, and `maximum` and `sum` move on. Leaves the scale of what
 * was summed before in UNIT_N equal columns. */
void make_weights(uint work_at, uint row, uint lane, uint first_key, uint begin, uint end)
{
    uint row_at = work_at + row * SCORE_PITCH, own = lane * LANE_KEYS;
    float past = maximum, total = 0.0;
    vec4 z[LANE_KEYS / 4];
    [[unroll]] for (uint i = 0; i < TILE_KEYS / 4; i++) {
        vec4 s = scores_at(row_at + i, first_key + 4 * i, begin, end);
        maximum = max(maximum, max(max(s.x, s.y), max(s.z, s.w)));
    }
    [[unroll]] for (uint i = 0; i < LANE_KEYS / 4; i++)
        z[i] = scores_at(row_at + own / 4 + i, first_key + own + 4 * i, begin, end);
    float base = is_dropped(maximum) ? 0.0 : maximum, scale = exp2(past - base);
    [[unroll]] for (uint i = 0; i < LANE_KEYS / 4; i++) {
        [[unroll]] for (uint c = 0; c < 4; c++)
            z[i][c] = weight_of(z[i][c], base);
        total += (z[i].x + z[i].y) + (z[i].z + z[i].w);
    }
    sum = fma(sum, scale, total);
    subgroupBarrier(); /* all scores are read */
    [[unroll]] for (uint i = 0; i < UNIT_N / LANES / 4; i++)
        work[work_at + row * (UNIT_N / 4) + lane * (UNIT_N / LANES / 4) + i] =
            floatBitsToUint(vec4(scale));
    [[unroll]] for (uint i = 0; i < LANE_KEYS / 8; i++)
        work[work_at + WEIGHTS + row * WEIGHT_PITCH + own / 8 + i] =
            uvec4(halves(z[2 * i]), halves(z[2 * i + 1]));
    subgroupBarrier();
}

vec4 read_q(uint at)
{
    if (WHOLE)
        return q4[at >> 2];
    return vec4(q[at], q[at + 1], q[at + 2], q[at + 3]);
}

/* Workgroups of later queries come first: under a causal mask they have the most to do. */
void main()
{
    uint tiles = (args.queries + TILE_QUERIES - 1) / TILE_QUERIES;
    uint heads = args.batch * args.heads, item = group_index(), head = item % heads;
    uint b = head / args.heads, h = head % args.heads;
    if (item / heads >= tiles)
        return;
    uint first_tile_query = (tiles - 1 - item / heads) * TILE_QUERIES;
    uint first_query = first_tile_query + gl_SubgroupID * UNIT_M;
    uint row = gl_SubgroupInvocationID % UNIT_M, lane = gl_SubgroupInvocationID / UNIT_M;
    uint work_at = gl_SubgroupID * WORK;
    uvec2 base = uvec2(args.k_offset, args.v_offset) + b * args.kv_batch +
                 h / args.group * args.kv_head;
    uint last_query = min(first_tile_query + TILE_QUERIES, args.queries) - 1;
    uint begin = band_begin(first_tile_query), end = band_end(last_query);

    OPERAND_A query[WIDTH_K];
    SUM o[WIDTH_N];
    float factor = score_factor();
    uint q_at = args.q_offset + b * args.q_batch + h * args.q_head +
                min(first_query + row, args.queries - 1) * args.q_seq + lane * 8;
    [[unroll]] for (uint i = 0; i < WIDTH_K; i++) {
        work[work_at + row * LANES + lane] = uvec4(halves(read_q(q_at + i * UNIT_K) * factor),
                                                   halves(read_q(q_at + i * UNIT_K + 4) * factor));
        subgroupBarrier();
        coopMatLoad(query[i], work, work_at, UNIT_K / 8, ROWS);
        subgroupBarrier();
    }
    [[unroll]] for (uint i = 0; i < WIDTH_N; i++)
        o[i] = SUM(0.0);
    maximum = NEGATIVE_INFINITY;
    sum = 0.0;
    uint first_key = begin / TILE_KEYS * TILE_KEYS;
    fetch(base, first_key, begin, end);
    [[dont_unroll]] for (; first_key < end; first_key += TILE_KEYS) {
        barrier();
        [[unroll]] for (uint i = 0; i < CARRY; i++)
            store_quad(i * THREADS + gl_LocalInvocationID.x, next_k[i], next_v[i]);
        barrier();
        fetch(base, first_key + TILE_KEYS, begin, end);
        [[unroll]] for (uint n = 0; n < KEYS_N; n++) {
            SUM s = SUM(0.0);
            [[unroll]] for (uint i = 0; i < WIDTH_K; i++) {
                OPERAND_B keys;
                coopMatLoad(keys, tile_k, n * UNIT_N * PITCH + i * (UNIT_K / 8), PITCH, COLUMNS);
                s = coopMatMulAdd(query[i], keys, s);
            }
            coopMatStore(s, work, work_at + n * (UNIT_N / 4), SCORE_PITCH, ROWS);
        }
        subgroupBarrier();
        bool edge = first_key + TILE_KEYS > band_end(first_query) ||
                    first_key < band_begin(first_query + UNIT_M - 1);
        make_weights(work_at, row, lane, first_key, edge ? band_begin(first_query + row) : 0,
                     edge ? band_end(first_query + row) : 0xffffffff);
        SUM scale;
        coopMatLoad(scale, work, work_at, UNIT_N / 4, ROWS);
        [[unroll]] for (uint i = 0; i < WIDTH_N; i++)
            o[i] = o[i] * scale;
        [[unroll]] for (uint n = 0; n < KEYS_K; n++) {
            OPERAND_A weights;
            coopMatLoad(weights, work, work_at + WEIGHTS + n * (UNIT_K / 8), WEIGHT_PITCH, ROWS);
            [[unroll]] for (uint i = 0; i < WIDTH_N; i++) {
                OPERAND_B values;
                coopMatLoad(values, tile_v, n * UNIT_K * PITCH + i * (UNIT_N / 8), PITCH, ROWS);
                o[i] = coopMatMulAdd(weights, values, o[i]);
            }
        }
        subgroupBarrier();
    }

    /* Sums of a row's lanes join in order, for all to see. */
    uint totals = work_at + WEIGHTS;
    work[totals + gl_SubgroupInvocationID / 4][gl_SubgroupInvocationID % 4] = floatBitsToUint(sum);
    subgroupBarrier();
    float l = 0.0;
    for (uint i = 0; i < LANES; i++)
        l += uintBitsToFloat(work[totals + (i * UNIT_M + row) / 4][(i * UNIT_M + row) % 4]);
    uint y_row = (b * args.heads + h) * args.queries + first_query + row;
    if (lane == 0 && first_query + row < args.queries && args.lse_offset != ATTENTION_NO_LSE)
        y[args.lse_offset + y_row] = log_sum(maximum, l);
    subgroupBarrier();
    if (lane == 0)
        work[totals + row / 4][row % 4] = floatBitsToUint(l);
    uint y_base = args.y_offset + b * args.y_batch + h * args.y_head;
    [[unroll]] for (uint i = 0; i < WIDTH_N; i++) {
        coopMatStore(o[i], work, work_at, UNIT_N / 4, ROWS);
        subgroupBarrier();
        [[dont_unroll]] for (uint e = gl_SubgroupInvocationID; e < UNIT_M * UNIT_N;
                             e += gl_SubgroupSize) {
            uint r = e / UNIT_N;
            float total = uintBitsToFloat(work[totals + r / 4][r % 4]);
            if (first_query + r < args.queries)
                y[y_base + (first_query + r) * args.y_seq + i * UNIT_N + e % UNIT_N] =
                    normalized(uintBitsToFloat(work[work_at + e / 4][e % 4]), total);
        }
        subgroupBarrier();
    }
}
