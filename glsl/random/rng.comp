#version 450
/*
 * Uniform or normal numbers (specialization constant 1) of the backend that the state names.
 *
 * Philox: an invocation makes one block of four words: four uniform elements, or two normal ones by
 * Box-Muller (the sine partner is not used). MINSTD: four uniform elements an invocation, or a
 * chunk of the polar method's candidates a workgroup, each accepted one giving two elements; the
 * chunks are as many as should do, and the last goes on until there are enough.
 * Logarithm and cosine are taken where their arguments are exact: no driver accuracy is relied on.
 */
#extension GL_GOOGLE_include_directive : require
#include "lib/common.glsl"
#include "args/random.h"
#include "lib/math.glsl"
#include "random/philox.glsl"

layout(constant_id = 1) const uint KIND = 0;
layout(push_constant) uniform block { rng_args args; };
layout(set = 0, binding = 0) restrict readonly buffer rng_state { uint state[]; };
layout(set = 0, binding = 1) restrict readonly buffer polar_counts { uint counts[]; };
layout(set = 0, binding = 2) restrict writeonly buffer target { float y[]; };

#include "random/minstd.glsl"

#define MOST_MASKS 32 /* of 32 invocations each */

shared uint masks[MOST_MASKS];
shared uint earlier;

float uniform_value(float fraction)
{
    precise float product = fraction * args.scale;
    precise float v = args.base + product;
    return v >= args.limit && args.scale > 0.0 ? args.below_limit : v;
}

/* cos(2 pi u) of a 24-bit fraction: the quadrant and the rest are exact. */
float turn_cosine(float u)
{
    float quarters = floor(4.0 * u + 0.5);
    float t = 6.28318530717958648 * (u - 0.25 * quarters), t2 = t * t;
    float c = 1.0 + t2 * (-0.5 + t2 * (4.16666667e-2 + t2 * (-1.38888889e-3 + t2 * 2.48015873e-5)));
    float p = -1.66666667e-1 + t2 * (8.33333333e-3 + t2 * (-1.98412698e-4 + t2 * 2.75573192e-6));
    float s = t * (1.0 + t2 * p);
    uint quadrant = uint(quarters) & 3u;
    float v = (quadrant & 1u) == 0u ? c : s;
    return quadrant == 1u || quadrant == 2u ? -v : v;
}

/* -ln u, accurate near 1 too, with v = 1 - u. */
float negative_logarithm(float u, float v)
{
    if (u < 0.9375)
        return -logarithm(u);
    float p = 0.125;
    for (int i = 7; i >= 1; i--)
        p = p * v + 1.0 / float(i);
    return p * v;
}

float normal_value(uint word_1, uint word_2)
{
    float u = max(unit_fraction(word_1), 1.17549435e-38);
    float radius = square_root(2.0 * negative_logarithm(u, 1.0 - u));
    return args.base + args.scale * (radius * turn_cosine(unit_fraction(word_2)));
}

void store(uint i, float v)
{
    if (i < args.numel)
        y[args.y_offset + i] = v;
}

/* ---- MINSTD ---- */

void minstd_uniform(uint first)
{
    uint x = minstd_word(minstd_stream(state[args.state_offset]), first);
    for (uint k = 0u; k < 4u; k++) {
        store(first + k, uniform_value(float(minstd_fraction(x)) * 4.656612873077392578125e-10));
        x = minstd_product(x, MINSTD_FACTOR);
    }
}

/* A sum of words as its float, in units of 2^-60. */
float polar_float(uvec2 v)
{
    return float(v.y) * 3.7252902984619140625e-9 + float(v.x) * 8.673617379884035472e-19;
}

/* sqrt(-2 ln s / s); 1 - s is taken from the exact s. */
float polar_scale(uvec2 square)
{
    uint borrow;
    uint low = usubBorrow(0u, square.x, borrow);
    float s = polar_float(square);
    float rest = polar_float(uvec2(low, 0x10000000u - square.y - borrow));
    return square_root(2.0 * divide(negative_logarithm(s, rest), s));
}

void store_pair(uint pair, ivec2 v, uvec2 square)
{
    float scale = polar_scale(square);
    vec2 z = vec2(v) * 9.31322574615478515625e-10 * scale;
    store(2u * pair, args.base + args.scale * z.x);
    store(2u * pair + 1u, args.base + args.scale * z.y);
}

uint accepted_before(uint chunk)
{
    uint count = 0u;
    for (uint i = gl_LocalInvocationID.x; i < chunk; i += gl_WorkGroupSize.x)
        count += counts[i];
    if (gl_LocalInvocationID.x == 0u)
        earlier = 0u;
    barrier();
    atomicAdd(earlier, count);
    barrier();
    return earlier;
}

/* How many invocations have the flag, and how many of them stand before this one. */
uint count_flags(bool flag, out uint before)
{
    uint t = gl_LocalInvocationID.x, total = 0u;
    for (uint i = t; i < MOST_MASKS; i += gl_WorkGroupSize.x)
        masks[i] = 0u;
    barrier();
    if (flag)
        atomicOr(masks[t / 32u], 1u << (t & 31u));
    barrier();
    before = 0u;
    for (uint i = 0u; 32u * i < gl_WorkGroupSize.x; i++) {
        uint mask = masks[i], below = (1u << (t & 31u)) - 1u;
        before += i < t / 32u ? bitCount(mask) : i == t / 32u ? bitCount(mask & below) : 0u;
        total += bitCount(mask);
    }
    barrier();
    return total;
}

void minstd_normal(uint chunk)
{
    uint pairs = (args.numel + 1u) / 2u, before;
    ivec2 v;
    uvec2 square;
    if (chunk >= args.polar_chunks)
        return;
    bool last = chunk + 1u == args.polar_chunks;
    uint pair = accepted_before(chunk), stride = minstd_power(2u * gl_WorkGroupSize.x);
    uint x = polar_start(minstd_stream(state[args.state_offset]), chunk);
    for (uint i = 0u; pair < pairs && (last || i < args.polar_rounds); i++) {
        bool accepted = polar_candidate(x, v, square);
        uint count = count_flags(accepted, before);
        if (accepted)
            store_pair(pair + before, v, square);
        pair += count;
        x = minstd_product(x, stride);
    }
}

/* ---- Philox ---- */

void philox_block(uint b)
{
    uint offset = args.state_offset, first = b * (KIND == RNG_NORMAL ? 2u : 4u);
    uvec2 seed = args.use_op_seed != 0u ? uvec2(args.op_seed, 0u)
                                        : uvec2(state[offset], state[offset + 1u]);
    uvec4 words = philox(uvec4(b, 0u, state[offset + 2u], state[offset + 3u]),
                         mixed_key(seed, uvec2(args.key_low, args.key_high)));
    bool zero = state[offset + 4u] == RNG_BACKEND_ZERO;
    if (KIND == RNG_NORMAL) {
        for (uint k = 0u; k < 2u; k++)
            store(first + k, zero ? 0.0 : normal_value(words[2u * k], words[2u * k + 1u]));
    } else {
        for (uint k = 0u; k < 4u; k++)
            store(first + k, zero ? 0.0 : uniform_value(unit_fraction(words[k])));
    }
}

void main()
{
    bool minstd = state[args.state_offset + 4u] == RNG_BACKEND_MINSTD;
    if (minstd && KIND == RNG_NORMAL)
        minstd_normal(group_index());
    else if (minstd)
        minstd_uniform(4u * global_index());
    else
        philox_block(global_index());
}
