#version 450
/*
 * Joins the segments of a scan in place, one invocation per number of the state. Each segment's own
 * results are replaced by the state that it starts with and the gradient that reaches its end.
 * Constants 1 and 2 say whether there are an initial state and a gradient of the final state. If
 * not, they are 0.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/sequence_backward.h"

layout(constant_id = 1) const bool BEFORE = false;
layout(constant_id = 2) const bool AFTER = false;
layout(push_constant) uniform block { state_scan_join_args args; };
layout(set = 0, binding = 0) readonly buffer before_state { float before[]; };
layout(set = 0, binding = 1) readonly buffer after_state { float after[]; };
layout(set = 0, binding = 2) buffer scratch { float work[]; };

void main()
{
    uint i = global_index();
    if (i >= args.states)
        return;
    float h = BEFORE ? before[args.before_offset + i] : 0.0;
    float g = AFTER ? after[args.after_offset + i] : 0.0;
    for (uint s = 0u; s < args.segments; s++) {
        uint at = s * args.states + i;
        float own = args.segments > 1u ? work[args.start_at + at] : 0.0;
        work[args.start_at + at] = h;
        h = args.segments > 1u ? fma(work[args.decay_at + at], h, own) : h;
    }
    for (uint s = args.segments; s-- > 0u;) {
        uint at = s * args.states + i;
        float own = args.segments > 1u ? work[args.end_at + at] : 0.0;
        work[args.end_at + at] = g;
        g = args.segments > 1u ? fma(work[args.decay_at + at], g, own) : g;
    }
}
