/*
 * rlxvk: packing weights on the host. Rows of GGUF blocks for rlxvk_dequant_matmul and its kin,
 * matrices with side scales for rlxvk_dequant_matmul_scaled; and their exact decoding.
 *
 * These encoders round to nearest with the plain scale of each block's extremes; they do not search
 * for better scales and know nothing of which weights matter. What decodes is normative: bytes of
 * any other encoder are as good. Calls are pure functions of their arguments; any thread may make
 * them. A call that fails writes nothing.
 */
#ifndef RLXVK_QUANT_H
#define RLXVK_QUANT_H

#include <rlxvk_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Rows of blocks ---- */

/* Bytes of a row of k elements; 0 when there is no such format, k is not whole blocks
 * (rlxvk_quant_query tells the block's elements) or the size overflows. */
uint64_t rlxvk_quant_row_bytes(rlxvk_quant_format format, uint64_t k);

/*
 * Packs k values into rlxvk_quant_row_bytes(format, k) bytes. With d the block's scale, x a value,
 * xmax the value of largest magnitude with its sign (the first on ties), amax its magnitude:
 *
 *   F32 F16 BF16    each value, to nearest even; NaN and infinities are kept
 *   Q4_0 Q5_0       d = xmax / -8, xmax / -16; the code is x / d rounded
 *   Q4_1 Q5_1       minimum m = min x, d = (max x - m) / 15, / 31
 *   Q8_0 Q8_K       d = amax / 127; Q8_K: -xmax / 127, and the sums of 16 codes
 *   IQ4_NL          d = xmax / -127; the level nearest to x / d
 *   MXFP4 NVFP4     power of two floor(log2 amax) - 2 of 32 values; amax / 6 of 16 as E4M3, where
 *                   values beyond 6 * 448 saturate; the code whose decoded value is nearest
 *   Q1_0            d = mean |x|; the sign (0 counts as plus)
 *   Q2_0            the least |d| for which -d .. 2d encloses the block
 *   TQ1_0 TQ2_0     d = amax; x / d rounded to -1, 0, 1
 *   Q2_K Q4_K Q5_K  each 16 (Q2_K) or 32 values: minimum and scale of their range with 0, rounded
 *                   to 4 or 6 bits relative to the block's largest; codes by the decoded scales
 *   Q3_K Q6_K       each 16 values: scale xmax / -4, xmax / -32, rounded to 6 or 8 bits relative to
 *   IQ4_XS          the one of largest magnitude; IQ4_XS: each 32, xmax / -127, 6 bits
 *
 * An all-zero block decodes to zeros. E_UNSUPPORTED: the IQ1, IQ2 and IQ3 formats, whose few levels
 * are of no use without weights of importance. E_SHAPE: k is not whole blocks. E_RANGE: a value of
 * a block is NaN or infinite, or a scale or minimum would overflow binary16 (above 65504).
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_encode_row(rlxvk_quant_format format, const float *values,
                                                     uint64_t k, void *out_bytes);

/* The k values of a packed row, exactly: every operation one f32 operation. Codes that are NaN or
 * infinite give what they say. E_UNSUPPORTED: no such format. E_SHAPE: k is not whole blocks. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_decode_row(rlxvk_quant_format format, const void *bytes,
                                                     uint64_t k, float *out_values);

/* ---- Matrices with side scales ---- */

/* What the tensors of a packed matrix [k, n] hold. */
typedef struct rlxvk_quant_sizes {
    uint64_t code_bytes;  /* of w */
    uint64_t scale_count; /* f32 values, or bytes where the kind's scales are bytes */
    uint64_t extra_count; /* f32 zero points, or the one global factor; 0: no such tensor */
    size_t struct_size;
} rlxvk_quant_sizes;

/* E_ATTR: no such kind, a block outside 1 .. 2^31 - 1 where the kind needs one, or not the kind's
 * own (0 stands for that), n outside 0 .. 2^31 - 1. E_TOO_LARGE: a size does not fit 64 bits. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_matrix_sizes(const rlxvk_quant_scheme *scheme, uint64_t k,
                                                       rlxvk_quant_sizes *out_sizes);

/*
 * Packs w [k, n] (row-major) into those tensors; `extra` may be NULL where there is none. For each
 * block of a column, by the decoding in rlxvk_ops.h:
 *
 *   INT8, INT4   scale = amax / 127; xmax / -8
 *   INT8_ASYM,   scale = (max - min) / 255, / 15, of a range that includes 0; the zero point is the
 *   INT4_ASYM    whole code of 0
 *   E4M3, E5M2   one scale a column: amax / 448, amax / 57344
 *   NVFP4        global = amax of all / (6 * 448); scale = amax / 6 / global as E4M3
 *   MXFP4        scale = 2^(floor(log2 amax) - 2)
 *
 * Integer codes round halves away from zero, floating ones to even; both saturate. E_RANGE: a value
 * is NaN or infinite, or above 2^126 for the kinds with zero points. Also
 * rlxvk_quant_matrix_sizes' errors.
 */
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_encode_matrix(const rlxvk_quant_scheme *scheme,
                                                        uint64_t k, const float *w, void *out_codes,
                                                        void *out_scales, float *out_extra);

/* w [k, n] as rlxvk_dequant_matmul_scaled sees it: codes and scale bytes that are NaN or infinite
 * give 0. Errors as rlxvk_quant_matrix_sizes, and E_OUT_OF_HOST_MEMORY. */
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_decode_matrix(const rlxvk_quant_scheme *scheme,
                                                        uint64_t k, const void *codes,
                                                        const void *scales, const float *extra,
                                                        float *out_w);

#ifdef __cplusplus
}
#endif

#endif
