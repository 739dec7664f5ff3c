#version 450
/*
 * The sweep back over all steps of a recurrent net, one workgroup per ROWS (constant 2: 1 or 4)
 * batch rows. Values passed from step to step stay in shared memory and registers (see
 * recurrent_sweep.glsl). The weights [G Hd, quads] have their units side by side. LANES (constant
 * 3) threads have a quad of units each. SPLITS (constant 4) of these groups share the rows of W_hh.
 * Constant 1 is the cell.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/sequence.h"

layout(constant_id = 1) const uint CELL = RECURRENT_LSTM;
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const uint LANES = 8;
layout(constant_id = 4) const uint SPLITS = 16;
layout(constant_id = 5) const uint AHEAD = 4; /* rows of W_hh loaded at a time */
layout(push_constant) uniform block { recurrent_sweep_args args; };
layout(set = 0, binding = 0) buffer gradients { float d[]; };
layout(set = 0, binding = 1) readonly buffer factors { float kept[]; };
layout(set = 0, binding = 2) restrict readonly buffer weights { vec4 w[]; };
layout(set = 0, binding = 3) readonly buffer arriving { float dy[]; };
layout(set = 0, binding = 4) readonly buffer last_h { float dhn[]; };
layout(set = 0, binding = 5) readonly buffer last_c { float dcn[]; };
layout(set = 0, binding = 6) writeonly buffer first_h { float dh0[]; };
layout(set = 0, binding = 7) writeonly buffer first_c { float dc0[]; };

#include "sequence/recurrent_sweep.glsl"

const uint THREADS = LANES * SPLITS, UNITS = 4 * LANES;
const uint ITEMS = (ROWS * UNITS + THREADS - 1) / THREADS;
const uint WIDEST = GATES * UNITS;
const uint MOST = WIDEST < RECURRENT_MOST_ROWS ? WIDEST : RECURRENT_MOST_ROWS;

shared float previous[MOST * ROWS]; /* of the last step, [G Hd, ROWS] */
shared vec4 pool[ROWS * THREADS];   /* partial sums, [ROWS, SPLITS, LANES] */

/* For each of this thread's items. An item is a unit of a batch row. */
float state[ITEMS];
cell_parts parts[ITEMS];

uint first_row;

bool is_live(uint i)
{
    uint item = gl_LocalInvocationID.x + i * THREADS, row = item / UNITS;
    return row < ROWS && first_row + row < args.batch && item % UNITS < args.hidden;
}
uint row_of(uint i)
{
    return (gl_LocalInvocationID.x + i * THREADS) / UNITS;
}
uint unit_of(uint i)
{
    return (gl_LocalInvocationID.x + i * THREADS) % UNITS;
}
/* Index in [B, Hd]. */
uint place_of(uint i)
{
    return (first_row + row_of(i)) * args.hidden + unit_of(i);
}

void multiply()
{
    uint lane = gl_LocalInvocationID.x % LANES, split = gl_LocalInvocationID.x / LANES;
    uint quads = (args.hidden + 3u) / 4u, rows = GATES * args.hidden;
    vec4 sums[ROWS];
    [[unroll]] for (uint b = 0u; b < ROWS; b++)
        sums[b] = vec4(0.0);
    for (uint k = split; k < rows && lane < quads; k += AHEAD * SPLITS) {
        vec4 weight[AHEAD];
        [[unroll]] for (uint i = 0u; i < AHEAD; i++)
            weight[i] = k + i * SPLITS < rows ? w[(k + i * SPLITS) * quads + lane] : vec4(0.0);
        [[unroll]] for (uint i = 0u; i < AHEAD; i++) {
            uint at = k + i * SPLITS;
            [[unroll]] for (uint b = 0u; b < ROWS; b++)
                sums[b] = fma(weight[i], vec4(at < rows ? previous[at * ROWS + b] : 0.0), sums[b]);
        }
    }
    [[unroll]] for (uint b = 0u; b < ROWS; b++)
        pool[b * THREADS + gl_LocalInvocationID.x] = sums[b];
}

/* The gradient that flows back to the item's h. Before the first step it is the gradient of the
 * final h, or 0 if there is none. */
float carry_of(uint i, bool multiplied)
{
    float sum = 0.0;
    if (!multiplied)
        return (args.seeds & RECURRENT_SEED_H) != 0u ? dhn[args.dhn_offset + place_of(i)] : 0.0;
    uint at = row_of(i) * THREADS + unit_of(i) / 4u;
    for (uint split = 0u; split < SPLITS; split++)
        sum += pool[at + split * LANES][unit_of(i) % 4u];
    return sum;
}

uint row_at(uint i, uint step)
{
    return (first_row + row_of(i)) * args.steps +
           (args.reversed != 0u ? step : args.steps - 1u - step);
}

void fetch(uint i, uint step)
{
    uint row = row_at(i, step), state_at = row * args.hidden + unit_of(i);
    parts[i] = fetch_parts(args.d_offset + row * GATES * args.hidden + unit_of(i),
                           args.kept_offset + state_at, args.c_offset + state_at,
                           args.dy_offset + state_at);
}

void finish(uint i, uint step)
{
    vec4 gradients = step_back(parts[i], carry_of(i, step > 0u), state[i]);
    store_gradients(args.d_offset + row_at(i, step) * GATES * args.hidden + unit_of(i), gradients);
    [[unroll]] for (uint gate = 0u; gate < GATES; gate++)
        previous[(gate * args.hidden + unit_of(i)) * ROWS + row_of(i)] = from_h(gradients, gate);
}

void main()
{
    first_row = group_index() * ROWS;
    if (first_row >= args.batch)
        return;
    bool has_state = CELL == RECURRENT_LSTM && (args.seeds & RECURRENT_SEED_C) != 0u;
    [[unroll]] for (uint i = 0u; i < ITEMS; i++)
        state[i] = has_state && is_live(i) ? dcn[args.dcn_offset + place_of(i)] : 0.0;
    for (uint step = 0u; step < args.steps; step++) {
        [[unroll]] for (uint i = 0u; i < ITEMS; i++)
            if (is_live(i))
                fetch(i, step);
        if (step > 0u)
            multiply();
        barrier();
        [[unroll]] for (uint i = 0u; i < ITEMS; i++)
            if (is_live(i))
                finish(i, step);
        barrier();
    }
    if (args.initial == 0u)
        return;
    if (args.steps > 0u)
        multiply();
    barrier();
    [[unroll]] for (uint i = 0u; i < ITEMS; i++) {
        if (!is_live(i))
            continue;
        float kept_h = CELL == RECURRENT_GRU ? state[i] : 0.0;
        dh0[args.dh0_offset + place_of(i)] = carry_of(i, args.steps > 0u) + kept_h;
        if (CELL == RECURRENT_LSTM)
            dc0[args.dc0_offset + place_of(i)] = state[i];
    }
}
