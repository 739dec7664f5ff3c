/*
 * Decoders of the formats with codes of 1 to 5 bits and one scale for 16, 32 or more elements:
 * Q4_0, Q4_1, Q5_0, Q5_1, IQ4_NL, IQ4_XS, MXFP4, NVFP4, Q1_0, Q2_0. Most of them store element i in
 * the low nibble and element i + 16 in the high nibble of byte i. Then a common number is
 * subtracted, or the code is looked up in a table.
 */
#include "args/packed.h"

const bool IQ4 = FORMAT == IQ4_NL || FORMAT == IQ4_XS;
const bool FP4 = FORMAT == MXFP4 || FORMAT == NVFP4;
const bool Q5 = FORMAT == Q5_0 || FORMAT == Q5_1;
/* The size of the header, in bytes. The nibbles follow it. */
const bool HEADER_8 = FORMAT == Q5_1 || FORMAT == IQ4_XS;
const bool HEADER_4 = FORMAT == Q4_1 || FORMAT == NVFP4;
const uint HEADER_SMALL = FORMAT == MXFP4 ? 1 : FORMAT == Q5_0 ? 6 : 2;
const uint HEADER = HEADER_8 ? 8 : HEADER_4 ? 4 : HEADER_SMALL;
const bool TABLE = IQ4 || FP4;
const bool ONE_BELOW = FORMAT == Q1_0 || FORMAT == Q2_0;
const uint CENTER_NIBBLE = FORMAT == Q4_0 ? 8 : FORMAT == Q5_0 ? 16 : 0;
const uint MASK = FORMAT == Q4_0 || FORMAT == Q4_1 ? 15 : 0xff;
const uint CENTER = TABLE ? SIGNED : ONE_BELOW ? 1 : CENTER_NIBBLE;

/* ---- Table lookup: on a GPU, shared memory is far faster than selections ---- */

shared float level[16];

uvec4 level_table()
{
    /* Not ?: of constant vectors, because Mesa 22 evaluates that for the default FORMAT. */
    uvec4 table = FP4_LEVELS;
    if (IQ4)
        table = IQ4_LEVELS;
    return table;
}

void fill_levels()
{
    uint i = gl_LocalInvocationID.x;
    if (!DEQUANT_LOOKUP || !TABLE)
        return;
    if (i < 16)
        level[i] = signed_byte(level_table()[i >> 2] >> (i & 3) * 8);
    barrier();
}

vec4 code_values(uint word)
{
    if (!DEQUANT_LOOKUP || !TABLE)
        return byte_values(word, MASK, CENTER);
    return vec4(level[word & 15], level[word >> 8 & 15], level[word >> 16 & 15],
                level[word >> 24]);
}

/* One code, which starts at bit `bit` of a word. */
float code_value(uint word, uint bit)
{
    if (!DEQUANT_LOOKUP || !TABLE)
        return code_at(word, MASK, bit, CENTER);
    return level[word >> bit & 15];
}

/* 2^(e - 127) / 2, because the table holds doubled levels. */
float half_exponent_value(uint e)
{
    float scale = uintBitsToFloat(e > 1 ? (e - 1) << 23 : 0x00200000 << (e & 1));
    return e == 255 ? DEQUANT_NAN_SCALE : scale;
}

/* ---- A unit as loaded, before any arithmetic on it, which would wait for memory ---- */

const uint CODE_BYTES = FORMAT == Q1_0 ? 4 : FORMAT == Q2_0 ? 8 : 16; /* in a unit */

/* WHOLE: a block is one unit, and is loaded as whole vectors. IN_THREE: it may touch three
 * vectors. */
const bool WHOLE = IN_VECTORS && !ONE_BELOW && FORMAT != IQ4_XS && FORMAT != NVFP4;
const bool IN_THREE = BLOCK_BYTES + 16 > 32 + ALIGNMENT;

/* If WHOLE, the vectors. Else the codes, the word behind them, and the words that contain the first
 * eight bytes of the block. */
struct unit_raw {
    uvec4 first, second, third;
};

uint codes_at(uint block, uint u)
{
    return block + HEADER + CODE_BYTES * u;
}

unit_raw load_raw(uint block, uint u)
{
    uint i = block >> 2, at = codes_at(block, u), j = at >> 2, last = args.last_word;
    if (WHOLE) {
        uint v = block >> 4, last_vector = last >> 2;
        uvec4 third = uvec4(0);
        if (IN_THREE)
            third = packed4[min(v + 2, last_vector)];
        return unit_raw(packed4[v], packed4[min(v + 1, last_vector)], third);
    }
    uvec3 head = uvec3(packed1[i], packed1[i + 1], packed1[i + 2]);
    if (ONE_BELOW)
        return unit_raw(uvec4(packed1[j], packed1[min(j + 1, last)], packed1[min(j + 2, last)], 0),
                        uvec4(0, head), uvec4(0));
    bytes16 codes = load_bytes16(at);
    return unit_raw(codes.words, uvec4(codes.next, head), uvec4(0));
}

/* The first eight bytes of the block, and the codes of the unit. */
uvec2 header_of(unit_raw raw, uint block)
{
    return moved16(bytes16(uvec4(raw.second.yzw, 0), 0), block).xy;
}
uvec4 codes_of(unit_raw raw, uint at)
{
    return moved16(bytes16(raw.first, raw.second.x), at);
}

/* Converts whole vectors to the other form of unit_raw. */
unit_raw split_whole(unit_raw raw, uint block)
{
    uvec4 a = raw.first, b = raw.second, c = raw.third, head;
    bool over = (block & 3) + (HEADER & 3) > 3; /* the codes begin a word later */
    move_vectors(a, b, c, block);
    head = a;
    if (HEADER >= 8) {
        a = uvec4(a.zw, b.xy);
        b = b.zwzw;
    } else if (HEADER >= 4) {
        a = uvec4(a.yzw, b.x);
        b = b.yzww;
    }
    a = over ? uvec4(a.yzw, b.x) : a;
    b.x = over ? b.y : b.x;
    return unit_raw(a, uvec4(b.x, head.xyz), uvec4(0));
}

/* ---- Decoding ---- */

/* The header is d, the high 2-bit parts and the low nibbles of 8 scales. */
float iq4_xs_scale(uvec2 head, uint u)
{
    uint low = head.y >> 4 * u & 15, high = head.x >> 16 + 2 * u & 3;
    return half_value(head.x & 0xffff) * float(int(low | high << 4) - 32);
}

vec2 unit_scale(uvec2 head, uint u)
{
    if (FORMAT == MXFP4)
        return vec2(half_exponent_value(head.x & 0xff));
    if (FORMAT == NVFP4) {
        uint both = head.x >> 16 * u;
        return 0.5 * vec2(ue4m3_value(both), ue4m3_value(both >> 8));
    }
    return vec2(FORMAT == IQ4_XS ? iq4_xs_scale(head, u) : half_value(head.x & 0xffff));
}

unit_codes nibble_unit(uvec2 head, uvec4 q, uint u)
{
    uvec4 first = q, second = q >> 4;
    float bias = 0;
    if (MASK != 15) {
        first &= NIBBLES;
        second &= NIBBLES;
    }
    if (FORMAT == NVFP4) { /* 8 bytes hold 16 elements */
        uvec4 low = first, high = second;
        first = uvec4(low.xy, high.xy);
        second = uvec4(low.zw, high.zw);
    }
    if (Q5) {
        uint fifth = FORMAT == Q5_1 ? head.y : head.x >> 16 | head.y << 16;
        first |= spread_16_bits(fifth) << 4;
        second |= spread_16_bits(fifth >> 16) << 4;
    }
    if (AFFINE)
        bias = half_value(head.x >> 16);
    if (TABLE && !DEQUANT_LOOKUP) {
        first = levels(first, level_table());
        second = levels(second, level_table());
    }
    return unit_codes(first, second, unit_scale(head, u), vec2(bias));
}

/* A block is d and one bit for each element: 1 or -1. */
unit_codes decode_q1_0(uvec2 head, uint bits)
{
    return unit_codes(spread_16_bits(bits) << 1, spread_16_bits(bits >> 16) << 1,
                      unit_scale(head, 0), vec2(0));
}

/* A block is d and consecutive 2-bit codes, minus 1. */
unit_codes decode_q2_0(uvec2 head, uvec2 q)
{
    uvec4 shift = uvec4(0, 8, 16, 24);
    return unit_codes(spread_pairs(uvec4(q.x) >> shift & 0xff),
                      spread_pairs(uvec4(q.y) >> shift & 0xff), unit_scale(head, 0), vec2(0));
}

unit_codes decode_raw(unit_raw raw, uint block, uint u)
{
    if (WHOLE)
        raw = split_whole(raw, block);
    uvec2 head = header_of(raw, block);
    uvec4 q = codes_of(raw, codes_at(block, u));
    if (FORMAT == Q1_0)
        return decode_q1_0(head, q.x);
    if (FORMAT == Q2_0)
        return decode_q2_0(head, q.xy);
    return nibble_unit(head, q, u);
}
