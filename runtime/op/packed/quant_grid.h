/* The formats whose codes index a table, the grid. This declares decoders for the table of
 * quant_format.c, and the grids, which kernels read as a constant operand. */
#ifndef RLXVK_QUANT_GRID_H
#define RLXVK_QUANT_GRID_H

#include "base/base.h"

/* The codes that a format indexes. If it has no grid, NULL and 0. */
const uint16_t *quant_grid_find(uint32_t type, uint32_t *out_count);

void quant_decode_iq2_xxs(const uint8_t *block, float *y, float *min_term);
void quant_decode_iq2_xs(const uint8_t *block, float *y, float *min_term);
void quant_decode_iq2_s(const uint8_t *block, float *y, float *min_term);
void quant_decode_iq3_xxs(const uint8_t *block, float *y, float *min_term);
void quant_decode_iq3_s(const uint8_t *block, float *y, float *min_term);
void quant_decode_iq1_s(const uint8_t *block, float *y, float *min_term);
void quant_decode_iq1_m(const uint8_t *block, float *y, float *min_term);

#endif
