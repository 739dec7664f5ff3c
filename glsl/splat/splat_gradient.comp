#version 450
/*
 * The gradients of a splat from the sums of its entries, taken in order. s are the standard
 * deviations, and P is the sum of f c c^T in the splat's own axes.
 *
 * - d_scale = diag P
 * - d_position = (the ray's matrix)^T (sum of f c)
 * - A rotation by a small vector about own axes i, j, k changes the loss by P_ij (s_i / s_j - s_j /
 *   s_i) about k.
 *
 * The sums come in the axes of view_axes.glsl. The derivative by the colour is stored at the
 * position of the gradient of `colors`.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/splat.h"
#include "lib/math.glsl"

#define EACH          4u /* entries per iteration */
#define AT_FLOOR      999999.0 /* 1 / reach at its lower limit, 1e-6 */
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
#include "splat/view_axes.glsl"

float prepared_float(uint at)
{
    return uintBitsToFloat(prepared[at]);
}

/* The derivative by the unit quaternion n, from the one by a rotation about own axes: 2 n (0,
 * turn). */
vec4 by_quaternion(vec4 n, vec3 turn)
{
    return 2.0 * vec4(-dot(n.yzw, turn), n.x * turn + cross(n.yzw, turn));
}

/* s_i / s_j - s_j / s_i, from the inverse deviations. */
float lever(float i, float j)
{
    return j / i - i / j;
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
    uint k = first;
    for (; k + EACH <= end; k += EACH)
        [[unroll]] for (uint j = 0u; j < EACH; j++)
            [[unroll]] for (uint s = 0u; s < SPLAT_SUMS; s++)
                total[s] += sums[SPLAT_SUMS * (k + j) + s];
    for (; k < end; k++)
        [[unroll]] for (uint s = 0u; s < SPLAT_SUMS; s++)
            total[s] += sums[SPLAT_SUMS * k + s];
    vec4 q, n;
    vec3 inverse; /* 1 / s */
    for (uint c = 0u; c < 4u; c++) {
        q[c] = rotations[args.rotations_offset + 4u * i + c];
        n[c] = prepared_float(rotation_at() + 4u * i + c);
    }
    for (uint c = 0u; c < 3u; c++)
        inverse[c] = 3.0 * prepared_float(inverse_at() + 3u * i + c);
    vec3 place = vec3(prepared_float(local_at() + 3u * i), prepared_float(local_at() + 3u * i + 1u),
                      prepared_float(local_at() + 3u * i + 2u));
    mat3 scaled = rotation_of(n);
    for (uint c = 0u; c < 3u; c++)
        scaled[c] *= inverse[c];
    view_axes v = view_axes_of(3.0 * place, scaled);
    mat3 p = mat3(total[4], total[5], total[6], total[5], total[7], total[8], total[6], total[8],
                  total[9]);
    p = v.own * p * transpose(v.own);
    vec3 diagonal = in_order(vec3(p[0][0], p[1][1], p[2][2]), v.turns);
    vec3 beside = in_order(vec3(p[1][2], p[2][0], p[0][1]), v.turns);
    bool seen = end > first;
    vec3 position = v.world * vec3(total[1], total[2], total[3]);
    vec3 turning = beside * vec3(lever(inverse.y, inverse.z), lever(inverse.z, inverse.x),
                                 lever(inverse.x, inverse.y));
    float size = square_root(dot(q, q)), given = opacities[args.opacities_offset + i];
    vec4 turn = by_quaternion(n, turning) / max(size, LENGTH_FLOOR);
    uint at = args.y_offset, splats_given = args.count;
    for (uint c = 0u; c < 3u; c++) {
        bool fixed_scale = inverse[c] >= 3.0 * AT_FLOOR;
        y[at + 3u * i + c] = seen ? position[c] : 0.0;
        y[at + 3u * splats_given + 3u * i + c] = seen && !fixed_scale ? diagonal[c] : 0.0;
        y[at + 11u * splats_given + 3u * i + c] = seen ? total[10u + c] : 0.0;
    }
    for (uint c = 0u; c < 4u; c++)
        y[at + 6u * splats_given + 4u * i + c] = seen ? turn[c] : 0.0;
    bool free = given >= 0.0 && given <= 1.0;
    y[at + 10u * splats_given + i] = seen && free ? total[0] / given : 0.0;
}
