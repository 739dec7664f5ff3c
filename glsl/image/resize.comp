#version 450
/*
 * Along each axis, y is a band matrix of weights times x. An invocation computes a block of y. It
 * adds up all cells of x that any part of the block needs, and reads each only once. The weights
 * are 0 for the parts that do not need a cell. ACROSS and DOWN are the numbers of taps of a block
 * along columns and rows. Loops over them are unrolled. If they are 0, the numbers come from the
 * arguments.
 */
#extension GL_GOOGLE_include_directive : require
#include "image/resize.glsl"

layout(constant_id = 4) const uint ACROSS = 0u;
layout(constant_id = 5) const uint DOWN = 0u;
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };

/* An old software driver silently ends an invocation's loops after 65,535 rounds in all. There a
 * cell of y is wrong if it needs more cells of x. */
#define EACH(k, count) for (uint k = 0u; k < (count); k++)

vec4 sums[ROWS]; /* one for each row of the block */

vec4 weights(uint size, uint axis, uint k, uint o)
{
    return uintBitsToFloat(entries(size, args.weights[axis] + k * args.pitch[axis], o));
}

/* Index of the first cell of x that the block needs. l is the number of the layer among those that
 * the block's layer needs. */
uint first_cell(resize_block b, uint l)
{
    uint layer = b.plane * args.from[0] + t1[args.first[0] + b.layer] + l;
    uint row = layer * args.from[1] + t1[args.first[1] + b.row];
    return args.x_offset + row * args.from[2] + t1[args.first[2] + b.column];
}

/* Assumes that 0 times x is 0. If x is infinite or NaN, the sums are not finite, and main() uses
 * add_those_there instead. */
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

/* The contribution of v with weight w. If the weight is 0, v does not count, even if it is NaN. */
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

/* Sets the sums to 0. */
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
    if (FILLED && is_outside(b)) {
        store(b, 0u, uvec4(floatBitsToUint(args.value)));
        return;
    }
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
