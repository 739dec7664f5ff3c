/* Decoders of Q8_0, Q4_K, Q5_K and Q6_K. */
#include "args/packed.h"

const uint MASK = FORMAT == Q4_K ? 15 : 0xff;
const uint CENTER = FORMAT == Q8_0 ? SIGNED : FORMAT == Q6_K ? 32 : 0;

/*
 * The words of a unit, shifted into place and ready to decode.
 *   Q4_K, Q5_K  `head` is the header of the block, `more` holds the fifth bits
 *   Q8_0, Q6_K  `codes` and `more` hold the codes of the two runs; head.x is d as a half,
 *               head.y holds the codes of both scales
 */
struct unit_words {
    uvec4 codes, head, more;
};

/* The same words as loaded, before any arithmetic on them, because arithmetic would have to wait
 * for memory. For Q4_K and Q5_K they equal unit_words. */
struct unit_raw {
    uvec4 codes, head, more;
    uvec2 rest;
};

/*
 * A block is d and 32 signed bytes. Its 34 bytes start at an even address and touch 9 words,
 * whichever half of a word they start in. Each word is read once. If IN_VECTORS, the three vectors
 * that contain them are read instead, because that takes fewer accesses; the index is clamped to
 * the last vector of the slot.
 */
unit_raw load_q8_0(uint block)
{
    uint i = block >> 2, v = block >> 4, last = args.last_word >> 2;
    if (IN_VECTORS)
        return unit_raw(packed4[v], packed4[min(v + 1, last)], packed4[min(v + 2, last)],
                        uvec2(0));
    return unit_raw(uvec4(packed1[i], packed1[i + 1], packed1[i + 2], packed1[i + 3]),
                    uvec4(packed1[i + 4], packed1[i + 5], packed1[i + 6], packed1[i + 7]),
                    uvec4(0), uvec2(packed1[i + 8], 0));
}

unit_words finish_q8_0(unit_raw raw, uint block)
{
    uvec4 a = raw.codes, b = raw.head;
    uint end = raw.rest.x;
    bool upper = (block & 2) != 0;
    if (IN_VECTORS) {
        uvec4 c = raw.more;
        move_vectors(a, b, c, block);
        end = c.x;
    }
    uvec4 after_a = uvec4(a.yzw, b.x), after_b = uvec4(b.yzw, end);
    uvec4 head = uvec4(upper ? a.x >> 16 : a.x & 0xffff, 0, 0, 0);
    return unit_words(upper ? after_a : a >> 16 | after_a << 16, head,
                      upper ? after_b : b >> 16 | after_b << 16);
}

/* The header is d, dmin and 12 bytes of 6-bit scales and mins. Returns the scales and mins of the
 * two groups of 32 elements that unit u overlaps, one byte each. */
void find_scale_min(uvec4 head, uint u, out uint scales, out uint mins)
{
    uint pair = u >> 1;
    uvec3 v = head.yzw >> (pair & 1) * 16;
    uint late = 0 - (pair >> 1), upper = v.z & late; /* all ones or 0: no branch */
    scales = upper & 0x0f0f | v.x >> (late & 2) & (0x3f3f ^ late & 0x0f0f);
    mins = upper >> 4 & 0x0f0f | v.y >> (late & 2) & (0x3f3f ^ late & 0x0f0f);
}

void decode_scale_min(uvec4 head, uint u, out vec2 scale, out vec2 bias)
{
    uint scales, mins;
    find_scale_min(head, u, scales, mins);
    vec2 d = half_values(head.x);
    scale = d.x * byte_values(scales, 0).xy;
    bias = -d.y * byte_values(mins, 0).xy;
}

/* A block is the header with scales and mins, 32 bytes of fifth bits (only Q5_K), and 128 bytes of
 * nibbles. The low and high nibble of a byte are 32 elements apart. */
unit_raw load_k_unit(uint block, uint u)
{
    uint codes = FORMAT == Q5_K ? 48 : 16;
    uvec4 fifth = uvec4(0);
    if (FORMAT == Q5_K)
        fifth = load16(block + 16 + 16 * (u & 1));
    return unit_raw(load16(block + codes + 16 * u), load16(block), fifth, uvec2(0));
}

/*
 * A block is 128 bytes of low nibbles, 64 bytes of high 2-bit pairs, 16 signed scales and d. The
 * low and high nibble of a byte are 64 elements apart.
 */
uint q6_k_high(uint block, uint u)
{
    return block + 128 + 32 * (u >> 2) + 16 * (u & 1);
}
uint q6_k_scales(uint block, uint u)
{
    return block + 192 + 8 * (u >> 2) + (u & 3);
}

unit_raw load_q6_k(uint block, uint u)
{
    uint scales = q6_k_scales(block, u);
    bytes16 low = load_bytes16(block + 16 * u), high = load_bytes16(q6_k_high(block, u));
    uint d = ALIGNMENT >= 2 ? packed1[block + 208 >> 2] : load2(block + 208);
    return unit_raw(low.words, uvec4(d, packed1[scales >> 2], packed1[scales + 4 >> 2], 0),
                    high.words, uvec2(low.next, high.next));
}

unit_words finish_q6_k(unit_raw raw, uint block, uint u)
{
    uint group = u >> 1 & 1, place = (q6_k_scales(block, u) & 3) * 8;
    uint d = ALIGNMENT >= 2 ? raw.head.x >> (block & 2) * 8 & 0xffff : raw.head.x;
    uvec4 low = moved16(bytes16(raw.codes, raw.rest.x), block);
    uvec4 high = moved16(bytes16(raw.more, raw.rest.y), block) >> 2 * group;
    uint scales = raw.head.y >> place & 0xff | (raw.head.z >> place & 0xff) << 8;
    return unit_words(low & NIBBLES | (high & PAIRS) << 4, uvec4(d, scales, 0, 0),
                      low >> 4 & NIBBLES | high & 0x30303030);
}

unit_raw load_raw(uint block, uint u)
{
    if (FORMAT == Q4_K || FORMAT == Q5_K)
        return load_k_unit(block, u);
    return FORMAT == Q6_K ? load_q6_k(block, u) : load_q8_0(block);
}

unit_words finish(unit_raw raw, uint block, uint u)
{
    if (FORMAT == Q4_K || FORMAT == Q5_K)
        return unit_words(raw.codes, raw.head, raw.more);
    return FORMAT == Q6_K ? finish_q6_k(raw, block, u) : finish_q8_0(raw, block);
}

unit_words load_unit(uint block, uint u)
{
    return finish(load_raw(block, u), block, u);
}

/* The codes of both runs. */
void find_codes(unit_words w, uint u, out uvec4 first, out uvec4 second)
{
    first = w.codes;
    second = FORMAT == Q4_K || FORMAT == Q5_K ? w.codes >> 4 : w.more;
    if (FORMAT == Q5_K) {
        uvec4 fifth = w.more >> 2 * (u >> 1);
        first = first & NIBBLES | (fifth & BITS) << 4;
        second = second & NIBBLES | (fifth >> 1 & BITS) << 4;
    }
}

unit_codes decode_words(unit_words w, uint u)
{
    unit_codes unit;
    find_codes(w, u, unit.first, unit.second);
    if (FORMAT == Q4_K || FORMAT == Q5_K) {
        decode_scale_min(w.head, u, unit.scale, unit.bias);
        return unit;
    }
    vec2 codes = vec2(signed_byte(w.head.y), signed_byte(w.head.y >> 8));
    unit.scale = half_value(w.head.x) * (FORMAT == Q6_K ? codes : vec2(1.0));
    unit.bias = vec2(0.0);
    return unit;
}

unit_codes decode_raw(unit_raw raw, uint block, uint u)
{
    return decode_words(finish(raw, block, u), u);
}
