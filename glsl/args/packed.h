/* Products of packed weights and of 8-bit integers. */
#ifndef RLXVK_ARGS_PACKED_H
#define RLXVK_ARGS_PACKED_H

#include "args/projection.h"
#include "args/types.h"

/* Formats: format.def. Packed rows lie row_bytes apart from byte w_offset; a row has `units` units
 * of 32 elements; last_word: index of the slot's last word. */

/* Groups of formats: each has kernels of its own, with the decoders of dequant_<group>.glsl. */
#define DEQUANT_COMMON 0
#define DEQUANT_SMALL  1
#define DEQUANT_LARGE  2
#define DEQUANT_GRID   3

#define DEQUANT_MATMUL_THREADS 128
#define DEQUANT_MATMUL_COLUMNS 64

/* w holds n rows of `units` units, n for each expert. Without experts, experts is 0. index_offset
 * and parts are dequant_matvec's. */
struct dequant_product_args {
    u32 m, n, units, experts, row_bytes, last_word;
    u32 w_offset, x_offset, y_offset, index_offset;
    STRUCT(projection_args) parts;
    u32 ends[2]; /* of the parts of y (lib/parts.glsl), as in the next three */
};

#define DEQUANT_INDEXED    0 /* order of dequant_gather; its `rows`, transposed, are columns */
#define DEQUANT_TRANSPOSED 1
#define DEQUANT_ALL        2

struct dequant_gather_args {
    u32 count; /* units to decode in all, elements of plain rows */
    u32 rows, units, row_bytes, last_word;
    u32 w_offset, index_offset, y_offset;
};

/* a is packed: k_octets uvec4 a row. With `splits`, each sums slice_octets of them into m * n
 * partial sums of its own. */
struct dequant_matrix_args {
    u32 m, n, units, row_bytes, last_word;
    u32 w_offset, y_offset;
    u32 k_octets, slice_octets, splits;
    u32 ends[2];
};

/* Of dequant_panel. */
#define PANEL_STEP  64  /* elements of K in shared memory at once */
#define PANEL_GROUP 128 /* that the lanes of a row have at hand: units of 32 */

/* x is packed: k_octets uvec4 a row. With `splits`, each sums `slice` groups of K into m * n
 * partial sums of its own. */
struct dequant_panel_args {
    u32 m, n, units, row_bytes, last_word;
    u32 w_offset, y_offset;
    u32 k_octets, groups, slice, splits;
    u32 ends[2];
};

/* Of dequant_fragment. */
#define FRAGMENT_CHUNK 256 /* elements of a row of weights that a subgroup takes at once */
#define FRAGMENT_SUMS  16  /* of x, of a chunk: one for every run of a unit */
#define FRAGMENT_ROWS  16  /* of x, of a workgroup */

/* x as fragment_pack leaves it. */
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

/* block: elements of p with one scale; scale_step: 0 where one scale serves all columns. w_offset
 * counts bytes, scale_offset elements of the scales (f32 or bytes). */
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

#endif
