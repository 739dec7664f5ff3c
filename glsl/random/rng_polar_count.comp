#version 450
/* Counts the candidates of the polar method that each chunk accepts, one workgroup per chunk.
 * rng.comp uses the counts to place its numbers. If the backend is not MINSTD, it does nothing. */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/random.h"

layout(push_constant) uniform block { rng_args args; };
layout(set = 0, binding = 0) restrict readonly buffer rng_state { uint state[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { uint counts[]; };

#include "random/minstd.glsl"

shared uint accepted;

void main()
{
    uint chunk = group_index(), t = gl_LocalInvocationID.x, count = 0u;
    ivec2 v;
    uvec2 square;
    if (chunk >= args.polar_chunks || state[args.state_offset + 4u] != RNG_BACKEND_MINSTD)
        return;
    if (t == 0u)
        accepted = 0u;
    barrier();
    uint x = polar_start(minstd_stream(state[args.state_offset]), chunk);
    uint stride = minstd_power(2u * gl_WorkGroupSize.x);
    for (uint i = 0u; i < args.polar_rounds; i++) {
        count += polar_candidate(x, v, square) ? 1u : 0u;
        x = minstd_product(x, stride);
    }
    atomicAdd(accepted, count);
    barrier();
    if (t == 0u)
        counts[chunk] = accepted;
}
