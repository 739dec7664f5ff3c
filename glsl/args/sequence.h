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

/* Backward, of one layer and direction. RECURRENT_FACTOR_UNITS units of a batch row, over the steps
 * of one part in `parts`. `before`: c0 (lstm), the previous h of all steps (gru). */
#define RECURRENT_FACTOR_UNITS 32

struct recurrent_factors_args {
    u32 batch, steps, hidden, parts;
    u32 reversed;
    u32 has_before; /* 0: c0 is zero */
    u32 x_offset, h_offset, before_offset;
    u32 d_offset, second;      /* second: from a slope of x to that of h (gru) */
    u32 kept_offset, c_offset; /* [B, S, Hd] each */
};

#define RECURRENT_MOST_ROWS 512 /* of W_hh, where a workgroup sweeps alone */
#define RECURRENT_SEED_H    1   /* bits of `seeds`: which gradients of final states there are */
#define RECURRENT_SEED_C    2

/* All steps. w [G Hd, Hd in quads]; d, kept and c as above; states [B, Hd]. */
struct recurrent_sweep_args {
    u32 batch, steps, hidden, reversed;
    u32 seeds, initial; /* initial: gradients of the initial states are asked for */
    u32 d_offset, second, kept_offset, c_offset, dy_offset;
    u32 dhn_offset, dcn_offset, dh0_offset, dc0_offset;
};

/* Bits of `flags`: `previous` is what the last step left to multiply with, [G Hd, columns]; it is
 * dhn; `before` is given; no step is left, `next` is dh0. */
#define RECURRENT_SWEEP_MULTIPLIES 1
#define RECURRENT_SWEEP_SEEDED     2
#define RECURRENT_SWEEP_CONTINUES  4
#define RECURRENT_SWEEP_ENDS       8

/* One step. *_first: of the element for batch row 0 and unit 0; *_batch: to the next row. */
struct recurrent_sweep_step_args {
    u32 batch, hidden, columns, flags;
    u32 d_first, d_batch, second;
    u32 kept_first, c_first, state_batch; /* state_batch: of kept, c and dy */
    u32 dy_first, previous_offset, next_offset, before_offset, after_offset;
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
