/*
 * The second half of args.h, which alone includes it: layout and indexing, vision, sorting,
 * convolution, integers, spectra.
 */
#ifndef RLXVK_ARGS_MORE_H
#define RLXVK_ARGS_MORE_H

/* ---- layout and indexing ---- */

#define TRANSPOSE_TILE 32
#define COPY_ITEMS     4 /* units an invocation of the copying kernels moves */

/* Offsets, strides and dims in units of the copy's width; axes innermost first. */
struct strided_copy_args {
    u32 count, rank;
    i32 source_offset;
    u32 target_offset;
    u32 dims[8];
    i32 source_strides[8];
    u32 target_strides[8];
};

struct transpose2d_args {
    u32 rows, columns, row_stride, column_stride;
    u32 source_offset, target_offset;
    u32 row_tiles, column_tiles, group_count;
    u32 batch_rank;
    u32 batch_dims[6], batch_source[6], batch_target[6];
};

#define GATHER_WORDS 0
#define GATHER_F16   1
#define GATHER_BF16  2

struct gather_args {
    u32 count, inner, index_count, extent;
    u32 data_offset, index_offset, target_offset;
};

struct take_along_axis_args {
    u32 count, rank, extent, axis_stride;
    u32 data_offset, index_offset, target_offset;
    u32 dims[8], data_strides[8], index_strides[8];
};

/* ---- vision: pool, resize_nearest2x; axial_rope2d ---- */

/* Three spatial axes, outermost first; those there are not have extent, kernel and stride 1. CODE
 * is a REDUCE_ code. */
struct pool_args {
    u32 numel;
    u32 extents[3], results[3], kernel[3], stride[3], padding[3];
    u32 x_offset, y_offset;
    f32 divisor; /* REDUCE_MEAN: cells of a window; 0: the cells inside x */
};

struct resize_nearest2x_args {
    u32 numel, columns; /* of x */
    u32 x_offset, y_offset;
};

struct axial_rope2d_args {
    u32 pairs; /* items: batch * tokens * half */
    u32 tokens, half_head, heads, columns, end_x, positions;
    u32 repeat; /* EACH: tokens at one position; TILE: 1 */
    u32 x_offset, y_offset;
    f32 theta, sign; /* sign: -1 turns back */
};

/* ---- sorting: a stable radix sort of rows of u32 keys, ascending; topk, scatter_add ---- */

#define RADIX_THREADS 128
#define RADIX_ITEMS   16 /* consecutive elements of a thread */
#define RADIX_BITS    4
#define RADIX_DIGITS  16
#define RADIX_BLOCK   (RADIX_THREADS * RADIX_ITEMS)

/* What radix_keys makes of a word. */
#define RADIX_DESCENDING 0 /* a float: the largest first, NaN before it */
#define RADIX_INDEX      1 /* an index: itself, or `limit` where it is none below that */

struct radix_keys_args {
    u32 count, limit, x_offset;
};

/* `blocks` of a row of `extent` keys; counts: [row, digit, block]. */
struct radix_count_args {
    u32 extent, blocks, shift, groups;
};

struct radix_scan_args {
    u32 rows, count; /* of a row */
};

struct radix_scatter_args {
    u32 extent, blocks, shift, groups;
};

#define TOPK_POOL         2048 /* shared words: histograms, then chosen keys and their indices */
#define TOPK_MOST         (TOPK_POOL / 2)
#define TOPK_FIRST_STAGE  0 /* elements of a chunk -> indices of its k largest, in no order */
#define TOPK_SECOND_STAGE 1 /* those indices -> the k largest, in order */
#define TOPK_ONLY_STAGE   2 /* elements of a row -> the k largest, in order */

struct topk_rank_args {
    u32 rows, extent, k, lanes;
    u32 x_offset, y_offset;
};

/* `candidates`: a row's, of the second stage, and how far apart rows of them lie. */
struct topk_select_args {
    u32 groups, extent, k, chunks, chunk_length, candidates;
    u32 x_offset, y_offset;
};

struct topk_take_args {
    u32 count, extent, k, y_offset;
};

/* A workgroup a row, or tile_columns columns of it. */
struct scatter_add_direct_args {
    u32 rows, columns, updates, tiles, tile_columns;
    u32 updates_offset, index_offset, y_offset;
};

struct scatter_add_starts_args {
    u32 rows, updates;
};

struct scatter_add_sum_args {
    u32 rows, columns;
    u32 updates_offset, y_offset;
};

struct scatter_add_long_args {
    u32 rows, columns;
    u32 updates_offset, y_offset;
};

#define SCATTER_DIRECT_UPDATES 4096 /* bits of scatter_add_direct's shared mask */
#define SCATTER_LONG_WORDS     1024 /* updates that scatter_add_long holds at a time */

/* ---- convolution: conv_direct, conv_tiled, conv_sum, im2col, col2im ---- */

/* Spatial axes slowest first, always three (missing ones in front: size, kernel, stride and
 * dilation 1, padding 0). positions: batch * cells of a phase of the output (of all of it, unless
 * transposed); m and channels: of the output and the input, a group; divide: multipliers of the
 * phase's cells and of its sizes along the last two axes. */
/* Bits of QUADS of conv_tiled: y (w) may be written (read) four at a time. */
#define CONV_QUADS_Y 1
#define CONV_QUADS_W 2
struct conv_args {
    u32 positions, groups, m, channels;
    u32 k_slice, splits; /* what one split sums of channels * taps; splits of it */
    u32 in_size[3], out_size[3], kernel[3], stride[3], padding[3], dilation[3];
    u32 divide[3];
    u32 x_offset, w_offset, bias_offset, y_offset;
};

/* Sums `splits` partial results of `count` elements; a channel has `cells` of them in a row. */
struct conv_sum_args {
    u32 count, splits, cells, channels, bias_offset, y_offset;
};

/* Images [.., channels, image_size] and windows [.., window_count], rows first; `count` elements
 * are made. divide: multipliers, for im2col of window_count, channels, kernel, for col2im of
 * image_size, channels, stride. */
struct im2col_args {
    u32 count, channels;
    u32 image_size[2], window_count[2], kernel[2], stride[2], padding[2], dilation[2];
    u32 divide[5];
    u32 x_offset, y_offset;
};

/* ---- 8-bit integers: quantize, qmatmul, qconv2d ---- */

#define INTEGER_BYTES 0
#define INTEGER_WORDS 1
/* Terms one invocation sums: their products fit an int, and drivers that end a loop after 65535
 * rounds do not end this one. */
#define INTEGER_SLICE 16384

#define QUANTIZE_WORDS   0
#define DEQUANTIZE_WORDS 1
#define DEQUANTIZE_BYTES 2

struct quantize_args {
    u32 numel, inner, channels;
    u32 x_offset, factor_offset, zero_offset, y_offset;
};

struct qmatmul_args {
    u32 m, n, k;
    u32 k_slice; /* what one split sums; >= k: no split, y is the result and not partial sums */
    u32 x_offset, w_offset, bias_offset, y_offset;
    i32 x_zero_point, w_zero_point, out_zero_point;
    f32 multiplier;
};

/* m and channels: of the output and the input, a group; sizes: rows, columns. */
struct qconv2d_args {
    u32 count, groups, m, channels;
    u32 k_slice; /* of channels * taps; as above */
    u32 in_size[2], out_size[2], kernel[2], stride[2], padding[2], dilation[2];
    u32 x_offset, w_offset, bias_offset, y_offset;
    i32 x_zero_point, w_zero_point, out_zero_point;
    f32 multiplier;
};

/* Adds `splits` partial sums of `count` elements, of which `cells` in a row have the same bias. */
struct integer_sum_args {
    u32 count, splits, cells, channels, bias_offset, y_offset;
    i32 out_zero_point;
    f32 multiplier;
};

/* ---- spectral: fft ---- */

/* Of a pipeline's set of radices: a radix by its last four bits. */
#define FFT_RADIX_BIT(radix) (1u << ((radix)&15u))

#define FFT_IN_PAIRS      1u /* both parts are read at once */
#define FFT_OUT_PAIRS     2u
#define FFT_LOAD_ACROSS   4u /* neighbouring threads take neighbouring rows, not points */
#define FFT_STORE_ACROSS  8u
#define FFT_LOAD_TABLE    16u
#define FFT_STORE_TABLE   32u
#define FFT_STORE_TWIDDLE 64u
#define FFT_LOAD_BINS     128u /* x is half the spectrum of real lines (fft_real.glsl) */
#define FFT_SPLIT_SHIFT   8    /* from this bit on: bits of the exponent in the first factor */

/* Offsets and strides of x and y count words, also of pairs; table offsets count pairs. */
struct fft_args {
    u32 lines, rows, n, stages, radices, more_radices; /* 4 bits a radix, 16 as 0 */
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

/* Of fft_register, with FFT_IN_PAIRS, FFT_OUT_PAIRS, FFT_LOAD_TABLE, FFT_STORE_TABLE and
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

/* Offsets and strides of x and y count pairs, or words where the parts are apart. */
struct fft_register_args {
    u32 lines;
    u32 in_offset, in_outer, in_imaginary;
    u32 out_offset, out_outer, out_imaginary;
    u32 load_limit, load_table, store_limit, store_table, step_table;
    f32 scale;
};

/* half_length pairs of z a line make half_length + 1 bins. */
struct fft_real_args {
    u32 lines, half_length, y_offset;
    f32 scale;
};

/* ---- complex: complex_map ---- */

#define COMPLEX_NEG          0
#define COMPLEX_EXP          1
#define COMPLEX_LOG          2
#define COMPLEX_SQRT         3
#define COMPLEX_CONJUGATE    4
#define COMPLEX_NORM_SQ      5 /* y is real */
#define COMPLEX_NORM_SQ_BACK 6 /* z times the real g */

struct complex_map_args {
    u32 numel, z_offset, g_offset, y_offset;
};

/* ---- measurement: fma_peak ---- */

#define FMA_PEAK_CHAINS                                                                            \
    12 /* independent sums of an invocation; one round is one fused multiply-add of each */

struct fma_peak_args {
    u32 rounds;
    f32 scale, shift;
};

#endif
