#version 450
/*
 * Writes the keys [row, point] of all points for some rows, for a sort. An invocation takes `items`
 * points of a row. If distances are given (KNN_OF_ROWS), `rests` is not written.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/neighbours.h"

layout(constant_id = 1) const uint METRIC = KNN_L2;
layout(constant_id = 2) const uint COLUMNS = 1; /* per loop iteration */
layout(push_constant) uniform block { knn_keys_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source { float queries[]; };
layout(set = 0, binding = 0) restrict readonly buffer source_bits { uint query_bits[]; };
layout(set = 0, binding = 1) restrict readonly buffer given { float points[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target_keys { uint keys[]; };
layout(set = 0, binding = 3) restrict writeonly buffer target_rests { uint rests[]; };

#include "neighbours/knn_measure.glsl"

void main()
{
    uint own = global_index(), block = own % args.blocks;
    if (own / args.blocks >= args.rows)
        return;
    row = args.first_row + own / args.blocks;
    if (METRIC == KNN_COSINE || METRIC == KNN_DOT)
        find_query();
    for (uint k = 0u; k < args.items; k++) {
        uint i = k * args.blocks + block, at = (row - args.first_row) * args.points + i;
        if (i >= args.points)
            return;
        uvec3 e = candidate(i);
        keys[at] = e.x;
        if (METRIC != KNN_OF_ROWS)
            rests[at] = e.y;
    }
}
