/* The last step of a norm: apply gamma and beta, if present. They are indexed by element of the
 * row, or for group norm by channel. */
#include "args/rows.h"

const bool BY_CHANNEL = (FLAGS & NORM_BY_CHANNEL) != 0u;
const bool BY_QUADS = (FLAGS & NORM_BY_QUADS) != 0u;
QUAD_INPUT(3, gamma, !RAGGED && !BY_CHANNEL)
QUAD_INPUT(4, beta, !RAGGED && !BY_CHANNEL)
QUAD_OUTPUT(6, y)
#ifdef NORM_HOLDS
SHIFTED_INPUT(gamma)
SHIFTED_INPUT(beta)
#endif

/* `row` is the index of the row among all rows. `at` are the indices of its elements r in x. */
void store_normalized(uint row, uvec4 at, uvec4 r, bvec4 live, vec4 v)
{
    if (BY_CHANNEL) {
        uint first = row % args.groups * args.group_channels;
        r = BY_QUADS ? uvec4(first + r.x / args.spatial) : first + r / args.spatial;
    }
    if ((FLAGS & NORM_HAS_GAMMA) != 0u)
        v *= BY_QUADS ? vec4(live.x ? gamma[args.gamma_offset + r.x] : 0.0)
             : BY_CHANNEL ? read_gamma(args.gamma_offset + r, live, 0.0)
                          : NORM_VECTOR(gamma, r, live);
    if ((FLAGS & NORM_HAS_BETA) != 0u)
        v += BY_QUADS ? vec4(live.x ? beta[args.beta_offset + r.x] : 0.0)
             : BY_CHANNEL ? read_beta(args.beta_offset + r, live, 0.0)
                          : NORM_VECTOR(beta, r, live);
#ifdef NORM_HOLDS
    if (SPAN) {
        span_write(at, live, v);
        return;
    }
#endif
    write_y(args.y_offset + at, live, v);
}

/* The same for one element r, at index `at`. */
void store_element(uint row, uint at, uint r, float v)
{
    if (BY_CHANNEL)
        r = row % args.groups * args.group_channels + r / args.spatial;
    if ((FLAGS & NORM_HAS_GAMMA) != 0u)
        v *= gamma[args.gamma_offset + r];
    if ((FLAGS & NORM_HAS_BETA) != 0u)
        v += beta[args.beta_offset + r];
#ifdef NORM_HOLDS
    if (SPAN) {
        span[at - span_first()] = v;
        return;
    }
#endif
    y[args.y_offset + at] = v;
}
