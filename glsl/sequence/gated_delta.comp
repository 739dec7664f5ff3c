#version 450
/*
 * The gated delta rule for a tile of columns of one head's state. `lanes` invocations share a
 * column. Each keeps KEEP (constant 1) of its numbers, every lanes-th one. Both products with the
 * decayed state come from one pass: if d = beta (v - M k), the new state gives M q + d (k . q).
 * Sums over lanes alternate between two halves of the shared memory, so that a step needs only one
 * barrier. If constant 2 is true, the kernel reads an initial state and writes the final one.
 * `after` may be `before`.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/sequence.h"

layout(constant_id = 1) const uint KEEP = 8;
layout(constant_id = 2) const bool CARRY = false;
layout(push_constant) uniform block { gated_delta_args args; };
layout(set = 0, binding = 0) restrict readonly buffer queries { float q[]; };
layout(set = 0, binding = 1) restrict readonly buffer keys { float k[]; };
layout(set = 0, binding = 2) restrict readonly buffer values { float v[]; };
layout(set = 0, binding = 3) restrict readonly buffer decays { float g[]; };
layout(set = 0, binding = 4) restrict readonly buffer strengths { float beta[]; };
layout(set = 0, binding = 5) restrict writeonly buffer target { float y[]; };
layout(set = 0, binding = 6) readonly buffer before_state { float before[]; };
layout(set = 0, binding = 7) writeonly buffer after_state { float after[]; };

shared float partial[2][3][GATED_DELTA_THREADS];

float state[KEEP];
float key[KEEP], query[KEEP]; /* this lane's parts for the current step */

/* The logarithm of the step's decay, beta, and the value. */
vec3 read_step(uint lane, uint column, uint token)
{
    uint vector = token * args.size;
    [[unroll]] for (uint i = 0u; i < KEEP; i++) {
        uint row = lane + i * args.lanes;
        bool live = row < args.size;
        query[i] = live ? q[args.q_offset + vector + row] : 0.0;
        key[i] = live ? k[args.k_offset + vector + row] : 0.0;
    }
    return vec3(g[args.g_offset + token], beta[args.beta_offset + token],
                v[args.v_offset + vector + column]);
}

/* Sums of M k, M q and k . q over the lanes of a column. Only in uniform control flow. */
vec3 join_lanes(vec3 part, uint columns, uint column, uint turn)
{
    if (args.lanes == 1u)
        return part;
    vec3 sum = vec3(0.0);
    for (uint i = 0u; i < 3u; i++)
        partial[turn][i][gl_LocalInvocationID.x] = part[i];
    barrier();
    for (uint lane = 0u; lane < args.lanes; lane++) {
        uint at = lane * columns + column;
        sum += vec3(partial[turn][0][at], partial[turn][1][at], partial[turn][2][at]);
    }
    return sum;
}

/* Decays the state and returns this lane's parts of the three sums. Numbers past the column's end
 * stay 0, whatever the factors are. */
vec3 recall(uint lane, float decay)
{
    vec3 part = vec3(0.0);
    [[unroll]] for (uint i = 0u; i < KEEP; i++) {
        state[i] = lane + i * args.lanes < args.size ? state[i] * decay : 0.0;
        part += vec3(state[i] * key[i], state[i] * query[i], key[i] * query[i]);
    }
    return part;
}

void main()
{
    uint columns = GATED_DELTA_THREADS / args.lanes;
    uint lane = gl_LocalInvocationID.x / columns, slot = gl_LocalInvocationID.x % columns;
    uint tiles = (args.size + columns - 1u) / columns, group = group_index();
    uint pair = group / tiles, column = group % tiles * columns + slot;
    uint b = pair / args.heads, head = pair % args.heads;
    bool live = column < args.size;
    if (b >= args.batch)
        return;
    column = min(column, args.size - 1u);
    [[unroll]] for (uint i = 0u; i < KEEP; i++) {
        uint row = lane + i * args.lanes, at = (pair * args.size + row) * args.size + column;
        state[i] = CARRY && row < args.size ? before[args.before_offset + at] : 0.0;
    }
    uint token = b * args.steps * args.heads + head;
    vec3 step = read_step(lane, column, token);
    for (uint t = 0u; t < args.steps; t++, token += args.heads) {
        float used[KEEP];
        vec3 part = recall(lane, exp(step.x)), now = step;
        [[unroll]] for (uint i = 0u; i < KEEP; i++)
            used[i] = key[i];
        if (t + 1u < args.steps) /* load the next step while the lanes wait for each other */
            step = read_step(lane, column, token + args.heads);
        vec3 sum = join_lanes(part, columns, slot, t & 1u);
        float correction = (now.z - sum.x) * now.y;
        [[unroll]] for (uint i = 0u; i < KEEP; i++)
            state[i] = fma(used[i], correction, state[i]);
        if (lane == 0u && live)
            y[args.y_offset + token * args.size + column] =
                args.scale * fma(correction, sum.z, sum.y);
    }
    [[unroll]] for (uint i = 0u; i < KEEP; i++) {
        uint row = lane + i * args.lanes, at = (pair * args.size + row) * args.size + column;
        if (CARRY && live && row < args.size)
            after[args.after_offset + at] = state[i];
    }
}
