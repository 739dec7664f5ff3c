#version 450
/*
 * y[e][p][j] = element p of packed row j of expert e: every slab of n rows decoded and transposed.
 * One invocation decodes one unit; neighbours take neighbouring rows j, so that their stores meet.
 */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(push_constant) uniform block { dequant_moe_weights_args args; };
#include "dequant.glsl"
layout(set = 0, binding = 1) writeonly restrict buffer target { float y[]; };

void write_run(uint at, uvec4 codes, float scale, float bias)
{
    for (uint i = 0; i < RUN_ELEMENTS; i++) {
        precise float value = scale * signed_byte(codes[i >> 2] >> (i & 3) * 8) + bias;
        y[at + i * args.n] = value;
    }
}

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint j = i % args.n, unit = i / args.n % args.units, expert = i / args.n / args.units;
    unit_codes w = decode_row_unit(args.w_offset + (expert * args.n + j) * args.row_bytes, unit);
    uint first = args.y_offset + expert * args.units * UNIT_ELEMENTS * args.n + j;
    write_run(first + unit_position(unit) * args.n, w.first, w.scale.x, w.bias.x);
    write_run(first + (unit_position(unit) + DISTANCE) * args.n, w.second, w.scale.y, w.bias.y);
}
