#version 450
/*
 * target[c . target_strides] = source[c . source_strides] over up to 8 axes, innermost first, in
 * units of WIDTH words. Units move as integers, so that every bit pattern survives. Offsets,
 * strides and counts are in units. Source strides may be zero or negative. An invocation moves
 * COPY_ITEMS units, one workgroup size apart. All its reads are in flight before the first write.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/movement.h"

layout(constant_id = 1) const uint WIDTH = 1;
layout(push_constant) uniform block { strided_copy_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source1 { uint x1[]; };
layout(set = 0, binding = 0) restrict readonly buffer source2 { uvec2 x2[]; };
layout(set = 0, binding = 0) restrict readonly buffer source4 { uvec4 x4[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target1 { uint y1[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target2 { uvec2 y2[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target4 { uvec4 y4[]; };

struct place {
    uint from, to;
};

place locate(uint rest)
{
    int from = args.source_offset;
    uint to = args.target_offset;
    uint last = args.rank - 1u;
    for (uint axis = 0u; axis < last; axis++) {
        uint outer = rest / args.dims[axis];
        uint coordinate = rest - outer * args.dims[axis];
        from += int(coordinate) * args.source_strides[axis];
        to += coordinate * args.target_strides[axis];
        rest = outer;
    }
    from += int(rest) * args.source_strides[last];
    to += rest * args.target_strides[last];
    return place(uint(from), to);
}

uvec4 read_unit(uint i)
{
    if (WIDTH == 4u)
        return x4[i];
    return WIDTH == 2u ? uvec4(x2[i], 0u, 0u) : uvec4(x1[i], 0u, 0u, 0u);
}

void write_unit(uint i, uvec4 unit)
{
    if (WIDTH == 4u)
        y4[i] = unit;
    else if (WIDTH == 2u)
        y2[i] = unit.xy;
    else
        y1[i] = unit.x;
}

void main()
{
    uint step = gl_WorkGroupSize.x;
    uint first = group_index() * step * COPY_ITEMS + gl_LocalInvocationID.x;
    if (first >= args.count)
        return;
    uvec4 units[COPY_ITEMS];
    uint targets[COPY_ITEMS];
    for (uint k = 0u; k < COPY_ITEMS; k++) {
        place at = locate(min(first + k * step, args.count - 1u));
        units[k] = read_unit(at.from);
        targets[k] = at.to;
    }
    for (uint k = 0u; k < COPY_ITEMS; k++)
        if (first + k * step < args.count)
            write_unit(targets[k], units[k]);
}
