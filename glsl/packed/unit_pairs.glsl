/*
 * Codes of packed weights in registers. Used by kernels whose lanes pass weights to the matrix
 * units pair by pair, in the order of lane_element (units.glsl). The includer declares OWN_ROWS,
 * the number of rows of weights of which a lane holds a unit.
 */
uvec4 codes[2 * OWN_ROWS]; /* of both runs of the lane's unit, row by row */

/* The number of bits that the codes of the second run lie above those of the first in the same
 * words. */
const uint UPPER = MASK == 15 ? 4 : MASK == 3 ? 2 : 0;

void set_codes(uint i, uvec4 first, uvec4 second)
{
    codes[2 * i] = first;
    codes[2 * i + 1] = UPPER != 0 ? first : second;
}

/* Does the pair belong to the second run? */
bool is_second(uint pair)
{
    return pair / 2 % 2 == 1;
}

/* The codes of pair `pair` of row i as two halves, plus 1024. Codes in the upper nibbles count 16
 * times. */
uint half_codes(uint i, uint pair)
{
    bool second = is_second(pair);
    uint word = codes[2 * i + uint(second)][pair / 4] >> pair % 2 * 8;
    uint sign = (CENTER & SIGNED) * 0x10001, mask = MASK * 0x10001 << (second ? UPPER : 0);
    uint over = (0x64006400 | sign) + (args.last_word >> 31); /* no literal */
    return word & mask ^ over;
}
