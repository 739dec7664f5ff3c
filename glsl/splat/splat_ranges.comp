#version 450
/* Writes the list sorted by tile, and the range of each tile's entries. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/splat.h"

layout(push_constant) uniform block { splat_args args; };
layout(set = 0, binding = 0) restrict readonly buffer tiles { uint keys[]; };
layout(set = 0, binding = 1) restrict readonly buffer order { uint positions[]; };
layout(set = 0, binding = 2) restrict readonly buffer whose { uint owners[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { uint prepared[]; };

#include "splat/layout.glsl"

void main()
{
    uint i = global_index(), none = tile_count();
    if (i >= args.list_most)
        return;
    uint tile = keys[i];
    prepared[list_at() + i] = tile < none ? owners[positions[i]] : 0u;
    if (tile >= none)
        return;
    if (i == 0u || keys[i - 1u] != tile)
        prepared[ranges_at() + 2u * tile] = i;
    if (i + 1u == args.list_most || keys[i + 1u] != tile)
        prepared[ranges_at() + 2u * tile + 1u] = i + 1u;
}
