/* Sequence models: recurrent layers, state scans, linear attention. */
#ifndef RLXVK_ARGS_SEQUENCE_H
#define RLXVK_ARGS_SEQUENCE_H

#include "args/types.h"

#define RECURRENT_LSTM 0
#define RECURRENT_GRU  1
#define RECURRENT_RNN  2 /* tanh */
#define RECURRENT_RELU 3 /* the rnn op with relu */

#define RECURRENT_MOST_HIDDEN  256 /* at most, for the kernel with the state in shared memory */
#define RECURRENT_STEP_THREADS 128
#define RECURRENT_STEP_LANES   32

/* One layer. p [B, S, D, G Hd] is W_ih x + b. w [D, Hd, G Hd] is W_hh transposed. States are [D, B,
 * Hd]. */
struct recurrent_args {
    u32 batch, steps, hidden, directions;
    u32 p_offset, w_offset, bias_offset, y_offset;
    u32 h0_offset, c0_offset, hn_offset, cn_offset;
};

/* One time step of one layer. *_first: the offset for batch row 0 and unit 0, by direction. */
struct recurrent_step_args {
    u32 batch, hidden, directions;
    u32 has_previous; /* 0: the previous state is zero */
    u32 p_batch, y_batch, h_batch;
    u32 p_first[2], y_first[2], h_first[2];
    u32 w_offset, bias_offset, c0_offset, c_offset;
};

#define RECURRENT_TILE_QUADS 8  /* quads of rows of W_hh in a workgroup's tile */
#define RECURRENT_TILE_POOL  16 /* vec4s of shared memory for each column of W_hh */

/* One time step of one layer. p_first and y_first as above. h is [D, Hd, 4 column_quads]. */
struct recurrent_tile_args {
    u32 batch, hidden, directions;
    u32 has_previous, column_quads;
    u32 p_batch, y_batch;
    u32 p_first[2], y_first[2];
    u32 bias_offset, c0_offset, c_offset;
};

/* Backward of one layer and direction. A workgroup takes RECURRENT_FACTOR_UNITS units of a batch
 * row, over the steps of one of `parts` parts. `before`: c0 (lstm), or the previous h of all steps
 * (gru). */
#define RECURRENT_FACTOR_UNITS 32

struct recurrent_factors_args {
    u32 batch, steps, hidden, parts;
    u32 reversed;
    u32 has_before; /* 0: c0 is zero */
    u32 x_offset, h_offset, before_offset;
    u32 d_offset, second;      /* second: from a slope of x to the slope of h (gru) */
    u32 kept_offset, c_offset; /* [B, S, Hd] each */
};

#define RECURRENT_MOST_ROWS 512 /* rows of W_hh, if one workgroup does the whole sweep */
#define RECURRENT_SEED_H    1   /* bits of `seeds`: the given gradients of final states */
#define RECURRENT_SEED_C    2

/* All steps. w is [G Hd, Hd in quads]. d, kept and c as above. States are [B, Hd]. */
struct recurrent_sweep_args {
    u32 batch, steps, hidden, reversed;
    u32 seeds, initial; /* initial: compute the gradients of the initial states */
    u32 d_offset, second, kept_offset, c_offset, dy_offset;
    u32 dhn_offset, dcn_offset, dh0_offset, dc0_offset;
};

/*
 * Bits of `flags`:
 *   MULTIPLIES  `previous` is the result of the last step, a factor of the product: [G Hd, columns]
 *   SEEDED      `previous` is dhn
 *   CONTINUES   `before` is given
 *   ENDS        no step is left, and `next` is dh0
 */
#define RECURRENT_SWEEP_MULTIPLIES 1
#define RECURRENT_SWEEP_SEEDED     2
#define RECURRENT_SWEEP_CONTINUES  4
#define RECURRENT_SWEEP_ENDS       8

/* One step. *_first: the offset for batch row 0 and unit 0. *_batch: the stride between batch
 * rows. */
struct recurrent_sweep_step_args {
    u32 batch, hidden, columns, flags;
    u32 d_first, d_batch, second;
    u32 kept_first, c_first, state_batch; /* state_batch: stride of kept, c and dy */
    u32 dy_first, previous_offset, next_offset, before_offset, after_offset;
};

#define STATE_SCAN_SELECTIVE 0 /* a [C, n], delta [B, S, C] */
#define STATE_SCAN_MAMBA2    1 /* a [H], delta [B, S, H]: one decay for each head */
#define STATE_SCAN_STEPS     8 /* steps between two reductions over the lanes */
#define STATE_SCAN_THREADS   128

struct state_scan_args {
    u32 batch, steps, heads, width, size; /* channels: heads * width; each has `size` states */
    u32 lanes;                            /* lanes of a channel, a power of two */
    u32 x_offset, delta_offset, a_offset, b_offset, c_offset;
    u32 y_offset, before_offset, after_offset;
};

#define LINEAR_ATTENTION_ONE_SHAPE 0 /* gated_delta_net: q, k and v have the same shape */
#define LINEAR_ATTENTION_ANY       1

/* q [batch, steps, heads * queries, key_width]; k [batch, steps, heads, key_width]; v [.., heads,
 * value_width]. */
struct linear_attention_args {
    u32 batch, steps, heads, queries, key_width, value_width;
    u32 lanes; /* lanes of a column, a power of two */
    f32 scale; /* of the result */
    u32 q_offset, k_offset, v_offset, g_offset, beta_offset;
    u32 y_offset, before_offset, after_offset;
};

#endif
