#version 450
/*
 * Each axis of y is a band of weights over x's, from a table (resize_table.c): an invocation makes
 * four neighbouring columns of some rows of y, so that the columns' weights are loaded once.
 * ACROSS, DOWN: taps along columns and rows, 0: as the arguments say. MOVE: each axis has one tap
 * of weight 1, words are moved as they are. QUADS: y and the columns' table lie in fours.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/image.h"

layout(constant_id = 1) const uint ACROSS = 2u;
layout(constant_id = 2) const uint DOWN = 2u;
layout(constant_id = 3) const uint ROWS = 1u;
layout(constant_id = 4) const bool QUADS = false;
layout(constant_id = 5) const bool MOVE = false;
layout(push_constant) uniform block { resize_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint x[]; };
layout(set = 0, binding = 1) restrict readonly buffer table1 { uint t1[]; };
layout(set = 0, binding = 1) restrict readonly buffer table4 { uvec4 t4[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target1 { uint y1[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target4 { uvec4 y4[]; };

/* Loops of more than 65,535 rounds end early on old drivers. */
#define ROUNDS 4096u
#define EACH(k, count)                                                                             \
    for (uint k##_begin = 0u; k##_begin < (count); k##_begin += ROUNDS)                            \
        for (uint k = k##_begin; k < min(k##_begin + ROUNDS, (count)); k++)

uvec4 columns_of(uint at, uint column)
{
    if (QUADS)
        return t4[(at + column) / 4u];
    uvec4 c = at + min(column + uvec4(0u, 1u, 2u, 3u), uvec4(args.to[2] - 1u));
    return uvec4(t1[c.x], t1[c.y], t1[c.z], t1[c.w]);
}

float weight(uint axis, uint k, uint o)
{
    return uintBitsToFloat(t1[args.weights[axis] + k * args.pitch[axis] + o]);
}

uvec4 cells(uvec4 at)
{
    return uvec4(x[at.x], x[at.y], x[at.z], x[at.w]);
}

/* What has weight 0 is not there, be it NaN. */
vec4 term(vec4 w, vec4 v)
{
    return mix(w * v, vec4(0.0), equal(w, vec4(0.0)));
}

vec4 weights[4];

vec4 row_of_x(uint base, uvec4 first, uint column)
{
    vec4 sum = vec4(0.0);
    uvec4 at = base + first;
    if (ACROSS == 0u) {
        EACH(k, args.taps[2])
        {
            uvec4 w = columns_of(args.weights[2] + k * args.pitch[2], column);
            sum += term(uintBitsToFloat(w), uintBitsToFloat(cells(at + k)));
        }
        return sum;
    }
    for (uint k = 0u; k < ACROSS; k++)
        sum += term(weights[k], uintBitsToFloat(cells(at + k)));
    return sum;
}

uvec4 make(uint plane, uint layer, uint row, uvec4 first, uint column)
{
    uint layers = plane * args.from[0] + t1[args.first[0] + layer];
    uint rows = t1[args.first[1] + row];
    if (MOVE)
        return cells(args.x_offset + (layers * args.from[1] + rows) * args.from[2] + first);
    vec4 sum = vec4(0.0);
    uint down = DOWN == 0u ? args.taps[1] : DOWN;
    EACH(l, args.taps[0])
    {
        float outer = weight(0u, l, layer);
        uint at = ((layers + l) * args.from[1] + rows) * args.from[2] + args.x_offset;
        EACH(r, down)
        {
            float inner = weight(1u, r, row);
            vec4 part = row_of_x(at + r * args.from[2], first, column);
            vec4 w = vec4(outer != 0.0 && inner != 0.0 ? outer * inner : 0.0);
            sum += term(w, part);
        }
    }
    return floatBitsToUint(sum);
}

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    uint rest = i / args.quads, column = 4u * (i - rest * args.quads);
    uint place = rest / args.strips, row = (rest - place * args.strips) * ROWS;
    uint plane = place / args.to[0], layer = place - plane * args.to[0];
    uvec4 first = columns_of(args.first[2], column);
    for (uint k = 0u; k < ACROSS && !MOVE; k++)
        weights[k] =
            uintBitsToFloat(columns_of(args.weights[2] + k * args.pitch[2], column));
    for (uint r = 0u; r < ROWS; r++) {
        if (row + r >= args.to[1])
            break;
        uvec4 v = make(plane, layer, row + r, first, column);
        uint at = args.y_offset + (place * args.to[1] + row + r) * args.to[2] + column;
        if (QUADS)
            y4[at / 4u] = v;
        for (uint c = 0u; c < 4u && !QUADS; c++)
            if (column + c < args.to[2])
                y1[at + c] = v[c];
    }
}
