#version 450
/* dx of a cell in four channels: the sum of what the points took from it, in their order. The taps
 * of cell r are those at positions[starts[r]] to before those of the next. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/image.h"

layout(push_constant) uniform block { grid_gather_args args; };
layout(set = 0, binding = 0) restrict readonly buffer order { uint positions[]; };
layout(set = 0, binding = 1) restrict readonly buffer bounds { uint starts[]; };
layout(set = 0, binding = 2) restrict readonly buffer weighing { float weights[]; };
layout(set = 0, binding = 3) restrict readonly buffer arrived { float dy[]; };
layout(set = 0, binding = 4) restrict writeonly buffer target { float dx[]; };

/* Loops of more than 65,535 rounds end early on old drivers. */
#define ROUNDS 4096u

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint rest = i / args.cells, cell = i - rest * args.cells;
    uint image = rest / args.blocks, channel = 4u * (rest - image * args.blocks);
    uint plane = image * args.channels + channel, row = image * args.cells + cell;
    uint first = starts[row], end = starts[row + 1u];
    uvec4 next = min(uvec4(0u, 1u, 2u, 3u), uvec4(args.channels - 1u - channel)) * args.points;
    vec4 sum = vec4(0.0);
    for (uint begin = first; begin < end; begin += ROUNDS)
        for (uint k = begin; k < min(begin + ROUNDS, end); k++) {
            uint tap = positions[k], point = tap / args.taps - image * args.points;
            uvec4 at = args.dy_offset + plane * args.points + point + next;
            sum += weights[tap] * vec4(dy[at.x], dy[at.y], dy[at.z], dy[at.w]);
        }
    for (uint c = 0u; c < 4u; c++)
        if (channel + c < args.channels)
            dx[args.dx_offset + (plane + c) * args.cells + cell] = sum[c];
}
