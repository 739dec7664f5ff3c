#version 450
/*
 * The new rows of k, rotated, and of v into their caches, from the position on: before an attention
 * over them. An invocation an element; rows that land outside the cache are dropped, and those of
 * batches without an entry of it.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/attention.h"

layout(constant_id = 1) const uint ROTATED = 0; /* columns of a head */
layout(constant_id = 2) const bool NEIGHBOURS = false;
layout(push_constant) uniform block { attention_append_args args; };
layout(set = 0, binding = 0) writeonly restrict buffer k_target { float k[]; };
layout(set = 0, binding = 1) writeonly restrict buffer v_target { float v[]; };
layout(set = 0, binding = 2) readonly buffer place { float position[]; };
layout(set = 0, binding = 3) readonly buffer new_k_source { float new_k[]; };
layout(set = 0, binding = 4) readonly buffer new_v_source { float new_v[]; };
layout(set = 0, binding = 5) readonly buffer cosines { float cos_table[]; };
layout(set = 0, binding = 6) readonly buffer sines { float sin_table[]; };

#define table args.table
#include "attention/attention_rotation.glsl"
DEFINE_ROTATED(rotated_k, new_k)

void main()
{
    uint e = global_index(), d = e % args.width, head = e / args.width;
    if (e >= args.numel)
        return;
    uint token = head / args.heads, b = token / args.rows;
    uint from = args.position_offset + b * args.position_batch;
    float first = floor(position[from] + 0.5), entry = float(b);
    if (args.position_batch > 1u)
        entry = floor(position[from + 1u] + 0.5);
    if (is_nan(first) || first < 0.0 || first >= float(args.capacity) || is_nan(entry) ||
        entry < 0.0 || entry >= float(args.entries))
        return;
    uint row = uint(first) + token % args.rows, h = head % args.heads, column = h * args.width;
    if (row >= args.capacity)
        return;
    uint at = ((uint(entry) * args.heads + h) * args.capacity + row) * args.width + d;
    k[args.k_offset + at] = rotated_k(args.new_k + token * args.new_k_row + column, token, d);
    v[args.v_offset + at] = new_v[args.new_v + token * args.new_v_row + column + d];
}
