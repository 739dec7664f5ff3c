/* Rounding f32 to the small floats of packed weights. Exact: the rules are on values, not on the
 * processor's rounding. The codes' values: quant_fp4_levels, quant_ue4m3_to_f32 and
 * quant_e8m0_to_f32 of quant_format.h, and the tables of quant_scheme.c. */
#ifndef RLXVK_QUANT_CODEC_H
#define RLXVK_QUANT_CODEC_H

#include "base/base.h"

/* Nearest, ties to even, magnitudes above the largest finite value (448, 57344) to that one. NaN
 * gives 0x7f. */
uint8_t quant_e4m3_from_f32(float value);
uint8_t quant_e5m2_from_f32(float value);
/* E2M1 the same way: largest 6. NaN gives 0. */
uint8_t quant_fp4_from_f32(float value);
/* The E2M1 code whose value times `scale` is nearest to value; the lowest one on ties. */
uint8_t quant_fp4_nearest(float value, float scale);
/* Unsigned E4M3: 0 for what is not above 0, halves away from zero, largest 448. */
uint8_t quant_ue4m3_from_f32(float value);
/* floor(log2 largest) - 2 as E8M0, so that E2M1 codes reach the largest value; 0 for 0. */
uint8_t quant_e8m0_for_fp4(float largest);
/* The index of the IQ4 level nearest to `value`; of two equally near ones the upper. */
int quant_iq4_nearest(float value);

/* Whether a scale code stands for a number: 255 of E8M0, 0x7f of E4M3 and its sign bit do not. */
bool quant_e8m0_valid(uint32_t code);
bool quant_ue4m3_valid(uint32_t code);

#endif
