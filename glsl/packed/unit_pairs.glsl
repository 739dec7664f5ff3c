/*
 * Codes of packed weights in registers, for kernels whose lanes give weights to the matrix units
 * pair by pair, in the order of lane_element (units.glsl). The includer declares OWN_ROWS, how many
 * rows of weights a lane has a unit of.
 */
uvec4 codes[2 * OWN_ROWS]; /* of both runs of the lane's unit, row by row */

/* By how many bits the second run's codes lie above the first's, in the same words. */
const uint UPPER = MASK == 15 ? 4 : MASK == 3 ? 2 : 0;

void set_codes(uint i, uvec4 first, uvec4 second)
{
    codes[2 * i] = first;
    codes[2 * i + 1] = UPPER != 0 ? first : second;
}

/* Whether the pair is of the second run. */
bool is_second(uint pair)
{
    return pair / 2 % 2 == 1;
}

/* The codes of pair `pair` of row i as two halves, 1024 more, upper nibbles times 16. */
uint half_codes(uint i, uint pair)
{
    bool second = is_second(pair);
    uint word = codes[2 * i + uint(second)][pair / 4] >> pair % 2 * 8;
    uint sign = (CENTER & SIGNED) * 0x10001, mask = MASK * 0x10001 << (second ? UPPER : 0);
    uint over = (0x64006400 | sign) + (args.last_word >> 31); /* kept from the compiler */
    return word & mask ^ over;
}
