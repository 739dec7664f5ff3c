/*
 * Addressing of kernels that combine broadcast operands element by element: locate(i) gives the element of up to three
 * operands that output element i needs. Each invocation takes 4 elements, a workgroup apart: element(k) < args.numel.
 * Specialization constants: 1 the kernel's op, 2 the addressing form, 3 which operands are pairs (bit o).
 */
layout(constant_id = 1) const uint CODE = 0;
layout(constant_id = 2) const uint FORM = ELEMENTWISE_LOOP;
layout(constant_id = 3) const uint PAIRS = 0;
layout(push_constant) uniform block { elementwise_args args; };

uint element(uint k)
{
    return (group_index() * 4 + k) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
}

uvec3 strides_of(uint axis)
{
    return uvec3(args.strides[axis], args.strides[ELEMENTWISE_AXES + axis],
                 args.strides[2 * ELEMENTWISE_AXES + axis]);
}

uvec3 locate(uint i)
{
    uvec3 at = uvec3(args.offsets[0], args.offsets[1], args.offsets[2]);
    if (FORM == ELEMENTWISE_LINE)
        return at + i * strides_of(0);
    if (FORM == ELEMENTWISE_ROWS) {
        uint row = i / args.dims[0];
        return at + (i - row * args.dims[0]) * strides_of(0) + row * strides_of(1);
    }
    for (uint axis = 0; axis + 1 < args.rank; axis++) {
        uint rest = i / args.dims[axis];
        at += (i - rest * args.dims[axis]) * strides_of(axis);
        i = rest;
    }
    return at + i * strides_of(args.rank - 1);
}

/* Orders like the numbers themselves, zeros equal, denormals distinct; not for NaN. */
int order_key(float v)
{
    uint bits = floatBitsToUint(v);
    int magnitude = int(bits & 0x7fffffffu);
    return bits >= 0x80000000u ? -magnitude : magnitude;
}
