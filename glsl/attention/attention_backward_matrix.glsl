/*
 * The gradients of attention with cooperative matrices. Passes are of queries (dq) and of keys (dk
 * and dv, or one of them, because both may need too many registers). All operands of products are
 * rounded to f16 or bf16; sums, weights and statistics are in f32. Only bands are supported as
 * masks.
 *
 * Each subgroup owns UNIT_M rows, and all rows of a workgroup belong to one head. The workgroup
 * loops over tiles of TILE other rows, of all heads of its kv head if it owns keys. A step has
 * these products of own rows (left) and other rows (right):
 *   scores = own q or k times other k or q; dp = own dy or v times other v or dy
 *   first sums += dz times other k or q; of keys: second sums += p times other dy
 * The tiles are converted and stored in shared memory, with rows padded by one octet. The next tile
 * is loaded into registers while this one is multiplied. Scores are in units of log2, because q is
 * scaled by scale * log2(e).
 *
 * Gradients may be far below what f16 can hold. So dy and delta are scaled by a power of two before
 * they are rounded, which makes the larger of both about 1 in its row (of queries), or in the rows
 * until now (of keys). In the latter case the sums are scaled down when a larger row comes. What is
 * lost beside the largest row is 2^-25 of it.
 *
 * The weights need to know which element of a matrix is which, as in attention_matrix.glsl. Rows of
 * k, q or dy that no own row of the workgroup sees count as zeros.
 */
#include "lib/common.glsl"
#include "args/attention.h"
#include "args/attention_backward.h"

layout(constant_id = 1) const uint PASS = ATTENTION_OF_QUERIES; /* or ATTENTION_OF_KEYS, DK, DV */
layout(constant_id = 2) const bool SOFTCAP = false;
layout(constant_id = 3) const bool WHOLE = false; /* quads are aligned */
layout(constant_id = 4) const uint WIDTH = 64;    /* a multiple of the units */
layout(constant_id = 5) const uint UNIT_M = 16;
layout(constant_id = 6) const uint UNIT_N = 16;
layout(constant_id = 7) const uint UNIT_K = 16;
layout(constant_id = 8) const uint PARTS = 8;       /* subgroups */
layout(constant_id = 9) const uint ROWS = 2;        /* MATRIX_LANES UNIT_M / subgroup size */
layout(constant_id = 10) const uint TILE = 64;      /* in whole UNIT_K of 1 or 2 UNIT_N */
layout(constant_id = 11) const bool DIRECT = false; /* then UNIT_K equals UNIT_N */
layout(push_constant) uniform block { attention_backward_args args; };
layout(set = 0, binding = 0) readonly buffer q_source { float q[]; };
layout(set = 0, binding = 1) readonly buffer dy_source { float dy[]; };
layout(set = 0, binding = 2) readonly buffer k_source { float k[]; };
layout(set = 0, binding = 3) readonly buffer v_source { float v[]; };
layout(set = 0, binding = 0) readonly buffer q_quads { vec4 q4[]; };
layout(set = 0, binding = 1) readonly buffer dy_quads { vec4 dy4[]; };
layout(set = 0, binding = 2) readonly buffer k_quads { vec4 k4[]; };
layout(set = 0, binding = 3) readonly buffer v_quads { vec4 v4[]; };
layout(set = 0, binding = 4) readonly restrict buffer mask_source { float mask[]; };
layout(set = 0, binding = 5) readonly restrict buffer statistics { float stats[]; };
layout(set = 0, binding = 6) writeonly buffer target { float y[]; };

const uint MASK = ATTENTION_BAND;
const bool OF_KEYS = PASS != ATTENTION_OF_QUERIES; /* own rows are keys */
const bool FIRST = PASS != ATTENTION_OF_DV;        /* dq or dk is wanted */
const bool SECOND = PASS == ATTENTION_OF_KEYS || PASS == ATTENTION_OF_DV; /* dv is wanted */
const uint OWN_ROWS = PARTS * UNIT_M, OTHERS = TILE;
#define MASK_QUERY args.mask_query
#define MASK_KEY   args.mask_key
#include "attention/attention.glsl"
#include "attention/attention_backward_rows.glsl"
#include "matmul/matrix_layout.glsl"

const uint THREADS = gl_WorkGroupSize.x;
const uint PITCH = WIDTH / 4 + 2;                /* stride of rows of a tile, in quads */
const uint CARRY = TILE * (WIDTH / 4) / THREADS; /* quads that an invocation loads of each tile */
const uint TILE_N = TILE / UNIT_N, TILE_K = TILE / UNIT_K;
const uint WIDTH_N = WIDTH / UNIT_N, WIDTH_K = WIDTH / UNIT_K;
const uint WORK = DIRECT ? UNIT_M * UNIT_K / 2 : UNIT_M * UNIT_N; /* words of a subgroup's part */
const uint LEAST_EXPONENT = 1u; /* biased; of 0 and of what is not finite */

shared uvec2 tiles[2 * TILE * PITCH]; /* of product 0: other k or q; of product 1: v or dy */
shared vec2 column_statistics[TILE];   /* of keys: log-sum-exp, in units of log2, and delta */
shared uint work[PARTS * WORK];

#define OPERAND_A coopmat<ELEMENT, gl_ScopeSubgroup, UNIT_M, UNIT_K, gl_MatrixUseA>
#define OPERAND_B coopmat<ELEMENT, gl_ScopeSubgroup, UNIT_K, UNIT_N, gl_MatrixUseB>
#define SUM       coopmat<float, gl_ScopeSubgroup, UNIT_M, UNIT_N, gl_MatrixUseAccumulator>
#define BY_ROW    gl_CooperativeMatrixLayoutRowMajor
#define BY_COLUMN gl_CooperativeMatrixLayoutColumnMajor

OPERAND_A own_q[WIDTH_K], own_dy[WIDTH_K]; /* or k and v */
SUM first_sums[FIRST ? WIDTH_N : 1], second_sums[SECOND ? WIDTH_N : 1];
vec4 next[2][CARRY];
float score[TILE_N * UNIT], dp[TILE_N * UNIT]; /* of this lane; then p and dz */
vec2 row_statistics[ROWS];                     /* of queries, as column_statistics */
uint row_exponent[ROWS];                       /* of queries */
uint exponent;                                 /* of keys: of the largest row until now, biased */
uint own_row, work_at;                         /* the subgroup's first row, and part of `work` */

uvec2 halves(vec4 x)
{
    return uvec2(pack_pair(x.xy), pack_pair(x.zw));
}

/* ---- Scales ---- */

/* The biased exponent of the larger one of dy and delta of query i. */
uint exponent_of(uint i)
{
    uint rows = args.batch * args.heads * args.queries;
    uint at = args.lse_offset + 2u * rows + row_at + min(i, args.queries - 1u);
    uint found = floatBitsToUint(stats[at]) >> 23 & 255u;
    return found == 255u ? LEAST_EXPONENT : clamp(found, LEAST_EXPONENT, 253u);
}
/* 2^-e of a biased exponent e, which makes a value with it 1 to 2; and 2^e. */
float shrinking(uint biased)
{
    return uintBitsToFloat((254u - biased) << 23);
}
float growing(uint biased)
{
    return uintBitsToFloat(biased << 23);
}

vec2 statistics_of(uint i, uint biased)
{
    uint rows = args.batch * args.heads * args.queries;
    uint at = args.lse_offset + row_at + min(i, args.queries - 1u);
    return vec2(stats[at] * LOG2_E, stats[at + rows] * shrinking(biased));
}

/* The largest exponent of the tile of queries, and of those before it. */
uint tile_exponent()
{
    uint most = exponent;
    for (uint row = gl_SubgroupInvocationID; row < TILE; row += LANE_COUNT)
        most = max(most, exponent_of(other_first + row));
    [[unroll]] for (uint lanes = 1; lanes < LANE_COUNT; lanes *= 2)
        most = max(most, subgroupShuffleXor(most, lanes));
    return most;
}

/* ---- Operands ---- */

/* Reads the subgroup's rows of q and dy, or k and v, scaled. */
void take_own()
{
    [[unroll]] for (uint i = 0; i < (FIRST ? 2 : 1) * WIDTH_K; i++) {
        uint product = i / WIDTH_K;
        [[unroll]] for (uint quad = 0; quad < UNIT_M * UNIT_K / 4; quad += LANE_COUNT) {
            uint at = quad + gl_SubgroupInvocationID, row = own_row + at / (UNIT_K / 4);
            float factor = 1.0;
            if (at < UNIT_M * UNIT_K / 4) {
                if (!OF_KEYS)
                    factor = product == 0u ? score_factor()
                                           : shrinking(exponent_of(own_first + row));
                vec4 x = load_own(product, row, i % WIDTH_K * UNIT_K + at % (UNIT_K / 4) * 4);
                uvec2 pair = halves(x * factor);
                work[work_at + at * 2] = pair.x;
                work[work_at + at * 2 + 1] = pair.y;
            }
        }
        subgroupBarrier();
        if (product == 0u)
            coopMatLoad(own_q[i % WIDTH_K], work, work_at, UNIT_K / 2, BY_ROW);
        else
            coopMatLoad(own_dy[i % WIDTH_K], work, work_at, UNIT_K / 2, BY_ROW);
        subgroupBarrier();
    }
}

void fetch()
{
    [[unroll]] for (uint product = 0; product < 2; product++)
        [[unroll]] for (uint i = 0; i < CARRY; i++) {
            uint slot = i * THREADS + gl_LocalInvocationID.x;
            next[product][i] = load_other(product, slot / (WIDTH / 4), slot % (WIDTH / 4) * 4);
        }
}

/* Stores the tile that was fetched, which begins at row `first`. Rows outside [begin, end) are
 * zeros, because no own row of the workgroup sees them. */
void store(uint first, uint begin, uint end)
{
    float factors[2] = {OF_KEYS ? score_factor() : 1.0, OF_KEYS ? shrinking(exponent) : 1.0};
    [[unroll]] for (uint product = 0; product < 2; product++)
        [[unroll]] for (uint i = 0; i < CARRY; i++) {
            uint slot = i * THREADS + gl_LocalInvocationID.x, row = first + slot / (WIDTH / 4);
            bool is_seen = row >= begin && row < end;
            tiles[(product * TILE + slot / (WIDTH / 4)) * PITCH + slot % (WIDTH / 4)] =
                is_seen ? halves(next[product][i] * factors[product]) : uvec2(0);
        }
}

/* ---- A step ---- */

/* Gives this lane its elements of a sum. */
#define DEFINE_SPREAD(spread, held)                                                                \
    void spread(SUM s, uint n)                                                                     \
    {                                                                                              \
        if (DIRECT) {                                                                              \
            [[unroll]] for (uint e = 0; e < UNIT; e++)                                             \
                held[n * UNIT + e] = s[e];                                                         \
        } else {                                                                                   \
            coopMatStore(s, work, work_at, UNIT_N, BY_ROW);                                        \
            subgroupBarrier();                                                                     \
            [[unroll]] for (uint e = 0; e < UNIT; e++)                                             \
                held[n * UNIT + e] =                                                               \
                    uintBitsToFloat(work[work_at + row_of(e) * UNIT_N + column_of(e)]);            \
            subgroupBarrier();                                                                     \
        }                                                                                          \
    }
DEFINE_SPREAD(spread_score, score)
DEFINE_SPREAD(spread_dp, dp)

/* Multiplies the own rows by the tiles. Each lane gets its scores and dp. */
void multiply_rows()
{
    SUM s[TILE_N], g[TILE_N];
    [[unroll]] for (uint n = 0; n < TILE_N; n++)
        s[n] = g[n] = SUM(0.0);
    [[unroll]] for (uint i = 0; i < WIDTH_K; i++) {
        [[unroll]] for (uint n = 0; n < TILE_N; n++) {
            OPERAND_B other;
            uint at = n * UNIT_N * PITCH + i * (UNIT_K / 4);
            coopMatLoad(other, tiles, at, PITCH, BY_COLUMN);
            s[n] = coopMatMulAdd(own_q[i], other, s[n]);
            if (FIRST) {
                coopMatLoad(other, tiles, TILE * PITCH + at, PITCH, BY_COLUMN);
                g[n] = coopMatMulAdd(own_dy[i], other, g[n]);
            }
        }
    }
    [[unroll]] for (uint n = 0; n < TILE_N; n++) {
        spread_score(s[n], n);
        if (FIRST)
            spread_dp(g[n], n);
    }
}

bool is_seen(uint row, uint other)
{
    uint i = OF_KEYS ? other : row, j = OF_KEYS ? row : other;
    return i < args.queries && j >= band_begin(i) && j < band_end(i);
}

/* Does this tile contain pairs of the subgroup's rows that do not count? */
bool is_edge()
{
    uint row = own_first + own_row, row_end = row + UNIT_M, other_end = other_first + TILE;
    uint i = OF_KEYS ? other_first : row, i_end = OF_KEYS ? other_end : row_end;
    uint j = OF_KEYS ? row : other_first, j_end = OF_KEYS ? row_end : other_end;
    return i_end > args.queries || j_end > band_end(i) || j < band_begin(i_end - 1u);
}

/* Makes p of the lane's scores, and dz of its dp. If a score is NaN, p is NaN, whatever exp2
 * returns. */
void weigh()
{
    bool edge = is_edge();
    [[unroll]] for (uint e = 0; e < TILE_N * UNIT; e++) {
        uint column = e / UNIT * UNIT_N + column_of(e % UNIT);
        vec2 statistics = OF_KEYS ? column_statistics[column] : row_statistics[e % UNIT / OWN];
        float slope = 1.0, z = score[e];
        if (SOFTCAP) {
            float t = is_nan(z) ? z : safe_tanh(z);
            z = args.softcap * LOG2_E * t;
            slope = 1.0 - t * t;
        }
        float d = z - statistics.x;
        float p = is_nan(d) ? NAN_VALUE : exp2(d);
        bool out_of_it = is_dropped(z);
        if (edge)
            out_of_it = out_of_it || !is_seen(own_first + own_row + row_of(e % UNIT),
                                              other_first + column);
        if (FIRST)
            dp[e] = out_of_it ? 0.0 : p * (dp[e] - statistics.y) * slope;
        score[e] = out_of_it ? 0.0 : p;
    }
}

/* Sums += the lane's values times a tile. */
#define DEFINE_ADD(add, held, product, sums)                                                       \
    void add()                                                                                     \
    {                                                                                              \
        [[unroll]] for (uint n = 0; n < TILE_K; n++) {                                             \
            OPERAND_A left;                                                                        \
            if (DIRECT) {                                                                          \
                [[unroll]] for (uint e = 0; e < UNIT; e++)                                         \
                    left[e] = ELEMENT(held[n * UNIT + e]);                                       \
            } else {                                                                               \
                [[unroll]] for (uint e = 0; e < UNIT_K / UNIT_N * UNIT; e += 2)                    \
                    work[work_at + (row_of(e % UNIT) * UNIT_K + e / UNIT * UNIT_N +                \
                                    column_of(e % UNIT)) / 2] =                                    \
                        pack_pair(vec2(held[n * (UNIT_K / UNIT_N) * UNIT + e],                  \
                                          held[n * (UNIT_K / UNIT_N) * UNIT + e + 1]));            \
                subgroupBarrier();                                                                 \
                coopMatLoad(left, work, work_at, UNIT_K / 2, BY_ROW);                              \
                subgroupBarrier();                                                                 \
            }                                                                                      \
            [[unroll]] for (uint i = 0; i < WIDTH_N; i++) {                                        \
                OPERAND_B right;                                                                   \
                coopMatLoad(right, tiles, (product * TILE + n * UNIT_K) * PITCH + i * (UNIT_N / 4),\
                            PITCH, BY_ROW);                                                        \
                sums[i] = coopMatMulAdd(left, right, sums[i]);                                     \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_ADD(add_dz, dp, 0u, first_sums)
DEFINE_ADD(add_p, score, 1u, second_sums)

/* Prepares the tile's scale and statistics, if its rows are queries. */
void meet_queries()
{
    uint met = tile_exponent(), lane = gl_LocalInvocationID.x;
    if (met != exponent) {
        float factor = met - exponent > 126u ? 0.0 : shrinking(127u + met - exponent);
        [[unroll]] for (uint i = 0; i < WIDTH_N; i++) {
            if (FIRST)
                first_sums[i] = first_sums[i] * factor;
            if (SECOND)
                second_sums[i] = second_sums[i] * factor;
        }
        exponent = met;
    }
    for (uint row = lane; row < TILE; row += THREADS)
        column_statistics[row] = statistics_of(other_first + row, exponent);
}

/* ---- Results ---- */

#define DEFINE_FINISH(finish, sums)                                                                \
    void finish(uint base, uint stride, float factor)                                              \
    {                                                                                              \
        [[unroll]] for (uint i = 0; i < WIDTH_N; i++) {                                            \
            if (!DIRECT) {                                                                         \
                coopMatStore(sums[i], work, work_at, UNIT_N, BY_ROW);                              \
                subgroupBarrier();                                                                 \
            }                                                                                      \
            [[unroll]] for (uint e = 0; e < UNIT; e++) {                                           \
                uint row = own_first + own_row + row_of(e);                                        \
                float x = DIRECT                                                                   \
                              ? sums[i][e]                                                         \
                              : uintBitsToFloat(work[work_at + row_of(e) * UNIT_N + column_of(e)]);\
                float grown = OF_KEYS ? growing(exponent) : growing(row_exponent[e / OWN]);  \
                if (row < own_count)                                                               \
                    y[base + row * stride + i * UNIT_N + column_of(e)] = x * factor * grown;       \
            }                                                                                      \
            if (!DIRECT)                                                                           \
                subgroupBarrier();                                                                 \
        }                                                                                          \
    }
DEFINE_FINISH(finish_first, first_sums)
DEFINE_FINISH(finish_second, second_sums)

/* ---- Loops over tiles ---- */

void start()
{
    own_row = gl_SubgroupID * UNIT_M;
    work_at = gl_SubgroupID * WORK;
    exponent = LEAST_EXPONENT;
    if (FIRST) [[unroll]]
        for (uint i = 0; i < WIDTH_N; i++)
            first_sums[i] = SUM(0.0);
    if (SECOND) [[unroll]]
        for (uint i = 0; i < WIDTH_N; i++)
            second_sums[i] = SUM(0.0);
    own_count = OF_KEYS ? args.keys : args.queries;
    other_count = OF_KEYS ? args.queries : args.keys;
}

/* A step with the tile that was fetched, while the next one is fetched. */
void process(uint begin, uint end, uint next_head, uint next_first, uint b)
{
    barrier();
    if (OF_KEYS)
        meet_queries();
    store(other_first, begin, end);
    barrier();
    uint this_first = other_first;
    if (OF_KEYS)
        set_head(b, next_head);
    other_first = next_first;
    fetch();
    other_first = this_first;
    multiply_rows();
    weigh();
    if (SECOND)
        add_p();
    if (FIRST)
        add_dz();
    other_first = next_first;
}

/* Workgroups of later queries start first, because they have the most work under a causal mask. */
void walk_keys(uint item)
{
    uint heads = args.batch * args.heads, head = item % heads;
    uint count = tiles_of(args.queries, OWN_ROWS);
    if (item / heads >= count)
        return;
    own_first = (count - 1u - item / heads) * OWN_ROWS;
    start();
    set_head(head / args.heads, head % args.heads);
    take_own();
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        uint i = own_first + own_row + row_of(r * OWN);
        row_exponent[r] = exponent_of(i);
        row_statistics[r] = statistics_of(i, row_exponent[r]);
    }
    uint last = min(own_first + OWN_ROWS, args.queries) - 1u;
    uint first = band_begin(own_first), end = band_end(last);
    other_first = first / TILE * TILE;
    fetch();
    [[dont_unroll]] while (other_first < end)
        process(first, end, 0u, other_first + TILE, 0u);
    finish_first(args.out_offset + q_at, args.q_seq, args.scale);
}

/* A tile of keys, with the queries of every head of its kv head. */
void walk_queries(uint item)
{
    uint heads = args.batch * args.kv_heads, b = item % heads / args.kv_heads;
    uint kv_head = item % args.kv_heads, group = args.heads / args.kv_heads, first, end;
    if (item / heads >= tiles_of(args.keys, OWN_ROWS))
        return;
    own_first = item / heads * OWN_ROWS;
    start();
    find_queries(OWN_ROWS, first, end);
    uint count = end - min(first, end), steps = group * count;
    k_at = b * args.kv_batch + kv_head * args.kv_head;
    take_own();
    set_head(b, kv_head * group);
    other_first = first * TILE;
    fetch();
    [[dont_unroll]] for (uint step = 1u; step <= steps; step++) {
        uint head = kv_head * group + min(step, steps - 1u) / count;
        process(0u, args.queries, head, (first + min(step, steps - 1u) % count) * TILE, b);
    }
    uint base = args.out_offset + k_at;
    if (FIRST)
        finish_first(base, args.kv_seq, SOFTCAP ? args.softcap : LN_2);
    if (SECOND)
        finish_second(base + args.part_words / 2u, args.kv_seq, 1.0);
}

void main()
{
    if (OF_KEYS)
        walk_queries(group_index());
    else
        walk_keys(group_index());
}
