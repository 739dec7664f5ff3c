/* Products of packed weights and of 8-bit integers. */
#ifndef RLXVK_ARGS_PACKED_H
#define RLXVK_ARGS_PACKED_H

#include "args/projection.h"
#include "args/types.h"

/* Formats: see format.def. Packed rows start at byte w_offset and are row_bytes apart. A row has
 * `units` units of 32 elements. last_word: the index of the last word of the slot. */

/* Groups of formats. Each has its own kernels, with the decoders of dequant_<group>.glsl. */
#define DEQUANT_COMMON 0
#define DEQUANT_SMALL  1
#define DEQUANT_LARGE  2
#define DEQUANT_GRID   3

#define DEQUANT_MATMUL_THREADS 128
#define DEQUANT_MATMUL_COLUMNS 64

/* w has n rows of `units` units; with experts, n rows for each expert. Without experts, experts is
 * 0. index_offset and parts are used only by dequant_matvec. */
struct dequant_product_args {
    u32 m, n, units, experts, row_bytes, last_word;
    u32 w_offset, x_offset, y_offset, index_offset;
    STRUCT(projection_args) parts;
    u32 ends[2]; /* of the parts of y (lib/parts.glsl), as in the next three */
};

#define DEQUANT_INDEXED    0 /* ORDER of dequant_gather; if transposed, its `rows` are columns */
#define DEQUANT_TRANSPOSED 1
#define DEQUANT_ALL        2
#define DEQUANT_BLOCKS     3

struct dequant_gather_args {
    u32 count; /* units to decode in all; for plain rows, elements; for blocks, rows to write */
    u32 rows, units, row_bytes, last_word;
    u32 w_offset, index_offset, y_offset;
};

/* a is packed, k_octets uvec4 for each row. With `splits`, each split covers slice_octets of K and
 * writes its own m * n partial sums. */
struct dequant_matrix_args {
    u32 m, n, units, row_bytes, last_word;
    u32 w_offset, y_offset;
    u32 k_octets, slice_octets, splits;
    u32 ends[2];
};

/* Constants of dequant_panel. */
#define PANEL_STEP  64  /* elements of K in shared memory at a time */
#define PANEL_GROUP 128 /* elements of K in a group, one unit for each lane of a row */

/* x is packed, k_octets uvec4 for each row. With `splits`, each split covers `slice` groups of K
 * and writes its own m * n partial sums. */
struct dequant_panel_args {
    u32 m, n, units, row_bytes, last_word;
    u32 w_offset, y_offset;
    u32 k_octets, groups, slice, splits;
    u32 ends[2];
};

/* Constants of dequant_fragment. */
#define FRAGMENT_CHUNK 256 /* elements of a row of weights that a subgroup takes at a time */
#define FRAGMENT_SUMS  16  /* sums of x in a chunk: one for each run of a unit */
#define FRAGMENT_ROWS  16  /* rows of x for each workgroup */

/* x is packed by fragment_pack. */
struct dequant_fragment_args {
    u32 m, n, units, row_bytes, last_word;
    u32 w_offset, y_offset;
    u32 chunks;
    u32 ends[2];
};

struct fragment_pack_args {
    u32 rows, units, chunks, x_offset;
};

/* ---- weights addressed by element: side-scale schemes, plain rows ---- */

#define DEQUANT_INT8        0
#define DEQUANT_INT8_ASYM   1
#define DEQUANT_INT4        2
#define DEQUANT_E4M3        3
#define DEQUANT_E5M2        4
#define DEQUANT_NVFP4_BLOCK 5
#define DEQUANT_MXFP4_BLOCK 6
#define DEQUANT_INT4_ASYM   7
#define DEQUANT_PLAIN       256 /* rows [n, k]: 256 + GGUF type */

/* block: elements of p that share a scale. scale_step: 0 if one scale serves all columns. w_offset
 * counts bytes; scale_offset counts elements of the scales (f32 or bytes). */
struct dequant_element_matvec_args {
    u32 m, n, k, block, scale_step, last_word;
    u32 w_offset, x_offset, y_offset, scale_offset, extra_offset;
};

struct dequant_element_matmul_args {
    u32 m, n, k, block, scale_step, last_word;
    u32 w_offset, x_offset, y_offset, scale_offset, extra_offset;
};

/* ---- 8-bit integers: quantize, qmatmul, qconv2d ---- */

#define INTEGER_BYTES 0
#define INTEGER_WORDS 1
/* The most terms that one invocation sums. Their products fit an int. The loop also stays below
 * 65535 rounds, because some drivers end a loop there. */
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
    u32 k_slice; /* K of one split; >= k: no split, and y is the result, not partial sums */
    u32 x_offset, w_offset, bias_offset, y_offset;
    i32 x_zero_point, w_zero_point, out_zero_point;
    f32 multiplier;
};

/* m and channels: channels of the output and of the input, for each group. Sizes: rows, columns. */
struct qconv2d_args {
    u32 count, groups, m, channels;
    u32 k_slice; /* of channels * taps; see qmatmul_args */
    u32 in_size[2], out_size[2], kernel[2], stride[2], padding[2], dilation[2];
    u32 x_offset, w_offset, bias_offset, y_offset;
    i32 x_zero_point, w_zero_point, out_zero_point;
    f32 multiplier;
};

/* Adds `splits` partial sums of `count` elements. `cells` consecutive elements share one bias. */
struct integer_sum_args {
    u32 count, splits, cells, channels, bias_offset, y_offset;
    i32 out_zero_point;
    f32 multiplier;
};

#endif
