/*
 * The layout of x for dequant_fragment. Elements are in the order in which lanes hold weights
 * (lane_element in units.glsl), in steps of UNIT_K.
 *
 * Right operands are stored as the lanes pass them to the matrix units. A step of FRAGMENT_ROWS
 * rows holds every lane's four words for UNIT_N rows, then those for the next UNIT_N rows, in the
 * order of matrix_layout.glsl. If the format has mins, sums of x follow the steps of a chunk,
 * because the mins are multiplied by them. There are 16, one for each run, as [half of the
 * chunk][lane][run]: first the sums rounded to halves, then the rounding errors.
 *
 * The includer declares UNIT_N, UNIT_K, ROWS (of a lane) and AFFINE.
 */
#include "args/matmul.h"
#include "args/packed.h"

const uint FRAGMENT_UNITS = FRAGMENT_CHUNK / 32; /* in a chunk */
const uint CHUNK_STEPS = (FRAGMENT_CHUNK + (AFFINE ? 2 * FRAGMENT_SUMS : 0)) / UNIT_K;
const uint TILES_X = FRAGMENT_ROWS / UNIT_N;
const uint STEP_PAIRS = UNIT_K / (2 * MATRIX_LANES); /* pairs of a row that a lane has in a step */
const uint BESIDE = UNIT_N / ROWS; /* rows of which the first is held by different lanes */

/* The index of vector 0 of a step of a tile. */
uint fragment_vector(uint tile, uint chunks, uint chunk, uint step)
{
    return ((tile * chunks + chunk) * CHUNK_STEPS + step) * TILES_X * BESIDE * MATRIX_LANES;
}

/* The word that holds elements `at` and at + 1 of a row of x, in the order of the chunk. */
uint fragment_word(uint row, uint chunks, uint chunk, uint at)
{
    uint inside = at % UNIT_K, lane = inside / 2 % MATRIX_LANES, pair = inside / 2 / MATRIX_LANES;
    uint own = row % UNIT_N, before = row % FRAGMENT_ROWS / UNIT_N * BESIDE + own % BESIDE;
    uint vector = fragment_vector(row / FRAGMENT_ROWS, chunks, chunk, at / UNIT_K);
    return (vector + before * MATRIX_LANES + lane) * 4 + own / BESIDE * STEP_PAIRS + pair;
}
