#version 450
/*
 * One layer of a recurrent net, one workgroup per batch row and direction. It takes all time steps,
 * with the state in shared memory. A lane takes rows of W_hh (gate and unit), then units. hn and cn
 * may be h0 and c0. Constant 1 is the cell. If constant 2 is true, the kernel reads initial states
 * and writes final ones.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/sequence.h"
#include "lib/math.glsl"

layout(constant_id = 1) const uint CELL = RECURRENT_LSTM;
layout(constant_id = 2) const bool CARRY = false;
layout(push_constant) uniform block { recurrent_args args; };
layout(set = 0, binding = 0) restrict readonly buffer projection { float p[]; };
layout(set = 0, binding = 1) restrict readonly buffer weights { float w[]; };
layout(set = 0, binding = 2) readonly buffer hidden_bias { float bias[]; };
layout(set = 0, binding = 3) readonly buffer first_h { float h0[]; };
layout(set = 0, binding = 4) readonly buffer first_c { float c0[]; };
layout(set = 0, binding = 5) writeonly buffer target { float y[]; };
layout(set = 0, binding = 6) writeonly buffer last_h { float hn[]; };
layout(set = 0, binding = 7) writeonly buffer last_c { float cn[]; };

#include "sequence/recurrent.glsl"

shared float h[RECURRENT_MOST_HIDDEN];
shared float c[RECURRENT_MOST_HIDDEN];
shared float z[4 * RECURRENT_MOST_HIDDEN]; /* W_hh h (+ b_hh) by gate and unit */

vec4 four_weights(uint at, uint rows)
{
    return vec4(w[at], w[at + rows], w[at + 2u * rows], w[at + 3u * rows]);
}

/* Row r of W_hh times h. Column k of the row is at w[at + k * rows]. */
float row_product(uint at, uint rows)
{
    float sum = 0.0;
    uint k = 0u;
    for (; k + 8u <= args.hidden; k += 8u, at += 8u * rows) { /* eight loads in flight */
        vec4 low = four_weights(at, rows), high = four_weights(at + 4u * rows, rows);
        sum += dot(low, vec4(h[k], h[k + 1u], h[k + 2u], h[k + 3u]));
        sum += dot(high, vec4(h[k + 4u], h[k + 5u], h[k + 6u], h[k + 7u]));
    }
    for (; k < args.hidden; k++, at += rows)
        sum = fma(w[at], h[k], sum);
    return sum;
}

void multiply(uint direction, uint rows)
{
    uint matrix = args.w_offset + direction * rows * args.hidden;
    for (uint r = gl_LocalInvocationID.x; r < rows; r += gl_WorkGroupSize.x) {
        float sum = row_product(matrix + r, rows);
        if (CELL == RECURRENT_GRU)
            sum += bias[args.bias_offset + direction * rows + r];
        z[r] = sum;
    }
}

/* p_at and y_at point to this step's elements for unit 0. */
void update(uint p_at, uint y_at)
{
    for (uint u = gl_LocalInvocationID.x; u < args.hidden; u += gl_WorkGroupSize.x) {
        vec4 from_x = vec4(0.0), from_h = vec4(0.0);
        for (uint gate = 0u; gate < gate_count(); gate++) {
            from_x[gate] = p[p_at + gate * args.hidden + u];
            from_h[gate] = z[gate * args.hidden + u];
        }
        float cell_state = c[u], next = cell(from_x, from_h, h[u], cell_state);
        h[u] = next;
        c[u] = cell_state;
        y[y_at + u] = next;
    }
}

void main()
{
    uint sequence = group_index(), rows = gate_count() * args.hidden;
    uint direction = sequence / args.batch, b = sequence - direction * args.batch;
    if (direction >= args.directions)
        return;
    uint state = (direction * args.batch + b) * args.hidden;
    for (uint u = gl_LocalInvocationID.x; u < args.hidden; u += gl_WorkGroupSize.x) {
        h[u] = CARRY ? h0[args.h0_offset + state + u] : 0.0;
        c[u] = CARRY && CELL == RECURRENT_LSTM ? c0[args.c0_offset + state + u] : 0.0;
    }
    barrier();
    for (uint s = 0u; s < args.steps; s++) {
        uint t = direction == 0u ? s : args.steps - 1u - s;
        uint at = (b * args.steps + t) * args.directions + direction;
        multiply(direction, rows);
        barrier();
        update(args.p_offset + at * rows, args.y_offset + at * args.hidden);
        barrier();
    }
    for (uint u = gl_LocalInvocationID.x; CARRY && u < args.hidden; u += gl_WorkGroupSize.x) {
        hn[args.hn_offset + state + u] = h[u];
        if (CELL == RECURRENT_LSTM)
            cn[args.cn_offset + state + u] = c[u];
    }
}
