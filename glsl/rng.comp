#version 450
/*
 * Uniform or normal numbers (specialization constant 1). An invocation makes one block of four
 * words: four uniform elements, or two normal ones by Box-Muller (the sine partner is not used).
 * Logarithm and cosine are taken where their arguments are exact: no driver accuracy is relied on.
 */
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "philox.glsl"

layout(constant_id = 1) const uint KIND = 0;
layout(push_constant) uniform block { rng_args args; };
layout(set = 0, binding = 0) restrict readonly buffer rng_state { uint state[]; };
layout(set = 0, binding = 1) restrict writeonly buffer target { float y[]; };

float uniform_value(uint word)
{
    precise float product = unit_fraction(word) * args.scale;
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

/* -ln u, accurate near 1 too. */
float negative_logarithm(float u)
{
    float v = 1.0 - u;
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
    float z = square_root(2.0 * negative_logarithm(u)) * turn_cosine(unit_fraction(word_2));
    return args.base + args.scale * z;
}

void main()
{
    uint b = global_index(), offset = args.state_offset;
    uvec2 seed = args.use_op_seed != 0u ? uvec2(args.op_seed, 0u)
                                        : uvec2(state[offset], state[offset + 1u]);
    uvec4 words = philox(uvec4(b, 0u, state[offset + 2u], state[offset + 3u]),
                         mixed_key(seed, uvec2(args.key_low, args.key_high)));
    bool zero = state[offset + 4u] == RNG_BACKEND_ZERO;
    uint per_block = KIND == RNG_NORMAL ? 2u : 4u;
    for (uint k = 0u; k < per_block; k++) {
        uint i = b * per_block + k;
        if (i >= args.numel)
            return;
        float v = KIND == RNG_NORMAL ? normal_value(words[2u * k], words[2u * k + 1u])
                                     : uniform_value(words[k]);
        y[args.y_offset + i] = zero ? 0.0 : v;
    }
}
