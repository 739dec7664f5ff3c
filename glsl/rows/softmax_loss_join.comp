#version 450
/*
 * Joins the statistics of a long row's chunks (from softmax_partial). The result is the loss of the
 * row. If constant 1 is true, it is the four words that softmax_loss_finish needs: maximum, 1 /
 * sum, gradient of the loss, and the label as bits. A row of this kernel consists of the chunks of
 * one row of logits.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const bool BACKWARD = false;
layout(push_constant) uniform block { softmax_loss_join_args args; };
layout(set = 0, binding = 0) restrict readonly buffer partial { float statistics[]; };
layout(set = 0, binding = 1) restrict readonly buffer row_labels { float labels[]; };
layout(set = 0, binding = 2) restrict readonly buffer upstream { float beside[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float y[]; };

#include "lib/rows.glsl"
#include "lib/math.glsl"
#include "rows/softmax.glsl"
#include "rows/softmax_loss.glsl"
ROW_TREE(vec2, join_lanes, scratch, join_statistics)

void write_loss(uint o, vec2 all, uint label)
{
    float value = label == LABEL_IGNORED ? 0.0 : NAN_VALUE;
    if (label < args.classes && is_plain(all.x))
        value = (all.x - beside[args.beside_offset + o * args.classes + label]) + logarithm(all.y);
    y[args.y_offset + o] = value;
}

void main()
{
    row_work w = row_whole();
    vec2 all = vec2(-INFINITY, 0.0);
    for (uint c = w.lane; c < w.end; c += args.rows.lanes) {
        uint at = 2u * (w.start + c);
        all = join_statistics(all, vec2(statistics[at], statistics[at + 1u]));
    }
    all = join_lanes(all, w.lane);
    if (!w.live || w.lane != 0u)
        return;
    uint label = label_of(labels[args.labels_offset + w.o], args.classes);
    if (!BACKWARD) {
        write_loss(w.o, all, label);
        return;
    }
    uint at = args.y_offset + 4u * w.o;
    y[at] = all.x;
    y[at + 1u] = 1.0 / all.y;
    y[at + 2u] = beside[args.beside_offset + w.o];
    y[at + 3u] = uintBitsToFloat(label);
}
