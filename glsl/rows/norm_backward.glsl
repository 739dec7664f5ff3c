/*
 * Shared by the kernels for a norm's input gradient. FLAGS (specialization constant 1) is a set of
 * NORM_ bits.
 */
layout(constant_id = 1) const uint FLAGS = 0;
layout(constant_id = 2) const uint FORM = ROW_FORM_WORDS;
layout(constant_id = 3) const uint QUADS = 1;

#include "args/rows.h"
#include "lib/row_forms.glsl"
#include "lib/row_quads.glsl"
#include "rows/norm_moments.glsl"

const bool IS_RMS = (FLAGS & NORM_IS_RMS) != 0u;
const bool BY_CHANNEL = (FLAGS & NORM_BY_CHANNEL) != 0u;
const bool BY_QUADS = (FLAGS & NORM_BY_QUADS) != 0u;
QUAD_INPUT(0, x, true)
QUAD_INPUT(1, dy, true)
QUAD_INPUT(2, gamma, !RAGGED && !BY_CHANNEL)
SHIFTED_INPUT(gamma)

/* dy gamma of elements r of the row of result o. They are at index `at` of x. */
vec4 weighted(uint o, uvec4 at, uvec4 r, bvec4 live)
{
    vec4 w = read_dy(args.dy_offset + at, live, 0.0);
    if ((FLAGS & NORM_HAS_GAMMA) == 0u)
        return w;
    if (BY_CHANNEL) {
        uint first = o / args.rows.chunks % args.groups * args.group_channels;
        if (BY_QUADS)
            return w * (live.x ? gamma[args.gamma_offset + first + r.x / args.spatial] : 0.0);
        return w * read_gamma(args.gamma_offset + first + r / args.spatial, live, 0.0);
    }
    if (RAGGED)
        return w * shifted_gamma(r, live, args.gamma_offset, args.rows.extent);
    return w * read_gamma(args.gamma_offset + r, live, 0.0);
}

/* The same for one element. */
float weighted_element(uint o, uint at, uint r)
{
    float w = dy[args.dy_offset + at];
    if (BY_CHANNEL)
        r = o / args.rows.chunks % args.groups * args.group_channels + r / args.spatial;
    return (FLAGS & NORM_HAS_GAMMA) != 0u ? w * gamma[args.gamma_offset + r] : w;
}
