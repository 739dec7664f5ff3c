/* Gradients of state scans and of the gated delta rule. */
#ifndef RLXVK_ARGS_SEQUENCE_BACKWARD_H
#define RLXVK_ARGS_SEQUENCE_BACKWARD_H

#include "args/types.h"

/* `work` holds, in words, states [segments, batch, heads, width, size] at *_at: those that segments
 * start with, the gradients that come to their ends, and the products of their decays. */
struct state_scan_backward_args {
    u32 batch, steps, heads, width, size;
    u32 segments, segment_steps; /* of the time, and the steps of all but the last */
    u32 chunk;                   /* steps between two states that are kept */
    u32 x_offset, delta_offset, a_offset, b_offset, c_offset, dy_offset;
    u32 start_at, end_at; /* STATE_SCAN_ZERO: zeros */
    u32 scratch_at;       /* of kept states, by workgroup */
    /* What comes of dx (and ddelta behind it), db and dc, da, ddt: in the result, or parts of it in
     * work; and the initial state's, STATE_SCAN_ZERO without one. */
    u32 channels_at, vectors_at, rates_at, steps_at, initial_at;
};

struct state_scan_segment_args {
    u32 batch, steps, heads, width, size;
    u32 segments, segment_steps;
    u32 x_offset, delta_offset, a_offset, b_offset, c_offset, dy_offset;
    u32 start_at, end_at, decay_at;
};

struct state_scan_join_args {
    u32 states, segments; /* states: words of one of all */
    u32 before_offset, after_offset;
    u32 start_at, end_at, decay_at;
};

#define STATE_SCAN_ZERO 0xffffffffu /* in place of where states lie */

struct gated_delta_backward_args {
    u32 batch, steps, heads, size;
    u32 chunk;
    f32 scale; /* 1 / sqrt(size) */
    u32 q_offset, k_offset, v_offset, g_offset, beta_offset, dy_offset;
    /* In work: v less what was found, of every step; the initial state, the final one's gradient
     * (STATE_SCAN_ZERO: zeros); states kept, by workgroup. */
    u32 rest_at, start_at, end_at, scratch_at;
    /* dq and dk, dg and dbeta: in the result, or parts of it in work; dv and the state's. */
    u32 vectors_at, gates_at, values_at, initial_at;
};

#endif
