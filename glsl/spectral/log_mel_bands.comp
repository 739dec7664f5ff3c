#version 450
/* The first weight of each filter and the end of its weights, one workgroup per filter. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/spectral.h"

layout(push_constant) uniform block { log_mel_bands_args args; };
layout(set = 0, binding = 0) restrict readonly buffer weights { float filters[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint bands[]; };

shared uint first, end;

void main()
{
    uint m = group_index(), t = gl_LocalInvocationID.x, size = gl_WorkGroupSize.x;
    if (m >= args.mels)
        return;
    if (t == 0u) {
        first = args.bins;
        end = 0u;
    }
    barrier();
    uint low = args.bins, high = 0u;
    for (uint outer = 0u; outer < args.bins; outer += size << 14)
        for (uint f = outer + t; f < min(args.bins, outer + (size << 14)); f += size)
            if ((floatBitsToUint(filters[args.filters_offset + m * args.bins + f]) << 1) != 0u) {
                low = min(low, f);
                high = f + 1u;
            }
    atomicMin(first, low);
    atomicMax(end, high);
    barrier();
    if (t == 0u) {
        bands[2u * m] = first;
        bands[2u * m + 1u] = end;
    }
}
