#version 450
/* The clock of a loop: resets it, or advances it by one step. Only one invocation works. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/compose.h"

layout(push_constant) uniform block { loop_tick_args args; };
layout(set = 0, binding = 0) buffer clock_block { uint clock[]; };

void main()
{
    if (global_index() != 0u)
        return;
    uint at = args.clock_offset;
    if (args.start != 0u) {
        for (uint i = 0u; i < LOOP_CLOCK_WORDS; i++)
            clock[at + i] = 0u;
        return;
    }
    uint rest = clock[at + LOOP_CLOCK_REST] + args.rows;
    bool saved = rest >= args.steps;
    clock[at + LOOP_CLOCK_STEP] += 1u;
    clock[at + LOOP_CLOCK_ROW] += saved ? 1u : 0u;
    clock[at + LOOP_CLOCK_REST] = saved ? rest - args.steps : rest;
}
