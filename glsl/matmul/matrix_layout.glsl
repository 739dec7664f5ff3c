/*
 * One way to spread a matrix over the lanes of a subgroup. LANES lanes share a row, and each lane
 * holds pairs of neighbours from ROWS rows. Some devices keep their accumulators and left operands
 * like this, and right operands transposed; matrix_probe.glsl finds out. On these devices lanes can
 * read and write elements without going through memory. Include this after the declarations of
 * UNIT_M, UNIT_N and ROWS.
 */
#include "args/matmul.h"

const uint LANES = MATRIX_LANES, LANE_COUNT = LANES * UNIT_M / ROWS; /* of a row, of a subgroup */
const uint OWN = UNIT_N / LANES, UNIT = ROWS * OWN; /* elements of a lane: per row, in all */

/* Row and column of the lane's element e. */
uint row_of(uint e)
{
    return e / OWN * (UNIT_M / ROWS) + gl_SubgroupInvocationID / LANES;
}
uint column_of(uint e)
{
    return e % OWN / 2 * (2 * LANES) + gl_SubgroupInvocationID % LANES * 2 + e % 2;
}
