/*
 * Reads packed weights at any byte address, and does the small conversions of their formats. The
 * includer declares ALIGNMENT, the alignment of its addresses in bytes (a power of two), and
 * args.last_word, the last word of the packed slot. A word holds four codes, lowest byte first.
 */
layout(constant_id = 15) const bool HALF_SUBNORMALS = false; /* unpackHalf2x16 keeps subnormals */
layout(set = 0, binding = 0) readonly restrict buffer packed_words { uint packed1[]; };
layout(set = 0, binding = 0) readonly restrict buffer packed_vectors { uvec4 packed4[]; };

/* ---- Bytes at any address that the alignment of blocks allows ---- */

/*
 * The 4 bytes that start `shift` bits into the 8 bytes low, high. It shifts twice, because a shift
 * by 32 would be undefined.
 */
uint straddle(uint low, uint high, uint shift)
{
    return low >> shift | (high << 1) << (31 - shift);
}

/* The word that 4 bytes begin in, and the next word, if they may extend into it. */
struct bytes4 {
    uint word, next;
};

bytes4 load_bytes4(uint byte)
{
    return bytes4(packed1[byte >> 2],
                  ALIGNMENT >= 4 ? 0 : packed1[min((byte >> 2) + 1, args.last_word)]);
}

uint moved4(bytes4 b, uint byte)
{
    return ALIGNMENT >= 4 ? b.word : straddle(b.word, b.next, (byte & 3) * 8);
}

uint load4(uint byte)
{
    return moved4(load_bytes4(byte), byte);
}

uint load2(uint byte)
{
    if (ALIGNMENT >= 2)
        return packed1[byte >> 2] >> (byte & 2) * 8 & 0xffff;
    return load4(byte) & 0xffff;
}

uint load1(uint byte)
{
    return packed1[byte >> 2] >> (byte & 3) * 8 & 0xff;
}

/* The same for 16 bytes. */
struct bytes16 {
    uvec4 words;
    uint next;
};

bytes16 load_bytes16(uint byte)
{
    uint i = byte >> 2;
    if (ALIGNMENT >= 16)
        return bytes16(packed4[byte >> 4], 0);
    uvec4 words = uvec4(packed1[i], packed1[i + 1], packed1[i + 2], packed1[i + 3]);
    if (ALIGNMENT >= 4)
        return bytes16(words, 0);
    return bytes16(words, packed1[min(i + 4, args.last_word)]);
}

/* The 16 bytes that begin at `byte`. */
uvec4 moved16(bytes16 b, uint byte)
{
    uvec4 low = b.words;
    uint shift = (byte & 3) * 8;
    if (ALIGNMENT >= 4)
        return low;
    if (ALIGNMENT == 2)
        return shift != 0 ? low >> 16 | uvec4(low.yzw, b.next) << 16 : low;
    return uvec4(straddle(low.x, low.y, shift), straddle(low.y, low.z, shift),
                 straddle(low.z, low.w, shift), straddle(low.w, b.next, shift));
}

uvec4 load16(uint byte)
{
    return moved16(load_bytes16(byte), byte);
}

/* Shifts three vectors so that a begins with the word that contains `byte`. The first vector
 * contains that address. Nine words are valid afterwards. */
void move_vectors(inout uvec4 a, inout uvec4 b, inout uvec4 c, uint byte)
{
    bool two = (byte & 8) != 0, one = (byte & 4) != 0;
    a = two ? uvec4(a.zw, b.xy) : a;
    b = two ? uvec4(b.zw, c.xy) : b;
    c.xy = two ? c.zw : c.xy;
    a = one ? uvec4(a.yzw, b.x) : a;
    b = one ? uvec4(b.yzw, c.x) : b;
    c.x = one ? c.y : c.x;
}

/* ---- Small conversions ---- */

const uint NIBBLES = 0x0f0f0f0f, PAIRS = 0x03030303, BITS = 0x01010101;
/* -127 -104 -83 -65, -49 -35 -22 -10, 1 13 25 38, 53 69 89 113 */
const uvec4 IQ4_LEVELS = uvec4(0xbfad9881, 0xf6eaddcf, 0x26190d01, 0x71594535);
/* twice 0 .5 1 1.5, 2 3 4 6, and the same negated */
const uvec4 FP4_LEVELS = uvec4(0x03020100, 0x0c080604, 0xfdfeff00, 0xf4f8fafc);

#include "lib/half.glsl"

float half_at(uint byte)
{
    return half_value(load2(byte));
}

/*
 * Converts codes to floats without a conversion instruction, because hardware runs those at a
 * fraction of its rate. The code is put into the mantissa of a float whose lowest bits at that
 * place count ones. Then the rest of that float is subtracted, together with `center`. This is
 * exact. If center is SIGNED, the bytes are signed.
 *
 * The floats are hidden from the compiler (last_word is far below 2^31, so the added term is 0).
 * Mask and merge become one instruction only if not both operands are literals.
 */
const uint SIGNED = 128;

/* 2^(23 - bit), whose mantissa counts ones from bit `bit` on. */
uint float_over(uint bit)
{
    return (150 - bit << 23) + (args.last_word >> 31);
}
float code_at(uint word, uint mask, uint bit, uint center)
{
    precise float value =
        uintBitsToFloat(word & mask << bit ^ (float_over(bit) | (center & SIGNED) << bit));
    value -= float((1u << 23 - bit) + center);
    return value;
}

/* The four bytes of a word, each masked with `mask`. */
vec4 byte_values(uint word, uint mask, uint center)
{
    uint upper = word >> 16;
    return vec4(code_at(word, mask, 0, center), code_at(word, mask, 8, center),
                code_at(upper, mask, 0, center), code_at(upper, mask, 8, center));
}
vec4 byte_values(uint word, uint center)
{
    return byte_values(word, 0xff, center);
}

/* The low and the high nibbles of a word's bytes, with only one shift. */
vec4 low_nibbles(uint word, uint center)
{
    return vec4(code_at(word, 15, 0, center), code_at(word, 15, 8, center),
                code_at(word, 15, 16, center), code_at(word >> 12, 15, 12, center));
}
vec4 high_nibbles(uint word, uint center)
{
    return vec4(code_at(word, 15, 4, center), code_at(word, 15, 12, center),
                code_at(word >> 12, 15, 8, center), code_at(word >> 12, 15, 16, center));
}

float signed_byte(uint bits)
{
    return code_at(bits, 0xff, 0, SIGNED);
}

/* Spreads 16 bits to one byte each: bit b of each group of four goes to bit 0 of byte b. */
uvec4 spread_16_bits(uint bits)
{
    return (uvec4(bits) >> uvec4(0, 4, 8, 12) & 15) * 0x00204081 & BITS;
}

/* Spreads the four 2-bit codes of a byte to one byte each. */
uvec4 spread_pairs(uvec4 byte)
{
    return (byte | byte << 6 | byte << 12 | byte << 18) & PAIRS;
}

/* Looks up every nibble (one in each byte) in a table of 16 bytes. Vectors and a loop keep the code
 * small, because software drivers compile it for every pipeline. */
uvec4 levels(uvec4 codes, uvec4 table)
{
    uvec4 result = uvec4(0);
    for (uint shift = 0; shift < 32; shift += 8) {
        uvec4 n = codes >> shift;
        bvec4 odd_word = notEqual(n & 4, uvec4(0)), upper = notEqual(n & 8, uvec4(0));
        uvec4 low = mix(uvec4(table.x), uvec4(table.y), odd_word);
        uvec4 high = mix(uvec4(table.z), uvec4(table.w), odd_word);
        result |= (mix(low, high, upper) >> (n & 3) * 8 & 0xff) << shift;
    }
    return result;
}

/* Unsigned E4M3 with exponent bias 7. The code of NaN gives 0. */
float ue4m3_value(uint code)
{
    uint bits = code & 0x7f;
    float small = float(bits & 7) * 0.001953125; /* 2^-9 */
    float value = bits < 8 ? small : uintBitsToFloat((bits << 20) + (120u << 23));
    return bits == 0x7f ? 0.0 : value;
}
