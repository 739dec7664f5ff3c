#version 450
/*
 * Linear attention for a tile of columns of one head's state. `lanes` invocations share a column.
 * Each keeps KEEP (constant 1) of its numbers, every lanes-th one. Both products with the decayed
 * state come from one pass: if d = beta (v - M k), the new state gives M q + d (k . q). The other
 * queries of a head read the new state. Sums over lanes alternate between two halves of the shared
 * memory, so that each needs only one barrier.
 *
 * If constant 2 is true, the kernel reads an initial state and writes the final one. `after` may be
 * `before`. Without constant 3, d is beta v. With constant 4, each row of the state has its own
 * decay. With constant 5, a head has several queries.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/sequence.h"

layout(constant_id = 1) const uint KEEP = 8;
layout(constant_id = 2) const bool CARRY = false;
layout(constant_id = 3) const bool DELTA = true;
layout(constant_id = 4) const bool BY_KEY = false;
layout(constant_id = 5) const bool GROUPED = false;
layout(push_constant) uniform block { linear_attention_args args; };
layout(set = 0, binding = 0) restrict readonly buffer queries { float q[]; };
layout(set = 0, binding = 1) restrict readonly buffer keys { float k[]; };
layout(set = 0, binding = 2) restrict readonly buffer values { float v[]; };
layout(set = 0, binding = 3) restrict readonly buffer decays { float g[]; };
layout(set = 0, binding = 4) restrict readonly buffer strengths { float beta[]; };
layout(set = 0, binding = 5) restrict writeonly buffer target { float y[]; };
layout(set = 0, binding = 6) readonly buffer before_state { float before[]; };
layout(set = 0, binding = 7) writeonly buffer after_state { float after[]; };

const uint THREADS = gl_WorkGroupSize.x;

shared float partial[2][3][THREADS];

float state[KEEP];
float key[KEEP], query[KEEP], rate[KEEP]; /* this lane's parts for the current step */

uint count_queries()
{
    return GROUPED ? args.queries : 1u;
}

uint row_of(uint lane, uint i)
{
    return lane + i * args.lanes;
}

void read_query(uint lane, uint token, uint which)
{
    uint first = args.q_offset + (token * count_queries() + which) * args.key_width;
    [[unroll]] for (uint i = 0u; i < KEEP; i++)
        query[i] = row_of(lane, i) < args.key_width ? q[first + row_of(lane, i)] : 0.0;
}

/* The logarithm of the step's decay, beta, and the value. */
vec3 read_step(uint lane, uint column, uint token)
{
    uint vector = token * args.key_width;
    read_query(lane, token, 0u);
    [[unroll]] for (uint i = 0u; i < KEEP; i++) {
        uint row = row_of(lane, i);
        bool live = row < args.key_width;
        key[i] = live ? k[args.k_offset + vector + row] : 0.0;
        if (BY_KEY)
            rate[i] = live ? g[args.g_offset + vector + row] : 0.0;
    }
    return vec3(BY_KEY ? 0.0 : g[args.g_offset + token], beta[args.beta_offset + token],
                v[args.v_offset + token * args.value_width + column]);
}

/* Sums over the lanes of a column. Only in uniform control flow. `turn` alternates. */
vec3 join_lanes(vec3 part, uint parts, uint columns, uint column, uint turn)
{
    if (args.lanes == 1u)
        return part;
    vec3 sum = vec3(0.0);
    for (uint i = 0u; i < parts; i++)
        partial[turn][i][gl_LocalInvocationID.x] = part[i];
    barrier();
    for (uint lane = 0u; lane < args.lanes; lane++) {
        uint at = lane * columns + column;
        sum.x += partial[turn][0][at];
        if (parts > 1u)
            sum.yz += vec2(partial[turn][1][at], partial[turn][2][at]);
    }
    return sum;
}

/* Decays the state and returns this lane's parts of the sums M q, M k and k . q. Numbers past the
 * column's end stay 0, whatever the factors are. */
vec3 recall(uint lane, float decay)
{
    vec3 part = vec3(0.0);
    [[unroll]] for (uint i = 0u; i < KEEP; i++) {
        float factor = BY_KEY ? exp(rate[i]) : decay;
        state[i] = row_of(lane, i) < args.key_width ? state[i] * factor : 0.0;
        part += vec3(state[i] * query[i], state[i] * key[i], key[i] * query[i]);
    }
    return part;
}

void main()
{
    uint columns = THREADS / args.lanes, turn = 0u;
    uint lane = gl_LocalInvocationID.x / columns, slot = gl_LocalInvocationID.x % columns;
    uint tiles = (args.value_width + columns - 1u) / columns, group = group_index();
    uint pair = group / tiles, column = group % tiles * columns + slot;
    uint b = pair / args.heads, head = pair % args.heads;
    bool live = column < args.value_width;
    if (b >= args.batch)
        return;
    column = min(column, args.value_width - 1u);
    [[unroll]] for (uint i = 0u; i < KEEP; i++) {
        uint at = (pair * args.key_width + row_of(lane, i)) * args.value_width + column;
        bool given = CARRY && row_of(lane, i) < args.key_width;
        state[i] = given ? before[args.before_offset + at] : 0.0;
    }
    uint token = b * args.steps * args.heads + head;
    vec3 step = read_step(lane, column, token);
    for (uint t = 0u; t < args.steps; t++, token += args.heads) {
        float used[KEEP];
        vec3 part = recall(lane, exp(step.x)), now = step;
        uint first = args.y_offset + token * count_queries() * args.value_width + column;
        [[unroll]] for (uint i = 0u; i < KEEP; i++)
            used[i] = key[i];
        if (t + 1u < args.steps) /* load the next step while the lanes wait for each other */
            step = read_step(lane, column, token + args.heads);
        vec3 sum = join_lanes(part, 3u, columns, slot, turn);
        float correction = (DELTA ? now.z - sum.y : now.z) * now.y;
        turn ^= 1u;
        [[unroll]] for (uint i = 0u; i < KEEP; i++)
            state[i] = fma(used[i], correction, state[i]);
        if (lane == 0u && live)
            y[first] = args.scale * fma(correction, sum.z, sum.x);
        for (uint which = 1u; which < count_queries(); which++) {
            part.x = 0.0;
            read_query(lane, token, which);
            [[unroll]] for (uint i = 0u; i < KEEP; i++)
                part.x = fma(state[i], query[i], part.x);
            sum = join_lanes(part, 1u, columns, slot, turn);
            turn ^= 1u;
            if (lane == 0u && live)
                y[first + which * args.value_width] = args.scale * sum.x;
        }
        if (GROUPED && t + 1u < args.steps)
            read_query(lane, token + args.heads, 0u);
    }
    [[unroll]] for (uint i = 0u; i < KEEP; i++) {
        uint at = (pair * args.key_width + row_of(lane, i)) * args.value_width + column;
        if (CARRY && live && row_of(lane, i) < args.key_width)
            after[args.after_offset + at] = state[i];
    }
}
