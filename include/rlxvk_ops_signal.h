/*
 * Signal processing on top of transforms: averaged spectra, frames to signals, mel spectra. This
 * header is included by rlxvk_ops_domain.h, which has the transforms, frames and stft. The common
 * rules of rlxvk_ops.h hold here, too.
 */
#ifndef RLXVK_OPS_SIGNAL_H
#define RLXVK_OPS_SIGNAL_H

#include <rlxvk_ops_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Averaged power (P. D. Welch 1967) ---- */

typedef struct rlxvk_welch_options {
    int64_t n_segments; /* how many rows are averaged into one; 0: 1 */
    int64_t n_fft;      /* 0: half the last dim, for a whole spectrum */
    bool unfolded;      /* count bins once; default: add the mirrored bins above n_fft / 2 */
    size_t struct_size;
} rlxvk_welch_options;

/* The average power of spectra of real signals, over groups of n_segments rows. Each row of the
 * spectrum is a block: all real parts, then all imaginary ones. It has all bins, [.., R, 2 n_fft],
 * or bins 0 to n_fft / 2, [.., R, 2 half] with half = n_fft / 2 + 1, as from stft. The result is
 * [.., R / n_segments, half]: c / n_segments times the sum of re^2 + im^2 over n_segments rows.
 * Factor c is 2, because each bin stands for its mirrored bin, too. It is 1 for bin 0, for the last
 * bin if n_fft is even, and everywhere if unfolded. Rank 1 counts as one row, and the result is
 * then [half]. The relative error is u (6 + 2 sqrt n_segments). The spectrum has a gradient.
 *   E_SHAPE: rank 0, n_segments does not divide R, or the last dim is neither of the two.
 *   E_ATTR: an option is negative.
 *   E_DTYPE: the spectrum is not F32. */
rlxvk_tensor rlxvk_welch_power(rlxvk_graph *g, rlxvk_tensor spectrum,
                               const rlxvk_welch_options *options);

typedef struct rlxvk_welch_frame_options {
    int64_t length, hop; /* >= 1 */
    int64_t n_fft;       /* 0: length; else at least length: zeros are appended to frames */
    bool unfolded;       /* as in rlxvk_welch_options */
    double scale;        /* 0: 1; rlxvk_signal_welch_scale computes it for densities */
    size_t struct_size;
} rlxvk_welch_frame_options;

/* Welch's power spectrum of signals x [.., T]. It is the average over frames, which may overlap.
 * Each frame is multiplied by `window` [length], unless that is RLXVK_NONE. The result is
 * [.., n_fft / 2 + 1]: c scale / F times the sum of |X|^2 over F = 1 + (T - length) / hop frames,
 * with c as in rlxvk_welch_power. It equals welch_power of stft, times scale. But spectra are not
 * kept in memory if a workgroup can hold n_fft points. These are most lengths up to 4096 without a
 * prime factor above 13. Other lengths are built from stft and welch_power, for up to 2^24 samples.
 *
 * Error: c scale / F (2 e sqrt(P S) + e^2 S + u (8 + 2 sqrt F) P). Here P is the sum above, S the
 * sum over the frames of the mean of |X|^2, and e the relative error of rlxvk_fft. Both operands
 * have gradients, for up to 2^24 samples.
 *   E_SHAPE: T is shorter than a frame, or the window has another length.
 *   E_ATTR: length, hop or n_fft is out of range, or scale is not finite.
 *   E_DTYPE: an operand is not F32.
 *   E_UNSUPPORTED: length, hop or n_fft is a symbol. */
rlxvk_tensor rlxvk_welch(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor window,
                         const rlxvk_welch_frame_options *options);

/* Finds the k bins with the most power, averaged over n_segments rows each. A spectrum
 * [B n_segments, 2 n_fft] gives [B, 2 k]: pairs (bin, power), the largest power first. If powers
 * are equal, the lower bin comes first; NaN comes last. If there are fewer than k bins, the other
 * pairs are (-1, 0). The op is built from welch_power, topk and take_along_axis. The powers have
 * gradients.
 *   E_SHAPE: the spectrum does not have rank 2, or welch_power refuses its sizes.
 *   E_ATTR: k or n_segments is below 1.
 *   E_INDEX_RANGE: there are more than 2^24 bins.
 *   E_TOO_LARGE: k is 2^30 or more.
 *   E_UNSUPPORTED: a size is a symbol. */
rlxvk_tensor rlxvk_welch_peaks(rlxvk_graph *g, rlxvk_tensor spectrum, int64_t k,
                               int64_t n_segments);

/* The scale that normalizes powers of segments, which are multiplied by `window` [n]. If `density`
 * is set it is 1 / (rate sum w^2), for densities in units of x squared per unit of rate. Else it is
 * 1 / (sum w)^2, for the power of spectral lines. */
double rlxvk_signal_welch_scale(const float *window, size_t n, double rate, bool density);

/* ---- Frames to signals ---- */

/* Adds frames [.., F, L] up to signals [.., (F - 1) hop + L]. Sample j of frame f goes to sample f
 * hop + j, and sums are in the order of the frames. If there is a window [L], frames are multiplied
 * by it, and each sum is divided by the sum of the squared weights. If that is not above 1e-11, the
 * sample is 0. If hop is larger than L, there are zeros in between. With m overlapping frames, the
 * error is u (2 m + 10) times the sum of the magnitudes. Both operands have gradients, for up to
 * 2^24 samples.
 *   E_SHAPE: there is no frame, or the window has another length.
 *   E_ATTR: hop is not 1 to 2^31 - 1.
 *   E_DTYPE: an operand is not F32.
 *   E_TOO_LARGE: the signal is too long. */
rlxvk_tensor rlxvk_overlap_add(rlxvk_graph *g, rlxvk_tensor frames, rlxvk_tensor window,
                               int64_t hop);

typedef struct rlxvk_istft_options {
    int64_t length, hop; /* >= 1 */
    int64_t n_fft;       /* 0: length; else at least length */
    rlxvk_fft_norm norm;
    bool center;     /* cut half a frame, length / 2, from the front, and from the end
                        if `samples` is 0 */
    int64_t samples; /* 0: as many as there are; else the signal is cut or zeros are appended */
    size_t struct_size;
} rlxvk_istft_options;

/* The inverse of rlxvk_stft: signals from spectra [.., F, 2 (n_fft / 2 + 1)], blocks as stft gives
 * them. Take the same length, hop, n_fft, norm and window (or RLXVK_NONE) as for stft. The op is
 * irfft of the frames, then rlxvk_overlap_add. Without a window all weights are 1, so overlapping
 * samples are averaged. If the squared weights of a sample add up to more than 1e-11, it is the
 * sample of the signal, else 0.
 *   E_ATTR: an option is out of range.
 *   E_SHAPE: the spectra or the window do not fit the options.
 *   E_UNSUPPORTED: length, hop, n_fft or samples is a symbol. */
rlxvk_tensor rlxvk_istft(rlxvk_graph *g, rlxvk_tensor spectra, rlxvk_tensor window,
                         const rlxvk_istft_options *options);

/* Window functions, as constants [n]. With D = n if periodic, else n - 1, element k is:
 *   hamming   0.54 - 0.46 cos(2 pi k / D)
 *   blackman  0.42 - 0.5 cos(2 pi k / D) + 0.08 cos(4 pi k / D)
 *   kaiser    I0(beta sqrt(1 - (2 k / D - 1)^2)) / I0(beta), for beta from 0 to 700
 *
 * If n is 1, the element is 1.
 *   E_ATTR: n or beta is out of range.
 *   E_TOO_LARGE: n is above 2^28.
 *   E_UNSUPPORTED: n is a symbol. */
rlxvk_tensor rlxvk_signal_hamming(rlxvk_graph *g, int64_t n, bool periodic);
rlxvk_tensor rlxvk_signal_blackman(rlxvk_graph *g, int64_t n, bool periodic);
rlxvk_tensor rlxvk_signal_kaiser(rlxvk_graph *g, int64_t n, double beta, bool periodic);

/* ---- Resampling ---- */

/* Upsamples, filters and downsamples, as SciPy's upfirdn does. The op puts up - 1 zeros behind each
 * sample of x [.., T], filters this by taps [L], and keeps each down-th sample:
 *   y[n] = sum over k of taps[n down - k up] x[k]
 *
 * There are ceil(((T - 1) up + L) / down) results. Products with the inserted zeros are not
 * computed. The error is u (L / up + 2) times the sum of the magnitudes. Both operands have
 * gradients.
 *   E_SHAPE: there are no samples or no taps, or taps does not have rank 1.
 *   E_ATTR: up or down is below 1.
 *   E_DTYPE: an operand is not F32.
 *   E_TOO_LARGE: T up + L + down is above 2^31 - 1. */
rlxvk_tensor rlxvk_upfirdn(rlxvk_graph *g, rlxvk_tensor x, rlxvk_tensor taps, int64_t up,
                           int64_t down);

/* Resamples x [.., T] to up / down times its rate: [.., ceil(T up / down)]. The first sample stays
 * in its place. The op is upfirdn, with up / down in lowest terms and 20 max(up, down) + 1 taps.
 * The taps are a sinc under a Kaiser window of beta 5. Away from the ends, they leave a constant as
 * it is. Signal x has a gradient. Errors are those of upfirdn, and:
 *   E_TOO_LARGE: up or down, in lowest terms, is above 2^20.
 *   E_UNSUPPORTED: T is a symbol. */
rlxvk_tensor rlxvk_resample(rlxvk_graph *g, rlxvk_tensor x, int64_t up, int64_t down);

/* ---- Mel spectra ---- */

typedef enum rlxvk_log_mel_scope {
    RLXVK_LOG_MEL_FRAME = 0, /* the floor of a frame is relative to its own largest value */
    RLXVK_LOG_MEL_CLIP = 1   /* to the largest of all frames, along the last axis but one */
} rlxvk_log_mel_scope;

/* The logarithmic mel spectrum, with a floor 8 below the largest value. Each row of the spectrum is
 * a block: all real parts, then all imaginary ones. It has all bins, [.., 2 n_fft], or bins 0 to
 * n_fft / 2, [.., 2 bins] with bins = n_fft / 2 + 1, as from stft. With filters [n_mels, bins], the
 * result is [.., n_mels]:
 *   p   = re^2 + im^2
 *   v_m = log10(max(sum over f of filters[m, f] p_f, 1e-10))
 *   y_m = (max(v_m, mx - 8) + 4) / 4
 *
 * Here mx is the largest v of the scope. A sum that is NaN counts as 1e-10. Only the bins from a
 * filter's first to its last weight that is not 0 are read. The error is 2e-6, plus the effect of
 * the error of the sums, u (8 + bins) sum |filters p|. Both operands have gradients.
 *   E_SHAPE: the spectrum has no axis, filters does not have rank 2, there is no filter, or the
 *     bins of the two differ.
 *   E_ATTR: the scope is unknown.
 *   E_DTYPE: an operand is not F32. */
rlxvk_tensor rlxvk_log_mel(rlxvk_graph *g, rlxvk_tensor spectrum, rlxvk_tensor filters,
                           rlxvk_log_mel_scope scope);

/* The gradient of rlxvk_log_mel for the sums of the mel bands: [.., n_mels], from the gradient dy
 * [.., n_mels] of its result. If the floor replaces a value, its dy goes to the largest value. If
 * several are largest, the first frame gets it, then the lowest mel. If a sum is not above 1e-10,
 * its gradient is 0. */
rlxvk_tensor rlxvk_log_mel_slopes(rlxvk_graph *g, rlxvk_tensor spectrum, rlxvk_tensor filters,
                                  rlxvk_tensor dy, rlxvk_log_mel_scope scope);

/* The gradient of rlxvk_log_mel for its spectrum, in the shape of the spectrum: log_mel_slopes
 * times the filters, times 2 re and 2 im. Bins above n_fft / 2 get 0. */
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
    bool unnormalized; /* triangles have peaks of 1; default: area 1 Hz (Slaney) */
    size_t struct_size;
} rlxvk_mel_options;

/* Mel filters, as a constant [n_mels, n_fft / 2 + 1]. They are triangles; their n_mels + 2 corners
 * are equally spaced in mels. They are computed in double.
 *   E_ATTR: an option is out of range.
 *   E_TOO_LARGE: there are more than 2^24 weights.
 *   E_UNSUPPORTED: a size is a symbol. */
rlxvk_tensor rlxvk_signal_mel_filterbank(rlxvk_graph *g, const rlxvk_mel_options *options);

/* Mel-frequency cepstral coefficients of logarithmic bands: [.., n] -> [.., count]. They are the
 * first `count` coefficients of the orthonormal DCT-II. Coefficient k is then multiplied by
 * 1 + lifter / 2 sin(pi k / lifter), or by 1 if lifter is 0. The op is a product with a table,
 * which is computed in double. The dtype is promoted from bands and F32. The bands have a gradient.
 *   E_SHAPE: bands has rank 0, or no band.
 *   E_ATTR: count is below 1 or above n, or lifter is negative or not finite.
 *   E_TOO_LARGE: the table, n * count, has about 2^24 numbers or more.
 *   E_UNSUPPORTED: n or count is a symbol. */
rlxvk_tensor rlxvk_mfcc(rlxvk_graph *g, rlxvk_tensor bands, int64_t count, double lifter);

#ifdef __cplusplus
}
#endif

#endif
