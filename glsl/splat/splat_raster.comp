#version 450
/* The image. A workgroup takes TILE_PIXELS pixels of a tile. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/splat.h"
#include "lib/math.glsl"

layout(push_constant) uniform block { splat_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { uint prepared[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float y[]; };

#include "splat/layout.glsl"
#include "splat/walk.glsl"
#include "splat/flag.glsl"

void main()
{
    uint chunks = (args.tile_size * args.tile_size + TILE_PIXELS - 1u) / TILE_PIXELS;
    uint tile = group_index() / chunks, chunk = group_index() - tile * chunks;
    if (tile >= tile_count())
        return;
    store_flag();
    find_pixels(tile, chunk);
    walk(entries_of(tile));
    EACH_PIXEL(q) {
        vec3 color = max(gathered[q] + left_over[q] * background(), vec3(0.0));
        uint at = args.y_offset + 4u * pixel[q];
        if (pixel[q] != NO_ENTRY) {
            for (uint c = 0u; c < 3u; c++)
                y[at + c] = power(color[c], args.gamma);
            y[at + 3u] = 1.0 - left_over[q];
        }
    }
}
