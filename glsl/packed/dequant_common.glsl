/* Decoders of Q8_0, Q4_K, Q5_K and Q6_K. */
#include "args/packed.h"

const uint MASK = FORMAT == Q4_K ? 15 : 0xff;
const uint CENTER = FORMAT == Q8_0 ? SIGNED : FORMAT == Q6_K ? 32 : 0;

/*
 * The words that a unit is decoded from, which can be loaded some time before: so that none waits
 * for memory, nothing is made of them but where they are used. Of Q4_K and Q5_K `head` is the
 * block's head, `more` the fifth bits; the others say below.
 */
struct unit_words {
    uvec4 codes, head, more;
    uvec2 rest;
};

uvec4 words_from(uint i)
{
    return uvec4(packed1[i], packed1[i + 1], packed1[i + 2], packed1[i + 3]);
}

/*
 * d, 32 signed bytes. The 34 bytes at an even address touch 9 words whichever half the first starts
 * in: each is read once. `rest`: the ninth, and the address.
 */
unit_words load_q8_0(uint block)
{
    uint i = block >> 2;
    return unit_words(words_from(i), uvec4(0), words_from(i + 4), uvec2(packed1[i + 8], block));
}

unit_codes decode_q8_0(unit_words w)
{
    bool upper = (w.rest.y & 2) != 0;
    uvec4 a = w.codes, b = w.more;
    uvec4 after_a = uvec4(a.yzw, b.x), after_b = uvec4(b.yzw, w.rest.x);
    float d = half_value(upper ? a.x >> 16 : a.x & 0xffff);
    return unit_codes(mix(a >> 16 | after_a << 16, after_a, bvec4(upper)),
                      mix(b >> 16 | after_b << 16, after_b, bvec4(upper)), vec2(d), vec2(0));
}

/* d, dmin; 12 bytes of 6-bit scales and mins: those of the groups of 32 that unit u lies in. */
void decode_scale_min(uvec4 head, uint u, out vec2 scale, out vec2 bias)
{
    uint pair = u >> 1;
    uvec3 v = head.yzw >> (pair & 1) * 16;
    uvec2 codes = mix(v.xy & 0x3f3f, uvec2(v.z, v.z >> 4) & 0x0f0f | v.xy >> 2 & 0x3030,
                      bvec2(pair >= 2));
    vec2 d = half_values(head.x);
    scale = d.x * byte_values(codes.x, 0).xy;
    bias = -d.y * byte_values(codes.y, 0).xy;
}

unit_words load_k_unit(uint block, uint u)
{
    uint codes = FORMAT == Q5_K ? 48 : 16;
    uvec4 fifth = uvec4(0);
    if (FORMAT == Q5_K)
        fifth = load16(block + 16 + 16 * (u & 1));
    return unit_words(load16(block + codes + 16 * u), load16(block), fifth, uvec2(0));
}

/* Scales and mins; with Q5_K 32 bytes of fifth bits; 128 bytes of nibbles, low and high 32 elements
 * apart. */
unit_codes decode_k_unit(unit_words w, uint u)
{
    vec2 scale, bias;
    uvec4 first = w.codes, second = w.codes >> 4;
    decode_scale_min(w.head, u, scale, bias);
    if (FORMAT == Q5_K) {
        uvec4 fifth = w.more >> 2 * (u >> 1);
        first = first & NIBBLES | (fifth & BITS) << 4;
        second = second & NIBBLES | (fifth >> 1 & BITS) << 4;
    }
    return unit_codes(first, second, scale, bias);
}

/*
 * 128 bytes of low nibbles, 64 of high 2-bit pairs, 16 signed scales, d. Low and high nibble are 64
 * elements apart. Blocks are at even addresses: 16 bytes touch 5 words or 4. `head`: the fifth of
 * the low nibbles and of the pairs, and those with the scales; `rest`: that with d, the address.
 */
unit_words load_q6_k(uint block, uint u)
{
    uint low = block + 16 * u >> 2, high = block + 128 + 32 * (u >> 2) + 16 * (u & 1) >> 2;
    uint scales = block + 192 + 8 * (u >> 2) + (u & 3) >> 2;
    return unit_words(words_from(low),
                      uvec4(packed1[low + 4], packed1[high + 4], packed1[scales],
                            packed1[scales + 1]),
                      words_from(high), uvec2(packed1[block + 208 >> 2], block));
}

unit_codes decode_q6_k(unit_words w, uint u)
{
    bool upper = (w.rest.y & 2) != 0;
    uvec4 low = w.codes, high = w.more;
    low = mix(low, low >> 16 | uvec4(low.yzw, w.head.x) << 16, bvec4(upper));
    high = mix(high, high >> 16 | uvec4(high.yzw, w.head.y) << 16, bvec4(upper));
    high >>= 2 * (u >> 1 & 1);
    uint shift = (w.rest.y + u & 3) * 8;
    vec2 scale = half_value(upper ? w.rest.x >> 16 : w.rest.x & 0xffff) *
                 vec2(signed_byte(w.head.z >> shift), signed_byte(w.head.w >> shift));
    return unit_codes(low & NIBBLES | (high & PAIRS) << 4, low >> 4 & NIBBLES | high & 0x30303030,
                      scale, vec2(0));
}

unit_words load_unit(uint block, uint u)
{
    if (FORMAT == Q8_0)
        return load_q8_0(block);
    return FORMAT == Q6_K ? load_q6_k(block, u) : load_k_unit(block, u);
}

unit_codes decode_words(unit_words w, uint u)
{
    if (FORMAT == Q8_0)
        return decode_q8_0(w);
    return FORMAT == Q6_K ? decode_q6_k(w, u) : decode_k_unit(w, u);
}

unit_codes decode_unit(uint block, uint u)
{
    return decode_words(load_unit(block, u), u);
}
