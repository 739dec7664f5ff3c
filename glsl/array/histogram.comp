#version 450
/*
 * How many elements fall into each bin, in three stages: zeros, counting, and the counts as floats.
 * Bins are of equal width between `low` and `high`, or (INDICES) the numbers that elements name.
 * While there are few, a workgroup counts its elements in shared memory, in `sets` copies, a power
 * of two, against threads that meet; only integers are added, so that no order matters.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/array.h"
#include "lib/index.glsl"

layout(constant_id = 1) const uint STAGE = HISTOGRAM_START;
layout(constant_id = 2) const bool INDICES = false;
layout(constant_id = 3) const bool SHARED_COUNTS = false;
layout(push_constant) uniform block { histogram_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) buffer middle { uint counts[]; };
layout(set = 0, binding = 2) writeonly buffer target { float y[]; };

#define BATCH 8u

shared uint local[HISTOGRAM_SHARED];

/* ~0: none. */
uint bin_of(float v)
{
    if (INDICES)
        return checked_index(v, args.bins);
    if (is_nan(v) || v < args.low || v > args.high)
        return 0xffffffffu;
    precise float at = (v - args.low) * args.scale;
    return min(uint(at), args.bins - 1u);
}

void count_element(uint bin, uint set)
{
    if (bin == 0xffffffffu)
        return;
    if (SHARED_COUNTS)
        atomicAdd(local[bin * args.sets + set], 1u);
    else
        atomicAdd(counts[bin], 1u);
}

void count_all()
{
    uint t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x, g = group_index();
    uint set = t & (args.sets - 1u);
    uint begin = min(g * args.run, args.count), end = min(begin + args.run, args.count);
    for (uint i = begin + t; i < end; i += BATCH * step) {
        uint bins[BATCH];
        [[unroll]] for (uint k = 0u; k < BATCH; k++) {
            uint at = i + k * step;
            bins[k] = at < end ? bin_of(x[args.x_offset + min(at, end - 1u)]) : 0xffffffffu;
        }
        [[unroll]] for (uint k = 0u; k < BATCH; k++)
            count_element(bins[k], set);
    }
}

void main()
{
    uint t = gl_LocalInvocationID.x, step = gl_WorkGroupSize.x, i = global_index();
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
    if (group_index() >= args.groups)
        return;
    uint words = SHARED_COUNTS ? args.bins * args.sets : 0u;
    for (uint k = t; k < words; k += step)
        local[k] = 0u;
    barrier();
    count_all();
    barrier();
    for (uint bin = t; SHARED_COUNTS && bin < args.bins; bin += step) {
        uint sum = 0u;
        for (uint s = 0u; s < args.sets; s++)
            sum += local[bin * args.sets + s];
        if (sum != 0u)
            atomicAdd(counts[bin], sum);
    }
}
