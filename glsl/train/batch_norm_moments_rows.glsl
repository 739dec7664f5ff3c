/*
 * Moments of the chunks of a batch's channels: mean, rest of the mean, and sum of squared
 * deviations (see norm_moments.glsl). A chunk fits the registers of its lanes. There is no second
 * turn for squares that do not fit f32, because batch_norm_join reads such channels once more.
 */
#include "lib/common.glsl"
#include "args/rows.h"
#include "args/train.h"

layout(push_constant) uniform block { norm_args args; };
#include "lib/rows.glsl"
#include "rows/norm.glsl"
QUAD_OUTPUT(3, sums)
layout(set = 0, binding = 4) restrict writeonly buffer target { float moments[]; };
#include "rows/norm_lanes.glsl"

void main()
{
    row_work w = row_part();
    float count = float(w.end - w.first);
#include "rows/norm_held.glsl"
    if (w.live && w.lane == 0u) {
        uint at = BATCH_NORM_MOMENTS_WORDS * w.o;
        moments[at] = pivot;
        moments[at + 1u] = offset;
        moments[at + 2u] = squares;
    }
}
