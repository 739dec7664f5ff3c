#version 450
/*
 * Uniform or normal numbers (specialization constant 1), from the backend that the state names. An
 * invocation takes args.pairs times two blocks of four elements, one workgroup size apart.
 *
 * Philox: a block of four words gives four uniform elements, or two normal ones by Box-Muller (the
 * sine partner is not used).
 *
 * MINSTD: uniform elements take one word each. For normal elements a workgroup takes a chunk of the
 * polar method's candidates, and each accepted candidate gives two elements. The number of chunks
 * should be enough. If it is not, the last workgroup continues until all elements are written.
 *
 * Logarithm and cosine are computed from exact arguments by one polynomial each. Therefore the
 * result depends on the driver's accuracy only for the square root.
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
layout(set = 0, binding = 2) restrict writeonly buffer target4 { vec4 y4[]; };

#include "random/minstd.glsl"

#define MOST_MASKS 32 /* of 32 invocations each */

shared uint masks[MOST_MASKS];
shared uint earlier;

float uniform_value(float fraction)
{
    precise float product = fraction * args.scale;
    precise float v = args.base + product;
    if (args.wide != 0u)
        v += product;
    return v >= args.limit && args.scale > 0.0 ? args.below_limit : v;
}

/* -ln u, also accurate near 1, with v = 1 - u. */
float negative_logarithm(float u, float v)
{
    if (u < 0.9375)
        return -logarithm(u);
    float p = 0.125;
    for (int i = 7; i >= 1; i--)
        p = p * v + 1.0 / float(i);
    return p * v;
}

/*
 * sqrt(-2 ln u). u is the 24 high bits as a fraction, or 2^-126 if they are 0. u = 2^n (1 + f) with
 * 1 + f in [sqrt 1/2, sqrt 2] and f exact. The exponent is that of 2^32 u, so it is 32 too large.
 */
float normal_radius(uint word)
{
    uint bits = floatBitsToUint(max(float(word & 0xffffff00u), 5.04870979e-29));
    uint power = (bits - 0x4f3504f3u) & 0xff800000u;
    float f = uintBitsToFloat(bits - power - 0x10000000u) - 1.0;
    float p = fma(f, 2.021377536e-1, -3.244516962e-1);
    p = fma(f, p, 3.450166974e-1);
    p = fma(f, p, -3.980033140e-1);
    p = fma(f, p, 4.993981724e-1);
    p = fma(f, p, -6.667011776e-1);
    p = fma(f, p, 1.0000073026);
    p = fma(f, p, -1.9999998906);
    float square = fma(f, p, float(int(power)) * -1.65259167e-7); /* 2^-22 ln 2 */
    return square * inversesqrt(square);
}

/*
 * cos(2 pi u) = sin(2 pi (|u - 1/2| - 1/4)). u is the 24 high bits as a fraction, and t is exact.
 */
float turn_cosine(uint word)
{
    float t = abs(float(int((word & 0xffffff00u) ^ 0x80000000u))) * 2.32830644e-10 - 0.25;
    float t2 = t * t;
    float p = fma(t2, 3.953669943e+1, -7.654978168e+1);
    p = fma(t2, p, 8.160100407e+1);
    p = fma(t2, p, -4.134165503e+1);
    return t * fma(t2, p, 6.283185160);
}

float normal_value(uint word_1, uint word_2)
{
    return args.base + args.scale * (normal_radius(word_1) * turn_cosine(word_2));
}

void store(uint i, float v)
{
    if (i < args.numel)
        y[args.y_offset + i] = v;
}

void store_quad(uint quad, vec4 v)
{
    uint first = 4u * quad;
    if (first + 4u <= args.numel && (args.y_offset & 3u) == 0u) {
        y4[(args.y_offset >> 2) + quad] = v;
        return;
    }
    store(first, v.x);
    store(first + 1u, v.y);
    store(first + 2u, v.z);
    store(first + 3u, v.w);
}

/* ---- MINSTD ---- */

vec4 minstd_uniform(uint quad)
{
    uint x = minstd_word(minstd_stream(state[args.state_offset]), 4u * quad);
    vec4 v;
    for (uint k = 0u; k < 4u; k++) {
        v[k] = uniform_value(float(minstd_fraction(x)) * 4.656612873077392578125e-10);
        x = minstd_product(x, MINSTD_FACTOR);
    }
    return v;
}

/* Converts a two-word sum in units of 2^-60 to float. */
float polar_float(uvec2 v)
{
    return float(v.y) * 3.7252902984619140625e-9 + float(v.x) * 8.673617379884035472e-19;
}

/* sqrt(-2 ln s / s). 1 - s is computed from the exact s. */
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

/* Returns how many invocations have the flag. `before` is how many of them precede this one. */
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

vec4 uniform_values(uvec4 words)
{
    return vec4(uniform_value(unit_fraction(words.x)), uniform_value(unit_fraction(words.y)),
                uniform_value(unit_fraction(words.z)), uniform_value(unit_fraction(words.w)));
}

vec4 normal_values(uvec4 low, uvec4 high)
{
    return vec4(normal_value(low.x, low.y), normal_value(low.z, low.w),
                normal_value(high.x, high.y), normal_value(high.z, high.w));
}

/* Writes quads `first` and `second`. */
void philox_pair(uint first, uint second, uvec2 step, uvec2 key)
{
    if (KIND == RNG_NORMAL) {
        uvec4 a = uvec4(2u * first, 0u, step), b = uvec4(2u * first + 1u, 0u, step);
        uvec4 c = uvec4(2u * second, 0u, step), d = uvec4(2u * second + 1u, 0u, step);
        philox_four(a, b, c, d, key);
        store_quad(first, normal_values(a, b));
        store_quad(second, normal_values(c, d));
    } else {
        uvec4 a = uvec4(first, 0u, step), b = uvec4(second, 0u, step);
        philox_two(a, b, key);
        store_quad(first, uniform_values(a));
        store_quad(second, uniform_values(b));
    }
}

void main()
{
    uint offset = args.state_offset, backend = state[offset + 4u], apart = gl_WorkGroupSize.x;
    if (backend == RNG_BACKEND_MINSTD && KIND == RNG_NORMAL) {
        minstd_normal(group_index());
        return;
    }
    uint quad = 2u * group_index() * apart * args.pairs + gl_LocalInvocationID.x;
    if (backend == RNG_BACKEND_PHILOX) {
        uvec2 seed = args.use_op_seed != 0u ? uvec2(args.op_seed, 0u)
                                            : uvec2(state[offset], state[offset + 1u]);
        uvec2 step = uvec2(state[offset + 2u], state[offset + 3u]);
        uvec2 key = mixed_key(seed, uvec2(args.key_low, args.key_high + state[offset + 5u]));
        for (uint k = 0u; k < args.pairs && 4u * quad < args.numel; k++) {
            philox_pair(quad, quad + apart, step, key);
            quad += 2u * apart;
        }
        return;
    }
    for (uint k = 0u; k < 2u * args.pairs && 4u * quad < args.numel; k++) {
        store_quad(quad, backend == RNG_BACKEND_MINSTD ? minstd_uniform(quad) : vec4(0.0));
        quad += apart;
    }
}
