#version 450
/* Each cell of y is a copy of one cell of x, as a word. */
#extension GL_GOOGLE_include_directive : require
#include "image/resize.glsl"

layout(set = 0, binding = 0) restrict readonly buffer source { uint x[]; };

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
    uvec4 first = entries(COLUMNS, args.first[2], b.column);
    uvec4 rows = entries(ROWS, args.first[1], b.row);
    uint layer = b.plane * args.from[0] + t1[args.first[0] + b.layer];
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        uvec4 at = args.x_offset + (layer * args.from[1] + rows[r]) * args.from[2] + first;
        uvec4 words = uvec4(x[at.x], 0u, 0u, 0u);
        if (COLUMNS == 4u)
            words = uvec4(words.x, x[at.y], x[at.z], x[at.w]);
        store(b, r, words);
    }
}
