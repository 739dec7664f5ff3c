#version 450
/*
 * Sort keys of words, one an invocation. RADIX_DESCENDING: keys that ascend as the floats descend,
 * NaN first, zeros of either sign equal. RADIX_INDEX: the index, or `limit` where it names none;
 * RADIX_CLAMPED: the nearest below `limit`.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "lib/index.glsl"
#include "movement/radix.glsl"

layout(constant_id = 1) const uint MODE = RADIX_DESCENDING;
layout(push_constant) uniform block { radix_keys_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint keys[]; };

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint bits = x[args.x_offset + i];
    if (MODE == RADIX_INDEX)
        keys[i] = min(checked_index(uintBitsToFloat(bits), args.limit), args.limit);
    else if (MODE == RADIX_CLAMPED)
        keys[i] = clamped_index(uintBitsToFloat(bits), args.limit);
    else
        keys[i] = ~ordered_key(bits);
}
