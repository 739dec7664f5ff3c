#version 450
/*
 * Reduction of rows whose elements are `inner` quads apart. A thread takes HELD (constant 2)
 * elements of four neighbouring rows, as vec4, with all loads in flight at once. `lanes` threads
 * share these four rows. A workgroup takes lane_stride such sets of four rows.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const uint CODE = REDUCE_SUM;
layout(constant_id = 2) const uint HELD = 1;
layout(push_constant) uniform block { reduce_args args; };
#define ROW_VOTES
#include "lib/rows.glsl"
#include "rows/reduce.glsl"
layout(set = 0, binding = 0) restrict readonly buffer source { vec4 x4[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { vec4 y4[]; };

ROW_TREE(vec4, join_lanes, scratch, combine)

bvec4 are_finite(vec4 v)
{
    return bvec4(is_finite(v.x), is_finite(v.y), is_finite(v.z), is_finite(v.w));
}

void main()
{
    row_work w = row_whole();
    vec4 v[HELD], spare = vec4(0.0);
    [[unroll]] for (uint k = 0u; k < HELD; k++) {
        uint r = w.lane + k * args.rows.lanes;
        v[k] = vec4(identity());
        if (r < w.end)
            v[k] = taken(x4[(args.x_offset >> 2) + w.start + r * args.rows.inner]);
    }
    vec4 sum = v[0];
    [[unroll]] for (uint k = 1u; k < HELD; k++)
        sum = combine(sum, v[k]);
    sum = join_lanes(sum, w.lane);
    if (IS_MEAN && row_vote(!all(are_finite(sum)))) {
        row_barrier();
        [[unroll]] for (uint k = 0u; k < HELD; k++) {
            vec4 part = v[k] * args.shrink;
            if (args.x_spare != 0u && w.lane + k * args.rows.lanes < w.end)
                part = mix(x4[(args.x_offset + args.x_spare >> 2) + w.start +
                              (w.lane + k * args.rows.lanes) * args.rows.inner],
                           part, are_finite(v[k]));
            spare += part;
        }
        spare = join_lanes(spare, w.lane);
    }
    if (!w.live || w.lane != 0u)
        return;
    vec4 result = sum;
    if (CODE == REDUCE_MEAN)
        for (uint i = 0u; i < 4u; i++)
            result[i] = mean_of(sum[i], spare[i]);
    y4[(args.y_offset >> 2) + w.o] = result;
    if (CODE == REDUCE_PART && !all(are_finite(sum)))
        y4[(args.y_offset + args.y_spare >> 2) + w.o] = spare;
}
