#version 450
/*
 * y[o] = index of the extreme element of a row, or of one chunk of it (an index within the row, as
 * a float). Elements are ordered by an integer key, so that ties, zeros of either sign and NaN
 * (above all, for both codes) do not depend on the driver's float arithmetic; of equal keys the
 * smallest index wins. Constant 1 is the ARGREDUCE_ code; constant 2 says whether the indices to
 * choose from stand in `candidates` (one a chunk) instead of being all of the row's.
 */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "rows.glsl"

layout(constant_id = 1) const uint CODE = ARGREDUCE_MAX;
layout(constant_id = 2) const bool CHOOSES = false;
layout(push_constant) uniform block { argreduce_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer choices { float candidates[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

/* Grows with the value (falls, for argmin); zero is below every key. */
uint key_of(float v)
{
    uint bits = floatBitsToUint(v);
    uint size = bits & 0x7fffffffu;
    if (size > 0x7f800000u)
        return 0xffffffffu;
    uint key = size == 0u || bits == size ? size | 0x80000000u : ~bits;
    return CODE == ARGREDUCE_MAX ? key : ~key;
}

/* (key, index) */
uvec2 better(uvec2 a, uvec2 b)
{
    return a.x > b.x || (a.x == b.x && a.y < b.y) ? a : b;
}

shared uvec2 scratch[ROW_THREADS];
ROW_TREE(uvec2, join_lanes, scratch, better)

/* The best of candidates first, first + lanes, ... of the row that starts at x[base]. */
uvec2 choose(uint base, uint o, uint first)
{
    uvec2 best = uvec2(0u);
    uint at = o / args.inner * args.candidates * args.inner + o % args.inner;
    for (uint c = first; c < args.candidates; c += args.lanes) {
        uint r = uint(candidates[at + c * args.inner]);
        best = better(best, uvec2(key_of(x[base + r * args.inner]), r));
    }
    return best;
}

/* Ascending in r, so that the first of equal keys is kept. */
uvec2 scan(uint base, uint r, uint end)
{
    uvec2 best = uvec2(0u);
    uint stride = args.lanes * args.inner, reach = 3u * args.lanes;
    for (; r + reach < end; r += 4u * args.lanes) {
        uint at = base + r * args.inner;
        vec4 v = vec4(x[at], x[at + stride], x[at + 2u * stride], x[at + 3u * stride]);
        for (uint k = 0u; k < 4u; k++) {
            uint key = key_of(v[k]);
            if (key > best.x)
                best = uvec2(key, r + k * args.lanes);
        }
    }
    for (; r < end; r += args.lanes) {
        uint key = key_of(x[base + r * args.inner]);
        if (key > best.x)
            best = uvec2(key, r);
    }
    return best;
}

void main()
{
    uint lane = row_lane(args.lanes, args.lane_stride);
    uint o = row_output(args.lanes, args.lane_stride);
    bool live = o < args.outputs;
    uint first = row_chunk(o, args.inner, args.chunks) * args.chunk_length;
    uint end = live ? min(first + args.chunk_length, args.extent) : 0u;
    uint base = args.x_offset + row_start(o, args.inner, args.extent, args.chunks);
    uvec2 best = uvec2(0u);
    if (live)
        best = CHOOSES ? choose(base, o, lane) : scan(base, first + lane, end);
    best = join_lanes(best, lane, args.lanes, args.lane_stride);
    if (live && lane == 0u)
        y[args.y_offset + o] = float(best.y);
}
