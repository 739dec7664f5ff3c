/* Functions on rows, based on the decoders of a group. Include this behind the decoders. The
 * includer may define DECODE_RAW, which decodes more formats of the group than decode_raw. */
#ifndef DECODE_RAW
#define DECODE_RAW decode_raw
#endif

#if DEQUANT_GROUP != DEQUANT_SMALL
vec4 code_values(uint word)
{
    return byte_values(word, MASK, CENTER);
}
float code_value(uint word, uint bit)
{
    return code_at(word, MASK, bit, CENTER);
}
void fill_levels()
{
}
#endif

/* Units of group common can be loaded, and their words shifted into place, some time before they
 * are decoded. The other groups decode when they load. */
#if DEQUANT_GROUP != DEQUANT_COMMON
#define unit_words unit_codes
unit_words load_unit(uint block, uint u)
{
    return DECODE_RAW(load_raw(block, u), block, u);
}
unit_codes decode_words(unit_words w, uint u)
{
    return w;
}
#endif

/* ---- Addresses of a row's units ---- */

uint block_at(uint row, uint index)
{
    return row + index / max(BLOCK_UNITS, 1) * BLOCK_BYTES;
}
uint place_in_block(uint index)
{
    return index % max(BLOCK_UNITS, 1);
}

/* Unit `index` of the row whose first byte is `row`. */
unit_raw load_row_raw(uint row, uint index)
{
    return load_raw(block_at(row, index), place_in_block(index));
}
unit_codes decode_row_raw(unit_raw raw, uint row, uint index)
{
    return DECODE_RAW(raw, block_at(row, index), place_in_block(index));
}
unit_codes decode_row_unit(uint row, uint index)
{
    return decode_row_raw(load_row_raw(row, index), row, index);
}

unit_words load_row_unit(uint row, uint index)
{
    return load_unit(block_at(row, index), place_in_block(index));
}
unit_codes decode_row_words(unit_words w, uint index)
{
    return decode_words(w, place_in_block(index));
}
