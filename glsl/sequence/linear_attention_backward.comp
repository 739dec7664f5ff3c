#version 450
/*
 * Gradients of linear attention, for a tile of columns of a head's state. LANES_I x LANES_J
 * invocations own OWN_I x OWN_J of its numbers each, every lanes-th row and column.
 *
 * The first dispatch walks forward. It keeps the state at the beginning of every chunk, and for
 * every step the rest e = v - D^T k. The second dispatch (BACK) takes the chunks from the last to
 * the first. It recomputes the states of a chunk, keeps them, and walks back over them. With D =
 * exp(g) M of the state before the step, and d = beta e:
 *
 *   G += scale q dy^T,  dd = G^T k,  dv = beta dd,  dbeta = dd . e,
 *   dq = scale (D + k d^T) dy,  dk = G d - D dv,  G -= k dv^T,  dg = sum G D,  G = exp(g) G.
 *
 * Without DELTA, e is v, and neither dk nor G loses the part with dv. With BY_KEY, g and dg have a
 * number for each row. If GROUPED, a head's queries after the first add to G, and give their dq,
 * one by one.
 *
 * Sums over rows are complete within a workgroup. Sums over columns are partial if there are
 * several tiles, and another kernel adds them up. The same holds for dbeta, and for dg of one
 * number, which also have parts for the row lanes. An invocation reads only the kept states that it
 * wrote itself.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "lib/math.glsl"
#include "args/sequence_backward.h"

layout(constant_id = 1) const bool BACK = false;
layout(constant_id = 2) const uint LANES_I = 16;
layout(constant_id = 3) const uint LANES_J = 8;
layout(constant_id = 4) const uint OWN_I = 8;
layout(constant_id = 5) const uint OWN_J = 4;
layout(constant_id = 6) const bool VECTOR_PARTS = false;
layout(constant_id = 7) const bool GATE_PARTS = false;
layout(constant_id = 8) const bool DELTA = true;
layout(constant_id = 9) const bool BY_KEY = false;
layout(constant_id = 10) const bool GROUPED = false;
layout(push_constant) uniform block { linear_attention_backward_args args; };
layout(set = 0, binding = 0) restrict readonly buffer queries { float q[]; };
layout(set = 0, binding = 1) restrict readonly buffer keys { float k[]; };
layout(set = 0, binding = 2) restrict readonly buffer values { float v[]; };
layout(set = 0, binding = 3) restrict readonly buffer decays { float g[]; };
layout(set = 0, binding = 4) restrict readonly buffer strengths { float beta[]; };
layout(set = 0, binding = 5) restrict readonly buffer upstream { float dy[]; };
layout(set = 0, binding = 6) restrict writeonly buffer target { float y[]; };
layout(set = 0, binding = 7) restrict buffer scratch { float work[]; };

const uint THREADS = LANES_I * LANES_J;
const uint OWN = OWN_I * OWN_J;
/* dq and dk by row, then dg, by row or not, then dbeta */
const uint GATES_FROM = 2u * OWN_I, BETA_AT = GATES_FROM + (BY_KEY ? OWN_I : 1u);
const uint OVER_J = BACK ? BETA_AT + 1u : 1u;

shared float row_parts[OWN_J * THREADS];
shared float found[OWN_J * LANES_J];
shared float column_parts[OVER_J * THREADS];

float state[OWN], gradient[OWN];
float query[OWN_I], key[OWN_I], rest[OWN_J], upward[OWN_J]; /* upward: scale dy */
float decay[BY_KEY ? OWN_I : 1u], strength;

struct place {
    uint batch_row, head, tile, tiles;
    uint lane_i, lane_j;
};

uint row_of(place at, uint i)
{
    return at.lane_i + i * LANES_I;
}
uint column_of(place at, uint j)
{
    return at.tile * LANES_J * OWN_J + at.lane_j + j * LANES_J;
}
uint count_queries()
{
    return GROUPED ? args.queries : 1u;
}
bool is_live(place at, uint i, uint j)
{
    return row_of(at, i) < args.key_width && column_of(at, j) < args.value_width;
}
uint state_index(place at, uint i, uint j)
{
    uint pair = at.batch_row * args.heads + at.head;
    return (pair * args.key_width + row_of(at, i)) * args.value_width + column_of(at, j);
}
float decay_of(uint i)
{
    return decay[BY_KEY ? i : 0u];
}

void load_ends(place at)
{
    [[unroll]] for (uint i = 0u; i < OWN_I; i++)
        [[unroll]] for (uint j = 0u; j < OWN_J; j++) {
            bool given = args.start_at != STATE_SCAN_ZERO && is_live(at, i, j);
            uint index = state_index(at, i, j), o = i * OWN_J + j;
            state[o] = given ? work[args.start_at + index] : 0.0;
            gradient[o] = given && BACK ? work[args.end_at + index] : 0.0;
        }
}

/* Reads a query of a token and the gradient of its result. */
void read_query(place at, uint token, uint which)
{
    uint index = token * count_queries() + which;
    [[unroll]] for (uint i = 0u; i < OWN_I; i++) {
        uint row = row_of(at, i);
        query[i] = row < args.key_width ? q[args.q_offset + index * args.key_width + row] : 0.0;
    }
    [[unroll]] for (uint j = 0u; j < OWN_J; j++) {
        uint column = column_of(at, j), from = args.dy_offset + index * args.value_width + column;
        upward[j] = column < args.value_width ? args.scale * dy[from] : 0.0;
    }
}

/* Reads the operands of a token. Elements past the ends are 0. */
void read_step(place at, uint token)
{
    uint vector = token * args.key_width;
    strength = beta[args.beta_offset + token];
    if (!BY_KEY)
        decay[0] = exponential(g[args.g_offset + token]);
    [[unroll]] for (uint i = 0u; i < OWN_I; i++) {
        uint row = row_of(at, i);
        bool live = row < args.key_width;
        key[i] = live ? k[args.k_offset + vector + row] : 0.0;
        if (BY_KEY)
            decay[i] = live ? exponential(g[args.g_offset + vector + row]) : 0.0;
    }
    [[unroll]] for (uint j = 0u; j < OWN_J; j++) {
        uint column = column_of(at, j), index = token * args.value_width + column;
        rest[j] = 0.0;
        if (column < args.value_width)
            rest[j] = BACK ? work[args.rest_at + index] : v[args.v_offset + index];
    }
    if (BACK)
        read_query(at, token, 0u);
}

/* ---- Kept states ---- */

uint slot_at(uint slots, uint slot)
{
    return args.scratch_at + ((group_index() * slots + slot) * OWN) * THREADS +
           gl_LocalInvocationID.x;
}

void keep_state(uint at)
{
    [[unroll]] for (uint o = 0u; o < OWN; o++)
        work[at + o * THREADS] = state[o];
}

void recall_state(uint at)
{
    [[unroll]] for (uint o = 0u; o < OWN; o++)
        state[o] = work[at + o * THREADS];
}

/* ---- Sums ---- */

/* Sums over rows, for each of this invocation's columns. Only in uniform control flow. */
void join_rows(place at, inout float sums[OWN_J])
{
    uint thread = gl_LocalInvocationID.x;
    if (LANES_I == 1u)
        return;
    [[unroll]] for (uint j = 0u; j < OWN_J; j++)
        row_parts[j * THREADS + thread] = sums[j];
    barrier();
    for (uint o = thread; o < OWN_J * LANES_J; o += THREADS) {
        uint j = o / LANES_J, lane = o % LANES_J;
        float sum = 0.0;
        for (uint i = 0u; i < LANES_I; i++)
            sum += row_parts[j * THREADS + i * LANES_J + lane];
        found[o] = sum;
    }
    barrier();
    [[unroll]] for (uint j = 0u; j < OWN_J; j++)
        sums[j] = found[j * LANES_J + at.lane_j];
}

void add_gate(place at, uint token, bool of_beta, uint lane, float sum)
{
    uint tokens = args.batch * args.steps * args.heads, all = BY_KEY ? tokens : 2u * tokens;
    uint index = (of_beta && !BY_KEY ? tokens : 0u) + token;
    if (GATE_PARTS)
        work[args.gates_at + (at.tile * LANES_I + lane) * all + index] = sum;
    else
        y[args.gates_at + index] = sum;
}

/* Gives an element of vectors that are `all` words in one part. */
void add_vector(place at, uint first, uint all, uint index, float sum)
{
    if (VECTOR_PARTS)
        work[first + at.tile * all + index] = sum;
    else
        y[first + index] = sum;
}

/* Gives the sum for value `value` of column_parts and a row lane. */
void give(place at, uint token, uint value, uint lane, float sum)
{
    uint keys = args.batch * args.steps * args.heads * args.key_width;
    bool of_vectors = value < GATES_FROM;
    uint row = lane + (of_vectors ? value / 2u : value - GATES_FROM) * LANES_I;
    if (!of_vectors && !(BY_KEY && value < BETA_AT))
        add_gate(at, token, value == BETA_AT, lane, sum);
    else if (row >= args.key_width)
        return;
    else if (!of_vectors)
        add_vector(at, args.decays_at, keys, token * args.key_width + row, sum);
    else if (value % 2u == 1u)
        add_vector(at, args.vectors_at, (count_queries() + 1u) * keys,
                   count_queries() * keys + token * args.key_width + row, sum);
    else
        add_vector(at, args.vectors_at, (count_queries() + 1u) * keys,
                   token * count_queries() * args.key_width + row, sum);
}

/* The part of column_parts in a row lane, summed over columns. Lanes begin at different terms to
 * avoid bank conflicts. */
float join_lane(uint value, uint lane, uint turn)
{
    float sum = 0.0;
    for (uint j = 0u; j < LANES_J; j++)
        sum += column_parts[value * THREADS + lane * LANES_J + (j + turn) % LANES_J];
    return sum;
}

void join_columns(place at, uint token)
{
    for (uint o = gl_LocalInvocationID.x; o < OVER_J * LANES_I; o += THREADS)
        give(at, token, o / LANES_I, o % LANES_I, join_lane(o / LANES_I, o % LANES_I, o));
}

/* ---- Steps ---- */

/* state = decay state + k d^T. d is given by column. */
void update(place at, float d[OWN_J])
{
    [[unroll]] for (uint i = 0u; i < OWN_I; i++)
        [[unroll]] for (uint j = 0u; j < OWN_J; j++)
            if (is_live(at, i, j))
                state[i * OWN_J + j] = fma(key[i], d[j], decay_of(i) * state[i * OWN_J + j]);
}

/* First walk forward: computes the rests and stores them. */
void advance(place at, uint token)
{
    float sums[OWN_J];
    read_step(at, token);
    [[unroll]] for (uint j = 0u; j < OWN_J; j++)
        sums[j] = 0.0;
    [[unroll]] for (uint i = 0u; i < OWN_I; i++)
        [[unroll]] for (uint j = 0u; j < OWN_J; j++)
            if (DELTA && is_live(at, i, j))
                sums[j] = fma(decay_of(i) * state[i * OWN_J + j], key[i], sums[j]);
    if (DELTA)
        join_rows(at, sums);
    [[unroll]] for (uint j = 0u; j < OWN_J; j++) {
        rest[j] -= sums[j];
        if (at.lane_i == 0u && column_of(at, j) < args.value_width)
            work[args.rest_at + token * args.value_width + column_of(at, j)] = rest[j];
        sums[j] = strength * rest[j];
    }
    update(at, sums);
}

/* Second walk forward, with the stored rests. */
void repeat(place at, uint token)
{
    float d[OWN_J];
    read_step(at, token);
    [[unroll]] for (uint j = 0u; j < OWN_J; j++)
        d[j] = strength * rest[j];
    update(at, d);
}

/* G += scale q dy^T. Returns G^T k by column, summed over this invocation's rows. */
void receive(place at, out float sums[OWN_J])
{
    [[unroll]] for (uint j = 0u; j < OWN_J; j++)
        sums[j] = 0.0;
    [[unroll]] for (uint i = 0u; i < OWN_I; i++)
        [[unroll]] for (uint j = 0u; j < OWN_J; j++)
            if (is_live(at, i, j)) {
                uint o = i * OWN_J + j;
                gradient[o] = fma(query[i], upward[j], gradient[o]);
                sums[j] = fma(gradient[o], key[i], sums[j]);
            }
}

/* An element of the state after the step. */
float made(uint i, uint j)
{
    return fma(key[i], strength * rest[j], decay_of(i) * state[i * OWN_J + j]);
}

/* The queries of a head but the first: adds to G, and gives their dq. */
void receive_others(place at, uint token)
{
    uint keys = args.batch * args.steps * args.heads * args.key_width;
    for (uint which = 1u; which < count_queries(); which++) {
        uint index = token * count_queries() + which;
        read_query(at, token, which);
        [[unroll]] for (uint i = 0u; i < OWN_I; i++) {
            float sum = 0.0;
            [[unroll]] for (uint j = 0u; j < OWN_J; j++)
                if (is_live(at, i, j)) {
                    gradient[i * OWN_J + j] = fma(query[i], upward[j], gradient[i * OWN_J + j]);
                    sum = fma(made(i, j), upward[j], sum);
                }
            column_parts[i * THREADS + gl_LocalInvocationID.x] = sum;
        }
        barrier();
        for (uint o = gl_LocalInvocationID.x; o < OWN_I * LANES_I; o += THREADS) {
            float sum = join_lane(o / LANES_I, o % LANES_I, o);
            if (o < args.key_width)
                add_vector(at, args.vectors_at, (count_queries() + 1u) * keys,
                           index * args.key_width + o, sum);
        }
        barrier();
    }
    if (GROUPED)
        read_query(at, token, 0u);
}

/* Returns dq, dk and a part of dg for one row. dv is given by column. */
vec3 retreat_row(place at, uint i, float dv[OWN_J])
{
    vec3 sums = vec3(0.0);
    [[unroll]] for (uint j = 0u; j < OWN_J; j++)
        if (is_live(at, i, j)) {
            uint o = i * OWN_J + j;
            float decayed = decay_of(i) * state[o], d = strength * rest[j];
            sums.x = fma(made(i, j), upward[j], sums.x);
            sums.y += DELTA ? gradient[o] * d - decayed * dv[j] : gradient[o] * d;
            if (DELTA)
                gradient[o] = fma(-key[i], dv[j], gradient[o]);
            sums.z = fma(gradient[o], decayed, sums.z);
            gradient[o] *= decay_of(i);
        }
    return sums;
}

/* Walks one step back. The step's operands are already read, and `state` is the state before the
 * step. The sums over columns are left to join_columns. */
void retreat(place at, uint token)
{
    uint thread = gl_LocalInvocationID.x;
    float sums[OWN_J], of_beta = 0.0, of_g = 0.0;
    receive_others(at, token);
    receive(at, sums);
    [[unroll]] for (uint j = 0u; j < OWN_J; j++)
        of_beta = fma(sums[j], rest[j], of_beta);
    join_rows(at, sums);
    [[unroll]] for (uint j = 0u; j < OWN_J; j++) {
        sums[j] *= strength;
        if (at.lane_i == 0u && column_of(at, j) < args.value_width)
            y[args.values_at + token * args.value_width + column_of(at, j)] = sums[j];
    }
    [[unroll]] for (uint i = 0u; i < OWN_I; i++) {
        vec3 of_row = retreat_row(at, i, sums);
        column_parts[2u * i * THREADS + thread] = of_row.x;
        column_parts[(2u * i + 1u) * THREADS + thread] = of_row.y;
        if (BY_KEY)
            column_parts[(GATES_FROM + i) * THREADS + thread] = of_row.z;
        of_g += of_row.z;
    }
    if (!BY_KEY)
        column_parts[GATES_FROM * THREADS + thread] = of_g;
    column_parts[BETA_AT * THREADS + thread] = of_beta;
}

void walk_back(place at, uint token, uint slots, uint begin, uint end)
{
    uint kept = slots - args.chunk;
    for (uint t = begin; t + 1u < end; t++) {
        keep_state(slot_at(slots, kept + t - begin));
        repeat(at, token + t * args.heads);
    }
    read_step(at, token + (end - 1u) * args.heads);
    for (uint t = end; t-- > begin;) {
        retreat(at, token + t * args.heads);
        if (t > begin) { /* load the next step while invocations wait for each other */
            recall_state(slot_at(slots, kept + t - begin - 1u));
            read_step(at, token + (t - 1u) * args.heads);
        }
        barrier();
        join_columns(at, token + t * args.heads);
        if (LANES_I == 1u || GROUPED) /* else, barriers come before the next writes */
            barrier();
    }
}

void main()
{
    place at;
    uint tile_columns = LANES_J * OWN_J, group = group_index();
    at.tiles = (args.value_width + tile_columns - 1u) / tile_columns;
    at.tile = group % at.tiles;
    at.head = group / at.tiles % args.heads;
    at.batch_row = group / at.tiles / args.heads;
    at.lane_i = gl_LocalInvocationID.x / LANES_J;
    at.lane_j = gl_LocalInvocationID.x % LANES_J;
    if (at.batch_row >= args.batch)
        return;
    uint token = at.batch_row * args.steps * args.heads + at.head;
    uint chunks = (args.steps + args.chunk - 1u) / args.chunk, slots = chunks + args.chunk;
    load_ends(at);
    for (uint pass = 0u; pass < chunks; pass++) {
        uint n = BACK ? chunks - 1u - pass : pass, begin = n * args.chunk;
        uint end = min(begin + args.chunk, args.steps);
        if (BACK) {
            recall_state(slot_at(slots, n));
            walk_back(at, token, slots, begin, end);
        } else {
            keep_state(slot_at(slots, n));
            for (uint t = begin; t < end; t++)
                advance(at, token + t * args.heads);
        }
    }
    if (BACK && args.initial_at != STATE_SCAN_ZERO)
        [[unroll]] for (uint i = 0u; i < OWN_I; i++)
            [[unroll]] for (uint j = 0u; j < OWN_J; j++)
                if (is_live(at, i, j))
                    y[args.initial_at + state_index(at, i, j)] = gradient[i * OWN_J + j];
}
