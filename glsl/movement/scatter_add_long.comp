#version 450
/*
 * Like scatter_add_sum, for long runs. A workgroup takes COLUMNS (constant 1, a power of two, at
 * most SCATTER_LONG_COLUMNS) columns of a row. All threads load the next updates, and the positions
 * of the updates after those. Meanwhile one thread per column adds the updates in shared memory, in
 * order. Therefore it waits only for the additions. Updates beyond the end are 0, which changes no
 * sum. If a run is too long for one dispatch, the next dispatch continues from the value in y.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/movement.h"

layout(constant_id = 1) const uint COLUMNS = 1;
layout(push_constant) uniform block { scatter_add_long_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float updates[]; };
layout(set = 0, binding = 1) restrict readonly buffer order { uint positions[]; };
layout(set = 0, binding = 2) restrict readonly buffer bounds { uint starts[]; };
layout(set = 0, binding = 3) restrict buffer target { float y[]; };

const uint THREADS = SCATTER_LONG_THREADS, ITEMS = SCATTER_LONG_ITEMS;
const uint BATCH = THREADS * ITEMS / COLUMNS; /* updates at a time, at least 64 */
const uint PITCH = BATCH / 4 + 1;             /* quads of a column in shared memory */
const uint NONE = 0xffffffffu;

shared vec4 fetched[2 * COLUMNS * PITCH];

uint places[ITEMS];
float values[ITEMS];

void fetch_places(uint first, uint end, bool column_exists)
{
    [[unroll]] for (uint i = 0u; i < ITEMS; i++) {
        uint u = first + (gl_LocalInvocationID.x + i * THREADS) / COLUMNS;
        places[i] = u < end && column_exists ? positions[u] : NONE;
    }
}

void fetch_values(uint first, uint column)
{
    [[unroll]] for (uint i = 0u; i < ITEMS; i++) {
        uint at = args.updates_offset + (first + places[i]) * args.columns + column;
        values[i] = places[i] == NONE ? 0.0 : updates[at];
    }
}

void store_values(uint at)
{
    uint t = gl_LocalInvocationID.x;
    [[unroll]] for (uint i = 0u; i < ITEMS; i++) {
        uint u = (t + i * THREADS) / COLUMNS;
        fetched[at + t % COLUMNS * PITCH + u / 4u][u % 4u] = values[i];
    }
}

struct quads {
    vec4 a, b, c, d;
};

quads read_quads(uint at)
{
    return quads(fetched[at], fetched[at + 1u], fetched[at + 2u], fetched[at + 3u]);
}

float add_quad(float sum, vec4 v)
{
    sum += v.x;
    sum += v.y;
    sum += v.z;
    return sum + v.w;
}

float add_quads(float sum, quads q)
{
    return add_quad(add_quad(add_quad(add_quad(sum, q.a), q.b), q.c), q.d);
}

/* Adds `count` quads, a multiple of eight. Four are read while the previous four are added. */
float add_column(float sum, uint at, uint count)
{
    quads even = read_quads(at), odd;
    for (uint end = at + count - 8u; at < end; at += 8u) {
        odd = read_quads(at + 4u);
        sum = add_quads(sum, even);
        even = read_quads(at + 8u);
        sum = add_quads(sum, odd);
    }
    odd = read_quads(at + 4u);
    return add_quads(add_quads(sum, even), odd);
}

void main()
{
    uint g = group_index(), line = g / args.tiles, t = gl_LocalInvocationID.x;
    uint o = line / args.rows, row = line - o * args.rows, before = o * args.updates;
    if (o >= args.outer)
        return;
    uint column = (g - line * args.tiles) * COLUMNS + t % COLUMNS;
    uint first = starts[row], end = starts[row + 1u];
    bool column_exists = column < args.columns;
    float sum = 0.0;
    if (args.skipped > 0u && end - first <= args.skipped)
        return;
    if (args.skipped > 0u && t < COLUMNS && column_exists)
        sum = y[args.y_offset + line * args.columns + column];
    first += args.skipped;
    end = min(end, first + args.most);
    uint at = 0u;
    if (first < end) {
        fetch_places(first, end, column_exists);
        fetch_values(before, column);
    }
    fetch_places(first + BATCH, end, column_exists);
    for (; first < end; first += BATCH) {
        store_values(at);
        barrier();
        fetch_values(before, column);
        fetch_places(first + 2u * BATCH, end, column_exists);
        if (t < COLUMNS)
            sum = add_column(sum, at + t * PITCH, min(BATCH, end - first + 31u & ~31u) / 4u);
        at = COLUMNS * PITCH - at;
    }
    if (t < COLUMNS && column_exists)
        y[args.y_offset + line * args.columns + column] = sum;
}
