#version 450
/*
 * Statistics (maximum, sum of exponentials) of the chunks of long rows, two words a chunk. Each
 * lane takes its elements two quads at a time: their maximum first, so that the running sum is
 * rescaled once a block.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(constant_id = 1) const bool VECTORS = false;
layout(push_constant) uniform block { softmax_args args; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float statistics[]; };

#include "lib/rows.glsl"
#include "lib/row_quads.glsl"
QUAD_INPUT(0, x, VECTORS)
#include "rows/softmax.glsl"
ROW_TREE(vec2, join_lanes, scratch, join_statistics)

const uint BLOCK = 2u;

/* Of BLOCK quads of this lane, from quad k on. */
vec2 statistics_of_block(row_work w, uint k)
{
    vec4 v[BLOCK];
    largest most = largest(-INFINITY, 0u);
    [[unroll]] for (uint i = 0u; i < BLOCK; i++) {
        uvec4 r = w.first + row_quad(w.lane, k + i);
        v[i] = read_x(args.x_offset + w.start + r * args.rows.inner, row_live(r, w.end), -INFINITY);
    }
    [[unroll]] for (uint i = 0u; i < BLOCK; i++)
        take_largest(most, v[i]);
    vec2 block = vec2(largest_value(most), 0.0);
    if (is_plain(block.x)) {
        [[unroll]] for (uint i = 0u; i < BLOCK; i++)
            block.y += sum_of(decay(v[i] - block.x));
    }
    return block;
}

void main()
{
    row_work w = row_part();
    vec2 all = vec2(-INFINITY, 0.0);
    for (uint k = 0u; w.first + 4u * k * args.rows.lanes < w.end; k += BLOCK)
        all = join_statistics(all, statistics_of_block(w, k));
    all = join_lanes(all, w.lane);
    if (w.live && w.lane == 0u) {
        statistics[2u * w.o] = all.x;
        statistics[2u * w.o + 1u] = all.y;
    }
}
