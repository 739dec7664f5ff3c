#version 450
/*
 * From the derivative by a splat's colour, which is stored in y, this computes the derivatives by
 * its coefficients or `colors`. The viewing direction depends on the position. Its part is added to
 * the derivative by the position.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/splat.h"
#include "lib/math.glsl"

layout(push_constant) uniform block { splat_args args; };
layout(set = 0, binding = 0) restrict readonly buffer places { float positions[]; };
layout(set = 0, binding = 1) readonly buffer bases { float colors[]; };
layout(set = 0, binding = 2) readonly buffer harmonics { float sh[]; };
layout(set = 0, binding = 3) restrict readonly buffer view { float meta[]; };
layout(set = 0, binding = 4) restrict buffer target { float y[]; };

#include "splat/camera.glsl"
#include "splat/harmonics.glsl"

void main()
{
    uint i = global_index(), place = args.positions_offset + 3u * i;
    if (i >= args.count)
        return;
    uint color_at = args.y_offset + 11u * args.count + 3u * i;
    uint sh_at = args.y_offset + SPLAT_GRADIENTS * args.count +
                 3u * max(args.coefficients, 1u) * i;
    vec3 slope = vec3(y[color_at], y[color_at + 1u], y[color_at + 2u]), by_direction = vec3(0.0);
    vec3 away = vec3(positions[place], positions[place + 1u], positions[place + 2u]);
    away -= meta_vector(0u);
    vec3 v = direction_of(away);
    float values[SPLAT_COEFFICIENTS], distance_to = length_of(away);
    vec3 slopes[SPLAT_COEFFICIENTS];
    find_harmonics(v, values);
    find_harmonic_slopes(v, slopes);
    bool from_colors = has_base_color(i), seen = slope != vec3(0.0);
    for (uint c = 0u; c < max(args.coefficients, 1u); c++) {
        vec3 d = vec3(0.0);
        if (seen && c < min(args.bands, args.coefficients) && !(c == 0u && from_colors)) {
            by_direction += slopes[c] * dot(slope, given_coefficient(i, c));
            d = values[c] * slope;
        }
        for (uint k = 0u; k < 3u; k++)
            y[sh_at + 3u * c + k] = d[k];
    }
    vec3 base = base_color(i);
    for (uint k = 0u; k < 3u; k++)
        y[color_at + k] = from_colors && base[k] >= 0.0 && base[k] <= 1.0 ? slope[k] : 0.0;
    if (distance_to > VECTOR_FLOOR && seen)
        for (uint k = 0u; k < 3u; k++)
            y[args.y_offset + 3u * i + k] +=
                (by_direction[k] - v[k] * dot(by_direction, v)) / distance_to;
}
