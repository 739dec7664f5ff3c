/* The last step of a norm: gamma and beta, where there are any, by element of the row or (group
 * norm) by the channel it belongs to. */
#include "args/rows.h"

layout(set = 0, binding = 3) readonly buffer input_gamma { float gamma[]; };
layout(set = 0, binding = 3) readonly buffer input_gamma4 { vec4 gamma4[]; };
layout(set = 0, binding = 4) readonly buffer input_beta { float beta[]; };
layout(set = 0, binding = 4) readonly buffer input_beta4 { vec4 beta4[]; };
layout(set = 0, binding = 6) writeonly buffer target { float y[]; };
layout(set = 0, binding = 6) writeonly buffer target4 { vec4 y4[]; };

const bool BY_CHANNEL = (FLAGS & NORM_BY_CHANNEL) != 0u;
QUAD_READER(read_gamma, gamma, gamma4, VECTORS && !BY_CHANNEL)
QUAD_READER(read_beta, beta, beta4, VECTORS && !BY_CHANNEL)
QUAD_WRITER(write_y, y, y4)

/* `row`: which one, of all; r: the elements of it at `at` of x. */
void store_normalized(uint row, uvec4 at, uvec4 r, bvec4 live, vec4 v)
{
    if (BY_CHANNEL)
        r = row % args.groups * args.group_channels + r / args.spatial;
    if ((FLAGS & NORM_HAS_GAMMA) != 0u)
        v *= read_gamma(args.gamma_offset + r, live, 0.0);
    if ((FLAGS & NORM_HAS_BETA) != 0u)
        v += read_beta(args.beta_offset + r, live, 0.0);
    write_y(args.y_offset + at, live, v);
}
