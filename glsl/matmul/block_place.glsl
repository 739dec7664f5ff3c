/*
 * Where the elements of a block lie. A block is one operand of the matrix units: BLOCK_ROWS rows of
 * UNIT_K halves. BY_LANES, it has eight halves for each lane of a subgroup, in the lane's order
 * (matrix_layout.glsl). Otherwise its rows follow one another. The includer declares the three.
 */
#include "args/matmul.h"

const uint OCTETS = UNIT_K / 8, BLOCK = BLOCK_ROWS * OCTETS; /* octets of a row, of a block */
const uint LANE_ROWS = 4 / OCTETS;                           /* that a lane has a part of */

/* Row and pair of the block that go into word `word` of its octet `inside`. */
uvec2 place_of_word(uint inside, uint word)
{
    if (!BY_LANES)
        return uvec2(inside / OCTETS, inside % OCTETS * 4 + word);
    uint row = word / OCTETS * (BLOCK_ROWS / LANE_ROWS) + inside / MATRIX_LANES;
    return uvec2(row, word % OCTETS * MATRIX_LANES + inside % MATRIX_LANES);
}
