/* Sums of dy xhat and of dy over chunks of rows. Each row belongs to one channel. Eight products
 * are added at a time, with compensation. */
#include "lib/common.glsl"
#include "args/train.h"

layout(constant_id = 1) const uint FORM = ROW_FORM_WORDS;
layout(push_constant) uniform block { batch_norm_sums_args args; };
#include "lib/rows.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, true)
QUAD_INPUT(1, dy, true)
layout(set = 0, binding = 2) restrict readonly buffer known { float statistics[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target { float sums[]; };

const uint FLIGHT = 2u; /* vec4 loads of each operand in flight */

ROW_TREE(vec2, sums_of_lanes, scratch, row_add)

void main()
{
    row_work w = row_part();
    uint row = row_of_chunk(w.o);
    uint channel = args.statistics_offset + row / args.step % args.channels;
    float mean = statistics[channel], rest = statistics[channel + args.channels];
    float scale = statistics[channel + 2u * args.channels];
    vec2 high = vec2(0.0), low = vec2(0.0);
    for (uint k = 0u; w.first + 4u * k * args.rows.lanes < w.end; k += FLIGHT) {
        vec4 v[FLIGHT], d[FLIGHT], products = vec4(0.0), shifts = vec4(0.0);
        [[unroll]] for (uint i = 0u; i < FLIGHT; i++) {
            uvec4 r = w.first + row_quad(w, k + i), at = w.start + r * args.rows.inner;
            bvec4 live = row_live(r, w.end);
            v[i] = read_x(args.x_offset + at, live, mean);
            d[i] = read_dy(args.dy_offset + at, live, 0.0);
        }
        [[unroll]] for (uint i = 0u; i < FLIGHT; i++) {
            products += d[i] * (((v[i] - mean) - rest) * scale);
            shifts += d[i];
        }
        add_compensated(high.x, low.x, sum_of_quad(products));
        add_compensated(high.y, low.y, sum_of_quad(shifts));
    }
    vec2 sum = vec2(compensated_value(high.x, low.x), compensated_value(high.y, low.y));
    sum = sums_of_lanes(sum, w.lane);
    if (w.live && w.lane == 0u) {
        sums[args.sums_offset + w.o] = sum.x;
        sums[args.sums_offset + args.plane + w.o] = sum.y;
    }
}
