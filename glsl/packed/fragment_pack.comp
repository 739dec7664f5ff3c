#version 450
/*
 * Packs x for dequant_fragment (fragment.glsl). An invocation rounds four elements of a row to f16.
 * The first invocation of a unit also sums the rounded elements of each run. The sums are divided
 * by FRAGMENT_SUMS, so that they overflow no sooner than an element. Units past the last one are
 * zeros. Rows past the last one are not written, because they affect only results that nobody
 * stores.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "lib/narrow.glsl"
#include "args/packed.h"

layout(constant_id = 1) const bool AFFINE = false;
layout(constant_id = 2) const uint UNIT_N = 16;
layout(constant_id = 3) const uint UNIT_K = 16;
layout(constant_id = 4) const uint ROWS = 2;
layout(constant_id = 5) const uint DISTANCE = 16;
layout(constant_id = 6) const bool QUADS = false; /* x can be read as vec4s */
#include "packed/fragment.glsl"
#include "packed/units.glsl"

layout(push_constant) uniform block { fragment_pack_args args; };
layout(set = 0, binding = 0) readonly buffer x_view { float x[]; };
layout(set = 0, binding = 0) readonly buffer x_view4 { vec4 x_quads[]; };
layout(set = 0, binding = 1) writeonly buffer packed_view { uint packed[]; };

vec4 read4(uint i)
{
    return QUADS ? x_quads[i >> 2] : vec4(x[i], x[i + 1], x[i + 2], x[i + 3]);
}

vec4 near_halves(vec4 v)
{
    return vec4(near_f16(v.x), near_f16(v.y), near_f16(v.z), near_f16(v.w));
}

const uint RUN_QUADS = RUN_ELEMENTS / 4, UNIT_QUADS = 2 * RUN_QUADS;
shared float sums[gl_WorkGroupSize.x]; /* the sum of each invocation's elements */

/* The sum of run `run`, divided by FRAGMENT_SUMS. Invocation `first` holds the first quad of the
 * unit. */
float mean_of(uint first, uint run)
{
    float sum = 0.0;
    [[unroll]] for (uint quad = 0; quad < RUN_QUADS; quad++)
        sum += sums[first + run * RUN_QUADS + quad];
    return sum / float(FRAGMENT_SUMS);
}

void main()
{
    uint index = global_index(), units = args.chunks * FRAGMENT_UNITS;
    uint run = index / RUN_QUADS % 2, quad = index % RUN_QUADS, local = gl_LocalInvocationID.x;
    uint unit = index / UNIT_QUADS % units, row = index / UNIT_QUADS / units;
    uint chunk = unit / FRAGMENT_UNITS, inside = unit % FRAGMENT_UNITS;
    uint pair = quad * 4 + run * 2, at = inside / 4 * 128 + pair * 8 + inside % 4 * 2;
    vec4 v = vec4(0.0);
    if (row < args.rows && unit < args.units) {
        uint k = unit_position(unit) + run * DISTANCE + quad * 4;
        v = near_halves(read4(args.x_offset + row * args.units * UNIT_ELEMENTS + k));
    }
    if (row < args.rows) {
        packed[fragment_word(row, args.chunks, chunk, at)] = packHalf2x16(v.xz);
        packed[fragment_word(row, args.chunks, chunk, at + 8)] = packHalf2x16(v.yw);
    }
    if (!AFFINE)
        return;
    sums[local] = v.x + v.y + (v.z + v.w);
    barrier();
    if (local % UNIT_QUADS != 0 || row >= args.rows)
        return;
    vec2 mean = vec2(mean_of(local, 0), mean_of(local, 1));
    vec2 high = vec2(near_f16(mean.x), near_f16(mean.y));
    vec2 low = vec2(near_f16(remainder_of(mean.x)), near_f16(remainder_of(mean.y)));
    at = FRAGMENT_CHUNK + inside * 2;
    packed[fragment_word(row, args.chunks, chunk, at)] = packHalf2x16(high);
    packed[fragment_word(row, args.chunks, chunk, at + FRAGMENT_SUMS)] = packHalf2x16(low);
}
