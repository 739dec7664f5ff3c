/* The last step of a norm: gamma and beta, where there are any, by element of the row or (group
 * norm) by the channel it belongs to. */
#include "args/rows.h"

const bool BY_CHANNEL = (FLAGS & NORM_BY_CHANNEL) != 0u;
QUAD_INPUT(3, gamma, VECTORS && !BY_CHANNEL)
QUAD_INPUT(4, beta, VECTORS && !BY_CHANNEL)
QUAD_OUTPUT(6, y)

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
