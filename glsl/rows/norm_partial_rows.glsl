/*
 * Mean, as a sum of two, and sum of squared deviations of the chunks of rows too long for
 * norm.comp, three words a chunk; a chunk fits the registers of its lanes. Stores the sums on the
 * way where they are wanted.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_args args; };
#include "lib/rows.glsl"
#include "rows/norm.glsl"
QUAD_OUTPUT(3, sums)
layout(set = 0, binding = 4) restrict writeonly buffer target { float statistics[]; };
#include "rows/norm_lanes.glsl"

void main()
{
    row_work w = row_part();
    float count = float(w.end - w.first);
#include "rows/norm_held.glsl"
    if (w.live && w.lane == 0u) {
        statistics[3u * w.o] = pivot;
        statistics[3u * w.o + 1u] = offset;
        statistics[3u * w.o + 2u] = squares;
    }
}
