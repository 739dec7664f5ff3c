#version 450
/*
 * Sums of psi dy over chunks of rows, for the gradient of a channel's scale s. Each row belongs to
 * one channel. With z = x / s, psi is round(z) - z on the grid, and the grid's edge beyond it. The
 * difference round(z) - z is computed from x - round(z) s, because this avoids the error of z. For
 * this, s is split into two parts whose multiples are exact. Four products are added at a time,
 * with compensation.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/train.h"

layout(push_constant) uniform block { fake_quantize_sums_args args; };
#include "lib/rows.glsl"
#include "lib/math.glsl"
#include "train/fake_quantize.glsl"
layout(set = 0, binding = 0) restrict readonly buffer source { float x[]; };
layout(set = 0, binding = 1) restrict readonly buffer upstream { float dy[]; };
layout(set = 0, binding = 2) restrict readonly buffer scales { float scale[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float sums[]; };

ROW_TREE(float, sum_of_lanes, scratch, row_add)

float psi_of(grid g, float v)
{
    float z = on_grid(g, v);
    if (is_nan(z))
        return NAN_VALUE;
    if (abs(z) > args.most)
        return z > 0.0 ? args.most : -args.most;
    float whole = round_away(z), s = g.step * g.shrink;
    if (whole == 0.0) /* for example if s is infinite */
        return -z;
    float high = uintBitsToFloat(floatBitsToUint(s) & 0xfffff000u);
    precise float low = s - high;
    precise float near = v * g.shrink - whole * high;
    precise float rest = whole * low - near;
    return rest * g.inverse;
}

void main()
{
    row_work w = row_part();
    uint row = row_of_chunk(w.o);
    float s = at_least(scale[args.scale_offset + row / args.step % args.channels], args.least);
    grid g = grid_of(s, 0.0);
    float high = 0.0, low = 0.0;
    for (uint r = w.first + w.lane; r < w.end; r += 4u * args.rows.lanes) {
        vec4 products = vec4(0.0);
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            uint i = r + k * args.rows.lanes, at = w.start + i * args.rows.inner;
            if (i < w.end)
                products[k] = psi_of(g, x[args.x_offset + at]) * dy[args.dy_offset + at];
        }
        add_compensated(high, low, (products.x + products.y) + (products.z + products.w));
    }
    float sum = sum_of_lanes(compensated_value(high, low), w.lane);
    if (w.live && w.lane == 0u)
        sums[args.sums_offset + w.o] = sum;
}
