/*
 * Moments of the chunks of rows too long for norm.comp, as norm_moments.glsl says; a chunk fits the
 * registers of its lanes. Stores the sums on the way where they are wanted.
 */
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_args args; };
#include "lib/rows.glsl"
#include "rows/norm.glsl"
QUAD_KEPT(3, sums)
layout(set = 0, binding = 4) restrict writeonly buffer target { vec4 statistics[]; };
#include "rows/norm_lanes.glsl"
#include "rows/norm_again.glsl"

void main()
{
    row_work w = row_part();
    float count = float(w.end - w.first);
#include "rows/norm_held.glsl"
    if (w.live && w.lane == 0u)
        statistics[w.o] = vec4(pivot, offset, squares, 1.0);
    if (norm_vote(squares, float(args.rows.chunk_length))) {
        bool strange = norm_strange(squares, float(args.rows.chunk_length));
        float factor;
        take_again(w, count, pivot, offset, squares, factor);
        if (strange && w.live && w.lane == 0u)
            statistics[w.o] = vec4(pivot, offset, squares, factor);
    }
}
