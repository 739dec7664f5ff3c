/*
 * y[i][p] = element p of packed row index[i]; zeros where the index is NaN or outside the table.
 * TRANSPOSED, of every row of matrices with `rows` rows each: y[e][p][j] = element p of row j of
 * matrix e; then a scale that is the code of NaN counts as 0. One invocation decodes one unit; of
 * plain rows (BLOCK_UNITS 0: f32, f16, bf16) one element.
 */
#include "common.glsl"

layout(push_constant) uniform block { dequant_gather_args args; };
layout(constant_id = 7) const bool TRANSPOSED = false;
#define DEQUANT_NAN_SCALE (TRANSPOSED ? 0.0 : NAN_VALUE)
#include "dequant.glsl"
layout(set = 0, binding = 1) readonly restrict buffer indices { float index[]; };
layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };

const uint NO_ROW = 0xffffffff;

/* floor(v + 1/2) without the rounding of the sum. */
uint row_of(float v)
{
    float below = floor(v);
    float nearest = v - below >= 0.5 ? below + 1 : below;
    if (is_nan(v) || !(nearest >= 0) || nearest >= 4294967296.0)
        return NO_ROW;
    return uint(nearest) < args.rows ? uint(nearest) : NO_ROW;
}

/* Elements of a row lie this far apart in y. */
uint stride()
{
    return TRANSPOSED ? args.rows : 1;
}

void write_run(uint at, uvec4 codes, float scale, float bias)
{
    for (uint i = 0; i < RUN_ELEMENTS; i++) {
        precise float value = scale * signed_byte(codes[i >> 2] >> (i & 3) * 8) + bias;
        y[at + i * stride()] = value;
    }
}

float plain_value(uint element)
{
    uint at = element * BLOCK_BYTES;
    if (FORMAT == DEQUANT_F32)
        return uintBitsToFloat(load4(args.w_offset + at));
    uint bits = load2(args.w_offset + at);
    return FORMAT == DEQUANT_F16 ? half_value(bits) : uintBitsToFloat(bits << 16);
}

void main()
{
    uint i = global_index(), length = args.units * (BLOCK_UNITS == 0 ? 1 : UNIT_ELEMENTS);
    if (i >= args.count)
        return;
    uint unit, row, at; /* element p of the row goes to y[at + p * stride()] */
    if (TRANSPOSED) {   /* neighbours take neighbouring rows, so that their stores meet */
        uint j = i % args.rows, matrix = i / args.rows / args.units * args.rows;
        unit = i / args.rows % args.units;
        row = matrix + j;
        at = args.y_offset + matrix * length + j;
    } else {
        unit = i % args.units;
        row = row_of(index[args.index_offset + i / args.units]);
        at = args.y_offset + i / args.units * length;
    }
    if (BLOCK_UNITS == 0) {
        y[at + unit * stride()] = row == NO_ROW ? 0.0 : plain_value(row * args.units + unit);
        return;
    }
    unit_codes w = unit_codes(uvec4(0), uvec4(0), vec2(0), vec2(0));
    if (row != NO_ROW)
        w = decode_row_unit(args.w_offset + row * args.row_bytes, unit);
    at += unit_position(unit) * stride();
    write_run(at, w.first, w.scale.x, w.bias.x);
    write_run(at + DISTANCE * stride(), w.second, w.scale.y, w.bias.y);
}
