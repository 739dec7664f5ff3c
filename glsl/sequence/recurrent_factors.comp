#version 450
/*
 * From the pre-activations of a recurrent net, this computes the factors for the sweep back over
 * its steps (see recurrent_sweep.glsl):
 *
 * - d: the slopes of all gates
 * - kept: the share of dc (LSTM) or dh (GRU) that goes on to the step before
 * - c: the slope of h by the cell state
 *
 * A workgroup takes RECURRENT_FACTOR_UNITS units of a batch row, and as many steps at a time as it
 * has threads for. Only the LSTM's cell states depend on the step before. They are recomputed on
 * the way, so that an LSTM workgroup takes all steps. Constant 1 is the cell.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/sequence.h"
#include "lib/math.glsl"

layout(constant_id = 1) const uint CELL = RECURRENT_LSTM;
layout(push_constant) uniform block { recurrent_factors_args args; };
layout(set = 0, binding = 0) restrict readonly buffer inputs { float x[]; };
layout(set = 0, binding = 1) readonly buffer hidden { float h[]; };
layout(set = 0, binding = 2) readonly buffer states { float before[]; };
layout(set = 0, binding = 3) writeonly buffer slopes { float d[]; };
layout(set = 0, binding = 4) writeonly buffer factors { float kept[]; };

const uint UNITS = RECURRENT_FACTOR_UNITS, THREADS = gl_WorkGroupSize.x, STEPS = THREADS / UNITS;

shared float forget[THREADS];
shared float c[THREADS + UNITS]; /* before the first step, and after each step */

float last; /* c of the previous chunk */

/* The gate and its slope. s = 1 gives the sigmoid, s = 2 gives tanh. Small slopes keep all their
 * bits. */
vec2 gate_of(float z, float s)
{
    float e = exponential(-s * abs(z)), large = reciprocal(1.0 + e), small = e * large;
    float value = s * (z < 0.0 ? small : large) - (s - 1.0);
    return is_nan(z) ? vec2(z) : vec2(value, s * s * large * small);
}

/* A loop, because software drivers compile slowly if every function is expanded. */
void lstm(bool live, uint at, uint d_at, uint state_at)
{
    uint t = gl_LocalInvocationID.x;
    vec2 gates[5]; /* i, f, g, o, tanh(c) */
    for (uint gate = 0u; gate < 4u; gate++)
        gates[gate] = gate_of(live ? x[at + gate * args.hidden] : 0.0, gate == 2u ? 2.0 : 1.0);
    forget[t] = gates[1].x;
    c[t + UNITS] = gates[0].x * gates[2].x;
    barrier();
    if (t < UNITS) {
        c[t] = last;
        for (uint step = 0u; step < STEPS; step++) {
            last = fma(forget[t + step * UNITS], last, c[t + (step + 1u) * UNITS]);
            c[t + (step + 1u) * UNITS] = last;
        }
    }
    barrier();
    float c_before = c[t];
    gates[4] = gate_of(c[t + UNITS], 2.0);
    barrier();
    if (!live)
        return;
    d[d_at] = gates[2].x * gates[0].y;
    d[d_at + args.hidden] = c_before * gates[1].y;
    d[d_at + 2u * args.hidden] = gates[0].x * gates[2].y;
    d[d_at + 3u * args.hidden] = gates[4].x * gates[3].y;
    kept[args.kept_offset + state_at] = gates[1].x;
    kept[args.c_offset + state_at] = gates[3].x * gates[4].y;
}

void gru(uint x_at, uint h_at, uint d_at, uint state_at)
{
    vec2 gates[2]; /* r, z */
    for (uint gate = 0u; gate < 2u; gate++)
        gates[gate] = gate_of(x[x_at + gate * args.hidden] + h[h_at + gate * args.hidden], 1.0);
    float from_h = h[h_at + 2u * args.hidden], previous = before[args.before_offset + state_at];
    vec2 fresh = gate_of(x[x_at + 2u * args.hidden] + gates[0].x * from_h, 2.0);
    float of_fresh = (1.0 - gates[1].x) * fresh.y;
    d[d_at] = of_fresh * from_h * gates[0].y;
    d[d_at + args.hidden] = (previous - fresh.x) * gates[1].y;
    d[d_at + 2u * args.hidden] = of_fresh;
    d[d_at + args.second + 2u * args.hidden] = of_fresh * gates[0].x;
    kept[args.kept_offset + state_at] = gates[1].x;
}

/* `live` tells whether the unit and step exist. state_at is their index in [B, S, Hd]. */
void make_factors(bool live, uint row, uint unit, uint state_at)
{
    uint gates = CELL == RECURRENT_LSTM ? 4u : CELL == RECURRENT_GRU ? 3u : 1u;
    uint at = row * gates * args.hidden + unit, d_at = args.d_offset + at;
    if (CELL == RECURRENT_LSTM) {
        lstm(live, args.x_offset + at, d_at, state_at);
    } else if (live && CELL == RECURRENT_GRU) {
        gru(args.x_offset + at, args.h_offset + at, d_at, state_at);
    } else if (live) {
        float z = x[args.x_offset + at];
        bool positive = floatBitsToUint(z) - 1u < INFINITY_BITS; /* denormals: true, NaN: false */
        d[d_at] = CELL == RECURRENT_RNN ? gate_of(z, 2.0).y : positive ? 1.0 : 0.0;
    }
}

void main()
{
    uint tiles = (args.hidden + UNITS - 1u) / UNITS, group = group_index();
    uint unit = group % tiles * UNITS + gl_LocalInvocationID.x % UNITS;
    uint part = group / tiles % args.parts, b = group / tiles / args.parts;
    if (b >= args.batch)
        return;
    last = 0.0;
    if (CELL == RECURRENT_LSTM && args.has_before != 0u && unit < args.hidden)
        last = before[args.before_offset + b * args.hidden + unit];
    for (uint first = part * STEPS; first < args.steps; first += args.parts * STEPS) {
        uint step = first + gl_LocalInvocationID.x / UNITS;
        uint row = b * args.steps + (args.reversed != 0u ? args.steps - 1u - step : step);
        make_factors(step < args.steps && unit < args.hidden, row, unit, row * args.hidden + unit);
    }
}
