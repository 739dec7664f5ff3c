/* What the kernels of the input gradient of long rows share: the row's statistics
 * (norm_statistics), and what a chunk has of it. */
#include "lib/common.glsl"
#include "args/rows.h"

layout(push_constant) uniform block { norm_backward_args args; };
#include "lib/rows.glsl"
#include "rows/norm_backward.glsl"
layout(set = 0, binding = 3) restrict readonly buffer known { float statistics[]; };

/* Which row result o, a chunk, belongs to. */
uint row_of(uint o)
{
    return o / args.rows.inner / args.rows.chunks * args.rows.inner + o % args.rows.inner;
}

vec3 statistics_of(row_work w)
{
    uint at = 3u * row_of(w.o);
    return w.live ? vec3(statistics[at], statistics[at + 1u], statistics[at + 2u]) : vec3(0.0);
}

vec4 normalized(vec3 known, uvec4 at, bvec4 live)
{
    vec4 v = read_x(args.x_offset + at, live, 0.0);
    return mix(vec4(0.0), ((v - known.x) - known.y) * known.z, live);
}
