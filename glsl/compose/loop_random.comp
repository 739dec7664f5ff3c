#version 450
/* The state of random ops for a step of a loop; see random.h. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/compose.h"

layout(push_constant) uniform block { loop_random_args args; };
layout(set = 0, binding = 0) restrict readonly buffer clock_block { uint clock[]; };
layout(set = 0, binding = 1) restrict readonly buffer source_block { uint source[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target_block { uint target[]; };

void main()
{
    uint i = global_index();
    if (i >= args.words)
        return;
    uint word = source[args.source_offset + i];
    if (i == args.word)
        word += clock[args.clock_offset + LOOP_CLOCK_STEP] * args.stride;
    target[args.target_offset + i] = word;
}
