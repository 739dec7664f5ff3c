#version 450
/*
 * One time step of one recurrent layer. A workgroup takes a tile of QUADS quads of rows of W_hh by
 * 8 OCTETS (constant 2) batch rows. A quad has the rows for all gates of a unit or, if there is
 * only one gate, for four units. The weights [D, tiles, Hd, QUADS] are in this order. The previous
 * h is [D, Hd, batch], with its batch contiguous, so that all operands are multiplied as vec4.
 *
 * Groups of LANES threads share the columns of W_hh. A thread has a quad for eight batch rows. The
 * groups' sums are joined in order. c may be c0, because written elements are read only by the
 * invocation that writes them. Constant 1 is the cell.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/sequence.h"
#include "lib/math.glsl"

layout(constant_id = 1) const uint CELL = RECURRENT_LSTM;
layout(constant_id = 2) const uint OCTETS = 4;
layout(constant_id = 3) const uint STAGE = 32;  /* columns of W_hh in shared memory at a time */
layout(constant_id = 4) const uint BUFFERS = 1; /* 2: one stage is filled while the other is read */
layout(push_constant) uniform block { recurrent_tile_args args; };
layout(set = 0, binding = 0) restrict readonly buffer projection { float p[]; };
layout(set = 0, binding = 1) restrict readonly buffer weights { vec4 w[]; };
layout(set = 0, binding = 2) readonly buffer hidden_bias { float bias[]; };
layout(set = 0, binding = 3) readonly buffer previous_h { float previous[]; };
layout(set = 0, binding = 3) readonly buffer previous_quads { vec4 previous4[]; };
layout(set = 0, binding = 4) readonly buffer previous_c { float c0[]; };
layout(set = 0, binding = 5) writeonly buffer target { float y[]; };
layout(set = 0, binding = 6) writeonly buffer cell_state { float c[]; };
layout(set = 0, binding = 7) writeonly buffer next_h { float next[]; };

#include "sequence/recurrent.glsl"

const uint UNITS = CELL == RECURRENT_LSTM || CELL == RECURRENT_GRU ? 1 : 4; /* of a quad */
const uint THREADS = gl_WorkGroupSize.x;
const uint QUADS = RECURRENT_TILE_QUADS, LANES = QUADS * OCTETS, COLUMNS = 2 * OCTETS;
const uint SPLITS = THREADS / LANES;
/* Quads of a stage: the weights, then h. The number of weights is a multiple of THREADS. */
const uint STAGE_WEIGHTS = STAGE * QUADS, STAGE_QUADS = STAGE_WEIGHTS + STAGE * COLUMNS;
const uint LOADS = (STAGE_QUADS + THREADS - 1) / THREADS;
/* PART of a thread's eight sums are joined at a time. */
const uint STAGE_POOL = STAGE * RECURRENT_TILE_POOL, POOL = BUFFERS * STAGE_POOL;
const uint FITTING = POOL / THREADS < 8 ? POOL / THREADS : 8;
const uint PART = FITTING < SPLITS ? FITTING : SPLITS, ROUNDS = 8 / PART;

shared vec4 pool[POOL];

uint quad, octet, split;              /* of this thread: quad, batch rows, columns of W_hh */
uint direction, first_unit, first_row; /* first_row: the first one that this thread joins */
vec4 fetched[LOADS];
vec4 sums[8];
vec4 from_x[ROUNDS];
float before[ROUNDS]; /* c */

vec4 fetch(uint i, uint first, uint matrix, uint history)
{
    bool weight = i * THREADS < STAGE_WEIGHTS;
    uint slot = gl_LocalInvocationID.x + i * THREADS, beyond = slot - STAGE_WEIGHTS;
    uint k = first + (weight ? slot / QUADS : beyond / COLUMNS);
    if (k >= args.hidden || slot >= STAGE_QUADS)
        return vec4(0.0);
    if (weight)
        return w[matrix + first * QUADS + slot];
    return previous4[history + k * args.column_quads + beyond % COLUMNS];
}

void fetch_stage(uint first, uint matrix, uint history)
{
    [[unroll]] for (uint i = 0u; i < LOADS; i++)
        fetched[i] = fetch(i, first, matrix, history);
}

void store_stage(uint at)
{
    [[unroll]] for (uint i = 0u; i < LOADS; i++)
        if (gl_LocalInvocationID.x + i * THREADS < STAGE_QUADS)
            pool[at + gl_LocalInvocationID.x + i * THREADS] = fetched[i];
}

void multiply_stage(uint at)
{
    for (uint i = 0u; i < STAGE / SPLITS; i++) {
        uint k = i * SPLITS + split, h_at = at + STAGE_WEIGHTS + k * COLUMNS + 2u * octet;
        vec4 weight = pool[at + k * QUADS + quad], low = pool[h_at], high = pool[h_at + 1u];
        [[unroll]] for (uint b = 0u; b < 4u; b++) {
            sums[b] = fma(weight, vec4(low[b]), sums[b]);
            sums[4u + b] = fma(weight, vec4(high[b]), sums[4u + b]);
        }
    }
}

void multiply(uint matrix, uint history)
{
    uint at = 0u;
    fetch_stage(0u, matrix, history);
    for (uint first = 0u; first < args.hidden; first += STAGE) {
        store_stage(at);
        barrier();
        if (first + STAGE < args.hidden)
            fetch_stage(first + STAGE, matrix, history);
        multiply_stage(at);
        if (BUFFERS == 2u)
            at = STAGE_POOL - at;
        else
            barrier();
    }
}

/* Loads early everything that the cells need and that does not depend on the product. */
void fetch_rest()
{
    [[unroll]] for (uint r = 0u; r < ROUNDS; r++) {
        uint row = first_row + r * PART;
        uint at = args.p_first[direction] + row * args.p_batch + first_unit;
        uint state = (direction * args.batch + row) * args.hidden + first_unit;
        from_x[r] = vec4(0.0);
        before[r] = 0.0;
        if (split >= PART || row >= args.batch || first_unit >= args.hidden)
            continue;
        [[unroll]] for (uint i = 0u; i < (UNITS == 1u ? gate_count() : UNITS); i++)
            if (UNITS == 1u || first_unit + i < args.hidden)
                from_x[r][i] = p[at + i * (UNITS == 1u ? args.hidden : 1u)];
        if (CELL == RECURRENT_LSTM && args.has_previous != 0u)
            before[r] = c0[args.c0_offset + state];
    }
}

void update(uint row, vec4 x, vec4 h, float cell_value)
{
    for (uint i = 0u; i < UNITS && first_unit + i < args.hidden; i++) {
        uint unit = first_unit + i, place = (direction * args.hidden + unit) * 4u *
                                                args.column_quads + row;
        float last = 0.0;
        if (CELL == RECURRENT_GRU) {
            uint bias_at = args.bias_offset + direction * 3u * args.hidden + unit;
            for (uint gate = 0u; gate < 3u; gate++)
                h[gate] += bias[bias_at + gate * args.hidden];
            if (args.has_previous != 0u)
                last = previous[place];
        }
        last = cell(UNITS == 1u ? x : vec4(x[i], 0.0, 0.0, 0.0),
                    UNITS == 1u ? h : vec4(h[i], 0.0, 0.0, 0.0), last, cell_value);
        y[args.y_first[direction] + row * args.y_batch + unit] = last;
        next[place] = last;
        if (CELL == RECURRENT_LSTM)
            c[args.c_offset + (direction * args.batch + row) * args.hidden + unit] = cell_value;
    }
}

/* Joins sums PART r .. PART r + PART - 1 of all threads. Their order in shared memory is [split, b,
 * lane]. */
void join(uint r)
{
    uint t = gl_LocalInvocationID.x, lane = t % LANES, row = first_row + r * PART;
    [[unroll]] for (uint b = 0u; b < PART; b++)
        pool[(split * PART + b) * LANES + lane] = sums[r * PART + b];
    barrier();
    vec4 sum = vec4(0.0);
    if (split >= PART || row >= args.batch)
        return;
    for (uint i = 0u; i < SPLITS; i++)
        sum += pool[i * PART * LANES + t];
    update(row, from_x[r], sum, before[r]);
}

void main()
{
    uint unit_count = QUADS * UNITS, tiles = (args.hidden + unit_count - 1u) / unit_count;
    uint group = group_index(), tile = group % tiles, rows = group / tiles / args.directions;
    uint t = gl_LocalInvocationID.x;
    direction = group / tiles % args.directions;
    quad = t % QUADS;
    octet = t / QUADS % OCTETS;
    split = t / LANES;
    first_unit = tile * unit_count + quad * UNITS;
    first_row = rows * 8u * OCTETS + octet * 8u + split;
    if (rows * 8u * OCTETS >= args.batch)
        return;
    fetch_rest();
    [[unroll]] for (uint b = 0u; b < 8u; b++)
        sums[b] = vec4(0.0);
    if (args.has_previous != 0u)
        multiply((direction * tiles + tile) * args.hidden * QUADS,
                 direction * args.hidden * args.column_quads + rows * COLUMNS);
    [[unroll]] for (uint r = 0u; r < ROUNDS; r++) {
        barrier();
        join(r);
    }
}
