#version 450
/*
 * y = (x - mean[c]) / sqrt(variance[c] + eps) * gamma[c] + beta[c], if x is [outer, channels,
 * inner] and c is its channel index. An invocation takes COPY_ITEMS elements, one workgroup size
 * apart. FLAGS (constant 1) is a set of BATCH_NORM_ bits. y may be x.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"
#include "args/rows.h"
#include "lib/math.glsl"

layout(constant_id = 1) const uint FLAGS = 0;
layout(push_constant) uniform block { batch_norm_args args; };
layout(set = 0, binding = 0) readonly buffer source { float x[]; };
layout(set = 0, binding = 1) readonly restrict buffer input_mean { float mean[]; };
layout(set = 0, binding = 2) readonly restrict buffer input_variance { float variance[]; };
layout(set = 0, binding = 3) readonly buffer input_gamma { float gamma[]; };
layout(set = 0, binding = 4) readonly buffer input_beta { float beta[]; };
layout(set = 0, binding = 5) writeonly buffer target { float y[]; };

float normalized(float v, uint c)
{
    float spread = variance[args.variance_offset + c] + args.eps, m = mean[args.mean_offset + c];
    if (is_nan(spread) || spread < 0.0)
        return NAN_VALUE;
    float scale = is_inf(spread) ? 0.0 : inversesqrt(spread), deviation = v - m;
    if (spread < 1.17549435e-38) { /* zero or denormal */
        spread = args.eps == 0.0 ? variance[args.variance_offset + c] : spread;
        if (magnitude_bits(spread) == 0u)
            return 0.0;
        scale = reciprocal_root(spread);
    }
    if (is_inf(deviation) && !is_inf(v) && !is_inf(m)) {
        /* In this order: a driver multiplied by 4 first, which overflows. */
        precise float part = 0.25 * v, from = 0.25 * m, apart = part - from;
        precise float scaled = apart * scale, whole = 4.0 * scaled;
        return whole;
    }
    return deviation * scale;
}

void main()
{
    uint first = group_index() * gl_WorkGroupSize.x * COPY_ITEMS + gl_LocalInvocationID.x;
    for (uint k = 0u; k < COPY_ITEMS; k++) {
        uint i = first + k * gl_WorkGroupSize.x;
        if (i >= args.numel)
            return;
        uint c = i / args.inner % args.channels;
        float v = normalized(x[args.x_offset + i], c);
        if ((FLAGS & BATCH_NORM_HAS_GAMMA) != 0u)
            v *= gamma[args.gamma_offset + c];
        if ((FLAGS & BATCH_NORM_HAS_BETA) != 0u)
            v += beta[args.beta_offset + c];
        y[args.y_offset + i] = v;
    }
}
