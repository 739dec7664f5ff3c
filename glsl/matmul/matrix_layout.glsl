/*
 * A way to spread a matrix over the lanes of a subgroup: LANES lanes share a row, and each holds
 * pairs of neighbours of ROWS rows. Some devices keep their sums and left operands so, and right
 * ones turned (matrix_probe.glsl finds out); there, elements can be taken and given without going
 * through memory. Include after UNIT_M, UNIT_N and ROWS are declared.
 */
#include "args/matmul.h"

const uint LANES = MATRIX_LANES, LANE_COUNT = LANES * UNIT_M / ROWS; /* of a row, of a subgroup */
const uint OWN = UNIT_N / LANES, UNIT = ROWS * OWN; /* elements of a lane, in a row and in all */

/* Place of the lane's element e. */
uint row_of(uint e)
{
    return e / OWN * (UNIT_M / ROWS) + gl_SubgroupInvocationID / LANES;
}
uint column_of(uint e)
{
    return e % OWN / 2 * (2 * LANES) + gl_SubgroupInvocationID % LANES * 2 + e % 2;
}
