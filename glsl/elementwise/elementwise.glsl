/*
 * Addressing for kernels that combine broadcast operands element by element. locate(i) returns the
 * elements of up to three operands that output elements i need. Specialization constants: 1 is the
 * op, 2 is the addressing form, 3 says which operands are complex pairs (bit o for operand o).
 */
#include "args/elementwise.h"
#include "lib/four.glsl"

layout(constant_id = 1) const uint CODE = 0;
layout(constant_id = 2) const uint FORM = ELEMENTWISE_LOOP;
layout(constant_id = 3) const uint PAIRS = 0;
layout(push_constant) uniform block { elementwise_args args; };

struct location {
    uvec4 a, b, c;
};

void advance(inout location at, uvec4 coordinate, uint axis)
{
    at.a += coordinate * args.strides[axis];
    at.b += coordinate * args.strides[ELEMENTWISE_AXES + axis];
    at.c += coordinate * args.strides[2 * ELEMENTWISE_AXES + axis];
}

/* Output elements i. Elements beyond the last one read the same operands as the last one. */
location locate(uvec4 i)
{
    location at = location(uvec4(args.offsets[0]), uvec4(args.offsets[1]), uvec4(args.offsets[2]));
    i = min(i, uvec4(args.numel - 1));
    if (FORM == ELEMENTWISE_LINE) {
        advance(at, i, 0);
    } else if (FORM == ELEMENTWISE_ROWS) {
        uvec4 row = i / args.dims[0];
        advance(at, i - row * args.dims[0], 0);
        advance(at, row, 1);
    } else {
        for (uint axis = 0; axis + 1 < args.rank; axis++) {
            uvec4 rest = i / args.dims[axis];
            advance(at, i - rest * args.dims[axis], axis);
            i = rest;
        }
        advance(at, i, args.rank - 1);
    }
    return at;
}
