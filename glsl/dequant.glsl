/*
 * Decoders of packed weight blocks, shared by every kernel that reads them.
 *
 * Every format is seen as units of 32 elements: two runs of 16 consecutive elements, DISTANCE
 * apart, that share their packed bytes. Element i of a run is scale * code[i] + bias, with signed
 * 8-bit codes, four to a word, lowest byte first. Unit u of a block starts at element
 * unit_position(u). A further format is one decode function, one line in decode_unit and one row of
 * the table in the C family.
 *
 * The includer declares the push constants first; args.last_word is the last word of the packed
 * slot.
 */
#define UNIT_ELEMENTS 32
#define RUN_ELEMENTS  16

layout(constant_id = 1) const uint FORMAT = DEQUANT_Q8_0;
layout(constant_id = 2) const uint ALIGNMENT = 1; /* of every block, in bytes, at most 16 */
layout(constant_id = 3) const uint BLOCK_BYTES = 34;
layout(constant_id = 4) const uint BLOCK_UNITS = 1;
layout(constant_id = 5) const uint DISTANCE = 16;
layout(constant_id = 6) const bool AFFINE = false; /* bias is not always 0 */

layout(set = 0, binding = 0) readonly restrict buffer packed_words { uint packed1[]; };
layout(set = 0, binding = 0) readonly restrict buffer packed_vectors { uvec4 packed4[]; };

struct unit_codes {
    uvec4 first, second;
    vec2 scale, bias; /* of the first and the second run */
};

/* ---- Bytes at any address the block's alignment allows ---- */

/*
 * The 4 bytes at distance `shift` bits into the 8 bytes low, high. Two shifts: one by 32 would be
 * undefined.
 */
uint straddle(uint low, uint high, uint shift)
{
    return low >> shift | (high << 1) << (31 - shift);
}

uint load4(uint byte)
{
    if (ALIGNMENT >= 4)
        return packed1[byte >> 2];
    uint next = min((byte >> 2) + 1, args.last_word);
    return straddle(packed1[byte >> 2], packed1[next], (byte & 3) * 8);
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

uvec4 load16(uint byte)
{
    uint i = byte >> 2;
    if (ALIGNMENT >= 16)
        return packed4[byte >> 4];
    uvec4 low = uvec4(packed1[i], packed1[i + 1], packed1[i + 2], packed1[i + 3]);
    if (ALIGNMENT >= 4)
        return low;
    uint shift = (byte & 3) * 8;
    uint last = packed1[min(i + 4, args.last_word)];
    return uvec4(straddle(low.x, low.y, shift), straddle(low.y, low.z, shift),
                 straddle(low.z, low.w, shift), straddle(low.w, last, shift));
}

/* ---- Small conversions ---- */

/* binary16 -> f32. A device may flush a subnormal half, so those are made from their integer. */
float half_value(uint bits)
{
    float small = float(bits & 0x3ff) * 5.9604644775390625e-8; /* 2^-24 */
    bool subnormal = (bits & 0x7c00) == 0;
    return subnormal ? ((bits & 0x8000) != 0 ? -small : small) : unpackHalf2x16(bits).x;
}

float signed_byte(uint bits)
{
    return float(int(bits << 24) >> 24);
}

/* The four codes of a word. */
vec4 code_values(uint word)
{
    return vec4((ivec4(word) << ivec4(24, 16, 8, 0)) >> 24);
}

/* ---- Formats ---- */

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

/*
 * d, dmin; 12 bytes of 6-bit scales and mins; 128 bytes of nibbles, low and high 32 elements apart.
 */
unit_codes decode_q4_k(uint block, uint u)
{
    uvec4 head = load16(block);
    uvec4 quants = load16(block + 16 + 16 * u);
    uint pair = u >> 1;
    uint scales = head.y & 0x3f3f3f3f, mins = head.z & 0x3f3f3f3f;
    if (pair >= 2) {
        scales = head.w & 0x0f0f0f0f | head.y >> 2 & 0x30303030;
        mins = head.w >> 4 & 0x0f0f0f0f | head.z >> 2 & 0x30303030;
    }
    uvec2 shift = (pair & 1) * 16 + uvec2(0, 8);
    vec2 scale = half_value(head.x & 0xffff) * vec2(uvec2(scales) >> shift & 0xff);
    vec2 bias = -half_value(head.x >> 16) * vec2(uvec2(mins) >> shift & 0xff);
    return unit_codes(quants & 0x0f0f0f0f, quants >> 4 & 0x0f0f0f0f, scale, bias);
}

/* v - 32 for four 6-bit values: flip bit 5, then copy it into the two bits above. */
uvec4 center_6bit(uvec4 v)
{
    uvec4 flipped = v ^ 0x20202020, sign = flipped & 0x20202020;
    return flipped | sign << 1 | sign << 2;
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
    float d = half_value(load2(block + 208));
    vec2 scale = d * vec2(signed_byte(load1(scales)), signed_byte(load1(scales + 4)));
    return unit_codes(center_6bit(low & 0x0f0f0f0f | (high & 0x03030303) << 4),
                      center_6bit(low >> 4 & 0x0f0f0f0f | high & 0x30303030), scale, vec2(0));
}

unit_codes decode_unit(uint block, uint u)
{
    if (FORMAT == DEQUANT_Q4_K)
        return decode_q4_k(block, u);
    if (FORMAT == DEQUANT_Q6_K)
        return decode_q6_k(block, u);
    return decode_q8_0(block, u);
}

/* ---- Where a row's unit lies ---- */

/* Unit `index` of the row whose first byte is `row`. */
unit_codes decode_row_unit(uint row, uint index)
{
    return decode_unit(row + index / BLOCK_UNITS * BLOCK_BYTES, index % BLOCK_UNITS);
}

/*
 * First element of the unit's first run; the second run starts DISTANCE later. DISTANCE is a
 * multiple of 16.
 */
uint unit_position(uint index)
{
    uint runs = DISTANCE / RUN_ELEMENTS;
    return index / runs * (2 * DISTANCE) + index % runs * RUN_ELEMENTS;
}
