#version 450
/*
 * Writes the parts of prepare's result that do not come from splats: the rays, the parameters and
 * empty ranges. If the scene has no splats, it writes the whole result. It also writes the keys of
 * a list without entries.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/splat.h"
#include "lib/math.glsl"

layout(push_constant) uniform block { splat_args args; };
layout(set = 0, binding = 0) restrict readonly buffer view { float meta[]; };
layout(set = 0, binding = 1) writeonly buffer target { uint prepared[]; };
layout(set = 0, binding = 2) writeonly buffer order { uint keys[]; };

#include "splat/layout.glsl"
#include "splat/camera.glsl"

void store_parameters()
{
    uint at = parameters_at();
    prepared[at] = args.width;
    prepared[at + 1u] = args.height;
    prepared[at + 2u] = args.tile_size;
    prepared[at + 3u] = args.tiles_wide;
    prepared[at + 4u] = floatBitsToUint(args.alpha_cutoff);
    prepared[at + 5u] = floatBitsToUint(args.transmittance_threshold);
    for (uint c = 0u; c < 3u; c++)
        prepared[at + 6u + c] = floatBitsToUint(meta_at(12u + c));
    prepared[at + 9u] = args.steps_most;
    prepared[at + 10u] = 0u;
}

void main()
{
    uint i = global_index();
    if (i < args.width * args.height) {
        camera cam = read_camera();
        uint row = i / args.width, column = i - row * args.width;
        float x = (float(column) + 0.5 - 0.5 * float(args.width)) / cam.focal;
        float y = (float(row) + 0.5 - 0.5 * float(args.height)) / cam.focal;
        vec3 ray = direction_of(cam.right * x + cam.up * y + cam.forward);
        for (uint c = 0u; c < 3u; c++)
            prepared[rays_at() + 3u * i + c] = floatBitsToUint(ray[c]);
    }
    if (i < 2u * tile_count())
        prepared[ranges_at() + i] = 0u;
    if (i == 0u)
        store_parameters();
    if (args.count != 0u) {
        if (i < args.list_most)
            keys[i] = tile_count();
    } else if (i < SPLAT_WORDS + args.list_most) {
        prepared[args.prepared_offset + i] = 0u;
    }
}
