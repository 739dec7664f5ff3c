#version 450
/*
 * Reduction of rows whose elements lie apart, `inner` quads: a thread takes HELD (constant 2)
 * elements of four neighbouring rows, as vec4, all on their way at once, and `lanes` threads share
 * them; lane_stride such quads of rows a workgroup.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint CODE = REDUCE_SUM;
layout(constant_id = 2) const uint HELD = 1;
layout(push_constant) uniform block { reduce_args args; };
#include "lib/rows.glsl"
#include "rows/reduce.glsl"
layout(set = 0, binding = 0) restrict readonly buffer source { vec4 x4[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { vec4 y4[]; };

ROW_TREE(vec4, join_lanes, scratch, combine)

void main()
{
    row_work w = row_whole();
    vec4 v[HELD];
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uint r = w.lane + k * args.rows.lanes;
        v[k] = vec4(identity());
        if (r < w.end)
            v[k] = taken(x4[(args.x_offset >> 2) + w.start + r * args.rows.inner]);
    }
    [[unroll]] for (uint k = 1u; k < HELD; k++)
        v[0] = combine(v[0], v[k]);
    vec4 all = join_lanes(v[0], w.lane);
    if (CODE == REDUCE_MEAN)
        all = args.divisor > 0.0 ? all / args.divisor : vec4(NAN_VALUE);
    if (w.live && w.lane == 0u)
        y4[(args.y_offset >> 2) + w.o] = all;
}
