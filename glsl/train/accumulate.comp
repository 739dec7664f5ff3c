#version 450
/*
 * sum = keep sum + t, one element or (VECTORS) four elements per invocation. If keep is 0, the old
 * sum is left out and not multiplied by 0, because it may have any value.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/train.h"

layout(constant_id = 1) const bool VECTORS = false; /* sum and t begin at multiples of four */
layout(push_constant) uniform block { accumulate_args args; };
layout(set = 0, binding = 0) buffer totals { float sum[]; };
layout(set = 0, binding = 0) buffer totals4 { vec4 sum4[]; };
layout(set = 0, binding = 1) readonly buffer terms { float t[]; };
layout(set = 0, binding = 1) readonly buffer terms4 { vec4 t4[]; };
layout(set = 0, binding = 2) readonly buffer factors { float factor[]; };

void add_one(uint i, float keep)
{
    float term = t[args.t_offset + i], old = sum[args.sum_offset + i];
    sum[args.sum_offset + i] = keep == 0.0 ? term : fma(keep, old, term);
}

void main()
{
    float keep = factor[args.keep_offset];
    uint i = global_index();
    if (!VECTORS) {
        if (i < args.numel)
            add_one(i, keep);
        return;
    }
    if (i < args.numel / 4u) {
        vec4 term = t4[args.t_offset / 4u + i], old = sum4[args.sum_offset / 4u + i];
        sum4[args.sum_offset / 4u + i] = keep == 0.0 ? term : fma(vec4(keep), old, term);
        return;
    }
    for (uint k = 4u * i; k < args.numel && k < 4u * i + 4u; k++)
        add_one(k, keep);
}
