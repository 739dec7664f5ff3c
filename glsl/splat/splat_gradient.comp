#version 450
/*
 * The gradients of a splat by the sums of its entries, in their order: with s standard deviations,
 * G the rotation and P the sum of f c c^T, d_scale = diag P, d_position = G (sum of f c) / s, and
 * dG = -G diag(s) P diag(1 / s) for the quaternion. The colour's slope waits where that of `colors`
 * goes.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/splat.h"
#include "lib/math.glsl"

#define LOOP          4096u
#define AT_FLOOR      999999.0 /* 1 / reach where that is the least, 1e-6 */
#define LENGTH_FLOOR  1e-8

layout(push_constant) uniform block { splat_args args; };
layout(set = 0, binding = 0) restrict readonly buffer turns { float rotations[]; };
layout(set = 0, binding = 1) restrict readonly buffer covers { float opacities[]; };
layout(set = 0, binding = 2) restrict readonly buffer source { uint prepared[]; };
layout(set = 0, binding = 3) restrict readonly buffer parts { float sums[]; };
layout(set = 0, binding = 4) restrict readonly buffer spans { uint runs[]; };
layout(set = 0, binding = 5) restrict writeonly buffer target { float y[]; };

#include "splat/layout.glsl"
#include "splat/flag.glsl"

float prepared_float(uint at)
{
    return uintBitsToFloat(prepared[at]);
}

/* By the unit quaternion, from that by the matrix; d[j][i]: row i, column j. */
vec4 by_quaternion(vec4 n, mat3 d)
{
    float w = n.x, x = n.y, y = n.z, z = n.w;
    vec3 skew = vec3(d[1][2] - d[2][1], d[2][0] - d[0][2], d[0][1] - d[1][0]);
    vec3 both = vec3(d[1][2] + d[2][1], d[2][0] + d[0][2], d[0][1] + d[1][0]);
    return 2.0 * vec4(dot(vec3(x, y, z), skew),
                      y * both.z + z * both.y - 2.0 * x * (d[1][1] + d[2][2]) + w * skew.x,
                      x * both.z + z * both.x - 2.0 * y * (d[0][0] + d[2][2]) + w * skew.y,
                      x * both.y + y * both.x - 2.0 * z * (d[0][0] + d[1][1]) + w * skew.z);
}

void main()
{
    uint i = global_index();
    if (i >= args.count)
        return;
    store_flag();
    float total[SPLAT_SUMS];
    for (uint s = 0u; s < SPLAT_SUMS; s++)
        total[s] = 0.0;
    uint first = runs[2u * i], end = runs[2u * i + 1u];
    for (uint part = first; part < end; part += LOOP)
        for (uint k = part; k < min(part + LOOP, end); k++)
            for (uint s = 0u; s < SPLAT_SUMS; s++)
                total[s] += sums[SPLAT_SUMS * k + s];
    vec4 q, n;
    vec3 inverse; /* 1 / s */
    for (uint c = 0u; c < 4u; c++) {
        q[c] = rotations[args.rotations_offset + 4u * i + c];
        n[c] = prepared_float(rotation_at() + 4u * i + c);
    }
    for (uint c = 0u; c < 3u; c++)
        inverse[c] = 3.0 * prepared_float(inverse_at() + 3u * i + c);
    mat3 g = rotation_of(n);
    mat3 p = mat3(total[4], total[5], total[6], total[5], total[7], total[8], total[6], total[8],
                  total[9]);
    bool seen = end > first;
    vec3 position = g * (vec3(total[1], total[2], total[3]) * inverse);
    mat3 scaled = mat3(g[0] / inverse.x, g[1] / inverse.y, g[2] / inverse.z);
    mat3 by_matrix = mat3(0.0);
    for (uint j = 0u; j < 3u; j++)
        by_matrix[j] = -(scaled * p[j]) * inverse[j];
    vec4 by_unit = by_quaternion(n, by_matrix);
    float size = square_root(dot(q, q)), given = opacities[args.opacities_offset + i];
    vec4 turn = size > LENGTH_FLOOR ? (by_unit - n * dot(by_unit, n)) / size
                                    : by_unit / LENGTH_FLOOR;
    uint at = args.y_offset, splats_given = args.count;
    for (uint c = 0u; c < 3u; c++) {
        bool fixed_scale = inverse[c] >= 3.0 * AT_FLOOR;
        y[at + 3u * i + c] = seen ? position[c] : 0.0;
        y[at + 3u * splats_given + 3u * i + c] = seen && !fixed_scale ? p[c][c] : 0.0;
        y[at + 11u * splats_given + 3u * i + c] = seen ? total[10u + c] : 0.0;
    }
    for (uint c = 0u; c < 4u; c++)
        y[at + 6u * splats_given + 4u * i + c] = seen ? turn[c] : 0.0;
    bool free = given >= 0.0 && given <= 1.0;
    y[at + 10u * splats_given + i] = seen && free ? total[0] / given : 0.0;
}
