/*
 * How x lies for dequant_fragment: in the order in which lanes have weights (lane_element in
 * units.glsl), in steps of UNIT_K.
 *
 * The right operands are held as they are given: of a step of FRAGMENT_ROWS rows, every lane's four
 * words for UNIT_N rows, then those for the next, in the order of matrix_layout.glsl. After the
 * steps of a chunk come those of the sums of x that its runs' mins are multiplied with, as far as
 * the format has mins: 16 of them, as [half of the chunk][lane][run], rounded to halves, then what
 * was lost by that.
 *
 * The includer declares UNIT_N, UNIT_K, ROWS (of a lane) and AFFINE.
 */
#include "args/matmul.h"
#include "args/packed.h"

const uint FRAGMENT_UNITS = FRAGMENT_CHUNK / 32; /* of a chunk */
const uint CHUNK_STEPS = (FRAGMENT_CHUNK + (AFFINE ? 2 * FRAGMENT_SUMS : 0)) / UNIT_K;
const uint TILES_X = FRAGMENT_ROWS / UNIT_N;
const uint STEP_PAIRS = UNIT_K / (2 * MATRIX_LANES); /* of a row, that a lane has in a step */
const uint BESIDE = UNIT_N / ROWS; /* rows of which lanes hold the first */

/* Vector 0 of a step of a tile. */
uint fragment_vector(uint tile, uint chunks, uint chunk, uint step)
{
    return ((tile * chunks + chunk) * CHUNK_STEPS + step) * TILES_X * BESIDE * MATRIX_LANES;
}

/* The word with elements `at` and at + 1 of a row of x, in a chunk's order. */
uint fragment_word(uint row, uint chunks, uint chunk, uint at)
{
    uint inside = at % UNIT_K, lane = inside / 2 % MATRIX_LANES, pair = inside / 2 / MATRIX_LANES;
    uint own = row % UNIT_N, before = row % FRAGMENT_ROWS / UNIT_N * BESIDE + own % BESIDE;
    uint vector = fragment_vector(row / FRAGMENT_ROWS, chunks, chunk, at / UNIT_K);
    return (vector + before * MATRIX_LANES + lane) * 4 + own / BESIDE * STEP_PAIRS + pair;
}
