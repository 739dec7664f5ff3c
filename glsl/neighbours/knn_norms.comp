#version 450
/* The square of each row's norm, in f32. It bounds the errors of products with the row. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/neighbours.h"

#define EACH 8u /* columns per loop iteration; knn_lower.c limits the iterations */

layout(push_constant) uniform block { knn_norms_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float norms[]; };

void main()
{
    uint row = global_index();
    if (row >= args.rows)
        return;
    uint at = args.x_offset + row * args.columns;
    float sum = 0.0;
    for (uint first = 0u; first < args.columns; first += EACH)
        [[unroll]] for (uint i = first, k = 0u; k < EACH; i++, k++)
            if (i < args.columns)
                sum += x[at + i] * x[at + i];
    norms[row] = sum;
}
