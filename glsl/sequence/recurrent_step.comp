#version 450
/*
 * One time step of one recurrent layer. A workgroup takes a tile of units in one direction, and
 * ROWS (constant 2) batch rows. RECURRENT_STEP_LANES lanes share the columns of a unit's rows of
 * W_hh. `previous` may be y of the step before, and c0 may be c, because written elements are read
 * only by the invocation that writes them. Constant 1 is the cell. If constant 3 is true, rows of
 * W_hh and of h are aligned quads.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/sequence.h"
#include "lib/math.glsl"

layout(constant_id = 1) const uint CELL = RECURRENT_LSTM;
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const bool WHOLE = false;
layout(push_constant) uniform block { recurrent_step_args args; };
layout(set = 0, binding = 0) restrict readonly buffer projection { float p[]; };
layout(set = 0, binding = 1) restrict readonly buffer weights { float w[]; };
layout(set = 0, binding = 1) restrict readonly buffer weight_quads { vec4 w4[]; };
layout(set = 0, binding = 2) readonly buffer hidden_bias { float bias[]; };
layout(set = 0, binding = 3) readonly buffer previous_h { float previous[]; };
layout(set = 0, binding = 3) readonly buffer previous_h_quads { vec4 previous4[]; };
layout(set = 0, binding = 4) readonly buffer previous_c { float c0[]; };
layout(set = 0, binding = 5) writeonly buffer target { float y[]; };
layout(set = 0, binding = 6) writeonly buffer cell_state { float c[]; };

#include "sequence/recurrent.glsl"

const uint UNITS = RECURRENT_STEP_THREADS / RECURRENT_STEP_LANES;

/* Partial sums by gate and batch row, then by lane, and the complete sums. */
shared float partial[4u * ROWS][RECURRENT_STEP_THREADS];
shared float sums[4u * ROWS][UNITS];

/* Four columns at a time, or one. */
vec4 load_h(uint at)
{
    return WHOLE ? previous4[at / 4u] : vec4(previous[at], 0.0, 0.0, 0.0);
}
vec4 load_weights(uint at)
{
    return WHOLE ? w4[at / 4u] : vec4(w[at], 0.0, 0.0, 0.0);
}
float add_product(float sum, vec4 a, vec4 b)
{
    sum = fma(a.x, b.x, sum);
    return WHOLE ? fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, sum))) : sum;
}

void multiply(uint unit, uint direction, uint first_row)
{
    const uint columns = WHOLE ? 4u : 1u;
    uint lane = gl_LocalInvocationID.x % RECURRENT_STEP_LANES;
    uint matrix = args.w_offset + direction * gate_count() * args.hidden * args.hidden;
    float sum[4u * ROWS];
    [[unroll]] for (uint i = 0u; i < 4u * ROWS; i++)
        sum[i] = 0.0;
    uint end = args.has_previous != 0u && unit < args.hidden ? args.hidden : 0u;
    for (uint k = lane * columns; k < end; k += RECURRENT_STEP_LANES * columns) {
        vec4 h[ROWS];
        [[unroll]] for (uint b = 0u; b < ROWS; b++) {
            uint row = min(first_row + b, args.batch - 1u);
            h[b] = load_h(args.h_first[direction] + row * args.h_batch + k);
        }
        [[unroll]] for (uint gate = 0u; gate < gate_count(); gate++) {
            vec4 weight = load_weights(matrix + (gate * args.hidden + unit) * args.hidden + k);
            [[unroll]] for (uint b = 0u; b < ROWS; b++)
                sum[gate * ROWS + b] = add_product(sum[gate * ROWS + b], weight, h[b]);
        }
    }
    [[unroll]] for (uint i = 0u; i < gate_count() * ROWS; i++)
        partial[i][gl_LocalInvocationID.x] = sum[i];
}

/* One invocation adds up each sum over the lanes. Each starts at another lane to avoid bank
 * conflicts. */
void join_lanes()
{
    uint count = gate_count() * ROWS * UNITS;
    for (uint i = gl_LocalInvocationID.x; i < count; i += RECURRENT_STEP_THREADS) {
        uint which = i / UNITS, unit = i % UNITS;
        float sum = 0.0;
        for (uint lane = 0u; lane < RECURRENT_STEP_LANES; lane++)
            sum += partial[which][unit * RECURRENT_STEP_LANES +
                                  (lane + i) % RECURRENT_STEP_LANES];
        sums[which][unit] = sum;
    }
}

void update(uint unit, uint slot, uint direction, uint b, uint row)
{
    vec4 from_x = vec4(0.0), from_h = vec4(0.0);
    uint state = (direction * args.batch + row) * args.hidden + unit;
    uint p_at = args.p_first[direction] + row * args.p_batch + unit;
    uint bias_at = args.bias_offset + direction * gate_count() * args.hidden + unit;
    for (uint gate = 0u; gate < gate_count(); gate++) {
        from_x[gate] = p[p_at + gate * args.hidden];
        from_h[gate] = sums[gate * ROWS + b][slot];
        if (CELL == RECURRENT_GRU)
            from_h[gate] += bias[bias_at + gate * args.hidden];
    }
    float h = 0.0, cell_value = 0.0;
    if (CELL == RECURRENT_GRU && args.has_previous != 0u)
        h = previous[args.h_first[direction] + row * args.h_batch + unit];
    if (CELL == RECURRENT_LSTM && args.has_previous != 0u)
        cell_value = c0[args.c0_offset + state];
    h = cell(from_x, from_h, h, cell_value);
    y[args.y_first[direction] + row * args.y_batch + unit] = h;
    if (CELL == RECURRENT_LSTM)
        c[args.c_offset + state] = cell_value;
}

void main()
{
    uint tiles = (args.hidden + UNITS - 1u) / UNITS, group = group_index();
    uint tile = group % tiles, direction = group / tiles % args.directions;
    uint first_row = group / tiles / args.directions * ROWS;
    if (first_row >= args.batch)
        return;
    multiply(tile * UNITS + gl_LocalInvocationID.x / RECURRENT_STEP_LANES, direction, first_row);
    barrier();
    join_lanes();
    barrier();
    uint slot = gl_LocalInvocationID.x % UNITS, b = gl_LocalInvocationID.x / UNITS;
    uint unit = tile * UNITS + slot, row = first_row + b;
    if (b < ROWS && unit < args.hidden && row < args.batch)
        update(unit, slot, direction, b, row);
}
