/* Sequence models: recurrent layers, state scans, gated delta rules. */
#ifndef RLXVK_ARGS_SEQUENCE_H
#define RLXVK_ARGS_SEQUENCE_H

#include "args/types.h"

#define RECURRENT_LSTM 0
#define RECURRENT_GRU  1
#define RECURRENT_RNN  2 /* tanh */
#define RECURRENT_RELU 3 /* the rnn row's other cell */

#define RECURRENT_MOST_HIDDEN  256 /* of the kernel that keeps the state in shared memory */
#define RECURRENT_STEP_THREADS 128
#define RECURRENT_STEP_LANES   32

/* One layer. p [B, S, D, G Hd]: W_ih x + b; w [D, Hd, G Hd]: W_hh transposed; states [D, B, Hd]. */
struct recurrent_args {
    u32 batch, steps, hidden, directions;
    u32 p_offset, w_offset, bias_offset, y_offset;
    u32 h0_offset, c0_offset, hn_offset, cn_offset;
};

/* One time step of one layer. *_first: of the element for batch row 0 and unit 0, by direction. */
struct recurrent_step_args {
    u32 batch, hidden, directions;
    u32 has_previous; /* 0: the previous state is zero */
    u32 p_batch, y_batch, h_batch;
    u32 p_first[2], y_first[2], h_first[2];
    u32 w_offset, bias_offset, c0_offset, c_offset;
};

#define RECURRENT_TILE_QUADS 8  /* of rows of W_hh in a workgroup's tile */
#define RECURRENT_TILE_POOL  16 /* vec4 of shared memory for a column of W_hh */

/* One time step of one layer; p_first and y_first as above. h lies [D, Hd, 4 column_quads]. */
struct recurrent_tile_args {
    u32 batch, hidden, directions;
    u32 has_previous, column_quads;
    u32 p_batch, y_batch;
    u32 p_first[2], y_first[2];
    u32 bias_offset, c0_offset, c_offset;
};

#define STATE_SCAN_SELECTIVE 0 /* a [C, n], delta [B, S, C] */
#define STATE_SCAN_MAMBA2    1 /* a [H], delta [B, S, H]: one decay a head */
#define STATE_SCAN_STEPS     8 /* between two reductions over the lanes */
#define STATE_SCAN_THREADS   128

struct state_scan_args {
    u32 batch, steps, heads, width, size; /* channels: heads * width; states: `size` a channel */
    u32 lanes;                            /* of a channel, a power of two */
    u32 x_offset, delta_offset, a_offset, b_offset, c_offset;
    u32 y_offset, before_offset, after_offset;
};

#define GATED_DELTA_THREADS 128

struct gated_delta_args {
    u32 batch, steps, heads, size;
    u32 lanes; /* of a column, a power of two */
    f32 scale; /* 1 / sqrt(size) */
    u32 q_offset, k_offset, v_offset, g_offset, beta_offset;
    u32 y_offset, before_offset, after_offset;
};

#endif
