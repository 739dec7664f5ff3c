/* Fourier transforms. */
#ifndef RLXVK_ARGS_SPECTRAL_H
#define RLXVK_ARGS_SPECTRAL_H

#include "args/types.h"

/* The bit of a radix in a pipeline's set of radices. It is selected by the last four bits of the
 * radix. */
#define FFT_RADIX_BIT(radix) (1u << ((radix)&15u))

#define FFT_IN_PAIRS      1u /* both parts are read as one pair */
#define FFT_OUT_PAIRS     2u
#define FFT_LOAD_ACROSS   4u /* neighbouring threads take neighbouring rows, not points */
#define FFT_STORE_ACROSS  8u
#define FFT_LOAD_TABLE    16u
#define FFT_STORE_TABLE   32u
#define FFT_STORE_TWIDDLE 64u
#define FFT_LOAD_BINS     128u /* x is half the spectrum of real lines (fft_real.glsl) */
#define FFT_SPLIT_SHIFT   8    /* the bits from here: number of exponent bits in the first factor */

/* Offsets and strides of x and y count words, also if they are pairs. Table offsets count pairs. */
struct fft_args {
    u32 lines, rows, n, stages, radices, more_radices; /* 4 bits for each radix; 0 means 16 */
    u32 pitch, flags;
    u32 inner, d1, d2;
    u32 in_offset;
    i32 in_imaginary;
    u32 in_outer, in_inner, in_axis, in_step, in_step1, in_step2;
    u32 out_offset;
    i32 out_imaginary;
    u32 out_outer, out_inner, out_axis, out_step, out_step1, out_step2;
    u32 load_limit, load_table, store_limit, store_table;
    f32 scale;
};

/* Flags of fft_register, besides FFT_IN_PAIRS, FFT_OUT_PAIRS, FFT_LOAD_TABLE, FFT_STORE_TABLE and
 * FFT_LOAD_BINS. */
#define FFT_ALONG        256u /* neighbouring threads take neighbouring points, not rows */
#define FFT_FROM_SCRATCH 512u
#define FFT_TO_SCRATCH   1024u
#define FFT_SCALE        2048u
#define FFT_LOAD_LIMIT   4096u
#define FFT_STORE_LIMIT  8192u
#define FFT_IN_SWAP      16384u
#define FFT_OUT_SWAP     32768u
#define FFT_STORE_BINS   65536u /* y is half the spectrum of real lines */

/* Offsets and strides of x and y count pairs; if the real and imaginary parts are separate,
 * words. */
struct fft_register_args {
    u32 lines;
    u32 in_offset, in_outer, in_imaginary;
    u32 out_offset, out_outer, out_imaginary;
    u32 load_limit, load_table, store_limit, store_table, step_table;
    f32 scale;
};

/* half_length pairs of z in a line give half_length + 1 bins. */
struct fft_real_args {
    u32 lines, half_length, y_offset;
    f32 scale;
};

/* The power of spectra. Each of `outputs` bins is a sum over `segments` rows. It is cut into
 * `pieces` pieces of at most `piece` rows. Imaginary parts lie `width` behind real ones. Bins 0 and
 * `single` count once, the others `fold` times. */
struct welch_power_args {
    u32 outputs, bins, width, single, segments, pieces, piece;
    u32 x_offset, y_offset;
    f32 scale, fold;
};

/* The power of signals of `samples` samples. A signal has `frames` frames of `extent` samples,
 * `hop` apart. There are `lines` result rows, `pieces` for each signal, of `pairs` pairs of frames
 * each. `scale` is the factor of |Z|^2 (welch.comp). */
struct welch_args {
    u32 lines, pieces, pairs, frames, samples, extent, hop;
    u32 x_offset, window_offset, y_offset;
    f32 scale, fold;
};

/* The stage of log_mel: the whole op; only the band values; only the floor, relative to a known
 * largest value; only the sums. */
#define LOG_MEL_WHOLE 0
#define LOG_MEL_BANDS 1 /* values without the floor */
#define LOG_MEL_FLOOR 2
#define LOG_MEL_SUMS  3

struct log_mel_args {
    u32 frames, mels, bins, width; /* LOG_MEL_FLOOR: frames elements; mels for each largest value */
    u32 x_offset, filters_offset, y_offset;
};

/* The first, and last + 1, of the nonzero weights of each filter. */
struct log_mel_bands_args {
    u32 mels, bins, filters_offset;
};

/* Rows of `extent` values that share a floor. */
struct log_mel_slopes_args {
    u32 rows, extent, dy_offset, y_offset;
};

#define OVERLAP_ADD_LEAST 1e-11 /* least sum of a window's squares; below it, the result is 0 */

/* y[i] = sum over j of taps[i down + shift - j up] x[j]. There are `tap_count` taps, and rows of
 * `samples` and `extent`. */
struct upfirdn_args {
    u32 outputs, samples, extent, tap_count;
    i32 up, down, shift;
    u32 x_offset, taps_offset, y_offset;
};

/* `frames` frames of `extent` samples, `hop` apart, give `samples` samples of each row. */
struct overlap_add_args {
    u32 outputs, samples, frames, extent, hop;
    u32 x_offset, window_offset, y_offset;
};

#endif
