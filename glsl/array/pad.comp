#version 450
/*
 * Pads an array on both sides of its axes, or crops it. Units of WIDTH words are copied as
 * integers, so that every bit pattern is kept. An invocation copies COPY_ITEMS units, one workgroup
 * size apart, and loads all before it stores the first. With QUADS, a unit of the result is four
 * neighbouring words. If they are also neighbours in the source, their position is computed once.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/array.h"
#include "args/movement.h"
#include "lib/divide.glsl"

layout(constant_id = 1) const uint WIDTH = 1;
layout(constant_id = 2) const uint MODE = PAD_CONSTANT;
layout(constant_id = 3) const bool QUADS = false;
layout(push_constant) uniform block { pad_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source1 { uint x1[]; };
layout(set = 0, binding = 0) restrict readonly buffer source2 { uvec2 x2[]; };
layout(set = 0, binding = 0) restrict readonly buffer source4 { uvec4 x4[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target1 { uint y1[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target2 { uvec2 y2[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target4 { uvec4 y4[]; };

/* (c - before) modulo the period. */
uint turn(uint c, uint before, uint period, uint multiplier)
{
    if (c < before)
        return c + (period - before);
    uint p = c - before;
    return p < period ? p : p - divide(p, period, multiplier) * period;
}

/* The position in the source along one axis. If it is not below the extent, it is outside. */
uint position(uint axis, uint c)
{
    uint extent = args.extents[axis], multiplier = args.divide_period[axis];
    uint before = uint(args.before[axis]);
    if (MODE == PAD_CONSTANT) /* before the first element wraps to far behind the last */
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

/* The index in the source, or ~0 if it is outside. */
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

uvec4 unit_at(uint i)
{
    uint from = locate(i);
    if (MODE == PAD_CONSTANT && from == ~0u)
        return WIDTH == 1u ? uvec4(args.fill[i & 1u], 0u, 0u, 0u)
                           : uvec4(args.fill[0], args.fill[1], args.fill[0], args.fill[1]);
    if (WIDTH == 4u)
        return x4[from];
    return WIDTH == 2u ? uvec4(x2[from], 0u, 0u) : uvec4(x1[from], 0u, 0u, 0u);
}

/* Words i to i + 3. */
uvec4 quad_at(uint i)
{
    uint size = args.sizes[0], extent = args.extents[0], last = args.count - 1u, c = i;
    if (args.rank > 1u && size > 1u)
        c = i - divide(i, size, args.divide_size[0]) * size;
    uint p = position(0u, c), end = c + 3u < size ? position(0u, c + 3u) : ~0u;
    if (p < extent && end < extent && end == p + 3u) {
        uint from = locate(i);
        if (MODE == PAD_CONSTANT && from == ~0u)
            return uvec4(args.fill[0], args.fill[1], args.fill[0], args.fill[1]);
        return uvec4(x1[from], x1[from + 1u], x1[from + 2u], x1[from + 3u]);
    }
    return uvec4(unit_at(i).x, unit_at(min(i + 1u, last)).x, unit_at(min(i + 2u, last)).x,
                 unit_at(min(i + 3u, last)).x);
}

void store(uint i, uvec4 unit)
{
    uint to = args.target_offset + i;
    if (WIDTH == 4u) {
        y4[to] = unit;
    } else if (WIDTH == 2u) {
        y2[to] = unit.xy;
    } else if (!QUADS) {
        y1[to] = unit.x;
    } else if (i + 4u <= args.count) {
        y4[to / 4u] = unit;
    } else {
        for (uint k = 0u; k < args.count - i; k++)
            y1[to + k] = unit[k];
    }
}

void main()
{
    uint step = gl_WorkGroupSize.x, each = QUADS ? 4u : 1u;
    uint first = group_index() * step * COPY_ITEMS + gl_LocalInvocationID.x;
    uint units_of = (args.count + each - 1u) / each;
    uvec4 units[COPY_ITEMS];
    if (first >= units_of)
        return;
    [[unroll]] for (uint k = 0u; k < COPY_ITEMS; k++) {
        uint i = min(first + k * step, units_of - 1u) * each;
        if (QUADS)
            units[k] = quad_at(i);
        else
            units[k] = unit_at(i);
    }
    [[unroll]] for (uint k = 0u; k < COPY_ITEMS; k++)
        if (first + k * step < units_of)
            store((first + k * step) * each, units[k]);
}
