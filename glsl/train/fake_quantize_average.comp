#version 450
/* state = the scale of each channel, averaged with its earlier value. If that is 0 or less, as at
 * first, the scale comes only from the channel's largest magnitude. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/train.h"
#include "lib/math.glsl"
#include "train/fake_quantize.glsl"

layout(push_constant) uniform block { fake_quantize_average_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float largest[]; };
layout(set = 0, binding = 1) restrict buffer states { float state[]; };

void main()
{
    uint c = global_index();
    if (c >= args.channels)
        return;
    float before = state[args.state_offset + c];
    float now = at_least(divide(largest[args.largest_offset + c], args.most), 1e-12);
    if (is_nan(before))
        now = before;
    else if (floatBitsToInt(before) > 0) /* also true for a denormal */
        now = fma(args.decay, before, args.rest * now);
    state[args.state_offset + c] = now;
}
