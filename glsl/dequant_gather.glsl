/*
 * y[i][p] = element p of packed row index[i]; zeros where the index is NaN or outside the table.
 * One invocation decodes one unit; of plain rows (BLOCK_UNITS 0: f32, f16, bf16) one element.
 */
#include "common.glsl"

layout(push_constant) uniform block { dequant_gather_args args; };
#define DEQUANT_NAN_SCALE NAN_VALUE
#include "dequant.glsl"
layout(set = 0, binding = 1) readonly restrict buffer indices { float index[]; };
layout(set = 0, binding = 2) writeonly restrict buffer target { float y[]; };

/* floor(v + 1/2) without the rounding of the sum; the table's row count where that is no row. */
uint row_of(float v)
{
    float below = floor(v);
    float nearest = v - below >= 0.5 ? below + 1 : below;
    if (is_nan(v) || !(nearest >= 0) || nearest >= 4294967296.0)
        return args.rows;
    return min(uint(nearest), args.rows);
}

void write_run(uint at, uvec4 codes, float scale, float bias)
{
    for (uint i = 0; i < RUN_ELEMENTS; i++) {
        precise float value = scale * signed_byte(codes[i >> 2] >> (i & 3) * 8) + bias;
        y[at + i] = value;
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
    uint i = global_index();
    if (i >= args.count)
        return;
    uint item = i / args.units, unit = i % args.units;
    uint row = row_of(index[args.index_offset + item]);
    if (BLOCK_UNITS == 0) {
        y[args.y_offset + i] = row < args.rows ? plain_value(row * args.units + unit) : 0.0;
        return;
    }
    unit_codes w = unit_codes(uvec4(0), uvec4(0), vec2(0), vec2(0));
    if (row < args.rows)
        w = decode_row_unit(args.w_offset + row * args.row_bytes, unit);
    uint at = args.y_offset + item * args.units * UNIT_ELEMENTS + unit_position(unit);
    write_run(at, w.first, w.scale.x, w.bias.x);
    write_run(at + DISTANCE, w.second, w.scale.y, w.bias.y);
}
