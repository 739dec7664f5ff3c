#version 450
/*
 * Each axis of y is a band of weights over x's: a block adds up all cells of x that any of it is
 * made of, each cell read once, by weights that are 0 where it is not made of that. ACROSS, DOWN:
 * taps of a block along columns and rows, whose loops are unrolled; 0: as the arguments say.
 */
#extension GL_GOOGLE_include_directive : require
#include "image/resize.glsl"

layout(constant_id = 4) const uint ACROSS = 0u;
layout(constant_id = 5) const uint DOWN = 0u;
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };

/* An old software driver ends an invocation's loops silently after 65,535 rounds in all: there, a
 * cell of y of more cells of x than that is wrong. */
#define EACH(k, count) for (uint k = 0u; k < (count); k++)

vec4 sums[ROWS]; /* of a row of the block each */

vec4 weights(uint size, uint axis, uint k, uint o)
{
    return uintBitsToFloat(entries(size, args.weights[axis] + k * args.pitch[axis], o));
}

/* The first cell of x that the block is made of, in layer l of those that its layer is made of. */
uint first_cell(resize_block b, uint l)
{
    uint layer = b.plane * args.from[0] + t1[args.first[0] + b.layer] + l;
    uint row = layer * args.from[1] + t1[args.first[1] + b.row];
    return args.x_offset + row * args.from[2] + t1[args.first[2] + b.column];
}

/* As if 0 times what is no number were 0. */
void add_unrolled(resize_block b)
{
    vec4 across[8]; /* ACROSS of them */
    [[unroll]] for (uint k = 0u; k < ACROSS; k++)
        across[k] = weights(COLUMNS, 2u, k, b.column);
    EACH(l, args.taps[0])
    {
        float outer = weights(1u, 0u, l, b.layer).x;
        uint at = first_cell(b, l);
        [[unroll]] for (uint s = 0u; s < DOWN; s++) {
            vec4 line = vec4(0.0), down = outer * weights(ROWS, 1u, s, b.row);
            [[unroll]] for (uint k = 0u; k < ACROSS; k++)
                line += across[k] * vec4(x[at + s * args.from[2] + k]);
            [[unroll]] for (uint r = 0u; r < ROWS; r++)
                sums[r] += vec4(down[r]) * line;
        }
    }
}

/* What has weight 0 is not there, be it NaN. */
vec4 term(vec4 w, vec4 v)
{
    return mix(w * v, vec4(0.0), equal(w, vec4(0.0)));
}

void add_those_there(resize_block b)
{
    EACH(l, args.taps[0])
    {
        float outer = weights(1u, 0u, l, b.layer).x;
        uint at = first_cell(b, l);
        EACH(s, args.taps[1])
        {
            vec4 line = vec4(0.0), down = outer * weights(ROWS, 1u, s, b.row);
            EACH(k, args.taps[2])
                line += term(weights(COLUMNS, 2u, k, b.column), vec4(x[at + k]));
            [[unroll]] for (uint r = 0u; r < ROWS; r++)
                sums[r] += term(vec4(down[r]), line);
            at += args.from[2];
        }
    }
}

/* Starts at 0. */
void clear()
{
    [[unroll]] for (uint r = 0u; r < ROWS; r++)
        sums[r] = vec4(0.0);
}

bool all_finite()
{
    uvec4 most = uvec4(0u);
    [[unroll]] for (uint r = 0u; r < ROWS; r++)
        most = max(most, floatBitsToUint(sums[r]) & 0x7fffffffu);
    if (COLUMNS == 4u)
        most.x = max(max(most.x, most.y), max(most.z, most.w));
    return most.x < 0x7f800000u;
}

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    resize_block b = block_of(i);
    clear();
    if (ACROSS != 0u)
        add_unrolled(b);
    if (ACROSS == 0u || !all_finite()) {
        clear();
        add_those_there(b);
    }
    [[unroll]] for (uint r = 0u; r < ROWS; r++)
        store(b, r, floatBitsToUint(sums[r]));
}
