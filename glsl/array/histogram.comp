#version 450
/*
 * Counts how many elements fall into each bin. There are three stages: set the counts to zero,
 * count, and convert the counts to floats. Bins have equal width between `low` and `high`; with
 * INDICES, an element is the index of its bin. The result does not depend on the order, because
 * only integers are added. A workgroup counts its elements in one of three places:
 *   HISTOGRAM_SHARED   shared memory, in SETS copies, which reduces contention of atomics
 *   HISTOGRAM_PACKED   shared memory, in halves of words, only the bins of its range; a
 *                      workgroup has fewer than 2^16 elements
 *   HISTOGRAM_DIRECT   the buffer
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/array.h"
#include "lib/index.glsl"

layout(constant_id = 1) const uint STAGE = HISTOGRAM_START;
layout(constant_id = 2) const bool INDICES = false;
layout(constant_id = 3) const uint PLACE = HISTOGRAM_DIRECT;
layout(constant_id = 4) const uint WORDS = 1; /* of shared memory */
layout(constant_id = 5) const uint SETS = 1;  /* a power of two */
layout(constant_id = 6) const bool QUADS = false;
layout(push_constant) uniform block { histogram_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 0) restrict readonly buffer source4 { vec4 x4[]; };
layout(set = 0, binding = 1) buffer middle { uint counts[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };

const uint WIDTH = QUADS ? 4u : 1u; /* elements of a unit */
const uint BATCH = QUADS ? 4u : 8u; /* units of a thread in flight */
const uint NO_BIN = 0xffffffffu;

shared uint local[WORDS];

uint first_bin; /* of the workgroup's range */

uint bin_of(float v)
{
    if (INDICES)
        return checked_index(v, args.bins);
    bool inside = !is_nan(v) && v >= args.low && v <= args.high;
    precise float at = (v - args.low) * args.scale;
    return inside ? min(uint(at), args.bins - 1u) : NO_BIN;
}

void count_element(float v)
{
    uint bin = bin_of(v), own = bin - first_bin;
    if (PLACE == HISTOGRAM_PACKED) {
        if (own < args.range_bins)
            atomicAdd(local[own / 2u], 1u << own % 2u * 16u);
    } else if (bin != NO_BIN) {
        if (PLACE == HISTOGRAM_SHARED)
            atomicAdd(local[bin * SETS + gl_LocalInvocationID.x % SETS], 1u);
        else
            atomicAdd(counts[bin], 1u);
    }
}

vec4 unit_at(uint i)
{
    return QUADS ? x4[args.x_offset / 4u + i] : vec4(x[args.x_offset + i], 0.0, 0.0, 0.0);
}

void count_unit(vec4 v)
{
    count_element(v.x);
    if (!QUADS)
        return;
    count_element(v.y);
    count_element(v.z);
    count_element(v.w);
}

/* Counts the units of a chunk. The last chunk also counts the elements after the last whole
 * unit. */
void count_chunk(uint chunk)
{
    uint t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x, units = args.count / WIDTH;
    uint begin = chunk * args.run, end = min(begin + args.run, units);
    for (uint i = begin + t; i < end; i += BATCH * step) {
        vec4 v[BATCH];
        [[unroll]] for (uint k = 0u; k < BATCH; k++)
            v[k] = unit_at(min(i + k * step, end - 1u));
        [[unroll]] for (uint k = 0u; k < BATCH; k++)
            if (i + k * step < end)
                count_unit(v[k]);
    }
    if (end == units && t < args.count - units * WIDTH)
        count_element(x[args.x_offset + units * WIDTH + t]);
}

/* The count of a bin of the range. Each bin starts at another copy, to avoid bank conflicts between
 * neighbours. */
uint counted(uint bin)
{
    uint sum = 0u;
    if (PLACE == HISTOGRAM_PACKED)
        return local[bin / 2u] >> bin % 2u * 16u & 0xffffu;
    for (uint s = 0u; s < SETS; s++)
        sum += local[bin * SETS + (s + bin) % SETS];
    return sum;
}

void main()
{
    uint t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x, i = global_index();
    uint g = group_index();
    if (STAGE == HISTOGRAM_START) {
        if (i < args.bins)
            counts[i] = 0u;
        return;
    }
    if (STAGE == HISTOGRAM_FINISH) {
        if (i < args.bins)
            y[args.y_offset + i] = float(counts[i]);
        return;
    }
    if (g >= args.groups)
        return;
    uint chunk = g / args.ranges;
    first_bin = (g - chunk * args.ranges) * args.range_bins;
    if (PLACE != HISTOGRAM_DIRECT)
        for (uint k = t; k < WORDS; k += step)
            local[k] = 0u;
    barrier();
    count_chunk(chunk);
    barrier();
    uint bins = PLACE == HISTOGRAM_DIRECT ? 0u : min(args.range_bins, args.bins - first_bin);
    for (uint bin = t; bin < bins; bin += step) {
        uint count = counted(bin);
        if (count != 0u)
            atomicAdd(counts[first_bin + bin], count);
    }
}
