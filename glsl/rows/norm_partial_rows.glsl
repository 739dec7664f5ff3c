/*
 * Mean, as a sum of two, sum of squared deviations and factor of the chunks of rows too long for
 * norm.comp, NORM_PART_WORDS a chunk; a chunk fits the registers of its lanes. Stores the sums on
 * the way where they are wanted.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_args args; };
#define ROW_VOTES
#include "lib/rows.glsl"
#include "rows/norm.glsl"
QUAD_KEPT(3, sums)
layout(set = 0, binding = 4) restrict writeonly buffer target { float statistics[]; };
#include "rows/norm_lanes.glsl"

void main()
{
    row_work w = row_part();
    float count = float(w.end - w.first);
#include "rows/norm_held.glsl"
    if (w.live && w.lane == 0u) {
        uint to = NORM_PART_WORDS * w.o;
        statistics[to] = pivot;
        statistics[to + 1u] = offset;
        statistics[to + 2u] = squares;
        statistics[to + 3u] = factor;
    }
}
