#version 450
/* Packs the rows of x [outer, length, inner] whose position is below a count to the front of y. If
 * UNPACK, moves them from the front of x back to their positions. The rest of y is 0. If WIDTH is
 * 4, four neighbours are copied at a time. Words are copied unchanged. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/array.h"
#include "args/movement.h"
#include "array/first_count.glsl"

layout(constant_id = 1) const uint WIDTH = 1;
layout(constant_id = 2) const bool UNPACK = false;
layout(push_constant) uniform block { pack_first_args args; };
layout(set = 0, binding = 0) readonly buffer source { uint x[]; };
layout(set = 0, binding = 0) readonly buffer source4 { uvec4 x4[]; };
layout(set = 0, binding = 1) readonly buffer counts { float first_rows[]; };
layout(set = 0, binding = 2) writeonly buffer target { uint y[]; };
layout(set = 0, binding = 2) writeonly buffer target4 { uvec4 y4[]; };

void main()
{
    uint rows = first_count(first_rows[args.count_offset], args.extent);
    uint kept = rows * args.inner, span = args.extent * args.inner;
    uint step = gl_WorkGroupSize.x;
    uint first = group_index() * step * COPY_ITEMS + gl_LocalInvocationID.x;
    uint pitch = UNPACK ? span : kept, packed_end = args.outer * kept;
    uvec4 units[COPY_ITEMS];
    /* All loads come before any store, so that they do not wait for each other. */
    [[unroll]] for (uint k = 0u; k < COPY_ITEMS; k++) {
        uint e = first + k * step;
        units[k] = uvec4(0u);
        if (kept == 0u || e >= (UNPACK ? args.count : packed_end))
            continue;
        uint o = e / pitch, i = e - o * pitch;
        if (UNPACK && i >= kept)
            continue;
        uint from = args.x_offset + o * (UNPACK ? kept : span) + i;
        if (WIDTH == 4u)
            units[k] = x4[from];
        else
            units[k].x = x[from];
    }
    [[unroll]] for (uint k = 0u; k < COPY_ITEMS; k++) {
        uint e = first + k * step;
        if (e >= args.count)
            return;
        if (WIDTH == 4u)
            y4[args.y_offset + e] = units[k];
        else
            y[args.y_offset + e] = units[k].x;
    }
}
