/* Rounds f32 to the small floats of packed weights. The results are exact, because they do not
 * depend on the processor's rounding. The values of codes are in quant_format.h (quant_fp4_levels,
 * quant_ue4m3_to_f32, quant_e8m0_to_f32) and in the tables of quant_scheme.c. */
#ifndef RLXVK_QUANT_CODEC_H
#define RLXVK_QUANT_CODEC_H

#include "base/base.h"

/* To nearest, ties to even. Magnitudes above the largest finite value (448, 57344) become that
 * value. NaN gives 0x7f. */
uint8_t quant_e4m3_from_f32(float value);
uint8_t quant_e5m2_from_f32(float value);
/* E2M1 in the same way; the largest value is 6. NaN gives 0. */
uint8_t quant_fp4_from_f32(float value);
/* The E2M1 code whose value, times `scale`, is nearest to `value`. On ties it is the lowest
 * code. */
uint8_t quant_fp4_nearest(float value, float scale);
/* Unsigned E4M3. If the value is not above 0, the code is 0. Halves round away from zero; the
 * largest value is 448. */
uint8_t quant_ue4m3_from_f32(float value);
/* floor(log2 largest) - 2 as E8M0, so that E2M1 codes reach the largest value. If largest is 0, the
 * code is 0. */
uint8_t quant_e8m0_for_fp4(float largest);
/* The index of the IQ4 level nearest to `value`. If two are equally near, it is the upper one. */
int quant_iq4_nearest(float value);

/* Is a scale code a number? 255 of E8M0 is not, nor is 0x7f of E4M3, nor a code with E4M3's sign
 * bit. */
bool quant_e8m0_valid(uint32_t code);
bool quant_ue4m3_valid(uint32_t code);

#endif
