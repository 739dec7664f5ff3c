#ifndef RLXVK_OPS_SIGNAL_H
#define RLXVK_OPS_SIGNAL_H
#include <rlxvk_ops_domain.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct rlxvk_welch_options {
    int64_t n_segments;
    int64_t n_fft;
    bool unfolded;
    size_t struct_size;
} rlxvk_welch_options;
rlxvk_tensor rlxvk_welch_power(rlxvk_graph *g, rlxvk_tensor spectrum,
                               const rlxvk_welch_options *options);
typedef struct rlxvk_welch_frame_options {
    int64_t length, hop;
    int64_t n_fft;
    bool unfolded;
    double scale;
    size_t struct_size;
} rlxvk_welch_frame_options;
rlxvk_tensor rlxvk_welch(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor window,
                         const rlxvk_welch_frame_options *options);
rlxvk_tensor rlxvk_welch_peaks(rlxvk_graph *g, rlxvk_tensor spectrum, int64_t k,
                               int64_t n_segments);
double rlxvk_signal_welch_scale(const float *window, size_t n, double rate, bool density);
rlxvk_tensor rlxvk_overlap_add(rlxvk_graph *g, rlxvk_tensor frames, rlxvk_tensor window,
                               int64_t hop);
typedef struct rlxvk_istft_options {
    int64_t length, hop;
    int64_t n_fft;
    rlxvk_fft_norm norm;
    bool center;
    int64_t samples;
    size_t struct_size;
} rlxvk_istft_options;
rlxvk_tensor rlxvk_istft(rlxvk_graph *g, rlxvk_tensor spectra, rlxvk_tensor window,
                         const rlxvk_istft_options *options);
rlxvk_tensor rlxvk_signal_hamming(rlxvk_graph *g, int64_t n, bool periodic);
rlxvk_tensor rlxvk_signal_blackman(rlxvk_graph *g, int64_t n, bool periodic);
rlxvk_tensor rlxvk_signal_kaiser(rlxvk_graph *g, int64_t n, double beta, bool periodic);
rlxvk_tensor rlxvk_upfirdn(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor taps, int64_t up,
                           int64_t down);
rlxvk_tensor rlxvk_resample(rlxvk_graph *g, rlxvk_tensor x, int64_t up, int64_t down);
typedef enum rlxvk_log_mel_scope {
    RLXVK_LOG_MEL_FRAME = 0,
    RLXVK_LOG_MEL_CLIP = 1
} rlxvk_log_mel_scope;
rlxvk_tensor rlxvk_log_mel(rlxvk_graph *g, rlxvk_tensor spectrum, rlxvk_tensor filters,
                           rlxvk_log_mel_scope scope);
rlxvk_tensor rlxvk_log_mel_slopes(rlxvk_graph *g, rlxvk_tensor spectrum, rlxvk_tensor filters,
                                  rlxvk_tensor dy, rlxvk_log_mel_scope scope);
rlxvk_tensor rlxvk_log_mel_backward(rlxvk_graph *g, rlxvk_tensor spectrum, rlxvk_tensor filters,
                                    rlxvk_tensor dy, rlxvk_log_mel_scope scope);
typedef enum rlxvk_mel_scale { RLXVK_MEL_SLANEY = 0, RLXVK_MEL_HTK = 1 } rlxvk_mel_scale;
typedef struct rlxvk_mel_options {
    double rate;
    int64_t n_fft, n_mels;
    double low, high;
    rlxvk_mel_scale scale;
    bool unnormalized;
    size_t struct_size;
} rlxvk_mel_options;
rlxvk_tensor rlxvk_signal_mel_filterbank(rlxvk_graph *g, const rlxvk_mel_options *options);
rlxvk_tensor rlxvk_mfcc(rlxvk_graph *g, rlxvk_tensor bands, int64_t count, double lifter);
#ifdef __cplusplus
}
#endif
#endif
