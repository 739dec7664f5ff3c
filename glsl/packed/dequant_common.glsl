/* Decoders of Q8_0, Q4_K, Q5_K and Q6_K. */
#include "args/packed.h"

const uint MASK = FORMAT == Q4_K ? 15 : 0xff;
const uint CENTER = FORMAT == Q8_0 ? SIGNED : FORMAT == Q6_K ? 32 : 0;

/*
 * d, 32 signed bytes. The 34 bytes at an even address touch 9 words whichever half the first starts
 * in: each is read once.
 */
unit_codes decode_q8_0(uint block, uint u)
{
    uint i = block >> 2;
    bool upper = (block & 2) != 0;
    uvec4 a = uvec4(packed1[i], packed1[i + 1], packed1[i + 2], packed1[i + 3]);
    uvec4 b = uvec4(packed1[i + 4], packed1[i + 5], packed1[i + 6], packed1[i + 7]);
    uint end = packed1[i + 8];
    uvec4 after_a = uvec4(a.yzw, b.x), after_b = uvec4(b.yzw, end);
    float d = half_value(upper ? a.x >> 16 : a.x & 0xffff);
    return unit_codes(upper ? after_a : a >> 16 | after_a << 16,
                      upper ? after_b : b >> 16 | after_b << 16, vec2(d), vec2(0));
}

/* d, dmin; 12 bytes of 6-bit scales and mins: those of the groups of 32 that unit u lies in. */
void decode_scale_min(uvec4 head, uint u, out vec2 scale, out vec2 bias)
{
    uint pair = u >> 1;
    uvec3 v = head.yzw >> (pair & 1) * 16;
    uint late = 0 - (pair >> 1), upper = v.z & late; /* all bits: no branch among matrices */
    uint scales = upper & 0x0f0f | v.x >> (late & 2) & (0x3f3f ^ late & 0x0f0f);
    uint mins = upper >> 4 & 0x0f0f | v.y >> (late & 2) & (0x3f3f ^ late & 0x0f0f);
    vec2 d = half_values(head.x);
    scale = d.x * byte_values(scales, 0).xy;
    bias = -d.y * byte_values(mins, 0).xy;
}

/* What a unit is decoded from. Of Q4_K and Q5_K: `more` is the fifth bits. Others are decoded as
 * they are loaded: codes of both runs, scales and biases between. */
struct unit_words {
    uvec4 codes, head, more;
};

unit_words load_k_unit(uint block, uint u)
{
    uint codes = FORMAT == Q5_K ? 48 : 16;
    uvec4 fifth = uvec4(0);
    if (FORMAT == Q5_K)
        fifth = load16(block + 16 + 16 * (u & 1));
    return unit_words(load16(block + codes + 16 * u), load16(block), fifth);
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
 * elements apart.
 */
unit_codes decode_q6_k(uint block, uint u)
{
    uint group = u >> 1 & 1, scales = block + 192 + 8 * (u >> 2) + (u & 3);
    uvec4 low = load16(block + 16 * u);
    uvec4 high = load16(block + 128 + 32 * (u >> 2) + 16 * (u & 1)) >> 2 * group;
    vec2 scale_codes = vec2(signed_byte(load1(scales)), signed_byte(load1(scales + 4)));
    vec2 scale = half_at(block + 208) * scale_codes;
    return unit_codes(low & NIBBLES | (high & PAIRS) << 4, low >> 4 & NIBBLES | high & 0x30303030,
                      scale, vec2(0));
}

unit_words load_unit(uint block, uint u)
{
    if (FORMAT == Q4_K || FORMAT == Q5_K)
        return load_k_unit(block, u);
    unit_codes w = FORMAT == Q6_K ? decode_q6_k(block, u) : decode_q8_0(block, u);
    return unit_words(w.first, floatBitsToUint(vec4(w.scale, w.bias)), w.second);
}

unit_codes decode_words(unit_words w, uint u)
{
    if (FORMAT == Q4_K || FORMAT == Q5_K)
        return decode_k_unit(w, u);
    vec4 factors = uintBitsToFloat(w.head);
    return unit_codes(w.codes, w.more, factors.xy, factors.zw);
}

unit_codes decode_unit(uint block, uint u)
{
    return decode_words(load_unit(block, u), u);
}
