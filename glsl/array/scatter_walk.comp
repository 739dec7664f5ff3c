#version 450
/*
 * Each element of y applies the sorted updates of its row in order: positions[starts[r]] to
 * positions[starts[r + 1] - 1]. If there are too many for the loops of one dispatch, the next
 * dispatch continues from the values in y.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/array.h"

layout(constant_id = 1) const uint MODE = SCATTER_ADD;
layout(constant_id = 2) const bool QUADS = false; /* columns are counted in quads */
layout(push_constant) uniform block { scatter_args args; };
layout(set = 0, binding = 0) restrict readonly buffer old { float x[]; };
layout(set = 0, binding = 0) restrict readonly buffer old4 { vec4 x4[]; };
layout(set = 0, binding = 1) restrict readonly buffer indices { float index[]; };
layout(set = 0, binding = 2) restrict readonly buffer source { float updates[]; };
layout(set = 0, binding = 2) restrict readonly buffer source4 { vec4 updates4[]; };
layout(set = 0, binding = 3) restrict readonly buffer order { uint positions[]; };
layout(set = 0, binding = 4) restrict readonly buffer bounds { uint starts[]; };
layout(set = 0, binding = 5) restrict buffer target { float y[]; };
layout(set = 0, binding = 5) restrict buffer target4 { vec4 y4[]; };
#include "array/scatter.glsl"

#define EACH 4u /* updates that are in flight in each round */

vec4 update_at(uint i, uint column)
{
    uint from = args.updates_offset + positions[i] * args.inner + column;
    if (QUADS)
        return updates4[from];
    return vec4(updates[from], 0.0, 0.0, 0.0);
}

vec4 apply_to(vec4 v, vec4 u)
{
    v.x = apply(MODE, v.x, u.x);
    if (QUADS)
        v.yzw = vec3(apply(MODE, v.y, u.y), apply(MODE, v.z, u.z), apply(MODE, v.w, u.w));
    return v;
}

vec4 value_before(uint e)
{
    bool first = args.skipped == 0u;
    if (QUADS)
        return first ? x4[args.x_offset + e] : y4[args.y_offset + e];
    return vec4(first ? x[args.x_offset + e] : y[args.y_offset + e], 0.0, 0.0, 0.0);
}

void main()
{
    uint e = global_index();
    if (e >= args.count)
        return;
    uint row = e / args.inner, t = e - row * args.inner;
    uint i = starts[row], end = starts[row + 1u];
    if (args.skipped > 0u && end - i <= args.skipped)
        return;
    i += args.skipped;
    end = min(end, i + args.most);
    vec4 v = value_before(e), u[EACH];
    for (; i + EACH <= end; i += EACH) {
        [[unroll]] for (uint k = 0u; k < EACH; k++)
            u[k] = update_at(i + k, t);
        [[unroll]] for (uint k = 0u; k < EACH; k++)
            v = apply_to(v, u[k]);
    }
    for (; i < end; i++)
        v = apply_to(v, update_at(i, t));
    if (QUADS)
        y4[args.y_offset + e] = v;
    else
        y[args.y_offset + e] = v.x;
}
