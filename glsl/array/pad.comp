#version 450
/*
 * An array continued to both sides of its axes, or cut. Units of WIDTH words move as integers, so
 * that every bit pattern survives; an invocation moves COPY_ITEMS of them, a workgroup apart, all
 * read before the first is written.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/array.h"
#include "args/movement.h"
#include "lib/divide.glsl"

layout(constant_id = 1) const uint WIDTH = 1;
layout(constant_id = 2) const uint MODE = PAD_CONSTANT;
layout(push_constant) uniform block { pad_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source1 { uint x1[]; };
layout(set = 0, binding = 0) restrict readonly buffer source2 { uvec2 x2[]; };
layout(set = 0, binding = 0) restrict readonly buffer source4 { uvec4 x4[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target1 { uint y1[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target2 { uvec2 y2[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target4 { uvec4 y4[]; };

/* Below the period. */
uint turn(uint c, uint before, uint period, uint multiplier)
{
    if (c < before)
        return c + (period - before);
    uint p = c - before;
    return p < period ? p : p - divide(p, period, multiplier) * period;
}

/* The source's position of one axis; not below the extent: outside. */
uint position(uint axis, uint c)
{
    uint extent = args.extents[axis], multiplier = args.divide_period[axis];
    uint before = uint(args.before[axis]);
    if (MODE == PAD_CONSTANT) /* in front of the first is far behind the last */
        return c - before;
    if (MODE == PAD_EDGE)
        return args.before[axis] > int(c) ? 0u : min(c - before, extent - 1u);
    if (MODE == PAD_WRAP)
        return turn(c, before, extent, multiplier);
    if (extent == 1u)
        return 0u;
    uint period = 2u * (extent - 1u), q = turn(c, before, period, multiplier);
    return q < extent ? q : period - q;
}

/* ~0: outside. */
uint locate(uint rest)
{
    uint from = 0u, stride = 1u;
    bool outside = false;
    for (uint axis = 0u; axis < args.rank; axis++) {
        uint size = args.sizes[axis], outer = 0u;
        if (axis + 1u < args.rank)
            outer = size == 1u ? rest : divide(rest, size, args.divide_size[axis]);
        uint p = position(axis, rest - outer * size);
        outside = outside || p >= args.extents[axis];
        from += p * stride;
        stride *= args.extents[axis];
        rest = outer;
    }
    return outside ? ~0u : from + args.source_offset;
}

uvec4 read_unit(uint from)
{
    if (WIDTH == 4u)
        return x4[from];
    return WIDTH == 2u ? uvec4(x2[from], 0u, 0u) : uvec4(x1[from], 0u, 0u, 0u);
}

void main()
{
    uint step = gl_WorkGroupSize.x;
    uint first = group_index() * step * COPY_ITEMS + gl_LocalInvocationID.x;
    uvec4 units[COPY_ITEMS];
    if (first >= args.count)
        return;
    [[unroll]] for (uint k = 0u; k < COPY_ITEMS; k++) {
        uint i = min(first + k * step, args.count - 1u), from = locate(i);
        units[k] = uvec4(args.fill[0], args.fill[1], args.fill[0], args.fill[1]);
        if (WIDTH == 1u)
            units[k].x = args.fill[i & 1u];
        if (MODE != PAD_CONSTANT || from != ~0u)
            units[k] = read_unit(from);
    }
    [[unroll]] for (uint k = 0u; k < COPY_ITEMS; k++) {
        uint i = first + k * step, to = args.target_offset + i;
        if (i >= args.count)
            continue;
        if (WIDTH == 4u)
            y4[to] = units[k];
        else if (WIDTH == 2u)
            y2[to] = units[k].xy;
        else
            y1[to] = units[k].x;
    }
}
