/* What the decoders of a group make possible: include behind them. The includer may define
 * DECODE_ANY, which knows more formats of the group than decode_unit. */
#ifndef DECODE_ANY
#define DECODE_ANY decode_unit
#endif

#if DEQUANT_GROUP != DEQUANT_SMALL
vec4 code_values(uint word)
{
    return byte_values(word, MASK, CENTER);
}
void fill_levels()
{
}
#endif

/* Those of group common can be loaded some time before they are decoded. */
#if DEQUANT_GROUP != DEQUANT_COMMON
#define unit_words unit_codes
unit_words load_unit(uint block, uint u)
{
    return DECODE_ANY(block, u);
}
unit_codes decode_words(unit_words w, uint u)
{
    return w;
}
#endif

/* ---- Where a row's unit lies ---- */

/* Unit `index` of the row whose first byte is `row`. */
unit_codes decode_row_unit(uint row, uint index)
{
    uint units = max(BLOCK_UNITS, 1);
    return DECODE_ANY(row + index / units * BLOCK_BYTES, index % units);
}

unit_words load_row_unit(uint row, uint index)
{
    uint units = max(BLOCK_UNITS, 1);
    return load_unit(row + index / units * BLOCK_BYTES, index % units);
}
unit_codes decode_row_words(unit_words w, uint index)
{
    return decode_words(w, index % max(BLOCK_UNITS, 1));
}
