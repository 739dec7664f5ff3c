#version 450
/*
 * The effect of one segment of the time on each number of a scan's state. If the segment starts
 * from zero, it ends at `h`. `decay` multiplies the state that it starts with. `g` is the gradient
 * of that state from the segment's own results. One invocation takes one number, and
 * state_scan_join joins the segments.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "lib/math.glsl"
#include "args/sequence.h"
#include "args/sequence_backward.h"

layout(constant_id = 1) const uint KIND = STATE_SCAN_SELECTIVE;
layout(push_constant) uniform block { state_scan_segment_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer steps { float delta[]; };
layout(set = 0, binding = 2) restrict readonly buffer decays { float a[]; };
layout(set = 0, binding = 3) restrict readonly buffer inputs { float b[]; };
layout(set = 0, binding = 4) restrict readonly buffer outputs { float c[]; };
layout(set = 0, binding = 5) restrict readonly buffer upstream { float dy[]; };
layout(set = 0, binding = 6) restrict writeonly buffer scratch { float work[]; };

void main()
{
    uint i = global_index(), k = i % args.size, row = i / args.size;
    uint channels = args.heads * args.width, channel = row % channels;
    uint batch_row = row / channels % args.batch, segment = row / channels / args.batch;
    uint head = channel / args.width, first = segment * args.segment_steps;
    uint end = min(first + args.segment_steps, args.steps);
    if (segment >= args.segments)
        return;
    float rate = a[args.a_offset + (KIND == STATE_SCAN_MAMBA2 ? head : channel * args.size + k)];
    float h = 0.0, g = 0.0, decay = 1.0;
    for (uint t = first; t < end; t++) {
        uint token = batch_row * args.steps + t, at = token * channels + channel;
        uint vector = (token * args.heads + head) * args.size + k;
        float duration =
            delta[args.delta_offset + (KIND == STATE_SCAN_MAMBA2 ? token * args.heads + head : at)];
        float kept = exponential(duration * rate);
        h = fma(duration * x[args.x_offset + at], b[args.b_offset + vector], kept * h);
        decay *= kept;
        g = fma(decay * dy[args.dy_offset + at], c[args.c_offset + vector], g);
    }
    work[args.start_at + i] = h;
    work[args.end_at + i] = g;
    work[args.decay_at + i] = decay;
}
