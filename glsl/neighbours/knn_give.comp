#version 450
/*
 * Writes the result of rows whose keys are sorted: the first k of each. Points were sorted by the
 * rest first, and then in that order by the key. Therefore an entry's place leads to the point's
 * place after the first sort, and this leads to the point. If distances are given (KNN_OF_ROWS),
 * there is only one sort.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/neighbours.h"

layout(constant_id = 1) const uint METRIC = KNN_L2;
layout(push_constant) uniform block { knn_give_args args; };
layout(set = 0, binding = 0) restrict readonly buffer source_bits { uint query_bits[]; };
layout(set = 0, binding = 1) restrict readonly buffer sorted_keys { uint keys[]; };
layout(set = 0, binding = 2) restrict readonly buffer key_places { uint places[]; };
layout(set = 0, binding = 3) restrict readonly buffer sorted_rests { uint rests[]; };
layout(set = 0, binding = 4) restrict readonly buffer rest_places { uint firsts[]; };
layout(set = 0, binding = 5) restrict writeonly buffer target { uint y[]; };

#include "neighbours/knn_key.glsl"

void main()
{
    uint own = global_index(), i = own % args.k;
    if (own / args.k >= args.rows)
        return;
    row = args.first_row + own / args.k;
    uint at = own / args.k * args.points, to = args.y_offset + row * 2u * args.k + i;
    uint key = keys[at + i], place = places[at + i];
    uvec3 e = uvec3(key, 0u, key == 0xffffffffu ? key : place);
    if (METRIC != KNN_OF_ROWS)
        e = uvec3(key, rests[at + place], firsts[at + place]);
    y[to] = floatBitsToUint(float(min(e.z, args.points)));
    y[to + args.k] = distance_bits(e);
}
