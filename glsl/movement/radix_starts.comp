#version 450
/*
 * starts[k], k = 0 .. keys: the number of sorted keys before key k % row_keys of row k / row_keys.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"

layout(push_constant) uniform block { radix_starts_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint keys[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint starts[]; };

void main()
{
    uint k = global_index();
    if (k > args.keys)
        return;
    uint row = k / args.row_keys, key = k - row * args.row_keys;
    uint low = row * args.extent, high = min(low + args.extent, args.count);
    while (low < high) {
        uint middle = (low + high) / 2u;
        if (keys[middle] < key)
            low = middle + 1u;
        else
            high = middle;
    }
    starts[k] = low;
}
