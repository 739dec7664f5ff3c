#version 450
/*
 * Scatters into tiles of lines along any axis. The winning update of each element does not depend
 * on the order of the threads, because it is found with integer atomicMax over update numbers or
 * ranks of values.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/array.h"
#include "array/scatter_tile.glsl"

layout(set = 0, binding = 0) restrict readonly buffer old { uint x[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict readonly buffer source { uint updates[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { uint y[]; };

#define EACH(k) [[unroll]] for (uint k = 0u; k < SCATTER_TILE_ITEMS; k++)

const uint THREADS = gl_WorkGroupSize.x;

shared uint winners[SLOTS];

void start_winners()
{
    uint t = gl_LocalInvocationID.x, end = rows * COLUMNS;
    for (uint first = t; first < end; first += SCATTER_TILE_ITEMS * THREADS) {
        uint olds[SCATTER_TILE_ITEMS];
        EACH(k) {
            olds[k] = 0u;
            if (MODE != SCATTER_ASSIGN)
                olds[k] = rank_of(MODE, x[args.x_offset + place_of(first + k * THREADS)]);
        }
        EACH(k)
            if (first + k * THREADS < end)
                winners[first + k * THREADS] = olds[k];
    }
}

void find_winners()
{
    uint end = args.updates * COLUMNS;
    for (uint first = gl_LocalInvocationID.x; first < end; first += SCATTER_TILE_ITEMS * THREADS) {
        float named[SCATTER_TILE_ITEMS];
        uint values[SCATTER_TILE_ITEMS];
        EACH(k) {
            uint at = element_at(first + k * THREADS, args.updates);
            named[k] = index[args.index_offset + at];
            values[k] = MODE == SCATTER_ASSIGN ? 0u : updates[args.updates_offset + at];
        }
        EACH(k) {
            uint i = first + k * THREADS, slot = slot_of(i, named[k]);
            uint rank = i / COLUMNS + 1u;
            if (MODE != SCATTER_ASSIGN)
                rank = rank_of(MODE, values[k]);
            if (slot != NO_SLOT)
                atomicMax(winners[slot], rank);
        }
    }
}

/* The result for slot s. */
uint result_of(uint s)
{
    uint w = winners[min(s, SLOTS - 1u)];
    if (MODE != SCATTER_ASSIGN)
        return bits_of(MODE, w);
    uint from = element_at((max(w, 1u) - 1u) * COLUMNS + s % COLUMNS, args.updates);
    uint taken = updates[args.updates_offset + from], old = x[args.x_offset + place_of(s)];
    return w == 0u ? old : taken;
}

void main()
{
    if (!find_tile())
        return;
    start_winners();
    barrier();
    find_winners();
    barrier();
    uint t = gl_LocalInvocationID.x, end = rows * COLUMNS;
    for (uint first = t; first < end; first += SCATTER_TILE_ITEMS * THREADS) {
        uint results[SCATTER_TILE_ITEMS];
        EACH(k)
            results[k] = result_of(first + k * THREADS);
        EACH(k)
            if (is_place(first + k * THREADS))
                y[args.y_offset + place_of(first + k * THREADS)] = results[k];
    }
}
