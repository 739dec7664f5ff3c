#version 450
/*
 * One step of the sweep back over a recurrent net (see recurrent_sweep.glsl). A workgroup takes a
 * tile of QUADS (constant 3) quads of units by BANDS (constant 4) bands of ROWS (constant 2: 1 or
 * 4) batch rows. The weights [tiles, G Hd, QUADS] are contiguous and are read once for all rows of
 * a tile. A thread has a quad of units and a band, and SPLITS groups of threads share the rows of
 * W_hh. A tree joins their sums. `after` may be `before`, because written elements are read only by
 * the invocation that writes them. Constant 1 is the cell.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/sequence.h"

layout(constant_id = 1) const uint CELL = RECURRENT_LSTM;
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const uint QUADS = 1;
layout(constant_id = 4) const uint BANDS = 1;
layout(constant_id = 5) const uint AHEAD = 4; /* rows of W_hh loaded at a time */
layout(push_constant) uniform block { recurrent_sweep_step_args args; };
layout(set = 0, binding = 0) buffer gradients { float d[]; };
layout(set = 0, binding = 1) readonly buffer factors { float kept[]; };
layout(set = 0, binding = 2) restrict readonly buffer weights { vec4 w[]; };
layout(set = 0, binding = 3) readonly buffer arriving { float dy[]; };
layout(set = 0, binding = 4) readonly buffer last_step { float previous[]; };
layout(set = 0, binding = 4) readonly buffer last_quads { vec4 previous4[]; };
layout(set = 0, binding = 5) writeonly buffer this_step { float next[]; };
layout(set = 0, binding = 6) readonly buffer state_in { float before[]; };
layout(set = 0, binding = 7) writeonly buffer state_out { float after[]; };

#include "sequence/recurrent_sweep.glsl"

const uint THREADS = gl_WorkGroupSize.x, LANES = QUADS * BANDS, SPLITS = THREADS / LANES;
/* PART of a thread's sums are joined at a time, so that each has a thread to finish it. */
const uint FITTING = THREADS < 8 * LANES ? 1 : THREADS / (4 * LANES);
const uint PART = FITTING < ROWS ? FITTING : ROWS, ROUNDS = ROWS / PART;

shared vec4 pool[PART * THREADS]; /* [PART, SPLITS, LANES] */

uint tile, lane, split, first_row; /* first_row: of the tile */
vec4 sums[ROWS];
float state[ROUNDS];
cell_parts parts[ROUNDS];

/* The unit and batch row that this thread finishes in a round. */
uint own_lane, own_part, own_unit;

uint row_of(uint round)
{
    return first_row + own_lane / QUADS * ROWS + round * PART + own_part;
}
bool is_live(uint round)
{
    return own_part < PART && own_unit < args.hidden && row_of(round) < args.batch;
}
uint place_of(uint round)
{
    return row_of(round) * args.hidden + own_unit;
}
uint d_place(uint round)
{
    return args.d_first + row_of(round) * args.d_batch + own_unit;
}

void fetch(uint round)
{
    uint state_at = row_of(round) * args.state_batch + own_unit;
    parts[round] = cell_parts(vec4(0.0), 0.0, 0.0, 0.0);
    state[round] = 0.0;
    if (!is_live(round))
        return;
    if ((args.flags & RECURRENT_SWEEP_CONTINUES) != 0u)
        state[round] = before[args.before_offset + place_of(round)];
    if ((args.flags & RECURRENT_SWEEP_ENDS) == 0u)
        parts[round] = fetch_parts(d_place(round), args.kept_first + state_at,
                                   args.c_first + state_at, args.dy_first + state_at);
}

vec4 previous_of(uint k)
{
    uint at = k * args.columns + first_row;
    return ROWS == 1u ? vec4(previous[at]) : previous4[at / 4u + lane / QUADS];
}

void multiply()
{
    uint rows = GATES * args.hidden, matrix = tile * rows * QUADS + lane % QUADS;
    for (uint k = split; k < rows; k += AHEAD * SPLITS) {
        vec4 weight[AHEAD], v[AHEAD];
        [[unroll]] for (uint i = 0u; i < AHEAD; i++) {
            uint at = k + i * SPLITS;
            weight[i] = at < rows ? w[matrix + at * QUADS] : vec4(0.0);
            v[i] = at < rows ? previous_of(at) : vec4(0.0);
        }
        [[unroll]] for (uint i = 0u; i < AHEAD; i++)
            [[unroll]] for (uint b = 0u; b < ROWS; b++)
                sums[b] = fma(weight[i], vec4(v[i][b]), sums[b]);
    }
}

void join(uint round)
{
    uint t = gl_LocalInvocationID.x;
    [[unroll]] for (uint p = 0u; p < PART; p++)
        pool[p * THREADS + t] = sums[round * PART + p];
    for (uint half_count = SPLITS / 2u; half_count > 0u; half_count /= 2u) {
        barrier();
        if (split < half_count)
            [[unroll]] for (uint p = 0u; p < PART; p++)
                pool[p * THREADS + t] += pool[p * THREADS + t + half_count * LANES];
    }
    barrier();
}

void finish(uint round, float carry)
{
    if ((args.flags & RECURRENT_SWEEP_ENDS) != 0u) {
        next[args.next_offset + place_of(round)] =
            carry + (CELL == RECURRENT_GRU ? state[round] : 0.0);
    } else {
        vec4 result = step_back(parts[round], carry, state[round]);
        store_gradients(d_place(round), result);
        [[unroll]] for (uint gate = 0u; gate < GATES; gate++)
            next[(gate * args.hidden + own_unit) * args.columns + row_of(round)] =
                from_h(result, gate);
    }
    if (CELL == RECURRENT_LSTM || CELL == RECURRENT_GRU)
        after[args.after_offset + place_of(round)] = state[round];
}

void main()
{
    uint unit_count = 4u * QUADS, tiles = (args.hidden + unit_count - 1u) / unit_count;
    uint group = group_index(), t = gl_LocalInvocationID.x;
    bool multiplies = (args.flags & RECURRENT_SWEEP_MULTIPLIES) != 0u;
    tile = group % tiles;
    first_row = group / tiles * BANDS * ROWS;
    lane = t % LANES;
    split = t / LANES;
    own_lane = t / 4u % LANES;
    own_part = t / (4u * LANES);
    own_unit = tile * unit_count + own_lane % QUADS * 4u + t % 4u;
    if (first_row >= args.batch)
        return;
    [[unroll]] for (uint round = 0u; round < ROUNDS; round++)
        fetch(round);
    [[unroll]] for (uint b = 0u; b < ROWS; b++)
        sums[b] = vec4(0.0);
    if (multiplies)
        multiply();
    [[unroll]] for (uint round = 0u; round < ROUNDS; round++) {
        if (multiplies)
            join(round);
        if (is_live(round)) {
            float carry = multiplies ? pool[own_part * THREADS + own_lane][t % 4u] : 0.0;
            if ((args.flags & RECURRENT_SWEEP_SEEDED) != 0u)
                carry = previous[args.previous_offset + place_of(round)];
            finish(round, carry);
        }
        barrier();
    }
}
