#version 450
/*
 * Rotates pairs inside each head: (a, b) -> (a c - b s, b c + a s). One invocation owns one pair
 * and reads both elements before it writes them, so y may be x. Columns that are not rotated are
 * copied, two at a time. GPTJ pairs neighbours; NEOX pairs the two halves of the rotated part. BACK
 * uses -s, the inverse rotation.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/attention.h"

layout(constant_id = 1) const bool NEIGHBOURS = false;
layout(constant_id = 2) const bool BACK = false;
layout(push_constant) uniform block { rope_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 1) readonly restrict buffer cosines { float cos_table[]; };
layout(set = 0, binding = 2) readonly restrict buffer sines { float sin_table[]; };
layout(set = 0, binding = 3) writeonly buffer target { float y[]; };

void main()
{
    uint e = global_index();
    if (e >= args.pairs)
        return;
    uint row = e / args.row_pairs, pair = e % args.row_pairs;
    uint head = pair / args.head_pairs, i = pair % args.head_pairs;
    bool rotated = i < args.rotated_pairs;
    bool neighbours = NEIGHBOURS || !rotated;
    uint first = head * args.head_pairs * 2u + (neighbours ? 2u * i : i);
    uint second = first + (neighbours ? 1u : args.rotated_pairs);
    uint batch = row / args.batch_rows, position = row % args.sequence;
    uint x_row = args.x_offset + batch * args.x_batch +
                 row % args.batch_rows / args.sequence * args.x_sequence + position * args.x_row;
    float a = x[x_row + first];
    float b = x[x_row + second];
    uint y_row = args.y_offset + row * args.row_pairs * 2u;
    if (!rotated) {
        y[y_row + first] = a;
        y[y_row + second] = b;
        return;
    }
    uint table_row = position + batch * args.table_batch;
    float c = cos_table[args.cos_offset + table_row * args.cos_row + i];
    float s = sin_table[args.sin_offset + table_row * args.sin_row + i];
    if (BACK)
        s = -s;
    y[y_row + first] = a * c - b * s;
    y[y_row + second] = b * c + a * s;
}
