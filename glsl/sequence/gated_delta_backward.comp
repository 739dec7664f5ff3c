#version 450
/*
 * Gradients of the gated delta rule, for a tile of columns of a head's state. LANES_I x LANES_J
 * invocations own OWN_I x OWN_J of its numbers each, every lanes-th row and column.
 *
 * The first dispatch walks forward. It keeps the state at the beginning of every chunk, and for
 * every step the rest e = v - D^T k. The second dispatch (BACK) takes the chunks from the last to
 * the first. It recomputes the states of a chunk, keeps them, and walks back over them. With D =
 * exp(g) M of the state before the step, and d = beta e:
 *
 *   G += q dy^T / sqrt(n),  dd = G^T k,  dv = beta dd,  dbeta = dd . e,
 *   dq = (D + k d^T) dy / sqrt(n),  dk = G d - D dv,  G -= k dv^T,  dg = sum G D,  G = exp(g) G.
 *
 * Sums over rows are complete within a workgroup. Sums over columns are partial if there are
 * several tiles, and another kernel adds them up. The same holds for dg and dbeta, which also have
 * parts for the row lanes. An invocation reads only the kept states that it wrote itself.
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
layout(push_constant) uniform block { gated_delta_backward_args args; };
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
const uint OVER_J = BACK ? 2u * OWN_I + 2u : 1u; /* dq and dk by row, dg, dbeta */

shared float row_parts[OWN_J * THREADS];
shared float found[OWN_J * LANES_J];
shared float column_parts[OVER_J * THREADS];

float state[OWN], gradient[OWN];
float query[OWN_I], key[OWN_I], rest[OWN_J], upward[OWN_J]; /* upward: dy / sqrt(n) */
float decay, strength;

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
bool is_live(place at, uint i, uint j)
{
    return row_of(at, i) < args.size && column_of(at, j) < args.size;
}
uint state_index(place at, uint i, uint j)
{
    uint pair = at.batch_row * args.heads + at.head;
    return (pair * args.size + row_of(at, i)) * args.size + column_of(at, j);
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

/* Reads the operands of a token. Elements past the ends are 0. */
void read_step(place at, uint token)
{
    uint vector = token * args.size;
    decay = exponential(g[args.g_offset + token]);
    strength = beta[args.beta_offset + token];
    [[unroll]] for (uint i = 0u; i < OWN_I; i++) {
        uint row = row_of(at, i);
        bool live = row < args.size;
        query[i] = live && BACK ? q[args.q_offset + vector + row] : 0.0;
        key[i] = live ? k[args.k_offset + vector + row] : 0.0;
    }
    [[unroll]] for (uint j = 0u; j < OWN_J; j++) {
        uint column = column_of(at, j);
        bool live = column < args.size;
        rest[j] = 0.0;
        if (live)
            rest[j] = BACK ? work[args.rest_at + vector + column]
                           : v[args.v_offset + vector + column];
        upward[j] = live && BACK ? args.scale * dy[args.dy_offset + vector + column] : 0.0;
    }
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

void add_gate(place at, uint token, uint which, uint lane, float sum)
{
    uint tokens = args.batch * args.steps * args.heads, index = which * tokens + token;
    if (GATE_PARTS)
        work[args.gates_at + (at.tile * LANES_I + lane) * 2u * tokens + index] = sum;
    else
        y[args.gates_at + index] = sum;
}

void add_vector(place at, uint token, uint which, uint row, float sum)
{
    uint count = args.batch * args.steps * args.heads * args.size;
    uint index = which * count + token * args.size + row;
    if (VECTOR_PARTS)
        work[args.vectors_at + at.tile * 2u * count + index] = sum;
    else
        y[args.vectors_at + index] = sum;
}

/* Sums over columns. Lanes begin at different terms to avoid bank conflicts. */
void join_columns(place at, uint token)
{
    for (uint o = gl_LocalInvocationID.x; o < OVER_J * LANES_I; o += THREADS) {
        uint value = o / LANES_I, lane = o % LANES_I, row = lane + value / 2u * LANES_I;
        float sum = 0.0;
        for (uint j = 0u; j < LANES_J; j++)
            sum += column_parts[value * THREADS + lane * LANES_J + (j + o) % LANES_J];
        if (value >= 2u * OWN_I)
            add_gate(at, token, value - 2u * OWN_I, lane, sum);
        else if (row < args.size)
            add_vector(at, token, value % 2u, row, sum);
    }
}

/* ---- Steps ---- */

/* state = decay state + k d^T. d is given by column. */
void update(place at, float d[OWN_J])
{
    [[unroll]] for (uint i = 0u; i < OWN_I; i++)
        [[unroll]] for (uint j = 0u; j < OWN_J; j++)
            if (is_live(at, i, j))
                state[i * OWN_J + j] = fma(key[i], d[j], decay * state[i * OWN_J + j]);
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
            if (is_live(at, i, j))
                sums[j] = fma(decay * state[i * OWN_J + j], key[i], sums[j]);
    join_rows(at, sums);
    [[unroll]] for (uint j = 0u; j < OWN_J; j++) {
        rest[j] -= sums[j];
        if (at.lane_i == 0u && column_of(at, j) < args.size)
            work[args.rest_at + token * args.size + column_of(at, j)] = rest[j];
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

/* G += q dy^T / sqrt(n). Returns G^T k by column, summed over this invocation's rows. */
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

/* Returns dq, dk and a part of dg for one row. dv is given by column. */
vec3 retreat_row(place at, uint i, float dv[OWN_J])
{
    vec3 sums = vec3(0.0);
    [[unroll]] for (uint j = 0u; j < OWN_J; j++)
        if (is_live(at, i, j)) {
            uint o = i * OWN_J + j;
            float decayed = decay * state[o], d = strength * rest[j];
            sums.x = fma(fma(key[i], d, decayed), upward[j], sums.x);
            sums.y += gradient[o] * d - decayed * dv[j];
            gradient[o] = fma(-key[i], dv[j], gradient[o]);
            sums.z = fma(gradient[o], decayed, sums.z);
            gradient[o] *= decay;
        }
    return sums;
}

/* Walks one step back. The step's operands are already read, and `state` is the state before the
 * step. The sums over columns are left to join_columns. */
void retreat(place at, uint token)
{
    uint thread = gl_LocalInvocationID.x;
    float sums[OWN_J], of_beta = 0.0, of_g = 0.0;
    receive(at, sums);
    [[unroll]] for (uint j = 0u; j < OWN_J; j++)
        of_beta = fma(sums[j], rest[j], of_beta);
    join_rows(at, sums);
    [[unroll]] for (uint j = 0u; j < OWN_J; j++) {
        sums[j] *= strength;
        if (at.lane_i == 0u && column_of(at, j) < args.size)
            y[args.values_at + token * args.size + column_of(at, j)] = sums[j];
    }
    [[unroll]] for (uint i = 0u; i < OWN_I; i++) {
        vec3 of_row = retreat_row(at, i, sums);
        column_parts[2u * i * THREADS + thread] = of_row.x;
        column_parts[(2u * i + 1u) * THREADS + thread] = of_row.y;
        of_g += of_row.z;
    }
    column_parts[2u * OWN_I * THREADS + thread] = of_g;
    column_parts[(2u * OWN_I + 1u) * THREADS + thread] = of_beta;
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
        if (LANES_I == 1u) /* otherwise the next step has barriers before it writes */
            barrier();
    }
}

void main()
{
    place at;
    uint tile_columns = LANES_J * OWN_J, group = group_index();
    at.tiles = (args.size + tile_columns - 1u) / tile_columns;
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
