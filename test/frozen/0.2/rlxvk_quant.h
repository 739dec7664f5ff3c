#ifndef RLXVK_QUANT_H
#define RLXVK_QUANT_H
#include <rlxvk_ops.h>
#ifdef __cplusplus
extern "C" {
#endif
uint64_t rlxvk_quant_row_bytes(rlxvk_quant_format format, uint64_t k);
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_encode_row(rlxvk_quant_format format, const float *values,
                                                     uint64_t k, void *out_bytes);
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_decode_row(rlxvk_quant_format format, const void *bytes,
                                                     uint64_t k, float *out_values);
typedef struct rlxvk_quant_sizes {
    uint64_t code_bytes;
    uint64_t scale_count;
    uint64_t extra_count;
    size_t struct_size;
} rlxvk_quant_sizes;
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_matrix_sizes(const rlxvk_quant_scheme *scheme, uint64_t k,
                                                       rlxvk_quant_sizes *out_sizes);
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_encode_matrix(const rlxvk_quant_scheme *scheme,
                                                        uint64_t k, const float *w, void *out_codes,
                                                        void *out_scales, float *out_extra);
RLXVK_MUST_CHECK rlxvk_status rlxvk_quant_decode_matrix(const rlxvk_quant_scheme *scheme,
                                                        uint64_t k, const void *codes,
                                                        const void *scales, const float *extra,
                                                        float *out_w);
#ifdef __cplusplus
}
#endif
#endif
