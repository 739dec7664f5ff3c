#version 450
/*
 * Computes the camera as seen from each splat's own axes, and the ellipse that the splat covers in
 * the image. This is the silhouette of the ellipsoid on which its alpha falls to the cutoff. The
 * determinant of the ellipse is (fx fy a1 a2 a3)^2 (|o|^2 - 1) / D^3, with o as the camera in units
 * of the ellipsoid's axes. This form avoids the cancellation of Sxx Syy - Sxy^2. keys are the bits
 * of the distance, which ascend with it, or the largest word if a splat is not visible.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/splat.h"
#include "lib/math.glsl"

#define SCALE_FLOOR    1e-6
#define ELLIPSOID      1.000002 /* (1 + 1e-6)^2 */
#define NO_KEY         0xffffffffu
#define ROWS           4096u

layout(push_constant) uniform block { splat_args args; };
layout(set = 0, binding = 0) restrict readonly buffer places { float positions[]; };
layout(set = 0, binding = 1) restrict readonly buffer sizes { float scales[]; };
layout(set = 0, binding = 2) restrict readonly buffer turns { float rotations[]; };
layout(set = 0, binding = 3) restrict readonly buffer view { float meta[]; };
layout(set = 0, binding = 4) restrict buffer target { uint prepared[]; };
layout(set = 0, binding = 5) restrict writeonly buffer order { uint keys[]; };
layout(set = 0, binding = 6) restrict writeonly buffer outlines { uint footprints[]; };

#include "splat/layout.glsl"
#include "splat/camera.glsl"
#include "splat/footprint.glsl"

/* A splat, as the camera sees it. */
struct splat {
    vec3 away;      /* from its centre to the camera */
    vec3 deviation; /* standard deviations times radius_scale */
    mat3 turn;
    float opacity;
};

void store(uint at, vec3 v)
{
    for (uint c = 0u; c < 3u; c++)
        prepared[at + c] = floatBitsToUint(v[c]);
}

/* Whether a sphere meets the camera's view. */
bool meets_view(camera cam, vec3 m, float radius)
{
    float wide = 0.5 * float(args.width), high = 0.5 * float(args.height);
    float side = -radius * square_root(cam.focal * cam.focal + wide * wide);
    float edge = -radius * square_root(cam.focal * cam.focal + high * high);
    return m.z + radius > DEPTH_FLOOR && m.z - radius < cam.far &&
           wide * m.z - cam.focal * abs(m.x) >= side && high * m.z - cam.focal * abs(m.y) >= edge;
}

/* Returns false if the splat is not visible. */
bool find_footprint(camera cam, splat s, vec3 m, out footprint f)
{
    vec2 middle = 0.5 * vec2(args.width, args.height);
    float support = square_root(max(-2.0 * logarithm(args.alpha_cutoff / s.opacity), 0.0));
    vec3 a = max(s.deviation * support, vec3(SCALE_FLOOR)), inside = (s.away * s.turn) / a;
    vec3 ax = (cam.right * s.turn) * a, ay = (cam.up * s.turn) * a, az = (cam.forward * s.turn) * a;
    float deep = length_of(az), outside = dot(inside, inside);
    float d = (m.z - deep) * (m.z + deep), root, minor;
    if (outside <= ELLIPSOID || d <= 1e-12 * m.z * m.z || m.z <= deep) {
        float q = float(max(args.width, args.height));
        f = footprint(middle, 0.0, q, q * q, 0.0, q * q);
        minor = q;
        if (!meets_view(cam, m, max(max(a.x, a.y), a.z)))
            return false;
    } else {
        float x = (m.x * m.z - dot(ax, az)) / d, y = (m.y * m.z - dot(ay, az)) / d;
        vec3 bx = ax - x * az, by = ay - y * az;
        float mx = m.x - x * m.z, my = m.y - y * m.z;
        float scale = cam.focal * cam.focal / d, inverse = 1.0 / square_root(d);
        f.centre = cam.focal * vec2(x, y) + middle;
        f.sxx = scale * (dot(bx, bx) - mx * mx);
        f.sxy = scale * (dot(bx, by) - mx * my);
        f.syy = scale * (dot(by, by) - my * my);
        root = (cam.focal * a.x * inverse) * (cam.focal * a.y * inverse) * (a.z * inverse) *
               square_root(outside - 1.0);
        f.slope = f.sxy / f.syy;
        f.spread = root / square_root(f.syy);
        float half_sum = 0.5 * (f.sxx + f.syy), half_gap = 0.5 * (f.sxx - f.syy);
        minor = root / square_root(half_sum + square_root(half_gap * half_gap + f.sxy * f.sxy));
        if (!is_finite(f.sxy) || !is_finite(minor) || !(f.sxx > 0.0) || !(f.syy > 0.0) ||
            !is_finite(f.slope) || !is_finite(f.spread) || !(root > 0.0))
            return false;
    }
    float half_sum = 0.5 * (f.sxx + f.syy), half_gap = 0.5 * (f.sxx - f.syy);
    float major = square_root(half_sum + square_root(half_gap * half_gap + f.sxy * f.sxy));
    float radius = max(major + 1.0, 1.0);
    return is_finite(major) && minor >= args.min_axis && f.centre.x + radius >= 0.0 &&
           f.centre.y + radius >= 0.0 && f.centre.x - radius < float(args.width) &&
           f.centre.y - radius < float(args.height);
}

uint count_tiles(footprint f)
{
    uvec2 rows = tile_rows(f);
    uint tiles = 0u;
    for (uint first = rows.x; first < rows.y; first += ROWS)
        for (uint row = first; row < min(first + ROWS, rows.y); row++) {
            uvec2 range = tiles_of_row(f, row);
            tiles += range.y - range.x;
        }
    return tiles;
}

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    camera cam = read_camera();
    splat s;
    vec3 position, scale;
    vec4 q;
    for (uint c = 0u; c < 3u; c++) {
        position[c] = positions[args.positions_offset + 3u * i + c];
        scale[c] = scales[args.scales_offset + 3u * i + c];
    }
    for (uint c = 0u; c < 4u; c++)
        q[c] = rotations[args.rotations_offset + 4u * i + c];
    s.opacity = uintBitsToFloat(prepared[args.prepared_offset + 4u * i + 3u]);
    s.away = cam.position - position;
    float size = square_root(dot(q, q));
    q /= max(size, VECTOR_FLOOR);
    s.turn = rotation_of(q);
    s.deviation = args.radius_scale *
                  vec3(exponential(scale.x), exponential(scale.y), exponential(scale.z));
    vec3 reach = max(3.0 * s.deviation, vec3(SCALE_FLOOR)), inverse = 1.0 / reach;
    vec3 local = (s.away * s.turn) * inverse;
    vec3 m = -vec3(dot(cam.right, s.away), dot(cam.up, s.away), dot(cam.forward, s.away));
    bool whole = is_finite(local) && is_finite(reach) && is_finite(inverse) && is_finite(m) &&
                 is_finite(scale) && is_finite(size) && is_finite(cam.focal) &&
                 prepared[valid_at() + i] != 0u;
    footprint f = footprint(vec2(0.0), 0.0, 0.0, 0.0, 0.0, 0.0);
    bool seen = whole && s.opacity >= args.alpha_cutoff && m.z > cam.near && m.z < cam.far;
    seen = seen && find_footprint(cam, s, m, f);
    prepared[valid_at() + i] = seen ? 1u : 0u;
    store(local_at() + 3u * i, whole ? local : vec3(0.0));
    store(inverse_at() + 3u * i, whole ? inverse : vec3(0.0));
    for (uint c = 0u; c < 4u; c++)
        prepared[rotation_at() + 4u * i + c] = whole ? floatBitsToUint(q[c]) : 0u;
    keys[i] = seen ? floatBitsToUint(length_of(s.away)) : NO_KEY;
    float words[7] = float[](f.centre.x, f.centre.y, f.slope, f.spread, f.sxx, f.sxy, f.syy);
    for (uint w = 0u; w < 7u; w++)
        footprints[SPLAT_FOOTPRINT * i + w] = floatBitsToUint(words[w]);
    footprints[SPLAT_FOOTPRINT * i + 7u] = seen ? count_tiles(f) : 0u;
}
