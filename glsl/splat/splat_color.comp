#version 450
/* The colour of each splat as seen from the camera, and its opacity. It also writes whether these
 * are finite, for splat_project. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/splat.h"
#include "lib/math.glsl"

layout(push_constant) uniform block { splat_args args; };
layout(set = 0, binding = 0) restrict readonly buffer places { float positions[]; };
layout(set = 0, binding = 1) restrict readonly buffer covers { float opacities[]; };
layout(set = 0, binding = 2) readonly buffer bases { float colors[]; };
layout(set = 0, binding = 3) readonly buffer harmonics { float sh[]; };
layout(set = 0, binding = 4) restrict readonly buffer view { float meta[]; };
layout(set = 0, binding = 5) restrict writeonly buffer target { uint prepared[]; };

#include "splat/layout.glsl"
#include "splat/camera.glsl"
#include "splat/harmonics.glsl"

void main()
{
    uint i = global_index(), at = args.positions_offset + 3u * i;
    if (i >= args.count)
        return;
    float values[SPLAT_COEFFICIENTS];
    vec3 position = vec3(positions[at], positions[at + 1u], positions[at + 2u]);
    find_harmonics(direction_of(position - meta_vector(0u)), values);
    vec3 color = 0.5 + values[0] * constant_term(i);
    for (uint c = 1u; c < min(args.coefficients, SPLAT_COEFFICIENTS); c++)
        color += values[c] * given_coefficient(i, c);
    float opacity = opacities[args.opacities_offset + i];
    vec4 result = vec4(color, clamp(opacity, 0.0, 1.0));
    bool whole = is_finite(color) && is_finite(opacity) && is_finite(position) &&
                 is_finite(base_color(i));
    if (!whole)
        result = vec4(0.0);
    prepared[valid_at() + i] = whole ? 1u : 0u;
    for (uint c = 0u; c < 4u; c++)
        prepared[args.prepared_offset + 4u * i + c] = floatBitsToUint(result[c]);
}
