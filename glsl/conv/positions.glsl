/*
 * Positions of a convolution: sizes on three spatial axes, and where a position lies in x and y.
 * See conv.glsl. The includer declares args, with positions, in_size, out_size, stride and divide.
 */
#include "lib/divide.glsl"

layout(constant_id = 1) const uint DEPTH = 0;
layout(constant_id = 2) const uint TRANSPOSED = 0;

/* ---- Sizes ---- */

/* Not a function: SPIRV-Cross cannot copy arrays of push constants (test/metal.sh). */
#define triple(v) uvec3(DEPTH != 0 ? v[0] : 1, v[1], v[2])
uint volume(uvec3 size)
{
    return size.x * size.y * size.z;
}
uint linear(uvec3 at, uvec3 size)
{
    return (at.x * size.y + at.y) * size.z + at.z;
}

uvec3 in_size()
{
    return triple(args.in_size);
}
uvec3 out_size()
{
    return triple(args.out_size);
}
/* The cells o' of a phase. The last ones may lie outside y. */
uvec3 grid_size()
{
    uvec3 size = out_size(), stride = triple(args.stride);
    return TRANSPOSED != 0 ? (size + stride - 1) / stride : size;
}

/* The phase of an invocation, and the coordinates in x of its first tap for o' = 0. */
uvec3 phase;
ivec3 base;

/* ---- Positions ---- */

/* Splits a position into (b, o'). Stores o' in `at` and returns b. */
uint locate(uint n, out uvec3 at)
{
    uvec3 size = grid_size();
    uint cells = volume(size), image = divide(n, cells, args.divide[0]), cell = n - image * cells;
    uint row = divide(cell, size.z, args.divide[2]), plane = 0;
    if (DEPTH != 0)
        plane = divide(row, size.y, args.divide[1]);
    at = uvec3(plane, row - plane * size.y, cell - row * size.z);
    return image;
}

/* The coordinates in x of tap 0 of the phase for o'. */
ivec3 window_origin(uvec3 at)
{
    return ivec3(TRANSPOSED != 0 ? at : at * triple(args.stride)) + base;
}

/* The cell of y that o' stands for in this phase. Returns false if it is outside y. */
bool target_cell(uvec3 at, out uint cell)
{
    uvec3 size = out_size(), place = at;
    if (TRANSPOSED != 0)
        place = at * triple(args.stride) + phase;
    cell = linear(place, size);
    return TRANSPOSED == 0 || all(lessThan(place, size));
}
