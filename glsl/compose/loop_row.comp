#version 450
/*
 * Copies one row of words: target = source, target = source[t], or target[row] = source at the
 * steps that save a row. Words are copied as integers, so that every bit pattern is kept.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/compose.h"

layout(constant_id = 1) const uint MODE = 0;
layout(push_constant) uniform block { loop_row_args args; };
layout(set = 0, binding = 0) readonly buffer clock_block { uint clock[]; };
layout(set = 0, binding = 1) readonly buffer source_block { uint source[]; };
layout(set = 0, binding = 2) writeonly buffer target_block { uint target[]; };

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint from = args.source_offset + i, to = args.target_offset + i;
    if (MODE == LOOP_ROW_SLICE)
        from += clock[args.clock_offset + LOOP_CLOCK_STEP] * args.count;
    if (MODE == LOOP_ROW_STORE) {
        if (clock[args.clock_offset + LOOP_CLOCK_REST] + args.rows < args.steps)
            return;
        to += clock[args.clock_offset + LOOP_CLOCK_ROW] * args.count;
    }
    target[to] = source[from];
}
