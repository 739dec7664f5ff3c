#version 450
/*
 * Moments of the chunks of rows that are too long for norm.comp, in the form that norm_moments.glsl
 * describes. A chunk fits the registers of its lanes. If the sums are to be kept, the kernel stores
 * them on the way.
 */
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_args args; };
#define ROW_TURNS
#include "lib/rows.glsl"
#define NORM_TURNS
#include "rows/norm.glsl"
QUAD_KEPT(3, sums)
layout(set = 0, binding = 4) restrict writeonly buffer target { vec4 statistics[]; };
#include "rows/norm_lanes.glsl"

bool norm_strange(float part, float count)
{
    return norm_strange(part, count, args.eps);
}
ROW_VOTE(float, norm_vote, scratch_of_squares, norm_strange)

/*
 * The first turn is for ordinary rows, the second for rows whose squares do not fit f32 (see
 * norm_factor.glsl). If an ordinary row takes part in the second turn, nothing is written, because
 * it was stored in the first.
 */
void main()
{
    row_work w = row_part();
    float count = float(w.end - w.first), length = float(args.rows.chunk_length);
    float factor = 1.0, pivot_again = 0.0;
    bool wanted = w.live && w.lane == 0u;
    [[dont_unroll]] for (uint turn = 0u; turn < 2u; turn++) {
#include "rows/norm_held.glsl"
        if (wanted)
            statistics[w.o] = vec4(pivot, offset, squares, factor);
        if (turn > 0u || !norm_turns_again(norm_vote(squares, length)))
            return;
        wanted = wanted && norm_strange(squares, length);
        factor = w.live ? norm_factor(squares / count + args.eps, pivot) : 1.0;
        pivot_again = norm_scaled(pivot, factor);
        row_barrier();
    }
}
