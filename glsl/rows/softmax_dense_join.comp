#version 450
/*
 * Joins the statistics of a long row's chunks. The result is the loss of the row. If constant 1 is
 * true, it is the values that all gradients of the row need. A row of this kernel consists of the
 * chunks of one row of logits.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const bool BACKWARD = false;
layout(push_constant) uniform block { softmax_dense_join_args args; };
layout(set = 0, binding = 0) restrict readonly buffer statistics { vec4 partial[]; };
layout(set = 0, binding = 1) readonly buffer upstream { float d_loss[]; };
layout(set = 0, binding = 2) writeonly buffer target_words { float y[]; };
layout(set = 0, binding = 2) writeonly buffer target_quads { vec4 y4[]; };

#include "lib/rows.glsl"
#include "lib/math.glsl"
#include "rows/softmax.glsl"
#include "rows/softmax_dense.glsl"
ROW_TREE(vec4, join_lanes, scratch, join_dense)

void main()
{
    row_work w = row_whole();
    vec4 all = vec4(-INFINITY, 0.0, 0.0, 0.0);
    for (uint c = w.lane; c < w.end; c += args.rows.lanes)
        all = join_dense(all, partial[w.start + c]);
    all = join_lanes(all, w.lane);
    if (!w.live || w.lane != 0u)
        return;
    if (BACKWARD)
        y4[w.o] = dense_row(all, d_loss[args.d_offset + w.o]);
    else
        y[args.y_offset + w.o] = dense_loss(all);
}
