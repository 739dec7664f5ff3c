/*
 * The storage of keys and values, and quads of packed halves. Include this after k2 and v2 are
 * declared; each of their elements is a quad.
 */
#include "args/attention.h"

layout(constant_id = 13) const uint K_HELD = ATTENTION_WORDS;
layout(constant_id = 14) const uint V_HELD = ATTENTION_WORDS;
layout(constant_id = 15) const bool HALF_SUBNORMALS = false; /* unpackHalf2x16 keeps subnormals */

#include "lib/half.glsl"

vec4 packed_k(uint at)
{
    return half_quad(k2[at >> 2]);
}
vec4 packed_v(uint at)
{
    return half_quad(v2[at >> 2]);
}
