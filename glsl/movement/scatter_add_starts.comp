#version 450
/* starts[r]: how many of the sorted keys are below r, for r = 0 .. rows. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"

layout(push_constant) uniform block { scatter_add_starts_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint keys[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint starts[]; };

void main()
{
    uint r = global_index();
    if (r > args.rows)
        return;
    uint low = 0u, high = args.updates;
    while (low < high) {
        uint middle = (low + high) / 2u;
        if (keys[middle] < r)
            low = middle + 1u;
        else
            high = middle;
    }
    starts[r] = low;
}
