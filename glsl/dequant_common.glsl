/* Decoders of Q8_0, Q4_K, Q5_K and Q6_K. */
const uint MASK = FORMAT == DEQUANT_Q4_K ? 15 : 0xff;
const uint CENTER = FORMAT == DEQUANT_Q8_0 ? SIGNED : FORMAT == DEQUANT_Q6_K ? 32 : 0;

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
void load_scale_min(uint block, uint u, out vec2 scale, out vec2 bias)
{
    uvec4 head = load16(block);
    uint pair = u >> 1;
    uvec3 v = head.yzw >> (pair & 1) * 16;
    uint scales = v.x & 0x3f3f, mins = v.y & 0x3f3f;
    if (pair >= 2) {
        scales = v.z & 0x0f0f | v.x >> 2 & 0x3030;
        mins = v.z >> 4 & 0x0f0f | v.y >> 2 & 0x3030;
    }
    vec2 d = half_values(head.x);
    scale = d.x * byte_values(scales, 0).xy;
    bias = -d.y * byte_values(mins, 0).xy;
}

/* Scales and mins; 128 bytes of nibbles, low and high 32 elements apart. */
unit_codes decode_q4_k(uint block, uint u)
{
    vec2 scale, bias;
    uvec4 q = load16(block + 16 + 16 * u);
    load_scale_min(block, u, scale, bias);
    return unit_codes(q, q >> 4, scale, bias);
}

/* As q4_k, with 32 bytes of fifth bits before the nibbles. */
unit_codes decode_q5_k(uint block, uint u)
{
    vec2 scale, bias;
    uvec4 q = load16(block + 48 + 16 * u);
    uvec4 fifth = load16(block + 16 + 16 * (u & 1)) >> 2 * (u >> 1);
    load_scale_min(block, u, scale, bias);
    return unit_codes(q & NIBBLES | (fifth & BITS) << 4,
                      q >> 4 & NIBBLES | (fifth >> 1 & BITS) << 4, scale, bias);
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

unit_codes decode_unit(uint block, uint u)
{
    if (FORMAT == DEQUANT_Q4_K)
        return decode_q4_k(block, u);
    if (FORMAT == DEQUANT_Q5_K)
        return decode_q5_k(block, u);
    if (FORMAT == DEQUANT_Q6_K)
        return decode_q6_k(block, u);
    return decode_q8_0(block, u);
}
