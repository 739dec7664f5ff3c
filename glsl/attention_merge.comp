#version 450
/*
 * Joins the chunks of attention_decode: one invocation per output element. For each row and chunk
 * `partial` holds m, l, o[width]; a chunk with l = 0 has no o.
 */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(push_constant) uniform block { attention_merge_args args; };
layout(set = 0, binding = 0) readonly restrict buffer source { float partial[]; };
layout(set = 0, binding = 1) writeonly restrict buffer target { float y[]; };

#include "attention_softmax.glsl"

void main()
{
    uint row = global_index() / args.width, d = global_index() % args.width;
    if (row >= args.rows)
        return;
    uint stride = args.width + 2u, base = row * args.chunks * stride;
    float m = NEGATIVE_INFINITY, l = 0.0, o = 0.0;
    for (uint c = 0; c < args.chunks; c++)
        m = larger(m, partial[base + c * stride]);
    for (uint c = 0; c < args.chunks; c++) {
        uint at = base + c * stride;
        if (floatBitsToUint(partial[at + 1u]) == 0u)
            continue;
        float scale = weight_of(partial[at], m);
        l += partial[at + 1u] * scale;
        o += partial[at + 2u + d] * scale;
    }
    uint i = row % args.queries, h = row / args.queries % args.heads;
    uint b = row / args.queries / args.heads;
    y[args.y_offset + b * args.y_batch + h * args.y_head + i * args.y_seq + d] = normalized(o, l);
    if (d == 0u && args.lse_offset != ATTENTION_NO_LSE)
        y[args.lse_offset + row] = log_sum(m, l);
}
