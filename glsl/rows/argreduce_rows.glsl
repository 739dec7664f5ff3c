/*
 * y[o] = index of the largest or smallest element of a row, or of one chunk of a row. It is an
 * index within the row, stored as a float.
 *
 * Elements are compared by an integer key, so that the result does not depend on the driver's float
 * arithmetic: zeros of either sign are equal, and NaN is the extreme for both codes. If keys are
 * equal, the smallest index wins.
 *
 * Constant 1 is the ARGREDUCE_ code. If constant 2 is true, the kernel chooses among the indices in
 * `candidates`, one for each chunk, instead of among all elements of the row.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint CODE = ARGREDUCE_MAX;
layout(constant_id = 2) const bool CHOOSES = false;
layout(constant_id = 3) const bool VECTORS = false;
layout(push_constant) uniform block { argreduce_args args; };
#include "lib/rows.glsl"
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 0) restrict readonly buffer source4 { vec4 x4[]; };
layout(set = 0, binding = 1) restrict readonly buffer choices { float candidates[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

const uint FLIGHT = 4u; /* vec4 loads in flight */

/* Below every key. */
const int NO_KEY = -0x7fffffff - 1;

/* Key that grows with the value, or falls with it for argmin: the magnitude's bits with the sign.
 * NaN has the largest key. */
int key_of(float v)
{
    uint bits = floatBitsToUint(v), size = bits & 0x7fffffffu;
    bool falls = (bits != size) != (CODE == ARGREDUCE_MIN);
    int key = falls ? -int(size) : int(size);
    return size > 0x7f800000u ? 0x7fffffff : key;
}

/* a and b are (key, index). */
ivec2 better(ivec2 a, ivec2 b)
{
    return a.x > b.x || (a.x == b.x && a.y < b.y) ? a : b;
}

ROW_TREE(ivec2, join_lanes, scratch, better)

/* The best of candidates first, first + lanes, ... of the row that starts at x[base]. */
ivec2 choose(uint base, uint o, uint first)
{
    ivec2 best = ivec2(NO_KEY, 0);
    uint at = o / args.rows.inner * args.candidates * args.rows.inner + o % args.rows.inner;
    for (uint c = first; c < args.candidates; c += args.rows.lanes) {
        uint r = uint(candidates[at + c * args.rows.inner]);
        best = better(best, ivec2(key_of(x[base + r * args.rows.inner]), r));
    }
    return best;
}

/* Reads elements in ascending r, so that the first of equal keys is kept. */
ivec2 scan(uint base, uint r, uint end)
{
    ivec2 best = ivec2(NO_KEY, 0);
    uint stride = args.rows.lanes * args.rows.inner, reach = 3u * args.rows.lanes;
    for (; r + reach < end; r += 4u * args.rows.lanes) {
        uint at = base + r * args.rows.inner;
        vec4 v = vec4(x[at], x[at + stride], x[at + 2u * stride], x[at + 3u * stride]);
        for (uint k = 0u; k < 4u; k++) {
            int key = key_of(v[k]);
            if (key > best.x)
                best = ivec2(key, r + k * args.rows.lanes);
        }
    }
    for (; r < end; r += args.rows.lanes) {
        int key = key_of(x[base + r * args.rows.inner]);
        if (key > best.x)
            best = ivec2(key, r);
    }
    return best;
}

/* Row index of quad k in the block that starts at r. Quads beyond the row's end repeat its last
 * quad. */
uint quad_at(uint r, uint k, uint end)
{
    return min(r + 4u * k * args.rows.lanes, end - 4u);
}

/* Like scan, for rows that consist of whole quads and have inner = 1. The next block is loaded
 * while the current one is compared. */
ivec2 scan_quads(uint base, uint r, uint end)
{
    ivec2 best = ivec2(NO_KEY, 0);
    vec4 next[FLIGHT], v[FLIGHT];
    [[unroll]] for (uint k = 0u; k < FLIGHT; k++)
        next[k] = x4[(base + quad_at(r, k, end)) >> 2];
    for (uint ahead; r < end; r = ahead) {
        ahead = r + 4u * FLIGHT * args.rows.lanes;
        [[unroll]] for (uint k = 0u; k < FLIGHT; k++) {
            v[k] = next[k];
            if (ahead < end)
                next[k] = x4[(base + quad_at(ahead, k, end)) >> 2];
        }
        int block = NO_KEY;
        uint place = 0u;
        [[unroll]] for (uint i = 0u; i < 4u * FLIGHT; i++) {
            int key = key_of(v[i / 4u][i % 4u]);
            place = key > block ? i : place;
            block = max(block, key);
        }
        if (block > best.x)
            best = ivec2(block, quad_at(r, place / 4u, end) + place % 4u);
    }
    return best;
}

ivec2 best_of(uint base, row_work w)
{
    if (CHOOSES)
        return choose(base, w.o, w.lane);
    return VECTORS ? scan_quads(base, w.first + 4u * w.lane, w.end)
                   : scan(base, w.first + w.lane, w.end);
}

void main()
{
    row_work w = row_part();
    ivec2 best = ivec2(NO_KEY, 0);
    if (w.live)
        best = best_of(args.x_offset + w.start, w);
    best = join_lanes(best, w.lane);
    if (w.live && w.lane == 0u)
        y[args.y_offset + w.o] = float(best.y);
}
