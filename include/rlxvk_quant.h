/*
 * rlxvk: packing weights on the host, and decoding them exactly. There are two kinds of packed
 * weights: rows of GGUF blocks, for rlxvk_dequant_matmul and similar ops, and matrices with side
 * scales, for rlxvk_dequant_matmul_scaled.
 *
 * The encoders compute each block's scale from its extreme values and round to nearest. They do not
 * search for better scales, because they do not know which weights are important. You may use
 * another encoder instead: only decoding is fixed. Calls are pure functions of their arguments, and
 * any thread may make them. A call that fails writes nothing.
 */
#ifndef RLXVK_QUANT_H
#define RLXVK_QUANT_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Rows of blocks ---- */

/* Bytes of a row of k elements. The result is 0 if there is no such format, if k is not whole
 * blocks (rlxvk_quant_query tells the elements and bytes of a block), or if the size overflows. For
 * example, a Q8_0 block has 32 elements in 34 bytes, so a row of 64 elements takes 68 bytes. */
uint64_t rlxvk_quant_row_bytes(rlxvk_quant_format format, uint64_t k);

/*
 * Packs k values into rlxvk_quant_row_bytes(format, k) bytes. In the table, x is a value and d the
 * scale of its block. The block's value of largest magnitude, with its sign, is xmax (if there are
 * several, the first). Its magnitude is amax.
 *
 *   F32 F16 BF16    each value, rounded to nearest even; NaN and infinities are kept
 *   Q4_0 Q5_0       d = xmax / -8, xmax / -16; the code is x / d rounded
 *   Q4_1 Q5_1       minimum m = min x, d = (max x - m) / 15, (max x - m) / 31
 *   Q8_0 Q8_K       d = amax / 127; Q8_K: d = -xmax / 127, with the sums of each 16 codes
 *   IQ4_NL          d = xmax / -127; the code is that of the level nearest to x / d
 *   MXFP4           32 values have the scale 2^(floor(log2 amax) - 2)
 *   NVFP4           16 values have the scale amax / 6 as E4M3; beyond 6 * 448 values saturate
 *   MXFP4 NVFP4     the code is the one that decodes to the value nearest to x
 *   Q1_0            d = mean |x|; the code is the sign of x (0 counts as plus)
 *   Q2_0            the least |d| for which -d .. 2d encloses the block
 *   TQ1_0 TQ2_0     d = amax; x / d is rounded to -1, 0 or 1
 *   Q2_K Q4_K Q5_K  16 (Q2_K) or 32 values have a minimum and a scale, of their range with 0. Both
 *                   are rounded to 4 (Q2_K) or 6 bits relative to the largest of the block; codes
 *                   are computed with the scales as decoded
 *   Q3_K Q6_K       16 values have the scale xmax / -4 (Q3_K) or xmax / -32 (Q6_K), rounded to 6 or
 *                   8 bits relative to the scale of largest magnitude in the block
 *   IQ4_XS          the same for 32 values with xmax / -127 and 6 bits
 *
 * A block of zeros decodes to zeros. If k is 0, the call succeeds and the pointers may be NULL.
 *   E_UNSUPPORTED   the format is not in the table. The IQ1, IQ2 and IQ3 formats are not, because
 *                   their few levels are useless without weights of importance
 *   E_SHAPE         k is not whole blocks
 *   E_RANGE         a value in a block is NaN or infinite
 *   E_RANGE         a scale or minimum would overflow binary16 (above 65504)
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_encode_row(rlxvk_quant_format format, const float *values,
                                                     uint64_t k, void *out_bytes);

/* Decodes a packed row to its k values. The result is exact, because each step of the decoding is
 * defined as one f32 operation. A code that stands for NaN or infinity decodes to it. If k is 0,
 * the pointers may be NULL.
 *   E_UNSUPPORTED   there is no such format
 *   E_SHAPE         k is not whole blocks */
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_decode_row(rlxvk_quant_format format, const void *bytes,
                                                     uint64_t k, float *out_values);

/* ---- Matrices with side scales ---- */

/* Sizes of the tensors of a packed matrix [k, n]. */
typedef struct rlxvk_quant_sizes {
    uint64_t code_bytes;  /* bytes of operand w: k n codes of 8 or 4 bits, no gaps, rounded up */
    uint64_t scale_count; /* f32 values, or bytes if the kind has scales of one byte */
    uint64_t extra_count; /* f32 zero points, or the one global factor; 0: none of them */
    size_t struct_size;
} rlxvk_quant_sizes;

/* Computes the sizes of the tensors of a packed matrix [k, n]. Each column has ceil(k / block)
 * blocks (E4M3, E5M2: one) with one scale each; the last block may be shorter.
 *   E_ATTR          there is no such kind; or n is outside 0 .. 2^31 - 1
 *   E_ATTR          the block is wrong. INT8, INT4 and their ASYM kinds take 1 .. 2^31 - 1. NVFP4
 *                   takes 16 and MXFP4 takes 32; 0 means the same. E4M3 and E5M2 ignore it
 *   E_TOO_LARGE     a size does not fit 64 bits */
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_matrix_sizes(const rlxvk_quant_scheme *scheme, uint64_t k,
                                                       rlxvk_quant_sizes *out_sizes);

/*
 * Packs w [k, n] (row-major) into those tensors; `extra` may be NULL if extra_count is 0. The scale
 * of each block of a column is as follows. rlxvk_ops.h has the formulas of decoding.
 *
 *   INT8, INT4     scale = amax / 127, xmax / -8
 *   INT8_ASYM      scale = (max - min) / 255, of a range that includes 0; the zero point is the
 *                  code of 0, rounded to a whole number
 *   INT4_ASYM      the same with scale = (max - min) / 15
 *   E4M3, E5M2     one scale for each column: amax / 448, amax / 57344
 *   NVFP4          global = amax of the whole matrix / (6 * 448); scale = amax / 6 / global as E4M3
 *   MXFP4          scale = 2^(floor(log2 amax) - 2)
 *
 * Halves round away from zero in integer codes and to even in floating-point codes; both saturate.
 *   E_RANGE        a value is NaN or infinite
 *   E_RANGE        a magnitude is above 2^126 and the kind has zero points
 *   and the errors of rlxvk_quant_matrix_sizes.
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_encode_matrix(const rlxvk_quant_scheme *scheme,
                                                        uint64_t k, const float *w, void *out_codes,
                                                        void *out_scales, float *out_extra);

/* Decodes w [k, n] as rlxvk_dequant_matmul_scaled sees it. Codes and scale bytes that are NaN or
 * infinite give 0. Errors as rlxvk_quant_matrix_sizes, and E_OUT_OF_HOST_MEMORY. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_decode_matrix(const rlxvk_quant_scheme *scheme,
                                                        uint64_t k, const void *codes,
                                                        const void *scales, const float *extra,
                                                        float *out_w);

#ifdef __cplusplus
}
#endif

#endif
