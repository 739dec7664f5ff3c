#version 450
/*
 * y[i] = x[i] for words of any storage. An invocation moves UNITS (constant 2) units, one workgroup
 * size apart, and reads all of them before it writes the first. A unit is a word. If constant 1 is
 * true, a unit is four words. Then both offsets are multiples of four, and the first invocations
 * also move the words after the last whole unit.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/elementwise.h"

layout(constant_id = 1) const bool VECTORS = false;
layout(constant_id = 2) const uint UNITS = 4;
layout(push_constant) uniform block { copy_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint x[]; };
layout(set = 0, binding = 0) restrict readonly buffer source4 { uvec4 x4[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint y[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target4 { uvec4 y4[]; };

void main()
{
    uint width = VECTORS ? 4u : 1u, count = args.words / width;
    uint first = group_index() * gl_WorkGroupSize.x * UNITS + gl_LocalInvocationID.x;
    uint from = args.x_offset / width, to = args.y_offset / width;
    uvec4 v[UNITS];
    [[unroll]] for (uint k = 0u; k < UNITS; k++) {
        uint i = first + k * gl_WorkGroupSize.x;
        v[k] = uvec4(0u);
        if (i < count) {
            if (VECTORS)
                v[k] = x4[from + i];
            else
                v[k].x = x[from + i];
        }
    }
    [[unroll]] for (uint k = 0u; k < UNITS; k++) {
        uint i = first + k * gl_WorkGroupSize.x;
        if (i < count) {
            if (VECTORS)
                y4[to + i] = v[k];
            else
                y[to + i] = v[k].x;
        }
    }
    uint rest = count * width + first;
    if (VECTORS && first < 3u && rest < args.words)
        y[args.y_offset + rest] = x[args.x_offset + rest];
}
