#version 450
/* The square of the norm of each row, in f32: what bounds the errors of products with it. */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/neighbours.h"

#define EACH 8u /* columns of a round, of which rows have few enough (knn_lower.c) */

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
