/*
 * The ops of signals beyond transforms: averaged spectra, frames to signals, mel spectra. Included
 * by rlxvk_ops_domain.h, which has transforms, frames and stft; the common rules of rlxvk_ops.h
 * hold here too.
 */
#ifndef RLXVK_OPS_SIGNAL_H
#define RLXVK_OPS_SIGNAL_H

#include <rlxvk_ops_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Averaged power (P. D. Welch 1967) ---- */

typedef struct rlxvk_welch_options {
    int64_t n_segments; /* 0: 1; rows of the spectrum that are averaged into one */
    int64_t n_fft;      /* 0: half the last dim, the spectrum then being whole */
    bool unfolded;      /* bins count once; default: what bins above n_fft / 2 have is added */
    size_t struct_size;
} rlxvk_welch_options;

/* Power of blocks of real signals' spectra: [.., R, 2 n_fft], or half of each, [.., R, 2 half],
 * half = n_fft / 2 + 1, as stft makes them -> [.., R / n_segments, half]: c / n_segments times the
 * sum over n_segments rows of re^2 + im^2, c = 2 but for bin 0 and, where n_fft is even, the last;
 * 1 everywhere if unfolded. Rank 1 is one row. Relative error u (6 + 2 sqrt n_segments). F32.
 * E_SHAPE: rank 0, rows that n_segments does not divide, a last dim that is neither; E_ATTR:
 * negative options; E_DTYPE. Gradient: of the spectrum. */
rlxvk_tensor rlxvk_welch_power(rlxvk_graph *g, rlxvk_tensor spectrum,
                               const rlxvk_welch_options *options);

typedef struct rlxvk_welch_frame_options {
    int64_t length, hop; /* >= 1 */
    int64_t n_fft;       /* 0: length; at least that: frames are continued with zeros */
    bool unfolded;       /* as in rlxvk_welch_options */
    double scale;        /* 0: 1; that of rlxvk_signal_welch_scale gives densities */
    size_t struct_size;
} rlxvk_welch_frame_options;

/* Welch's average of signals x [.., T], their frames times `window` [length] (or RLXVK_NONE) ->
 * [.., half(n_fft)]: c scale / F times the sum over F = 1 + (T - length) / hop frames of |X|^2, c
 * as above; what welch_power makes of stft's spectra, times scale, without those in memory where a
 * workgroup holds n_fft points (most lengths up to 4096 that have no prime factor above 13; others
 * are made of both, of up to 2^24 samples). Error, with P such a sum, S that of the spectra's mean
 * squares and e the relative error of rlxvk_fft: c scale / F (2 e sqrt(P S) + e^2 S + u (8 +
 * 2 sqrt F) P). F32. E_ATTR: options; E_SHAPE: no frame, a window of another length; E_DTYPE.
 * Gradients: of both; up to 2^24 samples. */
rlxvk_tensor rlxvk_welch(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor window,
                         const rlxvk_welch_frame_options *options);

/* The k bins of most power, averaged over n_segments rows each: spectrum [B n_segments, 2 n_fft]
 * -> [B, 2 k] of pairs (bin, power), the largest first, ties by the lower bin, NaN last; (-1, 0)
 * where there are fewer than k bins. E_SHAPE; E_ATTR: k or n_segments below 1; E_INDEX_RANGE: more
 * than 2^24 bins; E_TOO_LARGE. Made of welch_power, topk and take_along_axis; gradient: of the
 * powers. */
rlxvk_tensor rlxvk_welch_peaks(rlxvk_graph *g, rlxvk_tensor spectrum, int64_t k,
                               int64_t n_segments);

/* What such powers of segments times `window` [n] are multiplied by: 1 / (rate sum w^2) for a
 * density, in units of x squared per unit of rate; 1 / (sum w)^2 for the power of lines. */
double rlxvk_signal_welch_scale(const float *window, size_t n, double rate, bool density);

/* ---- Frames to signals ---- */

/* Frames [.., F, L], sample j of frame f being sample f hop + j of the result, [.., (F - 1) hop +
 * L], added up in the order of frames; with a window [L] (or RLXVK_NONE), times it, and divided by
 * what its squares add up to, 0 where that is not above 1e-11. hop may be larger than L: zeros in
 * between. Error u (2 m + 10) of the summed magnitudes, m frames that overlap. F32. E_ATTR: hop
 * outside 1 to 2^31 - 1; E_SHAPE: no frame, a window of another length; E_TOO_LARGE; E_DTYPE.
 * Gradients: of both; up to 2^24 samples. */
rlxvk_tensor rlxvk_overlap_add(rlxvk_graph *g, rlxvk_tensor frames, rlxvk_tensor window,
                               int64_t hop);

typedef struct rlxvk_istft_options {
    int64_t length, hop; /* >= 1 */
    int64_t n_fft;       /* 0: length; at least that */
    rlxvk_fft_norm norm;
    bool center;     /* half a frame, length / 2, is cut from either end */
    int64_t samples; /* 0: what there are; else cut, or continued with zeros, behind the start */
    size_t struct_size;
} rlxvk_istft_options;

/* The signals that have these spectra [.., F, 2 (n_fft / 2 + 1)], blocks as stft makes them with
 * the same length, hop, n_fft, norm and window (or RLXVK_NONE): frames by irfft, then overlap_add.
 * Gives back what stft was given where the windows' squares cover it. E_ATTR: options; E_SHAPE. */
rlxvk_tensor rlxvk_istft(rlxvk_graph *g, rlxvk_tensor spectra, rlxvk_tensor window,
                         const rlxvk_istft_options *options);

/* Constants [n], over k / D, D = n if periodic, else n - 1; n = 1 gives 1: 0.54 - 0.46 cos(2 pi k /
 * D); 0.42 - 0.5 cos(2 pi k / D) + 0.08 cos(4 pi k / D); I0(beta sqrt(1 - (2 k / D - 1)^2)) /
 * I0(beta), beta 0 to 700. E_ATTR; E_TOO_LARGE: n above 2^28. */
rlxvk_tensor rlxvk_signal_hamming(rlxvk_graph *g, int64_t n, bool periodic);
rlxvk_tensor rlxvk_signal_blackman(rlxvk_graph *g, int64_t n, bool periodic);
rlxvk_tensor rlxvk_signal_kaiser(rlxvk_graph *g, int64_t n, double beta, bool periodic);

/* ---- Other rates ---- */

/* `up` - 1 zeros put behind each sample of x [.., T], T >= 1, filtered by taps [L], and of that
 * each down-th: y[n] = sum over k of taps[n down - k up] x[k], ceil(((T - 1) up + L) / down) of
 * them. No product with such a zero is computed. Error u (L / up + 2) of the summed magnitudes.
 * F32. E_SHAPE: no sample, no tap, taps of another rank; E_ATTR: up or down below 1; E_TOO_LARGE: T
 * up, or what is filtered, beyond 2^31 - 1; E_DTYPE. Gradients: of both. */
rlxvk_tensor rlxvk_upfirdn(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor taps, int64_t up,
                           int64_t down);

/* x [.., T] at up / down times its rate -> [.., ceil(T up / down)], the first sample staying where
 * it is: upfirdn by a sinc of 20 max(up, down) + 1 taps (in lowest terms) under a Kaiser window of
 * beta 5, which leaves constants what they are away from the ends. Errors as upfirdn's; E_TOO_LARGE
 * also: up or down, in lowest terms, above 2^20. Gradient: of x. */
rlxvk_tensor rlxvk_resample(rlxvk_graph *g, rlxvk_tensor x, int64_t up, int64_t down);

/* ---- Mel spectra ---- */

typedef enum rlxvk_log_mel_scope {
    RLXVK_LOG_MEL_FRAME = 0, /* the floor is below each frame's own largest value */
    RLXVK_LOG_MEL_CLIP = 1   /* below that of all frames, along the last axis but one */
} rlxvk_log_mel_scope;

/* Logarithms of mel bands: spectrum [.., 2 n_fft], blocks, or half of each as stft makes them, [..,
 * 2 bins]; filters [n_mels, bins], bins = n_fft / 2 + 1 -> [.., n_mels]. With p = re^2 + im^2 and
 * v_m = log10(max(sum over f of filters[m, f] p_f, 1e-10)), NaN sums as 1e-10, and mx the largest v
 * of the scope: (max(v_m, mx - 8) + 4) / 4. Bins outside a filter's first to last weight that is
 * not 0 do not count, whatever they hold. F32. E_SHAPE: no last axis, filters of another rank or
 * other bins, no filter; E_ATTR: an unknown scope; E_DTYPE. Error 2e-6 besides what the sums'
 * error, u (8 + bins) sum |filters p|, makes of it. Gradients: of both. */
rlxvk_tensor rlxvk_log_mel(rlxvk_graph *g, rlxvk_tensor spectrum, rlxvk_tensor filters,
                           rlxvk_log_mel_scope scope);

/* The derivative of that by the mel bands' sums, dy [.., n_mels] being that of the result: [..,
 * n_mels]. What the floor takes of dy goes to the largest value (the first frame's, then the lowest
 * mel's on ties); 0 where a sum is not above 1e-10. */
rlxvk_tensor rlxvk_log_mel_slopes(rlxvk_graph *g, rlxvk_tensor spectrum, rlxvk_tensor filters,
                                  rlxvk_tensor dy, rlxvk_log_mel_scope scope);

/* The gradient of log_mel for its spectrum, of that one's shape: log_mel_slopes times the filters,
 * times 2 re and 2 im; 0 in bins above n_fft / 2. */
rlxvk_tensor rlxvk_log_mel_backward(rlxvk_graph *g, rlxvk_tensor spectrum, rlxvk_tensor filters,
                                    rlxvk_tensor dy, rlxvk_log_mel_scope scope);

typedef enum rlxvk_mel_scale {
    RLXVK_MEL_SLANEY = 0, /* linear below 1000 Hz, logarithmic above */
    RLXVK_MEL_HTK = 1     /* 2595 log10(1 + f / 700) */
} rlxvk_mel_scale;

typedef struct rlxvk_mel_options {
    double rate;           /* samples a second, > 0 */
    int64_t n_fft, n_mels; /* >= 1 */
    double low, high;      /* Hz, 0 <= low < high; high 0: half the rate */
    rlxvk_mel_scale scale;
    bool unnormalized; /* peaks of 1; default: triangles of area 1 Hz (Slaney) */
    size_t struct_size;
} rlxvk_mel_options;

/* Constant [n_mels, n_fft / 2 + 1]: triangles whose n_mels + 2 corners are equally far apart in
 * mels, made in double. E_ATTR: options; E_TOO_LARGE: more than 2^24 weights. */
rlxvk_tensor rlxvk_signal_mel_filterbank(rlxvk_graph *g, const rlxvk_mel_options *options);

/* Cepstral coefficients of logarithms of bands [.., n]: the first `count` of their orthonormal
 * cosine transform (DCT-II), each k times 1 + lifter / 2 sin(pi k / lifter), lifter 0: times 1 ->
 * [.., count]. A product with a table made in double. E_ATTR: count below 1 or above n, a lifter
 * that is not 0 or above; E_SHAPE: rank 0, no band; E_TOO_LARGE: a table of 2^24 numbers or more.
 * Gradient: of the bands. */
rlxvk_tensor rlxvk_mfcc(rlxvk_graph *g, rlxvk_tensor bands, int64_t count, double lifter);

#ifdef __cplusplus
}
#endif

#endif
