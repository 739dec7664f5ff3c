/*
 * Weights that are addressed by element. There are two kinds:
 *   side-scale schemes  w[p][j] is element p * n + j; each block of p and column j has a scale
 *                       (and a zero point)
 *   plain rows          F32, F16 or BF16, stored as w[j][p]
 *
 * Four columns are read at a time, j .. j + 3. Columns past the last one hold arbitrary values,
 * which may be infinite or NaN.
 *
 * A code that is NaN or infinite (E4M3 0x7f, E5M2 exponent 31, E8M0 255) counts as 0.
 */
layout(constant_id = 1) const uint SCHEME = DEQUANT_INT8;
layout(constant_id = 2) const uint ALIGNMENT = 1; /* of four columns, or of a plain element */
#include "args/packed.h"
#include "packed/format.glsl"
#include "packed/packed.glsl"
layout(set = 0, binding = 1) readonly restrict buffer source { float x[]; };
layout(set = 0, binding = 3) readonly restrict buffer scale_floats { float scale[]; };
layout(set = 0, binding = 3) readonly restrict buffer scale_words { uint scale_bytes[]; };
layout(set = 0, binding = 4) readonly restrict buffer extra_floats { float extra[]; };

const bool ZERO_POINT = SCHEME == DEQUANT_INT8_ASYM || SCHEME == DEQUANT_INT4_ASYM;
const bool FP8 = SCHEME == DEQUANT_E4M3 || SCHEME == DEQUANT_E5M2;
const bool FP4 = SCHEME == DEQUANT_NVFP4_BLOCK || SCHEME == DEQUANT_MXFP4_BLOCK;
const bool BYTES = SCHEME == DEQUANT_INT8 || SCHEME == DEQUANT_INT8_ASYM || FP8;
const bool PLAIN = SCHEME >= DEQUANT_PLAIN;

struct column_scales {
    vec4 scale, zero;
};

/* ---- Scales ---- */

float byte_scale(uint index)
{
    uint at = args.scale_offset + index, code = scale_bytes[at >> 2] >> (at & 3) * 8 & 0xff;
    if (SCHEME == DEQUANT_NVFP4_BLOCK)
        return ue4m3_value(code) * extra[args.extra_offset];
    return code == 255 ? 0.0 : uintBitsToFloat(code == 0 ? 0x00400000 : code << 23);
}

/* `row`: the row of scales, which is the block of p. */
column_scales load_scales(uint row, uint column)
{
    column_scales s = column_scales(vec4(1), vec4(0));
    if (PLAIN)
        return s;
    for (uint i = 0; i < 4; i++) {
        uint at = row * args.n + min(column + i, args.n - 1);
        if (FP8)
            s.scale[i] = scale[args.scale_offset + args.scale_step * min(column + i, args.n - 1)];
        else
            s.scale[i] = FP4 ? byte_scale(at) : scale[args.scale_offset + at];
        if (ZERO_POINT)
            s.zero[i] = extra[args.extra_offset + at];
    }
    return s;
}

/* ---- Codes ---- */

/* Bit 7 is the sign, the exponent bias is 7. There is no infinity. */
float e4m3_value(uint code)
{
    float magnitude = ue4m3_value(code);
    return (code & 0x80) != 0 ? -magnitude : magnitude;
}

/* E5M2 is the upper byte of a binary16. */
float e5m2_value(uint code)
{
    return (code & 0x7c) == 0x7c ? 0.0 : half_value(code << 8);
}

vec4 fp8_values(uint word)
{
    uvec4 code = uvec4(word) >> uvec4(0, 8, 16, 24) & 0xff;
    if (SCHEME == DEQUANT_E4M3)
        return vec4(e4m3_value(code.x), e4m3_value(code.y), e4m3_value(code.z), e4m3_value(code.w));
    return vec4(e5m2_value(code.x), e5m2_value(code.y), e5m2_value(code.z), e5m2_value(code.w));
}

/* Four nibbles, starting at element e. */
vec4 nibble_values(uint e)
{
    uint at = args.w_offset + (e >> 1);
    uint bits = ALIGNMENT >= 2 ? load2(at) : load4(at) >> 4 * (e & 1);
    uint bytes = bits & 15 | (bits & 0xf0) << 4 | (bits & 0xf00) << 8 | (bits & 0xf000) << 12;
    if (FP4)
        return 0.5 * byte_values(levels(uvec4(bytes), FP4_LEVELS).x, SIGNED);
    return SCHEME == DEQUANT_INT4 ? byte_values(bytes ^ 0x08080808, 8) : byte_values(bytes, 0);
}

float plain_value(uint p, uint column)
{
    uint element = min(column, args.n - 1) * args.k + p;
    if (SCHEME == DEQUANT_PLAIN + F32)
        return uintBitsToFloat(load4(args.w_offset + 4 * element));
    uint bits = load2(args.w_offset + 2 * element);
    return SCHEME == DEQUANT_PLAIN + F16 ? half_value(bits) : uintBitsToFloat(bits << 16);
}

/* Row p of w, four columns. s holds the scales of the block of p. */
vec4 load_weights(uint p, uint column, column_scales s)
{
    uint e = p * args.n + column;
    if (PLAIN)
        return vec4(plain_value(p, column), plain_value(p, column + 1), plain_value(p, column + 2),
                    plain_value(p, column + 3));
    if (FP8)
        return fp8_values(load4(args.w_offset + e)) * s.scale;
    vec4 code = BYTES ? byte_values(load4(args.w_offset + e), SIGNED) : nibble_values(e);
    return ZERO_POINT ? (code - s.zero) * s.scale : code * s.scale;
}

/* `column`, or the start of the last four columns if it lies behind them. */
uint clamp_columns(uint column)
{
    return min(column, (args.n - 1) / 4 * 4);
}
