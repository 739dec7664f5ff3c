#version 450
/* y[i] = requantized(bias + the sum over splits of partial[split][i]), in 64-bit integers. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/packed.h"
#include "packed/integer.glsl"

layout(constant_id = 1) const uint HAS_BIAS = 0;
layout(push_constant) uniform block { integer_sum_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { int partial[]; };
layout(set = 0, binding = 1) restrict readonly buffer bias_buffer { float bias[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uvec2 total = uvec2(0);
    for (uint split = 0; split < args.splits; split++)
        total = wide_add(total, partial[split * args.count + i]);
    if (HAS_BIAS != 0) {
        uint channel = i / args.cells % args.channels;
        total = wide_add(total, bias_integer(bias[args.bias_offset + channel]));
    }
    y[args.y_offset + i] = requantize(total, args.multiplier, args.out_zero_point);
}
